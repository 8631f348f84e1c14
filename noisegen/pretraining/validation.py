"""How good a model is on pairs kept out of training: the figures that choose a checkpoint."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from noisegen.encoders.encoder import Vectors
from noisegen.encoders.sentence_encoder import by_length
from noisegen.evaluation.unit_vectors import cosines, unit
from noisegen.pretraining.contrast import Sides
from noisegen.pretraining.masked_model import MaskedModel
from noisegen.pretraining.masking import Masked
from noisegen.pretraining.objective import Objective, by_side, pieces, token_losses
from noisegen.training.computation import Computation


@dataclass(frozen=True)
class Validation:
    """Held-out pairs, noisy sides before clean ones: as they are, and once masked for good."""

    plain: Masked
    masked: Masked
    owners: npt.NDArray[np.int64]  # of the clean texts of all, noisy sides before clean ones
    objective: Objective
    computation: Computation
    batch_tokens: int
    batch_pairs: int

    @torch.inference_mode()
    def measure(self, model: MaskedModel) -> dict[str, float]:
        """Return the loss and its parts under fixed masks, and two figures without masks.

        A side without a mask has no part in the loss.
        `distance`: mean 1 - cosine of noisy and clean side. `missed`: share of noisy sides with
        another pair's clean side nearer than their own.
        """
        training = model.training
        model.eval()
        losses, vectors = self._losses(model)
        plain = self._encoded(model, self.plain)[0].cpu().numpy()
        model.train(training)
        parts = {name: float(value) for name, value in losses.items()}
        if self.objective.contrast is not None:
            parts["loss_contrast"] = self._contrast(vectors)
        noisy, clean = np.split(plain, 2)
        return {
            "loss": sum(parts.values()), **parts,
            "distance": float(1 - cosines(noisy, clean).mean()), "missed": _missed(noisy, clean),
        }  # fmt: skip

    def _losses(self, model: MaskedModel) -> tuple[dict[str, Tensor], Tensor]:
        """Return the mean loss of the masks of each side, and the vectors of all texts."""
        vectors, states = self._encoded(model, self.masked)
        counts, masks = self.masked.counts(), self.masked.of_sides()
        clean = torch.from_numpy(np.repeat(np.arange(len(counts)) >= len(counts) // 2, counts))
        targets = torch.from_numpy(self.masked.targets.values[self.masked.places].astype(np.int64))
        with self.computation.precision():
            found = [
                token_losses(model, states[piece], targets[piece].to(states.device)).cpu()
                for piece in pieces(model, len(states))
            ]
        sums = by_side(torch.cat(found), clean, masks > 0)
        means = zip(sums.items(), masks[masks > 0].tolist(), strict=True)
        return {name: total / count for (name, total), count in means}, vectors

    def _encoded(self, model: MaskedModel, texts: Masked) -> tuple[Tensor, Tensor]:
        """Return the vectors of all texts, and the states at all targets, in their order."""
        width, device = model.encoder.width, self.computation.device
        counts = texts.counts()
        firsts = np.concatenate([[0], np.cumsum(counts)])
        vectors = torch.zeros(len(texts.ids), width, device=device)
        states = torch.zeros(int(firsts[-1]), width, device=device)
        for rows in by_length(texts.ids.lengths, self.batch_tokens):
            some = texts.take(rows)
            batch = self.computation.batch(some.ids)
            with self.computation.precision():
                found = self.computation.states(batch)
            vectors[torch.from_numpy(rows)] = model.encoder.head(found, batch)
            at = [np.arange(firsts[row], firsts[row + 1]) for row in rows]
            states[torch.from_numpy(np.concatenate(at))] = some.under_masks(found, batch)
        return vectors, states

    def _contrast(self, vectors: Tensor) -> float:
        """Return the mean contrast of batches as large as those of training, or nearly."""
        pairs, owners = len(vectors) // 2, torch.from_numpy(self.owners).to(vectors.device)
        count = -(-pairs // self.batch_pairs)
        total = 0.0
        for some in torch.arange(pairs, device=vectors.device).tensor_split(count):
            both = torch.cat([some, some + pairs])
            sides = Sides(vectors[both], owners[both])
            total += float(self.objective.contrasted(sides)) * len(some)
        return total / pairs


def _missed(noisy: Vectors, clean: Vectors) -> float:
    scores = unit(noisy) @ unit(clean).T
    return float((scores.max(1) > np.diag(scores) + 1e-6).mean())
