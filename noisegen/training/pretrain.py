"""Pre-training on pairs (RCP): loss = contrastive(noisy, clean) + MLM(noisy) + MLM(clean).

The loss of an update depends on the vectors of all its texts, and on the network's states at all
masked tokens. An update has three steps (gradient caching: Gao and others, 2021, section 3.2).
First the batches go forward through the network one by one. Then the loss of all batches is
computed together, with its gradient with respect to vectors and states. Finally this gradient goes
back through the network batch by batch. The autograd graphs of the first batches are kept for this
pass, up to `graph_gb` gigabytes; the other batches go forward a second time to get their graphs.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from noisegen.data.bitext import find_bitext
from noisegen.encoders.encoder import Ragged
from noisegen.encoders.tokens import Packed, Padded, Rows, by_length, generator, plan, upload
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.similarity import cosine_distance
from noisegen.noising.rng import row_key, stream_key
from noisegen.runs.progress import Show
from noisegen.training.clock import UNLIMITED, Clock
from noisegen.training.computation import Computation, Workers, count
from noisegen.training.losses import Sides
from noisegen.training.masking import Masked, MaskedModel, open_model
from noisegen.training.objectives import WeightedSum, objectives
from noisegen.training.pair_method import PairChunk, PairMethod, xsim_error
from noisegen.training.pairs import VALIDATION_EPOCH, NoiseSource
from noisegen.training.settings import PretrainSettings, Tell
from noisegen.training.trainer import Trainer

SIDES = ("noisy", "clean")
SCORES_MAX = 2**27  # maximum scores (masked tokens x vocabulary) at once on a CPU: 0.5 GB each copy
_SCORE_BYTES = 16  # bytes per score: in 16 bits and in float32, its softmax, and two gradients
_SCORES_SHARE = 0.25  # share of a GPU's memory for scores


@dataclass(frozen=True)
class MaskedChunk(PairChunk):
    """Masked texts of pairs: row i is the noisy side of pair i, row `pairs` + i its clean side.

    `masks[i]` is the number of masked tokens in row i. Both sides of a pair are in the same update,
    but not always in the same batch, since the rows of a batch have similar lengths.
    """

    texts: Masked
    masks: npt.NDArray[np.int64]

    @property
    def pairs(self) -> int:
        """Number of pairs in the chunk."""
        return len(self.owner) // 2


class Pretraining(PairMethod[MaskedChunk]):
    """Trains a masked-language model on pairs, with a contrastive loss on their vectors.

    With the objective `mlm` alone, there is no contrastive loss.
    """

    card, task = "language_model.md", "fill-mask"
    settings: PretrainSettings
    network: MaskedModel
    held_out: Masked  # held-out texts, noisy sides before clean sides; the masks never change
    owners: npt.NDArray[np.int64]  # index of the clean text of each held-out row

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
            tell(
                f"{settings.student} has no head that fills masks: a new one, tied to its "
                "embeddings"
            )

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read the pairs of DATA; raises SourceError for too few pairs, and for bitext."""
        for source in sources:
            if find_bitext(source):
                raise SourceError(
                    f"{source} is bitext: pre-training needs pairs of noisy and clean text, in "
                    "columns of these names"
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
        """Mask the held-out pairs; raises SourceError if none of their tokens is masked."""
        self.hold_out(self.held_rows)

    def hold_out(self, rows: Rows) -> None:
        """Keep the pairs with the indices `rows` for `validate`, with fixed noise and masks."""
        self.held_out = self.masked(rows, VALIDATION_EPOCH)
        if not self.held_out.counts().any():
            raise SourceError(
                f"no token of the {len(rows):,} pairs held out is masked, so nothing can be "
                "learned: give more data, in a script of the model, or a mask_rate above "
                f"{self.settings.mask_rate}"
            )
        self.owners = np.tile(self.pairs.owner[rows].astype(np.int64), 2)

    def masked(self, rows: Rows, epoch: int) -> Masked:
        """Return masked texts of the pairs `rows` in an epoch: all noisy, then all clean sides."""
        masker = self.network.masker
        noisy_ids, clean_ids = self.tokens(rows, epoch, both_sides=True)
        noisy = masker.masked(noisy_ids, rows, "noisy", epoch)
        clean = masker.masked(clean_ids, rows, "clean", epoch)
        ids = Ragged.joined([noisy.ids, clean.ids])
        return Masked(ids, Ragged.joined([noisy.targets, clean.targets]))

    def batched(self, rows: Rows, epoch: int, number: int) -> MaskedChunk:
        """Return the chunk with index `number` of an epoch: masked token ids of pairs `rows`."""
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

    def load(self, chunk: MaskedChunk, batches: list[Rows], update: int) -> "list[_Forward]":
        """Return this process's batches of an update, with their token ids on the device."""
        dropout = stream_key(self.settings.seed, "dropout", update)
        own = range(self.workers.rank, len(batches), self.workers.world)
        return [
            self._loaded(batches[number], chunk.texts, row_key(dropout, number)) for number in own
        ]

    def _loaded(
        self, rows: npt.NDArray[np.integer], texts: Masked, dropout: int | None = None
    ) -> "_Forward":
        """Return the given rows of masked texts as a batch, its token ids on the device."""
        some = texts.take(rows)
        return _Forward(rows, some, self.computation.batch(some.ids), dropout)

    def backward(
        self,
        trainer: Trainer[MaskedChunk],
        chunk: MaskedChunk,
        batches: list[Rows],
        loaded: "list[_Forward]",
    ) -> int:
        """Compute the gradient of an update over all processes; return its number of pairs.

        A contrastive loss depends on the vectors of all batches together. Without one, the batches
        are independent, and go forward and back one by one.
        """
        all_rows = np.sort(np.concatenate(batches))  # noisy sides first, then clean sides
        masks = np.array([chunk.masks[side].sum() for side in np.split(all_rows, 2)])
        for together in [loaded] if self.contrast else [[batch] for batch in loaded]:
            self._backward_together(trainer, chunk, together, all_rows, masks)
        weights = self.network.parameters()
        self.workers.sum_gradients([weight for weight in weights if weight.requires_grad])
        return len(all_rows) // 2

    def _backward_together(
        self,
        trainer: Trainer[MaskedChunk],
        chunk: MaskedChunk,
        batches: "list[_Forward]",
        all_rows: Rows,
        masks: npt.NDArray[np.int64],
    ) -> None:
        """Accumulate the gradient of batches whose loss is computed together.

        `all_rows` has the indices of all rows of the update. `masks` has two counts of masked
        tokens in the update: on the noisy sides and on the clean sides.
        """
        budget = self.settings.graph_gb * 1e9 if len(batches) > 1 else float("inf")
        graphs = KeptGraphs(budget, self.network.parameters())
        for batch in batches:
            batch.has_graph = graphs.has_room
            with graphs.counted() if batch.has_graph else torch.no_grad():
                batch.output = self._encode(batch, trainer.window)
        rows = np.concatenate([batch.rows for batch in batches])
        vectors = torch.cat([batch.output.vectors.detach() for batch in batches])
        states = torch.cat([batch.output.states.detach() for batch in batches])
        into_vectors = self._contrast(trainer, chunk.owner[all_rows], all_rows, rows, vectors)
        hidden = np.concatenate([batch.texts.hidden() for batch in batches])
        is_clean = np.repeat(rows >= chunk.pairs, chunk.masks[rows])
        parts, into_states = self._fill_masks(states, hidden, is_clean, masks)
        trainer.count(sum(parts.values(), torch.zeros(())), parts)
        self._send_back(batches, into_vectors, into_states)

    def _send_back(
        self, batches: "list[_Forward]", into_vectors: Tensor, into_states: Tensor
    ) -> None:
        """Send gradients back through the network, batch by batch.

        `into_vectors` is the gradient with respect to the vectors of all batches, `into_states`
        with respect to their states at masked tokens. A batch without a kept graph goes forward
        again first.
        """
        first_row = first_mask = 0
        for batch in batches:
            row, mask = first_row + len(batch.rows), first_mask + len(batch.output.states)
            gradient = into_vectors[first_row:row], into_states[first_mask:mask]
            first_row, first_mask = row, mask
            output = batch.output
            del batch.output  # frees the graph of each batch after its own backward pass
            if not batch.has_graph:
                output = self._encode(batch)
            if output.vectors.requires_grad:  # false if all weights of the encoder are frozen
                torch.autograd.backward((output.vectors, output.states), gradient)

    def _encode(
        self, batch: "_Forward", window: MutableMapping[str, Any] | None = None
    ) -> "_Encoded":
        """Return the vectors of a batch, and the network's states at its masked tokens.

        Rows and tokens are counted in `window`, for the log.
        """
        if self.settings.dropout and batch.dropout is not None:
            torch.manual_seed(batch.dropout)
        if window is not None:
            count(batch.tokens, window)
        with self.computation.precision():
            states = self.computation.states(batch.tokens)
            vectors = self.network.encoder.head(states, batch.tokens)
            return _Encoded(vectors, batch.texts.masked_states(states, batch.tokens))

    def _contrast(
        self,
        trainer: Trainer[MaskedChunk],
        owners: npt.NDArray[np.integer],
        all_rows: Rows,
        rows: Rows,
        own: Tensor,
    ) -> Tensor:
        """Return the gradient of an update's contrastive loss with respect to the vectors `own`.

        `own` has this process's vectors, of the rows with the indices `rows`. `all_rows` has the
        indices of all rows of the update, over all processes, and `owners` the indices of their
        clean texts.
        """
        if self.contrast is None:
            return torch.zeros_like(own)
        places = upload(np.searchsorted(all_rows, rows), own.device)
        vectors = own.new_zeros(len(all_rows), own.shape[1])
        vectors[places] = own
        vectors = self.workers.gather(vectors).requires_grad_()
        memory, texts = self.network.memory, upload(owners, own.device)
        loss, parts = self.contrast(
            memory.with_negatives(vectors, texts), self.settings.temperature
        )
        (gradient,) = torch.autograd.grad(self.computation.scaled(loss), vectors)
        memory.add(vectors, texts)
        trainer.count(loss, parts, 1 / self.workers.world)
        return gradient[places]

    def _fill_masks(
        self,
        states: Tensor,
        hidden: npt.NDArray[np.int64],
        is_clean: npt.NDArray[np.bool_],
        masks: npt.NDArray[np.int64],
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Return the loss of masked tokens per side, and its gradient with respect to `states`.

        `states` are the network's states at masked tokens. For each of these tokens, `hidden` has
        the original id, and `is_clean` whether it is on the clean side. The cross-entropy of a
        token is divided by `masks`, the update's number of masked tokens on its side. A side with
        no masked token is left out. The gradient of the head is accumulated, unless gradients are
        off.
        """
        weights = (1 / np.maximum(masks, 1)).astype(np.float32)[is_clean.astype(np.int64)]
        targets, share = upload(hidden, states.device), upload(weights, states.device)
        gradient, losses = torch.zeros_like(states), []
        embeddings, has_gradient = self.network.embeddings, torch.is_grad_enabled()
        table = self._table()
        size = max(1, scores_max(states.device) // len(embeddings))
        for first in range(0, max(1, len(states)), size):
            piece = slice(first, first + size)
            some = states[piece].requires_grad_(has_gradient)
            with self.computation.precision():
                scores = self.network.scores(some, table).float()
            each = cross_entropy(scores, targets[piece], reduction="none") * share[piece]
            losses.append(each.detach())
            if has_gradient:
                self.computation.scaled(each.sum()).backward()  # type: ignore[no-untyped-call]
                assert some.grad is not None
                gradient[piece] = some.grad
                if table is not embeddings:
                    _pass_gradient(table, embeddings)
        return _by_side(torch.cat(losses), is_clean, masks), gradient

    def _table(self) -> Tensor:
        """Return the embeddings of the vocabulary in the type in which the head multiplies them.

        In 16 bits this is a copy, made once for all pieces: XLM-R has 192 million weights.
        """
        embeddings, half = self.network.embeddings, self.computation.half
        if half is None:
            return embeddings
        needs_gradient = torch.is_grad_enabled() and embeddings.requires_grad
        return embeddings.detach().to(half).requires_grad_(needs_gradient)

    @torch.inference_mode()
    def validate(self) -> dict[str, float]:
        """Return the loss, its named parts, `distance` and `xsim_error` on the held-out pairs.

        The loss is computed on masked texts; a side with no masked token is left out. The other two
        figures are computed on unmasked texts. `distance`: mean 1 - cosine of noisy and clean side.
        `xsim_error`: the percentage of noisy sides for which xSIM finds another clean side than
        their own.
        """
        training, texts = self.network.training, self.held_out
        self.network.eval()
        pairs, counts, unmasked = len(texts.ids) // 2, texts.counts(), texts.without_masks()
        masks = np.array([side.sum() for side in np.split(counts, 2)])
        vectors, plain = torch.zeros(
            2, len(texts.ids), self.network.encoder.width, device=self.workers.device
        )
        parts: dict[str, float] = defaultdict(float)
        for rows in by_length(texts.ids.lengths, self.settings.batch_tokens):
            batch = self._loaded(rows, texts)
            places = upload(rows, vectors.device)
            masked = self._encode(batch)
            vectors[places] = masked.vectors
            plain[places] = self._encode(self._loaded(rows, unmasked)).vectors
            is_clean = np.repeat(rows >= pairs, counts[rows])
            losses, _ = self._fill_masks(masked.states, batch.texts.hidden(), is_clean, masks)
            for name, value in losses.items():
                parts[f"loss_{name}"] += float(value)
        self.network.train(training)
        loss = sum(parts.values())
        if self.contrast:
            contrast, of_contrast = self.contrast.means(self._contrasts(vectors))
            loss += contrast
            parts |= {f"loss_{name}": value for name, value in of_contrast.items()}
        noisy, clean = np.split(plain.cpu().numpy(), 2)
        error = xsim_error(noisy, clean, self.owners[:pairs])
        distance = cosine_distance(noisy, clean)
        return {"loss": loss, **parts, "distance": distance, "xsim_error": error}

    def _contrasts(self, vectors: Tensor) -> Iterator[tuple[int, tuple[Sides, float]]]:
        """Yield (number of pairs, arguments of the contrastive loss) per batch of held-out pairs.

        Batches are as large as in training. The arguments are vectors of both sides, and the
        temperature.
        """
        pairs, owners = len(vectors) // 2, upload(self.owners, vectors.device)
        count = -(-pairs // self.settings.batch_pairs)
        for some in torch.arange(pairs, device=vectors.device).tensor_split(count):
            both = torch.cat([some, some + pairs])
            yield len(some), (Sides(vectors[both], owners[both]), self.settings.temperature)

    def save(self, folder: Path) -> None:
        """Write the model into a folder, with the head that predicts masked tokens."""
        self.network.cpu().save(folder)


def scores_max(device: torch.device) -> int:
    """Return the maximum number of scores to compute at once; it depends on a GPU's memory."""
    if device.type != "cuda":
        return SCORES_MAX
    _, size = torch.cuda.mem_get_info(device)
    return int(size * _SCORES_SHARE) // _SCORE_BYTES


def _pass_gradient(copy: Tensor, weight: Tensor) -> None:
    """Add the gradient of a 16-bit copy of a weight to the gradient of the weight, in float32."""
    if copy.grad is None:  # the weight is frozen
        return
    if weight.grad is None:
        weight.grad = copy.grad.to(weight.dtype)
    else:
        weight.grad += copy.grad
    copy.grad = None


def _by_side(
    losses: Tensor, is_clean: npt.NDArray[np.bool_], masks: npt.NDArray[np.int64]
) -> dict[str, Tensor]:
    """Return the sum of the losses of masked tokens on each side that has any in the update."""
    order = upload(np.argsort(is_clean, kind="stable"), losses.device)
    sides = torch.split(losses[order], [int((~is_clean).sum()), int(is_clean.sum())])
    return {f"mlm_{SIDES[side]}": sides[side].sum() for side in np.flatnonzero(masks).tolist()}


class _Encoded(NamedTuple):
    """Vectors of texts, (texts, width), and states at masked tokens, (masks, hidden); float32."""

    vectors: Tensor
    states: Tensor


@dataclass
class _Forward:
    """A batch of an update: row indices, masked texts, their token ids on the device, and output.

    `dropout` is the seed of dropout: the same seed drops the same activations.
    """

    rows: npt.NDArray[np.integer]
    texts: Masked
    tokens: Padded | Packed
    dropout: int | None
    has_graph: bool = False  # True if the autograd graph of `output` is kept
    output: _Encoded = field(init=False)


class KeptGraphs:
    """Counts the bytes of the autograd graphs of an update, to keep them within `budget` bytes.

    The context manager `counted` measures one graph; weights of the network do not count. The first
    graph is kept unless the budget is 0. After a graph that does not fit, none is kept.
    """

    def __init__(self, budget: float, weights: Iterable[Tensor]) -> None:
        self.budget, self.bytes, self._largest = budget, 0, 0
        self._known = {weight.untyped_storage().data_ptr() for weight in weights}

    @property
    def has_room(self) -> bool:
        """Whether the budget has room for one more graph of the largest size so far."""
        return self.budget > 0 and self.bytes + self._largest <= self.budget

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the bytes that autograd keeps for the computations in the block.

        Memory that several tensors share counts once.
        """
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
