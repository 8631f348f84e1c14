"""Total CPU of two workers against one, and the same bytes from every way to run the tasks."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from benchmarks import inputs
from benchmarks.measure import Result, Skipped, Target, best, child, report

TIMES_ROWS = 5  # start-up must not decide: 1 M rows where others take 200,000
WAYS = {
    "serial": ("--executor", "serial", "--workers", "1"),
    "2 workers": ("--workers", "2"),
}


def results(rows: int) -> Iterator[Result | Skipped]:
    """Measure CPU, then compare the digests of the shards, Dask's too where it is installed."""
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as name:
        folder = Path(name)
        source = inputs.parquet(folder, rows * TIMES_ROWS)
        jobs = {way: _job(source, folder / way, *options) for way, options in WAYS.items()}
        seconds = best(jobs)
        if find_spec("distributed"):
            with _cluster() as address:
                _job(source, folder / "dask", "--executor", f"dask:{address}")()
        digests = {path.name: _digests(path) for path in folder.iterdir() if path.is_dir()}
    failed = len(set(digests.values())) > 1
    equal = f"digests {'DIFFER' if failed else 'equal'}: {', '.join(sorted(digests))}"
    yield Result("CPU of 2 workers", seconds["2 workers"], seconds["serial"], "CPU s", "1 worker",
                 Target("<", 1.10), equal, failed)  # fmt: skip
    if not find_spec("distributed"):
        yield Skipped("digest with Dask", "not installed")


def _job(source: Path, out: Path, *options: str) -> Callable[[], float]:
    command = ("-m", "noisegen", "augment", str(source), "-o", str(out), "--id-column", "id")
    return lambda: child((*command, "--tagger", "rule", "--quiet", "--force", *options)).cpu


@contextmanager
def _cluster() -> Iterator[str]:
    """Start two Dask workers on this machine and yield the address of their scheduler."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def _digests(out: Path) -> tuple[str, ...]:
    shards = json.loads((out / "manifest.json").read_text("utf-8"))["shards"]
    return tuple(shard["sha256"] for shard in shards)


if __name__ == "__main__":
    report(results)
