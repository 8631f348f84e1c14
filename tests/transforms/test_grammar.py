"""`drop` and `runs`: which words go, which sentences run on, how often; both forms agree."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, LIVELY_TEXT, both, compare, single
from test_transforms import noised, outcomes

import noisegen
from noisegen.noising.registry import examples_in, get
from noisegen.testing import check_rate, check_transform
from noisegen.text.resources import DICTIONARIES
from noisegen.transforms import rows_of
from noisegen.transforms.grammar import KINDS

LANGS = sorted(path.parent.name for path in DICTIONARIES.glob("*/drop.tsv"))
RUNS = sorted(path.parent.name for path in DICTIONARIES.glob("*/runs.tsv"))
MIXED_UP = ("infl", "func", "auto")
RATES = [f"{kind}_rate" for kind in KINDS]
PERCENT = 100  # `of` in the heads of the lists
TOTAL = dict.fromkeys(RATES, 1)
LEARNED = (
    "I I'm I’m it is It's the The THE a an A do you Do You on friday think that he he's shop "
    "of to all used . ! ? \n ' \" - , east é Éa to be"
)
LEARNERS = st.lists(st.sampled_from(LEARNED.split(" ")), max_size=20).map(" ".join)


@pytest.mark.parametrize("lang", LANGS)
def test_a_list_is_well_formed(lang):
    kinds, sums = {}, {}
    for clean, noisy, weight, what in rows_of(DICTIONARIES / lang / "drop.tsv"):
        assert what in KINDS
        subjects = what == "subject"
        assert kinds.setdefault((clean, subjects), what) == what
        assert clean == clean.strip()
        assert noisy == noisy.strip()
        sums[clean, subjects] = sums.get((clean, subjects), 0) + int(weight)
    assert max(sums.values()) <= PERCENT
    assert min(sums.values()) > 0


@pytest.mark.parametrize("lang", LANGS)
def test_it_keeps_the_promises(lang):
    check_transform("drop", lang)


@pytest.mark.parametrize("values", [{}, TOTAL])
def test_it_agrees_with_the_oracle(demo_texts, odd_texts, values):
    assert compare(single("drop", **values), demo_texts[:80] + odd_texts[:-1]) > 15


@given(st.lists(LEARNERS | ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=12), st.integers(0, 2**63))
@settings(max_examples=40)
def test_any_text_agrees_with_the_oracle(rows, seed):
    ours, expected = both(single("drop", **dict.fromkeys(RATES, 0.8)), rows, seed)
    assert ours == expected


@pytest.mark.parametrize(
    ("kind", "text", "noisy"),
    [
        ("subject", "I think so. I know.\nI'm late", {"Think so. Know.\nLate"}),
        ("subject", "i’m late and I know", {"late and I know"}),
        ("subject", "I, too. I - well. I", {"I, too. I - well. I"}),
        ("subject", "I and you", {"I and you"}),
        ("subject", "I was there", {"Was there"}),
        ("subject", "It is raining.", {"Raining.", "Is raining."}),
        ("subject", "Does anyone know?", {"Anyone know?"}),
        ("subject", "DOES ANYONE KNOW?", {"ANYONE KNOW?"}),
        ("article", "The end of the day is a lot, an egg", {"End of day is a lot, egg"}),
        ("article", "in The Hague, A-level the", {"in The Hague, A-level the"}),
        ("article", "THE END", {"END"}),
        ("article", "The état", {"État"}),
        ("auxiliary", "Do you see what do you say", {"You see what you say"}),
        ("auxiliary", "where I am.", {"where I am."}),
        ("preposition", "See you on Friday then", {"See you Friday then"}),
        ("preposition", "used to it", {"used to it"}),
        ("other", "I think that he is late", {"I think he is late"}),
    ],
)
def test_what_it_does(kind, text, noisy):
    values = dict.fromkeys(RATES, 0) | {f"{kind}_rate": 1}
    assert outcomes("drop", text, 200, **values) == noisy


def test_the_example_is_reached():
    [(clean, noisy)] = examples_in(get("drop").summary)
    assert noisy in outcomes("drop", clean, 500, **TOTAL)


def test_articles_go_at_their_rate():
    check_rate("drop", "see the end", lambda clean, noisy: (clean != noisy, 1), 0.2)


def test_others_go_at_their_share_of_the_rate():
    """At rate 1, 'to' goes in 40 % of its places."""
    noisy = noised("drop", ["say hello to people"] * 4_000, preposition_rate=1)
    assert noisy.count("say hello people") / 4_000 == pytest.approx(0.4, abs=0.04)


def test_what_is_protected_stays():
    for number in range(20):
        noisy = noisegen.noise(
            "I @you see the #tag", "drop:subject_rate=1,article_rate=1", id=number
        )
        assert "@you" in noisy
        assert "#tag" in noisy


# --- words mixed up ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MIXED_UP)
def test_words_are_mixed_up(name, demo_texts, odd_texts):
    check_transform(name)
    assert compare(single(name, rate=1), demo_texts[:50] + odd_texts[:-1]) > 5
    [(clean, noisy)] = examples_in(get(name).summary)
    assert noisy in outcomes(name, clean, 100)


@pytest.mark.parametrize(
    ("text", "one_of"),
    [
        ("in old age", {"in the old age", "in a old age"}),
        ("In old age", {"In the old age"}),
        ("I agree", {"I am agree"}),
        ("people think", {"people they think"}),
        ("we use water", {"we use the water", "we are use the water"}),
        ("a cheaper car", {"a more cheaper car"}),
        ("of x.com/cats", {"of the x.com/cats"}),
    ],
)
def test_function_words_are_added(text, one_of):
    assert one_of <= outcomes("func", text, 3_000)


@pytest.mark.parametrize(
    "text",
    [
        "in London",
        "IN OLD AGE",
        "of @ann",
        "of #cats",
        "in 3 days",
        "In. old",
        "of us",
        "I haven't",
        "I haven\u2019t",
        "in\nold age",
        "in the sea",
        "because they",
        "we can",
        "in",
        "in order",
        "at first sight",
    ],
)
def test_no_article_or_verb_is_added_before_names_numbers_and_function_words(text):
    added = re.compile(r"(?i) (the|a|am|are)\b")
    found = outcomes("func", text, 1_000)
    assert not [noisy for noisy in found if len(added.findall(noisy)) > len(added.findall(text))]


@given(st.lists(LEARNERS | ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=12), st.integers(0, 2**63))
@settings(max_examples=40)
def test_added_words_agree_with_the_oracle(rows, seed):
    ours, expected = both(single("func", rate=1), rows, seed)
    assert ours == expected


@pytest.mark.parametrize(
    ("text", "one_of"),
    [
        ("Two cats", {"Two cat"}),
        ("HE GOES", {"HE GO"}),
        ("has gone", {"has went", "has gone"}),
        ("He went", {"He go", "He gone", "He goed", "He went"}),
        ("used to", {"use to", "used to"}),
        ("his news series", {"his news series"}),
    ],
)
def test_how_forms_are_mixed_up(text, one_of):
    assert outcomes("infl", text, 300) == one_of


@pytest.mark.parametrize(
    ("text", "one_of"),
    [
        ("I’m in it", {"I’m in it", "I'm on it"}),
        ("Back on time", {"Back in time"}),
        ("on, in", {"on, in"}),
    ],
)
def test_what_autocorrect_writes(text, one_of):
    assert outcomes("auto", text, 300) == one_of


def test_endings_go_more_often_than_they_come():
    """As learners do: a plural loses its ending at the rate, a bare noun gets one at 12 % of it."""
    check_rate("infl", "two cats", lambda clean, noisy: (clean != noisy, 1), 0.1)
    assert noised("infl", ["one cat"] * 4_000).count("one cats") / 4_000 == pytest.approx(
        0.12, abs=0.03
    )


# --- sentences that run on -----------------------------------------------------------------------


SPLIT = st.lists(
    st.sampled_from(
        ["I", "it", "It's", "I’m", "Ça", "Et", "мы", "Mr", "no", ". ", ". ", ".", " ", "..", ".\n"]
    ),
    max_size=16,
).map("".join)


@pytest.mark.parametrize("lang", RUNS)
def test_run_ons_keep_the_promises(lang):
    check_transform("runs", lang)
    words = [word for [word] in rows_of(DICTIONARIES / lang / "runs.tsv")]
    assert words == sorted(set(words))
    assert len({word.lower() for word in words}) == len(words)


@given(st.lists(SPLIT | LEARNERS | ANY_TEXT, min_size=1, max_size=12), st.sampled_from(RUNS))
@settings(max_examples=40)
def test_run_ons_of_any_text_agree_with_the_oracle(rows, lang):
    ours, expected = both(single("runs", rate=0.8), rows, lang=lang)
    assert ours == expected


@pytest.mark.parametrize(
    ("lang", "text", "one_of"),
    [
        ("en", "ok. It is", ["ok, it is", "ok it is", "ok... It is", "ok...It is", "ok.. It is"]),
        ("en", "ok. I’m in", ["ok, I’m in", "ok I’m in", "ok... I’m in"]),
        ("en", "ok... It is. Berlin is. \nIt is. it B. It", []),
        ("en", "NO. THE END", ["NO, THE END", "NO THE END", "NO... THE END"]),
        ("fr", "oui. Ça va", ["oui, ça va", "oui ça va", "oui... Ça va"]),
    ],
)
def test_how_sentences_run_on(lang, text, one_of):
    found = outcomes("runs", text, 300, lang=lang)
    assert set(one_of) <= found
    assert one_of or found == {text}


def test_sentences_run_on_at_their_rate():
    check_rate("runs", "ok. It is", lambda clean, noisy: (clean != noisy, 1), 0.2)
    [(clean, noisy)] = examples_in(get("runs").summary)
    assert noisy in outcomes("runs", clean, 100)
