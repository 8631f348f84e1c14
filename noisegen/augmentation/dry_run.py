"""Estimate of the output and the time of `augment`, measured on a sample of its input."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from noisegen.augmentation import Request
from noisegen.data.files import shard_files
from noisegen.data.rows import FileRange
from noisegen.runs.estimate import SAMPLE_SECONDS, RunEstimate
from noisegen.runs.manifest import Manifest

FIRST_ROWS = 100  # rows of the first sample; its time counts as the time to start
ROWS_COUNTED = 2_000  # maximum rows per range of the input that is read to count its rows
GROWTH = 20  # maximum ratio of the rows in a sample to the rows in the sample before


@dataclass(frozen=True)
class Sample:
    """Counts of a run on the first rows of its input, and its time in seconds.

    `rows` is the number of rows read times the copies of each row. `made` is the number of rows
    written, `bytes` their size.
    """

    rows: int
    made: int
    bytes: int
    seconds: float


def count_rows(parts: Iterable[FileRange], total: int) -> tuple[int, bool]:
    """Return the number of rows in an input of `total` bytes, and whether it is exact.

    The file ranges `parts` are read for about a second. The rows of unread ranges are estimated
    from the rows per byte so far. The bytes of a block are counted before its rows, so
    the ratio is taken just before the next block, when all these rows are counted.
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
    """Call `run` with more and more rows, until a run takes about a second or has `most` rows.

    Returns the sample of the last run, and the seconds of the first run, which count as the time
    to start.
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
    parts: Iterable[FileRange],
    total: int,
    run: Callable[[str, int, int], Manifest],
    request: Request,
    workers: int,
) -> RunEstimate:
    """Return the estimate for the run of a request on an input of `total` bytes.

    `parts` are the file ranges of the input. `run` makes the runs to be timed. Its arguments are an
    output folder, how many first rows to noise, and the copies of each row.
    """
    count, exact = count_rows(parts, total)
    count = min(count, request.limit or count)
    most = min(count, request.rows_per_shard)

    def timed(rows: int) -> Sample:
        copies = max(1, rows // most)  # a small input is noised several times, to be timed
        with TemporaryDirectory() as out:
            began = time.perf_counter()
            totals = run(out, min(rows, most), copies).totals
            seconds = time.perf_counter() - began
            written = sum(path.stat().st_size for path in shard_files(Path(out)))
        return Sample(totals["rows_in"] * copies, totals["rows"], written, seconds)

    sample, start = sampled(timed, most * request.copies)
    shards = math.ceil(count / request.rows_per_shard)
    times = count * request.copies / max(1, sample.rows)
    at_once = min(workers, shards)
    return RunEstimate(
        input=count,
        input_unit="rows",
        exact=exact,
        made=round(sample.made * times) + count * request.with_clean,
        unit="rows",
        shards=shards,
        bytes=round(sample.bytes * times),
        seconds=start + sample.seconds * times / at_once,
        workers=at_once,
        rate=sample.rows / request.copies / sample.seconds,
    )
