"""`train` with a preset of method `heads`: from DATA to RUN/heads."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from noisegen.atomic import write_text
from noisegen.cells import by_reason
from noisegen.compiled import cache_folder
from noisegen.disentangling import pictures
from noisegen.disentangling.head_encoder import PREFIX
from noisegen.disentangling.heads import HeadConfig, Heads, save_heads
from noisegen.disentangling.held_out import by_label, retrieval_figures, retrieval_of
from noisegen.disentangling.labelled_pairs import LabelledPairs, prepare_pairs
from noisegen.disentangling.loop import HeadLoop
from noisegen.disentangling.measures import Figures
from noisegen.disentangling.objectives import WeightedHeads
from noisegen.disentangling.pair_vectors import PairVectors, Standard, parted
from noisegen.disentangling.settings import HeadTraining
from noisegen.disentangling.students import save_students
from noisegen.encoders.encoder import Encoder
from noisegen.encoders.specs import open_encoder
from noisegen.errors import SourceError, UsageError
from noisegen.training.checkpoint import writing_weights
from noisegen.training.claim import claim, removed_if_not_begun
from noisegen.training.log import Sink, run_sinks
from noisegen.training.plan import Rows
from noisegen.training.setting_values import load_settings
from noisegen.training.teacher_vectors import TeacherVectors, teacher_vectors
from noisegen.training.text_store import TextStore
from noisegen.training.workers import join_workers
from noisegen.version import __version__

Tell = Callable[[str], None]


def train(
    data: Sequence[str],
    out: str | Path,
    *,
    preset: str = "oracle-small",
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
    """Train heads for meaning and language on an encoder's frozen vectors; return their figures.

    `data`: tables with columns source and target, or with `labels` side or transform pairs of noisy
    and clean text. Writes RUN/heads, which `heads:RUN/heads` opens, log.jsonl, config.yaml and
    metrics.json; of a Hugging Face encoder also RUN/student and RUN/language, complete encoders.
    With `dry_run` nothing is trained: the numbers of weights, pairs and texts are returned.
    Raises UsageError, SourceError, OutputError, and NoisegenError where training cannot go on.
    """
    if resume:
        raise UsageError("heads train in seconds to minutes: begin anew with --force, not --resume")
    settings, out = load_settings(HeadTraining, preset, config, values), Path(out)
    workers = join_workers(device)
    encoder = _checked(settings, workers.world)
    said = {"version": __version__, "data": [str(one) for one in data], **settings.to_dict()}
    if dry_run:
        return _estimate(data, settings, encoder)
    claim(out, said, resume=False, force=force, can_resume=False)
    with removed_if_not_begun(out, ours=True):
        pairs = prepare_pairs(out / "data", [str(one) for one in data], settings)
        parts = _parted(pairs, settings)
        vectors = _vectors(encoder, pairs.texts, tell)
        report = run_sinks(out, 0, sinks, leads=True, boards=boards)
        standard = Standard.of(vectors) if settings.standardize else Standard.none(vectors.width)
        found = PairVectors(pairs, vectors, workers.device, standard)
        loop = _loop(settings, found, *parts, report, tell)
    heads = loop.run()
    return _finish(loop, heads, encoder, out)


def _checked(settings: HeadTraining, world: int) -> Encoder:
    """Refuse what cannot be trained before a run is removed for it; return the encoder."""
    WeightedHeads.parse(settings.objective)
    if world > 1:
        raise UsageError("heads train in one process: run without torchrun")
    if settings.teacher.startswith(PREFIX):
        raise UsageError(f"teacher {settings.teacher!r} has heads: name the encoder under them")
    return open_encoder(settings.teacher)


def _estimate(data: Sequence[str], settings: HeadTraining, encoder: Encoder) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        pairs = prepare_pairs(Path(folder), [str(one) for one in data], settings)
        weights = 2 * encoder.width * (encoder.width + 1)
        return {"weights": weights, "pairs": len(pairs), "texts": len(pairs.texts)}


def _vectors(encoder: Encoder, texts: TextStore, tell: Tell) -> TeacherVectors:
    done = 0

    def progress(rows: int) -> None:
        nonlocal done
        done += rows
        tell(f"frozen vectors: {done:,} of {len(texts):,} texts")

    return teacher_vectors(encoder, texts, cache_folder() / "vectors", progress)


def _parted(pairs: LabelledPairs, settings: HeadTraining) -> tuple[Rows, Rows]:
    """Return the pairs to train on and those to choose by; raises SourceError for too few."""
    training, validation = parted(len(pairs), settings.validation_rows, settings.seed)
    if len(training) < 2:
        raise SourceError(f"{len(pairs)} pairs, one is held out: give more data")
    if len(validation) < 2 and WeightedHeads.parse(settings.objective).compares_pairs:
        raise SourceError(
            f"{len(pairs)} pairs, one is held out, and {settings.objective} compares two: give "
            "more data, at least 20 pairs, and validation_rows of at least 2"
        )
    return training, validation


def _loop(
    settings: HeadTraining, vectors: PairVectors, training: Rows, validation: Rows, report: Sink,
    tell: Tell,
) -> HeadLoop:  # fmt: skip
    pairs = vectors.pairs
    tell(
        f"{len(training):,} pairs to train on, {len(validation):,} to choose by; labels "
        f"{', '.join(pairs.names)}{_dropped(pairs)}"
    )
    return HeadLoop(settings, vectors, training, validation, report)


def _dropped(pairs: LabelledPairs) -> str:
    return f"; dropped {by_reason(pairs.dropped)}" if pairs.dropped else ""


def _finish(loop: HeadLoop, heads: Heads, encoder: Encoder, out: Path) -> dict[str, Any]:
    """Write the best heads, and what they reached."""
    pairs, settings = loop.vectors.pairs, loop.settings
    folder = Path(settings.teacher)
    spec = str(folder.resolve()) if folder.is_dir() else settings.teacher
    config = HeadConfig(spec, encoder.digest, encoder.width, pairs.names, settings.objective)
    found = {
        "validation": loop.best, "updates": loop.progress.updates, "pairs": loop.progress.pairs,
        "seconds": round(loop.progress.seconds, 1), "labels": list(pairs.names),
        "parameters": sum(weight.numel() for weight in heads.parameters()),
        "dropped": dict(pairs.dropped),
    }  # fmt: skip
    standard = loop.vectors.standard
    heads.cpu().unfold(torch.from_numpy(standard.centre), standard.scale)
    found["retrieval"] = _held_out(loop, heads, out / "vectors.html")
    with torch.no_grad(), writing_weights(out / "heads"):
        save_heads(heads, config, out / "heads")
        save_students(heads, encoder, out)
    write_text(out / "metrics.json", json.dumps(found, indent=1) + "\n")
    return found


def _held_out(loop: HeadLoop, heads: Heads, picture: Path) -> dict[str, Figures]:
    """Return the retrieval among the pairs held out, and draw their texts."""
    texts = by_label(loop.vectors, loop.validation[: pictures.POINTS_MAX])
    if sum(map(len, texts.values())) >= pictures.TEXTS_MIN:
        pictures.write(texts, heads, picture)
    return retrieval_figures(retrieval_of(loop.vectors, loop.validation), heads)
