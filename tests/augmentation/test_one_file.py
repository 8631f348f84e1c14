"""One noisy file: the format that came in, or another; rows in order, other columns as is."""

import bz2
import csv
import errno
import gc
import gzip
import io
import json
import lzma
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import DEMO, FAST, PROGRAM, augment, command, noisy_of, table

import noisegen
from noisegen.data.lines import read_parts
from noisegen.errors import OutputError, SourceError, UsageError

TEXTS = ["see you tomorrow my friend", "I will be there at nine", "and what about this one"]
NOISE = {"transforms": ["fing:rate=0.2"], "seed": 7}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The noise of TEXTS as a folder of shards has it."""
    folder = tmp_path_factory.mktemp("shards")
    (folder / "in.txt").write_text("\n".join(TEXTS) + "\n")
    augment(folder / "in.txt", folder / "out", **NOISE)
    noisy = list(noisy_of(folder / "out").values())
    assert noisy != TEXTS
    return noisy


def _write(path, rows):
    """Write rows, mappings, in the format of the ending."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif path.suffix == ".txt":
        path.write_text("".join(f"{row['text']}\n" for row in rows))
    else:
        delimiter = {".csv": ",", ".tsv": "\t"}[path.suffix]
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
            writer.writerows([columns, *(row.values() for row in rows)])
    return path


def _read(path):
    """Return the rows of a file, values as its format has them."""
    content = b"".join(read_parts(path)).decode()
    kind = path.name.split(".")[1]
    if kind == "jsonl":
        return [json.loads(line) for line in content.splitlines()]
    if kind == "txt":
        return [{"text": line} for line in content.splitlines()]
    return list(csv.DictReader(io.StringIO(content), delimiter={"csv": ",", "tsv": "\t"}[kind]))


@pytest.mark.parametrize("kind", ["txt", "tsv", "csv", "jsonl", "parquet"])
def test_a_file_keeps_its_format_columns_and_rows(tmp_path, expected, kind):
    rows = [{"n": str(n), "text": text, "source": "x"} for n, text in enumerate(TEXTS)]
    rows = [{"text": row["text"]} for row in rows] if kind == "txt" else rows
    source = _write(tmp_path / f"in.{kind}", rows)

    made = augment(source, tmp_path / f"noisy.{kind}", **NOISE)

    noisy = [{**row, "text": text} for row, text in zip(rows, expected, strict=True)]
    if kind == "parquet":
        assert pq.read_table(tmp_path / "noisy.parquet").to_pylist() == noisy
    else:
        _write(tmp_path / f"wanted.{kind}", noisy)
        wanted = (tmp_path / f"wanted.{kind}").read_bytes()
        assert (tmp_path / f"noisy.{kind}").read_bytes() == wanted
    assert (made.totals["rows"], made.totals["dropped"]) == (3, {})
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("kind", ["txt", "tsv", "csv", "jsonl"])
@pytest.mark.parametrize(
    ("ending", "decompress"),
    [("gz", gzip.decompress), ("bz2", bz2.decompress), ("xz", lzma.decompress), ("zst", None)],
)
def test_another_format_and_a_compression_by_the_ending(
    tmp_path, expected, kind, ending, decompress
):
    rows = [{"n": n, "text": text} for n, text in enumerate(TEXTS)]
    out = tmp_path / f"noisy.{kind}.{ending}"

    augment(_write(tmp_path / "in.parquet", rows), out, rows_per_shard=2, **NOISE)

    assert [row["text"] for row in _read(out)] == expected
    if decompress:
        assert expected[-1] in decompress(out.read_bytes()).decode()


def test_json_fields_stay_just_as_they_were(tmp_path):
    lines = [
        '{"text": "see you tomorrow", "n": 1, "more": {"b": [1, "x", null], "a": 1.0}}',
        '{"other": 12345678901234567890, "text": "nothing\\u2028new", "n": "two"}',
        '{"text": null, "n": 3}',
        '{"n":4}',
        '{"text":  5}',
        "no JSON at all",
        '{"text": "the last line"}',
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))

    made = augment(tmp_path / "in.jsonl", tmp_path / "out.jsonl", transforms=["leet:rate=0"])

    written = (tmp_path / "out.jsonl").read_text("utf-8").split("\n")
    assert written[0] == lines[0]
    assert list(json.loads(written[1]).items()) == list(json.loads(lines[1]).items())
    assert written[2:] == lines[2:]
    assert made.totals["rows"] == 7
    assert {"missing_text", "bad_json"} <= made.totals["dropped"].keys()


@pytest.mark.parametrize("kind", ["txt", "tsv", "csv"])
def test_a_row_that_cannot_be_noised_keeps_its_place(tmp_path, kind):
    lines = {
        "txt": [b"see you", b"caf\xe9 tomorrow", b"", b"bye"],
        "tsv": [b"n\ttext", b"1\tsee you", b"2\tcaf\xe9", b"3", b"4\tbye"],
        "csv": [b"n,text", b"1,see you", b"2,caf\xe9", b"3,a,b", b"4,bye"],
    }[kind]
    (tmp_path / f"in.{kind}").write_bytes(b"\n".join(lines) + b"\n")
    words = ["augment", tmp_path / f"in.{kind}", "-o", tmp_path / f"out.{kind}"]

    ended = command(*words, "-t", "fing:rate=1", "--protect", "none")

    written = (tmp_path / f"out.{kind}").read_bytes().split(b"\n")
    same = [line == other for line, other in zip(lines, written, strict=False)]
    assert same == {"txt": [False, True, True, False]}.get(kind, [True, False, True, True, False])
    assert ended.returncode == 3
    assert "left as is: not_utf8 1" in ended.stderr


def test_a_filter_reads_and_writes_streams(expected):
    words = f"augment - -o - -t {NOISE['transforms'][0]} --seed 7".split()
    ended = command(*words, input="\n".join(TEXTS))

    assert ended.stdout.splitlines() == expected
    assert ended.returncode == 0
    assert ended.stderr.startswith("standard output: 3 rows; 100.0% changed")


def test_the_reader_of_a_pipe_may_have_had_enough(tmp_path):
    import subprocess

    words = [*PROGRAM, "augment", str(DEMO), "-o", "-", "--copies", "40", "-t", "spac"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ended:
        assert ended.stdout.readline() == b"text\tkind\tlang\tcopy\n"
        ended.stdout.close()
        assert b"Traceback" not in ended.stderr.read()


def test_workers_and_sizes_decide_nothing(tmp_path):
    options = {"transforms": FAST, "seed": 7}
    outs = [tmp_path / f"{n}.tsv" for n in range(2)]
    augment(DEMO, outs[0], **options)
    augment(DEMO, outs[1], workers=2, rows_per_shard=50, **options)
    augment(DEMO, tmp_path / "shards", **options)

    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert [row["text"] for row in _read(outs[0])] == table(tmp_path / "shards")[
        "noisy"
    ].to_pylist()


def test_copies_of_a_row_follow_one_another(tmp_path):
    source = _write(tmp_path / "in.jsonl", [{"text": text} for text in TEXTS])
    augment(source, tmp_path / "shards", copies=2, edits=True, **NOISE)
    augment(source, tmp_path / "noisy.jsonl", copies=2, edits=True, **NOISE)

    shards = sorted(
        table(tmp_path / "shards").to_pylist(), key=lambda row: (row["id"], row["copy"])
    )
    assert _read(tmp_path / "noisy.jsonl") == [
        {"text": row["noisy"], "edits": row["edits"], "copy": row["copy"]} for row in shards
    ]


@pytest.mark.parametrize("kind", ["conll", "iob2", "conllu", "jsonl", "parquet"])
def test_tokens_are_replaced_and_labels_carried(tmp_path, kind):
    row = {
        "words": ["Anna", "lives", "in", "New", "York"],
        "tags": ["B-PER", "O", "O", "B-LOC", "I-LOC"],
    }
    source = _write(tmp_path / "in.parquet", [row] * 20)
    options = {"tokens": "words", "labels": "tags", "transforms": ["spac:add_rate=0.3"], "seed": 1}
    augment(source, tmp_path / "shards", **options)
    wanted = table(tmp_path / "shards").select(["noisy_tokens", "noisy_labels"])
    wanted = [tuple(row.values()) for row in wanted.to_pylist()]
    assert any(len(tokens) != 5 for tokens, _ in wanted)
    out = tmp_path / f"noisy.{kind}"

    augment(source, out, **options)

    if kind == "parquet":
        made = [tuple(row.values()) for row in pq.read_table(out).to_pylist()]
    elif kind == "jsonl":
        made = [tuple(row.values()) for row in _read(out)]
    else:
        at = 3 if kind == "conllu" else 1
        blocks = out.read_text().removesuffix("\n\n").split("\n\n")
        rows = [[line.split("\t") for line in block.split("\n")] for block in blocks]
        made = [([r[at == 3] for r in block], [r[at] for r in block]) for block in rows]
    assert made == wanted


@pytest.mark.parametrize("name", ["train.txt", "eng.testa", "train.tsv"])
def test_sentences_with_a_token_per_line_stay_so_under_any_name(tmp_path, name):
    lines = ["EU B-ORG", "rejects O", "it O", "", "Ann B-PER", "calls O", ""]
    content = "".join(f"{line}\n".replace(" ", "\t" if ".tsv" in name else " ") for line in lines)
    (tmp_path / name).write_text(content)
    out = tmp_path / f"noisy.{'tsv' if '.tsv' in name else 'txt'}"

    augment(tmp_path / name, out, transforms="caps:rate=0")
    assert out.read_text() == content

    (tmp_path / "words.txt").write_text("EU\nrejects\n\nAnn\ncalls\n")
    augment(tmp_path / "words.txt", tmp_path / "lines.txt", transforms="caps:rate=0")
    assert (tmp_path / "lines.txt").read_text() == "EU\nrejects\n\nAnn\ncalls\n"


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("a.txt", {"copies": 2}, UsageError, "txt has no column for --copies: write jsonl"),
        ("a.txt", {"edits": True}, UsageError, "txt has no column for --edits"),
        (
            "a.conll",
            {},
            UsageError,
            "conll has a token per line, so it needs --tokens and --labels: for texts write txt",
        ),
        ("a.parquet.gz", {}, UsageError, r"Parquet compresses itself: leave out \.gz"),
        ("-", {"to": "parquet"}, UsageError, "name a file"),
        ("a.txt", {"resume": True}, UsageError, "--resume and --part need a folder"),
        ("a.txt", {"part": "1/2"}, UsageError, "--resume and --part need a folder"),
        ("a.txt", {"to": "xml"}, UsageError, "--to 'xml' is not txt, tsv"),
        (".", {"to": "txt"}, UsageError, "is a folder: --to writes one file"),
        ("in.tsv", {"force": True}, UsageError, "is one of the sources"),
        ("a.tsv", {"text_column": "words"}, SourceError, "no column 'words'"),
        ("there.tsv", {}, OutputError, "exists; add --force to overwrite it"),
    ],
)
def test_what_one_file_cannot_be_is_said_in_one_line(tmp_path, name, options, error, message):
    source = _write(tmp_path / "in.tsv", [{"n": 1, "text": "see you"}])
    (tmp_path / "there.tsv").write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(error, match=message):
        augment(source, name if name == "-" else tmp_path / name, **options)

    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_empty_folder_with_the_name_of_a_file_is_refused_or_meant(tmp_path):
    (tmp_path / "in.txt").write_text("see you\n")
    out = tmp_path / "noisy.jsonl"
    out.mkdir()

    with pytest.raises(UsageError, match=r"is an empty folder: remove it, or write .*\.jsonl/ for"):
        augment(tmp_path / "in.txt", out)

    assert len(augment(tmp_path / "in.txt", f"{out}/", transforms="spac").shards) == 1
    assert len(augment(tmp_path / "in.txt", out, transforms="spac", force=True).shards) == 1


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["txt", "parquet"])
def test_a_failure_leaves_no_file(tmp_path, kind):
    code = tmp_path / "late.py"
    code.write_text(
        f"import noisegen\n@noisegen.transform('late_{kind}')\n"
        "def late(text, draws, *, rate: float = 1.0):\n"
        "    if 'bomb' in text: raise RuntimeError('boom')\n    return text\n"
    )
    (tmp_path / "in.txt").write_text("fine\n" * 5 + "bomb\n")

    with pytest.raises(noisegen.NoisegenError, match="boom"):
        augment(
            tmp_path / "in.txt",
            tmp_path / f"out.{kind}",
            code=str(code),
            rows_per_shard=2,
            transforms=[f"late_{kind}"],
            executor="serial",
        )
    gc.collect()  # a writer that is still open fails here

    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["in.txt", "late.py"]


def test_force_writes_over_and_a_device_stays_one(tmp_path):
    source = _write(tmp_path / "in.txt", [{"text": "see you"}])
    (tmp_path / "out.txt").write_text("old")
    augment(source, tmp_path / "out.txt", force=True, transforms=["leet:rate=0"])
    augment(source, "/dev/null", to="txt", force=True, transforms=["leet:rate=0"])

    assert (tmp_path / "out.txt").read_text() == "see you\n"
    assert not (tmp_path / "/dev/null").is_file()


def test_json_and_the_rows_do_not_mix_on_standard_output():
    ended = command("augment", DEMO, "-o", "-", "--json")

    assert ended.returncode == 2
    assert "choose one" in ended.stderr


def test_the_end_of_a_damaged_input_is_no_row(tmp_path):
    content = gzip.compress("\n".join(TEXTS * 500).encode())
    (tmp_path / "in.txt.gz").write_bytes(content[:-20])

    made = augment(tmp_path / "in.txt.gz", tmp_path / "out.jsonl", copies=2, transforms=["spac"])

    rows = _read(tmp_path / "out.jsonl")
    assert len(rows) == made.totals["rows"] > 100
    assert None not in [row["text"] for row in rows]
    assert made.totals["dropped"] == {"truncated": 1}


def test_class_names_are_written_where_numbers_would_say_nothing(tmp_path):
    datasets = pytest.importorskip("datasets")
    names = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    rows = {"text": TEXTS, "label": [0, 1, 1]}
    datasets.Dataset.from_dict(rows, names).to_parquet(tmp_path / "in.parquet")

    for kind in ("csv", "parquet"):
        augment(tmp_path / "in.parquet", tmp_path / f"out.{kind}", **NOISE)

    assert [row["label"] for row in _read(tmp_path / "out.csv")] == ["bad", "good", "good"]
    loaded = datasets.Dataset.from_parquet(
        str(tmp_path / "out.parquet"), cache_dir=str(tmp_path / "cache")
    )
    assert loaded.features["label"] == names["label"]


def test_a_full_disk_says_nothing_of_a_resume(tmp_path, monkeypatch):
    def full(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"free some space, then run again$"):
        augment(DEMO, tmp_path / "out.tsv", transforms=["spac"])

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["noisy.xml", "foo.arrow", "foo.txt.zip", "a.b.gz", "x.docx"])
def test_an_unknown_ending_is_no_name_of_a_new_folder(tmp_path, name):
    (tmp_path / "in.txt").write_text("see you\n")
    ended = command("augment", tmp_path / "in.txt", "-o", tmp_path / name, "-t", "fing")
    assert ended.returncode == 2
    assert f"{name}: one file ends in .txt, .tsv, .csv, .jsonl, " in ended.stderr
    assert not (tmp_path / name).exists()

    augment(tmp_path / "in.txt", f"{tmp_path / name}/", transforms=["fing"])
    augment(tmp_path / "in.txt", tmp_path / name, transforms=["fing"], force=True)
    assert (tmp_path / name / "manifest.json").is_file()


@pytest.mark.parametrize("name", ["run.v2", ".noise", "in.progress"])
def test_a_folder_may_have_a_dot_in_its_name(tmp_path, name):
    (tmp_path / "in.txt").write_text("see you\n")
    augment(tmp_path / "in.txt", tmp_path / name, transforms=["fing"])
    assert (tmp_path / name / "manifest.json").is_file()


TREE = "1\tI\tI\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tsaw\tsee\tVERB\t_\t_\t0\troot\t_\t_\n\n"


@pytest.mark.parametrize(
    ("name", "content", "column"),
    [("a.conllu", TREE, "upos"), ("a.conll", "I\tO\nsaw\tO\n\n", "labels")],
)
def test_tags_are_not_written_as_normal_forms(tmp_path, name, content, column):
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=f"norm holds normal forms, and column '{column}' of "):
        augment(tmp_path / name, tmp_path / "out.norm")


def test_a_column_of_normal_forms_may_be_named(tmp_path):
    (tmp_path / "a.conllu").write_text(TREE)
    augment(
        tmp_path / "a.conllu",
        tmp_path / "out.norm",
        tokens="form",
        labels="lemma",
        transforms=["fing:rate=0"],
    )
    assert (tmp_path / "out.norm").read_text() == "I\tI\nsaw\tsee\n\n"


@pytest.mark.parametrize("number", ["{0}", "1-{0}", "{0}-{0}", "1.{0}", "{0}.1"])
@pytest.mark.parametrize("sentence", [0, 1])
def test_numbers_of_endless_digits_are_none(tmp_path, number, sentence):
    texts = [TREE, TREE]
    texts[sentence] = texts[sentence].replace("1\t", number.format("1" * 5_000) + "\t", 1)
    (tmp_path / "a.conllu").write_text("".join(texts))
    made = augment(tmp_path / "a.conllu", tmp_path / "out", transforms=["fing:rate=1"])
    assert made.totals["rows"] + sum(made.totals["dropped"].values()) == 2
    augment(tmp_path / "a.conllu", tmp_path / "out.conllu", transforms=["fing:rate=1"])


def test_an_empty_file_of_tokens_has_no_rows(tmp_path):
    (tmp_path / "a.conll").write_text("")
    with pytest.raises(SourceError, match="no rows in"):
        augment(tmp_path / "a.conll", tmp_path / "out.conll")


def test_a_row_without_tokens_is_counted_where_a_sentence_has_lines(tmp_path):
    rows = [{"w": ["see", "you"], "t": ["O", "B-x"]}, {"w": [], "t": []}, {"w": ["me"], "t": ["O"]}]
    source = tmp_path / "a.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    given = {"tokens": "w", "labels": "t", "transforms": ["fing:rate=0"]}
    made = augment(source, tmp_path / "out.conll", **given)

    assert (tmp_path / "out.conll").read_text() == "see\tO\nyou\tB-x\n\nme\tO\n\n"
    assert (made.totals["rows"], made.totals["dropped"]) == (2, {"no_tokens": 1})
    assert augment(source, tmp_path / "out.jsonl", **given).totals["rows"] == 3


PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
"""


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "most"), [("txt", 500), ("csv", 600)])
def test_a_row_of_10_mb_in_which_every_letter_changes_is_in_little_memory(tmp_path, kind, most):
    sentence = "See you tomorrow, people: 10 o'clock is very good. "
    text = sentence * (10_000_000 // len(sentence))
    source, out = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    source.write_text(f'text\n"{text}"\n' if kind == "csv" else f"{text}\n")
    command = [
        *(sys.executable, "-m", "noisegen", "augment", source, "-o", out),
        *("-t", "fing:rate=1", "--workers", "1", "--quiet"),
    ]
    done = subprocess.run(
        [sys.executable, "-I", "-c", PEAK, *map(str, command)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < most
    assert out.stat().st_size > len(text) // 2
