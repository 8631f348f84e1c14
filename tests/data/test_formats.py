"""What is taken without being named: the id, the format of standard input; and rows as they lie."""

from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from source_files import FORMATS, File, all_tasks, clean, on_stdin, reasons, rows_of, writer

import noisegen
from noisegen.augmentation import Format
from noisegen.cli import noisegen as command
from noisegen.data.conll import token_columns
from noisegen.data.formats.registry import ENDINGS, WRITTEN, file_of, name_of, read_head
from noisegen.data.rows import Columns, RowBatch
from noisegen.data.sources import completed, expand, read, total_size
from noisegen.data.tables import RAW
from noisegen.errors import NoisegenError, SourceError


@pytest.fixture
def file(tmp_path: Path) -> File:
    return writer(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "ids"),
    [
        ("a.tsv", b"id\ttext\nx\ta\ny\tb\n", ["x", "y"]),
        ("a.csv", b"text,id\na,7\nb,8\n", ["7", "8"]),
        ("a.jsonl", b'{"id": 7, "text": "a"}\n{"id": 9, "text": "b"}\n', [7, 9]),
    ],
)
def test_a_column_id_has_the_ids(file: File, name: str, data: bytes, ids: list[object]) -> None:
    path = file(name, data)
    table, _ = rows_of(path)
    assert table.column_names == ["id", "clean"]
    assert table["id"].to_pylist() == ids
    columns, notes = completed(expand(path), Columns())
    assert (columns, notes) == (
        Columns(row_id="id"),
        ["column 'id' is taken as the id of each row"],
    )
    assert completed(expand(path), columns)[1] == []


def test_an_id_that_is_named_or_is_the_text_is_no_other(file: File) -> None:
    path = file("a.tsv", b"id\tn\na\t1\n")
    assert clean(path, columns=Columns("id")) == ["a"]
    assert rows_of(path, columns=Columns("id", row_id="n"))[0]["id"].to_pylist() == ["1"]
    with pytest.raises(SourceError, match=r"ids are integers .*or strings; 'id' is bool"):
        rows_of(file("a.jsonl", b'{"id": true, "text": "a"}\n'))


def test_prepare_takes_the_column_too(file: File, tmp_path: Path) -> None:
    texts = {7: "They have been here before.", 8: "We will see many others tomorrow."}
    lines = [f"{n}\t{text}\n" for n, text in texts.items()]
    path = file("a.tsv", "".join(["id\ttext\n", *lines]).encode())
    noisegen.prepare(path, tmp_path / "out", identify="no")
    rows = pq.read_table(tmp_path / "out" / "data").to_pylist()
    assert [(row["row"], row["id"] >> 24) for row in rows] == [("7", 0), ("8", 1)]


def test_augment_says_that_it_takes_a_column_as_the_id(file: File, tmp_path: Path) -> None:
    path = file("a.csv", b"id,text\nx,some words here\nx,other words there\n")
    out = tmp_path / "out"
    words = ["augment", str(path), "-o", str(out), "-t", "fing", "--workers", "1"]
    result = CliRunner().invoke(command, words)
    assert "hint: column 'id' is taken as the id of each row" in result.stderr
    assert noisegen.Manifest.load(out).totals["dropped"] == {"duplicate_id": 1}
    again = tmp_path / "again"
    noisegen.augment(path, again, id_column="id", transforms="fing")
    (ours, theirs) = (noisegen.Manifest.load(run).shards[0]["rows"] for run in (out, again))
    assert ours == theirs == 2


@pytest.mark.parametrize(
    ("data", "kind", "texts"),
    [
        (b'{"text": "a", "n": 1}\n{"text": "b", "n": 2}\n', "jsonl", ["a", "b"]),
        (b'\xef\xbb\xbf{ "text": "a"}\n', "jsonl", ["a"]),
        (b"n\ttext\n1\ta\n2\tb\n", "tsv", ["a", "b"]),
        (b'text,n\n"a, b",1\n', "csv", ["a, b"]),
        (b"EU\tB-ORG\nvotes\tO\n\nno\tO\nwhy\tO\n", "conll", ["EU votes", "no why"]),
        (b"the text, or so\nmore\n", "txt", ["the text, or so", "more"]),
        (b"{a} b\n", "txt", ["{a} b"]),
        (b"", "txt", []),
    ],
)
def test_standard_input_has_the_format_that_it_begins_with(
    monkeypatch: pytest.MonkeyPatch, data: bytes, kind: str, texts: list[str]
) -> None:
    on_stdin(monkeypatch, data)
    file = read_head(expand("-")[0], Columns())
    assert getattr(file, "format", None) == kind
    assert not texts or clean("-") == texts


def test_standard_input_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = FORMATS["jsonl"]([f"text {n}" for n in range(20_000)])
    on_stdin(monkeypatch, lines)
    assert clean("-", shard=7_000)[19_999] == "text 19999"


@pytest.mark.parametrize(
    ("name", "data", "raw"),
    [
        ("a.txt", b"a\r\n\xff\nb", [b"a\r\n", b"\xff\n", b"b"]),
        ("a.tsv", b"text\tn\na\t1\nb\n\xff\t2\n", [b"a\t1\n", b"b\n", b"\xff\t2\n"]),
        ("a.jsonl", b'{"text":  "a"}\nno\n', [b'{"text":  "a"}\n', b"no\n"]),
        (
            "a.csv",
            b'text,n\n"a\nb",1\n"b",2,3\r\n\xff,4',
            [b'"a\nb",1\n', b'"b",2,3\r\n', b"\xff,4"],
        ),
        ("a.conll", b"D O\n\n\na O\r\n\r\nb O", [b"D O\n\n\n", b"a O\r\n\r\n", b"b O"]),
    ],
)
def test_rows_may_be_had_as_they_lie_in_the_file(
    file: File, name: str, data: bytes, raw: list[bytes | None]
) -> None:
    path, kind = file(name, data), name.rpartition(".")[2]
    columns, others = Columns(raw=(kind,)), Columns(raw=("txt" if kind == "csv" else "csv",))
    batches, foreign = batches_of(path, columns), batches_of(path, others)
    assert [row for batch in foreign for row in batch.read[RAW].to_pylist()] == [None] * len(raw)
    assert [row for batch in batches for row in batch.read[RAW].to_pylist()] == raw
    for batch in batches:
        assert RAW not in batch.table.column_names
        kept = batch.read.filter(pa.array(batch.keep))
        assert len(kept) == len(batch.table) < len(batch.read) or "" in reasons(batch.read)


def batches_of(path: Path, columns: Columns) -> list[RowBatch]:
    tasks = all_tasks(path, columns=columns)
    return [batch for task in tasks for batch in read(task.ranges, columns)]


def test_columns_keep_the_order_of_the_first_file(file: File) -> None:
    (task,) = all_tasks(
        file("a.tsv", b"n\ttext\tid\n1\ta\tx\n"),
        file("b.jsonl", (b'{"text": "b", "id": "y", "n": "2"}\n')),
    )
    (batch,) = read(task.ranges, Columns())
    assert batch.read.column_names[:3] == ["n", "text", "id"]
    assert batch.table.column_names == ["id", "clean", "n"]


def test_a_format_is_known_by_its_ending() -> None:
    for ending, kind in ENDINGS.items():
        assert file_of(f"a.b.{ending.upper()}").format == kind
        assert file_of(f"s3://a.txt/b.{ending}").format == kind
        assert name_of(f"/x/news.{ending}") == name_of(f"s3://x/news.{ending}.gz") == "news"
    assert file_of("a.conllu.xz").format == "conllu"
    assert file_of("a.arrow.gz").skipped == file_of("s3://a.txt/b").skipped == "unknown ending"


def test_every_written_format_can_be_asked_for() -> None:
    assert set(get_args(Format)) == set(WRITTEN)


def test_sizes_of_the_input_add_up(file: File) -> None:
    texts = [f"text {n}" for n in range(100)]
    for ending, encode in FORMATS.items():
        path = file(f"a.{ending}", encode(texts))
        total = total_size(expand(path))
        assert total == path.stat().st_size
        sizes = [task.size for task in all_tasks(path, shard=30)]
        assert 0.7 * total <= sum(sizes) <= total, ending
    assert total_size(expand(["-", path])) == 0


def test_a_token_per_line_is_told_from_a_count_of_tokens() -> None:
    assert token_columns(b"1 a O\n2 b O\n\n1 c O\n", None, None) == ("index", "tokens", "labels")
    assert token_columns(b"1 a O\n3 b O\n", None, None) == ("tokens", "column_2", "labels")
    assert token_columns(b"1 CD\na DT\n", None, None) == ("tokens", "labels")
    assert token_columns(b"a\nb\n", None, None) == ("tokens",)
    assert token_columns(b"a B-X x\nb O y\n", None, "column_3") == (
        "tokens",
        "column_2",
        "column_3",
    )


CALLS = {
    "augment": lambda source, out: noisegen.augment(source, out),
    "calibrate": lambda source, _: noisegen.calibrate("ugc", source=source, target_cer=0.05),
    "compare": lambda source, _: noisegen.compare(source, recipe="ugc"),
    "learn": lambda source, out: noisegen.learn(source, out),
    "mine_lang8": lambda source, out: noisegen.mine_lang8(source, out),
    "mine_pairs": lambda source, out: noisegen.mine_pairs(source, out),
    "mine_wiki": lambda source, out: noisegen.mine_wiki(source, out),
    "prepare": lambda source, out: noisegen.prepare(source, out),
    "train": lambda source, out: noisegen.train(source, out),
    "evaluate": lambda source, out: noisegen.evaluate("minilm", out=out, pairs=source),
    "expand": lambda source, _: expand(source),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_function_takes_one_source_or_several(name: str, tmp_path: Path) -> None:
    if name in ("train", "evaluate"):
        pytest.importorskip("torch")
    missing = tmp_path / "no-such.tsv"
    for source in (str(missing), missing, [str(missing)], [missing]):
        with pytest.raises(NoisegenError, match=r"/no-such\.tsv'?: no such file"):
            CALLS[name](source, tmp_path / "out")  # type: ignore[no-untyped-call]
