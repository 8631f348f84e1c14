"""Worker processes that can be stopped at any moment.

Each worker process has a thread in the parent process, which talks to it over a pipe of its own.
Workers share no queue and no lock. So a worker can be killed while it starts, computes or sends a
result: its thread sees the pipe end, and nothing else waits for the worker.
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

TRIES = 3  # most runs of a task, if its worker process dies each time
SECONDS_TO_END = 5.0  # seconds that an idle worker has to end by itself before it is killed
DIED = (
    f"a worker process died {TRIES} times (out of memory? a script without "
    "`if __name__ == '__main__':`?); lower --workers, then run again"
)
_SPAWN = get_context("spawn")  # not fork: a forked process lacks the threads of Arrow
_STOP = b""  # the message by which the parent asks an idle worker to end


class Pool:
    """Up to `size` worker processes, each started when it gets its first task.

    A task whose worker dies runs again, at most TRIES times in all. `close` ends the workers.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.is_closed = False
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._own = threading.local()  # has in each thread its worker as the attribute `worker`
        self._threads = ThreadPoolExecutor(size, "worker", initializer=_leave_signals_to_others)

    def submit(self, function: Callable[[T], R], task: T) -> "Future[R]":
        """Call `function(task)` in a worker process and return a future of the result."""
        return self._threads.submit(self._run, function, task)

    def close(self, *, at_once: bool) -> None:
        """End the workers: kill them if `at_once`, else ask them to stop; they are idle then."""
        with self._lock:
            self.is_closed = True
        for worker in self._workers:
            worker.kill() if at_once else worker.stop()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.join()

    def _run(self, function: Callable[[T], R], task: T) -> R:
        """Run a task in the worker of this thread and return its result.

        If the worker dies, a new worker of this thread runs the task again.
        """
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
        raise NoisegenError(DIED).as_temporary()

    def _worker(self) -> "_Worker":
        """Return the worker of this thread; start it if there is none.

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
    """A worker process and the parent's end of the pipe to it."""

    def __init__(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        with theirs:
            self._process = _SPAWN.Process(target=_work, args=(theirs,), daemon=True)
            self._process.start()

    def ask(self, message: Any) -> bytes:
        """Send a pickled task, wait, and return the pickled answer.

        Raises EOFError or OSError if the worker dies.
        """
        self._pipe.send_bytes(message)
        return self._pipe.recv_bytes()

    def stop(self) -> None:
        """Ask the worker to end; it must be idle."""
        try:
            self._pipe.send_bytes(_STOP)
        except OSError:  # the process is dead already
            self.kill()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def join(self) -> None:
        """Wait until the process has ended; kill it if that takes over SECONDS_TO_END."""
        self._process.join(SECONDS_TO_END)
        if self._process.exitcode is None:
            self.kill()
            self._process.join(SECONDS_TO_END)
        self._pipe.close()


def _leave_signals_to_others() -> None:
    """Block Ctrl-C in this thread and in the processes that it starts.

    Ctrl-C reaches all processes of a terminal, and a half-started process would print a traceback.
    """
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def _work(pipe: Connection) -> None:
    """Run each task that the parent sends until it sends _STOP: a worker's main function."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent alone acts on Ctrl-C
    messages = SimpleQueue[bytes]()
    threading.Thread(target=_receive, args=(pipe, messages), daemon=True).start()
    while message := messages.get():
        pipe.send_bytes(_answer(message))


def _receive(pipe: Connection, messages: "SimpleQueue[bytes]") -> None:
    """Put the parent's messages into a queue; end this process if the parent has ended."""
    while True:
        try:
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            os._exit(1)
        messages.put(message)
        if message == _STOP:
            return


def _answer(message: bytes) -> Any:
    """Call a pickled (function, task); return pickled (None, result) or (error, None)."""
    try:
        function, task = pickle.loads(message)
        return ForkingPickler.dumps((None, function(task)))
    except BaseException as error:
        where = f"in a worker process:\n{traceback.format_exc()}"
        if not isinstance(error, NoisegenError):  # a bug; pickling would lose its traceback
            error.add_note(where)
        try:
            return ForkingPickler.dumps((error, None))
        except Exception:  # an error that cannot be pickled
            return ForkingPickler.dumps((RuntimeError(where), None))
