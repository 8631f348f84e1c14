"""`caps` in small letters, and capitals as before."""

import unicodedata
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, LIVELY_TEXT, both, compare, single
from test_rows import compare as compare_rows
from test_transforms import noised, outcomes

import noisegen
from noisegen.errors import UsageError
from noisegen.noising.engine import Engine
from noisegen.noising.mix import Step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings, get
from noisegen.testing import ODD_TEXTS, check_rate


@pytest.mark.parametrize(
    ("case", "lang"),
    [
        ("upper", "tr"),
        ("lower", "en"),
        pytest.param("upper", "en", marks=pytest.mark.nightly),
        pytest.param("lower", "tr", marks=pytest.mark.nightly),
    ],
)
def test_it_agrees_with_the_oracle(demo_texts, odd_texts, real_sentences, case, lang):
    rows = demo_texts + odd_texts + real_sentences[:700]
    assert compare(single("caps", rate=0.5, case=case), rows, lang=lang) > 500


def test_acronyms_keep_their_capitals_where_a_row_or_sentence_begins():
    text = "RT @anna: Rain again. NASA said so. A day of Louis C.K. in the U.S."
    small = text.replace("A day", "a day")
    assert noised("caps", text, case="lower", words="first") == [text]
    assert noised("caps", text, case="lower", words="next") == [small]


@pytest.mark.parametrize("words", ["first", "next", "i", "names"])
def test_chosen_words_agree_with_the_oracle(demo_texts, odd_texts, words):
    rows = (
        demo_texts
        + odd_texts
        + ["I saw Anna. I'm here! \u2019I\u2019ve NASA.Next I", ". A. b?C"]
        + ["США и Анна. Она. Łódź i Łukasz. ŻW. Żory? Σ 𐐀𐐨 𐐀𐐀"]
    )
    recipe = single("caps", rate=0.7, case="lower", words=words)
    assert compare(recipe, rows) > 5
    assert compare_rows(Engine(recipe), rows) > 5


@pytest.mark.parametrize(
    ("words", "noisy"),
    [
        ("first", "we met Anna. She said I'm late! I know NASA."),
        ("next", "We met Anna. she said I'm late! i know NASA."),
        ("i", "We met Anna. She said i'm late! i know NASA."),
        ("names", "We met anna. She said I'm late! I know NASA."),
    ],
)
def test_words_are_chosen(words, noisy):
    text = "We met Anna. She said I'm late! I know NASA."
    assert noised("caps", text, case="lower", words=words) == [noisy]


@pytest.mark.parametrize(
    ("words", "noisy"),
    [
        ("first", "США и Анна. Она видит Łódź."),
        ("next", "США и Анна. она видит Łódź."),
        ("names", "США и анна. Она видит łódź."),
    ],
)
def test_capitals_of_every_script_are_known(words, noisy):
    assert noised("caps", "США и Анна. Она видит Łódź.", case="lower", words=words) == [noisy]


@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=50)
def test_any_text_agrees_with_the_oracle(rows, seed):
    ours, expected = both(single("caps", rate=0.7, case="lower"), rows, seed, "tr")
    assert ours == expected


def test_a_mark_that_begins_a_row_is_on_no_letter_of_the_row_before():
    assert compare(single("leet", rate=1), ["the", "\u0301elite", "elite\u0301"] * 3) == 9


@pytest.mark.parametrize(
    ("lang", "text", "noisy"),
    [
        ("en", "I saw Anna", "i saw anna"),
        ("en", "CEO O'Brien ÅNGSTRÖM", "ceo o'brien ångström"),
        ("en", "İstanbul Iğdır", "istanbul iğdır"),
        ("tr", "İstanbul Iğdır", "istanbul ığdır"),
        ("az", "İLK", "ilk"),
        ("de", "Straße STRAẞE", "straße straße"),
        ("ru", "Москва", "москва"),
        ("el", "ΟΔΟΣ ΑΣ Σ ΜΆΙΟΣ", "οδος ας σ μάιος"),
        ("zh", "東京 123", "東京 123"),
    ],
)
def test_small_letters(lang, text, noisy):
    assert outcomes("caps", text, 5, lang=lang, rate=1, case="lower") == {noisy}


@pytest.mark.parametrize(
    ("text", "noisy"),
    [
        ("δεν ξέρω τι θα κάνεις αύριο", "ΔΕΝ ΞΕΡΩ ΤΙ ΘΑ ΚΑΝΕΙΣ ΑΥΡΙΟ"),
        ("Μάιος, άυλος, γάιδαρος", "ΜΑΪΟΣ, ΑΫΛΟΣ, ΓΑΪΔΑΡΟΣ"),
        ("προϋπολογισμός καΐκι ΐ ΰ", "ΠΡΟΫΠΟΛΟΓΙΣΜΟΣ ΚΑΪΚΙ Ϊ Ϋ"),
        ("εσύ ή εγώ; η Ήρα, Ή ήταν", "ΕΣΥ Ή ΕΓΩ; Η ΗΡΑ, Ή ΗΤΑΝ"),
        ("Ἑλλάς ᾳ café", "ΕΛΛΑΣ ΑΙ CAFÉ"),
    ],
)
def test_greek_capitals_have_no_accents(text, noisy):
    for form in ("NFC", "NFD"):
        clean = unicodedata.normalize(form, text)
        [written] = outcomes("caps", clean, 5, lang="el", rate=1)
        assert unicodedata.normalize("NFC", written) == noisy
        assert noisegen.noise(clean, "caps", lang="el", id=0) == written


def test_other_languages_and_small_letters_keep_greek_accents():
    assert noised("caps", "κάνεις", lang="en", rate=1) == ["ΚΆΝΕΙΣ"]
    assert noised("caps", "Κάνεις", lang="el", rate=1, case="lower") == ["κάνεις"]


CLUSTERS = {
    "flags": "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 🇩🇪🇫🇷",
    "emoji": "👨\u200d👩\u200d👧 👍🏽 ❤\ufe0f ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 #\ufe0f\u20e3",
    "hangul": unicodedata.normalize("NFD", "안녕하세요 값"),
    "indic": "क्षत्रिय ক্ষ నమస్తే กำลัง ក្សេត្រ",
    "others": "می\u200cروم ｶﾞｷﾞ 葛\U000e0100 e\u0301te\u0301 \u0600123 \u1100\u1100\u1161\u11a8",
}
WITH_CLUSTERS = st.lists(
    st.sampled_from([*"".join(CLUSTERS.values()), *" ".join(CLUSTERS.values()).split(), "see you"]),
    max_size=12,
).map("".join)


@given(WITH_CLUSTERS, st.integers(0, 2**32))
def test_spaces_are_added_and_dropped_between_characters(text, seed):
    streams = Streams(np.array([seed], np.uint64), seed)
    steps = Recipe.of([Step("spac", {"drop_rate": 0.3, "add_rate": 0.9})])
    noised_rows = Engine(steps, Settings()).noise(pa.array([text]), streams, with_record=True)
    noisy = noised_rows.noisy.to_pylist()[0]
    whole = {0, *accumulate(map(len, regex.findall(r"\X", text)))}
    at = 0  # in `text`, while the two texts are walked
    for sign in noisy:
        while at < len(text) and text[at] != sign and text[at] in " \t":
            assert {at, at + 1} <= whole, (text, noisy)
            at += 1
        if at < len(text) and text[at] == sign:
            at += 1
        else:
            assert sign == " ", (text, noisy)
            assert at in whole, (text, noisy)


@pytest.mark.parametrize("lang", ["en", "de", "ru", "zh"])
@pytest.mark.parametrize("kind", ["flags", "emoji", "hangul"])
def test_learned_noise_keeps_emoji_and_syllables_whole(lang, kind):
    words = CLUSTERS[kind].split()
    text = "see " + " you ".join(words) + "".join(f" because{word}tomorrow" for word in words)
    known = set(regex.findall(r"\X", text))
    parts = {sign for cluster in known if len(cluster) > 1 for sign in cluster[1:]}
    for noisy in noised("channel", [text] * 200, lang=lang, rate=4):
        odd = [c for c in regex.findall(r"\X", noisy) if c not in known and parts & set(c)]
        assert not odd, noisy


def test_capitals_are_the_default_and_as_before():
    assert get("caps").parameters["case"].default == "upper"
    texts = [*ODD_TEXTS, "see you, straße ǆ don’t 4th"]
    assert noised("caps", texts, rate=1) == noised("caps", texts, rate=1, case="upper")
    assert noised("caps", "see you", rate=1) == ["SEE YOU"]


def test_small_letters_are_idempotent_and_lose_no_letter(demo_texts):
    once = noised("caps", demo_texts, rate=1, case="lower")
    assert noised("caps", once, rate=1, case="lower") == once
    assert [len(text) for text in once] == [len(text) for text in demo_texts]


def test_words_are_lowered_at_the_rate():
    rows = noised("caps", ["Anna saw"] * 20_000, rate=0.3, case="lower")
    hit = sum(row == "anna saw" for row in rows)
    assert abs(hit - 6_000) < 4 * (20_000 * 0.3 * 0.7) ** 0.5
    check_rate("caps", "saw", lambda _, noisy: (noisy == "SAW", 1), 0.3)


def test_an_unknown_case_is_named():
    with pytest.raises(UsageError, match="caps has no case 'lowr'; did you mean 'lower'"):
        noised("caps", "x", rate=1, case="lowr")
    with pytest.raises(UsageError, match="known: upper, lower"):
        noised("caps", "x", rate=1, case="none")


def test_spans_stay():
    text = "See https://A.org/B @You #Tag Me@X.org"
    assert noisegen.noise(text, "caps:case=lower") == text.replace("See", "see")
