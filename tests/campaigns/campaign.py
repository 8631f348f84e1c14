"""What a campaign is: trials, each a function of (seed, number), counted by what was tried.

A trial that fails is saved as one zip file with its inputs and its command lines, which replays it
whatever the generators of the campaign have become since. Several processes share a campaign: each
does every N-th trial.
"""

import json
import random
import shutil
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import xxhash

CASE = "case.json"  # in the zip file of a trial
NUMBERS = 1 << 60  # of trials, which nobody reaches


class BrokenPromiseError(AssertionError):
    """A promise that a trial saw broken."""


@dataclass
class Trial:
    """One trial of a campaign, in a folder of its own.

    `label`, what is tried, and `fault`, what is done to it, are its row and its column in the
    table; `counts` are added up below it: the rows or the kills of this trial.
    """

    campaign: str
    seed: int
    number: int
    folder: Path
    label: str = ""
    fault: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)  # the command line, with FOLDER for the folder
    notes: dict[str, Any] = field(default_factory=dict)  # what else a replay must know

    def random(self) -> random.Random:
        """Return the dice of this trial."""
        key = f"{self.campaign}:{self.seed}:{self.number}".encode()
        return random.Random(xxhash.xxh3_64_intdigest(key))

    def expect(self, is_kept: object, what: str) -> None:
        """Raise BrokenPromiseError with what was seen unless the promise is kept."""
        if not is_kept:
            raise BrokenPromiseError(what)

    def save(self, where: Path, seen: str) -> Path:
        """Write the trial as a zip file that `load` reads, and return its path."""
        where.mkdir(parents=True, exist_ok=True)
        path = where / f"{self.campaign}-{self.seed}-{self.number}.zip"
        case = {name: value for name, value in asdict(self).items() if name != "folder"}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(CASE, json.dumps(case | {"seen": self._neutral(seen)}, indent=1))
            for file in sorted((self.folder / "in").rglob("*")):
                if file.is_file():
                    archive.write(file, file.relative_to(self.folder))
        return path

    def _neutral(self, seen: str) -> str:
        """Return what was seen without the paths of this machine."""
        root = Path(__file__).parents[2]
        for place in (self.folder, root, sys.prefix, sys.base_prefix):
            seen = seen.replace(f"{place}/", "")
        return seen

    @classmethod
    def load(cls, path: Path, folder: Path) -> "Trial":
        """Return a saved trial, its inputs unpacked into the folder."""
        (folder / "in").mkdir()  # a trial without input files has none in its zip file
        with zipfile.ZipFile(path) as archive:
            case = json.loads(archive.read(CASE))
            archive.extractall(folder)
        return cls(**{name: value for name, value in case.items() if name != "seen"}, folder=folder)


@dataclass(frozen=True)
class Campaign:
    """What is tried: `make` prepares a trial by its dice, `check` raises BrokenPromiseError.

    `begin` is what all trials share, a context whose value both are called with.
    """

    name: str
    begin: Callable[[], Any]
    make: Callable[[Any, Trial], None]
    check: Callable[[Any, Trial], None]


@dataclass
class Table:
    """How often something was tried, by label and fault, and how often it held."""

    tried: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[str, str, Path]] = field(default_factory=list)  # label, what, the saved case
    failed: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: "Table") -> None:
        """Add what another process tried."""
        self.broken += other.broken
        for mine, theirs in (
            (self.tried, other.tried),
            (self.counts, other.counts),
            (self.failed, other.failed),
        ):
            mine.update(theirs)

    def summary(self) -> str:
        """Return what was tried, and how much of it held, in a line."""
        trials = f"{self.tried.total():,} trials"
        counted = ", ".join([trials, *(f"{n:,} {name}" for name, n in sorted(self.counts.items()))])
        return f"{counted}: {len(self.broken) or 'none'} broke a promise"

    def lines(self) -> Iterator[str]:
        """Yield the table as Markdown: a row a label, a column a fault; what failed is said."""
        faults = sorted({fault for _, fault in self.tried})
        yield f"| | {' | '.join(faults)} |"
        yield f"|---|{'---:|' * len(faults)}"
        for label in sorted({label for label, _ in self.tried}):
            cells = (self._cell(label, fault) for fault in faults)
            yield f"| {label} | {' | '.join(cells)} |"

    def _cell(self, *key: str) -> str:
        tried, failed = self.tried[key], self.failed[key]
        return f"**{failed} of {tried:,} broken**" if failed else f"{tried:,}" if tried else ""


@contextmanager
def a_folder(campaign: str) -> Iterator[Path]:
    """Yield an empty folder; what a trial made unreadable is removed too."""
    with TemporaryDirectory(prefix=f"{campaign}-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def run(
    campaign: Campaign,
    seed: int,
    seconds: float,
    saved: Path,
    show: Callable[[str], None],
    numbers: Iterable[int],
) -> Table:
    """Run the trials of these numbers, at least one, until the time is over; save those broken."""
    table = Table()
    with campaign.begin() as shared:
        end = time.monotonic() + seconds
        for number in numbers:
            with a_folder(campaign.name) as folder:
                trial = Trial(campaign.name, seed, number, folder)
                (folder / "in").mkdir()
                campaign.make(shared, trial)
                if seen := broken(campaign, shared, trial):
                    path = trial.save(saved, seen)
                    table.broken.append((trial.label, seen, path))
                    table.failed[trial.label, trial.fault] += 1
                    show(f"{path}: {trial.label}, {trial.fault}: {seen}")
                table.tried[trial.label, trial.fault] += 1
                table.counts.update(trial.counts)
            if time.monotonic() > end:
                break
    return table


def run_side_by_side(
    campaign: Campaign, seed: int, seconds: float, saved: Path, first: int, jobs: int
) -> Table:
    """Run the trials from a number on in so many processes."""
    work = partial(run, campaign, seed, seconds, saved, partial(print, flush=True))
    table = Table()
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for other in pool.map(work, [range(first + job, NUMBERS, jobs) for job in range(jobs)]):
            table.add(other)
    return table


def broken(campaign: Campaign, shared: Any, trial: Trial) -> str:
    """Run a trial and return what it broke, '' for nothing."""
    kept = trial.folder / "kept"  # a trial may change its inputs: those saved are as they were
    shutil.copytree(trial.folder / "in", kept)
    try:
        campaign.check(shared, trial)
    except Exception as error:  # what a trial did not expect is a finding too
        shutil.rmtree(trial.folder / "in", ignore_errors=True)
        kept.rename(trial.folder / "in")
        return str(error) if isinstance(error, BrokenPromiseError) else f"in the trial: {error!r}"
    return ""


class Replays:
    """Runs saved and new trials, a context; trials of a campaign share one `Campaign.begin`."""

    def __init__(self, campaigns: dict[str, Campaign]) -> None:
        self._campaigns = campaigns
        self._begun = ExitStack()
        self._shared: dict[str, Any] = {}

    def __enter__(self) -> "Replays":
        return self

    def __exit__(self, *_: object) -> None:
        self._begun.close()

    def replay(self, path: Path) -> str:
        """Run a saved trial again and return what it broke, '' for nothing."""
        with a_folder("replay") as folder:
            trial = Trial.load(path, folder)
            return broken(self._campaigns[trial.campaign], self.shared(trial.campaign), trial)

    def shared(self, name: str) -> Any:
        """Return what the trials of a campaign share; it is made once."""
        if name not in self._shared:
            self._shared[name] = self._begun.enter_context(self._campaigns[name].begin())
        return self._shared[name]

    def campaign(self, name: str) -> Campaign:
        """Return a campaign whose trials use what is made once."""
        return replace(self._campaigns[name], begin=lambda: nullcontext(self.shared(name)))
