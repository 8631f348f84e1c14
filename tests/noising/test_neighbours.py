"""Counts of neighbouring words."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisegen.errors import LexiconError
from noisegen.noising import neighbours
from noisegen.noising.neighbours import FILE, NeighbourCounts
from noisegen.noising.profile import END, START
from noisegen.text.resources import DICTIONARIES

TEXTS = [
    "I saw Ann in Rome.",
    "We met Ann, in Rome.",
    "Ask Ann\u2019s friend in Rome",
    "Ann in Rome",
]


def test_words_and_neighbours_are_counted_in_lower_case():
    counts = NeighbourCounts.of(TEXTS)
    assert counts.words["ann"] == 3
    assert counts.words["ann's"] == 1
    assert counts.words[START] == len(TEXTS)
    assert counts.pairs["in", "rome"] == 4
    assert counts.pairs["rome", END] == 2
    assert counts.pairs["rome", "."] == 2


def test_a_word_with_a_capital_inside_sentences_has_a_usual_form():
    assert NeighbourCounts.of(TEXTS).usual == {"rome": "Rome"}  # Ann stands inside a sentence twice
    assert NeighbourCounts.of([text.lower() for text in TEXTS]).usual == {}


def test_neighbours_make_a_word_more_or_less_likely():
    counts = NeighbourCounts.load("en")
    assert counts.lift("going", "to") > 1 > 0 > counts.lift("going", "dog")
    assert counts.lift("qwxz", "to") == 0
    shares = [counts.share(word) for word in (*counts.words, "qwxz")]
    assert min(shares) == shares[-1] > 0
    assert sum(shares) == pytest.approx(1, abs=0.001)


def test_own_text_counts_as_much_as_the_packaged_text():
    ours, own = NeighbourCounts.load("en"), NeighbourCounts.of(["zorb zorb zorb"] * 10)
    joined = ours.joined(own)
    assert joined.words["zorb"] == neighbours.OWN_MAX * 30
    assert joined.words["the"] == ours.words["the"]


def test_counts_are_stored_and_read(tmp_path, monkeypatch):
    (tmp_path / "xx").mkdir()
    counts = NeighbourCounts.of(TEXTS)
    counts.save(tmp_path / "xx" / FILE, {"source": "made up", "license": "CC0-1.0"})
    monkeypatch.setattr(neighbours, "DICTIONARIES", tmp_path)
    assert NeighbourCounts.load("xx") == counts
    assert NeighbourCounts.load("yy").words == {}


def test_a_damaged_file_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "xx").mkdir()
    (tmp_path / "xx" / FILE).write_bytes(b"PAR1 no")
    monkeypatch.setattr(neighbours, "DICTIONARIES", tmp_path)
    with pytest.raises(LexiconError, match=r"cannot read .*neighbours\.parquet: "):
        NeighbourCounts.load("xx")
    pq.write_table(pa.table({"before": [""], "word": ["a" * 2_000]}), tmp_path / "xx" / FILE)
    with pytest.raises(LexiconError, match="cannot read"):
        NeighbourCounts.load("xx")


@pytest.mark.parametrize(
    "path", sorted(DICTIONARIES.glob(f"*/{FILE}")), ids=lambda p: p.parent.name
)
def test_packaged_counts_name_source_and_licence(path):
    head = {key.decode(): value.decode() for key, value in pq.read_schema(path).metadata.items()}
    assert "NTREX-128" in head["source"]
    assert head["license"] == "CC-BY-SA-4.0"
    assert head["lang"] == path.parent.name
    assert NeighbourCounts.load(path.parent.name).words.total() > 10_000
