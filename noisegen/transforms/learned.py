"""Noise learned from real errors: `wiki` from a dictionary, `channel` and `ocr` from a profile.

`wiki` puts wrong forms of words into text by the rule that fits the errors released with RCP. In
each row, n tokens are drawn without replacement, where n is uniform on 1 to ceil(min(4, rate * L))
and L is the number of tokens in the row. A drawn token is replaced by one of its wrong forms, which
is chosen by weight. A token is a run of characters between spaces; in Chinese and Japanese it is a
word as jieba or MeCab splits text. As in RCP, it must equal a word of the dictionary, case
included, perhaps with punctuation around it: 'word,' matches 'word' and keeps its comma.

Dictionaries that are packaged, or mined with `--profile spelling`, also count how often each word
was right. With these counts, words that people seldom misspell are seldom replaced: 'und' was wrong
once in a thousand times, so that it rarely becomes 'unde'.
"""

import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from noisegen.data.dictionaries import ANY, Alternative, load_dictionary
from noisegen.errors import UsageError
from noisegen.noising import profile as profiles
from noisegen.noising import rng
from noisegen.noising.channel import RATE_MAX, ChannelKernel
from noisegen.noising.channel_model import Channel, channel_of
from noisegen.noising.edits import Edits
from noisegen.noising.registry import Settings, kernel
from noisegen.noising.rng import CHOICE_BITS, DECISION_BITS, RowDraws
from noisegen.text import buffers, segmentation
from noisegen.text.buffers import I64, U8, U64, Bool, Texts
from noisegen.text.rows import Row, RowEdit, word_hash
from noisegen.transforms import IS_SPACE, SPACES, LanguageFiles, existing, remembered

REPLACED_MAX = 4  # most tokens replaced in a row, as in RCP
SMOOTHING = 10  # occurrences added to each word's counts, wrong as often as the average word
SIGNS_MAX = 16  # most signs removed from each end of a token; a token with more matches no word
_TOKEN = re.compile(f"[^{SPACES}]+")
_SEGMENTED = ("zh", "ja")  # languages whose words are found by jieba and MeCab
# Two Chinese or Japanese characters with a space between: the row is split into words already.
_CJK = "\u3041-\u30fa\u3400-\u9fff\U00020000-\U0003ffff"
_SPLIT = re.compile(f"[{_CJK}][{SPACES}]+[{_CJK}]")
_SIGNS = "PSZC"  # first letters of the Unicode categories that count as signs
_IS_ALNUM = np.array([chr(byte).isalnum() and byte < 128 for byte in range(256)], np.bool_)
_PACKAGED = LanguageFiles("wiki.tsv")


def compiled(entries: Sequence[Alternative]) -> tuple[rng.WeightedTexts, I64]:
    """Return a table (hash of a word -> weighted wrong forms), and the result of `limits` for it.

    `entries` belong to one language and are sorted by their clean word. Words over 64 bytes, which
    have no hash, are left out.
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
    """Return for each word the chance that it may be replaced, in units of 2^-48.

    `counts` has for each word how often it was wrong, and how often right. The chance is the word's
    error share, wrong / (wrong + right), divided by the median error share, at most 1. Each share
    is smoothed towards the whole dictionary's share. The median weights a word by how often it was
    wrong. If no word was ever right, all chances are 1.
    """
    wrong, right = sum(bad for bad, _ in counts), sum(good for _, good in counts)
    if not right:
        return np.full(len(counts), rng.CERTAIN)
    shares = [_share(bad, bad + good, wrong, wrong + right) for bad, good in counts]
    median = _median(shares, [bad for bad, _ in counts])
    return np.array([min(share * rng.CERTAIN // median, rng.CERTAIN) for share in shares])


def _share(bad: int, seen: int, wrong: int, total: int) -> int:
    """Return the smoothed share of errors of a word, in units of 2^-48.

    The word was wrong in `bad` of `seen` occurrences, all words in `wrong` of `total` occurrences.
    """
    errors = (bad * total + SMOOTHING * wrong) << DECISION_BITS
    return 1 + errors // ((seen + SMOOTHING) * total)


def _median(values: Sequence[int], weights: Sequence[int]) -> int:
    """Return the weighted median: the smallest value at which half of all weight is reached."""
    total, below = sum(weights), 0
    for value, weight in sorted(zip(values, weights, strict=True)):
        below += weight
        if 2 * below >= total:
            return value
    raise ValueError("there is no median of nothing")


def least_tokens(rate: Fraction) -> list[int]:
    """Return how many tokens a row must have to get up to 1, 2, 3 and 4 replacements.

    In a row of L tokens, up to ceil(min(4, rate * L)) tokens are replaced.

    >>> least_tokens(Fraction(1, 10))
    [1, 11, 21, 31]
    """
    never = int(np.iinfo(np.int64).max)
    return [int(n / rate) + 1 if rate else never for n in range(REPLACED_MAX)]


def core_of(token: str) -> range:
    """Return the range of a token's characters without the signs at its ends: 1 to 5 for '(word)'.

    At most `SIGNS_MAX` signs are left out at each end. Signs are punctuation, symbols, separators
    and control characters.
    """
    start, stop = 0, len(token)
    while start < min(stop, SIGNS_MAX) and unicodedata.category(token[start])[0] in _SIGNS:
        start += 1
    least = max(start, len(token) - SIGNS_MAX)
    while stop > least and unicodedata.category(token[stop - 1])[0] in _SIGNS:
        stop -= 1
    return range(start, stop)


@dataclass(frozen=True)
class WordSubstitution:
    """Kernel that replaces n tokens of a row by wrong forms.

    The number n is uniform on 1..ceil(min(4, rate * L)), where L is the number of tokens in the
    row. `table` has the wrong forms of words, and `limits` the chance that each word may be
    replaced. `least` has the result of `least_tokens` for each strength of the recipe.

    Random number 0 of a row gives n. Number t of the stream "errs" decides whether token t may be
    replaced. Number 1 + t of the row is the rank of token t, and chooses its wrong form. The n
    replaceable tokens with the lowest ranks are replaced.
    """

    table: rng.WeightedTexts
    limits: I64
    least: I64
    lang: str

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return an edit for each token of one row that is replaced."""
        tokens = tokens_of(row.text, self.lang)
        bounds = self.least[draws.strengths["rate"]].tolist()
        highest = sum(len(tokens) >= least for least in bounds)
        if not highest:
            return []
        wanted = 1 + ((rng.draw(draws.key, 0) >> CHOICE_BITS) * highest >> DECISION_BITS)
        errs = rng.fork(draws.key, "errs")
        ranked: list[tuple[int, RowEdit]] = []
        for number, (first, last) in enumerate(tokens):
            group, start, stop = self._found(row.text[first:last], first)
            if group is not None and rng.draw(errs, number) >> CHOICE_BITS < self.limits[group]:
                drawn = rng.draw(draws.key, 1 + number)
                written = self.table.written(group, drawn & rng.CHOICE_MASK)
                ranked.append((drawn >> CHOICE_BITS, (start, stop, written)))
        ranked.sort()
        return sorted(edit for _, edit in ranked[:wanted])

    def _found(self, token: str, at: int) -> tuple[int | None, int, int]:
        """Look up a token in `table`, first whole and then without signs (see `core_of`).

        `at` is the index in the row of the token's first character. Returns the group of wrong
        forms, and start and stop in the row of the matched characters. The group is None if the
        table has neither the whole token nor the token without signs.
        """
        group_of = self.table.group_of
        if (group := group_of.get(word_hash(token))) is not None:
            return group, at, at + len(token)
        core = core_of(token)
        group = group_of.get(word_hash(token[core.start : core.stop])) if core else None
        return group, at + core.start, at + core.stop

    def propose(self, texts: Texts, keys: U64, strengths: rng.Strengths) -> Edits:
        """Return an edit for each token of a batch that is replaced."""
        if self.lang in _SEGMENTED:
            starts, stops = segmented_tokens(texts, self.lang)
        else:
            starts, stops = spaced_tokens(texts)
        token_rows = texts.rows_of(starts)
        values, find = texts.values, self.table.find
        groups, known = find(buffers.word_hashes(values, starts, stops))
        is_bare = _IS_ALNUM[values[starts]] & _IS_ALNUM[values[stops - 1]]
        other = np.flatnonzero(~known & ~is_bare)
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
        highest = (lengths[:, None] >= self.least[strengths["rate"]]).sum(axis=1)
        uniform = (rng.decisions(rng.draw_array(keys, 0)) * highest) >> DECISION_BITS
        wanted = np.where(highest > 0, uniform + 1, 0)
        by_draw = np.lexsort((rng.decisions(draws), rows))
        drawn = np.sort(by_draw[buffers.ordinals(rows) < wanted.take(rows)])
        at = matches.take(drawn)
        written = self.table.pick(groups.take(at), rng.choices(draws.take(drawn)))
        return Edits(rows.take(drawn), starts.take(at), stops.take(at), written, self.table.pool)


def tokens_of(text: str, lang: str) -> list[tuple[int, int]]:
    """Return [start, stop) of each token of a row, in characters.

    Tokens are separated by white space. In Chinese and Japanese, jieba or MeCab splits them into
    words, unless the row has spaces between words.
    """
    runs = [token.span() for token in _TOKEN.finditer(text)]
    if lang not in _SEGMENTED or _SPLIT.search(text):
        return runs
    words = []
    for at, stop in runs:
        for word in segmentation.language(lang).tokens(text[at:stop]):
            start = text.index(word, at)
            at = start + len(word)
            words.append((start, at))
    return words


def segmented_tokens(texts: Texts, lang: str) -> tuple[I64, I64]:
    """Return the starts and stops, in bytes, of all tokens of a batch (`tokens_of`)."""
    bounds: list[int] = []
    for at, text in zip(texts.offsets.tolist(), texts.to_strings(), strict=False):
        done = 0
        for bound in chain.from_iterable(tokens_of(text, lang)):
            at += len(text[done:bound].encode())
            done = bound
            bounds.append(at)
    starts, stops = np.array(bounds, np.int64).reshape(-1, 2).T
    return starts, stops


def spaced_tokens(texts: Texts) -> tuple[I64, I64]:
    """Return the starts and stops, in bytes, of all tokens of a batch.

    Tokens are separated by white space or ends of rows.
    """
    base, window = int(texts.offsets[0]), texts.window
    solid = np.concatenate([[False], ~IS_SPACE[window], [False]])
    row_edge = np.zeros(len(window) + 1, np.bool_)
    row_edge[texts.offsets - base] = True
    starts = np.flatnonzero(solid[1:] & (row_edge | ~solid[:-1]))
    return starts + base, np.flatnonzero(solid[:-1] & (row_edge | ~solid[1:])) + base


def without_signs(values: U8, starts: I64, stops: I64) -> tuple[I64, I64]:
    """Return the byte ranges of tokens without the signs at their ends, see `core_of`."""
    starts, stops = starts.copy(), stops.copy()
    for ahead in (True, False):
        left = np.arange(len(starts))
        for _ in range(SIGNS_MAX):
            left = left[starts[left] < stops[left]]
            at = starts[left] if ahead else stops[left] - 1
            for _ in range(3):  # step back to the character's first byte; it has at most four
                at = at - ((values[at] & 0xC0) == 0x80)
            points = buffers.code_points(values, at)
            sign = np.flatnonzero(is_sign(points))
            left, sizes = left[sign], buffers.utf8_lengths(points[sign])
            if not len(left):
                break
            (starts if ahead else stops)[left] += sizes if ahead else -sizes
    return starts, stops


def is_sign(points: I64) -> Bool:
    """Tell for each code point whether it is punctuation, a symbol, a separator or a control."""
    signs = ~_IS_ALNUM[np.minimum(points, 255)]
    beyond = np.flatnonzero(points > 127)
    distinct, which = np.unique(points[beyond], return_inverse=True)
    categories = [unicodedata.category(chr(point))[0] for point in distinct.tolist()]
    signs[beyond] = np.isin(categories, list(_SIGNS))[which]
    return signs


def _dictionary_file(dictionary: str | None, lang: str) -> Path:
    """Return the path of a dictionary file.

    `dictionary` is the path itself or the folder of a mining run. Without `dictionary`, the result
    is the path of the packaged dictionary for the language, which may not exist.
    """
    path = Path(dictionary) if dictionary else _PACKAGED.of(lang)
    return path / "dictionary.parquet" if path.is_dir() else path


def _dictionary_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    return existing(_dictionary_file(values.get("dictionary"), settings.lang))


@kernel("wiki", _dictionary_files)
def wiki(
    settings: Settings, *, dictionary: str | None = None, rate: float = 0.1
) -> WordSubstitution:
    """Inject real errors from a mined dictionary: 'the hierarchy' -> 'the heirarchy'.

    Raises UsageError where there is no dictionary for the language.
    """
    lang, path = settings.lang, _dictionary_file(dictionary, settings.lang)
    if path == _PACKAGED.of(lang) and not path.exists():
        raise UsageError(
            f"wiki has no packaged dictionary for language {lang!r} (it has: "
            f"{', '.join(_PACKAGED.languages())}); mine one and give it: wiki:dictionary=FILE"
        )
    least = np.array([least_tokens(part) for part in settings.rates(rate)], np.int64)
    if lang in _SEGMENTED:
        segmentation.language(lang)  # raises MissingExtra without jieba or MeCab
    return WordSubstitution(*_table(path, lang), least, lang)


@remembered
def _table(path: Path, lang: str) -> tuple[rng.WeightedTexts, I64]:
    """Compile the entries of a dictionary file for one language, see `compiled`.

    Raises UsageError if the file has entries for other languages only.
    """
    entries = load_dictionary(path)
    chosen = [entry for entry in entries if entry.lang in (lang, ANY)]
    if entries and not chosen:
        langs = ", ".join(sorted({entry.lang for entry in entries})[:20])
        raise UsageError(f"{path} has no entries for language {lang!r}; it has {langs}")
    return compiled(sorted(chosen, key=lambda entry: entry.clean))


_PROFILES = LanguageFiles("channel")


def _profile_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    """Return all files of the user's noise profile or, for a packaged one, only its file `HEAD`.

    In a packaged profile, this file holds the hash of all files, so it changes with any of them.
    """
    if profile := values.get("profile"):
        return sorted(path for path in Path(profile).glob("*") if path.is_file())
    return existing(_PROFILES.of(settings.lang) / profiles.HEAD)


@kernel("channel", _profile_files, keeps_meaning=False)
def channel(
    settings: Settings, *, profile: str | None = None, rate: Annotated[float, RATE_MAX] = 1.0
) -> ChannelKernel:
    """Make the noise learned from real pairs (noisegen learn): 'I believe it' -> 'i beleive it'.

    `rate` multiplies the chances of all errors in `profile`: 1 keeps them, 2 doubles them. Warns if
    the profile is of another language. Raises UsageError if there is no profile for the language,
    SourceError for an unreadable profile.
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


_SCANS = LanguageFiles("ocr")


def _scan_files(settings: Settings, _: Mapping[str, Any]) -> list[Path]:
    return existing(_SCANS.of(settings.lang) / profiles.HEAD)


@kernel("ocr", _scan_files, _SCANS.languages, keeps_meaning=False)
def ocr(settings: Settings, *, rate: Annotated[float, RATE_MAX] = 1.0) -> ChannelKernel:
    """Misread text as OCR does: 'the children came home' -> 'the ohildren came hone'.

    The noise was learned from scans of old books and typed reports. `rate` multiplies the chances
    of all errors: 1 makes as many errors as OCR made in these scans.
    """
    chances, counts = _profile(_SCANS.of(settings.lang))
    return ChannelKernel(chances, counts.factors, settings.rates(rate), counts.consistency)


@remembered
def _profile(folder: Path) -> tuple[Channel, profiles.Profile]:
    loaded = profiles.load(folder)
    return channel_of(loaded), loaded
