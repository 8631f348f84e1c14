"""Keyed randomness: every draw is a pure function of (seed, name, id, draw number).

Streams are splitmix64 (Steele, Lea and Flood, 2014). `Draws` is the scalar form, the functions over
arrays give the same bits. The high 48 bits of a draw decide, its low 16 bits choose an alternative.
"""

import re
from bisect import bisect_left, bisect_right
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
Variants = Mapping[str, I64]  # for each rate parameter, the index of its strength in every row

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1
DECISION_BITS, CHOICE_BITS = 48, 16
CERTAIN, CHOICE_MASK = 1 << DECISION_BITS, (1 << CHOICE_BITS) - 1
DRAWS_MAX = 1 << 20  # of a row that are made at once: what they take of memory
WINDOW_BYTES = 1 << 18  # of a huge row that are noised at once, where its kernel can
GAPS_MAX = 1024  # of a table: "no hit in 1,024 positions" is one more outcome, then draw again
_HEAD_BITS = 12
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def mix(z: int) -> int:
    """Return the splitmix64 output for state z, both 64-bit."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def mix_array(z: U64) -> U64:
    """Return `mix` of every element."""
    z = z ^ (z >> np.uint64(30))  # a new array: the rest may be done in its place
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def check_seed(seed: object) -> None:
    """Raise UsageError unless this is a seed: a whole number from 0 to 2^64 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) <= MASK:
        raise UsageError(f"seed {seed!r} is not a whole number from 0 to 2^64 - 1")


def name_number(name: str) -> int:
    """Return the 64-bit number of a name (BLAKE2b, 8 bytes)."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def id_number(row_id: int | str) -> int:
    """Return the 64-bit number of an id: an integer, also one spelled as text, is itself.

    Other text is hashed as a name is.
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
    """Return the seed of a copy; copy 0 has the seed itself."""
    return mix((seed + copy * GOLDEN) & MASK) if copy else seed & MASK


def stream_key(seed: int, name: str, copy: int = 0) -> int:
    """Return the key of one transform's stream."""
    return mix(copy_seed(seed, copy) ^ name_number(name))


def stream_keys(seed: int, names: U64, copy: int = 0) -> U64:
    """Return `stream_key` of every `name_number`."""
    return mix_array(names ^ np.uint64(copy_seed(seed, copy)))


def row_key(stream: int, row_id: int) -> int:
    """Return the key of one row of a stream."""
    return mix((stream + (row_id + 1) * GOLDEN) & MASK)


def row_keys(stream: int | U64, row_ids: U64) -> U64:
    """Return `row_key` of every id, in one stream or each in its own."""
    return mix_array(np.asarray(stream, np.uint64) + (row_ids + np.uint64(1)) * np.uint64(GOLDEN))


def fork(key: int, name: str) -> int:
    """Return the key of an independent stream of the same row."""
    return mix(key ^ _fork_number(name))


def fork_array(keys: U64, name: str) -> U64:
    """Return `fork` of every key."""
    return mix_array(keys ^ np.uint64(_fork_number(name)))


_fork_number = cache(name_number)  # the names are those in the code of transforms


def draw_array(keys: U64, numbers: I64 | U64 | int) -> U64:
    """Return draw number `numbers` (from 0) of every key."""
    if isinstance(numbers, int):
        return mix_array(keys + np.uint64((numbers + 1) * GOLDEN & MASK))
    return mix_array(keys + (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN))


def draw(key: int, number: int) -> int:
    """Return draw number `number` (from 0) of a key."""
    return mix((key + (number + 1) * GOLDEN) & MASK)


def decisions(draws: U64) -> I64:
    """Return the 48 bits that decide."""
    return (draws >> np.uint64(CHOICE_BITS)).astype(np.int64)


def choices(draws: U64) -> I64:
    """Return the 16 bits that choose."""
    return (draws & np.uint64(CHOICE_MASK)).astype(np.int64)


def fraction(rate: float | str | Fraction) -> Fraction:
    """Return the decimal number that the user wrote, exactly: 0.1 is 1/10.

    Raises ValueError for text that is no number, or one of too many digits.
    """
    if isinstance(rate, str) and (len(rate) > 400 or re.search(r"[eE][+-]?[\d_]{4}", rate)):
        raise ValueError("too many digits")  # 1e999999999 would take minutes
    return rate if isinstance(rate, Fraction) else Fraction(str(rate))


@cache
def threshold(rate: float | Fraction) -> int:
    """Return t such that a 48-bit decision below t happens with chance `rate`."""
    return min(int(fraction(rate) * CERTAIN), CERTAIN)


@cache
def gap_table(rate: float | Fraction) -> tuple[int, ...]:
    """Return T[k] = 2^48 (1 - (1 - rate)^(k + 1)): a decision below T[k] means a gap of at most k.

    Integers with 128 fractional bits, so every CPU has the same table.
    """
    unit = 1 << 128
    miss = unit - int(min(fraction(rate), Fraction(1)) * unit)
    missed = accumulate([miss] * GAPS_MAX, lambda left, factor: (left * factor) >> 128)
    table = [(unit - left) >> 80 for left in missed]
    return tuple(table[: table.index(CERTAIN) + 1] if CERTAIN in table else table)


class Hits(NamedTuple):
    """Positions hit: `rows` (ascending), `positions` in the row, `choices` (16 bits each)."""

    rows: I64
    positions: I64
    choices: I64


class GapTables:
    """Gap tables of several rates side by side, so that rows may differ in their rate."""

    def __init__(self, rates: Sequence[Fraction]) -> None:
        self.rates = np.array([float(rate) for rate in rates])
        self.tables = [gap_table(rate) for rate in rates]
        tables = [np.array(table, dtype=np.int64) for table in self.tables]
        self._sizes = np.array([len(table) for table in tables], dtype=np.int64)
        self._bases = np.cumsum(self._sizes) - self._sizes
        bounds = np.concatenate([t + (i << DECISION_BITS) for i, t in enumerate(tables)])
        self._bounds = np.append(bounds, np.iinfo(np.int64).max)
        # A decision's leading bits lead to its bound; where several bounds share them, search.
        step = 1 << (DECISION_BITS - _HEAD_BITS)
        edges = np.arange(len(rates) << _HEAD_BITS) * step
        self._firsts = np.searchsorted(self._bounds, edges, side="right")
        last = np.searchsorted(self._bounds, edges + step - 1, side="right")
        self._wide = last > self._firsts + 1

    def gaps(self, decided: I64, variants: I64) -> tuple[I64, Bool]:
        """Return how many positions each decision passes over, and whether a hit follows."""
        value = decided + (variants << DECISION_BITS)
        head = value >> (DECISION_BITS - _HEAD_BITS)
        bound = self._firsts[head]
        bound += self._bounds[bound] <= value
        wide = np.flatnonzero(self._wide[head])
        bound[wide] = np.searchsorted(self._bounds, value[wide], side="right")
        gaps = bound - self._bases[variants]
        return gaps, gaps < self._sizes[variants]

    def hits(self, keys: U64, lengths: I64, variants: I64) -> Hits:
        """Hit every position of every row independently with its rate.

        `keys`, `lengths` (positions of a row) and `variants` (its rate's index): one entry a row.
        """
        parts = [Hits(*np.zeros((3, 0), np.int64))]
        rows = np.flatnonzero(lengths > 0)
        done, drawn = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        while len(rows):
            length, variant = lengths.take(rows), variants.take(rows)
            # Enough draws for most rows at once; how many never changes which draw is which.
            expected = (length - done) * self.rates.take(variant)
            counts = np.minimum((expected * 1.1).astype(np.int64) + 3, DRAWS_MAX)
            lasts = np.cumsum(counts)  # of the draws of each row, and one more
            firsts = lasts - counts
            numbers = np.arange(lasts[-1]) - np.repeat(firsts - drawn, counts)
            draws = draw_array(np.repeat(keys.take(rows), counts), numbers)
            gaps, hit = self.gaps(decisions(draws), np.repeat(variant, counts))
            gaps += hit
            ends = np.cumsum(gaps)  # positions consumed, over all rows
            ends -= np.repeat(ends.take(firsts) - gaps.take(firsts) - done, counts)
            hit &= ends <= np.repeat(length, counts)
            at = np.flatnonzero(hit)
            owners = np.repeat(rows, np.add.reduceat(hit, firsts, dtype=np.int64))
            parts.append(Hits(owners, ends.take(at) - 1, choices(draws.take(at))))
            done, drawn = ends.take(lasts - 1), drawn + counts
            left = np.flatnonzero(done < length)
            rows, done, drawn = rows.take(left), done.take(left), drawn.take(left)
        if len(parts) == 2:  # every row was done in one go
            return parts[1]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        return Hits(*(column.take(order) for column in columns))

    def windows(self, keys: U64, length: int, variants: I64) -> Iterator[Hits]:
        """Yield the hits of one row, as `hits`, window after window of its positions."""
        done = drawn = 0  # positions passed over, by so many draws
        for start in range(0, length, WINDOW_BYTES):
            stop, found = min(start + WINDOW_BYTES, length), []
            inside = count = 0
            while inside == count:
                count = int((stop - done) * self.rates[variants[0]] * 1.1) + 3
                draws = draw_array(keys, np.arange(drawn, drawn + count))
                gaps, hit = self.gaps(decisions(draws), variants)
                ends = done + np.cumsum(gaps + hit)
                inside = int(np.searchsorted(ends, stop, side="right"))
                at = np.flatnonzero(hit[:inside])  # the draw that passes the end is made again
                found.append(np.stack([ends.take(at) - 1, choices(draws.take(at))]))
                done, drawn = int(ends[inside - 1]) if inside else done, drawn + inside
            positions, chosen = np.concatenate(found, axis=1)
            yield Hits(np.zeros(len(positions), np.int64), positions, chosen)


@dataclass(eq=False)
class Draws:
    """The stream of one row: what a plug-in gets as its only source of chance."""

    key: int
    number: int = 0

    def integer(self) -> int:
        """Return the next 64-bit draw."""
        self.number += 1
        return draw(self.key, self.number - 1)

    def below(self, n: int) -> int:
        """Return an integer from 0 to n - 1, each with equal chance (n below 2^32)."""
        return ((self.integer() >> CHOICE_BITS) * n) >> DECISION_BITS

    def hit(self, rate: float) -> bool:
        """Return True with chance `rate`; draws nothing at rate 0."""
        limit = threshold(rate)
        return bool(limit) and self.integer() >> CHOICE_BITS < limit

    def pick(self, options: Sequence[T], weights: Sequence[int] | None = None) -> T:
        """Return one of the options, with chances proportional to integer weights if given."""
        if weights is None:
            return options[self.below(len(options))]
        sums = list(accumulate(weights))
        return options[bisect_right(sums, self.below(sums[-1]))]

    def positions(self, length: int, rate: float) -> Iterator[int]:
        """Yield the positions in range(length) that are hit, each with chance `rate`."""
        return (position for position, _ in self.hits(length, gap_table(rate)))

    def hits(self, length: int, table: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield the positions in range(length) that are hit, each with 16 bits that choose."""
        position = 0
        while position < length:
            drawn = self.integer()
            gap = bisect_right(table, drawn >> CHOICE_BITS)
            position += gap
            if gap < len(table) and position < length:
                yield position, drawn & CHOICE_MASK
            position += gap < len(table)

    def fork(self, name: str) -> "Draws":
        """Return an independent stream of the same row."""
        return Draws(fork(self.key, name))

    @cached_property
    def seed(self) -> int:
        """A 32-bit seed for code that brings its own generator."""
        return fork(self.key, "seed") & 0xFFFFFFFF


def hits(
    keys: U64,
    rows: I64,
    limits: I64,
    eligible: Bool | None = None,
    numbers: I64 | U64 | None = None,
) -> tuple[I64, U64]:
    """Return the indices of the things that are hit, and their draws.

    `rows` (ascending) holds the row of each thing. Thing i of a row has draw i of the row's key in
    `keys`, or draw `numbers[i]`, and is hit if the decision is below the row's 48-bit threshold in
    `limits`; one that is not `eligible` keeps its draw.
    """
    at = np.arange(len(rows)) if eligible is None else np.flatnonzero(eligible)
    numbers = (ordinals(rows) if numbers is None else numbers).take(at)
    rows = rows.take(at)
    draws = draw_array(keys.take(rows), numbers)
    hit = np.flatnonzero(decisions(draws) < limits.take(rows))
    return at.take(hit), draws.take(hit)


FIRST = 24  # draws of a stream that are made at once for all rows


class RowDraws(NamedTuple):
    """What one row draws for one step: its stream and its strength, for each rate parameter.

    `limit` is the threshold of a kernel with `row_limits`, and `first` those of the first draws
    that are below it: their numbers, and the 16 bits of each that choose.
    """

    key: int
    variants: Mapping[str, int]
    limit: int = 0
    first: tuple[Sequence[int], Sequence[int]] = ((), ())

    @property
    def least(self) -> int:
        """How many things there must be, at least, for one to be hit."""
        numbers, _ = self.first
        return 1 + (numbers[0] if numbers else FIRST)

    def hits(self, count: int) -> Sequence[tuple[int, int]]:
        """Return which of so many things in the row are hit, each with 16 bits that choose."""
        numbers, chosen = self.first
        found = list(zip(numbers[: bisect_left(numbers, count)], chosen, strict=False))
        later = row_hits(self.key, range(FIRST, count), self.limit) if count > FIRST else []
        return found + later


def row_hits(key: int, numbers: Iterable[int], limit: int) -> list[tuple[int, int]]:
    """Return which of the things with these numbers in a row are hit, as `RowDraws.hits`."""
    found = []
    for number in numbers:
        z = (key + (number + 1) * GOLDEN) & MASK  # `draw`, without the cost of two calls
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        if z >> CHOICE_BITS < limit:
            found.append((number, z & CHOICE_MASK))
    return found


def form_hits(key: int, forms: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Return which of the things in a row are hit, as `RowDraws.hits`; equal forms alike."""
    hit = dict(row_hits(key, forms, limit))
    return [(number, hit[form]) for number, form in enumerate(forms) if form in hit]


@dataclass(frozen=True)
class WeightedChoices:
    """Weighted alternatives of numbered groups, laid out side by side for one binary search.

    `bounds` is ascending, one entry an alternative: its group << (`bits` + 1), plus the sum of the
    group's weights up to this alternative as a share of 2^`bits`.
    """

    bounds: I64
    bits: int = CHOICE_BITS

    @classmethod
    def of(cls, groups: Iterable[Iterable[int]], bits: int = CHOICE_BITS) -> "WeightedChoices":
        """Lay out groups of whole-number weights; a group may be empty."""
        bounds = []
        for number, weights in enumerate(groups):
            sums = list(accumulate(weights))
            bounds += [(number << (bits + 1)) + (part << bits) // sums[-1] for part in sums]
        return cls(np.array(bounds, np.int64), bits)

    def __len__(self) -> int:
        return len(self.bounds)

    @property
    def groups(self) -> I64:
        """The numbers of the groups that have alternatives, ascending."""
        return np.unique((self.bounds - 1) >> (self.bits + 1))

    def pick(self, groups: I64 | int, drawn: I64) -> I64:
        """Return for each draw of `bits` bits the number of an alternative of its group.

        Alternatives are numbered through all groups. The group must not be empty.
        """
        wanted = (np.asarray(groups, np.int64) << (self.bits + 1)) + drawn
        return np.searchsorted(self.bounds, wanted, side="right").astype(np.int64)

    def pick_one(self, group: int, drawn: int) -> int:
        """Return `pick` of one group and draw."""
        first, bounds = self._groups[group]
        return first + bisect_right(bounds, drawn)

    @cached_property
    def _groups(self) -> Memo[int, tuple[int, list[int]]]:
        """The number of the first alternative of a group, and the sums of its weights."""

        def group_at(group: int) -> tuple[int, list[int]]:
            base = group << (self.bits + 1)
            first, stop = np.searchsorted(self.bounds, (base + 1, base + (2 << self.bits))).tolist()
            return first, (self.bounds[first:stop] - base).tolist()

        return Memo(group_at)

    def shifted(self, groups: int) -> "WeightedChoices":
        """Return the choices with this added to every group's number."""
        return WeightedChoices(self.bounds + (groups << (self.bits + 1)), self.bits)


@dataclass(frozen=True)
class WeightedTexts:
    """Texts with weights under keys (code points, hashes of words), of which one is drawn.

    `keys` is ascending; the alternatives of `keys[i]` are group i of `choices`, and alternative a
    is `pool[a]` (binary).
    """

    keys: npt.NDArray[Any]
    choices: WeightedChoices
    pool: pa.Array

    @classmethod
    def of(
        cls, keys: npt.NDArray[Any], groups: Sequence[Sequence[tuple[str, int]]]
    ) -> "WeightedTexts":
        """Lay out the (text, weight) alternatives of each of the ascending keys."""
        texts = [text for group in groups for text, _ in group]
        choices = WeightedChoices.of([weight for _, weight in group] for group in groups)
        return cls(keys, choices, Texts.from_strings(texts).to_arrow())

    def find(self, keys: npt.NDArray[Any]) -> tuple[I64, Bool]:
        """Return the group of each key, and whether the key is there."""
        return find_sorted(self.keys, keys)

    def pick(self, groups: I64, drawn: I64) -> I64:
        """Return for each draw of 16 bits the place in `pool` of an alternative of its group."""
        return self.choices.pick(groups, drawn)

    def written(self, group: int, drawn: int) -> str:
        """Return the alternative of a group for one draw of 16 bits."""
        return self._texts[self.choices.pick_one(group, drawn)]

    @cached_property
    def group_of(self) -> dict[int, int]:
        """The group of every key."""
        return {key: group for group, key in enumerate(self.keys.tolist())}

    @cached_property
    def _texts(self) -> list[str]:
        texts: list[str] = self.pool.cast(pa.string()).to_pylist()
        return texts
