"""Disentangling (DREAM, MEAT, ORACLE): heads for meaning and language on frozen vectors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn.functional import linear

from noisegen.data.columns import by_reason
from noisegen.encoders.encoder import Vectors, open_encoder
from noisegen.encoders.tokens import Rows, generator
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.xsim_search import retrieval_accuracy
from noisegen.runs.progress import Show
from noisegen.text.resources import cache_folder
from noisegen.training.batches import Position, made_ahead
from noisegen.training.checkpoint import writing_weights
from noisegen.training.computation import Workers
from noisegen.training.heads import (
    POINTS_MAX,
    PREFIX,
    SIDES,
    TEXTS_MIN,
    HeadConfig,
    Heads,
    applied,
    new_linear,
    save_heads,
    save_students,
    write_picture,
)
from noisegen.training.losses import Disentangled, PairBatch, discrimination
from noisegen.training.objectives import WeightedSum
from noisegen.training.pairs import LabelledPairs, prepare_labelled
from noisegen.training.settings import DisentangleSettings, Tell
from noisegen.training.stores import TeacherVectors, teacher_vectors
from noisegen.training.trainer import Method, Trainer, adam

CHUNK_BATCHES = 64  # whose vectors are in memory together
PAIRS_MAX = 1_000  # of two labels that are looked up, as in the ORACLE paper
_ROWS = 8_192  # that are measured at a time
_SPLIT = 2**32  # the draw that splits training and validation, apart from all epochs
Figures = dict[str, float]


@dataclass(frozen=True)
class Standard:
    """Frozen vectors to mean 0 and, over all entries, mean square 1: (e - centre) * scale.

    Where all vectors share a direction, as most encoders' do, or are short beside the start of a
    bias, language vectors would rather become one constant than tell languages apart.
    """

    centre: Vectors
    scale: float = 1.0

    @classmethod
    def of(cls, vectors: TeacherVectors) -> "Standard":
        """Measure all of these vectors."""
        total, squares = np.zeros(vectors.width), 0.0
        for first in range(0, len(vectors), _ROWS):
            rows = np.arange(first, min(first + _ROWS, len(vectors)))
            some = vectors.take(rows).astype(np.float64)
            total += some.sum(0)
            squares += float(np.square(some).sum())
        centre = total / len(vectors)
        spread = squares / len(vectors) - float(centre @ centre)
        scale = (vectors.width / spread) ** 0.5 if spread > 0 else 1.0
        return cls(centre.astype(np.float32), scale)


@dataclass(frozen=True)
class VectorChunk:
    """Pairs of frozen vectors on the device; the batches of `steps` are slices of them."""

    pairs: PairBatch
    steps: list[list[Rows]]


@dataclass(frozen=True)
class PairVectors:
    """Pairs with the frozen vectors of their texts: in batches, and to be looked up."""

    pairs: LabelledPairs
    vectors: TeacherVectors
    device: torch.device
    standard: Standard

    def chunk(
        self, rows: Rows, size: int, epoch: int, number: int, seed: int
    ) -> VectorChunk | None:
        """Return chunk `number` of an epoch in its order; None where it has no more.

        Batches are full and left-over pairs are skipped; fewer pairs than `size` are one batch.
        """
        size = min(size, len(rows))
        order = generator(seed, epoch).permutation(rows)[: len(rows) // size * size]
        first = number * CHUNK_BATCHES * size
        some = order[first : first + CHUNK_BATCHES * size]
        if not len(some):
            return None
        steps = [[batch] for batch in np.arange(len(some)).reshape(-1, size)]
        return VectorChunk(self.batch(some), steps)

    def batch(self, rows: Rows) -> PairBatch:
        """Return these pairs, their vectors standardised."""
        pairs, standard = self.pairs, self.standard
        columns = []
        for side in (pairs.source, pairs.target):
            made = self.vectors.take(side[rows])
            made -= standard.centre
            made *= np.float32(standard.scale)
            columns.append(made)
        labels = [side[rows].astype(np.int64) for side in (pairs.source_label, pairs.target_label)]
        return PairBatch(*(torch.from_numpy(part).to(self.device) for part in (*columns, *labels)))

    def by_label(self, rows: Rows) -> dict[str, Vectors]:
        """Return the frozen vectors of the distinct texts of these pairs by their labels."""
        pairs = self.pairs
        texts = np.concatenate([pairs.source[rows], pairs.target[rows]])
        labels = np.concatenate([pairs.source_label[rows], pairs.target_label[rows]])
        return {
            pairs.names[label]: self.vectors.take(np.unique(texts[labels == label]))
            for label in np.unique(labels).tolist()
        }

    def retrieval_sets(self, rows: Rows) -> dict[str, tuple[Vectors, Vectors]]:
        """Return the frozen vectors of both sides of these pairs, a set for each two labels, en-de.

        Of many pairs the first `PAIRS_MAX` of each are taken.
        """
        pairs, sets = self.pairs, {}
        labels = np.stack([pairs.source_label[rows], pairs.target_label[rows]], axis=1)
        for source, target in np.unique(labels, axis=0).tolist():
            some = rows[(labels == (source, target)).all(1)][:PAIRS_MAX]
            both = self.vectors.take(pairs.source[some]), self.vectors.take(pairs.target[some])
            sets[f"{pairs.names[source]}-{pairs.names[target]}"] = both
        return sets


def retrieval(
    sets: Mapping[str, tuple[Vectors, Vectors]], head: Callable[[Vectors], Vectors]
) -> Figures:
    """Return the per cent of pairs that find each other, both ways, after a head.

    Names are `retrieval.forward`, `.backward` (means over the sets), `.forward.en-de` and so on.
    Vectors that tie share what they find: language vectors that are one constant find nothing.
    """
    ways: dict[str, Figures] = {"forward": {}, "backward": {}}
    for name, (source, target) in sets.items():
        for way, found in zip(ways, retrieval_accuracy(head(source), head(target)), strict=True):
            ways[way][f"retrieval.{way}.{name}"] = found
    means = {f"retrieval.{way}": fmean(found.values()) for way, found in ways.items()}
    return {**means, **ways["forward"], **ways["backward"]}


class Disentangling(Method[VectorChunk]):
    """Heads that split the vectors of a frozen encoder into meaning and language, or noise."""

    is_resumable: ClassVar[bool] = False
    optimizer_class: ClassVar[type[torch.optim.Optimizer]] = torch.optim.Adam
    settings: DisentangleSettings
    pairs: LabelledPairs
    vectors: PairVectors

    def __init__(self, settings: DisentangleSettings, workers: Workers, tell: Tell) -> None:
        self.settings, self.workers, self.patience = settings, workers, settings.patience
        self.objective = WeightedSum.parse(settings.objective, "heads")
        if workers.world > 1:
            raise UsageError("heads train in one process: run without torchrun")
        if settings.teacher.startswith(PREFIX):
            raise UsageError(f"teacher {settings.teacher!r} has heads: name the encoder under them")
        self.encoder = open_encoder(settings.teacher)

    @property
    def digest(self) -> str:
        """The frozen encoder's."""
        return self.encoder.digest

    @property
    def validate_every(self) -> int:
        """Updates between validations; an epoch at most."""
        return min(self.settings.validate_every, max(1, self.rows // self.settings.batch_pairs))

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read labelled pairs; raises SourceError for what cannot be told apart."""
        self.pairs = pairs = prepare_labelled(folder, sources, self.settings)
        order: Rows = generator(self.settings.seed, _SPLIT).permutation(len(pairs))
        held_out = max(1, min(self.settings.validation_rows, len(pairs) // 10))
        self.training, self.held_out = order[held_out:], order[:held_out]
        self.pairs_read, self.rows = len(pairs), len(self.training)
        dropped = f"; dropped {by_reason(pairs.dropped)}" if pairs.dropped else ""
        return (
            f"{self.rows:,} pairs to train on, {held_out:,} to choose by; labels "
            f"{', '.join(pairs.names)}{dropped}"
        )

    def estimate(self) -> dict[str, Any]:
        """Return the numbers of weights, pairs and texts."""
        weights = 2 * self.encoder.width * (self.encoder.width + 1)
        return {"weights": weights, "pairs": len(self.pairs), "texts": len(self.pairs.texts)}

    def prepare(self, folder: Path, progress: Show) -> None:
        """Compute the frozen vectors; raises SourceError where there are too few pairs."""
        settings, pairs, device = self.settings, self.pairs, self.workers.device
        if self.rows < 2:
            raise SourceError(f"{len(pairs)} pairs, one is held out: give more data")
        if len(self.held_out) < 2 and self.objective.needs("partners"):
            raise SourceError(
                f"{len(pairs)} pairs, one is held out, and {settings.objective} compares two: give "
                "more data, at least 20 pairs, and validation_rows of at least 2"
            )
        cache = cache_folder() / "vectors"
        vectors = teacher_vectors(self.encoder, pairs.texts, cache, "frozen vectors", progress)
        width, labels = vectors.width, len(pairs.names)
        plain = Standard(np.zeros(width, np.float32))
        standard = Standard.of(vectors) if settings.standardize else plain
        self.vectors = PairVectors(pairs, vectors, device, standard)
        random = torch.Generator().manual_seed(settings.seed)
        self.heads = Heads(width, random).to(device)
        self.classifier = new_linear(width, labels, random).to(device)
        self.discriminator = new_linear(width, labels, random).to(device)
        self.network = nn.ModuleList([self.heads, self.classifier])
        self.adversary = adam(self.optimizer_class, self.discriminator, settings)

    def chunks(self, start: Position) -> Iterator[tuple[Position, VectorChunk]]:
        """Yield pairs of frozen vectors in batches."""
        size, seed = self.settings.batch_pairs, self.settings.seed
        return made_ahead(
            lambda epoch, number: self.vectors.chunk(self.training, size, epoch, number, seed),
            start,
        )

    def backward(
        self, trainer: Trainer[VectorChunk], chunk: VectorChunk, batches: list[Rows]
    ) -> int:
        """Step the discriminator on the meaning vectors as they are; add up the heads' gradient."""
        (rows,) = batches
        place = slice(int(rows[0]), int(rows[-1]) + 1)
        batch = PairBatch(*(column[place] for column in vars(chunk.pairs).values()))
        output = self._output(batch)
        if self.objective.needs("discriminator"):
            own = discrimination(batch, output, self.discriminator)
            own.backward()  # type: ignore[no-untyped-call]
            trainer.step(self.adversary)
            trainer.count({"loss_discriminator": own})
        fixed = (weights.detach() for weights in self.discriminator.parameters())
        still = partial(linear, **dict(zip(("weight", "bias"), fixed, strict=True)))
        loss, parts = self.objective(batch, replace(output, discriminator=still))
        loss.backward()  # type: ignore[no-untyped-call]
        trainer.count({"loss": loss, **{f"loss_{k}": v for k, v in parts.items()}})
        return len(rows)

    def _output(self, batch: PairBatch) -> Disentangled:
        meaning, language = self.heads(torch.cat([batch.source, batch.target]))
        rows = len(batch.source)
        sides = meaning[:rows], language[:rows], meaning[rows:], language[rows:]
        return Disentangled(*sides, self.classifier, self.discriminator)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Return the loss and its parts, means over the pairs held out."""
        sums: Figures = {}
        size = self.settings.batch_pairs
        for first in range(0, len(self.held_out), size):
            rows = self.held_out[first : first + size]
            batch = self.vectors.batch(rows)
            loss, parts = self.objective(batch, self._output(batch))
            for name, value in {"loss": loss, **parts}.items():
                share = len(rows) / len(self.held_out)
                sums[name] = sums.get(name, 0.0) + float(value) * share
        return sums

    def export(
        self, out: Path, recorded: Mapping[str, Any], reached: Mapping[str, Any],
        best: Mapping[str, float],
    ) -> dict[str, Any]:  # fmt: skip
        """Write RUN/heads, complete encoders with a head where they can be, and a picture."""
        pairs, encoder, standard = self.pairs, self.encoder, self.vectors.standard
        heads = self.heads.cpu()
        heads.unfold(torch.from_numpy(standard.centre), standard.scale)
        metrics = {
            "validation": dict(best), **reached, "labels": list(pairs.names),
            "parameters": sum(weight.numel() for weight in heads.parameters()),
            "dropped": dict(pairs.dropped),
        }  # fmt: skip
        texts = self.vectors.by_label(self.held_out[:POINTS_MAX])
        if sum(map(len, texts.values())) >= TEXTS_MIN:
            write_picture(texts, heads, out / "vectors.html")
        sets = self.vectors.retrieval_sets(self.held_out)
        metrics["retrieval"] = {
            "encoder": retrieval(sets, lambda own: own),
            **{side: retrieval(sets, applied(heads, side)) for side in SIDES},
        }
        folder = Path(self.settings.teacher)
        spec = str(folder.resolve()) if folder.is_dir() else self.settings.teacher
        config = HeadConfig(
            spec, encoder.digest, encoder.width, pairs.names, self.settings.objective
        )
        with torch.no_grad(), writing_weights(out / "heads"):
            save_heads(heads, config, out / "heads")
            save_students(heads, encoder, out)
        return metrics
