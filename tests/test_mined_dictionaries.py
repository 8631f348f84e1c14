"""The packaged dictionaries of real errors: licensed, clean, made by their tool, used by `wiki`."""

import csv
import importlib.util
import re
import unicodedata
from pathlib import Path

import pytest
from conftest import SHARED

import noisegen
from noisegen.data.dictionaries import load_dictionary
from noisegen.noising.lexicon import Lexicon
from noisegen.testing import check_transform
from noisegen.text.resources import DICTIONARIES

LANGS = ("de", "en", "es", "fr", "hi", "is", "ru", "uk")
LICENCES = {"Apache-2.0", "CC-BY-4.0", "CC-BY-SA-4.0", "MIT"}
ROOT = Path(__file__).parents[1]
REAL = [
    ("de", "müssen", "mussen"),
    ("de", "Gesellschaft", "Geselschaft"),
    ("en", "hierarchy", "heirarchy"),
    ("en", "Ukraine", "Ukrain"),
    ("en", "existence", "existance"),
    ("es", "también", "tambien"),
    ("es", "más", "mas"),
    ("fr", "cette", "cete"),
    ("fr", "à", "a"),
    ("hi", "में", "मे"),
    ("hi", "नहीं", "नही"),
    ("is", "kannski", "kanski"),
    ("is", "ég", "eg"),
    ("ru", "сегодня", "седня"),
    ("ru", "еще", "еше"),
    ("uk", "якість", "якіть"),
    ("uk", "напам'ять", "напамять"),
]
OTHER_WORDS = [
    ("en", "doors", "roofs"),
    ("en", "them", "him"),
    ("en", "organized", "organised"),
    ("es", "las", "los"),
    ("es", "mejor", "major"),
    ("fr", "est", "fut"),
    ("hi", "अपनी", "अपने"),
    ("uk", "закінчила", "скінчила"),
]


def path_of(lang):
    return DICTIONARIES / lang / "wiki.tsv"


def pairs(lang):
    return {(entry.clean, entry.noisy) for entry in load_dictionary(path_of(lang))}


def test_these_languages_have_a_dictionary():
    assert sorted(path.parent.name for path in DICTIONARIES.glob("*/wiki.tsv")) == sorted(LANGS)


@pytest.mark.parametrize("lang", LANGS)
def test_the_head_credits_a_source_whose_licence_allows_it(lang):
    head = Lexicon.load(path_of(lang)).head
    assert (head["name"], head["lang"]) == ("wiki", lang)
    assert set(head["license"].split(" AND ")) <= LICENCES
    assert len(head["source"].split("; ")) >= len(head["license"].split(" AND "))
    assert "tools/mined_dictionaries.py" in head["note"]


@pytest.mark.parametrize("lang", LANGS)
def test_entries_are_pairs_of_different_words(lang):
    entries = load_dictionary(path_of(lang))
    for entry in entries:
        assert entry.clean.lower() != entry.noisy.lower()
        assert entry.count > 0
        for word in (entry.clean, entry.noisy):
            assert word == unicodedata.normalize("NFC", word)
            assert all(unicodedata.category(sign)[0] in "LM" or sign in "'-" for sign in word)
    assert len({entry[:3] for entry in entries}) == len(entries)


@pytest.mark.parametrize("lang", LANGS)
def test_a_dictionary_is_also_a_word_list(lang):
    found = {(entry.clean, entry.noisy) for entry in Lexicon.load(path_of(lang)).entries}
    assert found == pairs(lang)


@pytest.mark.parametrize(("lang", "clean", "noisy"), REAL)
def test_real_misspellings_are_there(lang, clean, noisy):
    assert (clean, noisy) in pairs(lang)


@pytest.mark.parametrize(("lang", "clean", "noisy"), OTHER_WORDS)
def test_what_is_another_word_is_not(lang, clean, noisy):
    assert (clean, noisy) not in pairs(lang)


def test_the_page_on_mining_counts_the_entries():
    page = (ROOT / "docs" / "guides" / "mining.md").read_text("utf-8")
    told = {}
    for langs, counts in re.findall(
        r"^\| (`..`(?:, `..`)*) \| ([\d,]+(?:, [\d,]+)*) \|", page, re.M
    ):
        told |= zip(re.findall(r"`(..)`", langs), counts.split(", "), strict=True)
    assert told == {lang: f"{len(load_dictionary(path_of(lang))):,}" for lang in LANGS}


def test_words_left_out_by_hand_are_on_neither_side():
    text = (ROOT / "tools" / "mined_left_out.tsv").read_text("utf-8")
    lines = [line for line in text.splitlines() if line[:1] != "#"]
    left_out = {(row["lang"], row["word"]) for row in csv.DictReader(lines, delimiter="\t")}
    found = {(lang, word) for lang in LANGS for pair in pairs(lang) for word in pair}
    assert left_out
    assert not left_out & found


@pytest.mark.parametrize("lang", LANGS)
def test_wiki_keeps_its_promises_in_every_language(lang):
    check_transform("wiki", lang, tuple(sentences(lang)[:3]))


@pytest.mark.parametrize("lang", LANGS)
def test_wiki_writes_entries_of_the_dictionary(lang):
    texts = sentences(lang)
    noisy = [noisegen.noise(text, "wiki", seed=7, id=i, lang=lang) for i, text in enumerate(texts)]
    changed = sum(after != before for before, after in zip(texts, noisy, strict=True))
    assert changed > 0.9 * len(texts)  # a row may have words alone that are seldom misspelt
    known = pairs(lang)
    for before, after in zip(texts, noisy, strict=True):
        both = zip(before.split(), after.split(), strict=True)
        assert {pair for pair in both if pair[0] != pair[1]} <= known


def sentences(lang):
    """Return texts of the dictionary's correct words, four each."""
    words = sorted({clean for clean, _ in pairs(lang)})
    return [" ".join(words[start : start + 4]) for start in range(0, len(words) - 3, 4)][:40]


def test_the_tool_makes_the_packaged_dictionaries(tmp_path, monkeypatch):
    pytest.importorskip("wordfreq", reason="wordfreq is installed for the tool only")
    if not SHARED.exists():
        pytest.skip("no development data")
    spec = importlib.util.spec_from_file_location("tool", ROOT / "tools" / "mined_dictionaries.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr("sys.argv", ["tool", str(SHARED), str(tmp_path)])
    tool.main()
    for lang in LANGS:
        assert (tmp_path / lang / "wiki.tsv").read_bytes() == path_of(lang).read_bytes()
