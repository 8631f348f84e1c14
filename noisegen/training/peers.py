"""The processes of a run that torchrun started: signs of life, waiting and failure.

A process may wait hours for another, for example while that one reads DATA, so waiting has no
time-out: it ends when a process fails or dies. For this a thread of each process counts beats in
the key-value store that torchrun gives to all processes, and looks at the beats of the others.
"""

import os
import sys
import time
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from threading import Event, Thread
from typing import Any

import torch.distributed as dist

from noisegen.errors import NoisegenError, one_line

BEAT = 1.0  # seconds between two beats
SILENCE = 30.0  # seconds without a beat after which a process counts as dead
GRACE = 10.0  # seconds in which a process ends by itself once another one has failed
_POLLS = 0.005, 0.25  # first and longest pause of a process that waits, in seconds
_runs = count()  # numbers the runs of this process, whose keys in the store differ


class Peers:
    """The processes of a run: waits for all of them, and ends this one if another one fails.

    `failure` describes the failure of another process; it is empty while all is well.
    """

    def __init__(self, store: Any, rank: int, world: int) -> None:
        self.rank, self.world, self.failure = rank, world, ""
        self._store, self._run = store, next(_runs)
        self._waits = 0
        self._is_ending, self._has_left = Event(), Event()
        self._watch = Thread(target=self._beat_and_look, daemon=True)
        self._watch.start()

    def wait(self) -> None:
        """Wait until all processes have called this method; raises NoisegenError if one fails."""
        self._waits += 1
        name, pause = f"wait {self._waits}", _POLLS[0]
        self._count(name, 1)
        while self._count(name) < self.world:
            if self.failure:
                raise NoisegenError(self.failure)
            time.sleep(pause)
            pause = min(2 * pause, _POLLS[1])

    @contextmanager
    def together(self) -> Iterator[None]:
        """Tell all processes about an exception in the with block, and end the beats after it.

        If another process failed first, raises NoisegenError with the failure of that process.
        """
        try:
            yield
        except BaseException as error:
            self._is_ending.set()
            if failure := self._failure_behind(error):
                raise NoisegenError(failure) from error
            self._tell(error)
            raise
        finally:
            self._leave()

    def _failure_behind(self, error: BaseException) -> str:
        """Return the failure of another process that caused an exception here, or ''.

        A collective operation fails at once if another process dies, and the cause is known only
        when that process has been silent for a while.
        """
        is_collective = isinstance(error, dist.DistError) or "gloo" in str(error)
        end = time.monotonic() + (SILENCE + 2 * BEAT if is_collective else 0)
        with suppress(RuntimeError):
            self.failure = self.failure or self._published()
        while not self.failure and time.monotonic() < end:
            time.sleep(BEAT / 10)
        return self.failure

    def _tell(self, error: BaseException) -> None:
        """Publish an exception of this process, unless another process has published one.

        Waits until the others have looked: the store ends with the process that serves it.
        """
        what = "interrupted" if isinstance(error, KeyboardInterrupt) else one_line(error)
        text = f"process {self.rank} of {self.world} failed: {what or type(error).__name__}"
        with suppress(RuntimeError):
            if self._count("failures", 1) == 1:
                self._store.set(self._key("failure"), text)
                time.sleep(2 * BEAT)

    def _published(self) -> str:
        """Return the failure that a process has published, or ''."""
        key = self._key("failure")
        return self._store.get(key).decode() if self._store.check([key]) else ""

    def _count(self, name: str, more: int = 0) -> int:
        """Increase a count in the store, and return it; a new count is 0."""
        total: int = self._store.add(self._key(name), more)
        return total

    def _key(self, name: str) -> str:
        """Return the key of a value in the store; each run of this process has its own keys."""
        return f"noisegen {self._run} {name}"

    def _leave(self) -> None:
        """End the thread of this process, and tell the others that it has ended well."""
        self._has_left.set()
        self._watch.join()
        with suppress(RuntimeError):
            self._count(f"left {self.rank}", 1)

    def _beat_and_look(self) -> None:
        """Beat and look at the others until this process leaves; end it if another one fails."""
        others = [rank for rank in range(self.world) if rank != self.rank]
        heard = {rank: (0, time.monotonic()) for rank in others}
        while not self._has_left.wait(BEAT):
            try:
                self._count(f"beat {self.rank}", 1)
                failure = self._published() or self._silent(heard)
            except RuntimeError:
                failure = "the process that serves the store of the run has ended"
            if failure:
                self.failure = failure
                self._end()

    def _silent(self, heard: dict[int, tuple[int, float]]) -> str:
        """Return a failure if a process has not beaten for `SILENCE` seconds, else ''.

        `heard` has the last known number of beats of each process, and the time of the last change.
        """
        now = time.monotonic()
        for rank, (known, since) in heard.items():
            beats = self._count(f"beat {rank}")
            if beats != known:
                heard[rank] = beats, now
            elif now - since > SILENCE and not self._count(f"left {rank}"):
                return f"process {rank} of {self.world} has ended without a message: out of memory?"
        return ""

    def _end(self) -> None:
        """End this process: by an interrupt, or at once if that has no effect.

        A collective operation that waits for a dead process cannot be interrupted.
        """
        if not self._is_ending.is_set():
            interrupt_main()
        if not self._has_left.wait(GRACE):
            print(f"error: {one_line(self.failure)}", file=sys.stderr, flush=True)
            os._exit(1)
