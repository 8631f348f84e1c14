"""Masks on tokens, and models that learn to predict the tokens under masks.

The seed, the epoch, the side and the pair determine the masks of a text, so a resumed run masks the
same tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from noisegen.encoders.encoder import Ints, Ragged, Tokenizer, open_encoder
from noisegen.encoders.folders import load_network, save_folder, save_network
from noisegen.encoders.head import HeadSettings
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import (
    Packed,
    Padded,
    PieceTokenizer,
    PreparedTokenizer,
    Rows,
    upload,
)
from noisegen.errors import UsageError
from noisegen.noising import rng
from noisegen.training.losses import Sides
from noisegen.training.settings import PretrainSettings
from noisegen.training.students import cut, freeze, set_dropout

NO_TARGET = -1
# Each token chosen for masking gets a random number from 0 to 65,535. If it is below _MASKED, the
# mask token replaces the token; else if it is below _REPLACED, a random token does; else the token
# stays as it is (BERT: Devlin and others, 2019, section 3.1).
_MASKED = round(0.8 * 2**16)
_REPLACED = round(0.9 * 2**16)


@dataclass(frozen=True)
class Masked:
    """Rows of token ids, some of them masked.

    `targets` has rows of the same lengths: the original id of a masked token, -1 for all others.
    """

    ids: Ragged
    targets: Ragged

    def take(self, rows: Ints) -> "Masked":
        """Return the rows with these indices, in the order of the indices."""
        return Masked(self.ids.take(rows), self.targets.take(rows))

    def counts(self) -> npt.NDArray[np.int64]:
        """Return the number of masked tokens of each row."""
        sums = np.concatenate([[0], np.cumsum(self.targets.values != NO_TARGET)])
        return np.diff(sums[self.ids.offsets])

    def hidden(self) -> npt.NDArray[np.int64]:
        """Return the original ids of all masked tokens, row by row."""
        hidden = self.targets.values[self.targets.values != NO_TARGET]
        return np.asarray(hidden, np.int64)

    def without_masks(self) -> "Masked":
        """Return the rows with their original ids, no token masked."""
        targets, offsets = self.targets.values, self.ids.offsets
        ids = np.where(targets == NO_TARGET, self.ids.values, targets).astype(np.int32)
        return Masked(Ragged(ids, offsets), Ragged(np.full_like(ids, NO_TARGET), offsets))

    def masked_states(self, states: Tensor, batch: Padded | Packed) -> Tensor:
        """Return the network's states at masked tokens, shape (masked tokens, hidden), float32.

        `batch` has the ids of this object's rows, packed or padded. `states` is the network's
        output for `batch`.
        """
        places = np.flatnonzero(self.targets.values != NO_TARGET)
        if isinstance(batch, Padded):  # shift indices by the padding of earlier rows
            shift = np.arange(len(self.ids)) * batch.ids.shape[1] - self.ids.offsets[:-1]
            places = places + np.repeat(shift, self.counts())
        index = upload(places, states.device)
        return states.reshape(-1, states.shape[-1])[index].float()


@dataclass(frozen=True)
class Masker:
    """Masks each token with probability `rate`, special tokens (such as [CLS]) excepted.

    `special[id]` is true for a special token. `ordinary` has the ids of all other tokens; some
    masked tokens are replaced by a random one of these instead of the mask token.
    """

    mask_id: int
    ordinary: npt.NDArray[np.int64]
    special: npt.NDArray[np.bool_]
    rate: float
    seed: int

    @classmethod
    def of(cls, tokenizer: Tokenizer, rate: float, seed: int) -> "Masker":
        """Return a masker for the ids of a tokenizer; raises UsageError if it has no mask token."""
        pieces = tokenizer.tokenizer if isinstance(tokenizer, PreparedTokenizer) else tokenizer
        if not isinstance(pieces, PieceTokenizer):
            raise UsageError(
                "its tokenizer has no word pieces to mask: give a masked-language model"
            )
        inner = pieces.tokenizer
        if inner.mask_token_id is None:
            raise UsageError("its tokenizer has no mask token: give a masked-language model")
        special = np.zeros(len(inner), np.bool_)
        special[[number for number in inner.all_special_ids if number < len(inner)]] = True
        return cls(inner.mask_token_id, np.flatnonzero(~special), special, rate, seed)

    def masked(self, ids: Ragged, pairs: Rows, side: str, epoch: int) -> Masked:
        """Return texts with random masks; each pair, side and epoch has its own masks.

        `ids` are the token ids of one side of the pairs with the indices `pairs`; `side` is "noisy"
        or "clean".
        """
        keys = rng.row_keys(
            rng.stream_key(self.seed, f"mask {side}", epoch), pairs.astype(np.uint64)
        )
        places = np.arange(len(ids.values)) - np.repeat(ids.offsets[:-1], ids.lengths)
        draws = rng.draw_array(np.repeat(keys, ids.lengths), places)
        token_keys = rng.fork_array(keys, "token")
        token_draws = rng.draw_array(np.repeat(token_keys, ids.lengths), places)
        chosen = (rng.decisions(draws) < rng.threshold(self.rate)) & ~self.special[ids.values]
        how = rng.choices(draws)
        values = ids.values.copy()
        values[chosen & (how < _MASKED)] = self.mask_id
        random = chosen & (how >= _MASKED) & (how < _REPLACED)
        high = token_draws[random] >> np.uint64(32)  # 32 random bits choose one of `ordinary`
        number = (high * np.uint64(len(self.ordinary)) >> np.uint64(32)).astype(np.int64)
        values[random] = self.ordinary[number]
        targets = np.where(chosen, ids.values, NO_TARGET).astype(np.int32)
        return Masked(Ragged(values, ids.offsets), Ragged(targets, ids.offsets))


@dataclass(frozen=True)
class _HeadNames:
    """Dotted paths of the head's dense layer and norm in a masked-language model of transformers.

    `activation` is the key of the activation function's name in the model's config; '' stands for
    gelu.
    """

    dense: str
    norm: str
    activation: str = ""


_BERT = "cls.predictions.transform"
_HEADS: Mapping[str, _HeadNames] = {
    "bert": _HeadNames(f"{_BERT}.dense", f"{_BERT}.LayerNorm", "hidden_act"),
    "distilbert": _HeadNames("vocab_transform", "vocab_layer_norm", "activation"),
    **dict.fromkeys(
        ("roberta", "xlm-roberta", "camembert", "mpnet"),
        _HeadNames("lm_head.dense", "lm_head.layer_norm"),
    ),
}


class PredictionHead(nn.Module):
    """Maps hidden states to scores of all tokens of the vocabulary.

    It applies a dense layer, activation, norm, product with the embeddings, and a bias. The layers
    come from `whole`, a masked-language model of transformers.
    """

    def __init__(self, whole: Any) -> None:
        from transformers.activations import ACT2FN

        super().__init__()
        names = _HEADS[whole.config.model_type]
        self.dense = whole.get_submodule(names.dense)
        self.norm = whole.get_submodule(names.norm)
        self.bias = whole.get_output_embeddings().bias
        activation = getattr(whole.config, names.activation) if names.activation else "gelu"
        self._activation = ACT2FN[activation]

    def forward(self, states: Tensor, embeddings: Tensor) -> Tensor:
        """Return scores, shape (states, vocabulary); `embeddings` has one row per token.

        The scores have the type of the embeddings.
        """
        hidden = self.norm(self._activation(self.dense(states)))
        kind = embeddings.dtype
        return nn.functional.linear(hidden.to(kind), embeddings, self.bias.to(kind))


class Memory(nn.Module):
    """The newest `size` vectors of earlier updates, which serve as negatives (cross-batch memory).

    They are buffers of the module, so checkpoints contain them.
    """

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.vectors: Tensor
        self.owners: Tensor
        self.filled: Tensor
        self.register_buffer("vectors", torch.zeros(size, width))
        self.register_buffer("owners", torch.zeros(size, dtype=torch.int64))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))
        self._count: int | None = None  # value of `filled` in the memory of the host, if known

    @property
    def count(self) -> int:
        """Number of stored vectors; read from the device only at first, and after loading."""
        if self._count is None:
            self._count = int(self.filled)
        return self._count

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self._count = None

    def with_negatives(self, vectors: Tensor, owners: Tensor) -> Sides:
        """Return the vectors of an update, with the vectors of earlier updates as their negatives.

        For each of `vectors`, `owners` has the index of its clean text.
        """
        count = self.count
        return Sides(vectors, owners, self.vectors[:count], self.owners[:count])

    def add(self, vectors: Tensor, owners: Tensor) -> None:
        """Store vectors and the indices of their clean texts; drop the oldest beyond `size`."""
        count = self.count
        for kept, new in ((self.vectors, vectors), (self.owners, owners)):
            newest = torch.cat([new.detach(), kept[:count]])[: len(kept)]
            kept[: len(newest)] = newest
        self._count = min(len(self.vectors), count + len(vectors))
        self.filled.fill_(self._count)


class MaskedModel(nn.Module):
    """A mean-pooling sentence encoder, with a head that predicts masked tokens, and a `Memory`.

    Encoder and head are parts of `whole`, a model of transformers. `is_new` is true if the model's
    folder has no head: then the head starts with random weights. `memory` is the size of the
    `Memory`.
    """

    def __init__(
        self, encoder: SentenceEncoder, whole: Any, masker: Masker, memory: int, *, is_new: bool
    ) -> None:
        super().__init__()
        self.encoder, self.prediction = encoder, PredictionHead(whole)
        self.memory = Memory(memory, encoder.width)
        self.masker, self.is_new = masker, is_new
        # torch has registered these weights above; a tuple keeps it from registering them twice.
        self._whole = (whole,)

    @property
    def embeddings(self) -> Tensor:
        """Embeddings of the vocabulary, (tokens, hidden), which network and head share."""
        weight: Tensor = self.encoder.network.get_input_embeddings().weight  # type: ignore[operator]
        return weight

    def scores(self, states: Tensor, table: Tensor | None = None) -> Tensor:
        """Return scores of all tokens of the vocabulary, shape (states, vocabulary).

        `table` is a copy of the embeddings in another type, if the head shall multiply these.
        """
        scores: Tensor = self.prediction(states, self.embeddings if table is None else table)
        return scores

    def save(self, folder: Path) -> None:
        """Write a folder that SentenceTransformer, AutoModel and AutoModelForMaskedLM can open."""
        save_folder(self.encoder, folder)
        save_network(self._whole[0], folder)  # overwrites the network, now with its head


def open_model(settings: PretrainSettings) -> MaskedModel:
    """Open the model that the setting `student` names, for pre-training.

    Raises UsageError for a model of an unknown kind, without a mask token, or whose head does not
    share the embeddings.
    """
    from transformers import AutoModelForMaskedLM

    spec = settings.student
    start = open_encoder(spec)
    if not isinstance(start, SentenceEncoder) or start.config.model_type not in _HEADS:
        raise UsageError(
            f"model {spec} cannot be pre-trained on masks: give one of the kinds "
            f"{', '.join(_HEADS)}"
        )
    try:
        masker = Masker.of(start.tokenizer, settings.mask_rate, settings.seed)
    except UsageError as error:
        raise UsageError(f"model {spec}: {error}") from error
    torch.manual_seed(settings.seed)  # a missing head gets random weights
    whole, info = load_network(AutoModelForMaskedLM, str(start.network.name_or_path))
    if whole.get_output_embeddings().weight is not whole.get_input_embeddings().weight:
        raise UsageError(
            f"model {spec}: its head is not tied to its embeddings (tie_word_embeddings in "
            "config.json): tie them, or give another model"
        )
    tokenizer = cut(start.tokenizer, settings.max_length)
    encoder = SentenceEncoder(whole.base_model, tokenizer, HeadSettings(), spec, start.usage)
    is_new = bool(info["missing_keys"])
    model = MaskedModel(encoder, whole, masker, settings.memory, is_new=is_new)
    set_dropout(model, settings.dropout)
    freeze(encoder, settings.freeze)
    return model
