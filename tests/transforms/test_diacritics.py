"""`diac`: marks left out, and where they never are."""

import unicodedata
from itertools import product

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
from noisegen.transforms.diacritics import unmarked

oracle.KERNELS |= {"diac": ruled(unmarked)}
LANGS = ["en", "de", "tr", "vi", "ar", "hi", "ko", "ja"]
MARKED = "Ångström Größe GRÖSSE straße déjà vu Œuvre ñandú İyi ığdır không ệ a\u0301e\u0308 ё й"


@pytest.mark.parametrize("lang", LANGS)
def test_it_keeps_the_promises(lang):
    check_transform("diac", lang, (MARKED, "naïve", "plain text"))


@pytest.mark.parametrize("lang", ["en", "de", "da"])
def test_it_agrees_with_the_oracle(demo_texts, odd_texts, wiki_sentences, lang):
    rows = demo_texts + odd_texts + wiki_sentences[:700] + [MARKED] * 20
    assert compare(single("diac", rate=0.5), rows, lang=lang) > 50


@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=50)
def test_any_text_agrees_with_the_oracle(rows, seed):
    compare(single("diac"), rows, seed, lang="de")


@pytest.mark.parametrize(
    ("lang", "text", "all_of"),
    [
        ("es", "está allí, mañana", {"esta alli, manana"}),
        ("vi", "Không được đâu", {"Khong duoc dau"}),
        ("fr", "Œuvre déjà où ça", {"Oeuvre deja ou ca"}),
        ("pt", "não é você", {"nao e voce"}),
        ("tr", "ışık Şöför İyi AĞ", {"isik Sofor Iyi AG"}),
        ("cs", "žluťoučký kůň", {"zlutoucky kun"}),
        ("pl", "ŁÓDŹ łódź", {"LODZ lodz"}),
        ("ro", "știință țară", {"stiinta tara"}),
        ("de", "Größe", {"Groesse", "Grosse"}),
        ("de", "ÜBER", {"UEBER", "UBER"}),
        ("de", "Straße", {"Strasse"}),
        ("nb", "blåbærsyltetøy", {"blaabaersyltetoey", "blabaersyltetoy"}),
        ("da", "Æble ærø", {"Aeble aeroe", "Aeble aero"}),
        ("is", "þú ert góður Það", {"thu ert godur Thad"}),
        ("yo", "Ọjọ́ ẹ̀kọ́", {"Ojo eko"}),
        ("el", "Καλημέρα σας", {"Καλημερα σας"}),
        ("ru", "ёлка йога Ёж", {"елка йога Еж"}),
        ("uk", "їжак йде ґанок", {"їжак йде ґанок"}),
        ("ar", "مُحَمَّد أنا إلى سؤال", {"محمد انا الى سؤال"}),
        ("he", "שָׁלוֹם", {"שלום"}),
        ("hi", "हिन्दी ज़रा", {"हिन्दी ज़रा"}),
        ("th", "น้ำใส", {"น้ำใส"}),
        ("ja", "がんばって", {"がんばって"}),
        ("ko", "한국어", {"한국어"}),
        ("en", "de\u0301ja\u0300", {"deja"}),
    ],
)
def test_what_it_does(lang, text, all_of):
    words = [outcomes("diac", word, 200, lang=lang) for word in text.split(" ")]
    assert {" ".join(words) for words in product(*words)} == all_of


def test_a_word_is_spelled_in_one_way_throughout():
    """No 'Groesse' with one o for ö beside another oe."""
    assert outcomes("diac", "übermäßigöä", 200, lang="de") == {"uebermaessigoeae", "ubermassigoa"}


def test_decomposed_and_composed_words_lose_the_same(demo_texts):
    latin = [text for text in demo_texts if text != unicodedata.normalize("NFD", text)]
    latin = [text for text in latin if max(text) < "\u0370"]
    decomposed = [unicodedata.normalize("NFD", text) for text in latin]
    assert len(latin) > 30
    assert noised("diac", latin) == noised("diac", decomposed)


def test_the_example_is_reachable():
    for clean, noisy in examples_in(get("diac").summary):
        assert noisy in outcomes("diac", clean)


def test_words_with_marks_are_hit_at_the_rate():
    check_rate("diac", "déjà vu", lambda _, noisy: ("deja" in noisy, 1), 0.7)


def test_spans_and_line_breaks_stay():
    text = "é\r\nà\nhttps://a.org/é @élan #été"
    assert noisegen.noise(text, "diac:rate=1") == "e\r\na\nhttps://a.org/é @élan #été"


@pytest.mark.parametrize(
    "path", sorted(DICTIONARIES.glob("*/diac.tsv")), ids=lambda p: p.parent.name
)
def test_the_lists_hold_single_small_letters(path):
    for clean, noisy, _, _ in Lexicon.load(path).entries:
        assert len(clean) == 1
        assert clean == clean.lower() != noisy
        assert not any(unicodedata.decomposition(letter) for letter in noisy)
