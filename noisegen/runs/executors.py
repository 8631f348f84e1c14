"""Run tasks one after the other, in worker processes, or on a Dask cluster, with equal results."""

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
IN_FLIGHT_PER_WORKER = 2  # most unfinished tasks submitted: they hold input in memory
DASK_SECONDS = 20  # timeout for the connection to a scheduler
SECONDS_BETWEEN_LOOKS = 1.0  # how often the size of a cluster is asked for, as it may change


class Submitting(Protocol):
    """An object that runs functions in other processes: a `Pool`, or a Dask client's executor."""

    def submit(self, function: Callable[[T], R], task: T, /) -> "Future[R]":
        """Start `function(task)` in another process and return a future of its result."""


def check_executor(name: str) -> None:
    """Raise UsageError unless `name` is serial, processes or dask:ADDRESS."""
    if name not in ("serial", "processes") and not is_remote(name):
        address = name if "://" in name else "ADDRESS"
        raise UsageError(f"no executor {name!r}; write serial, processes or {DASK}{address}")


def is_remote(name: str) -> bool:
    """Return whether an executor's workers may run on other machines; they need absolute paths."""
    return name.startswith(DASK)


def run(
    function: Callable[[T], R], tasks: Iterable[T], executor: str = "processes", workers: int = 1
) -> Generator[R, None, None]:
    """Call `function` with every task and yield the results as tasks finish.

    `executor` is 'serial', 'processes' or 'dask:ADDRESS'. With one worker or one task 'processes'
    starts no process. A task whose worker dies runs again, at most three times in all. An error
    that a task raises is raised here. Close the generator to end the workers at once.
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
    """Yield the results of `run` in the order of the tasks.

    A result is held in memory until all earlier tasks have finished.
    """
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


# Number of workers -> idle pool of that size, while `workers_reused` is in effect
_idle: ContextVar[dict[int, Pool] | None] = ContextVar("idle", default=None)


@contextmanager
def workers_reused() -> Iterator[None]:
    """In the `with` block, let each `run` use the worker processes of the previous `run`.

    This saves about a second per run, the time to start processes.
    """
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
    """Yield an idle pool or a new one; close it at the end unless `workers_reused` keeps it."""
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
    """Submit tasks to `executor` as workers become free; yield the results as tasks finish.

    `size` returns the present number of workers. Each future puts itself into a queue when it ends,
    since looking at all futures takes long with many workers.
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
    """Connect to the Dask scheduler at `address`.

    Yields its executor, and a function that returns the cluster's present number of threads.
    """
    with naming_extras("distributed"):
        from distributed import Client
        from distributed.scheduler import KilledWorker
    try:
        client: Any = Client(address, timeout=DASK_SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise NoisegenError(
            f"no Dask scheduler answers at {address!r}: {error}; is it running?"
        ) from error
    pool = client.get_executor(pure=False)  # with pure=True, equal tasks would run only once
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # the errors below report a lost scheduler in one line
    try:
        yield pool, _size_of(client)
    except KilledWorker as error:
        raise NoisegenError(DIED).as_temporary() from error
    except (CancelledError, OSError) as error:
        lost = NoisegenError(f"lost the Dask scheduler at {address!r}; run again")
        raise lost.as_temporary() from error
    finally:
        pool.shutdown(wait=False)
        client.close()
        log.setLevel(level)


def _size_of(client: Any) -> Callable[[], int]:
    """Return a function that returns the present number of threads of a Dask cluster."""
    threads, asked = 1, -SECONDS_BETWEEN_LOOKS

    def size() -> int:
        nonlocal threads, asked
        if time.monotonic() - asked >= SECONDS_BETWEEN_LOOKS:
            threads, asked = max(1, sum(client.nthreads().values())), time.monotonic()
        return threads

    return size
