"""The check that every transform, built in or not, must pass; for plug-in authors' tests too."""

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen import registry
from noisegen.engine import Engine
from noisegen.info import at_rate
from noisegen.mixing import Dice
from noisegen.recipe import Recipe, Step
from noisegen.registry import Settings, Transform

ODD_TEXTS = (
    "", " ", "\t", "a", "???", "  two  blanks ", "Çà et là, déjà vu", "İstanbul ığdır",
    "ﬁne ligature", "a\u0301e\u0308 combining",
    "👨‍👩‍👧‍👦 👍🏽 🇩🇪", "हिन्दी में लिखो", "東京は晴れ", "one\r\ntwo\nthree",
    "see https://example.org/a?b=c and @you #tag me@example.com", "don't don’t DON'T I'M",
)  # fmt: skip
SENTENCES = (
    "See you tomorrow, because the people at the station do not believe the information.",
    "As soon as possible, my friend, on Monday the money is very good for their government.",
    "I will definitely receive your letter before the weather is quite bad.",
)


def check_transform(name: str, lang: str = "en", texts: tuple[str, ...] = SENTENCES) -> None:
    """Raise AssertionError with the reason unless a transform keeps the promises.

    It must be documented with an example, be the identity when every rate is 0, give a row the same
    noise alone, in a batch and in any split, survive odd text, add no line break, and leave the
    global random states alone.
    """
    transform = registry.get(name)
    _check_documented(transform)
    _check_identity_at_zero(transform, lang, texts)
    _check_rows_are_independent(transform, lang, texts)
    _check_odd_text(transform, lang)
    _check_global_state(transform, lang, texts)


def check_rate(
    name: str, text: str, hits: Any, rate: float, lang: str = "en", rows: int = 20_000
) -> None:
    """Raise AssertionError unless the share of hits is within 4 sigma of `rate`.

    `hits(clean, noisy)` returns (candidates hit, candidates) of one row.
    """
    noisy = _noised(registry.get(name), lang, [text] * rows, {"rate": rate})
    counts = [hits(text, row) for row in noisy]
    hit, candidates = (sum(column) for column in zip(*counts, strict=True))
    sigma = math.sqrt(rate * (1 - rate) / candidates)
    share = hit / candidates
    _require(abs(share - rate) <= 4 * sigma, f"{name}: share of hits {share:.5f}, not {rate}")


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise AssertionError(reason)


def _noised(
    transform: Transform, lang: str, texts: list[str], values: dict[str, Any],
    ids: list[int] | None = None,
) -> list[str]:  # fmt: skip
    engine = Engine(Recipe.of([Step(transform.name, values)]), Settings(lang))
    numbers = np.array(ids if ids is not None else range(len(texts)), np.uint64)
    noisy: list[str] = engine.noise(
        pa.array(texts, pa.string()), Dice(numbers, 0)
    ).noisy.to_pylist()
    return noisy


def _rates(transform: Transform, rate: float) -> dict[str, float]:
    return {p.name: rate for p in transform.parameters.values() if p.is_rate}


def _check_documented(transform: Transform) -> None:
    name = transform.name
    _require(transform.summary.endswith("."), f"{name}: its first line is no sentence")
    _require(bool(registry.examples_in(transform.summary)), f"{name}: no example 'a' -> 'b'")
    _require(bool(transform.parameters), f"{name}: no parameter says how much")


def _check_identity_at_zero(transform: Transform, lang: str, texts: tuple[str, ...]) -> None:
    rows = [*texts, *ODD_TEXTS]
    same = _noised(transform, lang, rows, _rates(transform, 0)) == rows
    _require(same, f"{transform.name}: not the identity when every rate is 0")


def _check_rows_are_independent(transform: Transform, lang: str, texts: tuple[str, ...]) -> None:
    rows = list(texts) * 20
    values = _rates(transform, 0.5)
    whole = _noised(transform, lang, rows, values)
    order = random.Random(0).sample(range(len(rows)), len(rows))
    shuffled = _noised(transform, lang, [rows[i] for i in order], values, order)
    alone = [_noised(transform, lang, [rows[i]], values, [i])[0] for i in order[:10]]
    _require([whole[i] for i in order] == shuffled, f"{transform.name}: depends on the row order")
    _require([whole[i] for i in order[:10]] == alone, f"{transform.name}: depends on the batch")


def _check_odd_text(transform: Transform, lang: str) -> None:
    for text, noisy in zip(ODD_TEXTS, at_rate(transform.name, list(ODD_TEXTS), lang), strict=True):
        noisy.encode()
        breaks = noisy.count("\n") + noisy.count("\r")
        added = breaks > text.count("\n") + text.count("\r")
        _require(not added, f"{transform.name}: adds a line break to {text!r}")


def _check_global_state(transform: Transform, lang: str, texts: tuple[str, ...]) -> None:
    before = random.getstate(), str(np.random.get_state())
    _noised(transform, lang, list(texts), _rates(transform, 0.5))
    after = random.getstate(), str(np.random.get_state())
    _require(before == after, f"{transform.name}: touches the global random state")
