"""Changes of single characters and of case: leetspeak, spaces, capitals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
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
from noisegen.noising.rng import CERTAIN, RowDraws, Variants, hits, row_hits
from noisegen.text.buffers import I64, U64, Bool, Texts, as_arrow
from noisegen.text.case import SENTENCE_ENDS, begins_row, begins_sentence, case_class, case_classes
from noisegen.text.rows import Memo, Row, RowEdit
from noisegen.transforms import LanguageFiles
from noisegen.transforms.nlaugmenter import original_characters, original_files

_LEET = LanguageFiles("leet.tsv")


def _leet_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    return original_files(settings.nlaug_data, "leet") or _LEET.read(settings, values)


@kernel("leet", _leet_files, _LEET.languages)
def leet(
    settings: Settings, *, rate: float = 0.1, by_length: bool = False
) -> Substitution | CountedSubstitution:
    """Replace letters with digits and signs that look alike: 'elite' -> '31173'.

    `rate` is the chance of a letter that has such a sign. With by_length=true, rate x length of the
    row, rounded down, are drawn among these letters, with repeats, as RoLASER's script does.
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


DOTTED_I = ("tr", "az")  # languages in which I is the capital of ı, and İ that of i
CASES = {"upper": (pc.utf8_upper, "i", "İ"), "lower": (pc.utf8_lower, "I", "ı")}


@dataclass(frozen=True)
class Recased:
    """Write words in one of `CASES`, each with its rate; `limits`: one for every strength.

    Words of any length are written at once: a rule asked word by word would leave out long ones.
    """

    limits: I64
    case: str
    dotted: bool  # whether i and ı are two letters
    chosen: str = "all"  # of `_CHOICES`: which words

    @property
    def needs(self) -> bytes:
        """Bytes without which a row has none of these words."""
        return {"i": b"I", "next": SENTENCE_ENDS}.get(self.chosen, b"")

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the words of all rows that change."""
        words = texts.tokens
        limits, eligible = self.limits.take(variants["rate"]), _CHOICES[self.chosen](texts)
        hit, _ = hits(keys, words.rows, limits, eligible)
        if not len(hit):
            return Edits.none()
        starts, stops = words.starts.take(hit), words.stops.take(hit)
        edges = np.stack([starts, stops], axis=1).ravel()  # of a word, a gap, a word, ..., a word
        pieces = Texts(texts.values, edges).to_arrow()
        clean = pieces.take(as_arrow(np.arange(0, len(pieces), 2))).cast(pa.string())
        write, letter, dotted = CASES[self.case]
        noisy = write(pc.replace_substring(clean, letter, dotted) if self.dotted else clean)
        changed = pc.not_equal(clean, noisy).to_numpy(zero_copy_only=False)
        pool = noisy.cast(pa.binary())
        return Edits(words.rows.take(hit), starts, stops, np.arange(len(hit)), pool).keep(changed)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the words of one row that change."""
        limit = int(self.limits[draws.variants["rate"]])
        is_whole = self.chosen == "all" and limit == CERTAIN
        if is_whole and row.text.isascii() and not (self.dotted or row.protected):
            return [(0, len(row.text), _recased(row.text, self.case, self.dotted))]
        words, cased, is_chosen = row.words, _CASED[self.case, self.dotted], _IS_CHOSEN[self.chosen]
        changed = [
            number for number, word in enumerate(words)
            if cased[word] != word and is_chosen(row, number)
        ]  # fmt: skip
        hit = row_hits(draws.key, changed, limit)
        return [(*row.span(number), cased[words[number]]) for number, _ in hit]


def _recased(word: str, case: str, dotted: bool) -> str:
    """Return a word, or a text of ASCII, in one of `CASES`."""
    if word.isascii() and not dotted:
        return word.upper() if case == "upper" else word.lower()
    write, letter, other = CASES[case]
    recased: str = write(pa.scalar(word.replace(letter, other) if dotted else word)).as_py()
    return recased


_CASED = {
    (case, dotted): Memo(partial(_recased, case=case, dotted=dotted))
    for case in CASES for dotted in (False, True)
}  # fmt: skip


def _begins_sentence(texts: Texts) -> Bool:
    """Tell which words begin a later sentence of their row."""
    return begins_sentence(texts, texts.tokens, np.arange(len(texts.tokens)))


def _without_acronyms(texts: Texts, chosen: Bool) -> Bool:
    """Tell which chosen words may begin small: not RT and NASA, whoever writes them."""
    words, at = texts.tokens, np.flatnonzero(chosen)
    starts, stops = words.starts.take(at), words.stops.take(at)
    chosen[at] = case_classes(texts.values, starts, stops, any_script=True) < 2
    return chosen


def _is_i(texts: Texts) -> Bool:
    """Tell which words are I, alone or before an apostrophe."""
    words, window = texts.tokens, texts.values
    second = window.take(words.starts + 1, mode="clip")
    alone = words.stops - words.starts == 1
    curly = np.ones(len(words), np.bool_)
    for place, byte in enumerate("\u2019".encode(), 1):
        curly &= window.take(words.starts + place, mode="clip") == byte
    is_i: Bool = (window.take(words.starts) == ord("I")) & (alone | (second == ord("'")) | curly)
    return is_i


def _is_name(texts: Texts) -> Bool:
    """Tell which other words begin with their only capital."""
    words = texts.tokens
    is_title: Bool = case_classes(texts.values, words.starts, words.stops, any_script=True) == 1
    return is_title & ~(begins_row(words) | _begins_sentence(texts) | _is_i(texts))


_CHOICES: dict[str, Callable[[Texts], Bool | None]] = {
    "all": lambda _: None,
    "first": lambda texts: _without_acronyms(texts, begins_row(texts.tokens)),
    "next": lambda texts: _without_acronyms(texts, _begins_sentence(texts)),
    "i": _is_i, "names": _is_name,
}  # fmt: skip
_class_of = partial(case_class, any_script=True)
_IS_CHOSEN: dict[str, Callable[[Row, int], bool]] = {
    "all": lambda row, number: True,
    "first": lambda row, number: number == 0 and _class_of(row.words[number]) < 2,
    "next": lambda row, number: row.begins_sentence(number) and _class_of(row.words[number]) < 2,
    "i": lambda row, number: row.words[number] == "I" or row.words[number][:2] in ("I'", "I\u2019"),
    "names": lambda row, number: (
        _class_of(row.words[number]) == 1
        and not any(_IS_CHOSEN[other](row, number) for other in ("first", "next", "i"))
    ),
}


@kernel("caps", kind="style")
def caps(
    settings: Settings, *, rate: float = 1.0, case: str = "upper", words: str = "all"
) -> Recased:
    """Write words in capitals or lower case: 'see you tomorrow' -> 'SEE YOU TOMORROW'.

    With case=lower, 'I saw Anna' becomes 'i saw anna'. `words` are 'all', the 'first' of the row
    and the first of the 'next' sentences (not acronyms), the pronoun 'i', or 'names': others with a
    capital. Raises UsageError for another case or other words.
    """
    for name, value, known in (("case", case, [*CASES]), ("words", words, [*_CHOICES])):
        if value not in known:
            near = did_you_mean(value, known) or f"; known: {', '.join(known)}"
            raise UsageError(f"caps has no {name} {value!r}{near}")
    return Recased(settings.limits(rate), case, settings.lang in DOTTED_I, words)
