"""`phon`: words spelled as they sound, from a list and by rules."""

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, KINDS, LIVELY_WORDS, both, compare, single
from test_transforms import noised, outcomes

from noisegen.noising.engine import Engine
from noisegen.noising.lexicon import Lexicon
from noisegen.noising.plan import Streams
from noisegen.noising.registry import Settings, examples_in, get
from noisegen.testing import check_rate, check_transform
from noisegen.text.languages import MATCHED_BY
from noisegen.text.resources import DICTIONARIES
from noisegen.transforms.phonetic import Rule, respelled, rules_of, whole_of

LANGS = [
    "ar",
    "da",
    "de",
    "en",
    "es",
    "fa",
    "fr",
    "he",
    "hi",
    "hr",
    "id",
    "it",
    "ja",
    "ko",
    "nl",
    "pl",
    "pt",
    "ru",
    "sl",
    "sr",
    "th",
    "tr",
    "uk",
    "ur",
    "vi",
    "zh",
]
WORDS = (
    "Going to the NIGHT school, don't know enough. organisation jumping philadelphia je ne sais "
    "pas ça va hablamos llamada geliyorum красивого Сейчас gehen"
)
LIVELY_TEXT = st.lists(st.sampled_from(f"{LIVELY_WORDS} {WORDS}".split(" ")), max_size=20).map(
    " ".join
)
COMMON = (
    "good gud, what wut, enough enuf, through thru, night nite, love luv, though tho, "
    "school skool, because cuz, was wuz, said sed, phone fone, right rite, thanks thanx, "
    "you ya, have hav, give giv, some sum, girl gurl, head hed, wrong rong, brother brotha, "
    "special speshul, nation nashun, quick kwik, boys boyz, really reely"
)


def rules_in(lang: str) -> tuple[tuple[Rule, ...], int]:
    path = DICTIONARIES / lang / "phon_rules.tsv"
    return rules_of(path), whole_of(path)


@cache
def rows_of(lang: str) -> list[list[str]]:
    path = DICTIONARIES / lang / "phon_rules.tsv"
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return [line.split("\t") for line in lines if line and not line.startswith("#")][1:]


@pytest.mark.parametrize("lang", LANGS)
def test_it_keeps_the_promises(lang, demo):
    rows = [row["text"] for row in demo if row["lang"] == lang][:20]
    rows.append(", ".join(entry.clean for entry in _entries(lang)[:40]))
    check_transform("phon", lang, tuple(rows))
    assert noised("phon", rows, lang) != rows


def test_its_languages_are_those_with_a_list():
    assert get("phon").languages() == LANGS


@pytest.mark.parametrize("rate", [0.5, pytest.param(1, marks=pytest.mark.nightly)])
def test_it_agrees_with_the_oracle(demo_texts, odd_texts, real_sentences, rate):
    listed = [entry.clean for entry in _entries("en")]
    rows = demo_texts + odd_texts + real_sentences[:600]
    rows += [" ".join(listed[first::1_500]) for first in range(400)]
    assert compare(single("phon", rate=rate), rows) > 500


@pytest.mark.parametrize("lang", LANGS)
def test_other_languages_agree_with_the_oracle(lang, demo):
    rows = [row["text"] for row in demo if row["lang"] == lang]
    listed = [entry.clean for entry in _entries(lang)]
    step = max(1, len(listed) // 20)  # 20 words a row: each is respelled as rarely as in posts
    rows += [" ".join(listed[first::step]) for first in range(20)]
    assert compare(single("phon", rate=0.7), rows, lang=lang) >= 10


@given(
    st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20),
    st.integers(0, 2**64 - 1),
)
@settings(max_examples=40)
@pytest.mark.parametrize("lang", ["en", "fr"])
def test_any_text_agrees_with_the_oracle(lang, rows, seed):
    ours, expected = both(single("phon", rate=0.6), rows, seed, lang=lang)
    assert ours == expected


@pytest.mark.parametrize(
    ("lang", "text", "some_of"),
    [
        ("en", "good", {"gud"}),
        ("en", "what was that", {"wut wuz that", "wat woz that", "wat waz that"}),
        ("en", "enough", {"enuf", "enuff", "nuff"}),
        ("en", "through the night", {"thru the nite", "thru the nyt"}),
        ("en", "I love school though", {"I luv skool tho"}),
        ("en", "because he said this", {"cuz he sed this"}),
        ("en", "the right phone", {"the rite fone"}),
        ("en", "going to", {"gonna", "gunna"}),
        ("en", "want to", {"wanna", "wana"}),
        ("en", "thanks", {"thanx"}),
        ("en", "you have", {"ya hav", "yoo hav"}),
        ("en", "give some", {"giv sum", "giv som"}),
        ("en", "My Brother, FRIENDS", {"My Brotha, FRENDS"}),
        ("en", "organisation", {"organisashun"}),
        ("en", "jumping", {"jumpin", "jumpin'"}),
        ("fr", "quoi", {"koi", "kwa"}),
        ("fr", "C'est ça", {"C sa"}),
        ("fr", "je ne sais pas", {"chépa", "jsais pas"}),
        ("fr", "équipe", {"ékipe"}),
        ("es", "aquí que", {"aki ke"}),
        ("es", "hablamos", {"ablamos"}),
        ("de", "Das ist nicht", {"Dat is nich", "Das is nich"}),
        ("de", "habe ich", {"habsch", "hab ich"}),
        ("de", "lustig", {"lustich"}),
        ("tr", "bir şey", {"bişey"}),
        ("tr", "okuyorum", {"okuyom"}),
        ("pt", "não", {"naum", "num"}),
        ("pt", "primeira", {"primera"}),
        ("it", "perché", {"perké", "xke"}),
        ("it", "occhiata", {"okkiata"}),
        ("nl", "hebben echt", {"hebbe egt"}),
        ("pl", "wszystko", {"fszystko", "wszysko"}),
        ("ru", "Сейчас", {"Щас", "Ща"}),
        ("ru", "что", {"чо", "чё"}),
        ("ru", "красивого", {"красивово"}),
        ("uk", "що", {"шо"}),
    ],
)
def test_what_it_does(lang, text, some_of):
    assert outcomes("phon", text, 20_000, lang=lang) & some_of


def test_an_r_that_is_heard_stays():
    assert outcomes("phon", "amer hiver enfer", 200, lang="fr", rate=1) == {"amer hiver enfer"}


def test_its_examples_are_reachable():
    for clean, noisy in examples_in(get("phon").summary):
        assert noisy in outcomes("phon", clean, 2_000)


@pytest.mark.parametrize(
    "text",
    ["Thompson Philadelphia", "NATO QUANGO", "qu1ck h4cking", "http ftp", "東京 हिन्दी"],
)
def test_names_numbers_and_other_scripts_stay(text):
    assert outcomes("phon", text, 50) == {text}


def test_a_word_inside_a_phrase_is_not_respelled_by_itself():
    """The phrase is one match: its words draw nothing of their own."""
    assert outcomes("phon", "going to", 300) == {
        "going to",
        *(entry.noisy for entry in _entries("en") if entry.clean == "going to"),
    }


def test_words_outside_the_list_are_hit_at_the_rate():
    """A word that is hit changes with the chance of its rules, and stays else."""

    def chance(word):
        forms = dict(respelled(word, *rules_in("fr")))
        return 1 - forms.get(word, 0) / sum(forms.values())

    def hits(clean, noisy):
        pairs = zip(clean.split(), noisy.split(), strict=True)
        return sum(a != b for a, b in pairs), sum(map(chance, clean.split()))

    check_rate("phon", "photographie stéréophonique", hits, 0.15, "fr")


def test_words_outside_the_list_have_the_share_of_their_rules():
    """English rules say how often people write so: of 1000, 500 'yodellin', 60 "yodellin'"."""
    kept = noised("phon", ["yodelling"] * 5_000).count("yodelling") / 5_000
    assert kept == pytest.approx(0.44, abs=0.03)


@pytest.mark.parametrize("word", ["good", "school", "through"])
def test_words_of_the_list_have_their_share_of_the_rate(word):
    share = sum(entry.weight for entry in _entries("en") if entry.clean == word) / 1_000
    kept = noised("phon", [word] * 5_000).count(word) / 5_000
    assert kept == pytest.approx(1 - share, abs=0.03)


def test_protected_spans_and_line_breaks_stay():
    spans = "https://example.org/good?the=night @the_good #school you@the.com"
    text = f"the good\r\n{spans}\nnight\tschool"
    for noisy in noised_with_spans([text] * 20):
        assert spans in noisy
        assert [c for c in noisy if c.isspace()] == [c for c in text if c.isspace()]


def noised_with_spans(texts):
    engine = Engine(single("phon", rate=1), Settings())
    dice = Streams(np.arange(len(texts), dtype=np.uint64), 0)
    return engine.noise(pa.array(texts), dice, KINDS).noisy.to_pylist()


# --- the data ------------------------------------------------------------------------------------


def _list(lang):
    return DICTIONARIES / lang / "phon.tsv"


def _entries(lang):
    return Lexicon.load(_list(lang)).entries


@pytest.mark.parametrize("lang", [lang for lang in LANGS if lang not in {"hi", *MATCHED_BY}])
def test_rules_are_well_formed(lang):
    rows = rows_of(lang)
    assert rows
    for pattern, noisy, weight in rows:
        assert 1 <= int(weight) <= (rules_in(lang)[1] or 100)
        assert not re.search(r"[*+?}]\+|\(\?>", pattern)  # Python 3.11.2 has these wrong
        assert not re.search(re.compile(pattern), "")
        assert noisy == noisy.strip().lower()
    assert len({tuple(row[:2]) for row in rows}) == len(rows)


def test_the_english_list_is_as_large_as_promised():
    dialect = Lexicon.load(DICTIONARIES / "en" / "dial.tsv").entries
    assert len({entry.clean for entry in [*_entries("en"), *dialect]}) >= 19_900
    assert _list("en").stat().st_size < 2_500_000
    assert (DICTIONARIES / "en" / "phon.LICENSE.txt").exists()


def test_common_words_have_what_people_write():
    pairs = {entry[:2] for entry in _entries("en")}
    assert {tuple(pair.split(" ")) for pair in COMMON.split(", ")} <= pairs


def test_a_respelling_is_no_other_common_word():
    """Unless it sounds the same ("wood" for "would") or was listed by hand ("tree" for "three")."""
    pairs = {entry[:2] for entry in _entries("en")}
    wrong = {("book", "buck"), ("late", "lat"), ("stood", "stud"), ("walk", "work")}
    wrong |= {("come", "cum"), ("then", "ten"), ("both", "boat"), ("thin", "tin")}
    assert not pairs & wrong
