"""Find exact and near duplicates of earlier candidates in a whole run, in bounded memory.

Near duplicates share a key of MinHash bands (see `fingerprints`) and are then compared. Keys are
read a range at a time, and pairs are compared a span of candidates at a time, each as a task that
may run on another machine. The result depends only on the order of the input.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.preparation.fingerprints import BANDS, normal_form, shingles, similarity
from noisegen.preparation.intermediate import (
    BATCH,
    WORK,
    checked,
    is_whole,
    keys_between,
    read_batch,
    work_path,
    write_array,
)
from noisegen.runs.atomic import atomic
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.buffers import I64, U64, Bool

KEPT, DUPLICATE, NEAR = 0, 1, 2
LINKED = 3  # kept, unless it turns out to be near to an earlier kept candidate
REASONS = {DUPLICATE: "duplicate", NEAR: "near_duplicate"}
CACHED = 2_000  # candidates whose shingles are in memory: about 30 MB
LINKS = 4  # members of a bucket that each member is compared with, besides the one before it

RANGE = 1_000_000  # entries of a range of keys, about, all in memory at once: about 100 MB
SPAN = 1 << 16  # candidates whose links are in memory at once
BLOCK = 1 << 20  # bytes written at a time

Codes = npt.NDArray[np.int8]
CodesFile = np.memmap[Any, np.dtype[np.int8]]


class Range(NamedTuple):
    """A task: its number, and a range of keys or a span of candidates."""

    number: int
    start: int
    stop: int


Run = Callable[[Callable[[Range], int], Iterable[Range], Callable[[int], None]], None]


@dataclass(frozen=True)
class Search:
    """A search for duplicates among the candidates of a run; small, for each task pickles it.

    A candidate is a duplicate if an earlier one has the same text, and a near duplicate if an
    earlier one has the same normal form. With `near`, it is also a near duplicate if it shares a
    band with an earlier kept candidate and their similarity is at least `similarity_min`. Every
    task writes an array with its digest; a whole array is not made again.
    """

    out: Path
    near: bool
    shingle: int
    similarity_min: float
    batch: int = BATCH  # rows of a record batch of texts
    entries: int = RANGE
    span: int = SPAN

    def edges(self) -> I64:
        """Return the index of the first candidate of each portion, then the total number."""
        edges: I64 = np.load(self.out / WORK / "edges.npy")
        return edges

    def codes(self, mode: Any = "r") -> CodesFile:
        """Return the mapped file of codes: KEPT, DUPLICATE, NEAR or LINKED for each candidate."""
        path = self.out / WORK / "codes.bin"
        return np.memmap(path, np.int8, mode, shape=path.stat().st_size)

    def found(self, kind: str, number: int) -> I64:
        """Return the mapped array of a task."""
        path = work_path(self.out, kind, number)
        with checked(path):
            array: I64 = np.load(path, mmap_mode="r")
        return array

    def begin(self, counts: Sequence[int]) -> None:
        """Write the files `edges` and `codes`; `counts` are the candidates of each portion."""
        with atomic(self.out / WORK / "edges.npy") as file:
            np.save(file, np.cumsum([0, *counts]))
        # All bytes are written: on a full disk, a mapped file with holes would end the process.
        with atomic(self.out / WORK / "codes.bin") as file:
            for start in range(0, sum(counts), BLOCK):
                file.write(bytes(min(BLOCK, sum(counts) - start)))

    def find(self, run: Run, progress: Show = silent) -> None:
        """Decide on all candidates.

        `run(function, tasks, finish)` calls `function` on each task, maybe elsewhere, and `finish`
        on each result.
        """
        codes, stage = self.codes("r+"), partial(_run_stage, run, progress)

        def mark_equal(number: int) -> None:
            indices, equal = self.found("equal", number)
            codes[indices] = equal

        def mark_linked(number: int) -> None:
            codes[self.found("links", number)[:, 0]] = LINKED

        def settle(number: int) -> None:
            _settle(codes, self.found("similar", number), spans[number])

        forms = equal_ranges(1 << 64, len(codes) // self.entries + 1)
        stage("finding duplicates", self.find_equal, forms, mark_equal)
        codes.flush()
        if not self.near:
            return
        bands = equal_ranges(1 << 64, len(codes) * BANDS // self.entries + 1)
        stage("finding near duplicates", self.find_links, bands, mark_linked)
        codes.flush()
        spans = equal_ranges(len(codes), len(codes) // self.span + 1)
        compare = partial(self.find_similar, len(bands))
        stage("comparing near duplicates", compare, spans, settle)
        codes.flush()

    # Tasks. Each returns the number of its range.

    def find_equal(self, task: Range) -> int:
        """Write the indices and codes of equal texts and equal forms among a range of keys."""
        return self._write("equal", task, lambda: equal(self._keys("forms", task)))

    def find_links(self, task: Range) -> int:
        """Write the pairs to compare among a range of band keys, without known duplicates."""

        def pairs() -> I64:
            keys, indices = self._keys("bands", task)
            fresh = np.isin(self.codes()[indices], (KEPT, LINKED))
            return links(keys[fresh], indices[fresh].astype(np.int64))

        return self._write("links", task, pairs)

    def find_similar(self, ranges: int, task: Range) -> int:
        """Write the similar pairs of a span of candidates that decide on them.

        `ranges` is the number of files of links.
        """

        def pairs() -> I64:
            files = map(partial(self.found, "links"), range(ranges))  # one is open at a time
            similar = list(self._similar(_linked(files, task), task))
            return np.array(similar, np.int64).reshape(-1, 2)

        return self._write("similar", task, pairs)

    def _write(self, kind: str, task: Range, make: Callable[[], I64]) -> int:
        """Write the array of a task unless it is whole; return the number of the task."""
        path = work_path(self.out, kind, task.number)
        if not is_whole(path):
            write_array(path, make())
        return task.number

    def _keys(self, kind: str, task: Range) -> U64:
        """Return the entries of the key files of a kind for a range of keys."""
        firsts = self.edges()[:-1].tolist()
        paths = [work_path(self.out, kind, number) for number in range(len(firsts))]
        return keys_between(paths, firsts, task.start, task.stop)

    def _similar(self, linked: Iterable[list[int]], task: Range) -> Iterator[tuple[int, int]]:
        """Yield the similar pairs (later, earlier) of a span, in the order of `linked`.

        The pairs of a candidate end with the first earlier candidate that is certainly kept.
        Another process may settle earlier spans meanwhile, so LINKED means no more than undecided.
        """
        before, shingled = self.codes(), self._shingles()
        here = before[task.start : task.stop].copy()
        for later, pairs in groupby(linked, itemgetter(0)):
            code = KEPT
            for _, earlier in pairs:
                is_before = earlier < task.start
                theirs = before[earlier] if is_before else here[earlier - task.start]
                if theirs == NEAR:
                    continue
                if similarity(shingled(later), shingled(earlier)) < self.similarity_min:
                    continue
                yield later, earlier
                code = LINKED
                if theirs == KEPT:
                    code = NEAR
                    break
            here[later - task.start] = code

    def _shingles(self) -> Callable[[int], set[str]]:
        """Return a cached function from the index of a candidate to its shingles."""
        edges = self.edges()

        @lru_cache(64)
        def batch(number: int, part: int) -> pa.RecordBatch:
            return read_batch(work_path(self.out, "texts", number), part)

        @lru_cache(CACHED)
        def shingled(index: int) -> set[str]:
            number = int(np.searchsorted(edges, index, side="right")) - 1
            part, row = divmod(index - int(edges[number]), self.batch)
            return shingles(normal_form(batch(number, part)["text"][row].as_py()), self.shingle)

        return shingled


def _run_stage(
    run: Run,
    progress: Show,
    doing: str,
    function: Callable[[Range], int],
    tasks: Sequence[Range],
    apply: Callable[[int], None],
) -> None:
    """Run `function` on tasks, and `apply` on the numbers of finished tasks in order."""
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


def equal_ranges(size: int, count: int) -> list[Range]:
    """Return `count` equal ranges of the numbers below `size`."""
    edges = [number * size // count for number in range(count + 1)]
    return [Range(number, *ends) for number, ends in enumerate(pairwise(edges))]


def _settle(codes: Codes, similar: I64, span: Range) -> None:
    """Decide on the linked candidates of a span, after all spans before it."""
    # The span is written at once, since a task may read it and must see decided codes only.
    here = codes[span.start : span.stop].copy()
    for later, earlier in similar.tolist():
        theirs = codes[earlier] if earlier < span.start else here[earlier - span.start]
        if theirs != NEAR:
            here[later - span.start] = NEAR
    here[here == LINKED] = KEPT
    codes[span.start : span.stop] = here


def equal(columns: U64) -> I64:
    """Return the indices and codes of entries that repeat an earlier one, shape (2, entries).

    The columns are keys of forms, marks of texts, and indices. A repeated mark is a DUPLICATE, a
    repeated key of another text is NEAR.
    """
    keys, marks, indices = columns[:, np.argsort(columns[2])]
    same = _is_repeated(marks)
    codes = np.where(same, DUPLICATE, KEPT)
    codes[np.flatnonzero(~same)[_is_repeated(keys[~same])]] = NEAR
    return np.stack([indices.astype(np.int64), codes])[:, codes != KEPT]


def _is_repeated(values: U64) -> Bool:
    """Tell for each value whether an equal value comes before it."""
    repeated = np.ones(len(values), np.bool_)
    repeated[np.unique(values, return_index=True)[1]] = False
    return repeated


def links(keys: U64, indices: I64) -> I64:
    """Return the sorted pairs (later, earlier) to compare among indices that share a key.

    Each index is compared with the first LINKS of its bucket and with the one before it.
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


def _linked(files: Iterable[I64], span: Range) -> list[list[int]]:
    """Return the pairs whose later index lies in a span, once each, in order."""
    parts = [np.zeros((0, 2), np.int64)]
    for pairs in files:
        first, last = np.searchsorted(pairs[:, 0], (span.start, span.stop))
        parts.append(np.array(pairs[first:last]))
    linked: list[list[int]] = np.unique(np.concatenate(parts), axis=0).tolist()
    return linked
