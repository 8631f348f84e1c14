"""Worker processes that can be stopped at any moment.

A thread of the parent owns each worker process and talks to it over a pipe of its own. Workers
share no queue and no lock with anything, so a worker may be killed while it starts, computes or
sends half a result: its thread sees the end of the pipe, and nothing else waits for that worker.
"""

import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from typing import Any, TypeVar

from noisegen.errors import NoisegenError

T = TypeVar("T")
R = TypeVar("R")

TRIES = 3  # per task whose worker process dies
SECONDS_TO_END = 5.0  # for an idle worker to end by itself before it is killed
DIED = (
    f"a worker process died {TRIES} times (out of memory? a script without "
    "`if __name__ == '__main__':`?); lower --workers, then run again"
)
_SPAWN = get_context("spawn")  # a forked process would lack the threads of Arrow
_STOP = b""  # message that asks an idle worker to end


class Pool:
    """An executor of `size` worker processes, each started when there is a task for it.

    A task whose worker dies runs again, `TRIES` times in all. Leaving the context with an exception
    kills the workers, whatever they are doing.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.is_closed = False
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._own = threading.local()  # the worker of the current thread
        self._threads = ThreadPoolExecutor(size, "worker", initializer=_leave_signals_to_others)

    def submit(self, function: Callable[[T], R], task: T) -> "Future[R]":
        """Return the future result of a function, called with the task in a worker process."""
        return self._threads.submit(self._run, function, task)

    def close(self, *, at_once: bool) -> None:
        """Stop the workers: `at_once` kills them, otherwise all of them have to be idle."""
        with self._lock:
            self.is_closed = True
        for worker in self._workers:
            worker.kill() if at_once else worker.stop()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.join()

    def _run(self, function: Callable[[T], R], task: T) -> R:
        """Run a task in the worker of this thread, and in a new worker if that one dies."""
        message = ForkingPickler.dumps((function, task))
        for _ in range(TRIES):
            try:
                answer = self._worker().ask(message)
            except (EOFError, OSError):  # the process died, or could not be started
                self._own.worker = None
                continue
            error, result = pickle.loads(answer)
            if error is not None:
                raise error
            return result  # type: ignore[no-any-return]
        raise NoisegenError(DIED).passes()

    def _worker(self) -> "_Worker":
        """Return the worker of this thread, started if need be.

        Raises OSError if no process can be started, NoisegenError if the pool is closed.
        """
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            with self._lock:
                if self.is_closed:
                    raise NoisegenError("the worker processes were stopped")
                self._own.worker = worker = _Worker()
                self._workers.append(worker)
        return worker


class _Worker:
    """A worker process as its parent sees it."""

    def __init__(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        with theirs:
            self._process = _SPAWN.Process(target=_work, args=(theirs,), daemon=True)
            self._process.start()

    def ask(self, message: Any) -> bytes:
        """Send a task, wait and return the answer; raises EOFError, OSError if the worker dies."""
        self._pipe.send_bytes(message)
        return self._pipe.recv_bytes()

    def stop(self) -> None:
        """Ask the worker, which has to be idle, to end."""
        try:
            self._pipe.send_bytes(_STOP)
        except OSError:  # it is dead
            self.kill()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def join(self) -> None:
        """Wait for the end of the process; kill it if it does not end."""
        self._process.join(SECONDS_TO_END)
        if self._process.exitcode is None:
            self.kill()
            self._process.join(SECONDS_TO_END)
        self._pipe.close()


def _leave_signals_to_others() -> None:
    """Block Ctrl-C in a thread and in the processes that the thread starts.

    Ctrl-C goes to all processes of a terminal: a half-started process would print a traceback.
    """
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def _work(pipe: Connection) -> None:
    """Answer the messages of the parent until it asks to stop: the main function of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent acts on Ctrl-C
    messages = SimpleQueue[bytes]()
    threading.Thread(target=_receive, args=(pipe, messages), daemon=True).start()
    while message := messages.get():
        pipe.send_bytes(_answer(message))


def _receive(pipe: Connection, messages: "SimpleQueue[bytes]") -> None:
    """Queue the messages of the parent; end the process when the parent is gone."""
    while True:
        try:
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            os._exit(1)
        messages.put(message)
        if message == _STOP:
            return


def _answer(message: bytes) -> Any:
    """Run the pickled function on its task; return (error or None, result), pickled."""
    try:
        function, task = pickle.loads(message)
        return ForkingPickler.dumps((None, function(task)))
    except BaseException as error:
        where = f"in a worker process:\n{traceback.format_exc()}"
        if not isinstance(error, NoisegenError):  # a bug: the parent's traceback ends at the pipe
            error.add_note(where)
        try:
            return ForkingPickler.dumps((error, None))
        except Exception:  # an error that cannot be pickled
            return ForkingPickler.dumps((RuntimeError(where), None))
