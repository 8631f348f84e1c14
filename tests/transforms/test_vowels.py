"""`vowl`: vowels left out inside words."""

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, LIVELY_TEXT, compare, single
from test_transforms import noised, outcomes
from test_word_kernel import ruled

import noisegen
from noisegen.errors import UsageError
from noisegen.registry import examples_in, get
from noisegen.testing import check_rate, check_transform
from noisegen.transforms.vowels import vowels_by_language, without_vowels

LANGS = ["en", "fr", "tr", "id"]
oracle.KERNELS |= {
    "vowl": ruled(lambda word, lang: without_vowels(word, vowels_by_language()[lang]))
}


@pytest.mark.parametrize("lang", LANGS)
def test_it_keeps_the_promises(lang):
    check_transform("vowl", lang)


@pytest.mark.parametrize("rate", [0.1, 1])
def test_it_agrees_with_the_oracle(demo_texts, odd_texts, wiki_sentences, rate):
    rows = demo_texts + odd_texts + wiki_sentences[:1_500]
    assert compare(single("vowl", rate=rate), rows) > 500


@pytest.mark.parametrize("lang", ["de", "es", "fr", "tr"])
def test_other_languages_agree_with_the_oracle(lang, demo):
    rows = [row["text"] for row in demo if row["lang"] == lang]
    assert compare(single("vowl", rate=0.5), rows, lang=lang) > 15


@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=50)
def test_any_text_agrees_with_the_oracle(rows, seed):
    compare(single("vowl", rate=0.7), rows, seed, lang="tr")


@pytest.mark.parametrize(
    ("lang", "text", "all_of"),
    [
        ("en", "please", {"plse", "pls"}),
        ("en", "text from would could", {"txt frm wld cld"}),
        ("en", "Would WOULD", {"Wld WLD"}),
        ("en", "problem", {"prblm", "prblem", "problm"}),
        ("en", "people", {"pple", "ppl"}),
        ("tr", "merhaba", {"mrhba", "mrhb", "mrhaba", "merhba"}),
        ("tr", "selam", {"slm", "slam", "selm"}),
        ("tr", "İyiyim", {"İyym", "İyiym", "İyyim"}),
        ("de", "schön", {"schn"}),
        ("fr", "demain", {"dmn", "dmain", "demn"}),
        ("es", "también", {"tmbn", "tmbién", "tambn"}),
        ("id", "banget", {"bngt", "bnget", "bangt"}),
    ],
)
def test_what_it_does(lang, text, all_of):
    assert outcomes("vowl", text, 500, lang=lang) == all_of


@pytest.mark.parametrize(
    "text",
    [
        "you are",
        "information technology",
        "idea they need",
        "don't it's",
        "rhythm",
        "4ever x_y_z",
        "дома",
    ],
)
def test_short_long_and_other_words_stay(text):
    assert outcomes("vowl", text, 50) == {text}


def test_the_first_letter_stays_and_consonants_too(demo_texts):
    texts = [text for text in demo_texts if text.isascii()]
    for clean, noisy in zip(texts, noised("vowl", texts), strict=True):
        for before, after in zip(clean.split(), noisy.split(), strict=True):
            assert before[0] == after[0]
            assert [c for c in before if c not in "aeiouAEIOU"] == [
                c for c in after if c not in "aeiouAEIOU"
            ]


def test_the_example_is_reachable():
    for clean, noisy in examples_in(get("vowl").summary):
        assert noisy in outcomes("vowl", clean)


def test_words_are_hit_at_the_rate():
    check_rate("vowl", "text you", lambda _, noisy: (noisy != "text you", 1), 0.1)


def test_every_language_has_its_plain_vowels():
    assert all({"a", "e", "i", "o", "u"} <= vowels for vowels in vowels_by_language().values())
    assert set(vowels_by_language()["tr"]) == set("aeıioöuüâîû")


def test_a_language_without_vowel_letters_is_refused():
    with pytest.raises(UsageError, match="vowl has no data for language 'zh'"):
        noised("vowl", "x", lang="zh")


def test_spans_and_line_breaks_stay():
    text = "please\r\ntext\nhttps://people.com/please @people #people text@people.com"
    rows = [noisegen.noise(text, "vowl:rate=1", id=number) for number in range(10)]
    assert {noisy[-58:] for noisy in rows} == {text[-58:]}
    assert all((row.count("\n"), row.count("\r\n")) == (2, 1) for row in rows)
