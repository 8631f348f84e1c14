"""`train`: from DATA to RUN/student."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from noisegen.atomic import write_text
from noisegen.compiled import cache_folder
from noisegen.encoders.encoder import Encoder
from noisegen.encoders.folders import save_folder
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import UsageError
from noisegen.training.checkpoint import load_weights, writing_weights
from noisegen.training.chunks import VALIDATION_EPOCH, Chunks, NoiseSource
from noisegen.training.claim import claim, removed_if_not_begun
from noisegen.training.computation import Computation, uses_bf16
from noisegen.training.estimate import estimate
from noisegen.training.log import Sink, run_sinks
from noisegen.training.loop import Loop
from noisegen.training.losses import Weighted
from noisegen.training.model_card import model_card
from noisegen.training.negatives import (
    HardTexts,
    Negatives,
    open_hard_texts,
    write_hard_texts,
)
from noisegen.training.pair_data import PairData, Reading, prepare_data, read_once
from noisegen.training.setting_values import load_settings
from noisegen.training.settings import Settings
from noisegen.training.students import interpolate, make_student, open_teacher
from noisegen.training.teacher_vectors import TeacherVectors, teacher_vectors
from noisegen.training.text_store import TextStore
from noisegen.training.validation import Validation
from noisegen.training.workers import Workers, join_workers
from noisegen.version import __version__

Tell = Callable[[str], None]


def train(
    data: Sequence[str],
    out: str | Path,
    *,
    preset: str = "quickstart",
    config: str | Path | None = None,
    values: Mapping[str, Any] | None = None,
    device: str = "auto",
    resume: bool = False,
    force: bool = False,
    dry_run: bool = False,
    sinks: Sequence[Sink] = (),
    boards: bool = False,
    tell: Tell = lambda line: None,
) -> dict[str, Any]:
    """Distil a student from a teacher on noisy and clean pairs; return its validation figures.

    `data`: clean text where noise is made by recipes, else pairs: folders of augment or mine, or
    tables with columns noisy and clean. `values` are settings over those of the preset and the
    file (`Settings`). Writes RUN/student, checkpoints, log.jsonl, config.yaml and metrics.json.
    With `dry_run` nothing is trained: the estimate is returned.
    Raises UsageError, SourceError, OutputError, and NoisegenError where training cannot go on.
    """
    if resume and force:
        raise UsageError("--force removes the run that is there, --resume goes on: choose one")
    settings, out = load_settings(Settings, preset, config, values), Path(out)
    workers = join_workers(device)
    said = {"version": __version__, "data": [str(one) for one in data], **settings.to_dict()}
    teacher = open_teacher(settings)
    student = make_student(settings, teacher).to(workers.device)
    _check(settings, student, workers)
    if dry_run:
        return _estimate(data, settings, student)
    if workers.leads or resume:
        claim(out, said, resume=resume, force=force)
    workers.wait()
    with removed_if_not_begun(out, ours=workers.leads and not resume):
        pairs = make_pairs(out / "data", data, settings, resume, workers)
        tell(pairs.summary)
        loop = _loop(settings, student, teacher, pairs, out, workers, said, tell)
    if resume:
        loop.resume()
    done, leads = loop.progress.updates, workers.leads
    loop.report = run_sinks(out, done, sinks, leads=leads, boards=boards)
    loop.run()
    return _finish(loop, teacher, pairs, out, said) if workers.leads else {}


def _check(settings: Settings, student: SentenceEncoder, workers: Workers) -> None:
    """Refuse what cannot be trained before a run is removed for it; raises UsageError."""
    objective = Weighted.parse(settings.objective)
    if settings.hard_negatives and not objective.is_contrastive:
        raise UsageError(
            f"hard_negatives are for info_nce: add +0.2*info_nce to {settings.objective}"
        )
    NoiseSource(settings.noise)
    Computation(settings, student, workers.device)


def _estimate(data: Sequence[str], settings: Settings, student: SentenceEncoder) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        pairs = make_pairs(Path(folder), data, settings, False, Workers())
        chunks = make_chunks(settings, pairs, student, Workers())
        return estimate(settings, student, chunks).to_dict()


def make_pairs(
    folder: Path, data: Sequence[str], settings: Settings, resume: bool, workers: Workers
) -> PairData:
    """Read DATA into the folder, if it is not there; raises SourceError for too little of it."""
    noise = NoiseSource(settings.noise)
    reading = Reading(not noise.is_stored, settings.lang, settings.bitext_rows)
    sources, held_out = [str(one) for one in data], settings.validation_rows
    prepare = partial(prepare_data, folder, sources, held_out, settings.seed, reading)
    return read_once(folder, prepare, workers, resume=resume)


def make_chunks(
    settings: Settings, pairs: PairData, student: SentenceEncoder, workers: Workers
) -> Chunks:
    """Return the chunks of these pairs, with the noise and the batches that the settings name."""
    noise = NoiseSource(settings.noise, settings.seed, settings.lang)
    return Chunks(
        pairs, noise, student.tokenizer, budget=settings.batch_tokens, seed=settings.seed,
        world=workers.world * settings.accumulate,
        both_sides=Weighted.parse(settings.objective).needs_clean,
    )  # fmt: skip


def _loop(
    settings: Settings, student: SentenceEncoder, teacher: Encoder, pairs: PairData, out: Path,
    workers: Workers, said: dict[str, Any], tell: Tell,
) -> Loop:  # fmt: skip
    if isinstance(teacher, SentenceEncoder):
        teacher.to(workers.device)
    vectors = _vectors(settings, teacher, pairs.clean, "teacher's vectors", workers, tell)
    chunks = make_chunks(settings, pairs, student, workers)
    validation = _validation(settings, chunks, pairs, vectors)
    hard = _hard(settings, teacher, pairs, out / "data", workers, tell)
    negatives = Negatives(vectors, settings.negatives, settings.seed, hard)
    digest = sha256(json.dumps([said, len(pairs.noisy), teacher.digest]).encode()).hexdigest()
    return Loop(
        settings, student, chunks, vectors, validation, out, negatives=negatives, workers=workers,
        config=digest,
    )  # fmt: skip


def _vectors(
    settings: Settings, teacher: Encoder, texts: TextStore, what: str, workers: Workers, tell: Tell
) -> TeacherVectors:
    """Return the teacher's vectors; a network computes them in the precision of the student.

    In bf16 MiniLM's are off by 1 - cos = 1e-5, a thousandth of what light noise does to them.
    """
    device = workers.device
    half = isinstance(teacher, SentenceEncoder) and uses_bf16(settings.precision, device)
    folder, done = cache_folder() / ("vectors-bf16" if half else "vectors"), 0

    def progress(rows: int) -> None:
        nonlocal done
        done += rows
        tell(f"{what}: {done:,} of {len(texts):,}")

    if workers.leads:  # the others then find them in the cache
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            vectors = teacher_vectors(teacher, texts, folder, progress)
    workers.wait()
    return vectors if workers.leads else teacher_vectors(teacher, texts, folder)


def _hard(
    settings: Settings, teacher: Encoder, pairs: PairData, folder: Path, workers: Workers,
    tell: Tell,
) -> tuple[HardTexts, TeacherVectors] | None:  # fmt: skip
    """Return hard negatives with the teacher's vectors, where the settings ask for them."""
    most = settings.hard_negatives
    if not most:
        return None
    if workers.leads and not (folder / "hard.rows").exists():
        tell("hard negatives")
        write_hard_texts(folder, pairs.clean, most, settings.seed, settings.lang)
    workers.wait()
    texts = open_hard_texts(folder)
    if not len(texts.texts):
        return None
    what = "vectors of hard negatives"
    return texts, _vectors(settings, teacher, texts.texts, what, workers, tell)


def _validation(settings: Settings, chunks: Chunks, pairs: PairData, vectors: Any) -> Validation:
    """Noise the held-out pairs once, as no epoch of training does."""
    rows = pairs.validation[: settings.validation_rows]
    both = Chunks(
        pairs, chunks.noise, chunks.tokenizer, budget=chunks.budget, seed=chunks.seed,
        both_sides=True,
    )  # fmt: skip
    noisy, clean, owner = both.tokens(rows, epoch=VALIDATION_EPOCH)
    return Validation(noisy, clean, vectors.take(np.asarray(owner)))


def _finish(
    loop: Loop, teacher: Encoder, pairs: PairData, out: Path, said: dict[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """Write the best weights as a folder, and what they reached."""
    student, share = loop.student, loop.settings.interpolate
    load_weights(student, out / "checkpoints" / "best.safetensors")
    if share < 1:
        interpolate(student, make_student(loop.settings, teacher), share)
    figures = loop.validation.measure(student)
    found = {
        "validation": figures, "updates": loop.progress.updates, "pairs": loop.progress.pairs,
        "seconds": round(loop.progress.seconds, 1),
        "parameters": sum(weight.numel() for weight in student.parameters()), **pairs.losses,
    }  # fmt: skip
    with torch.no_grad(), writing_weights(out / "student"):
        save_folder(student.cpu(), out / "student")
    write_text(out / "student" / "README.md", model_card(said, found))
    write_text(out / "metrics.json", json.dumps(found, indent=1) + "\n")
    return found
