"""Commands in forked processes: the program without the second that importing it takes.

What runs in the child is `noisegen` itself, in a group of processes of its own; the process that
forks has imported all of the program and run nothing of it.
"""

import os
import pkgutil
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from subprocess import TimeoutExpired

BEGINNING = 0.01  # seconds after which a child is in the command


def load() -> None:
    """Import the whole program, so that children need not."""
    import noisegen

    for module in pkgutil.walk_packages(noisegen.__path__, "noisegen."):
        import_module(module.name)


def environment() -> dict[str, str]:
    """Return the environment of a process that imports what this one can."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


@dataclass
class Forked:
    """A command that runs, and leads its group of processes; the interface is that of Popen."""

    pid: int
    code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, or minus the signal that ended it; raises TimeoutExpired."""
        if self.code is None:
            ended = os.pidfd_open(self.pid)
            try:
                if not select.select([ended], [], [], timeout)[0]:
                    raise TimeoutExpired("noisegen", timeout or 0)
            finally:
                os.close(ended)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code


def fork(words: Sequence[str], folder: Path, first: Callable[[], None] | None = None) -> Forked:
    """Start `noisegen WORDS` in a folder, after `first`; return as soon as it leads a group."""
    ready, begun = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            _become_program(words, folder)
            if first:
                first()
            os.close(begun)
            _run()
        finally:
            os._exit(1)
    os.close(begun)
    select.select([ready], [], [])  # readable once the child has let go of the other end
    os.close(ready)
    return Forked(pid)


def _become_program(words: Sequence[str], folder: Path) -> None:
    """Leave what is the parent's: group, folder, streams, and the main module."""
    os.setsid()
    os.chdir(folder)
    for number, name in enumerate((os.devnull, "stdout", "stderr")):
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    sys.argv[:] = ["noisegen", *words]
    sys.modules["__main__"] = import_module("noisegen.__main__")  # what its workers import
    sys.stdin, sys.stdout, sys.stderr = (open(n, "rww"[n], closefd=False) for n in range(3))  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tracker = resource_tracker._resource_tracker  # else the parent's, which outlives the command
    tracker._fd = tracker._pid = None  # type: ignore[attr-defined]


def _run() -> None:
    """Run the program, and end as the interpreter does."""
    from noisegen.cli import main

    code: object = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    threading._shutdown()  # type: ignore[attr-defined]
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)
