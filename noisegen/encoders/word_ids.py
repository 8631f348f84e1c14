"""Token ids of texts, joined from the ids of their words.

Most tokenizers split text at spaces first, and a word gets the same tokens wherever it stands. So
each distinct word is tokenised once and its ids are kept; a text's ids are gathered from those of
its words. This is about ten times as fast as tokenising whole texts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.encoders.encoder import Ragged

# Pattern that finds %s as a whole word, but not in longer words, mentions, tags and links.
WHOLE_WORD = r"(?<![\w@#/='’-])(?<!\w\.)(?:%s)(?![\w@/=-]|['’.]\w)"
WORDS_MAX = 2**19  # maximum number of words kept; then all are forgotten
_NORMALIZERS = {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Precompiled"}
# Texts that are tokenised whole: with other spaces than single ones between words, with control
# characters, some of which become spaces, or with a combining mark after a space.
_IRREGULAR = (
    r"^ | $| [ \p{M}]|[\p{C}\p{Zl}\p{Zp}\x{a0}\x{1680}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}]"
)
# Regular expression that matches one character, but no space.
_CHARACTERS = re.compile(r"\[(?:[^\[\]\\ ]|\\[^s])*\]")
_MARK = "\x1f"  # marks the ends of words; texts with control characters are irregular


class KnownWords:
    """Tokenises texts by `backend`, a tokenizer of the library `tokenizers`, word by word.

    The tokenizer must pass `is_local` and cut texts to `max_length`. Several threads may use it.
    """

    def __init__(self, backend: Any, max_length: int) -> None:
        self._backend, self._max_length = backend, max_length
        self._before, self._after = ends(backend)
        self._known: dict[str, int] = {}  # word -> its row in `_ids`
        self._ids = Ragged.of([])
        self._lock = Lock()

    def __reduce__(self) -> tuple[type, tuple[Any, int]]:
        return type(self), (self._backend, self._max_length)

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return one row of token ids per text, cut to the maximum length."""
        array = pa.array(texts, pa.large_string())
        is_whole = pc.match_substring_regex(array, _IRREGULAR).to_numpy(zero_copy_only=False)
        regular, whole = np.flatnonzero(~is_whole), np.flatnonzero(is_whole)
        rows = self._joined(array.take(pa.array(regular)))
        if not len(whole):
            return rows
        encodings = self._backend.encode_batch_fast([texts[row] for row in whole.tolist()])
        both = Ragged.joined([rows, Ragged.of([encoding.ids for encoding in encodings])])
        return both.take(np.argsort(np.concatenate([regular, whole])))

    def _joined(self, texts: pa.LargeStringArray) -> Ragged:
        """Return the rows of regular texts."""
        split = pc.split_pattern(pc.replace_substring(texts, " ", f"{_MARK} "), _MARK)
        words = split.flatten().dictionary_encode()
        numbers, kept = self._numbers(words.dictionary.to_pylist())
        of_texts = kept.take(numbers[words.indices.to_numpy()])
        own = of_texts.offsets[np.asarray(split.offsets)]  # positions of first ids
        return self._with_ends(Ragged(of_texts.values, own))

    def _numbers(self, words: list[str]) -> tuple[npt.NDArray[np.int64], Ragged]:
        """Return the numbers of words, and the rows of ids that have these numbers."""
        with self._lock:
            if len(self._known) + len(words) > WORDS_MAX:
                self._known, self._ids = {}, Ragged.of([])
            known = self._known
            if new := [word for word in words if word not in known]:
                encodings = self._backend.encode_batch_fast(new, add_special_tokens=False)
                ids = Ragged.of([encoding.ids for encoding in encodings])
                self._ids = Ragged.joined([self._ids, ids])
                known.update(zip(new, range(len(known), len(self._ids)), strict=True))
            return np.fromiter(map(known.__getitem__, words), np.int64, len(words)), self._ids

    def _with_ends(self, rows: Ragged) -> Ragged:
        """Return rows cut to the maximum length, with special tokens at both ends."""
        before, after = len(self._before), len(self._after)
        lengths = np.minimum(rows.lengths, self._max_length - before - after)
        offsets = np.concatenate([[0], np.cumsum(lengths + before + after)])
        values = np.empty(offsets[-1], np.int32)
        for place, number in enumerate(self._before.tolist()):
            values[offsets[:-1] + place] = number
        for place, number in enumerate(self._after.tolist()):
            values[offsets[1:] - after + place] = number
        inner = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        target = inner + np.repeat(offsets[:-1] + before, lengths)
        values[target] = rows.values[inner + np.repeat(rows.offsets[:-1], lengths)]
        return Ragged(values, offsets)


def ends(backend: Any) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the token ids that a tokenizer without padding puts before and after each text."""
    sample, inner = (backend.encode("a", add_special_tokens=each).ids for each in (True, False))
    first = next(at for at in range(len(sample)) if sample[at : at + len(inner)] == inner)
    return np.array(sample[:first], np.int32), np.array(sample[first + len(inner) :], np.int32)


def is_local(backend: Any) -> bool:
    """Return whether a tokenizer gives a word the same ids wherever it stands between spaces."""
    rules = json.loads(backend.to_str())
    splits = _parts(rules["pre_tokenizer"], "pretokenizers")
    own = all(map(_normalizes_locally, _parts(rules["normalizer"], "normalizers")))
    return own and bool(splits) and all(map(_splits_at_spaces, splits))


def _parts(rule: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    """Return the rules of a sequence; a single rule is a sequence of one."""
    if rule is None:
        return []
    return list(rule[name]) if rule["type"] == "Sequence" else [rule]


def _normalizes_locally(rule: Mapping[str, Any]) -> bool:
    if rule["type"] == "Replace":
        character, pattern = rule["pattern"].get("String", ""), rule["pattern"].get("Regex", "")
        if _CHARACTERS.fullmatch(pattern) or (len(character) == 1 and character != " "):
            return True
        return pattern == " {2,}" or bool(pattern.startswith(WHOLE_WORD.partition("%s")[0]))
    return rule["type"] in _NORMALIZERS


def _splits_at_spaces(rule: Mapping[str, Any]) -> bool:
    if rule["type"] == "ByteLevel":
        return bool(rule["use_regex"])
    if rule["type"] == "Metaspace":
        return bool(rule["split"])
    return rule["type"] in ("BertPreTokenizer", "WhitespaceSplit")
