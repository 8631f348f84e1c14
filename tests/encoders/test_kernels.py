"""The kernels that oneDNN caches on a CPU, one per shape of a batch, are few."""

import os
import subprocess
import sys

import pytest
import torch

CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
SHAPES = """
import torch  # as some modules import it first
import noisegen.encoders
for rows in range(1, 101):
    torch.nn.functional.gelu(torch.zeros(rows, 8))
print("again", flush=True)
torch.nn.functional.gelu(torch.zeros(1, 8))
"""
SETTING = f"import noisegen.encoders, os; print(os.environ['{CAPACITY}'])"


def output_of(program, **given):
    environment = {name: value for name, value in os.environ.items() if name != CAPACITY}
    words = [sys.executable, "-c", program]
    return subprocess.run(
        words, env=environment | given, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch has no oneDNN")
@pytest.mark.parametrize(("given", "made_again"), [({}, 1), ({CAPACITY: "1024"}, 0)])
def test_the_kernel_of_an_old_shape_is_dropped_unless_the_user_keeps_it(given, made_again):
    """Kernels for a hundred shapes are made; then a batch has the first shape again."""
    first, again = output_of(SHAPES, ONEDNN_VERBOSE="profile", **given).split("again\n")
    assert first.count("create:cache_miss") >= 100
    assert again.count("create:cache_miss") == made_again


def test_a_size_that_the_user_has_set_is_kept():
    assert output_of(SETTING, **{CAPACITY: "1024"}) == "1024\n"
    assert output_of(SETTING) == "64\n"
