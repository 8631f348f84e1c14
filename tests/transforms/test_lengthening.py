"""`long`: where letters are held, how often, and the slow twin."""

import re
from collections import Counter
from itertools import groupby

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, LIVELY_TEXT, compare, single
from test_transforms import noised, outcomes
from test_word_kernel import ruled

import noisegen
from noisegen.lexicon import Lexicon
from noisegen.registry import DICTIONARIES, examples_in, get
from noisegen.testing import check_rate, check_transform
from noisegen.transforms.lengthening import lengthened

oracle.KERNELS |= {"long": ruled(lengthened)}
LISTS = sorted(DICTIONARIES.glob("??/long.tsv"))
HELD = "so no please really omg yesss hello SO So Pleased cat Anna CEO NASA été über İyi qzx a1 x"


def collapsed(text):
    return "".join(letter for letter, _ in groupby(text))


@pytest.mark.parametrize("lang", ["en", "de", "hi", "ru", "vi", "ar", "ja"])
def test_it_keeps_the_promises(lang):
    check_transform("long", lang)


@pytest.mark.parametrize("rate", [0.2, 1])
def test_it_agrees_with_the_oracle(demo_texts, odd_texts, wiki_sentences, rate):
    rows = demo_texts + odd_texts + wiki_sentences[:1_500] + [HELD] * 50
    assert compare(single("long", rate=rate), rows) > 200


@pytest.mark.parametrize("lang", ["de", "es", "fr", "hi", "ru", "tr"])
def test_other_languages_agree_with_the_oracle(lang, demo):
    rows = [row["text"] for row in demo if row["lang"] in (lang, "en")]
    assert compare(single("long", rate=1), rows, lang=lang) > 5


@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=50)
def test_any_text_agrees_with_the_oracle(rows, seed):
    compare(single("long", rate=0.7), rows, seed)


@pytest.mark.parametrize(
    ("lang", "text", "one_of"),
    [
        ("en", "so good", {"sooo goood", "soooo goood", "sooo gooood"}),
        ("en", "please", {"pleaseee", "pleaaase"}),
        ("en", "No", {"Nooo", "Noooo"}),
        ("en", "NO", {"NOOO"}),
        ("en", "Oh", {"Ooooh", "Ohhh"}),
        ("en", "hmm", {"hmmmm"}),
        ("de", "schön", {"schööön"}),
        ("es", "mucho", {"muuucho"}),
        ("fr", "trop", {"trooop"}),
        ("ru", "очень", {"оччччень", "очееень"}),
        ("tr", "çok", {"çoook"}),
        ("vi", "quá", {"quááá"}),
        ("hi", "यार", {"याााार"}),
    ],
)  # fmt: skip
def test_what_it_does(lang, text, one_of):
    assert outcomes("long", text, 500, lang=lang) & one_of


def test_the_example_is_reachable():
    for clean, noisy in examples_in(get("long").summary):
        assert noisy in outcomes("long", clean, 5_000)


def test_nothing_but_letters_already_there_is_added(demo_texts):
    for clean, noisy in zip(demo_texts, noised("long", demo_texts), strict=True):
        assert collapsed(noisy.lower()) == collapsed(clean.lower())


def test_words_have_their_share_of_the_rate():
    """'so' weighs 8 of 8 in the list, 'there' 2; 'banter' is on no list."""
    noisy = [row.split(" ") for row in noised("long", ["so there banter"] * 40_000, rate=0.8)]
    for number, (word, share) in enumerate((("so", 1), ("there", 1 / 4), ("banter", 1 / 40))):
        hit, rate = sum(row[number] != word for row in noisy), 0.8 * share
        assert abs(hit - 40_000 * rate) < 4 * (40_000 * rate * (1 - rate)) ** 0.5


def test_words_of_the_list_are_held_at_the_rate():
    check_rate("long", "please so", lambda _, noisy: (sum(map(held, noisy.split())), 2), 0.2)


def held(word):
    return word not in ("please", "so")


@pytest.mark.parametrize(
    "text", ["x", "CEO USA", "a1b2 x_y", "zzz brrrr", "qzx", "incomprehensible", "東京 ไทย 한국"]
)
def test_acronyms_numbers_and_what_is_held_already_stay(text):
    assert outcomes("long", text) == {text}


def test_letters_with_their_marks_apart_stay():
    assert outcomes("long", "e\u0301te\u0301") == {"e\u0301te\u0301"}


def test_one_to_eight_letters_are_added_and_many_seldom():
    lengths = Counter(len(noisy) - 2 for noisy in noised("long", ["so"] * 20_000, rate=1))
    assert set(lengths) == set(range(1, 9))
    assert lengths[2] == max(lengths.values())
    assert 0.05 < sum(lengths[n] for n in (6, 7, 8)) / 20_000 < 0.09


def test_spans_and_line_breaks_stay():
    text = "so\nno\r\nplease see https://so.com/noyes @hello #please so@no.com"
    rows = [noisegen.noise(text, "long:rate=1", id=number) for number in range(30)]
    assert len(set(rows)) > 20
    for noisy in rows:
        assert (noisy.count("\n"), noisy.count("\r\n")) == (2, 1)
        assert noisy.endswith(" https://so.com/noyes @hello #please so@no.com")


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.parent.name)
def test_the_lists_double_one_letter_of_words_as_they_are_read(path):
    for clean, noisy, _, _ in Lexicon.load(path).entries:
        assert noisy in {clean[: at + 1] + clean[at:] for at in range(len(clean))}
        assert clean == clean.lower()
        assert re.fullmatch(r"\S+", clean)
