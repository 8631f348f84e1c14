"""The packaged dictionary: common words of nine languages, any of them into any other."""

from functools import cache
from pathlib import Path

from noisegen.errors import UsageError
from noisegen.registry import DICTIONARIES

COMMON = DICTIONARIES / "bilingual" / "common.tsv"


@cache
def languages() -> tuple[str, ...]:
    """Return the languages of the packaged dictionary."""
    lines = COMMON.read_text("utf-8").splitlines()
    return tuple(next(line for line in lines if not line.startswith("#")).split("\t"))


def partner(lang: str, into: str | None) -> str:
    """Return the language of the translations: English by default, of English text Spanish.

    Raises UsageError where the packaged dictionary has not both.
    """
    wanted = into or ("es" if lang == "en" else "en")
    missing = [one for one in (lang, wanted) if one not in languages()]
    if missing or lang == wanted:
        problem = f"nothing for {missing[0]!r}" if missing else f"no {lang!r} into {wanted!r}"
        raise UsageError(
            f"codeswitch has {problem} (it has any two of: {', '.join(languages())}); "
            "give a dictionary: codeswitch:dictionary=FILE"
        )
    return wanted


def source(dictionary: str | None, lang: str, into: str | None) -> tuple[Path, str | None]:
    """Return the file that is read, the user's or the packaged one, and the other language."""
    return (Path(dictionary), into) if dictionary else (COMMON, partner(lang, into))
