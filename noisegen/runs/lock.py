"""The lock of an output folder: one run at a time, or several parts of a run without a common task.

A run writes a lock file of its own into OUT/.noisegen and then looks for the lock files of other
runs. So of two runs that begin at once none goes unseen: both see the other, and both give way for
a moment. A run is alive while its process is. A run on another host or in another container is
alive while its lock file is touched.
"""

import json
import os
import platform
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import cycle
from math import gcd
from pathlib import Path
from secrets import token_hex

import msgspec

from noisegen.errors import OutputError
from noisegen.runs.atomic import remove, remove_left, write_text, writing
from noisegen.runs.progress import Progress, Show, repeated, silent

Part = tuple[int, int]  # (remainder, count): all tasks whose number has this remainder
WHOLE: Part = (0, 1)
STATE = ".noisegen"  # hidden folder in OUT with the locks and records of the run
SECONDS_BETWEEN_BEATS = 5.0
SECONDS_STALE = 60.0  # without a beat, after which a run on another host counts as dead
TRIES = 5  # attempts to write a lock
PAUSES = (0.2, 0.5, 1.0)  # maximum seconds before each further attempt to get the lock
_PART = re.compile(r"part-(\d+)-of-(\d+)")


@dataclass(frozen=True)
class Owner:
    """A running process, described so that no other process has the same description."""

    host: str
    machine: str  # boot of the host and namespace of `pid`; '' if the system names neither
    pid: int
    started: str  # start time: a later process may get the same number

    @classmethod
    def here(cls) -> "Owner":
        """Return this process."""
        machine = ""
        with suppress(OSError):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            machine = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
        return cls(platform.node(), machine, os.getpid(), _started(os.getpid()))

    def is_alive(self) -> bool | None:
        """Return whether the process lives; None if it cannot be seen from here."""
        if not self.machine or self.machine != Owner.here().machine:
            return None
        return _started(self.pid) == self.started


def _started(pid: int) -> str:
    """Return the start time of a process; '' if it has ended or the system does not say."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    return ""


@dataclass(frozen=True)
class Lock:
    """The lock file of a run."""

    path: Path

    @property
    def scope(self) -> str:
        """The work that the run does alone: part-I-of-N of the tasks, or a named step."""
        return self.path.name.partition(".")[0]

    @property
    def owner(self) -> Owner:
        """The process of the run; raises OSError, OutputError or ValueError if it is unreadable."""
        return msgspec.json.decode(self.path.read_text("utf-8"), type=Owner)

    def described(self) -> str:
        """Return the process and host of the run, for an error message."""
        with suppress(OSError, OutputError, ValueError):
            return f"process {self.owner.pid} on {self.owner.host}"
        return f"its lock is {self.path}"

    def check(self, out: Path) -> None:
        """Raise OutputError if the lock is gone: files of the run may be gone too."""
        if not self.path.exists():
            reason = "another run took it over, or its files were removed"
            raise OutputError(f"lost {out} while writing into it: {reason}; run again").passes()

    def beat(self) -> None:
        """Touch the lock file, which shows that the run is alive; ignore a file that is gone."""
        with suppress(OSError, OutputError):
            if isinstance(self.path, Path):
                os.utime(self.path)
            elif self.path.exists():
                write_text(self.path, self.path.read_text("utf-8"))

    def others(self) -> "list[Lock]":
        """Return all other locks in the folder."""
        found = (Lock(path) for path in self.path.parent.glob("*.lock"))
        return [lock for lock in found if lock != self]

    def rivals(self, show: Show) -> "list[Lock]":
        """Return the locks of living runs that exclude this run; remove the locks of dead runs."""
        found = [lock for lock in self.others() if _excludes(lock.scope, self.scope)]
        alive = [lock for lock in found if lock.is_alive(self, show)]
        remove(*(lock.path for lock in found if lock not in alive))
        return alive

    def is_alive(self, own: "Lock", show: Show | None = None) -> bool:
        """Return whether the run is at work.

        With `show` the lock of a run on another host is watched until the answer is sure. Times of
        two files in the folder are compared, so clocks of hosts need not agree.
        """
        try:
            owner = self.owner
            if (is_seen := owner.is_alive()) is not None:
                return is_seen
            last = self._touched()
            left = SECONDS_STALE - max(0, own._touched() - last) / 1e9
            if show is None:
                return left > 0
            show(Progress(f"waiting to see whether the run on {owner.host} is still at work"))
            until = time.monotonic() + left
            while self._touched() == last:
                if time.monotonic() > until:
                    return False
                time.sleep(SECONDS_BETWEEN_BEATS / 10)
        except ValueError:  # a damaged file: locks are written at once
            return False
        except (OSError, OutputError):  # the run has just ended, or its file cannot be read
            return self.path.exists()
        return True

    def _touched(self) -> int:
        return int(self.path.stat().st_mtime_ns)


def part_name(share: Part) -> str:
    """Return the scope of a part of the tasks."""
    return f"part-{share[0] + 1}-of-{share[1]}"


def _excludes(one: str, other: str) -> bool:
    """Return whether two scopes are equal, or parts with a common task."""
    parts = _PART.fullmatch(one), _PART.fullmatch(other)
    if not (parts[0] and parts[1]):
        return one == other
    (first, count), (second, others) = (map(int, part.groups()) for part in parts if part)
    return (first - second) % gcd(count, others) == 0


@contextmanager
def locked(
    out: Path, scope: str = part_name(WHOLE), show: Show = silent, *, wait: bool = False
) -> Iterator[Lock]:
    """Hold the lock of a scope in a folder.

    If another run holds it, wait for its end (`wait`) or raise OutputError.
    """
    lock = Lock(out / STATE / f"{scope}.{token_hex(8)}.lock")
    try:
        with repeated(lock.beat, SECONDS_BETWEEN_BEATS):
            pauses = cycle(PAUSES) if wait else iter(PAUSES)
            while rivals := _take(lock, show):
                if (pause := next(pauses, None)) is None:
                    raise OutputError(
                        f"{out} is in use by another run ({rivals[0].described()}): wait until it "
                        "ends, or use another folder"
                    )
                time.sleep(pause * random.random())
            if isinstance(lock.path, Path):
                remove_left(lock.path.parent)
            yield lock
    finally:
        remove(lock.path)
        with suppress(OSError):  # the folder keeps records or other locks
            lock.path.parent.rmdir()


def _take(lock: Lock, show: Show) -> list[Lock]:
    """Write the lock; if other runs exclude it, remove it again and return their locks."""
    for tries_left in range(TRIES)[::-1]:
        try:
            with writing(lock.path.parent):
                lock.path.parent.mkdir(exist_ok=True)
            write_text(lock.path, json.dumps(asdict(Owner.here())))
            break
        except OutputError:  # a run that ended meanwhile may have removed the folder
            if not tries_left:
                raise
    if rivals := lock.rivals(show):
        remove(lock.path)
    return rivals
