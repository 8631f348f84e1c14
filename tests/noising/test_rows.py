"""Rows alone: noise in plain Python is that of the arrays, byte for byte."""

from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noisegen
from noisegen.noising import registry
from noisegen.noising.engine import Engine
from noisegen.noising.mix import Step
from noisegen.noising.noise import engine_for
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe, recipe_names
from noisegen.noising.registry import RowKernel, Settings
from noisegen.text.buffers import Texts
from noisegen.text.rows import Row
from noisegen.text.spans import PROTECTED, protect_kinds, protected, protected_in

KINDS = protect_kinds(PROTECTED)
# Without a file of one's own these make no noise at all.
NEEDS_FILE = {"channel", "wiki"}
BUILT_IN = sorted(set(registry.names()) - NEEDS_FILE)
WORDS = (
    "see you tomorrow people don't don’t I’m I'M Monday MARCH the money very good as soon possible "
    "their there You have. https://a.org/b @you #tag me@x.org www.x.de a.eſ İ ığdır é É ÀÉ ß ŉ "
    "हिन्दी 東京 \t \r\n ? ' ’ - , CEO Sept. 5 no. no.. ça ! the Sunday. 👍🏽 a\u0301 。 ， so.. !? "
    "👨\u200d👩\u200d👧 \x00 e\u0301tat привет Привет ’tis dogs’ x'y'z e-mail a_b Straße naïve "
    f"ﬁ 𝔘 ;) \u2028 {'long' * 20}"
)
UNSPACED = [
    "沢山の友達が出来ると良いな…。",
    "私は何処へ行くのですか",
    "对不起，我已经不知道了……",
] * 9
LIVELY = st.lists(st.sampled_from(WORDS.split(" ")), max_size=25).map(" ".join)
ANY = st.text(st.characters(codec="utf-8"), max_size=60)


def both(engine: Engine, texts: list[str], seed: int = 7, copy: int = 0, first: int = 0):
    """Return the noisy texts by arrays, and row by row."""
    streams = Streams(np.arange(first, first + len(texts), dtype=np.uint64), seed, copy)
    by_arrays = engine.noise(pa.array(texts, pa.string()), streams, KINDS).noisy.to_pylist()
    return by_arrays, engine.noise_few(texts, streams, KINDS)


def compare(engine: Engine, texts: list[str], *options: int, **named: int) -> int:
    """Assert that both ways give the same; return how many texts they change."""
    by_arrays, row_by_row = both(engine, texts, *options, **named)
    for text, expected, noisy in zip(texts, by_arrays, row_by_row, strict=True):
        assert noisy == expected, text
    return sum(text != noisy for text, noisy in zip(texts, row_by_row, strict=True))


def heavy(name: str, **values: object) -> Recipe:
    """One transform at high rates, for every second row at a fifth of them."""
    rates = dict.fromkeys(registry.get(name).rates, 0.5)
    step = Recipe.of([Step(name, {**rates, **values})]).root
    return Recipe(name, step, ((Fraction(1), 1), (Fraction(1, 5), 1)))


def a_language_of(name: str) -> str:
    langs = registry.get(name).languages()
    if {"en", "*"} & set(langs):
        return "en"
    return "ru" if "ru" in langs else langs[0]  # the rows have Cyrillic letters


@pytest.mark.parametrize("name", recipe_names())
def test_every_transform_of_a_recipe_has_a_way_for_rows(name):
    recipe = Recipe.named(name)
    for lang in ("en", *recipe.languages):
        engine = engine_for(name, lang)
        by_arrays = {
            step.transform for step in engine.steps if not isinstance(step.kernel, RowKernel)
        }
        # The channel of `ocr` has its twin in test_channel_twin.py.
        assert by_arrays <= {"ocr"}, lang


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_transform_gives_the_same_row_by_row(name, demo_texts, odd_texts):
    engine = Engine(heavy(name), Settings(a_language_of(name)))
    assert compare(engine, demo_texts + odd_texts + UNSPACED) > 1


@pytest.mark.parametrize(
    ("name", "lang", "values"),
    [
        ("caps", "tr", {}),
        ("caps", "tr", {"case": "lower"}),
        ("caps", "en", {"case": "lower"}),
        ("fing", "ru", {}),
        ("mash", "ru", {}),
        ("latn", "hi", {}),
        ("diac", "de", {}),
        ("apos", "fr", {}),
        ("phon", "de", {}),
        ("long", "es", {}),
        ("vowl", "fr", {}),
        ("leet", "fr", {}),
        ("week", "de", {}),
        ("clip", "fr", {}),
    ],
)
def test_other_languages_give_the_same_row_by_row(name, lang, values, demo, odd_texts):
    texts = [row["text"] for row in demo if row["lang"] == lang] + WORDS.split("  ")
    rows = 2 * [*texts, *odd_texts[:-1]]
    assert compare(Engine(heavy(name, **values), Settings(lang)), rows) > 3


@pytest.mark.parametrize("name", recipe_names())
def test_each_recipe_gives_the_same_row_by_row(name, demo_texts, odd_texts):
    engine = engine_for(name)
    changed = [compare(engine, demo_texts + odd_texts[:-1], seed, copy=seed % 2) for seed in (1, 2)]
    assert min(changed) > 50


@given(st.lists(ANY | LIVELY, min_size=1, max_size=12), st.integers(0, 2**64 - 1))
@settings(max_examples=settings().max_examples // 3)
def test_any_text_gets_the_same_row_by_row(texts, seed):
    for name in ("ugc-heavy", "mix_all"):
        by_arrays, row_by_row = both(engine_for(name), texts, seed, first=seed % 1_000)
        assert row_by_row == by_arrays


@pytest.mark.nightly
@pytest.mark.parametrize("name", recipe_names())
def test_real_sentences_get_the_same_row_by_row(name, real_sentences):
    assert compare(engine_for(name), real_sentences) > 2_000


@pytest.mark.nightly
@pytest.mark.parametrize("name", BUILT_IN)
def test_each_transform_gives_real_sentences_the_same_row_by_row(name, real_sentences):
    changed = compare(Engine(heavy(name), Settings(a_language_of(name))), real_sentences[:5_000])
    of_english_text = name not in ("diac", "kana", "latn", "look", "runs")
    assert changed > 10 or not of_english_text


def test_the_tagger_of_spacy_gives_the_same_row_by_row(demo_texts):
    pytest.importorskip("en_core_web_sm")
    engine = Engine(Recipe.of(["slng", "abr3"]), Settings(tagger="spacy"))
    assert compare(engine, demo_texts[:60]) > 3


def test_a_plug_in_and_a_kernel_without_a_way_for_rows_give_the_same(demo_texts):
    noisegen.transform("swap_ends")(swap_ends)
    engine = Engine(Recipe.of(["swap_ends:rate=0.3", "emot", "codeswitch", "swap_ends"]))
    assert compare(engine, [f"é @me {text} #tag" for text in demo_texts[:60]]) > 30


def swap_ends(text: str, draws: noisegen.Draws, *, rate: float = 0.5) -> str:
    """Swap the ends of words: 'see' -> 'ees'."""
    words = text.split(" ")
    return " ".join(word[::-1] if draws.hit(rate) else word for word in words)


def test_a_transform_without_a_rate_gives_the_same_row_by_row(demo_texts):
    noisegen.transform("shout")(shout)
    assert noisegen.noise("see you", "shout") == "see you!"
    assert compare(Engine(Recipe.of(["shout"])), demo_texts[:9]) == 9


def shout(text: str, draws: noisegen.Draws, *, times: int = 1) -> str:
    """End with exclamation marks: 'see you' -> 'see you!'."""
    return text + "!" * times


@given(ANY | LIVELY)
def test_a_row_has_the_words_of_a_batch(text):
    tokens, row = Texts.from_strings([text]).tokens, Row(text)
    content = text.encode()
    starts, stops = tokens.starts.tolist(), tokens.stops.tolist()
    assert row.words == [content[a:b].decode() for a, b in zip(starts, stops, strict=True)]
    assert row.hashes == tokens.hashes.tolist()
    spans = [row.span(number) for number in range(len(row.words))]
    assert [text[a:b] for a, b in spans] == row.words
    followed = [row.is_followed(number) for number in range(len(row.words))]
    assert followed == (tokens.gaps(np.arange(len(tokens))) == ord(" ")).tolist()


@given(st.lists(ANY | LIVELY, max_size=5))
def test_a_row_has_the_protected_spans_of_a_batch(texts):
    rows = Texts.from_strings(texts)
    spans = protected(rows, KINDS)
    found = [
        tuple(int(start) + len(text[:end].encode()) for end in span)
        for start, text in zip(rows.offsets, texts, strict=False)
        for span in protected_in(text, KINDS)
    ]
    assert list(zip(spans.starts.tolist(), spans.stops.tolist(), strict=True)) == found


def test_few_texts_and_many_are_noised_alike(demo_texts, monkeypatch):
    ways = []
    for way in ("noise", "noise_few"):
        watched = partial(watch, ways, getattr(Engine, way))
        monkeypatch.setattr(Engine, way, lambda *given, watched=watched: watched(*given))
    ids = list(range(len(demo_texts)))
    whole = noisegen.noise(demo_texts, "mix_all", seed=3, id=ids)
    alone = [
        noisegen.noise(text, "mix_all", seed=3, id=n) for n, text in enumerate(demo_texts[:40])
    ]
    assert alone == whole[:40]
    assert ways == ["noise", *["noise_few"] * 40]


def watch(ways, way, *given):
    ways.append(way.__name__)
    return way(*given)
