"""A Dask cluster in a process of its own, which kills a busy worker when it is asked to.

The process prints the cluster's address, and for every line that it reads how many it killed.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import clusters

from campaigns.forks import environment

WORKERS = 2
PATIENCE = 3.0  # seconds in which a worker may get something to do
LOOKED_AT = 5.0  # seconds; a nanny that failed to start a worker gives up for good


@dataclass(frozen=True)
class Cluster:
    """The process as its parent sees it; `executor` is what `--executor` takes."""

    process: subprocess.Popen[str]
    executor: str

    def kill_a_worker(self) -> int:
        """Kill a worker that is busy soon; return how many were killed, 0 or 1."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("kill\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@contextmanager
def running() -> Iterator[Cluster]:
    """Start the process, and end it."""
    with subprocess.Popen(
        [sys.executable, "-m", "campaigns.cluster"],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield Cluster(process, process.stdout.readline().strip())
        finally:
            process.stdin.close()


@contextmanager
def _kept_whole(cluster: clusters.Cluster) -> Iterator[None]:
    """Start workers anew, in the block, for those whose nannies gave up."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOKED_AT):
            cluster.made.scale(WORKERS)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _main() -> None:
    with (
        TemporaryDirectory(prefix="dask-") as folder,
        clusters.local_cluster(folder, WORKERS) as cluster,
        _kept_whole(cluster),
    ):
        print(cluster.executor, flush=True)
        for _ in sys.stdin:
            end, killed = time.monotonic() + PATIENCE, list[int]()
            while not killed and time.monotonic() < end:
                killed = cluster._kill_busy([])
                time.sleep(0.002)
            print(len(killed), flush=True)


if __name__ == "__main__":
    _main()
