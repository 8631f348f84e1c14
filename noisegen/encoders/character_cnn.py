"""Word vectors from characters, as in CharacterBERT (El Boukkouri et al. 2020).

The tokenizer splits texts by BERT's basic tokenisation and numbers new words as they appear. As in
ELMo, a word is read as its bytes, with a begin symbol before them and an end symbol after them. The
CNN computes the vector of each distinct word of a batch once.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from tokenizers import normalizers, pre_tokenizers
from torch import Tensor, nn

from noisegen.encoders.encoder import Ints, Ragged, Tokenizer, digest_of, replace_surrogates
from noisegen.encoders.stored import write_json
from noisegen.encoders.tokens import host_ids, upload
from noisegen.errors import NoisegenError

CHARACTERS = 50  # character ids per word: begin symbol, at most 48 bytes, end symbol, filling
CHARACTER_KINDS = 263  # number of character ids: 0 padding, 1 to 256 bytes, 257 to 262 symbols
_BYTES = CHARACTERS - 2
_BEGIN, _END, _FILL = 259, 260, 261
PAD, CLS, SEP, MASK = range(4)  # ids of the special words
# Bytes of the special words, in the order of their ids; no word of a text has these bytes.
_SPECIAL = np.array([b"", b"\1", b"\2", b"\3"], f"S{_BYTES}")
_OF_BYTE = np.arange(1, 257, dtype=np.int16)
_OF_BYTE[[CLS, SEP, MASK]] = 257, 258, 262
_FIRST = len(_SPECIAL)
_ID_COUNT = 1 << 30  # number of word ids; after the last, numbering starts again
CHUNK_MAX = 64  # maximum length of a text between two spaces whose words are cached
FILE = "words.json"

# Convolutions over the characters of a word, as in ELMo: (characters per window, filters).
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1_024))
CHARACTER_WIDTH = 16
HIGHWAYS = 2
_FILTERS = sum(count for _, count in FILTERS)
_WIDEST = max(width for width, _ in FILTERS)
# Character ids read per short word: two symbols, up to 7 bytes, and filling for the widest window.
# Most words are as short as this.
SHORT = 16

Words = npt.NDArray[np.bytes_]
# Patterns of CharacterBERT's names of weights, and the names of these weights in CharacterCNN.
_RENAMED = (
    (re.compile(r"\b_char_embedding_weights$"), "characters.weight"),
    (re.compile(r"\bchar_conv_(\d+)\."), r"convolutions.\1."),
    (re.compile(r"\b_highways\._layers\."), "highways."),
    (re.compile(r"\b_projection\."), "projection."),
)


class WordIds:
    """Dictionary from words to ids and from ids to words; a new word gets the next free id.

    Noise makes new words without end, so memory is bounded. Only the bytes of the last `kept` new
    words are stored (0.4 GB by default); looking up an older id is an error. The dictionary `known`
    from words to ids holds at most `renewed` words (0.15 GB by default). When it is full, it is
    emptied, and a word that appears again gets a new id. An id from `known` is therefore valid for
    at least the next `kept - renewed` new words.
    """

    def __init__(self, kept: int = 1 << 23, renewed: int = 1 << 20) -> None:
        if _ID_COUNT % kept or renewed >= kept:
            raise ValueError(f"kept {kept} must be a power of two above renewed {renewed}")
        self.kept, self.renewed = kept, renewed
        self.known: dict[str | bytes, int] = {}
        self._words = np.zeros(kept, f"S{_BYTES}")
        self.count = 0  # words numbered so far
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            words = self._words[: self.count].copy()
            return {**vars(self), "known": dict(self.known), "_words": words, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        words = np.zeros(state["kept"], f"S{_BYTES}")
        words[: len(state["_words"])] = state["_words"]
        vars(self).update(state, _words=words, _lock=Lock())

    def add(self, word: str | bytes) -> int:
        """Give an id to a word that the dictionary `known` lacks, and return the id."""
        with self._lock:
            if word in self.known:
                return self.known[word]
            if len(self.known) >= self.renewed:
                self.known = {}
            content = word.encode() if isinstance(word, str) else word
            self._words[self.count % self.kept] = content[:_BYTES]
            self.known[word] = number = _FIRST + self.count % _ID_COUNT
            self.count += 1
            return number

    def words(self, ids: Ints) -> Words:
        """Return the bytes of the words with these ids; raises NoisegenError for an expired id."""
        numbers = ids.astype(np.int64) - _FIRST
        words = self._words[numbers % self.kept]
        # Another thread may overwrite words while they are read. `count` is read only after them:
        # then overwritten words have an age that raises the error.
        ages = (self.count - numbers - 1) % _ID_COUNT
        if ((ages >= min(self.kept, self.count)) & (numbers >= 0)).any():
            kept = f"only the last {self.kept:,} new words are kept"
            raise NoisegenError(f"word ids have expired, {kept}; encode fewer texts at once")
        is_special = numbers < 0
        words[is_special] = _SPECIAL[ids[is_special]]
        return words

    def packed(self, rows: Ragged) -> tuple[Ragged, Words]:
        """Return rows of word ids for another process: indices, and the words that they index."""
        numbers, number_of = np.unique(rows.values, return_inverse=True)
        return Ragged(number_of.astype(np.int32), rows.offsets), self.words(numbers)

    def unpacked(self, rows: Ragged, words: Words) -> Ragged:
        """Return rows of this process's word ids, from what `packed` returns in another one."""
        special = {word: number for number, word in enumerate(_SPECIAL.tolist())}
        ids = [special[word] if word in special else self._id_of(word) for word in words.tolist()]
        return Ragged(np.array(ids, np.int32)[rows.values], rows.offsets)

    def _id_of(self, word: bytes) -> int:
        return self.known.get(word) or self.add(word)

    def distinct(self, ids: Ints) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
        """Return the distinct words of a batch, and for each id the index of its word among them.

        `ids` are word ids of any shape. Each word is a row of 50 character ids. Words are sorted by
        length in bytes and then by bytes, so their order does not depend on the ids. The indices
        have the shape of `ids`.
        """
        numbers, number_of = np.unique(ids, return_inverse=True)
        words, word_of = np.unique(self.words(numbers), return_inverse=True)
        order = np.argsort(np.char.str_len(words), kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return characters_of(words[order]), rank[word_of][number_of].reshape(ids.shape)


def characters_of(words: Words) -> npt.NDArray[np.int16]:
    """Return the character ids of words, shape (words, 50); the empty word (padding) has zeros."""
    content = np.ascontiguousarray(words).view(np.uint8).reshape(len(words), _BYTES)
    lengths = np.char.str_len(words)
    characters = np.full((len(words), CHARACTERS), _FILL, np.int16)
    characters[:, 0] = _BEGIN
    characters[:, 1:-1] = np.where(content > 0, _OF_BYTE[content], _FILL)
    characters[np.arange(len(words)), lengths + 1] = _END
    characters[lengths == 0] = 0
    return characters


class WordTokenizer:
    """A tokenizer into words; a row holds [CLS], the ids of the words, and [SEP].

    With `lower`, texts are converted to lower case. The dictionary `table` gives words their ids.
    """

    pad_id = PAD

    def __init__(
        self, max_length: int, *, lower: bool = False, table: WordIds | None = None
    ) -> None:
        self.max_length, self.lower = max_length, lower
        self.table = table or WordIds()

    @cached_property
    def digest(self) -> str:
        """A hex digest of `max_length` and `lower`."""
        return digest_of("words", self.max_length, self.lower)

    def with_rules(self, max_length: int, *, lower: bool) -> "WordTokenizer":
        """Return a tokenizer with other settings but the same table of word ids."""
        return WordTokenizer(max_length, lower=lower, table=self.table)

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return one row of word ids per text, cut to `max_length`."""
        add, lower = self.table.add, self.lower
        rows = []
        for text in map(replace_surrogates, texts):
            words: list[str] = []
            for chunk in text.split(" "):
                words += (_cached_words if len(chunk) <= CHUNK_MAX else basic_words)(chunk, lower)
            known = self.table.known
            ids = (known.get(word) or add(word) for word in words[: self.max_length - 2])
            rows.append([CLS, *ids, SEP])
        return Ragged.of(rows)

    def character_counts(self, rows: Ragged) -> npt.NDArray[np.int64]:
        """Return the number of characters in each row of word ids, and of an end sign per word."""
        counts = np.char.str_len(self.table.words(rows.values)) + 1
        sums: npt.NDArray[np.int64] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return sums[rows.offsets[1:]] - sums[rows.offsets[:-1]]

    def save(self, folder: Path) -> None:
        """Write `max_length` and `lower` to words.json in a folder."""
        write_json(folder / FILE, {"max_length": self.max_length, "lower": self.lower})


def word_ids_of(tokenizer: Tokenizer) -> WordIds | None:
    """Return the word ids of a tokenizer into words; None for a tokenizer into pieces."""
    inner = getattr(tokenizer, "tokenizer", tokenizer)  # a PreparedTokenizer calls another
    return inner.table if isinstance(inner, WordTokenizer) else None


class WordRules(msgspec.Struct):
    """The content of words.json: the settings of a WordTokenizer."""

    max_length: int
    lower: bool


_NORMALIZERS = {
    lower: normalizers.BertNormalizer(strip_accents=False, lowercase=lower)
    for lower in (False, True)
}
_SPLITTER = pre_tokenizers.BertPreTokenizer()


def basic_words(text: str, lower: bool = False) -> tuple[str, ...]:
    """Split a text by BERT's basic tokenisation; return its words, each cut to 48 characters.

    Control characters are dropped. Each punctuation character and each Chinese character is a word.
    With `lower`, the text is converted to lower case.
    """
    return tuple(word[:_BYTES] for word in split_words(text, lower))


def split_words(text: str, lower: bool = False) -> list[str]:
    """Split a text into words by BERT's basic tokenisation; `lower` converts to lower case."""
    normal = _NORMALIZERS[lower].normalize_str(text)
    return [word for word, _ in _SPLITTER.pre_tokenize_str(normal)]


# BERT's rules split at spaces, so the text between two spaces is split alone, and cached.
_cached_words = lru_cache(1 << 18)(basic_words)


def renamed(name: str) -> str:
    """Translate the name of a weight in CharacterBERT to its name in CharacterCNN."""
    for pattern, ours in _RENAMED:
        name = pattern.sub(ours, name)
    return name


class CharacterCNN(nn.Module):
    """A CNN over the characters of words, in place of a network's word embeddings.

    It maps word ids, shape (rows, words), to vectors, shape (rows, words, hidden); `table` maps ids
    to words. Its layers are convolutions of several widths, the maximum of each filter over the
    word, two highway layers, and a projection. Before training, the numbers in the vectors have the
    standard deviation `spread`.
    """

    def __init__(self, hidden: int, table: WordIds, spread: float = 0.02) -> None:
        super().__init__()
        self.table = table
        self.characters = nn.Embedding(CHARACTER_KINDS, CHARACTER_WIDTH)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(CHARACTER_WIDTH, count, width) for width, count in FILTERS
        )
        self.highways = nn.ModuleList(nn.Linear(_FILTERS, 2 * _FILTERS) for _ in range(HIGHWAYS))
        self.projection = nn.Linear(_FILTERS, hidden)
        with torch.no_grad():  # gate biases of 1: untrained highways mostly pass on their input
            for highway in self.highways:
                nn.init.ones_(highway.get_parameter("bias")[_FILTERS:])
            # Before training, the projection's input has a root mean square of 0.4 (measured). With
            # this `std`, its output has the standard deviation `spread`.
            nn.init.normal_(self.projection.weight, std=spread / 0.4 * _FILTERS**-0.5)
            nn.init.zeros_(self.projection.bias)

    def forward(self, ids: Tensor) -> Tensor:
        """Return vectors of shape (rows, words, hidden); raises NoisegenError for expired ids."""
        characters, word_of = self.table.distinct(host_ids(ids))
        vectors = self.vectors(torch.from_numpy(characters))
        return nn.functional.embedding(upload(word_of, ids.device), vectors)

    def of_characters(self, characters: Tensor) -> Tensor:
        """Return vectors (rows, words, hidden) of words given as character ids.

        `characters` has shape (rows, words, 50).
        """
        words, word_of = torch.unique(characters.flatten(0, 1), dim=0, return_inverse=True)
        order = _needed(words).argsort(stable=True)
        vectors = self.vectors(words[order])
        ranks = order.argsort()[word_of].view(characters.shape[:2])
        return nn.functional.embedding(ranks, vectors)

    def vectors(self, characters: Tensor) -> Tensor:
        """Return the vectors (words, hidden) of words given as character ids (words, 50).

        The words must be sorted by length, shortest first.
        """
        states = torch.cat([self.convolved(group) for group in trimmed(characters)])
        for highway in self.highways:
            new, gate = highway(states).chunk(2, dim=-1)
            carried = torch.sigmoid(gate)
            states = carried * states + (1 - carried) * torch.relu(new)
        vectors: Tensor = self.projection(states)
        return vectors

    def convolved(self, characters: Tensor) -> Tensor:
        """Return the maximum of each filter over a word's windows, shape (words, filters).

        A negative maximum becomes 0.
        """
        states = self.characters(upload(characters, self.projection.weight.device).int())
        maxima = []
        for filters, bias in (convolution.parameters() for convolution in self.convolutions):
            # A product of matrices takes half the time of torch's convolution with few channels.
            windows = states.unfold(1, filters.shape[2], 1).flatten(2)
            maxima.append(nn.functional.linear(windows, filters.flatten(1), bias).amax(1))
        return torch.relu(torch.cat(maxima, 1))


def trimmed(characters: Tensor) -> Iterator[Tensor]:
    """Yield character ids of the short words, then of the longer words, with less filling.

    `characters` are the character ids (words, 50) of words sorted by length. Filling ids follow the
    end symbol of a word. All convolution windows within the filling give equal values, so their
    maximum needs only one of them. Filling beyond the widest window is therefore cut off.
    """
    needed = _needed(characters)
    short = int((needed <= SHORT).sum())
    for rows in (slice(short), slice(short, None)):
        if len(needed[rows]):
            yield characters[rows, : min(CHARACTERS, int(needed[rows].max()))]


def _needed(characters: Tensor) -> Tensor:
    """Return how many ids to keep of each word: its own, and filling for the widest window."""
    return (characters != characters[:, -1:]).sum(1) + _WIDEST
