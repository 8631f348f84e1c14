"""Spans of text that noise must not change, such as web addresses: how to find and move them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

import numpy as np

from noisegen.errors import UsageError
from noisegen.text.buffers import I64, Bool, Texts

TLDS = "com org net edu gov info io co uk de fr es it tr in ru eu tv me".split()  # noqa: SIM905
WEB_ADDRESS = r"(?:https?|ftp)://[^\s<>\"]+|\bwww\.[^\s<>\"]+"
PROTECTABLE = {
    "url": WEB_ADDRESS + r"|\b(?:[a-z0-9-]{1,63}\.){1,8}(?a:" + "|".join(TLDS) + r")\b"
    r"(?:/[^\s<>\"]*)?",
    "mention": r"(?<![\w@])@\w+",
    "hashtag": r"(?<![\w#&])#\w+",
    "email": r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
}
PROTECTED = "url,mention,hashtag,email"  # kinds that are protected by default
_SIGNALS = {"url": ("./", ":/"), "mention": ("@",), "hashtag": ("#",), "email": ("@",)}
_DOT_INSIDE = re.compile(r"\.\S")
_IS_TLD_START = np.zeros(1 << 16, np.bool_)  # True for each two bytes with which one of TLDS begins
_IS_TLD_START[[ord(name[0]) << 8 | ord(name[1]) for name in TLDS]] = True


@cache
def protect_kinds(names: str) -> tuple[str, ...]:
    """Split a list of kinds of protected spans, such as 'url,mention'; 'none' has no kinds.

    Raises UsageError for a kind that is not in `PROTECTABLE`.
    """
    kinds = () if names == "none" else tuple(part.strip() for part in names.split(","))
    for kind in kinds:
        if kind not in PROTECTABLE:
            raise UsageError(f"cannot protect {kind!r}; known: {', '.join(PROTECTABLE)}, or none")
    return kinds


@dataclass(frozen=True)
class Spans:
    """Byte ranges of text, such as text that must not change; they ascend and do not overlap."""

    starts: I64
    stops: I64

    @classmethod
    def of(cls, ranges: Sequence[tuple[int, int]]) -> "Spans":
        """Return the spans of (start, stop) ranges, which ascend and do not overlap."""
        return cls(*np.array(ranges, np.int64).reshape(-1, 2).T.copy())

    @classmethod
    def join(cls, parts: Sequence["Spans"]) -> "Spans":
        """Merge several `Spans` that do not overlap; empty spans are left out."""
        starts, stops = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("starts", "stops")
        )
        order = np.argsort(starts, kind="stable")
        order = order[starts.take(order) < stops.take(order)]
        return cls(starts.take(order), stops.take(order))

    def touch(self, starts: I64, stops: I64) -> Bool:
        """Tell for each range [start, stop) whether it overlaps a span.

        An empty range overlaps a span only if it lies strictly inside.
        """
        if not len(self.starts):
            return np.zeros(len(starts), np.bool_)
        nearest = np.searchsorted(self.stops, starts, side="right")
        padded = np.append(self.starts, np.iinfo(np.int64).max)
        return padded[nearest] < np.where(starts == stops, starts, stops)


NO_SPANS = Spans.of([])


class RowSpans(NamedTuple):
    """Spans in the rows of a batch; starts and stops are byte offsets in the row of the span.

    A change of one row therefore does not move the spans of other rows. `rows` has the row of each
    span.
    """

    rows: I64
    starts: I64
    stops: I64

    @classmethod
    def of(cls, spans: Spans, texts: Texts, rows: I64) -> "RowSpans":
        """Make row spans of `spans`; `rows` has the batch index of each row of `texts`."""
        owners = texts.rows_of(spans.starts)
        base = texts.offsets.take(owners)
        return cls(rows.take(owners), spans.starts - base, spans.stops - base)

    def split(self, places: I64, texts: Texts) -> tuple["RowSpans", Spans]:
        """Return the spans of rows that are not in `texts`, and the spans of rows in `texts`.

        The second result has positions in `texts`. `places` has for each row of the batch its index
        in `texts`, or -1.
        """
        at = places.take(self.rows)
        here, elsewhere = np.flatnonzero(at >= 0), np.flatnonzero(at < 0)
        here = here.take(np.argsort(at.take(here), kind="stable"))
        base = texts.offsets.take(at.take(here))
        others = RowSpans(*(column.take(elsewhere) for column in self))
        return others, Spans(self.starts.take(here) + base, self.stops.take(here) + base)

    def joined(self, spans: Spans, texts: Texts, rows: I64) -> "RowSpans":
        """Return these spans and further `spans`, given with the arguments of `of`."""
        more = RowSpans.of(spans, texts, rows)
        return RowSpans(*map(np.concatenate, zip(self, more, strict=True)))


def protected(texts: Texts, kinds: tuple[str, ...]) -> Spans:
    """Find the protected spans of all rows; `kinds` are names in `PROTECTABLE`.

    A space directly before or after a span is part of it.
    """
    ranges: list[tuple[int, int]] = []
    signed = {kind: _signed_rows(texts, kind) for kind in kinds if len(texts.window)}
    for row in np.flatnonzero(np.any([*signed.values(), np.zeros(len(texts))], axis=0)).tolist():
        base = int(texts.offsets[row])
        text = texts.values[base : texts.offsets[row + 1]].tobytes().decode()
        found = _found(text, tuple(kind for kind, rows in signed.items() if rows[row]))
        between = pairwise([0, *chain.from_iterable(found)])
        sizes = (len(text[start:stop].encode()) for start, stop in between)
        _, *bounds = accumulate(sizes, initial=base)
        ranges += zip(bounds[::2], bounds[1::2], strict=True)
    return Spans.of(ranges)


def protected_in(text: str, kinds: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the protected spans of one text, in characters; `protected` does this for rows."""
    may_hold = "@" in text or "#" in text or ":/" in text or _DOT_INSIDE.search(text)
    return list(_found(text, kinds)) if kinds and may_hold else []


def _found(text: str, kinds: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield the spans of one text that match the patterns of `kinds`, in characters.

    A space directly before or after a match is part of the span.
    """
    end = 0
    for match in _pattern_of(kinds).finditer(text):
        start, stop = match.span()
        start = max(end, start - (text[start - 1 : start] == " "))
        end = stop + (text[stop : stop + 1] == " ")
        yield start, end


@cache
def _pattern_of(kinds: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(PROTECTABLE[kind] for kind in kinds), re.IGNORECASE)


def _signed_rows(texts: Texts, kind: str) -> Bool:
    """Tell for each row whether it may have a span of this kind: for mentions, if it has an '@'.

    Only these rows are then searched with patterns, which take longer.
    """
    window, signed = texts.window, np.zeros(len(texts), np.bool_)
    for sign in _SIGNALS[kind]:
        at = np.flatnonzero(window[:-1] == ord(sign[0]))
        if sign == "./":  # keeps dots after 'www' or before a known domain such as 'com'
            after_www = (window[np.maximum(at - 1, 0)] | 0x20) == ord("w")
            first, second = (
                window.take(at + k, mode="clip").astype(np.int64) | 0x20 for k in (1, 2)
            )
            at = at[after_www | _IS_TLD_START[first << 8 | second]]
        elif sign == ":/":  # keeps colons before a slash
            at = at[window[at + 1] == ord("/")]
        at = at + texts.offsets[0]
        rows = texts.rows_of(at)
        signed[rows[at + 1 < texts.offsets[rows + 1]]] = True
    return signed
