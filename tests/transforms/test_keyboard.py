"""`mash`: several slips in a word; both forms agree."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, LIVELY_TEXT, both, compare, single
from test_transforms import noised, outcomes

import noisegen
from noisegen.errors import UsageError
from noisegen.noising.registry import examples_in, get
from noisegen.testing import check_rate, check_transform
from noisegen.text.buffers import joins
from noisegen.transforms import keyboard


@pytest.mark.parametrize("lang", ["en", "de", "es", "fr", "hi", "ru", "tr"])
def test_it_keeps_the_promises(lang):
    check_transform("mash", lang)


@pytest.mark.parametrize("rate", [0.05, pytest.param(1, marks=pytest.mark.nightly)])
def test_it_agrees_with_the_oracle(demo_texts, odd_texts, real_sentences, rate):
    rows = demo_texts + odd_texts + real_sentences[:1_000]
    assert compare(single("mash", rate=rate), rows) > 500


@pytest.mark.parametrize("lang", ["de", "es", "fr", "hi", "ru", "tr", "it"])
def test_other_languages_agree_with_the_oracle(lang, demo):
    rows = [row["text"] for row in demo if row["lang"] == lang]
    assert compare(single("mash", rate=0.7), rows * 5, lang=lang) > 15


@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=20)
def test_any_text_agrees_with_the_oracle(rows, seed):
    ours, expected = both(single("mash", rate=0.7), rows, seed)
    assert ours == expected


def test_slips_that_undo_each_other_are_none():
    """A letter is left out, and its double is doubled."""
    ours, expected = both(single("mash", rate=1), ["missed"] * 3_000)
    assert ours == expected
    stayed = [edits for noisy, _, edits in ours if noisy == "missed"]
    assert stayed == [[]] * len(stayed) != []


def test_another_layout_agrees_with_the_oracle(demo_texts):
    assert compare(single("mash", rate=1, layout="azerty"), demo_texts[:100]) > 90


def test_what_becomes_of_a_short_word():
    """One slip behind the first letter; s and d are neighbours of a on no key but ours."""
    found = outcomes("mash", "cat", 3_000)
    assert {"cta", "caat", "catt", "ct", "ca"} < found
    assert found - {"cta", "caat", "catt", "ct", "ca"} == {
        *("c" + key + "at" for key in "qwsz"),
        *("ca" + key + "t" for key in "qwszrfgy"),
        *("cat" + key for key in "rfgy"),
    }


def test_the_example_is_reachable():
    for clean, noisy in examples_in(get("mash").summary):
        assert noisy in outcomes("mash", clean, 20_000)


@pytest.mark.parametrize(
    ("word", "slips"),
    [("cat", 1), ("house", 1), ("houses", 2), ("abandoned", 2), ("background", 3)],
)
def test_longer_words_get_more_slips(word, slips):
    """A slip adds or takes at most one letter: some word shows all of them."""
    lengths = {len(noisy) - len(word) for noisy in outcomes("mash", word, 2_000)}
    assert lengths == set(range(-slips, slips + 1))


def test_the_first_letter_stays():
    assert {noisy[0] for noisy in outcomes("mash", "background", 2_000)} == {"b"}


@pytest.mark.parametrize("text", ["I am at it", "don't 4th x_y café 東京", "a" * 65, "", "?!"])
def test_short_words_and_those_with_other_signs_stay(text):
    assert outcomes("mash", text, 50) == {text}


def test_a_word_differs_from_place_to_place():
    assert len(outcomes("mash", "amazing", 3_000)) > 500


def test_kinds_are_drawn_by_their_shares():
    drawn = Counter(
        "swap"
        if len(noisy) == 3
        else "less"
        if len(noisy) == 2
        else "twice"
        if noisy in ("caat", "catt")
        else "more"
        for noisy in noised("mash", ["cat"] * 40_000, rate=1)
    )
    for kind, share in (("swap", 2 / 8), ("less", 2 / 8), ("twice", 1 / 8), ("more", 3 / 8)):
        assert abs(drawn[kind] - 40_000 * share) < 4 * (40_000 * share * (1 - share)) ** 0.5


def test_words_are_hit_at_the_rate():
    check_rate("mash", "cat", lambda _, noisy: (noisy != "cat", 1), 0.05)


def test_an_unknown_layout_is_named():
    with pytest.raises(UsageError, match="no keyboard layout named 'azert'; did you mean"):
        noised("mash", "cat", layout="azert", rate=1)


def test_spans_and_line_breaks_stay():
    text = "house\r\ncats\nhttps://people.com/please @people #people text@people.com"
    rows = [noisegen.noise(text, "mash:rate=1", id=number) for number in range(20)]
    assert {noisy[-58:] for noisy in rows} == {text[-58:]}
    assert all((row.count("\n"), row.count("\r\n")) == (2, 1) for row in rows)


@pytest.mark.parametrize("lang", keyboard.languages())
def test_a_letter_is_not_hit_as_a_mark_that_would_have_no_base(lang):
    """Marks follow no space: on Inscript, vowel signs lie beside letters."""
    layout = keyboard.keyboard_of(lang)
    letters = {e.clean for e in layout.neighbours() if not joins(ord(e.clean))}
    texts = [" ".join(sorted(letters))] * 50
    noisy = set("".join(noised("fing", texts, lang=lang, rate=1)))
    assert not [sign for sign in noisy if joins(ord(sign))]


def test_a_vowel_sign_is_hit_for_another():
    assert {noisy[1] for noisy in outcomes("fing", "कि", 500, lang="hi")} > {"ी", "ु"}
