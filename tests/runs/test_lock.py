"""One run in a folder at a time: who holds the lock, who is dead, who shares the folder."""

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, replace

import pytest
from runs import DEMO, PROGRAM, augment, contents, end, visible, wait_for, words_for

from noisegen.cli import run
from noisegen.errors import OutputError
from noisegen.runs import lock as module
from noisegen.runs.atomic import write_text
from noisegen.runs.lock import STATE, Owner, locked
from noisegen.runs.store import output_path

HOLD = (
    "import sys, time; from pathlib import Path; from noisegen.runs.lock import locked\n"
    "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
)


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.fixture
def holder(out):
    """Another process that holds the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(out)], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def hasty(monkeypatch):
    """Locks that beat, and are stale, soon."""
    monkeypatch.setattr(module, "SECONDS_BETWEEN_BEATS", 0.05)
    monkeypatch.setattr(module, "SECONDS_STALE", 0.5)


@pytest.fixture
def impatient(monkeypatch):
    """Locks that are tried twice, at once."""
    monkeypatch.setattr(module, "PAUSES", (0.01,))


def locks(out):
    return sorted(path.name for path in (out / STATE).glob("*.lock"))


def forged(out, **changes):
    """Write a lock as if another process had left it."""
    (out / STATE).mkdir()
    path = out / STATE / "part-1-of-1.00112233aabbccdd.lock"
    write_text(path, json.dumps(asdict(replace(Owner.here(), **changes))))
    return path


def test_a_folder_in_use_is_refused_in_one_line(out, holder, capfd, impatient):
    for how in ([], ["--resume"], ["--force"], ["--part", "1/2"]):
        assert run([*words_for(out, "--workers", "1"), *how]) == 1
        [line] = capfd.readouterr().err.splitlines()
        assert line.startswith(f"error: {out} is in use by another run (process {holder.pid} on ")
    assert sorted(path.name for path in out.iterdir()) == [STATE]


def test_the_lock_of_a_killed_run_is_free_at_once(out, holder):
    holder.kill()  # and is not waited for: a process that has ended and is not yet gone is dead
    wait_for(lambda: _state_of(holder.pid) == "Z")
    began = time.monotonic()

    with locked(out):
        assert len(locks(out)) == 1

    assert time.monotonic() - began < 1
    assert not (out / STATE).exists()


def _state_of(pid):
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        return file.read().rpartition(")")[2].split()[0]


def test_a_number_that_was_given_again_is_another_process(out):
    forged(out, started="1")

    with locked(out):
        assert len(locks(out)) == 1


def test_a_damaged_lock_is_nobodys(out):
    forged(out).write_text("{")

    with locked(out):
        assert len(locks(out)) == 1


def test_a_lock_that_cannot_be_read_is_a_runs(out, impatient):
    (path := out / STATE / "part-1-of-1.00112233aabbccdd.lock").mkdir(parents=True)

    with pytest.raises(OutputError, match=f"another run .its lock is {path}"), locked(out):
        pass
    assert path.is_dir()


def test_a_run_of_another_container_with_our_number_is_alive_while_it_beats(out, hasty):
    path, ended = forged(out, machine="another"), threading.Event()

    def beat():
        while not ended.wait(0.05):
            os.utime(path)

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with pytest.raises(OutputError, match="in use by another run"), locked(out):
            pass
    finally:
        ended.set()
        thread.join()
    assert locks(out) == [path.name]


def test_a_run_of_another_host_that_beats_no_more_is_dead(out, hasty):
    forged(out, host="node-7", machine="another")
    shown = []

    with locked(out, show=shown.append):
        assert len(locks(out)) == 1

    assert "run on node-7" in shown[0].doing


@pytest.mark.parametrize(
    ("one", "other", "is_free"),
    [
        ("part-1-of-2", "part-2-of-2", True),
        ("part-1-of-2", "part-3-of-4", False),
        ("part-1-of-4", "part-2-of-6", True),
        ("part-1-of-1", "part-2-of-9", False),
        ("part-1-of-1", "finish", True),
        ("finish", "finish", False),
    ],
)
def test_parts_without_a_common_task_share_a_folder(out, one, other, is_free, impatient):
    with locked(out, one):
        refused = nullcontext() if is_free else pytest.raises(OutputError, match="in use")
        with refused, locked(out, other):
            assert len(locks(out)) == 2


@pytest.mark.parametrize("place", ["folder", "memory"])
def test_of_many_at_once_one_is_in(tmp_path, place, impatient):
    out = output_path(tmp_path if place == "folder" else f"memory://{tmp_path.name}/lock")
    inside, most = [], []

    def enter(number):
        with locked(out, "finish", wait=True):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.005)
            inside.remove(number)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(enter, range(6)))

    assert most == [1] * 6
    assert not list((out / STATE).glob("*"))


def test_texts_written_at_once_are_whole(tmp_path):
    path, texts = tmp_path / "manifest.json", [letter * 40_000 for letter in "abcd"]

    def write(text):
        for _ in range(12):
            write_text(path, text)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, texts))

    assert path.read_text() in texts
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_run_whose_folder_is_taken_over_ends_without_a_manifest(out, tmp_path):
    code = tmp_path / "thief.py"
    code.write_text(
        "import noisegen, pathlib\n@noisegen.transform('thief')\n"
        "def f(text, draws, *, rate: float = 1.0):\n"
        f"    for path in pathlib.Path({str(out / STATE)!r}).glob('*.lock'): path.unlink()\n"
        "    return text\n"
    )

    with pytest.raises(OutputError, match=r"lost .* while writing into it: .* with --resume"):
        augment(DEMO, out, code=(str(code),), transforms=["thief"], limit=5)

    assert not (out / "manifest.json").exists()


def test_a_run_that_is_killed_leaves_the_proof_that_it_began(out, tmp_path):
    words = [*PROGRAM, *words_for(out, "--workers", "1")]
    process = subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE)
    wait_for(lambda: list(out.glob("data/*.parquet")))
    end(process)
    assert locks(out)
    shard = next(out.glob("data/*.parquet"))
    shard.write_bytes(shard.read_bytes()[:100])

    ended = subprocess.run([*words, "--resume"], capture_output=True, text=True)

    assert (ended.returncode, ended.stderr.count("error")) == (0, 0)
    augment(
        DEMO,
        tmp_path / "whole",
        rows_per_shard=60,
        transforms=["fing:rate=0.1", "spac", "leet:rate=0.1", "week"],
    )
    assert contents(out) == contents(tmp_path / "whole")
    assert visible(out) == ["README.md", "data", "manifest.json"]
