"""Sentences with a number altered: within its magnitude, in its format, digits or words."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from noisegen.draws import Draws
from noisegen.evaluation.alterations import Change
from noisegen.evaluation.altering_words import words

Rewrite = Callable[[re.Match[str], Draws], str | None]


def _words(kind: str) -> tuple[str, ...]:
    return words("number_words", kind)


ONES, TENS = _words("one"), _words("ten")
DAYS, LONG_MONTHS = _words("day"), _words("long_month")
MONTHS = LONG_MONTHS + _words("short_month")
_MONTH = "|".join(MONTHS)


class _Pattern(NamedTuple):
    """What is found, what takes its place (of its group 1), and whether only English has it."""

    expression: re.Pattern[str]
    rewrite: Rewrite
    english: bool = True


def number_changes(text: str, draws: Draws, lang: str = "en") -> list[Change]:
    """Return one change for every number of the text, in its order; overlaps go to the first rule.

    What the text holds already is no change: "5 to 7" does not become "5 to 5".
    `lang` other than en: figures only, for words and dates differ.
    """
    found: list[Change] = []
    taken: list[tuple[int, int]] = []
    for number, (expression, rewrite, english) in enumerate(_PATTERNS):
        if english and lang != "en":
            continue
        for match in expression.finditer(text):
            start, stop = match.span(1)
            if any(start < end and begin < stop for begin, end in taken):
                continue
            taken.append((start, stop))
            new = rewrite(match, draws.fork(f"{number}:{start}"))
            if new is not None and not re.search(rf"(?i)\b{re.escape(new)}\b", text):
                found.append(Change(start, stop, new))
    return sorted(found)


def _other(known: Sequence[str]) -> Rewrite:
    """Return a rewrite to another of the known words, capitals as they are."""

    def rewrite(match: re.Match[str], draws: Draws) -> str:
        old = match[1]
        new = draws.pick([word for word in known if word.lower() != old.lower()])
        if old.isupper() and len(old) > 1:
            return new.upper()
        return new.capitalize() if old[0].isupper() else new

    return rewrite


def _between(low: int, high: int) -> Rewrite:
    """Return a rewrite to another number from `low` to `high`, with as many digits."""

    def rewrite(match: re.Match[str], draws: Draws) -> str | None:
        old = match[1]
        if not low <= int(old) <= high:
            return None
        least = max(low, 10 ** (len(old) - 1)) if old[0] != "0" else low
        options = range(least, min(high, 10 ** len(old) - 1) + 1)
        new = draws.pick([option for option in options if option != int(old)])
        return _in_script(str(new).zfill(len(old)), old)

    return rewrite


def _year(match: re.Match[str], draws: Draws) -> str:
    """Return another year of the same century, at most thirty years away."""
    old = int(match[1])
    century = old // 100 * 100
    near = range(max(century, old - 30), min(century + 99, old + 30) + 1)
    return str(draws.pick([year for year in near if year != old]))


def _decade(match: re.Match[str], draws: Draws) -> str:
    old = int(match[1])
    decades = range(old // 100 * 100, old // 100 * 100 + 100, 10)
    return str(draws.pick([decade for decade in decades if decade != old]))


def _ordinal(match: re.Match[str], draws: Draws) -> str | None:
    """Return another ordinal in figures, with the ending that it takes."""
    digits = re.match(r"\d+", match[1])
    if digits is None or int(digits[0]) == 0:
        return None
    size = len(digits[0])
    top = min(10**size - 1, 31 if int(digits[0]) <= 31 else 99)
    options = [n for n in range(10 ** (size - 1), top + 1) if n != int(digits[0])]
    new = draws.pick(options)
    ending = "th" if new % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(new % 10, "th")
    return f"{new}{ending.upper() if match[1][-1].isupper() else ending}"


def _percent(match: re.Match[str], draws: Draws) -> str | None:
    """Return another percentage; below a hundred for a hundred."""
    if match[1] == "100":
        return str(draws.pick(range(10, 100, 10)))
    return _figures(match, draws)


def _figures(match: re.Match[str], draws: Draws) -> str | None:
    """Return other figures with the same zeros at both ends and the same marks between them."""
    digits = re.sub(r"\D", "", match[1])
    core = _plain(digits).strip("0")
    if not core:
        return None
    new = _core(core, draws, plural=_is_counted(match))
    if new is None:
        return None
    lead = len(digits) - len(_plain(digits).lstrip("0"))
    filled = iter("0" * lead + new + "0" * (len(digits) - lead - len(core)))
    written = "".join(next(filled) if mark.isdigit() else mark for mark in match[1])
    return _in_script(written, digits)


def _core(core: str, draws: Draws, *, plural: bool) -> str | None:
    """Return other figures for the middle of a number; None where 1 would need a singular."""
    if len(core) > 3:  # of a long number one digit in its first half
        place = draws.below(len(core) // 2)
        new = draws.pick([mark for mark in "123456789" if mark != core[place]])
        return core[:place] + new + core[place + 1 :]
    if plural and core == "1":
        return None
    options = [n for n in range(10 ** (len(core) - 1), 10 ** len(core)) if n % 10]
    return str(draws.pick([n for n in options if str(n) != core and not (plural and n == 1)]))


def _is_counted(match: re.Match[str]) -> bool:
    """Tell whether a single figure counts what the next word says ("1 day", "3 days")."""
    after = match.string[match.end(1) : match.end(1) + 2]
    return len(match[1]) == 1 and bool(re.match(r"[\s-]?\w", after))


def _plain(digits: str) -> str:
    """Return the digits of any script as ASCII."""
    return "".join(str(int(mark)) for mark in digits)


def _in_script(text: str, like: str) -> str:
    """Return the ASCII digits of a text as those of the script of `like`."""
    zero = ord(like[0]) - int(like[0])
    return "".join(chr(zero + int(mark)) if mark.isdigit() else mark for mark in text)


def _rules() -> Iterator[_Pattern]:
    """Yield what is looked for, the most telling first."""
    start, stop = r"(?<![\w.,/:#@+$€£¥-])", r"(?![\w/:@-])(?![.,]\d)"

    def pattern(text: str, rewrite: Rewrite, english: bool = True) -> _Pattern:
        return _Pattern(re.compile(text), rewrite, english)

    yield pattern(rf"\b(?:{_MONTH}) (\d\d?)\b(?![:.]\d)", _between(1, 28))
    yield pattern(rf"{start}(\d\d?) (?:of )?(?:{_MONTH})\b", _between(1, 28))
    yield pattern(rf"\b(?:{_MONTH}),? (\d{{4}})\b", _year)
    near = r"[Ii]n|[Oo]f|[Ss]ince|[Bb]y|[Uu]ntil|[Ll]ast|[Nn]ext|[Ee]arly|[Ll]ate|[Tt]his"
    yield pattern(rf"\b(?:{near}) ({_MONTH})\b(?! [A-Z])", _other(LONG_MONTHS))
    yield pattern(rf"\b({_MONTH})(?= \d)", _other(LONG_MONTHS))
    yield pattern(rf"(?<=\d )({_MONTH})\b", _other(LONG_MONTHS))
    names = "".join(f"(?<!{name} )" for name in _words("feast"))
    yield pattern(rf"\b{names}({'|'.join(DAYS)})\b(?! [A-Z])", _other(DAYS))
    yield pattern(rf"{start}(\d\d?):\d\d\b(?!:)", _hour, english=False)
    yield pattern(rf"{start}((?:1[0-9]|20)\d0)s\b", _decade)
    yield pattern(
        rf"{start}((?:1[1-9]|20)\d\d){stop}(?! (?:[a-z]{{3,}}s|people|men|women)\b)", _year, False
    )
    yield pattern(rf"{start}(\d{{1,2}}(?:st|nd|rd|th|ST|ND|RD|TH))\b(?! cent)", _ordinal)
    yield pattern(rf"{start}(\d{{1,2}}(?:st|nd|rd|th))\b", _ordinal)
    number = r"\d+(?:[.,]\d{3})*(?:[.,]\d+)?"
    yield pattern(rf"(?<!\w)[$€£¥] ?({number})(?![\d/])", _figures, english=False)
    yield pattern(rf"{start}({number})(?= ?(?:%|per ?cent\b))", _percent, english=False)
    yield pattern(rf"{start}({number})(?=(?:{'|'.join(_words('unit'))})\b)", _figures)
    yield pattern(rf"{start}({number})(?=-[a-z])(?!-(?:to|and)-)", _figures)
    yield pattern(rf"{start}({number}){stop}", _figures, english=False)
    yield from _in_words(pattern)


def _hour(match: re.Match[str], draws: Draws) -> str | None:
    """Return another hour of the same half of the day."""
    low, high = (1, 12) if int(match[1]) <= 12 else (13, 23)
    return _between(low, high)(match, draws)


def _in_words(pattern: Callable[[str, Rewrite], _Pattern]) -> Iterator[_Pattern]:
    """Yield what is looked for among words; fractions ("two thirds") stay."""
    part = r"(?![ -](?:thirds?|quarters?|fifths?|halves|by|or|to)\b)(?!-\w)"
    ones, tens, scales = "|".join(ONES), "|".join(TENS), "|".join(_words("scale"))
    yield pattern(rf"(?i)\b(?:{tens})[- ](one|{ones})\b{part}", _other(ONES))
    yield pattern(rf"(?i)(?<![-\w])({tens})\b{part}", _other(TENS))
    yield pattern(rf"(?i)(?<![-\w])({'|'.join(_words('teen'))})\b{part}", _other(_words("teen")))
    yield pattern(rf"(?i)(?<![-\w])(?<!or )({ones})\b{part}", _other(ONES))
    yield pattern(rf"(?i)(?<![-\w])(one)(?= (?:{scales})\b)", _other(ONES))
    before = r"(?<=the )|(?<=his )|(?<=her )|(?<=their )|(?<=our )|(?<=your )"
    yield pattern(
        rf"(?i)(?:{before}|(?<=\bmy )|(?<=\bits ))({'|'.join(_words('ordinal'))})"
        r"(?= [a-z])(?! (?:place|thing|hand|half|of all)\b)", _other(_words('ordinal')),
    )  # fmt: skip
    yield pattern(rf"(?i)(?<=a )({scales})\b(?! to)", _other(_words("scale")))


_PATTERNS = tuple(_rules())
