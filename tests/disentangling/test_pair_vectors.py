"""Frozen vectors moved and scaled before heads learn from them."""

import numpy as np
import pytest
import torch

from noisegen.disentangling.heads import Heads
from noisegen.disentangling.pair_vectors import Standard


class Rows:
    """Vectors as the cache gives them."""

    def __init__(self, array):
        self.array, self.width = array, array.shape[1]

    def __len__(self):
        return len(self.array)

    def take(self, rows):
        return self.array[rows].astype(np.float32)


def test_standard_vectors_have_mean_0_and_mean_square_1_and_heads_take_them_raw():
    random = np.random.Generator(np.random.PCG64(0))
    raw = random.normal(2, 0.1, (9_000, 5)).astype(np.float16)
    standard = Standard.of(Rows(raw))
    made = (raw.astype(np.float64) - standard.centre) * standard.scale
    heads = Heads(5, torch.Generator().manual_seed(0))
    wanted = [one.detach() for one in heads(torch.from_numpy(made).float())]
    heads.unfold(torch.from_numpy(standard.centre), standard.scale)

    assert np.allclose(made.mean(0), 0, atol=1e-5)
    assert np.square(made).mean() == pytest.approx(1, rel=1e-4)
    for one, other in zip(heads(torch.from_numpy(raw).float()), wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-3)
    assert Standard.of(Rows(np.ones((3, 5)))).scale == 1  # all vectors are the same
