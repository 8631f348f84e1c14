"""Pre-training (RCP): L = contrast(noisy, clean) + MLM(noisy) + MLM(clean) on pairs.

The loss is a function of the vectors of all texts of an update and of the states under all masks.
So batches go forward one by one; the loss and its gradient in vectors and states are taken of all
together; then that gradient goes back batch by batch (gradient caching: Gao and others, 2021,
section 3.2). What backward needs is kept as far as memory allows, and computed again beyond that.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from noisegen.data.bitext import find_bitext
from noisegen.encoders.tokens import Rows, by_length
from noisegen.errors import SourceError, UsageError
from noisegen.noise.rng import row_key, stream_key
from noisegen.runs.progress import Show
from noisegen.training.batches import VALIDATION_EPOCH, Chunks, NoiseSource, Position
from noisegen.training.computation import Computation, Workers, estimate
from noisegen.training.distil import distance, missed
from noisegen.training.losses import Sides
from noisegen.training.masking import (
    Masked,
    MaskedChunk,
    MaskedChunks,
    MaskedModel,
    Masker,
    open_model,
)
from noisegen.training.objectives import WeightedSum, objectives
from noisegen.training.pairs import Reading
from noisegen.training.settings import PretrainSettings, Tell
from noisegen.training.students import LANGUAGE_MODEL_CARD, PairMethod
from noisegen.training.trainer import Trainer

SIDES = ("noisy", "clean")
_SCORES_MAX = 2**27  # that are computed together: half a gigabyte in float32


def contrast_of(objective: str) -> WeightedSum | None:
    """Return the objectives beside `mlm`, None where there is none; raises UsageError."""
    first, plus, others = objective.partition("+")
    if first.strip() != "mlm" or (plus and not others.strip()):
        raise UsageError(
            f"objective {objective!r}: pre-training learns from masks; write mlm, or mlm+NAME with "
            f"one of {', '.join(objectives('pretrain'))}"
        )
    return WeightedSum.parse(others, "pretrain") if others else None


@dataclass
class Pass:
    """A batch on its way: its texts, and what came out of them.

    `rows` are the places of its texts among those of the update. `vectors` (texts, width) and
    `states` (masks, hidden) are float32, and have their graph if `kept`.
    """

    number: int
    texts: Masked
    rows: Tensor
    targets: Tensor
    clean: Tensor  # for each mask: whether it is on the clean side
    weights: Tensor  # for each mask: 1 / masks of its side in the update
    kept: bool = field(default=False, init=False)
    vectors: Tensor = field(init=False)
    states: Tensor = field(init=False)


class Pretraining(PairMethod[MaskedChunk]):
    """A masked-language model that fills masks on both sides of pairs, and contrasts the sides."""

    card = LANGUAGE_MODEL_CARD
    settings: PretrainSettings
    network: MaskedModel
    computation: Computation
    batches: MaskedChunks
    held_out: Masked  # noisy sides before clean ones, masked once for good
    owners: npt.NDArray[np.int64]  # of the clean texts of all of these

    def __init__(self, settings: PretrainSettings, workers: Workers, tell: Tell) -> None:
        self.settings, self.workers = settings, workers
        self.contrast = contrast_of(settings.objective)
        if settings.batch_pairs < workers.world:
            raise UsageError(f"batch_pairs {settings.batch_pairs} is less than the processes")
        self.noise = NoiseSource(settings.noise, settings.seed, settings.lang)
        self.network = open_model(settings).to(workers.device)
        self.computation = Computation(settings, self.network.encoder, workers.device)
        if self.network.is_new:
            tell(f"{settings.student} has no head that fills masks: a new one, tied to its "
                 "embeddings")  # fmt: skip

    @property
    def digest(self) -> str:
        """The encoder's, as it is at the start."""
        return self.network.encoder.digest

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read pairs; raises SourceError for too little of them, and for bitext."""
        settings, tokenizer = self.settings, self.network.encoder.tokenizer
        if bitext := next((source for source in sources if find_bitext(source)), None):
            raise SourceError(
                f"{bitext} is bitext: pre-training needs pairs of noisy and clean text, in columns "
                "of these names"
            )
        reading = Reading(
            not self.noise.is_stored, settings.lang, held_out=settings.validation_rows,
            seed=settings.seed, share=settings.validation_share,
        )  # fmt: skip
        pairs = self.read_pairs(sources, folder, reading, resume=resume)
        owners = pairs.owner[pairs.training]
        if self.contrast and (owners == owners[0]).all():
            raise SourceError(
                "all pairs to train on have the same clean text, so nothing can be told apart: "
                "give more data, or --objective mlm"
            )
        chunks = Chunks(
            pairs, self.noise, tokenizer, budget=settings.batch_tokens, seed=settings.seed,
            world=self.workers.world, both_sides=True,
        )  # fmt: skip
        masker = Masker.of(tokenizer, settings.mask_rate, settings.seed)
        self.batches = MaskedChunks(chunks, masker, settings.batch_pairs)
        return pairs.summary

    def estimate(self) -> dict[str, Any]:
        """Measure the first chunk of the data and count the model's weights."""
        chunk = self.batches.first()
        ids = [chunk.texts.ids]
        return estimate(
            self.network, self.network.encoder, self.rows, chunk.pairs, ids, chunk.steps
        )

    def prepare(self, folder: Path, progress: Show) -> None:
        """Mask the held-out pairs once; raises SourceError where none of their tokens is masked."""
        rows = self.pairs.validation[: self.settings.validation_rows]
        masked = self.batches.texts(rows, VALIDATION_EPOCH)
        if not masked.of_sides().any():
            raise SourceError(
                f"no token of the {len(rows):,} pairs held out is masked, so nothing can be "
                "learnt: give more data, in a script of the model, or a mask_rate above "
                f"{self.settings.mask_rate}"
            )
        self.held_out = masked
        self.owners = np.tile(self.pairs.owner[rows].astype(np.int64), 2)

    def chunks(self, start: Position) -> Iterator[tuple[Position, MaskedChunk]]:
        """Yield masked token ids in batches."""
        return self.batches.from_position(start)

    def backward(
        self, trainer: Trainer[MaskedChunk], chunk: MaskedChunk, batches: list[Rows]
    ) -> int:
        """Add up the gradient of the batches that are this process's part."""
        every = np.sort(np.concatenate(batches))  # the noisy sides, then the clean ones
        masks = np.array([chunk.masks[side].sum() for side in np.split(every, 2)])
        mine = [
            self._begin(chunk, number, batches[number], every, masks)
            for number in range(self.workers.rank, len(batches), self.workers.world)
        ]
        # Without contrast no batch depends on another one.
        for some in [mine] if self.contrast else [[batch] for batch in mine]:
            self._forward(trainer, some)
            into_vectors = self._contrast(trainer, some, chunk.owners[every])
            into_states = self._fill_masks(trainer, some, masks > 0)
            for batch, *gradients in zip(some, into_vectors, into_states, strict=True):
                if not batch.kept:
                    with self.computation.precision():
                        self._encode(batch, trainer.progress.updates)
                if batch.vectors.requires_grad:  # where the whole encoder is frozen they have none
                    torch.autograd.backward([batch.vectors, batch.states], gradients)
                del batch.vectors, batch.states
        return len(every) // 2

    def _begin(
        self, chunk: MaskedChunk, number: int, texts: Rows, every: Rows, masks: Rows
    ) -> Pass:
        device, found = self.workers.device, chunk.texts.take(texts)
        clean = np.repeat(texts >= chunk.pairs, chunk.masks[texts])
        weights = (1 / np.maximum(masks, 1))[clean.astype(np.int64)]
        targets = found.targets.values[found.places].astype(np.int64)
        columns = (np.searchsorted(every, texts), targets, clean, weights.astype(np.float32))
        rows, *of_masks = (torch.from_numpy(column).to(device) for column in columns)
        return Pass(number, found, rows, *of_masks)

    def _forward(self, trainer: Trainer[MaskedChunk], batches: Sequence[Pass]) -> None:
        """Compute vectors and states; keep graphs as long as there is room."""
        budget = self.settings.graph_gb * 1e9 if len(batches) > 1 else float("inf")
        graphs, updates = KeptGraphs(budget, self.network.parameters()), trainer.progress.updates
        with self.computation.precision():
            for batch in batches:
                batch.kept = graphs.has_room
                if batch.kept:
                    with graphs.counted():
                        self._encode(batch, updates, trainer)
                else:
                    with torch.no_grad():
                        self._encode(batch, updates, trainer)

    def _encode(
        self, batch: Pass, updates: int, trainer: Trainer[MaskedChunk] | None = None
    ) -> None:
        """Compute vectors and states, with the same dropout each time; count tokens for a log."""
        ids, settings = batch.texts.ids, self.settings
        if settings.dropout:
            stream = stream_key(settings.seed, "dropout", updates)
            torch.manual_seed(row_key(stream, batch.number))
        tokens = self.computation.batch(ids, trainer.window if trainer else None)
        states = self.computation.states(tokens)
        batch.vectors = self.network.encoder.head(states, tokens)
        batch.states = batch.texts.under_masks(states, tokens)

    def _contrast(
        self, trainer: Trainer[MaskedChunk], batches: Sequence[Pass], owners: npt.NDArray[np.int64]
    ) -> list[Tensor]:
        """Return the gradient of the contrast of all processes' texts in these vectors.

        `owners` are those of all texts of the update, as every process knows them.
        """
        if self.contrast is None:
            return [torch.zeros_like(batch.vectors) for batch in batches]
        device, world = self.workers.device, self.workers.world
        vectors = torch.zeros(len(owners), self.network.encoder.width, device=device)
        for batch in batches:
            vectors[batch.rows] = batch.vectors.detach()
        vectors = self.workers.gather(vectors).requires_grad_()
        memory, texts = self.network.memory, torch.from_numpy(owners).to(device)
        loss, parts = self.contrast(memory.beside(vectors, texts), self.settings.temperature)
        (gradient,) = torch.autograd.grad(loss, vectors)
        memory.add(vectors, texts)
        trainer.count({"loss": loss, **{f"loss_{k}": v for k, v in parts.items()}}, 1 / world)
        return [gradient[batch.rows] for batch in batches]

    def _fill_masks(
        self, trainer: Trainer[MaskedChunk], batches: Sequence[Pass], masked: npt.NDArray[np.bool_]
    ) -> list[Tensor]:
        """Add up the gradient of the head that fills masks; return that in the states.

        `masked` tells which of the sides have masks in the update: only these have a loss.
        """
        states = torch.cat([batch.states.detach() for batch in batches])
        targets, clean, weights = (
            torch.cat([getattr(batch, name) for batch in batches])
            for name in ("targets", "clean", "weights")
        )
        gradient = torch.zeros_like(states)
        for piece in pieces(self.network, len(states)):
            some = states[piece].requires_grad_()
            with self.computation.precision():
                losses = token_losses(self.network, some, targets[piece]) * weights[piece]
            losses.sum().backward()  # type: ignore[no-untyped-call]
            assert some.grad is not None
            gradient[piece] = some.grad
            parts = by_side(losses.detach(), clean[piece], masked)
            trainer.count({"loss": sum(parts.values(), torch.zeros(())), **parts})
        return list(torch.split(gradient, [len(batch.targets) for batch in batches]))

    @torch.inference_mode()
    def validate(self) -> dict[str, float]:
        """Return the loss and its parts under fixed masks, and two figures without masks.

        A side without a mask has no part in the loss.
        `distance`: mean 1 - cosine of noisy and clean side. `missed`: share of noisy sides with
        another pair's clean side nearer than their own.
        """
        training = self.network.training
        self.network.eval()
        losses, vectors = self._mask_losses()
        plain = self._vectors_and_states(self.held_out.without_masks())[0].cpu().numpy()
        self.network.train(training)
        parts = {name: float(value) for name, value in losses.items()}
        loss = sum(parts.values())
        if self.contrast:
            found, contrasts = self._held_out_contrast(self.contrast, vectors)
            loss, parts = loss + found, {**parts, **contrasts}
        noisy, clean = np.split(plain, 2)
        figures = {"distance": distance(noisy, clean), "missed": missed(noisy, clean)}
        return {"loss": loss, **parts, **figures}

    def _mask_losses(self) -> tuple[dict[str, Tensor], Tensor]:
        """Return the mean loss of the masks of each side, and the vectors of all texts."""
        vectors, states = self._vectors_and_states(self.held_out)
        counts, masks = self.held_out.counts(), self.held_out.of_sides()
        clean = torch.from_numpy(np.repeat(np.arange(len(counts)) >= len(counts) // 2, counts))
        targets = torch.from_numpy(
            self.held_out.targets.values[self.held_out.places].astype(np.int64)
        )
        with self.computation.precision():
            found = [
                token_losses(self.network, states[piece], targets[piece].to(states.device)).cpu()
                for piece in pieces(self.network, len(states))
            ]
        sums = by_side(torch.cat(found), clean, masks > 0)
        means = zip(sums.items(), masks[masks > 0].tolist(), strict=True)
        return {name: total / count for (name, total), count in means}, vectors

    def _vectors_and_states(self, texts: Masked) -> tuple[Tensor, Tensor]:
        """Return the vectors of all texts, and the states at all targets, in their order."""
        encoder, device = self.network.encoder, self.workers.device
        counts = texts.counts()
        firsts = np.concatenate([[0], np.cumsum(counts)])
        vectors = torch.zeros(len(texts.ids), encoder.width, device=device)
        states = torch.zeros(int(firsts[-1]), encoder.width, device=device)
        for rows in by_length(texts.ids.lengths, self.settings.batch_tokens):
            some = texts.take(rows)
            batch = self.computation.batch(some.ids)
            with self.computation.precision():
                found = self.computation.states(batch)
            vectors[torch.from_numpy(rows)] = encoder.head(found, batch)
            at = [np.arange(firsts[row], firsts[row + 1]) for row in rows]
            states[torch.from_numpy(np.concatenate(at))] = some.under_masks(found, batch)
        return vectors, states

    def _held_out_contrast(
        self, contrast: WeightedSum, vectors: Tensor
    ) -> tuple[float, dict[str, float]]:  # fmt: skip
        """Return the mean contrast of batches as large as those of training, and its parts."""
        pairs, owners = len(vectors) // 2, torch.from_numpy(self.owners).to(vectors.device)
        total, sums = 0.0, dict[str, float]()
        count = -(-pairs // self.settings.batch_pairs)
        for some in torch.arange(pairs, device=vectors.device).tensor_split(count):
            both = torch.cat([some, some + pairs])
            loss, parts = contrast(Sides(vectors[both], owners[both]), self.settings.temperature)
            total += float(loss) * len(some)
            for name, value in parts.items():
                sums[f"loss_{name}"] = sums.get(f"loss_{name}", 0.0) + float(value) * len(some)
        return total / pairs, {name: value / pairs for name, value in sums.items()}

    def save(self, folder: Path) -> None:
        """Write the model with the head that fills masks."""
        self.network.cpu().save(folder)


def token_losses(model: MaskedModel, states: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy under every mask, from its state and the token that was there."""
    return cross_entropy(model.scores(states).float(), targets, reduction="none")


def pieces(model: MaskedModel, masks: int) -> Iterator[slice]:
    """Cut so many masks into pieces whose scores fit into memory; no masks are one piece."""
    size = max(1, _SCORES_MAX // len(model.embeddings))
    for first in range(0, max(1, masks), size):
        yield slice(first, first + size)


def by_side(losses: Tensor, clean: Tensor, masked: npt.NDArray[np.bool_]) -> dict[str, Tensor]:
    """Return the sums over the masks of each side; `clean` tells which side a mask is on.

    A side that is not `masked` at all has no sum: there was nothing to predict.
    """
    return {
        f"loss_mlm_{name}": losses[clean == at].sum()
        for at, name in enumerate(SIDES) if masked[at]
    }  # fmt: skip


class KeptGraphs:
    """The bytes that autograd keeps of what was computed under `counted`, weights left out.

    One graph is always kept, unless the budget is 0; after one that has no room, none is.
    """

    def __init__(self, budget: float, weights: Iterable[Tensor]) -> None:
        self.budget, self.bytes, self._largest = budget, 0, 0
        self._known = {weight.untyped_storage().data_ptr() for weight in weights}

    @property
    def has_room(self) -> bool:
        """Whether the next graph is to be kept: whether one as large as any before fits."""
        return self.budget > 0 and self.bytes + self._largest <= self.budget

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count every stretch of memory that is kept, once; all graphs are there until the end."""
        before = self.bytes

        def keep(tensor: Tensor) -> Tensor:
            memory = tensor.untyped_storage()
            if memory.data_ptr() not in self._known:
                self._known.add(memory.data_ptr())
                self.bytes += memory.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            yield
        self._largest = max(self._largest, self.bytes - before)
