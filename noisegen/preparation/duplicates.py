"""Find duplicates among the candidate sentences of a run, in bounded memory.

The later of two equal or similar candidates is the duplicate. Two candidates are compared if they
share a MinHash band key (see `fingerprints`). The work is split into tasks, by ranges of keys or by
spans of candidates; tasks may run on other machines. The result depends only on the order of the
candidates.
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
UNDECIDED = 3  # until the candidate is compared with earlier candidates that share a band key
REASONS = {DUPLICATE: "duplicate", NEAR: "near_duplicate"}
CACHED = 2_000  # candidates whose sets of shingles stay in memory: about 30 MB
# For each of its band keys, a candidate is compared with the first LINKS candidates that have the
# key, and with the last one before it.
LINKS = 4

RANGE = 1_000_000  # keys that a task reads into memory, on average: about 100 MB
SPAN = 1 << 16  # candidates per task that compares pairs; the task holds the pairs in memory
BLOCK = 1 << 20  # bytes per write when the file of codes is filled with zeros

Codes = npt.NDArray[np.int8]
CodesFile = np.memmap[Any, np.dtype[np.int8]]


class Range(NamedTuple):
    """A task: its index, and its keys or candidate indices from `start` to `stop` (exclusive)."""

    number: int
    start: int
    stop: int


Run = Callable[[Callable[[Range], int], Iterable[Range], Callable[[int], None]], None]


@dataclass(frozen=True)
class Search:
    """Search for duplicates among the candidates of a run.

    A candidate is a duplicate if an earlier candidate has the same text, and a near duplicate if an
    earlier candidate has the same normal form. With `near`, a candidate is also a near duplicate if
    it is similar to an earlier kept candidate: both share a band key, and their similarity is at
    least `similarity_min`. Each task writes one file with an array and its digest; a resumed run
    repeats only tasks whose file is missing or damaged. The object is pickled for each task, so it
    is kept small.
    """

    out: Path
    near: bool
    shingle: int
    similarity_min: float
    batch: int = BATCH  # candidates per record batch in the files of texts
    entries: int = RANGE  # keys per task, on average
    span: int = SPAN  # candidates per task that compares pairs

    def edges(self) -> I64:
        """Return the first candidate index of each input portion, then the count of candidates."""
        edges: I64 = np.load(self.out / WORK / "edges.npy")
        return edges

    def codes(self, mode: Any = "r") -> CodesFile:
        """Memory-map the file of codes; a code is KEPT, DUPLICATE, NEAR or UNDECIDED."""
        path = self.out / WORK / "codes.bin"
        return np.memmap(path, np.int8, mode, shape=path.stat().st_size)

    def found(self, kind: str, number: int) -> I64:
        """Memory-map the array that a task wrote; `kind` is one of FOUND. Raises OutputError."""
        path = work_path(self.out, kind, number)
        with checked(path):
            array: I64 = np.load(path, mmap_mode="r")
        return array

    def begin(self, counts: Sequence[int]) -> None:
        """Write the files that `edges` and `codes` read; every code is KEPT at first.

        `counts` has the count of candidates of each portion.
        """
        with atomic(self.out / WORK / "edges.npy") as file:
            np.save(file, np.cumsum([0, *counts]))
        # All zeros are written, since a write to a hole in a mapped file would end the process if
        # the disk is full.
        with atomic(self.out / WORK / "codes.bin") as file:
            for start in range(0, sum(counts), BLOCK):
                file.write(bytes(min(BLOCK, sum(counts) - start)))

    def find(self, run: Run, progress: Show = silent) -> None:
        """Decide for each candidate whether it is kept, and write its code.

        `run(function, tasks, finish)` must call `function` on each task, in any process, and
        `finish` on each result in this process.
        """
        codes, stage = self.codes("r+"), partial(_run_stage, run, progress)

        def mark_equal(number: int) -> None:
            indices, equal = self.found("equal", number)
            codes[indices] = equal

        def mark_linked(number: int) -> None:
            codes[self.found("links", number)[:, 0]] = UNDECIDED

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

    # Each of the next three methods runs one task and returns its index.

    def find_equal(self, task: Range) -> int:
        """Find candidates whose text or normal form occurred earlier; write indices and codes.

        The task covers the candidates whose normal form has a hash in the task's range.
        """
        return self._write("equal", task, lambda: equal(self._keys("forms", task)))

    def find_links(self, task: Range) -> int:
        """Write pairs of candidates to compare: both share a band key in the task's range.

        Candidates that are already found to be duplicates are left out.
        """

        def pairs() -> I64:
            keys, indices = self._keys("bands", task)
            fresh = np.isin(self.codes()[indices], (KEPT, UNDECIDED))
            return links(keys[fresh], indices[fresh].astype(np.int64))

        return self._write("links", task, pairs)

    def find_similar(self, ranges: int, task: Range) -> int:
        """Compare the candidates of a span with earlier candidates, and write the similar pairs.

        `ranges` is the count of the files with pairs that `find_links` wrote.
        """

        def pairs() -> I64:
            files = map(partial(self.found, "links"), range(ranges))  # lazy: only one file is open
            similar = list(self._similar(_linked(files, task), task))
            return np.array(similar, np.int64).reshape(-1, 2)

        return self._write("similar", task, pairs)

    def _write(self, kind: str, task: Range, make: Callable[[], I64]) -> int:
        """Write a task's array unless its file exists and is undamaged; return the task's index."""
        path = work_path(self.out, kind, task.number)
        if not is_whole(path):
            write_array(path, make())
        return task.number

    def _keys(self, kind: str, task: Range) -> U64:
        """Read the keys in the task's range, with their candidates, from the files of all portions.

        `kind` is "forms" for the hashes of normal forms, "bands" for band keys.
        """
        firsts = self.edges()[:-1].tolist()
        paths = [work_path(self.out, kind, number) for number in range(len(firsts))]
        return keys_between(paths, firsts, task.start, task.stop)

    def _similar(self, linked: Iterable[list[int]], task: Range) -> Iterator[tuple[int, int]]:
        """Yield the pairs (later, earlier) of `linked` that are similar enough, in order.

        `linked` has the pairs to compare, sorted. Once a later candidate is similar to a KEPT
        earlier candidate, its other pairs are skipped. An UNDECIDED earlier candidate may still be
        dropped: its own pairs are perhaps being compared at the same time.
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
                code = UNDECIDED
                if theirs == KEPT:
                    code = NEAR
                    break
            here[later - task.start] = code

    def _shingles(self) -> Callable[[int], set[str]]:
        """Return a cached function that maps a candidate's index to the set of its shingles."""
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
    """Run `function` on each task, and report progress under the name `doing`.

    `apply` is called with the index of each finished task, from 0 upwards, even if tasks finish in
    another order.
    """
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
    """Split the integers from 0 to `size` (exclusive) into `count` ranges of equal length."""
    edges = [number * size // count for number in range(count + 1)]
    return [Range(number, *ends) for number, ends in enumerate(pairwise(edges))]


def _settle(codes: Codes, similar: I64, span: Range) -> None:
    """Turn each code UNDECIDED of a span of candidates into KEPT or NEAR.

    Earlier spans must have none left. `similar` has pairs (later, earlier) of similar
    candidates, sorted by the later one.
    """
    # The task of a later span may be reading these codes, so they are changed in one write.
    here = codes[span.start : span.stop].copy()
    for later, earlier in similar.tolist():
        theirs = codes[earlier] if earlier < span.start else here[earlier - span.start]
        if theirs != NEAR:
            here[later - span.start] = NEAR
    here[here == UNDECIDED] = KEPT
    codes[span.start : span.stop] = here


def equal(columns: U64) -> I64:
    """Return indices and codes of candidates that repeat an earlier one, shape (2, candidates).

    `columns` has three rows: hashes of normal forms, hashes of texts, and candidate indices. The
    code is DUPLICATE if the text is repeated, and NEAR if only the normal form is.
    """
    keys, text_hashes, indices = columns[:, np.argsort(columns[2])]
    same = _is_repeated(text_hashes)
    codes = np.where(same, DUPLICATE, KEPT)
    codes[np.flatnonzero(~same)[_is_repeated(keys[~same])]] = NEAR
    return np.stack([indices.astype(np.int64), codes])[:, codes != KEPT]


def _is_repeated(values: U64) -> Bool:
    """Return for each value whether an equal value comes before it."""
    repeated = np.ones(len(values), np.bool_)
    repeated[np.unique(values, return_index=True)[1]] = False
    return repeated


def links(keys: U64, indices: I64) -> I64:
    """Return the pairs (later, earlier) of candidates to compare, sorted.

    `keys` are band keys, `indices` the index of each key's candidate. A candidate is compared with
    the first LINKS candidates that have the same key, and with the last one before it.
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
    """Return the pairs (later, earlier) in the files whose later candidate is in a span, sorted."""
    parts = [np.zeros((0, 2), np.int64)]
    for pairs in files:
        first, last = np.searchsorted(pairs[:, 0], (span.start, span.stop))
        parts.append(np.array(pairs[first:last]))
    linked: list[list[int]] = np.unique(np.concatenate(parts), axis=0).tolist()
    return linked
