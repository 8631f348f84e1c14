"""Spans of text that must not change: found by patterns, carried along with edits around them."""

import re
from dataclasses import dataclass

import numpy as np

from noisegen.errors import UsageError
from noisegen.text.buffers import I64, Bool, Texts

TLDS = "com org net edu gov info io co uk de fr es it tr in ru eu tv me".split()  # noqa: SIM905
PROTECTABLE = {
    "url": r"(?:https?|ftp)://[^\s<>\"]+|\bwww\.[^\s<>\"]+"
    r"|\b(?:[a-z0-9-]{1,63}\.){1,8}(?:" + "|".join(TLDS) + r")\b"
    r"(?:/[^\s<>\"]*)?",
    "mention": r"(?<![\w@])@\w+",
    "hashtag": r"(?<![\w#&])#\w+",
    "email": r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
}
PROTECTED = "url,mention,hashtag,email"  # the default
_SIGNALS = {"url": ("./", ":/"), "mention": "@", "hashtag": "#", "email": "@"}
_IS_TLD_START = np.zeros(1 << 16, np.bool_)  # by the first two letters
_IS_TLD_START[[ord(name[0]) << 8 | ord(name[1]) for name in TLDS]] = True


def protect_kinds(names: str) -> tuple[str, ...]:
    """Return the kinds of span named in 'url,mention' ('none': no kind)."""
    kinds = () if names == "none" else tuple(part.strip() for part in names.split(","))
    for kind in kinds:
        if kind not in PROTECTABLE:
            raise UsageError(f"cannot protect {kind!r}; known: {', '.join(PROTECTABLE)}, or none")
    return kinds


@dataclass(frozen=True)
class Spans:
    """Byte ranges that must not change, ascending, disjoint; a space beside one belongs to it."""

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

    def taken(self, texts: Texts, rows: I64, result: Texts) -> "Spans":
        """Return the spans of some rows of `texts`, where they are in `result` of these rows."""
        if not len(self.starts):
            return self
        owners = texts.rows_of(self.starts)
        targets = np.full(len(texts), -1)
        targets[rows] = np.arange(len(rows))
        kept = np.flatnonzero(targets[owners] >= 0)
        kept = kept[np.argsort(targets[owners[kept]], kind="stable")]
        shift = result.offsets[targets[owners[kept]]] - texts.offsets[owners[kept]]
        return Spans(self.starts[kept] + shift, self.stops[kept] + shift)


def protected(texts: Texts, kinds: tuple[str, ...]) -> Spans:
    """Find the spans of the given kinds."""
    starts: list[int] = []
    stops: list[int] = []
    if kinds and len(texts.window):
        pattern = re.compile("|".join(PROTECTABLE[kind] for kind in kinds), re.IGNORECASE)
        for row in _candidate_rows(texts, kinds).tolist():
            base = int(texts.offsets[row])
            text = texts.values[base : texts.offsets[row + 1]].tobytes().decode()
            for start, stop in _matches(pattern, text):
                starts.append(base + len(text[:start].encode()))
                stops.append(base + len(text[:stop].encode()))
    return Spans(np.array(starts, np.int64), np.array(stops, np.int64))


def _candidate_rows(texts: Texts, kinds: tuple[str, ...]) -> I64:
    """Return the rows holding a sign without which no pattern of these kinds matches."""
    window = texts.window
    rows_with = [np.zeros(0, np.int64)]
    for sign in sorted({sign for kind in kinds for sign in _SIGNALS[kind]}):
        at = np.flatnonzero(window[:-1] == ord(sign[0]))
        if sign == "./":  # an address has www before a dot, a known domain behind one ...
            after_www = (window[np.maximum(at - 1, 0)] | 0x20) == ord("w")
            first, second = (
                window[np.minimum(at + k, len(window) - 1)].astype(np.int64) | 0x20 for k in (1, 2)
            )
            at = at[after_www | _IS_TLD_START[first << 8 | second]]
        elif sign == ":/":  # ... or a slash behind its colon
            at = at[window[at + 1] == ord("/")]
        at = at + texts.offsets[0]
        rows = texts.rows_of(at)
        rows_with.append(rows[at + 1 < texts.offsets[rows + 1]])
    return np.unique(np.concatenate(rows_with))


def _matches(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """Return the matches in a text as disjoint ranges of characters, each with spaces beside it."""
    ranges: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        start, stop = match.span()
        start -= text[start - 1 : start] == " "
        stop += text[stop : stop + 1] == " "
        ranges.append((max(start, ranges[-1][1]) if ranges else start, stop))
    return ranges
