"""Replace a number, date, percentage or ordinal in a sentence by another one of the same format.

The patterns are in data/number_rules.tsv, the words of numbers and dates in data/number_words.tsv.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from noisegen.evaluation.alterations import Alteration, capital_like, table
from noisegen.noising.rng import Draws

# Function that returns the replacement of a number, or None to keep the number.
# Its arguments are the match of a pattern, whose group 1 is the number, and random draws.
Rewrite = Callable[[re.Match[str], Draws], str | None]
_BEFORE_A_WORD = re.compile(r"[\s-]?\w")
_ORDINAL_ENDINGS = {1: "st", 2: "nd", 3: "rd"}  # by last digit; other digits take "th"
_LONG = 3  # digits; in longer numbers only one digit changes


@dataclass(frozen=True)
class NumberRule:
    """Pattern of one kind of number, and the function that replaces group 1 of a match."""

    pattern: re.Pattern[str]
    rewrite: Rewrite
    is_english: bool


def number_changes(text: str, draws: Draws, lang: str = "en") -> list[Alteration]:
    """Return at most one change for each number of the text, in text order.

    Where the matches of two rules overlap, the rule that comes first in number_rules.tsv wins. A
    number is kept if the text already contains the new number: "5 to 7" does not become "5 to 5".
    In languages other than English only numbers in digits change, because the words for numbers and
    dates differ.
    """
    changes: list[Alteration] = []
    taken: list[tuple[int, int]] = []
    for index, rule in enumerate(_number_rules()):
        if rule.is_english and lang != "en":
            continue
        for match in rule.pattern.finditer(text):
            start, stop = match.span(1)
            if any(start < end and begin < stop for begin, end in taken):
                continue
            taken.append((start, stop))
            new = rule.rewrite(match, draws.fork(f"{index}:{start}"))
            if new is not None and not re.search(rf"(?i)\b{re.escape(new)}\b", text):
                changes.append(Alteration(start, stop, new))
    return sorted(changes)


def _another(numbers: Iterable[int], old: int, draws: Draws) -> str:
    """Draw one of `numbers` other than `old`, and return it as text."""
    return str(draws.pick([number for number in numbers if number != old]))


def _another_word(known: Sequence[str]) -> Rewrite:
    """Return a function that replaces a word by another one in `known`, capitalised alike."""

    def rewrite(match: re.Match[str], draws: Draws) -> str:
        old = match[1]
        new = draws.pick([word for word in known if word.lower() != old.lower()])
        return new.upper() if old.isupper() and len(old) > 1 else capital_like(old, new)

    return rewrite


def _within(numbers_near: Callable[[int], range]) -> Rewrite:
    """Return a function that replaces a number by another one in its range `numbers_near(number)`.

    The old and new number have equally many digits. A number that is not in this range is kept: day
    31, for example, since days are drawn from 1 to 28.
    """

    def rewrite(match: re.Match[str], draws: Draws) -> str | None:
        old = match[1]
        numbers = numbers_near(int(old))
        if int(old) not in numbers:
            return None
        if old[0] != "0":
            alike = [number for number in numbers if len(str(number)) == len(old)]
        else:  # "07" may become "09" or "12"
            alike = list(numbers)
        return _in_script(_another(alike, int(old), draws).zfill(len(old)), old)

    return rewrite


def _years(old: int) -> range:
    """Return the years in the century of the year `old` that are at most thirty years from it."""
    century = old // 100 * 100
    return range(max(century, old - 30), min(century + 99, old + 30) + 1)


def _ordinal(match: re.Match[str], draws: Draws) -> str | None:
    """Replace an ordinal in digits, such as "22nd", by another one of the same length.

    An ordinal up to 31 may be a day, so its replacement is at most 31 too. Returns None for zero.
    """
    digits = match[1][:-2]
    old = int(digits)
    if not old:
        return None
    least = 10 ** (len(digits) - 1)
    most = min(10 * least - 1, 31 if old <= 31 else 99)
    new = int(_another(range(least, most + 1), old, draws))
    is_teen = new % 100 in (11, 12, 13)
    ending = "th" if is_teen else _ORDINAL_ENDINGS.get(new % 10, "th")
    return f"{new}{ending.upper() if match[1][-1].isupper() else ending}"


def _percent(match: re.Match[str], draws: Draws) -> str | None:
    """Replace the number of a percentage; 100 becomes a multiple of ten below 100."""
    if match[1] == "100":
        return _another(range(10, 100, 10), 100, draws)
    return _figures(match, draws)


def _figures(match: re.Match[str], draws: Draws) -> str | None:
    """Replace the digits of a number; its punctuation and the zeros at its ends stay.

    A single digit before a word is a count: "3 days" does not become "1 days", and "1 day" is kept.
    Returns None to keep a number. A number of only zeros is kept.
    """
    old = match[1]
    digits = re.sub(r"\D", "", old)
    ascii_digits = "".join(str(int(digit)) for digit in digits)  # Hindi digits become 0-9, too
    core = ascii_digits.strip("0")
    is_count = len(old) == 1 and _BEFORE_A_WORD.match(match.string, match.end(1)) is not None
    if not core or (is_count and core == "1"):
        return None
    new = _other_digits(core, draws, is_count=is_count)
    zeros_before, _, zeros_after = ascii_digits.partition(core)
    new_digits = iter(zeros_before + new + zeros_after)
    filled = "".join(next(new_digits) if sign.isdigit() else sign for sign in old)
    return _in_script(filled, digits)


def _other_digits(core: str, draws: Draws, *, is_count: bool) -> str:
    """Return a number other than `core` with the same number of digits, not ending in 0.

    `core` are the digits of a number without the zeros at its ends. If it has more than `_LONG`
    digits, one digit of its first half changes. With `is_count` the new number is at least 2.
    """
    if len(core) > _LONG:
        at = draws.below(len(core) // 2)
        return core[:at] + _another(range(1, 10), int(core[at]), draws) + core[at + 1 :]
    least = 2 if is_count else 10 ** (len(core) - 1)
    numbers = (number for number in range(least, 10 ** len(core)) if number % 10)
    return _another(numbers, int(core), draws)


def _in_script(text: str, like: str) -> str:
    """Write the ASCII digits of a text in the script (such as Devanagari) of the digits `like`."""
    zero = ord(like[0]) - int(like[0])
    return "".join(chr(zero + int(sign)) if sign.isdigit() else sign for sign in text)


_REWRITES: Mapping[str, Rewrite] = {
    "day_of_month": _within(lambda _: range(1, 29)),
    "hour": _within(lambda old: range(1, 13) if old < 13 else range(13, 24)),
    "year": _within(_years),
    "decade": _within(lambda old: range(old // 100 * 100, old // 100 * 100 + 100, 10)),
    "figure_ordinal": _ordinal,
    "percent": _percent,
    "figures": _figures,
}


@cache
def _number_rules() -> list[NumberRule]:
    """Return the rules of number_rules.tsv, with each ~name~ in a pattern expanded.

    ~name~ stands for the words of the kind `name` in number_words.tsv (~day~ for Monday, Tuesday
    and so on), or for the pattern that an earlier row with the language "=" defines under this
    name.
    """
    known: dict[str, list[str]] = defaultdict(list)
    for word, kind in table("number_words"):
        known[kind].append(word)
    parts = {kind: "|".join(members) for kind, members in known.items()}
    rules = []
    for lang, name, pattern, *_ in table("number_rules"):
        whole = re.sub(r"~(\w+)~", lambda match: parts[match[1]], pattern)
        if lang == "=":  # later patterns refer to this pattern by its name
            parts[name] = whole
        else:
            rewrite = _REWRITES.get(name) or _another_word(known[name])
            rules.append(NumberRule(re.compile(whole), rewrite, lang == "en"))
    return rules
