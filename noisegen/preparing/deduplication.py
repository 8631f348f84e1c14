"""Which candidates of a whole run are duplicates of earlier ones, in bounded memory.

Per candidate one byte is held; keys are read a range at a time, and compared pairs a portion at a
time. The result depends on the order of the input alone.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from noisegen.draws import I64, U64
from noisegen.preparing.candidates import Texts, work_path
from noisegen.preparing.duplicates import normal_form, shingles, similarity
from noisegen.preparing.key_files import ranges

KEPT, DUPLICATE, NEAR = 0, 1, 2
REASONS = {DUPLICATE: "duplicate", NEAR: "near_duplicate"}
CACHED = 2_000  # candidates whose shingles are in memory: about 30 MB
LINKS = 4  # members of a bucket that all others are compared with, besides the one before

Codes = npt.NDArray[np.int8]


def duplicates(
    out: Path, counts: Sequence[int], *, near: bool, shingle: int, similarity_min: float
) -> Codes:
    """Return KEPT, DUPLICATE or NEAR for each candidate; `counts` are those of the portions.

    A text that an earlier candidate has is a duplicate, one with the same normal form a near one.
    Under `near` so is a candidate whose similarity with an earlier one that is kept is at least
    `similarity_min`, as far as the two share a band.
    """
    firsts = np.concatenate(([0], np.cumsum(counts)))
    codes = np.zeros(firsts[-1], np.int8)
    starts = firsts[:-1].tolist()
    for keys, marks, places in ranges(_paths(out, "forms", counts), starts):
        _mark_equal(codes, keys, marks, places)
    if near:
        files: list[Path] = []
        for keys, _, places in ranges(_paths(out, "bands", counts), starts):
            path = out / "work" / f"links-{len(files):05d}.npy"
            fresh = codes[places] == KEPT
            np.save(path, links(keys[fresh], places[fresh]))
            files.append(path)
        for start, stop in zip(starts, firsts[1:].tolist(), strict=True):
            _compare(
                codes, _linked(files, start, stop), Texts(out, firsts), shingle, similarity_min
            )
    return codes


def _paths(out: Path, kind: str, counts: Sequence[int]) -> list[Path]:
    return [work_path(out, kind, number) for number in range(len(counts))]


def _mark_equal(codes: Codes, keys: U64, marks: U64, places: I64) -> None:
    """Mark all but the first with a mark as duplicates, all but the first with a key as near."""
    order = np.lexsort((places, marks, keys))
    keys, marks, places = keys[order], marks[order], places[order]
    same_key = keys[1:] == keys[:-1]
    same = same_key & (marks[1:] == marks[:-1])
    codes[places[1:][same]] = DUPLICATE
    first = np.concatenate(([True], ~same))[: len(keys)]
    keys, places = keys[first], places[first]
    order = np.lexsort((places, keys))
    later = keys[order][1:] == keys[order][:-1]
    codes[places[order][1:][later]] = NEAR


def links(keys: U64, places: I64) -> I64:
    """Return the pairs (later, earlier) to compare among places that share a key, sorted.

    Each is compared with the first LINKS of its bucket and with the one before it.
    """
    order = np.lexsort((places, keys))
    keys, places = keys[order], places[order]
    numbers = np.arange(len(keys))
    begins = np.concatenate(([True], keys[1:] != keys[:-1]))[: len(keys)]
    starts = np.maximum.accumulate(np.where(begins, numbers, 0))
    pairs = [np.zeros((0, 2), np.int64)]
    for rank in range(LINKS):
        later = np.flatnonzero(numbers - starts > rank)
        pairs.append(np.column_stack((places[later], places[starts[later] + rank])))
    later = np.flatnonzero(numbers - starts > LINKS)
    pairs.append(np.column_stack((places[later], places[later - 1])))
    return np.unique(np.concatenate(pairs), axis=0)


def _linked(files: Sequence[Path], start: int, stop: int) -> Iterator[list[int]]:
    """Yield the pairs whose later place lies in a range, once each, in order."""
    parts = [np.zeros((0, 2), np.int64)]
    for path in files:
        pairs = np.load(path, mmap_mode="r")
        first, last = np.searchsorted(pairs[:, 0], (start, stop))
        parts.append(np.array(pairs[first:last]))
    yield from np.unique(np.concatenate(parts), axis=0).tolist()


def _compare(
    codes: Codes, pairs: Iterator[list[int]], texts: Texts, shingle: int, least: float
) -> None:
    """Mark what is near to an earlier candidate that is kept; pairs come in order."""
    shingled = lru_cache(CACHED)(lambda place: shingles(normal_form(texts[place]), shingle))
    for later, earlier in pairs:
        if codes[later] != KEPT or codes[earlier] != KEPT:
            continue
        if similarity(shingled(later), shingled(earlier)) >= least:
            codes[later] = NEAR
