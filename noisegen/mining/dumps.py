"""Which files are dumps to mine, in which language, and which of them belong together."""

import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from html import unescape
from itertools import chain, dropwhile, pairwise
from pathlib import Path, PurePath
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from noisegen.data.decoders import MAGICS, entries, first_bytes, salvage
from noisegen.data.files import absolute, is_url, metered, size_of
from noisegen.data.folders import store_files
from noisegen.data.rows import FileRange
from noisegen.errors import SourceError
from noisegen.mining.miner import Task

_PART = re.compile(r"(.*-p\d+)r(\d+)r\d+\.")  # of a page: its first and last revision
ENDINGS = (".xml", *(f".{name}" for name in MAGICS))
_SIGNS = (b"<revision>", b"mediawiki", "mediawiki".encode("utf-16-le"))
_SAME = {"no": "nb", "nb": "no", "simple": "en"}  # codes of wikis that differ from the language's


def tasks_of(sources: Sequence[str], lang: str) -> tuple[list[Task], list[str]]:
    """Return the tasks of dump files, and a line for each file that is left out, with why.

    A large file that can be entered is several tasks; the files of a page that is split by
    revisions (p1r2r3) are one, in their order. Raises SourceError for what is missing, empty or not
    what its ending says, and if nothing is left.
    """
    left_out: list[str] = []
    paths = [path for source in sources for path in _files(source)]
    targets = {absolute(path): path for path in reversed(paths)}  # each under its first name
    files: dict[str, str] = {}  # by the name of the dump without that of its compression
    for path in (path for path in dict.fromkeys(paths) if targets[absolute(path)] == path):
        dump = path if _ending(path) == ".xml" else path.removesuffix(_ending(path))
        reason = _reason_against(path, lang)
        if not reason and dump in files:
            reason = f"the same dump as {name_in(files[dump])}, in another compression"
        if reason:
            left_out.append(f"{path}: {reason}")
        else:
            files[dump] = path
    if not files:
        raise SourceError("; ".join(left_out[:3]) or f"no files in {', '.join(sources)}")
    groups: dict[str, list[tuple[int, str]]] = {}  # the files of one page together
    for name in files.values():
        part = _PART.match(name)
        stem, first = (part[1], int(part[2])) if part else (name, 0)
        groups.setdefault(stem, []).append((first, name))
    tasks = []
    for group in groups.values():
        tasks += _pieces([name for _, name in sorted(group)])
    return [Task(number, files) for number, files in enumerate(tasks)], left_out


def _pieces(names: Sequence[str]) -> list[tuple[FileRange, ...]]:
    """Return the files of a dump as one task, or the ranges of one large file as several.

    A dump of several files, or one that is rewritten while it is read, is not cut.
    """
    starts = [0] if names[1:] else entries(names[0], PIECE_BYTES)
    if not starts[1:] or not _is_plain(head_of(names[0])):
        return [tuple(map(FileRange, names))]
    (name,) = names
    end = size_of(name)
    cut = [
        (FileRange(name, start=start, stop=stop, size=stop - start),)
        for start, stop in pairwise(starts)
    ]
    return [*cut, (FileRange(name, start=starts[-1], size=end - starts[-1]),)]


def name_in(path: str) -> str:
    """Return the name of a file or URL without its folder."""
    return path.rpartition("/")[2]


def _ending(path: str) -> str:
    return PurePath(name_in(path)).suffix.lower()


def _files(source: str) -> Iterator[str]:
    """Yield the files of a source, absolute, in order; raises SourceError for none."""
    path = Path(os.path.abspath(source))  # noqa: PTH100  (a link keeps its name)
    if is_url(source):
        yield from store_files(source)
    elif path.is_dir():
        yield from (str(file) for file in sorted(path.rglob("*")) if file.is_file())
    elif path.exists():
        yield str(path)
    elif matches := sorted(glob.glob(source, recursive=True)):  # noqa: PTH207
        for match in matches:
            yield from _files(match)
    else:
        raise SourceError(f"{source!r}: no such file or folder")


def _reason_against(path: str, lang: str) -> str:
    """Return why a file is not mined; '' if it is."""
    if _ending(path) not in ENDINGS and not size_of(path):
        return "not a MediaWiki export"
    head = first_bytes(path)
    if not head:
        raise SourceError(f"{path}: damaged: nothing in it can be read")
    if not any(sign in head for sign in _SIGNS):
        return "not a MediaWiki export"
    theirs = read_site(head).lang.partition("-")[0].lower()
    if theirs and theirs != lang and _SAME.get(theirs) != lang:
        return f"its site info says language {theirs!r}, not {lang!r}; use --lang {theirs}"
    return ""


HEAD = 64 << 10  # bytes in which the root and the site info are
PIECE_BYTES = 64 << 20  # of a file that one task mines, if it can be entered: a minute of bzip2
_PAGE, _END = b"<page", b"</mediawiki>"

_ID = re.compile(rb"<id>\s*(\d{1,18})")
_TITLE = re.compile(rb"<title>([^<]*)")
_TIMESTAMP = re.compile(rb"<timestamp>\s*([0-9TZ:.+-]{1,40})")
_COMMENT = re.compile(rb"<comment[^<>]*(?<!/)>([^<]*)")
_MODEL = re.compile(rb"<model>([^<]*)")
_SHA1 = re.compile(rb"<sha1>([0-9a-z]{1,40})")
_SHA1_OF_TEXT = re.compile(rb"""\ssha1=["']([0-9a-z]{1,40})["']""")
_LANG = re.compile(rb"""<mediawiki\b[^<>]*\sxml:lang=["']([A-Za-z0-9-]{1,40})["']""")
_NAMESPACE = re.compile(rb"""<namespace\b[^<>]*?\skey=["'](-?\d{1,9})["'][^<>]*(?<!/)>([^<]+)""")


class Site(NamedTuple):
    """What the head of an export says of its wiki; '' for what it does not say."""

    lang: str
    namespaces: dict[str, int]  # by the name before the colon


class Page(NamedTuple):
    """A page; `number` is its id, or less than 0 where damage took its head away."""

    number: int
    namespace: int
    title: str


class Revision(NamedTuple):
    """A revision as bytes: `raw` is the escaped text of the main slot, None where it is withheld.

    `head` is what stands before the text, `tail` what follows it.
    """

    page: Page
    head: bytes
    attributes: bytes
    raw: bytes | None
    tail: bytes

    @property
    def number(self) -> int:
        """The revision's id; 0 if there is none."""
        return _number_in(_ID.search(self.head))

    @property
    def timestamp(self) -> str | None:
        """When it was saved, in ISO 8601."""
        match = _TIMESTAMP.search(self.head) or _TIMESTAMP.search(self.tail)
        return match[1].decode() if match else None

    @property
    def comment(self) -> str:
        """What the editor said; '' also where that is withheld."""
        return _text_of(_COMMENT.search(self.head) or _COMMENT.search(self.tail))

    @property
    def is_minor(self) -> bool:
        """Whether the editor called it minor."""
        return b"<minor" in self.head or b"<minor" in self.tail

    @property
    def model(self) -> str:
        """The content model, 'wikitext' where none is given."""
        match = _MODEL.search(self.head) or _MODEL.search(self.tail.partition(b"<content")[0])
        return _text_of(match) if match else "wikitext"

    @property
    def digest(self) -> tuple[str, bytes, int]:
        """What only equal texts share: kind of the hash, hash, length."""
        raw = self.raw or b""
        if not raw:
            return "", b"", 0
        if match := _SHA1_OF_TEXT.search(self.attributes):
            return "text", match[1], len(raw)
        match = _SHA1.search(self.tail) or _SHA1.search(self.head)
        if match and b"<content" not in self.tail:  # else it is a hash over all slots
            return "revision", match[1], len(raw)
        return "raw", hashlib.sha1(raw, usedforsecurity=False).digest(), len(raw)


def _number_in(match: re.Match[bytes] | None) -> int:
    """Return the number that a pattern found, else 0."""
    return int(match[1]) if match else 0


def _text_of(match: re.Match[bytes] | None) -> str:
    """Return the text that the last group of a pattern found, else ''."""
    return unescape(match.groups()[-1].decode("utf-8", "replace")) if match else ""


def read_site(head: bytes) -> Site:
    """Parse the beginning of an export."""
    head = head.partition(b"<page>")[0]
    names = {_text_of(match): int(match[1]) for match in _NAMESPACE.finditer(head)}
    return Site(_text_of(_LANG.search(head)), names)


REVISION_MAX = 64 << 20  # bytes of a revision, tags included
HEADER_MAX = 1 << 20  # bytes of a page before its first revision
_NEAR = 4 << 10  # bytes from the beginning of a revision within which its text mostly begins

_CDATA = b"<![CDATA["
_NS = re.compile(rb"<ns>\s*(-?\d{1,9})")
_BYTES = re.compile(rb"""\sbytes=["'](-?\d{1,18})["']""")


def read_revisions(
    parts: Iterable[bytes], note: Callable[[str], None], wanted: Callable[[Page], bool]
) -> Iterator[Revision]:
    """Yield the revisions of the pages that are wanted; losses are reported to `note`.

    Only whole revisions are given; one over REVISION_MAX comes without its text. The first part
    holds the head of the export.
    """
    scanner = _Scanner(note, wanted)
    for part in parts:
        yield from scanner.feed(part)
    yield from scanner.finish()


class _Scanner:
    """Looks for the next revision in the bytes held, and forgets what is behind it."""

    def __init__(self, note: Callable[[str], None], wanted: Callable[[Page], bool]) -> None:
        self.note, self.wanted = note, wanted
        self.held, self.at = b"", 0
        self.parts: list[bytes] = []  # what has come since
        self.site: Site | None = None
        self.page: Page | None = None
        self.skipped = b""  # the end tag of a page that is not wanted, of a revision too long

    def feed(self, part: bytes) -> Iterator[Revision]:
        """Yield the revisions that are complete with these bytes; none stand for a gap."""
        self.parts.append(part)
        # A long revision is looked through again only when it has grown by half.
        if part and sum(map(len, self.parts)) * 2 < len(self.held) - self.at:
            return
        yield from self._revisions()
        if not part:  # what follows a gap may belong to another page
            if b"<revision" in self.held[self.at :]:
                self.note("a revision without an end was skipped")
            self.held, self.at, self.page, self.skipped = b"", 0, None, b""

    def finish(self) -> Iterator[Revision]:
        """Yield the last revisions and say what is missing at the end."""
        yield from self._revisions()
        remainder = self.held[self.at :]
        if b"<revision" in remainder or self.skipped == b"</revision>":
            self.note("ends inside a revision, which was skipped")
        elif _END not in remainder:
            self.note("the end of the file is missing")

    def _revisions(self) -> Iterator[Revision]:
        """Yield what is complete; `at` moves to the beginning of what needs more bytes."""
        self.held, self.at = b"".join([self.held[self.at :], *self.parts]), 0
        self.parts.clear()
        held = self.held
        if self.site is None:
            self.site = read_site(held[:HEAD])
        while self._reaches_revision():
            begin = self.at
            bounds = _bounds(held, begin)
            if bounds is None and len(held) - begin <= REVISION_MAX:
                return
            if bounds is None:
                self.skipped = b"</revision>"
                yield Revision(self._known_page(), held[begin : begin + 1000], b"", None, b"")
                continue
            text, start, stop, end = bounds
            later = held.rfind(b"<revision", stop, end)
            later = held.rfind(b"<revision", begin + 9, text) if later < 0 else later
            if later >= 0:
                self.note("a revision without an end was skipped")
                page = held.rfind(_PAGE, begin, later)  # it may have been the last of its page
                self.at = later if page < 0 else page
                continue
            self.at = end + len(b"</revision>")
            head, attributes, tail = held[begin:text], held[text:start], held[stop:end]
            raw = _escaped_text(held[start:stop], attributes)
            yield Revision(self._known_page(head), head, attributes, raw, tail)

    def _reaches_revision(self) -> bool:
        """Move on to the beginning of the next revision; False if more bytes are needed."""
        while True:
            if tag := self.skipped:
                position = self.held.find(tag, self.at)
                if position < 0:
                    self.at = max(self.at, len(self.held) - len(tag))
                    return False
                self.at, self.skipped = position + len(tag), b""
            begin = self.held.find(b"<revision", self.at)
            if begin < 0:  # keep only the head of a page and the end of the file
                if len(self.held) - self.at > HEADER_MAX:
                    page = self.held.rfind(_PAGE, len(self.held) - HEADER_MAX)
                    self.at = page if page >= 0 else len(self.held) - 64
                return False
            between = self.held[self.at : begin]
            if b"</page" in between:
                self.page = None
            start = between.rfind(_PAGE)
            if start >= 0:
                self.page = self._page_of(between[start:])
                if not self.wanted(self.page):
                    self.skipped = b"</page>"
                    self.at += start
                    continue
            self.at = begin
            return True

    def _page_of(self, head: bytes) -> Page:
        title = _text_of(_TITLE.search(head))
        prefix, colon, _ = title.partition(":")
        namespaces = self.site.namespaces if self.site and colon else {}
        namespace = namespaces.get(prefix, 0)  # formats before 0.6 do not tell otherwise
        if match := _NS.search(head):
            namespace = int(match[1])
        return Page(_number_in(_ID.search(head)), namespace, title)

    def _known_page(self, head: bytes = b"") -> Page:
        """Return the page, or one without a name for revisions that have lost theirs."""
        if self.page is None:
            self.note("revisions without a page")
            self.page = Page(-_number_in(_ID.search(head)) or -1, 0, "")
        return self.page


def _bounds(held: bytes, begin: int) -> tuple[int, int, int, int] | None:
    """Return the offsets of text tag, text, end of text, end of revision; None: not all read.

    One without a text has its end for all of them.
    """
    text = held.find(b"<text", begin, begin + _NEAR)
    end = held.find(b"</revision>", begin, text if text >= 0 else len(held))
    if text < 0:
        text = held.find(b"<text", begin, end if end >= 0 else len(held))
        end = end if text < 0 else -1
    if end >= 0:
        return end, end, end, end
    close = held.find(b">", text) if text >= 0 else -1
    if close < 0:
        return None
    stop = close + 1
    if held[close - 1] != ord("/"):
        stop = held.find(b"</text>", stop)
    end = held.find(b"</revision>", stop) if stop >= 0 else -1
    return (text, close + 1, stop, end) if end >= 0 else None


def _escaped_text(raw: bytes, attributes: bytes) -> bytes | None:
    """Return the escaped text; None where it is withheld, or not in a stub dump."""
    if raw.startswith(_CDATA):
        raw = raw[len(_CDATA) :].removesuffix(b"]]>").replace(b"&", b"&amp;")
        return raw.replace(b"<", b"&lt;").replace(b">", b"&gt;")
    size = _BYTES.search(attributes)
    withheld = b"deleted=" in attributes or (size is not None and int(size[1]) != 0)
    return None if withheld and not raw else raw


STUCK_MAX = 16  # chunks without any tag or text: expat reads such a token again with every one


class _Refused(Exception):  # noqa: N818  (it ends the parser and nothing else)
    """An export has a document type declaration."""


def as_exported(parts: Iterable[bytes], note: Callable[[str], None]) -> Iterator[bytes]:
    """Yield an export as it is; one with another header, or with CDATA, is rewritten first."""
    parts, head, part = dropwhile(lambda part: not part, parts), b"", None
    while len(head) < HEAD and (part := next(parts, None)):
        head += part
    whole = chain([head], [b""] if part == b"" else [], parts)
    if not _is_plain(head):
        return rewritten(whole, note)
    if b"<!DOCTYPE" in head.partition(b"<mediawiki")[0]:
        note("declares a document type: its entities were not expanded")
    return whole


def _is_plain(head: bytes) -> bool:
    """Tell whether an export is read as it is, by what it begins with."""
    is_export = b"<mediawiki" in head or b"<revision>" in head  # the latter: what damage left
    return is_export and _CDATA not in head


def head_of(path: str) -> bytes:
    """Return what a dump begins with."""
    with metered(), closing(salvage(path, lambda text: None)) as parts:
        return next(filter(None, parts), b"")


def pages_of(piece: FileRange, own: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pages that begin in `own`, a piece of a plain export, as an export of their own.

    They begin with a page or a gap, and end where another one or a gap begins in what follows.
    """
    if piece.start:
        own = _from_page(own)
        if (first := next(own, None)) is None:
            yield _END
            return
        yield head_of(piece.path).partition(_PAGE)[0][:HEAD]
        yield first
    yield from own
    if piece.stop is not None:
        with closing(salvage(piece.path, lambda text: None, piece.stop)) as after:
            yield from _to_page(after)


def _from_page(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield parts from the first that begins a page, or from a gap."""
    parts, held = iter(parts), b""
    for part in parts:
        held += part
        if (begin := held.find(_PAGE)) >= 0 or not part:
            yield held[begin:] if part else part
            break
        held = held[1 - len(_PAGE) :]
    yield from parts


def _to_page(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield parts up to the first page that begins in them, or a gap, and an end."""
    held = b""
    for part in parts:
        held += part
        if (begin := held.find(_PAGE)) >= 0 or not part:
            yield from (held[:begin] if part else held, b"", _END)
            return
        if sure := held[: 1 - len(_PAGE)]:  # an empty one would be a gap
            yield sure
        held = held[1 - len(_PAGE) :]
    if held:
        yield held


def _writer_to(out: list[str]) -> expat.XMLParserType:
    """Return a parser that adds to `out` what it reads, written as `rewritten` says."""

    def refuse(*declaration: object) -> int:
        raise _Refused("a document type declaration was refused")

    def start(name: str, attributes: dict[str, str]) -> None:
        quoted = ((key, quoteattr(value.replace('"', "'"))) for key, value in attributes.items())
        given = "".join(f" {key}={value}" for key, value in quoted)
        out.append(f"<{name.rpartition(':')[2]}{given}>")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: out.append(f"</{name.rpartition(':')[2]}>")
    parser.CharacterDataHandler = lambda text: out.append(escape(text))
    return parser


def rewritten(parts: Iterable[bytes], note: Callable[[str], None]) -> Iterator[bytes]:
    """Yield the elements without prefixes, attributes in double quotes, text escaped.

    A document type is refused. What follows an error or a gap is given as it is, behind a gap.
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
