"""The kernels that oneDNN caches on a CPU, one per shape of a batch, are few."""

import os
import subprocess
import sys

import pytest
import torch

SHAPES = """
import torch  # as some modules import it first
import noisegen.encoders
for rows in [*range(1, 101), 1]:
    torch.nn.functional.gelu(torch.zeros(rows, 8))
"""
CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"


def started(**given):
    """Start a process with 101 batches of 100 shapes; the first shape is also the last."""
    environment = {name: value for name, value in os.environ.items() if name != CAPACITY}
    environment |= {"ONEDNN_VERBOSE": "profile", **given}
    return subprocess.Popen(
        [sys.executable, "-c", SHAPES], env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch has no oneDNN")
def test_kernels_of_old_shapes_are_dropped_unless_the_user_keeps_them():
    processes = started(), started(**{CAPACITY: "1024"})
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    by_default, kept = (output.count("create:cache_miss") for output in outputs)
    assert by_default == kept + 1
