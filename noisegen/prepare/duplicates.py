"""Find exact and near duplicates of earlier candidates in a whole run, in bounded memory.

Near duplicates share a key of MinHash bands (Broder 1997; bands as in Leskovec, Rajaraman and
Ullman, Mining of Massive Datasets, section 3.4: pairs of similarity s share a key with probability
1 - (1 - s^ROWS)^BANDS) and are then compared. One byte per candidate is in memory; keys are read a
range at a time, and compared pairs a portion at a time. The result depends only on the order of
the input.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.noise.rng import GOLDEN, MASK, mix, mix_array
from noisegen.text.buffers import I64, U64
from noisegen.text.normalize import without_addresses
from noisegen.text.segmentation import mark_ranges

WORK = "work"  # the folder of candidates, four files a portion, which is removed at the end
KINDS = ("texts", "forms", "bands", "note")  # texts, keys of normal forms and of bands, a note
_ENDINGS = {"texts": "arrow", "note": "json"}
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
GROUP = 1 << 16  # entries of a row group, the least that is read
RANGE = 1_000_000  # entries of a range, about, all in memory at once: about 100 MB

_REPOST = re.compile(r"^rt\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_SIGNS = re.compile(r"[^\w\s]+")

Codes = npt.NDArray[np.int8]


def work_path(out: Path, kind: str, number: int) -> Path:
    """Return the file of a portion: its texts, keys of normal forms or of bands, or its note."""
    return out / WORK / f"{kind}-{number:05d}.{_ENDINGS.get(kind, 'parquet')}"


class CandidateTexts:
    """The texts of all candidates by their index, read from the files where they lie."""

    def __init__(self, out: Path, firsts: I64) -> None:
        self._out, self._firsts = out, firsts
        self._batch = lru_cache(64)(_batch)

    def __getitem__(self, index: int) -> str:
        number = int(np.searchsorted(self._firsts, index, side="right")) - 1
        batch, row = divmod(index - int(self._firsts[number]), BATCH)
        text: str = self._batch(work_path(self._out, "texts", number), batch)["text"][row].as_py()
        return text


def _batch(path: Path, number: int) -> pa.RecordBatch:
    """Return a record batch, mapped and not copied."""
    return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(number)


def duplicates(
    out: Path, counts: Sequence[int], *, near: bool, shingle: int, similarity_min: float
) -> Codes:
    """Return KEPT, DUPLICATE or NEAR for each candidate; `counts` are those of the portions.

    A text that an earlier candidate has is a duplicate, one with the same normal form a near one.
    With `near` so is a candidate whose similarity with an earlier one that is kept is at least
    `similarity_min`, as far as the two share a band.
    """
    firsts = np.concatenate(([0], np.cumsum(counts)))
    codes = np.zeros(firsts[-1], np.int8)
    starts = firsts[:-1].tolist()

    def paths(kind: str) -> list[Path]:
        return [work_path(out, kind, number) for number in range(len(counts))]

    for keys, marks, indices in ranges(paths("forms"), starts):
        _mark_equal(codes, keys, marks, indices)
    if near:
        files: list[Path] = []
        for keys, _, indices in ranges(paths("bands"), starts):
            files.append(out / "work" / f"links-{len(files):05d}.npy")
            fresh = codes[indices] == KEPT
            np.save(files[-1], links(keys[fresh], indices[fresh]))
        texts = CandidateTexts(out, firsts)
        shingled = lru_cache(CACHED)(lambda index: shingles(normal_form(texts[index]), shingle))
        for start, stop in zip(starts, firsts[1:].tolist(), strict=True):
            for later, earlier in _linked(files, start, stop):
                if codes[later] == codes[earlier] == KEPT and (
                    similarity(shingled(later), shingled(earlier)) >= similarity_min
                ):
                    codes[later] = NEAR
    return codes


def _mark_equal(codes: Codes, keys: U64, marks: U64, indices: I64) -> None:
    """Mark all but the first with a mark as duplicates, all but the first with a key as near."""
    order = np.lexsort((indices, marks, keys))
    keys, marks, indices = keys[order], marks[order], indices[order]
    same = (keys[1:] == keys[:-1]) & (marks[1:] == marks[:-1])
    codes[indices[1:][same]] = DUPLICATE
    is_first = np.concatenate(([True], ~same))[: len(keys)]
    keys, indices = keys[is_first], indices[is_first]
    order = np.lexsort((indices, keys))
    later = keys[order][1:] == keys[order][:-1]
    codes[indices[order][1:][later]] = NEAR


def links(keys: U64, indices: I64) -> I64:
    """Return the pairs (later, earlier) to compare among indices that share a key, sorted.

    Each is compared with the first LINKS of its bucket and with the one before it.
    """
    order = np.lexsort((indices, keys))
    keys, indices = keys[order], indices[order]
    numbers = np.arange(len(keys))
    begins = np.concatenate(([True], keys[1:] != keys[:-1]))[: len(keys)]
    starts = np.maximum.accumulate(np.where(begins, numbers, 0))
    pairs = [np.zeros((0, 2), np.int64)]
    for rank in range(LINKS):
        later = np.flatnonzero(numbers - starts > rank)
        pairs.append(np.column_stack((indices[later], indices[starts[later] + rank])))
    later = np.flatnonzero(numbers - starts > LINKS)
    pairs.append(np.column_stack((indices[later], indices[later - 1])))
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
    return re.compile(
        rf"[^\w\s{mark_ranges()}]+"
    )  # `\w` has no marks: Indic words would fall apart


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
    keys = np.empty((len(forms), BANDS), np.uint64)
    lengths = np.array([max(len(form), size) for form in forms], np.int64)
    stops = np.cumsum(lengths)
    first = 0
    while first < len(forms):
        limit = (stops[first - 1] if first else 0) + _CHUNK
        last = max(first + 1, int(np.searchsorted(stops, limit, side="right")))
        text = "".join(form.ljust(size) for form in forms[first:last])
        keys[first:last] = _bands(_minima(text, lengths[first:last], size))
        first = last
    return keys


def _minima(text: str, lengths: I64, size: int) -> U64:
    """Return, for each of BANDS * ROWS hash functions, the minimum over a form's shingles."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.uint64)
    hashes = np.zeros(len(codes) - size + 1, np.uint64)
    for at in range(size):
        hashes = hashes * np.uint64(_BASE) + codes[at : at + len(hashes)]
    is_inside = np.ones(len(codes), np.bool_)
    for back in range(1, size):  # a shingle that begins here ends in the next form
        is_inside[np.cumsum(lengths) - back] = False
    hashes = mix_array(hashes[is_inside[: len(hashes)]])
    starts = np.concatenate(([0], np.cumsum(lengths - size + 1)[:-1]))
    minima = np.empty((len(lengths), BANDS * ROWS), np.uint64)
    for number in range(BANDS * ROWS):
        salted = (hashes ^ np.uint64(_salt(number))) * np.uint64(_factor(number))
        minima[:, number] = np.minimum.reduceat(salted, starts)
    return minima


def _salt(number: int) -> int:
    return mix((number + 1) * GOLDEN & MASK)


def _factor(number: int) -> int:
    return mix((number + 1_001) * GOLDEN & MASK) | 1


def _bands(minima: U64) -> U64:
    """Return one key for the minima of each band."""
    keys = np.zeros((len(minima), BANDS), np.uint64)
    for row in range(ROWS):
        keys = mix_array(keys + np.uint64(GOLDEN) + minima[:, row::ROWS])
    return keys ^ np.array([_salt(band) for band in range(BANDS)], np.uint64)


class KeyWriter:
    """Writes (key, mark, row), sorted in runs, so that a range of keys is read without the others.

    The caller decides what a mark means.
    """

    def __init__(self, file: IO[bytes]) -> None:
        schema = pa.schema([("key", pa.uint64()), ("mark", pa.uint64()), ("row", pa.uint32())])
        self._to = pq.ParquetWriter(
            file, schema, compression={"mark": "zstd"}, use_dictionary=False
        )
        self._held: list[tuple[U64, U64, I64]] = []
        self._size = 0

    def add(self, keys: U64, marks: U64, rows: I64) -> None:
        """Add entries, arrays of equal length."""
        if len(keys):
            self._held.append((keys, marks, rows))
            self._size += len(keys)
        if self._size >= HELD:
            self._spill()

    def _spill(self) -> None:
        keys, marks, rows = map(np.concatenate, zip(*self._held, strict=True))
        order = np.argsort(keys, kind="stable")
        columns = [keys[order], marks[order], rows[order].astype(np.uint32)]
        self._to.write_table(pa.table(columns, self._to.schema), row_group_size=GROUP)
        self._held, self._size = [], 0

    def close(self) -> None:
        """Write the remaining entries and the end of the file."""
        if self._held:
            self._spill()
        self._to.close()


def ranges(paths: Sequence[Path], firsts: Sequence[int]) -> Iterator[tuple[U64, U64, I64]]:
    """Yield the entries of all files, a range of keys at a time: keys, marks, indices.

    The index of a row is its number plus that of the first row of its file.
    """
    entries = sum(pq.read_metadata(path).num_rows for path in paths)
    count = entries // RANGE + 1
    bounds = [number * (1 << 64) // count for number in range(count + 1)]
    for start, stop in pairwise(bounds):
        parts = [
            _read_range(path, first, start, stop - 1)
            for path, first in zip(paths, firsts, strict=True)
        ]
        keys, marks, indices = map(np.concatenate, zip(*parts, strict=True))
        yield keys, marks, indices


def _read_range(path: Path, first: int, least: int, most: int) -> tuple[U64, U64, I64]:
    """Return the entries of a file from one key to another; row groups outside are not read."""
    with pq.ParquetFile(path) as file:
        groups = []
        for number in range(file.num_row_groups):
            keys = file.metadata.row_group(number).column(0).statistics
            if keys.min <= most and keys.max >= least:
                groups.append(number)
        table = file.read_row_groups(groups, use_threads=False)
    keys = table["key"].to_numpy()
    inside = (keys >= np.uint64(least)) & (keys <= np.uint64(most))
    indices = table["row"].to_numpy().astype(np.int64) + first
    return keys[inside], table["mark"].to_numpy()[inside], indices[inside]
