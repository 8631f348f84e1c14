"""What a campaign is: trials, each a function of (seed, number), counted by what was tried.

A trial that fails is saved as one zip file with its inputs and its command lines, which replays it
whatever the generators of the campaign have become since.
"""

import json
import random
import shutil
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import xxhash

CASE = "case.json"  # in the zip file of a trial


class BrokenPromiseError(AssertionError):
    """A promise that a trial saw broken."""


@dataclass
class Trial:
    """One trial of a campaign, in a folder of its own; `label` is what the table counts it as."""

    campaign: str
    seed: int
    number: int
    folder: Path
    label: str = ""
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
            archive.writestr(CASE, json.dumps(case | {"seen": seen}, indent=1))
            for file in sorted((self.folder / "in").rglob("*")):
                if file.is_file():
                    archive.write(file, file.relative_to(self.folder))
        return path

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
    """How often something was tried, and how often it held."""

    tried: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[str, str, Path]] = field(default_factory=list)  # label, what, the saved case

    def lines(self) -> Iterator[str]:
        """Yield the table as Markdown."""
        failed = Counter(label for label, _, _ in self.broken)
        yield "| tried | times | held |"
        yield "|---|---|---|"
        for label, times in sorted(self.tried.items()):
            yield f"| {label} | {times:,} | {times - failed[label]:,} |"
        yield f"| all | {self.tried.total():,} | {self.tried.total() - len(self.broken):,} |"


@contextmanager
def a_folder(campaign: str) -> Iterator[Path]:
    """Yield an empty folder; what a trial made unreadable is removed too."""
    with TemporaryDirectory(prefix=f"{campaign}-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def run(
    campaign: Campaign, seed: int, seconds: float, saved: Path, show: Callable[[str], None], *,
    first: int = 0, most: int = 0,
) -> Table:  # fmt: skip
    """Run trials, at least one, until the time is over or there were `most`; save those broken."""
    table, end, number = Table(), time.monotonic() + seconds, first
    with campaign.begin() as shared:
        while number == first or (time.monotonic() < end and not 0 < most <= number - first):
            with a_folder(campaign.name) as folder:
                trial = Trial(campaign.name, seed, number, folder)
                (folder / "in").mkdir()
                campaign.make(shared, trial)
                if seen := broken(campaign, shared, trial):
                    path = trial.save(saved, seen)
                    table.broken.append((trial.label, seen, path))
                    show(f"{path}: {trial.label}: {seen}")
                table.tried[trial.label] += 1
            number += 1
    return table


def broken(campaign: Campaign, shared: Any, trial: Trial) -> str:
    """Run a trial and return what it broke, '' for nothing."""
    kept = trial.folder / "kept"  # a trial may change its inputs: those saved are as they were
    shutil.copytree(trial.folder / "in", kept)
    try:
        campaign.check(shared, trial)
    except BrokenPromiseError as error:
        shutil.rmtree(trial.folder / "in", ignore_errors=True)
        kept.rename(trial.folder / "in")
        return str(error)
    return ""


def replay(campaigns: dict[str, Campaign], path: Path) -> str:
    """Run a saved trial again and return what it broke, '' for nothing."""
    with a_folder("replay") as folder:
        trial = Trial.load(path, folder)
        campaign = campaigns[trial.campaign]
        with campaign.begin() as shared:
            return broken(campaign, shared, trial)
