"""Pre-training (RCP): L = contrast(noisy, clean) + MLM(noisy) + MLM(clean) on pairs.

The loss is a function of the vectors of all texts of an update and of the states under all masks.
So batches go forward one by one; the loss and its gradient in vectors and states are taken of all
together; then that gradient goes back batch by batch (gradient caching: Gao and others, 2021,
section 3.2). What backward needs is kept as far as memory allows, and computed again beyond that.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from noisegen.data.bitext import find_bitext
from noisegen.encoders.encoder import Ragged
from noisegen.encoders.tokens import Rows, by_length, generator, plan
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.similarity import cosine_distance
from noisegen.noising.rng import row_key, stream_key
from noisegen.runs.progress import Show
from noisegen.training.computation import Computation, Workers
from noisegen.training.losses import Sides
from noisegen.training.masking import Masked, MaskedModel, open_model
from noisegen.training.objectives import WeightedSum, objectives
from noisegen.training.pairs import VALIDATION_EPOCH, NoiseSource
from noisegen.training.settings import PretrainSettings, Tell
from noisegen.training.students import PairChunk, PairMethod, xsim_error
from noisegen.training.trainer import UNLIMITED, Clock, Trainer

SIDES = ("noisy", "clean")
_SCORES_MAX = 2**27  # that are computed together: half a gigabyte in float32


@dataclass(frozen=True)
class MaskedChunk(PairChunk):
    """Row i of `texts` is the noisy side of pair i; row `pairs` + i is its clean side.

    `masks` counts those of every row. A step has whole pairs; its batches are rows of like length,
    of either side.
    """

    texts: Masked
    masks: npt.NDArray[np.int64]

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.owner) // 2


class Pretraining(PairMethod[MaskedChunk]):
    """Trains a masked-language model on both sides of pairs, which it also contrasts."""

    card = "language_model.md"
    settings: PretrainSettings
    network: MaskedModel
    held_out: Masked  # noisy sides before clean ones, masked once for good
    owners: npt.NDArray[np.int64]  # of the clean texts of all of these

    def __init__(self, settings: PretrainSettings, workers: Workers, tell: Tell) -> None:
        self.settings, self.workers = settings, workers
        first, plus, others = settings.objective.partition("+")
        if first.strip() != "mlm" or (plus and not others.strip()):
            raise UsageError(
                f"objective {settings.objective!r}: pre-training learns from masks; write mlm, or "
                f"mlm+NAME with one of {', '.join(objectives('pretrain'))}"
            )
        self.contrast = WeightedSum.parse(others, "pretrain") if others else None
        if settings.batch_pairs < workers.world:
            raise UsageError(
                f"batch_pairs {settings.batch_pairs} is less than the number of processes"
            )
        self.noise = NoiseSource(settings.recipe, settings.seed, settings.lang)
        self.network = open_model(settings).to(workers.device)
        self.start = self.network.encoder
        self.computation = Computation(settings, self.network.encoder, workers.device)
        if self.network.is_new:
            tell(f"{settings.student} has no head that fills masks: a new one, tied to its "
                 "embeddings")  # fmt: skip

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read pairs; raises SourceError for too few pairs, and for bitext."""
        if bitext := next((source for source in sources if find_bitext(source)), None):
            raise SourceError(
                f"{bitext} is bitext: pre-training needs pairs of noisy and clean text, in columns "
                "of these names"
            )
        summary = super().read(sources, folder, resume=resume)
        owners = self.pairs.owner[self.pairs.training]
        if self.contrast and (owners == owners[0]).all():
            raise SourceError(
                "all pairs to train on have the same clean text, so there is nothing to contrast: "
                "give more data, or --objective mlm"
            )
        return summary

    def prepare(self, folder: Path, progress: Show, clock: Clock = UNLIMITED) -> None:
        """Mask the held-out pairs once; raises SourceError if none of their tokens is masked."""
        self.hold_out(self.held_rows)

    def hold_out(self, rows: Rows) -> None:
        """Mask pairs once and for all."""
        self.held_out = self.masked(rows, VALIDATION_EPOCH)
        if not self.held_out.counts().any():
            raise SourceError(
                f"no token of the {len(rows):,} pairs held out is masked, so nothing can be "
                "learned: give more data, in a script of the model, or a mask_rate above "
                f"{self.settings.mask_rate}"
            )
        self.owners = np.tile(self.pairs.owner[rows].astype(np.int64), 2)

    def masked(self, rows: Rows, epoch: int) -> Masked:
        """Return the noisy sides of these pairs, then their clean sides, masked."""
        tokens = self.tokens(rows, epoch, both_sides=True)
        sides = [
            self.network.masker.masked(ids, rows, name, epoch)
            for name, ids in zip(SIDES, tokens, strict=True)
        ]
        ids, targets = (side.ids for side in sides), (side.targets for side in sides)
        return Masked(Ragged.joined(ids), Ragged.joined(targets))

    def batched(self, rows: Rows, epoch: int, number: int) -> MaskedChunk:
        """Return masked token ids in batches."""
        settings, seed, world = self.settings, self.settings.seed, self.workers.world
        texts, steps = self.masked(rows, epoch), []
        order = generator(seed, epoch, number, 3).permutation(len(rows))
        for part in np.array_split(order, -(-len(rows) // settings.batch_pairs)):
            both = np.concatenate([part, part + len(rows)])
            lengths = texts.ids.lengths[both][:, None]
            planned = plan(lengths, settings.batch_tokens, seed, epoch, number, world)
            steps.append([both[batch] for step in planned for batch in step])
        owner = np.tile(self.pairs.owner[rows].astype(np.int64), 2)
        return MaskedChunk(steps, (texts.ids,), owner, texts, texts.counts())

    def backward(
        self, trainer: Trainer[MaskedChunk], chunk: MaskedChunk, batches: list[Rows]
    ) -> int:
        """Accumulate the gradient of this process's batches."""
        every = np.sort(np.concatenate(batches))  # the noisy sides, then the clean ones
        masks = np.array([chunk.masks[side].sum() for side in np.split(every, 2)])
        dropout = stream_key(self.settings.seed, "dropout", trainer.progress.updates)
        mine = range(self.workers.rank, len(batches), self.workers.world)
        # Without contrast no batch depends on another one.
        for some in [list(mine)] if self.contrast else [[number] for number in mine]:
            texts = [chunk.texts.take(batches[number]) for number in some]
            keys = [row_key(dropout, number) for number in some]
            budget = self.settings.graph_gb * 1e9 if len(some) > 1 else float("inf")
            graphs = KeptGraphs(budget, self.network.parameters())
            has_graph, outputs = [], []
            for text, key in zip(texts, keys, strict=True):
                has_graph.append(graphs.has_room)
                with graphs.counted() if has_graph[-1] else torch.no_grad():
                    outputs.append(self._encode(text, key, trainer.window))
            rows = np.concatenate([batches[number] for number in some])
            vectors, states = (
                torch.cat([side.detach() for side in sides]) for sides in zip(*outputs, strict=True)
            )
            into_vectors = self._contrast(trainer, chunk.owner[every], every, rows, vectors)
            hidden = np.concatenate([text.hidden() for text in texts])
            is_clean = np.repeat(rows >= chunk.pairs, chunk.masks[rows])
            parts, into_states = self._fill_masks(states, hidden, is_clean, masks)
            trainer.count(sum(parts.values(), torch.zeros(())), parts)
            gradients = zip(
                torch.split(into_vectors, [len(vectors) for vectors, _ in outputs]),
                torch.split(into_states, [len(states) for _, states in outputs]),
                strict=True,
            )
            for gradient, text, key, is_kept in zip(gradients, texts, keys, has_graph, strict=True):
                output = outputs.pop(0)
                if not is_kept:
                    output = self._encode(text, key)
                if output[0].requires_grad:  # where the whole encoder is frozen they have none
                    torch.autograd.backward(output, gradient)
        return len(every) // 2

    def _encode(
        self, texts: Masked, key: int | None = None,
        window: MutableMapping[str, Any] | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Return vectors (texts, width) and states under masks (masks, hidden), both float32.

        `key` gives the same dropout each time, `window` counts tokens for the log.
        """
        if self.settings.dropout and key is not None:
            torch.manual_seed(key)
        with self.computation.precision():
            tokens = self.computation.batch(texts.ids, window)
            states = self.computation.states(tokens)
            return self.network.encoder.head(states, tokens), texts.under_masks(states, tokens)

    def _contrast(
        self, trainer: Trainer[MaskedChunk], owners: npt.NDArray[np.integer], every: Rows,
        rows: Rows, own: Tensor,
    ) -> Tensor:  # fmt: skip
        """Return the gradient, in this process's own vectors, of the contrast of all processes'.

        `owners` are those of the rows of the whole update, `every`, `own` the vectors of `rows`.
        """
        if self.contrast is None:
            return torch.zeros_like(own)
        places = torch.from_numpy(np.searchsorted(every, rows)).to(own.device)
        vectors = own.new_zeros(len(every), own.shape[1])
        vectors[places] = own
        vectors = self.workers.gather(vectors).requires_grad_()
        memory, texts = self.network.memory, torch.from_numpy(owners).to(own.device)
        loss, parts = self.contrast(memory.beside(vectors, texts), self.settings.temperature)
        (gradient,) = torch.autograd.grad(loss, vectors)
        memory.add(vectors, texts)
        trainer.count(loss, parts, 1 / self.workers.world)
        return gradient[places]

    def _fill_masks(
        self, states: Tensor, hidden: npt.NDArray[np.int64], is_clean: npt.NDArray[np.bool_],
        masks: npt.NDArray[np.int64],
    ) -> tuple[dict[str, Tensor], Tensor]:  # fmt: skip
        """Return the loss of each side, and the gradient of both in the states under masks.

        That of the head is added up too, unless gradients are off. The cross-entropy of a mask is
        divided by `masks` of its side; a side without any has no loss: there is nothing to predict.
        """
        weights = (1 / np.maximum(masks, 1)).astype(np.float32)[is_clean.astype(np.int64)]
        targets, clean, share = (
            torch.from_numpy(column).to(states.device) for column in (hidden, is_clean, weights)
        )
        gradient = torch.zeros_like(states)
        losses = {side: states.new_zeros(()) for side, count in enumerate(masks.tolist()) if count}
        size = max(1, _SCORES_MAX // len(self.network.embeddings))
        for first in range(0, max(1, len(states)), size):
            piece = slice(first, first + size)
            some = states[piece].requires_grad_(torch.is_grad_enabled())
            with self.computation.precision():
                scores = self.network.scores(some).float()
            each = cross_entropy(scores, targets[piece], reduction="none") * share[piece]
            if torch.is_grad_enabled():
                each.sum().backward()  # type: ignore[no-untyped-call]
                assert some.grad is not None
                gradient[piece] = some.grad
            for side in losses:
                losses[side] += each.detach()[clean[piece] == side].sum()
        return {f"mlm_{SIDES[side]}": loss for side, loss in losses.items()}, gradient

    @torch.inference_mode()
    def validate(self) -> dict[str, float]:
        """Return the loss and its parts under fixed masks, and two figures without masks.

        A side without a mask has no part in the loss.
        `distance`: mean 1 - cosine of noisy and clean side. `xsim_error`: the percentage of noisy
        sides for which xSIM finds another clean side than their own.
        """
        training, texts = self.network.training, self.held_out
        self.network.eval()
        pairs, counts = len(texts.ids) // 2, texts.counts()
        masks = np.array([side.sum() for side in np.split(counts, 2)])
        vectors, plain = torch.zeros(
            2, len(texts.ids), self.network.encoder.width, device=self.workers.device
        )
        parts: dict[str, float] = defaultdict(float)
        for rows in by_length(texts.ids.lengths, self.settings.batch_tokens):
            batch = texts.take(rows)
            vectors[torch.from_numpy(rows)], states = self._encode(batch)
            plain[torch.from_numpy(rows)], _ = self._encode(batch.without_masks())
            is_clean = np.repeat(rows >= pairs, counts[rows])
            losses, _ = self._fill_masks(states, batch.hidden(), is_clean, masks)
            for name, value in losses.items():
                parts[f"loss_{name}"] += float(value)
        self.network.train(training)
        loss = sum(parts.values())
        if self.contrast:
            contrast, of_contrast = self.contrast.means(self._contrasts(vectors))
            loss += contrast
            parts |= {f"loss_{name}": value for name, value in of_contrast.items()}
        noisy, clear = np.split(plain.cpu().numpy(), 2)
        error = xsim_error(noisy, clear, self.owners[:pairs])
        distance = cosine_distance(noisy, clear)
        return {"loss": loss, **parts, "distance": distance, "xsim_error": error}

    def _contrasts(self, vectors: Tensor) -> Iterator[tuple[int, tuple[Sides, float]]]:
        """Yield the held-out vectors in batches as large as those of training."""
        pairs, owners = len(vectors) // 2, torch.from_numpy(self.owners).to(vectors.device)
        count = -(-pairs // self.settings.batch_pairs)
        for some in torch.arange(pairs, device=vectors.device).tensor_split(count):
            both = torch.cat([some, some + pairs])
            yield len(some), (Sides(vectors[both], owners[both]), self.settings.temperature)

    def save(self, folder: Path) -> None:
        """Write the model with the head that fills masks."""
        self.network.cpu().save(folder)


class KeptGraphs:
    """Counts the bytes that autograd keeps of what is computed under `counted`, without weights.

    Unless the budget is 0, the first graph is kept; after one that does not fit, none is.
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
        """Count each piece of memory that is kept once; all graphs live until the end."""
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
