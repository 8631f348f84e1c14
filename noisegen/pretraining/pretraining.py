"""Updates of pre-training: the gradient of a whole batch, whatever its way through the network.

The loss is a function of the vectors of all texts and of the states under all masks. So batches go
forward one by one; the loss and its gradient in vectors and states are taken of all together; then
that gradient goes back batch by batch (gradient caching: Gao and others, 2021, section 3.2).
What backward needs is kept as far as memory allows, and computed a second time beyond that.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from noisegen.draws import row_key, stream_key
from noisegen.pretraining.kept_graphs import KeptGraphs
from noisegen.pretraining.masked_chunks import MaskedChunk, MaskedChunks
from noisegen.pretraining.masked_model import MaskedModel
from noisegen.pretraining.masking import Masked
from noisegen.pretraining.objective import Objective, by_side, pieces, token_losses
from noisegen.pretraining.settings import PretrainSettings
from noisegen.training.computation import Computation
from noisegen.training.log import Sink
from noisegen.training.plan import Rows
from noisegen.training.trainer import Measure, Trainer
from noisegen.training.workers import Workers


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


class Pretraining(Trainer[MaskedChunk]):
    """One run of pre-training, from a position to its end."""

    settings: PretrainSettings
    student: MaskedModel
    chunks: MaskedChunks

    def __init__(
        self, settings: PretrainSettings, model: MaskedModel, chunks: MaskedChunks,
        validation: Measure, folder: Path, *, workers: Workers, config: str = "",
        report: Sink | None = None,
    ) -> None:  # fmt: skip
        self.objective = Objective.of(settings)
        super().__init__(
            settings, model, chunks, len(chunks.chunks.data.training),
            Computation(settings, model.encoder, workers.device), validation, folder,
            workers=workers, config=config, report=report,
        )  # fmt: skip

    def backward(self, chunk: MaskedChunk, batches: list[Rows]) -> int:
        """Add up the gradient of the batches that are this process's part."""
        every = np.sort(np.concatenate(batches))  # the noisy sides, then the clean ones
        masks = np.array([chunk.masks[side].sum() for side in np.split(every, 2)])
        mine = [
            self._begun(chunk, number, batches[number], every, masks)
            for number in range(self.workers.rank, len(batches), self.workers.world)
        ]
        # Without contrast no batch depends on another one.
        for some in [mine] if self.objective.contrast else [[batch] for batch in mine]:
            self._forward(some)
            into_vectors = self._contrast(some, chunk.owners[every])
            into_states = self._fill(some, masks > 0)
            for batch, *gradients in zip(some, into_vectors, into_states, strict=True):
                self._back(batch, gradients)
        return len(every) // 2

    def _begun(
        self, chunk: MaskedChunk, number: int, texts: Rows, every: Rows, masks: Rows
    ) -> Pass:  # fmt: skip
        device, found = self.workers.device, chunk.texts.take(texts)
        clean = np.repeat(texts >= chunk.pairs, chunk.masks[texts])
        weights = (1 / np.maximum(masks, 1))[clean.astype(np.int64)]
        targets = found.targets.values[found.places].astype(np.int64)
        columns = (np.searchsorted(every, texts), targets, clean, weights.astype(np.float32))
        rows, *of_masks = (torch.from_numpy(column).to(device) for column in columns)
        return Pass(number, found, rows, *of_masks)

    def _forward(self, batches: Sequence[Pass]) -> None:
        """Compute vectors and states; keep graphs as long as there is room."""
        budget = self.settings.graph_gb * 1e9 if len(batches) > 1 else float("inf")
        graphs, count = KeptGraphs(budget, self.weights), 0
        with self.computation.precision():
            while count < len(batches) and graphs.has_room:
                with graphs.counted():
                    self._encode(batches[count], count=True)
                batches[count].kept = True
                count += 1
        with torch.no_grad(), self.computation.precision():
            for batch in batches[count:]:
                self._encode(batch, count=True)

    def _encode(self, batch: Pass, *, count: bool) -> None:
        """Compute vectors and states, with the same dropout each time."""
        ids, settings = batch.texts.ids, self.settings
        if settings.dropout:
            stream = stream_key(settings.seed, "dropout", self.progress.updates)
            torch.manual_seed(row_key(stream, batch.number))
        tokens = self.batch(ids) if count else self.computation.batch(ids)
        states = self.computation.states(tokens)
        batch.vectors = self.student.encoder.head(states, tokens)
        batch.states = batch.texts.under_masks(states, tokens)

    def _contrast(
        self, batches: Sequence[Pass], owners: npt.NDArray[np.int64]
    ) -> list[Tensor]:  # fmt: skip
        """Return the gradient of the contrast of all processes' texts in these vectors.

        `owners` are those of all texts of the update, as every process knows them.
        """
        if self.objective.contrast is None:
            return [torch.zeros_like(batch.vectors) for batch in batches]
        device = self.workers.device
        vectors = torch.zeros(len(owners), self.student.encoder.width, device=device)
        for batch in batches:
            vectors[batch.rows] = batch.vectors.detach()
        vectors = self.workers.gather(vectors).requires_grad_()
        memory, texts = self.student.memory, torch.from_numpy(owners).to(device)
        loss = self.objective.contrasted(memory.beside(vectors, texts))
        (gradient,) = torch.autograd.grad(loss, vectors)
        memory.add(vectors, texts)
        self._count_losses({"loss_contrast": loss / self.workers.world})
        return [gradient[batch.rows] for batch in batches]

    def _fill(self, batches: Sequence[Pass], masked: npt.NDArray[np.bool_]) -> list[Tensor]:
        """Add up the gradient of the head that fills masks; return that in the states.

        `masked` tells which of the sides have masks in the update: only these have a loss.
        """
        states = torch.cat([batch.states.detach() for batch in batches])
        targets, clean, weights = (
            torch.cat([getattr(batch, name) for batch in batches])
            for name in ("targets", "clean", "weights")
        )
        gradient = torch.zeros_like(states)
        for piece in pieces(self.student, len(states)):
            some = states[piece].requires_grad_()
            with self.computation.precision():
                losses = token_losses(self.student, some, targets[piece]) * weights[piece]
            losses.sum().backward()  # type: ignore[no-untyped-call]
            assert some.grad is not None
            gradient[piece] = some.grad
            self._count_losses(by_side(losses.detach(), clean[piece], masked))
        return list(torch.split(gradient, [len(batch.targets) for batch in batches]))

    def _back(self, batch: Pass, gradients: Sequence[Tensor]) -> None:
        """Carry the gradient in vectors and states to the weights, and let go of the graph.

        Where the whole encoder is frozen they have no graph.
        """
        if not batch.kept:
            with self.computation.precision():
                self._encode(batch, count=False)
        if batch.vectors.requires_grad:
            torch.autograd.backward([batch.vectors, batch.states], gradients)
        del batch.vectors, batch.states

    def _count_losses(self, parts: dict[str, Tensor]) -> None:
        whole = sum((part.detach() for part in parts.values()), torch.zeros(()))
        self.count({"loss": whole, **parts}, 1.0)
