"""The metrics of an evaluation, each declared once: what it means, how it is tested and shown.

`measure.py` computes a metric under its name here; tables, tests, charts and the report follow.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

NBSP = "\u00a0"  # no line ends between a figure and its unit
_SMALL = 0.01  # below it a figure without unit gets one digit more


class Format(NamedTuple):
    """The unit of a figure, and its decimals in the report and in the terminal."""

    unit: str
    digits: int
    short: int


PLAIN, PERCENT, POINTS = Format("", 3, 3), Format("%", 2, 1), Format("points", 1, 1)


@dataclass(frozen=True)
class Metric:
    """One metric, and how its figures are written.

    `better` is 'low', 'high' or '' (neither). `test` compares two models: 'mean' by the paired
    bootstrap of a mean over rows, 'items' by McNemar where each row is right or wrong (100 or 0),
    'spearman' by the bootstrap of a correlation, '' not at all. `headline` is its column in the
    terminal for sets of the `kinds`; it `leads` where the verdict of the report names it first.
    `chart` is the group of metrics that share a chart: of a group, the first that is there.
    """

    name: str
    title: str
    meaning: str
    better: Literal["low", "high", ""] = "low"
    test: Literal["mean", "items", "spearman", ""] = ""
    format: Format = PLAIN
    headline: str = ""
    kinds: tuple[str, ...] = ()
    leads: bool = False
    chart: Literal["distance", "errors", ""] = ""

    @property
    def heading(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.format.unit})" if self.format.unit else self.title

    def number(self, value: float) -> str:
        """Return a figure without its unit, with as many digits as the metric bears."""
        is_small = not self.format.unit and 0 < abs(value) < _SMALL
        digits = self.format.digits + is_small
        return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # + 0.0: never -0

    def signed(self, value: float) -> str:
        """Return a difference with its sign."""
        number = self.number(value)
        return number if number.startswith("−") or not number.strip("0.") else f"+{number}"

    def with_unit(self, value: float) -> str:
        """Return a figure with its unit."""
        return self.number(value) + (f"{NBSP}{self.format.unit}" if self.format.unit else "")

    def change(self, before: float, after: float) -> str:
        """Return '0.302 to 0.121, 2.5 times lower'; the factor only of errors, where it is one."""
        text = f"{self.number(before)} to {self.with_unit(after)}"
        if self.better != "low" or min(before, after) <= 0:
            return text
        factor, way = (before / after, "lower") if after < before else (after / before, "higher")
        return f"{text}, {factor:.1f} times {way}" if factor >= 1.15 else text


PAIRED = ("pairs", "noise")  # kinds of sets with a clean and a noisy side
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

_ALL = (
    Metric("distance", "cosine distance", "mean 1 - cos(m[noisy], m[clean]) over all pairs",
           test="mean", headline="distance", kinds=PAIRED, leads=True, chart="distance"),
    Metric("distance_changed", "distance, changed pairs",
           "mean 1 - cos(m[noisy], m[clean]) over the pairs whose sides differ"),
    Metric("anchored_distance", "anchored distance", "mean 1 - cos(m[noisy], baseline[clean])",
           test="mean", headline="anchored", kinds=PAIRED),
    Metric("xsim_error", "xSIM error",
           "noisy sentences whose nearest clean one is wrong, ratio margin, k = 4",
           test="items", format=PERCENT, headline="xSIM %", kinds=PAIRED, leads=True,
           chart="errors"),
    Metric("xsim_error_reverse", "xSIM error, clean to noisy",
           "clean sentences whose nearest noisy one is wrong", test="items", format=PERCENT),
    Metric("xsim_hard_error", "xSIM error among hard negatives",
           "noisy sentences nearer to a wrong clean one, or one with a thing altered",
           test="items", format=PERCENT, headline="hard %", kinds=PAIRED, chart="errors"),
    *(Metric(f"xsim_hard_{kind}", f"- {title}", f"share lost to {to}", format=PERCENT)
      for kind, title, to in (
          ("number", "a number altered", "a hard negative of this type"),
          ("entity", "a name altered", "a hard negative of this type"),
          ("causality", "a statement turned round", "a hard negative of this type"),
          ("misaligned", "another sentence",
           "a sentence that is no hard negative of the right one"),
      )),
    Metric("drift", "clean drift", "mean 1 - cos(m[clean], baseline[clean])",
           headline="drift", kinds=PAIRED),
    Metric("accuracy_forward", "retrieval accuracy, noisy to clean",
           "cosine of the right target at least that of all others",
           "high", "items", PERCENT, "to target %", ("retrieval",), leads=True),
    Metric("accuracy_backward", "retrieval accuracy, clean to noisy",
           "cosine of the right source at least that of all others",
           "high", "items", PERCENT, "to source %", ("retrieval",)),
    Metric("sts_clean", "STS, both clean", "100 x Spearman of cosine and human score",
           "high", "spearman", POINTS, "clean", ("sts",), leads=True),
    Metric("sts_one_noisy", "STS, one side noisy",
           "100 x Spearman of cosine and human score, the first sentence noisy",
           "high", "spearman", POINTS, "one noisy", ("sts",), leads=True),
    Metric("sts_both_noisy", "STS, both noisy",
           "100 x Spearman of cosine and human score, both noisy by different seeds",
           "high", "spearman", POINTS, "both noisy", ("sts",), leads=True),
    Metric("accuracy_clean", "classification, clean",
           "logistic regression on vectors of clean text, tested on clean",
           "high", "mean", PERCENT, "clean %", ("classification",), leads=True),
    Metric("accuracy_noisy", "classification, noisy",
           "logistic regression on vectors of clean text, tested on noisy",
           "high", "mean", PERCENT, "noisy %", ("classification",), leads=True),
    Metric("f1_clean", "macro F1, clean", "macro F1 of the classification of clean text",
           "high", format=PERCENT),
    Metric("f1_noisy", "macro F1, noisy", "macro F1 of the classification of noisy text",
           "high", format=PERCENT),
    Metric("class_similarity", "class similarity D_avg",
           "class-weighted mean cosine of two texts of a class",
           "high", headline="D_avg", kinds=("classification",)),
    Metric("average_precision_clean", "pair classification, clean",
           "average precision of cosine",
           "high", "", PERCENT, "clean %", ("pair_classification",), leads=True),
    Metric("average_precision_noisy", "pair classification, noisy",
           "average precision of cosine, one side noisy",
           "high", "", PERCENT, "noisy %", ("pair_classification",), leads=True),
    Metric("ttr_ratio", "type/token ratio, noisy over clean",
           "of the baseline's pieces (RoLASER, section 5)", ""),
)  # fmt: skip
METRICS = {metric.name: metric for metric in _ALL}


def metric_of(name: str) -> Metric:
    """Return the metric of a name; of an unknown one, no more than its name."""
    return METRICS.get(name) or Metric(name, name, "", "")
