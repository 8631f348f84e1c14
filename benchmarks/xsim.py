"""xSIM without faiss: the size of RoLASER's xSIM++, 1,012 sentences in 44,528 lines of width 1,024.

faiss-cpu is no dependency of noisegen: `pip install --target FOLDER --no-deps faiss-cpu`, then run
with PYTHONPATH=FOLDER. Both sides use all cores; their results must be equal.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Result, Skipped, Target, best, cpu, report
from noisegen.evaluation import xsim

SENTENCES, LINES, WIDTH, K = 1_012, 44_528, 1_024, 4
ROWS_FULL = 200_000  # rows of the other benchmarks; with fewer, there are fewer lines
TARGETS = {"auto": Target(">=", 2), "float32": Target(">=", 2), "bfloat16": None}

F32 = npt.NDArray[np.float32]


def results(rows: int) -> Iterator[Result | Skipped]:
    """Compare each precision with LASER's way; the ratio is faiss's CPU seconds over ours."""
    if not find_spec("faiss"):
        yield Skipped("xSIM against faiss", "faiss-cpu is not installed")
        return
    x, y = vectors(max(SENTENCES, LINES * min(rows, ROWS_FULL) // ROWS_FULL))
    found: dict[str, Any] = {}

    def ours(precision: Any) -> None:
        found[precision] = xsim(x, y, k=K, precision=precision).predictions

    def theirs() -> None:
        found["faiss"] = by_faiss(x, y)

    jobs = {name: cpu(lambda name=name: ours(name)) for name in TARGETS} | {"faiss": cpu(theirs)}
    seconds = best(jobs)
    right = np.arange(len(x))
    wrong = {name: int((rows != right).sum()) for name, rows in found.items()}
    for name, target in TARGETS.items():
        note = f"{wrong[name]} errors, faiss {wrong['faiss']}"
        yield Result(
            f"xSIM in {name}, {len(x):,} in {len(y):,} of width {WIDTH:,}",
            1 / seconds[name],
            1 / seconds["faiss"],
            "searches a CPU second",
            "faiss-cpu",
            target,
            note,
            failed=not np.array_equal(found[name], found["faiss"]),
        )


def vectors(lines: int) -> tuple[F32, F32]:
    """Return noisy sentences and lines: the clean sentences, then 43 lines that are near each."""
    draws = np.random.Generator(np.random.PCG64(7))
    clean = draws.standard_normal((SENTENCES, WIDTH), np.float32)
    noisy = clean + 2 * draws.standard_normal((SENTENCES, WIDTH), np.float32)
    made_of = np.arange(lines - SENTENCES) % SENTENCES
    near = draws.standard_normal((lines - SENTENCES, WIDTH), np.float32)
    return noisy, np.concatenate([clean, clean[made_of] + 0.5 * near])


def by_faiss(x: F32, y: F32) -> npt.NDArray[np.int64]:
    """Return what LASER's xSIM predicts: exact search in both directions, ratio margin."""
    import faiss

    sides = [np.array(side) for side in (x, y)]
    for side in sides:
        faiss.normalize_L2(side)
    indexes = [faiss.IndexFlatIP(WIDTH) for _ in sides]
    for index, side in zip(indexes, sides, strict=True):
        index.add(side)
    cosines, rows = indexes[1].search(sides[0], K)
    means = indexes[0].search(sides[1], K)[0].mean(axis=1)
    scores = cosines / ((cosines.mean(axis=1)[:, None] + means[rows]) / 2)
    chosen: npt.NDArray[np.int64] = rows[np.arange(len(x)), scores.argmax(axis=1)]
    return chosen


if __name__ == "__main__":
    report(results)
