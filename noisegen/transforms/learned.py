"""Noise learned from real errors: a mined dictionary of words, a profile of chances.

A dictionary is put into text by the rule that fits the errors that RCP released: n tokens, n
uniform on 1 to ceil(min(4, rate * L)), drawn without replacement, each for one of its wrong forms
by probability. A token is what white space separates. It matches a word of the dictionary as it is,
or without the signs around it, which stay: 'word,' is 'word'. Case counts, as in RCP.

A dictionary that says how often its words were right (mined by the profile `spelling`, or packaged)
also says how often each is misspelt: then a word that seldom is takes no part by that chance. 'und'
was wrong once in a thousand times, and is no longer written 'unde' wherever it stands.
"""

import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from noisegen.data.dictionaries import ANY, Alternative, load_dictionary
from noisegen.errors import UsageError
from noisegen.noising import profile as profiles
from noisegen.noising import rng
from noisegen.noising.channel import RATE_MAX, ChannelKernel
from noisegen.noising.edits import Edits
from noisegen.noising.registry import Settings, kernel
from noisegen.text import buffers
from noisegen.text.buffers import I64, U8, U64, Bool, Texts
from noisegen.transforms import IS_SPACE, LanguageFiles, existing, remembered

REPLACED_MAX = 4  # tokens of a row, in RCP
SMOOTHING = 10  # times that a word is taken to have been seen with the share of the dictionary
SIGNS_MAX = 16  # taken off either end of a token; with more around it, it matches nothing
_IS_ALNUM = np.array([chr(byte).isalnum() and byte < 128 for byte in range(256)], np.bool_)
_PACKAGED = LanguageFiles("wiki.tsv")


def compiled(entries: Sequence[Alternative]) -> tuple[rng.WeightedTexts, I64]:
    """Compile the sorted entries of one language by the hash of their word, with their `limits`.

    Words over 64 bytes, which have no hash, are left out.
    """
    words = [list(group) for _, group in groupby(entries, key=lambda entry: entry.clean)]
    texts = Texts.from_strings([word[0].clean for word in words])
    hashes = buffers.word_hashes(texts.values, texts.offsets[:-1], texts.offsets[1:])
    order = np.argsort(hashes)
    order = order[hashes.take(order) != 0]
    groups = [[(entry.noisy, entry.count) for entry in words[n]] for n in order.tolist()]
    counts = [(sum(entry.count for entry in word), word[0].frequency) for word in words]
    return rng.WeightedTexts.of(hashes[order], groups), limits(counts)[order]


def limits(counts: Sequence[tuple[int, int]]) -> I64:
    """Return the 48-bit threshold of the chance that each word takes part.

    `counts` are how often each was wrong and right. It is the share of wrong ones, smoothed towards
    that of the dictionary, over the median of these shares, taken over errors; 1 from there on, and
    for all words where none was ever right.
    """
    wrong, right = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    if not right:
        return np.full(len(counts), rng.CERTAIN)
    total = wrong + right
    shares = [
        1
        + ((bad * total + SMOOTHING * wrong) << rng.DECISION_BITS)
        // ((bad + good + SMOOTHING) * total)
        for bad, good in counts
    ]
    ordered = sorted((share, bad) for share, (bad, _) in zip(shares, counts, strict=True))
    errors = accumulate(bad for _, bad in ordered)
    median = next(share for (share, _), n in zip(ordered, errors, strict=True) if 2 * n >= wrong)
    return np.array([min(share * rng.CERTAIN // median, rng.CERTAIN) for share in shares])


def least_tokens(rate: Fraction) -> list[int]:
    """Return from which length on n may be 1, 2, 3, 4: n goes up to ceil(min(4, rate * length)).

    >>> least_tokens(Fraction(1, 10))
    [1, 11, 21, 31]
    """
    never = int(np.iinfo(np.int64).max)
    return [int(n / rate) + 1 if rate else never for n in range(REPLACED_MAX)]


@dataclass(frozen=True)
class WordSubstitution:
    """Replace n tokens of a row that are in the table, n uniform on 1..ceil(min(4, rate * L)).

    L counts all tokens of the row. `least` has the `least_tokens` of every strength. Draw 0 of a
    row gives n; draw 1 + t ranks its t-th token and chooses the alternative. Draw t of the stream
    "errs" decides whether that token takes part, by the limit of its word.
    """

    table: rng.WeightedTexts
    limits: I64
    least: I64

    def propose(self, texts: Texts, keys: U64, variants: rng.Variants) -> Edits:
        """Propose the replacements of all rows."""
        starts, stops = spaced_tokens(texts)
        token_rows = texts.rows_of(starts)
        values, find = texts.values, self.table.find
        groups, known = find(buffers.word_hashes(values, starts, stops))
        bare = _IS_ALNUM[values[starts]] & _IS_ALNUM[values[stops - 1]]
        other = np.flatnonzero(~known & ~bare)
        cores = without_signs(values, starts[other], stops[other])
        starts[other], stops[other] = cores
        groups[other], known[other] = find(buffers.word_hashes(values, *cores))

        matches, all_ordinals = np.flatnonzero(known), buffers.ordinals(token_rows)
        errs = rng.fork_array(keys, "errs").take(token_rows.take(matches))
        drawn = rng.decisions(rng.draw_array(errs, all_ordinals.take(matches)))
        matches = matches[drawn < self.limits.take(groups.take(matches))]
        rows, ordinals = token_rows.take(matches), all_ordinals.take(matches)
        draws = rng.draw_array(keys.take(rows), 1 + ordinals)
        lengths = np.bincount(token_rows, minlength=len(texts))
        highest = (lengths[:, None] >= self.least[variants["rate"]]).sum(axis=1)
        uniform = (rng.decisions(rng.draw_array(keys, 0)) * highest) >> rng.DECISION_BITS
        wanted = np.where(highest > 0, uniform + 1, 0)
        by_draw = np.lexsort((rng.decisions(draws), rows))
        drawn = np.sort(by_draw[buffers.ordinals(rows) < wanted.take(rows)])
        at = matches.take(drawn)
        written = self.table.pick(groups.take(at), rng.choices(draws.take(drawn)))
        return Edits(rows.take(drawn), starts.take(at), stops.take(at), written, self.table.pool)


def spaced_tokens(texts: Texts) -> tuple[I64, I64]:
    """Return the byte ranges that spaces, tabs, line ends and the ends of rows separate."""
    base, window = int(texts.offsets[0]), texts.window
    solid = np.concatenate([[False], ~IS_SPACE[window], [False]])
    row_edge = np.zeros(len(window) + 1, np.bool_)
    row_edge[texts.offsets - base] = True
    starts = np.flatnonzero(solid[1:] & (row_edge | ~solid[:-1]))
    return starts + base, np.flatnonzero(solid[:-1] & (row_edge | ~solid[1:])) + base


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
            points = buffers.code_points(values, at)
            sign = np.flatnonzero(is_sign(points))
            left, sizes = left[sign], buffers.utf8_lengths(points[sign])
            if not len(left):
                break
            (starts if ahead else stops)[left] += sizes if ahead else -sizes
    return starts, stops


def is_sign(points: I64) -> Bool:
    """Tell which code points are punctuation, symbols, separators or controls."""
    signs = ~_IS_ALNUM[np.minimum(points, 255)]
    beyond = np.flatnonzero(points > 127)
    distinct, which = np.unique(points[beyond], return_inverse=True)
    categories = [unicodedata.category(chr(point))[0] for point in distinct.tolist()]
    signs[beyond] = np.isin(categories, list("PSZC"))[which]
    return signs


def _dictionary_file(dictionary: str | None, lang: str) -> Path:
    """Return the dictionary that is read: a file, that of a mining run, or the packaged one."""
    path = Path(dictionary) if dictionary else _PACKAGED.of(lang)
    return path / "dictionary.parquet" if path.is_dir() else path


@kernel(
    "wiki",
    lambda settings, values: existing(_dictionary_file(values.get("dictionary"), settings.lang)),
)
def wiki(
    settings: Settings, *, dictionary: str | None = None, rate: float = 0.1
) -> WordSubstitution:
    """Inject real errors from a mined dictionary: 'the hierarchy' -> 'the heirarchy'.

    Raises UsageError where there is none for the language.
    """
    lang, path = settings.lang, _dictionary_file(dictionary, settings.lang)
    if path == _PACKAGED.of(lang) and not path.exists():
        raise UsageError(
            f"wiki has no packaged dictionary for language {lang!r} (it has: "
            f"{', '.join(_PACKAGED.languages())}); mine one and give it: wiki:dictionary=FILE"
        )
    least = np.array([least_tokens(part) for part in settings.rates(rate)], np.int64)
    return WordSubstitution(*_table(path, lang), least)


@remembered
def _table(path: Path, lang: str) -> tuple[rng.WeightedTexts, I64]:
    """Return the dictionary of a file; raises UsageError where it has other languages only."""
    entries = load_dictionary(path)
    chosen = [entry for entry in entries if entry.lang in (lang, ANY)]
    if entries and not chosen:
        langs = ", ".join(sorted({entry.lang for entry in entries})[:20])
        raise UsageError(f"{path} has no entries for language {lang!r}; it has {langs}")
    return compiled(sorted(chosen, key=lambda entry: entry.clean))


_PROFILES = LanguageFiles("channel")


def _profile_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    """Return the files of a profile; of a packaged one its head, which has the hash of all."""
    if profile := values.get("profile"):
        return sorted(path for path in Path(profile).glob("*") if path.is_file())
    return existing(_PROFILES.of(settings.lang) / profiles.HEAD)


@kernel("channel", _profile_files, keeps_meaning=False)
def channel(
    settings: Settings, *, profile: str | None = None, rate: Annotated[float, RATE_MAX] = 1.0
) -> ChannelKernel:
    """Make the noise learned from real pairs (noisegen learn): 'I believe it' -> 'i beleive it'.

    `rate` scales all chances of the profile; 1 leaves them, 2 doubles them. Warns of a profile of
    another language. Raises UsageError without a profile, SourceError for one that cannot be read.
    """
    folder = Path(profile) if profile else _PROFILES.of(settings.lang)
    if not profile and not folder.exists():
        raise UsageError(
            f"channel has no packaged profile for language {settings.lang!r} (it has: "
            f"{', '.join(_PROFILES.languages())}); learn one with noisegen learn PAIRS -o PROFILE, "
            "and give it as channel:profile=PROFILE"
        )
    chances, counts = _profile(folder)
    if chances.lang != settings.lang:
        warnings.warn(
            f"profile {profile} is of language {chances.lang!r}, the text of {settings.lang!r}",
            stacklevel=2,
        )
    return ChannelKernel(chances, counts.factors, settings.rates(rate), counts.consistency)


@remembered
def _profile(folder: Path) -> tuple[profiles.Channel, profiles.Profile]:
    loaded = profiles.load(folder)
    return profiles.compiled(loaded), loaded
