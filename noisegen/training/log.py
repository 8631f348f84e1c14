"""The log of a training run: a smoothed loss, and sinks (functions that write rows of figures)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisegen.errors import naming_extras
from noisegen.runs.atomic import write_text, writing
from noisegen.training.settings import Sink

SMOOTHING = 0.98  # weight of the old average in each update; the new loss has weight 0.02
# Formats of the figures on the progress line, by the names that the figures have in the log.
_SHOWN = {
    "step": "step {:,}",
    "smoothed_loss": "loss {:.4f}",
    "validation_loss": "held out {:.4f}",
    "tokens_per_second": "{:,.0f} tokens/s",
    "mfu": "mfu {:.0%}",
}


@dataclass
class SmoothedLoss:
    """Exponential moving average of the loss over all updates: `total` / `weight`.

    Both start at 0. Without the division, the first averages would be too low.
    """

    total: float = 0.0
    weight: float = 0.0

    def add(self, loss: float, updates: int) -> float:
        """Add `loss`, the mean loss of the last `updates` updates; return the new average."""
        kept = SMOOTHING**updates
        self.total = kept * self.total + (1 - kept) * loss
        self.weight = kept * self.weight + 1 - kept
        return self.total / self.weight


def json_lines(path: Path, step: int) -> Sink:
    """Return a sink that appends each row of the log to the file `path` as a line of JSON.

    Figures are rounded to six significant digits. A run that resumes after `step` updates keeps the
    lines up to this update, and removes later and incomplete lines. A new run (0) clears the file.
    """
    kept = []
    if step and path.exists():
        for line in path.read_text("utf-8", "replace").splitlines():
            row = re.fullmatch(r'\{"step": (\d+),.*\}', line)
            if row and int(row[1]) <= step:
                kept.append(f"{line}\n")
    write_text(path, "".join(kept))

    def write(row: dict[str, Any]) -> None:
        rounded = {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in row.items()
        }
        with writing(path), path.open("a") as file:
            file.write(json.dumps(rounded) + "\n")

    return write


def tensorboard(folder: Path) -> Sink:
    """Return a sink that writes the figures into `folder` for TensorBoard; raises MissingExtra."""
    with naming_extras():
        from torch.utils.tensorboard import SummaryWriter
    writer: Any = SummaryWriter(str(folder))

    def write(row: dict[str, Any]) -> None:
        for name, value in row.items():
            if isinstance(value, int | float) and name != "step":
                writer.add_scalar(name, value, row["step"])
        writer.flush()

    return write


def line_of(row: Mapping[str, Any]) -> str:
    """Return the main figures in a row of the log as one line: 'step 20, loss 0.1'."""
    return ", ".join(words.format(row[name]) for name, words in _SHOWN.items() if name in row)
