"""Progress on stderr: a bar on a terminal, one plain line every few seconds elsewhere."""

import sys
import time
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
