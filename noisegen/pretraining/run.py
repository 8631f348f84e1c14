"""`train` with a preset of pre-training: from DATA to RUN/student."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from noisegen.atomic import write_text
from noisegen.bitext_files import find_bitext
from noisegen.encoders.ragged import Ragged
from noisegen.errors import SourceError, UsageError
from noisegen.pretraining.masked_chunks import MaskedChunks
from noisegen.pretraining.masked_model import MaskedModel, open_model
from noisegen.pretraining.masking import NO_TARGET, Masked, Masker
from noisegen.pretraining.model_card import model_card
from noisegen.pretraining.objective import Objective
from noisegen.pretraining.pretraining import Pretraining
from noisegen.pretraining.settings import PretrainSettings
from noisegen.pretraining.validation import Validation
from noisegen.training.checkpoint import load_weights, writing_weights
from noisegen.training.chunks import VALIDATION_EPOCH, Chunks, NoiseSource
from noisegen.training.claim import claim, removed_if_not_begun
from noisegen.training.computation import Computation
from noisegen.training.estimate import Estimate, flop_per_token, weight_bytes
from noisegen.training.log import Sink, run_sinks
from noisegen.training.pair_data import PairData, Reading, prepare_data, read_once
from noisegen.training.run import Tell
from noisegen.training.setting_values import load_settings
from noisegen.training.workers import Workers, join_workers
from noisegen.version import __version__


def train(
    data: Sequence[str],
    out: str | Path,
    *,
    preset: str = "rcp",
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
    """Pre-train a masked-language model on noisy and clean pairs; return its validation figures.

    `data`: as for distillation. `values` are settings over those of the preset and the file
    (`PretrainSettings`). Writes RUN/student, checkpoints, log.jsonl, config.yaml and metrics.json.
    With `dry_run` nothing is trained: the estimate is returned.
    Raises UsageError, SourceError, OutputError, and NoisegenError where training cannot go on.
    """
    if resume and force:
        raise UsageError("--force removes the run that is there, --resume goes on: choose one")
    settings, out = load_settings(PretrainSettings, preset, config, values), Path(out)
    workers = join_workers(device)
    said = {"version": __version__, "data": [str(one) for one in data], **settings.to_dict()}
    model = _model(settings, workers, tell)
    if dry_run:
        return _estimate(data, settings, model)
    if workers.leads or resume:
        claim(out, said, resume=resume, force=force)
    workers.wait()
    with removed_if_not_begun(out, ours=workers.leads and not resume):
        pairs = make_pairs(out / "data", data, settings, resume, workers)
        tell(pairs.summary)
        trainer = make_trainer(settings, model, pairs, out, workers, said)
    if resume:
        trainer.resume()
    done, leads = trainer.progress.updates, workers.leads
    trainer.report = run_sinks(out, done, sinks, leads=leads, boards=boards)
    trainer.run()
    return _finish(trainer, pairs, out, said) if workers.leads else {}


def _model(settings: PretrainSettings, workers: Workers, tell: Tell) -> MaskedModel:
    """Open the model and refuse what cannot be trained, before a run is removed for it."""
    if settings.batch_pairs < workers.world:
        raise UsageError(f"batch_pairs {settings.batch_pairs} is less than the processes")
    NoiseSource(settings.noise)
    model = open_model(settings).to(workers.device)
    Computation(settings, model.encoder, workers.device)
    if model.is_new:
        tell(f"{settings.student} has no head that fills masks: a new one, tied to its embeddings")
    return model


def make_pairs(
    folder: Path, data: Sequence[str], settings: PretrainSettings, resume: bool, workers: Workers
) -> PairData:
    """Read DATA into the folder, if it is not there; raises SourceError for too little of it."""
    reading = Reading(not NoiseSource(settings.noise).is_stored, settings.lang)
    sources, held_out = [str(one) for one in data], settings.validation_rows
    if bitext := [source for source in sources if find_bitext(source)]:
        raise SourceError(
            f"{bitext[0]} is bitext: pre-training needs pairs of noisy and clean text, in columns "
            "of these names"
        )
    share = settings.validation_share
    prepare = partial(prepare_data, folder, sources, held_out, settings.seed, reading, share=share)
    pairs = read_once(folder, prepare, workers, resume=resume)
    first = pairs.owner[pairs.training[0]]
    if Objective.of(settings).contrast and (pairs.owner[pairs.training] == first).all():
        raise SourceError(
            "all pairs to train on have the same clean text, so nothing can be told apart: "
            "give more data, or --objective mlm"
        )
    return pairs


def _chunks(
    settings: PretrainSettings, pairs: PairData, model: MaskedModel, workers: Workers
) -> MaskedChunks:
    tokenizer = model.encoder.tokenizer
    chunks = Chunks(
        pairs, NoiseSource(settings.noise, settings.seed, settings.lang), tokenizer,
        budget=settings.batch_tokens, seed=settings.seed, world=workers.world, both_sides=True,
    )  # fmt: skip
    masker = Masker.of(tokenizer, settings.mask_rate, settings.seed)
    return MaskedChunks(chunks, masker, settings.batch_pairs)


def make_trainer(
    settings: PretrainSettings, model: MaskedModel, pairs: PairData, out: Path, workers: Workers,
    said: dict[str, Any],
) -> Pretraining:  # fmt: skip
    """Return the run at its start; `said` is what its config.yaml says."""
    chunks = _chunks(settings, pairs, model, workers)
    rows = pairs.validation[: settings.validation_rows]
    masked = chunks.texts(rows, VALIDATION_EPOCH)
    if not masked.of_sides().any():
        raise SourceError(
            f"no token of the {len(rows):,} pairs held out is masked, so nothing can be learnt: "
            f"give more data, in a script of the model, or a mask_rate above {settings.mask_rate}"
        )
    owners = np.tile(pairs.owner[rows].astype(np.int64), 2)
    validation = Validation(
        _plain(masked), masked, owners, Objective.of(settings),
        Computation(settings, model.encoder, workers.device), settings.batch_tokens,
        settings.batch_pairs,
    )  # fmt: skip
    digest = sha256(json.dumps([said, len(pairs.noisy), model.encoder.digest]).encode())
    return Pretraining(
        settings, model, chunks, validation, out, workers=workers, config=digest.hexdigest()
    )


def _plain(masked: Masked) -> Masked:
    """Return the same texts without masks."""
    there, put = masked.targets, masked.ids
    ids = np.where(there.values == NO_TARGET, put.values, there.values).astype(np.int32)
    none = np.full(len(ids), NO_TARGET, np.int32)
    return Masked(Ragged(ids, put.offsets), Ragged(none, put.offsets))


def _estimate(
    data: Sequence[str], settings: PretrainSettings, model: MaskedModel
) -> dict[str, Any]:
    """Measure the first chunk of the data and count the model's weights."""
    with TemporaryDirectory() as folder:
        pairs = make_pairs(Path(folder), data, settings, False, Workers())
        chunk = _chunks(settings, pairs, model, Workers()).make(0, 0)
        assert chunk is not None  # there are pairs to train on
        lengths = chunk.texts.ids.lengths
        tokens = int(lengths.sum())
        batches = [rows for step in chunk.steps for rows in step]
        computed = sum(len(rows) * int(lengths[rows].max()) for rows in batches)
        every = [weight.numel() for weight in model.parameters()]
        trained = [weight.numel() for weight in model.parameters() if weight.requires_grad]
        updates = len(chunk.steps)
        return Estimate(
            sum(every), sum(trained), len(pairs.training), tokens / chunk.pairs,
            chunk.pairs / updates, 1 - tokens / computed,
            round(len(pairs.training) / chunk.pairs * updates),
            flop_per_token(model.encoder, tokens / len(lengths)), weight_bytes(every, trained),
        ).to_dict()  # fmt: skip


def _finish(
    trainer: Pretraining, pairs: PairData, out: Path, said: dict[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """Write the best weights as a folder, and what they reached."""
    model = trainer.student
    load_weights(model, out / "checkpoints" / "best.safetensors")
    found = {
        "validation": trainer.validation.measure(model), "updates": trainer.progress.updates,
        "pairs": trainer.progress.pairs, "seconds": round(trainer.progress.seconds, 1),
        "parameters": sum(weight.numel() for weight in model.parameters()), **pairs.losses,
    }  # fmt: skip
    with torch.no_grad(), writing_weights(out / "student"):
        model.cpu().save(out / "student")
    write_text(out / "student" / "README.md", model_card(said, found))
    write_text(out / "metrics.json", json.dumps(found, indent=1) + "\n")
    return found
