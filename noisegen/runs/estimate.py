"""The estimate that `--dry-run` prints: input, output and duration of a run."""

from dataclasses import dataclass

from noisegen.runs.manifest import counted
from noisegen.runs.progress import BYTES, duration, size

SAMPLE_SECONDS = 1.0  # seconds of work that are measured for an estimate
UNKNOWN = "input     of unknown size: nothing can be estimated"


@dataclass(frozen=True)
class RunEstimate:
    """Estimated input and output of a run, and its duration in seconds.

    `input` is the size of the input in `input_unit`, rows or bytes; `exact` is False if this size
    is only estimated. `made` is the size of the output in `unit`, such as rows or pairs, and
    `bytes` its size on disk. `shards` is 0 for a run that writes one file. `rate` is how much input
    one worker reads per second, in `input_unit`.
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
        """Return the estimate as three lines for the user."""
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
    """Return a count with its unit: '1 row', '1,200 rows'; `unit` is a plural such as 'rows'."""
    return f"{count} {unit.removesuffix('s') if count.split()[-1] == '1' else unit}"


def _rounded(count: float) -> str:
    """Return a number rounded to three significant digits, as text."""
    return f"{float(f'{count:.3g}'):,.15g}"
