"""Prepare the XML of a dump for the scanner in `revisions`.

XML in an unusual form is rewritten, and a range of a large dump is cut at page boundaries. The XML
is read in parts (bytes objects). An empty part marks a gap: bytes that were lost to damage.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, dropwhile
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from noisegen.data.decoders import salvage
from noisegen.data.files import metered
from noisegen.data.rows import FileRange
from noisegen.mining.revisions import CDATA, END, HEAD, PAGE

# Reading stops if a tag does not end within this many parts: expat rescans it with each part
STUCK_MAX = 16


class _Refused(Exception):  # noqa: N818  (it ends the parser and nothing else)
    """The parser refuses to read XML that declares a document type."""


def as_exported(parts: Iterable[bytes], note: Callable[[str], None]) -> Iterator[bytes]:
    """Return the XML of a wiki export, rewritten if it has an unusual header or CDATA."""
    parts = dropwhile(lambda part: not part, parts)
    head, part = b"", None
    while len(head) < HEAD and (part := next(parts, None)):
        head += part
    gap = [b""] if part == b"" else []
    whole = chain([head], gap, parts)
    if not is_plain(head):
        return rewritten(whole, note)
    if b"<!DOCTYPE" in head.partition(b"<mediawiki")[0]:
        note("declares a document type: its entities were not expanded")
    return whole


def is_plain(head: bytes) -> bool:
    """Tell whether XML with these first bytes can be scanned without rewriting."""
    # <revision> without <mediawiki>: the root element was lost to damage
    is_export = b"<mediawiki" in head or b"<revision>" in head
    return is_export and CDATA not in head


def head_of(path: str) -> bytes:
    """Return the first bytes of a dump, decompressed; b'' if nothing can be decoded."""
    with metered(), closing(salvage(path, lambda text: None)) as parts:
        return next(filter(None, parts), b"")


def pages_of(span: FileRange, own: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pages that begin in a range of a dump, as XML with a root element.

    The parts in `own` are the decompressed bytes of the range. Bytes before its first page or gap
    are skipped: they belong to a page of the range before. The last page is completed with the
    bytes after the range, up to the next page or gap.
    """
    if span.start:
        own = _from_page(own)
        if (first := next(own, None)) is None:
            yield END
            return
        yield head_of(span.path).partition(PAGE)[0][:HEAD]
        yield first
    yield from own
    if span.stop is not None:
        with closing(salvage(span.path, lambda text: None, span.stop)) as after:
            yield from _to_page(after)


def _from_page(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes from the first page on, or from a gap that comes before the first page."""
    parts, held = iter(parts), b""
    for part in parts:
        held += part
        if (begin := held.find(PAGE)) >= 0 or not part:
            yield held[begin:] if part else part
            break
        held = held[1 - len(PAGE) :]
    yield from parts


def _to_page(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes up to the first page or gap, then a gap and the end tag of the root."""
    held = b""
    for part in parts:
        held += part
        if (begin := held.find(PAGE)) >= 0 or not part:
            yield from (held[:begin] if part else held, b"", END)
            return
        if sure := held[: 1 - len(PAGE)]:  # b'' is not yielded: it would mark a gap
            yield sure
        held = held[1 - len(PAGE) :]
    if held:
        yield held


def _writer_to(out: list[str]) -> expat.XMLParserType:
    """Return a parser that appends XML to `out` in the form that `rewritten` describes."""

    def refuse(*declaration: object) -> int:
        raise _Refused("a document type declaration was refused")

    def start(name: str, attributes: dict[str, str]) -> None:
        tag = f"<{_local(name)}"
        for key, value in attributes.items():
            single = value.replace('"', "'")
            tag += f" {key}={quoteattr(single)}"
        out.append(f"{tag}>")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: out.append(f"</{_local(name)}>")
    parser.CharacterDataHandler = lambda text: out.append(escape(text))
    return parser


def _local(name: str) -> str:
    """Return the name of an XML element without its namespace prefix."""
    return name.rpartition(":")[2]


def rewritten(parts: Iterable[bytes], note: Callable[[str], None]) -> Iterator[bytes]:
    """Rewrite XML: elements without prefixes, attributes in double quotes, escaped text.

    Rewriting stops at a document type declaration, at an error in the XML and at a gap; all bytes
    after that are yielded unchanged.
    """
    out: list[str] = []
    parser = _writer_to(out)
    parts = iter(parts)
    read = stuck = 0
    for part in parts:
        if not part:
            yield from chain([part], parts)
            return
        try:
            parser.Parse(part, False)
        except (expat.ExpatError, _Refused, ValueError) as error:
            note(f"{error}; read on without parsing XML")
            yield "".join([*out, " "]).encode()
            remainder = part[max(0, parser.CurrentByteIndex - read) :]
            yield from chain([b"", remainder], parts)
            return
        read += len(part)
        stuck = 0 if out else stuck + 1
        if stuck == STUCK_MAX:
            note("a tag without an end; the rest was skipped")
            return
        if out:
            yield "".join(out).encode()
            out.clear()
