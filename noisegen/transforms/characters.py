"""The three of RoLASER's twelve that work on characters: typing slips, leetspeak, blanks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from noisegen import keyboards
from noisegen.characters import Blanks, CharacterMap, Substitution
from noisegen.lexicon import Lexicon
from noisegen.registry import DICTIONARIES, Settings, kernel
from noisegen.transforms import nlaug_data


def _layout_file(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    theirs = nlaug_data.files(settings.nlaug_data, "fing") if settings.nlaug_data else []
    layout = keyboards.keyboard_of(settings.lang, values.get("layout"))
    return theirs or [keyboards.KEYBOARDS / f"{layout.name}.tsv"]


@kernel("fing", _layout_file, keyboards.languages)
def fing(settings: Settings, *, rate: float = 0.05, layout: str | None = None) -> Substitution:
    """Hit a neighbouring key: 'soon' -> 'aiib'."""
    entries = nlaug_data.characters(settings.nlaug_data, "fing")
    entries = entries or keyboards.keyboard_of(settings.lang, layout).neighbours()
    return Substitution(CharacterMap(entries), settings.gaps(rate))


def _leet_file(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    theirs = nlaug_data.files(settings.nlaug_data, "leet") if settings.nlaug_data else []
    return theirs or [DICTIONARIES / settings.lang / "leet.tsv"]


def _leet_languages() -> list[str]:
    return sorted(path.parent.name for path in DICTIONARIES.glob("*/leet.tsv"))


@kernel("leet", _leet_file, _leet_languages)
def leet(settings: Settings, *, rate: float = 0.1) -> Substitution:
    """Replace letters by digits and signs that look alike: 'elite' -> '31173'."""
    entries = nlaug_data.characters(settings.nlaug_data, "leet")
    entries = entries or Lexicon.load(_leet_file(settings, {})[0]).entries
    return Substitution(CharacterMap(entries), settings.gaps(rate))


@kernel("spac", lambda *_: [], lambda: ["*"])
def spac(settings: Settings, *, drop_rate: float = 0.1, add_rate: float = 0.05) -> Blanks:
    """Drop blanks and add blanks inside words: 'so it is' -> 's oi ti s'."""
    return Blanks(settings.gaps(drop_rate), settings.gaps(add_rate))
