"""Rows and figures that RoLASER's and ORACLE's papers derive from the reports of `evaluate`.

`python -m benchmarks.paper_figures rolaser REPORT... -o DIR` gives the rows "(improv. x)" of Tables
4 and 5, Figure 4 (ratios of types and tokens) and Figures 5 and 6 (quantiles over languages);
`oracle` gives the means of Tables 3, 10 and 11, and Figures 3, 4 and 6 to 16. Prints the rows, and
writes them to DIR/rows.csv and the figures to DIR/figures.html.
"""

import argparse
import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from rich.console import Console

from noisegen.evaluation.results import Dataset, Results
from noisegen.report import charts, pages
from noisegen.report.blocks import Bars, Figure, Section
from noisegen.report.charts import Curve
from noisegen.report.terminal import titled
from noisegen.text.languages import language_code, language_pair

IMPROVED = ("distance", "xsim_error", "xsim_hard_error")
WAYS = ("En→XX", "XX→En")
ACCURACIES = ("accuracy_forward", "accuracy_backward")
ERRORS = ("xsim_error", "xsim_error_reverse")
QUANTILES = {"Figure 5: XX→En": "XX→En", "Figure 6: En→XX": "En→XX"}
SHARES = {"minimum": 0.0, "quarter": 0.25, "median": 0.5, "three quarters": 0.75, "maximum": 1.0}
# Languages of XNLI, and those with XTREME's others; ORACLE's code leaves out Indonesian.
_OF_XNLI = "ar bg de el zh fr hi ru es sw th tr ur vi"
_OTHERS = "af bn et eu fi he hu id it jv ja ka kk ko ml mr nl fa pt ta te tl"
TATOEBA_14 = frozenset(_OF_XNLI.split())
TATOEBA_36 = TATOEBA_14 | {*_OTHERS.split()}
SEEN = ("ar", "ay", "de", "es", "fr", "gn", "it", "ja", "nl", "pt", "ro", "zh")  # to train on
SWITCHED = "switched"  # beginning of the name of a code-switched set


class Row(NamedTuple):
    """One value: the figure or table it belongs to, what it is of, the model, and how many sets."""

    where: str
    group: str
    model: str
    value: float
    sets: int = 1


@dataclass(frozen=True)
class Measurements:
    """The values of several reports: {(metric, set): {model: value}}, the baseline first."""

    datasets: dict[str, Dataset]
    values: dict[tuple[str, str], dict[str, float]]
    baseline: str

    @classmethod
    def read(cls, reports: Sequence[Path]) -> "Measurements":
        """Read REPORT/results.json of each report."""
        datasets, values = {}, dict[tuple[str, str], dict[str, float]]()
        for report in reports:
            results = Results.from_dict(json.loads((report / "results.json").read_text("utf-8")))
            datasets |= {one.name: one for one in results.datasets}
            for model, by_set in results.scores.items():
                for name, scores in by_set.items():
                    for metric, score in scores.items():
                        values.setdefault((metric, name), {})[model] = score.value
        return cls(datasets, values, results.baseline.name)

    def of(self, metric: str, *kinds: str) -> dict[str, dict[str, float]]:
        """Return {set: {model: value}} of a metric on sets of these kinds."""
        return {
            name: self.values[metric, name]
            for name, dataset in self.datasets.items()
            if dataset.kind in kinds and (metric, name) in self.values
        }


def improvements(found: Measurements) -> Iterator[Row]:
    """Yield how many times lower a model's distance or error is than the baseline's, by set."""
    for metric in IMPROVED:
        for name, by_model in found.of(metric, "pairs", "noise").items():
            for model, value in by_model.items():
                if model != found.baseline and value > 0 and found.baseline in by_model:
                    yield Row(f"improv. x, {metric}", name, model, by_model[found.baseline] / value)


def text_ratios(found: Measurements) -> Iterator[Row]:
    """Yield Figure 4: types and tokens of noisy text per type and token of clean text, by set."""
    for name, by_model in found.of("ttr_ratio", "pairs", "noise").items():
        for model, ttr in by_model.items():
            sides = (found.values[f"tokens_{side}", name][model] for side in ("noisy", "clean"))
            tokens = next(sides) / next(sides)
            yield Row("Figure 4", name, "types", ttr * tokens)
            yield Row("Figure 4", name, "tokens", tokens)
            yield Row("Figure 4", name, "types per token", ttr)


def quantiles(found: Measurements) -> Iterator[Row]:
    """Yield Figures 5 and 6: quantiles of each model's xSIM error over languages."""
    for where in QUANTILES:
        for model, errors in errors_by_model(found, where).items():
            for name, share in SHARES.items():
                yield Row(where, name, model, float(np.quantile(errors, share)), len(errors))


def errors_by_model(found: Measurements, where: str) -> dict[str, list[float]]:
    """Return {model: its xSIM errors over languages, lowest first} for Figure 5 or 6."""
    errors: dict[str, list[float]] = {}
    for _, by_model in translations(found, *ERRORS, QUANTILES[where]).values():
        for model, value in by_model.items():
            errors.setdefault(model, []).append(value)
    return {model: sorted(values) for model, values in errors.items()}


def translations(
    found: Measurements, forward: str, backward: str, way: str
) -> dict[str, tuple[str, dict[str, float]]]:
    """Return {retrieval set: (the language that is not English, {model: value})} in one direction.

    The metrics `forward` and `backward` are from source to target and back. A set whose source is
    English has En→XX as its forward metric, another set as its backward metric.
    """
    sets = {}
    for name in found.of(forward, "retrieval"):
        source, target = languages(name) or ("en", "")
        is_forward = (source == "en") == (way == "En→XX")
        other = target if source == "en" else source
        sets[name] = other, found.values[forward if is_forward else backward, name]
    return sets


def languages(name: str) -> tuple[str, str] | None:
    """Return the codes of the two languages in the name of a set, 'v1 deu-eng'; None without."""
    pair = language_pair(name.rpartition(" ")[2])
    return (language_code(pair[0]) or "", language_code(pair[1]) or "") if pair else None


def retrieval_means(found: Measurements, seen: Sequence[str]) -> Iterator[Row]:
    """Yield Table 3 with Figure 3, and Table 11 with Figure 6: means of both ways over languages.

    Then every pair of languages follows, for Figures 7 to 16.
    """
    groups: dict[str, Callable[[str], bool]] = {
        "Tatoeba-14": TATOEBA_14.__contains__,
        "Tatoeba-36": TATOEBA_36.__contains__,
        "seen": lambda lang: lang in seen,
        "unseen": lambda lang: bool(lang) and lang not in seen,
        "all": lambda _: True,
    }
    for way in WAYS:
        sets = translations(found, *ACCURACIES, way)
        for where, is_switched in (("Table 3", False), ("Table 11", True)):
            own = [one for name, one in sets.items() if is_switched == name.startswith(SWITCHED)]
            for group, is_in in groups.items():
                chosen = [by_model for lang, by_model in own if is_in(lang)]
                yield from means(where, f"{group}, {way}", chosen)
        for name, (_, by_model) in sets.items():
            yield from means("Figures 7 to 16", f"{name}, {way}", [by_model])


def similarity_means(found: Measurements, seen: Sequence[str]) -> Iterator[Row]:
    """Yield Table 10 with Figure 4: means of STS within a language and across two."""
    sets = found.of("sts_clean", "sts")
    groups = {
        "within languages": lambda one, other: one == other,
        "across languages": lambda one, other: one != other,
        "seen": lambda *both: {*both} <= {*seen, "en"},
        "unseen": lambda *both: not {*both} <= {*seen, "en"},
    }
    for group, is_in in groups.items():
        known = ((languages(name), by_model) for name, by_model in sets.items())
        chosen = [by_model for langs, by_model in known if langs and is_in(*langs)]
        yield from means("Table 10", group, chosen)
    yield from means("Table 10", "all", list(sets.values()))


def means(where: str, group: str, sets: Sequence[Mapping[str, float]]) -> Iterator[Row]:
    """Yield each model's mean over sets, {model: value}; nothing for no sets."""
    for model in sets[0] if sets else ():
        values = [by_model[model] for by_model in sets if model in by_model]
        yield Row(where, group, model, fmean(values), len(values))


def bars(rows: Sequence[Row], where: str, title: str, unit: str) -> Section:
    """Return a section with the rows of a figure as bars: a label per group, a bar per model."""
    shown = [row for row in rows if row.where == where]
    models = list(dict.fromkeys(row.model for row in shown))
    groups = list(dict.fromkeys(row.group for row in shown))
    value = {(row.group, row.model): row.value for row in shown}
    series = {model: [value.get((group, model), 0.0) for group in groups] for model in models}
    blocks = [Bars(title, unit, groups, series)] if shown else []
    return Section(title.partition(":")[0].replace(" ", "-"), title, blocks)


def quantile_curves(found: Measurements, where: str) -> Section:
    """Return a section with a curve per model: its errors over languages, lowest first."""
    drawn, count = [], 0
    for style, (model, errors) in enumerate(errors_by_model(found, where).items()):
        count = max(count, len(errors))
        across = np.linspace(0, 100, len(errors)).tolist() if len(errors) > 1 else [50.0]
        drawn.append(Curve(model, style, list(zip(across, errors, strict=True))))
    chart = charts.curves(drawn, title="xSIM error (%)", x_title="quantile (%)", linear=True)
    caption = f"Per cent of wrong translations, over {count} languages from best to worst."
    return Section(where.partition(":")[0], where, [Figure([chart], caption)] if chart else [])


def rolaser(found: Measurements, _: Sequence[str]) -> tuple[list[Row], list[Section]]:
    """Return the rows and figures of RoLASER's paper."""
    rows = [*improvements(found), *text_ratios(found), *quantiles(found)]
    ratios = bars(rows, "Figure 4", "Figure 4: noisy text per clean text", "ratio")
    return rows, [ratios, *(quantile_curves(found, where) for where in QUANTILES)]


def oracle(found: Measurements, seen: Sequence[str]) -> tuple[list[Row], list[Section]]:
    """Return the rows and figures of ORACLE's paper."""
    rows = [*retrieval_means(found, seen), *similarity_means(found, seen)]
    accuracy, points = "% found", "100 x Spearman"
    return rows, [
        bars(rows, "Table 3", "Figure 3: retrieval", accuracy),
        bars(rows, "Table 10", "Figure 4: semantic textual similarity", points),
        bars(rows, "Table 11", "Figure 6: code-switched retrieval", accuracy),
        bars(rows, "Figures 7 to 16", "Figures 7 to 16: each pair of languages", accuracy),
    ]


PAPERS = {"rolaser": rolaser, "oracle": oracle}


def main() -> None:
    """Read the reports; print the rows, write them and the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paper", choices=PAPERS)
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--seen", nargs="*", default=SEEN, help="languages that heads trained on")
    given = parser.parse_args()
    rows, sections = PAPERS[given.paper](Measurements.read(given.reports), given.seen)
    given.out.mkdir(parents=True, exist_ok=True)
    with (given.out / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([Row._fields, *rows])
    page = pages.page(f"Figures of {given.paper}", sections, kicker="noisegen: papers")
    (given.out / "figures.html").write_text(page, "utf-8")
    table = titled()
    for name in Row._fields:
        table.add_column(name, justify="right" if name in ("value", "sets") else "left")
    for row in rows:
        table.add_row(*row[:3], f"{row.value:.3f}", str(row.sets))
    Console().print(table)


if __name__ == "__main__":
    main()
