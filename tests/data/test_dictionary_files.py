"""Mined dictionaries from files nobody vouches for: each fault is one clear line."""

import pyarrow as pa
import pytest

from noisegen.data import dictionaries
from noisegen.data.dictionaries import load_dictionary
from noisegen.errors import LexiconError

GOOD = {"lang": ["en"], "clean": ["the"], "noisy": ["teh"], "count": [2], "prob": [1.0]}


def changed(**columns):
    return GOOD | columns


BAD_TABLES = {
    "null word": (changed(clean=pa.array([None], pa.string())), "row 1: clean None is not one"),
    "null count": (changed(count=pa.array([None], pa.int64())), "row 1: count None is not a whole"),
    "number for a word": (changed(noisy=[3]), "column 'noisy' is not text but int64"),
    "text for a count": (changed(count=["2"]), "column 'count' is not a number but string"),
    "list": (changed(noisy=[["teh"]]), "column 'noisy' is not text but list"),
    "count 0": (changed(count=[0]), "row 1: count 0 is not a whole number from 1 to 281,474,976"),
    "huge count": (changed(count=[2**63 - 1]), "is not a whole number from 1 to 281,474,976"),
    "negative pages": (changed(pages=[-1]), "row 1: pages -1 is not a whole number from 0 to 281"),
    "half a count": (changed(count=[1.5]), "row 1: count 1.5 is not a whole number"),
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
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_one_clear_line(name, write):
    columns, said = BAD_TABLES[name]
    path = write("d.parquet", columns)

    with pytest.raises(LexiconError) as error:
        load_dictionary(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


HEAD = "clean\tnoisy\tcount\n"
BAD_TEXTS = {
    "empty.tsv": ("", "no header line"),
    "head.tsv": ("# lang: en\n", "no header line"),
    "columns.tsv": (HEAD + "the\tteh\n", "line 2: 2 columns, not 3 (tabs between)"),
    "number.tsv": (
        "# lang: en\n" + HEAD + "the\tteh\tmany\n",
        "line 3: count 'many' is not a whole number",
    ),
    "prob.tsv": ("clean\tnoisy\tprob\nthe\tteh\tinf\n", "line 2: prob 'inf' is not a share"),
    "binary.tsv": (HEAD.encode() + b"the\t\xff\xfe\t1\n", "is not UTF-8"),
    "name.tsv": ("correct\twrong\n", "no column 'clean' among: correct, wrong"),
    "not.parquet": (b"PAR1 this is none", "is not a Parquet file"),
    "empty.parquet": (b"", "is not a Parquet file"),
    "cut.json": ('{"the": [["teh", 1', "is not JSON"),
    "deep.json": ('{"the": [["teh", ' + "[" * 100_000, "is not JSON"),
    "list.json": ("[1, 2]", 'a dictionary is {"correct": [["wrong", 0.5], ...], ...}'),
    "flat.json": ('{"the": "teh"}', '[["wrong", 0.5], ...], ...}: Expected `array`, got `str`'),
    "triple.json": ('{"the": [["teh", 1, 2]]}', "Expected `array` of length 2"),
    "null.json": ('{"the": [["teh", null]]}', "prob None is not a share"),
    "true.json": ('{"the": [["teh", true]]}', "prob True is not a share"),
    "text.json": ('{"the": [["teh", "1"]]}', "prob '1' is not a share"),
    "number.json": ('{"the": [[7, 1]]}', "noisy 7 is not one word"),
    "sum.json": ('{"the": [["teh", 0.9], ["hte", 0.9]]}', "add up to 1.8, not to 1"),
    "surrogate.json": ('{"the": [["\\ud800", 1]]}', "is not JSON: JSON is malformed"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_a_bad_file_is_one_clear_line(name, write):
    content, said = BAD_TEXTS[name]

    with pytest.raises(LexiconError) as error:
        load_dictionary(write(name, content))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_or_huge_file_is_one_clear_line(tmp_path, write, monkeypatch):
    with pytest.raises(LexiconError, match="No such file"):
        load_dictionary(tmp_path / "gone.tsv")
    with pytest.raises(LexiconError, match="Is a directory"):
        load_dictionary(tmp_path)
    monkeypatch.setattr(dictionaries, "BYTES_MAX", 10)
    with pytest.raises(LexiconError, match="too large for a dictionary"):
        load_dictionary(write("d.tsv", HEAD + "the\tteh\t1\n"))


def test_a_word_repeated_by_reference_does_not_expand(write):
    """A small file whose one huge word stands in a million rows."""
    words = pa.DictionaryArray.from_arrays(
        pa.array([0] * 200_000, pa.int32()), pa.array(["t" * 2_000_000])
    )
    count = pa.array([1] * 200_000)
    path = write("bomb.parquet", {"clean": words, "noisy": words, "count": count})
    assert path.stat().st_size < 1_000_000

    with pytest.raises(LexiconError, match="words of over 100 characters"):
        load_dictionary(path)


def test_counts_and_probabilities_that_disagree_are_refused(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("clean\tnoisy\tcount\tprob\nthe\tteh\t1\t0.95\nthe\tthw\t1\t0.05\n")
    with pytest.raises(LexiconError, match="prob and count of 'the' disagree; give one of them"):
        load_dictionary(path)
