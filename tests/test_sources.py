"""Every format gives the same rows, and every size of shard the same input."""

import gzip
import io
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_files import FORMATS, PACK, File, all_tasks, clean, rows_of, writer

from noisegen import sources
from noisegen.errors import SourceError
from noisegen.sources import Columns, read

TEXTS = ["see you", "", " né \u2028 ", "日本語 😀", "it's", "last"]
SHARED = Path(__file__).parents[2] / "shared" / "data" / "wiki-split" / "tune.tsv.gz"


@pytest.fixture
def file(tmp_path: Path) -> File:
    return writer(tmp_path)


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
    assert [(task.first_row, task.rows, len(task.pieces)) for task in found] == [
        (0, 4, 2), (4, 4, 2), (8, 1, 1), (9, 2, 0), (11, 3, 1),
    ]  # fmt: skip
    assert found[3].table is not None
    assert clean(*names, shard=8, limit=4) == ["a", "b", "c", "a"]
    assert [len(task.pieces) for task in all_tasks(*names, shard=4, limit=5)] == [2, 1]


def test_a_streamed_task_ends_early_by_bytes_and_pickles_without_its_neighbours(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "STREAM_BYTES", 4000)
    path = file("a.txt.gz", gzip.compress(b"".join(b"%0100d\n" % n for n in range(500))))
    found = all_tasks(path, shard=400)
    assert sum(task.rows for task in found) == 500
    assert all(task.table.nbytes <= 4000 for task in found if task.table)
    assert max(len(pickle.dumps(task)) for task in found) < 6000
    assert [int(text) for text in clean(path, shard=400)] == list(range(500))


def test_streams_of_several_members_are_read_to_the_end(file: File) -> None:
    for ending in (".gz", ".bz2", ".xz", ".zst"):
        data = PACK[ending](b"a\nb") + PACK[ending](b"c\nd\n")
        assert clean(file(f"a.txt{ending}", data)) == ["a", "bc", "d"]


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("kind", ["txt", "tsv", "csv", "jsonl"])
def test_rows_before_damage_are_kept(file: File, kind: str, ending: str) -> None:
    order = np.random.default_rng(0).permutation(200_000)
    texts = [f"{number:x}" for number in order[: 100_000 if ending == ".zst" else 30_000]]
    data = PACK[ending](FORMATS[kind](texts))
    if ending == ".bz2":
        data = PACK[ending](FORMATS[kind](texts)) + PACK[ending](b"x")
        data = data[:-5]
    path = file(f"a.{kind}{ending}", data[: len(data) - (0 if ending == ".bz2" else 60)])
    found, dropped = rows_of(path, shard=7000)
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
    with pytest.raises(SourceError, match="damaged before its first row"):
        rows_of(file("c.txt.gz", b"no gzip"))


def test_stdin_is_lines_of_text(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"\xef\xbb\xbf" + b"".join(b"%d\n" % n for n in range(100))
    for limit, rows in ((None, 100), (10, 10)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
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
        list(read(task, Columns()))
    path.unlink()
    with pytest.raises(SourceError, match="cannot read"):
        list(read(task, Columns()))


def test_a_piece_is_read_from_any_folder(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file("a.txt", b"a\n")
    monkeypatch.chdir(path.parent)
    (task,) = all_tasks("a.txt")
    monkeypatch.chdir("/")
    assert [batch.table["clean"].to_pylist() for batch in read(task, Columns())] == [["a"]]


LIMITED = """
import sys
import pyarrow as pa
from noisegen.sources import Columns, expand, read, tasks
rows = 0
for task in tasks(expand([sys.argv[1]]), Columns(), 100_000):
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


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.parquet"])
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
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )  # fmt: skip
    rows, arrow, resident = map(int, done.stdout.split())
    assert rows == 2_000_000
    assert arrow < 150  # MB: rows of a streamed task (64), a block and a batch made of it
    assert resident < 600


@pytest.mark.skipif(not SHARED.exists(), reason="data of the project is not here")
def test_real_sentences_without_header() -> None:
    table, dropped = rows_of(SHARED, columns=Columns("1"))
    with gzip.open(SHARED, "rt", newline="\n") as given_lines:
        expected = [line.split("\t")[0] for line in given_lines]
    assert table["clean"].to_pylist() == expected
    assert table.column_names == ["id", "clean", "column_2"]
    assert not dropped
