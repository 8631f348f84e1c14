"""Dictionaries: thresholds, merging, every format there and back, files nobody vouches for."""

import json
import random
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mined import run

from noisegen import cli
from noisegen.errors import LexiconError, UsageError
from noisegen.lexicon import Lexicon
from noisegen.mining import dictionary_reading
from noisegen.mining.counts import Count
from noisegen.mining.dictionary import Alternative, Left, Thresholds, counts_of, kept
from noisegen.mining.dictionary_commands import entries_of, save, select, top
from noisegen.mining.dictionary_reading import load

ROWS = [
    Alternative("en", "the", "teh", 6, 4, 1, 0.75),
    Alternative("en", "the", "hte", 2, 2, 0, 0.25),
    Alternative("en", "their", "thier", 3, 3, 0, 1.0),
    Alternative("en", "été", "ete", 1, 1, 0, 1.0),
]


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        if isinstance(content, dict):
            pq.write_table(pa.table(content), path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


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
    for row in sorted(chosen, key=lambda row: (row.lang, row.clean, -row.count, -row.pages, row.noisy)):  # fmt: skip  # noqa: E501
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
    left = Left()
    found = list(kept(sorted(counts), thresholds, left))

    assert found == list(slow_kept(counts, thresholds))
    assert left.words == len({entry[:2] for entry in found})
    assert len(found) + left.dropped.total() == sum(row.count > 0 for row in counts)


@pytest.mark.parametrize("wrong", [{"min_pages": -1}, {"top": -2}])
def test_thresholds_below_zero_are_wrong_usage(wrong):
    with pytest.raises(UsageError, match="must be at least 0"):
        Thresholds(**wrong)


def test_counts_of_a_dictionary_make_it_again():
    assert list(kept(counts_of(ROWS), Thresholds())) == sorted(ROWS, key=lambda e: (e[:2], -e[3]))


def test_a_reverse_that_is_an_entry_is_counted_once():
    both = [Alternative("en", "a", "b", 5, 1, 3, 1.0), Alternative("en", "b", "a", 3, 1, 5, 1.0)]

    assert list(kept(counts_of(both), Thresholds())) == both


# Merging and filtering.


def lines(pairs):
    return "".join(f"{unit}\t{noisy}\t{clean}\n" for unit, noisy, clean in pairs)


@pytest.fixture
def folders(write, tmp_path):
    """Two mining runs, and one over both of their inputs."""
    a = write("a.txt", lines([(1, "teh cat", "the cat"), (1, "teh", "the"), (2, "the", "teh")]))
    b = write("b.txt", lines([(3, "teh dog", "the dgo"), (4, "hte", "the"), (5, "teh", "the")]))
    run([a], tmp_path / "a", thresholds=Thresholds(min_count=2))
    run([b], tmp_path / "b", thresholds=Thresholds(min_count=2))
    run([a, b], tmp_path / "both")
    return tmp_path


def test_merged_runs_are_one_run_over_all_inputs(folders):
    entries, _ = select([folders / "a", folders / "b"], Thresholds())

    assert entries == entries_of(folders / "both")


def test_merged_files_add_their_counts(folders):
    entries, _ = select([folders / "a", folders / "b"], Thresholds())
    save(entries, folders / "once.tsv")
    twice, _ = select([folders / "once.tsv", folders / "once.tsv"], Thresholds())

    doubled = [e._replace(count=2 * e.count, pages=2 * e.pages, reverse_count=2 * e.reverse_count)
               for e in entries]  # fmt: skip
    assert twice == doubled


def test_a_run_is_filtered_from_all_that_it_counted(folders):
    assert {entry.noisy for entry in entries_of(folders / "b")} == {"teh"}
    entries, left = select([folders / "b"], Thresholds(min_count=1), "en")

    assert {entry.noisy for entry in entries} == {"teh", "hte", "dog"}
    assert not left.dropped
    assert select([folders / "b"], Thresholds(), "de")[0] == []


def test_the_top_is_by_count(folders):
    assert top(ROWS, 2) == [ROWS[0], ROWS[2]]


# Formats.


@pytest.mark.parametrize("ending", ["parquet", "tsv"])
def test_a_table_comes_back_as_it_was(ending, tmp_path):
    save(ROWS, tmp_path / f"d.{ending}")
    assert load(tmp_path / f"d.{ending}") == sorted(ROWS, key=lambda e: (e[:2], -e[3]))


def test_the_json_of_the_paper_keeps_words_and_probabilities(tmp_path):
    save(ROWS, tmp_path / "d.json")
    content = json.loads((tmp_path / "d.json").read_text("utf-8"))

    assert content["the"] == [["teh", 0.75], ["hte", 0.25]]
    found = load(tmp_path / "d.json")
    assert {e[1:3]: e.prob for e in found} == {e[1:3]: e.prob for e in ROWS}
    assert {entry.count for entry in found if entry.clean == "the"} == {750_000, 250_000}


def test_the_example_of_the_paper_can_be_read(write):
    path = write("es.json", '{"de": [["del", 0.52], ["se", 0.32], ["do", 0.10], ["dë", 0.04], ["en", 0.02]]}')  # noqa: E501  # fmt: skip

    assert [entry.noisy for entry in load(path)] == ["del", "se", "do", "dë", "en"]


def test_a_lexicon_comes_back_with_its_counts(tmp_path):
    save(ROWS, tmp_path / "d.tsv", "lexicon", {"source": "here", "license": "CC0-1.0"})

    assert {e[1:4] for e in load(tmp_path / "d.tsv")} == {e[1:4] for e in ROWS}
    assert {entry.lang for entry in load(tmp_path / "d.tsv")} == {"en"}
    lexicon = Lexicon.load(tmp_path / "d.tsv")
    assert lexicon.head["license"] == "CC0-1.0"
    assert {(e.clean, e.noisy, e.weight) for e in lexicon.entries} == {e[1:4] for e in ROWS}


def test_a_mined_dictionary_is_a_lexicon(tmp_path):
    save(ROWS, tmp_path / "dictionary.parquet")
    lexicon = Lexicon.load(tmp_path / "dictionary.parquet")

    assert {(e.clean, e.noisy, e.weight) for e in lexicon.entries} == {e[1:4] for e in ROWS}


@pytest.mark.parametrize("kind", ["json", "lexicon"])
def test_several_languages_need_a_choice(kind, tmp_path):
    rows = [*ROWS, Alternative("de", "der", "dre", 1, 1, 0, 1.0)]
    with pytest.raises(UsageError, match=f"a {kind} file holds one language: choose with --lang"):
        save(rows, tmp_path / "d.tsv", kind)


def test_an_unknown_ending_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match=r"unknown ending; write .parquet, .tsv or .json"):
        save(ROWS, tmp_path / "d.docx")


# Files nobody vouches for.

GOOD = {"lang": ["en"], "clean": ["the"], "noisy": ["teh"], "count": [2], "prob": [1.0]}


def changed(**columns):
    return GOOD | columns


BAD_TABLES = {
    "null word": (changed(clean=pa.array([None], pa.string())), "row 1: clean None is not one"),
    "null count": (changed(count=pa.array([None], pa.int64())), "row 1: count None is no whole"),
    "number for a word": (changed(noisy=[3]), "column 'noisy' is no text but int64"),
    "text for a count": (changed(count=["2"]), "column 'count' is no number but string"),
    "list": (changed(noisy=[["teh"]]), "column 'noisy' is no text but list"),
    "count 0": (changed(count=[0]), "row 1: count 0 is no whole number from 1 up"),
    "negative pages": (changed(pages=[-1]), "row 1: pages -1 is no whole number from 0 up"),
    "half a count": (changed(count=[1.5]), "row 1: count 1.5 is no whole number"),
    "prob above 1": (changed(prob=[1.5]), "row 1: prob 1.5 is not a share"),
    "prob 0": (changed(prob=[0.0]), "row 1: prob 0.0 is not a share"),
    "prob nan": (changed(prob=[float("nan")]), "row 1: prob nan is not a share"),
    "prob too small": (changed(prob=[0.5]), "the prob of 'the' add up to 0.5, not to 1"),
    "blank": (changed(clean=["as soon"]), "row 1: clean 'as soon' is not one word"),
    "empty": (changed(noisy=[""]), "row 1: noisy '' is not one word"),
    "line break": (changed(noisy=["te\nh"]), r"row 1: noisy 'te\nh' is not one word"),
    "equal": (changed(noisy=["the"]), "row 1: noisy 'the' is equal to clean"),
    "long": (changed(noisy=["t" * 101]), "noisy '" + "t" * 37 + "...' is not one word"),
    "huge": (changed(noisy=["t" * 5_000_000]), "words of over 100 characters"),
    "twice": ({name: column * 2 for name, column in GOOD.items()}, "'the' has the same wrong form"),
    "no column": ({"clean": ["the"], "noisi": ["teh"]}, "no column 'noisy' among: clean, noisi; "),
    "no count": ({"clean": ["the"], "noisy": ["teh"]}, "no column 'count' among: clean, noisy"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_one_clear_line(name, write):
    columns, said = BAD_TABLES[name]
    path = write("d.parquet", columns)

    with pytest.raises(LexiconError) as error:
        load(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


HEAD = "clean\tnoisy\tcount\n"
BAD_TEXTS = {
    "empty.tsv": ("", "no header line"),
    "head.tsv": ("# lang: en\n", "no header line"),
    "columns.tsv": (HEAD + "the\tteh\n", "line 2: 2 columns, not 3 (tabs between)"),
    "number.tsv": ("# lang: en\n" + HEAD + "the\tteh\tmany\n", "line 3: count 'many' is no number"),
    "prob.tsv": ("clean\tnoisy\tprob\nthe\tteh\tinf\n", "line 2: prob inf is not a share"),
    "binary.tsv": (HEAD.encode() + b"the\t\xff\xfe\t1\n", "is not UTF-8"),
    "name.tsv": ("correct\twrong\n", "no column 'clean' among: correct, wrong"),
    "not.parquet": (b"PAR1 this is none", "is not a Parquet file"),
    "empty.parquet": (b"", "is not a Parquet file"),
    "cut.json": ('{"the": [["teh", 1', "is not JSON"),
    "deep.json": ("[" * 100_000, "is not JSON"),
    "list.json": ("[1, 2]", 'a dictionary is {"correct": [["wrong", 0.5], ...], ...}'),
    "flat.json": ('{"the": "teh"}', "at 'the': no list of [wrong, probability]"),
    "triple.json": ('{"the": [["teh", 1, 2]]}', "is not [wrong, probability]"),
    "null.json": ('{"the": [["teh", null]]}', "prob None is not a share"),
    "true.json": ('{"the": [["teh", true]]}', "prob True is not a share"),
    "text.json": ('{"the": [["teh", "1"]]}', "prob 1 is not a share"),
    "number.json": ('{"the": [[7, 1]]}', "noisy 7 is not one word"),
    "sum.json": ('{"the": [["teh", 0.9], ["hte", 0.9]]}', "add up to 1.8, not to 1"),
    "surrogate.json": ('{"the": [["\\ud800", 1]]}', "is not Unicode"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_a_bad_file_is_one_clear_line(name, write):
    content, said = BAD_TEXTS[name]

    with pytest.raises(LexiconError) as error:
        load(write(name, content))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_or_huge_file_is_one_clear_line(tmp_path, write, monkeypatch):
    with pytest.raises(LexiconError, match="No such file"):
        load(tmp_path / "gone.tsv")
    with pytest.raises(LexiconError, match="Is a directory"):
        load(tmp_path)
    monkeypatch.setattr(dictionary_reading, "BYTES_MAX", 10)
    with pytest.raises(LexiconError, match="no dictionary"):
        load(write("d.tsv", HEAD + "the\tteh\t1\n"))


def test_a_word_repeated_by_reference_does_not_expand(write):
    """A small file whose one huge word stands in a million rows."""
    words = pa.DictionaryArray.from_arrays(
        pa.array([0] * 200_000, pa.int32()), pa.array(["t" * 2_000_000])
    )
    count = pa.array([1] * 200_000)
    path = write("bomb.parquet", {"clean": words, "noisy": words, "count": count})
    assert path.stat().st_size < 1_000_000

    with pytest.raises(LexiconError, match="words of over 100 characters"):
        load(path)


# The command.


def command(*words, capfd):
    code = cli.run(["dictionary", *map(str, words)])
    return code, *capfd.readouterr()


def test_show_prints_the_most_frequent(tmp_path, capfd):
    save(ROWS, tmp_path / "d.tsv")
    code, stdout, stderr = command("show", tmp_path / "d.tsv", "-n", "2", capfd=capfd)

    assert (code, stderr) == (0, "")
    assert [line.split()[1:4] for line in stdout.splitlines()] == [
        ["correct", "wrong", "count"],
        ["the", "teh", "6"],
        ["their", "thier", "3"],
    ]


def test_show_says_when_a_word_has_no_entry(tmp_path, capfd):
    save(ROWS, tmp_path / "d.tsv")
    code, _, stderr = command("show", tmp_path / "d.tsv", "-w", "cat", capfd=capfd)

    assert code == 0
    assert f"hint: {tmp_path / 'd.tsv'} has no wrong form of 'cat'" in stderr


def test_show_as_json(tmp_path, capfd):
    save(ROWS, tmp_path / "d.tsv")
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
    assert Counter(map(len, content.values())).total() == len({e.clean for e in load(out)})


def test_merge_as_json(folders, capfd):
    words = ("merge", folders / "a", folders / "b", "-o", folders / "m.tsv", "--json")
    code, stdout, stderr = command(*words, capfd=capfd)

    assert (code, stderr) == (0, "")
    assert json.loads(stdout)["entries"] == len(load(folders / "m.tsv"))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show", "gone.tsv"), 1, "error: cannot read dictionary 'gone.tsv': No such file"),
        (("show",), 2, "Missing argument 'DICTIONARY'"),
        (("merge", "gone", "-o", "x.tsv"), 1, "error: cannot read dictionary 'gone'"),
        (("filter", "gone.tsv", "-o", "x.tsv", "--top", "-1"), 2, "--top -1 must be at least 0"),
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
    assert [entry.noisy for entry in load(out)] == ["teh"]


def test_counts_and_probabilities_that_disagree_are_refused(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("clean\tnoisy\tcount\tprob\nthe\tteh\t1\t0.95\nthe\tthw\t1\t0.05\n")
    with pytest.raises(LexiconError, match="prob and count of 'the' disagree; give one of them"):
        load(path)
