"""Words of another script written in Latin letters, as people do in chats."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from noisegen.registry import DICTIONARIES, Settings, kernel
from noisegen.word_kernel import WordKernel

FORMS_MAX = 8  # ways to write a word, the likeliest
WHOLE = 1 << 40  # weights of a word's forms are shares of it
LETTERS_MAX = 4  # that are written as one
FULL_STOPS = "।॥։"  # no signs to the tokenizer, so they are at the end of words
Written = list[tuple[str, int]]  # Latin letters with their weights
LetterTable = dict[str, dict[str, Written]]  # letters -> where ('' is anywhere) -> what is written


@cache
def letters_of(path: Path) -> LetterTable:
    """Read a letter table: letters, latin, where, weight."""
    found: LetterTable = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith(("#", "letters\t")):
            letters, latin, where, weight = line.split("\t")
            found[letters].setdefault(where, []).append((latin, int(weight)))
    return dict(found)


def latinised(
    word: str, table: LetterTable, spoken: Callable[[str], str] = str
) -> list[tuple[str, int]]:
    """Write a word in Latin letters: the likeliest forms with their weights.

    There are none if the table lacks a letter of it. `spoken` is applied first, see `with_schwas`.
    """
    plain = unicodedata.normalize("NFC", word.lower())
    core = plain.rstrip(FULL_STOPS)
    whole = table.get(core, {}).get("word")
    units = [whole] if whole else _units(spoken(core), table)
    forms = {"": WHOLE} if units or not core else {}
    for unit in [*units, *(table.get(stop, {"": [(stop, 1)]})[""] for stop in plain[len(core) :])]:
        forms = _likeliest(_longer(forms, unit))
    return [(_cased(form, word), weight) for form, weight in forms.items() if form and weight]


def _units(core: str, table: LetterTable) -> list[Written]:
    """Return what is written for each group of letters; nothing if one is unknown, or all Latin."""
    found, at = list[Written](), 0
    while at < len(core):
        stops = range(min(at + LETTERS_MAX, len(core)), at, -1)
        fitting = ((stop, _fitting(table.get(core[at:stop], {}), at, stop, core)) for stop in stops)
        stop, written = next((pair for pair in fitting if pair[1]), (at + 1, []))
        if not written and not core[at].isascii():
            return []
        found.append(written or [(core[at], 1)])
        at = stop
    return [] if core.isascii() else found


def _fitting(rows: Mapping[str, Written], start: int, stop: int, core: str) -> Written:
    """Return the rows for a group of letters at this place of a word."""
    at_start = rows.get("start", []) if start == 0 else []
    at_end = rows.get("end", []) if stop == len(core) else []
    return at_start or at_end or rows.get("", [])


def _longer(forms: Mapping[str, int], unit: Written) -> dict[str, int]:
    total, found = sum(weight for _, weight in unit), defaultdict[str, int](int)
    for form, share in forms.items():
        for latin, weight in unit:
            found[form + latin] += share * weight // total
    return found


def _likeliest(forms: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(forms.items(), key=lambda pair: (-pair[1], pair[0]))[:FORMS_MAX])


def _cased(form: str, word: str) -> str:
    if word.isupper() and len(word) > 1:
        return form.upper()
    return form[:1].upper() + form[1:] if word[:1].isupper() else form


_AKSHARA = re.compile(
    "(?P<consonant>[\u0915-\u0939]\u093c?)(?P<vowel>[\u093e-\u094d]?)(?P<mark>[\u0901-\u0903]?)|.",
    re.DOTALL,
)
_VIRAMA = "\u094d"  # written where a consonant has no vowel
_GLIDES = "\u092f\u0930\u0932\u0935"  # y, r, l, v: after a consonant, they keep a last vowel


def with_schwas(word: str) -> str:
    """Write the inherent vowels of a Devanagari word that are spoken in Hindi as 'a'.

    After Ohala (1983), Aspects of Hindi Phonology: the vowel is dropped at the end of a word, and
    between a vowel and a consonant that is followed by a spoken vowel, from right to left.
    """
    parts = list(_AKSHARA.finditer(word))
    inherent = [bool(part["consonant"]) and not part["vowel"] for part in parts]
    for at in range(len(parts) - 1, 0, -1):
        inherent[at] = inherent[at] and not _dropped(parts, inherent, at)
    return "".join(
        part[0][: len(part["consonant"])] + "a" + part["mark"] if here else part[0]
        for part, here in zip(parts, inherent, strict=True)
    )


def _dropped(parts: list[re.Match[str]], inherent: list[bool], at: int) -> bool:
    """Tell whether the inherent vowel here is silent; those further right are settled."""
    here, before = parts[at], parts[at - 1]
    if here["mark"]:
        return False
    joined = before["vowel"] == _VIRAMA
    if at == len(parts) - 1:
        return not (joined and here["consonant"] in _GLIDES)
    after = parts[at + 1]
    spoken = after["consonant"] and (inherent[at + 1] or after["vowel"] not in ("", _VIRAMA))
    return bool(spoken) and not joined


def _file(settings: Settings, _: Mapping[str, Any]) -> list[Path]:
    return [DICTIONARIES / settings.lang / "latn.tsv"]


def _languages() -> list[str]:
    return sorted(path.parent.name for path in DICTIONARIES.glob("*/latn.tsv"))


@kernel("latn", _file, _languages)
def latn(settings: Settings, *, rate: float = 1.0) -> WordKernel:
    """Write words of another script in Latin letters, as in chats: 'привет' -> 'privet'."""
    spoken = with_schwas if settings.lang == "hi" else str
    rule = partial(latinised, table=letters_of(_file(settings, {})[0]), spoken=spoken)
    return WordKernel(rule, settings.limits(rate))
