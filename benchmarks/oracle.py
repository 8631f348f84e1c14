"""The engine against the row-by-row oracle of the tests, on mix_all."""

import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from benchmarks import inputs
from benchmarks.measure import ROOT, Result, best, cpu, rates, report
from benchmarks.mechanisms import noiser
from noisegen.noising.recipe import Recipe
from noisegen.text.spans import PROTECTED, protect_kinds

ORACLE_SHARE = 50  # the oracle is slow: it gets every so-many-th part of the rows


def results(rows: int) -> Iterator[Result]:
    """Measure both in memory, each in rows a second."""
    recipe, kinds, oracle = Recipe.named("mix_all"), protect_kinds(PROTECTED), load_oracle()
    few = max(1, rows // ORACLE_SHARE)
    sample = inputs.texts(rows).to_pylist()[:: rows // few]

    def slow() -> None:
        for row, text in enumerate(sample):
            oracle.noise(text, recipe, 7, row, kinds)

    seconds = best({"engine": cpu(noiser(recipe, rows)), "oracle": cpu(slow)})
    engine = rates({"engine": seconds["engine"]}, rows)["engine"]
    slowly = rates({"oracle": seconds["oracle"]}, len(sample))["oracle"]
    yield Result("engine", engine, slowly, "k rows/s", "the oracle")


def load_oracle() -> ModuleType:
    """Import tests/oracle.py, which is no package."""
    spec = spec_from_file_location("oracle", ROOT / "tests" / "oracle.py")
    if spec is None or spec.loader is None:
        raise ImportError("tests/oracle.py is not there")
    module = module_from_spec(spec)
    sys.modules["oracle"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    report(results)
