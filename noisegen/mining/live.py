"""How far running tasks are: every worker tells a small file, and the caller adds them up.

A task may be one dump file of hours, and workers may be other processes or machines; what they
share is the output folder.
"""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from noisegen.mining.pairs import Account

SECONDS = 1.0  # between two notes

Show = Callable[[Counter[str]], None]


@contextmanager
def telling(path: Path, account: Account) -> Iterator[None]:
    """Keep what a task has read in a file, until it ends."""
    written = path.with_name(path.name.replace(".live.", ".newlive."))

    def tell() -> None:
        written.write_text(json.dumps(dict(account.read)), "utf-8")
        written.replace(path)

    try:
        with _every(SECONDS, tell):
            yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def watched(folder: Path, show: Show | None) -> Iterator[None]:
    """Show the sum of what all running tasks have read."""
    if show is None:
        yield
        return
    with _every(SECONDS, lambda: show(running(folder))):
        yield


def running(folder: Path) -> Counter[str]:
    """Return the sum of what the running tasks of a folder have read."""
    total: Counter[str] = Counter()
    for path in folder.glob("*.live.tmp"):
        try:
            total.update(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError):
            continue  # its task has ended
    return total


@contextmanager
def _every(seconds: float, action: Callable[[], None]) -> Iterator[None]:
    """Do something again and again beside what is done; a folder that is gone ends it."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            try:
                action()
            except OSError:
                return

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
