"""The lock of an output folder, held by one run, or by several processes with different tasks.

A run writes a lock file of its own into OUT/.noisegen and then looks for the lock files of other
runs. Two runs that begin at once therefore see each other; both remove their locks and try again
after a random pause. A run is alive as long as its process. The process of a run on another host or
in another container cannot be seen; such a run is alive as long as it touches its lock file.
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

Share = tuple[int, int]  # (remainder, count): the tasks with number % count == remainder
ALL_TASKS: Share = (0, 1)
STATE = ".noisegen"  # hidden folder in OUT with the locks and records of the run
SECONDS_BETWEEN_BEATS = 5.0  # how often a living run touches its lock file
SECONDS_STALE = 60.0  # a run on another host that has not touched its lock for so long is dead
TRIES = 5  # attempts to write a lock file
PAUSES = (0.2, 0.5, 1.0)  # maximum seconds before the second, third and fourth try for the lock
_PART = re.compile(r"part-(\d+)-of-(\d+)")


@dataclass(frozen=True)
class Owner:
    """Identity of a process: no other process, on any host and at any time, has an equal one."""

    host: str
    machine: str  # boot id of the host and process namespace; '' if the system does not say
    pid: int
    started: str  # start time, since a later process may get the same `pid`

    @classmethod
    def here(cls) -> "Owner":
        """Return the identity of this process."""
        machine = ""
        with suppress(OSError):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            machine = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
        return cls(platform.node(), machine, os.getpid(), _started(os.getpid()))

    def is_alive(self) -> bool | None:
        """Return whether the process is running; None if it is on another host or container."""
        if not self.machine or self.machine != Owner.here().machine:
            return None
        return _started(self.pid) == self.started


def _started(pid: int) -> str:
    """Return the start time of process `pid`; '' if it has ended or the system does not say."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    return ""


@dataclass(frozen=True)
class Lock:
    """The lock file of a run; its name begins with the scope, the work that the lock protects."""

    path: Path

    @property
    def scope(self) -> str:
        """Work that the lock protects: 'part-I-of-N' of all tasks, or a step such as 'finish'."""
        return self.path.name.partition(".")[0]

    @property
    def owner(self) -> Owner:
        """The process that holds the lock, read from the lock file.

        Raises OSError or OutputError for a missing file, ValueError for a damaged one.
        """
        return msgspec.json.decode(self.path.read_text("utf-8"), type=Owner)

    def described(self) -> str:
        """Return words for an error: 'process 7 on host', or the lock file's path if unreadable."""
        with suppress(OSError, OutputError, ValueError):
            return f"process {self.owner.pid} on {self.owner.host}"
        return f"its lock is {self.path}"

    def beat(self) -> None:
        """Touch the lock file to show that the run is alive; do nothing if the file is gone."""
        with suppress(OSError, OutputError):
            if isinstance(self.path, Path):
                os.utime(self.path)
            elif self.path.exists():
                write_text(self.path, self.path.read_text("utf-8"))

    def others(self) -> "list[Lock]":
        """Return all locks in the folder except this one."""
        return [Lock(path) for path in self.path.parent.glob("*.lock") if path != self.path]

    def rivals(self, show: Show) -> "list[Lock]":
        """Return other locks, of living runs, that exclude this lock; remove locks of dead runs.

        `show` is called with a message if it takes long to see whether a run is alive.
        """
        alive = []
        for lock in self.others():
            if not _excludes(lock.scope, self.scope):
                continue
            if lock.is_alive(self, show):
                alive.append(lock)
            else:
                remove(lock.path)
        return alive

    def is_alive(self, own: "Lock", show: Show | None = None) -> bool:
        """Return whether the run that holds this lock is alive; `own` is the lock of this process.

        A run on another host is alive if it touched its lock file less than SECONDS_STALE before
        this run touched `own`: both times come from the file system, so clocks of hosts need not
        agree. If `show` is given, it gets a message, and the lock file is watched for the rest of
        SECONDS_STALE before the run counts as dead.
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
        except ValueError:  # damaged, so of no living run: lock files are renamed when complete
            return False
        except (OSError, OutputError):  # the lock file is unreadable, or gone as the run has ended
            return self.path.exists()
        return True

    def _touched(self) -> int:
        return int(self.path.stat().st_mtime_ns)


def share_scope(share: Share) -> str:
    """Return the scope of the lock for a share of the tasks, such as 'part-1-of-4'."""
    return f"part-{share[0] + 1}-of-{share[1]}"


def _excludes(one: str, other: str) -> bool:
    """Return whether locks with these scopes exclude each other.

    They do if the scopes are equal, or if both are shares of the tasks with a task in common.
    """
    parts = _PART.fullmatch(one), _PART.fullmatch(other)
    if not (parts[0] and parts[1]):
        return one == other
    (first, count), (second, others) = (map(int, part.groups()) for part in parts if part)
    return (first - second) % gcd(count, others) == 0


@contextmanager
def locked(
    out: Path, scope: str = share_scope(ALL_TASKS), show: Show = silent, *, wait: bool = False
) -> Iterator[Lock]:
    """Hold and yield the lock for the work `scope` on the folder `out` in the `with` block.

    If another run holds it, try again; raise OutputError after a few tries unless `wait` is True.
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
        with suppress(OSError):  # not empty: the hidden folder may hold records or other locks
            lock.path.parent.rmdir()


def _take(lock: Lock, show: Show) -> list[Lock]:
    """Write the lock file; return the locks of other runs that exclude this lock.

    If there are any, the lock is not taken: its file is removed again.
    """
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
