"""Rewrite XML that no MediaWiki wrote as MediaWiki would, so that the scanner can read it."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, dropwhile
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from noisegen.mining.revisions import HEAD, is_export

STUCK_MAX = 16  # chunks without any tag or text: expat reads such a token again with every one


class _Refused(Exception):  # noqa: N818  (it ends the parser and nothing else)
    """A document type declares something."""


def as_exported(parts: Iterable[bytes], note: Callable[[str], None]) -> Iterator[bytes]:
    """Yield an export as it is; one with another header, or with CDATA, is rewritten first."""
    parts, head, part = dropwhile(lambda part: not part, parts), b"", None
    while len(head) < HEAD and (part := next(parts, None)):
        head += part
    gap = [b""] if part == b"" else []
    whole = chain([head], gap, parts)
    if is_export(head) and b"<![CDATA[" not in head:
        if b"<!DOCTYPE" in head.partition(b"<mediawiki")[0]:
            note("declares a document type: its entities were not expanded")
        yield from whole
    else:
        yield from rewritten(whole, note)


def rewritten(parts: Iterable[bytes], note: Callable[[str], None]) -> Iterator[bytes]:
    """Yield the elements without prefixes, attributes in double quotes, text escaped.

    A document type is refused. What follows an error or a gap is given as it is, behind a gap.
    """
    parts, out = iter(parts), list[str]()
    parser = _parser(out)
    read = stuck = 0
    for part in parts:
        if not part:
            yield from chain([part], parts)
            return
        try:
            parser.Parse(part, False)
        except (expat.ExpatError, _Refused, ValueError) as error:
            note(f"{error}; read on as it is")
            yield "".join([*out, " "]).encode()
            rest = part[max(0, parser.CurrentByteIndex - read) :]
            yield from chain([b"", rest], parts)
            return
        read += len(part)
        stuck = 0 if out else stuck + 1
        if stuck == STUCK_MAX:
            note("a tag without an end; the rest was left out")
            return
        if out:
            yield "".join(out).encode()
            out.clear()


def _parser(out: list[str]) -> expat.XMLParserType:
    def refuse(*declaration: object) -> int:
        raise _Refused("a document type declaration was refused")

    def start(name: str, attributes: dict[str, str]) -> None:
        given = "".join(f" {key}={_quoted(value)}" for key, value in attributes.items())
        out.append(f"<{name.rpartition(':')[2]}{given}>")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: out.append(f"</{name.rpartition(':')[2]}>")
    parser.CharacterDataHandler = lambda text: out.append(escape(text))
    return parser


def _quoted(value: str) -> str:
    return quoteattr(value.replace('"', "'"))
