"""Executors of tasks with equal results: serial, a pool of processes, or a Dask cluster."""

import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from noisegen.errors import NoisegenError, UsageError, naming_extras
from noisegen.runs.pool import DIED, Pool

T = TypeVar("T")
R = TypeVar("R")

DASK = "dask:"
IN_FLIGHT_PER_WORKER = 2  # tasks planned ahead, which bounds the memory of streamed sources
DASK_SECONDS = 20  # within which a scheduler has to answer
SECONDS_BETWEEN_LOOKS = 1.0  # between two looks at the size of a cluster, which may change


class Submitting(Protocol):
    """Whatever runs a function on a task elsewhere: a `Pool`, or the executor of a Dask client."""

    def submit(self, function: Callable[[T], R], task: T, /) -> "Future[R]":
        """Return the future result."""


def check_executor(name: str) -> None:
    """Raise UsageError for an unknown executor."""
    if name not in ("serial", "processes") and not is_remote(name):
        raise UsageError(f"no executor {name!r}; write serial, processes or dask:ADDRESS")


def is_remote(name: str) -> bool:
    """Return whether tasks run on other machines or in other folders, which need full paths."""
    return name.startswith(DASK)


def run(
    function: Callable[[T], R], tasks: Iterable[T], executor: str = "processes", workers: int = 1
) -> Generator[R, None, None]:
    """Yield the result of every task in the order in which tasks finish.

    `executor` is 'serial', 'processes' (serial too for one worker or task) or 'dask:ADDRESS'. A
    task whose worker is lost runs again, three times in all; an error of a task is raised here.
    Close the generator to end the workers at once.
    """
    check_executor(executor)
    tasks = iter(tasks)
    if is_remote(executor):
        with _dask(executor.removeprefix(DASK)) as (cluster, size):
            yield from _side_by_side(cluster, function, tasks, size)
        return
    head = list(islice(tasks, 2))
    tasks = chain(head, tasks)
    if executor == "serial" or workers == 1 or len(head) < 2:
        yield from map(function, tasks)
        return
    with _pool(workers) as pool:
        yield from _side_by_side(pool, function, tasks, lambda: workers)


def run_in_order(
    function: Callable[[T], R], tasks: Iterable[T], executor: str = "processes", workers: int = 1
) -> Generator[R, None, None]:
    """Yield the results of `run` in the order of the tasks; hold results that come early."""
    early: dict[int, R] = {}
    numbered = partial(_numbered, function)
    following = 0
    with closing(run(numbered, enumerate(tasks), executor, workers)) as results:
        for number, result in results:
            early[number] = result
            while following in early:
                yield early.pop(following)
                following += 1


def _numbered(function: Callable[[T], R], task: tuple[int, T]) -> tuple[int, R]:
    return task[0], function(task[1])


_idle: ContextVar[dict[int, Pool] | None] = ContextVar("idle", default=None)  # by their workers


@contextmanager
def workers_reused() -> Iterator[None]:
    """Let the workers of a `run` in this block wait for the next `run`: a start takes a second."""
    idle: dict[int, Pool] = {}
    token = _idle.set(idle)
    try:
        yield
    finally:
        _idle.reset(token)
        for pool in idle.values():
            pool.close(at_once=False)


@contextmanager
def _pool(workers: int) -> Iterator[Pool]:
    """Yield an idle pool or a new one; keep it for the next run inside `workers_reused`."""
    idle = _idle.get()
    pool = (idle or {}).pop(workers, None) or Pool(workers)
    try:
        yield pool
    except BaseException:
        pool.close(at_once=True)
        raise
    if idle is None:
        pool.close(at_once=False)
    else:
        idle[workers] = pool


def _side_by_side(
    executor: Submitting, function: Callable[[T], R], tasks: Iterator[T], size: Callable[[], int]
) -> Generator[R, None, None]:
    """Keep the workers supplied with tasks and yield results; `size` returns their number now.

    A future reports its own end to a queue: to look at every future takes long for many workers.
    """
    finished: SimpleQueue[Future[R]] = SimpleQueue()
    in_flight = 0
    while True:
        for task in islice(tasks, max(0, size() * IN_FLIGHT_PER_WORKER - in_flight)):
            executor.submit(function, task).add_done_callback(finished.put)
            in_flight += 1
        if not in_flight:
            return
        try:
            future = finished.get(timeout=SECONDS_BETWEEN_LOOKS)
        except Empty:
            continue
        in_flight -= 1
        yield future.result()


@contextmanager
def _dask(address: str) -> Iterator[tuple[Submitting, Callable[[], int]]]:
    """Connect to a scheduler; yield its executor and a function that returns its threads."""
    with naming_extras("distributed"):
        from distributed import Client
        from distributed.scheduler import KilledWorker
    try:
        client: Any = Client(address, timeout=DASK_SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise NoisegenError(
            f"no Dask scheduler answers at {address!r}: {error}; is it running?"
        ) from error
    pool = client.get_executor(pure=False)  # equal tasks run more than once
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # a lost scheduler is reported in one line below
    try:
        yield pool, _size_of(client)
    except KilledWorker as error:
        raise NoisegenError(DIED).passes() from error
    except (CancelledError, OSError) as error:
        lost = NoisegenError(f"lost the Dask scheduler at {address!r}; run again")
        raise lost.passes() from error
    finally:
        pool.shutdown(wait=False)
        client.close()
        log.setLevel(level)


def _size_of(client: Any) -> Callable[[], int]:
    """Return a function that returns the number of threads of a cluster now."""
    threads, asked = 1, -SECONDS_BETWEEN_LOOKS

    def size() -> int:
        nonlocal threads, asked
        if time.monotonic() - asked >= SECONDS_BETWEEN_LOOKS:
            threads, asked = max(1, sum(client.nthreads().values())), time.monotonic()
        return threads

    return size
