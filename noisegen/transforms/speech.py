"""Transforms for text as speech recognisers write it: numbers in words, no punctuation, fillers.

The recipe `asr` adds words that sound alike (`homo`, `near`), left-out function words (`drop`) and
small letters (`caps`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from noisegen.noising.edits import Edits
from noisegen.noising.kernels import WordKernel
from noisegen.noising.registry import Settings, kernel
from noisegen.noising.rng import RowDraws, Strengths, hits, row_hits
from noisegen.text.buffers import I64, U64, Texts
from noisegen.text.rows import Row, RowEdit
from noisegen.transforms import Forms, LanguageFiles, rows_of
from noisegen.transforms.letters import function_words
from noisegen.transforms.punctuation import TypedMarks, table_of

_WORDS, _FILLERS, _SILENT = (LanguageFiles(f"{name}.tsv") for name in ("nums", "fill", "mute"))


# Numbers in words.

NUMBER_MAX = 10**12  # numbers from here on are read digit by digit
YEARS = range(1100, 2100)  # four digits that are read in pairs: 'eighteen eighty seven'
CURRENCIES = {"$": "dollars", "€": "euros", "£": "pounds"}
_NUMBER = re.compile(
    r"(?<![\w])(?<![0-9][.,:/-])(?P<currency>[$€£]?)"
    r"(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?P<part>\.[0-9]+)?"
    r"(?P<ending>st|nd|rd|th|%)?(?![.,:/-]?[0-9]|\w)"
)


class NumberWords(NamedTuple):
    """Words of the numbers that have one: number -> cardinal, cardinal -> ordinal."""

    cardinals: dict[int, str]
    ordinals: dict[str, str]


@cache
def number_words(lang: str) -> NumberWords:
    """Return the words of numbers in the packaged table of a language."""
    rows = rows_of(_WORDS.of(lang))
    return NumberWords(
        {int(number): cardinal for number, cardinal, _ in rows},
        {cardinal: ordinal for _, cardinal, ordinal in rows},
    )


def cardinal(number: int, names: dict[int, str]) -> str:
    """Return a number below `NUMBER_MAX` in words, without hyphens.

    >>> cardinal(1_205, number_words("en").cardinals)
    'one thousand two hundred five'
    """
    if number in names and number < 100:
        return names[number]
    unit = max(unit for unit in names if unit <= number)
    count, rest = divmod(number, unit)
    words = names[unit] if unit < 100 else f"{cardinal(count, names)} {names[unit]}"
    return f"{words} {cardinal(rest, names)}" if rest else words


def spoken(found: re.Match[str], names: NumberWords) -> str:
    """Return a number that `_NUMBER` found as it is spoken.

    Four digits of a year are read in pairs, numbers with leading zeros and decimals by digits.
    """
    digits = found["whole"].replace(",", "")
    words = " ".join(_whole(digits, names.cardinals, is_year="," not in found["whole"]))
    if found["part"]:
        words += " point " + _by_digits(found["part"][1:], names.cardinals)
    elif found["ending"] not in (None, "%"):
        before, space, last = words.rpartition(" ")
        words = before + space + names.ordinals[last]
    if found["ending"] == "%":
        words += " percent"
    return f"{words} {CURRENCIES[found['currency']]}" if found["currency"] else words


def spoken_numbers(text: str, names: NumberWords) -> str:
    """Return a text with all its numbers in words."""
    return _NUMBER.sub(lambda found: spoken(found, names), text)


def _whole(digits: str, names: dict[int, str], is_year: bool) -> Iterator[str]:
    """Yield the words of a whole number."""
    number = int(digits)
    if (digits[0] == "0" and number) or number >= NUMBER_MAX:
        yield _by_digits(digits, names)
    elif is_year and number in YEARS and not 2000 <= number < 2010:
        century, year = divmod(number, 100)
        yield cardinal(century, names)
        if year == 0:
            yield names[100]
        else:
            yield f"oh {names[year]}" if year < 10 else cardinal(year, names)
    else:
        yield cardinal(number, names)


def _by_digits(digits: str, names: dict[int, str]) -> str:
    return " ".join(names[int(digit)] for digit in digits)


@dataclass(frozen=True)
class SpokenNumbers:
    """Kernel that writes numbers in words, each number with chance `rate`.

    `limits` has `rate` at each strength of the recipe, in units of 2^-48. The i-th random number of
    a row decides on its i-th number.
    """

    limits: I64
    names: NumberWords
    needs = b"0123456789"  # rows with none of these bytes stay unchanged

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return an edit for each number of one row that is written in words."""
        found = list(_NUMBER.finditer(row.text))
        limit = int(self.limits[draws.strengths["rate"]])
        hit = row_hits(draws.key, range(len(found)), limit)
        return [(*found[n].span(), spoken(found[n], self.names)) for n, _ in hit]

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return an edit for each number of a batch that is written in words."""
        rows, spans, forms = list[int](), list[tuple[int, int]](), list[str]()
        for row, text in enumerate(texts.to_strings()):
            offset = int(texts.offsets[row])
            for found in _NUMBER.finditer(text):
                start, stop = (offset + len(text[:at].encode()) for at in found.span())
                rows.append(row)
                spans.append((start, stop))
                forms.append(spoken(found, self.names))
        at = np.array(rows, np.int64)
        starts, stops = np.array(spans, np.int64).reshape(-1, 2).T
        hit, _ = hits(keys, at, self.limits.take(strengths["rate"]))
        pool = Texts.from_strings(forms).to_arrow()
        return Edits(at.take(hit), starts.take(hit), stops.take(hit), hit, pool)


@kernel("nums", _WORDS.read, _WORDS.languages)
def nums(settings: Settings, *, rate: float = 1.0) -> SpokenNumbers:
    """Write numbers in words: 'the 2nd of 35' -> 'the second of thirty five'.

    Numbers within dates, times and versions stay: 12/5/1999, 10:30, 3.1.4.
    """
    return SpokenNumbers(settings.limits(rate), number_words(settings.lang))


# Text without punctuation.


@kernel("mute", _SILENT.read_or_any, kind="style")
def mute(settings: Settings, *, rate: float = 1.0) -> TypedMarks:
    """Leave out all punctuation: '“Well-known,” he said.' -> 'Well known he said'.

    `rate` is the chance per sign. Apostrophes stay, and signs within numbers.
    """
    [path] = _SILENT.read_or_any(settings, {})
    return TypedMarks(table_of(path), settings.limits(rate))


# Hesitation.

REPEATED_FUNCTION, REPEATED_OTHER = 60, 10  # weights of repeating a word; fillers have about 100


def hesitant(word: str, lang: str) -> Forms:
    """Return the forms of a word with a filler behind it, and the word twice.

    The second of two words has a small first letter, except in a word of capitals such as 'I'.
    """
    if not all(sign.isalpha() or sign in "'’" for sign in word):
        return []
    again = word if word.isupper() else word[0].lower() + word[1:]
    often = REPEATED_FUNCTION if word.lower() in function_words(lang) else REPEATED_OTHER
    fillers = [(f"{word} {filler}", int(weight)) for filler, weight in rows_of(_FILLERS.of(lang))]
    return [*fillers, (f"{word} {again}", often)]


@kernel("fill", _FILLERS.read, _FILLERS.languages, keeps_meaning=False, kind="slip")
def fill(settings: Settings, *, rate: float = 0.03) -> WordKernel:
    """Add fillers and repeated words, as in speech: 'so I think' -> 'so uh I I think'."""
    return WordKernel(partial(hesitant, lang=settings.lang), settings.limits(rate))
