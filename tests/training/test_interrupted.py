"""A run that was asked to stop, or whose disk was full, can be resumed with the same bits."""

import os
import resource
import signal
import subprocess
import threading
import time

import pytest
import torch
from runs import PROGRAM, left_over, log_rows, same_weights, trained_weights
from training_runs import SHORT

import noisegen
from noisegen.errors import OutputError
from noisegen.training.trainer import deferred_interrupts

SETTINGS = {**SHORT, "recipe": "stored", "dropout": 0.1}
STEPS = 24


@pytest.fixture(scope="module")
def train(tiny_bert, pairs_file):
    values = {**SETTINGS, "teacher": str(tiny_bert), "steps": STEPS}

    def run(out, sinks=(), every=1000, **more):
        given = {**values, "validate_every": every}
        noisegen.train([str(pairs_file)], out, values=given, device="cpu", sinks=sinks, **more)

    return run


@pytest.fixture(scope="module")
def whole(train, tmp_path_factory):
    """The weights of a run that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole") / "run"
    train(out)
    return trained_weights(out, STEPS)


def has_begun(run):
    path = run / "log.jsonl"
    return path.exists() and '"loss_' in path.read_text()


@pytest.fixture
def begin(tiny_bert, pairs_file):
    """Start the command of the same run in a process of its own."""

    def start(out, *more, every=1000):
        settings = {**SETTINGS, "validate_every": every, "steps": STEPS}
        given = [f"--set={name}={value}" for name, value in settings.items()]
        words = f"train {pairs_file} -o {out} --teacher {tiny_bert} --device cpu --quiet".split()
        command = [*PROGRAM, *words, *given, *more]
        threads = str(torch.get_num_threads())  # sums of another number of threads round otherwise
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)

    return start


@pytest.mark.nightly
def test_sigterm_keeps_a_checkpoint_and_the_rest_follows_bit_by_bit(train, begin, tmp_path, whole):
    out = tmp_path / "run"
    child = begin(out)
    while child.poll() is None and not has_begun(out):
        time.sleep(0.002)
    child.send_signal(signal.SIGTERM)
    _, said = child.communicate(timeout=60)

    assert child.returncode == 130, said
    assert len(said.split()) > 1
    assert len(said.strip().split("\n")) == 1
    assert "--resume" in said
    (kept,) = (out / "checkpoints").glob("step-*")
    assert 0 < int(kept.name.removeprefix("step-")) < STEPS

    train(out, resume=True)
    assert same_weights(trained_weights(out, STEPS), whole)
    assert (out / "student" / "model.safetensors").exists()


MOMENTS = {
    "reading": lambda run: (run / "config.yaml").exists(),
    "training": has_begun,
    "saving": lambda run: [*(run / "checkpoints").glob("step-*.tmp")],
    "between": lambda run: len([*(run / "checkpoints").glob("step-???????")]) > 1,
}


@pytest.mark.nightly
def test_a_run_killed_again_and_again_ends_with_the_same_bits(train, begin, tmp_path, whole):
    out = tmp_path / "run"
    for number, is_now in enumerate(MOMENTS.values()):
        child = begin(out, *["--resume"] * (number > 0), every=2)
        while child.poll() is None and not is_now(out):
            time.sleep(0.0005)
        child.kill()
        _, said = child.communicate(timeout=60)
        assert child.returncode == -signal.SIGKILL, said

    train(out, resume=True, every=2)
    assert same_weights(trained_weights(out, STEPS), whole)
    assert left_over(out) == []


def test_a_run_stopped_before_its_first_checkpoint_begins_anew(train, tmp_path, whole):
    def stop(row):
        raise RuntimeError("a kill, as far as files show")

    with pytest.raises(RuntimeError):
        train(tmp_path / "run", sinks=[stop])
    assert not [*(tmp_path / "run" / "checkpoints").glob("step-*")]

    lines = []
    train(tmp_path / "run", resume=True, tell=lines.append)
    assert "there is no checkpoint yet: training begins with the first update" in lines
    assert same_weights(trained_weights(tmp_path / "run", STEPS), whole)
    steps = [row["step"] for row in log_rows(tmp_path / "run")]
    assert steps == sorted(steps)


@pytest.fixture
def interrupted(train, tmp_path):
    """A run that Ctrl-C ended after ten updates."""

    def stop(row):
        if row["step"] == 10:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", sinks=[stop])
    return tmp_path / "run"


def test_a_full_disk_leaves_the_last_checkpoint_and_one_line(train, interrupted, whole):
    """The limit on the size of files admits the weights, but not the moments, twice as large."""
    kept = interrupted / "checkpoints" / "step-0000010"
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    most = 3 * len(before["model.safetensors"]) // 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        with pytest.raises(OutputError) as raised:
            train(interrupted, resume=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(raised.value).startswith("cannot write ")
    assert "free some space, then run again with --resume" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before

    (interrupted / "data" / "noisy.text.0123456789abcdef.tmp").write_bytes(b"half of a file")
    train(interrupted, resume=True)
    assert same_weights(trained_weights(interrupted, STEPS), whole)
    assert left_over(interrupted) == []


def test_a_run_that_ended_is_not_trained_further(train, interrupted, whole):
    for _ in range(2):
        train(interrupted, resume=True)
        last = max((interrupted / "checkpoints").glob("step-*"))
        assert last.name == f"step-{STEPS:07d}"
        assert same_weights(trained_weights(interrupted, STEPS), whole)


def test_a_first_signal_waits_and_a_second_one_does_not():
    before = signal.getsignal(signal.SIGTERM)
    with deferred_interrupts() as asked:
        assert not asked()
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == before


def test_in_another_thread_signals_go_where_they_went():
    found = []

    def look():
        with deferred_interrupts() as asked:
            found.append((signal.getsignal(signal.SIGTERM), asked()))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [(signal.getsignal(signal.SIGTERM), False)]


def test_all_processes_stop_where_one_was_asked(train, tmp_path, monkeypatch):
    """A process that went on alone would wait for the others for ever."""
    monkeypatch.setattr(
        "noisegen.training.computation.Workers.maximum", lambda self, value: value or 1
    )
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run" / "checkpoints").glob("step-*")] == [
        "step-0000001"
    ]
