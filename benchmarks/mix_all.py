"""mix_all and ugc from Parquet to Parquet, one worker, against the copy limit."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import noisegen
from benchmarks import copy_limit, inputs
from benchmarks.measure import Result, Skipped, Target, best, cpu, rates, report
from noisegen.noising.tagging import installed_model

SPACY_SHARE = 20  # spaCy is slow: it gets every so-many-th part of the rows


def run(source: Path, **given: Any) -> Callable[[], float]:
    """Return the job that measures `augment`, by default with mix_all."""
    out = source.parent / "out"
    asked = {"recipe": "mix_all", "id_column": "id", "force": True, **given}
    return cpu(lambda: noisegen.augment(source, out, **asked))


def results(rows: int) -> Iterator[Result | Skipped]:
    """Measure with the rule tagger, with and without spans; then, if installed, with spaCy."""
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        source = inputs.parquet(Path(folder), rows)
        for recipe in ("mix_all", "ugc"):
            run(source, tagger="rule", recipe=recipe, limit=1)()  # loads the lexicons
        jobs = {
            "copy": copy_limit.job(source),
            "mix": run(source, tagger="rule"),
            "edits": run(source, tagger="rule", edits=True),
            "ugc": run(source, recipe="ugc"),
        }
        speed = rates(best(jobs), rows)
        yield _result("mix_all", speed["mix"], speed, Target(">=", 0.25))
        yield _result("mix_all --edits", speed["edits"], speed, Target(">=", 0.15))
        half = Target(">=", 0.5)
        yield Result("ugc", speed["ugc"], speed["mix"], "k rows/s", "mix_all", half)
    if installed_model("en") is None:
        yield Skipped("mix_all with spaCy", "not installed")
        return
    few = max(1, rows // SPACY_SHARE)
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        source = inputs.parquet(Path(folder), few)
        run(source, tagger="spacy", limit=1)()
        jobs = {"copy": copy_limit.job(source), "spacy": run(source, tagger="spacy")}
        speed = rates(best(jobs, repeats=1), few)  # once: the tagger remembers texts
        yield _result("mix_all with spaCy", speed["spacy"], speed, None)


def _result(name: str, ours: float, speed: dict[str, float], target: Target | None) -> Result:
    return Result(name, ours, speed["copy"], "k rows/s", copy_limit.NAME, target)


if __name__ == "__main__":
    report(results)
