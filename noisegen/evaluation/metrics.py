"""The metrics of an evaluation: what each means, how it is tested and shown.

Each is declared in a line of metrics.tsv, computed by `measure.py` under the same name, and used by
tables, tests, charts and the report.
"""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisegen.evaluation.results import Score
from noisegen.evaluation.statistics import stars

NBSP = "\u00a0"  # no line ends between a figure and its unit
_SMALL = 0.01  # below it a figure without unit gets one digit more
_DIGITS = {"": (3, 3), "%": (2, 1), "points": (1, 1)}  # of a unit: in the report, the terminal


@dataclass(frozen=True)
class Metric:
    """One metric, and how its figures are written.

    `better` is 'low', 'high' or '' (neither). `test` compares two models: 'mean' by the paired
    bootstrap of a mean over rows, 'items' by McNemar where each row is right or wrong (100 or 0),
    'spearman' by the bootstrap of a correlation, '' not at all. `headline` is its column in the
    terminal for sets of the `kinds`; it `leads` where the verdict of the report names it first.
    `chart` is the group of metrics that share a chart, distance or errors: of a group, the first
    that is there. `null` is what a one-sample test compares with.
    """

    name: str
    title: str
    meaning: str = ""
    better: str = ""
    test: str = ""
    unit: str = ""
    headline: str = ""
    kinds: tuple[str, ...] = ()
    leads: bool = False
    chart: str = ""
    null: float | None = None

    @property
    def heading(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def number(self, value: float) -> str:
        """Return a figure without its unit, with the digits of the metric."""
        digits = _DIGITS[self.unit][0] + (not self.unit and 0 < abs(value) < _SMALL)
        return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # + 0.0: never -0

    def short(self, value: float) -> str:
        """Return a figure as the terminal shows it."""
        return f"{value:.{_DIGITS[self.unit][1]}f}"

    def with_unit(self, value: float) -> str:
        """Return a figure with its unit."""
        return self.number(value) + (f"{NBSP}{self.unit}" if self.unit else "")

    def signed(self, value: float) -> str:
        """Return a difference with its sign."""
        number = self.number(value)
        return number if number.startswith("−") or not number.strip("0.") else f"+{number}"

    def interval(self, score: Score) -> str:
        """Return '[0.101, 0.130]', '± 0.004' or the empty string."""
        if (bounds := score.bounds) is None:
            return ""
        if bounds == (score.low, score.high):
            return f"[{self.number(bounds[0])}, {self.number(bounds[1])}]"
        return f"± {self.number(score.sd or 0)}"

    def with_interval(self, score: Score) -> str:
        """Return a figure with its unit, its interval, and stars if it was tested by itself."""
        mark = "" if score.p_null is None else stars(score.p_null)
        return f"{self.with_unit(score.value)}{mark} {self.interval(score)}".strip()

    def change(self, before: float, after: float) -> str:
        """Return '0.302 to 0.121, 2.5 times lower'; only errors have the factor."""
        text = f"{self.number(before)} to {self.with_unit(after)}"
        if self.better != "low" or min(before, after) <= 0:
            return text
        factor, way = (before / after, "lower") if after < before else (after / before, "higher")
        return f"{text}, {factor:.1f} times {way}" if factor >= 1.15 else text


KINDS = {  # of sets: one, several, and the title of its table in the terminal
    "pairs": ("natural set", "natural sets", "natural pairs"),
    "noise": ("kind of noise", "kinds of noise", "noise on clean text"),
    "sts": ("STS set", "STS sets", "STS, Spearman x 100"),
    "retrieval": ("retrieval set", "retrieval sets", "retrieval accuracy"),
    "classification": ("classification set", "classification sets", "classification accuracy"),
    "pair_classification": (
        "pair classification set", "pair classification sets", "pair classification, AP",
    ),
}  # fmt: skip


def published_sets() -> list[dict[str, str]]:
    """Return the sets that open as they are published: paper, command, where to get it, licence."""
    return _table("published.tsv")


def _table(name: str) -> list[dict[str, Any]]:
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def _read() -> dict[str, Metric]:
    rows: list[dict[str, Any]] = _table("metrics.tsv")
    for row in rows:
        row |= {"kinds": tuple(filter(None, row["kinds"].split(","))), "leads": bool(row["leads"])}
        row["null"] = float(row["null"]) if row["null"] else None
    return {row["name"]: Metric(**row) for row in rows}


METRICS = _read()


def metric_of(name: str) -> Metric:
    """Return the metric of a name; an unknown one has nothing but its name."""
    return METRICS.get(name) or Metric(name, name)
