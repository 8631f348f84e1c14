"""Worker processes end within seconds, whatever they are doing when their run ends."""

import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pool_program
import pytest
from runs import DEMO, FAST, PROGRAM, command, end, left_over, members, wait_for

from noisegen.runs import executors

SECONDS = 10.0  # within which everything has ended


@pytest.fixture
def started(tmp_path):
    """Start a run whose tasks reach a moment, and end what is left of it."""
    running = []

    def start(moment: str, fails: str = "") -> tuple[subprocess.Popen[str], Path]:
        mark = tmp_path / "mark"
        process = subprocess.Popen(
            [sys.executable, pool_program.__file__, moment, mark, fails],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        running.append(process)
        return process, mark

    yield start
    for process in running:
        end(process)


def wait_for_end(process: subprocess.Popen[str]) -> None:
    """Expect the process to end, and all that it has started."""
    process.wait(timeout=SECONDS)
    wait_for(lambda: not members(process.pid), seconds=SECONDS)


@pytest.mark.parametrize("moment", ["computing", "sending", "failing"])
def test_an_error_ends_all_workers(started, moment):
    process, _ = started(moment, "fails")
    wait_for(lambda: process.poll() is not None)
    wait_for_end(process)
    assert process.returncode == 1
    assert process.stderr.read().strip().endswith("RunError")


@pytest.mark.parametrize(
    ("moment", "sent", "whom"),
    [
        ("computing", signal.SIGTERM, "group"),
        ("sending", signal.SIGTERM, "parent"),
        ("starting", signal.SIGTERM, "parent"),
        *(
            pytest.param(moment, sent, whom, marks=pytest.mark.nightly)
            for moment in ("starting", "computing", "sending")
            for sent in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
            for whom in ("parent", "group")
        ),
    ],
)
def test_a_signal_ends_all_workers(started, moment, sent, whom):
    process, mark = started(moment)
    if moment == "starting":
        wait_for(lambda: len(members(process.pid)) > 1)
    else:
        wait_for(mark.exists)
    if whom == "group":
        os.killpg(process.pid, sent)
    else:
        process.send_signal(sent)
    wait_for_end(process)
    assert process.returncode in (-sent, -signal.SIGINT)  # SIGTERM interrupts as Ctrl-C does
    assert "in a worker" not in process.stderr.read()


def test_an_error_while_a_task_arrives_ends_all_workers(tmp_path):
    tasks = [0, pool_program.SlowToArrive(tmp_path / "mark")]
    began = time.monotonic()
    results = executors.run(partial(pool_program.failing, tmp_path / "other"), tasks, workers=2)
    next(results)
    results.close()
    assert time.monotonic() - began < 30


def test_a_full_disk_is_one_line_and_no_process_is_left(tmp_path):
    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))

    steps = [word for step in FAST for word in ("-t", step)]
    words = ["augment", DEMO, "-o", "out", *steps, "--rows-per-shard", "60", "--workers", "2"]
    words += ["--lang", "en"]
    process = subprocess.Popen(
        [*PROGRAM, *map(str, words), "--quiet"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=limited,
    )
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert stderr.count("\n") == 1
    assert "free some space, then run again with --resume" in stderr
    wait_for_end(process)
    assert left_over(tmp_path / "out") == []

    resumed = command(*words, "--quiet", "--resume", cwd=tmp_path)
    assert (resumed.returncode, resumed.stderr) == (0, "")
