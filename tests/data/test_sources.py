"""What a SOURCE means, its rows in every format, cut anywhere, and what is wrong with them."""

import bz2
import gzip
import hashlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_files import (
    FORMATS,
    NAMED,
    PACK,
    TEXT,
    File,
    all_tasks,
    bgzf,
    clean,
    cut_finely,
    limit_bytes,
    on_stdin,
    rows_of,
    writer,
)

import noisegen
from noisegen.data import sources, tables
from noisegen.data.files import metered
from noisegen.data.rows import Columns
from noisegen.data.sources import expand, first_file, read, refuse_reserved, shard_ranges
from noisegen.errors import MissingExtra, SourceError


@pytest.fixture
def file(tmp_path: Path) -> File:
    return writer(tmp_path)


def test_bom_and_crlf_are_no_part_of_the_text(file: File) -> None:
    bom = b"\xef\xbb\xbf"
    assert clean(file("a.txt", bom + b"a\r\n\r\nb")) == ["a", "", "b"]
    assert clean(file("b.txt.gz", gzip.compress(bom + b"a\r\n"))) == ["a"]
    assert clean(file("c.tsv", bom + b"text\tn\r\na\t1\r\n")) == ["a"]
    assert clean(file("d.csv", bom + b'"text",n\r\na,1\r\n')) == ["a"]
    assert clean(file("e.jsonl", bom + b'{"text": "a"}\r\n')) == ["a"]


def test_a_number_names_a_column_of_a_file_without_header(file: File) -> None:
    tsv = file("a.tsv", b"1\ta\n2\tb\n")
    table, _ = rows_of(tsv, columns=Columns("2", row_id="1"))
    assert table.to_pylist() == [{"id": "1", "clean": "a"}, {"id": "2", "clean": "b"}]
    table, _ = rows_of(file("a.csv", b'1,"a,"\n2,b\n'), columns=Columns("2"), shard=1)
    assert table.column_names == ["id", "clean", "column_1"]
    assert table["clean"].to_pylist() == ["a,", "b"]
    with pytest.raises(SourceError, match="no column 'column_3' among: column_1, column_2"):
        rows_of(tsv, columns=Columns("3"))


def test_hugging_face_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"noisegen\[hf\]"):
        rows_of("hf:name")


def test_folders_and_globs_are_sorted_and_strangers_skipped(file: File, tmp_path: Path) -> None:
    for name in ("b.txt", "A.TXT", "c/d.txt.gz", ".hidden.txt", ".git/e.txt", "note.md", "txt"):
        file(name, gzip.compress(b"z\n") if name.endswith("gz") else name.encode())
    found = expand([str(tmp_path)])
    read_in = [Path(item.path).name for item in found if not item.skipped]
    assert read_in == ["A.TXT", "b.txt", "d.txt.gz"]
    assert [Path(item.path).name for item in found if item.skipped] == ["note.md", "txt"]
    assert {item.skipped for item in found if item.skipped} == {"unknown ending"}
    assert clean(tmp_path) == ["A.TXT", "b.txt", "z"]
    assert clean(tmp_path / "*.txt") == ["b.txt"]
    assert clean(tmp_path / "**" / "*.gz") == ["z"]
    sizes = [each.file_size for each in expand([str(tmp_path / "b.txt"), "-", "hf:x"])]
    assert sizes == [5, None, None]


@pytest.mark.parametrize(
    ("name", "data", "columns", "message"),
    [
        ("a.md", b"x", TEXT, "a.md: unknown ending; .txt, .tsv"),
        ("a.parquet.gz", b"x", TEXT, "unknown ending"),
        ("a.txt", b"", TEXT, "no rows in"),
        ("a.tsv", b"", TEXT, "no rows in"),
        ("a.tsv", b"text\tn\n", TEXT, "no rows in"),
        ("a.jsonl", b"", TEXT, "no rows in"),
        ("a.jsonl.gz", b"", TEXT, "no rows in"),
        (
            "a.csv",
            b"txt,n\na,1\n",
            Columns(),
            "no column 'text' among: txt, n; did you mean 'txt'?",
        ),
        ("a.tsv", b"a b c\t1\n", TEXT, "name it: --text-column NAME, or its number"),
        ("a.jsonl", b"not json\n", TEXT, "no column 'text' among: none"),
        ("a.txt", b"a\n", Columns(row_id="n"), "no column 'n' among: text"),
        ("a.csv", b"text,n,n\na,1,2\n", TEXT, "two columns are named 'n'"),
        ("a.csv", b"text,\xff\na,1\n", TEXT, "a.csv: the header is not UTF-8"),
        ("a.csv", b"x" * 200_000 + b"\na\n", TEXT, "no header: field larger"),
        ("a.jsonl", b'{"text": 1, "x": 2}\n', Columns("x", row_id="y"), "no column 'y'"),
        ("a.tsv", b"words\ttags\na\tO\n", NAMED, "'words' is not a list of strings but string"),
        ("a.jsonl", b'{"text": "a", "n": 1}\n', Columns("n", row_id="x"), "no column 'x'"),
        ("a.parquet", b"PAR1", TEXT, "cannot read "),
    ],
)
def test_errors_say_what_and_where(
    file: File, name: str, data: bytes, columns: Columns, message: str
) -> None:
    with pytest.raises(SourceError) as caught:
        rows_of(file(name, data), columns=columns)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "columns", "name"),
    [(b"text,id,n\na,1,2\n", Columns(row_id="n"), "id"), (b"text,noisy\na,1\n", TEXT, "noisy")],
)
def test_only_a_run_that_carries_columns_refuses_names_of_its_own(
    file: File, data: bytes, columns: Columns, name: str
) -> None:
    path = file("a.csv", data)
    assert clean(path, columns=columns) == ["a"]
    first = first_file(expand([str(path)]), columns)
    assert first
    with pytest.raises(SourceError, match=f"'{name}' has a name of the output; rename it"):
        refuse_reserved(first, columns)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(SourceError, match="'': no such file or folder"):
        expand([""])
    with pytest.raises(SourceError, match=r"'no/such\.txt': no such file or folder"):
        expand(["no/such.txt"])


def test_files_of_a_run_must_agree(file: File, tmp_path: Path) -> None:
    file("a.tsv", b"text\tn\na\t1\n")
    file("b.tsv", b"text\tm\na\t1\n")
    with pytest.raises(SourceError, match=r"a\.tsv and .*b\.tsv differ: column 'n' is string in"):
        next(shard_ranges(expand([str(tmp_path)]), Columns(), 1))


def test_files_may_have_their_columns_in_another_order(file: File, tmp_path: Path) -> None:
    file("a.tsv", b"n\ttext\tm\n1\ta\t2\n")
    file("b.csv", b"text,m,n\nb,4,3\n")
    file("c.jsonl", b'{"m": "6", "text": "c", "n": "5"}\n')
    table, _ = rows_of(tmp_path)
    assert table.column_names == ["id", "clean", "n", "m"]
    assert table["n"].to_pylist() == ["1", "3", "5"]


def test_files_of_equal_columns_share_their_schema(tmp_path: Path) -> None:
    """Of hundreds of thousands of files a driver holds one."""
    for name in "abc":
        pq.write_table(pa.table({"text": [name], "n": [1]}), tmp_path / f"{name}.parquet")
    tasks = shard_ranges(expand(str(tmp_path)), Columns(), 1)

    assert len({id(part.schema) for task in tasks for part in task}) == 1


def test_a_column_of_numbers_is_no_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="column 'n' is not text but int64"):
        rows_of(tmp_path, columns=Columns("n"))


TEXTS = ["see you", "", " né \u2028 ", "日本語 😀", "it's", "last"]
SHARED = Path(__file__).parents[3] / "shared" / "data" / "wiki-split" / "tune.tsv.gz"


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_and_compression_gives_the_same_rows(
    file: File, kind: str, packing: str
) -> None:
    if kind == "parquet" and packing:
        pytest.skip("Parquet is compressed in itself")
    path = file(f"a.{kind}{packing}", PACK[packing](FORMATS[kind](TEXTS)))
    for shard in (1, 4, 100):
        table, dropped = rows_of(path, shard=shard)
        assert table["clean"].to_pylist() == TEXTS
        assert table["id"].to_pylist() == list(range(len(TEXTS)))
        assert not dropped


ANY_TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\t"), max_size=8
)


@given(st.lists(ANY_TEXT, min_size=1, max_size=12), st.integers(1, 14), st.integers(1, 64))
@pytest.mark.parametrize("kind", FORMATS)
def test_texts_survive_any_cut_and_tasks_partition_them(
    kind: str, texts: list[str], shard: int, batch_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        half = len(texts) // 2
        for name, part in (("a", texts[:half]), ("b", texts[half:])):
            Path(folder, f"{name}.{kind}").write_bytes(FORMATS[kind](part))
        found = all_tasks(folder, shard=shard)
        ends = [task.first_row + task.rows for task in found]
        assert [task.first_row for task in found] == [0, *ends[:-1]]
        assert ends[-1] == len(texts)
        assert [task.number for task in found] == list(range(len(found)))
        if kind != "csv":
            assert all(task.rows == shard for task in found[:-1])
        assert clean(folder, shard=shard, batch_bytes=batch_bytes) == texts


@given(st.integers(1, 20), st.integers(1, 5))
@settings(max_examples=25)
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl.gz", "a.parquet"])
def test_limit_takes_the_first_rows(name: str, limit: int, shard: int) -> None:
    texts = [str(number) for number in range(12)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        data = FORMATS[path.name.split(".")[1]](texts)
        path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        assert clean(path, shard=shard, limit=limit) == texts[:limit]


def test_a_task_holds_pieces_of_small_files_and_ends_at_a_streamed_source(file: File) -> None:
    names = [file(f"{i}.txt", b"a\nb\nc\n") for i in range(3)]
    packed = file("z.txt.gz", gzip.compress(b"d\ne\n"))
    found = all_tasks(*names, packed, names[0], shard=4)
    assert [(task.first_row, task.rows, len(task.ranges)) for task in found] == [
        (0, 4, 2),
        (4, 4, 2),
        (8, 1, 1),
        (9, 2, 1),
        (11, 3, 1),
    ]
    assert found[3].ranges[0].table is not None
    assert clean(*names, shard=8, limit=4) == ["a", "b", "c", "a"]
    assert [len(task.ranges) for task in all_tasks(*names, shard=4, limit=5)] == [2, 1]


def test_a_streamed_task_ends_early_by_bytes_and_pickles_without_its_neighbours(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "STREAM_BYTES", 4000)
    path = file("a.txt.gz", gzip.compress(b"".join(b"%0100d\n" % n for n in range(500))))
    found = all_tasks(path, shard=400)
    assert sum(task.rows for task in found) == 500
    assert all(task.ranges[0].table.nbytes <= 4000 for task in found)
    assert max(len(pickle.dumps(task)) for task in found) < 6000
    assert [int(text) for text in clean(path, shard=400)] == list(range(500))


def test_streams_of_several_members_are_read_to_the_end(file: File) -> None:
    for ending in (".gz", ".bz2", ".xz", ".zst"):
        data = PACK[ending](b"a\nb") + PACK[ending](b"c\nd\n")
        assert clean(file(f"a.txt{ending}", data)) == ["a", "bc", "d"]


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        pytest.param(kind, ending, marks=() if at == number else pytest.mark.nightly)
        for at, kind in enumerate(("txt", "tsv", "csv", "jsonl"))
        for number, ending in enumerate((".gz", ".bz2", ".xz", ".zst"))
    ],
)
def test_rows_before_damage_are_kept(file: File, kind: str, ending: str) -> None:
    order = np.random.default_rng(0).permutation(200_000)
    texts = [f"{number:x}" for number in order[: 60_000 if ending == ".zst" else 30_000]]
    data = PACK[ending](FORMATS[kind](texts))
    if ending == ".bz2":
        data = PACK[ending](FORMATS[kind](texts)) + PACK[ending](b"x")
        data = data[:-5]
    path = file(f"a.{kind}{ending}", data[: len(data) - (0 if ending == ".bz2" else 60)])
    found, dropped = rows_of(path, shard=7000, batch_rows=5000)
    kept = found["clean"].to_pylist()
    assert dropped == {"truncated": 1}
    assert 100 < len(kept) <= len(texts)
    assert kept == texts[: len(kept)]


def test_corrupt_data_ends_a_file_but_not_the_run(file: File) -> None:
    data = bytearray(gzip.compress(b"".join(b"%d\n" % (n * n) for n in range(50_000))))
    data[len(data) // 2 : len(data) // 2 + 20] = b"\xff" * 20
    after = file("b.txt", b"after\n")
    table, dropped = rows_of(file("a.txt.gz", bytes(data)), after)
    assert dropped["truncated"] == 1
    assert table["clean"].to_pylist()[-1] == "after"
    with pytest.raises(SourceError, match="damaged before its first line"):
        rows_of(file("c.txt.gz", b"no gzip"))


def test_stdin_is_lines_of_text(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"\xef\xbb\xbf" + b"".join(b"%d\n" % n for n in range(100))
    for limit, rows in ((None, 100), (10, 10)):
        on_stdin(monkeypatch, data)
        assert len(clean("-", shard=30, limit=limit)) == rows


def test_a_hugging_face_folder_is_streamed(file: File, tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    for split in ("train", "test"):
        path = file(f"set/{split}.jsonl", b"")
        path.write_text("".join(f'{{"text": "{split} {n}", "n": {n}}}\n' for n in range(30)))
    for spec, split in (("", "train"), (":test", "test"), ("::test", "test")):
        table, dropped = rows_of(f"hf:{tmp_path / 'set'}{spec}", shard=7)
        assert table["clean"].to_pylist() == [f"{split} {n}" for n in range(30)]
        assert table["n"].to_pylist() == list(range(30))
        assert not dropped
    assert clean(f"hf:{tmp_path / 'set'}", f"hf:{tmp_path / 'set'}:test", limit=31)[30] == "test 0"
    with pytest.raises(SourceError, match=r"cannot read hf:/no/such: ") as caught:
        rows_of("hf:/no/such")
    assert "\n" not in str(caught.value)


def test_a_file_that_shrank_is_an_error(file: File) -> None:
    path = file("a.txt", b"a\nb\nc\n")
    (task,) = all_tasks(path)
    path.write_bytes(b"a\n")
    with pytest.raises(SourceError, match="2 rows are gone"):
        list(read(task.ranges, Columns()))
    path.unlink()
    with pytest.raises(SourceError, match="cannot read"):
        list(read(task.ranges, Columns()))


def test_a_piece_is_read_from_any_folder(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file("a.txt", b"a\n")
    monkeypatch.chdir(path.parent)
    (item,) = expand("a.txt")
    (task,) = shard_ranges([replace(item, path=item.absolute)], Columns(), 10)
    monkeypatch.chdir("/")
    assert [batch.table["clean"].to_pylist() for batch in read(task, Columns())] == [["a"]]


LIMITED = """
import sys
import pyarrow as pa
from noisegen.data.sources import expand, read, shard_ranges
from noisegen.data.rows import Columns
rows = 0
for task in shard_ranges(expand([sys.argv[1]]), Columns(), 100_000):
    for batch in read(task, Columns()):
        rows += len(batch.table)
        del batch
print(rows, pa.default_memory_pool().max_memory() >> 20)
with open("/proc/self/status") as status:  # ru_maxrss has that of the parent in it
    print(next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM")))
"""


def lines() -> Iterator[bytes]:
    yield from (
        b"".join(b"%099d\n" % n for n in range(s, s + 100_000))
        for s in range(0, 2_000_000, 100_000)
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name",
    [
        "a.txt.gz",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("a.txt", "a.parquet")),
    ],
)
def test_memory_does_not_grow_with_the_input(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        text = pa.array([f"{n:099}" for n in range(500_000)])
        table = pa.concat_tables([pa.table({"text": text})] * 4)
        pq.write_table(table, path, row_group_size=len(table), use_dictionary=False)
    else:
        with gzip.open(path, "wb", 1) if name.endswith("gz") else path.open("wb") as out:
            out.writelines(lines())
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    rows, arrow, resident = map(int, done.stdout.split())
    assert rows == 2_000_000
    assert arrow < 150  # MB: rows of a streamed task (64), a block and a batch made of it
    assert resident < 600


@pytest.mark.nightly
@pytest.mark.skipif(not SHARED.exists(), reason="data of the project is not here")
def test_real_sentences_without_header() -> None:
    table, dropped = rows_of(SHARED, columns=Columns("1"))
    with gzip.open(SHARED, "rt", newline="\n") as given_lines:
        expected = [line.split("\t")[0] for line in given_lines]
    assert table["clean"].to_pylist() == expected
    assert table.column_names == ["id", "clean", "column_2"]
    assert not dropped


def test_bad_rows_are_counted_and_keep_their_ordinals(file: File) -> None:
    assert rows_of(file("a.txt", b"a\n\xff\nb\n"))[1] == {"not_utf8": 1}
    tsv, dropped = rows_of(file("a.tsv", b"text\tn\na\t1\nb\nc\t1\t2\n\nd\t4\n"))
    assert tsv["id"].to_pylist() == [0, 4]
    assert dropped == {"wrong_columns": 3}
    table, dropped = rows_of(file("a.csv", b'text,n\na,1\nb\n"c\nd",2\n'))
    assert table["id"].to_pylist() == [0, 2]
    assert table["clean"].to_pylist() == ["a", "c\nd"]
    assert dropped == {"wrong_columns": 1}


def test_json_fields_after_the_sample_are_counted_and_left_out(file: File) -> None:
    spaces = b" " * (3 << 20)  # so that the first 4 MiB, the sample, have one row
    lines = [b'{"text": "a", "n": 1}', b'{"text": "b", "m": 2}', b'{"n": 3}', b"[]"]
    table, dropped = rows_of(file("a.jsonl", (spaces + b"\n").join(lines)))
    assert table.to_pylist() == [
        {"id": 0, "clean": "a", "n": 1},
        {"id": 1, "clean": "b", "n": None},
    ]
    assert dropped == {"unexpected_field": 1, "missing_text": 1, "bad_json": 1}


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.jsonl", "a.csv.gz", "a.parquet"])
def test_a_text_over_the_limit_is_dropped(
    file: File, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_bytes(monkeypatch, text=100, line=200)
    data = FORMATS[name.split(".")[1]](["a", "b" * 101, "c" * 300, "d" * 100])
    table, dropped = rows_of(file(name, gzip.compress(data) if "gz" in name else data))
    assert table["id"].to_pylist() == [0, 3]
    assert dropped == {"row_too_long": 2}


def test_the_id_column_gives_the_ids(tmp_path: Path) -> None:
    for given_ids, kind, expected in [
        ([7, None, 9], pa.int16(), [7, 9]),
        ([2**64 - 1, None, 9], pa.uint64(), [2**64 - 1, 9]),
        (["x", None, "1"], pa.large_string(), ["x", "1"]),
        (["x", None, "1"], pa.dictionary(pa.int32(), pa.string()), ["x", "1"]),
    ]:
        column = pa.array(given_ids, pa.uint64() if kind == pa.uint64() else None)
        column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
        pq.write_table(pa.table({"text": ["a", "b", "c"], "id": column}), tmp_path / "a.parquet")
        table, dropped = rows_of(tmp_path / "a.parquet", columns=Columns(row_id="id"))
        assert table["id"].to_pylist() == expected
        assert table["id"].type in (pa.int64(), pa.uint64(), pa.string())
        assert dropped == {"null_id": 1}
    pq.write_table(pa.table({"text": ["a"], "id": [1.5]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="'id' has other numbers"):
        rows_of(tmp_path / "a.parquet", columns=Columns(row_id="id"))


def test_a_string_id_of_binary_rubbish_is_counted(tmp_path: Path) -> None:
    bad = pa.array([b"\xff", b"a"], pa.binary())
    column = pa.Array.from_buffers(pa.string(), 2, bad.buffers())
    pq.write_table(pa.table({"text": ["a", "b"], "i": column}), tmp_path / "a.parquet")
    table, dropped = rows_of(tmp_path / "a.parquet", columns=Columns(row_id="i"))
    assert table["id"].to_pylist() == ["a"]
    assert dropped == {"not_utf8": 1}


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_tokens_become_the_text(file: File, name: str) -> None:
    lines = [
        {"words": ["a", "b"], "tags": ["O", "B-x"], "text": "kept"},
        {"words": ["a"], "tags": ["O", "O"], "text": None},
        {"words": [], "tags": [], "text": ""},
        {"words": ["a"], "tags": None, "text": ""},
        {"words": ["a"], "tags": [None], "text": ""},
        {"words": None, "tags": ["O"], "text": ""},
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path = file(name, data)
    if name == "a.parquet":
        pq.write_table(pa.Table.from_pylist(lines), path)
    table, dropped = rows_of(path, columns=NAMED)
    assert table.column_names == ["id", "clean", "words", "tags", "text"]
    assert table["clean"].to_pylist() == ["a b", ""]
    assert table["words"].type == table["tags"].type == pa.list_(pa.string())
    missing = "missing_text" if name == "a.jsonl" else "null_text"
    assert dropped == {"unequal_labels": 3, missing: 1}


@pytest.mark.parametrize(
    ("words", "tags", "message"),
    [
        ([["a"]], [[0.5]], "'tags' is not a list of strings or classes but list<element: double>"),
        ([[1]], [["O"]], "'words' is not a list of strings but list<element: int64>"),
        ([["a"]], ["O"], "'tags' is not a list of strings or classes but string"),
    ],
)
def test_tokens_and_labels_must_be_lists(
    tmp_path: Path, words: object, tags: object, message: str
) -> None:
    pq.write_table(pa.table({"words": words, "tags": tags}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=message):
        rows_of(tmp_path / "a.parquet", columns=NAMED)


def test_batches_keep_to_rows_and_bytes(file: File) -> None:
    path = file("a.txt", b"".join(b"%0*d\n" % (n % 90, n) for n in range(2000)))
    (task,) = all_tasks(path, shard=5000)
    made = [batch.table for batch in read(task.ranges, Columns(), 100, 4000)]
    assert max(len(table) for table in made) <= 100
    assert max(table["clean"].nbytes for table in made) <= 4000
    assert {table["clean"].num_chunks for table in made} == {1}
    assert [n for table in made for n in table["id"].to_pylist()] == list(range(2000))


def test_dictionaries_do_not_shatter_batches() -> None:
    words = pa.array([f"{n:0100}" for n in range(1000)] * 3).dictionary_encode()
    assert len(list(tables.regroup([pa.table({"n": words})], 1000, 50_000))) == 3


def test_augment_keeps_the_rows_beside_a_deep_one(file: File, tmp_path: Path) -> None:
    deep = '{"a": ' * 100 + "1" + "}" * 100
    rows = [f'{{"text": "see you {number}"}}\n' for number in range(500)]
    rows[250] = f'{{"text": "deep", "meta": {deep}}}\n'
    made = noisegen.augment(
        file("a.jsonl", "".join(rows).encode()), tmp_path / "out", transforms=["fing"], workers=1
    )
    assert made.totals["rows"] == 500
    assert made.totals["dropped"] == {"unexpected_field": 1}


def test_a_missing_text_column_has_a_next_step(file: File, tmp_path: Path) -> None:
    words = {"words": [["see", "you"]], "tags": [["O", "O"]]}
    for columns, ending in (
        ({"body": ["see you"]}, "NAME"),
        (words, "--tokens NAME of augment or normalize"),
    ):
        row = {name: values[0] for name, values in columns.items()}
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        for path in (tmp_path / "a.parquet", file("a.jsonl", json.dumps(row).encode() + b"\n")):
            with pytest.raises(SourceError, match="no column 'text' among: ") as raised:
                rows_of(path)
            assert "; name it: --text-column NAME" in str(raised.value)
            assert str(raised.value).endswith(ending)


def in_pieces(pack: Callable[[bytes], bytes], data: bytes, size: int = 2_001) -> bytes:
    return b"".join(pack(data[at : at + size]) for at in range(0, len(data), size))


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize(
    ("kind", "ending", "pack"),
    [
        ("tsv", "zst", PACK[".zst"]),
        ("txt", "zst", PACK[".zst"]),
        ("jsonl", "zst", PACK[".zst"]),
        ("txt", "bz2", bz2.compress),
        ("jsonl", "gz", bgzf),
    ],
)
def test_a_compressed_text_is_cut_where_it_can_be_entered(
    file: File,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    ending: str,
    pack: Callable[[bytes], bytes],
    is_damaged: bool,
) -> None:
    texts = [f"text {n} " + n % 13 * "é" for n in range(3_000)] + [300 * "long "] + ["last"]
    packed = in_pieces(pack, FORMATS[kind](texts)[:-1])
    packed = packed[: len(packed) * 2 // 3] if is_damaged else packed
    path = file(f"a.{kind}.{ending}", packed)
    small = file(f"b.{kind}", FORMATS[kind](["one more"]))
    streamed, dropped = rows_of(path, shard=70)
    assert all(task.ranges[0].table for task in all_tasks(path, shard=70))
    cut_finely(monkeypatch, 5_000, 300)
    tasks = all_tasks(path, small, shard=70)
    assert len({task.ranges[0].blocks for task in tasks}) > 9
    assert is_damaged or max(len(task.ranges[0].blocks) for task in tasks) < len(tasks)
    assert is_damaged or sum(task.size for task in tasks) == len(packed) + tasks[-1].ranges[-1].size
    for shard in (70, 9_999):
        table, lost = rows_of(path, small, shard=shard)
        assert lost == dropped == ({"truncated": 1} if is_damaged else {})
        assert table["clean"].to_pylist()[-1] == "one more"
        assert table["id"].to_pylist() == [*range(len(table) - 1), len(table) - 1 + is_damaged]
        # Fewer rows before damage are lost: those decoded with it.
        assert table["clean"].to_pylist()[:-1] == texts[: len(table) - 1]
        assert len(table) - 1 >= len(streamed) > 1_000
    assert rows_of(path, limit=100)[0] == streamed.slice(0, 100)


def test_damage_where_a_stream_begins_is_counted_however_the_file_is_cut(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [bz2.compress("".join(f"{k} {n}\n" for n in range(200)).encode()) for k in range(40)]
    packed = bytearray(b"".join(streams))
    packed[sum(map(len, streams[:20])) + 5] ^= 1  # in what begins its block
    path = file("a.txt.bz2", bytes(packed))
    streamed, dropped = rows_of(path, shard=1_000)
    assert (len(streamed), dropped) == (4_000, {"truncated": 1})
    for size in (len(streams[0]), 500, 1_000):
        cut_finely(monkeypatch, len(packed) // 2, size)
        assert rows_of(path, shard=1_000) == (streamed, dropped)


@pytest.mark.parametrize("ending", ["bz2", "gz"])
def test_a_task_reads_its_share_of_a_compressed_text(
    file: File, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    texts = [hashlib.sha256(bytes([n % 256, n // 256])).hexdigest() for n in range(32_000)]
    data = FORMATS["txt"](texts)
    packed = bz2.compress(data, 1) if ending == "bz2" else in_pieces(bgzf, data, 65_280)
    cut_finely(monkeypatch, 100_000, 100_000)
    tasks = all_tasks(file(f"a.txt.{ending}", packed), shard=4_000)
    assert sum(task.size for task in tasks) == len(packed)
    read_texts = []
    for task in tasks:
        with metered() as meter:
            for batch in read(task.ranges, TEXT):
                read_texts += batch.table["clean"].to_pylist()
        assert meter["bytes"] < len(packed) * 2 // 3
    assert read_texts == texts
