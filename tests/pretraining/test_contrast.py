"""Contrast against double loops in float64: as RCP's code has it, and as its paper prints it."""

import math

import pytest
import torch

from noisegen.pretraining.contrast import FORMS, Memory, nt_xent, nt_xent_printed
from noisegen.training.losses import Batch, Output
from noisegen.training.losses import nt_xent as nt_xent_of_distillation


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def by_loops(vectors, others, temperature, *, printed):
    """Anchor by anchor: its other side against all but itself."""
    pairs, losses = len(vectors) // 2, []
    for i, anchor in enumerate(vectors):
        partner = i + pairs if i < pairs else i - pairs
        below = 0.0
        for k, other in enumerate(vectors):
            if k != i:
                below += math.exp(cosine(anchor, other) / temperature)
        for other in others:
            below += math.exp(cosine(anchor, other) / temperature)
        above = cosine(anchor, vectors[partner]) / (1 if printed else temperature)
        losses.append(-math.log(math.exp(above) / below))
    return sum(losses) if printed else sum(losses) / len(losses)


@pytest.mark.parametrize("seed", range(40))
def test_both_forms_equal_a_double_loop(seed):
    random = torch.Generator().manual_seed(seed)

    def drawn(rows):
        return torch.randn(rows, width, generator=random, dtype=torch.float64)

    pairs, width, earlier = 1 + seed % 7, 2 + seed % 5, (seed % 3) * 4
    temperature = (0.05, 0.1, 1.0)[seed % 3]
    vectors, others = drawn(2 * pairs), drawn(earlier)
    given = others if earlier else None
    for form, printed in ((nt_xent, False), (nt_xent_printed, True)):
        expected = by_loops(vectors.tolist(), others.tolist(), temperature, printed=printed)
        assert float(form(vectors, given, temperature)) == pytest.approx(expected, rel=1e-10)


def test_the_forms_differ_by_orders_of_magnitude():
    """The paper's sum and missing temperature are no detail (64 pairs, their sides close)."""
    torch.manual_seed(0)
    noisy = torch.randn(64, 16)
    vectors = torch.cat([noisy, noisy + 0.1 * torch.randn(64, 16)])
    assert nt_xent_printed(vectors) > 100 * nt_xent(vectors)


def test_it_is_what_distillation_has_by_that_name():
    torch.manual_seed(0)
    vectors = torch.randn(10, 6)
    noisy, clean = vectors.chunk(2)
    theirs = nt_xent_of_distillation(Batch(noisy, None, 0.05), Output(noisy, clean))
    assert torch.equal(theirs["contrast"], nt_xent(vectors))


@pytest.mark.parametrize("form", FORMS)
def test_the_gradient_is_that_of_finite_differences(form):
    torch.manual_seed(0)
    vectors = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    others = torch.randn(3, 4, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda v: FORMS[form](v, others, 0.5), vectors)


@pytest.mark.parametrize("size", [0, 1, 5, 6, 64])
def test_a_memory_has_the_newest_vectors(size):
    memory, plain = Memory(size, 2), []
    for update in range(12):
        vectors = torch.full((4, 2), float(update)) + torch.arange(4)[:, None] / 10
        memory.add(vectors)
        plain = [*vectors.tolist(), *plain][:size]
        known = memory.known()
        assert (known.tolist() if known is not None else []) == plain


def test_a_memory_is_part_of_the_state():
    memory, other = Memory(4, 2), Memory(4, 2)
    memory.add(torch.ones(3, 2))
    other.load_state_dict(memory.state_dict())
    assert torch.equal(other.known(), torch.ones(3, 2))
