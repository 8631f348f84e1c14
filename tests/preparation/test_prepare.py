"""A run: the same sentences whatever the workers, resumed or not, and augment reads them."""

import bz2
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import DEMO, contents, interrupt_at, left_over, table, visible, wait_for, written

import noisegen
from noisegen.cli import run as command
from noisegen.errors import OutputError, SourceError, UsageError
from noisegen.preparation import prepare as prepare_module
from noisegen.preparation.duplicates import Search
from noisegen.preparation.intermediate import write_array
from noisegen.preparation.prepare import prepare
from noisegen.preparation.sentences import clean_lines
from noisegen.runs.manifest import Manifest
from noisegen.runs.records import LINES

PROGRAM = [sys.executable, "-c", "from noisegen.cli.mine import prepare; prepare()"]


@pytest.fixture(scope="module")
def sentences(demo_texts):
    """3,000 sentences, drawn word by word from the bundled English text; none is like another."""
    rng = random.Random(7)
    words = [word for text in demo_texts[:100] for word in text.split() if word.isalpha()]
    rows = (" ".join(rng.choices(words, k=rng.randint(8, 20))) for _ in range(3_000))
    return [f"{row.capitalize()}." for row in rows]


@pytest.fixture(scope="module")
def raw(tmp_path_factory, sentences):
    """A file of rows with several sentences, mark-up, duplicates and damage."""
    rows = [" ".join(sentences[at : at + 3]) for at in range(0, 3_000, 3)]
    rows[10] = rows[11] = rows[12] = "<p>Fish &amp; chips were eaten.<br>Nobody left the harbour."
    rows[500], rows[700] = "fish & chips were eaten!", "Fish & chips were eaten."
    rows[20] = "Ещё одно предложение на другом языке."
    rows[30] = ""
    path = tmp_path_factory.mktemp("raw") / "raw.txt"
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def whole(raw, tmp_path_factory):
    """The folder of a run over `raw` from beginning to end."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    prepared(raw, out)
    return out


def prepared(source, out, **options):
    return prepare(source, out, **{"rows_per_shard": 100, "identify": "no", **options})


def everything(out):
    """Return shards, manifest and card, without what names the folder."""
    made = json.loads((out / "manifest.json").read_text("utf-8"))
    card = (out / "README.md").read_text("utf-8").replace(made.pop("command"), "")
    return contents(out), made, card


def test_the_output_and_its_account(raw, tmp_path):
    made = prepared(raw, tmp_path / "out")
    rows = table(tmp_path / "out")
    assert rows.schema.names == ["id", "text", "source", "row"]
    assert rows.schema.types == [pa.int64(), pa.string(), pa.string(), pa.int64()]
    assert len(rows) == made.totals["kept"] == sum(shard["rows"] for shard in made.shards)
    assert made.totals["rows_in"] == 1_000
    assert made.totals["kept"] + sum(made.totals["dropped"].values()) == made.totals["sentences"]
    assert made.totals["dropped"]["duplicate"] >= 4
    assert made.totals["dropped"]["uncommon_characters"] >= 1
    assert made.totals["damaged"] == {}
    assert made.identification is None
    texts = rows["text"].to_pylist()
    assert len(set(texts)) == len(texts)
    assert "Fish & chips were eaten." in texts
    assert set(rows["source"].to_pylist()) == {str(raw)}
    assert visible(tmp_path / "out") == ["README.md", "data", "manifest.json"]
    assert "fish" not in made.summary()
    assert "duplicate" in made.summary()


def test_other_columns_may_have_any_name(tmp_path):
    path = tmp_path / "raw.jsonl"
    row = {"text": "Fish and chips were eaten.", "clean": "no", "noisy": 1}
    path.write_text(json.dumps(row) + "\n")
    manifest = prepared(path, tmp_path / "out", lang="en")
    assert manifest.totals["kept"] == 1
    assert table(tmp_path / "out")["text"].to_pylist() == [row["text"]]


def test_an_id_names_row_and_sentence_and_does_not_move(raw, tmp_path):
    prepared(raw, tmp_path / "out")
    rows = table(tmp_path / "out").to_pylist()
    for row in rows:
        assert row["id"] // 2**24 == row["row"]
    lines = raw.read_text("utf-8").split("\n")
    for row in rows[:200]:
        assert any(row["text"] in line for line in clean_lines(lines[row["row"]]))
    prepared(raw, tmp_path / "strict", min_chars=60)
    strict = {row["id"]: row["text"] for row in table(tmp_path / "strict").to_pylist()}
    assert 0 < len(strict) < len(rows)
    assert strict.items() <= {row["id"]: row["text"] for row in rows}.items()


def test_sentences_and_counts_do_not_depend_on_the_shards(raw, tmp_path):
    few = prepared(raw, tmp_path / "few", rows_per_shard=70)
    all_in_one = prepared(raw, tmp_path / "one", rows_per_shard=5_000)
    assert table(tmp_path / "few").equals(table(tmp_path / "one"))
    assert few.totals == all_in_one.totals


def test_workers_write_the_same_bytes(raw, tmp_path, whole):
    prepared(raw, tmp_path / "two", workers=2)
    prepared(raw, tmp_path / "serial", executor="serial")
    assert everything(whole) == everything(tmp_path / "two")
    assert everything(whole) == everything(tmp_path / "serial")


@pytest.fixture
def small_ranges(monkeypatch):
    """Let the search for duplicates have many tasks."""
    monkeypatch.setattr(prepare_module, "Search", partial(Search, entries=5_000, span=500))


@pytest.mark.usefixtures("small_ranges")
def test_dask_writes_the_same_bytes(raw, tmp_path, cluster, monkeypatch):
    monkeypatch.chdir(raw.parent)  # the workers are elsewhere
    prepared(raw.name, tmp_path / "one")
    prepared(raw.name, os.path.relpath(tmp_path / "dask"), executor=cluster)
    assert everything(tmp_path / "one") == everything(tmp_path / "dask")


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2)])
def test_parts_write_the_same_bytes_and_the_last_one_finishes(raw, tmp_path, order, whole):
    *first, last = order
    for done, part in enumerate(first, 1):
        made = prepared(raw, tmp_path / "parts", part=f"{part}/3")
        to_do = 10 - sum(len(range(number - 1, 10, 3)) for number in order[:done])
        assert made.missing_tasks == to_do
        assert made.summary().startswith(f"{to_do} tasks to do: run the other parts; ")
        assert not (tmp_path / "parts" / "manifest.json").exists()
        assert contents(tmp_path / "parts") == {}
    made = prepared(raw, tmp_path / "parts", part=f"{last}/3")
    assert made.missing_tasks == 0
    assert everything(tmp_path / "parts") == everything(whole)
    assert "--part" not in made.command
    again = prepared(raw, tmp_path / "parts", part="2/3")
    assert again == made
    assert not (tmp_path / "parts" / "work").exists()


def test_a_part_leaves_the_portions_of_others_alone(raw, tmp_path, portions_made, whole):
    prepared(raw, tmp_path / "parts", part="2/4")
    assert portions_made == [1, 5, 9]
    prepared(raw, tmp_path / "parts", part="2/4")
    assert portions_made == [1, 5, 9]
    prepared(raw, tmp_path / "parts", resume=True)
    assert sorted(portions_made) == list(range(10))
    assert everything(tmp_path / "parts") == everything(whole)


@pytest.mark.usefixtures("small_ranges")
def test_what_was_found_of_the_duplicates_is_not_searched_again(raw, tmp_path, portions_made):
    out, times = tmp_path / "out", []

    def found():
        paths = (tmp_path / "out" / "work").glob("*.npy")
        return {path.name: path.stat().st_mtime_ns for path in paths if path.name != "edges.npy"}

    def listen(event):
        if event.doing == "writing" and not event.done:
            times.append(found())

    with pytest.raises(KeyboardInterrupt):
        prepared(raw, out, progress=interrupt_at("finding near duplicates", 2))
    assert portions_made == list(range(10))
    before = found()
    assert {"equal-00000.npy", "links-00000.npy", "links-00001.npy"} <= before.keys()
    prepared(raw, out, resume=True, progress=listen)
    [after] = times
    assert before.items() < after.items()
    assert len([name for name in after if name.startswith("links")]) > 3
    prepared(raw, tmp_path / "whole")
    assert everything(out) == everything(tmp_path / "whole")


@pytest.fixture
def unwritten(raw, tmp_path):
    """A run that was interrupted when all duplicates were found."""
    with pytest.raises(KeyboardInterrupt):
        prepared(raw, tmp_path / "out", progress=interrupt_at("writing"))
    return tmp_path / "out"


def test_a_portion_made_again_ends_what_was_found_before(raw, unwritten, whole):
    (unwritten / "work" / "texts-00004.arrow").unlink()
    write_array(unwritten / "work" / "links-00000.npy", np.zeros((0, 2), np.int64))
    prepared(raw, unwritten, resume=True)
    assert everything(unwritten) == everything(whole)


@pytest.mark.parametrize(
    ("names", "remade"),
    [
        (("texts-00001.arrow", "forms-00003.arrow", "bands-00004.arrow"), [1, 3, 4]),
        (("equal-00000.npy", "links-00000.npy", "similar-00000.npy"), []),
    ],
)
def test_what_is_damaged_is_made_again(
    raw, unwritten, tmp_path, portions_made, names, remade, whole
):
    for name in names:
        path = unwritten / "work" / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    portions_made.clear()
    prepared(raw, unwritten, resume=True)
    assert portions_made == remade
    assert everything(unwritten) == everything(whole)


def test_a_copied_folder_is_resumed_where_it_was(raw, unwritten, tmp_path, portions_made):
    copy = tmp_path / "copy"
    shutil.copytree(unwritten, copy, copy_function=shutil.copyfile)  # which have times of their own
    portions_made.clear()
    prepared(raw, copy, resume=True)
    assert portions_made == []


def test_a_portion_that_vanishes_during_the_run_is_an_error(raw, tmp_path, whole):
    def remove(event):
        for path in (tmp_path / "out" / "work").glob("forms-00003.arrow"):
            path.unlink()

    with pytest.raises(OutputError, match=r"1 of 10 .* are gone or unreadable"):
        prepared(raw, tmp_path / "out", progress=remove)
    prepared(raw, tmp_path / "out", resume=True)
    assert everything(tmp_path / "out") == everything(whole)


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("forms-00003.arrow", "finding duplicates"),
        ("bands-00004.arrow", "finding near duplicates"),
        ("links-00000.npy", "comparing near duplicates"),
        ("texts-00001.arrow", "writing"),
    ],
)
def test_what_is_damaged_during_the_search_is_one_line(raw, tmp_path, name, stage, whole):
    def damage(event):
        if event.doing == stage and not event.done:
            path = tmp_path / "out" / "work" / name
            content = path.read_bytes()
            path.unlink()  # what is mapped stays
            path.write_bytes(b"x" * 50 + content[50:-100] + b"x" * 100)

    with pytest.raises(OutputError, match=f"{name} was damaged .*; run again with --resume"):
        prepared(raw, tmp_path / "out", progress=damage)
    prepared(raw, tmp_path / "out", resume=True)
    assert everything(tmp_path / "out") == everything(whole)


def recorded(out):
    """Return how many tasks a running command has recorded."""
    return sum(len(path.read_bytes().splitlines()) for path in out.glob(LINES))


def test_a_killed_run_resumes_to_the_same_bytes(raw, tmp_path, portions_made):
    out, whole = tmp_path / "out", tmp_path / "whole"
    options = ["--rows-per-shard", "20", "--identify", "no", "--workers", "2", "-q"]
    words = [*PROGRAM, str(raw), "-o", str(out), *options]
    running = subprocess.Popen(words, start_new_session=True)
    try:
        wait_for(lambda: recorded(out) >= 3)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert not (out / "manifest.json").exists()
    kept = recorded(out)
    (out / "work" / "texts-00049.arrow.0123456789abcdef.tmp").write_bytes(b"half")
    events = []
    prepared(raw, out, rows_per_shard=20, resume=True, progress=events.append)
    assert len(portions_made) == 50 - kept
    assert [event.share for event in events if event.doing == "splitting"][-1] == 1
    assert events[-1].doing == "writing"
    prepared(raw, whole, rows_per_shard=20)
    assert everything(out) == everything(whole)
    assert left_over(out) == []


@pytest.mark.nightly
def test_parts_that_end_at_once_with_one_killed_on_the_way(raw, tmp_path):
    out, whole = tmp_path / "out", tmp_path / "whole"

    def start(part):
        options = ["--rows-per-shard", "20", "--identify", "no", "--workers", "1", "-q"]
        words = [*PROGRAM, str(raw), "-o", str(out), *options, "--part", f"{part}/3"]
        return subprocess.Popen(words, start_new_session=True)

    running = [start(part) for part in (1, 2, 3)]
    try:
        wait_for(lambda: (out / "work" / "texts-00001.arrow").exists())
    finally:
        os.killpg(running[1].pid, signal.SIGKILL)
    running.append(start(2))
    assert [program.wait(60) for program in running] == [0, -signal.SIGKILL, 0, 0]
    prepared(raw, whole, rows_per_shard=20)
    assert everything(out) == everything(whole)
    assert visible(out) == ["README.md", "data", "manifest.json"]


def test_a_finished_run_is_left_alone_and_a_broken_one_made_again(raw, tmp_path, monkeypatch):
    out = tmp_path / "out"
    prepared(raw, out)
    before = everything(out)
    times = written(out)
    prepared(raw, out, resume=True)
    assert times == written(out)
    (out / "data/part-00003.parquet").write_bytes(b"broken")
    prepared(raw, out, resume=True)
    assert everything(out) == before


def test_a_shard_whose_column_names_rotted_is_made_again(raw, tmp_path):
    prepared(raw, out := tmp_path / "out")
    before, shard = everything(out), out / "data/part-00003.parquet"
    content = shard.read_bytes()
    shard.write_bytes(content.replace(b"source", b"sourca"))
    assert pq.read_metadata(shard).schema.names[2] == "sourca"
    prepared(raw, out, resume=True)
    assert everything(out) == before
    shard.write_bytes(content.replace(b"source", b"sourc\xe4"))  # no UTF-8
    prepared(raw, out, resume=True)
    assert everything(out) == before
    pq.write_table(pa.table({"id": [1], "text": ["mine"]}), shard)
    with pytest.raises(OutputError, match="noisegen did not prepare"):
        prepared(raw, out, resume=True)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"shards"', '"sharrds"', "it has other keys"),
        ('"kept": ', '"kept": 9', "its shards have 2,918 rows, its totals 92,918"),
        ('"sentences": ', '"sentences": 9', "it has 9.* sentences, .* of them kept or dropped"),
        ('"dropped": {', '"dropped": {"too_long": 1,', "it has .* sentences, .* kept or dropped"),
    ],
)
def test_a_manifest_that_rotted_is_one_line_and_made_again(raw, tmp_path, before, after, said):
    prepared(raw, out := tmp_path / "out")
    path = out / "manifest.json"
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(OutputError, match=f"is not the manifest of a run: {said}"):
        Manifest.load(out)
    prepared(raw, out, resume=True)
    assert Manifest.load(out).shards


def test_a_portion_whose_files_are_gone_is_made_again(raw, tmp_path, portions_made, whole):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        prepared(raw, out, progress=interrupt_at("finding duplicates"))
    (out / "work" / "bands-00002.arrow").unlink()
    (out / "work" / "texts-00004.arrow").write_text("{", "utf-8")
    portions_made.clear()
    prepared(raw, out, resume=True)
    assert portions_made == [2, 4]
    assert contents(out) == contents(whole)


def test_folders_that_are_refused(raw, tmp_path):
    out = tmp_path / "out"
    prepared(raw, out)
    with pytest.raises(OutputError, match="is not empty; add --resume"):
        prepared(raw, out)
    with pytest.raises(OutputError, match="another configuration"):
        prepared(raw, out, resume=True, min_chars=20)
    with pytest.raises(UsageError, match="choose one"):
        prepared(raw, out, resume=True, force=True)
    with pytest.raises(OutputError, match="is an input"):
        prepared(out, out, force=True, id_column="id")
    prepared(raw, out, force=True, min_chars=20)
    assert min(map(len, table(out)["text"].to_pylist())) >= 20


@pytest.mark.parametrize("choice", ["resume", "force"])
def test_a_folder_of_something_else_is_not_touched(raw, tmp_path, choice):
    other = tmp_path / "other"
    other.mkdir()
    (other / "data").mkdir()
    pq.write_table(pa.table({"a": [1]}), other / "data" / "part-00000.parquet")
    with pytest.raises(OutputError, match="noisegen did not prepare"):
        prepared(raw, other, **{choice: True})
    noised = tmp_path / "noised"
    noisegen.augment(DEMO, noised, transforms=["fing:rate=0.1"])
    before = contents(noised)
    with pytest.raises(OutputError, match="noisegen did not prepare"):
        prepared(raw, noised, **{choice: True})
    assert contents(noised) == before


def test_augment_reads_the_folder(raw, tmp_path):
    prepared(raw, tmp_path / "out")
    made = noisegen.augment(
        tmp_path / "out", tmp_path / "noisy", transforms=["fing:rate=0.1"], id_column="id"
    )
    rows = table(tmp_path / "noisy")
    assert made.totals["rows"] == len(rows) == len(table(tmp_path / "out"))
    assert rows["clean"].to_pylist() == table(tmp_path / "out")["text"].to_pylist()
    assert rows["id"].equals(table(tmp_path / "out")["id"])


def test_small_files_of_many_kinds_share_a_shard(tmp_path):
    texts = [f"Sentence number {name} stands here alone." for name in ("one", "two", "three")]
    (tmp_path / "a.txt").write_text(texts[0] + "\n", "utf-8")
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": texts[1], "x": 1}) + "\n", "utf-8")
    (tmp_path / "empty.txt").write_text("", "utf-8")
    with gzip.open(tmp_path / "c.csv.gz", "wt", encoding="utf-8") as file:
        file.write(f"label,text\n5,{texts[2]}\n")
    files = [tmp_path / name for name in ("a.txt", "b.jsonl", "empty.txt", "c.csv.gz")]
    made = prepared(files, tmp_path / "out", duplicates="exact")
    assert len(made.shards) == 1
    rows = table(tmp_path / "out").to_pylist()
    assert [(row["text"], row["row"]) for row in rows] == list(zip(texts, range(3), strict=True))
    assert [row["source"] for row in rows] == [str(files[at]) for at in (0, 1, 3)]


def test_rows_keep_the_name_they_have(tmp_path):
    source = tmp_path / "rows.jsonl"
    rows = [{"id": f"r{n}", "text": f"The {n} harbour lay quiet. The rain fell."} for n in "ab"]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    prepared(source, tmp_path / "out", id_column="id")
    found = [(row["id"], row["row"]) for row in table(tmp_path / "out").to_pylist()]
    assert found == [(0, "ra"), (1, "ra"), (2**24, "rb")]


def test_the_first_rows_only(raw, tmp_path):
    made = prepared([raw, raw], tmp_path / "out", limit=1_050, duplicates="keep")
    assert made.totals["rows_in"] == 1_050
    assert max(table(tmp_path / "out")["row"].to_pylist()) == 1_049


def test_duplicates_by_choice(tmp_path):
    lines = ["The harbour lay quiet at night.", "the harbour lay quiet, at night"] * 2
    source = tmp_path / "a.txt"
    source.write_text("\n".join(lines), "utf-8")
    kept = {}
    for choice in ("near", "exact", "keep"):
        made = prepared(source, tmp_path / choice, duplicates=choice, rows_per_shard=1)
        kept[choice] = made.totals["kept"]
    assert kept == {"near": 1, "exact": 2, "keep": 4}


def test_damaged_input_is_counted_and_salved(tmp_path, sentences):
    whole = "\n".join(sentences).encode()
    packed = bz2.compress(whole, 1)
    (tmp_path / "cut.txt.bz2").write_bytes(packed[: len(packed) * 2 // 3])
    (tmp_path / "b.txt").write_bytes(b"A whole line of good text.\n\xff\xfe broken\n")
    made = prepared([tmp_path / "cut.txt.bz2", tmp_path / "b.txt"], tmp_path / "out")
    assert made.totals["damaged"] == {"not_utf8": 1, "truncated": 1}
    assert made.totals["kept"] > 500
    assert "damaged rows: not_utf8 1, truncated 1" in made.summary()


def test_a_parquet_file_damaged_in_the_middle_is_one_line(tmp_path, capfd):
    path = tmp_path / "in.parquet"
    rows = [f"This is row {number} of many." for number in range(5_000)]
    pq.write_table(pa.table({"text": rows}), path, use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[5_000:9_000] = bytes(4_000)
    path.write_bytes(content)

    words = ["prepare", str(path), "-o", str(tmp_path / "out"), "--identify", "no", "--workers"]
    for workers in "12":
        assert command([*words, workers, "-q", "--force"]) == 1
        problem = "damaged, or not a Parquet file; get the file again"
        assert capfd.readouterr().err == f"error: cannot read {path}: {problem}\n"


def test_nothing_left_is_no_error(tmp_path):
    source = tmp_path / "a.txt"
    source.write_text("no\n", "utf-8")
    made = prepared(source, tmp_path / "out")
    assert made.totals["kept"] == 0
    assert len(table(tmp_path / "out")) == 0


def test_sources_that_cannot_be_read_leave_no_folder(tmp_path):
    (tmp_path / "empty.txt").write_text("", "utf-8")
    for source in (tmp_path / "nowhere.txt", tmp_path / "empty.txt"):
        with pytest.raises(SourceError):
            prepared(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"duplicates": "some"},
        {"similarity": 0},
        {"rows_per_shard": 0},
        {"limit": 0},
        {"workers": 0},
        {"executor": "threads"},
        {"splitter": "knife"},
        {"lang": "?"},
        {"identify": "perhaps"},
        {"min_chars": 0},
        {"min_common": 1.5},
        {"min_chars": 9, "max_chars": 8},
    ],
)
def test_wrong_usage(raw, tmp_path, wrong):
    with pytest.raises(UsageError):
        prepared(raw, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_japanese_is_split_and_compared(tmp_path):
    pytest.importorskip("fugashi")
    lines = [
        "昨日、私は友達と一緒に海へ行きました。とても楽しかったです。また行きたいと思います。"
    ] * 2
    lines[1] = lines[1].replace("友達", "友人")
    (tmp_path / "a.txt").write_text("\n".join(lines), "utf-8")
    made = prepared(tmp_path / "a.txt", tmp_path / "out", lang="ja", min_chars=5, similarity=0.6)
    assert made.totals["kept"] == 3
    assert made.totals["dropped"] == {"duplicate": 2, "near_duplicate": 1}


# The command.


def test_a_hint_names_no_option_that_the_command_lacks(tmp_path, capfd):
    (tmp_path / "a.jsonl").write_text('{"words": ["a", "b"]}\n')
    command(["prepare", str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "out")])
    assert "for lists of strings: --tokens NAME of augment or normalize" in capfd.readouterr().err


def test_the_command(raw, tmp_path, capfd):
    out = tmp_path / "out"
    arguments = [str(raw), "-o", str(out), "--identify", "no", "--workers", "1"]
    assert command(["prepare", *arguments]) == 0
    stdout, stderr = capfd.readouterr()
    assert stdout == ""
    assert f"{out}: {Manifest.load(out).summary()}" in stderr
    card = (out / "README.md").read_text("utf-8")
    assert "noisegen augment" in card
    assert "keeps the licence that it has there: name it as `license` in the head" in card


def test_the_command_prints_json_and_says_that_rows_were_damaged(tmp_path, capfd):
    source = tmp_path / "a.txt"
    source.write_bytes(b"A whole line of good text.\n\xff\n")
    arguments = [str(source), "-o", str(tmp_path / "out"), "--workers", "1", "--json"]
    assert command(["prepare", *arguments]) == 3
    printed = json.loads(capfd.readouterr().out)
    assert printed["kept"] == 1
    assert printed["damaged"] == {"not_utf8": 1}


ROLASER = [
    "Ok.",
    "Ok.",
    "10 11 12 13 14 15 16 17",
    "Fish &amp; chips  were eaten.",
    "A long one " + "and on " * 200 + "it goes.",
    "Привет, как дела?",
]


def test_the_profile_rolaser_does_what_the_authors_did_and_no_more(tmp_path):
    """Line breaks, sentences, 90 % common characters; every other filter has its own switch."""
    source = tmp_path / "in.txt"
    source.write_text("\n".join([*ROLASER, "One here.<br>Two there."]) + "\n", "utf-8")

    def texts(name, **options):
        manifest = prepare(source, tmp_path / name, workers=1, profile="rolaser", **options)
        return table(tmp_path / name)["text"].to_pylist(), manifest.totals["dropped"]

    kept = [*ROLASER[:5], "One here.", "Two there."]
    assert texts("plain") == (kept, {"uncommon_characters": 1})
    assert texts("all", min_common=0.0)[0] == [*ROLASER, "One here.", "Two there."]
    for name, options, reason, lost in [
        ("short", {"min_chars": 5}, "too_short", 2),
        ("long", {"max_chars": 500}, "too_long", 1),
        ("letters", {"min_letters": 0.5}, "few_letters", 1),
        ("exact", {"duplicates": "exact"}, "duplicate", 1),
    ]:
        found, dropped = texts(name, **options)
        assert (len(found), dropped[reason]) == (len(kept) - lost, lost)
    tidy, _ = texts("tidy", tidy="yes")
    assert "Fish & chips were eaten." in tidy
    assert '"duplicates": "keep"' in (tmp_path / "plain" / "manifest.json").read_text("utf-8")
