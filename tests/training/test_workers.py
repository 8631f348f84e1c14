"""One process with two batches per update, or two with one: the same run up to rounding."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from runs import log_rows, trained_weights

from noisegen.training.computation import Workers
from noisegen.training.distil import Distillation
from noisegen.training.settings import load_settings, preset_names, read_preset

TORCHRUN = [
    "-m",
    "torch.distributed.run",
    "--nproc-per-node",
    "2",
    "--master-port",
    "0",
    "--rdzv-backend",
    "c10d",
    "--rdzv-endpoint",
    "127.0.0.1:0",
]
SHORT = ("precision=fp32", "lr=1e-3", "validate_every=2")
DISTIL = ("recipe=stored", "batch_tokens=512", "validation_rows=20", "negatives=8", *SHORT)
PRETRAIN = (
    "batch_pairs=12",
    "batch_tokens=300",
    "dropout=0.0",
    "validation_rows=10",
    "max_length=48",
    "memory=30",
    "graph_gb=2e-3",
    *SHORT,
)


def run(launcher, pairs_file, out, *options):
    command = [
        *(sys.executable, *launcher, "-m", "noisegen", "train", str(pairs_file), "-o", str(out)),
        *("--steps", "4", "--device", "cpu", *options),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    return trained_weights(out, 4), log_rows(out), done


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["distil", "distil by pairs", "pretrain"])
def test_two_processes_train_as_one(pairs_file, tiny_bert, tiny_models, tmp_path, method):
    """Two batches of one process, or one of each; vectors to contrast are gathered."""
    if method.startswith("distil"):
        pairs = ("batch_pairs=24",) if method == "distil by pairs" else ()
        settings = [f"--set={setting}" for setting in (*DISTIL, *pairs)]
        options = ["--teacher", str(tiny_bert), *settings]
        alone, together = ([*options, f"--set=accumulate={count}"] for count in (2, 1))
    else:
        settings = [f"--set={setting}" for setting in PRETRAIN]
        alone = together = ["--preset", "rcp-small", "--student", str(tiny_models()), *settings]
    one, own, _ = run([], pairs_file, tmp_path / "one", *alone)
    two, shared, done = run(TORCHRUN, pairs_file, tmp_path / "two", *together)

    assert one.keys() == two.keys()
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, atol=2e-5, rtol=1e-3, msg=name)
    assert done.stdout.count("updates") == 1, "one process prints"
    for mine, theirs in zip(own, shared, strict=True):
        for name in (name for name in mine if "loss" in name):
            assert theirs[name] == pytest.approx(mine[name], rel=1e-4), name
        assert theirs.get("pairs") == mine.get("pairs"), "of all processes"


DISTILLING = [name for name in preset_names() if read_preset(name).method == "distil"]


class Lone(Workers):
    """The first process of a run whose other processes do not exist."""

    def wait(self):
        pass


@pytest.fixture
def updates(pairs_file, tiny_bert, tmp_path):
    """Return the padded tokens of each batch of each update, for a number of processes."""

    def made(world, **values):
        given = {"teacher": str(tiny_bert), "student": "copy", "recipe": "stored", **values}
        settings = load_settings("two-term", values={"validation_rows": 20, **given})
        method = Distillation(settings, Lone(0, world), print)
        method.read([str(pairs_file)], tmp_path / f"{world}-{values}")
        chunk = method.chunk(0, 0)
        longest = np.max([side.lengths for side in chunk.sides], 0)
        return [[len(rows) * longest[rows].max() for rows in step] for step in chunk.steps]

    return made


@pytest.mark.parametrize("world", [2, 8])
def test_the_tokens_of_an_update_are_those_of_all_processes(updates, world):
    """8 processes take 4,000 of 32,000 tokens each, as in RoLASER, not 32,000 each."""
    alone, together = updates(1, batch_tokens=2048), updates(world, batch_tokens=2048)

    assert {len(step) for step in together} == {world}
    assert all(tokens <= 2048 // world for step in together for tokens in step)
    assert len(together) == pytest.approx(len(alone), abs=2), "as many updates in an epoch"
    assert updates(1, batch_tokens=2048, accumulate=world) == together


@pytest.mark.parametrize("name", DISTILLING)
def test_a_preset_means_the_same_updates_on_any_number_of_processes(name):
    settings = load_settings(name, None, {"teacher": "minilm"})

    assert settings.tokens_per_batch(1) == settings.batch_tokens
    assert settings.tokens_per_batch(8) == settings.batch_tokens // 8
    if name in ("rolaser", "c-rolaser"):
        assert settings.tokens_per_batch(8) == 4_000, "RoLASER: on each of 8 GPUs"


def test_gradients_are_summed_over_processes(monkeypatch):
    from noisegen.training import computation

    monkeypatch.setattr(computation.dist, "all_reduce", lambda flat: flat.mul_(2))
    weights = [torch.nn.Parameter(torch.ones(2, 3)), torch.nn.Parameter(torch.ones(4))]
    weights[0].grad = torch.full((2, 3), 3.0)

    Workers(0, 2).sum_gradients(weights)

    assert weights[0].grad.tolist() == [[6.0] * 3] * 2
    assert weights[1].grad.tolist() == [0.0] * 4
    assert Workers().maximum(2.5) == pytest.approx(2.5)
