"""Progress of a command: events with counts, the rate of the work, and the time left.

The tasks of a run may work in other processes or on other machines. So each task publishes its
counts in a file beside its output, and a `Tracker` in the main process adds the counts up.
"""

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

SECONDS_BETWEEN_UPDATES = 1.0
READING_SHARE_MAX = 0.05  # share of the time that may go into reading the counts of tasks
WINDOW = 60.0  # a rate is measured over the events of so many seconds
SECONDS_SURE = 1.0  # rate and time left are shown only after so many seconds of a stage
LIVE = ".live.tmp"  # ending of the file in which a running task publishes its counts
BYTES = "bytes"  # name of the count of input bytes as stored on disk; shown as kB, MB, ...


@dataclass(frozen=True)
class Progress:
    """Event of a command: its present stage, such as 'reading', and how much of it is done.

    `doing` names the stage. `done` of `total` units are finished; a total of 0 means unknown.
    `unit` is a plural such as 'rows'. `share`, from 0 to 1, is the finished share of the stage
    (default: done / total). `counts` has other counts by name, `note` a text for the user. The
    first event of a stage has as `done` the units of earlier runs: 0 unless the run is resumed.
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
        """Return counts, rate and time left as texts for the user, the most important first."""
        parts = [self._amount()] if self.unit else []
        if pace.rate:
            is_bytes = self.unit == BYTES
            shown = size(pace.rate) if is_bytes else f"{_rounded(pace.rate)} {self.unit}"
            parts.append(f"{shown}/s")
        if pace.left is not None:
            parts.append(f"{duration(pace.left)} left")
        parts += [f"{n:,} {name}" for name, n in self.counts.items() if n]
        return [*parts, self.note] if self.note else parts

    def _amount(self) -> str:
        """Return the finished units and their total, such as '1,200 of 2,800 rows'."""
        if self.unit == BYTES:
            return f"{size(self.done)} of {size(self.total)}" if self.total else size(self.done)
        of = f" of {self.total:,.0f}" if self.total else ""
        return f"{self.done:,.0f}{of} {self.unit}"

    def line(self, pace: "Pace") -> str:
        """Return stage, share and `figures` of the event as one line."""
        share = [] if self.share is None else [percent(self.share)]
        return ", ".join(filter(None, [self.doing, *share, *self.figures(pace)]))


Show = Callable[[Progress], None]


def silent(event: object) -> None:
    """Ignore an event: the default where a function takes a `Show`."""


class Pace:
    """Rate and time left of the present stage, measured from its events of the last minute."""

    def __init__(self) -> None:
        self._events: deque[tuple[float, Progress]] = deque()

    def add(self, event: Progress, now: float) -> "Pace":
        """Add an event that came at the time `now`, in seconds.

        A new stage begins if the unit or total changes, or if fewer units are done than before.
        """
        if self._events:
            last = self._events[-1][1]
            if (event.unit, event.total) != (last.unit, last.total) or event.done < last.done:
                self._events.clear()
        self._events.append((now, event))
        while len(self._events) > 2 and self._events[1][0] < now - WINDOW:
            self._events.popleft()
        return self

    def _since(self) -> tuple[float, float, float]:
        """Return the seconds passed, units finished and share finished in the last minute.

        These are differences between the oldest and the newest event that are kept.
        """
        (then, first), (now, last) = self._events[0], self._events[-1]
        return now - then, last.done - first.done, (last.share or 0) - (first.share or 0)

    @property
    def rate(self) -> float | None:
        """Finished units per second; None until it can be measured."""
        seconds, done, _ = self._since()
        return done / seconds if seconds >= SECONDS_SURE and done else None

    @property
    def left(self) -> float | None:
        """Seconds to the end of the stage; None until they can be estimated."""
        seconds, _, share = self._since()
        missing = 1 - (self._events[-1][1].share or 0)
        is_sure = seconds >= SECONDS_SURE and share > 0
        return seconds * missing / share if is_sure and missing else None


def percent(share: float) -> str:
    """Return a share from 0 to 1 in percent: 0.125 -> '12%'; only 1 becomes '100%'."""
    return f"{int(share * 100 + 1e-9)}%"


def duration(seconds: float) -> str:
    """Return a time with its units, such as 45 s, 4 min 5 s, 1 h 12 min or 3 d 4 h."""
    whole = round(seconds)
    parts = (
        (whole // 86_400, "d"),
        (whole // 3_600 % 24, "h"),
        (whole // 60 % 60, "min"),
        (whole % 60, "s"),
    )
    first = next((number for number, (count, _) in enumerate(parts) if count), 3)
    shown = [f"{count} {unit}" for count, unit in parts[first : first + 2] if count]
    return " ".join(shown) or "0 s"


def size(count: float) -> str:
    """Return a number of bytes with a unit, such as 312 kB, 4.5 MB or 12 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{_rounded(count) if unit != 'B' else round(count)} {unit}"
        count /= 1000
    return f"{_rounded(count)} TB"


def _rounded(number: float) -> str:
    """Return a number without decimals, or with one decimal if it is below 10."""
    return f"{number:,.1f}" if number < 9.95 else f"{number:,.0f}"


@contextmanager
def reading(show: Show, doing: str, total: int = 0) -> Iterator[None]:
    """Show every second how many of `total` bytes (0: unknown) the `with` block has read."""
    from noisegen.data.files import metered  # imports pyarrow, which is slow

    with metered() as meter:

        def look() -> None:
            show(Progress(doing, meter[BYTES], total, BYTES))

        look()
        with repeated(look, SECONDS_BETWEEN_UPDATES):
            yield


# Tasks of a run.


@dataclass
class Tracker:
    """Sum of the counts of all tasks of a run, shown as events of the stage `doing`.

    `unit` names the count that is shown first, with its rate; `others` names the counts that are
    shown after it. `total` is the number of input bytes, `most` the maximum of units that the run
    can finish; 0 means unknown. The larger of two finished shares is shown: the share of the bytes
    or of the units.
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
        """Add the counts of a finished task."""
        with self._lock:
            self._finished.update(counts)

    def report(self, running: Mapping[str, int] | None = None) -> None:
        """Show the counts of finished tasks plus `running`, the counts of running tasks."""
        with self._lock:
            # A task that has just ended may be missing in both sums; shown counts still never fall.
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
        """In the `with` block, show every second the counts that running tasks publish.

        The function `live` returns the files with these counts. If reading them takes long, as in
        a folder of many files, they are read less often.
        """
        again = 0.0

        def look() -> None:
            nonlocal again
            if (began := time.monotonic()) < again:
                return
            if now := running(live()):
                self.report(now)
            again = time.monotonic() + (time.monotonic() - began) / READING_SHARE_MAX

        with repeated(look, SECONDS_BETWEEN_UPDATES):
            yield


def live_path(output: Path) -> Path:
    """Return the path of the file in which the task that writes `output` publishes its counts."""
    return output.with_name(f"{output.name}{LIVE}")


@contextmanager
def publishing(path: Path, *counts: Mapping[str, int]) -> Iterator[None]:
    """In the `with` block, write every second the `counts` of a running task to a file.

    The file is removed at the end. Nothing is written if `path` is in an object store.
    """
    if not isinstance(path, Path):
        yield
        return
    fresh = path.with_name(path.name.replace(".live.", ".newlive."))

    def publish() -> None:
        merged: dict[str, int] = {}
        for part in counts:
            merged.update(part)
        fresh.write_text(json.dumps(merged), "utf-8")
        fresh.replace(path)

    try:
        with repeated(publish, SECONDS_BETWEEN_UPDATES):
            yield
    finally:
        path.unlink(missing_ok=True)


def running(live: Iterable[Path]) -> Counter[str]:
    """Return the sum of the counts that running tasks publish in the files `live`."""
    total: Counter[str] = Counter()
    for path in live:
        with suppress(OSError, ValueError):  # the task has just ended and removed its file
            total.update(json.loads(path.read_text("utf-8")))
    return total


@contextmanager
def repeated(action: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call `action` every `seconds` seconds in a thread while the `with` block runs.

    If `action` raises OSError, it is not called again, and the block goes on.
    """
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
