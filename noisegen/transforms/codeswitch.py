"""Code-switching: words of a sentence replaced by translations, as in the data sets of ORACLE.

ORACLE replaces random words by one of their translations in a bilingual dictionary (MUSE) and keeps
sentences with at least one replaced word. It does not say which share of the words it replaces.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from noisegen.data.dictionaries import COMMON, check_size, load_translations, source_of
from noisegen.noising.edits import Edits
from noisegen.noising.lexicon import Entry, Lexicon, read_lexicon_file
from noisegen.noising.phrases import Matches, PhraseTable, RowMatch, build, cached_table
from noisegen.noising.registry import Kernel, Settings, kernel
from noisegen.noising.rng import (
    CHOICE_BITS,
    CHOICE_MASK,
    RowDraws,
    Strengths,
    choices,
    decisions,
    draw,
    draw_array,
)
from noisegen.text.buffers import I64, U64, Texts, is_byte, ordinals
from noisegen.text.case import capitals, case_class, case_classes, fold, title
from noisegen.text.rows import Row, RowEdit, overlaps
from noisegen.text.spans import NO_SPANS, Spans
from noisegen.transforms import existing, remembered

RATE = 0.3  # close to the three examples in ORACLE's paper, where 5 of 18 words are replaced
# Number of forms of a translation: as listed, Title, UPPER, and the form that replaces a Title word
# within a sentence: Title, or as listed if the dictionary capitalises the word itself.
FORMS = 4
TITLE, TITLE_WITHIN = 1, 3  # indices of the two forms for Title words, see `FORMS`
_ENDS = frozenset(".!?\n")  # characters that end a sentence or line
_IS_END = is_byte("".join(_ENDS).encode())


@remembered
def table_of(path: Path, lang: str, into: str | None) -> PhraseTable:
    """Compile a file of translations from language `lang` to `into`; raises LexiconError."""
    check_size(path)
    content, label = read_lexicon_file(path), f"codeswitch {lang} {into} {path.suffix}"
    return cached_table(
        path.stem, content, label, lambda: compiled(load_translations(path, lang, into).entries)
    )


def compiled(entries: list[Entry]) -> PhraseTable:
    """Return a phrase table with each translation in four forms, see `FORMS`.

    Words that differ only in case are merged into one word with all their translations. If the
    dictionary lists a word with a capital, such as 'I', 'Monday' or a German noun, its translation
    gets a capital only at the beginning of a sentence.
    """
    words: dict[str, list[tuple[Entry, list[str]]]] = defaultdict(list)
    for entry in entries:
        is_proper = entry.clean[:1] != entry.clean[:1].lower()
        for key, form in _spellings(entry).items():
            within = form if is_proper else title(form)
            forms = [form, title(form), capitals(form), within]
            words[key].append((Entry(key, form, entry.weight), forms))
    listed = [alternative for group in words.values() for alternative in group]
    head = {"name": "codeswitch", "lang": "*", "source": "a dictionary", "license": ""}
    table = build(Lexicon(head, [entry for entry, _ in listed]))
    pool = Texts.from_strings([form for _, forms in listed for form in forms])
    return replace(table, pool_values=pool.window, pool_offsets=pool.offsets.astype(np.int32))


def _spellings(entry: Entry) -> dict[str, str]:
    """Return a dictionary: spelling of an entry's clean word -> translation in the same case.

    The spellings are as listed, Title and UPPER. A phrase table ignores case only in ASCII and
    Latin-1, so that 'Și' and 'Дом' need keys of their own.
    """
    clean, noisy = entry.clean, entry.noisy
    spellings = {fold(clean): noisy}
    for raised, written in ((title(clean), title(noisy)), (capitals(clean), capitals(noisy))):
        key = fold(raised)
        if len(raised) == len(clean) and key != key.lower():
            spellings.setdefault(key, written)
    return spellings


@dataclass(frozen=True)
class CodeSwitch:
    """Kernel that replaces words and phrases by translations, at least one in a row with a match.

    A match is a word or phrase of the dictionary `table` outside the protected `spans`. `limits`
    has `rate`, the chance of a match, at each strength of the recipe, in units of 2^-48. The i-th
    random number of a row decides on its i-th match and chooses the translation. If no match is
    chosen, the match with the lowest random number is replaced. At rate 0 nothing is replaced.
    """

    table: PhraseTable
    limits: I64
    spans: Spans = NO_SPANS

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return an edit for each match of one row that is replaced by its translation."""
        limit = int(self.limits[draws.strengths["rate"]])
        matches = [
            match
            for match in self.table.find_row(row)
            if not overlaps(row.span(*match[:2]), row.protected)
        ]
        if not matches or not limit:
            return []
        drawn = [draw(draws.key, number) for number in range(len(matches))]
        lowest = min(number >> CHOICE_BITS for number in drawn)
        return [
            (*row.span(*match[:2]), self._translation_in(row, match, number & CHOICE_MASK))
            for match, number in zip(matches, drawn, strict=True)
            if number >> CHOICE_BITS < max(limit, lowest + 1)
        ]

    def _translation_in(self, row: Row, match: RowMatch, chosen: int) -> str:
        """Return the translation of a match, chosen by the 16 random bits `chosen`, in its case.

        A sentence begins at the start of the row, and after a character of `_ENDS`.
        """
        first, last, key = match
        begins_sentence = not first or not _ENDS.isdisjoint(row.gaps[first - 1])
        case = case_class(row.phrase(first, last))
        if case == TITLE and not begins_sentence:
            case = TITLE_WITHIN
        number = self.table.choices.pick_one(int(self.table.groups[key, 0]), chosen) * FORMS + case
        start, stop = self.table.pool_offsets[number : number + 2]
        return self.table.pool_values[start:stop].tobytes().decode()

    def sparing(self, spans: Spans) -> Kernel:
        """Return a copy of this kernel that replaces nothing inside the protected `spans`."""
        return replace(self, spans=spans)

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return an edit for each match of a batch that is replaced by its translation."""
        matches = self.table.find(texts)
        matches = matches.without(np.flatnonzero(self.spans.touch(matches.starts, matches.stops)))
        if not len(matches):
            return Edits.none()
        draws = draw_array(keys.take(matches.rows), ordinals(matches.rows))
        decided, limits = decisions(draws), self.limits.take(strengths["rate"]).take(matches.rows)
        heads = np.flatnonzero(np.diff(matches.rows, prepend=-1))  # index of each row's first match
        counts = np.diff(np.append(heads, len(matches)))
        lowest = np.repeat(np.minimum.reduceat(decided, heads), counts)
        hit = np.flatnonzero((decided < np.maximum(limits, lowest + 1)) & (limits > 0))
        matches = matches.take(hit)
        written = self._translations(texts, matches, choices(draws.take(hit)))
        return Edits(matches.rows, matches.starts, matches.stops, written, self.table.pool)

    def _translations(self, texts: Texts, matches: Matches, chosen: I64) -> I64:
        """Return the index in the table's pool of each translation, as in `_translation_in`."""
        words = texts.tokens
        previous = np.maximum(matches.firsts - 1, 0)
        begins_row = (matches.firsts == 0) | (words.rows.take(previous) != matches.rows)
        ends = np.flatnonzero(_IS_END[texts.window]) + int(texts.offsets[0])
        ends_before = np.searchsorted(ends, words.stops.take(previous))
        begins_sentence = begins_row | (np.searchsorted(ends, matches.starts) > ends_before)
        cases = case_classes(texts.values, matches.starts, matches.stops)
        cases[(cases == TITLE) & ~begins_sentence] = TITLE_WITHIN
        groups = self.table.groups[matches.keys, 0].astype(np.int64)
        written: I64 = self.table.choices.pick(groups, chosen) * FORMS + cases
        return written


@kernel("codeswitch", lambda _, values: existing(Path(values.get("dictionary") or COMMON)))
def codeswitch(
    settings: Settings,
    *,
    dictionary: str | None = None,
    into: str | None = None,
    rate: float = RATE,
) -> CodeSwitch:
    """Replace at least one word with its translation: 'where is my house' -> 'where is mi casa'."""
    path, other = source_of(dictionary, settings.lang, into)
    return CodeSwitch(table_of(path, settings.lang, other), settings.limits(rate))
