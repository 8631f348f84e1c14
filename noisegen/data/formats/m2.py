"""M2 files as output: noisy sentences with the edits that correct them.

An edit is a line `A start stop|||type|||correction|||REQUIRED|||-NONE-|||0`: a range of tokens in
the noisy sentence, the clean tokens in their place, and a type. The type is an operation of ERRANT
and the transforms that changed the tokens; the operation is M (a token is missing), U (a token is
unnecessary) or R (tokens are replaced). White space separates tokens. `noisegen.data.m2` reads the
files.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from rapidfuzz.distance import Postfix, Prefix

from noisegen.data.formats.base import Format, NoisyRow, RowWriter
from noisegen.data.m2 import NO_CONTROLS
from noisegen.data.rows import Columns, FileRange
from noisegen.errors import SourceError

_SPACE = re.compile(r"\s")
_NO_CORRECTION = re.compile(r".*\|\|.*|.*\||-NONE-", re.DOTALL)  # tokens that no field can hold
_NO_EDIT = "A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0"

Edit = Mapping[str, Any]  # span of the clean and of the noisy text, and the name of the transform


class _Cut(NamedTuple):
    """A white space character that no edit changed, by its offsets in both texts."""

    noisy: int
    clean: int


def tokens_of(text: str) -> list[str]:
    """Return the tokens between white space, without control characters."""
    if text.isprintable():
        return text.split()
    return list(filter(None, (token.translate(NO_CONTROLS) for token in text.split())))


def reason_against(clean: str) -> str:
    """Return the reason why no M2 file can hold a clean text; '' if it can.

    A token with || or with | at its end would end a field early, and -NONE- stands for no token.
    """
    tokens = tokens_of(clean)
    if not tokens:
        return "no_tokens"
    return "not_m2" if any(map(_NO_CORRECTION.fullmatch, tokens)) else ""


def _block(row: NoisyRow) -> str:
    """Return the lines of a noisy sentence, each with its line end."""
    assert row.pair
    noisy, clean, edits = (row.pair[name] for name in ("noisy", "clean", "edits"))
    found = list(_edit_lines(noisy, clean, edits)) or [_NO_EDIT]
    return "".join(f"{line}\n" for line in (" ".join(["S", *tokens_of(noisy)]), *found))


def _edit_lines(noisy: str, clean: str, edits: Sequence[Edit]) -> Iterator[str]:
    """Yield a line per run of noisy tokens that differs from the clean tokens."""
    first, at = 0, 0  # index of the segment's first noisy token, and of its first edit
    for start, stop in pairwise(_cuts(noisy, clean, edits)):
        wrong = tokens_of(noisy[start.noisy : stop.noisy])
        right = tokens_of(clean[start.clean : stop.clean])
        names = []
        while at < len(edits) and edits[at]["noisy_end"] <= stop.noisy:
            names.append(edits[at]["transform"])
            at += 1
        if wrong != right:
            yield _edit_line(first, wrong, right, names)
        first += len(wrong)


def _cuts(noisy: str, clean: str, edits: Iterable[Edit]) -> Iterator[_Cut]:
    """Yield the offsets at which both texts are cut, from their beginnings to their ends."""
    at = _Cut(0, 0)
    yield at
    for edit in edits:
        yield from _spaces(noisy, at, edit["noisy_start"])
        at = _Cut(edit["noisy_end"], edit["clean_end"])
    yield from _spaces(noisy, at, len(noisy))
    yield _Cut(len(noisy), len(clean))


def _spaces(noisy: str, start: _Cut, stop: int) -> Iterator[_Cut]:
    """Yield the white space in noisy text that is equal to the clean text from `start` on."""
    for space in _SPACE.finditer(noisy, start.noisy, stop):
        yield _Cut(space.start(), space.start() - start.noisy + start.clean)


def _edit_line(first: int, wrong: list[str], right: list[str], names: Iterable[str]) -> str:
    """Return the line of an edit without the tokens that both sides share at their ends."""
    same = Prefix.similarity(wrong, right)
    wrong, right = wrong[same:], right[same:]
    after = Postfix.similarity(wrong, right)
    wrong, right = wrong[: len(wrong) - after], right[: len(right) - after]
    start = first + same
    operation = "R" if wrong and right else "U" if wrong else "M"
    kind = f"{operation}:{'+'.join(dict.fromkeys(names))}"
    correction = " ".join(right) or "-NONE-"
    span = f"{start} {start + len(wrong)}"
    return f"A {span}|||{kind}|||{correction}|||REQUIRED|||-NONE-|||0"


def _refused(file: FileRange, *_: bytes | Columns | int) -> Any:
    """Raise SourceError: an M2 file is no table, and `noisegen.data.m2` reads it."""
    raise SourceError(f"{file.path}: M2 files are read as pairs, by mine-lang8 and learn")


M2 = Format(
    name="m2",
    endings=(),
    head=_refused,
    tables=_refused,
    writer=RowWriter(_block, has_columns=False, reason_against=reason_against),
)
