"""Checks that every transform must pass; authors of plug-ins call these functions in tests."""

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.noising import registry
from noisegen.noising.engine import Engine
from noisegen.noising.mix import Step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings
from noisegen.text.sequences import forbidden_sequences

ODD_TEXTS = (
    "",
    " ",
    "\t",
    "a",
    "???",
    "  two  blanks ",
    "Çà et là, déjà vu",
    "İstanbul ığdır",
    "ﬁne ligature",
    "a\u0301e\u0308 combining",
    "👨‍👩‍👧‍👦 👍🏽 🇩🇪",
    "हिन्दी में लिखो",
    "東京は晴れ",
    "one\r\ntwo\nthree",
    "see https://example.org/a?b=c and @you #tag me@example.com",
    "don't don’t DON'T I'M",
)
SENTENCES = (
    "See you tomorrow, because the people at the station do not believe the information.",
    "As soon as possible, my friend, on Monday the money is very good for their government.",
    "I will definitely receive your letter before the weather is quite bad.",
)


def check_transform(name: str, lang: str = "en", texts: tuple[str, ...] = SENTENCES) -> None:
    """Raise AssertionError, with the reason, if a transform breaks a rule for transforms.

    The rules: The docstring has an example. With all its rates at 0, the transform changes no text.
    The noise of a row does not depend on the other rows or on their order. `ODD_TEXTS` cause no
    error. The transform adds no line break, and no letter sequence that the script forbids, such as
    a vowel sign without its consonant. It leaves the global random states of Python and numpy
    unchanged.
    """
    transform, rows = registry.get(name), [*texts, *ODD_TEXTS]
    first_line = f"{name}: the first line of its docstring"
    example = "such as: Drop apostrophes: 'I don't know' -> 'I dont know'."
    assert transform.summary.endswith("."), f"{first_line} is no sentence; write one {example}"
    assert registry.examples_in(transform.summary), f"{first_line} needs an example, {example}"
    assert transform.parameters, f"{name}: it needs a parameter that says how much, rate: float"
    for text, noisy in zip(rows, noise_with(name, rows, 0, lang), strict=True):
        rates = " and ".join(transform.rates) or "its rate"
        at_zero = f"{name}: with {rates} at 0 it must change nothing, but it made"
        assert noisy == text, f"{at_zero} {text!r} into {noisy!r}"

    remedy = "take randomness from draws (draws.hit(rate), draws.pick(words)), not from"
    states = random.getstate(), str(np.random.get_state())
    rows = list(texts) * 20
    whole = noise_with(name, rows, 0.5, lang)
    states_after = random.getstate(), str(np.random.get_state())
    for module, before, after in zip(("random", "numpy.random"), states, states_after, strict=True):
        assert before == after, f"{name}: {remedy} {module}.random()"
    order = random.Random(0).sample(range(len(rows)), len(rows))
    shuffled = noise_with(name, [rows[i] for i in order], 0.5, lang, order)
    alone = [noise_with(name, [rows[i]], 0.5, lang, [i])[0] for i in order[:10]]
    expected = [whole[i] for i in order]
    for found, which in ((shuffled, "in another order of rows"), (alone, "alone")):
        for text, noisy, other in zip([rows[i] for i in order], expected, found, strict=False):
            differs = f"{text!r} became {noisy!r}, and {which} {other!r}"
            assert noisy == other, f"{name}: {differs}; {remedy} other rows, a counter or the clock"

    for text, noisy in zip(ODD_TEXTS, noise_with(name, ODD_TEXTS, 1, lang), strict=True):
        noisy.encode()
        added = noisy.count("\n") + noisy.count("\r") > text.count("\n") + text.count("\r")
        assert not added, f"{name}: it must add no line break, but it made {text!r} into {noisy!r}"
    check_sequences(name, [*texts, *ODD_TEXTS], lang)


def check_sequences(name: str, texts: Sequence[str], lang: str = "en") -> None:
    """Raise AssertionError if a transform adds a letter sequence that the text's script forbids."""
    for rate in (0.3, 1):
        for text, noisy in zip(texts, noise_with(name, texts, rate, lang), strict=True):
            found = forbidden_sequences(noisy)
            is_worse = found.total() > forbidden_sequences(text).total()
            wrong = ", ".join(map(ascii, found))
            changed = f"it made {text!r} into {noisy!r}, with {wrong}"
            assert not is_worse, f"{name}: {changed}, which the script forbids"


def check_rate(
    name: str, text: str, hits: Any, rate: float, lang: str = "en", rows: int = 20_000
) -> None:
    """Raise AssertionError unless a transform changes the share `rate` of its candidates.

    A candidate is a unit the transform may change, such as a word or letter. `text` is noised
    `rows` times; the share of changed candidates must be within four standard deviations of `rate`.
    `hits(clean, noisy)` returns two counts for one noisy text: changed and all candidates.
    """
    noisy = noise_with(name, [text] * rows, rate, lang)
    counts = [hits(text, row) for row in noisy]
    hit, candidates = (sum(column) for column in zip(*counts, strict=True))
    sigma = math.sqrt(rate * (1 - rate) / candidates)
    share = hit / candidates
    assert abs(share - rate) <= 4 * sigma, f"{name}: share of hits {share:.5f}, not {rate}"


def noise_with(
    name: str,
    texts: Sequence[str],
    rate: float = 1,
    lang: str = "en",
    ids: Sequence[int] | None = None,
) -> list[str]:
    """Return texts noised by one transform with all its rates set to `rate`.

    The noise of each text depends on its row id in `ids` (default: 0, 1, ...).
    """
    rates: dict[str, Any] = dict.fromkeys(registry.get(name).rates, rate)
    engine = Engine(Recipe.of([Step(name, rates)]), Settings(lang))
    streams = Streams(np.array(range(len(texts)) if ids is None else ids, np.uint64), 0)
    noisy: list[str] = engine.noise(pa.array(texts, pa.string()), streams).noisy.to_pylist()
    return noisy
