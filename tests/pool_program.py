"""A program whose two workers reach a moment, and the tasks that reach it; imports little."""

import signal
import sys
import time
from functools import partial
from pathlib import Path

from noisegen.runs import executors


class RunError(Exception):
    """An error in the parent."""


class SlowToArrive:
    """A task that takes a minute to be unpickled, as one whose module is imported for long."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return _arrive, (self.mark,)


class SlowToSend:
    """A result that marks when it is about to be sent, and is more than a pipe holds."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark
        self.content = bytes(40_000_000)

    def __reduce__(self):
        _reach(self.mark)
        return bytes, (self.content,)


def _reach(mark: Path) -> None:
    mark.write_text("reached")


def _arrive(mark: Path) -> None:
    _reach(mark)
    time.sleep(60)


def starting(mark: Path, number: int) -> None:
    """Do nothing: the signal comes while the workers start."""


def computing(mark: Path, number: int) -> int:
    if number:  # the first task ends, so that the parent can fail
        _reach(mark)
        time.sleep(60)
    return number


def sending(mark: Path, number: int) -> SlowToSend | int:
    return SlowToSend(mark) if number else number


def failing(mark: Path, number: int) -> int:
    _reach(mark)
    if number:
        raise RunError
    return number


MOMENTS = {"starting": starting, "computing": computing, "sending": sending, "failing": failing}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line does
    moment, mark, fails = sys.argv[1:]
    for _ in executors.run(partial(MOMENTS[moment], Path(mark)), range(9), workers=2):
        if fails == "fails":
            raise RunError
