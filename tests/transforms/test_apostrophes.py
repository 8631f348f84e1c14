"""`apos`: apostrophes left out or misplaced."""

import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, LIVELY_TEXT, compare, single
from test_transforms import noised, outcomes
from test_word_kernel import ruled

import noisegen
from noisegen.registry import examples_in, get
from noisegen.testing import check_rate, check_transform
from noisegen.transforms.apostrophes import misplaced

oracle.KERNELS |= {"apos": ruled(misplaced)}
APOSTROPHES = (
    "don't don’t I’m rock'n'roll l'été aujourd'hui м'яч Ankara'da 'quoted' dogs' O'Brien DON'T"
)


@pytest.mark.parametrize("lang", ["en", "fr", "it", "uk", "tr"])
def test_it_keeps_the_promises(lang):
    check_transform("apos", lang, ("I don't know what's wrong, l'ami.", "м'яч", "Ankara'da"))


@pytest.mark.parametrize("lang", ["en", "fr"])
def test_it_agrees_with_the_oracle(demo_texts, odd_texts, wiki_sentences, lang):
    rows = demo_texts + odd_texts + wiki_sentences[:2_000] + [APOSTROPHES] * 50
    assert compare(single("apos"), rows, lang=lang) > 100


@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=50)
def test_any_text_agrees_with_the_oracle(rows, seed):
    compare(single("apos", rate=0.7), rows, seed)


@pytest.mark.parametrize(
    ("lang", "text", "all_of"),
    [
        ("en", "don't", {"dont", "don t", "don;t", "don,t", "don`t", "don´t", "do'nt", "dont'"}),
        ("en", "It’s", {"Its", "It s", "It;s", "It,s", "It`s", "It´s", "I’ts", "Its’"}),
        ("en", "rock'n'roll", {"rocknroll", "rock n'roll", "rock;n'roll", "rock,n'roll",
                               "rock`n'roll", "rock´n'roll"}),
        ("fr", "j'ai", {"jai", "j ai", "j;ai", "j,ai", "j`ai", "j´ai"}),
        ("it", "c'è", {"cè", "c è", "c;è", "c,è", "c`è", "c´è"}),
        ("uk", "м’яч", {"мяч", "м яч", "м;яч", "м,яч", "м`яч", "м´яч", "мяч’"}),
        ("tr", "Ankara'nın", {"Ankaranın", "Ankara nın", "Ankara;nın", "Ankara,nın",
                              "Ankara`nın", "Ankara´nın"}),
        ("en", "I'm", {"Im", "I m", "I;m", "I,m", "I`m", "I´m", "Im'"}),
        ("en", "5'11", {"5'11"}),
        ("en", "90's", {"90s", "90 s", "90;s", "90,s", "90`s", "90´s", "9'0s", "90s'"}),
        ("en", "the dogs' tails", {"the dogs' tails"}),
    ],
)  # fmt: skip
def test_what_it_does(lang, text, all_of):
    assert outcomes("apos", text, 3_000, lang=lang) == all_of


def test_the_example_is_reachable():
    for clean, noisy in examples_in(get("apos").summary):
        assert noisy in outcomes("apos", clean)


def test_most_are_left_out():
    noisy = noised("apos", ["don't"] * 5_000)
    assert 0.74 < noisy.count("dont") / 5_000 < 0.82


def test_words_with_one_are_hit_at_the_rate():
    check_rate("apos", "don't you", lambda _, noisy: ("don't" not in noisy, 1), 0.3)


def test_spans_and_line_breaks_stay():
    text = "don't\r\nit's\nhttps://a.org/don't @o'neil #it's"
    rows = [noisegen.noise(text, "apos:rate=1", id=number) for number in range(30)]
    for noisy in rows:
        assert (noisy.count("\n"), noisy.count("\r\n")) == (2, 1)
        assert "https://a.org/don't @o" in noisy
