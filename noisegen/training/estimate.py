"""What a run will cost, before it starts: parameters, tokens, operations, memory."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.training.chunks import Chunks
from noisegen.training.settings import Settings

_BYTES = 16  # of a trained float32 weight: itself, gradient, two moments of Adam


@dataclass(frozen=True)
class Estimate:
    """Figures of a run that was not begun; `flop_per_token` counts forward and backward."""

    parameters: int
    trained: int
    pairs: int
    tokens_per_pair: float
    pairs_per_update: float
    padding: float
    updates_per_epoch: int
    flop_per_token: float
    weight_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def estimate(settings: Settings, student: SentenceEncoder, chunks: Chunks) -> Estimate:
    """Measure the first chunk of the data and count the student's weights."""
    chunk = chunks.make(0, 0)
    assert chunk is not None
    sides = [chunk.noisy, chunk.clean] if chunks.both_sides else [chunk.noisy]
    tokens = sum(len(side.values) for side in sides)
    computed = sum(
        len(rows) * int(side.lengths[rows].max())
        for step in chunk.steps for rows in step for side in sides
    )  # fmt: skip
    every = [weight.numel() for weight in student.parameters()]
    trained = sum(weight.numel() for weight in student.parameters() if weight.requires_grad)
    pairs, rows = len(chunks.data.training), len(chunk.owner)
    return Estimate(
        sum(every), trained, pairs, tokens / rows, rows / len(chunk.steps), 1 - tokens / computed,
        round(pairs / rows * len(chunk.steps)), flop_per_token(student, tokens / rows),
        weight_bytes(every, [trained]),
    )  # fmt: skip


def weight_bytes(every: Sequence[int], trained: Sequence[int]) -> int:
    """Return the bytes of weights, given their sizes, with gradients and moments of the trained."""
    return sum(every) * 4 + sum(trained) * (_BYTES - 4)


def flop_per_token(student: SentenceEncoder, length: float) -> float:
    """Return 6 x weights outside the embeddings, plus attention over `length` tokens."""
    embedded = student.network.get_input_embeddings()  # type: ignore[operator]
    table = sum(weight.numel() for weight in embedded.parameters())
    dense = sum(weight.numel() for weight in student.parameters()) - table
    config = student.config
    return float(6 * dense + 12 * config.num_hidden_layers * config.hidden_size * length)
