"""Lines, fields, CSV, JSON lines, Parquet and row ranges."""

import csv
import io
import json
import math
import pickle
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_files import Columns, File, limit_bytes, reasons, rows, writer

from noisegen.data import lines as text_lines
from noisegen.data import tables
from noisegen.data.columns import read_columns
from noisegen.data.files import Damaged
from noisegen.data.formats import json_lines, parquet, registry
from noisegen.data.formats.base import as_cell
from noisegen.data.formats.json_lines import json_schema, json_table, json_types
from noisegen.data.formats.separated import csv_tables
from noisegen.data.lines import blocks, line_ranges
from noisegen.data.rows import FileRange
from noisegen.data.tables import delimited
from noisegen.errors import SourceError

SIZES = st.integers(1, 9)


@pytest.fixture
def file(tmp_path: Path) -> File:
    return writer(tmp_path)


def cut(text: str, size: int) -> list[bytes]:
    """Return a text in parts, half of them of twice the size."""
    data, edges = text.encode(), range(0, len(text.encode()) + 1, 3 * size)
    parts = [data[at + a : at + b] for at in edges for a, b in ((0, size), (size, 3 * size))]
    return list(filter(None, parts))


@given(st.text("a\n", max_size=40), SIZES)
def test_blocks_are_whole_lines_and_lose_nothing(text: str, size: int) -> None:
    parts = list(blocks(cut(text, size), size))
    assert b"".join(parts).decode() == text
    assert all(part.endswith(b"\n") for part in parts[:-1])


@given(st.lists(st.text("ab", max_size=12), max_size=9), SIZES, st.booleans())
def test_blocks_keep_the_beginning_of_a_long_line(lines: list[str], size: int, end: bool) -> None:
    text = "\n".join(lines) + "\n" * end
    with pytest.MonkeyPatch.context() as patch:
        limit_bytes(patch, text=5, line=5)
        parts = list(blocks(cut(text, size), size))
    found = b"".join(parts).decode().split("\n")
    assert len(found) == len(text.split("\n"))
    for line, given_line in zip(found, text.split("\n"), strict=True):
        assert line == given_line if len(given_line) <= 5 else given_line.startswith(line)
        assert len(line) > 5 or line == given_line


def test_blocks_of_an_endless_line_are_bounded() -> None:
    (part,) = blocks((b"a" * (1 << 20) for _ in range(200)), 1 << 20)
    assert len(part) <= text_lines.LINE_MAX + (1 << 20)


@given(st.text("a\n", max_size=40), SIZES, SIZES, SIZES, st.integers(0, 3))
def test_line_ranges_partition_the_lines(
    text: str, first: int, step: int, scan: int, start: int
) -> None:
    found = text.encode()[start:].split(b"\n")
    found = found[:-1] if found[-1] == b"" else found
    with pytest.MonkeyPatch.context() as patch, tempfile.NamedTemporaryFile() as file:
        patch.setattr(text_lines, "SCAN", scan)
        Path(file.name).write_text(text)
        ranges = list(line_ranges(FileRange(file.name, start=start), first, step))
    assert [part.stop for part in ranges[:-1]] == [part.start for part in ranges[1:]]
    assert sum(part.rows for part in ranges) == len(found)
    sizes = [part.rows for part in ranges]
    assert sizes[:1] == [min(first, len(found))][: len(sizes)]
    assert all(size == step for size in sizes[1:-1])
    for each in ranges:
        part = text.encode()[each.start : each.stop].removesuffix(b"\n").split(b"\n")
        assert len(part) == each.rows
        assert each.size == each.stop - each.start


@given(st.lists(st.lists(st.text("aé\r \0", max_size=4), min_size=1, max_size=4), min_size=1))
def test_fields_of_tsv_are_those_of_split(lines: list[list[str]]) -> None:
    text = "\n".join("\t".join(line) for line in lines) + "\n"
    table = delimited(text.encode(), ["a", "b"], tabs=True)
    expected = [line.removesuffix("\r").split("\t") for line in text.split("\n")[:-1]]
    good = [len(line) == 2 for line in expected]
    assert reasons(table) == ["" if ok else "wrong_columns" for ok in good]
    assert rows(table) == [
        tuple(line) if ok else (None, None) for line, ok in zip(expected, good, strict=True)
    ]


def test_lines_end_with_lf_or_crlf_and_nothing_else() -> None:
    table = delimited("a\r\n\n\rb\u2028c\x0bd\x85\te\r\r\n\r\nlast".encode(), ["t"], tabs=False)
    assert table["t"].to_pylist() == ["a", "", "\rb\u2028c\x0bd\x85\te\r", "", "last"]


def test_a_field_that_is_not_utf8_drops_its_row_only() -> None:
    table = delimited(b"a\tb\n\xff\tb\na\t\xe9\nc\t\xc3\xa9\n", ["x", "y"], tabs=True)
    assert reasons(table) == ["", "not_utf8", "not_utf8", ""]
    assert rows(table)[::3] == [("a", "b"), ("c", "é")]


CELL = st.text('a",é\n\r\t ', max_size=5)


@given(st.lists(st.tuples(CELL, CELL), max_size=9), SIZES)
def test_csv_that_python_writes_is_read_back(lines: list[tuple[str, str]], size: int) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerows(lines)
    parts = blocks(cut(file.getvalue(), size), size)
    tables = list(csv_tables(parts, ["x", "y"]))
    assert [row for table in tables for row in rows(table)] == lines


def test_csv_counts_bad_rows_and_keeps_the_good() -> None:
    data = b'a,1\na\n\n"b\nc",2\nd\r,3\n\xff,4\ne,5,6\n"f""",7\n5" pipe,8\n'
    (table,) = csv_tables(iter([data]), ["x", "y"])
    wrong = "wrong_columns"
    assert reasons(table) == ["", wrong, wrong, "", wrong, "not_utf8", wrong, "", ""]
    assert [row for row in rows(table) if row[0]] == [
        ("a", "1"),
        ("b\nc", "2"),
        ('f"', "7"),
        ('5" pipe', "8"),
    ]


STRAY = [
    (b'a,1\nb,"x\n' + b"c,3\n" * 9, ["a"] + ["c"] * 9),  # never closed
    (b'a,"x\nb,"y z"\n"c\nd",4\n', ["b", "c\nd"]),  # the next one opens
    (b'a,"x\nb,5"\nc,"6"\nd,7"\n', ["a", "c", "d"]),  # one closes: so it may be meant
    (b'a,0,"x\nb,5"\nc,6\n', ["b", "c"]),  # the same, but a field too many
    (b'"a"b,1\n"c"d,"2\ne,3', ["ab", "e"]),
    (b'a,"1', []),
]


@pytest.mark.parametrize(("data", "kept"), STRAY)
@pytest.mark.parametrize("size", [3, 100])
def test_a_stray_quote_costs_its_line_only(data: bytes, kept: list[str], size: int) -> None:
    found = list(csv_tables(blocks([data], size), ["x", "y"]))
    assert [row[0] for table in found for row in rows(table) if row[0]] == kept
    assert b"".join(raw for table in found for raw in table[tables.RAW].to_pylist()) == data
    assert {reason for table in found for reason in reasons(table)} <= {"", "open_quote"}


@given(st.lists(st.text('a",\n', max_size=9), max_size=9), SIZES)
def test_the_lines_of_csv_are_all_there_whatever_the_quotes(lines: list[str], size: int) -> None:
    data = "\n".join(lines).encode()
    found = list(csv_tables(blocks([data], size), ["x", "y"]))
    assert b"".join(raw for table in found for raw in table[tables.RAW].to_pylist()) == data


def test_stray_quotes_take_linear_time() -> None:
    lines = [b'1,"a\n', b'2,""\n', b'"x",3\n', b'4,5"\n', b'""",""\n'] * 10_000
    began = time.process_time()
    found = list(csv_tables(blocks([b'0,"\n', *lines], 1 << 20), ["x", "y"]))
    assert sum(map(len, found)) > 25_000
    assert time.process_time() - began < 2


def test_rows_before_damage_are_kept_behind_a_stray_quote() -> None:
    def parts() -> Iterator[bytes]:
        yield b'a,"1\nb,2\n'
        raise Damaged("cut")

    found = []
    with pytest.raises(Damaged):
        found.extend(csv_tables(parts(), ["x", "y"]))
    assert reasons(found[0]) == ["open_quote", ""]


def test_a_csv_field_may_be_longer_than_the_csv_module_allows_by_itself() -> None:
    before = csv.field_size_limit()
    long = "a" * (1 << 18)
    (table,) = csv_tables(iter([f"{long},b\n".encode()]), ["x", "y"])
    assert rows(table) == [(long, "b")]
    assert csv.field_size_limit() == before


def test_a_csv_field_over_the_limit_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_bytes(monkeypatch, text=10, line=20)
    (table,) = csv_tables(iter([b"aaaaaaaaaaaa,b\nc,d\n"]), ["x", "y"])
    assert reasons(table) == ["row_too_long", ""]


@pytest.mark.parametrize("group", [1, 7, 100])
def test_parquet_ranges_are_those_asked_for(tmp_path: Path, group: int) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": np.arange(100)}), path, row_group_size=group)
    for start, stop in [(0, 100), (0, 1), (99, 100), (6, 8), (7, 14), (13, 50)]:
        for size in (1, 100, 1 << 20):
            parts = parquet.parquet_tables(path, start, stop, size)
            assert [n for t in parts for n in t["n"].to_pylist()] == list(range(start, stop))


def test_a_parquet_error_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(SourceError, match=r"cannot read .*a\.parquet: ") as caught:
        parquet.parquet_head(str(path))
    assert "\n" not in str(caught.value)


def test_a_parquet_file_that_counts_other_rows_than_it_has_is_damaged(tmp_path: Path) -> None:
    path, found = tmp_path / "a.parquet", 0
    pq.write_table(pa.table({"n": np.arange(100)}), path, row_group_size=30)
    whole = path.read_bytes()
    for at in range(int.from_bytes(whole[-8:-4], "little")):
        damaged = bytearray(whole)
        damaged[-9 - at] ^= 1 << at % 7
        path.write_bytes(damaged)
        try:
            metadata = pq.read_metadata(path)
        except (pa.ArrowException, OSError):
            continue
        groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        if sum(groups) != metadata.num_rows:
            found += 1
            with pytest.raises(SourceError, match=r"cannot read .*a\.parquet: "):
                parquet.parquet_head(str(path))
    assert found > 1


def test_tables_pickle(tmp_path: Path) -> None:
    table = delimited(b"a\nb\n", ["t"], tabs=False)
    assert pickle.loads(pickle.dumps(table)) == table


SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text("aé\ud800\0", max_size=3)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pq"), inner),
)
ROW = st.fixed_dictionaries(
    {"text": st.text(max_size=3) | SCALAR}, optional={"m": VALUE, "n": VALUE}
)


@given(st.lists(ROW | VALUE, max_size=6), st.integers(0, 6))
def test_json_line_by_line_agrees_with_arrow(lines: list[object], sampled: int) -> None:
    texts = [json.dumps(line).encode() + b"\n" for line in lines]
    schema = json_schema(json_types(b"".join(texts[:sampled])) | {"text": pa.string()})
    if "text" not in schema.names:
        return
    for part in texts:
        fast = json_lines.block_table(part, schema)
        slow, codes = json_lines.table_by_line(part, schema, "text")
        if fast is not None:
            assert list(codes) == [0]
            assert same(fast.to_pylist(), slow.to_pylist())
    whole = json_table(b"".join(texts), schema, "text") if texts else None
    single = [json_table(part, schema, "text") for part in texts]
    if whole is not None:
        assert whole.schema == single[0].schema
        assert same(whole.to_pylist(), pa.concat_tables(single).to_pylist())


def same(one: object, other: object) -> bool:
    """Compare with nan equal to nan."""
    return repr(one) == repr(other)


def test_json_types_are_joined_over_the_rows_seen() -> None:
    sample = (
        b'{"text": "a", "n": 1, "l": [], "o": {"b": 1}, "z": null, "d": "2020-01-01"}\nnot json\n'
        b'{"text": "b", "n": 1.5, "l": [1], "o": {"a": "x"}, "e": {}}\n{"\\ud800": 1}\n3\n'
    )
    schema = json_schema(json_types(sample) | {"text": pa.string()})
    assert schema == pa.schema(
        {
            "text": pa.string(),
            "n": pa.float64(),
            "l": pa.list_(pa.int64()),
            "o": pa.struct({"a": pa.string(), "b": pa.int64()}),
            "z": pa.string(),
            "d": pa.string(),
            "e": pa.string(),
        }
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "a", "n": 1}', ""),
        (b'{"text": "a"}  ', ""),
        (b'{"text": "a", "n": NaN}', "unexpected_field"),
        (b'{"text": "a", "m": 1}', "unexpected_field"),
        (b'{"text": "a", "n": "one"}', "unexpected_field"),
        (b'{"text": "a", "n": 1e3}', "unexpected_field"),
        (b'{"text": 1}', "missing_text"),
        (b'{"text": null}', "missing_text"),
        (b'{"n": 1}', "missing_text"),
        (b"{}", "missing_text"),
        (b"", "blank_line"),
        (b"[1]", "bad_json"),
        (b'"text"', "bad_json"),
        (b'{"text": "a"', "bad_json"),
        (b'{"text": "a"} {"text": "b"}', "bad_json"),
        (b'{"text": "a"}{"text": "b"}', "bad_json"),
        (b"[" * 100_000, "bad_json"),
        (b'{"text": "\xff"}', "not_utf8"),
        (b'{"text": "\\ud800"}', "not_utf8"),
    ],
)
@pytest.mark.parametrize("neighbour", [b"", b'{"text": "b", "n": 2}\n', b"null\n"])
def test_a_json_line_has_its_reason_whatever_stands_beside_it(
    line: bytes, reason: str, neighbour: bytes
) -> None:
    schema = pa.schema({"text": pa.string(), "n": pa.int64()})
    table = json_table(neighbour + line + b"\n", schema, "text")
    assert reasons(table)[-1] == reason
    assert table["text"].to_pylist()[-1] == ("a" if reason in ("", "unexpected_field") else None)


def test_nan_in_json_is_kept() -> None:
    schema = pa.schema({"text": pa.string(), "x": pa.float64()})
    lines = b'{"text": "a", "x": NaN}\n', b'{"text": "a", "x": NaN} \n'
    for line in lines:
        assert math.isnan(json_table(line, schema, "text")["x"][0].as_py())


def test_an_overlong_json_line_is_dropped_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_bytes(monkeypatch, text=30, line=30)
    data = b'{"text": "a"}\n{"text": "' + b"b" * 30 + b'"}\n{"text": "c"}\n'
    table = json_table(data, pa.schema({"text": pa.string()}), "text")
    assert table["text"].to_pylist() == ["a", None, "c"]
    assert reasons(table) == ["", "row_too_long", ""]


def test_integers_beyond_64_bits_are_json_text() -> None:
    sample = b'{"text": "a", "n": %d, "m": %d, "u": %d, "l": [%d]}\n' % (
        2**64,
        -(2**63) - 1,
        2**64 - 1,
        10**400,
    )
    schema = json_schema(json_types(sample))
    assert schema.types == [pa.string()] * 3 + [pa.uint64(), pa.string()]
    row = json_table(sample, schema, "text").drop_columns(tables.REASON).to_pylist()[0]
    assert row == {
        "text": "a",
        "n": str(2**64),
        "m": str(-(2**63) - 1),
        "u": 2**64 - 1,
        "l": f"[{10**400}]",
    }


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2**63], pa.uint64()),
        ([2**63, 1], pa.uint64()),
        ([[1], [2**63]], pa.list_(pa.uint64())),
        ([1, -1], pa.int64()),
        ([1, 0.5, -1], pa.float64()),
        ([-1, 2**63], None),
        ([0.5, 2**63], None),
        ([1, True], None),
        ([1, "a"], None),
        ([[1, "a"], [2]], None),
        ([{"a": 1}, [1]], None),
        ([[[1]], [["a"]]], None),
        ([["a", [1]]], None),
    ],
)
def test_values_of_several_types_are_json_text(values: list[Any], kind: pa.DataType | None) -> None:
    lines = [json.dumps({"text": "a", "x": value, "o": {"x": value}}) for value in values]
    data = "\n".join([*lines, '{"text": "b"}\n']).encode()
    schema = json_schema(json_types(data))
    table = json_table(data, schema, "text")
    found = table["x"].to_pylist()
    assert table["x"].type == (kind or pa.string())
    assert found[-1] is None
    assert [row["x"] for row in table["o"].to_pylist()[:-1]] == found[:-1]
    assert found[:-1] == (values if kind else [as_cell(value) for value in values])
    assert set(reasons(table)) == {""}


def test_a_late_value_of_another_type_is_kept_in_a_column_of_strings_and_counted() -> None:
    schema = json_schema(json_types(b'{"text": "a", "s": "x", "n": 1, "z": null}'))
    data = b'{"text": "b", "s": [1, "y"], "n": %d, "z": 0.5}\n{"text": ["c"]}\n' % (2**63)
    table = json_table(data, schema, "text")
    assert reasons(table) == ["unexpected_field", "missing_text"]
    row = {"text": "b", "s": '[1, "y"]', "n": None, "z": "0.5"}
    assert table.drop_columns(tables.REASON).to_pylist()[0] == row


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (nested(33), "unexpected_field"),
        (nested(490), "unexpected_field"),
        (b"[" * 490 + b"]" * 490, "unexpected_field"),
        (nested(100_000), "bad_json"),
    ],
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_value_nested_too_deeply_costs_itself_only(value: bytes, reason: str, place: int) -> None:
    lines = [b'{"text": "a", "m": %s}' % nested(32), b'{"text": "b"}']
    lines.insert(place, b'{"text": "deep", "x": %s}' % value)
    data = b"\n".join(lines) + b"\n"
    schema = json_schema(json_types(data) | {"text": pa.string()})
    table = json_table(data, schema, "text")
    assert set(schema.names) == {"text", "m"}
    assert [found for found in reasons(table) if found] == [reason]
    assert reasons(table)[place] == reason
    assert [text for text in table["text"].to_pylist() if text in ("a", "b")] == ["a", "b"]


def test_objects_that_are_used_as_maps_cost_themselves_only() -> None:
    maps = [{"text": "a", "m": {f"k{9 * n + i}": i for i in range(9)}, "n": n} for n in range(900)]
    keys = [{"text": "b", f"k{n}": n} for n in range(4_000)]
    began = time.process_time()
    for lines, names, lost in ((maps, ["text", "n"], 900), (keys, ["text", "k0"], 3_001)):
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        schema = json_schema(json_types(data))
        table = json_table(data, schema, "text")
        assert schema.names[:2] == names
        assert json_lines.fields_in(schema) <= json_lines.FIELDS_MAX
        assert reasons(table).count("unexpected_field") == lost
        assert table["text"].null_count == 0
    assert time.process_time() - began < 3  # with the square of the keys it takes 20


def test_rows_of_many_fields_are_read_in_small_blocks(file: File) -> None:
    fields = {f"k{number}": number for number in range(990)}
    lines = [{"text": "a"} | fields, *[{"text": "b"}] * 5_000]
    path = file("a.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    whole = registry.read_head(registry.file_of(path), Columns())
    assert whole
    _, *others = registry.range_tables(whole, Columns(), batch_bytes=70_000)
    assert max(map(len, others)) < 1_000


def test_a_field_may_have_the_name_of_a_column_of_our_own() -> None:
    data = b'{"text": "a", "\\u0000reason": 1}\n{"text": "b", "\\u0000raw": 1, "x\\u0000": 2}\n'
    schema = json_schema(json_types(data))
    assert schema.names == ["text", "x\0"]
    assert reasons(json_table(data, schema, "text")) == ["unexpected_field"] * 2


@pytest.mark.parametrize(
    ("name", "lines", "unread"),
    [
        ("rows.jsonl", '{"text": "one"}\n{"text": 3\n{"text": "two"}\n', {"bad_json": 1}),
        ("rows.csv", "text\none\ntwo\n", {}),
    ],
)
def test_a_later_choice_of_columns_is_read_from_any_format(tmp_path, name, lines, unread):
    (tmp_path / name).write_text(lines)
    read = read_columns(str(tmp_path / name), [("clean",), ("text",)], "a test")
    assert read.columns == {"text": ["one", "two"]}
    assert dict(read.unread) == unread


def test_a_block_of_csv_is_not_held_as_text():
    block = b'see,"you, tomorrow"\n' * 200_000
    tracemalloc.start()
    try:
        rows = next(csv_tables([block], ["a", "b"]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows["b"][0].as_py() == "you, tomorrow"
    assert peak < len(block)


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_a_range_of_arrow_checks_its_own_batches_alone(new, tmp_path):
    path, table = tmp_path / "a.arrow", pa.table({"text": list(map(str, range(90)))})
    with new(path, table.schema) as file:
        file.write_table(table, 10)
    offsets = np.arange(11, dtype=np.int32)  # of the first batch, whose texts have one digit
    wild = offsets * 1_000
    path.write_bytes(path.read_bytes().replace(offsets.tobytes(), wild.tobytes(), 1))
    read = pa.concat_tables(parquet.arrow_tables(str(path), 45, 65, 1 << 20))
    assert read == tables.with_reasons(table).slice(45, 20)
    with pytest.raises(SourceError, match=r"cannot read .*a\.arrow: damaged"):
        list(parquet.arrow_tables(str(path), 5, 65, 1 << 20))
