"""Find exact and near duplicates of earlier candidates in a whole run, in bounded memory.

Near duplicates share a key of MinHash bands (Broder 1997; bands as in Leskovec, Rajaraman and
Ullman, Mining of Massive Datasets, section 3.4: pairs of similarity s share a key with probability
1 - (1 - s^ROWS)^BANDS) and are then compared. One byte per candidate is in memory; keys are read a
range at a time, and compared pairs a portion at a time. The result depends only on the order of
the input.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.noise.rng import GOLDEN, MASK, mix, mix_array
from noisegen.runs.atomic import atomic
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.buffers import I64, U64, Bool, as_arrow
from noisegen.text.normalize import without_addresses
from noisegen.text.segmentation import mark_ranges

WORK = "work"  # the folder of candidates, four files a portion, which is removed at the end
KINDS = ("texts", "forms", "bands", "note")  # texts, keys of normal forms and of bands, a note
BATCH = 8_192  # rows of a record batch of candidates, all full but the last

KEPT, DUPLICATE, NEAR = 0, 1, 2
REASONS = {DUPLICATE: "duplicate", NEAR: "near_duplicate"}
CACHED = 2_000  # candidates whose shingles are in memory: about 30 MB
LINKS = 4  # members of a bucket that all others are compared with, besides the one before

BANDS, ROWS = 8, 4  # found: 98.5 % of pairs at 0.8, 95 % at 0.75, 6 % at 0.35, all compared then
SHINGLE_SPACED, SHINGLE_UNSPACED = 5, 2  # characters; an ideograph says as much as several letters
COMPARED_MIN = 5  # shingles side by side: in shorter forms one other word is another sense
_CHUNK = 1 << 18  # shingles hashed at a time, so that they stay in the cache
_BASE = 0x100000001B3  # of the rolling hash (the prime of FNV-1a)

HELD = 500_000  # entries sorted at a time while a file is written: about 30 MB
RANGE = 1_000_000  # entries of a range, about, all in memory at once: about 100 MB

_REPOST = re.compile(r"^rt\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_SIGNS = re.compile(r"[^\w\s]+")

Codes = npt.NDArray[np.int8]


def work_path(out: Path, kind: str, number: int) -> Path:
    """Return the file of a portion: its texts, keys of normal forms or of bands, or its note."""
    return out / WORK / f"{kind}-{number:05d}.{'json' if kind == 'note' else 'arrow'}"


def find(
    out: Path, counts: Sequence[int], *, near: bool, shingle: int, similarity_min: float,
    progress: Show = silent,
) -> Codes:  # fmt: skip
    """Return KEPT, DUPLICATE or NEAR for each candidate; `counts` are those of the portions.

    A text that an earlier candidate has is a duplicate, one with the same normal form a near one.
    With `near` so is a candidate whose similarity with an earlier one that is kept is at least
    `similarity_min`, as far as the two share a band.
    """
    edges = np.concatenate(([0], np.cumsum(counts)))
    codes = np.zeros(edges[-1], np.int8)
    progress(Progress("finding duplicates"))

    def key_ranges(kind: str) -> Iterator[U64]:
        paths = [work_path(out, kind, number) for number in range(len(counts))]
        return ranges(paths, edges[:-1].tolist())

    for keys, marks, indices in key_ranges("forms"):
        _mark_equal(codes, keys, marks, indices.astype(np.int64))
    if not near:
        return codes
    files: list[Path] = []
    for keys, indices in key_ranges("bands"):
        files.append(out / WORK / f"links-{len(files):05d}.npy")
        fresh = codes[indices] == KEPT
        np.save(files[-1], links(keys[fresh], indices[fresh].astype(np.int64)))
    shingled = _shingles_by_index(out, edges, shingle)
    for start, stop in pairwise(edges.tolist()):
        progress(Progress("comparing near duplicates", start, len(codes), "sentences"))
        for later, earlier in _linked(files, start, stop):
            if codes[later] == codes[earlier] == KEPT and (
                similarity(shingled(later), shingled(earlier)) >= similarity_min
            ):
                codes[later] = NEAR
    return codes


def _shingles_by_index(out: Path, edges: I64, shingle: int) -> Callable[[int], set[str]]:
    """Return a function from a candidate's index to its shingles, with a cache."""

    @lru_cache(64)
    def batch(number: int, part: int) -> pa.RecordBatch:  # mapped, not copied
        return pa.ipc.open_file(pa.memory_map(str(work_path(out, "texts", number)))).get_batch(part)

    @lru_cache(CACHED)
    def shingled(index: int) -> set[str]:
        number = int(np.searchsorted(edges, index, side="right")) - 1
        part, row = divmod(index - int(edges[number]), BATCH)
        return shingles(normal_form(batch(number, part)["text"][row].as_py()), shingle)

    return shingled


def _mark_equal(codes: Codes, keys: U64, marks: U64, indices: I64) -> None:
    """Mark all but the first with a mark as duplicates, all but the first with a key as near."""
    order = np.argsort(indices)
    keys, marks, indices = keys[order], marks[order], indices[order]
    same = _is_repeated(marks)
    codes[indices[same]] = DUPLICATE
    codes[indices[~same][_is_repeated(keys[~same])]] = NEAR


def _is_repeated(values: U64) -> Bool:
    """Tell for each value whether an equal one comes before it."""
    repeated = np.ones(len(values), np.bool_)
    repeated[np.unique(values, return_index=True)[1]] = False
    return repeated


def links(keys: U64, indices: I64) -> I64:
    """Return the pairs (later, earlier) to compare among indices that share a key, sorted.

    Each is compared with the first LINKS of its bucket and with the one before it.
    """
    order = np.lexsort((indices, keys))
    keys, indices = keys[order], indices[order]
    numbers, starts = np.arange(len(keys)), np.searchsorted(keys, keys)
    pairs = []
    for rank in range(LINKS + 1):
        later = np.flatnonzero(numbers - starts > rank)
        earlier = starts[later] + rank if rank < LINKS else later - 1
        pairs.append(np.column_stack((indices[later], indices[earlier])))
    return np.unique(np.concatenate(pairs), axis=0)


def _linked(files: Sequence[Path], start: int, stop: int) -> list[list[int]]:
    """Return the pairs whose later index lies in a range, once each, in order."""
    parts = [np.zeros((0, 2), np.int64)]
    for path in files:
        pairs = np.load(path, mmap_mode="r")
        first, last = np.searchsorted(pairs[:, 0], (start, stop))
        parts.append(np.array(pairs[first:last]))
    linked: list[list[int]] = np.unique(np.concatenate(parts), axis=0).tolist()
    return linked


def normal_form(text: str) -> str:
    """Return the text without case, signs, addresses and mentions, with 0 for every number."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = _REPOST.sub("", without_addresses(text))
    text = _DIGITS.sub("0", text).casefold().replace("_", " ")
    signs = _SIGNS if text.isascii() else _signs_but_marks()
    return " ".join(signs.sub(" ", text).split())


@cache
def _signs_but_marks() -> re.Pattern[str]:
    # `\w` has no marks: Indic words would fall apart.
    return re.compile(rf"[^\w\s{mark_ranges()}]+")


def shingles(form: str, size: int) -> set[str]:
    """Return all runs of `size` characters of a normal form; a shorter one is padded."""
    form = form.ljust(size)
    return {form[at : at + size] for at in range(len(form) - size + 1)}


def similarity(ours: set[str], theirs: set[str]) -> float:
    """Return the Jaccard similarity of the shingles of two normal forms."""
    shared = len(ours & theirs)
    return shared / (len(ours) + len(theirs) - shared)


def band_keys(forms: Sequence[str], size: int) -> U64:
    """Return BANDS keys for each normal form, as an array (forms, BANDS)."""
    keys = np.zeros((len(forms), BANDS), np.uint64)
    stops = np.cumsum([max(len(form), size) for form in forms])
    cuts = np.flatnonzero(np.diff(stops // _CHUNK)) + 1
    for first, stop in pairwise([0, *cuts.tolist(), len(forms)] if forms else []):
        minima = _minima([form.ljust(size) for form in forms[first:stop]], size)
        for row in range(ROWS):
            added = np.uint64(GOLDEN) + minima[:, row::ROWS]
            keys[first:stop] = mix_array(keys[first:stop] + added)
    return keys ^ np.array([_salt(band) for band in range(BANDS)], np.uint64)


def _minima(forms: Sequence[str], size: int) -> U64:
    """Return, for each of BANDS * ROWS hash functions, the minimum over a form's shingles."""
    lengths = np.array(list(map(len, forms)))
    codes = np.frombuffer("".join(forms).encode("utf-32-le"), np.uint32).astype(np.uint64)
    hashes = np.zeros(len(codes) - size + 1, np.uint64)
    for at in range(size):
        hashes = hashes * np.uint64(_BASE) + codes[at : at + len(hashes)]
    is_inside = np.ones(len(codes), np.bool_)
    for back in range(1, size):  # a shingle that begins here ends in the next form
        is_inside[np.cumsum(lengths) - back] = False
    hashes = mix_array(hashes[is_inside[: len(hashes)]])
    starts = np.cumsum(lengths - size + 1) - (lengths - size + 1)
    minima = np.empty((len(forms), BANDS * ROWS), np.uint64)
    for number in range(BANDS * ROWS):
        salted = (hashes ^ np.uint64(_salt(number))) * np.uint64(_factor(number))
        minima[:, number] = np.minimum.reduceat(salted, starts)
    return minima


def _salt(number: int) -> int:
    return mix((number + 1) * GOLDEN & MASK)


def _factor(number: int) -> int:
    return mix((number + 1_001) * GOLDEN & MASK) | 1


@contextmanager
def key_writer(path: Path, *names: str) -> Iterator[Callable[..., None]]:
    """Yield a function that writes columns (keys first, row numbers last) in sorted runs.

    So a range of keys is read without the others.
    """
    schema, held = pa.schema([(name, pa.uint64()) for name in names]), list[U64]()
    with atomic(path) as file, pa.ipc.new_file(file, schema) as to:

        def add(*columns: Sequence[int] | U64, held_max: int = HELD) -> None:
            held.append(np.array(columns, np.uint64).reshape(len(names), -1))
            if sum(part.shape[1] for part in held) >= held_max:
                entries = np.concatenate(held, axis=1)
                order = np.argsort(entries[0], kind="stable")
                to.write_batch(pa.record_batch([as_arrow(c[order]) for c in entries], schema))
                held.clear()

        yield add
        add(held_max=1)


def ranges(paths: Sequence[Path], firsts: Sequence[int]) -> Iterator[U64]:
    """Yield the columns of all files, a range of keys at a time.

    The index of a row is its number plus that of the first row of its file. What is outside of a
    range is not read.
    """
    count = sum(len(run[0]) for path in paths for run in _runs(path)) // RANGE + 1
    for start, stop in pairwise(number * (1 << 64) // count for number in range(count + 1)):
        parts = []
        for path, first in zip(paths, firsts, strict=True):
            for columns in _runs(path):
                low = np.searchsorted(columns[0], np.uint64(start))
                high = np.searchsorted(columns[0], np.uint64(stop - 1), side="right")
                part = np.stack([column[low:high] for column in columns])
                part[-1] += np.uint64(first)
                parts.append(part)
        if parts:
            yield np.concatenate(parts, axis=1)


def _runs(path: Path) -> Iterator[list[U64]]:
    """Yield the columns of each run of a file, mapped and not copied."""
    file = pa.ipc.open_file(pa.memory_map(str(path)))
    for number in range(file.num_record_batches):
        yield [column.to_numpy() for column in file.get_batch(number).columns]
