"""The twelve, one by one: what they do at rate 1, and what the older tool got wrong."""

import math
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import noisegen
from noisegen.noising import registry
from noisegen.noising.engine import Engine
from noisegen.noising.mix import Step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings
from noisegen.testing import check_rate, check_transform
from noisegen.text.spans import PROTECTED, protect_kinds

TWELVE = sorted("abr1 abr2 abr3 cont dysl fing homo leet slng spac spel week".split())  # noqa: SIM905
LANGS = ("de", "fr", "es", "tr", "hi")
FOREIGN = [(name, lang) for lang in LANGS for name in ("fing", "leet", "spac", "week")]


def noised(name, texts, lang="en", tagger="rule", seed=0, **values):
    if isinstance(texts, str):
        texts = [texts]
    rates = [p.name for p in registry.get(name).parameters.values() if p.is_rate]
    values = values or dict.fromkeys(rates, 1)
    engine = Engine(Recipe.of([Step(name, values)]), Settings(lang, tagger=tagger))
    dice = Streams(np.arange(len(texts), dtype=np.uint64), seed)
    return engine.noise(pa.array(texts, pa.string()), dice).noisy.to_pylist()


def outcomes(name, text, rows=300, **options):
    """All that a text can become, over many ids."""
    return set(noised(name, [text] * rows, **options))


@pytest.mark.parametrize("name", [*TWELVE, "caps"])
def test_every_transform_keeps_the_promises(name):
    check_transform(name)


@pytest.mark.parametrize(("name", "lang"), FOREIGN)
def test_other_languages_keep_them_too(name, lang, demo):
    rows = tuple(row["text"] for row in demo if row["lang"] == lang)
    check_transform(name, lang, rows)
    assert noised(name, list(rows), lang) != list(rows)


@pytest.mark.parametrize(
    ("name", "text", "one_of"),
    [
        ("abr1", "see you tomorrow", {"cu tmrw", "see u tmrw"}),
        ("abr2", "I am going to ask", {"I'm gonna ask"}),
        ("abr3", "as soon as possible", {"ASAP"}),
        ("abr3", "the CEO", {"the chief executive officer"}),
        ("cont", "I do not know", {"I don't know"}),
        ("cont", "It is late.", {"It's late."}),
        ("caps", "see you, straße ǆ don’t 4th", {"SEE YOU, STRAẞE Ǆ DON’T 4TH"}),
        ("caps", "Москва ﬁ 東京 OK", {"МОСКВА ﬁ 東京 OK"}),
        ("cont", "It is. You have, and they're.", {"It is. You have, and they are."}),
        ("cont", "i am late", {"i'm late"}),
        ("cont", "How happy I am right now.", {"How happy I am right now."}),
        ("cont", "I had to go, he has a dog", {"I had to go, he has a dog"}),
        ("cont", "I had gone, he has been", {"I'd gone, he's been"}),
        ("cont", "What's happened?", {"What has happened?"}),
        ("cont", "don’t", {"do not"}),
        ("cont", "THERE IS NO", {"THERE'S NO"}),
        ("cont", "she's", {"she is", "she has"}),
        ("dysl", "There was", {"Their was", "Their saw", "They're saw"}),
        ("homo", "which week", {"witch weak"}),
        ("leet", "o", {"0"}),
        ("slng", "the money", {"the dough", "the cash"}),
        ("spel", "definitely", {"definately"}),
        ("week", "Sunday.", {"Sun."}),
        ("week", "on Monday", {"on Mon"}),
        ("week", "Sept 5", {"September 5"}),
    ],
)
def test_what_it_does(name, text, one_of):
    assert outcomes(name, text) & one_of


def test_the_case_of_a_match_is_carried_over():
    assert {"U", "Ya"} & outcomes("abr1", "You")
    assert noised("cont", ["DO NOT", "Do not", "do not"]) == ["DON'T", "Don't", "don't"]
    assert noised("abr3", "CEO") == ["chief executive officer"]


@pytest.mark.parametrize("name", TWELVE)
def test_full_stops_between_sentences_stay(name):
    """Also before a small letter, a digit or a link, where a dot might end an abbreviation."""
    text = "i love my friends. they are here on monday. 5 of their kids. http://a.org is good."
    if name not in ("spac", "leet", "fing"):
        assert {row.count(". ") for row in noised(name, [text] * 50)} == {3}


def test_an_acronym_asks_for_capitals_throughout():
    texts = ["the Roa Roa Hotel", "a cpa said", "Oh my god"]
    assert noised("abr3", texts[:2])[0] == texts[0]
    assert "Omg" not in outcomes("abr1", texts[2])


def test_text_that_matches_nothing_is_left_alone():
    """The older abr1 joined tokens with blanks, abr3 straightened quotes, spel split on blanks."""
    texts = ["xqz ( zzq ) , qqx\t“zq”  ﬁx\n", "👨‍👩‍👧 #zq qx/zx", "   ", "東京 — ¿qzx?"]
    for name in ("abr1", "abr2", "abr3", "cont", "dysl", "homo", "slng", "spel", "week"):
        assert noised(name, texts) == texts


def test_blanks_and_line_breaks_survive_word_replacement():
    (noisy,) = noised("spel", "definitely\ttheir\n  receive ")
    assert [c for c in noisy if c.isspace()] == ["\t", "\n", " ", " ", " "]


def test_phrases_never_match_inside_words():
    """The older abr1 made 'the sHWZ an' of 'the show is an'."""
    assert noised("week", ["Marchand met Augustus", "a march in may"]) == [
        "Marchand met Augustus",
        "a march in may",
    ]
    for name in ("abr1", "abr3", "dysl", "homo"):
        for noisy in noised(name, ["whownowhere tootheretoo"]):
            assert noisy == "whownowhere tootheretoo"


def test_rows_do_not_share_their_dice():
    """The older fing hit the same letter first in 7 rows of 10."""
    text = "the quick brown fox jumps over the lazy dog and runs far away from here"
    firsts = Counter(
        next((i for i, (a, b) in enumerate(zip(text, noisy, strict=True)) if a != b), -1)
        for noisy in noised("fing", [text] * 5_000, rate=0.05)
    )
    assert firsts.most_common(1)[0][1] < 5_000 * 0.1


def test_a_word_gets_different_misspellings():
    """The older spel gave a word one misspelling for ever, and all words or none."""
    assert len(outcomes("spel", "definitely")) > 5


def test_spel_never_writes_the_word_itself_or_markup():
    known = registry.get("spel")
    assert known.parameters["rate"].default == 0.2
    noisy = outcomes("spel", "their receive definitely separate the and")
    assert not any(set(text) & set("_[]|") for text in noisy)


def test_leet_survives_text_without_candidates():
    assert noised("leet", ["???", "", "   ", "東京"]) == ["???", "", "   ", "東京"]


def test_fing_keeps_length_and_case():
    texts = ["Straße ẞ İstanbul", "HELLO world"]
    for text, noisy in zip(texts, noised("fing", texts), strict=True):
        assert len(noisy) == len(text)
    assert noised("fing", "HELLO")[0].isupper()
    assert noised("fing", "ẞ İ") == ["ẞ İ"]


def test_fing_follows_the_keyboard_of_the_language():
    assert {noisy[0] for noisy in outcomes("fing", "a", lang="fr")} == set("qz")
    assert outcomes("fing", "ş", lang="tr") <= set("pğliç")
    assert outcomes("fing", "a", rate=1, layout="azerty") == set("qz")


def test_slang_asks_for_the_part_of_speech():
    assert noised("slng", "to money") == ["to money"]
    assert noised("slng", "the police said") != ["the police said"]


def test_spacy_tags_where_it_is_asked_for():
    text = "They will book a table. I read a good book about money."
    assert Engine(Recipe.of([Step("slng")])).tagger == "rule"
    engine = Engine(Recipe.of([Step("slng")]), Settings(tagger="spacy"))
    assert engine.tagger.startswith("spacy:en_core_web_sm")
    (noisy,) = noised("slng", text, tagger="spacy")
    assert noisy != text
    assert noisy.startswith("They will book")


def test_acronyms_are_not_verbs():
    """An abbreviation that is a verb here stays: 'to account for'."""
    assert noised("abr3", "we have to account for it") == ["we have to account for it"]
    assert noised("abr3", "the account is empty") != ["the account is empty"]


def test_spac_never_breaks_a_character():
    text = "👨‍👩‍👧‍👦👍🏽🇩🇪हिन्दी a\u0301e\u0308"
    pieces = "".join(noised("spac", [text] * 200, drop_rate=0, add_rate=1)[0])
    for whole in ("👨‍👩‍👧‍👦", "👍🏽", "🇩🇪", "हि", "न्", "दी", "a\u0301", "e\u0308"):
        assert whole in pieces


def test_spac_leaves_line_breaks_and_ends_alone():
    noisy = noised("spac", "ab\r\ncd\tef g")[0]
    assert noisy == "a b\r\nc de fg"


@pytest.mark.parametrize("name", TWELVE)
def test_protected_spans_stay(name):
    spans = "https://example.org/your-money?see=you www.people.com @your_friend #monday you@the.com"
    texts = [f"I do not know {spans} see you Monday"] * 20
    rates = [p.name for p in registry.get(name).parameters.values() if p.is_rate]
    engine = Engine(Recipe.of([Step(name, dict.fromkeys(rates, 1))]), Settings(tagger="rule"))
    dice = Streams(np.arange(20, dtype=np.uint64), 0)
    kept = engine.noise(pa.array(texts), dice, protect_kinds(PROTECTED)).noisy.to_pylist()
    assert all(f" {spans} " in noisy for noisy in kept)


def test_protection_can_be_switched_off():
    engine = Engine(Recipe.of([Step("leet", {"rate": 1})]), Settings())
    dice = Streams(np.zeros(1, np.uint64), 0)
    assert engine.noise(pa.array(["@aeo"]), dice, ()).noisy.to_pylist() != ["@aeo"]


def single_hits(word):
    return lambda clean, noisy: (sum(w != word for w in noisy.split()), len(clean.split()))


@pytest.mark.parametrize(
    ("name", "word", "rate"),
    [
        ("abr1", "people", 0.1),
        ("homo", "their", 0.5),
        ("spel", "receive", 0.2),
        ("week", "Monday", 0.3),
    ],
)
def test_words_are_hit_at_their_rate(name, word, rate):
    check_rate(name, " ".join([word] * 10), single_hits(word), rate)


@pytest.mark.parametrize(("name", "rate"), [("fing", 0.05), ("leet", 0.1), ("leet", 0.05)])
def test_letters_are_hit_at_their_rate(name, rate):
    def hits(clean, noisy):
        return sum(a != b for a, b in zip(clean, noisy, strict=True)), clean.count("a")

    check_rate(name, "aa a-aaa.aa", hits, rate)


def test_blanks_are_dropped_and_added_at_their_rates():
    rows, text = 20_000, "ab cd ef"
    noisy = noised("spac", [text] * rows, drop_rate=0.1, add_rate=0)
    dropped = sum(text.count(" ") - row.count(" ") for row in noisy)
    assert abs(dropped - rows * 2 * 0.1) < 4 * math.sqrt(rows * 2 * 0.1 * 0.9)
    noisy = noised("spac", [text] * rows, drop_rate=0, add_rate=0.05)
    added = sum(row.count(" ") - text.count(" ") for row in noisy)
    assert abs(added - rows * 3 * 0.05) < 4 * math.sqrt(rows * 3 * 0.05 * 0.95)


def test_the_table_of_transforms_names_the_built_ins():
    """Nothing disappears or is renamed unnoticed."""
    package = Path(noisegen.__file__).parent
    table = (package.parent / "docs" / "reference" / "transforms.md").read_text("utf-8")
    known = [n for n in registry.names() if registry.get(n).source.startswith(str(package))]
    assert known == sorted(re.findall(r"^\| \[`([a-z0-9]+)`\]", table, re.MULTILINE))


def test_global_random_states_stay(demo_texts):
    before = random.getstate()
    for name in TWELVE:
        noised(name, demo_texts[:20])
    assert random.getstate() == before


def test_spac_keeps_numbers_whole():
    """'$1.50' was split into '$1.5 0', '16:30' into '1 6:30'."""
    text = "It costs $1.50 at 16:30, or 1,200 in 2023."
    rows = noised("spac", [text] * 300, drop_rate=0, add_rate=0.5)
    for number in ("1.50", "16:30", "1,200", "2023"):
        assert all(number in row for row in rows)
    assert any("$ 1.50" in row for row in rows)


def test_fing_hits_no_key_of_the_row_of_numbers():
    """French 'é' has the key of the 2: 'parole' -> 'pérole'."""
    rows = outcomes("fing", "parole et cahier", lang="fr", rate=0.5)
    assert not set("éèçà") & set("".join(rows))
    assert outcomes("fing", "é", lang="fr") <= set("azè")
