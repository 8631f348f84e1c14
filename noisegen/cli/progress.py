"""The printer of progress: a bar on a terminal, a line every few seconds elsewhere."""

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from noisegen.errors import one_line
from noisegen.runs.progress import Pace, Progress, Show, percent, repeated, silent

SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def progress_on_stderr(quiet: bool = False, start: str = "reading") -> Iterator[Show]:
    """Yield a function that shows a `Progress` on standard error, or nothing if `quiet`.

    A terminal shows a bar; `start` is its text before the first call. A file gets a line every few
    seconds. The function may be called from several threads.
    """
    if quiet:
        yield silent
        return
    lock = threading.Lock()
    with _bar(start) if sys.stderr.isatty() else _lines() as show:

        def show_one(event: Progress) -> None:
            with lock:
                show(event)

        yield show_one


@contextmanager
def _lines() -> Iterator[Show]:
    """Yield a function that takes a `Progress`; every few seconds the newest one is printed."""
    pace, newest = Pace(), list[str]()

    def show(event: Progress) -> None:
        newest[:] = [event.line(pace.add(event, time.monotonic()))]

    def print_newest() -> None:
        if newest:
            print(one_line(newest.pop()), file=sys.stderr, flush=True)

    with repeated(print_newest, SECONDS_BETWEEN_LINES):
        yield show


@contextmanager
def _bar(start: str) -> Iterator[Show]:
    """Yield a function that shows a `Progress` as a bar, on one line of the terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console, pace = Console(stderr=True), Pace()
    width = 20 if console.width >= 100 else 10
    columns = (
        SpinnerColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(width),
        TextColumn("{task.fields[figures]}", markup=False),
    )

    def show(event: Progress) -> None:
        figures = event.figures(pace.add(event, time.monotonic()))
        doing = _shortened(one_line(event.doing), console.width // 3)
        room = console.width - len(doing) - width - 14  # 14: width of spinner, time and gaps
        total = None
        if event.share is not None:
            total = 1
            figures.insert(0, percent(event.share))
        shown = _fitting(figures, room)
        bar.update(task, description=doing, completed=event.share or 0, total=total, figures=shown)

    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(start, total=None, figures="")
        yield show


def _fitting(parts: Sequence[str], width: int) -> str:
    """Join parts by commas; a part that would make the line longer than `width` is left out."""
    line = ""
    for part in parts:
        longer = f"{line}, {part}" if line else part
        line = longer if len(longer) <= width else line
    return line


def _shortened(text: str, width: int) -> str:
    """Shorten a text to `width` characters: the middle of a longer text becomes '…'."""
    return text if len(text) <= width else f"{text[: width // 2]}…{text[-(width // 2) + 1 :]}"
