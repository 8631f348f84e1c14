"""Progress on stderr: a bar on a terminal, one plain line every few seconds elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

SECONDS_BETWEEN_LINES = 5


@contextmanager
def progress(quiet: bool, done: str = "rows") -> Iterator[Callable[[Any], None] | None]:
    """Yield a function to call with every finished shard; None when nothing is to be shown."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar(done) as advance:
            yield advance
    else:
        yield _lines(done)


@contextmanager
def _bar(done: str) -> Iterator[Callable[[Any], None]]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    began, rows, shards = time.monotonic(), 0, 0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"0 {done}")

        def advance(shard: Any) -> None:
            nonlocal rows, shards
            rows, shards = rows + shard.rows, shards + 1
            speed = rows / max(time.monotonic() - began, 1e-3)
            bar.update(task, description=f"{rows:,} {done}, {shards:,} shards, {speed:,.0f}/s")

        yield advance


def _lines(done: str) -> Callable[[Any], None]:
    began = last = time.monotonic()
    rows = 0

    def advance(shard: Any) -> None:
        nonlocal last, rows
        rows += shard.rows
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            click.echo(f"{rows:,} {done}, {rows / (now - began):,.0f}/s", err=True)

    return advance


Counted = Callable[[str, int, int], None]  # what is done, how many, of how many (0: unknown)


@contextmanager
def counted_progress(
    quiet: bool, doing: str, line: Callable[[str, int, int], str]
) -> Iterator[Counted | None]:
    """Yield what to call with what is done: a bar on a terminal, else `line` of it now and then."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(doing, total=None)
            yield lambda what, done, total: bar.update(
                task, description=what, completed=done, total=total or None
            )
    else:
        show = now_and_then(time.monotonic())
        yield lambda what, done, total: show(line(what, done, total))


def now_and_then(last: float = 0.0) -> Callable[[str], None]:
    """Return what prints a line, unless there was one a few seconds ago; `last` says when."""

    def show(line: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            click.echo(line, err=True)

    return show


@contextmanager
def mining_progress(quiet: bool) -> Iterator[tuple[Any, Any]]:
    """Yield what to call with every finished task, and with what the running ones have read."""
    if quiet:
        yield None, None
        return
    state = _Mining()
    if not sys.stderr.isatty():
        yield state.add, state.line
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading")
        yield state.add, lambda counts: bar.update(task, description=state.text(counts))


class _Mining:
    """What has been mined so far."""

    def __init__(self) -> None:
        self.began = self.last = time.monotonic()
        self.tasks = self.pairs = 0
        self.read: Counter[str] = Counter()

    def add(self, mined: Any) -> None:
        """Count a finished task."""
        self.tasks, self.pairs = self.tasks + 1, self.pairs + mined.rows
        self.read.update(mined.read)

    def text(self, running: Counter[str]) -> str:
        """Return one line: what is done, and what is read with the speed of it."""
        total = self.read + running
        speed = total["bytes"] / 1e6 / max(time.monotonic() - self.began, 1e-3)
        parts = [f"{total[name]:,} {name}" for name in _READ if total[name]]
        parts += [f"{speed:,.0f} MB/s"] if total["bytes"] else []
        done = f"{self.tasks:,} files done, {self.pairs:,} pairs"
        return "; ".join([done, ", ".join(parts)] if parts else [done])

    def line(self, running: Counter[str]) -> None:
        """Print the line, every few seconds."""
        now = time.monotonic()
        if now - self.last >= SECONDS_BETWEEN_LINES:
            self.last = now
            click.echo(self.text(running), err=True)


_READ = ("pages", "revisions", "entries", "rows")
