"""Realised rates on real sentences, over ten seeds: what is asked for is what happens."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from noisegen.noising.engine import Engine
from noisegen.noising.mix import Step
from noisegen.noising.plan import Schedule, Streams
from noisegen.noising.recipe import Recipe
from noisegen.text.buffers import Texts

SEEDS = range(10)
ROWS = 2_000


@pytest.fixture(scope="module")
def sentences(real_sentences):
    return real_sentences[:ROWS]


def rows_of(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


def share(name: str, sentences: list[str], candidates: int, **values) -> tuple[float, float]:
    """The share of candidates hit over all seeds, and the sigma of the nominal rate."""
    engine = Engine(Recipe.of([Step(name, values)]))
    (step,) = engine.steps
    texts = Texts.from_strings(sentences)
    strengths = {rate: np.zeros(len(texts), np.int64) for rate in step.rates}
    hits = 0
    for seed in SEEDS:
        keys = Streams(rows_of(len(texts)), seed).keys(name, np.arange(len(texts)))
        hits += len(step.kernel.propose(texts, keys, strengths))
    n = candidates * len(SEEDS)
    rate = next(float(value) for value in values.values() if value)
    return hits / n, math.sqrt(rate * (1 - rate) / n)


@pytest.mark.parametrize(("name", "rate"), [("fing", 0.05), ("leet", 0.1), ("leet", 0.05)])
def test_characters_are_hit_at_the_nominal_rate(name, rate, sentences):
    kernel = Engine(Recipe.of([Step(name)])).steps[0].kernel
    known = {chr(point) for point in kernel.characters.keys}
    candidates = sum(character in known for text in sentences for character in text)
    realised, sigma = share(name, sentences, candidates, rate=rate)
    assert abs(realised - rate) <= 4 * sigma


@pytest.mark.parametrize(("name", "rate"), [("abr1", 0.1), ("homo", 0.5), ("spel", 0.2)])
def test_words_are_hit_at_the_nominal_rate(name, rate, sentences):
    kernel = Engine(Recipe.of([Step(name)])).steps[0].kernel
    candidates = len(kernel.table.find(Texts.from_strings(sentences)))
    assert candidates > 1_000
    realised, sigma = share(name, sentences, candidates, rate=rate)
    assert abs(realised - rate) <= 4 * sigma


def test_blanks_are_dropped_and_added_at_the_nominal_rates(sentences):
    blanks = sum(text.count(" ") + text.count("\t") for text in sentences)
    realised, sigma = share("spac", sentences, blanks, drop_rate=0.1, add_rate=0)
    assert abs(realised - 0.1) <= 4 * sigma
    inside = sum(not (a.isspace() or b.isspace()) for text in sentences for a, b in pairwise(text))
    realised, sigma = share("spac", sentences, inside, add_rate=0.05, drop_rate=0)
    assert abs(realised - 0.05) <= 4 * sigma + 0.0001  # a few marks join the letter before them


def test_transforms_per_row_follow_the_binomial_over_ten_seeds():
    recipe, rows = Recipe.named("mix_all"), 20_000
    counts: Counter[int] = Counter()
    for seed in SEEDS:
        plan = Schedule.of(recipe).draw(Streams(rows_of(rows), seed))
        drawn = np.bincount(plan.rows, minlength=rows)
        counts.update(Counter(drawn.tolist()))
    n = rows * len(SEEDS)
    chances = [math.comb(12, k) * 0.1**k * 0.9 ** (12 - k) for k in range(13)]
    expected = [n * chance for chance in chances[:6]] + [n * sum(chances[6:])]
    found = [counts[k] for k in range(6)] + [sum(counts[k] for k in range(6, 13))]
    chi_square = sum((f - e) ** 2 / e for f, e in zip(found, expected, strict=True))
    assert chi_square < 22.5  # chance 0.001 with 6 degrees of freedom
    assert found[0] / n == pytest.approx(0.28243, abs=4 * math.sqrt(0.2824 * 0.7176 / n))


def test_mixed_rates_average_to_the_nominal_rate(sentences):
    """Strengths 0.5, 1, 1.5 with weights 1, 2, 1 keep the mean."""
    recipe = (
        Recipe.named("mix_all")
        .with_values({"fing.p": 1})
        .with_values(
            {
                f"{step.transform}.p": 0
                for step in Recipe.named("mix_all").steps()
                if step.transform != "fing"
            }
        )
    )
    engine = Engine(recipe)
    clean = pa.array(sentences)
    known = {chr(point) for point in engine.steps[5].kernel.characters.keys}
    candidates = [sum(character in known for character in text) for text in sentences]
    hits = 0
    for seed in SEEDS:
        noisy = engine.noise(clean, Streams(rows_of(len(sentences)), seed)).noisy.to_pylist()
        hits += sum(
            a != b
            for text, new in zip(sentences, noisy, strict=True)
            for a, b in zip(text, new, strict=True)
        )
    n = sum(candidates) * len(SEEDS)
    # A row's letters share its factor: variance 1/8 of the squared rate comes on top.
    spread = 0.05**2 / 8 * sum(count**2 for count in candidates) * len(SEEDS)
    sigma = math.sqrt(n * 0.05 * 0.95 + spread) / n
    assert abs(hits / n - 0.05) <= 4 * sigma
