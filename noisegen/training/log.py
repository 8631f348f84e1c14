"""What a run tells: log.jsonl always, TensorBoard where it is asked for, a line for people."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from noisegen.atomic import write_text, writing

Sink = Callable[[dict[str, Any]], None]  # takes one row of figures


class JsonLines:
    """A line a row; a resumed run goes on after the step it resumes from."""

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
        rows = [line for line in kept if _step(line) <= step] if step else []
        write_text(path, "".join(f"{line}\n" for line in rows))

    def __call__(self, row: dict[str, Any]) -> None:
        """Write it, rounded to six digits."""
        with writing(self.path), self.path.open("a") as file:
            file.write(json.dumps({key: _rounded(value) for key, value in row.items()}) + "\n")


def _step(line: str) -> float:
    """Return the step of a line; a line that was cut short belongs to none."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def tensorboard(folder: Path) -> Sink:
    """Return a sink for TensorBoard; raises MissingExtra."""
    from noisegen.errors import MissingExtra

    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtra("tensorboard", "tensorboard") from error
    writer: Any = SummaryWriter(str(folder))

    def write(row: dict[str, Any]) -> None:
        for name, value in row.items():
            if isinstance(value, int | float) and name != "step":
                writer.add_scalar(name, value, row["step"])
        writer.flush()

    return write


def run_sinks(folder: Path, done: int, given: Sequence[Sink], *, leads: bool, boards: bool) -> Sink:
    """Return the sink of a run after `done` updates: those given, and the files of the first."""
    files: list[Sink] = [JsonLines(folder / "log.jsonl", done)] if leads else []
    files += [tensorboard(folder / "tensorboard")] if leads and boards else []
    return tee([*given, *files])


def tee(sinks: Sequence[Sink]) -> Sink:
    """Return a sink that gives every row to all."""

    def write(row: dict[str, Any]) -> None:
        for sink in sinks:
            sink(row)

    return write


_SHOWN = (
    ("tokens_per_second", "{:,.0f} tok/s"),
    ("pairs_per_second", "{:,.0f} pairs/s"),
    ("padding", "pad {:.1%}"),
    ("mfu", "mfu {:.0%}"),
    ("wait", "wait {:.0%}"),
    ("done", "{:.0%}"),
)  # figures of a row, those that its method has


def line_of(row: dict[str, Any]) -> str:
    """Return the figures of a step in one line."""
    parts = " ".join(
        f"{name.removeprefix('loss_')} {row[name]:.4f}"
        for name in row
        if name.startswith("loss_") and len([n for n in row if n.startswith("loss_")]) > 1
    )
    said = [f"step {row['step']:,}", f"loss {row['loss']:.4f}" + (f" ({parts})" if parts else "")]
    said += [shown.format(row[name]) for name, shown in _SHOWN if row.get(name) is not None]
    said.append(f"eta {clock(row['eta'])}")
    return "  ".join(said)


def clock(seconds: float) -> str:
    """Return 1h02m, 6m12s or 9s."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
