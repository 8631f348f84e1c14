"""Words for a character CNN: BERT's basic tokenisation, numbered words, and their characters.

Characters are those of CharacterBERT (El Boukkouri et al. 2020), as in ELMo: the bytes of a word
between two signs.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from noisegen.encoders.ragged import Ints, Ragged
from noisegen.encoders.surrogates import whole
from noisegen.errors import NoisegenError

CHARACTERS = 50  # of a word: at most 48 bytes, between a sign that begins and one that ends it
CHARACTER_KINDS = 263  # 0 where there is no word, bytes + 1, and six signs
_BYTES = CHARACTERS - 2
_BEGIN, _END, _FILL = 259, 260, 261
PAD, CLS, SEP, MASK = range(4)  # word ids
_MARKS = np.array([b"", b"\1", b"\2", b"\3"], f"S{_BYTES}")  # no word of a text has these bytes
_OF_BYTE = np.arange(1, 257, dtype=np.int16)
_OF_BYTE[[CLS, SEP, MASK]] = 257, 258, 262
_FIRST = len(_MARKS)
_SPAN = 1 << 30  # word ids begin anew after so many
CHUNK_MAX = 64  # characters of a piece between blanks whose words are remembered
FILE = "words.json"

Words = npt.NDArray[np.bytes_]


class WordTable:
    """Numbers words, in order of appearance, and gives their characters back.

    Noise makes new words for ever, so an id is only promised for the next `kept - renewed` new
    words. Then its row is given to another word, and whoever still asks for it is told so. The
    same word gets a new id after `renewed` others. Rows are touched as they come: with the default
    sizes never more than 0.4 GB, and the dictionary of ids never more than 0.15 GB.
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
            return {
                "kept": self.kept, "renewed": self.renewed, "known": dict(self.known),
                "words": self._words[: self._count].copy(), "count": self._count,
            }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["kept"], state["renewed"])  # type: ignore[misc]
        self.known, self._count = state["known"], state["count"]
        self._words[: len(state["words"])] = state["words"]

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
        """Return the bytes of words; raises NoisegenError for ids no longer kept."""
        numbers = ids.astype(np.int64) - _FIRST
        out = self._words[numbers % self.kept]
        ages = (self._count - numbers - 1) % _SPAN  # read after the words were taken
        if ((ages >= min(self.kept, self._count)) & (numbers >= 0)).any():
            raise NoisegenError(
                f"word ids were given up, only the last {self.kept:,} new words are kept; encode "
                "fewer texts at once"
            )
        special = numbers < 0
        out[special] = _MARKS[ids[special]]
        return out

    def distinct(self, ids: Ints) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
        """Return the characters (words, 50) of the different words, and which of them each id is.

        Their order, shortest first, depends on the words alone and not on the table.
        """
        numbers, where = np.unique(ids, return_inverse=True)
        words, same = np.unique(self.words(numbers), return_inverse=True)
        order = np.argsort(np.char.str_len(words), kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return characters_of(words[order]), place[same][where].reshape(ids.shape)


def characters_of(words: Words) -> npt.NDArray[np.int16]:
    """Return shape (words, 50); all 0 for the empty word, which is padding."""
    content = np.ascontiguousarray(words).view(np.uint8).reshape(len(words), _BYTES)
    lengths = np.char.str_len(words)
    out = np.full((len(words), CHARACTERS), _FILL, np.int16)
    out[:, 0] = _BEGIN
    out[:, 1:-1] = np.where(content > 0, _OF_BYTE[content], _FILL)
    out[np.arange(len(words)), lengths + 1] = _END
    out[lengths == 0] = 0
    return out


class WordTokenizer:
    """Texts to word ids: [CLS], the words, [SEP]; with `lower` words are made lower-case."""

    pad_id = PAD

    def __init__(
        self, max_length: int, *, lower: bool = False, table: WordTable | None = None
    ) -> None:
        self.max_length, self.lower = max_length, lower
        self.table = table or WordTable()

    @cached_property
    def digest(self) -> str:
        """Names the rules and the length where texts are cut."""
        return sha256(f"words {self.max_length} {self.lower}".encode()).hexdigest()

    def with_rules(self, max_length: int, *, lower: bool) -> "WordTokenizer":
        """Return a tokenizer with other rules and the same numbers of words."""
        return WordTokenizer(max_length, lower=lower, table=self.table)

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return one row of word ids a text, cut to `max_length`."""
        return Ragged.of([self._row(text) for text in texts])

    def _row(self, text: str) -> list[int]:
        known, add, lower = self.table.known, self.table.add, self.lower
        words = [
            word
            for chunk in whole(text).split(" ")
            for word in (_remembered if len(chunk) <= CHUNK_MAX else basic_words)(chunk, lower)
        ]
        ids = [known.get(word) or add(word) for word in words[: self.max_length - 2]]
        return [CLS, *ids, SEP]

    def save(self, folder: Path) -> None:
        """Write words.json."""
        said = {"max_length": self.max_length, "lower": self.lower}
        (folder / FILE).write_text(json.dumps(said) + "\n", "utf-8")


def basic_words(text: str, lower: bool = False) -> tuple[str, ...]:
    """Return the words of BERT's basic tokenisation, each cut to 48 characters.

    Controls are dropped; punctuation and Chinese characters are words of their own.
    """
    clean, cut = _rules(lower)
    return tuple(word[:_BYTES] for word, _ in cut(clean(text)))


# A blank is a boundary for each of BERT's rules, which read one character at a time, so what is
# between blanks can be cut alone, and remembered.
_remembered = lru_cache(1 << 18)(basic_words)


@cache
def _rules(lower: bool) -> tuple[Callable[[str], str], Callable[[str], list[tuple[str, Any]]]]:
    from tokenizers import normalizers, pre_tokenizers

    clean = normalizers.BertNormalizer(strip_accents=False, lowercase=lower)
    return clean.normalize_str, pre_tokenizers.BertPreTokenizer().pre_tokenize_str
