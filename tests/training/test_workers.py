"""One process with two batches per update, or two with one: the same run up to rounding."""

import json
import os
import socket
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier, current_thread

import numpy as np
import pytest
import torch
from models import character_bert
from runs import log_rows
from safetensors.torch import load_file

from noisegen.training.computation import Workers
from noisegen.training.distil import Distillation
from noisegen.training.pairs import NoiseSource
from noisegen.training.settings import load_settings, preset_names, read_preset

SHORT = {"steps": 4, "precision": "fp32", "lr": 1e-3, "validate_every": 2}
STUDENT = {"recipe": "stored", "batch_tokens": 1024, "validation_rows": 20, **SHORT}
PLAIN = {"dropout": 0.0}  # dropout draws from other seeds in each process
PROGRAM = """
import json, sys
import noisegen
for given in json.loads(sys.argv[1]):
    noisegen.train(device="cpu", tell=print, **given)
"""


@pytest.fixture(scope="module")
def runs(pairs_file, tiny_bert, tiny_models, tmp_path_factory, sentences):
    """Return, per number of processes, the folder of runs of all methods, and what they printed."""
    home = tmp_path_factory.mktemp("runs")
    bitext = home / "eng-xyz.tsv"
    rows = [f"{text}\t{text[::-1].upper()}" for text in sentences[:120]]
    bitext.write_text("\n".join(["source\ttarget", *rows]) + "\n")
    character_bert(home / "char")
    rcp = {"batch_pairs": 12, "batch_tokens": 300, "validation_rows": 10, "max_length": 48}
    rcp |= {"memory": 30, "graph_gb": 2e-3, **PLAIN, **SHORT}
    heads = {"batch_pairs": 16, "warmup": 1, "steps": 4}

    def methods(world):
        own = {**STUDENT, "accumulate": 4 // world}
        rolaser = {**own, **PLAIN, "activation_dropout": 0.0, "student": "copy", "warmup": 1}
        crisis = {**own, **PLAIN, "student": str(tiny_bert), "warmup": 1}
        return {
            "two_term": (pairs_file, "two-term", {**own, **PLAIN, "warmup": 1}),
            "rolaser": (pairs_file, "rolaser", rolaser),
            "characters": (pairs_file, "c-rolaser", {**rolaser, "student": f"char:{home}/char"}),
            "crisis": (pairs_file, "ct", crisis),
            "rcp": (pairs_file, "rcp-small", {**rcp, "student": str(tiny_models())}),
            "heads": (bitext, "oracle-small", heads),
        }

    found = {}
    for world in (1, 2, 4):
        given = [
            {
                "data": str(data),
                "out": str(home / str(world) / name),
                "preset": preset,
                "teacher": None if name == "rcp" else str(tiny_bert),
                "values": values,
            }
            for name, (data, preset, values) in methods(world).items()
        ]
        found[world] = home / str(world), launched(world, PROGRAM, json.dumps(given))
    return found


def launched(world, program, *words):
    """Run a program in some processes at once; return the standard output of each."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    own = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    begun = []
    for rank in range(world):
        env = {**os.environ, "OMP_NUM_THREADS": "1", **own, "RANK": str(rank)}
        command = [sys.executable, "-c", program, *words]
        begun.append(subprocess.Popen(command, env=env, **pipes))
    ended = [process.communicate(timeout=400) for process in begun]
    assert not any(process.returncode for process in begun), [text for _, text in ended]
    return [text for text, _ in ended]


def weights(run):
    """Return the weights of the newest checkpoint, or of the heads."""
    found = max(run.glob("checkpoints/step-*/model.safetensors"), default=None)
    return load_file(found or run / "heads" / "model.safetensors")


@pytest.mark.nightly
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("method", ["two_term", "rolaser", "characters", "crisis", "rcp", "heads"])
def test_several_processes_train_as_one(runs, method, world):
    """Four batches of one process, or two of two, or one of each of four."""
    (alone, _), (together, said) = runs[1], runs[world]
    one, many = weights(alone / method), weights(together / method)

    assert one.keys() == many.keys()
    for name, value in one.items():
        if name.endswith("key.bias"):  # its gradient is 0 but for rounding, and Adam scales it up
            continue
        torch.testing.assert_close(many[name], value, atol=2e-5, rtol=1e-3, msg=name)
    own, shared = log_rows(alone / method), log_rows(together / method)
    for mine, theirs in zip(own, shared, strict=True):
        for name in (name for name in mine if "loss" in name):
            assert theirs[name] == pytest.approx(mine[name], rel=1e-4), name
        assert theirs.get("pairs") == mine.get("pairs"), "of all processes"
    assert said[0]
    assert not any(said[1:]), "one process prints"


DISTILLING = [name for name in preset_names() if read_preset(name).method == "distil"]


@dataclass(frozen=True)
class Together(Workers):
    """A process of a run whose processes are threads, which exchange rows through `shared`."""

    shared: dict = field(default_factory=dict)
    barrier: Barrier = field(default_factory=lambda: Barrier(1))

    def gathered(self, value):
        self.shared[self.rank] = value
        self.barrier.wait()
        return [self.shared[rank] for rank in range(self.world)]


@pytest.fixture
def methods(pairs_file, tiny_bert, tmp_path):
    """Return the method of each process of a run that has read DATA."""

    def made(world, **values):
        given = {"teacher": str(tiny_bert), "student": "copy", "recipe": "stored", **values}
        settings = load_settings("two-term", values={"validation_rows": 20, **given})
        shared, barrier = {}, Barrier(world)
        found = []
        for rank in range(world):
            workers = Together(rank, world, shared=shared, barrier=barrier)
            found.append(Distillation(settings, workers, print))
            found[-1].read([str(pairs_file)], tmp_path / f"{world}-{values}", resume=rank > 0)
        return found

    return made


def chunks(methods):
    """Return the first chunk of each process."""
    with ThreadPoolExecutor(len(methods)) as pool:
        return list(pool.map(lambda method: method.chunk(0, 0), methods))


@pytest.fixture
def updates(methods):
    """Return the padded tokens of each batch of each update, for a number of processes."""

    def made(world, **values):
        chunk = chunks(methods(world, **values))[0]
        longest = np.max([side.lengths for side in chunk.sides], 0)
        return [[len(rows) * longest[rows].max() for rows in step] for step in chunk.steps]

    return made


def test_each_process_prepares_what_it_uses(methods, monkeypatch):
    """Eight processes together noise and tokenise each pair once, and plan the same updates."""
    noised = Counter()
    noisy = NoiseSource.noisy

    def counted(source, data, rows, epoch):
        noised[current_thread().name] += len(rows)
        return noisy(source, data, rows, epoch)

    monkeypatch.setattr(NoiseSource, "noisy", counted)
    found = chunks(methods(8, recipe="fing", batch_tokens=2048))
    alone = chunks(methods(1, recipe="fing", batch_tokens=2048, accumulate=8))[0]

    used = [sum(len(step[rank]) for step in found[rank].steps) for rank in range(8)]
    prepared = sorted(noised.values())[:-1]  # the last one is that of the run of one process
    assert len(prepared) == 8
    assert max(prepared) <= 1.1 * np.mean(used)
    for chunk in found:
        assert (chunk.sides[0].values == alone.sides[0].values).all()
        for ours, theirs in zip(chunk.steps, alone.steps, strict=True):
            assert all(map(np.array_equal, ours, theirs))


def test_processes_exchange_words_whose_ids_differ(methods, tmp_path):
    """The ids of words are a process's own, in the order in which it read them."""
    character_bert(tmp_path / "char")
    given = {"student": f"char:{tmp_path}/char", "objective": "mse_sum", "pooling": "mean"}
    several, one = methods(2, **given), methods(1, **given)
    found = [*chunks(several), *chunks(one)]

    sides = [chunk.sides[0].values for chunk in found]
    assert (sides[0] != sides[1]).any()
    first, second, alone = (
        method.network.tokenizer.table.words(side).tolist()
        for method, side in zip([*several, *one], sides, strict=True)
    )
    assert first == second == alone


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

    class Done:
        def wait(self):
            pass

    monkeypatch.setattr(
        computation.dist, "all_reduce", lambda some, async_op: (some.mul_(2), Done())[1]
    )
    weights = [torch.nn.Parameter(torch.ones(2, 3)), torch.nn.Parameter(torch.ones(4))]
    weights[0].grad = torch.full((2, 3), 3.0)

    Workers(0, 2).sum_gradients(weights)

    assert weights[0].grad.tolist() == [[6.0] * 3] * 2
    assert weights[1].grad.tolist() == [0.0] * 4
    assert Workers().maximum(2.5) == pytest.approx(2.5)
