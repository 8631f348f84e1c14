"""Several processes of one run: how they wait for each other, and how they end together."""

import os
import socket
import subprocess
import sys
import time

import pytest

PROGRAM = """
import os, signal, sys, time
from datetime import timedelta

import torch.distributed as dist

import noisegen
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.training import peers
from noisegen.training.trainer import Trainer

rank, (data, out, teacher, case) = int(os.environ["RANK"]), sys.argv[1:]
peers.SILENCE, peers.GRACE = 3.0, 2.0
encode, update = SentenceEncoder.encode, Trainer.update

def slow_encode(*given):
    time.sleep(20 if case == "slow" and rank == 0 else 0)
    if case == "error" and rank == 0:
        raise noisegen.NoisegenError("the teacher is ill")
    time.sleep(60 if case == "error" else 0)
    return encode(*given)

def update_and_die(trainer, *given):
    update(trainer, *given)
    if case == "killed" and rank == 1 and trainer.progress.updates == 2:
        os.kill(os.getpid(), signal.SIGKILL)

SentenceEncoder.encode, Trainer.update = slow_encode, update_and_die
dist.init_process_group("gloo", timeout=timedelta(seconds=5))
values = {"batch_tokens": 512, "validation_rows": 20, "recipe": "stored", "precision": "fp32"}
try:
    noisegen.train([data], out, teacher=teacher, steps=4, device="cpu", values=values)
except noisegen.NoisegenError as error:
    sys.exit(f"error: {error}")
"""


@pytest.fixture
def start(tmp_path, pairs_file, tiny_bert):
    """Start two processes of a run, without torchrun, which would end one after the other."""
    begun = []

    def started(case):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        given = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        given |= {"OMP_NUM_THREADS": "1", "NOISEGEN_CACHE": str(tmp_path / "cache")}
        words = [sys.executable, "-c", PROGRAM, pairs_file, tmp_path / "run", tiny_bert, case]
        for rank in range(2):
            env = {**os.environ, **given, "RANK": str(rank)}
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            begun.append(subprocess.Popen(list(map(str, words)), env=env, **pipes))
        return begun

    yield started
    for process in begun:
        process.kill()
        process.communicate()


def ended(processes, seconds=100):
    """Return the exit code and standard error of each process."""
    texts = [process.communicate(timeout=seconds)[1] for process in processes]
    return [(process.returncode, text) for process, text in zip(processes, texts, strict=True)]


@pytest.mark.nightly
def test_processes_wait_for_one_that_prepares_longer_than_the_time_out(start, tmp_path):
    """The first one encodes for 20 s; the time-out of collective operations is 5 s."""
    for code, text in ended(start("slow")):
        assert code == 0, text
    assert (tmp_path / "run" / "metrics.json").exists()


@pytest.mark.nightly
def test_an_error_of_one_process_ends_all_with_one_line(start):
    began = time.monotonic()
    first, second = ended(start("error"))

    assert time.monotonic() - began < 60
    assert first == (1, "error: the teacher is ill\n")
    assert second == (1, "error: process 0 of 2 failed: the teacher is ill\n")


@pytest.mark.nightly
def test_a_killed_process_ends_all_with_one_line(start):
    processes = start("killed")
    (code, text), (killed, _) = ended(processes)

    assert killed == -9
    assert code == 1
    assert "process 1 of 2 has ended without a message" in text
    assert text.count("\n") == 1
