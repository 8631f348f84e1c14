"""Tokenizers, and batches of token ids: grouped by length, then padded or packed.

A packed batch is one sequence: its rows follow each other without padding, and a token attends only
to tokens of its own row. On CUDA in half precision, torch's `varlen_attn` computes this attention.
Elsewhere a mask over all pairs of tokens does, which is slow for many tokens and serves as the
reference.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedTokenizerFast
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from noisegen.encoders import CHUNK_ROWS
from noisegen.encoders.encoder import (
    LENGTH_MAX,
    Ints,
    Ragged,
    Tokenizer,
    digest_of,
    replace_surrogates,
)
from noisegen.encoders.stored import write_json
from noisegen.encoders.word_ids import KnownWords, ends, is_local
from noisegen.errors import SourceError, UsageError
from noisegen.text.normalize import laser_text, social_text

PREPARATION_FILE = "preparation.json"  # file in a model's folder that names the preparation
PREPARATIONS: Mapping[str, Callable[[str], str]] = {
    "": str,
    "social": social_text,
    "laser": lambda text: laser_text(replace_surrogates(text)),
}
Rows = npt.NDArray[np.int64]
# Names of attention in transformers: for packed batches; for padded ones with and without padding.
ATTENTION, WITH_PADDING, FULL = "noisegen_packed", "noisegen_padded", "noisegen_full"
# Model type that takes packed batches -> whether its first position is padding id + 1 (else 0).
_AFTER_PADDING = {"bert": False, "roberta": True, "xlm-roberta": True}
# Up to this many tokens per row, attention by plain matrix products is faster than torch's fused
# kernel (bf16 on a CPU). Measured with 12 heads, forward and backward: 7 ms instead of 57 ms for 64
# rows of 32 tokens, but 146 ms instead of 102 ms for 4 rows of 512 tokens.
PLAIN_LONGEST = 256
_ENDS = {"cls": 0, "lasttoken": 1}  # mode of pooling -> token that it takes: 0 first, 1 last


class _Average(NamedTuple):
    """A mode of pooling: the sum of a row's token vectors, divided by `divisor(token count)`.

    With `is_weighted`, each vector is first multiplied by its token's position, counted from 1.
    """

    is_weighted: bool
    divisor: Callable[[Tensor], Tensor]


_AVERAGES: Mapping[str, _Average] = {
    "mean": _Average(False, lambda count: count),
    "mean_sqrt_len_tokens": _Average(False, lambda count: count**0.5),
    "weightedmean": _Average(True, lambda count: count * (count + 1) / 2),
}


class PieceTokenizer:
    """A tokenizer into pieces of words: a fast tokenizer of transformers, without padding.

    Raises ValueError for a slow tokenizer.
    """

    def __init__(self, tokenizer: Any, max_length: int) -> None:
        if not tokenizer.is_fast:
            raise ValueError("the tokenizer has no tokenizer.json")
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.pad_id = int(tokenizer.pad_token_id or 0)
        # A copy, since other code may turn padding on in `tokenizer`.
        self._backend = deepcopy(tokenizer.backend_tokenizer)
        self._backend.no_padding()
        self._backend.enable_truncation(max_length)
        self._words = KnownWords(self._backend, max_length) if is_local(self._backend) else None

    @property
    def model_length(self) -> int:
        """The maximum number of tokens in other libraries, which have no limit of LENGTH_MAX."""
        if self.max_length < LENGTH_MAX:
            return self.max_length
        return max(self.max_length, int(self.tokenizer.model_max_length))

    @cached_property
    def digest(self) -> str:
        """A hex digest of the vocabulary, the rules of splitting, and `max_length`."""
        return digest_of(self.max_length, self._backend.to_str())

    def alone(self, tokens: Iterable[int]) -> Ragged:
        """Return a row for each of these tokens: the token between the ends of a text."""
        before, after = ends(self._backend)
        return Ragged.of([[*before, token, *after] for token in tokens])

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return one row of token ids per text, cut to `max_length`."""
        texts = list(map(replace_surrogates, texts))
        with naming_panics():
            if self._words is not None:
                return self._words.tokenize(texts)
            encodings = self._backend.encode_batch_fast(texts)
        return Ragged.of([encoding.ids for encoding in encodings])

    def encodings(self, texts: Sequence[str | tuple[str, str]]) -> list[Any]:
        """Return an Encoding of the library `tokenizers` per text or pair: ids, offsets, types.

        Offsets count the characters of a text. The texts must have no lone surrogates.
        """
        with naming_panics():
            encodings: list[Any] = self._backend.encode_batch(list(texts))
        return encodings

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files to a folder, so that transformers 4 can open them too."""
        self.tokenizer.save_pretrained(folder)
        path = folder / "tokenizer_config.json"
        config = json.loads(path.read_text("utf-8"))
        if config.get("tokenizer_class") == "TokenizersBackend":  # only in transformers 5
            write_json(path, config | {"tokenizer_class": "PreTrainedTokenizerFast"})


@contextmanager
def naming_panics(path: object = "the model's tokenizer.json") -> Iterator[None]:
    """Turn the errors of the library `tokenizers` for a damaged file into a SourceError.

    The library raises a bare Exception or a Rust panic, without the file's name. `path` names the
    file in the message.
    """
    try:
        yield
    except BaseException as error:
        if type(error) is not Exception and type(error).__name__ != "PanicException":
            raise
        reason = str(error).partition("\n")[0]
        raise SourceError(f"{path} is damaged: {reason}") from error


def lowered(tokenizer: PieceTokenizer) -> PieceTokenizer:
    """Return the tokenizer with lower-casing before its own normalisation; `save` keeps it."""
    from tokenizers import normalizers

    backend = tokenizer.tokenizer.backend_tokenizer
    rules = [normalizers.Lowercase(), *filter(None, [backend.normalizer])]
    backend.normalizer = normalizers.Sequence(rules)
    return PieceTokenizer(tokenizer.tokenizer, tokenizer.max_length)


def keeping_rules(pieces: Any) -> Any:
    """Return the tokenizer as a PreTrainedTokenizerFast, which keeps changed rules when saved.

    A model's own tokenizer class, such as XLMRobertaTokenizer, would reset the rules.
    """
    kept = ("model_max_length", "model_input_names", "padding_side", "truncation_side")
    options = {name: getattr(pieces, name) for name in kept} | pieces.special_tokens_map
    backend = pieces.backend_tokenizer
    return PreTrainedTokenizerFast(tokenizer_object=backend, **options)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class PreparedTokenizer:
    """A tokenizer that prepares each text, puts a prompt before it, and calls another tokenizer.

    `preparation` is the name of a function in PREPARATIONS. A model's folder keeps
    the name in preparation.json.
    """

    tokenizer: Tokenizer
    preparation: str = ""
    prompt: str = ""

    @property
    def pad_id(self) -> int:
        """The token id that pads shorter rows to the length of the longest row in a batch."""
        return self.tokenizer.pad_id

    @property
    def max_length(self) -> int:
        """The maximum number of tokens per text, special tokens included."""
        return self.tokenizer.max_length

    @property
    def digest(self) -> str:
        """A hex digest of the preparation, the prompt and the inner tokenizer."""
        return digest_of(self.preparation, *filter(None, [self.prompt]), self.tokenizer.digest)

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return one row of token ids per text, cut to `max_length`."""
        prepare = PREPARATIONS[self.preparation]
        return self.tokenizer.tokenize([f"{self.prompt}{prepare(text)}" for text in texts])

    def save(self, folder: Path) -> None:
        """Write the inner tokenizer's files to a folder, and the name of the preparation."""
        self.tokenizer.save(folder)
        if self.preparation:
            write_json(folder / PREPARATION_FILE, {"preparation": self.preparation})


def with_preparation(tokenizer: Tokenizer, preparation: str) -> PreparedTokenizer:
    """Return a tokenizer that changes each text by the function PREPARATIONS[preparation] first."""
    if isinstance(tokenizer, PreparedTokenizer):
        return replace(tokenizer, preparation=preparation)
    return PreparedTokenizer(tokenizer, preparation)


def with_prompt(tokenizer: Tokenizer, prompt: str) -> Tokenizer:
    """Return the tokenizer with a prompt before each text, which replaces an earlier prompt."""
    if isinstance(tokenizer, PreparedTokenizer):
        return replace(tokenizer, prompt=prompt)
    return PreparedTokenizer(tokenizer, prompt=prompt) if prompt else tokenizer


def model_length(tokenizer: Tokenizer) -> int:
    """Return the maximum number of tokens (words, for a WordTokenizer) that a folder records."""
    if isinstance(tokenizer, PreparedTokenizer):
        return model_length(tokenizer.tokenizer)
    return tokenizer.model_length if isinstance(tokenizer, PieceTokenizer) else tokenizer.max_length


def sizes(rows: Ragged, tokenizer: Tokenizer, unit: str) -> Rows:
    """Return the size of each row of token ids, in `unit`: tokens, or characters.

    Raises UsageError for characters if the tokenizer does not split into words.
    """
    if unit == "tokens":
        return rows.lengths
    if isinstance(tokenizer, PreparedTokenizer):
        tokenizer = tokenizer.tokenizer
    counts = getattr(tokenizer, "character_counts", None)
    if counts is None:
        raise UsageError(f"batch_unit {unit} is for students that read characters: --student char")
    counted: Rows = counts(rows)
    return counted


def piece_tokenizer(tokenizer: Tokenizer, model: str, advice: str) -> PieceTokenizer:
    """Return the PieceTokenizer of a model, taken out of a PreparedTokenizer if there is one.

    Raises UsageError if the tokenizer of `model` splits into words or characters; the message ends
    with `advice`. Raises MissingExtra if the preparation needs a package that is not installed.
    """
    if isinstance(tokenizer, PreparedTokenizer):
        PREPARATIONS[tokenizer.preparation]("")
        tokenizer = tokenizer.tokenizer
    if not isinstance(tokenizer, PieceTokenizer):
        raise UsageError(f"{model} reads words or characters, not pieces of words: {advice}")
    return tokenizer


def generator(seed: int, *numbers: int) -> np.random.Generator:
    """Return a random generator seeded by `seed` and `numbers`, such as an epoch and a chunk.

    It draws the same values on every machine.
    """
    return np.random.Generator(np.random.PCG64([seed, *numbers]))


def chunks_of(rows: Rows, seed: int, epoch: int) -> list[Rows]:
    """Shuffle the row indices for an epoch, and split them into chunks of nearly equal size.

    A chunk has at most CHUNK_ROWS rows.
    """
    count = max(1, -(-len(rows) // CHUNK_ROWS))
    return np.array_split(generator(seed, epoch).permutation(rows), count)


def plan(
    lengths: npt.NDArray[np.int64], budget: int, seed: int, epoch: int, chunk: int, world: int = 1
) -> list[list[Rows]]:
    """Split a chunk into steps (updates) in random order; a step has a batch for each process.

    `world` is the number of processes; a batch is an array of row indices. `lengths`, shape (rows,
    texts per row), has the token count of each text. Rows are sorted by the length of their first
    text, so that a batch has rows of similar length. A batch has a single row, or at most `budget`
    tokens when padded to its longest text. If the last step has too few batches, the largest
    batches are halved. Single rows cannot be halved: then the last batches are joined, even beyond
    `budget`. Raises ValueError for fewer rows than `world`.
    """
    if len(lengths) < world:
        raise ValueError(f"{len(lengths)} rows cannot be dealt to {world} processes")
    random = generator(seed, epoch, chunk, 1)
    shuffled = random.permutation(len(lengths))
    order = shuffled[np.lexsort(lengths[shuffled].T[::-1])]
    batches = np.split(order, _cuts(lengths.max(1)[order].tolist(), budget))
    while len(batches) % world and max(map(len, batches)) > 1:  # the last step lacks batches
        largest = max(range(len(batches)), key=lambda at: len(batches[at]))
        batches[largest : largest + 1] = np.array_split(batches[largest], 2)
    while len(batches) % world:  # each batch is a single row: join the last two
        batches[-2:] = [np.concatenate(batches[-2:])]
    steps = [batches[at : at + world] for at in range(0, len(batches), world)]
    return [steps[number] for number in random.permutation(len(steps))]


def _cuts(lengths: list[int], budget: int) -> list[int]:
    """Return the row indices at which new batches begin, so that no batch exceeds the budget.

    `lengths` are the token counts of sorted rows. `budget` is a number of tokens, with padding.
    """
    cuts: list[int] = []
    start = longest = 0
    for row, length in enumerate(lengths):
        longest = max(longest, length)
        if longest * (row + 1 - start) > budget and row > start:
            cuts.append(row)
            start, longest = row, length
    return cuts


def by_length(lengths: Ints, budget: int) -> Iterator[Ints]:
    """Yield row indices in groups, longest rows first; padded, a group has at most `budget` tokens.

    A row longer than the budget is a group by itself.
    """
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        rows = max(1, budget // max(1, int(lengths[order[0]])))
        yield order[:rows]
        order = order[rows:]


def upload(values: "np.ndarray[Any, Any] | Tensor", device: str | torch.device) -> Tensor:
    """Return an array as a tensor on a device; the host does not wait for the copy to a GPU."""
    tensor = torch.as_tensor(values)
    if torch.device(device).type == "cuda" and not tensor.is_cuda:
        tensor = tensor.pin_memory()  # a copy from other memory would wait for the GPU
    return tensor.to(device, non_blocking=True)


# The token ids of the batch that goes through a network, in the memory of the host.
_host_ids: ContextVar[Ints | None] = ContextVar("host_ids", default=None)


def host_ids(ids: Tensor) -> Ints:
    """Return the token ids of the batch that goes through a network, in the memory of the host.

    `ids` are the same ids on the device, which are copied if the batch is not of this module.
    """
    known = _host_ids.get()
    return ids.cpu().numpy() if known is None else known.reshape(tuple(ids.shape))


@contextmanager
def _reading(ids: Ints) -> Iterator[None]:
    """Let `host_ids` return `ids` within the `with` block."""
    token = _host_ids.set(ids)
    try:
        yield
    finally:
        _host_ids.reset(token)


@dataclass(frozen=True)
class Padded:
    """A padded batch: `ids` (rows, longest) int64, `mask` (rows, longest) bool, True at tokens.

    `host` has the ids in the memory of the host. `used` is the count of tokens, without padding.
    """

    ids: Tensor
    mask: Tensor
    host: Ints
    used: int

    @classmethod
    def of(cls, rows: Ragged, pad_id: int, device: str | torch.device = "cpu") -> "Padded":
        """Pad rows of token ids with `pad_id`, and return them as a batch on a device."""
        ids = rows.padded(pad_id)
        mask = np.arange(ids.shape[1]) < rows.lengths[:, None]
        return cls(upload(ids, device), upload(mask, device), ids, len(rows.values))

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.ids)

    @property
    def tokens(self) -> int:
        """The number of tokens that the network processes, padding included."""
        return self.ids.numel()

    def states(self, network: nn.Module, **more: Tensor) -> Tensor:
        """Run the network, and return its last hidden states, shape (rows, longest, hidden).

        `more` are further arguments of the network.
        """
        config: Any = network.config
        fused: AbstractContextManager[None] = nullcontext()
        if self.ids.is_cuda and config._attn_implementation == "sdpa":
            # "sdpa" itself looks for padding in `mask`, which makes the host wait for the GPU.
            fused = attending(config, FULL if self.used == self.tokens else WITH_PADDING)
        with _reading(self.host), fused:
            output: Any = network(input_ids=self.ids, attention_mask=self.mask.long(), **more)
        return cast(Tensor, output.last_hidden_state)

    def pooled(self, states: Tensor, pooling: str) -> Tensor:
        """Pool the token states of each row into one vector, by the mode `pooling`."""
        mask, lengths = self.mask[..., None], self.mask.sum(1)
        if pooling == "max":
            return states.masked_fill(~mask, -torch.inf).amax(1)
        if pooling in _ENDS:
            rows = torch.arange(len(states), device=states.device)
            return states[rows, (lengths - 1) * _ENDS[pooling]]
        average = _AVERAGES[pooling]
        weights = mask * mask.cumsum(1) if average.is_weighted else mask
        return (states * weights).sum(1) / average.divisor(lengths.clamp(min=1))[:, None]


@dataclass(frozen=True)
class Packed:
    """A packed batch of token ids: row i is `ids[offsets[i]:offsets[i + 1]]`.

    `ids`, `positions` (index of a token in its row) and `owner` (index of a token's row) have one
    int64 per token; `offsets` is int32. `host` has the ids in the memory of the host. `rows` is the
    count of rows, and `used` of their tokens. Both exclude rows of padding ids and empty rows,
    which may follow. No row has more than `longest` tokens.
    """

    ids: Tensor
    positions: Tensor
    owner: Tensor
    offsets: Tensor
    host: Ints
    rows: int
    used: int
    longest: int

    @classmethod
    def of(
        cls,
        rows: Ragged,
        pad_id: int,
        device: str | torch.device = "cpu",
        *,
        tokens: int = 0,
        longest: int = 1,
    ) -> "Packed":
        """Join rows of token ids to a packed batch on a device.

        A compiled network is fast only if batches have few different shapes. If `tokens` is given,
        rows of `pad_id` are therefore added to reach this number of tokens, then empty rows to
        reach 2**n rows. `Packed.longest` is `longest`, or the length of the longest row if that is
        more.
        """
        longest = max(longest, int(rows.lengths.max(initial=1)))
        filled = _filled(rows, pad_id, tokens, longest) if tokens else rows
        owner = np.repeat(np.arange(len(filled)), filled.lengths)
        positions = np.arange(len(owner)) - filled.offsets[owner]
        columns = np.stack([filled.values.astype(np.int64), positions, owner])
        ids, positions, owner = upload(columns, device)
        offsets = upload(filled.offsets.astype(np.int32), device)
        used = len(rows.values)
        return cls(ids, positions, owner, offsets, columns[0], len(rows), used, longest)

    @property
    def tokens(self) -> int:
        """The number of tokens that the network processes, padding included."""
        return self.ids.numel()

    def states(self, network: nn.Module) -> Tensor:
        """Run the network, and return its last hidden states, shape (tokens, hidden).

        Raises UsageError for a network that takes no packed batches.
        """
        config: Any = network.config
        positions = self.positions + first_position(config)
        with _reading(self.host), attending(config, ATTENTION):
            output: Any = network(
                input_ids=self.ids[None],
                position_ids=positions[None],
                cu_seq_lens_q=self.offsets,
                max_length_q=self.longest,
                seq_idx=self.owner,
            )
        return cast(Tensor, output.last_hidden_state[0])

    def pooled(self, states: Tensor, pooling: str) -> Tensor:
        """Pool the token states of each row into one vector, by the mode `pooling`."""
        starts = self.offsets[: self.rows + 1]
        lengths, inner = starts.diff().long(), states[: self.used]
        if pooling in _ENDS:
            return states[starts[:-1] + (lengths - 1) * _ENDS[pooling]]
        if pooling == "max":
            return torch.segment_reduce(inner, "max", lengths=lengths, axis=0, unsafe=True)
        average = _AVERAGES[pooling]
        if average.is_weighted:
            inner = inner * (self.positions[: self.used, None] + 1)
        sums = torch.segment_reduce(inner, "sum", lengths=lengths, axis=0, unsafe=True)
        return sums / average.divisor(lengths)[:, None]


def _filled(rows: Ragged, pad_id: int, tokens: int, longest: int) -> Ragged:
    """Append rows of padding to reach `tokens` tokens, then empty rows to reach 2**n rows.

    A row of padding has at most `longest` tokens.
    """
    tail = max(0, tokens - len(rows.values))
    lengths = [longest] * (tail // longest) + [tail % longest]
    count = len(rows) + len(lengths)
    lengths += [0] * ((1 << (count - 1).bit_length()) - count)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Ragged.joined([rows, Ragged(np.full(tail, pad_id, np.int32), offsets)])


def first_position(config: Any) -> int:
    """Return the position id of the first token of a row: 0, or the padding id + 1.

    Raises UsageError for a network that takes no packed batches.
    """
    kind = str(config.model_type)
    if kind not in _AFTER_PADDING:
        known = ", ".join(_AFTER_PADDING)
        raise UsageError(f"a {kind} network takes no packed batches, only {known}: packed=false")
    return int(config.pad_token_id) + 1 if _AFTER_PADDING[kind] else 0


def is_packable(config: Any) -> bool:
    """Return whether both this type of network and this version of torch support packed batches."""
    has_attention = find_spec("torch.nn.attention.varlen") is not None  # since torch 2.10
    return has_attention and config.model_type in _AFTER_PADDING


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **packed: Any,
) -> tuple[Tensor, None]:
    """Compute attention within each row of a packed batch; the result is (1, tokens, heads, size).

    `query`, `key` and `value` have shape (1, heads, tokens, size). `packed` has the arguments that
    `Packed.states` passes to the network. transformers adds `scaling`, which multiplies the
    products of queries and keys, and `dropout`, the rate at which attention weights are dropped.
    """
    scale, dropout = packed["scaling"], packed.get("dropout", 0.0)
    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16):
        sides = [side[0].transpose(0, 1) for side in (query, key, value)]
        offsets, longest = packed["cu_seq_lens_q"], packed["max_length_q"]
        return flash_attention(sides, offsets, longest, scale, dropout)[None], None
    same_row = packed["seq_idx"][:, None] == packed["seq_idx"]
    out = nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=same_row, dropout_p=dropout, scale=scale
    )
    return out.transpose(1, 2), None


def flash_attention(
    sides: Sequence[Tensor], offsets: Tensor, longest: int, scale: float, dropout: float
) -> Tensor:
    """Return attention within rows, (tokens, heads, size), computed by torch's kernel for CUDA.

    `sides` are queries, keys and values of this shape. `Packed` describes `offsets` and `longest`.
    """
    query, key, value = sides
    if not dropout:
        from torch.nn.attention.varlen import varlen_attn

        whole: Any = varlen_attn(query, key, value, offsets, offsets, longest, longest, scale=scale)
        return cast(Tensor, whole)
    # `varlen_attn` calls the same kernel, but always with a dropout of 0.
    dropped, *_ = torch.ops.aten._flash_attention_forward(
        query, key, value, offsets, offsets, longest, longest, dropout, False, False, scale=scale
    )
    return cast(Tensor, dropped)


# transformers also looks for a function that builds masks under this name. It finds none, and so
# builds no mask.
AttentionInterface.register(ATTENTION, _attend)


def _padding_mask(**given: Any) -> Tensor | None:
    """Return transformers' mask for rows with padding."""
    mask: Tensor | None = sdpa_mask(
        **{**given, "allow_is_bidirectional_skip": False, "allow_is_causal_skip": False}
    )
    return mask


def _full_mask(**given: Any) -> Tensor | None:
    """Return transformers' mask for rows without padding; often there is none."""
    mask: Tensor | None = sdpa_mask(**{**given, "attention_mask": None})
    return mask


for _name, _mask in ((WITH_PADDING, _padding_mask), (FULL, _full_mask)):
    AttentionInterface.register(_name, sdpa_attention_forward)
    AttentionMaskInterface.register(_name, _mask)


@contextmanager
def attending(config: Any, name: str) -> Iterator[None]:
    """Let the network of `config` use the attention that transformers knows as `name`.

    The previous attention is restored after the `with` block.
    """
    previous = config._attn_implementation
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = previous


def attending_fast(config: Any, batch: Padded) -> AbstractContextManager[Any]:
    """Use the fastest attention for a padded batch in bf16.

    On a CPU, plain matrix products are the fastest for short rows.
    """
    if batch.ids.device.type != "cpu" or batch.ids.shape[1] > PLAIN_LONGEST:
        return nullcontext()
    return attending(config, "eager")
