"""Masks on tokens, by keyed draws, so that a resumed run masks the same ones; masked chunks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from noisegen.encoders.encoder import Ints, Ragged, Tokenizer, open_encoder
from noisegen.encoders.folders import quietly, save_folder
from noisegen.encoders.sentence_encoder import HeadSettings, SentenceEncoder
from noisegen.encoders.tokens import (
    Packed,
    Padded,
    PieceTokenizer,
    PreparedTokenizer,
    Rows,
    chunks_of,
    generator,
    plan,
)
from noisegen.errors import UsageError
from noisegen.noise.rng import (
    choices,
    decisions,
    draw_array,
    fork_array,
    row_keys,
    stream_key,
    threshold,
)
from noisegen.training.batches import Chunks, Position, made_ahead
from noisegen.training.losses import Sides
from noisegen.training.settings import PretrainSettings
from noisegen.training.students import cut, freeze, set_dropout

NO_TARGET = -1
# Of the tokens that are chosen (BERT: Devlin and others, 2019, section 3.1), in 65,536ths.
_MASKED = round(0.8 * 2**16)
_REPLACED = round(0.9 * 2**16)  # those from _MASKED on by a random token; the others stay


@dataclass(frozen=True)
class Masked:
    """Rows of ids with some masked; `targets` are the ids that were there, -1 at all others.

    `targets` has rows as long as those of `ids`.
    """

    ids: Ragged
    targets: Ragged

    def take(self, rows: Ints) -> "Masked":
        """Return these rows, in this order."""
        return Masked(self.ids.take(rows), self.targets.take(rows))

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """The positions of targets, counted over all tokens of all rows."""
        return np.flatnonzero(self.targets.values != NO_TARGET)

    def counts(self) -> npt.NDArray[np.int64]:
        """Return how many targets each row has."""
        sums = np.concatenate([[0], np.cumsum(self.targets.values != NO_TARGET)])
        return np.diff(sums[self.ids.offsets])

    def without_masks(self) -> "Masked":
        """Return the texts as they were."""
        targets, offsets = self.targets.values, self.ids.offsets
        ids = np.where(targets == NO_TARGET, self.ids.values, targets).astype(np.int32)
        return Masked(Ragged(ids, offsets), Ragged(np.full_like(ids, NO_TARGET), offsets))

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
        keys = row_keys(stream_key(self.seed, f"mask {side}", epoch), pairs.astype(np.uint64))
        places = np.arange(len(ids.values)) - np.repeat(ids.offsets[:-1], ids.lengths)
        draws, others = (
            draw_array(np.repeat(stream, ids.lengths), places)
            for stream in (keys, fork_array(keys, "token"))
        )
        chosen = (decisions(draws) < threshold(self.rate)) & ~self.special[ids.values]
        how = choices(draws)
        values = ids.values.copy()
        values[chosen & (how < _MASKED)] = self.mask_id
        random = chosen & (how >= _MASKED) & (how < _REPLACED)
        high = others[random] >> np.uint64(32)  # 32 bits to a number below the count of tokens
        number = (high * np.uint64(len(self.ordinary)) >> np.uint64(32)).astype(np.int64)
        values[random] = self.ordinary[number]
        targets = np.where(chosen, ids.values, NO_TARGET).astype(np.int32)
        return Masked(Ragged(values, ids.offsets), Ragged(targets, ids.offsets))


def inner_tokenizer(tokenizer: Tokenizer) -> Any:
    """Return the tokenizer of transformers, of prepared texts too; raises UsageError for others."""
    pieces = tokenizer.tokenizer if isinstance(tokenizer, PreparedTokenizer) else tokenizer
    if not isinstance(pieces, PieceTokenizer):
        raise UsageError("its tokenizer has no word pieces to mask: give a masked-language model")
    return pieces.tokenizer


@dataclass(frozen=True)
class MaskedChunk:
    """Row i of `texts` is the noisy side of pair i; row `pairs` + i is its clean side.

    `masks` counts those of every row, `owners` numbers the clean text that it belongs to. A step
    has whole pairs; its batches are rows of like length, of either side.
    """

    texts: Masked
    masks: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    pairs: int
    steps: list[list[Rows]]


@dataclass(frozen=True)
class MaskedChunks:
    """The chunks of all epochs; `batch_pairs` of an update, `chunks.world` processes."""

    chunks: Chunks
    masker: Masker
    batch_pairs: int

    def make(self, epoch: int, number: int) -> MaskedChunk | None:
        """Return a chunk; None where the epoch has no more."""
        data, seed = self.chunks.data, self.chunks.seed
        chunks = chunks_of(data.training, seed, epoch)
        if number >= len(chunks):
            return None
        pairs = chunks[number]
        texts = self.texts(pairs, epoch)
        order = generator(seed, epoch, number, 3).permutation(len(pairs))
        parts = np.array_split(order, -(-len(pairs) // self.batch_pairs))
        steps = [self._batches(texts, part, len(pairs), epoch, number) for part in parts]
        owners = np.tile(data.owner[pairs].astype(np.int64), 2)
        return MaskedChunk(texts, texts.counts(), owners, len(pairs), steps)

    def first(self) -> MaskedChunk:
        """Return the first chunk, by which a run is estimated."""
        chunk = self.make(0, 0)
        assert chunk is not None  # there are pairs to train on
        return chunk

    def texts(self, pairs: Rows, epoch: int) -> Masked:
        """Return the noisy sides of these pairs, then their clean sides, masked."""
        noisy, clean, _ = self.chunks.tokens(pairs, epoch)
        sides = [
            self.masker.masked(ids, pairs, side, epoch)
            for ids, side in ((noisy, "noisy"), (clean, "clean"))
        ]
        ids, targets = (side.ids for side in sides), (side.targets for side in sides)
        return Masked(Ragged.joined(ids), Ragged.joined(targets))

    def _batches(
        self, texts: Masked, part: Rows, pairs: int, epoch: int, number: int
    ) -> list[Rows]:
        """Cut the texts of these pairs into batches; every process has as many."""
        rows, world = np.concatenate([part, part + pairs]), self.chunks.world
        lengths = texts.ids.lengths[rows][:, None]
        steps = plan(lengths, self.chunks.budget, self.chunks.seed, epoch, number, world)
        return [rows[batch] for step in steps for batch in step]

    def from_position(self, start: Position) -> Iterator[tuple[Position, MaskedChunk]]:
        """Yield chunks without end, with where they are; the next one is made meanwhile."""
        return made_ahead(self.make, start)


@dataclass(frozen=True)
class _Family:
    """Names of the dense layer and the norm of the head in a kind of model, and its activation."""

    dense: str
    norm: str
    activation: str | None = None  # a name in its config; None: gelu, whatever the config says


_ROBERTA = _Family("lm_head.dense", "lm_head.layer_norm")
_FAMILIES: Mapping[str, _Family] = {
    "bert": _Family(
        "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "hidden_act"
    ),
    "distilbert": _Family("vocab_transform", "vocab_layer_norm", "activation"),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert", "mpnet"), _ROBERTA),
}


class PredictionHead(nn.Module):
    """States to scores of all tokens: dense layer, activation, norm, the embeddings and a bias."""

    def __init__(
        self, dense: nn.Module, activation: Callable[[Tensor], Tensor], norm: nn.Module,
        bias: nn.Parameter,
    ) -> None:  # fmt: skip
        super().__init__()
        self.dense, self.norm, self.bias = dense, norm, bias
        self._activation = activation

    def forward(self, states: Tensor, embeddings: Tensor) -> Tensor:
        """Return shape (states, tokens of the vocabulary); `embeddings` has a row for each."""
        made = self.norm(self._activation(self.dense(states)))
        return nn.functional.linear(made, embeddings, self.bias)


class Memory(nn.Module):
    """The newest `size` vectors of earlier updates (cross-batch memory); a checkpoint has them."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.vectors: Tensor
        self.owners: Tensor
        self.filled: Tensor
        self.register_buffer("vectors", torch.zeros(size, width))
        self.register_buffer("owners", torch.zeros(size, dtype=torch.int64))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))

    def beside(self, vectors: Tensor, owners: Tensor) -> Sides:
        """Return the vectors of an update with the earlier ones as negatives, newest first."""
        count = int(self.filled)
        if not count:
            return Sides(vectors, owners)
        return Sides(vectors, owners, self.vectors[:count], self.owners[:count])

    def add(self, vectors: Tensor, owners: Tensor) -> None:
        """Put vectors and their owners in the place of the oldest."""
        count = int(self.filled)
        for kept, new in ((self.vectors, vectors), (self.owners, owners)):
            both = torch.cat([new.detach(), kept[:count]])[: len(kept)]
            kept[: len(both)] = both
        self.filled.fill_(min(len(self.vectors), count + len(vectors)))


class MaskedModel(nn.Module):
    """A sentence encoder that takes the mean, with a head for masks and a memory of vectors.

    `is_new`: the head was not in the model's folder; it is drawn at random.
    """

    def __init__(
        self, encoder: SentenceEncoder, prediction: PredictionHead, memory: Memory, whole: Any,
        *, is_new: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.encoder, self.prediction, self.memory = encoder, prediction, memory
        self.is_new = is_new
        self._whole = (whole,)  # in a tuple: its weights are those above, and no others

    @property
    def embeddings(self) -> Tensor:
        """The embeddings of the vocabulary, (tokens, hidden): of the input and of the head."""
        found: Any = self.encoder.network
        return found.get_input_embeddings().weight  # type: ignore[no-any-return]

    def scores(self, states: Tensor) -> Tensor:
        """Return the score of every token of the vocabulary for each state."""
        found: Tensor = self.prediction(states, self.embeddings)
        return found

    def save(self, folder: Path) -> None:
        """Write a folder for SentenceTransformer, AutoModel and AutoModelForMaskedLM."""
        save_folder(self.encoder, folder)
        with quietly():
            self._whole[0].save_pretrained(folder)  # over the network alone: it has the head too


def open_model(settings: PretrainSettings) -> MaskedModel:
    """Open the model that the settings name, at its start.

    Raises UsageError for a model whose head we do not know, or that has no token for masks.
    """
    from transformers import AutoModelForMaskedLM
    from transformers.activations import ACT2FN

    spec = settings.student
    start = open_encoder(spec)
    if not isinstance(start, SentenceEncoder) or start.config.model_type not in _FAMILIES:
        raise UsageError(
            f"model {spec} cannot be pre-trained on masks: give one of the kinds "
            f"{', '.join(_FAMILIES)}"
        )
    try:
        Masker.of(start.tokenizer, settings.mask_rate, settings.seed)
    except UsageError as error:
        raise UsageError(f"model {spec}: {error}") from error
    torch.manual_seed(settings.seed)  # a head that is new is drawn at random
    with quietly():
        whole, info = AutoModelForMaskedLM.from_pretrained(
            str(start.network.name_or_path), use_safetensors=True, local_files_only=True,
            trust_remote_code=False, dtype=torch.float32, output_loading_info=True,
        )  # fmt: skip
    _check_tied(spec, whole, len(inner_tokenizer(start.tokenizer)))
    family = _FAMILIES[whole.config.model_type]
    activation = getattr(whole.config, family.activation) if family.activation else "gelu"
    head = PredictionHead(
        whole.get_submodule(family.dense), ACT2FN[activation], whole.get_submodule(family.norm),
        whole.get_output_embeddings().bias,
    )  # fmt: skip
    tokenizer = cut(start.tokenizer, settings.max_length)
    encoder = SentenceEncoder(whole.base_model, tokenizer, HeadSettings(), spec)
    memory = Memory(settings.memory, encoder.width)
    model = MaskedModel(encoder, head, memory, whole, is_new=bool(info["missing_keys"]))
    set_dropout(model, settings.dropout)
    freeze(encoder, settings.freeze)
    return model


def _check_tied(spec: str, whole: Any, pieces: int) -> None:
    """Refuse a head with a table of its own, and a vocabulary that the embeddings do not have."""
    embeddings = whole.get_input_embeddings().weight
    if whole.get_output_embeddings().weight is not embeddings:
        raise UsageError(
            f"model {spec}: its head is not tied to its embeddings (tie_word_embeddings in "
            "config.json): tie them, or give another model"
        )
    if pieces > len(embeddings):
        raise UsageError(
            f"model {spec}: its tokenizer has {pieces:,} pieces, its embeddings "
            f"{len(embeddings):,}: give another model"
        )
