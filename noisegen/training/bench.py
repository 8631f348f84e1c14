"""`train --bench`: how fast updates are, how fast data comes, and what the one costs the other."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import count, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from noisegen.encoders.ragged import Ragged
from noisegen.errors import UsageError
from noisegen.training.chunks import Chunk, Chunks
from noisegen.training.loop import Loop
from noisegen.training.methods import preset_for
from noisegen.training.negatives import Negatives
from noisegen.training.plan import CHUNK_ROWS, Rows, generator
from noisegen.training.preset import read_preset
from noisegen.training.run import make_chunks, make_pairs
from noisegen.training.setting_values import load_settings
from noisegen.training.settings import METHOD, Settings
from noisegen.training.students import make_student, open_teacher
from noisegen.training.teacher_vectors import BLOCK_ROWS, TeacherVectors
from noisegen.training.validation import Validation
from noisegen.training.workers import join_workers

_WARM_UP = 3  # updates
_CHUNKS_SEEN = 3  # that are made while updates on data are timed
Steps = Iterator[tuple[Chunk, list[Rows]]]


@dataclass(frozen=True)
class Bench:
    """Real tokens a second: of updates on random ids, on DATA, and of noise and tokenizer alone.

    `padding` is the share of computed tokens that are none, `loader_cost` that of the speed which
    is lost where ids come from DATA. `step_mfu` and `mfu`: the share of the device's bf16 peak on
    random ids and on DATA, None where the peak is not known.
    """

    device: str
    precision: str
    packed: bool
    compiled: bool
    parameters: int
    tokens_per_row: float
    padding: float
    step: float
    data: float
    loader: float
    loader_cost: float
    step_mfu: float | None
    mfu: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def bench(
    data: Sequence[str],
    *,
    preset: str | None = None,
    config: str | Path | None = None,
    values: Mapping[str, Any] | None = None,
    device: str = "auto",
    seconds: float = 10.0,
    tell: Callable[[str], None] = lambda line: None,
) -> Bench:
    """Time the updates of such a run, `seconds` for each figure; nothing is kept of it.

    Vectors of the teacher are random numbers here, and there are no hard negatives: neither
    changes the speed of a run whose vectors are there. Updates on DATA see so few rows of it that
    some chunks go by, as in a long run; few rows have more padding, which is left out of account.
    Raises what `train` raises.
    """
    preset = preset or preset_for(str((values or {}).get("objective", "")))
    if read_preset(preset).method != METHOD:
        raise UsageError(f"bench times distillation; preset {preset} is of another method")
    settings = load_settings(Settings, preset, config, values)
    workers = join_workers(device)
    if workers.world > 1:
        raise UsageError("bench times one process: start it without torchrun")
    teacher = open_teacher(settings)
    student = make_student(settings, teacher).to(workers.device)
    with TemporaryDirectory() as folder:
        pairs = make_pairs(Path(folder), data, settings, False, workers)
        chunks = make_chunks(settings, pairs, student, workers)
        vectors = _random_vectors(len(pairs.clean), teacher.width)
        loop = Loop(
            settings, student, chunks, vectors, _nothing(teacher.width), Path(folder),
            negatives=Negatives(vectors, settings.negatives, settings.seed), workers=workers,
        )  # fmt: skip
        student.train()
        return _timed(loop, seconds, tell)


def _timed(loop: Loop, seconds: float, tell: Callable[[str], None]) -> Bench:
    tell("making a chunk")
    made = loop.chunks.make(0, 0)
    assert made is not None
    mixed = _shuffled(made)
    steps = cycle((mixed, batches) for batches in mixed.steps)
    _speed(loop, islice(steps, _WARM_UP), float("inf"))
    tell("updates on random ids")
    before = _speed(loop, steps, seconds / 2)
    loop.chunks = _thinned(loop.chunks, int(before["rows"] * seconds / _CHUNKS_SEEN))
    tell("updates on data")
    with closing(loop.steps()) as found:
        chunk, _, batches, _ = next(found)  # waits for the first chunk, as a run does once
        loop.update(chunk, batches)
        on_data = _speed(loop, ((one[0], one[2]) for one in found), seconds)
    tell("updates on random ids again")  # before and after: what else a machine does, wanders
    after = _speed(loop, steps, seconds / 2)
    on_random = {name: (before[name] + after[name]) / 2 for name in before}
    tell("noise and tokenizer")
    loader = _loader_speed(loop.chunks, seconds)
    kept = min(1.0, on_data["computed"] / on_random["computed"])
    return _figures(loop, on_random, kept, loader)


def _figures(loop: Loop, a_second: Mapping[str, float], kept: float, loader: float) -> Bench:
    """Return the figures; of the speed on random ids the data leave the share `kept`."""
    doing, step = loop.computation, a_second["tokens"]
    length = step / a_second["rows"]
    cuda = doing.device.type == "cuda"
    return Bench(
        torch.cuda.get_device_name(doing.device) if cuda else "cpu",
        "bf16" if doing.bf16 else "fp32", doing.packed, doing.settings.compile,
        sum(weight.numel() for weight in loop.student.parameters()), length,
        1 - step / a_second["computed"], step, step * kept, loader, 1 - kept,
        doing.mfu(step, length), doing.mfu(step * kept, length),
    )  # fmt: skip


def _speed(loop: Loop, steps: Steps, seconds: float) -> dict[str, float]:
    """Do updates for so long; return the loop's sums a second: tokens, computed, rows."""
    loop.window.clear()
    _settle(loop)
    began = time.perf_counter()
    for chunk, batches in steps:
        loop.update(chunk, batches)
        if time.perf_counter() - began >= seconds:
            break
    _settle(loop)
    took = time.perf_counter() - began
    return {name: loop.window[name] / took for name in ("tokens", "computed", "rows")}


def _settle(loop: Loop) -> None:
    """Wait until the device has done what it was given."""
    if loop.workers.device.type == "cuda":
        torch.cuda.synchronize(loop.workers.device)


def _loader_speed(chunks: Chunks, seconds: float) -> float:
    """Return tokens a second of noise, tokenizer and plan, epoch after epoch."""
    began, tokens = time.perf_counter(), 0
    for epoch in count(1):
        chunk = chunks.make(epoch, 0)
        assert chunk is not None
        tokens += len(chunk.noisy.values) + len(chunk.clean.values)
        if time.perf_counter() - began >= seconds:
            break
    return tokens / (time.perf_counter() - began)


def _shuffled(chunk: Chunk) -> Chunk:
    """Return rows of the same lengths with the ids of all of them in random order."""
    random = generator(0)
    noisy, clean = (
        Ragged(random.permutation(side.values), side.offsets) for side in (chunk.noisy, chunk.clean)
    )
    return replace(chunk, noisy=noisy, clean=clean)


def _thinned(chunks: Chunks, rows: int) -> Chunks:
    """Return chunks of so many of the rows at most."""
    rows = min(max(rows, 2 * chunks.world), CHUNK_ROWS)
    data = replace(chunks.data, training=chunks.data.training[:rows])
    return Chunks(
        data, chunks.noise, chunks.tokenizer, budget=chunks.budget, seed=chunks.seed,
        world=chunks.world, both_sides=chunks.both_sides,
    )  # fmt: skip


def _random_vectors(rows: int, width: int) -> TeacherVectors:
    """Return so many vectors of about length 1; one block of them stands for all."""
    block = generator(0).standard_normal((BLOCK_ROWS, width)) / np.sqrt(width)
    return TeacherVectors([block.astype(np.float16)] * -(-rows // BLOCK_ROWS))


def _nothing(width: int) -> Validation:
    return Validation(Ragged.of([]), Ragged.of([]), np.zeros((0, width), np.float32))
