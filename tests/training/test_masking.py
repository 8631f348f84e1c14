"""Masks: how many, by what, where never, and the same again for the same (seed, epoch, row)."""

import numpy as np
import pytest
import torch

from noisegen.encoders.encoder import Ragged
from noisegen.encoders.folders import open_folder
from noisegen.encoders.tokens import Packed, Padded, PieceTokenizer
from noisegen.errors import UsageError
from noisegen.training.masking import NO_TARGET, Masked, Masker

ROWS, LENGTH = 4_000, 50


@pytest.fixture(scope="module")
def tokenizer(tiny_models) -> PieceTokenizer:
    return open_folder(tiny_models()).tokenizer


@pytest.fixture(scope="module")
def masker(tokenizer):
    return Masker.of(tokenizer, 0.15, 7)


@pytest.fixture(scope="module")
def ids(masker):
    """Rows of ordinary ids between the special ones, as a tokenizer makes them."""
    random = np.random.Generator(np.random.PCG64(3))
    rows = random.choice(masker.ordinary, (ROWS, LENGTH)).astype(np.int32)
    rows[:, 0], rows[:, -1] = 2, 3
    return Ragged(rows.ravel(), np.arange(ROWS + 1) * LENGTH)


def masked(masker, ids, side="noisy", epoch=0, rows=None):
    return masker.masked(ids, np.arange(len(ids)) if rows is None else rows, side, epoch)


def within(share, expected, count, sigmas=5.0):
    return abs(share - expected) < sigmas * np.sqrt(expected * (1 - expected) / count)


def test_a_rate_of_tokens_is_chosen_and_four_fifths_are_masked(masker, ids):
    made = masked(masker, ids)
    chosen = made.targets.values != NO_TARGET
    ordinary = ROWS * (LENGTH - 2)
    assert within(chosen.sum() / ordinary, 0.15, ordinary)

    was, put, count = ids.values[chosen], made.ids.values[chosen], int(chosen.sum())
    assert within((put == masker.mask_id).mean(), 0.8, count)
    kept = 0.1 + 0.1 / len(masker.ordinary)  # a random token can be the one that was there
    assert within((put == was).mean(), kept, count)
    drawn = put[(put != masker.mask_id) & (put != was)]
    expected = len(drawn) / len(masker.ordinary)
    counts = np.bincount(drawn, minlength=len(masker.special))[masker.ordinary]
    assert abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_targets_are_what_was_there_and_the_rest_is_untouched(masker, ids):
    made = masked(masker, ids)
    chosen = made.targets.values != NO_TARGET
    assert (made.targets.values[chosen] == ids.values[chosen]).all()
    assert (made.ids.values[~chosen] == ids.values[~chosen]).all()


def test_special_tokens_are_never_masked_and_never_drawn(tokenizer, masker):
    texts = ["a b", "", "€ what €", "[SEP] it [MASK]"] * 400
    ids = tokenizer.tokenize(texts)
    made = Masker.of(tokenizer, 0.9, 0).masked(ids, np.arange(len(ids)), "noisy", 0)
    special = masker.special[ids.values]
    assert special.any()
    assert (made.targets.values[special] == NO_TARGET).all()
    changed = made.ids.values[made.ids.values != ids.values]
    assert not set(np.unique(changed)) & set(np.flatnonzero(masker.special)) - {masker.mask_id}


def test_sides_and_epochs_are_masked_independently(masker, ids):
    def chosen(**given):
        return masked(masker, ids, **given).targets.values != NO_TARGET

    one, ordinary = chosen(), ~masker.special[ids.values]
    for other in (chosen(side="clean"), chosen(epoch=1)):
        both = (one & other)[ordinary].mean()
        assert within(both, 0.15**2, int(ordinary.sum()))


def test_a_row_is_masked_alike_in_every_batch_and_order(masker, ids):
    whole = masked(masker, ids)
    rows = np.random.Generator(np.random.PCG64(5)).permutation(ROWS)[:300]
    some = masked(masker, ids.take(rows), rows=rows)
    assert (some.ids.values == whole.ids.take(rows).values).all()
    assert (some.targets.values == whole.targets.take(rows).values).all()


def test_another_seed_masks_otherwise(tokenizer, masker, ids):
    other = Masker.of(tokenizer, 0.15, 8)
    assert (masked(masker, ids).ids.values != masked(other, ids).ids.values).any()


@pytest.mark.parametrize("seed", range(20))
def test_states_under_masks_equal_a_loop_over_rows(seed):
    random = np.random.Generator(np.random.PCG64(seed))
    lengths = random.integers(0 if seed % 2 else 1, 9, 1 + seed % 6)
    rows = [random.integers(5, 40, length).tolist() for length in [*lengths, 3]]
    targets = [[-1 if random.random() < 0.6 else one for one in row] for row in rows]
    made = Masked(Ragged.of(rows), Ragged.of(targets))
    states = [torch.randn(len(row), 4, dtype=torch.float64) for row in rows]
    expected = [
        state[at].float()
        for state, row in zip(states, targets, strict=True)
        for at, target in enumerate(row)
        if target != NO_TARGET
    ]
    expected = torch.stack(expected) if expected else torch.zeros(0, 4)

    padded = torch.nn.utils.rnn.pad_sequence(states, batch_first=True, padding_value=9.0)
    assert torch.equal(made.masked_states(padded, Padded.of(made.ids, 0)), expected)
    assert torch.equal(made.masked_states(torch.cat(states), Packed.of(made.ids, 0)), expected)
    assert made.counts().tolist() == [sum(one != NO_TARGET for one in row) for row in targets]


def test_a_tokenizer_without_a_mask_is_refused(tiny_bert):
    with pytest.raises(UsageError, match="no mask token"):
        Masker.of(open_folder(tiny_bert).tokenizer, 0.15, 0)
