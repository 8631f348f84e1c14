"""A compiled channel as arrays: options, and the groups of words and gaps of a batch."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisegen.draws import I64, U64
from noisegen.realism.channel_model import CHANCE_BITS, Channel
from noisegen.realism.channel_text import Gaps, HashIndex, Words
from noisegen.realism.evidence import END
from noisegen.realism.letters import CASES, cased
from noisegen.text import Texts
from noisegen.words import WORD_BYTES_MAX, word_hashes

CASINGS = 3  # forms of an option in the pool: small, title, upper


@dataclass(frozen=True)
class Options:
    """Groups of options as arrays; option o of the channel is `pool[3 * o + casing]`."""

    chances: I64
    uppers: I64
    kinds: I64
    hows: I64
    pool: pa.Array

    @classmethod
    def of(cls, channel: Channel) -> "Options":
        """Lay out the groups of a channel; the last text of the pool is empty."""
        options = [option for group in channel.groups for option in group.options]
        uppers = [
            (number << CHANCE_BITS + 1) + bound
            for number, group in enumerate(channel.groups)
            for bound in group.bounds
        ]
        forms = [cased(option.noisy, case) for option in options for case in range(CASINGS)]
        return cls(
            np.array([group.chance for group in channel.groups], np.int64),
            np.array(uppers, np.int64),
            np.array([option.kind for option in options], np.int64),
            np.array([option.how for option in options], np.int64),
            Texts.from_strings([*forms, ""]).to_arrow(),
        )

    def drawn(self, groups: I64, draws: U64) -> I64:
        """Return an option of each group."""
        low = (draws >> np.uint64(64 - CHANCE_BITS)).astype(np.int64)
        bounds = (groups << (CHANCE_BITS + 1)) + low
        return np.searchsorted(self.uppers, bounds, side="right").astype(np.int64)


class WordTable:
    """The groups of words by hash and case, or by shape."""

    def __init__(self, channel: Channel) -> None:
        words = sorted({word for word, _ in channel.words if len(word.encode()) <= WORD_BYTES_MAX})
        self.numbers = {word: number for number, word in enumerate(words)}
        texts = Texts.from_strings(words)
        hashes = word_hashes(texts.values, texts.offsets[:-1], texts.offsets[1:])
        self._index = HashIndex(hashes)
        groups = [channel.words[word, case] for word in words for case in range(len(CASES))]
        self._groups, self._shapes = np.array(groups, np.int64), np.array(channel.shapes)

    def find(self, words: Words) -> I64:
        """Return the number of every word, -1 if it is not known."""
        return self._index.find(words.hashes)

    def groups(self, words: Words, numbers: I64) -> I64:
        """Return the group of every word."""
        groups = np.empty(len(numbers), np.int64)
        known = numbers >= 0
        here = np.flatnonzero(known)
        groups[here] = self._groups.take(numbers.take(here) * len(CASES) + words.cases.take(here))
        other = np.flatnonzero(~known)
        groups[other] = self._shapes.take(words.shapes(other))
        return groups

    def shape_groups(self, words: Words, chosen: I64) -> I64:
        """Return the groups of the shapes of some words."""
        return self._shapes.take(words.shapes(chosen))


class GapTable:
    """The groups of gaps by their bytes, whether they begin a row, and the word behind."""

    def __init__(self, channel: Channel, words: WordTable) -> None:
        gaps = sorted({gap for _, _, gap in channel.gaps})
        self._places = {gap: number for number, gap in enumerate(gaps)}
        texts = Texts.from_strings(gaps)
        hashes = word_hashes(texts.values, texts.offsets[:-1], texts.offsets[1:])
        self._gap_index = HashIndex(hashes)
        self._rights = len(words.numbers) + 2  # any word, then the end, are the last two
        keys = {
            (self._places[gap] * 2 + initial) * self._rights + self._right(words, right): group
            for (right, initial, gap), group in channel.gaps.items()
        }
        self._key_index = HashIndex(np.array(sorted(keys), np.uint64))
        self._groups = np.array([keys[key] for key in sorted(keys)] + [-1], np.int64)
        blank = self._places.get(" ", -1) * 2 * self._rights
        rights = np.arange(self._rights) + blank
        self._after_blank = self._look_up(rights) if blank >= 0 else np.full(self._rights, -1)

    def _right(self, words: WordTable, right: str) -> int:
        if right == END:
            return self._rights - 1
        return words.numbers.get(right, self._rights - 2)

    def _look_up(self, keys: I64) -> I64:
        """Return the group of each key, or that of its gap before any word; -1 for neither."""
        places = self._index_of(keys)
        missing = np.flatnonzero(places < 0)
        asked = keys.take(missing)
        places[missing] = self._index_of(asked - asked % self._rights + self._rights - 2)
        return self._groups.take(places)

    def _index_of(self, keys: I64) -> I64:
        return self._key_index.find(keys.astype(np.uint64))

    def groups(self, texts: Texts, gaps: Gaps, numbers: I64) -> I64:
        """Return the group of every gap, -1 for none; `numbers` are those of the words."""
        rights = np.full(len(gaps.rights), self._rights - 1)
        inner = np.flatnonzero(gaps.rights >= 0)
        known = numbers.take(gaps.rights.take(inner))
        rights[inner] = np.where(known >= 0, known, self._rights - 2)
        sizes = gaps.stops - gaps.starts
        padded = np.append(texts.values, np.uint8(0))
        blank = (sizes == 1) & (padded.take(gaps.starts) == 0x20) & (gaps.numbers > 0)
        groups = self._after_blank.take(rights)
        other = np.flatnonzero(~blank)
        groups[other] = self._other(texts, gaps, other, rights.take(other))
        return groups

    def _other(self, texts: Texts, gaps: Gaps, chosen: I64, rights: I64) -> I64:
        starts, stops = gaps.starts.take(chosen), gaps.stops.take(chosen)
        places = self._gap_index.find(word_hashes(texts.values, starts, stops))
        places = np.where(starts == stops, self._places.get("", -1), places)
        places = np.where(stops - starts > WORD_BYTES_MAX, -1, places)
        keys = (places * 2 + (gaps.numbers.take(chosen) == 0)) * self._rights + rights
        return np.where(places >= 0, self._look_up(np.maximum(keys, 0)), -1)
