"""NT-Xent, as in RCP's code and in its paper, compared with double loops in float64."""

import math

import pytest
import torch

from noisegen.training.losses import Batch, Output, Sides, nt_xent_of_sides, nt_xent_printed
from noisegen.training.losses import nt_xent as nt_xent_of_distillation
from noisegen.training.masking import Memory


def nt_xent(sides, temperature):
    return nt_xent_of_sides(sides, temperature)["contrast"]


def printed_form(sides, temperature):
    return nt_xent_printed(sides, temperature)["contrast"]


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def by_loops(vectors, owners, others, owners_of_others, temperature, *, printed):
    """Compute the loss anchor by anchor, with the sides of other clean texts as negatives."""
    pairs, losses = len(vectors) // 2, []
    for i, anchor in enumerate(vectors):
        partner = i + pairs if i < pairs else i - pairs
        below = math.exp(cosine(anchor, vectors[partner]) / temperature)
        for owner, other in zip([*owners, *owners_of_others], [*vectors, *others], strict=True):
            if owner != owners[i]:
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
    temperature, texts = (0.05, 0.1, 1.0)[seed % 3], (2, 9, 1_000)[seed // 3 % 3]
    vectors, others = drawn(2 * pairs), drawn(earlier)
    owners = torch.randint(texts, (pairs,), generator=random).repeat(2)
    of_others = torch.randint(texts, (earlier,), generator=random)
    given = (others, of_others) if earlier else ()
    for form, printed in ((nt_xent, False), (printed_form, True)):
        lists = [one.tolist() for one in (vectors, owners, others, of_others)]
        expected = by_loops(*lists, temperature, printed=printed)
        found = float(form(Sides(vectors, owners, *given), temperature))
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_a_pair_that_is_there_twice_is_no_negative_of_itself():
    """Copies of `augment`: with negatives of one's own the loss could not fall to 0."""
    one, other = torch.eye(2)
    vectors = torch.stack([one, one, other] * 2)
    assert nt_xent(Sides(vectors, torch.tensor([5, 5, 7] * 2)), 0.05) < 1e-6
    assert nt_xent(Sides(vectors, torch.tensor([5, 6, 7] * 2)), 0.05) > 0.5
    earlier = torch.stack([one, other]), torch.tensor([5, 7])
    assert nt_xent(Sides(vectors, torch.tensor([5, 5, 7] * 2), *earlier), 0.05) < 1e-6


def apart(vectors):
    """Return sides of pairs with different clean texts."""
    return Sides(vectors, torch.arange(len(vectors) // 2).repeat(2))


def test_the_forms_differ_by_orders_of_magnitude():
    """The paper's sum and missing temperature are no detail (64 pairs, their sides close)."""
    torch.manual_seed(0)
    noisy = torch.randn(64, 16)
    vectors = torch.cat([noisy, noisy + 0.1 * torch.randn(64, 16)])
    assert printed_form(apart(vectors), 0.05) > 100 * nt_xent(apart(vectors), 0.05)


def test_it_is_what_distillation_has_by_that_name():
    torch.manual_seed(0)
    vectors = torch.randn(10, 6)
    noisy, clean = vectors.chunk(2)
    theirs = nt_xent_of_distillation(Batch(noisy, None, 0.05), Output(noisy, clean))
    assert torch.equal(theirs["contrast"], nt_xent(apart(vectors), 0.05))


@pytest.mark.parametrize("form", [nt_xent, printed_form])
def test_the_gradient_is_that_of_finite_differences(form):
    torch.manual_seed(0)
    vectors = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    others = torch.randn(3, 4, dtype=torch.float64), torch.tensor([0, 4, 1])
    owners = torch.tensor([0, 1, 0] * 2)
    assert torch.autograd.gradcheck(lambda v: form(Sides(v, owners, *others), 0.5), vectors)


@pytest.mark.parametrize("size", [0, 1, 5, 6, 64])
def test_a_memory_has_the_newest_vectors(size):
    memory, plain = Memory(size, 2), []
    for update in range(12):
        vectors = torch.full((4, 2), float(update)) + torch.arange(4)[:, None] / 10
        memory.add(vectors, torch.arange(4) + 4 * update)
        rows = zip(vectors.tolist(), range(4 * update, 4 * update + 4), strict=True)
        plain = [*rows, *plain][:size]
        sides = memory.with_negatives(vectors, torch.arange(4))
        found = () if sides.others is None else (sides.others, sides.owners_of_others)
        assert list(zip(*(part.tolist() for part in found), strict=True)) == plain


def test_a_memory_is_part_of_the_state():
    memory, other = Memory(4, 2), Memory(4, 2)
    memory.add(torch.ones(3, 2), torch.arange(3))
    other.load_state_dict(memory.state_dict())
    sides = other.with_negatives(torch.zeros(2, 2), torch.zeros(2))
    assert torch.equal(sides.others, torch.ones(3, 2))
    assert torch.equal(sides.owners_of_others, torch.arange(3))
