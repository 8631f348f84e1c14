"""`latn`: words of other scripts written in Latin letters."""

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, KINDS, both, compare, single
from test_transforms import noised, outcomes

import noisegen
from noisegen.noising.engine import Engine
from noisegen.noising.plan import Streams
from noisegen.noising.registry import Settings, examples_in, get
from noisegen.testing import check_rate, check_transform
from noisegen.text.resources import DICTIONARIES
from noisegen.transforms.phonetic import letters_of, with_schwas

SAMPLES = {
    "ar": ["صباح الخير، كيف حالك؟", "أنا مش عارف ليش ما جاء أمس.", "مكتبُ الوزير شكراً"],
    "bg": ["Какво правиш днес?", "Ще дойда утре, защо не."],
    "el": ["Καλημέρα, τι κάνεις;", "Θα έρθω αύριο και εγώ."],
    "fa": ["سلام، چطوری؟", "من نمی‌دانم چرا دیروز نیامد."],
    "hi": ["तुम क्या कर रहे हो?", "मैं घर जा रहा हूँ। समझना ज़रूर।"],
    "hy": ["Բարև, ինչպես ես։", "Ուզում եմ տուն գնալ։"],
    "ka": ["გამარჯობა, როგორ ხარ?", "კარგად, შენ?"],
    "mk": ["Што правиш денес?", "Ќе дојдам утре, ѓон."],
    "ru": ["Привет, как дела?", "Ты что делаешь сейчас? ЩУКА Ёж съел."],
    "sr": ["Шта радиш данас?", "Ђак љуби џеп, Његош."],
    "uk": ["Привіт, що робиш?", "Дякую, п'ятниця й м’яч."],
    "ur": ["آپ کیسے ہیں؟", "کل ملتے ہیں، دوست۔"],
}
LIVELY_TEXT = st.lists(
    st.sampled_from(
        [word for texts in SAMPLES.values() for text in texts for word in text.split()]
        + ["hello", "東京", "ﬁ", "é", "Ы", "।", "ъ", "\n", "@имя", "x2", "क्", "़", "ं"]
    ),
    max_size=15,
).map(" ".join)


@cache
def rows_of(lang: str) -> list[list[str]]:
    lines = (DICTIONARIES / lang / "latn.tsv").read_text(encoding="utf-8").split("\n")
    return [line.split("\t") for line in lines if line and not line.startswith("#")][1:]


@pytest.mark.parametrize("lang", SAMPLES)
def test_it_keeps_the_promises(lang):
    check_transform("latn", lang, tuple(SAMPLES[lang]))


def test_its_languages_are_those_with_a_letter_table():
    assert get("latn").languages() == list(SAMPLES)


@pytest.mark.parametrize("lang", SAMPLES)
@pytest.mark.parametrize("rate", [0.5, 1])
def test_it_agrees_with_the_oracle(lang, rate, demo, odd_texts):
    rows = SAMPLES[lang] * 20 + [row["text"] for row in demo if row["lang"] == lang]
    assert compare(single("latn", rate=rate), rows + odd_texts[:-1], lang=lang) >= 20


@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=10), st.integers(0, 2**64 - 1))
@settings(max_examples=25)
@pytest.mark.parametrize("lang", ["hi", "ru", "el"])
def test_any_text_agrees_with_the_oracle(lang, rows, seed):
    ours, expected = both(single("latn", rate=0.8), rows, seed, lang)
    assert ours == expected


@pytest.mark.parametrize(
    ("lang", "text", "some_of"),
    [
        ("hi", "क्या कर रहे हो", {"kya kar rahe ho"}),
        ("hi", "मैं घर जा रहा हूँ।", {"main ghar ja raha hoon.", "mai ghar ja raha hu."}),
        ("hi", "नहीं", {"nahi", "nahin", "nai"}),
        ("hi", "हो ।", {"ho ."}),
        ("hi", "टेनिस रिकॉर्ड", {"tennis record"}),
        ("hi", "ऑफ़ लोकप्रिय", {"of lokapriya"}),
        ("ru", "привет", {"privet"}),
        ("ru", "что ЧТО Что", {"chto 4TO Chto", "4to CHTO 4to"}),
        ("ru", "хорошая", {"horoshaya", "xoroshaja", "horoshaia"}),
        ("ru", "Щука", {"Schuka", "Shuka"}),
        ("uk", "щось її", {"schos yiyi", "shos ii"}),
        ("uk", "п'ять", {"pyat"}),
        ("bg", "шегувам се", {"6eguvam se", "sheguvam se"}),
        ("sr", "шта ђак", {"sta djak", "šta đak"}),
        ("mk", "ќе", {"kje", "ke"}),
        ("el", "καλημέρα", {"kalimera", "kalhmera"}),
        ("el", "θέλω", {"thelo", "8elw"}),
        ("ka", "გამარჯობა", {"gamarjoba"}),
        ("hy", "որ ես", {"vor yes", "vor es"}),
        ("hy", "Բարեւ", {"Barev"}),
        ("fa", "می\u200cدانم", {"midanam", "midaanam", "midonam"}),
        ("fa", "کتاب\u200cها", {"ketabha", "ketaabhaa", "ktabha"}),
    ],
)
def test_what_it_does(lang, text, some_of):
    assert outcomes("latn", text, 500, lang=lang) & some_of


@pytest.mark.parametrize("rate", [0.5, 1])
def test_the_joiner_between_two_latin_words_goes(rate):
    rows = ["می\u200cدانم", "کتاب\u200cها را نمی\u200cدانم\u200c", "می\u200c", "abc\u200cمن"] * 50
    ours, expected = both(single("latn", rate=rate), rows, 7, "fa")
    assert ours == expected
    assert not any(re.search("(?<!abc)(?<=[a-z])\u200c[a-z]", noisy) for noisy, *_ in ours)


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("टेनिस", "tenis"),
        ("यूरोप", "yurop"),
        ("व्यक्ति", "wyakti"),
        ("खिलाफ", "khilaph"),
        ("लोकप्रिय", "lokapriy"),
    ],
)
def test_hindi_is_spelled_as_people_spell_it(text, never):
    assert never not in outcomes("latn", text, 500, lang="hi")


def test_its_examples_are_reachable():
    for clean, noisy in examples_in(get("latn").summary):
        assert noisy in outcomes("latn", clean, 100, lang="ru")


@pytest.mark.parametrize(
    ("word", "spoken"),
    [
        ("करना", "कaरना"),
        ("समझना", "सaमaझना"),
        ("नमकीन", "नaमकीन"),
        ("लड़का", "लaड़का"),
        ("सरकार", "सaरकार"),
        ("मदद", "मaदaद"),
        ("बचपन", "बaचपaन"),
        ("लगभग", "लaगभaग"),
        ("मतलब", "मaतलaब"),
        ("औरत", "औरaत"),
        ("मित्र", "मित्रa"),
        ("धर्म", "धaर्म"),
        ("संसद", "सaंसaद"),
        ("न", "नa"),
        ("कई", "कaई"),
        ("हो", "हो"),
        ("", ""),
    ],
)
def test_silent_vowels_of_hindi_are_left_out(word, spoken):
    """Each inherent vowel that is heard is written 'a'."""
    assert with_schwas(word) == spoken


@pytest.mark.parametrize("text", ["hello café", "東京", "шɣш 2021", "їжак", "مرحبا", "x2 don't"])
def test_words_that_the_table_cannot_write_stay_whole(text):
    kept = [word for word in text.split() if word not in ("2021",)]
    for noisy in outcomes("latn", text, 20, lang="ru"):
        assert [word for word in noisy.split() if word in kept] == kept


def test_a_word_is_latin_throughout_or_not_at_all():
    for lang, texts in SAMPLES.items():
        for noisy in noised("latn", texts * 50, lang, rate=0.5):
            for word in re.split("[\\s.\u200c]+", noisy):  # a zero-width space ends a word, too
                letters = [c for c in word if c.isalpha()]
                assert len({c < "\u0250" for c in letters}) <= 1, word


@pytest.mark.parametrize(
    ("lang", "text", "latin"),
    [
        ("ar", "والله أنا مش عارف، شكرا!", r"(wallah?|wlh) ana m[ei]?sh 3ar[e]?f, sh[ou]kran!"),
        ("fa", "سلام، خیلی ممنون", "(salam|slm), (kh|x)e[yi]li (mamn(oo|u)n|mer30)"),
        ("ur", "آپ کیسے ہیں؟", r"aa?p k(ai|e)se (hain|hn)\?"),
    ],
)
def test_common_words_are_written_as_in_chats(lang, text, latin):
    for noisy in outcomes("latn", text, 50, lang=lang):
        assert re.match(latin, noisy), noisy


@pytest.mark.parametrize("lang", ["ar", "el", "fa", "hi", "ur"])
def test_some_writers_of_ugc_take_latin_letters(lang):
    rows = [f"{SAMPLES[lang][0]} {n}" for n in range(400)]
    noisy = noisegen.noise(rows, "ugc", lang=lang, seed=1)
    latin = [row for row in noisy if not re.search("[^\\W\\d_a-zA-Z]", row)]
    assert 0.05 < len(latin) / len(rows) < 0.7


def test_words_are_hit_at_the_rate():
    def hits(clean, noisy):
        return sum(word != "привет" for word in noisy.split()), len(clean.split())

    check_rate("latn", "привет " * 10, hits, 0.3, lang="ru")


def test_protected_spans_and_line_breaks_stay():
    spans = "https://example.org/привет @имя #тег"
    engine = Engine(single("latn"), Settings("ru"))
    dice = Streams(np.arange(1, dtype=np.uint64), 0)
    (noisy,) = engine.noise(pa.array([f"да\r\n{spans}\nнет\tда"]), dice, KINDS).noisy.to_pylist()
    assert noisy == f"da\r\n{spans}\nnet\tda"


@pytest.mark.parametrize("lang", SAMPLES)
def test_letter_tables_are_well_formed(lang):
    rows = rows_of(lang)
    assert all(len(row) == 4 and int(row[3]) >= 1 for row in rows)
    assert {row[2] for row in rows} <= {"", "start", "end", "word"}
    assert all((row[0] == row[0].lower() and not row[0].isascii()) or row[0] == "'" for row in rows)
    assert len({tuple(row[:3]) for row in rows}) == len(rows)
    assert max(len(row[0]) for row in rows if row[2] != "word") <= 4
    assert letters_of(DICTIONARIES / lang / "latn.tsv")
