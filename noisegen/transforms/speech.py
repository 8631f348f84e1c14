"""Transforms for text as speech recognisers write it: numbers in words, no punctuation, fillers.

The recipe `asr` adds words that sound alike (`homo`, `near`), left-out function words (`drop`) and
small letters (`caps`).
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import itemgetter
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
YEARS = range(1100, 2100)  # numbers that are read as years: 'eighteen eighty seven'
_CALL = re.compile(
    r"\[(?P<unless_zero>[^]]*)\]|←%?(?P<quotient>[^←]*)←|→%?(?P<rest>[^→]*)→"
    r"|=%?(?P<same>[^=]+)=|\$\(cardinal,(?P<plural>[^)]*)\)\$"
)


class Rule(NamedTuple):
    """Words of the numbers from `first` to the next rule; `divisor` splits off the rest.

    `words` are written as in the rule-based number formats of Unicode (UTS #35, part 3).
    """

    first: int
    divisor: int
    words: str


class NumberWords:
    """Rules that write numbers in words in one language, and the signs that belong to a number.

    `found_in` is the pattern of a number in a text, `point` the word for the decimal sign.
    """

    def __init__(self, rows: Iterable[Sequence[str]]) -> None:
        """Take the rows of a packaged table: rule, first number or sign, radix, words."""
        self.rules = dict[str, list[Rule]]()
        signs = defaultdict[str, dict[str, str]](dict)
        for name, first, radix, words in rows:
            if first.isdecimal():
                rule = Rule(int(first), _divisor(first, radix), words)
                self.rules.setdefault(name, []).append(rule)
            else:
                signs[name][first] = words
        [(decimal_sign, self.point)] = signs["point"].items()
        self.amounts, self.endings = signs["amount"], signs["ending"]
        self.plurals = {name: re.compile(pattern) for name, pattern in signs["plural"].items()}
        self.groups = "".join(signs["group"]).replace("space", " ") + "\u00a0\u202f"
        group, point = f"[{re.escape(self.groups)}]", re.escape(decimal_sign)
        amount, ending = _any_of(self.amounts), _any_of(self.endings)
        self.found_in = re.compile(
            rf"(?<![\w])(?<![0-9][.,:/-])(?P<before>(?:{amount})[ \u00a0]?)?"
            rf"(?P<whole>[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+)(?P<part>{point}[0-9]+)?"
            rf"(?(before)|(?:(?P<ending>{ending})|[ \u00a0]?(?P<behind>{amount}))?)"
            r"(?![.,:/-]?[0-9]|\w)"
        )

    def words(self, number: int, rule: str = "numbering") -> str:
        """Return a number below `NUMBER_MAX` in words, by one of the rules.

        >>> number_words("en").words(1_205), number_words("de").words(21)
        ('one thousand two hundred five', 'einundzwanzig')
        """
        rules = self.rules.get(rule)
        if rules is None:  # a format of digits, for ordinals too long to say
            return str(number)
        _, divisor, words = rules[bisect_right(rules, number, key=itemgetter(0)) - 1]
        quotient, rest = divmod(number, divisor)

        def called(call: re.Match[str]) -> str:
            if call["unless_zero"] is not None:
                return _CALL.sub(called, call["unless_zero"]) if rest else ""
            if call["plural"] is not None:
                return self._plural(call["plural"], str(quotient))
            if call["same"] is not None:
                return self.words(number, call["same"])
            is_rest = call["rest"] is not None
            name = call["rest"] if is_rest else call["quotient"]
            return self.words(rest if is_rest else quotient, name or rule)

        return _CALL.sub(called, words)

    def spoken(self, found: re.Match[str]) -> str:
        """Return a number that `found_in` found as it is spoken.

        Years are read by their own rule, numbers with leading zeros and decimals by digits.
        """
        digits, part = re.sub(r"\D", "", found["whole"]), (found["part"] or "")[1:]
        sign = (found["before"] or found["behind"] or "").strip()
        is_year = digits == found["whole"] and int(digits) in YEARS
        form = "=%year=" if is_year and not part else "=%numbering="
        if sign:
            form = self.amounts[sign]
        elif found["ending"] and not part:
            form = self.endings[found["ending"]]
        before, rule, behind = form.split("=")
        if (digits[0] == "0" and int(digits)) or int(digits) >= NUMBER_MAX:
            words = self._by_digits(digits)
        else:
            words = self.words(int(digits), "numbering" if part else rule[1:])
        if part:
            words += f" {self.point} {self._by_digits(part)}"
        number = f"{int(digits)},{part}" if part else str(int(digits))
        unit = _CALL.sub(lambda call: self._plural(call["plural"], number), behind)
        return f"{before}{words}{unit}"

    def _plural(self, forms: str, number: str) -> str:
        """Return the form of a noun for a number: `one{forms}other{of this kind}`."""
        by_name = dict(re.findall(r"(\w+)\{([^}]*)\}", forms))
        names = (name for name, pattern in self.plurals.items() if pattern.search(number))
        return str(by_name.get(next(names, "other"), by_name["other"]))

    def _by_digits(self, digits: str) -> str:
        return " ".join(self.words(int(digit)) for digit in digits)


def _divisor(first: str, radix: str) -> int:
    """Return the largest power of a radix (10 if empty) that is not above a number."""
    base, power = int(radix or 10), 1
    while power * base <= int(first):
        power *= base
    return power


def _any_of(signs: Iterable[str]) -> str:
    """Return a pattern of any of the signs, a longer one first."""
    return "|".join(map(re.escape, sorted(signs, key=len, reverse=True))) or "(?!)"


@cache
def number_words(lang: str) -> NumberWords:
    """Return the words of numbers in the packaged table of a language."""
    return NumberWords(rows_of(_WORDS.of(lang)))


def spoken_numbers(text: str, names: NumberWords) -> str:
    """Return a text with all its numbers in words."""
    return names.found_in.sub(names.spoken, text)


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
        found = list(self.names.found_in.finditer(row.text))
        limit = int(self.limits[draws.strengths["rate"]])
        hit = row_hits(draws.key, range(len(found)), limit)
        return [(*found[n].span(), self.names.spoken(found[n])) for n, _ in hit]

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return an edit for each number of a batch that is written in words."""
        rows, spans, forms = list[int](), list[tuple[int, int]](), list[str]()
        for row, text in enumerate(texts.to_strings()):
            offset = int(texts.offsets[row])
            for found in self.names.found_in.finditer(text):
                start, stop = (offset + len(text[:at].encode()) for at in found.span())
                rows.append(row)
                spans.append((start, stop))
                forms.append(self.names.spoken(found))
        at = np.array(rows, np.int64)
        starts, stops = np.array(spans, np.int64).reshape(-1, 2).T
        hit, _ = hits(keys, at, self.limits.take(strengths["rate"]))
        pool = Texts.from_strings(forms).to_arrow()
        return Edits(at.take(hit), starts.take(hit), stops.take(hit), hit, pool)


@kernel("nums", _WORDS.read, _WORDS.languages)
def nums(settings: Settings, *, rate: float = 1.0) -> SpokenNumbers:
    """Write numbers in words: 'the 2nd of 35' -> 'the second of thirty five'.

    Currencies and percent are read with their number, in its gender and case: German '1 €' is 'ein
    Euro', Russian '2 $' 'два доллара'. Numbers within dates, times and versions stay: 12/5/1999,
    10:30, 3.1.4.
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
