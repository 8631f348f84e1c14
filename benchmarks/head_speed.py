"""Training heads on cached vectors against 100,000 pairs, ten times, in two minutes of one core."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks.measure import Result, Target, cpu, report
from noisegen.disentangling.labelled_pairs import prepare_pairs
from noisegen.disentangling.loop import HeadLoop
from noisegen.disentangling.pair_vectors import PairVectors, Standard, parted
from noisegen.disentangling.settings import HeadTraining
from noisegen.training.setting_values import load_settings
from noisegen.training.teacher_vectors import BLOCK_ROWS, TeacherVectors

WIDTH, UPDATES = 384, 60
LANGS = ("ar", "de", "es", "fr", "it", "ja", "nl", "pt", "ru", "tr", "zh")  # beside English
EPOCHS, SECONDS = 10, 120  # that a full training is meant to take
OBJECTIVES = ("dream", "meat", "meat+oracle")


def results(rows: int) -> Iterator[Result]:
    """Measure some updates of each objective, in pairs a CPU second."""
    rows = min(rows, 100_000)
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        for objective in OBJECTIVES:
            loop = made_loop(Path(folder), rows, objective)
            seconds = cpu(loop.run)()
            speed, wanted = loop.progress.pairs / seconds, 100_000 * EPOCHS / SECONDS
            yield Result(f"heads, {objective}", speed, wanted, "pairs/CPU s",
                         f"{EPOCHS} epochs of 100,000 in {SECONDS} s", Target(">=", 1))  # fmt: skip


def made_loop(folder: Path, rows: int, objective: str) -> HeadLoop:
    """Return a run on random vectors, memory-mapped as the cache has them."""
    values = {"objective": objective, "steps": UPDATES, "validate_every": UPDATES}
    settings: HeadTraining = load_settings(HeadTraining, "oracle-small", None, values)
    tables = []
    for lang in LANGS:
        path = folder / f"en-{lang}.tsv"
        lines = (f"{lang} {row}\t{row} {lang}\n" for row in range(rows // len(LANGS)))
        path.write_text("source\ttarget\n" + "".join(lines))
        tables.append(str(path))
    pairs = prepare_pairs(folder / objective, tables, settings)
    vectors = TeacherVectors(_blocks(folder, len(pairs.texts)))
    training, held = parted(len(pairs), settings.validation_rows, settings.seed)
    found = PairVectors(pairs, vectors, torch.device("cpu"), Standard.none(WIDTH))
    return HeadLoop(settings, found, training, held, lambda row: None)


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
