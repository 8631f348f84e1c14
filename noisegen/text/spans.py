"""Spans of text that noise must not change, such as web addresses: how to find and move them.

Links, mentions, hashtags and mail addresses are found with Python's `re`, in rows that may have
one. Placeholders, code, numbers and patterns of the user are found with RE2, which pyarrow has: its
time is linear in the text, whatever the pattern is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.errors import UsageError
from noisegen.text.buffers import I64, U8, Bool, Texts

# Top-level domains of links without scheme and path, such as example.org. Domains that are also
# words or file name extensions, such as .at and .sh, are not among them.
_COMMON_DOMAINS = (
    "com org net edu gov info io co uk de fr es it tr in ru eu tv me "
    "app au blog br ch club cn cz dev dk fi fm gg gr hu ie jp kr ly nl nz online pl shop site "
    "store tech ua xyz"
)
TLDS = _COMMON_DOMAINS.split()
WEB_ADDRESS = r"(?:https?|ftp)://[^\s<>\"]+|\bwww\.[^\s<>\"]+"
PROTECTABLE = {
    "url": WEB_ADDRESS + r"|\b(?:[a-z0-9-]{1,63}\.){1,8}(?a:" + "|".join(TLDS) + r")\b"
    r"(?:/[^\s<>\"]*)?",
    "mention": r"(?<![\w@])@\w+",
    "hashtag": r"(?<![\w#&])#\w+",
    "email": r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
}
PROTECTED = "url,mention,hashtag,email"  # kinds that are protected by default
# Further kinds that can be protected, with patterns of RE2.
_CAPITAL_WORD = r"\p{Lu}[^\[\]\s]*"
_INNER_BRACES = r"\{(?:[^{}\n]|\{[^{}\n]*\})*\}"
_PLACEHOLDERS = (
    rf"[$#%]?\{{(?:[^{{}}\n]|{_INNER_BRACES})*\}}",  # {name}, {{id}}, ${x}, {% if x %}
    r"%\([\w .-]+\)[#0+-]?\d*(?:\.\d+)?[A-Za-z]",  # %(name)s
    r"%(?:\d+\$)?[0+-]?\d*(?:\.\d+)?[sdifgxu@]\b",  # %s, %1$d, %.2f
    r"%%?[A-Za-z_]\w*%%?",  # %NAME%
    r"\$[A-Za-z_]\w*|__[A-Z][A-Z0-9_]*__",  # $name, __NAME__
    r"</?[A-Za-z][^<>\n]*>|<<[^<>\n]+>>|<\|[^<>|\n]+\|>",  # <DATE>, <|end|>
    rf"\[/?{_CAPITAL_WORD}(?: {_CAPITAL_WORD})*\]",  # [MASK], [/INST], [Your Name]
    r"\[[a-z_]+\d+\]",  # [unused1]
)
_CODE = (
    r"(?s:```.*?(?:```|\z))",
    r"(?ms:^~~~.*?(?:^~~~|\z))",
    r"``[^\n]+?``",
    r"(?:\B|^)`[^`\n]+`\B",  # a backtick after a letter, as in don`t, begins no code
)
_NUMBER = (
    r"[+±~−-]?\p{Sc}?\p{Nd}+(?:[.,:/'’·×–−-]?\p{Nd}+)*"  # -1,234.5, 10:30, 2024-05-01
    r"(?:[%‰°]|\p{Sc}|[\p{Latin}\p{Greek}\p{Cyrillic}²³]+(?:/\p{Latin}+)?)*"  # 5%, 20€, 90km/h
)
MARKED = {"placeholder": "|".join(_PLACEHOLDERS), "code": "|".join(_CODE), "number": _NUMBER}
PATTERN_MAX = 1_000  # characters; longer patterns are refused
_KIND = re.compile(r"(?:^|,)\s*(/(?:\\.|[^\\])*?/|[^,]*?)\s*(?=,|\Z)", re.DOTALL)
_SIGNALS = {"url": ("./", ":/", "/"), "mention": ("@",), "hashtag": ("#",), "email": ("@",)}
_DOT_INSIDE = re.compile(r"\.\S")
_IS_TLD_START = np.zeros(1 << 16, np.bool_)  # True for each two bytes with which one of TLDS begins
_IS_TLD_START[[ord(name[0]) << 8 | ord(name[1]) for name in TLDS]] = True
# A host and a path, such as youtu.be/x; the group is the top-level domain.
_HOST_WITH_PATH = re.compile(
    r"(?<![\w@-])(?:[\w-]{1,63}\.){1,8}([^\W\d_]{2,24}|xn--[a-z0-9-]{2,59})(?::\d{1,5})?/[^\s<>\"]+"
)
_HOST_BYTES = 80  # a slash that follows a host has a dot in the bytes before it: domain and port


@cache
def protect_kinds(names: str) -> tuple[str, ...]:
    """Split a list of kinds of protected spans, such as 'url,number,/[A-Z]{3}/'; 'none' has none.

    A pattern of RE2 stands between slashes. Raises UsageError for a kind that is not in
    `PROTECTABLE` or `MARKED`, and for a pattern that cannot be used.
    """
    kinds = () if names == "none" else tuple(match[1] for match in _KIND.finditer(names))
    for kind in kinds:
        if kind.startswith("/"):
            _check_pattern(kind)
        elif kind not in PROTECTABLE and kind not in MARKED:
            known = ", ".join([*PROTECTABLE, *MARKED])
            raise UsageError(
                f"cannot protect {kind!r}; known: {known}, none, or a pattern between slashes, "
                r"such as '/\[[A-Z]+\]/'"
            )
    return kinds


def _check_pattern(kind: str) -> None:
    """Raise UsageError if a pattern between slashes is too long, wrong, or matches empty text."""
    pattern, where = kind[1:-1], f"cannot protect the pattern {kind[:80]}"
    if len(kind) < 3 or kind[-1] != "/":
        raise UsageError(rf"{where}: write it between two slashes, as in '/\[[A-Z]+\]/'")
    if len(pattern) > PATTERN_MAX:
        raise UsageError(f"{where}...: it has {len(pattern)} characters; at most {PATTERN_MAX}")
    try:
        samples = _marked(Texts.from_strings(["", " ", "ab", "a\nb\n \n"]), pattern)
    except (pa.ArrowInvalid, UnicodeError) as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        what, _, part = reason.partition(": ")
        reason = reason if part in pattern else what  # Arrow puts brackets around the pattern
        raise UsageError(
            f"{where}: {reason}; patterns are those of RE2, without look-around or back-references"
        ) from error
    if b"\xff\xfe" in samples.tobytes():
        raise UsageError(f"{where}: it also matches the empty text; use + instead of *")
    if re.search(r"(?<!\\)(?:\\\\)*\\C", pattern):
        raise UsageError(rf"{where}: \C may match half a character; use . instead")


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

    def in_text(self, text: str, base: int) -> list[tuple[int, int]]:
        """Return the spans inside a text, in characters; its first byte has the position `base`."""
        if not len(self.starts):
            return []
        content = text.encode()
        first, last = np.searchsorted(self.starts, (base, base + len(content))).tolist()
        edges = zip(self.starts[first:last] - base, self.stops[first:last] - base, strict=True)
        return [(len(content[:a].decode()), len(content[:b].decode())) for a, b in edges]

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
    """Find the protected spans of all rows; `kinds` is a result of `protect_kinds`.

    A space directly before or after a span is part of it.
    """
    ranges: list[tuple[int, int]] = []
    signed = {
        kind: _signed_rows(texts, kind)
        for kind in kinds
        if kind in PROTECTABLE and len(texts.window)
    }
    for row in np.flatnonzero(np.any([*signed.values(), np.zeros(len(texts))], axis=0)).tolist():
        base = int(texts.offsets[row])
        text = texts.values[base : texts.offsets[row + 1]].tobytes().decode()
        found = _found(text, tuple(kind for kind, rows in signed.items() if rows[row]))
        between = pairwise([0, *chain.from_iterable(found)])
        sizes = (len(text[start:stop].encode()) for start, stop in between)
        _, *bounds = accumulate(sizes, initial=base)
        ranges += zip(bounds[::2], bounds[1::2], strict=True)
    spans = Spans.of(ranges)
    if patterns := _patterns_of(kinds):
        return _united([spans, *(_matches(texts, pattern) for pattern in patterns)])
    return spans


def protected_in(text: str, kinds: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the protected spans of one text, in characters; `protected` does this for rows."""
    if _patterns_of(kinds):
        return protected_in_each([text], kinds)[0]
    may_hold = "@" in text or "#" in text or ":/" in text or _DOT_INSIDE.search(text)
    return list(_found(text, kinds)) if kinds and may_hold else []


def protected_in_each(texts: Sequence[str], kinds: tuple[str, ...]) -> list[list[tuple[int, int]]]:
    """Return the result of `protected_in` for each text; RE2 compiles its patterns only once."""
    if not _patterns_of(kinds):
        return [protected_in(text, kinds) for text in texts]
    rows = Texts.from_strings(list(texts))
    found: list[list[tuple[int, int]]] = [[] for _ in texts]
    spans = RowSpans.of(protected(rows, kinds), rows, np.arange(len(texts)))
    for row, *edges in zip(*(column.tolist() for column in spans), strict=True):
        content = texts[row].encode()
        start, stop = (len(content[:edge].decode()) for edge in edges)
        found[row].append((start, stop))
    return found


@cache
def _patterns_of(kinds: tuple[str, ...]) -> list[str]:
    """Return the RE2 patterns of the kinds that are not in `PROTECTABLE`."""
    return [MARKED.get(kind, kind[1:-1]) for kind in kinds if kind not in PROTECTABLE]


def _marked(texts: Texts, pattern: str) -> U8:
    """Return the bytes of all rows with FF before and FE after each match of an RE2 pattern.

    UTF-8 has no such bytes. pyarrow gives no positions of matches, so they are marked.
    """
    rows = texts.to_arrow(pa.string())
    marked = pc.replace_substring_regex(rows, pattern=pattern, replacement=b"\xff\\0\xfe")
    return Texts.from_arrow(marked).window


def _matches(texts: Texts, pattern: str) -> Spans:
    """Return the matches of an RE2 pattern in all rows; a space beside a match is part of it."""
    window = _marked(texts, pattern)
    starts, stops = (np.flatnonzero(window == mark) for mark in (0xFF, 0xFE))
    marks = 2 * np.arange(len(starts)) - texts.offsets[0]  # marks before each match
    starts, stops = starts - marks, stops - marks - 1
    filled = stops > starts
    starts, stops = starts[filled], stops[filled]
    rows = texts.rows_of(starts)
    before = texts.values.take(starts - 1, mode="clip") == 0x20
    behind = texts.values.take(stops, mode="clip") == 0x20
    before &= starts > texts.offsets.take(rows)
    behind &= stops < texts.offsets.take(rows + 1)
    return Spans(starts - before, stops + behind)


def _united(parts: Sequence[Spans]) -> Spans:
    """Return the union of several `Spans`; spans that overlap become one."""
    starts, stops = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("starts", "stops")
    )
    order = np.argsort(starts, kind="stable")
    if not len(order):
        return NO_SPANS
    starts, reach = starts.take(order), np.maximum.accumulate(stops.take(order))
    heads = np.flatnonzero(np.append(True, starts[1:] >= reach[:-1]))
    return Spans(starts.take(heads), reach.take(np.append(heads[1:], len(starts)) - 1))


def _found(text: str, kinds: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield the spans of one text that match the patterns of `kinds`, in characters.

    A space directly before or after a match is part of the span.
    """
    ranges = [match.span() for match in _pattern_of(kinds).finditer(text)]
    if "url" in kinds and (links := _links_with_path(text)):
        raw = _united([Spans.of(ranges), Spans.of(links)])
        ranges = list(zip(raw.starts.tolist(), raw.stops.tolist(), strict=True))
    end = 0
    for start, stop in ranges:
        start = max(end, start - (text[start - 1 : start] == " "))
        end = stop + (text[stop : stop + 1] == " ")
        yield start, end


@cache
def _pattern_of(kinds: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(PROTECTABLE[kind] for kind in kinds), re.IGNORECASE)


def _links_with_path(text: str) -> list[tuple[int, int]]:
    """Return the links of a text that have any top-level domain and a path, such as youtu.be/x."""
    if "/" not in text:
        return []
    found = _HOST_WITH_PATH.finditer(text)
    return [match.span() for match in found if _is_top_level_domain(match[1].lower())]


def _is_top_level_domain(name: str) -> bool:
    return name.startswith("xn--") or name in _top_level_domains()


@cache
def _top_level_domains() -> frozenset[str]:
    """Return all top-level domains; the library's own reader would take 80 ms for its rules."""
    from publicsuffixlist import PSLFILE

    rules = Path(PSLFILE).read_text("utf-8").split("\n")
    names = (rule.removeprefix("*.") for rule in rules if not rule.startswith(("//", "!")))
    return frozenset(name for name in names if name and "." not in name)


def _signed_rows(texts: Texts, kind: str) -> Bool:
    """Tell for each row whether it may have a span of this kind: for mentions, if it has an '@'.

    Only these rows are then searched with patterns, which take longer.
    """
    window, signed = texts.window, np.zeros(len(texts), np.bool_)
    for sign in _SIGNALS[kind]:
        at = np.flatnonzero(window[:-1] == ord(sign[0]))
        if sign == "./":  # keeps dots after 'www' or before a known domain such as 'com'
            at = dots = at[window[at + 1] > ord(" ")]
            after_www = (window[np.maximum(at - 1, 0)] | 0x20) == ord("w")
            first, second = (
                window.take(at + k, mode="clip").astype(np.int64) | 0x20 for k in (1, 2)
            )
            at = at[after_www | _IS_TLD_START[first << 8 | second]]
        elif sign == ":/":  # keeps colons before a slash
            at = at[window[at + 1] == ord("/")]
        elif sign == "/":  # keeps slashes that follow a letter or digit, shortly after a dot
            last = np.append(-_HOST_BYTES, dots).take(np.searchsorted(dots, at))
            before = window.take(at - 1)
            at = at[(at - last < _HOST_BYTES) & (before > ord("/")) & (before != ord(":"))]
        at = at + texts.offsets[0]
        rows = texts.rows_of(at)
        signed[rows[at + 1 < texts.offsets[rows + 1]]] = True
    return signed
