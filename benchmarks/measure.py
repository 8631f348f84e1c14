"""Shared by the benchmarks: CPU seconds, interleaved repeats, and one line per result."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROWS = 200_000
REPEATS = 3
CPU_LIMIT = 300  # seconds that a child may use, where a benchmark does not say more
CHILD = Path(__file__).with_name("child.py")
ROOT = Path(__file__).parents[1]

Results = Callable[[int], Iterator["Result | Skipped"]]


@dataclass(frozen=True)
class Target:
    """A bound on the ratio or, where `on` is 'ours', on our own figure."""

    sign: str
    bound: float
    on: str = "ratio"

    def reached(self, value: float) -> bool:
        """Tell whether a figure is within the bound."""
        return value >= self.bound if self.sign == ">=" else value < self.bound

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:g}" + (" (ours)" if self.on == "ours" else "")


@dataclass(frozen=True)
class Result:
    """One ratio: our figure over the other's, both in `unit`."""

    name: str
    ours: float
    other: float
    unit: str
    than: str
    target: Target | None = None
    note: str = ""
    failed: bool = False

    @property
    def ratio(self) -> float:
        """Our figure divided by the other's."""
        return self.ours / self.other

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return False if self.failed else None
        value = self.ratio if self.target.on == "ratio" else self.ours
        return self.target.reached(value) and not self.failed

    @property
    def verdict(self) -> str:
        """The target and whether it is met, in words."""
        if self.met is None:
            return "no target"
        return f"target {self.target or 'equal'}: {'met' if self.met else 'MISSED'}"

    def __str__(self) -> str:
        figures = f"{self.ours:,.4g} {self.unit} against {self.other:,.4g} of {self.than}"
        note = f"; {self.note}" if self.note else ""
        return f"{self.name}: {self.ratio:,.3g} ({self.verdict}); {figures}{note}"

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {
            **asdict(self),
            "target": str(self.target or ""),
            "ratio": self.ratio,
            "met": self.met,
        }


@dataclass(frozen=True)
class Skipped:
    """A benchmark that cannot run here."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: skipped, {self.why}"


@dataclass(frozen=True)
class Usage:
    """Resources used by a child process and its own children, and its exit code."""

    cpu: float
    wall: float
    megabytes: float
    code: int


class ChildFailed(Exception):  # noqa: N818 - reads as what happened
    """A child that ended with an error, or at the limit of its CPU seconds."""

    def __init__(self, usage: Usage) -> None:
        super().__init__(f"ended with code {usage.code} after {usage.cpu:.0f} CPU s")
        self.usage = usage


def cpu(work: Callable[[], object]) -> Callable[[], float]:
    """Return a job that does the work here and returns its CPU seconds, all threads counted."""

    def job() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return job


def child(
    command: Sequence[str], env: Mapping[str, str] | None = None, limit: int = CPU_LIMIT
) -> Usage:
    """Run Python with these arguments and return the resources used; raises ChildFailed."""
    launcher = [sys.executable, "-I", "-S", str(CHILD), str(limit), sys.executable]
    done = subprocess.run(
        [*launcher, *command], env=env, cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    usage = Usage(**json.loads(done.stdout))
    if usage.code:
        raise ChildFailed(usage)
    return usage


def best(jobs: Mapping[str, Callable[[], float]], repeats: int = REPEATS) -> dict[str, float]:
    """Return the least of each job's figures; the jobs take turns, so that load hits all alike."""
    found = {name: float("inf") for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            found[name] = min(found[name], job())
    return found


def rates(seconds: Mapping[str, float], rows: int) -> dict[str, float]:
    """Return thousands of rows a second."""
    return {name: rows / value / 1000 for name, value in seconds.items()}


def options(about: str) -> argparse.ArgumentParser:
    """Return the parser of the options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rows", type=int, default=ROWS, help="sentences (default %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    return parser


def shown(results: Iterable[Result | Skipped]) -> list[Result]:
    """Print every result as it comes, and return the results that are figures."""
    found = []
    for result in results:
        print(result, flush=True)
        if isinstance(result, Result):
            found.append(result)
    return found


def save(results: Iterable[Result], path: Path | None) -> None:
    """Write the results as JSON, if a path is given."""
    if path:
        path.write_text(json.dumps([result.to_dict() for result in results], indent=1) + "\n")


def report(results: Results) -> None:
    """Run one benchmark as a program."""
    chosen = options(sys.modules["__main__"].__doc__ or "").parse_args()
    save(shown(results(chosen.rows)), chosen.json)
