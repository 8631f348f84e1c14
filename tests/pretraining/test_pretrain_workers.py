"""One process, or two that gather their vectors: the same run up to rounding."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

PROGRAM = """
import sys, json, torch
from noisegen.pretraining.run import train
torch.set_num_threads(1)
train([sys.argv[1]], sys.argv[2], preset="rcp-small", values=json.loads(sys.argv[3]), device="cpu")
"""
VALUES = {"steps": 4, "batch_pairs": 12, "batch_tokens": 300, "precision": "fp32", "dropout": 0.0,
          "validation_rows": 10, "max_length": 48, "lr": 1e-3, "memory": 30, "validate_every": 2,
          "graph_gb": 2e-3}  # fmt: skip


def run(launcher, pairs_file, out, tmp_path, values):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, *launcher, str(program), str(pairs_file), str(out),
               json.dumps(values)]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return load_file(out / "checkpoints" / "step-0000004" / "model.safetensors"), rows


@pytest.mark.nightly
def test_two_processes_train_as_one(pairs_file, tiny_models, tmp_path):
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0",
                "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]  # fmt: skip
    values = {"student": str(tiny_models()), **VALUES}
    one, said = run([], pairs_file, tmp_path / "one", tmp_path, values)
    two, told = run(torchrun, pairs_file, tmp_path / "two", tmp_path, values)

    assert one.keys() == two.keys()
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, atol=2e-5, rtol=1e-3, msg=name)
    assert int(one["memory.filled"]) == 30
    for mine, theirs in zip(said, told, strict=True):
        for name in (name for name in mine if "loss" in name):
            assert theirs[name] == pytest.approx(mine[name], rel=1e-4), name
