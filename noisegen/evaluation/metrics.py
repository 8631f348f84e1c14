"""Metrics of an evaluation: their meaning, the test of differences, and the format of values.

Each metric is a line of metrics.tsv. `measure.py` computes it under the same name; tables, tests,
charts and the report read its properties here.
"""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisegen.evaluation.results import Score
from noisegen.evaluation.statistics import stars

NBSP = "\u00a0"  # no-break space, put between a value and its unit
FACTOR_MIN = 1.15  # least factor between two values that is put into words
_SMALL = 0.01  # smaller values without a unit are shown with one more digit
_DIGITS = {
    "": (3, 3),
    "%": (2, 1),
    "points": (1, 1),
    "tokens": (0, 0),
}  # unit -> decimals in report, in terminal


@dataclass(frozen=True)
class Metric:
    """One metric, and the format of its values.

    `better` says which values are better: 'low', 'high' or '' (neither). `test` says how two models
    are compared: 'mean' by a paired bootstrap of the mean over rows, 'items' by McNemar's test
    where each row is right or wrong (100 or 0), 'spearman' by a bootstrap of a correlation, '' not
    at all. `headline` is the heading of the metric's column in the terminal; `kinds` are the kinds
    of sets whose tables have this column. With `leads` the metric comes first in summaries.
    `chart` is its chart, distance or errors, which shows the first of its metrics that was
    measured. `null` is the mean against which a one-sample t-test tests the metric. `gloss` is
    the meaning in a few words, for readers of a summary.
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
    gloss: str = ""

    @property
    def heading(self) -> str:
        """The title of the metric, with the unit in brackets."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def number(self, value: float) -> str:
        """Format a value of the metric for the report, without the unit."""
        digits = _DIGITS[self.unit][0] + (not self.unit and 0 < abs(value) < _SMALL)
        return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # + 0.0 turns -0 into 0

    def short(self, value: float) -> str:
        """Format a value of the metric for the terminal, without the unit."""
        return f"{value:.{_DIGITS[self.unit][1]}f}"

    def with_unit(self, value: float) -> str:
        """Format a value of the metric for the report, with the unit."""
        return self.number(value) + (f"{NBSP}{self.unit}" if self.unit else "")

    def signed(self, value: float) -> str:
        """Format a difference between two values, with a plus or minus sign."""
        number = self.number(value)
        return number if number.startswith("−") or not number.strip("0.") else f"+{number}"

    def interval(self, score: Score) -> str:
        """Format the interval of a score as '[0.101, 0.130]' or '± 0.004'; '' if it has none."""
        if (bounds := score.bounds) is None:
            return ""
        if bounds == (score.low, score.high):
            return f"[{self.number(bounds[0])}, {self.number(bounds[1])}]"
        return f"± {self.number(score.sd or 0)}"

    def with_interval(self, score: Score) -> str:
        """Format a score with its unit and interval, and stars for the p-value `Score.p_null`."""
        mark = "" if score.p_null is None else stars(score.p_null)
        return f"{self.with_unit(score.value)}{mark} {self.interval(score)}".strip()

    def change(self, before: float, after: float) -> str:
        """Describe a change as '0.302 to 0.121, 2.5 times lower'.

        The factor is given if low values are better, both values are above 0, and the factor is at
        least `FACTOR_MIN`.
        """
        text = f"{self.number(before)} to {self.with_unit(after)}"
        if self.better != "low" or min(before, after) <= 0:
            return text
        factor, way = (before / after, "lower") if after < before else (after / before, "higher")
        return f"{text}, {factor:.1f} times {way}" if factor >= FACTOR_MIN else text


@dataclass(frozen=True)
class SetKind:
    """Words for a kind of test set: singular, plural, title of its table in the terminal."""

    one: str
    many: str
    title: str

    def counted(self, number: int) -> str:
        """Return a number of sets of this kind in words: '1 natural set', '2 natural sets'."""
        return counted(number, self.one, self.many)


def counted(number: int, one: str, many: str) -> str:
    """Return a number with the singular or the plural of its noun: '1 set', '2,000 sets'."""
    return f"{number:,} {one if number == 1 else many}"


KINDS = {
    "pairs": SetKind("natural set", "natural sets", "natural pairs"),
    "noise": SetKind("kind of noise", "kinds of noise", "noise on clean text"),
    "sts": SetKind("STS set", "STS sets", "STS, Spearman x 100"),
    "retrieval": SetKind("retrieval set", "retrieval sets", "retrieval accuracy"),
    "search": SetKind("search set", "search sets", "document search"),
    "classification": SetKind(
        "classification set", "classification sets", "classification accuracy"
    ),
    "pair_classification": SetKind(
        "pair classification set", "pair classification sets", "pair classification, AP"
    ),
}


def published_sets() -> list[dict[str, str]]:
    """Return published test sets that noisegen reads unchanged.

    Each is a row of published.tsv: name, paper, command, address (`get`), licence and note.
    """
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
    """Return the metric of this name; an unknown metric has its name as its title."""
    return METRICS.get(name) or Metric(name, name)
