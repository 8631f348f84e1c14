"""Transforms of characters and case: leetspeak, dropped and added spaces, capitals."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.errors import UsageError, did_you_mean
from noisegen.noising.edits import Edits
from noisegen.noising.kernels import (
    CountedSubstitution,
    Spacing,
    Substitution,
    character_map,
)
from noisegen.noising.lexicon import Lexicon
from noisegen.noising.registry import Settings, kernel
from noisegen.noising.rng import CERTAIN, RowDraws, Strengths, hits, row_hits
from noisegen.text.buffers import I64, U64, Bool, Texts, as_arrow
from noisegen.text.case import (
    SENTENCE_ENDS,
    begins_row,
    begins_sentence,
    case_class,
    case_classes,
    toneless,
    with_final_sigma,
)
from noisegen.text.rows import Memo, Row, RowEdit
from noisegen.transforms import LanguageFiles
from noisegen.transforms.checkout import original_characters, original_files

_LEET = LanguageFiles("leet.tsv")


def _leet_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    return original_files(settings.nlaug_data, "leet") or _LEET.read(settings, values)


@kernel("leet", _leet_files, _LEET.languages)
def leet(
    settings: Settings, *, rate: float = 0.1, by_length: bool = False
) -> Substitution | CountedSubstitution:
    """Replace letters with digits and signs that look alike: 'elite' -> '31173'.

    `rate` is the chance that a letter which has a look-alike is replaced. With by_length=true, a
    fixed number of letters is drawn instead: `rate` times the number of characters in the row,
    rounded down. A letter may be drawn twice, as in RoLASER's script.
    """
    entries = original_characters(settings.nlaug_data, "leet")
    characters = character_map(entries or Lexicon.load(_LEET.of(settings.lang)).entries)
    if by_length:
        return CountedSubstitution(characters, settings.rates(rate))
    return Substitution(characters, settings.gaps(rate), bare=True)


@kernel("spac")
def spac(settings: Settings, *, drop_rate: float = 0.1, add_rate: float = 0.05) -> Spacing:
    """Drop spaces and add spaces inside words: 'so it is' -> 's oi ti s'."""
    return Spacing(settings.gaps(drop_rate), settings.gaps(add_rate))


DOTTED_I = ("tr", "az")  # languages in which I is the capital of ı, and İ is the capital of i
WORDS = ("all", "first", "next", "i", "names")  # values of the parameter `words` of `caps`
# Case -> (function that converts a text to this case, letter, replacement of the letter).
# For languages in `DOTTED_I`, the letter is replaced before the function is called.
CASES = {"upper": (pc.utf8_upper, "i", "İ"), "lower": (pc.utf8_lower, "I", "ı")}
_OR = ("ή", "ἤ", "ἢ")  # the Greek word 'or', which keeps an accent to differ from the article Η


def is_i(word: str) -> bool:
    """Tell whether a word is the pronoun 'I', or begins with it and an apostrophe, as "I'm"."""
    return word == "I" or word[:2] in ("I'", "I\u2019")


def recased(word: str, case: str, lang: str) -> str:
    """Write a word, or a text of ASCII characters, in upper or lower case.

    `case` is a key of `CASES`. `lang` matters for Turkish, Azerbaijani and Greek.
    """
    if word.isascii() and lang not in DOTTED_I:
        return word.upper() if case == "upper" else word.lower()
    write, letter, other = CASES[case]
    if lang in DOTTED_I:
        word = word.replace(letter, other)
    elif lang == "el" and case == "upper":
        is_or = unicodedata.normalize("NFC", word.lower()) in _OR
        word = "ή" if is_or else toneless(word)
    written: str = write(pa.scalar(word)).as_py()
    return with_final_sigma(written) if lang == "el" and case == "lower" else written


@cache
def _recased(case: str, lang: str) -> Memo[str, str]:
    """Return the cache of `recased` for a case and a language."""
    return Memo(partial(recased, case=case, lang=lang))


def is_chosen(row: Row, number: int, chosen: str) -> bool:
    """Tell whether `caps` with words=`chosen` may change the word with index `number` of a row.

    `chosen` is one of `WORDS`. An acronym such as RT or NASA is neither 'first' nor 'next', as
    nobody writes it with a small first letter.
    """
    word = row.words[number]
    if chosen == "all":
        return True
    if chosen == "i":
        return is_i(word)
    case, begins_sentence = case_class(word, any_script=True), row.begins_sentence(number)
    if chosen == "first":
        return number == 0 and case < 2
    if chosen == "next":
        return begins_sentence and case < 2
    return case == 1 and number > 0 and not begins_sentence and not is_i(word)


@dataclass(frozen=True)
class Recased:
    """Kernel that writes chosen words in upper or lower case, each with chance `rate`.

    `limits` has `rate` at each strength of the recipe, in units of 2^-48. The i-th random number of
    a row decides whether its i-th word changes. `case` is a key of `CASES`.
    """

    limits: I64
    case: str
    lang: str
    chosen: str = "all"  # words that may change: one of `WORDS`

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the edits of one row: an edit per changed word, or one edit of the whole row."""
        limit = int(self.limits[draws.strengths["rate"]])
        is_whole = self.chosen == "all" and limit == CERTAIN
        written = _recased(self.case, self.lang)
        if is_whole and row.text.isascii() and self.lang not in DOTTED_I and not row.protected:
            return [(0, len(row.text), recased(row.text, self.case, self.lang))]
        changed: list[int] = []
        for number, word in enumerate(row.words):
            if written[word] != word and is_chosen(row, number, self.chosen):
                changed.append(number)
        hit = row_hits(draws.key, changed, limit)
        return [(*row.span(number), written[row.words[number]]) for number, _ in hit]

    @property
    def needs(self) -> bytes:
        """Rows with none of these bytes stay unchanged; empty if any row may change."""
        return {"i": b"I", "next": SENTENCE_ENDS}.get(self.chosen, b"")

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return an edit for each word of a batch that changes.

        Words of any length may change, unlike in `WordKernel`, which skips long words.
        """
        words = texts.tokens
        limits, eligible = self.limits.take(strengths["rate"]), _are_chosen(texts, self.chosen)
        hit, _ = hits(keys, words.rows, limits, eligible)
        if not len(hit):
            return Edits.none()
        starts, stops = words.starts.take(hit), words.stops.take(hit)
        edges = np.stack([starts, stops], axis=1).ravel()  # edges of word, gap, word, ..., word
        pieces = Texts(texts.values, edges).to_arrow()
        clean = pieces.take(as_arrow(np.arange(0, len(pieces), 2))).cast(pa.string())
        noisy = self._written(clean)
        changed = pc.not_equal(clean, noisy).to_numpy(zero_copy_only=False)
        pool = noisy.cast(pa.binary())
        return Edits(words.rows.take(hit), starts, stops, np.arange(len(hit)), pool).keep(changed)

    def _written(self, words: pa.Array) -> pa.Array:
        """Return words in the case of this kernel, see `recased`."""
        write, letter, dotted = CASES[self.case]
        if self.lang in DOTTED_I:
            words = pc.replace_substring(words, letter, dotted)
        if self.lang != "el":
            return write(words)
        distinct, written = words.dictionary_encode(), _recased(self.case, self.lang)
        forms = [written[word] for word in distinct.dictionary.to_pylist()]
        return pa.array(forms, pa.string()).take(distinct.indices)


def _are_chosen(texts: Texts, chosen: str) -> Bool | None:
    """Return the result of `is_chosen` for each word of a batch; None if every word is chosen."""
    words = texts.tokens
    if chosen == "all":
        return None
    if chosen == "i":
        return _are_i(texts)
    begin_row = begins_row(words)
    if chosen == "first":
        return _without_acronyms(texts, begin_row)
    begin_sentence = begins_sentence(texts, words, np.arange(len(words)))
    if chosen == "next":
        return _without_acronyms(texts, begin_sentence)
    cases = case_classes(texts.values, words.starts, words.stops, any_script=True)
    are_names: Bool = (cases == 1) & ~begin_row & ~begin_sentence & ~_are_i(texts)
    return are_names


def _without_acronyms(texts: Texts, chosen: Bool) -> Bool:
    """Clear the flags of acronyms in `chosen`, which has a flag per word, and return it."""
    words, at = texts.tokens, np.flatnonzero(chosen)
    starts, stops = words.starts.take(at), words.stops.take(at)
    chosen[at] = case_classes(texts.values, starts, stops, any_script=True) < 2
    return chosen


def _are_i(texts: Texts) -> Bool:
    """Return the result of `is_i` for each word of a batch."""
    words, found = texts.tokens, np.zeros(len(texts.tokens), np.bool_)
    for number in np.flatnonzero(texts.values.take(words.starts) == ord("I")).tolist():
        word = texts.values[words.starts[number] : words.stops[number]]
        found[number] = is_i(word.tobytes().decode())
    return found


@kernel("caps", kind="style")
def caps(
    settings: Settings, *, rate: float = 1.0, case: str = "upper", words: str = "all"
) -> Recased:
    """Write words in capitals or lower case: 'see you tomorrow' -> 'SEE YOU TOMORROW'.

    With case=lower, 'I saw Anna' becomes 'i saw anna'. `words` chooses 'all' words, the 'first'
    word of the row, the first word of each 'next' sentence, the pronoun 'i', or 'names': words
    within a sentence whose first letter is a capital. Acronyms are neither 'first' nor 'next'.
    Raises UsageError for other values of `case` or `words`.
    """
    for name, value, known in (("case", case, [*CASES]), ("words", words, [*WORDS])):
        if value not in known:
            near = did_you_mean(value, known) or f"; known: {', '.join(known)}"
            raise UsageError(f"caps has no {name} {value!r}{near}")
    return Recased(settings.limits(rate), case, settings.lang, words)
