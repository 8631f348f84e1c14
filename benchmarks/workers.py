"""Total CPU of two workers against one, and the same bytes from every way to run the tasks.

Two busy cores slow each other down, so a second line compares two workers with two lone processes
(`--part`) that make half the shards each, at the same time: the difference is the cost of our pool.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from benchmarks import inputs
from benchmarks.measure import Result, Skipped, Target, best, child, report

TIMES_ROWS = 5  # start-up must not decide: 1 M rows where others take 200,000
ONE = ("--executor", "serial", "--workers", "1")


def results(rows: int) -> Iterator[Result | Skipped]:
    """Measure CPU, then compare the digests of the shards, Dask's too where it is installed."""
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as name:
        folder = Path(name)
        source = inputs.parquet(folder, rows * TIMES_ROWS)
        serial = _job(source, folder / "serial", "--force", *ONE)
        two = _job(source, folder / "2 workers", "--force", "--workers", "2")
        halves = _halves(source, folder / "parts")
        seconds = best({"serial": serial, "two": two, "halves": halves})
        if find_spec("distributed"):
            with _cluster() as address:
                _job(source, folder / "dask", "--executor", f"dask:{address}")()
        digests = {path.name: _digests(path) for path in folder.iterdir() if path.is_dir()}
    failed = len(set(digests.values())) > 1
    equal = f"digests {'DIFFER' if failed else 'equal'}: {', '.join(sorted(digests))}"
    yield Result(
        "CPU of 2 workers",
        seconds["two"],
        seconds["serial"],
        "CPU s",
        "1 worker",
        Target("<", 1.10),
        equal,
        failed,
    )
    yield Result(
        "CPU of 2 workers", seconds["two"], seconds["halves"], "CPU s", "2 processes with --part"
    )
    if not find_spec("distributed"):
        yield Skipped("digest with Dask", "not installed")


def _halves(source: Path, out: Path) -> Callable[[], float]:
    """Return the job of two processes at once, each with one half of the shards."""
    parts = [_job(source, out, "--part", f"{part}/2", *ONE) for part in (1, 2)]

    def job() -> float:
        shutil.rmtree(out, ignore_errors=True)
        with ThreadPoolExecutor(len(parts)) as pool:
            futures = [pool.submit(part) for part in parts]
        return sum(future.result() for future in futures)

    return job


def _job(source: Path, out: Path, *options: str) -> Callable[[], float]:
    command = ("-m", "noisegen", "augment", str(source), "-o", str(out), "--id-column", "id")
    return lambda: child((*command, "--tagger", "rule", "--quiet", *options)).cpu


@contextmanager
def _cluster() -> Iterator[str]:
    """Start two Dask workers on this machine and yield the address of their scheduler."""
    from distributed import LocalCluster

    size = {"n_workers": 2, "threads_per_worker": 1}
    with LocalCluster(**size, dashboard_address=None) as cluster:  # type: ignore[no-untyped-call]
        yield cluster.scheduler_address


def _digests(out: Path) -> tuple[str, ...]:
    shards = json.loads((out / "manifest.json").read_text("utf-8"))["shards"]
    return tuple(shard["sha256"] for shard in shards)


if __name__ == "__main__":
    report(results)
