"""Files as other programs write them: separators, encodings, folders of keys, names and ids."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import augment, table
from source_files import on_stdin

from noisegen.cli import run
from noisegen.data.pairs import read_pairs
from noisegen.errors import SourceError

SEPARATORS = [",", ";", "\t", "|"]
QUIET = {"transforms": ["leet:rate=0"]}
LOUD = {"transforms": ["leet:rate=1"]}


@pytest.fixture
def written(capfd):
    """Run `augment` with a transform; return its exit code, its output and its messages."""

    def write(source, out, *options, transform="leet:rate=1"):
        code = run(["augment", str(source), "-o", str(out), "-t", transform, *options])
        return code, *capfd.readouterr()

    return write


# Separators of CSV.


def separated(rows, separator, quoting=csv.QUOTE_MINIMAL, end="\n"):
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=separator, quoting=quoting, lineterminator=end).writerows(rows)
    return file.getvalue().encode()


@given(
    st.sampled_from(SEPARATORS),
    st.sampled_from(["\n", "\r\n"]),
    st.lists(st.tuples(st.text("ae,;|\t\" .'"), st.text("ae,;|\t\" .'")), min_size=1, max_size=5),
)
@settings(max_examples=40, deadline=None)
def test_csv_of_any_separator_keeps_its_bytes(tmp_path_factory, separator, end, rows):
    folder = tmp_path_factory.mktemp("separated")
    rows = [("n", "text", "label"), *((str(n), *row) for n, row in enumerate(rows))]
    (folder / "a.csv").write_bytes(data := separated(rows, separator, end=end))
    augment(folder / "a.csv", folder / "b.csv", **QUIET)
    assert (folder / "b.csv").read_bytes() == data
    augment(folder / "a.csv", folder / "out", **QUIET)
    assert table(folder / "out")["label"].to_pylist() == [row[2] for row in rows[1:]]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_is_told_and_kept_beside_the_noise(tmp_path, written, separator):
    rows = [["n", "text", "label"], ["1,5", "see it, all", "a"], ["2", "a;b|c\td see", 'say "s"']]
    (tmp_path / "a.csv").write_bytes(separated(rows, separator))
    code, out, told = written(tmp_path / "a.csv", "-")
    assert code == 0
    read = list(csv.reader(io.StringIO(out), delimiter=separator))
    assert [row[::2] for row in read] == [row[::2] for row in rows]
    assert all(noisy[1] != row[1] for noisy, row in zip(read[1:], rows[1:], strict=True))
    assert f"hint: fields are separated by {separator!r}" in told


def test_a_comma_comes_first_and_one_column_is_one_column(tmp_path, written):
    (tmp_path / "a.csv").write_text("a;b,text\n1;2,see\n")
    augment(tmp_path / "a.csv", tmp_path / "out", **QUIET)
    assert table(tmp_path / "out")["a;b"].to_pylist() == ["1;2"]
    (tmp_path / "one.csv").write_text("text\nsee; it\none | two; three\n")
    code, out, told = written(tmp_path / "one.csv", "-", transform="leet:rate=0")
    assert (code, out) == (0, "text\nsee; it\none | two; three\n")
    assert "separated" not in told


def test_rows_may_be_damaged_in_a_file_of_another_separator(tmp_path, written):
    (tmp_path / "a.csv").write_text("n;text\n1;see\n2;see;it\n3;see;all\n")
    code, out, told = written(tmp_path / "a.csv", "-", transform="leet:rate=0")
    assert (code, out) == (3, (tmp_path / "a.csv").read_text())
    assert "wrong_columns 2" in told


def test_a_separator_is_found_without_header_in_streams_and_under_the_name_of_tsv(
    tmp_path, written, monkeypatch
):
    (tmp_path / "a.csv").write_text("1;see, it\n2;see, all, me\n")
    augment(tmp_path / "a.csv", tmp_path / "out", text_column="2", **QUIET)
    assert table(tmp_path / "out")["column_1"].to_pylist() == ["1", "2"]
    on_stdin(monkeypatch, b'"n";"text"\n1;"see; it"\n')
    assert written("-", "-", transform="leet:rate=0")[1] == 'n;text\n1;"see; it"\n'
    (tmp_path / "a.tsv").write_text('n,text\n1,"see, it"\n')
    augment(tmp_path / "a.tsv", tmp_path / "tsv", **QUIET)
    assert table(tmp_path / "tsv")["clean"].to_pylist() == ["see, it"]


def test_a_header_of_one_field_gets_no_advice_to_read_it_as_a_row(tmp_path):
    (tmp_path / "a.csv").write_text("id^text\n1^see\n")
    with pytest.raises(SourceError, match=r"id\^text; the header is one field: separate"):
        augment(tmp_path / "a.csv", tmp_path / "out", **QUIET)


def test_pairs_are_read_from_csv_of_any_separator(tmp_path):
    (tmp_path / "a.csv").write_text("noisy;clean\nc u, all;see you, all\n")
    pairs = read_pairs(str(tmp_path / "a.csv"))
    assert (pairs.noisy, pairs.clean) == (["c u, all"], ["see you, all"])


# Ids.


@pytest.mark.parametrize("value", ["1.0", "0.5", "true", "[1]", '{"a": 1}'])
def test_a_column_id_that_holds_no_ids_is_kept_and_rows_are_numbered(tmp_path, written, value):
    lines = [f'{{"id": {value}, "text": "see"}}\n', '{"id": null, "text": "it"}\n']
    (tmp_path / "a.jsonl").write_text("".join(lines))
    code, out, told = written(tmp_path / "a.jsonl", "-", transform="leet:rate=0")
    assert (code, out) == (0, "".join(lines))
    assert "hint: column 'id' holds" in told
    assert "rows are numbered" in told
    augment(tmp_path / "a.jsonl", tmp_path / "out", **QUIET)
    assert table(tmp_path / "out")["id"].to_pylist() == [0, 1]


def test_whole_numbers_are_ids_if_their_column_is_named(tmp_path, written):
    (tmp_path / "a.jsonl").write_text('{"id": 7.0, "text": "see"}\n{"id": null, "text": "it"}\n')
    manifest = augment(tmp_path / "a.jsonl", tmp_path / "out", id_column="id", **QUIET)
    assert table(tmp_path / "out")["id"].to_pylist() == [7]
    assert manifest.totals["dropped"] == {"null_id": 1}
    (tmp_path / "b.jsonl").write_text('{"id": 7.5, "text": "see"}\n')
    code, _, told = written(tmp_path / "b.jsonl", tmp_path / "b", "--id-column", "id")
    assert code == 1
    assert "ids are integers" in told
    assert "number rows: --id-column none" in told


def test_rows_are_numbered_if_the_user_asks_for_it(tmp_path):
    (tmp_path / "a.tsv").write_text("id\ttext\n7\tsee\n7\tit\n")
    manifest = augment(tmp_path / "a.tsv", tmp_path / "out", id_column="none", **QUIET)
    assert table(tmp_path / "out")["id"].to_pylist() == [0, 1]
    assert manifest.totals["dropped"] == {}
    (tmp_path / "b.tsv").write_text("none\ttext\n7\tsee\n")
    augment(tmp_path / "b.tsv", tmp_path / "named", id_column="none", **QUIET)
    assert table(tmp_path / "named")["id"].to_pylist() == ["7"]
