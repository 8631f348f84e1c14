"""One process with two batches an update, or two with one: the same run up to rounding."""

import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

SETTINGS = ("noise=stored", "precision=fp32", "batch_tokens=512", "validation_rows=20",
            "negatives=8", "validate_every=2", "lr=1e-3")  # fmt: skip


def run(launcher, pairs_file, tiny_bert, out, accumulate):
    given = [f"--set={one}" for one in (*SETTINGS, f"accumulate={accumulate}")]
    command = [
        *(sys.executable, *launcher, "-m", "noisegen", "train", str(pairs_file), "-o", str(out)),
        *("--teacher", str(tiny_bert), "--steps", "4", "--device", "cpu", *given),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    return load_file(out / "checkpoints" / "step-0000004" / "model.safetensors"), done


def test_two_processes_train_as_one(pairs_file, tiny_bert, tmp_path):
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0",
                "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]  # fmt: skip
    one, _ = run([], pairs_file, tiny_bert, tmp_path / "one", 2)
    two, done = run(torchrun, pairs_file, tiny_bert, tmp_path / "two", 1)

    assert one.keys() == two.keys()
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, atol=2e-5, rtol=1e-3, msg=name)
    moved = load_file(tiny_bert / "model.safetensors")
    assert any(not torch.allclose(one[f"network.{name}"], value) for name, value in moved.items()
               if f"network.{name}" in one)  # fmt: skip
    assert done.stdout.count("updates") == 1, "one process prints"
    assert len((tmp_path / "two" / "log.jsonl").read_text().splitlines()) == len(
        (tmp_path / "one" / "log.jsonl").read_text().splitlines()
    )


def test_gradients_are_summed_over_processes(monkeypatch):
    from noisegen.training import workers
    from noisegen.training.workers import Workers

    monkeypatch.setattr(workers.dist, "all_reduce", lambda flat: flat.mul_(2))
    weights = [torch.nn.Parameter(torch.ones(2, 3)), torch.nn.Parameter(torch.ones(4))]
    weights[0].grad = torch.full((2, 3), 3.0)

    Workers(0, 2).sum_gradients(weights)

    assert weights[0].grad.tolist() == [[6.0] * 3] * 2
    assert weights[1].grad.tolist() == [0.0] * 4
    assert Workers().agreed(2.5) == pytest.approx(2.5)
