"""The figures of `evaluate-task` as files and as a table."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from noisegen.atomic import write_text
from noisegen.tables import titled
from noisegen.tasks.kinds import METRICS, Task
from noisegen.tasks.reading import CLEAN, NOISY
from noisegen.tasks.scores import AVERAGE, CHANGE, Figure, averaged

_SIDES = (CLEAN, NOISY, CHANGE)
_COUNTS = ("hallucinated_spans", "hallucinated_tokens")
_COLUMNS = ("model", "lang", "side", "metric", "value", "sd", "seeds")


@dataclass(frozen=True)
class TaskResults:
    """All of an evaluation on a task."""

    task: Task
    figures: Sequence[Figure]
    settings: dict[str, Any]

    def metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the content of metrics.json: {model: {'es noisy': {metric: value}}}.

        A metric is the mean over seeds; `METRIC_sd`, their standard deviation, where there are two.
        """
        made: dict[str, dict[str, dict[str, float]]] = {}
        for one in self.figures:
            place = made.setdefault(one.model, {}).setdefault(f"{one.lang} {one.side}", {})
            place[one.metric] = one.mean
            if one.sd is not None:
                place[f"{one.metric}_sd"] = one.sd
        return made


def write(results: TaskResults, out: Path) -> None:
    """Write metrics.json, metrics.csv and results.json; raises OutputError."""
    write_text(out / "metrics.json", _json(results.metrics()))
    write_text(out / "metrics.csv", metrics_csv(results.figures))
    said = {"figures": [asdict(one) for one in results.figures], "settings": results.settings}
    write_text(out / "results.json", _json(said))


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def metrics_csv(figures: Sequence[Figure]) -> str:
    """Return a line for each figure; `seeds` has the value of every seed, parted by blanks."""
    lines = io.StringIO()
    table = csv.writer(lines, lineterminator="\n")
    table.writerow(_COLUMNS)
    for one in figures:
        values = " ".join(f"{value:.6g}" for value in one.values)
        table.writerow((one.model, one.lang, one.side, one.metric, one.mean, one.sd, values))
    return lines.getvalue()


def tables_of(results: TaskResults) -> Iterator[Table]:
    """Yield a table for every metric that is shown, as RCP prints them: models across."""
    models = list(dict.fromkeys(one.model for one in results.figures))
    found = {(one.model, one.lang, one.side, one.metric): one for one in results.figures}
    keys = dict.fromkeys((one.lang, one.side) for one in results.figures)
    for metric in results.task.shown:
        table = titled(METRICS[metric])
        table.padding, table.collapse_padding = (0, 1, 0, 0), True
        table.min_width = len(METRICS[metric])  # or the title breaks
        for name in ("", ""):
            table.add_column(name, no_wrap=True)
        for name in models:
            table.add_column(name, justify="right", no_wrap=True)
        for lang in dict.fromkeys(lang for lang, _ in keys):
            for side in (side for side in _SIDES if (lang, side) in keys):
                cells = [_cell(found.get((model, lang, side, metric))) for model in models]
                table.add_row(Text(lang if side == CLEAN else ""), Text(side), *cells)
        yield table


def legend(results: TaskResults) -> str:
    """Return what a reader of the tables must know."""
    said = results.settings
    rows, seeds = said["training"][0]["rows"], len(said["seeds"])
    over = f"mean±sd of {seeds} seeds" if seeds > 1 else "one seed"
    compared = any(one.side == CHANGE for one in results.figures)
    change = f"; {CHANGE}: noisy minus clean, same rows" if compared else ""
    return f"trained on {rows:,} {said['lang']} rows, {over}{change}{_mean_of(results.figures)}"


def _mean_of(figures: Sequence[Figure]) -> str:
    """Return what the mean is over, where that is not all languages."""
    langs = averaged(figures)
    if {one.lang for one in figures} <= {*langs, AVERAGE}:
        return ""
    if len(langs) < 2:
        return f"; no {AVERAGE}: only {langs[0]} has all sides"
    return f"; {AVERAGE}: of {', '.join(langs)}, which have all sides"


def _cell(figure: Figure | None) -> Text:
    if figure is None:
        return Text("-")
    sign = "+" if figure.side == CHANGE else ""
    digits = 1 if figure.metric not in _COUNTS or len(figure.values) > 1 else 0
    spread = "" if figure.sd is None else f"±{figure.sd:.{digits}f}"
    return Text(f"{figure.mean:{sign}.{digits}f}{spread}")
