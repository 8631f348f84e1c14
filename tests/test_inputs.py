"""What a SOURCE means: files, folders, formats, headers, and what is wrong with them."""

import gzip
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_files import NAMED, TEXT, File, clean, rows_of, writer

from noisegen.errors import MissingExtra, SourceError
from noisegen.sources import Columns, expand, tasks


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
    assert [item.size for item in expand([str(tmp_path / "b.txt"), "-", "hf:x"])] == [5, None, None]


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
        ("a.tsv", b"a b c\t1\n", TEXT, "without a header line, use --text-column 1"),
        ("a.jsonl", b"not json\n", TEXT, "no column 'text' among: none"),
        ("a.txt", b"a\n", Columns(row_id="n"), "no column 'n' among: text"),
        ("a.csv", b"text,id\na,1\n", TEXT, "rename it, or use --id-column id"),
        ("a.csv", b"text,noisy\na,1\n", TEXT, "'noisy' has a name of the output; rename it"),
        ("a.csv", b"text,n,n\na,1,2\n", TEXT, "two columns are named 'n'"),
        ("a.csv", b"text,\xff\na,1\n", TEXT, "a.csv: the header is not UTF-8"),
        ("a.csv", b"x" * 200_000 + b"\na\n", TEXT, "no header: field larger"),
        ("a.jsonl", b'{"text": 1, "x": 2}\n', Columns("x", row_id="y"), "no column 'y'"),
        ("a.tsv", b"words\ttags\na\tO\n", NAMED, "'words' is no list of strings but string"),
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


def test_a_missing_file_is_named() -> None:
    with pytest.raises(SourceError, match="'': no such file or folder"):
        expand([""])
    with pytest.raises(SourceError, match=r"'no/such\.txt': no such file or folder"):
        expand(["no/such.txt"])


def test_files_of_a_run_must_agree(file: File, tmp_path: Path) -> None:
    file("a.tsv", b"text\tn\na\t1\n")
    file("b.tsv", b"text\tm\na\t1\n")
    with pytest.raises(SourceError, match=r"a\.tsv and .*b\.tsv differ: column 'n' is string in"):
        next(tasks(expand([str(tmp_path)]), Columns(), 1))


def test_files_may_have_their_columns_in_another_order(file: File, tmp_path: Path) -> None:
    file("a.tsv", b"n\ttext\tm\n1\ta\t2\n")
    file("b.csv", b"text,m,n\nb,4,3\n")
    file("c.jsonl", b'{"m": "6", "text": "c", "n": "5"}\n')
    table, _ = rows_of(tmp_path)
    assert table.column_names == ["id", "clean", "n", "m"]
    assert table["n"].to_pylist() == ["1", "3", "5"]


def test_a_column_of_numbers_is_no_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="column 'n' is no text but int64"):
        rows_of(tmp_path, columns=Columns("n"))
