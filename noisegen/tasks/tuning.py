"""Fine-tuning of one network on one task, and what it then predicts."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite

import numpy as np
import torch
from torch import Tensor, nn

from noisegen.encoders.ragged import Ints
from noisegen.encoders.sentence_encoder import by_length
from noisegen.errors import NoisegenError
from noisegen.tasks.network import IGNORED, Examples, TaskNetwork
from noisegen.tasks.pieces import NO_PIECE, Pieces
from noisegen.training.plan import Rows, plan

Step = Callable[[int], None]  # is told how many rows were read, by an update or a test


@dataclass(frozen=True)
class Tuning:
    """How a network is fine-tuned.

    `batch_tokens` is of one update, padding included. Without decay of weights: see
    `network.keep_embeddings`.
    """

    epochs: float
    lr: float
    batch_tokens: int = 512
    max_length: int = 50
    clip: float = 1.0
    seed: int = 0


def fine_tune(network: TaskNetwork, training: Examples, tuning: Tuning, step: Step) -> float:
    """Train all weights; return the mean loss of the last epoch, or of what there was of it.

    The loss is the cross-entropy of labels, mean over rows, plus that of tags, mean over tokens.
    AdamW, whose rate falls linearly to 0. Raises NoisegenError for a loss that is no number.
    """
    total = max(1, round(tuning.epochs * len(training)))
    optimizer = torch.optim.AdamW(network.parameters(), lr=tuning.lr, weight_decay=0.0, fused=True)
    network.train()
    done, losses = 0, []
    for rows, is_last_epoch in _batches(training, tuning):
        for group in optimizer.param_groups:
            group["lr"] = tuning.lr * (1 - done / total)
        loss = task_loss(network, training, rows)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(nn.utils.clip_grad_norm_(network.parameters(), tuning.clip))
        if not isfinite(norm):
            raise NoisegenError(f"the gradient is {norm} after {done:,} rows: try a lower --lr")
        optimizer.step()
        done += len(rows)
        losses += [loss.detach()] if is_last_epoch else []
        step(len(rows))
        if done >= total:
            break
    return float(torch.stack(losses).mean()) if losses else float("nan")


def _batches(training: Examples, tuning: Tuning) -> Iterator[tuple[Rows, bool]]:
    """Yield batches epoch by epoch, without end, and whether the epoch is the last."""
    lengths = training.pieces.ids.lengths[:, None]
    epoch = 0
    while True:
        for batches in plan(lengths, tuning.batch_tokens, tuning.seed, epoch, 0):
            yield batches[0], epoch + 1 >= tuning.epochs
        epoch += 1


def task_loss(network: TaskNetwork, training: Examples, rows: Ints) -> Tensor:
    """Return the loss of some rows."""
    label, tag = network(network.batch(training.pieces, rows))
    parts = []
    if label is not None:
        parts.append(_cross_entropy(label, training.labels[rows], network.device))
    if tag is not None:
        classes = training.tags.take(rows).padded(IGNORED)[:, : tag.shape[1]]
        parts.append(_cross_entropy(tag.flatten(0, 1), classes.ravel(), network.device))
    return torch.stack(parts).sum()


def _cross_entropy(logits: Tensor, classes: Ints, device: torch.device) -> Tensor:
    """Return the mean over rows with a class; 0 where none has one."""
    wanted = torch.from_numpy(classes).to(device)
    summed = nn.functional.cross_entropy(logits, wanted, ignore_index=IGNORED, reduction="sum")
    return summed / (wanted != IGNORED).sum().clamp(min=1)


@dataclass(frozen=True)
class Predicted:
    """Classes: one a row (empty without labels), and one a token, -1 for tokens without a piece."""

    labels: list[int]
    tags: list[list[int]]


def predict(network: TaskNetwork, pieces: Pieces, budget: int, step: Step) -> Predicted:
    """Return the best class of every row and token."""
    labels = [NO_PIECE] * len(pieces)
    tags: list[list[int]] = [[] for _ in range(len(pieces))]
    network.eval()
    with torch.inference_mode():
        for rows in by_length(pieces.ids.lengths, budget):
            label, tag = network(network.batch(pieces, rows))
            for place, row in enumerate(rows.tolist()):
                if label is not None:
                    labels[row] = int(label[place].argmax())
                if tag is not None:
                    tags[row] = _of_tokens(tag[place], pieces.firsts[row])
            step(len(rows))
    return Predicted(labels, tags)


def _of_tokens(logits: Tensor, firsts: Ints) -> list[int]:
    """Return the best class of every token of a row; logits are (tokens of the batch, tags)."""
    best = logits.argmax(-1).cpu().numpy()[: len(firsts)]
    classes = np.full(len(firsts), NO_PIECE)
    classes[: len(best)] = np.where(firsts[: len(best)] == NO_PIECE, NO_PIECE, best)
    found: list[int] = classes.tolist()
    return found
