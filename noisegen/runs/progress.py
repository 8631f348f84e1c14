"""Progress of a command: one event, and one printer for all of them.

Tasks that take hours write what they have read into files beside their output, and the caller adds
it up: workers may be other processes or machines.
"""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_UPDATES = 1.0


@dataclass(frozen=True)
class Progress:
    """How far a command is: `done` of `total` units (0: unknown total), and other counts.

    Of `counts`, those called bytes are shown as the speed of reading, in MB/s.
    """

    doing: str = ""
    done: int = 0
    total: int = 0
    unit: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)

    def text(self, seconds: float) -> str:
        """Return the event in one line; without a total also the speed over `seconds`."""
        parts = [self.doing] if self.doing else []
        if self.unit and (self.total or self.counts or not self.doing):
            of = f" of {self.total:,}" if self.total else ""
            parts.append(f"{self.done:,}{of} {self.unit}")
        parts += [f"{n:,} {name}" for name, n in self.counts.items() if n and name != "bytes"]
        if "bytes" in self.counts:
            parts.append(f"{self.counts['bytes'] / 1e6 / max(seconds, 1e-3):,.0f} MB/s")
        elif self.unit and not self.total and not self.doing:
            parts.append(f"{self.done / max(seconds, 1e-3):,.0f}/s")
        return ", ".join(parts)


Show = Callable[[Progress], None]


@contextmanager
def progress_on_stderr(quiet: bool = False, start: str = "reading") -> Iterator[Show | None]:
    """Yield what shows events on standard error; None if `quiet`. `start` is shown until the first.

    A terminal has a bar, a file a line every few seconds. Events may come from several threads.
    """
    began = last = time.monotonic()

    def print_line(event: Progress) -> None:
        """Print an event, unless there was one a few seconds ago."""
        nonlocal last
        if (now := time.monotonic()) - last >= SECONDS_BETWEEN_LINES:
            last = now
            print(event.text(now - began), file=sys.stderr, flush=True)

    if quiet or not sys.stderr.isatty():
        yield None if quiet else print_line
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    known = BarColumn(table_column=Column(width=20))
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), known)
    with Bar(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(start, total=None)
        yield lambda event: bar.update(
            task, description=event.text(time.monotonic() - began), completed=event.done,
            total=event.total or None,
        )  # fmt: skip


@contextmanager
def publishing(path: Path, counts: Mapping[str, int]) -> Iterator[None]:
    """Keep the counts of a running task in a file, until it ends."""
    fresh = path.with_name(path.name.replace(".live.", ".newlive."))

    def publish() -> None:
        fresh.write_text(json.dumps(dict(counts)), "utf-8")
        fresh.replace(path)

    try:
        with _repeated(publish):
            yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def watching(folder: Path, show: Callable[[Counter[str]], None]) -> Iterator[None]:
    """Show the sum of the counts of all running tasks."""
    with _repeated(lambda: show(running(folder))):
        yield


def running(folder: Path) -> Counter[str]:
    """Return the sum of the counts that the running tasks of a folder publish."""
    total: Counter[str] = Counter()
    for path in folder.glob("*.live.tmp"):
        with suppress(OSError, ValueError):  # its task has ended
            total.update(json.loads(path.read_text("utf-8")))
    return total


@contextmanager
def _repeated(action: Callable[[], None]) -> Iterator[None]:
    """Repeat an action in a thread while the block runs; a folder that is gone ends it."""
    ended = threading.Event()

    def repeat() -> None:
        with suppress(OSError):
            while not ended.wait(SECONDS_BETWEEN_UPDATES):
                action()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
