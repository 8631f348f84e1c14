"""Spans that must not change: found by patterns, or carried over edits."""

import re
from dataclasses import dataclass

import numpy as np

from noisegen.draws import I64
from noisegen.errors import UsageError
from noisegen.text import U8, Bool, Texts

TLDS = "com org net edu gov info io co uk de fr es it tr in ru eu tv me".split()  # noqa: SIM905

PROTECTABLE = {
    "url": r"(?:https?|ftp)://[^\s<>\"]+|\bwww\.[^\s<>\"]+"
    r"|\b(?:[a-z0-9-]{1,63}\.){1,8}(?:" + "|".join(TLDS) + r")\b"
    r"(?:/[^\s<>\"]*)?",
    "mention": r"(?<![\w@])@\w+",
    "hashtag": r"(?<![\w#&])#\w+",
    "email": r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
}
_SIGNALS = {"url": ("./", ":/"), "mention": "@", "hashtag": "#", "email": "@"}


def protect_kinds(names: str) -> tuple[str, ...]:
    """Return the kinds of span named in 'url,mention' ('none': no kind)."""
    kinds = () if names == "none" else tuple(part.strip() for part in names.split(","))
    for kind in kinds:
        if kind not in PROTECTABLE:
            raise UsageError(f"cannot protect {kind!r}; known: {', '.join(PROTECTABLE)}, or none")
    return kinds


@dataclass(frozen=True)
class Spans:
    """Byte ranges that must not change, ascending, disjoint; a blank beside one belongs to it."""

    starts: I64
    stops: I64

    def touch(self, starts: I64, stops: I64) -> Bool:
        """Tell which ranges [start, stop) change a span; an insertion only strictly inside."""
        if not len(self.starts):
            return np.zeros(len(starts), np.bool_)
        nearest = np.searchsorted(self.stops, starts, side="right")
        padded = np.append(self.starts, np.iinfo(np.int64).max)
        touched: Bool = np.where(starts == stops, padded[nearest] < starts, padded[nearest] < stops)
        return touched


def protected(texts: Texts, kinds: tuple[str, ...]) -> Spans:
    """Find the spans of the given kinds."""
    starts: list[int] = []
    stops: list[int] = []
    if kinds and len(texts.window):
        pattern = re.compile("|".join(PROTECTABLE[kind] for kind in kinds), re.IGNORECASE)
        for row in _candidate_rows(texts, kinds):
            _find_in_row(texts, int(row), pattern, starts, stops)
    return Spans(np.array(starts, np.int64), np.array(stops, np.int64))


def _candidate_rows(texts: Texts, kinds: tuple[str, ...]) -> I64:
    """Return the rows holding a sign without which no pattern of these kinds matches."""
    window = texts.window
    found = [np.zeros(0, np.int64)]
    for sign in sorted({sign for kind in kinds for sign in _SIGNALS[kind]}):
        places = np.flatnonzero(window[:-1] == ord(sign[0]))
        if sign == "./":  # an address has www before a dot, a known domain behind one ...
            after_www = (window[np.maximum(places - 1, 0)] | 0x20) == ord("w")
            places = places[after_www | _begins_tld(window, places + 1)]
        elif sign == ":/":  # ... or a slash behind its colon
            places = places[window[places + 1] == ord("/")]
        places = places + texts.offsets[0]
        rows = texts.rows_of(places)
        found.append(rows[places + 1 < texts.offsets[rows + 1]])
    return np.unique(np.concatenate(found))


def _begins_tld(window: U8, at: I64) -> Bool:
    """Tell at which positions the first two letters of a top-level domain stand."""
    first = window[at] | 0x20
    second = window[np.minimum(at + 1, len(window) - 1)] | 0x20
    begins: Bool = _TLD_STARTS[first.astype(np.int64) << 8 | second]
    return begins


_TLD_STARTS = np.zeros(1 << 16, np.bool_)
_TLD_STARTS[[ord(name[0]) << 8 | ord(name[1]) for name in TLDS]] = True


def _find_in_row(
    texts: Texts, row: int, pattern: re.Pattern[str], starts: list[int], stops: list[int]
) -> None:
    base = int(texts.offsets[row])
    text = texts.values[base : texts.offsets[row + 1]].tobytes().decode()
    done = 0
    for match in pattern.finditer(text):
        start, stop = match.span()
        start -= text[start - 1 : start] == " "
        stop += text[stop : stop + 1] == " "
        start = max(start, done)
        starts.append(base + len(text[:start].encode()))
        stops.append(base + len(text[:stop].encode()))
        done = stop
