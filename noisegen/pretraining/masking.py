"""Which tokens are masked, and by what: keyed draws, so that a resumed run masks the same ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from noisegen.draws import (
    U64,
    choices,
    decisions,
    draw_array,
    fork_array,
    row_keys,
    stream_key,
    threshold,
)
from noisegen.encoders.encoder import Tokenizer
from noisegen.encoders.packed import Packed
from noisegen.encoders.pieces import PieceTokenizer
from noisegen.encoders.prepared import PreparedTokenizer
from noisegen.encoders.ragged import Ints, Ragged
from noisegen.encoders.tokens import Padded
from noisegen.errors import UsageError
from noisegen.training.plan import Rows

NO_TARGET = -1
# Of the tokens that are chosen (BERT: Devlin and others, 2019, section 3.1), in 65,536ths.
_MASKED = round(0.8 * 2**16)
_REPLACED = round(0.9 * 2**16)  # those from _MASKED on by a random token; the rest stays


@dataclass(frozen=True)
class Masked:
    """Rows of ids with some masked; `targets` are the ids that were there, -1 at all others.

    `targets` has rows as long as those of `ids`.
    """

    ids: Ragged
    targets: Ragged

    @classmethod
    def joined(cls, *parts: "Masked") -> "Masked":
        """Put rows of several under each other."""
        return cls(
            Ragged.joined(part.ids for part in parts), Ragged.joined(part.targets for part in parts)
        )

    def take(self, rows: Ints) -> "Masked":
        """Return these rows, in this order."""
        return Masked(self.ids.take(rows), self.targets.take(rows))

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """Where targets are, counted over all tokens of all rows."""
        return np.flatnonzero(self.targets.values != NO_TARGET)

    def counts(self) -> npt.NDArray[np.int64]:
        """Return how many targets each row has."""
        sums = np.concatenate([[0], np.cumsum(self.targets.values != NO_TARGET)])
        return np.diff(sums[self.ids.offsets])

    def of_sides(self) -> npt.NDArray[np.int64]:
        """Return how many targets each half of the rows has: noisy sides, then clean ones."""
        noisy, clean = np.split(self.counts(), 2)
        return np.array([noisy.sum(), clean.sum()])

    def under_masks(self, states: Tensor, batch: Padded | Packed) -> Tensor:
        """Return the states at the targets, (targets, hidden) float32, of all states of a batch."""
        places = self.places
        if isinstance(batch, Padded):  # where rows begin in a rectangle
            shift = np.arange(len(self.ids)) * batch.ids.shape[1] - self.ids.offsets[:-1]
            places = places + np.repeat(shift, self.counts())
        found = torch.from_numpy(places).to(states.device)
        return states.reshape(-1, states.shape[-1])[found].float()


@dataclass(frozen=True)
class Masker:
    """Chooses each token with chance `rate`, but no special one.

    `ordinary` are the ids that a random token is drawn from, `special` tells for every id whether
    it is none of them.
    """

    mask_id: int
    ordinary: npt.NDArray[np.int64]
    special: npt.NDArray[np.bool_]
    rate: float
    seed: int

    @classmethod
    def of(cls, tokenizer: Tokenizer, rate: float, seed: int) -> "Masker":
        """Make one for a tokenizer; raises UsageError where that has no token for masks."""
        inner = inner_tokenizer(tokenizer)
        if inner.mask_token_id is None:
            raise UsageError("its tokenizer has no mask token: give a masked-language model")
        special = np.zeros(len(inner), np.bool_)
        special[[number for number in inner.all_special_ids if number < len(inner)]] = True
        return cls(inner.mask_token_id, np.flatnonzero(~special), special, rate, seed)

    def masked(self, ids: Ragged, pairs: Rows, side: str, epoch: int) -> Masked:
        """Mask the texts of one side of these pairs; other sides and epochs have other masks."""
        draws, tokens = self._draws(ids, pairs, side, epoch)
        chosen = (decisions(draws) < threshold(self.rate)) & ~self.special[ids.values]
        how = choices(draws)
        values = ids.values.copy()
        values[chosen & (how < _MASKED)] = self.mask_id
        random = chosen & (how >= _MASKED) & (how < _REPLACED)
        values[random] = self.ordinary[_below(tokens[random], len(self.ordinary))]
        targets = np.where(chosen, ids.values, NO_TARGET).astype(np.int32)
        return Masked(Ragged(values, ids.offsets), Ragged(targets, ids.offsets))

    def _draws(self, ids: Ragged, pairs: Rows, side: str, epoch: int) -> tuple[U64, U64]:
        """Return two draws for every token: whether and how, and the random one in its place."""
        keys = row_keys(stream_key(self.seed, f"mask {side}", epoch), pairs.astype(np.uint64))
        places = np.arange(len(ids.values)) - np.repeat(ids.offsets[:-1], ids.lengths)
        both = (np.repeat(kind, ids.lengths) for kind in (keys, fork_array(keys, "token")))
        one, other = (draw_array(kind, places) for kind in both)
        return one, other


def inner_tokenizer(tokenizer: Tokenizer) -> Any:
    """Return the tokenizer of transformers, of prepared texts too; raises UsageError for others."""
    pieces = tokenizer.tokenizer if isinstance(tokenizer, PreparedTokenizer) else tokenizer
    if not isinstance(pieces, PieceTokenizer):
        raise UsageError("its tokenizer has no word pieces to mask: give a masked-language model")
    return pieces.tokenizer


def _below(draws: U64, count: int) -> npt.NDArray[np.int64]:
    """Return a number from 0 to count - 1 of the high 32 bits of every draw."""
    high = draws >> np.uint64(32)
    return (high * np.uint64(count) >> np.uint64(32)).astype(np.int64)
