"""Start-up in a fresh process, after first use, against the cost of the imports below it."""

import os
import tempfile
from collections.abc import Callable, Iterator

from benchmarks.measure import Result, Target, best, child, report

ENGINE = """
from noisegen.engine import Engine
from noisegen.recipe import Recipe
from noisegen.registry import Settings
Engine(Recipe.named("mix_all"), Settings(tagger="rule"))
"""
CASES = {
    "load of all lexicons": (("-c", ENGINE), "numpy, pyarrow, yaml", 0.5),
    "noisegen --help": (("-m", "noisegen", "--help"), "click", 0.2),
    "import noisegen": (("-c", "import noisegen"), "sys", 0.3),
}


def results(rows: int) -> Iterator[Result]:
    """Measure the three cases; the first use, which compiles the lexicons, is noted."""
    del rows  # nothing here depends on them
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as cache:
        env = {**os.environ, "NOISEGEN_CACHE": cache}
        first = child(("-c", ENGINE), env).cpu
        for name, (command, below, bound) in CASES.items():
            seconds = best({"ours": _job(command, env), "below": _job(_imports(below), env)})
            note = f"first use {first:.2f} s" if command[1] == ENGINE else ""
            target = Target("<", bound, "ours")
            than = f"python importing {below}"
            yield Result(name, seconds["ours"], seconds["below"], "CPU s", than, target, note)


def _imports(names: str) -> tuple[str, str]:
    return "-c", f"import {names}"


def _job(command: tuple[str, ...], env: dict[str, str]) -> Callable[[], float]:
    return lambda: child(command, env).cpu


if __name__ == "__main__":
    report(results)
