"""Noise learned from real errors: a mined dictionary of words, a profile of chances.

A dictionary is put into text by the rule that fits the errors that RCP released: n tokens, n
uniform on 1 to ceil(min(4, rate * L)), drawn without replacement, each for one of its wrong forms
by probability. A token is what white space separates. It matches a word of the dictionary as it is,
or without the signs around it, which stay: 'word,' is 'word'. Case counts, as in RCP.
"""

import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisegen.data.dictionaries import ANY, Alternative, load_dictionary
from noisegen.errors import UsageError
from noisegen.noise import profile as profiles
from noisegen.noise.channel import ChannelKernel
from noisegen.noise.edits import Edits
from noisegen.noise.profile import Channel
from noisegen.noise.profile import compiled as compiled_channel
from noisegen.noise.registry import Settings, kernel
from noisegen.noise.rng import (
    DECISION_BITS,
    Variants,
    WeightedTexts,
    choices,
    decisions,
    draw_array,
)
from noisegen.text.buffers import (
    I64,
    U8,
    U64,
    Bool,
    Texts,
    code_points,
    ordinals,
    utf8_lengths,
    word_hashes,
)
from noisegen.transforms import LanguageFiles, any_language, remembered

REPLACED_MAX = 4  # tokens of a row, in RCP
SIGNS_MAX = 16  # taken off either end of a token; with more around it, it matches nothing
NEVER = np.iinfo(np.int64).max
_IS_SPACE = np.isin(np.arange(256), [9, 10, 11, 12, 13, 32])
_IS_ALNUM = np.array([chr(byte).isalnum() and byte < 128 for byte in range(256)], np.bool_)
_PACKAGED = LanguageFiles("wiki.tsv")


def compiled(entries: Sequence[Alternative]) -> WeightedTexts:
    """Compile the sorted entries of one language by the hash of their word.

    Words over 64 bytes, which have no hash, are left out.
    """
    words = [list(group) for _, group in groupby(entries, key=lambda entry: entry.clean)]
    texts = Texts.from_strings([word[0].clean for word in words])
    hashes = word_hashes(texts.values, texts.offsets[:-1], texts.offsets[1:])
    order = np.argsort(hashes)
    order = order[hashes.take(order) != 0]
    groups = [[(entry.noisy, entry.count) for entry in words[n]] for n in order.tolist()]
    return WeightedTexts.of(hashes[order], groups)


def least_tokens(rate: Fraction) -> list[int]:
    """Return from which length on n may be 1, 2, 3, 4: n goes up to ceil(min(4, rate * length)).

    >>> least_tokens(Fraction(1, 10))
    [1, 11, 21, 31]
    """
    if not rate:
        return [int(NEVER)] * REPLACED_MAX
    return [int(n / rate) + 1 for n in range(REPLACED_MAX)]


class SpacedTokens(NamedTuple):
    """What white space separates in `Texts`: row, byte range."""

    rows: I64
    starts: I64
    stops: I64

    @classmethod
    def of(cls, texts: Texts) -> "SpacedTokens":
        """Find what spaces, tabs and line ends separate."""
        base, window = int(texts.offsets[0]), texts.window
        solid = np.concatenate([[False], ~_IS_SPACE[window], [False]])
        edges = np.flatnonzero(solid[1:] != solid[:-1])  # start, stop, start, ..., stop
        row_edges = texts.offsets[1:-1] - base
        row_edges = row_edges[(np.diff(row_edges, prepend=0) > 0) & (row_edges < len(window))]
        glued = row_edges[solid[row_edges] & solid[row_edges + 1]]  # no white space between rows
        edges = np.sort(np.concatenate([edges, glued, glued]), kind="stable") + base
        return cls(texts.rows_of(edges[::2]), edges[::2], edges[1::2])


@dataclass(frozen=True)
class WordSubstitution:
    """Replace n tokens of a row that are in the table, n uniform on 1..ceil(min(4, rate * L)).

    L counts all tokens of the row. `least` has the `least_tokens` of every strength. Draw 0 of a
    row gives n; draw 1 + t ranks its t-th token and chooses the alternative.
    """

    table: WeightedTexts
    least: I64

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        tokens = SpacedTokens.of(texts)
        words, starts, stops = self._matches(texts.values, tokens)
        known = np.flatnonzero(words >= 0)
        rows = tokens.rows.take(known)
        draws = draw_array(keys.take(rows), 1 + ordinals(tokens.rows).take(known))
        lengths = np.bincount(tokens.rows, minlength=len(texts))
        highest = (lengths[:, None] >= self.least[variants["rate"]]).sum(axis=1)
        uniform = (decisions(draw_array(keys, 0)) * highest) >> DECISION_BITS
        wanted = np.where(highest > 0, uniform + 1, 0)
        by_draw = np.lexsort((decisions(draws), rows))
        drawn = np.sort(by_draw[ordinals(rows) < wanted.take(rows)])
        at = known.take(drawn)
        written = self.table.pick(words.take(at), choices(draws.take(drawn)))
        return Edits(rows.take(drawn), starts.take(at), stops.take(at), written, self.table.pool)

    def _matches(self, values: U8, tokens: SpacedTokens) -> tuple[I64, I64, I64]:
        """Return the word of every token (-1: none) and its byte range."""
        starts, stops = tokens.starts.copy(), tokens.stops.copy()
        words = self._words(values, starts, stops)
        bare = _IS_ALNUM[values[starts]] & _IS_ALNUM[values[stops - 1]]
        other = np.flatnonzero((words < 0) & ~bare)
        starts[other], stops[other] = without_signs(values, starts[other], stops[other])
        words[other] = self._words(values, starts[other], stops[other])
        return words, starts, stops

    def _words(self, values: U8, starts: I64, stops: I64) -> I64:
        """Return the word of the table in each byte range, -1 where there is none."""
        words, known = self.table.find(word_hashes(values, starts, stops))
        return np.where(known, words, -1)


def without_signs(values: U8, starts: I64, stops: I64) -> tuple[I64, I64]:
    """Return byte ranges without the signs at their ends, up to `SIGNS_MAX` at each."""
    starts, stops = starts.copy(), stops.copy()
    for ahead in (True, False):
        left = np.arange(len(starts))
        for _ in range(SIGNS_MAX):
            left = left[starts[left] < stops[left]]
            at = starts[left] if ahead else stops[left] - 1
            for _ in range(3):  # to the first byte of the last character
                at = at - ((values[at] & 0xC0) == 0x80)
            points = code_points(values, at)
            sign = np.flatnonzero(is_sign(points))
            left, sizes = left[sign], utf8_lengths(points[sign])
            if not len(left):
                break
            (starts if ahead else stops)[left] += sizes if ahead else -sizes
    return starts, stops


def is_sign(points: I64) -> Bool:
    """Tell which code points are punctuation, symbols, separators or controls."""
    signs = ~_IS_ALNUM[np.minimum(points, 255)]
    beyond = np.flatnonzero(points > 127)
    kinds, which = np.unique(points[beyond], return_inverse=True)
    signs[beyond] = np.array([_is_sign(point) for point in kinds.tolist()], np.bool_)[which]
    return signs


@cache
def _is_sign(point: int) -> bool:
    return unicodedata.category(chr(point))[0] in "PSZC"


def _dictionary_file(dictionary: str | None, lang: str) -> Path:
    """Return the dictionary that is read: a file, that of a mining run, or the packaged one."""
    path = Path(dictionary) if dictionary else _PACKAGED.of(lang)
    return path / "dictionary.parquet" if path.is_dir() else path


def _dictionary_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    path = _dictionary_file(values.get("dictionary"), settings.lang)
    return [path] if path.exists() else []


@kernel("wiki", _dictionary_files, any_language)
def wiki(
    settings: Settings, *, dictionary: str | None = None, rate: float = 0.1
) -> WordSubstitution:
    """Make real errors from a mined dictionary: 'the hierarchy' -> 'the heirarchy'.

    Raises UsageError where there is none for the language.
    """
    lang, path = settings.lang, _dictionary_file(dictionary, settings.lang)
    if path == _PACKAGED.of(lang) and not path.exists():
        raise UsageError(
            f"wiki has no packaged dictionary for language {lang!r} (it has: "
            f"{', '.join(_PACKAGED.languages())}); mine one and give it: wiki:dictionary=FILE"
        )
    least = np.array([least_tokens(part) for part in settings.rates(rate)], np.int64)
    return WordSubstitution(_table(path, lang), least)


@remembered
def _table(path: Path, lang: str) -> WeightedTexts:
    """Return the dictionary of a file; raises UsageError where it has other languages only."""
    entries = load_dictionary(path)
    chosen = [entry for entry in entries if entry.lang in (lang, ANY)]
    if entries and not chosen:
        langs = ", ".join(sorted({entry.lang for entry in entries})[:20])
        raise UsageError(f"{path} has no entries for language {lang!r}; it has {langs}")
    return compiled(sorted(chosen, key=lambda entry: entry.clean))


def _profile_files(_: Settings, values: Mapping[str, Any]) -> list[Path]:
    profile = values.get("profile")
    return sorted(path for path in Path(profile).glob("*") if path.is_file()) if profile else []


@kernel("channel", _profile_files, any_language, keeps_meaning=False)
def channel(settings: Settings, *, profile: str | None = None, rate: float = 1.0) -> ChannelKernel:
    """Make noise as learned from real pairs (see learn): 'I believe it' -> 'i beleive it'.

    `rate` scales all chances of the profile; 1 leaves them. Warns of a profile of another language.
    Raises UsageError without a profile, SourceError for one that cannot be read.
    """
    if not profile:
        raise UsageError(
            "channel needs a profile: learn one with noisegen learn PAIRS -o PROFILE, "
            "and give it as channel:profile=PROFILE"
        )
    chances, factors = _profile(Path(profile))
    if chances.lang != settings.lang:
        warnings.warn(
            f"profile {profile} is of language {chances.lang!r}, the text of {settings.lang!r}",
            stacklevel=2,
        )
    return ChannelKernel(chances, factors, settings.rates(rate))


@remembered
def _profile(folder: Path) -> tuple[Channel, profiles.Factors]:
    loaded = profiles.load(folder)
    return compiled_channel(loaded), loaded.factors
