"""Two processes of `torchrun` against one with as many threads: seconds per pair of an update.

Both train a copy of all-MiniLM-L6-v2 on two cores with the batches of the preset quickstart; two
processes exchange gradients by Gloo. Only updates are timed, from the second line of the log on:
start, teacher and validation are not. Runs take turns, and the fastest of each counts.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import REPEATS, Result, Target, report
from benchmarks.training_speed import Work

STEPS_FULL = 60
ROWS_FULL = 200_000  # rows of the other benchmarks; with fewer, runs are shorter
WORLD = 2


def results(rows: int) -> Iterator[Result]:
    """Time the updates of both kinds of run in turns."""
    steps = max(30, round(STEPS_FULL * min(1.0, rows / ROWS_FULL)))
    found: dict[int, list[float]] = {1: [], WORLD: []}
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as name:
        source = Work.made(Path(name)).source
        for repeat in range(REPEATS):
            for world in found:
                found[world].append(_seconds_per_pair(source, f"run{repeat}-{world}", world, steps))
    one, two = min(found[1]), min(found[WORLD])
    shown = "; ".join(
        f"{world}: " + ", ".join(f"{1000 * each:.3g}" for each in seconds) + " ms"
        for world, seconds in found.items()
    )
    yield Result(
        "seconds per pair of 2 processes", two, one, "s", "1 process", Target("<", 1.10), shown
    )


def _seconds_per_pair(source: Path, name: str, world: int, steps: int) -> float:
    """Return the wall seconds per pair of a run's updates after the first line of its log."""
    out = source.parent / name
    program = [sys.executable]
    if world > 1:
        program += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world)]
    words = ["train", str(source), "-o", str(out), "--preset", "quickstart", "--recipe", "stored"]
    settings = ["--set", f"steps={steps}", "--set", "validate_every=1000", "--device", "cpu"]
    subprocess.run(
        [*program, "-m", "noisegen", *words, *settings, "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": str(WORLD // world)},
    )
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    updates = [row for row in rows if "loss" in row]
    first, last = updates[0], updates[-1]
    return float((last["seconds"] - first["seconds"]) / (last["pairs"] - first["pairs"]))


if __name__ == "__main__":
    report(results)
