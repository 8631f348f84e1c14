"""Blocks, lines, fields, CSV and row ranges."""

import csv
import io
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_files import reasons, rows

from noisegen import readers
from noisegen.errors import SourceError
from noisegen.readers import blocks, csv_tables, delimited, line_ranges

SIZES = st.integers(1, 9)


@given(st.text("a\n", max_size=40), SIZES)
def test_blocks_are_whole_lines_and_lose_nothing(text: str, size: int) -> None:
    parts = list(blocks(io.BytesIO(text.encode()).read, size))
    assert b"".join(parts).decode() == text
    assert all(part.endswith(b"\n") for part in parts[:-1])


@given(st.lists(st.text("ab", max_size=12), max_size=9), SIZES, st.booleans())
def test_blocks_keep_the_beginning_of_a_long_line(lines: list[str], size: int, end: bool) -> None:
    text = "\n".join(lines) + "\n" * end
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "LINE_MAX", 5)
        parts = list(blocks(io.BytesIO(text.encode()).read, size))
    found = b"".join(parts).decode().split("\n")
    assert len(found) == len(text.split("\n"))
    for line, given_line in zip(found, text.split("\n"), strict=True):
        assert line == given_line if len(given_line) <= 5 else given_line.startswith(line)
        assert len(line) > 5 or line == given_line


def test_blocks_of_an_endless_line_are_bounded() -> None:
    left = 200

    def read(size: int) -> bytes:
        nonlocal left
        left -= 1
        return b"a" * (1 << 20) if left > 0 else b""

    (part,) = blocks(read, 1 << 20)
    assert len(part) <= readers.LINE_MAX + (1 << 20)


@given(st.text("a\n", max_size=40), SIZES, SIZES, SIZES, st.integers(0, 3))
def test_line_ranges_partition_the_lines(
    text: str, first: int, step: int, scan: int, start: int
) -> None:
    data = text.encode()[start:]
    lines = data.split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "SCAN", scan)
        patch.setattr(readers, "open", lambda *_: io.BytesIO(text.encode()), raising=False)
        ranges = list(line_ranges("file", start, first, step))
    assert [stop for _, stop, _ in ranges[:-1]] == [begin for begin, _, _ in ranges[1:]]
    assert sum(count for _, _, count in ranges) == len(lines)
    sizes = [count for _, _, count in ranges]
    assert sizes[:1] == [min(first, len(lines))][: len(sizes)]
    assert all(size == step for size in sizes[1:-1])
    for begin, stop, count in ranges:
        part = text.encode()[begin:stop].removesuffix(b"\n").split(b"\n")
        assert len(part) == count


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
    parts = blocks(io.BytesIO(file.getvalue().encode()).read, size)
    tables = list(csv_tables(parts, ["x", "y"]))
    assert [row for table in tables for row in rows(table)] == lines


def test_csv_counts_bad_rows_and_keeps_the_good() -> None:
    data = b'a,1\na\n\n"b\nc",2\nd\r,3\n\xff,4\ne,5,6\n"f""",7\n5" pipe,8\n'
    (table,) = csv_tables(iter([data]), ["x", "y"])
    wrong = "wrong_columns"
    assert reasons(table) == ["", wrong, wrong, "", wrong, "not_utf8", wrong, "", ""]
    assert [row for row in rows(table) if row[0]] == [
        ("a", "1"), ("b\nc", "2"), ('f"', "7"), ('5" pipe', "8"),
    ]  # fmt: skip


def test_a_csv_field_may_be_longer_than_the_csv_module_allows_by_itself() -> None:
    before = csv.field_size_limit()
    long = "a" * (1 << 18)
    (table,) = csv_tables(iter([f"{long},b\n".encode()]), ["x", "y"])
    assert rows(table) == [(long, "b")]
    assert csv.field_size_limit() == before


def test_a_csv_field_over_the_limit_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "TEXT_MAX", 10)
    (table,) = csv_tables(iter([b"aaaaaaaaaaaa,b\nc,d\n"]), ["x", "y"])
    assert reasons(table) == ["row_too_long", ""]


@pytest.mark.parametrize("group", [1, 7, 100])
def test_parquet_ranges_are_those_asked_for(tmp_path: Path, group: int) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": np.arange(100)}), path, row_group_size=group)
    for start, stop in [(0, 100), (0, 1), (99, 100), (6, 8), (7, 14), (13, 50)]:
        for size in (1, 100, 1 << 20):
            tables = readers.parquet_tables(path, start, stop, size)
            assert [n for t in tables for n in t["n"].to_pylist()] == list(range(start, stop))


def test_a_parquet_error_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(SourceError, match=r"cannot read .*a\.parquet: ") as caught:
        readers.parquet_head(str(path))
    assert "\n" not in str(caught.value)


def test_tables_pickle(tmp_path: Path) -> None:
    table = delimited(b"a\nb\n", ["t"], tabs=False)
    assert pickle.loads(pickle.dumps(table)) == table
