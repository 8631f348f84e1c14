"""A bilingual dictionary compiled: phrases found as in any word list, translations by case.

Case is that of the text. A word that the dictionary writes with a capital, such as 'I', 'Monday' or
a German noun, is capitalised for its own sake: its translation is so only where a sentence begins.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from noisegen.bilingual.reading import check_size, load
from noisegen.compiled import cached_table
from noisegen.draws import I64
from noisegen.lexicon import Entry, Lexicon, read_lexicon_file
from noisegen.phrases import Matches, PhraseTable, build, case_classes
from noisegen.text import Bool, Texts, fold

FORMS = 4  # of a translation: as written, Title, UPPER, and Title within a sentence
TITLE, TITLE_WITHIN = 1, 3
_ENDS = np.isin(np.arange(256), list(b".!?\n"))


class Alternative(NamedTuple):
    """A translation; `proper` tells that the dictionary writes the word with a capital."""

    noisy: str
    weight: int
    proper: bool


@lru_cache(maxsize=8)
def table_of(path: Path, written: int, lang: str, into: str | None) -> PhraseTable:
    """Return the compiled dictionary of a file as it was `written`; raises LexiconError."""
    check_size(path)
    content, meant = read_lexicon_file(path), f"codeswitch {lang} {into} {path.suffix}"
    return cached_table(path.stem, content, meant, lambda: compiled(load(path, lang, into).entries))


def compiled(entries: list[Entry]) -> PhraseTable:
    """Return a table whose pool has `FORMS` forms of each translation.

    Words that differ only in case are one word, with the translations of all.
    """
    found: dict[str, list[Alternative]] = {}
    for entry in entries:
        proper = entry.clean[:1] != entry.clean[:1].lower()
        for key, noisy in _spellings(entry.clean, entry.noisy).items():
            found.setdefault(key, []).append(Alternative(noisy, entry.weight, proper))
    listed = [Entry(key, one.noisy, one.weight) for key, group in found.items() for one in group]
    head = {"name": "codeswitch", "lang": "*", "source": "a dictionary", "license": ""}
    forms = [form for group in found.values() for one in group for form in _forms(one)]
    pool = Texts.from_strings(forms)
    return replace(
        build(Lexicon(head, listed)),
        pool_values=pool.window, pool_offsets=pool.offsets.astype(np.int32),
    )  # fmt: skip


def _spellings(clean: str, noisy: str) -> dict[str, str]:
    """Return the spellings of a word that are not found as one, each with what is written for it.

    Matching folds ASCII and Latin-1 only: 'Și' and 'Дом' are entries of their own.
    """
    found = {fold(clean): noisy}
    for raised, written in ((title(clean), title(noisy)), (clean.upper(), noisy.upper())):
        key = fold(raised)
        if len(raised) == len(clean) and key != key.lower():
            found.setdefault(key, written)
    return found


def title(text: str) -> str:
    """Return a text with its first letter raised."""
    return text[:1].upper() + text[1:]


def _forms(one: Alternative) -> tuple[str, str, str, str]:
    raised = title(one.noisy)
    return one.noisy, raised, one.noisy.upper(), one.noisy if one.proper else raised


def alternatives(table: PhraseTable, texts: Texts, matches: Matches, chosen: I64) -> I64:
    """Return the index in the pool of each match, given 16 bits that choose."""
    groups = table.groups[matches.keys, 0].astype(np.int64)
    drawn = np.searchsorted(table.uppers, (groups << 17) + chosen, side="right")
    cases = case_classes(texts.values, matches.starts, matches.stops)
    cases[(cases == TITLE) & ~_begins_sentence(texts, matches)] = TITLE_WITHIN
    found: I64 = drawn * FORMS + cases
    return found


def _begins_sentence(texts: Texts, matches: Matches) -> Bool:
    """Tell which matches begin their row, or follow what ends a sentence or line."""
    words, base = texts.tokens, int(texts.offsets[0])
    before = np.maximum(matches.firsts - 1, 0)
    heads = (matches.firsts == 0) | (words.rows.take(before) != matches.rows)
    ends = np.flatnonzero(_ENDS[texts.window]) + base
    passed = np.searchsorted(ends, matches.starts) > np.searchsorted(ends, words.stops.take(before))
    begins: Bool = heads | passed
    return begins
