"""Progress of a command: one event, its rate and time left, and one printer for all commands.

Tasks of a run publish what they have read and made in files beside their output, since they may run
in other processes or on other machines; a `Tracker` adds it up.
"""

import json
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from noisegen.errors import one_line

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_UPDATES = 1.0
LOOKING = 0.05  # of the time, at most, is spent on what running tasks have done
WINDOW = 60.0  # seconds that a rate is measured over
SURE = 1.0  # seconds before which neither rate nor time left is shown
LIVE = ".live.tmp"  # ends the name of the file of a running task
BYTES = "bytes"  # the count of the input as it lies, compressed or not; as a unit shown in MB


@dataclass(frozen=True)
class Progress:
    """An event: what a command is doing, and how far it is.

    `done` of `total` units are done (0: unknown total). `share`, from 0 to 1, is the part of the
    work that is done; without one it is that of the units. `counts` are other figures by their
    names, `note` is free text. The first event of a stage says what is done when it begins: 0, or
    what a resumed run has.
    """

    doing: str = ""
    done: float = 0
    total: float = 0
    unit: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    share: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.share is None and self.total:
            object.__setattr__(self, "share", self.done / self.total)
        if self.share is not None:
            object.__setattr__(self, "share", min(max(self.share, 0.0), 1.0))

    def figures(self, pace: "Pace") -> list[str]:
        """Return the figures of the event in words, the most important first."""
        parts = []
        if self.unit == BYTES:
            of = f"{size(self.done)} of {size(self.total)}" if self.total else size(self.done)
            parts.append(of)
        elif self.unit:
            of = f" of {self.total:,.0f}" if self.total else ""
            parts.append(f"{self.done:,.0f}{of} {self.unit}")
        if pace.rate:
            is_bytes = self.unit == BYTES
            shown = size(pace.rate) if is_bytes else f"{_rounded(pace.rate)} {self.unit}"
            parts.append(f"{shown}/s")
        if pace.left is not None:
            parts.append(f"{duration(pace.left)} left")
        parts += [f"{n:,} {name}" for name, n in self.counts.items() if n]
        return [*parts, self.note] if self.note else parts

    def line(self, pace: "Pace") -> str:
        """Return the event in one line."""
        share = [] if self.share is None else [percent(self.share)]
        return ", ".join(filter(None, [self.doing, *share, *self.figures(pace)]))


Show = Callable[[Progress], None]


def silent(event: object) -> None:
    """Show nothing."""


class Pace:
    """The rate of a stage and the time it has left, by its events of the last minute."""

    def __init__(self) -> None:
        self._events: deque[tuple[float, Progress]] = deque()

    def add(self, event: Progress, now: float) -> "Pace":
        """Take an event at a time in seconds; one of another unit or total begins a stage."""
        if self._events:
            last = self._events[-1][1]
            if (event.unit, event.total) != (last.unit, last.total) or event.done < last.done:
                self._events.clear()
        self._events.append((now, event))
        while len(self._events) > 2 and self._events[1][0] < now - WINDOW:
            self._events.popleft()
        return self

    def _since(self) -> tuple[float, float, float]:
        """Return the seconds, units and share between the first event and the last."""
        (then, first), (now, last) = self._events[0], self._events[-1]
        return now - then, last.done - first.done, (last.share or 0) - (first.share or 0)

    @property
    def rate(self) -> float | None:
        """Units per second; None where it is not known yet."""
        seconds, done, _ = self._since()
        return done / seconds if seconds >= SURE and done else None

    @property
    def left(self) -> float | None:
        """Seconds to the end of the stage; None where it is not known."""
        seconds, _, share = self._since()
        missing = 1 - (self._events[-1][1].share or 0)
        return seconds * missing / share if seconds >= SURE and share > 0 and missing else None


def percent(share: float) -> str:
    """Return a share in per cent, 100% for the whole alone."""
    return f"{int(share * 100 + 1e-9)}%"


def duration(seconds: float) -> str:
    """Return a time in words: 45 s, 4 min 5 s, 1 h 12 min, 3 d 4 h."""
    whole = round(seconds)
    parts = ((whole // 86_400, "d"), (whole // 3_600 % 24, "h"), (whole // 60 % 60, "min"),
             (whole % 60, "s"))  # fmt: skip
    first = next((number for number, (count, _) in enumerate(parts) if count), 3)
    shown = [f"{count} {unit}" for count, unit in parts[first : first + 2] if count]
    return " ".join(shown) or "0 s"


def size(count: float) -> str:
    """Return a number of bytes in words: 312 kB, 4.5 MB, 12 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{_rounded(count) if unit != 'B' else round(count)} {unit}"
        count /= 1000
    return f"{_rounded(count)} TB"


def _rounded(number: float) -> str:
    """Return a number with one decimal if it is below 10."""
    return f"{number:,.1f}" if number < 9.95 else f"{number:,.0f}"


# The printer.


@contextmanager
def progress_on_stderr(quiet: bool = False, start: str = "reading") -> Iterator[Show]:
    """Yield what shows events on standard error, or nothing if `quiet`.

    A terminal has a bar, which says `start` until the first event; a file gets a line every few
    seconds. Events may come from several threads.
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
    """Yield what prints the newest event every few seconds."""
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
    """Yield what draws the newest event on one line of the terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console, pace = Console(stderr=True), Pace()
    width = 20 if console.width >= 100 else 10
    columns = (
        SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False),
        BarColumn(width), TextColumn("{task.fields[figures]}", markup=False),
    )  # fmt: skip

    def show(event: Progress) -> None:
        figures = event.figures(pace.add(event, time.monotonic()))
        doing = _shortened(one_line(event.doing), console.width // 3)
        room = console.width - len(doing) - width - 14  # of spinner, time, spaces between
        if event.share is not None:
            figures.insert(0, percent(event.share))
        bar.update(
            task, description=doing, completed=event.share or 0, figures=_fitting(figures, room),
            total=None if event.share is None else 1,
        )  # fmt: skip

    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(start, total=None, figures="")
        yield show


def _fitting(parts: Sequence[str], width: int) -> str:
    """Return the first parts that fit, joined by commas."""
    line = ""
    for part in parts:
        longer = f"{line}, {part}" if line else part
        line = longer if len(longer) <= width else line
    return line


def _shortened(text: str, width: int) -> str:
    """Return a text of at most so many characters, which lacks its middle if it was longer."""
    return text if len(text) <= width else f"{text[: width // 2]}…{text[-(width // 2) + 1 :]}"


@contextmanager
def reading(show: Show, doing: str, total: int = 0) -> Iterator[None]:
    """Show every second how many bytes of input files the block has read, of `total` if known."""
    from noisegen.data.files import metered  # pyarrow, which a command line need not wait for

    with metered() as meter:

        def look() -> None:
            show(Progress(doing, meter[BYTES], total, BYTES))

        look()
        with repeated(look, SECONDS_BETWEEN_UPDATES):
            yield


# Tasks of a run.


@dataclass
class Tracker:
    """Adds up what the tasks of a run read and make, and shows it.

    Counts go by their names: `unit` is the one that gives the rate, `others` are shown too, BYTES
    are those of the input. The share is that of the `total` bytes, or of the units where there are
    `most` at most, as far as these are known (else 0).
    """

    show: Show
    doing: str
    unit: str
    others: tuple[str, ...]
    total: int = 0
    most: int = 0
    _finished: Counter[str] = field(default_factory=Counter)
    _shown: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, counts: Mapping[str, int]) -> None:
        """Count a finished task."""
        with self._lock:
            self._finished.update(counts)

    def report(self, running: Mapping[str, int] | None = None) -> None:
        """Show what finished tasks and those that are running have done."""
        with self._lock:  # a task that ends is neither for a moment: so no count goes back
            self._shown |= self._finished + Counter(running)
            counts = self._shown.copy()
        done = counts[self.unit]
        parts = (counts[BYTES], self.total), (done, self.most)
        share = max((part / whole for part, whole in parts if whole), default=None)
        total = self.total if self.unit == BYTES else 0
        others = {name: counts[name] for name in self.others if name != self.unit}
        self.show(Progress(self.doing, done, total, self.unit, others, share))

    @contextmanager
    def watching(self, live: Callable[[], Iterable[Path]]) -> Iterator[None]:
        """Show every second what the tasks that publish in live files have done.

        Where the look at them takes long, in a folder of many files, it takes a part of the time.
        """
        again = 0.0

        def look() -> None:
            nonlocal again
            if (began := time.monotonic()) < again:
                return
            if now := running(live()):
                self.report(now)
            again = time.monotonic() + (time.monotonic() - began) / LOOKING

        with repeated(look, SECONDS_BETWEEN_UPDATES):
            yield


def live_path(output: Path) -> Path:
    """Return the file in which a task that writes `output` publishes its counts."""
    return output.with_name(f"{output.name}{LIVE}")


@contextmanager
def publishing(path: Path, *counts: Mapping[str, int]) -> Iterator[None]:
    """Keep the counts of a running task in a file, until it ends; not in a store."""
    if not isinstance(path, Path):
        yield
        return
    fresh = path.with_name(path.name.replace(".live.", ".newlive."))

    def publish() -> None:
        fresh.write_text(json.dumps({k: n for part in counts for k, n in part.items()}), "utf-8")
        fresh.replace(path)

    try:
        with repeated(publish, SECONDS_BETWEEN_UPDATES):
            yield
    finally:
        path.unlink(missing_ok=True)


def running(live: Iterable[Path]) -> Counter[str]:
    """Return the sum of the counts that tasks publish."""
    total: Counter[str] = Counter()
    for path in live:
        with suppress(OSError, ValueError):  # its task has ended
            total.update(json.loads(path.read_text("utf-8")))
    return total


@contextmanager
def repeated(action: Callable[[], None], seconds: float) -> Iterator[None]:
    """Repeat an action in a thread while the block runs; a folder that is gone ends it."""
    ended = threading.Event()

    def repeat() -> None:
        with suppress(OSError):
            while not ended.wait(seconds):
                action()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
