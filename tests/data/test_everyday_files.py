"""Files as other programs write them: separators, encodings, folders of keys, names and ids."""

import csv
import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import augment, shards, table
from source_files import on_stdin

from noisegen.cli import run
from noisegen.data.pairs import read_pairs
from noisegen.errors import SourceError

SEPARATORS = [",", ";", "\t", "|"]
QUIET = {"transforms": ["leet:rate=0"]}
NULL = "__HIVE_DEFAULT_PARTITION__"


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
    assert written("-", "-", transform="leet:rate=0")[1] == '"n";"text"\n1;"see; it"\n'
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


# Folders whose names are keys and values.


def put(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"text": [text]}), path)
    elif path.suffix == ".jsonl":
        path.write_text(f'{{"text": "{text}"}}\n')
    else:
        path.write_text(f"text\n{text}\n" if path.suffix != ".txt" else f"{text}\n")


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv", "tsv", "txt", "csv.gz"])
def test_names_of_folders_become_columns_as_pyarrow_reads_them(tmp_path, ending):
    source = tmp_path / "part=9" / "data"
    for name in ("lang=de/n=01", "lang=en/n=2", "lang=a%20b%2F/n=-3", f"lang={NULL}/n={NULL}"):
        put(source, f"{name}/a.{ending.removesuffix('.gz')}", "see")
    for path in source.rglob("*.csv") if ending == "csv.gz" else ():
        path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    augment(source, tmp_path / "out", rows_per_shard=3, **QUIET)
    rows = table(tmp_path / "out")
    assert rows.column_names == ["id", "clean", "noisy", "transforms", "lang", "n"]
    assert rows["n"].type == pa.int64()
    found = zip(rows["lang"].to_pylist(), rows["n"].to_pylist(), strict=True)
    assert sorted(found, key=str) == [("a b/", -3), ("de", 1), ("en", 2), (None, None)]
    if ending == "parquet":
        theirs = pq.read_table(source).to_pylist()
        assert sorted(map(str, (row["n"] for row in theirs))) == ["-3", "1", "2", "None"]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_one_file_has_the_columns_from_names_of_folders(tmp_path, ending):
    put(tmp_path, f"data/lang=de/a.{ending}", "see")
    put(tmp_path, f"data/lang=en/n=1x/a.{ending}", "it")
    augment(tmp_path / "data", tmp_path / f"noisy.{ending}", **QUIET)
    augment(tmp_path / f"noisy.{ending}", tmp_path / "out", **QUIET)
    null = "" if ending == "csv" else None
    assert table(tmp_path / "out").select(["clean", "lang", "n"]).to_pylist() == [
        {"clean": "see", "lang": "de", "n": null},
        {"clean": "it", "lang": "en", "n": "1x"},
    ]


def test_rows_without_a_text_keep_the_columns_from_names_of_folders(tmp_path):
    put(tmp_path, "data/lang=de/a.jsonl", "see")
    lines = ['{"text": null, "n": 1}', '{"n": 2}', "{bad", '{"text": "it"}']
    (tmp_path / "data/lang=de/a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    augment(tmp_path / "data", tmp_path / "b.jsonl", **QUIET)
    made = (tmp_path / "b.jsonl").read_text().splitlines()
    assert made == [f'{line[:-1]}, "lang": "de"}}' if line != "{bad" else line for line in lines]


def test_a_file_keeps_its_own_column_and_names_above_the_source_count_for_nothing(tmp_path):
    put(tmp_path, "data/a=1/text=b/a.jsonl", "see")
    augment(tmp_path / "data", tmp_path / "out", **QUIET)
    assert table(tmp_path / "out").select(["clean", "a"]).to_pylist() == [{"clean": "see", "a": 1}]
    augment(tmp_path / "data" / "a=1", tmp_path / "below", **QUIET)
    assert table(tmp_path / "below").column_names == ["id", "clean", "noisy", "transforms"]


def test_a_resumed_run_has_the_keys_of_every_folder(tmp_path):
    for lang in "abc":
        put(tmp_path, f"data/lang={lang}/a.parquet", "see")
    augment(tmp_path / "data", tmp_path / "out", rows_per_shard=1, **QUIET)
    shards(tmp_path / "out")[1].unlink()
    augment(tmp_path / "data", tmp_path / "out", rows_per_shard=1, resume=True, **QUIET)
    assert table(tmp_path / "out")["lang"].to_pylist() == ["a", "b", "c"]


# Names of bitext, as Moses and OPUS give them.


@pytest.mark.parametrize("name", ["a.en", "a.de", "a.pt_BR", "a.ckb", "a.src", "b.tgt", "a.ref0"])
def test_a_named_file_of_bitext_is_lines_of_text_and_written_back(tmp_path, name):
    (tmp_path / name).write_bytes(b"see, it\r\n\r\nb\n")
    augment(tmp_path / name, tmp_path / f"noisy.{name}", **QUIET)
    assert (tmp_path / f"noisy.{name}").read_bytes() == b"see, it\r\n\r\nb\n"
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(b"see\n"))
    augment(tmp_path / f"{name}.gz", tmp_path / f"noisy.{name}.gz", **QUIET)
    assert gzip.decompress((tmp_path / f"noisy.{name}.gz").read_bytes()) == b"see\n"


def test_programs_binaries_and_files_in_folders_are_no_bitext(tmp_path, written):
    (tmp_path / "a.pl").write_text("print\n")
    (tmp_path / "README.md").write_text("# see\n")
    (tmp_path / "run.sh").write_text("see\n")
    (tmp_path / "model.pt").write_bytes(b"see\0\1\n")
    for name in ("README.md", "run.sh", "model.pt", ".", "*"):
        code, _, told = written(tmp_path / name, tmp_path / "out")
        assert code == 1, name
        assert ".parquet and .arrow are read" in told
    augment(tmp_path / "*.pl", tmp_path / "out", **QUIET)
    assert table(tmp_path / "out")["clean"].to_pylist() == ["print"]


def test_the_language_of_a_name_is_told_if_it_is_another(tmp_path, written):
    (tmp_path / "a.deu").write_text("see\n")
    told = written(tmp_path / "a.deu", "-")[2]
    assert "hint: the text is noised as en; by its name it is --lang de" in told
    assert "hint" not in written(tmp_path / "a.deu", "-", "--lang", "de")[2]


# Encodings.

FRENCH = "Le garçon ne sait pas où aller, à Noël.\nBonjour à tous mes élèves\nsee it\n"
TEXTS = {
    "windows-1252": FRENCH,
    "windows-1250": "Příliš žluťoučký kůň úpěl ďábelské ódy.\nZažółć gęślą jaźń\n",
    "windows-1251": "Съешь ещё этих мягких французских булок.\nДа выпей же чаю\n",
    "koi8-r": "Съешь ещё этих мягких французских булок.\nДа выпей же чаю\n",
    "windows-1253": "Δεν ξέρω τι θα κάνω αύριο το πρωί.\nΚαλημέρα σε όλους\n",
    "cp932": "私は明日どこへ行くのか分かりません。\nこんにちは、みなさん\n",
    "gb18030": "我不知道你们明天要去哪里，你们的朋友在这里。\n",
    "cp949": "내일 어디로 가는지 모르겠습니다.\n",
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_a_run_that_drops_rows_names_their_encoding_and_what_to_do(tmp_path, written, encoding):
    (tmp_path / "a.txt").write_bytes(TEXTS[encoding].encode(encoding))
    code, _, told = written(tmp_path / "a.txt", tmp_path / "out")
    assert code == 3
    assert f"likely {encoding}; convert it: iconv -f {encoding.upper()} -t UTF-8, or" in told
    assert f"--encoding {encoding}" in told


@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_json_in_another_encoding_names_it(tmp_path, written, kind, encoding):
    texts = [line for line in TEXTS[encoding].splitlines() if not line.isascii()]
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    whole = {"jsonl": "\n".join(lines), "json": f"[{','.join(lines)}]"}[kind]
    (tmp_path / f"a.{kind}").write_bytes(whole.encode(encoding))
    code, _, told = written(tmp_path / f"a.{kind}", "-")
    assert code == 1
    assert f"it is not UTF-8, likely {encoding}; convert it: iconv -f {encoding.upper()}" in told


def test_ascii_is_read_as_utf8_and_other_bytes_are_explained(tmp_path, written):
    (tmp_path / "a.txt").write_bytes(TEXTS["windows-1252"].encode("windows-1252"))
    _, _, told = written(tmp_path / "a.txt", "-", "--encoding", "ascii")
    assert "--encoding ascii: the text is read as UTF-8" in told
    assert "not UTF-8, likely windows-1252" in told


def test_a_header_a_stream_and_a_pair_name_the_encoding_too(tmp_path, written, monkeypatch):
    (tmp_path / "a.csv").write_bytes("tête,text\né,à Noël\n".encode("cp1252"))
    told = written(tmp_path / "a.csv", tmp_path / "out")[2]
    assert "the header is not UTF-8; it is not UTF-8, likely windows-1252" in told
    on_stdin(monkeypatch, FRENCH.encode("cp1252"))
    assert "standard input: it is not UTF-8, likely windows-1252" in written("-", "-")[2]
    (tmp_path / "b.csv").write_bytes("noisy,clean\nhéé,hé\na,b\n".encode("cp1252"))
    [damage] = read_pairs(str(tmp_path / "b.csv")).damaged
    assert "1 rows not_utf8; it is not UTF-8, likely windows-1252; convert it: iconv" in damage
    assert "--encoding" not in damage


def test_a_few_damaged_lines_are_not_converted(tmp_path, written):
    (tmp_path / "a.txt").write_bytes(3 * "à Noël\n".encode() + "à Noël\n".encode("cp1252"))
    told = written(tmp_path / "a.txt", tmp_path / "out")[2]
    assert "most lines are UTF-8, but some are not, likely windows-1252: mend them" in told
    assert "iconv" not in told


@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.txt.gz"])
def test_text_in_an_encoding_is_read_and_written_in_it(tmp_path, name, encoding):
    lines = TEXTS[encoding].splitlines()
    texts = {
        "txt": "".join(f"{line}\r\n" for line in lines),
        "csv": "n;text\n" + "".join(f'1;"{line}"\n' for line in lines),
        "tsv": "n\ttext\n" + "".join(f"1\t{line}\n" for line in lines),
        "jsonl": "".join(f'{{"n": "{line[0]}", "text": "{line}"}}\n' for line in lines),
    }
    data = texts[name.split(".")[1]].encode(encoding)
    packed = gzip.compress(data) if name.endswith(".gz") else data
    (tmp_path / name).write_bytes(packed)
    options = {"encoding": encoding, "rows_per_shard": 1, **QUIET}
    augment(tmp_path / name, tmp_path / "out", **options)
    assert table(tmp_path / "out")["clean"].to_pylist() == lines
    augment(tmp_path / name, tmp_path / f"noisy.{name}", **options)
    noisy = (tmp_path / f"noisy.{name}").read_bytes()
    assert (gzip.decompress(noisy) if name.endswith(".gz") else noisy) == data


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line and b"\r" not in line)))
@settings(max_examples=40, deadline=None)
def test_bytes_that_an_encoding_lacks_stay_in_rows_left_as_they_are(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "a.txt").write_bytes(data := b"".join(line + b"\n" for line in [b"see \xe9", *lines]))
    augment(folder / "a.txt", folder / "b.txt", encoding="cp1252", **QUIET)
    assert (folder / "b.txt").read_bytes() == data


def test_noise_that_the_encoding_lacks_is_left_out_and_counted(tmp_path, written):
    lines = [f"I am so happy à Noël {number}." for number in range(40)]
    (tmp_path / "a.txt").write_bytes("".join(f"{line}\n" for line in lines).encode("cp1252"))
    options = ("--encoding", "windows-1252")
    out = tmp_path / "b.txt"
    code, _, told = written(tmp_path / "a.txt", out, *options, transform="emot:rate=1")
    noisy = out.read_bytes().decode("cp1252").splitlines()
    kept = sum(new == line for new, line in zip(noisy, lines, strict=True))
    assert code == 0
    assert 0 < kept < 40
    assert f"left as is: not_in_encoding {kept}" in told


def test_an_encoding_of_a_run_is_in_its_manifest(tmp_path, written):
    (tmp_path / "a.txt").write_bytes(FRENCH.encode("cp1252"))
    augment(tmp_path / "a.txt", tmp_path / "out", encoding="cp1252", **QUIET)
    again = ["augment", "--from", str(tmp_path / "out/manifest.json"), "-o", str(tmp_path / "two")]
    assert run(again) == 0
    assert table(tmp_path / "two").equals(table(tmp_path / "out"))
    for name in ("nope", "utf-16", "rot13", "cp500"):
        code, _, told = written(tmp_path / "a.txt", tmp_path / "no", "--encoding", name)
        assert code == 2
        assert "--encoding" in told


# Folders of requests: seq.in, seq.out, label.


def requests(folder, tokens="play queen now\nstop\n", slots="O B-artist O\nO\n", label="a\nb\n"):
    folder.mkdir(parents=True)
    for name, lines in (("seq.in", tokens), ("seq.out", slots), ("label", label)):
        (folder / name).write_text(lines)
    return folder


def test_requests_get_noise_and_their_slots_follow(tmp_path):
    source = requests(tmp_path / "atis" / "train")
    noise = {"transforms": ["spac:add_rate=0.5"], "seed": 1}
    for number, path in enumerate((source, source / "seq.in", tmp_path / "atis")):
        augment(path, tmp_path / f"out{number}", **noise)
        rows = table(tmp_path / f"out{number}").to_pylist()
        assert [(row["clean"], row["label"]) for row in rows] == [
            ("play queen now", "a"),
            ("stop", "b"),
        ]
        assert [len(row["noisy_tokens"]) for row in rows] == [
            len(row["noisy_labels"]) for row in rows
        ]
        assert rows[0]["noisy_labels"].count("B-artist") == 1
        assert len(rows[0]["noisy_tokens"]) > 3


def test_one_file_of_requests_has_tokens_labels_and_intent(tmp_path, written):
    source = requests(tmp_path / "train", label="a\nb é\n")
    lines = '{"tokens": ["play", "queen", "now"], "labels": ["O", "B-artist", "O"], "label": "a"}\n'
    lines += '{"tokens": ["stop"], "labels": ["O"], "label": "b é"}\n'
    assert written(source, "-", transform="leet:rate=0")[:2] == (0, lines)
    assert written(source, "-", "--to", "conll", transform="leet:rate=0")[1].startswith("play\tO\n")


def test_requests_that_do_not_fit_are_counted_or_an_error(tmp_path, written):
    source = requests(tmp_path / "train", slots="O\nO\n")
    code, _, told = written(source, tmp_path / "out")
    assert code == 3
    assert "unequal_labels 1" in told
    (source / "label").write_text("a\n")
    code, _, told = written(source, tmp_path / "two")
    assert code == 1
    assert "files of unequal length (seq.in 2, seq.out 2, label 1 lines)" in told
