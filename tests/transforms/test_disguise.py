"""`look`, `font` and `hide`: what they write, what undoes it, how often."""

import unicodedata

import pytest
from test_transforms import noised, outcomes

import noisegen
from noisegen.errors import UsageError
from noisegen.noising.lexicon import Lexicon
from noisegen.noising.recipe import Recipe, recipe_names
from noisegen.testing import check_rate, check_transform
from noisegen.text.resources import DICTIONARIES
from noisegen.transforms.disguise import ALPHABETS

NAMES = ("look", "font", "hide")
LANGS = ("en", "ru", "el", "ar", "he", "hi", "th", "ja", "ko")
TEXT = "Get free money now from PayPal, code x7; Привет, друзья! Αθήνα école مرحبا"


def undone(text):
    plain = unicodedata.normalize("NFKC", text)
    return "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", LANGS)
def test_they_keep_the_promises(name, lang):
    check_transform(name, lang, (TEXT, "plain text"))


def test_look_alikes_are_licensed_pairs_that_normalization_leaves_apart():
    lexicon = Lexicon.load(DICTIONARIES / "any" / "look.tsv")
    pairs = {(pair.clean, pair.noisy) for pair in lexicon.entries}
    assert ("a", "а") in pairs
    assert ("А", "A") in pairs
    for clean, noisy in pairs:
        assert len(clean) == len(noisy) == 1
        assert unicodedata.normalize("NFKC", noisy) == noisy != clean
        assert unicodedata.bidirectional(clean) == unicodedata.bidirectional(noisy)
        assert clean.isalpha()
        assert noisy.isalpha()


def test_every_large_alphabet_has_look_alikes():
    for text in ("paypal", "сохранить", "ΑΘΗΝΑ", "կարմիր", "العربية", "カタカナ"):
        assert outcomes("look", text, rate=0.5) - {text}


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_normalization_undoes_styled_letters(alphabet):
    noisy = noised("font", "Free money, x7 and école", rate=1, alphabet=alphabet)[0]
    assert noisy.split()[0] != "Free"
    assert unicodedata.normalize("NFKC", noisy) == "Free money, x7 and école"


def test_a_row_has_one_styled_alphabet():
    found = {unicodedata.name(row[0])[:20] for row in noised("font", ["Free"] * 200, rate=1)}
    assert len(found) == len(ALPHABETS)
    for row in noised("font", ["free free free"] * 50, rate=1):
        assert len(set(row.split())) == 1


@pytest.mark.parametrize("signs", ["zero-width", "hyphen"])
def test_leaving_out_format_characters_undoes_hidden_signs(signs):
    for row in noised("hide", [TEXT] * 100, rate=1, signs=signs):
        assert row != TEXT
        assert undone(row) == undone(TEXT)


def test_marks_of_direction_show_the_word_as_before():
    found = outcomes("hide", "free", rate=1, signs="direction")
    assert found == {"\u202eeerf\u202c", "f\u200eree", "fr\u200eee", "fre\u200ee"}
    assert outcomes("hide", "مرحبا", rate=1, signs="zero-width") == {"مرحبا"}
    assert all("\u200f" in form for form in outcomes("hide", "مرحبا", rate=1))


@pytest.mark.parametrize(
    ("name", "text", "candidates"),
    [("look", "ace ace", 6), ("font", "one two 12", 2), ("hide", "one two 12 a", 2)],
)
def test_the_rate_is_the_chance(name, text, candidates):
    def hits(clean, noisy):
        if name == "look":
            return sum(map(str.__ne__, clean, noisy)), candidates
        return sum(map(str.__ne__, clean.split(), noisy.split())), candidates

    check_rate(name, text, hits, 0.3)


def test_links_and_names_stay():
    text = "See https://paypal.com/a and @casino or mail casino@paypal.com now"
    for name in NAMES:
        for row in noised_rows(name, text):
            assert "https://paypal.com/a" in row
            assert "@casino" in row
            assert "casino@paypal.com" in row


def noised_rows(name, text):
    return noisegen.noise([f"{text} {n}" for n in range(100)], f"{name}:rate=1", seed=3)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("font:alphabet=blod", "font has no alphabet 'blod'; did you mean 'bold'?"),
        ("hide:signs=xyz", "hide has no signs 'xyz'; known: zero-width, hyphen, direction, any"),
    ],
)
def test_other_kinds_are_refused(step, message):
    with pytest.raises(UsageError) as refused:
        noisegen.noise("free", step)
    assert str(refused.value) == message


@pytest.mark.parametrize("name", recipe_names())
def test_no_recipe_has_them(name):
    recipe = Recipe.named(name)
    for lang in ("en", *recipe.languages):
        assert not {*NAMES} & {step.transform for step in recipe.mix_of(lang).steps()}
