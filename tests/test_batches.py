"""Ids, texts, tokens and other columns of a batch; bad rows are dropped for a reason."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_files import FORMATS, NAMED, File, all_tasks, rows_of, writer

from noisegen import batches, inputs, readers
from noisegen.errors import SourceError
from noisegen.sources import Columns, read


@pytest.fixture
def file(tmp_path: Path) -> File:
    return writer(tmp_path)


def test_other_columns_are_unchanged(file: File, tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": pa.array([1, None, 3], pa.int16()),
            "text": ["a", "b", None],
            "deep": pa.array([{"p": [1]}, None, {"p": []}], pa.struct({"p": pa.list_(pa.int8())})),
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
            "view": pa.array(["q", None, "r"], pa.string_view()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    found, dropped = rows_of(tmp_path / "a.parquet")
    assert found.column_names == ["id", "clean", "x", "deep", "kind", "view"]
    assert dropped == {"null_text": 1}
    for name in ("x", "deep", "kind"):
        assert found[name].type == table[name].type
        assert found[name].to_pylist() == table[name].to_pylist()[:2]
    assert found["view"].to_pylist() == ["q", None]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
        pa.binary_view(), pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)  # fmt: skip
def test_any_type_of_text_becomes_string(tmp_path: Path, kind: pa.DataType) -> None:
    column = pa.array(["a", None, "é"])
    dictionary = pa.types.is_dictionary(kind)
    column = column.dictionary_encode().cast(kind) if dictionary else column.cast(kind)
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    found, dropped = rows_of(tmp_path / "a.parquet")
    assert found["clean"].type == pa.string()
    assert found["clean"].to_pylist() == ["a", "é"]
    assert found["id"].to_pylist() == [0, 2]
    assert dropped == {"null_text": 1}


def test_bad_rows_are_counted_and_keep_their_ordinals(file: File) -> None:
    assert rows_of(file("a.txt", b"a\n\xff\nb\n"))[1] == {"not_utf8": 1}
    tsv, dropped = rows_of(file("a.tsv", b"text\tn\na\t1\nb\nc\t1\t2\n\nd\t4\n"))
    assert tsv["id"].to_pylist() == [0, 4]
    assert dropped == {"wrong_columns": 3}
    table, dropped = rows_of(file("a.csv", b'text,n\na,1\nb\n"c\nd",2\n'))
    assert table["id"].to_pylist() == [0, 2]
    assert table["clean"].to_pylist() == ["a", "c\nd"]
    assert dropped == {"wrong_columns": 1}


def test_json_fields_after_the_sample_are_counted_and_left_out(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "SCAN", 20)
    path = file("a.jsonl", b'{"text": "a", "n": 1}\n{"text": "b", "m": 2}\n{"n": 3}\n[]\n')
    table, dropped = rows_of(path)
    assert table.to_pylist() == [
        {"id": 0, "clean": "a", "n": 1}, {"id": 1, "clean": "b", "n": None},
    ]  # fmt: skip
    assert dropped == {"unexpected_field": 1, "missing_text": 1, "bad_json": 1}


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.jsonl", "a.csv.gz", "a.parquet"])
def test_a_text_over_the_limit_is_dropped(
    file: File, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (readers, batches):
        monkeypatch.setattr(module, "TEXT_MAX", 100)
    monkeypatch.setattr(readers, "LINE_MAX", 200)
    data = FORMATS[name.split(".")[1]](["a", "b" * 101, "c" * 300, "d" * 100])
    table, dropped = rows_of(file(name, gzip.compress(data) if "gz" in name else data))
    assert table["id"].to_pylist() == [0, 3]
    assert dropped == {"row_too_long": 2}


def test_the_id_column_gives_the_ids(tmp_path: Path) -> None:
    for given_ids, kind, expected in [
        ([7, None, 9], pa.int16(), [7, 9]),
        (["x", None, "1"], pa.large_string(), ["x", "1"]),
        (["x", None, "1"], pa.dictionary(pa.int32(), pa.string()), ["x", "1"]),
    ]:
        column = pa.array(given_ids)
        column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
        pq.write_table(pa.table({"text": ["a", "b", "c"], "id": column}), tmp_path / "a.parquet")
        table, dropped = rows_of(tmp_path / "a.parquet", columns=Columns(row_id="id"))
        assert table["id"].to_pylist() == expected
        assert table["id"].type in (pa.int64(), pa.string())
        assert dropped == {"null_id": 1}
    pq.write_table(pa.table({"text": ["a"], "id": [1.5]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="'id' is double"):
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


def test_tokens_and_labels_must_be_lists_of_strings(tmp_path: Path) -> None:
    pq.write_table(pa.table({"words": [["a"]], "tags": [[1]]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="'tags' is no list of strings"):
        rows_of(tmp_path / "a.parquet", columns=NAMED)


def test_batches_keep_to_rows_and_bytes(file: File) -> None:
    path = file("a.txt", b"".join(b"%0*d\n" % (n % 90, n) for n in range(2000)))
    (task,) = all_tasks(path, shard=5000)
    made = [batch.table for batch in read(task, Columns(), 100, 4000)]
    assert max(len(table) for table in made) <= 100
    assert max(table["clean"].nbytes for table in made) <= 4000
    assert {table["clean"].num_chunks for table in made} == {1}
    assert [n for table in made for n in table["id"].to_pylist()] == list(range(2000))


def test_dictionaries_do_not_shatter_batches() -> None:
    words = pa.array([f"{n:0100}" for n in range(1000)] * 3).dictionary_encode()
    tables = list(batches.regroup([pa.table({"n": words})], 1000, 50_000))
    assert len(tables) == 3
