"""What a run would make and how long it would take, measured on a sample of its input."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from noisegen.data.files import shard_files
from noisegen.data.rows import FileRange
from noisegen.runs.manifest import Manifest, counted
from noisegen.runs.progress import BYTES, duration, size

FIRST_ROWS = 100  # of the first sample, whose time is that of starting
SAMPLE_SECONDS = 1.0
ROWS_COUNTED = 2_000  # of a part whose rows are counted
GROWTH = 20  # of a sample over the one before, at most
UNKNOWN = "input     of unknown size: nothing can be estimated"


@dataclass(frozen=True)
class Sample:
    """What a run made of a part of its input, and in how many seconds."""

    rows: int
    made: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Asked:
    """What a dry run asks for: `made` is the total of the manifest that counts what is written.

    Each row is written `copies` times.
    """

    made: str
    unit: str
    limit: int | None
    rows_per_shard: int
    workers: int
    copies: int = 1


@dataclass(frozen=True)
class RunEstimate:
    """What a run reads and makes, and the seconds that it takes.

    `input` are rows, or bytes, as `input_unit` says; `exact` tells whether they were counted.
    `made` counts what is written, of the name `unit`; one file has no `shards`. `rate` is the input
    per second of a worker.
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
            given, rate = size(self.input), size(self.rate)
        else:
            count = f"{self.input:,}" if self.exact else f"about {_rounded(self.input)}"
            given, rate = (_of(n, self.input_unit) for n in (count, _rounded(self.rate)))
        shards = f" in {counted(self.shards, 'shard')}" if self.shards else ""
        workers = f"{counted(self.workers, 'worker')}, {rate}/s each"
        return [
            f"input     {given}",
            f"output    about {_of(_rounded(self.made), self.unit)}{shards}, {size(self.bytes)}",
            f"time      about {duration(self.seconds)} ({workers})",
        ]


def _of(count: str, unit: str) -> str:
    """Return '1 row', '1,200 rows'; `unit` is the plural."""
    return f"{count} {unit.removesuffix('s') if count.split()[-1] == '1' else unit}"


def _rounded(count: float) -> str:
    """Return a number with three digits that count."""
    return f"{float(f'{count:.3g}'):,.15g}"


def count_rows(parts: Iterable[FileRange], total: int) -> tuple[int, bool]:
    """Return the rows of an input of `total` bytes, counted or estimated, and whether counted.

    Parts are taken for about a second. Bytes are read in blocks ahead of the rows in them: the
    ratio is taken where a block ends.
    """
    until = time.monotonic() + SAMPLE_SECONDS
    rows = read = 0
    ratio = 0.0
    for part in parts:
        if part.size and read:
            ratio = rows / read
        rows, read = rows + part.rows, read + part.size
        if time.monotonic() > until:
            return round(total * (ratio or rows / read)) if read else rows, False
    return rows, True


def sampled(run: Callable[[int], Sample], most: int) -> tuple[Sample, float]:
    """Run on so many first rows that it takes about a second; return that, and the time to start.

    `most` are the rows of the input, or of a shard.
    """
    start = run(min(FIRST_ROWS, most)).seconds
    rows = min(FIRST_ROWS * GROWTH, most)
    while True:
        sample = run(rows)
        if sample.seconds > SAMPLE_SECONDS / 2 or rows == most:
            return sample, start
        wanted = rows * SAMPLE_SECONDS / sample.seconds
        rows = min(most, round(min(wanted, rows * GROWTH)))


def estimate(
    parts: Iterable[FileRange], total: int, run: Callable[[str, int, int], Manifest], asked: Asked
) -> RunEstimate:
    """Return what a run on an input of `total` bytes will make; `parts` are its rows.

    `run` runs into a folder on so many first rows, with so many copies of each, and is timed.
    """
    count, exact = count_rows(parts, total)
    count = min(count, asked.limit or count)
    most = min(count, asked.rows_per_shard)

    def timed(rows: int) -> Sample:
        copies = max(1, rows // most)  # few rows alone need several for a sample
        with TemporaryDirectory() as out:
            began = time.perf_counter()
            totals = run(out, min(rows, most), copies).totals
            seconds = time.perf_counter() - began
            written = sum(path.stat().st_size for path in shard_files(Path(out)))
        return Sample(totals["rows_in"] * copies, totals[asked.made], written, seconds)

    sample, start = sampled(timed, most * asked.copies)
    shards = math.ceil(count / asked.rows_per_shard)
    times = count * asked.copies / max(1, sample.rows)
    at_once = min(asked.workers, shards)
    return RunEstimate(
        input=count, input_unit="rows", exact=exact, made=round(sample.made * times),
        unit=asked.unit, shards=shards, bytes=round(sample.bytes * times), workers=at_once,
        rate=sample.rows / asked.copies / sample.seconds,
        seconds=start + sample.seconds * times / at_once,
    )  # fmt: skip
