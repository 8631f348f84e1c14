"""20 TB in 200,000 files: the real scheduler over a made listing, with a fake clock.

Planning, run folder, executor, journal and manifest are those of `augment --executor dask:...`; the
cluster is simulated. Each of its tasks takes the time that such a file was measured to take, and
some take longer, or lose their worker. The driver's own time and memory are measured.
"""

import heapq
import json
import os
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import noisegen
from benchmarks import inputs
from benchmarks.measure import Result, Target, Usage, child, cpu, report
from noisegen.augmentation.shards import Shard, ShardTask
from noisegen.runs import executors
from noisegen.runs.folder import shard_path
from noisegen.runs.records import File, Record

WORKERS = (1, 100, 1_000)
FILE_BYTES = 100_000_000
FILE_ROWS = 1_000  # rows of the stand-in for a file, which are not read
SPREAD = 0.1  # standard deviation of the logarithm of task times
SLOW = 0.01, 5  # so many tasks take so many times as long
LOST = 0.002  # share of tasks that lose their worker on the way
SECONDS_TO_REPLACE = 60  # until a worker that was lost is missed, and its task begins again
RATE_ROWS = 40_000
LINKS = 50_000  # to one file, as file systems have bounds
RECIPE = "ugc"


@dataclass
class Cluster(Executor):
    """Workers on a fake clock; to the scheduler, an executor and the queue of finished tasks."""

    workers: int
    seconds: float  # seconds per task
    clock: float = 0.0
    _chance: random.Random = field(default_factory=lambda: random.Random(0))
    _idle: int = 0
    _waiting: deque[tuple[Future[Any], Callable[[Any], Any], Any]] = field(default_factory=deque)
    _running: list[tuple[float, int, Future[Any], Callable[[Any], Any], Any]] = field(
        default_factory=list
    )

    def __post_init__(self) -> None:
        self._idle = self.workers

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:  # type: ignore[override]
        """Take a task."""
        future: Future[Any] = Future()
        self._waiting.append((future, function, task))
        return future

    def put(self, future: Future[Any]) -> None:
        """Do nothing: the next call of `get` returns it."""

    def get(self, timeout: float) -> Future[Any]:
        """Move the clock to the end of the next task, and return it."""
        del timeout
        while self._idle and self._waiting:
            future, function, task = self._waiting.popleft()
            end = self.clock + self._duration()
            heapq.heappush(self._running, (end, task.number, future, function, task))
            self._idle -= 1
        self.clock, _, future, function, task = heapq.heappop(self._running)
        self._idle += 1
        future.set_result(made(function, task))
        return future

    def _duration(self) -> float:
        """Draw how long a task takes, with the tries that were lost."""
        whole = self.seconds * self._chance.lognormvariate(0, SPREAD)
        whole *= SLOW[1] if self._chance.random() < SLOW[0] else 1
        lost = 0.0
        while self._chance.random() < LOST:
            lost += whole * self._chance.random() + SECONDS_TO_REPLACE
        return whole + lost

    @contextmanager
    def connected(self, address: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
        """Stand for the connection to a Dask scheduler."""
        del address
        yield self, lambda: self.workers


def made(function: Callable[[ShardTask], Record[Shard]], task: ShardTask) -> Record[Shard]:
    """Return the record of a task: the first is real, the others leave an empty file."""
    if task.number == 0:
        return function(task)
    job, folder = function.args  # type: ignore[attr-defined]
    path = shard_path(folder, task.number)
    path.touch()
    shard = Shard(
        rows=task.rows,
        changed=task.rows // 2,
        first_row=task.first_row,
        rows_in=task.rows,
        transforms=["cens", "emot", "long", "phon", "punc"],
        characters=FILE_BYTES,
        words=FILE_ROWS,
    )
    file = File(path.relative_to(job.out).as_posix(), f"{task.number:064x}")
    return Record(task.number, (file,), shard)


def listing(folder: Path, files: int) -> Path:
    """Make a folder with `files` names of Parquet files."""
    source = folder / "in"
    source.mkdir()
    table = pa.table({"text": [""] * FILE_ROWS})
    for number in range(files):
        if number % LINKS == 0:
            real = folder / f"real-{number:06d}.parquet"
            pq.write_table(table, real)
        os.link(real, source / f"crawl-{number:06d}.parquet")
    return source


def drive(folder: Path, workers: int, seconds: float, *, is_resumed: bool) -> None:
    """Run the driver, which fails once all tasks are done; or resume that run."""
    cluster = Cluster(workers, seconds)
    executors._dask = cluster.connected  # type: ignore[assignment]
    executors.SimpleQueue = lambda: cluster  # type: ignore[assignment,misc]
    if not is_resumed:
        noisegen.Manifest.save = interrupt  # type: ignore[method-assign,assignment]
    with suppress(KeyboardInterrupt):
        noisegen.augment(
            folder / "in",
            folder / f"out-{workers}",
            recipe=RECIPE,
            rows_per_shard=FILE_ROWS,
            executor="dask:simulated",
            resume=is_resumed,
        )
    (folder / "clock.json").write_text(json.dumps(cluster.clock))


def interrupt(*_: object) -> None:
    """End a run before its manifest."""
    raise KeyboardInterrupt


def driven(folder: Path, workers: int, seconds: float, *, is_resumed: bool = False) -> Usage:
    """Run the driver in a process of its own."""
    words = ("-m", "benchmarks.scale", "--drive", folder, workers, seconds, int(is_resumed))
    return child(tuple(map(str, words)), limit=3_000)


def measured_rate(folder: Path) -> float:
    """Return the bytes of text that one core noises in a second."""
    source = inputs.parquet(folder, RATE_ROWS)
    size = sum(map(len, inputs.texts(RATE_ROWS).to_pylist()))
    run = {"recipe": RECIPE, "tagger": "rule", "id_column": "id", "force": True}
    noisegen.augment(source, folder / "rate", limit=1_000, **run)  # loads the word lists
    return size / cpu(lambda: noisegen.augment(source, folder / "rate", **run))()


def results(rows: int) -> Iterator[Result]:
    """Measure with one file and one task per row of the other benchmarks."""
    files = rows
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as name:
        folder = Path(name)
        rate = measured_rate(folder)
        began = time.monotonic()
        listing(folder, files)
        print(f"made {files:,} files in {time.monotonic() - began:.0f} s", file=sys.stderr)
        seconds, hour = FILE_BYTES / rate, 3_600
        for workers in WORKERS:
            usage = driven(folder, workers, seconds)
            hours = json.loads((folder / "clock.json").read_text()) / hour
            ideal = files * seconds / workers / hour
            note = f"driver {usage.cpu:.0f} CPU s, {rate / 1e6:.1f} MB/s a core"
            yield Result(
                f"{files:,} files on {workers:,} workers",
                hours,
                ideal,
                "h",
                "no loss, no slow task",
                Target("<", 1.2),
                note,
            )
            yield Result(
                "  memory of its driver",
                usage.megabytes,
                files / 1000,
                "MB",
                "thousand files",
                Target("<", 500, "ours"),
            )
        usage = driven(folder, WORKERS[-1], seconds, is_resumed=True)
        out = folder / f"out-{WORKERS[-1]}"
        manifest = sum(path.stat().st_size for path in out.glob("manifest*"))
        note = f"{usage.wall:.0f} s by the clock, manifest {manifest / 1e6:.1f} MB"
        yield Result(
            "resume of as many finished tasks",
            usage.cpu,
            files / 1000,
            "CPU s",
            "thousand files",
            Target("<", 30, "ours"),
            note,
        )
        yield Result(
            "  memory of its driver",
            usage.megabytes,
            files / 1000,
            "MB",
            "thousand files",
            Target("<", 500, "ours"),
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--drive"]:
        drive(
            Path(sys.argv[2]),
            int(sys.argv[3]),
            float(sys.argv[4]),
            is_resumed=bool(int(sys.argv[5])),
        )
    else:
        report(results)
