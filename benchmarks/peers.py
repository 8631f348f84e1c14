"""nlpaug, textnoisr and glitchlings against ours: 2,000 sentences, strings in and strings out."""

import random
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
import pyarrow as pa

from benchmarks import inputs
from benchmarks.measure import Result, Skipped, best, cpu, rates, report
from noisegen.noising.engine import Engine
from noisegen.noising.mix import parse_step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings
from noisegen.text.alignment import error_counts
from noisegen.text.spans import PROTECTED, protect_kinds

ROWS = 2_000
Noiser = Callable[[list[str]], list[str]]


def results(rows: int) -> Iterator[Result | Skipped]:
    """Compare every peer with the transform that is nearest to it."""
    sentences = inputs.texts(rows).to_pylist()
    sentences = random.Random(1).sample(sentences, min(ROWS, rows))
    for package, name, make, nearest in PEERS:
        if find_spec(package):
            yield compared(sentences, name, make(), nearest)
        else:
            yield Skipped(f"{nearest} against {name}", f"{package} is not installed")


def compared(sentences: list[str], name: str, peer: Noiser, nearest: str) -> Result:
    """Measure both sides and note how much each of them changes."""
    mine = ours(nearest)
    jobs = {"ours": cpu(lambda: mine(sentences)), "peer": cpu(lambda: peer(sentences))}
    speed = rates(best(jobs), len(sentences))
    errors = [f"{_error_rate(sentences, noiser(sentences)):.1%}" for noiser in (mine, peer)]
    note = f"characters changed: {errors[0]} ours, {errors[1]} theirs"
    return Result(
        f"{nearest} against {name}", speed["ours"], speed["peer"], "k rows/s", name, note=note
    )


def ours(name: str) -> Noiser:
    """Return our transform as a function over a list of strings."""
    engine, kinds = Engine(Recipe.of([parse_step(name)]), Settings()), protect_kinds(PROTECTED)

    def noiser(sentences: list[str]) -> list[str]:
        ids = np.arange(len(sentences), dtype=np.uint64)
        noisy = engine.noise(pa.array(sentences, pa.string()), Streams(ids, 7), kinds).noisy
        texts: list[str] = noisy.to_pylist()
        return texts

    return noiser


def keyboard_aug() -> Noiser:
    """Return nlpaug's keyboard slips with its defaults."""
    from nlpaug.augmenter.char import KeyboardAug

    noiser: Noiser = KeyboardAug().augment
    return noiser


def spelling_aug() -> Noiser:
    """Return nlpaug's misspellings with its defaults."""
    from nlpaug.augmenter.word import SpellingAug

    noiser: Noiser = SpellingAug().augment
    return noiser


def char_noise() -> Noiser:
    """Return textnoisr's substitution at the rate of fing."""
    from textnoisr.noise import CharNoiseAugmenter

    augmenter = CharNoiseAugmenter(noise_level=0.05, actions=("substitute",), seed=7)
    return lambda sentences: [augmenter.add_noise(text) for text in sentences]


def typogre() -> Noiser:
    """Return the keyboard slips of glitchlings with their defaults."""
    from glitchlings import Gaggle, Typogre

    noiser: Noiser = Gaggle([Typogre()], seed=7).corrupt_batch
    return noiser


def _error_rate(clean: list[str], noisy: list[str]) -> float:
    return error_counts(clean, noisy)[0] / sum(map(len, clean))


PEERS = (
    ("nlpaug", "nlpaug KeyboardAug", keyboard_aug, "fing"),
    ("nlpaug", "nlpaug SpellingAug", spelling_aug, "spel"),
    ("textnoisr", "textnoisr substitute", char_noise, "fing"),
    ("glitchlings", "glitchlings Typogre", typogre, "fing"),
)

if __name__ == "__main__":
    report(results)
