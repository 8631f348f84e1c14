"""Text as a terminal shows it: graphemes, signs for invisible characters, widths in columns."""

import unicodedata
from typing import NamedTuple

from rich.cells import cell_len

_ZWJ, _ZWNJ = "\u200d", "\u200c"
_HIDDEN = "▯"
_SIGNS = {**{chr(c): chr(0x2400 + c) for c in range(32)}, "\x7f": "␡", "\t": "⇥"}
_SIGNS |= dict.fromkeys("\n\x85\u2028\u2029", "↵")


class Grapheme(NamedTuple):
    """A grapheme, the text shown for it, and the width of the shown text in columns (1 or more)."""

    text: str
    shown: str
    width: int


def displayed(text: str, changed: bool = False) -> list[Grapheme]:
    """Split a text into graphemes; if it is a `changed` text, its spaces are shown as '␣'."""
    shown = [(cluster, _shown(cluster, changed)) for cluster in graphemes(text)]
    return [Grapheme(cluster, sign, cell_len(sign)) for cluster, sign in shown]


def graphemes(text: str) -> list[str]:
    """Split a text into graphemes, the characters that a terminal shows as one sign."""
    clusters: list[str] = []
    for character in text:
        if clusters and _joins(clusters[-1], character):
            clusters[-1] += character
        else:
            clusters.append(character)
    return clusters


def _joins(cluster: str, character: str) -> bool:
    if _stands_alone(cluster[-1]) or _stands_alone(character):
        return cluster + character == "\r\n"
    if not cell_len(character) or unicodedata.category(character)[0] == "M":
        return True
    if cluster[-1] == _ZWJ:  # a zero-width joiner joins emoji and Indic letters, not Latin
        return min(cluster[0], character) > "\x7f" and cell_len(cluster[0]) > 0
    return len(cluster) == 1 and all(
        "\U0001f1e6" <= flag <= "\U0001f1ff" for flag in cluster + character
    )


def _stands_alone(character: str) -> bool:
    """Tell whether a character is a grapheme alone: a control, line break or invisible sign."""
    kind = unicodedata.category(character)
    invisible = kind == "Cf" and not cell_len(character) and not _extends(character)
    return invisible or kind in ("Cc", "Cs", "Zl", "Zp")


def _extends(character: str) -> bool:
    return character in (_ZWJ, _ZWNJ) or "\U000e0020" <= character <= "\U000e007f"


def _shown(cluster: str, changed: bool) -> str:
    """Return the text shown for a grapheme: signs for invisible characters and changed spaces."""
    if _stands_alone(cluster[0]):
        return "".join(_SIGNS.get(character, _HIDDEN) for character in cluster)
    if _extends(cluster[0]):
        return _HIDDEN
    if not cell_len(cluster[0]):
        cluster = "◌" + cluster
    if changed:
        cluster = "".join(map(_space_sign, cluster))
    visible = cluster.rstrip(_ZWJ)
    return visible if visible == cluster else visible + _HIDDEN


def _space_sign(character: str) -> str:
    """Return a visible sign as wide as a space; any other character is returned unchanged."""
    if unicodedata.category(character) != "Zs":
        return character
    return "⍽" if character == "\xa0" else "␣" * cell_len(character)
