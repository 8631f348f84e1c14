"""Dictionaries: thresholds, merging, every format there and back, files nobody vouches for."""

import json
import random
from collections import Counter

import pytest
from mined import run

from noisegen import cli
from noisegen.data.dictionaries import Alternative, load_dictionary
from noisegen.errors import UsageError
from noisegen.mining.counts import Count
from noisegen.mining.dictionary import (
    ThresholdTotals,
    apply_thresholds,
    counts_of,
    entries_of,
    most_frequent,
    save_dictionary,
    select,
)
from noisegen.mining.miner import Thresholds
from noisegen.noising.lexicon import Lexicon

ROWS = [
    Alternative("en", "the", "teh", 6, 4, 1, 0.75),
    Alternative("en", "the", "hte", 2, 2, 0, 0.25),
    Alternative("en", "their", "thier", 3, 3, 0, 1.0),
    Alternative("en", "été", "ete", 1, 1, 0, 1.0),
]


# Thresholds.


def slow_kept(counts, thresholds):
    """The rule, read word by word from a list in any order."""
    chosen = [
        row
        for row in counts
        if row.count
        and row.pages >= thresholds.min_pages
        and row.count >= thresholds.min_count
        and row.count >= thresholds.balance * row.reverse_count
    ]
    for row in sorted(
        chosen, key=lambda row: (row.lang, row.clean, -row.count, -row.pages, row.noisy)
    ):
        same = [other for other in chosen if other[:2] == row[:2]]
        same.sort(key=lambda row: (-row.count, -row.pages, row.noisy))
        same = same[: thresholds.top or len(same)]
        if row in same:
            prob = row.count / sum(other.count for other in same)
            yield Alternative(*row[:3], *row[4:], prob)


@pytest.mark.parametrize(
    "thresholds",
    [
        Thresholds(),
        Thresholds(min_pages=2),
        Thresholds(min_count=3, top=2),
        Thresholds(balance=3),
        Thresholds(min_pages=0, top=0),
        Thresholds(2, 4, 2, 1),
    ],
)
def test_thresholds_are_the_slow_rule(thresholds):
    dice = random.Random(3)
    words = [
        (lang, clean, noisy) for lang in ("de", "en") for clean in "abcd" for noisy in "pqrstu"
    ]
    counts = []
    for word in words:
        count = dice.choice((0, 1, 2, 5, 9))
        pages = dice.randint(1, count) if count else 0
        counts.append(Count(*word, "", count, pages, dice.choice((0, 1, 3))))
    left = ThresholdTotals()
    found = list(apply_thresholds(sorted(counts), thresholds, left))

    assert found == list(slow_kept(counts, thresholds))
    assert left.words == len({entry[:2] for entry in found})
    assert len(found) + left.dropped.total() == sum(row.count > 0 for row in counts)


def test_counts_of_a_dictionary_make_it_again():
    assert list(apply_thresholds(counts_of(ROWS), Thresholds())) == sorted(
        ROWS, key=lambda e: (e[:2], -e[3])
    )


def test_a_reverse_that_is_an_entry_is_counted_once():
    both = [Alternative("en", "a", "b", 5, 1, 3, 1.0), Alternative("en", "b", "a", 3, 1, 5, 1.0)]

    assert list(apply_thresholds(counts_of(both), Thresholds())) == both


# Merging and filtering.


def lines(pairs):
    return "".join(f"{unit}\t{noisy}\t{clean}\n" for unit, noisy, clean in pairs)


@pytest.fixture
def folders(write, tmp_path):
    """Two mining runs, and one over both of their inputs."""
    a = write("a.txt", lines([(1, "teh cat", "the cat"), (1, "teh", "the"), (2, "the", "teh")]))
    b = write("b.txt", lines([(3, "teh dog", "the dgo"), (4, "hte", "the"), (5, "teh", "the")]))
    run([a], tmp_path / "a", min_count=2)
    run([b], tmp_path / "b", min_count=2)
    run([a, b], tmp_path / "both")
    return tmp_path


def test_merged_runs_are_one_run_over_all_inputs(folders):
    entries, _ = select([folders / "a", folders / "b"], Thresholds())

    assert entries == entries_of(folders / "both")


def test_merged_files_add_their_counts(folders):
    entries, _ = select([folders / "a", folders / "b"], Thresholds())
    save_dictionary(entries, folders / "once.tsv")
    twice, _ = select([folders / "once.tsv", folders / "once.tsv"], Thresholds())

    doubled = [
        e._replace(count=2 * e.count, pages=2 * e.pages, reverse_count=2 * e.reverse_count)
        for e in entries
    ]
    assert twice == doubled


def test_a_run_is_filtered_from_all_that_it_counted(folders):
    assert {entry.noisy for entry in entries_of(folders / "b")} == {"teh"}
    entries, left = select([folders / "b"], Thresholds(min_count=1), "en")

    assert {entry.noisy for entry in entries} == {"teh", "hte", "dog"}
    assert not left.dropped
    assert select([folders / "b"], Thresholds(), "de")[0] == []


def test_the_top_is_by_count(folders):
    assert most_frequent(ROWS, 2) == [ROWS[0], ROWS[2]]


# Formats.


@pytest.mark.parametrize("ending", ["parquet", "tsv"])
def test_a_table_comes_back_as_it_was(ending, tmp_path):
    save_dictionary(ROWS, tmp_path / f"d.{ending}")
    assert load_dictionary(tmp_path / f"d.{ending}") == sorted(ROWS, key=lambda e: (e[:2], -e[3]))


def test_the_json_of_the_paper_keeps_words_and_probabilities(tmp_path):
    save_dictionary(ROWS, tmp_path / "d.json")
    content = json.loads((tmp_path / "d.json").read_text("utf-8"))

    assert content["the"] == [["teh", 0.75], ["hte", 0.25]]
    found = load_dictionary(tmp_path / "d.json")
    assert {e[1:3]: e.prob for e in found} == {e[1:3]: e.prob for e in ROWS}
    assert {entry.count for entry in found if entry.clean == "the"} == {750_000, 250_000}


def test_the_example_of_the_paper_can_be_read(write):
    path = write(
        "es.json", '{"de": [["del", 0.52], ["se", 0.32], ["do", 0.10], ["dë", 0.04], ["en", 0.02]]}'
    )

    assert [entry.noisy for entry in load_dictionary(path)] == ["del", "se", "do", "dë", "en"]


def test_a_lexicon_comes_back_with_its_counts(tmp_path):
    save_dictionary(ROWS, tmp_path / "d.tsv", "lexicon", {"source": "here", "license": "CC0-1.0"})

    assert {e[1:4] for e in load_dictionary(tmp_path / "d.tsv")} == {e[1:4] for e in ROWS}
    assert {entry.lang for entry in load_dictionary(tmp_path / "d.tsv")} == {"en"}
    lexicon = Lexicon.load(tmp_path / "d.tsv")
    assert lexicon.head["license"] == "CC0-1.0"
    assert {(e.clean, e.noisy, e.weight) for e in lexicon.entries} == {e[1:4] for e in ROWS}


def test_a_mined_dictionary_is_a_lexicon(tmp_path):
    save_dictionary(ROWS, tmp_path / "dictionary.parquet")
    lexicon = Lexicon.load(tmp_path / "dictionary.parquet")

    assert {(e.clean, e.noisy, e.weight) for e in lexicon.entries} == {e[1:4] for e in ROWS}


@pytest.mark.parametrize("kind", ["json", "lexicon"])
def test_several_languages_need_a_choice(kind, tmp_path):
    rows = [*ROWS, Alternative("de", "der", "dre", 1, 1, 0, 1.0)]
    with pytest.raises(UsageError, match=f"a {kind} file holds one language: choose with --lang"):
        save_dictionary(rows, tmp_path / "d.tsv", kind)


def test_an_unknown_ending_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match=r"unknown file extension; use .parquet, .tsv or .json"):
        save_dictionary(ROWS, tmp_path / "d.docx")


# The command.


def command(*words, capfd):
    code = cli.run(["dictionary", *map(str, words)])
    return code, *capfd.readouterr()


def test_show_prints_the_most_frequent(tmp_path, capfd):
    save_dictionary(ROWS, tmp_path / "d.tsv")
    code, stdout, stderr = command("show", tmp_path / "d.tsv", "-n", "2", capfd=capfd)

    assert (code, stderr) == (0, "")
    assert [line.split()[1:4] for line in stdout.splitlines()] == [
        ["correct", "wrong", "count"],
        ["the", "teh", "6"],
        ["their", "thier", "3"],
    ]


def test_show_says_when_a_word_has_no_entry(tmp_path, capfd):
    save_dictionary(ROWS, tmp_path / "d.tsv")
    code, _, stderr = command("show", tmp_path / "d.tsv", "-w", "cat", capfd=capfd)

    assert code == 0
    assert f"hint: {tmp_path / 'd.tsv'} has no wrong form of 'cat'" in stderr


def test_show_as_json(tmp_path, capfd):
    save_dictionary(ROWS, tmp_path / "d.tsv")
    _, stdout, _ = command("show", tmp_path / "d.tsv", "-w", "the", "--json", capfd=capfd)

    found = json.loads(stdout)
    assert found["entries"] == 4
    assert [row["noisy"] for row in found["rows"]] == ["teh", "hte"]


def test_filter_and_export_chain(folders, capfd):
    out = folders / "sure.parquet"
    code, _, stderr = command("filter", folders / "both", "-o", out, "--balance", 2, capfd=capfd)
    assert code == 0
    assert "dropped: variant 1" in stderr
    assert command("export", out, "-o", folders / "sure.json", capfd=capfd)[0] == 0

    content = json.loads((folders / "sure.json").read_text("utf-8"))
    assert Counter(map(len, content.values())).total() == len(
        {e.clean for e in load_dictionary(out)}
    )


@pytest.mark.parametrize("name", ["pairs", "words"])
def test_a_damaged_shard_of_a_run_is_named(folders, name, capfd):
    shard = folders / "both" / name / "part-00000.parquet"
    shard.write_bytes(shard.read_bytes()[:-9])
    words = ("filter", folders / "both", "-o", folders / "x.tsv", "--frequency", 2)
    code, _, stderr = command(*words, capfd=capfd)
    assert (code, stderr.count("\n")) == (1, 1)
    assert stderr.startswith(f"error: cannot read {shard}: ")


def test_merge_as_json(folders, capfd):
    words = ("merge", folders / "a", folders / "b", "-o", folders / "m.tsv", "--json")
    code, stdout, stderr = command(*words, capfd=capfd)

    assert (code, stderr) == (0, "")
    assert json.loads(stdout)["entries"] == len(load_dictionary(folders / "m.tsv"))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show", "gone.tsv"), 1, "error: cannot read dictionary 'gone.tsv': No such file"),
        (
            ("show",),
            2,
            "error: missing argument 'DICTIONARY'; see: noisegen dictionary show --help",
        ),
        (("merge", "gone", "-o", "x.tsv"), 1, "error: cannot read dictionary 'gone'"),
        (("filter", "gone.tsv", "-o", "x.tsv", "--top", "-1"), 2, "-1 is not in the range x>=0"),
        (("export", "gone.tsv", "-o", "x.tsv", "--format", "xml"), 2, "'xml' is not one of"),
    ],
)
def test_wrong_commands_are_one_clear_line(words, code, said, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    found, stdout, stderr = command(*words, capfd=capfd)

    assert (found, stdout) == (code, "")
    assert said in stderr
    assert "Traceback" not in stderr


def test_a_dictionary_without_pages_is_filtered_by_what_is_asked(tmp_path):
    (tmp_path / "a.tsv").write_text("clean\tnoisy\tcount\nthe\tteh\t3\n", "utf-8-sig")
    out = tmp_path / "b.tsv"
    assert cli.run(["dictionary", "filter", str(tmp_path / "a.tsv"), "-o", str(out)]) == 0
    assert [entry.noisy for entry in load_dictionary(out)] == ["teh"]
