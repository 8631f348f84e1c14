"""Dask clusters on loopback: a small one, and one whose workers are killed while tasks run.

def test_killed_workers_change_nothing(tmp_path, eight_workers, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the workers are elsewhere
    with eight_workers.killing(2):
        made = noisegen.mine_pairs(source, "out", executor=eight_workers.executor)
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

MEMORY = "1GB"  # of each of the eight: a nanny ends the worker that needs more


@dataclass(frozen=True)
class Cluster:
    """A running cluster; `executor` is what `--executor` takes."""

    made: Any  # distributed.LocalCluster
    executor: str

    @contextmanager
    def killing(self, count: int, once: Callable[[], object] = lambda: True) -> Iterator[list[int]]:
        """Send SIGKILL to so many workers in the block, each as it runs a task; yield their pids.

        They are killed `once` something is so. Fails where the block is over before. A nanny starts
        another worker for each.
        """
        killed, over = list[int](), threading.Event()

        def watch() -> None:
            while len(killed) < count and not over.wait(0.002):
                if once():
                    killed.extend(self._kill_busy(killed))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield killed
        finally:
            over.set()
            watcher.join()
        assert len(killed) == count, f"{len(killed)} of {count} workers ran a task long enough"

    def _kill_busy(self, killed: list[int]) -> list[int]:
        """Kill one worker that runs a task, and has not been killed; return its pid."""
        pids = {nanny.worker_address: nanny.pid for nanny in self.made.workers.values()}
        for address, worker in list(self.made.scheduler.workers.items()):
            pid = pids.get(address)
            if worker.processing and pid not in (None, *killed):
                os.kill(pid, signal.SIGKILL)
                return [pid]
        return []


@contextmanager
def local_cluster(folder: Any, workers: int, memory: str | None = None) -> Iterator[Cluster]:
    """Start a scheduler and workers of one thread, a process each, with a memory limit."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
        local_directory=str(folder),
        memory_limit=memory,
    ) as made:
        yield Cluster(made, f"dask:{made.scheduler_address}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[str]:
    """A Dask scheduler on loopback with two worker processes."""
    with local_cluster(tmp_path_factory.mktemp("dask"), 2) as made:
        yield made.executor


@pytest.fixture(scope="module")
def eight_workers(tmp_path_factory) -> Iterator[Cluster]:
    """Eight worker processes with at most 1 GB each, for nightly tests."""
    with local_cluster(tmp_path_factory.mktemp("dask"), 8, MEMORY) as made:
        yield made
