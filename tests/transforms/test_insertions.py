"""Emoticons and interjections: places, rates, both forms, and that nothing else changes."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import both, compare, single

from noisegen.noising import registry
from noisegen.noising.edits import Edits
from noisegen.noising.engine import Engine
from noisegen.noising.mix import Step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings, examples_in
from noisegen.testing import check_transform
from noisegen.text.buffers import Texts
from noisegen.text.resources import DICTIONARIES
from noisegen.text.spans import PROTECTED, protect_kinds
from noisegen.transforms import insertions

BOTH = ("emot", "intj")
SPOKEN = sorted(path.parent.name for path in DICTIONARIES.glob("*/intj.tsv"))
KINDS = protect_kinds(PROTECTED)
LIVELY = (
    'I you see them Berlin station, because and Yes. No! Why? ... … ?! Prof. 1,000 (well) "so" '
    "tomorrow. letter! москва. 東京。 😂 \r\n \n \t https://a.org. @you, #tag. a\u0301 ' - , . ! ?"
)
LIVELY_ROWS = st.lists(st.sampled_from(LIVELY.split(" ")), max_size=20).map(" ".join)


def noised(name, texts, lang="en", kinds=(), **values):
    engine = Engine(Recipe.of([Step(name, values or {"rate": 1})]), Settings(lang))
    dice = Streams(np.arange(len(texts), dtype=np.uint64), 0)
    return engine.noise(pa.array(texts, pa.string()), dice, kinds).noisy.to_pylist()


# --- promises ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_insertions_keep_the_promises(name):
    check_transform(name)


@pytest.mark.parametrize(
    ("name", "lang"), [("emot", "ru"), ("emot", "ja"), *[("intj", lang) for lang in SPOKEN]]
)
def test_other_languages_keep_them_too(name, lang, demo):
    rows = [row["text"] for row in demo if row["lang"] == lang] or ["東京は晴れ。", "Всё. Да!"]
    check_transform(name, lang, tuple(rows))
    assert compare(single(name, rate=1), rows, lang=lang) == len(rows)


@pytest.mark.parametrize("name", BOTH)
def test_insertions_say_that_they_add_content(name):
    assert not registry.get(name).keeps_meaning
    assert registry.get("caps").keeps_meaning


@pytest.mark.parametrize("name", BOTH)
def test_both_forms_agree_on_real_sentences(name, real_sentences, odd_texts, demo_texts):
    untokenised = [row.replace(" .", ".") for row in real_sentences[:700]]
    rows = untokenised + real_sentences[700:1_000] + odd_texts[:-1] + demo_texts
    assert compare(single(name, rate=0.6), rows) > 700


@given(st.lists(st.text(max_size=40) | LIVELY_ROWS, min_size=1, max_size=12), st.integers(0, 99))
@settings(max_examples=60)
def test_both_forms_agree_on_any_text(rows, seed):
    for name in BOTH:
        ours, expected = both(single(name, rate=0.8), rows, seed)
        assert ours == expected


@pytest.mark.parametrize(
    ("name", "lang", "clean", "one_of"),
    [
        ("emot", "en", "See you.", {"See you :)", "See you. 😂", "See you 😂"}),
        ("emot", "en", "Where? Here!", {"Where? 😂 Here! 😂"}),
        ("emot", "en", "one\r\ntwo \n", {"one 😂\r\ntwo 😂 \n"}),
        ("emot", "en", "see http://a.org", {"see http://a.org 😂"}),
        ("emot", "ru", "Увидимся.", {"Увидимся ))", "Увидимся )"}),
        ("emot", "ja", "東京。", {"東京。 😂"}),
        ("intj", "en", "he forgot", {"lol he forgot haha"}),
        ("intj", "en", "He forgot.", {"Lol. He forgot lol"}),
        ("intj", "en", "... no way", {"... no way lol"}),
        ("intj", "de", "er hat es vergessen", {"haha er hat es vergessen lol"}),
        ("intj", "pt", "esqueci", {"nossa esqueci kkkk"}),
    ],
)
def test_what_it_does_at_rate_one(name, lang, clean, one_of):
    assert one_of <= set(noised(name, [clean] * 5_000, lang))


@pytest.mark.parametrize("name", BOTH)
def test_the_example_of_the_summary_is_reached(name):
    ((clean, noisy),) = examples_in(registry.get(name).summary)
    assert noisy in noised(name, [clean] * 1_000, rate=0.5)


def kinds_at(text):
    return [
        (int(at), int(kind))
        for _, at, kind in zip(*insertions.places(Texts.from_strings([text])), strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n", []),
        ("Hi", [(0, insertions.OPENING), (2, insertions.BARE)]),
        ("hi.", [(0, insertions.START), (3, insertions.STOP)]),
        ("5 of?", [(5, insertions.MARK)]),
        ("5 of...", [(7, insertions.BARE)]),
        ("5 of ?", [(6, insertions.BARE)]),
        (".", [(1, insertions.BARE)]),
        ("5 Mr. Smith of St. Louis", [(24, insertions.BARE)]),
        ("5 letters. Then", [(10, insertions.STOP), (15, insertions.BARE)]),
        ("5 letters. then", [(15, insertions.BARE)]),
        ("5 a b c, d e f", [(8, insertions.COMMA), (14, insertions.BARE)]),
        ("5 a, b, c, d", [(12, insertions.BARE)]),
        ("5 a b, d e f", [(6, insertions.COMMA), (12, insertions.BARE)]),
        ("5 a, d e f", [(10, insertions.BARE)]),
    ],
)
def test_the_places_of_a_text(text, expected):
    assert kinds_at(text) == expected


@pytest.mark.parametrize(("name", "text"), [("emot", "see it"), ("intj", "5 of them")])
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_places_are_hit_at_their_rate(name, text, rate):
    kernel = Engine(Recipe.of([Step(name, {"rate": rate})])).steps[0].kernel
    rows, numbers = Texts.from_strings([text] * 5_000), np.arange(5_000, dtype=np.uint64)
    keys = (Streams(numbers, seed).keys(name, np.arange(5_000)) for seed in range(10))
    strengths = {"rate": np.zeros(5_000, np.int64)}
    hits = sum(len(kernel.propose(rows, key, strengths)) for key in keys)
    assert abs(hits - 50_000 * rate) <= 4 * math.sqrt(50_000 * rate * (1 - rate))


@pytest.mark.parametrize("name", BOTH)
def test_only_insertions_and_final_stops_change(name, real_sentences):
    rows = [row.replace(" .", ".") for row in real_sentences[:500]]
    kernel = Engine(Recipe.of([Step(name, {"rate": 1})])).steps[0].kernel
    texts = Texts.from_strings(rows)
    keys = Streams(np.arange(500, dtype=np.uint64), 3).keys(name, np.arange(500))
    edits: Edits = kernel.propose(texts, keys, {"rate": np.zeros(500, np.int64)})
    assert len(edits) >= 500
    replaced = texts.values[edits.starts[edits.stops > edits.starts]]
    assert set(replaced.tolist()) == {ord(".")}


@pytest.mark.parametrize("name", BOTH)
def test_protected_spans_stay_whole(name):
    spans = "https://a.org/a.B. @you #tag. me@a.com"
    rows = [f"See {spans} Then go.", f"{spans}"] * 100
    for clean, noisy in zip(rows, noised(name, rows, kinds=KINDS), strict=True):
        assert spans in noisy
        assert noisy != clean


def test_places_in_a_slice_are_those_of_its_rows():
    rows = ["Hi. There.", "", "ого. Да!", "so be it, all of you lot", "x"]
    texts = Texts.from_strings(rows)
    whole = list(zip(*(column.tolist() for column in insertions.places(texts)), strict=True))
    part = list(zip(*(column.tolist() for column in insertions.places(texts[2:5])), strict=True))
    assert part == [(row - 2, at, kind) for row, at, kind in whole if row >= 2]
