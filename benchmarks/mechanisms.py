"""Each of the twelve alone at its default rate, in memory, against the copy limit."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import copy_limit, inputs
from benchmarks.measure import Result, Target, best, cpu, rates, report
from noisegen.noising.engine import Engine
from noisegen.noising.mix import parse_step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings
from noisegen.text.spans import PROTECTED, protect_kinds

TARGETS = {"fing": 1.3, "leet": 1.3, "spac": 0.8}
LEXICON_TARGET = 0.35


def noiser(recipe: Recipe, rows: int) -> Callable[[], None]:
    """Return what noises the texts in batches of the size that `augment` takes."""
    engine, kinds = Engine(recipe, Settings(tagger="rule")), protect_kinds(PROTECTED)
    texts, size = inputs.texts(rows), inputs.ROWS_PER_GROUP
    parts = [(at, texts.slice(at, size)) for at in range(0, rows, size)]

    def work() -> None:
        for first, clean in parts:
            ids = np.arange(first, first + len(clean), dtype=np.uint64)
            engine.noise(clean, Streams(ids, 7), kinds)

    return work


def results(rows: int) -> Iterator[Result]:
    """Measure all twelve, taking turns with the copy."""
    names = [step.transform for step in Recipe.named("mix_all").steps()]
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        source = inputs.parquet(Path(folder), rows)
        jobs = {name: cpu(noiser(Recipe.of([parse_step(name)]), rows)) for name in names}
        speed = rates(best({"copy": copy_limit.job(source), **jobs}), rows)
    for name in names:
        target = Target(">=", TARGETS.get(name, LEXICON_TARGET))
        yield Result(name, speed[name], speed["copy"], "k rows/s", copy_limit.NAME, target)


if __name__ == "__main__":
    report(results)
