"""Neighbouring keys, computed from the positions of keys on a keyboard."""

from dataclasses import dataclass
from functools import cache
from math import hypot
from pathlib import Path

from noisegen.errors import UsageError, did_you_mean
from noisegen.lexicon import Entry
from noisegen.registry import DICTIONARIES

KEYBOARDS = DICTIONARIES / "keyboards"
REACH = 1.3  # in key widths: the keys that touch a key, up to six


@dataclass(frozen=True)
class Key:
    """A key: its place in key widths, and what it gives without and with shift ('' : no letter)."""

    x: float
    y: float
    plain: str
    shifted: str


@dataclass(frozen=True)
class Keyboard:
    """A layout and the languages that are typed on it."""

    name: str
    langs: tuple[str, ...]
    keys: tuple[Key, ...]

    def neighbours(self) -> list[Entry]:
        """Return every letter with the letters of the keys within `REACH`, at the same shift."""
        pairs = [(a, b) for a in self.keys for b in self.keys if 0 < _apart(a, b) <= REACH]
        typed = [(a.plain, b.plain) for a, b in pairs] + [(a.shifted, b.shifted) for a, b in pairs]
        return sorted({Entry(wanted, hit) for wanted, hit in typed if wanted and hit})


def _apart(a: Key, b: Key) -> float:
    return hypot(a.x - b.x, a.y - b.y)


@cache
def read(path: Path) -> Keyboard:
    """Read a layout: `# key: value` lines, a header, then x, y, key, shifted."""
    lines = path.read_text("utf-8").splitlines()
    head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    rows = [line.split("\t") for line in lines if line and not line.startswith("# ")][1:]
    keys = tuple(Key(float(x), float(y), plain, shifted) for x, y, plain, shifted in rows)
    return Keyboard(head["name"], tuple(head["lang"].split()), keys)


def all_keyboards() -> list[Keyboard]:
    """Return the packaged layouts."""
    return [read(path) for path in sorted(KEYBOARDS.glob("*.tsv"))]


def languages() -> list[str]:
    """Return the languages that have a layout."""
    return sorted({lang for keyboard in all_keyboards() for lang in keyboard.langs})


def keyboard_of(lang: str, layout: str | None = None) -> Keyboard:
    """Return the named layout, or that of a language."""
    layouts = {keyboard.name: keyboard for keyboard in all_keyboards()}
    if layout is None:
        return next(keyboard for keyboard in layouts.values() if lang in keyboard.langs)
    if layout not in layouts:
        near = did_you_mean(layout, layouts) or f"; known: {', '.join(layouts)}"
        raise UsageError(f"no keyboard layout named {layout!r}{near}")
    return layouts[layout]
