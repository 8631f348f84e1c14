"""Running tasks: one after another, in a pool of processes, or on a Dask cluster; the same rows."""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import connection, get_context, parent_process
from typing import Any, TypeVar

from noisegen.errors import MissingExtra, NoisegenError, UsageError

T = TypeVar("T")
R = TypeVar("R")

TRIES = 3
IN_FLIGHT_PER_WORKER = 2  # bounds what is planned ahead, and so the memory of streamed sources


def run(
    function: Callable[[T], R], tasks: Iterable[T], executor: str = "processes", workers: int = 1
) -> Iterator[R]:
    """Yield the result of every task, as they finish.

    `executor` is 'serial', 'processes' (serial too with one worker) or 'dask:ADDRESS'. A task whose
    worker is lost runs again, `TRIES` times at most; an error raised by a task is raised here.
    """
    if executor.startswith("dask:"):
        with _dask(executor.removeprefix("dask:")) as (pool, size):
            yield from _spread(lambda: pool, function, tasks, size)
    elif executor not in ("serial", "processes"):
        raise UsageError(f"no executor {executor!r}; write serial, processes or dask:ADDRESS")
    elif executor == "serial" or workers == 1:
        yield from map(function, tasks)
    else:
        yield from _spread(lambda: _processes(workers), function, tasks, workers)


def _processes(workers: int) -> ProcessPoolExecutor:
    # Spawned, not forked: Arrow's threads do not survive a fork.
    return ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start_worker)


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _spread(
    make_pool: Callable[[], Executor], function: Callable[[T], R], tasks: Iterable[T], workers: int
) -> Iterator[R]:
    """Keep a few tasks in flight; make a new pool when one breaks."""
    pool, left = make_pool(), iter(tasks)
    running: dict[Future[R], tuple[T, int]] = {}
    try:
        while True:
            for task in islice(left, max(0, workers * IN_FLIGHT_PER_WORKER - len(running))):
                running[pool.submit(function, task)] = (task, 1)
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            broken = [future for future in done if _is_lost(future)]
            for future in done - set(broken):
                del running[future]
                yield future.result()
            if broken:
                pool.shutdown(wait=False, cancel_futures=True)
                pool = make_pool()
                running = dict(_again(pool, function, list(running.values())))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _is_lost(future: Future[R]) -> bool:
    return not future.cancelled() and isinstance(future.exception(), BrokenProcessPool)


def _again(
    pool: Executor, function: Callable[[T], R], lost: list[tuple[T, int]]
) -> Iterator[tuple[Future[R], tuple[T, int]]]:
    """Submit tasks again after a worker was lost; any of them may have been its end."""
    for task, tries in lost:
        if tries == TRIES:
            raise NoisegenError(
                f"a worker process died {TRIES} times in a row (out of memory?); finished shards "
                "are kept: run again with --resume and fewer --workers or --rows-per-shard"
            )
        yield pool.submit(function, task), (task, tries + 1)


@contextmanager
def _dask(address: str) -> Iterator[tuple[Executor, int]]:
    """Connect to a scheduler; yield its executor and the number of its threads."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtra("distributed", "dask") from error
    try:
        client: Any = Client(address, timeout="20s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise NoisegenError(f"no Dask scheduler answers at {address!r}: {error}") from error
    try:
        size = sum(client.nthreads().values())
        yield client.get_executor(retries=TRIES), max(1, size)
    finally:
        client.close()
