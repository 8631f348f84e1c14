"""Words of a sentence replaced by their translations, as in the code-switched sets of ORACLE.

ORACLE replaces random words by one of their translations in a bilingual dictionary (MUSE) and keeps
sentences with at least one replaced word; which share of the words it replaces is not said.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from noisegen.data.dictionaries import COMMON, check_size, load_translations, source_of
from noisegen.noising.edits import Edits
from noisegen.noising.lexicon import Entry, Lexicon, read_lexicon_file
from noisegen.noising.phrases import Matches, PhraseTable, build, cached_table
from noisegen.noising.registry import Kernel, Settings, kernel
from noisegen.noising.rng import Variants, choices, decisions, draw_array
from noisegen.text.buffers import I64, U64, Texts, is_byte, ordinals
from noisegen.text.case import case_classes, fold, title
from noisegen.text.spans import NO_SPANS, Spans
from noisegen.transforms import existing, remembered

RATE = 0.3  # of the words in the three examples that ORACLE prints, 5 of 18 are replaced
FORMS = 4  # of a translation: as written, Title, UPPER, and Title within a sentence
TITLE, TITLE_WITHIN = 1, 3
_ENDS_SENTENCE = is_byte(b".!?\n")


@remembered
def table_of(path: Path, lang: str, into: str | None) -> PhraseTable:
    """Return the compiled dictionary of a file; raises LexiconError."""
    check_size(path)
    content, meant = read_lexicon_file(path), f"codeswitch {lang} {into} {path.suffix}"
    return cached_table(
        path.stem, content, meant, lambda: compiled(load_translations(path, lang, into).entries)
    )


def compiled(entries: list[Entry]) -> PhraseTable:
    """Return a table whose pool has `FORMS` forms of each translation.

    Words that differ only in case are one word, with the translations of all; but matching folds
    ASCII and Latin-1 only: 'Și' and 'Дом' are entries of their own. A word that the dictionary
    writes with a capital, such as 'I', 'Monday' or a German noun, is capitalised for its own sake:
    its translation is so only where a sentence begins.
    """
    words: dict[str, list[tuple[Entry, list[str]]]] = defaultdict(list)
    for entry in entries:
        clean, noisy = entry.clean, entry.noisy
        spellings = {fold(clean): noisy}
        for raised, written in ((title(clean), title(noisy)), (clean.upper(), noisy.upper())):
            key = fold(raised)
            if len(raised) == len(clean) and key != key.lower():
                spellings.setdefault(key, written)
        is_proper = clean[:1] != clean[:1].lower()
        for key, form in spellings.items():
            within = form if is_proper else title(form)
            forms = [form, title(form), form.upper(), within]
            words[key].append((Entry(key, form, entry.weight), forms))
    listed = [alternative for group in words.values() for alternative in group]
    head = {"name": "codeswitch", "lang": "*", "source": "a dictionary", "license": ""}
    table = build(Lexicon(head, [entry for entry, _ in listed]))
    pool = Texts.from_strings([form for _, forms in listed for form in forms])
    return replace(table, pool_values=pool.window, pool_offsets=pool.offsets.astype(np.int32))


@dataclass(frozen=True)
class CodeSwitch:
    """Replace matches by translations, each with its rate, but at least one of a row.

    `limits` holds the 48-bit threshold of every strength; at a threshold of 0 nothing is replaced.
    Draw number i of a row decides on its i-th match outside `spans`, and which translation it gets.
    Where it decides on none, the match whose draw is the lowest is replaced.
    """

    table: PhraseTable
    limits: I64
    spans: Spans = NO_SPANS

    def sparing(self, spans: Spans) -> Kernel:
        """Return a kernel that chooses among the words outside these spans."""
        return replace(self, spans=spans)

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the translations of all rows."""
        matches = self.table.find(texts)
        matches = matches.without(np.flatnonzero(self.spans.touch(matches.starts, matches.stops)))
        if not len(matches):
            return Edits.none()
        draws = draw_array(keys.take(matches.rows), ordinals(matches.rows))
        decided, limits = decisions(draws), self.limits.take(variants["rate"]).take(matches.rows)
        heads = np.flatnonzero(np.diff(matches.rows, prepend=-1))
        counts = np.diff(np.append(heads, len(matches)))
        lowest = np.repeat(np.minimum.reduceat(decided, heads), counts)  # of its row
        hit = np.flatnonzero((decided < np.maximum(limits, lowest + 1)) & (limits > 0))
        matches = matches.take(hit)
        written = self._translations(texts, matches, choices(draws.take(hit)))
        return Edits(matches.rows, matches.starts, matches.stops, written, self.table.pool)

    def _translations(self, texts: Texts, matches: Matches, chosen: I64) -> I64:
        """Return the index in the pool of each match's translation, in the case of the text.

        A sentence begins with its row, and behind what ends a sentence or line.
        """
        words = texts.tokens
        previous = np.maximum(matches.firsts - 1, 0)
        begins_row = (matches.firsts == 0) | (words.rows.take(previous) != matches.rows)
        ends = np.flatnonzero(_ENDS_SENTENCE[texts.window]) + int(texts.offsets[0])
        ends_before = np.searchsorted(ends, words.stops.take(previous))
        begins_sentence = begins_row | (np.searchsorted(ends, matches.starts) > ends_before)
        cases = case_classes(texts.values, matches.starts, matches.stops)
        cases[(cases == TITLE) & ~begins_sentence] = TITLE_WITHIN
        groups = self.table.groups[matches.keys, 0].astype(np.int64)
        written: I64 = self.table.choices.pick(groups, chosen) * FORMS + cases
        return written


@kernel("codeswitch", lambda _, values: existing(Path(values.get("dictionary") or COMMON)))
def codeswitch(
    settings: Settings, *, dictionary: str | None = None, into: str | None = None,
    rate: float = RATE,
) -> CodeSwitch:  # fmt: skip
    """Replace at least one word with its translation: 'where is my house' -> 'where is mi casa'."""
    path, other = source_of(dictionary, settings.lang, into)
    return CodeSwitch(table_of(path, settings.lang, other), settings.limits(rate))
