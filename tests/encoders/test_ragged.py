"""Rows of different lengths, against plain lists."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from noisegen.encoders.encoder import Ragged
from noisegen.encoders.tokens import Padded, by_length

ROWS = st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=6), max_size=12)


def lists(rows: Ragged) -> list[list[int]]:
    assert rows.values.dtype == np.int32
    assert rows.offsets.dtype == np.int64
    return [rows[row].tolist() for row in range(len(rows))]


@given(ROWS)
def test_rows_come_back_as_they_were(rows):
    found = Ragged.of(rows)
    assert lists(found) == rows
    assert found.lengths.tolist() == [len(row) for row in rows]


@given(ROWS, st.data())
def test_taken_rows_are_those_rows_in_that_order(rows, data):
    picked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=20)) if rows else []
    found = Ragged.of(rows).take(np.array(picked, np.int64))
    assert lists(found) == [rows[row] for row in picked]


@given(st.lists(ROWS, max_size=4))
def test_joined_rows_stand_under_each_other(parts):
    found = Ragged.joined(Ragged.of(rows) for rows in parts)
    assert lists(found) == [row for rows in parts for row in rows]


@given(ROWS)
def test_padded_rows_are_filled_up_at_the_right(rows):
    longest = max(map(len, rows), default=0)
    found = Ragged.of(rows).padded(7)
    assert found.dtype == np.int64
    assert found.shape == (len(rows), longest)
    assert found.tolist() == [row + [7] * (longest - len(row)) for row in rows]


@given(st.lists(st.integers(0, 90), max_size=60), st.integers(1, 300))
def test_groups_by_length_hold_every_row_once_within_the_budget(lengths, budget):
    groups = [group.tolist() for group in by_length(np.array(lengths, np.int64), budget)]
    rows = [row for group in groups for row in group]
    assert sorted(rows) == list(range(len(lengths)))
    assert [lengths[row] for row in rows] == sorted(lengths, reverse=True)
    for group in groups:
        assert len(group) == 1 or len(group) * lengths[group[0]] <= budget


STATES = torch.tensor([[[1.0, -5], [3, -7], [9, 9]], [[-2, 4], [8, 8], [8, 8]]])
BATCH = Padded.of(Ragged.of([[5, 6], [7]]), 0)


def test_a_batch_knows_where_tokens_are():
    assert BATCH.ids.tolist() == [[5, 6], [7, 0]]
    assert BATCH.mask.tolist() == [[True, True], [True, False]]
    assert BATCH.tokens == 4


@pytest.mark.parametrize(
    ("pooling", "vectors"),
    [
        ("mean", [[2, -6], [-2, 4]]),
        ("max", [[3, -5], [-2, 4]]),
        ("cls", [[1, -5], [-2, 4]]),
    ],
)
def test_padding_takes_no_part_in_pooling(pooling, vectors):
    assert BATCH.pooled(STATES[:, :2], pooling).tolist() == vectors
