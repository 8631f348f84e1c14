"""Words from their characters: the tokenizer and CNN of CharacterBERT (El Boukkouri et al. 2020).

Words come from BERT's basic tokenisation and are numbered as they appear. As in ELMo, the
characters of a word are its bytes between a begin sign and an end sign. The CNN reads each distinct
word of a batch once.
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

from noisegen.encoders.encoder import Ints, Ragged, digest_of, replace_surrogates
from noisegen.encoders.stored import write_json
from noisegen.errors import NoisegenError

CHARACTERS = 50  # per word: at most 48 bytes between a begin sign and an end sign
CHARACTER_KINDS = 263  # 0 for no word, then byte + 1, then six signs
_BYTES = CHARACTERS - 2
_BEGIN, _END, _FILL = 259, 260, 261
PAD, CLS, SEP, MASK = range(4)  # word ids
_SPECIAL = np.array([b"", b"\1", b"\2", b"\3"], f"S{_BYTES}")  # no word of a text has these bytes
_OF_BYTE = np.arange(1, 257, dtype=np.int16)
_OF_BYTE[[CLS, SEP, MASK]] = 257, 258, 262
_FIRST = len(_SPECIAL)
_SPAN = 1 << 30  # after this number of words, ids start again
CHUNK_MAX = 64  # characters; the words of longer text between two spaces are not cached
FILE = "words.json"

# Width of a window, and the number of filters of that width: CharacterBERT's, taken from ELMo.
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1_024))
CHARACTER_WIDTH = 16
HIGHWAYS = 2
_FILTERS = sum(count for _, count in FILTERS)
_WIDEST = max(width for width, _ in FILTERS)
SHORT = 16  # characters needed for words of up to 7 bytes, which most words are

Words = npt.NDArray[np.bytes_]
# CharacterBERT's names of weights, and the names here.
_RENAMED = (
    (re.compile(r"\b_char_embedding_weights$"), "characters.weight"),
    (re.compile(r"\bchar_conv_(\d+)\."), r"convolutions.\1."),
    (re.compile(r"\b_highways\._layers\."), "highways."),
    (re.compile(r"\b_projection\."), "projection."),
)


class WordIds:
    """Numbers words in order of appearance, and returns the characters of a number.

    Noise makes new words forever, so an id is only valid for the next `kept - renewed` new words.
    Then its row is given to another word, and looking the id up is an error. After `renewed` other
    words the same word gets a new id. Memory grows with the words: with the default sizes up to
    0.4 GB, and up to 0.15 GB for the dictionary of ids.
    """

    def __init__(self, kept: int = 1 << 23, renewed: int = 1 << 20) -> None:
        if _SPAN % kept or renewed >= kept:
            raise ValueError(f"kept {kept} must be a power of two above renewed {renewed}")
        self.kept, self.renewed = kept, renewed
        self.known: dict[str, int] = {}
        self._words = np.zeros(kept, f"S{_BYTES}")
        self._count = 0
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            words = self._words[: self._count].copy()
            return {**vars(self), "known": dict(self.known), "_words": words, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        words = np.zeros(state["kept"], f"S{_BYTES}")
        words[: len(state["_words"])] = state["_words"]
        vars(self).update(state, _words=words, _lock=Lock())

    def add(self, word: str) -> int:
        """Return the id of a word that `known` lacks."""
        with self._lock:
            if word in self.known:
                return self.known[word]
            if len(self.known) >= self.renewed:
                self.known = {}
            self._words[self._count % self.kept] = word.encode()[:_BYTES]
            self.known[word] = number = _FIRST + self._count % _SPAN
            self._count += 1
            return number

    def words(self, ids: Ints) -> Words:
        """Return the bytes of words; raises NoisegenError for ids that are no longer valid."""
        numbers = ids.astype(np.int64) - _FIRST
        words = self._words[numbers % self.kept]
        ages = (self._count - numbers - 1) % _SPAN  # counted last: threads may add words
        if ((ages >= min(self.kept, self._count)) & (numbers >= 0)).any():
            kept = f"only the last {self.kept:,} new words are kept"
            raise NoisegenError(f"word ids have expired, {kept}; encode fewer texts at once")
        is_special = numbers < 0
        words[is_special] = _SPECIAL[ids[is_special]]
        return words

    def distinct(self, ids: Ints) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
        """Return the characters (words, 50) of the distinct words, and the word number of each id.

        Words are ordered by length, then by their bytes, whatever their ids.
        """
        numbers, number_of = np.unique(ids, return_inverse=True)
        words, word_of = np.unique(self.words(numbers), return_inverse=True)
        order = np.argsort(np.char.str_len(words), kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return characters_of(words[order]), rank[word_of][number_of].reshape(ids.shape)


def characters_of(words: Words) -> npt.NDArray[np.int16]:
    """Return the characters of words, shape (words, 50); the empty word is padding, all 0."""
    content = np.ascontiguousarray(words).view(np.uint8).reshape(len(words), _BYTES)
    lengths = np.char.str_len(words)
    characters = np.full((len(words), CHARACTERS), _FILL, np.int16)
    characters[:, 0] = _BEGIN
    characters[:, 1:-1] = np.where(content > 0, _OF_BYTE[content], _FILL)
    characters[np.arange(len(words)), lengths + 1] = _END
    characters[lengths == 0] = 0
    return characters


class WordTokenizer:
    """A tokenizer that makes word ids: [CLS], the words, [SEP]; `lower` lower-cases the words."""

    pad_id = PAD

    def __init__(
        self, max_length: int, *, lower: bool = False, table: WordIds | None = None
    ) -> None:
        self.max_length, self.lower = max_length, lower
        self.table = table or WordIds()

    @cached_property
    def digest(self) -> str:
        """A hex digest of the rules and the maximum length."""
        return digest_of("words", self.max_length, self.lower)

    def with_rules(self, max_length: int, *, lower: bool) -> "WordTokenizer":
        """Return a tokenizer with other rules that shares the word ids."""
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

    def save(self, folder: Path) -> None:
        """Write words.json."""
        write_json(folder / FILE, {"max_length": self.max_length, "lower": self.lower})


class WordRules(msgspec.Struct):
    """The content of words.json."""

    max_length: int
    lower: bool


_NORMALIZERS = {
    lower: normalizers.BertNormalizer(strip_accents=False, lowercase=lower)
    for lower in (False, True)
}
_SPLITTER = pre_tokenizers.BertPreTokenizer()


def basic_words(text: str, lower: bool = False) -> tuple[str, ...]:
    """Return the words of BERT's basic tokenisation, each cut to 48 characters.

    Control characters are dropped; punctuation and Chinese characters are words of their own.
    """
    return tuple(word[:_BYTES] for word in split_words(text, lower))


def split_words(text: str, lower: bool = False) -> list[str]:
    """Return the words of BERT's basic tokenisation."""
    normal = _NORMALIZERS[lower].normalize_str(text)
    return [word for word, _ in _SPLITTER.pre_tokenize_str(normal)]


# BERT's rules read one character at a time and split at spaces, so the text between two spaces can
# be split alone and cached.
_cached_words = lru_cache(1 << 18)(basic_words)


def renamed(name: str) -> str:
    """Return the name here of a weight, from its name in CharacterBERT."""
    for pattern, ours in _RENAMED:
        name = pattern.sub(ours, name)
    return name


class CharacterCNN(nn.Module):
    """A replacement of a network's word embeddings by a CNN over characters.

    It maps ids of `table` (rows, words) to vectors (rows, words, hidden): convolutions of several
    widths over the characters, their maximum, two highway layers and a projection.
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
        with torch.no_grad():  # new highways carry; vectors have the standard deviation `spread`
            for highway in self.highways:
                nn.init.ones_(highway.get_parameter("bias")[_FILTERS:])
            # The output of the untrained highways has a root mean square of 0.4 (measured).
            nn.init.normal_(self.projection.weight, std=spread / 0.4 * _FILTERS**-0.5)
            nn.init.zeros_(self.projection.bias)

    def forward(self, ids: Tensor) -> Tensor:
        """Return vectors of shape (rows, words, hidden); raises NoisegenError for expired ids."""
        characters, word_of = self.table.distinct(ids.cpu().numpy())
        vectors = self.vectors(torch.from_numpy(characters))
        return nn.functional.embedding(torch.from_numpy(word_of).to(ids.device), vectors)

    def of_characters(self, characters: Tensor) -> Tensor:
        """Return vectors (rows, words, hidden) of characters (rows, words, 50), not of ids."""
        words, word_of = torch.unique(characters.flatten(0, 1), dim=0, return_inverse=True)
        order = _needed(words).argsort(stable=True)
        vectors = self.vectors(words[order])
        ranks = order.argsort()[word_of].view(characters.shape[:2])
        return nn.functional.embedding(ranks, vectors)

    def vectors(self, characters: Tensor) -> Tensor:
        """Return vectors (words, hidden) of characters (words, 50), shortest words first."""
        states = torch.cat([self.convolved(group) for group in trimmed(characters)])
        for highway in self.highways:
            new, gate = highway(states).chunk(2, dim=-1)
            carried = torch.sigmoid(gate)
            states = carried * states + (1 - carried) * torch.relu(new)
        vectors: Tensor = self.projection(states)
        return vectors

    def convolved(self, characters: Tensor) -> Tensor:
        """Return the maximum of each filter over a word, at least 0, shape (words, filters)."""
        states = self.characters(characters.to(self.projection.weight.device).int())
        maxima = []
        for filters, bias in (convolution.parameters() for convolution in self.convolutions):
            # A product of matrices takes half the time of torch's convolution, made for more
            # channels.
            windows = states.unfold(1, filters.shape[2], 1).flatten(2)
            maxima.append(nn.functional.linear(windows, filters.flatten(1), bias).amax(1))
        return torch.relu(torch.cat(maxima, 1))


def trimmed(characters: Tensor) -> Iterator[Tensor]:
    """Yield the characters of short words, then of the other words, without most of their padding.

    All windows of padding give the same values, and the maximum needs them once. So after its last
    character a word keeps padding of the width of the widest window.
    """
    needed = _needed(characters)
    short = int((needed <= SHORT).sum())
    for rows in (slice(short), slice(short, None)):
        if len(needed[rows]):
            yield characters[rows, : min(CHARACTERS, int(needed[rows].max()))]


def _needed(characters: Tensor) -> Tensor:
    """Return the number of characters to read of each word, padding included."""
    return (characters != characters[:, -1:]).sum(1) + _WIDEST
