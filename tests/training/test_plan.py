import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisegen.encoders import CHUNK_ROWS
from noisegen.encoders.tokens import chunks_of, plan

lengths = st.lists(st.tuples(st.integers(2, 60), st.integers(2, 60)), min_size=4, max_size=300)


@given(lengths, st.integers(120, 400), st.integers(0, 9), st.sampled_from([1, 2, 4]))
def test_every_row_is_in_one_batch_and_no_batch_exceeds_the_budget(rows, budget, seed, world):
    sides = np.array(rows)
    steps = plan(sides, budget, seed, 0, 0, world)

    assert sorted(np.concatenate([batch for step in steps for batch in step])) == list(
        range(len(rows))
    )
    assert {len(step) for step in steps} == {world}
    for step in steps:
        for batch in step:
            assert sides[batch].max() * len(batch) <= budget


def test_the_plan_is_a_function_of_seed_epoch_and_chunk():
    sides = np.random.default_rng(0).integers(2, 60, (500, 1))

    def flat(*numbers):
        return [batch.tolist() for step in plan(sides, 200, *numbers) for batch in step]

    assert flat(1, 2, 3) == flat(1, 2, 3)
    assert (
        len({str(flat(*numbers)) for numbers in [(1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4)]}) == 4
    )


def test_little_is_padding():
    random = np.random.default_rng(0)
    noisy = np.clip(random.lognormal(3.3, 0.5, 20_000).astype(int), 4, 128)
    clean = np.clip(noisy - random.integers(0, 6, 20_000), 4, 128)
    sides = np.stack([noisy, clean], 1)
    computed = sum(
        sides[batch].max(0).sum() * len(batch)
        for step in plan(sides, 2048, 0, 0, 0)
        for batch in step
    )

    assert 1 - sides.sum() / computed < 0.03


def test_an_epoch_deals_all_rows_to_chunks_of_like_size():
    chunks = chunks_of(np.arange(2 * CHUNK_ROWS + 5), 0, 0)

    assert sorted(np.concatenate(chunks)) == list(range(2 * CHUNK_ROWS + 5))
    assert {len(chunk) for chunk in chunks} <= {21_846 + i for i in range(-2, 3)}


def test_rows_that_fill_a_batch_alone_are_dealt_to_all_processes():
    steps = plan(np.full((5, 1), 50), 10, 0, 0, 0, 4)

    assert [len(step) for step in steps] == [4]
    assert sorted(np.concatenate(steps[0])) == [0, 1, 2, 3, 4]


def test_too_few_rows_for_the_processes_are_refused():
    with pytest.raises(ValueError, match="3 rows cannot be dealt to 4"):
        plan(np.ones((3, 1), int), 10, 0, 0, 0, 4)
