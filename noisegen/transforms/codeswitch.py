"""Words of a sentence replaced by their translations, as in the code-switched sets of ORACLE.

ORACLE replaces random words by one of their translations in a bilingual dictionary (MUSE) and keeps
sentences with at least one replaced word; which share of the words it replaces is not said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from noisegen.data.dictionaries import COMMON, check_size, load_translations, source_of
from noisegen.noise.edits import Edits
from noisegen.noise.lexicon import Entry, Lexicon, read_lexicon_file
from noisegen.noise.phrases import Matches, PhraseTable, build, cached_table
from noisegen.noise.registry import Kernel, Settings, kernel
from noisegen.noise.rng import Variants, choices, decisions, draw_array
from noisegen.text.buffers import I64, U64, Bool, Texts, ordinals
from noisegen.text.case import case_classes, fold
from noisegen.text.spans import Spans
from noisegen.transforms import any_language

RATE = 0.3  # of the words in the three examples that ORACLE prints, 5 of 18 are replaced
FORMS = 4  # of a translation: as written, Title, UPPER, and Title within a sentence
TITLE, TITLE_WITHIN = 1, 3
_ENDS = np.isin(np.arange(256), list(b".!?\n"))


@lru_cache(maxsize=8)
def table_of(path: Path, written: int, lang: str, into: str | None) -> PhraseTable:
    """Return the compiled dictionary of a file as it was `written`; raises LexiconError."""
    check_size(path)
    content, meant = read_lexicon_file(path), f"codeswitch {lang} {into} {path.suffix}"
    return cached_table(
        path.stem, content, meant, lambda: compiled(load_translations(path, lang, into).entries)
    )


def compiled(entries: list[Entry]) -> PhraseTable:
    """Return a table whose pool has `FORMS` forms of each translation.

    Words that differ only in case are one word, with the translations of all. A word that the
    dictionary writes with a capital, such as 'I', 'Monday' or a German noun, is capitalised for its
    own sake: its translation is so only where a sentence begins.
    """
    words: dict[str, list[tuple[Entry, bool]]] = {}
    for entry in entries:
        proper = entry.clean[:1] != entry.clean[:1].lower()
        for key, noisy in _spellings(entry.clean, entry.noisy).items():
            words.setdefault(key, []).append((Entry(key, noisy, entry.weight), proper))
    listed = [alternative for group in words.values() for alternative in group]
    forms = []
    for entry, proper in listed:
        raised = title(entry.noisy)
        forms += [entry.noisy, raised, entry.noisy.upper(), entry.noisy if proper else raised]
    head = {"name": "codeswitch", "lang": "*", "source": "a dictionary", "license": ""}
    table, pool = build(Lexicon(head, [entry for entry, _ in listed])), Texts.from_strings(forms)
    return replace(table, pool_values=pool.window, pool_offsets=pool.offsets.astype(np.int32))


def _spellings(clean: str, noisy: str) -> dict[str, str]:
    """Return the spellings of a word that are not found as one, each with what is written for it.

    Matching folds ASCII and Latin-1 only: 'Și' and 'Дом' are entries of their own.
    """
    spellings = {fold(clean): noisy}
    for raised, written in ((title(clean), title(noisy)), (clean.upper(), noisy.upper())):
        key = fold(raised)
        if len(raised) == len(clean) and key != key.lower():
            spellings.setdefault(key, written)
    return spellings


def title(text: str) -> str:
    """Return a text whose first letter is a capital."""
    return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class CodeSwitch:
    """Replace matches by translations, each with its rate, but at least one of a row.

    `limits` holds the 48-bit threshold of every strength; at a threshold of 0 nothing is replaced.
    Draw number i of a row decides on its i-th match outside `spans`, and which translation it gets.
    Where it decides on none, the match whose draw is the lowest is replaced.
    """

    table: PhraseTable
    limits: I64
    spans: Spans = field(
        default_factory=lambda: Spans(np.zeros(0, np.int64), np.zeros(0, np.int64))
    )

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
        """Return the index in the pool of each match's translation, in the case of the text."""
        groups = self.table.groups[matches.keys, 0].astype(np.int64)
        cases = case_classes(texts.values, matches.starts, matches.stops)
        cases[(cases == TITLE) & ~_begins_sentence(texts, matches)] = TITLE_WITHIN
        written: I64 = self.table.choices.pick(groups, chosen) * FORMS + cases
        return written


def _begins_sentence(texts: Texts, matches: Matches) -> Bool:
    """Tell which matches begin their row, or follow what ends a sentence or line."""
    words, base = texts.tokens, int(texts.offsets[0])
    before = np.maximum(matches.firsts - 1, 0)
    heads = (matches.firsts == 0) | (words.rows.take(before) != matches.rows)
    ends = np.flatnonzero(_ENDS[texts.window]) + base
    passed = np.searchsorted(ends, matches.starts) > np.searchsorted(ends, words.stops.take(before))
    begins: Bool = heads | passed
    return begins


def _files(_: Settings, values: Mapping[str, Any]) -> list[Path]:
    path = Path(values.get("dictionary") or COMMON)
    return [path] if path.exists() else []


@kernel("codeswitch", _files, any_language)
def codeswitch(
    settings: Settings, *, dictionary: str | None = None, into: str | None = None,
    rate: float = RATE,
) -> CodeSwitch:  # fmt: skip
    """Replace words by translations, at least one: 'where is my house' -> 'where is mi casa'."""
    path, other = source_of(dictionary, settings.lang, into)
    written = path.stat().st_mtime_ns if path.exists() else 0
    return CodeSwitch(
        table_of(path.resolve(), written, settings.lang, other), settings.limits(rate)
    )
