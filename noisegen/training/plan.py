"""Which rows make a batch: a pure function of the rows' lengths and (seed, epoch, chunk, world).

Rows of like length go together until their rectangle of tokens is full (token budget), so that
little is padding; steps then come in random order.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
CHUNK_ROWS = 32_768  # rows that are noised, tokenised and put into batches together


def generator(seed: int, *numbers: int) -> np.random.Generator:
    """Return the random numbers of one purpose, the same on every machine."""
    return np.random.Generator(np.random.PCG64([seed, *numbers]))


def chunks_of(rows: Rows, seed: int, epoch: int) -> list[Rows]:
    """Deal the rows of an epoch, shuffled, to chunks of nearly equal size."""
    count = max(1, -(-len(rows) // CHUNK_ROWS))
    return np.array_split(generator(seed, epoch).permutation(rows), count)


def plan(
    lengths: npt.NDArray[np.int64], budget: int, seed: int, epoch: int, chunk: int, world: int = 1
) -> list[list[Rows]]:
    """Return the steps of a chunk; each is `world` batches of row numbers.

    `lengths` (rows, sides): the tokens of each side, the first counts most. A batch has at most
    `budget` tokens in the rectangle of its longest side (one row, if it alone has more);
    every row is in one batch. Raises ValueError for fewer rows than `world`.
    """
    if len(lengths) < world:
        raise ValueError(f"{len(lengths)} rows cannot be dealt to {world} processes")
    random = generator(seed, epoch, chunk, 1)
    mixed = random.permutation(len(lengths))
    order = mixed[np.lexsort(lengths[mixed].T[::-1])]
    batches = [order[first:stop] for first, stop in _cuts(lengths.max(1)[order], budget)]
    _fill_last_step(batches, world)
    steps = [batches[at : at + world] for at in range(0, len(batches), world)]
    return [steps[number] for number in random.permutation(len(steps))]


def _cuts(lengths: npt.NDArray[np.int64], budget: int) -> Iterator[tuple[int, int]]:
    first, longest = 0, 0
    for at, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if longest * (at + 1 - first) > budget and at > first:
            yield first, at
            first, longest = at, length
    yield first, len(lengths)


def _fill_last_step(batches: list[Rows], world: int) -> None:
    """Halve the largest batches until every step has `world`; join rows where all are alone."""
    while len(batches) % world and max(map(len, batches)) > 1:
        largest = max(range(len(batches)), key=lambda at: len(batches[at]))
        batches[largest : largest + 1] = np.array_split(batches[largest], 2)
    while len(batches) % world:
        batches[-2:] = [np.concatenate(batches[-2:])]
