"""Base class of distillation and pre-training: both train on pairs of noisy and clean text.

It reads the pairs, cuts them into chunks, computes the sizes that a dry run prints, and writes the
student with a model card.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import yaml

from noisegen.encoders.character_cnn import word_ids_of
from noisegen.encoders.encoder import Ragged, Vectors
from noisegen.encoders.tokens import Rows, chunks_of
from noisegen.evaluation.xsim_search import xsim
from noisegen.runs.atomic import write_text
from noisegen.training.checkpoint import writing_weights
from noisegen.training.computation import Computation, flop_per_token
from noisegen.training.model_card import ImprovedPair, front_matter, rendered
from noisegen.training.pairs import PIECE_ROWS, NoiseSource, PairData, Reading, read_pairs
from noisegen.training.settings import DistilSettings, PretrainSettings
from noisegen.training.summary import tables
from noisegen.training.trainer import Chunk, Method, Rehearsal, Trainer

# Bytes per trained float32 weight: weight, gradient and two moments of Adam.
_TRAINED_BYTES = 16
_FROZEN_BYTES = 4
_REHEARSED = 50  # maximum held-out pairs that a dry run validates on


@dataclass(frozen=True)
class PairChunk(Chunk):
    """Chunk with the token ids of pairs: of their noisy sides, or of noisy and clean sides.

    `sides` has one or two columns of token ids, with a row per pair. The batches in `steps` are
    arrays of row indices. `owner[i]` is the index of the clean text of row i.
    """

    sides: tuple[Ragged, ...]
    owner: npt.NDArray[np.integer]

    @property
    def pairs(self) -> int:
        """Number of pairs in the chunk."""
        return len(self.owner)


P = TypeVar("P", bound=PairChunk)


class PairMethod(Method[P]):
    """A method whose student learns from pairs of noisy and clean text, and gets a model card."""

    card: ClassVar[str]  # file name of the model card's template
    task: ClassVar[str]  # the student's task, as the Hugging Face Hub calls it
    settings: DistilSettings | PretrainSettings
    pairs: PairData
    noise: NoiseSource
    computation: Computation

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read the pairs of DATA, or its clean text if all noise comes from recipes.

        Return a summary. Raises SourceError for unusable DATA, and UsageError if a recipe does not
        support a language of the data.
        """
        settings = self.settings
        reading = Reading(
            clean_only=not self.noise.is_stored,
            lang=settings.lang,
            held_out=settings.validation_rows,
            seed=settings.seed,
            text_column=settings.text_column,
        )
        if isinstance(settings, PretrainSettings):
            reading = replace(reading, share=settings.validation_share)
        else:
            reading = replace(reading, most=settings.bitext_rows)
        self.pairs = read_pairs(folder, sources, reading, self.workers, resume=resume)
        self.pairs_read, self.rows = len(self.pairs.noisy), len(self.pairs.training)
        self.noise.check(self.pairs)
        return self.pairs.summary

    @property
    def held_rows(self) -> Rows:
        """Indices of the held-out pairs of DATA that the network is validated on."""
        return self.pairs.validation[: self.settings.validation_rows]

    @abstractmethod
    def hold_out(self, rows: Rows) -> None:
        """Add noise to the pairs with the indices `rows`, and keep them for `validate`."""

    def use_stand_ins(self) -> float:
        """Replace slow results, such as the teacher's vectors, by random ones for a dry run.

        Return the estimated seconds that a run takes for the real results.
        """
        return 0.0

    def rehearse(self) -> Rehearsal:
        """Prepare for a dry run: with few held-out pairs, and without the teacher's vectors."""
        seconds, rows = self.use_stand_ins(), self.held_rows[:_REHEARSED]
        self.hold_out(rows)
        return Rehearsal(seconds, len(self.held_rows) / len(rows))

    def chunk(self, epoch: int, number: int) -> P | None:
        """Return the chunk with index `number` of an epoch; None after the last chunk."""
        chunks = chunks_of(self.pairs.training, self.settings.seed, epoch)
        return self.batched(chunks[number], epoch, number) if number < len(chunks) else None

    @abstractmethod
    def batched(self, rows: Rows, epoch: int, number: int) -> P:
        """Return the pairs with the indices `rows` in batches, as chunk `number` of an epoch.

        All processes get the same number of batches in each update.
        """

    def tokens(self, rows: Rows, epoch: int, *, both_sides: bool) -> tuple[Ragged, ...]:
        """Return token ids of the pairs `rows`: noisy texts only, or noisy and clean texts.

        Each process makes the token ids of a part of the pairs; then all processes have them all.
        The ids of whole words are a process's own, so processes exchange the words.
        """
        tokenizer, pairs = self.computation.student.tokenizer, self.pairs
        own = np.array_split(rows, self.workers.world)[self.workers.rank]
        noisy, clean = [], []
        for first in range(0, len(own), PIECE_ROWS):
            piece = own[first : first + PIECE_ROWS]
            noisy.append(tokenizer.tokenize(self.noise.noisy(pairs, piece, epoch)))
            if both_sides:
                texts = pairs.clean.take(pairs.owner[piece]).to_pylist()
                clean.append(tokenizer.tokenize(texts))
        sides = [Ragged.joined(side) for side in ([noisy, clean] if both_sides else [noisy])]
        table = word_ids_of(tokenizer) if self.workers.world > 1 else None
        if table is None:
            parts = self.workers.gathered(sides)
        else:
            sent = self.workers.gathered([table.packed(side) for side in sides])
            parts = [[table.unpacked(*side) for side in part] for part in sent]
        return tuple(Ragged.joined(column) for column in zip(*parts, strict=True))

    def estimate(self, chunk: P) -> dict[str, Any]:
        """Return the sizes that a dry run prints: numbers of weights, pairs, tokens and updates.

        `trained` counts the weights that are not frozen. `flop_per_token` covers forward and
        backward pass; `weight_bytes` includes gradients and the moments of Adam.
        """
        tokens = sum(len(side.values) for side in chunk.sides)
        computed = 0  # tokens, padding included
        for step in chunk.steps:
            for batch in step:
                computed += sum(len(batch) * int(side.lengths[batch].max()) for side in chunk.sides)
        weights = list(self.network.parameters())
        trained = sum(weight.numel() for weight in weights if weight.requires_grad)
        frozen = sum(weight.numel() for weight in weights if not weight.requires_grad)
        length = tokens / len(chunk.sides[0])
        return {
            "parameters": trained + frozen,
            "trained": trained,
            "pairs": self.rows,
            "tokens_per_pair": tokens / chunk.pairs,
            "pairs_per_update": chunk.pairs / len(chunk.steps),
            "padding": 1 - tokens / computed,
            "updates_per_epoch": round(self.rows / chunk.pairs * len(chunk.steps)),
            "flop_per_token": flop_per_token(self.computation.student, length),
            "weight_bytes": trained * _TRAINED_BYTES + frozen * _FROZEN_BYTES,
        }

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the trained student into a folder."""

    def export(self, trainer: Trainer[P]) -> dict[str, Any]:
        """Write RUN/student with a model card; return the content of metrics.json."""
        folder = trainer.out / "student"
        with torch.no_grad(), writing_weights(folder):
            self.save(folder)
        if self.changes_best_weights:
            validation = self.validate()
        else:
            validation = trainer.best_validation.figures
        metrics = {
            "validation": validation,
            **trainer.reached,
            "parameters": sum(weight.numel() for weight in self.network.parameters()),
            "dropped": dict(self.pairs.dropped),
            "cut": self.pairs.cut,
        }
        write_text(folder / "README.md", self._model_card(trainer.recorded, metrics))
        return metrics

    def improved_pair(self) -> ImprovedPair | None:
        """Return a held-out pair that training improved; None if the method knows none."""
        return None

    def _model_card(self, recorded: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
        """Return the model card, from the contents of config.yaml and metrics.json."""
        values = {"select_by": None, "recipe": "", **recorded, **metrics}
        values["settings"] = yaml.safe_dump(dict(recorded), sort_keys=False, allow_unicode=True)
        values["tables"] = tables(metrics)
        langs = {self.settings.lang, *self.pairs.langs}
        values["languages"] = ", ".join(sorted(langs))
        values["front_matter"] = front_matter(recorded, recorded["data"], langs, self.task)
        values["improved"] = self.improved_pair() if metrics["best_step"] else None
        values["usage"] = self.computation.student.usage
        values["prepare"] = getattr(self.computation.student.tokenizer, "preparation", "")
        # "validation" is a list of sources in `recorded`, but figures in `metrics` and `values`.
        values["validation_pairs"] = recorded.get("validation")
        return rendered(self.card, values)


def xsim_error(noisy: Vectors, clean: Vectors, owners: npt.NDArray[np.integer]) -> float:
    """Return the xSIM error: the percentage of noisy rows matched with a wrong clean row.

    Row i of both arrays belongs to pair i. A clean row is right if it has the same number in
    `owners`, which identifies clean texts, as the noisy row.
    """
    return xsim(noisy, clean, texts=list(map(str, owners.tolist()))).error_rate
