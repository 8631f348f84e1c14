"""Peak memory of `evaluate --retrieval-set` on a million documents, with vectors of 384 numbers.

The vectors are random and read from disk (`npy:`), so that the search and the texts take all of the
memory. Documents have about 400 characters, as passages of MS MARCO have.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.measure import Result, Target, report
from benchmarks.memory import peak

WIDTH, QUERIES, CHARACTERS = 384, 1_000, 400
MILLION, MEGABYTES = 1_000_000, 4_000
ROWS_FULL = 200_000  # rows of the other benchmarks; with fewer, there are fewer documents


def results(rows: int) -> Iterator[Result]:
    """Measure the peak for a million documents; with fewer `rows`, for fewer documents."""
    documents = MILLION * min(rows, ROWS_FULL) // ROWS_FULL
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        write(Path(folder), documents)
        model, report = f"npy:{folder}/vectors.npy", f"{folder}/report"
        used, failure = peak("evaluate", model, "-o", report, "--retrieval-set", folder)
    yield Result(
        f"evaluate --retrieval-set, {documents:,} documents",
        used,
        4e-6 * WIDTH * documents,
        "MB",
        "vectors",
        Target("<", MEGABYTES, "ours"),
        failure,
        bool(failure),
    )


def write(folder: Path, documents: int) -> None:
    """Write a retrieval set of random words, and the vectors of its texts."""
    (folder / "qrels").mkdir()
    draws = np.random.Generator(np.random.PCG64(7))
    size, count = CHARACTERS // 8, documents + 2 * QUERIES
    words = draws.integers(10**6, 10**7, (count, size))
    texts = [" ".join(map(str, row)) for row in words.tolist()]
    (folder / "vectors.txt").write_text("\n".join(texts) + "\n")
    np.save(folder / "vectors.npy", draws.standard_normal((count, WIDTH), np.float32))
    parts = {
        "corpus": texts[:documents],
        "queries": texts[documents:-QUERIES],
        "queries.noisy": texts[-QUERIES:],
    }
    for name, rows in parts.items():
        with (folder / f"{name}.jsonl").open("w") as file:
            for number, text in enumerate(rows):
                file.write(json.dumps({"_id": f"{name[0]}{number}", "text": text}) + "\n")
    judged = "".join(f"q{number}\tc{number}\t1\n" for number in range(QUERIES))
    (folder / "qrels" / "test.tsv").write_text(judged)


if __name__ == "__main__":
    report(results)
