"""Keyed randomness: every draw depends only on a seed, a stream's name, a row id and an index.

Streams are splitmix64 (Steele, Lea and Flood, 2014). Most functions have one form for one row and
one for arrays of rows; both return the same bits. A draw has 64 bits. Its high 48 bits are a
decision, which says whether something is hit; its low 16 bits choose one of several alternatives.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from hashlib import blake2b
from itertools import accumulate
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.errors import UsageError
from noisegen.text.buffers import I64, U64, Bool, Texts, as_numpy, find_sorted, ordinals
from noisegen.text.rows import Memo

T = TypeVar("T")
Strengths = Mapping[str, I64]  # name of a rate -> each row's strength, as an index

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1
DECISION_BITS, CHOICE_BITS = 48, 16
CERTAIN, CHOICE_MASK = 1 << DECISION_BITS, (1 << CHOICE_BITS) - 1
DRAWS_MAX = 1 << 20  # most draws per row that are made at once, to bound the memory
WINDOW_BYTES = 1 << 18  # size of the windows in which a huge row is processed
GAPS_MAX = 1024  # most entries of a gap table; a longer gap takes several draws
_HEAD_BITS = 12
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def splitmix(z: int) -> int:
    """Return the output of splitmix64 for a 64-bit state."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def splitmix_array(z: U64) -> U64:
    """Return `splitmix` of every element."""
    z = z ^ (z >> np.uint64(30))  # makes a new array, which the next lines change in place
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def check_seed(seed: object) -> None:
    """Raise UsageError unless `seed` is a whole number from 0 to 2^64 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) <= MASK:
        raise UsageError(f"seed {seed!r} is not a whole number from 0 to 2^64 - 1")


def name_number(name: str) -> int:
    """Return the 64-bit number of a name: its BLAKE2b hash of 8 bytes."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def id_number(row_id: int | str) -> int:
    """Return the 64-bit number of a row id.

    An integer, also one spelled as text, is its own number. Other text is hashed like a name.
    """
    if isinstance(row_id, int):
        return row_id & MASK
    if _INTEGER.fullmatch(row_id) and -(2**63) <= int(row_id) < 2**63:
        return int(row_id) & MASK
    return name_number(row_id)


def id_numbers(row_ids: pa.Array) -> U64:
    """Return `id_number` of every id of an integer or string column."""
    if pa.types.is_integer(row_ids.type):
        return as_numpy(row_ids.cast(pa.uint64(), safe=False))
    texts = pc.cast(row_ids, pa.string()).to_pylist()
    return np.fromiter((id_number(text) for text in texts), np.uint64, len(texts))


def copy_seed(seed: int, copy: int) -> int:
    """Return the seed for one noisy copy of the data; for copy 0 it is `seed` itself."""
    return splitmix((seed + copy * GOLDEN) & MASK) if copy else seed & MASK


def stream_key(seed: int, name: str, copy: int = 0) -> int:
    """Return the key of a named stream, such as the stream of one transform."""
    return splitmix(copy_seed(seed, copy) ^ name_number(name))


def row_key(stream: int, row_id: int) -> int:
    """Return the key of one row in the stream with key `stream`."""
    return splitmix((stream + (row_id + 1) * GOLDEN) & MASK)


def row_keys(stream: int | U64, row_ids: U64) -> U64:
    """Return `row_key` for many row ids; `stream` is one key of a stream, or one per id."""
    return splitmix_array(
        np.asarray(stream, np.uint64) + (row_ids + np.uint64(1)) * np.uint64(GOLDEN)
    )


def fork(key: int, name: str) -> int:
    """Return the key of an independent stream named `name` for the row with key `key`."""
    return splitmix(key ^ _fork_number(name))


def fork_array(keys: U64, name: str) -> U64:
    """Return `fork` for many keys."""
    return splitmix_array(keys ^ np.uint64(_fork_number(name)))


_fork_number = cache(name_number)  # without a limit: names of forks are constants in the code


def draw_array(keys: U64, numbers: I64 | U64 | int) -> U64:
    """Return draw `numbers[i]` of the stream `keys[i]`, for each i; the arrays are broadcast."""
    if isinstance(numbers, int):
        return splitmix_array(keys + np.uint64((numbers + 1) * GOLDEN & MASK))
    return splitmix_array(keys + (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN))


def draw(key: int, number: int) -> int:
    """Return draw `number`, counted from 0, of the random stream of a key."""
    return splitmix((key + (number + 1) * GOLDEN) & MASK)


def decisions(draws: U64) -> I64:
    """Return the high 48 bits of every draw, which decide whether something is hit."""
    return (draws >> np.uint64(CHOICE_BITS)).astype(np.int64)


def choices(draws: U64) -> I64:
    """Return the low 16 bits of every draw, which choose an alternative."""
    return (draws & np.uint64(CHOICE_MASK)).astype(np.int64)


def fraction(rate: float | str | Fraction) -> Fraction:
    """Return a number as the exact fraction that its decimal digits say: 0.1 becomes 1/10.

    Raises ValueError for text that is not a number or has too many digits.
    """
    if isinstance(rate, str) and (len(rate) > 400 or re.search(r"[eE][+-]?[\d_]{4}", rate)):
        raise ValueError("too many digits")  # converting 1e999999999 would take minutes
    return rate if isinstance(rate, Fraction) else Fraction(str(rate))


@cache
def threshold(rate: float | Fraction) -> int:
    """Return the threshold of a rate: a 48-bit decision is below it with chance `rate`."""
    return min(int(fraction(rate) * CERTAIN), CERTAIN)


@cache
def gap_table(rate: float | Fraction) -> tuple[int, ...]:
    """Return a table to draw the gaps between hits; each position is hit with chance `rate`.

    Entry k is 2^48 (1 - (1 - rate)^(k + 1)), the geometric distribution: a decision below it means
    that at most k positions are skipped before the next hit. The table is computed in integers with
    128 fractional bits, so that it is the same on every CPU.
    """
    unit = 1 << 128
    miss = unit - int(min(fraction(rate), Fraction(1)) * unit)
    missed = accumulate([miss] * GAPS_MAX, lambda left, factor: (left * factor) >> 128)
    table = [(unit - left) >> 80 for left in missed]
    return tuple(table[: table.index(CERTAIN) + 1] if CERTAIN in table else table)


class Hits(NamedTuple):
    """Positions that are hit in rows, one entry per hit.

    `rows` are ascending. `positions` are counted from the start of the row. `choices` has 16 random
    bits per hit, to choose a replacement.
    """

    rows: I64
    positions: I64
    choices: I64


class GapTables:
    """The gap tables (see `gap_table`) of several rates: each row of a batch may have its own.

    In all methods, `strengths` has the index of each row's rate. `_bounds` joins all tables into
    one ascending array: the entries of table v are raised by v * 2^48.
    """

    def __init__(self, rates: Sequence[Fraction]) -> None:
        self.rates = np.array([float(rate) for rate in rates])
        self.tables = [gap_table(rate) for rate in rates]
        tables = [np.array(table, dtype=np.int64) for table in self.tables]
        self._sizes = np.array([len(table) for table in tables], dtype=np.int64)
        self._bases = np.cumsum(self._sizes) - self._sizes
        bounds = np.concatenate([t + (i << DECISION_BITS) for i, t in enumerate(tables)])
        self._bounds = np.append(bounds, np.iinfo(np.int64).max)
        # For each value of a decision's leading bits, `_firsts` has the index in `_bounds` of the
        # first bound above it. A search is only needed if several bounds share the value (`_wide`).
        step = 1 << (DECISION_BITS - _HEAD_BITS)
        edges = np.arange(len(rates) << _HEAD_BITS) * step
        self._firsts = np.searchsorted(self._bounds, edges, side="right")
        last = np.searchsorted(self._bounds, edges + step - 1, side="right")
        self._wide = last > self._firsts + 1

    def gaps(self, decided: I64, strengths: I64) -> tuple[I64, Bool]:
        """Return for each 48-bit draw how many positions to skip, and whether a hit comes next.

        No hit comes if the gap is longer than the table: then another draw is needed.
        `strengths` has the index of the rate for each draw in `decided`.
        """
        value = decided + (strengths << DECISION_BITS)
        head = value >> (DECISION_BITS - _HEAD_BITS)
        bound = self._firsts[head]
        bound += self._bounds[bound] <= value
        wide = np.flatnonzero(self._wide[head])
        bound[wide] = np.searchsorted(self._bounds, value[wide], side="right")
        gaps = bound - self._bases[strengths]
        return gaps, gaps < self._sizes[strengths]

    def hits(self, keys: U64, lengths: I64, strengths: I64) -> Hits:
        """Draw the hits of all rows: each position is hit with the rate of its row.

        `keys`, `lengths` (number of positions) and `strengths` (index of the rate) have one entry
        per row.
        """
        parts = [Hits(*np.zeros((3, 0), np.int64))]
        rows = np.flatnonzero(lengths > 0)
        done, drawn = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        while len(rows):
            length, strength = lengths.take(rows), strengths.take(rows)
            # Make enough draws for most rows at once; the number of draws does not change the hits.
            expected = (length - done) * self.rates.take(strength)
            counts = np.minimum((expected * 1.1).astype(np.int64) + 3, DRAWS_MAX)
            lasts = np.cumsum(counts)  # end of each row's draws in `draws`
            firsts = lasts - counts
            numbers = np.arange(lasts[-1]) - np.repeat(firsts - drawn, counts)
            draws = draw_array(np.repeat(keys.take(rows), counts), numbers)
            gaps, hit = self.gaps(decisions(draws), np.repeat(strength, counts))
            gaps += hit
            # Position after each draw: a running sum, less the sum at the start of its row.
            ends = np.cumsum(gaps)
            ends -= np.repeat(ends.take(firsts) - gaps.take(firsts) - done, counts)
            hit &= ends <= np.repeat(length, counts)
            at = np.flatnonzero(hit)
            owners = np.repeat(rows, np.add.reduceat(hit, firsts, dtype=np.int64))
            parts.append(Hits(owners, ends.take(at) - 1, choices(draws.take(at))))
            done, drawn = ends.take(lasts - 1), drawn + counts
            left = np.flatnonzero(done < length)
            rows, done, drawn = rows.take(left), done.take(left), drawn.take(left)
        if len(parts) == 2:  # a single round: hits are sorted by row
            return parts[1]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        return Hits(*(column.take(order) for column in columns))

    def windows(self, keys: U64, length: int, strengths: I64) -> Iterator[Hits]:
        """Yield the hits of one row, window by window; together they equal the result of `hits`.

        `keys` has the row's key, `strengths` the index of its rate: arrays with a single entry.
        `length` is the number of positions in the row.
        """
        done = drawn = 0  # positions passed so far, and draws made for them
        for start in range(0, length, WINDOW_BYTES):
            stop, found = min(start + WINDOW_BYTES, length), []
            inside = count = 0
            while inside == count:
                count = int((stop - done) * self.rates[strengths[0]] * 1.1) + 3
                draws = draw_array(keys, np.arange(drawn, drawn + count))
                gaps, hit = self.gaps(decisions(draws), strengths)
                ends = done + np.cumsum(gaps + hit)
                inside = int(np.searchsorted(ends, stop, side="right"))
                # The first draw that goes beyond the window is made again for the next window.
                at = np.flatnonzero(hit[:inside])
                found.append(np.stack([ends.take(at) - 1, choices(draws.take(at))]))
                done, drawn = int(ends[inside - 1]) if inside else done, drawn + inside
            positions, chosen = np.concatenate(found, axis=1)
            yield Hits(np.zeros(len(positions), np.int64), positions, chosen)


@dataclass(eq=False)
class Draws:
    """The random stream of one row; a plug-in must take all its random numbers from it."""

    key: int
    number: int = 0

    def integer(self) -> int:
        """Return the next 64-bit draw."""
        self.number += 1
        return draw(self.key, self.number - 1)

    def below(self, n: int) -> int:
        """Return an integer from 0 to n - 1, each with equal chance; n is at most 2^32."""
        return ((self.integer() >> CHOICE_BITS) * n) >> DECISION_BITS

    def hit(self, rate: float) -> bool:
        """Return True with chance `rate`; at rate 0, return False and use up no draw."""
        limit = threshold(rate)
        return bool(limit) and self.integer() >> CHOICE_BITS < limit

    def pick(self, options: Sequence[T], weights: Sequence[int] | None = None) -> T:
        """Return one of the options, with chances proportional to `weights` (default: equal)."""
        if weights is None:
            return options[self.below(len(options))]
        sums = list(accumulate(weights))
        return options[bisect_right(sums, self.below(sums[-1]))]

    def positions(self, length: int, rate: float) -> Iterator[int]:
        """Yield the positions in range(length) that are hit, each with chance `rate`."""
        return (position for position, _ in self.hits(length, gap_table(rate)))

    def hits(self, length: int, table: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the positions in range(length) that are hit, each with 16 random bits.

        `table` is the result of `gap_table` for the rate of hits.
        """
        position = 0
        while position < length:
            drawn = self.integer()
            gap = bisect_right(table, drawn >> CHOICE_BITS)
            position += gap
            if gap < len(table) and position < length:
                yield position, drawn & CHOICE_MASK
            position += gap < len(table)

    def fork(self, name: str) -> "Draws":
        """Return a further, independent stream of the same row, named `name`."""
        return Draws(fork(self.key, name))

    @cached_property
    def seed(self) -> int:
        """32-bit seed for code that has its own random generator."""
        return fork(self.key, "seed") & 0xFFFFFFFF


def hits(
    keys: U64,
    rows: I64,
    limits: I64,
    eligible: Bool | None = None,
    numbers: I64 | U64 | None = None,
) -> tuple[I64, U64]:
    """Return the indices of the candidates (such as words) that are hit, and their draws.

    `rows` (ascending) has the row of each candidate. `keys` and `limits` (48-bit thresholds) have
    one entry per row. A candidate is hit if the decision of its draw is below the threshold of its
    row. `numbers` has the index of each candidate's draw (default: 0, 1, 2, ... in each row).
    `eligible` flags the candidates that may be hit (default: all); it does not change the draws of
    the flagged candidates.
    """
    at = np.arange(len(rows)) if eligible is None else np.flatnonzero(eligible)
    numbers = (ordinals(rows) if numbers is None else numbers).take(at)
    rows = rows.take(at)
    draws = draw_array(keys.take(rows), numbers)
    hit = np.flatnonzero(decisions(draws) < limits.take(rows))
    return at.take(hit), draws.take(hit)


class RowDraws(NamedTuple):
    """Random stream and strengths of one step in one row.

    `key` is the key of the stream. `strengths` maps each rate parameter of the step to the strength
    that the row drew for this rate, as an index in `Mix.factors`.
    """

    key: int
    strengths: Mapping[str, int]


def row_hits(
    key: int, candidates: Sequence[int], limit: int, numbers: Sequence[int] | None = None
) -> list[tuple[int, int]]:
    """Return the candidates of one row that are hit, each with 16 random bits.

    A candidate is hit if the decision of its draw is below `limit`, as in `hits`. `key` is the key
    of the row. `numbers` has the index of each candidate's draw (default: the candidate itself).
    """
    found = []
    for candidate, number in zip(candidates, numbers or candidates, strict=True):
        z = (key + (number + 1) * GOLDEN) & MASK  # inlined from `draw`: half the time
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        if z >> CHOICE_BITS < limit:
            found.append((candidate, z & CHOICE_MASK))
    return found


@dataclass(frozen=True)
class WeightedChoices:
    """Weighted choices among the alternatives of numbered groups, by one binary search.

    `bounds` is ascending and has one entry per alternative: (g << (bits + 1)) + s. Here g is the
    index of the group, and s the sum of the group's weights up to this alternative, scaled so that
    all weights of the group sum to 2^`bits`.
    """

    bounds: I64
    bits: int = CHOICE_BITS

    @classmethod
    def of(cls, groups: Iterable[Iterable[int]], bits: int = CHOICE_BITS) -> "WeightedChoices":
        """Build the object from the whole-number weights of each group; a group may be empty."""
        bounds = []
        for number, weights in enumerate(groups):
            sums = list(accumulate(weights))
            bounds += [(number << (bits + 1)) + (part << bits) // sums[-1] for part in sums]
        return cls(np.array(bounds, np.int64), bits)

    def __len__(self) -> int:
        return len(self.bounds)

    @property
    def groups(self) -> I64:
        """Ascending indices of the groups that have alternatives."""
        return np.unique((self.bounds - 1) >> (self.bits + 1))

    def pick(self, groups: I64 | int, drawn: I64) -> I64:
        """Return the index of the alternative that each draw of `bits` bits chooses in its group.

        The index counts the alternatives of all groups. A group must not be empty.
        """
        wanted = (np.asarray(groups, np.int64) << (self.bits + 1)) + drawn
        return np.searchsorted(self.bounds, wanted, side="right").astype(np.int64)

    def pick_one(self, group: int, drawn: int) -> int:
        """Return the index of the alternative that one draw chooses in a group, as `pick` does."""
        first, sums = self._of_group[group]
        return first + bisect_right(sums, drawn)

    @cached_property
    def _of_group(self) -> Memo[int, tuple[int, list[int]]]:
        """Cache: group -> index of its first alternative, and cumulative sums of its weights.

        A search in the sums of one group takes a third of the time of a search in `bounds`.
        """

        def of_group(group: int) -> tuple[int, list[int]]:
            base = group << (self.bits + 1)
            first, stop = np.searchsorted(self.bounds, (base + 1, base + (2 << self.bits))).tolist()
            return first, (self.bounds[first:stop] - base).tolist()

        return Memo(of_group)

    def shifted(self, groups: int) -> "WeightedChoices":
        """Return the same choices with all group indices raised by `groups`."""
        return WeightedChoices(self.bounds + (groups << (self.bits + 1)), self.bits)


@dataclass(frozen=True)
class WeightedTexts:
    """Weighted replacements of characters or words, by code point or hash of a word.

    `keys` has the code points or hashes, ascending. The replacements of `keys[i]` are group i of
    `choices`; alternative a has the text `pool[a]` in a binary Arrow array.
    """

    keys: npt.NDArray[Any]
    choices: WeightedChoices
    pool: pa.Array

    @classmethod
    def of(
        cls, keys: npt.NDArray[Any], groups: Sequence[Sequence[tuple[str, int]]]
    ) -> "WeightedTexts":
        """Make the table from ascending keys and the (text, weight) pairs of each key."""
        texts = [text for group in groups for text, _ in group]
        choices = WeightedChoices.of([weight for _, weight in group] for group in groups)
        return cls(keys, choices, Texts.from_strings(texts).to_arrow())

    def find(self, keys: npt.NDArray[Any]) -> tuple[I64, Bool]:
        """Return the group of each key, and whether the table has the key."""
        return find_sorted(self.keys, keys)

    def pick(self, groups: I64, drawn: I64) -> I64:
        """Return the index in `pool` of the text that each 16-bit draw chooses in its group."""
        return self.choices.pick(groups, drawn)

    def written(self, group: int, drawn: int) -> str:
        """Return the text that a 16-bit draw chooses in a group."""
        return self._texts[self.choices.pick_one(group, drawn)]

    @cached_property
    def group_of(self) -> dict[int, int]:
        """Dictionary from a key to the index of its group."""
        return {key: group for group, key in enumerate(self.keys.tolist())}

    @cached_property
    def _texts(self) -> list[str]:
        texts: list[str] = self.pool.cast(pa.string()).to_pylist()
        return texts
