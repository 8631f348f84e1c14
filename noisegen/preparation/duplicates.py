"""Find exact and near duplicates of earlier candidates in a whole run, in bounded memory.

Near duplicates share a key of MinHash bands (Broder 1997; bands as in Leskovec, Rajaraman and
Ullman, Mining of Massive Datasets, section 3.4: pairs of similarity s share a key with probability
1 - (1 - s^ROWS)^BANDS) and are then compared. Keys are read a range at a time, and pairs compared a
span of candidates at a time, each as a task that may run on another machine. The result depends
only on the order of the input.
"""

import errno
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from hashlib import sha256
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.errors import OutputError
from noisegen.noising.rng import GOLDEN, MASK, mix, mix_array
from noisegen.runs.atomic import atomic, remove
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.buffers import I64, U64, Bool, as_arrow
from noisegen.text.normalize import without_addresses
from noisegen.text.segmentation import mark_ranges

WORK = "work"  # the folder of candidates, four files a portion, which is removed at the end
CANDIDATES = ("texts", "forms", "bands")  # texts, keys of normal forms and of bands
FOUND = ("equal", "links", "similar")  # arrays that the tasks of a search leave
INTERMEDIATE = tuple(f"{WORK}/{name}" for name in (
    "note-*.json", "edges.npy", "codes.bin",
    *(f"{kind}-*.arrow" for kind in CANDIDATES), *(f"{kind}-*.npy" for kind in FOUND),
))  # fmt: skip
BATCH = 8_192  # rows of a record batch of candidates, all full but the last

KEPT, DUPLICATE, NEAR = 0, 1, 2
LINKED = 3  # kept, unless it turns out to be near to an earlier one that is kept
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
SPAN = 1 << 16  # candidates whose links are in memory at once
BLOCK = 1 << 20  # bytes written at a time

_REPOST = re.compile(r"^rt\b", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_SIGNS = re.compile(r"[^\w\s]+")

Codes = npt.NDArray[np.int8]
CodesFile = np.memmap[Any, np.dtype[np.int8]]
Task = tuple[int, int, int]  # number, start, stop: of a range of keys, or of a span of candidates
Run = Callable[[Callable[[Task], int], Iterable[Task], Callable[[int], None]], None]


def work_path(out: Path, kind: str, number: int) -> Path:
    """Return a file of a portion, one of CANDIDATES or 'note', or of a task of the search."""
    ending = "json" if kind == "note" else "npy" if kind in FOUND else "arrow"
    return out / WORK / f"{kind}-{number:05d}.{ending}"


@dataclass(frozen=True)
class Search:
    """A search among the candidates of a run; small, for it is pickled with every task.

    A text that an earlier candidate has is a duplicate, one with the same normal form a near one.
    With `near` so is a candidate whose similarity with an earlier one that is kept is at least
    `similarity_min`, as far as the two share a band. Every task writes an array and its digest; one
    that is there and whole is not made again.
    """

    out: Path
    near: bool
    shingle: int
    similarity_min: float

    def edges(self) -> I64:
        """Return the index of the first candidate of each portion, and the number of all."""
        edges: I64 = np.load(self.out / WORK / "edges.npy")
        return edges

    def codes(self, mode: Any = "r") -> CodesFile:
        """Return KEPT, DUPLICATE, NEAR or LINKED for each candidate, mapped from their file."""
        path = self.out / WORK / "codes.bin"
        return np.memmap(path, np.int8, mode, shape=path.stat().st_size)

    def found(self, kind: str, number: int) -> I64:
        """Return the array of a task, mapped."""
        path = work_path(self.out, kind, number)
        with checked(path):
            array: I64 = np.load(path, mmap_mode="r")
        return array

    def begin(self, counts: Sequence[int]) -> None:
        """Write what tasks read besides candidates; `counts` are those of the portions."""
        with atomic(self.out / WORK / "edges.npy") as file:
            np.save(file, np.cumsum([0, *counts]))
        with atomic(self.out / WORK / "codes.bin") as file:  # whole: a mapped file with holes
            for start in range(0, sum(counts), BLOCK):  # ends the process where the disk is full
                file.write(bytes(min(BLOCK, sum(counts) - start)))

    def find(self, run: Run, progress: Show = silent) -> None:
        """Decide on all candidates; `run` runs a function on tasks, and one on their results."""
        codes, stage = self.codes("r+"), partial(_run_stage, run, progress)

        def mark_equal(number: int) -> None:
            indices, equal = self.found("equal", number)
            codes[indices] = equal

        def mark_linked(number: int) -> None:
            codes[self.found("links", number)[:, 0]] = LINKED

        def settle(number: int) -> None:
            _settle(codes, self.found("similar", number), spans[number])

        forms = _tasks(1 << 64, len(codes) // RANGE + 1)
        stage("finding duplicates", self.find_equal, forms, mark_equal)
        codes.flush()
        if not self.near:
            return
        bands = _tasks(1 << 64, len(codes) * BANDS // RANGE + 1)
        stage("finding near duplicates", self.find_links, bands, mark_linked)
        codes.flush()
        spans = _tasks(len(codes), len(codes) // SPAN + 1)
        compare = partial(self.find_similar, len(bands))
        stage("comparing near duplicates", compare, spans, settle)
        codes.flush()

    # Tasks. Each returns its number.

    def find_equal(self, task: Task) -> int:
        """Find equal texts and equal forms among the keys of a range: their indices and codes."""
        return self._write("equal", task, lambda: equal(self._keys("forms", task)))

    def find_links(self, task: Task) -> int:
        """Find the pairs to compare among the bands of a range, without those that have equals."""

        def pairs() -> I64:
            keys, indices = self._keys("bands", task)
            fresh = np.isin(self.codes()[indices], (KEPT, LINKED))
            return links(keys[fresh], indices[fresh].astype(np.int64))

        return self._write("links", task, pairs)

    def find_similar(self, ranges: int, task: Task) -> int:
        """Find pairs that are similar enough, as many as decide, among those of so many ranges."""

        def pairs() -> I64:
            files = map(partial(self.found, "links"), range(ranges))  # one is open at a time
            similar = list(self._similar(_linked(files, *task[1:]), task))
            return np.array(similar, np.int64).reshape(-1, 2)

        return self._write("similar", task, pairs)

    def _write(self, kind: str, task: Task, make: Callable[[], I64]) -> int:
        path = work_path(self.out, kind, task[0])
        if not _is_whole(path):
            array = make()
            with atomic(path) as file:
                np.save(file, array)
                file.write(sha256(array.tobytes()).digest())
        return task[0]

    def _keys(self, kind: str, task: Task) -> U64:
        firsts = self.edges()[:-1].tolist()
        paths = [work_path(self.out, kind, number) for number in range(len(firsts))]
        return keys_between(paths, firsts, *task[1:])

    def _similar(self, linked: Iterable[list[int]], task: Task) -> Iterator[tuple[int, int]]:
        """Yield similar pairs of a span; of one whose partner is kept for sure, that one last.

        Codes of earlier spans may be settled meanwhile: LINKED is no more than not known yet.
        """
        _, start, stop = task
        before, here, shingled = self.codes(), self.codes()[start:stop].copy(), self._shingles()
        for later, pairs in groupby(linked, itemgetter(0)):
            code = KEPT
            for _, earlier in pairs:
                theirs = before[earlier] if earlier < start else here[earlier - start]
                if theirs != NEAR and (
                    similarity(shingled(later), shingled(earlier)) >= self.similarity_min
                ):
                    yield later, earlier
                    code = LINKED
                    if theirs == KEPT:
                        code = NEAR
                        break
            here[later - start] = code

    def _shingles(self) -> Callable[[int], set[str]]:
        """Return a function from a candidate's index to its shingles, with a cache."""
        edges = self.edges()

        @lru_cache(64)
        def batch(number: int, part: int) -> pa.RecordBatch:  # mapped, not copied
            return read_batch(work_path(self.out, "texts", number), part)

        @lru_cache(CACHED)
        def shingled(index: int) -> set[str]:
            number = int(np.searchsorted(edges, index, side="right")) - 1
            part, row = divmod(index - int(edges[number]), BATCH)
            return shingles(normal_form(batch(number, part)["text"][row].as_py()), self.shingle)

        return shingled


@contextmanager
def checked(path: Path) -> Iterator[None]:
    """Remove an intermediate file that cannot be read, so that a resumed run makes it again.

    Raises OutputError then.
    """
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.ENOENT):
            raise OutputError(f"cannot read {path}: {error.strerror}") from error
        remove(path)
        problem = f"{path} was damaged while the run used it; run again with --resume"
        raise OutputError(problem).passes() from error


def read_batch(path: Path, number: int) -> pa.RecordBatch:
    """Return a batch of texts, mapped and not copied; raises OutputError."""
    with checked(path):
        batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(number)
        batch.validate(full=True)
        return batch


def _is_whole(path: Path) -> bool:
    """Tell whether an array is there, and what its digest behind it says."""
    try:
        with path.open("rb") as file:
            return sha256(np.load(file).tobytes()).digest() == file.read()
    except (OSError, ValueError, EOFError):
        return False


def _run_stage(
    run: Run, progress: Show, doing: str, function: Callable[[Task], int], tasks: Sequence[Task],
    apply: Callable[[int], None],
) -> None:  # fmt: skip
    """Run a function on tasks, and `apply` on their numbers in order."""
    finished, applied = set[int](), 0
    progress(Progress(doing, 0, len(tasks), "tasks"))

    def finish(number: int) -> None:
        nonlocal applied
        finished.add(number)
        while applied in finished:
            apply(applied)
            applied += 1
        progress(Progress(doing, applied, len(tasks), "tasks"))

    run(function, tasks, finish)


def _tasks(size: int, count: int) -> list[Task]:
    """Return so many equal parts of the numbers up to `size`."""
    edges = [number * size // count for number in range(count + 1)]
    return [(number, *ends) for number, ends in enumerate(pairwise(edges))]


def _settle(codes: Codes, similar: I64, task: Task) -> None:
    """Decide on the linked candidates of a span; all before it are decided."""
    _, start, stop = task
    here = codes[start:stop].copy()  # written at once: a task may read what is decided, no more
    for later, earlier in similar.tolist():
        if (codes[earlier] if earlier < start else here[earlier - start]) != NEAR:
            here[later - start] = NEAR
    here[here == LINKED] = KEPT
    codes[start:stop] = here


def equal(columns: U64) -> I64:
    """Return the indices of all but the first with a mark (duplicates) or key (near), and codes."""
    keys, marks, indices = columns[:, np.argsort(columns[2])]
    same = _is_repeated(marks)
    codes = np.where(same, DUPLICATE, KEPT)
    codes[np.flatnonzero(~same)[_is_repeated(keys[~same])]] = NEAR
    return np.stack([indices.astype(np.int64), codes])[:, codes != KEPT]


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


def _linked(files: Iterable[I64], start: int, stop: int) -> list[list[int]]:
    """Return the pairs whose later index lies in a range, once each, in order."""
    parts = [np.zeros((0, 2), np.int64)]
    for pairs in files:
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
        add(*([] for _ in names), held_max=0)  # what is left, and be it nothing


def keys_between(paths: Sequence[Path], firsts: Sequence[int], start: int, stop: int) -> U64:
    """Return the columns of all files for the keys of a range; what is outside is not read.

    The index of a row is its number plus that of the first row of its file.
    """
    parts = []
    for path, first in zip(paths, firsts, strict=True):
        with checked(path):
            for columns in _runs(path):
                low = np.searchsorted(columns[0], np.uint64(start))
                high = np.searchsorted(columns[0], np.uint64(stop - 1), side="right")
                part = np.stack([column[low:high] for column in columns])
                part[-1] += np.uint64(first)
                parts.append(part)
    return np.concatenate(parts, axis=1)


def _runs(path: Path) -> Iterator[list[U64]]:
    """Yield the columns of each run of a file, mapped and not copied."""
    file = pa.ipc.open_file(pa.memory_map(str(path)))
    for number in range(file.num_record_batches):
        yield [column.to_numpy() for column in file.get_batch(number).columns]
