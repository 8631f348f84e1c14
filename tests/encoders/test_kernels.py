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


def kernels_made(**given):
    """Return how many kernels 101 batches of 100 shapes need; the first shape is also the last."""
    environment = {name: value for name, value in os.environ.items() if name != CAPACITY}
    environment |= {"ONEDNN_VERBOSE": "profile", **given}
    found = subprocess.run(
        [sys.executable, "-c", SHAPES], env=environment, capture_output=True, text=True, check=True
    )
    return found.stdout.count("create:cache_miss")


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch has no oneDNN")
def test_kernels_of_old_shapes_are_dropped_unless_the_user_keeps_them():
    assert kernels_made() == kernels_made(**{CAPACITY: "1024"}) + 1
