"""Find the candidate sentences of a run that repeat an earlier candidate, in bounded memory.

Candidates that share a key of a MinHash band (see `fingerprints`) may be near duplicates; such
pairs are compared. A task reads the keys of one range, or compares the pairs of one span of
candidates, and may run on another machine. The result depends only on the order of the candidates.
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
LINKED = 3  # undecided: a near duplicate if it is similar to an earlier candidate that is kept
REASONS = {DUPLICATE: "duplicate", NEAR: "near_duplicate"}
CACHED = 2_000  # candidates whose sets of shingles stay in memory: about 30 MB
# A candidate is compared with the first LINKS candidates of each of its keys, and with the last one
# before it.
LINKS = 4

RANGE = 1_000_000  # keys that a task reads into memory, on average: about 100 MB
SPAN = 1 << 16  # candidates per task that compares pairs; the task holds the pairs in memory
BLOCK = 1 << 20  # bytes written at once when the file of codes is filled with zeros

Codes = npt.NDArray[np.int8]
CodesFile = np.memmap[Any, np.dtype[np.int8]]


class Range(NamedTuple):
    """A task: its number, and the keys or candidate numbers from `start` up to `stop`."""

    number: int
    start: int
    stop: int


Run = Callable[[Callable[[Range], int], Iterable[Range], Callable[[int], None]], None]


@dataclass(frozen=True)
class Search:
    """Search for duplicates among the candidates of a run.

    A candidate is a duplicate if an earlier candidate has the same text, and a near duplicate if an
    earlier candidate has the same normal form. With `near`, it is also a near duplicate if it
    shares a band key with an earlier candidate that is kept, and their similarity is at least
    `similarity_min`. Each task writes an array file with a digest; a resumed run makes only missing
    and damaged files. The object is small, since it is pickled for each task.
    """

    out: Path
    near: bool
    shingle: int
    similarity_min: float
    batch: int = BATCH  # candidates per record batch in the files of texts
    entries: int = RANGE  # keys per task, on average
    span: int = SPAN  # candidates per task that compares pairs

    def edges(self) -> I64:
        """Return the number of candidates before each portion, then the number of all."""
        edges: I64 = np.load(self.out / WORK / "edges.npy")
        return edges

    def codes(self, mode: Any = "r") -> CodesFile:
        """Map the file with a code per candidate: KEPT, DUPLICATE, NEAR or LINKED."""
        path = self.out / WORK / "codes.bin"
        return np.memmap(path, np.int8, mode, shape=path.stat().st_size)

    def found(self, kind: str, number: int) -> I64:
        """Map the array of kind `kind` (see FOUND) that task `number` wrote; raises OutputError."""
        path = work_path(self.out, kind, number)
        with checked(path):
            array: I64 = np.load(path, mmap_mode="r")
        return array

    def begin(self, counts: Sequence[int]) -> None:
        """Write the files that `edges` and `codes` read.

        `counts` has the number of candidates of each portion. Each candidate gets the code KEPT.
        """
        with atomic(self.out / WORK / "edges.npy") as file:
            np.save(file, np.cumsum([0, *counts]))
        # All bytes are written: on a full disk, a mapped file with holes would end the process.
        with atomic(self.out / WORK / "codes.bin") as file:
            for start in range(0, sum(counts), BLOCK):
                file.write(bytes(min(BLOCK, sum(counts) - start)))

    def find(self, run: Run, progress: Show = silent) -> None:
        """Decide for each candidate whether it is kept, and write the decisions to the codes.

        `run(function, tasks, finish)` must call `function` on each task, in any process, and
        `finish` on each result in this process.
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

    # Tasks; each returns its number.

    def find_equal(self, task: Range) -> int:
        """Write the numbers and codes of candidates whose text or form repeats an earlier one.

        The task covers the candidates whose normal forms have keys in its range.
        """
        return self._write("equal", task, lambda: equal(self._keys("forms", task)))

    def find_links(self, task: Range) -> int:
        """Write the pairs of candidates that share a band key in the task's range, to be compared.

        Candidates that are known to be duplicates are left out.
        """

        def pairs() -> I64:
            keys, indices = self._keys("bands", task)
            fresh = np.isin(self.codes()[indices], (KEPT, LINKED))
            return links(keys[fresh], indices[fresh].astype(np.int64))

        return self._write("links", task, pairs)

    def find_similar(self, ranges: int, task: Range) -> int:
        """Write the similar pairs that decide on the candidates of a span.

        `ranges` is the number of files with pairs to compare.
        """

        def pairs() -> I64:
            files = map(partial(self.found, "links"), range(ranges))  # one file is open at a time
            similar = list(self._similar(_linked(files, task), task))
            return np.array(similar, np.int64).reshape(-1, 2)

        return self._write("similar", task, pairs)

    def _write(self, kind: str, task: Range, make: Callable[[], I64]) -> int:
        """Write the array of a task unless an undamaged file has it; return the task's number."""
        path = work_path(self.out, kind, task.number)
        if not is_whole(path):
            write_array(path, make())
        return task.number

    def _keys(self, kind: str, task: Range) -> U64:
        """Read the entries whose keys are in the task's range, from the key files of all portions.

        `kind` is the kind of these files, "forms" or "bands".
        """
        firsts = self.edges()[:-1].tolist()
        paths = [work_path(self.out, kind, number) for number in range(len(firsts))]
        return keys_between(paths, firsts, task.start, task.stop)

    def _similar(self, linked: Iterable[list[int]], task: Range) -> Iterator[tuple[int, int]]:
        """Yield the pairs (later, earlier) of a span that are similar enough, in the given order.

        `linked` has the pairs to compare, sorted. A later candidate needs no more pairs once it is
        similar to a candidate that is certainly kept. The code LINKED stands for undecided, since
        another process may decide on the candidates of earlier spans meanwhile.
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
        """Return a function that gives the set of shingles of a candidate by its number; cached."""
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
    """Run `function` on each task, and report progress as the stage `doing`.

    `apply` is called on the number of each finished task, in the order of the numbers.
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
    """Split the numbers from 0 up to `size` into `count` ranges of equal length."""
    edges = [number * size // count for number in range(count + 1)]
    return [Range(number, *ends) for number, ends in enumerate(pairwise(edges))]


def _settle(codes: Codes, similar: I64, span: Range) -> None:
    """Decide on the undecided candidates of a span; all earlier spans must be decided.

    `similar` has pairs (later, earlier) of similar candidates, sorted by the later one.
    """
    # A task of a later span may read these codes meanwhile, so they are changed in one write.
    here = codes[span.start : span.stop].copy()
    for later, earlier in similar.tolist():
        theirs = codes[earlier] if earlier < span.start else here[earlier - span.start]
        if theirs != NEAR:
            here[later - span.start] = NEAR
    here[here == LINKED] = KEPT
    codes[span.start : span.stop] = here


def equal(columns: U64) -> I64:
    """Return the candidates that repeat an earlier one, and their codes, shape (2, candidates).

    The rows of `columns` are the hashes of normal forms, the hashes of texts, and the numbers of
    the candidates. A repeated text has the code DUPLICATE, another text of a repeated form NEAR.
    """
    keys, marks, indices = columns[:, np.argsort(columns[2])]
    same = _is_repeated(marks)
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

    `keys` has a band key per entry, `indices` the number of its candidate. A candidate is compared
    with the first LINKS candidates of the same key, and with the one just before it.
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
    """Merge the pairs (later, earlier) of all files whose later candidate is in a span, sorted."""
    parts = [np.zeros((0, 2), np.int64)]
    for pairs in files:
        first, last = np.searchsorted(pairs[:, 0], (span.start, span.stop))
        parts.append(np.array(pairs[first:last]))
    linked: list[list[int]] = np.unique(np.concatenate(parts), axis=0).tolist()
    return linked
