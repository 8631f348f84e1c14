"""Columns of Parquet and Arrow files: every type carried, and what one stored text can grow to."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_files import rows_of

from noisegen.data.rows import Columns
from noisegen.data.sources import expand, read, shard_ranges


def repeated(size: int, rows: int, kind: pa.DataType) -> pa.Array:
    """Return a column that holds one text of so many bytes and refers to it in every row."""
    if kind == pa.string_view():
        view, *texts = pa.array(["x" * size], kind).buffers()[1:]
        views = pa.py_buffer(view.to_pybytes()[:16] * rows)
        return pa.Array.from_buffers(kind, rows, [None, views, *texts])
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array(["x" * size]))


@pytest.mark.parametrize("name", ["text", "id", "url"])
@pytest.mark.parametrize(
    ("file", "kind"),
    [("a.parquet", pa.string()), ("a.arrow", pa.string()), ("a.arrow", pa.string_view())],
)
def test_a_long_text_stored_once_is_copied_out_in_few_rows(
    tmp_path: Path, file: str, kind: pa.DataType, name: str
) -> None:
    table = pa.table({"text": ["short"] * 5_000} | {name: repeated(300_000, 5_000, kind)})
    if file == "a.parquet":
        pq.write_table(table, tmp_path / file, store_schema=False)
    else:
        with pa.ipc.new_file(str(tmp_path / file), table.schema) as out:
            out.write_table(table)
    (task,) = shard_ranges(expand(str(tmp_path / file)), Columns(), 5_000)
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    try:
        found = [batch.read[name].to_pylist() for batch in islice(read(task, Columns()), 2)]
    finally:
        pa.set_memory_pool(usual)
    assert pool.max_memory() < 500 << 20
    assert {text for texts in found for text in texts} == {"x" * 300_000}


@pytest.mark.parametrize(
    ("file", "stored"), [("a.parquet", False), ("b.parquet", True), ("a.arrow", True)]
)
def test_a_list_that_repeats_a_long_text_is_too_long(
    tmp_path: Path, file: str, stored: bool
) -> None:
    words = pa.DictionaryArray.from_arrays(
        pa.array([0, *[1] * 900, None, *[1] * 100, *[0] * 900], pa.int32()),
        pa.array(["ok", "x" * 100_000]),
    )
    lists = pa.ListArray.from_arrays([0, 1, 902, 1002, 1802, 1902], words)
    table = pa.table({"text": list("abcde"), "words": lists})
    if file == "a.arrow":
        with pa.ipc.new_file(str(tmp_path / file), table.schema) as out:
            out.write_table(table)
    else:
        pq.write_table(table, tmp_path / file, store_schema=stored)
    found, dropped = rows_of(tmp_path / file)
    assert (found["clean"].to_pylist(), dropped) == (list("acde"), {"row_too_long": 1})
    assert found["words"].type.value_type == pa.string()
    assert found["words"].to_pylist() == [table["words"][at].as_py() for at in (0, 2, 3, 4)]


@pytest.mark.parametrize("kind", [pa.list_view, pa.large_list_view])
def test_views_that_repeat_a_long_text_are_too_long(tmp_path: Path, kind: Any) -> None:
    words = pa.DictionaryArray.from_arrays(
        pa.array([0, *[1] * 900], pa.int32()), ["a", "x" * 10**5]
    )
    views = pa.array([[0], [1]], kind(pa.int32()))
    made = type(views).from_arrays(views.offsets, pa.array([1, 900], views.sizes.type), words)
    table = pa.table({"text": ["a", "b"], "words": made})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as out:
        out.write_table(table)
    found, dropped = rows_of(tmp_path / "a.arrow")
    assert (found["words"].to_pylist(), dropped) == ([["a"]], {"row_too_long": 1})


@pytest.mark.parametrize("file", ["a.parquet", "a.arrow"])
def test_maps_are_carried(tmp_path: Path, file: str) -> None:
    kind = pa.map_(pa.string(), pa.string())
    maps = [[("k", "v")], None, []]
    table = pa.table(
        {
            "text": list("abc"),
            "maps": pa.array(maps, kind),
            "within": pa.array([[one] for one in maps], pa.list_(kind)),
        }
    )
    if file == "a.arrow":
        with pa.ipc.new_file(str(tmp_path / file), table.schema) as out:
            out.write_table(table)
    else:
        pq.write_table(table, tmp_path / file)
    found, dropped = rows_of(tmp_path / file)
    assert (found["maps"].to_pylist(), dropped) == (maps, {})


def test_other_columns_are_unchanged(tmp_path: Path) -> None:
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
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
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
