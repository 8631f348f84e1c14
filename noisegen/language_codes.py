"""Names of languages in file names: one code for `de`, `deu`, `ger`, `deu_Latn` and `de-AT`."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

_CODE = re.compile(r"([a-z]{2,3})(?:[-_][A-Z][a-z]{3}|[-_][A-Z]{2}|_[a-z]{2})*")
_NO_CODES = {"txt", "tsv", "csv", "src", "ref", "raw", "tok", "dev"}  # also of three letters


def language_code(text: str) -> str | None:
    """Return the code of a language, of two letters where ISO 639-1 has one; None for no code.

    Scripts and countries are left out; three letters that are not in the table stay as they are.

    >>> [language_code(one) for one in ("deu", "pt-BR", "aze_Latn", "cmn_Hans", "ckb", "text")]
    ['de', 'pt', 'az', 'zh', 'ckb', None]
    """
    found = _CODE.fullmatch(text)
    if found is None or found[1] in _NO_CODES:
        return None
    code = _codes().get(found[1], found[1])
    return code if len(found[1]) == 3 or found[1] in _codes() else None


def language_pair(name: str) -> tuple[str, str] | None:
    """Return the last two languages joined by a hyphen in a file's name, as they are written.

    >>> [language_pair(one) for one in ("eng-cmn_Hans.tsv", "TED-en-de-train", "Wiki.de-en", "a-b")]
    [('eng', 'cmn_Hans'), ('en', 'de'), ('de', 'en'), None]
    """
    found = [pair for part in re.split("[./]", name) for pair in pairwise(part.split("-"))]
    return next((pair for pair in reversed(found) if _are_codes(*pair)), None)


def is_known(text: str) -> bool:
    """Tell whether it is the code of a language in the table: `url` is of three letters too."""
    return language_code(text) in _codes().values()


def _are_codes(one: str, other: str) -> bool:
    """Tell whether both are codes, and one at least of a language in the table."""
    return None not in map(language_code, (one, other)) and (is_known(one) or is_known(other))


@cache
def _codes() -> dict[str, str]:
    """Return the code of two letters of each code."""
    path = Path(__file__).with_name("language_codes.tsv")
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()[2:]]
    return {one: code for code, others in rows for one in (code, *others.split(" "))}
