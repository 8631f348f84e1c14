"""Estimate of a dry run: input, output and time of the run."""

from dataclasses import dataclass

from noisegen.runs.manifest import counted
from noisegen.runs.progress import BYTES, duration, size

SAMPLE_SECONDS = 1.0  # measured for an estimate
UNKNOWN = "input     of unknown size: nothing can be estimated"


@dataclass(frozen=True)
class RunEstimate:
    """Estimated input and output of a run, and its duration in seconds.

    `input` counts rows or bytes, as `input_unit` says; `exact` is False for an estimated count.
    `made` counts what is written, in the unit `unit`. A run that writes one file has no `shards`.
    `rate` is the input per second of one worker.
    """

    input: int
    input_unit: str
    exact: bool
    made: int
    unit: str
    shards: int
    bytes: int
    seconds: float
    workers: int
    rate: float

    def lines(self) -> list[str]:
        """Return the estimate as lines for a terminal."""
        if self.input_unit == BYTES:
            amount, rate = size(self.input), size(self.rate)
        else:
            count = f"{self.input:,}" if self.exact else f"about {_rounded(self.input)}"
            amount = _with_unit(count, self.input_unit)
            rate = _with_unit(_rounded(self.rate), self.input_unit)
        made = _with_unit(_rounded(self.made), self.unit)
        shards = f" in {counted(self.shards, 'shard')}" if self.shards else ""
        workers = f"{counted(self.workers, 'worker')}, {rate}/s each"
        return [
            f"input     {amount}",
            f"output    about {made}{shards}, {size(self.bytes)}",
            f"time      about {duration(self.seconds)} ({workers})",
        ]


def _with_unit(count: str, unit: str) -> str:
    """Return '1 row', '1,200 rows'; `unit` is the plural."""
    return f"{count} {unit.removesuffix('s') if count.split()[-1] == '1' else unit}"


def _rounded(count: float) -> str:
    """Return a number with three significant digits."""
    return f"{float(f'{count:.3g}'):,.15g}"
