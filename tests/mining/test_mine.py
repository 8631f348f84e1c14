"""A mining run: shards, counts, kill and resume, parts, the folder it may write to."""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mined import LineMiner, run, tasks_of
from runs import written

import noisegen
from noisegen.cli import run as command
from noisegen.errors import NoisegenError, OutputError, SourceError, UsageError
from noisegen.mining.counts import Count, WordCounter, merged, read_counts, write_counts
from noisegen.mining.mine import PAIRS, pair_key
from noisegen.mining.miner import DAMAGE_MAX, Damage, SentencePair, WordPair
from noisegen.runs import folder as folder_module
from noisegen.runs.atomic import file_digest
from noisegen.runs.folder import number_of
from noisegen.runs.manifest import Manifest
from noisegen.text.segmentation import Language

WORDS = "the teh cat cta dog god a an it ti on no".split()  # noqa: SIM905


@pytest.fixture
def files(tmp_path):
    """Five files of lines `unit, noisy, clean`; units do not cross files, some pairs repeat."""
    dice = random.Random(7)
    paths = []
    for number in range(5):
        lines = []
        for unit in range(10 * number, 10 * number + dice.randint(3, 9)):
            for _ in range(dice.randint(1, 6)):
                sides = (" ".join(dice.choices(WORDS, k=3)) for _ in range(2))
                lines += ["\t".join((str(unit), *sides))] * dice.choice((1, 1, 2))
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_text("\n".join(lines) + "\n", "utf-8")
    return paths


def content(out):
    """All files of a run but the manifest's command and the card's."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(written(out))
        if path.is_file() and path.name not in ("manifest.json", "README.md")
    }


def slow_dictionary(files):
    """The dictionary from the lines themselves, with nothing spilled, merged or sorted before."""
    pairs, units, rows = Counter(), defaultdict(set), set()
    for path in files:
        for line in path.read_text("utf-8").splitlines():
            unit, noisy, clean = line.split("\t")
            if (unit, noisy, clean) not in rows:
                rows.add((unit, noisy, clean))
                both = set(zip(clean.split(), noisy.split(), strict=True))
                for word in (word for word in both if word[0] != word[1]):
                    pairs[word] += 1
                    units[word].add(unit)
    totals = Counter()
    for (clean, _), count in pairs.items():
        totals[clean] += count
    return {
        (clean, noisy): (n, len(units[clean, noisy]), pairs[noisy, clean], n / totals[clean])
        for (clean, noisy), n in pairs.items()
    }


def dictionary(out):
    rows = pq.read_table(out / "dictionary.parquet").to_pylist()
    names = ("count", "pages", "reverse_count", "prob")
    return {(row["clean"], row["noisy"]): tuple(row[name] for name in names) for row in rows}


def test_the_dictionary_is_that_of_the_slow_count(files, tmp_path):
    run(files, tmp_path / "out")

    assert dictionary(tmp_path / "out") == slow_dictionary(files)


def test_the_text_form_says_the_same(files, tmp_path):
    run(files, tmp_path / "out")
    header, *lines = (tmp_path / "out" / "dictionary.tsv").read_text("utf-8").splitlines()

    table = pq.read_table(tmp_path / "out" / "dictionary.parquet")
    assert header.split("\t") == table.column_names
    assert [line.split("\t")[:6] for line in lines] == [
        [str(value) for value in list(row.values())[:6]] for row in table.to_pylist()
    ]


def test_probabilities_add_up_to_one(files, tmp_path):
    run(files, tmp_path / "out")
    sums = Counter()
    for (clean, _), (*_, prob) in dictionary(tmp_path / "out").items():
        sums[clean] += prob

    assert all(abs(total - 1) < 1e-9 for total in sums.values())


def test_shards_have_the_columns_of_the_contract(files, tmp_path):
    run(files, tmp_path / "wiki")
    run(files, tmp_path / "rows", LineMiner(kind="pairs"))

    wiki = "noisy clean lang key page_id rev_old rev_new timestamp minor comment_flag reverted"
    assert pq.read_schema(tmp_path / "wiki/pairs/part-00000.parquet").names == [
        *wiki.split(),
        "survived",
    ]
    rows = pq.read_table(tmp_path / "rows/pairs/part-00000.parquet")
    assert rows.column_names == ["noisy", "clean", "lang", "key", "unit"]
    first = rows.to_pylist()[0]
    assert first["key"] == pair_key(first["noisy"], first["clean"])


def test_a_pair_counts_once_in_its_unit(tmp_path):
    path = tmp_path / "war.txt"
    path.write_text("1\tteh\tthe\n1\tthe\tteh\n1\tteh\tthe\n2\tteh\tthe\n")
    made = run([path], tmp_path / "out")

    assert made.totals["pairs"] == 3
    assert made.totals["dropped"] == {"repeated": 1}
    assert dictionary(tmp_path / "out")["the", "teh"] == (2, 2, 1, 1.0)


@pytest.mark.parametrize("held_max", [1, 3, 1_000])
def test_spilled_counts_are_those_in_memory(held_max):
    dice = random.Random(1)
    with WordCounter(held_max) as counter, WordCounter() as plain:
        for number in range(300):
            words = tuple(WordPair(*dice.sample(WORDS, 2)) for _ in range(3))
            pair = SentencePair("", "", dice.choice(("en", "de")), number // 4, words)
            counter.add(pair)
            plain.add(pair)
        rows = list(counter.rows())
        assert rows == list(plain.rows())

    assert rows == sorted(rows)


def test_many_files_merge_in_rounds(tmp_path):
    paths = [tmp_path / f"{number}.parquet" for number in range(7)]
    for path in paths:
        with path.open("wb") as file:
            own = Count("en", path.stem, "c", "x", 3, 1, 0)
            write_counts([own, Count("en", "a", "b", "", 1, 1, 2)], file)

    rows = list(merged(paths, at_once=2))
    assert rows[-1] == Count("en", "a", "b", "", 7, 7, 14)
    assert [row.clean for row in rows[:-1]] == sorted(path.stem for path in paths)
    assert next(iter(read_counts(paths[0]))).kind == "x"


def test_workers_write_the_same_bytes(files, tmp_path):
    run(files, tmp_path / "one")
    made = run(files, tmp_path / "two", workers=2)

    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert made.totals == Manifest.load(tmp_path / "one").totals


def test_parts_write_the_same_bytes_and_the_last_merges(files, tmp_path):
    run(files, tmp_path / "whole")
    out = tmp_path / "parts"
    left = []
    for part in ("3/3", "1/3"):
        left.append(run(files, out, part=part).missing_tasks)
        assert not (out / "dictionary.parquet").exists()
    left.append(run(files, out, part="2/3").missing_tasks)

    assert left == [4, 2, 0]
    assert content(out) == content(tmp_path / "whole")


def test_a_finished_run_is_left_alone(files, tmp_path):
    run(files, tmp_path / "out")
    before = written(tmp_path / "out")
    run(files, tmp_path / "out", Refusing(), resume=True)

    assert written(tmp_path / "out") == before


@dataclass(frozen=True)
class Refusing(LineMiner):
    """A miner that must not be asked."""

    def __call__(self, task, tally):
        raise AssertionError("mined again")
        yield


def test_digests_are_those_of_the_files(files, tmp_path):
    out = tmp_path / "out"
    for options in ({"part": "1/2"}, {"part": "2/2"}, {"resume": True}):
        made = run(files, out, **options)
    made = run(files, out, resume=True, min_pages=2)

    assert [(s["file"], s["sha256"]) for s in made.shards] == [
        (f"pairs/{path.name}", file_digest(path)) for path in sorted((out / "pairs").iterdir())
    ]
    assert made.dictionary["sha256"] == {
        name: file_digest(out / name) for name in ("dictionary.parquet", "dictionary.tsv")
    }


def test_thresholds_change_without_mining_again(files, tmp_path):
    run(files, tmp_path / "strict", min_pages=2, top=1)
    run(files, tmp_path / "out")
    made = run(files, tmp_path / "out", Refusing(), resume=True, min_pages=2, top=1)

    assert content(tmp_path / "out") == content(tmp_path / "strict")
    assert set(made.dictionary["dropped"]) == {"few_pages", "beyond_top"}


@dataclass(frozen=True)
class Watched(LineMiner):
    """A miner that reads on when it was reported what it has read."""

    events: tuple = ()

    def __call__(self, task, tally):
        tally.read["pages"] = 3
        until = time.monotonic() + 5
        while not any(event.counts["pages"] == 3 for event in self.events[0]):
            assert time.monotonic() < until
        yield from super().__call__(task, tally)


def test_progress_tells_what_running_and_finished_tasks_have_read(files, tmp_path):
    events = []
    miner = Watched(events=(events,))
    made = run(files[:1], tmp_path / "out", miner, executor="serial", progress=events.append)

    assert {event.doing for event in events} == {"mining"}
    assert (events[0].done, events[0].total) == (0, files[0].stat().st_size)
    assert events[-1].share == 1
    assert events[-1].counts["pairs"] == made.totals["pairs"]


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = [{here!r}]
from mined import LineMiner, run
if __name__ == "__main__":
    run({files!r}, Path({out!r}), LineMiner({kill_at!r}, {flag!r}), workers={workers}, resume=True)
"""


def mined_in_a_process(files, out, tmp_path, workers=1):
    """Mine in a process that kills itself in the middle of the third file, once."""
    kill_at = files[2].read_text("utf-8").splitlines()[3]
    script = tmp_path / "script.py"
    script.write_text(
        SCRIPT.format(
            here=str(Path(__file__).parent),
            files=list(map(str, files)),
            out=str(out),
            kill_at=kill_at,
            flag=str(tmp_path / "flag"),
            workers=workers,
        )
    )
    return subprocess.run([sys.executable, script], capture_output=True, text=True)


def test_a_killed_run_goes_on_with_the_same_result(files, tmp_path):
    run(files, tmp_path / "whole")
    done = mined_in_a_process(files, tmp_path / "out", tmp_path)
    assert done.returncode == -9
    assert list((tmp_path / "out" / "pairs").glob("*.tmp"))
    run(files, tmp_path / "out", resume=True)

    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_killed_worker_is_replaced(files, tmp_path):
    run(files, tmp_path / "whole")
    done = mined_in_a_process(files, tmp_path / "out", tmp_path, workers=2)

    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize("lost", ["pairs/part-00001.parquet", "words/part-00001.parquet"])
@pytest.mark.parametrize("cut", [None, 0, 100])
def test_half_a_task_is_done_again(files, tmp_path, lost, cut):
    run(files, tmp_path / "whole")
    run(files, tmp_path / "out")
    path = tmp_path / "out" / lost
    if cut is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:cut])
    run(files, tmp_path / "out", resume=True)

    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_folder_that_is_not_empty_is_refused(files, tmp_path):
    run(files, tmp_path / "out")

    with pytest.raises(OutputError, match="not empty; add --resume to resume its run or --force"):
        run(files, tmp_path / "out")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"config": {"profile": "strict"}}, "profile None, not 'strict'"),
        ({"miner": LineMiner(language=Language("de"))}, "lang 'en', not 'de'"),
        ({"miner": LineMiner(kind="pairs")}, "kind 'wiki', not 'pairs'"),
    ],
)
def test_another_configuration_is_refused(files, tmp_path, changed, said):
    run(files, tmp_path / "out")

    with pytest.raises(OutputError, match=said):
        run(files, tmp_path / "out", resume=True, **changed)


def test_a_changed_source_is_refused(files, tmp_path):
    run(files, tmp_path / "out")
    files[0].write_text(files[0].read_text() * 2)

    with pytest.raises(OutputError, match="other sources"):
        run(files, tmp_path / "out", resume=True)


def test_force_begins_anew(files, tmp_path):
    run(files, tmp_path / "out")
    run(files[:1], tmp_path / "out", force=True)
    run(files[:1], tmp_path / "one")

    assert content(tmp_path / "out") == content(tmp_path / "one")


@pytest.mark.parametrize("name", ["manifest.json", "pairs/part-00000.parquet"])
def test_force_leaves_the_files_of_others(files, tmp_path, name):
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    if name.endswith(".json"):
        path.write_text("{}")
    else:
        pq.write_table(PAIRS["wiki"].empty_table(), path)
    before = path.read_bytes()

    with pytest.raises(OutputError, match="noisegen did not mine"):
        run(files, tmp_path / "out", force=True)
    assert path.read_bytes() == before


def test_damage_is_counted_and_named(files, tmp_path):
    files[1].write_text("no pair\n" + files[1].read_text() + "nor this\n")
    made = run(files, tmp_path / "out")

    assert made.totals["damaged"] == 2
    assert made.damage == [f"{files[1]}: {line!r} is no pair" for line in ("no pair", "nor this")]
    assert "damaged: 2" in made.summary()


def test_damage_without_end_is_counted_and_not_kept(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text("no pair\n" * (DAMAGE_MAX + 500))
    made = run([path], tmp_path / "out")

    assert made.totals["damaged"] == DAMAGE_MAX + 500
    assert len(made.damage) == DAMAGE_MAX
    with pytest.raises(SourceError, match=r"\(and 1,499 more\)"):
        run([path], tmp_path / "strict", strict=True)


def test_damage_is_a_list_with_a_total():
    damage = Damage()
    damage += [str(number) for number in range(DAMAGE_MAX + 2)]
    damage.append("more")

    assert damage == [str(number) for number in range(DAMAGE_MAX)]
    assert damage.total == DAMAGE_MAX + 3


def test_strict_makes_damage_an_error(files, tmp_path):
    files[1].write_text("no pair\n" + files[1].read_text())

    with pytest.raises(SourceError, match=r"damaged input: .*'no pair' is no pair; --strict"):
        run(files, tmp_path / "out", strict=True)
    assert not list((tmp_path / "out").rglob("part-00001*"))


@dataclass(frozen=True)
class Failing(LineMiner):
    """A miner whose file fails in the middle."""

    error: Exception | None = None

    def __call__(self, task, tally):
        yield SentencePair("teh", "the", "en", 1, (WordPair("the", "teh"),))
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (OSError(5, "Input/output error"), SourceError, "cannot read .*0.txt: Input/output error"),
        (MemoryError(), NoisegenError, "not enough memory .*; free some"),
    ],
)
def test_what_a_miner_raises_is_one_line(files, tmp_path, error, kind, said):
    with pytest.raises(kind, match=said):
        run(files[:1], tmp_path / "out", Failing(error=error))
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_a_missing_source_is_one_line(tmp_path):
    with pytest.raises(SourceError, match=r"cannot read .*gone.txt: No such file"):
        run([tmp_path / "gone.txt"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "wrong",
    [{"workers": 0}, {"executor": "threads"}, {"part": "4/3"}, {"force": True, "resume": True}],
)
def test_wrong_usage_changes_nothing(files, tmp_path, wrong):
    with pytest.raises(UsageError):
        run(files, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


@dataclass(frozen=True)
class Odd(LineMiner):
    """A miner of words that no dictionary can hold."""

    def __call__(self, task, tally):
        words = [("a lot", "alot"), ("the", ""), ("x" * 101, "x"), ("the", "the"), ("the", "t\nhe")]
        good = WordPair("the", "teh", "kind")
        yield SentencePair("n", "c", "en", 1, (*(WordPair(*word) for word in words), good))


def test_only_single_words_are_counted(files, tmp_path):
    made = run(files[:1], tmp_path / "out", Odd())

    assert dictionary(tmp_path / "out") == {("the", "teh"): (1, 1, 0, 1.0)}
    assert made.totals["dropped"] == {"word_not_one_token": 5}


def test_no_pairs_at_all_make_an_empty_dictionary(tmp_path):
    path = tmp_path / "empty.txt"
    path.write_text("")
    made = run([path], tmp_path / "out")

    assert made.dictionary["entries"] == 0
    assert pq.read_table(tmp_path / "out" / "dictionary.parquet").num_rows == 0
    assert pq.read_table(tmp_path / "out" / "pairs").column_names == PAIRS["wiki"].names


def test_the_longest_task_is_mined_first(files, tmp_path):
    run(files, tmp_path / "out")
    shards = sorted(
        (tmp_path / "out" / "pairs").iterdir(), key=lambda path: path.stat().st_mtime_ns
    )

    sizes = [files[number_of(path.name)].stat().st_size for path in shards]
    assert sizes == sorted(sizes, reverse=True)


def test_the_tasks_of_this_file_are_numbered(files):
    assert [task.number for task in tasks_of(*files)] == [0, 1, 2, 3, 4]
    assert LineMiner() == LineMiner()


def test_the_card_lets_datasets_read_both_tables(files, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    made = run(files, tmp_path / "out")
    out, cache = str(tmp_path / "out"), str(tmp_path / "cache")

    pairs = datasets.load_dataset(out, "pairs", split="train", cache_dir=cache)
    words = datasets.load_dataset(out, "dictionary", split="train", cache_dir=cache)
    assert (len(pairs), len(words)) == (made.totals["pairs"], made.dictionary["entries"])


# What a run must not touch.


@pytest.mark.parametrize("name", ["pairs/part-00000.parquet", "dictionary.tsv"])
def test_an_input_in_the_output_is_refused_before_it_is_removed(tmp_path, name):
    made = tmp_path / "made"
    noisegen.mine_pairs(_pairs(tmp_path), made)
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    with pytest.raises(OutputError, match="is an input, and its name one of the output"):
        noisegen.mine_pairs(made / name, made, force=True)
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("how", [{"force": True}, {"resume": True}, {"part": "1/1"}])
@pytest.mark.parametrize("name", ["README.md", "dictionary.tsv", "words/part-00000.parquet"])
def test_files_of_others_are_never_written_over(tmp_path, name, how):
    theirs = tmp_path / "out" / name
    theirs.parent.mkdir(parents=True)
    if theirs.suffix == ".parquet":
        pq.write_table(pa.table({"mine": [1]}), theirs)
    else:
        theirs.write_text("mine")
    content = theirs.read_bytes()
    with pytest.raises(OutputError, match="noisegen did not mine"):
        noisegen.mine_pairs(_pairs(tmp_path), tmp_path / "out", **how)
    assert theirs.read_bytes() == content


def test_the_card_says_what_to_do_about_the_licence(tmp_path):
    noisegen.mine_pairs(_pairs(tmp_path), tmp_path / "out")

    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("---\nlicense: unknown")
    assert "(name it as `license` in the head of this card before you publish)" in card


def test_a_source_of_equal_size_that_was_written_later_is_another(tmp_path):
    source = _pairs(tmp_path)
    noisegen.mine_pairs(source, tmp_path / "out")
    source.write_text(source.read_text().replace("definately", "definatley"))
    with pytest.raises(OutputError, match="another configuration"):
        noisegen.mine_pairs(source, tmp_path / "out", resume=True)


def _pairs(folder):
    path = folder / "pairs.tsv"
    noisy = "They will definately close the old bridge near the harbour ."
    path.write_text(f"noisy\tclean\n{noisy}\t{noisy.replace('definately', 'definitely')}\n")
    return path


# The functions of the package, and the commands that are their twins.

NOISY = "They will definately close the old bridge near the harbour in spring ."
CLEAN = NOISY.replace("definately", "definitely")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"noisy": NOISY, "clean": CLEAN}) + "\n")
    return path


def test_a_function_and_its_command_write_the_same(table, tmp_path):
    made = noisegen.mine_pairs(table, tmp_path / "a", lang="en", min_count=1)
    assert made.dictionary["entries"] == 1
    assert (
        command(["mine-pairs", str(table), "-o", str(tmp_path / "b"), "-q", "--min-count", "1"])
        == 0
    )
    for name in ("dictionary.tsv", "dictionary.parquet", "pairs/part-00000.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_thresholds_of_a_profile_can_be_changed_one_by_one(table, tmp_path):
    made = noisegen.mine_pairs(table, tmp_path / "a", profile="strict", min_pages=1)
    assert made.thresholds == {
        "min_pages": 1,
        "min_count": 1,
        "balance": 3,
        "frequency": 10,
        "top": 20,
    }
    with pytest.raises(UsageError, match="--min-pages -1 is not a whole number, at least 0"):
        noisegen.mine_pairs(table, tmp_path / "b", min_pages=-1)


def test_what_is_left_out_is_told(table, tmp_path):
    (tmp_path / "notes.pdf").write_bytes(b"%PDF")
    told: list[str] = []
    noisegen.mine_pairs(tmp_path, tmp_path / "out", tell=told.append)
    [line] = told
    assert line.startswith("skipped ")
    assert "notes.pdf" in line


def test_an_option_that_is_none_is_an_error(table, tmp_path):
    with pytest.raises(UsageError, match="no option 'profil'; did you mean 'profile'"):
        noisegen.mine_pairs(table, tmp_path / "out", profil="rcp")


def test_dask_writes_the_same(table, tmp_path, cluster, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the workers are elsewhere
    again = tmp_path / "more.jsonl"
    again.write_text(table.read_text().replace("harbour", "market"))
    for name, options in (("one", {"workers": 1}), ("dask", {"executor": cluster})):
        noisegen.mine_pairs([table, again], name, **options)
    for name in ("dictionary.tsv", "pairs/part-00000.parquet", "pairs/part-00001.parquet"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "dask" / name).read_bytes()


def test_recorded_word_counts_are_not_read_again(tmp_path, monkeypatch):
    files = [tmp_path / f"{number}.txt" for number in range(4)]
    for file in files:
        file.write_text("1\tI liek tea\tI like tea\n")
    out = tmp_path / "out"
    for part in ("1/4", "2/4", "3/4"):
        run(files, out, part=part)
    hashed = []
    monkeypatch.setattr(
        folder_module, "file_digest", lambda path: hashed.append(path) or file_digest(path)
    )
    copy = out / "words/part-00001.parquet"
    copy.write_bytes(copy.read_bytes())  # of another time
    run(files, out, resume=True)
    assert hashed == [copy]


def test_older_word_counts_of_something_else_are_made_again(files, tmp_path):
    run(files, tmp_path / "whole")
    run(files, tmp_path / "out", part="1/2")
    path = tmp_path / "out" / "words" / "part-00000.parquet"
    other = pq.read_table(path)
    pq.write_table(other.slice(0, 1), path)
    os.utime(path, (1, 1))
    run(files, tmp_path / "out", resume=True)

    assert content(tmp_path / "out") == content(tmp_path / "whole")
