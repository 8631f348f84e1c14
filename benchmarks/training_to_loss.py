"""`noisegen train` against sentence-transformers: CPU seconds to the same loss.

MSELoss trains a copy of all-MiniLM-L6-v2 on stored pairs for MINUTES of CPU: with 8 pairs a batch,
its default, with 64, and where the processor computes in bf16, as ours then does by itself, with 64
in bf16. The goal is the best squared error that these reach, between noisy texts that none was
trained on and the teacher's vectors of their clean form. Ours trains on the same clean text as the
preset robust-minilm does, with and without noisy words, and is timed until a validation has reached
the goal: reading, the search for noisy words and validations count. All have the teacher's vectors.
One thread.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Result, Skipped, Target, report
from benchmarks.training_speed import Enough, Meter, Work, missing_peer, one_thread, theirs
from noisegen.augmentation.on_the_fly import Mapper
from noisegen.demo.quickstart import demo_texts
from noisegen.encoders.encoder import cpu_has_bf16, open_encoder
from noisegen.encoders.folders import minilm_folder
from noisegen.training.settings import GIVEN
from noisegen.training.train import train

MINUTES = 6.0
ROWS_FULL = 200_000  # rows of the other benchmarks; with fewer, the peer trains for less time
RECIPE = "ugc-heavy"
HELD_OUT = 400
LOSS = f"validation_{GIVEN}loss_noisy"
SLOWEST = 2  # times their seconds, after which ours is given up
BATCHES = {"its defaults": {}, "64 a batch": {"per_device_train_batch_size": 64}}
HALF = {"64 a batch, bf16": {**BATCHES["64 a batch"], "bf16": True}}
ARMS = {"with noisy words": 100_000, "without noisy words": 0}


@dataclass(frozen=True)
class Texts:
    """Held-out pairs in a file, and the teacher's vectors of their clean side."""

    source: Path
    noisy: list[str]
    vectors: Any

    def loss(self, student: Any) -> float:
        """Return the squared error of vectors of the noisy side, summed over dimensions."""
        return float(np.square(student.encode(self.noisy) - self.vectors).sum(1).mean())


def results(rows: int) -> Iterator[Result | Skipped]:
    """Train theirs, then ours until it is as good."""
    if missing := missing_peer():
        yield missing
        return
    with one_thread() as folder:
        yield from _compared(folder, 60 * MINUTES * min(1.0, rows / ROWS_FULL))


def _compared(folder: Path, seconds: float) -> Iterator[Result]:
    held_out = _held_out(folder)
    work = Work.made(folder, RECIPE)
    reached = {}
    for name, arguments in (BATCHES | (HALF if cpu_has_bf16() else {})).items():
        student = theirs(work, Meter(seconds), **arguments)
        reached[name] = held_out.loss(student)
    name, goal = min(reached.items(), key=lambda item: item[1])
    for arm, words in ARMS.items():
        took, losses = _time_to(goal, work, held_out, words, SLOWEST * seconds)
        note = f"{losses[0]:.4f} -> {min(losses):.4f}, theirs {goal:.4f}"
        yield Result(
            f"train to the same loss, {arm}",
            1 / took,
            1 / seconds,
            "a CPU second",
            f"MSELoss, {name}",
            Target(">=", 5) if words else None,
            note,
            failed=min(losses) > goal,
        )


def _held_out(folder: Path) -> Texts:
    clean = demo_texts().held_out[:HELD_OUT]
    noisy = [str(text) for text in Mapper(RECIPE, seed=7).noise(clean, range(len(clean)))]
    source = folder / "held_out.tsv"
    lines = [f"{one}\t{other}" for one, other in zip(clean, noisy, strict=True)]
    source.write_text("\n".join(["clean\tnoisy", *lines]) + "\n")
    return Texts(source, noisy, open_encoder(str(minilm_folder())).encode(clean))


def _time_to(
    goal: float, work: Work, held_out: Texts, words: int, most: float
) -> tuple[float, list[float]]:
    """Return noisegen's CPU seconds until its loss reaches the goal, and all its losses."""
    clean = work.folder / "clean.txt"
    clean.write_text("".join(f"{text}\n" for text in demo_texts().training))
    losses: list[float] = []
    began = time.process_time()

    def watch(row: dict[str, Any]) -> None:
        if LOSS in row:
            losses.append(row[LOSS])
            if losses[-1] <= goal or time.process_time() - began > most:
                raise Enough

    values = {
        "recipe": RECIPE,
        "noisy_words": words,
        "steps": 10**6,
        "validate_every": 10,
        "validation_rows": 20,
    }
    run = partial(
        train,
        [str(clean)],
        str(work.folder / "ours"),
        preset="robust-minilm",
        device="cpu",
        validation=(str(held_out.source),),
        force=True,
    )
    run(values=values | {"noisy_words": 0, "steps": 1})  # the teacher's vectors, once
    began = time.process_time()
    with suppress(Enough):
        run(values=values | {"cpu_limit": None}, sinks=[watch])
    return time.process_time() - began, losses


if __name__ == "__main__":
    report(results)
