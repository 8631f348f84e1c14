"""Lines that `noisegen train` prints: cost after a dry run, figures and a forecast after a run."""

from collections.abc import Iterator, Mapping, Sequence
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from noisegen.runs.manifest import counted
from noisegen.runs.progress import duration
from noisegen.training.pairs import lost
from noisegen.training.settings import GIVEN

FORECAST_SECONDS = 600
_UPDATES_MIN = 10  # runs with fewer updates get a warning
_BEHIND = 0.8  # a run with a smaller share of its planned updates is behind its plan
_DOUBLINGS_MAX = 3  # a forecast covers at most three doublings of the time of training
# Titles and formats of the figures in the tables, by their names in metrics.json.
_MEASURES = {
    "distance": ("distance of noisy to clean text", ".4f"),
    "anchored": ("distance of noisy text to the teacher's clean vector", ".4f"),
    "drift": ("drift of clean text from the teacher", ".4f"),
    "xsim_error": ("xSIM error (%)", ".2f"),
    "loss_mlm_noisy": ("loss under masks, noisy text", ".4f"),
    "loss_mlm_clean": ("loss under masks, clean text", ".4f"),
    "loss": ("validation loss", ".4f"),
}
_OF_WORDS = ", and the gain is that of noisy words, which start as their words"
Curve = Sequence[tuple[float, float]]  # (seconds of training, validation loss) of each validation
Row = tuple[str, str, str]  # title of a figure, its value before and after training
# Files and folders that a run may write: the label before the printed path -> the path in RUN.
_WRITTEN = {
    "student": "student",
    "heads": "heads",
    "language": "language",
    "picture": "vectors.html",
}


def lines(metrics: Mapping[str, Any], out: Path) -> Iterator[str]:
    """Yield the lines printed after a run in the folder `out`; `metrics` is its metrics.json."""
    yield reached(metrics)
    yield cpu_time(metrics)
    data = f"data: {seen(metrics['pairs'], metrics['training_pairs'])}"
    yield "; ".join([data, *lost(metrics["dropped"], metrics.get("cut", 0))])
    for table in tables(metrics):
        yield from aligned(table)
    if metrics["best_step"] == 0:
        words = "" if metrics["before"] == metrics["validation"] else _OF_WORDS
        yield (
            "no update improved the figures of the held-out pairs: the weights are those from "
            f"before the first update{words}; give more DATA, or train longer"
        )
    yield outlook(metrics["curve"])
    if lacking := metrics.get("not_kept"):
        yield f"not kept of the teacher: {'; '.join(lacking)}"
    for name, percent in metrics.get("retrieval", {}).items():
        there, back = percent["retrieval.forward"], percent["retrieval.backward"]
        yield f"retrieval by {name} vectors: {there:.1f} % forward, {back:.1f} % backward"
    for name, path in _WRITTEN.items():
        if (out / path).exists():
            yield f"{name}: {out / path}"


def cost(estimate: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that are printed after a dry run; `estimate` is the cost that it returned."""
    if "padding" in estimate:  # false for heads, which read no texts
        size, flop = estimate["weight_bytes"] / 1e9, estimate["flop_per_token"] / 1e6
        yield (
            f"{estimate['parameters']:,} weights, {estimate['trained']:,} trained ({size:.2f} GB "
            f"with gradients and moments), {flop:,.0f} MFLOP per token"
        )
        tokens = f"{estimate['tokens_per_pair']:.1f} tokens, {estimate['padding']:.1%} padding"
        yield f"{counted(estimate['pairs'], 'pair')} of {tokens}"
    else:
        yield f"{estimate['weights']:,} weights"
        yield f"{counted(estimate['pairs'], 'pair')} of {counted(estimate['texts'], 'text')}"
    updates, epoch = estimate["updates"], estimate["updates_per_epoch"]
    each = f"{estimate['pairs_per_update']:.0f} pairs and {estimate['update_seconds']:.2g} s each"
    yield f"{counted(epoch, 'update')} per epoch, {each}"
    yield (
        f"about {duration(estimate['seconds'])}: {duration(estimate['prepared'])} of preparation, "
        f"then {counted(updates, 'update')} ({updates / epoch:,.1f} epochs) and validation"
    )


def reached(metrics: Mapping[str, Any]) -> str:
    """Return the line on updates and time of a run, from the content of its metrics.json.

    Example: '620 updates in 5 min: 41 s of preparation, 4 min 19 s of training and saving'. If
    other programs slowed the run down, it begins with '310 of about 620 planned updates in 5 min'.
    """
    whole, prepared = metrics["seconds"], metrics["prepared"]
    updates = counted(metrics["updates"], "update")
    if _is_behind(metrics):
        updates = f"{metrics['updates']:,} of about {metrics['planned_updates']:,} planned updates"
    parts = f"{duration(prepared)} of preparation, {duration(whole - prepared)} of training"
    line = f"{updates} in {duration(whole)}: {parts} and saving"
    if metrics["stopped_early"]:
        line += "; it ended early, without a new best in its last validations"
    elif metrics["updates"] < _UPDATES_MIN:
        line += "; a student learns little from so few: give it more time or text"
    return line


def _is_behind(metrics: Mapping[str, Any]) -> bool:
    return bool(metrics["updates"] < _BEHIND * metrics["planned_updates"])


def cpu_time(metrics: Mapping[str, Any]) -> str:
    """Return the line on the CPU time of a run, and its share of wall time x threads."""
    cpu, threads = metrics["cpu_seconds"], metrics["threads"]
    share = cpu / (metrics["seconds"] * threads or 1)
    line = f"CPU time: {duration(cpu)}, {share:.0%} of {counted(threads, 'thread')}"
    if _is_behind(metrics):
        line += "; --cpu-limit counts CPU time, whatever else runs"
    return line


def seen(pairs: int, total: int) -> str:
    """Return in words which share of the training pairs a run saw, or how often it saw them.

    `pairs` counts the pairs in all updates, with repetitions, `total` the training pairs.
    """
    if pairs < total:
        return f"{pairs:,} of {total:,} training pairs were seen ({pairs / total:.1%})"
    return f"all {total:,} training pairs were seen, {pairs / total:,.1f} times on average"


def tables(metrics: Mapping[str, Any]) -> list[list[Row]]:
    """Return tables of figures before and after training, from the content of metrics.json.

    There is a table for held-out pairs, and one for pairs of --validation if the run has any.
    """
    before, after = metrics["before"], metrics["validation"]
    found = [before_and_after(before, after, "held-out pairs")]
    if others := _given(after):
        found.append(before_and_after(_given(before), others, "validation pairs"))
    return found


def _given(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figures on pairs of --validation, their names without the prefix `GIVEN`."""
    own = [name for name in figures if name.startswith(GIVEN)]
    return {name.removeprefix(GIVEN): figures[name] for name in own}


def before_and_after(
    before: Mapping[str, float], after: Mapping[str, float], heading: str
) -> list[Row]:
    """Return a table of figures before and after training.

    `heading`, the first cell of the first row, says which pairs were measured: 'held-out pairs'.
    """
    known = [name for name in _MEASURES if name in after]
    names = known if len(known) > 1 else [name for name in after if name != "step"]
    rows: list[Row] = [(heading, "before", "after")]
    for name in names:
        title, form = _MEASURES.get(name, (name.replace("_", " "), ".4f"))
        first = format(before[name], form) if name in before else "-"
        rows.append((title, first, format(after[name], form)))
    return rows


def aligned(rows: Sequence[Row]) -> list[str]:
    """Return the rows of a table as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        f"{title:<{widths[0]}}  {first:>{widths[1]}}  {second:>{widths[2]}}"
        for title, first, second in rows
    ]


def outlook(curve: Curve) -> str:
    """Return a sentence with the validation loss expected after ten more minutes of training."""
    likely = forecast(curve)
    if likely is None:
        return "ten more minutes: no estimate, the run was too short"
    lowest = min(loss for _, loss in curve)
    if likely >= lowest:
        return "ten more minutes: no gain expected, the validation loss has stopped falling"
    return (
        f"ten more minutes: validation loss about {likely:.4f} instead of {lowest:.4f} "
        f"({(likely - lowest) / lowest:+.0%}), if the trend of the second half continues"
    )


def forecast(curve: Curve, more: float = FORECAST_SECONDS) -> float | None:
    """Return the validation loss expected after `more` seconds; None if the run was too short.

    A loss falls by about the same factor whenever the time of training doubles; the factor is
    measured on the second half of the run. The run was too short if `more` seconds would double its
    time more than three times.
    """
    if len(curve) < 3 or (end := curve[-1][0]) <= 0:
        return None
    doublings = log2((end + more) / end)
    if doublings > _DOUBLINGS_MAX:
        return None
    seconds, losses = np.array(curve, np.float64).T
    lowest = np.minimum.accumulate(losses)  # lowest loss up to each validation
    factor = lowest[-1] / np.interp(end / 2, seconds, lowest)
    return float(lowest[-1] * min(1.0, factor) ** doublings)
