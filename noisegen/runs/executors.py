"""Executors of tasks: serial, a pool of processes, or a Dask cluster; the same results."""

import logging
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import chain, islice
from multiprocessing import connection, get_context
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from noisegen.errors import NoisegenError, UsageError, naming_extras

T = TypeVar("T")
R = TypeVar("R")

DASK = "dask:"
TRIES = 3
IN_FLIGHT_PER_WORKER = 2  # bounds what is planned ahead, and so the memory of streamed sources
DASK_SECONDS = 20  # for a scheduler to answer
SECONDS_BETWEEN_LOOKS = 1.0  # at the size of a cluster, which may grow and shrink
DIED = (
    f"a worker process died {TRIES} times (out of memory? a script without "
    "`if __name__ == '__main__':`?); lower --workers, then run again"
)


def check_executor(name: str) -> None:
    """Raise UsageError unless there is such an executor."""
    if name not in ("serial", "processes") and not is_remote(name):
        raise UsageError(f"no executor {name!r}; write serial, processes or dask:ADDRESS")


def is_remote(name: str) -> bool:
    """Tell whether tasks run on other machines or in other folders, where paths must be whole."""
    return name.startswith(DASK)


def run(
    function: Callable[[T], R], tasks: Iterable[T], executor: str = "processes", workers: int = 1
) -> Generator[R, None, None]:
    """Yield the result of every task, as they finish.

    `executor` is 'serial', 'processes' (serial too for one worker or task) or 'dask:ADDRESS'. A
    task whose worker is lost runs again, `TRIES` times in all; an error that it raises is raised
    here. Close the generator to end the workers at once.
    """
    check_executor(executor)
    tasks = iter(tasks)
    if is_remote(executor):
        with _dask(executor.removeprefix(DASK)) as (pool, size):
            if (yield from _side_by_side(pool, function, tasks, size)):
                raise NoisegenError(DIED).passes()
        return
    head = list(islice(tasks, 2))
    tasks = chain(head, tasks)
    if executor == "serial" or workers == 1 or len(head) < 2:
        yield from map(function, tasks)
        return
    suspects: deque[tuple[T, int]] = deque()  # tasks in flight when a pool broke, and their tries
    while True:
        with _pool(workers) as pool:
            while suspects:  # each alone, so that blame falls on the right one
                task, tries = suspects[0]
                if (yield from _side_by_side(pool, function, iter([task]), lambda: 1)):
                    if tries + 1 == TRIES:
                        raise NoisegenError(DIED).passes()
                    suspects[0] = task, tries + 1
                    break
                suspects.popleft()
            else:
                lost = yield from _side_by_side(pool, function, tasks, lambda: workers)
                if not lost:
                    return
                suspects.extend((task, 1) for task in lost)


def run_in_order(
    function: Callable[[T], R], tasks: Iterable[T], executor: str = "processes", workers: int = 1
) -> Generator[R, None, None]:
    """Yield what `run` does in the order of the tasks; results that come early are held."""
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


_Pools = dict[int, tuple[ProcessPoolExecutor, ExitStack]]  # by their workers
_idle: ContextVar[_Pools | None] = ContextVar("idle", default=None)


@contextmanager
def workers_reused() -> Iterator[None]:
    """Let the workers of a `run` in this block wait for the next: one takes a second to start."""
    idle: _Pools = {}
    token = _idle.set(idle)
    try:
        yield
    finally:
        _idle.reset(token)
        for _, stack in idle.values():
            stack.close()


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Yield idle processes, or start some; those of a whole pool wait where they are reused."""
    idle = _idle.get()
    pool, stack = (idle or {}).pop(workers, (None, ExitStack()))
    with stack:
        pool = pool or stack.enter_context(_processes(workers))
        yield pool
        if idle is not None and not pool._broken:
            idle[workers] = pool, stack.pop_all()


@contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes as they get work; an exception ends them, whatever they are doing."""
    context = get_context("spawn")  # not forked: Arrow's threads do not survive that
    alive, held = context.Pipe(duplex=False)
    with alive, held:
        pool = ProcessPoolExecutor(workers, context, _start_worker, (alive,))
        try:
            yield pool
        except BaseException:
            held.close()
            # A worker that ends while it sends leaves half a result. As long as this process could
            # write too, its thread that reads results would wait for the other half for ever.
            pool._result_queue._writer.close()  # type: ignore[attr-defined]
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _start_worker(alive: connection.Connection) -> None:
    """Leave Ctrl-C to the parent, and end when it lets go of the pipe, even by being killed."""

    def end_with_parent() -> None:
        connection.wait([alive])
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()


def _side_by_side(
    pool: Executor, function: Callable[[T], R], tasks: Iterator[T], size: Callable[[], int]
) -> Generator[R, None, list[T]]:
    """Keep workers supplied with tasks and yield results; return those a broken pool loses.

    `size` says how many workers there are now. Futures come by themselves when they are done: to
    ask all takes long where workers are many.
    """
    running: dict[Future[R], T] = {}
    finished: SimpleQueue[Future[R]] = SimpleQueue()
    while True:
        for task in islice(tasks, max(0, size() * IN_FLIGHT_PER_WORKER - len(running))):
            try:
                with _without_interrupt():
                    future = pool.submit(function, task)
            except BrokenExecutor as error:
                future = Future()
                future.set_exception(error)
            running[future] = task
            future.add_done_callback(finished.put)
        if not running:
            return []
        try:
            done = {finished.get(timeout=SECONDS_BETWEEN_LOOKS)}
        except Empty:
            continue
        broken = any(map(_is_lost, done))
        if broken:
            done, _ = wait(running, timeout=10)
        for future in [future for future in done if not _is_lost(future)]:
            del running[future]
            yield future.result()
        if broken:
            return list(running.values())


@contextmanager
def _without_interrupt() -> Iterator[None]:
    """Put Ctrl-C off, which goes to all processes: one that is half started prints a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    missed: list[tuple[Any, ...]] = []
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda *given: missed.append(given)) if main else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if main:
            signal.signal(signal.SIGINT, handler)
        if missed and callable(handler):
            handler(*missed[0])


def _is_lost(future: Future[R]) -> bool:
    return not future.cancelled() and isinstance(future.exception(), BrokenExecutor)


@contextmanager
def _dask(address: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """Connect to a scheduler; yield its executor and what tells the number of its threads."""
    with naming_extras("distributed"):
        from distributed import Client
        from distributed.scheduler import KilledWorker
    try:
        client: Any = Client(address, timeout=DASK_SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise NoisegenError(
            f"no Dask scheduler answers at {address!r}: {error}; is it running?"
        ) from error
    pool = client.get_executor(pure=False)  # equal tasks are not one task
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # a lost scheduler is one line, below, and no traceback
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
    """Return what tells the threads of a cluster, and asks its scheduler now and then."""
    threads, asked = 1, -SECONDS_BETWEEN_LOOKS

    def size() -> int:
        nonlocal threads, asked
        if time.monotonic() - asked >= SECONDS_BETWEEN_LOOKS:
            threads, asked = max(1, sum(client.nthreads().values())), time.monotonic()
        return threads

    return size
