"""Transforms modelled on natural posts, each alone, in memory, against the copy limit."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import copy_limit, inputs
from benchmarks.measure import Result, Skipped, Target, best, cpu, rates, report
from benchmarks.mechanisms import noiser
from noisegen.noising import registry
from noisegen.noising.mix import parse_step
from noisegen.noising.recipe import Recipe

TRANSFORMS = (
    "phon",
    "latn",
    "init",
    "rebus",
    "clip",
    "join",
    "cens",
    "emot",
    "intj",
    "long",
    "apos",
    "punc",
    "vowl",
    "mash",
    "diac",
    "caps",
    "caps:case=lower",
)
TARGET = Target(">=", 100, "ours")  # thousands of sentences a second and core


def results(rows: int) -> Iterator[Result | Skipped]:
    """Measure the transforms registered for English, taking turns with the copy."""
    steps = {step: why_not(step.partition(":")[0]) for step in TRANSFORMS}
    yield from (Skipped(step, why) for step, why in steps.items() if why)
    names = [step for step, why in steps.items() if not why]
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        source = inputs.parquet(Path(folder), rows)
        jobs = {name: cpu(noiser(Recipe.of([parse_step(name)]), rows)) for name in names}
        speed = rates(best({"copy": copy_limit.job(source), **jobs}), rows)
    for name in names:
        yield Result(name, speed[name], speed["copy"], "k rows/s", copy_limit.NAME, TARGET)


def why_not(name: str) -> str:
    """Tell why a transform cannot be measured, '' if it can."""
    if name not in registry.names():
        return "not registered"
    languages = registry.get(name).languages()
    return "" if {"en", "*"} & set(languages) else f"not for English, only {', '.join(languages)}"


if __name__ == "__main__":
    report(results)
