"""Training heads on cached vectors against 100,000 pairs, ten times, in two minutes of one core."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.measure import Result, Target, cpu, report
from noisegen.training.computation import Workers
from noisegen.training.disentangle import Disentangling, VectorChunk
from noisegen.training.settings import load_settings
from noisegen.training.stores import BLOCK_ROWS, StoredTexts, TeacherVectors
from noisegen.training.trainer import Trainer

WIDTH, UPDATES = 384, 60
LANGS = ("ar", "de", "es", "fr", "it", "ja", "nl", "pt", "ru", "tr", "zh")  # beside English
EPOCHS, SECONDS = 10, 120  # intended length of a full training
OBJECTIVES = ("dream", "meat", "meat+oracle")


def results(rows: int) -> Iterator[Result]:
    """Measure some updates of each objective, in pairs a CPU second."""
    rows = min(rows, 100_000)
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        for objective in OBJECTIVES:
            run = made_run(Path(folder), rows, objective)
            seconds = cpu(run.run)()
            speed, wanted = run.progress.pairs / seconds, 100_000 * EPOCHS / SECONDS
            yield Result(
                f"heads, {objective}",
                speed,
                wanted,
                "pairs/CPU s",
                f"{EPOCHS} epochs of 100,000 in {SECONDS} s",
                Target(">=", 1),
            )


def made_run(folder: Path, rows: int, objective: str) -> Trainer[VectorChunk]:
    """Return a run on random vectors, memory-mapped as the cache has them."""
    values = {
        "objective": objective,
        "steps": UPDATES,
        "validate_every": UPDATES,
        "standardize": False,
        "teacher": "minilm",
    }
    tables = []
    for lang in LANGS:
        path = folder / f"en-{lang}.tsv"
        lines = (f"{lang} {row}\t{row} {lang}\n" for row in range(rows // len(LANGS)))
        path.write_text("source\ttarget\n" + "".join(lines))
        tables.append(str(path))
    method = Disentangling(load_settings("oracle-small", None, values), Workers(), print)
    method.read(tables, folder / objective)
    vectors = TeacherVectors(_blocks(folder, len(method.pairs.texts)))
    with patch.object(StoredTexts, "vectors", lambda *given: vectors):
        method.prepare(folder / objective, print)
    return Trainer(method, folder / objective)


def _blocks(folder: Path, rows: int) -> list[np.ndarray]:  # type: ignore[type-arg]
    random = np.random.Generator(np.random.PCG64(0))
    blocks = []
    for first in range(0, rows, BLOCK_ROWS):
        path = folder / f"{first}.npy"
        size = min(BLOCK_ROWS, rows - first)
        np.save(path, random.normal(size=(size, WIDTH)).astype(np.float16))
        blocks.append(np.load(path, mmap_mode="r"))
    return blocks


if __name__ == "__main__":
    report(results)
