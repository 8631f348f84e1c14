"""Runs of the command and of `augment`, and what they wrote: shared by the tests of runs."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noisegen
from noisegen.data.files import shard_files
from noisegen.runs.lock import STATE
from noisegen.text.resources import DICTIONARIES

DEMO = DICTIONARIES.parent / "demo" / "demo.tsv"
FAST = ("fing:rate=0.1", "spac", "leet:rate=0.1", "week")  # transforms that load no tagger
PROGRAM = [sys.executable, "-m", "noisegen"]


def table(out: Path) -> pa.Table:
    """Return all rows of a folder, in the order of its shards."""
    return pa.concat_tables([pq.ParquetFile(path).read() for path in shards(out)])


def shards(out: Path) -> list[Path]:
    return shard_files(out)


def noisy_of(out: Path, key: str = "id") -> dict[Any, str]:
    rows = table(out)
    return dict(zip(rows[key].to_pylist(), rows["noisy"].to_pylist(), strict=True))


def contents(out: Path) -> dict[str, bytes]:
    """Return the bytes of every shard: what two equal runs have in common."""
    found = {}
    for path in shards(out):
        with path.open("rb") as file:  # in a store too
            found[path.name] = file.read()
    return found


def visible(out: Path) -> list[str]:
    """Return the names in a folder without the hidden folder of records."""
    return sorted(path.name for path in out.iterdir() if path.name != STATE)


def written(out: Path) -> dict[Path, int]:
    """Return when each file of a run was written, without its records."""
    paths = (path for path in out.rglob("*") if STATE not in path.parts)
    return {path: path.stat().st_mtime_ns for path in paths}


def left_over(out: Path) -> list[str]:
    return sorted(path.name for path in out.rglob("*.tmp"))


def augment(source: Path, out: Path, **options: Any) -> noisegen.Manifest:
    return noisegen.augment(source, out, **{"seed": 7, **options})


def whole_run(**options):
    """Return the fixture of a module: the folder of a run of DEMO with these options."""

    @pytest.fixture(scope="module")
    def whole(tmp_path_factory):
        out = tmp_path_factory.mktemp("whole") / "out"
        augment(DEMO, out, **options)
        return out

    return whole


def words_for(out: Path, *options: str, first: str = "") -> list[str]:
    """Return the arguments of a quiet run with FAST in shards of 60 rows, as `augment` below."""
    steps = [word for step in (first, *FAST) if step for word in ("-t", step)]
    words = ["augment", DEMO, "-o", out, "--seed", 7, "--rows-per-shard", 60, *steps, *options]
    return [*map(str, words), "--quiet"]


def command(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own."""
    words = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, **options)


def begin(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start the program in a process group of its own."""
    words = [*PROGRAM, *map(str, arguments)]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for(condition: Any, seconds: float = 30) -> None:
    """Return as soon as something is true; fail if it does not become so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def members(group: int) -> list[int]:
    """Return the processes of a group that have not ended."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(int(status.parent.name))
    return found


def end(process: subprocess.Popen[str]) -> None:
    """Leave nothing behind, whatever a test found."""
    for member in members(process.pid):
        os.kill(member, signal.SIGKILL)
    process.communicate(timeout=10)


def interrupt_at(stage: str, done: int = 0) -> Any:
    """Return a listener that interrupts a run at a stage, when so many of its tasks are done."""

    def listen(event: Any) -> None:
        if event.doing == stage and event.done == done:
            raise KeyboardInterrupt

    return listen


def log_rows(run: Path) -> list[dict[str, Any]]:
    """Return the log of a training run."""
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def trained_weights(run: Path, step: int) -> dict[str, Any]:
    """Return the weights in a checkpoint of a training run."""
    from safetensors.torch import load_file

    return load_file(run / "checkpoints" / f"step-{step:07d}" / "model.safetensors")


def same_weights(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two runs ended with the same bits."""
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def forget(run: Path, *steps: int) -> None:
    """Remove checkpoints, as if a training run had been cut short before them."""
    for step in steps:
        shutil.rmtree(run / "checkpoints" / f"step-{step:07d}")
