"""Revisions in the bytes of a MediaWiki export, found by scanning for tags without an XML tree."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from html import unescape
from typing import NamedTuple

HEAD = 64 << 10  # bytes at the beginning of an export that hold its root element and site info
PAGE, END = b"<page", b"</mediawiki>"
CDATA = b"<![CDATA["

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
    """Language of a wiki and its namespaces, read from the beginning of an export.

    `lang` is '' if the export names no language. `namespaces` maps the first part of a title, such
    as 'Talk' in 'Talk:Paris', to the number of its namespace.
    """

    lang: str
    namespaces: dict[str, int]


class Page(NamedTuple):
    """A page; `number` is its id, or a negative number if the XML with the id was lost."""

    number: int
    namespace: int
    title: str


class Revision(NamedTuple):
    """A revision as bytes; `raw` is its text with XML escapes, None if the export withholds it.

    `head` is the XML before the text element, `attributes` the start tag <text ...>, and `tail` the
    XML after the text.
    """

    page: Page
    head: bytes
    attributes: bytes
    raw: bytes | None
    tail: bytes

    @property
    def number(self) -> int:
        """The revision's id; 0 if the XML has none."""
        return _number_in(_ID.search(self.head))

    @property
    def timestamp(self) -> str | None:
        """When the revision was saved, in ISO 8601; None if the XML does not say."""
        match = _TIMESTAMP.search(self.head) or _TIMESTAMP.search(self.tail)
        return match[1].decode() if match else None

    @property
    def comment(self) -> str:
        """The editor's comment; '' if there is none or it is withheld."""
        return _text_of(_COMMENT.search(self.head) or _COMMENT.search(self.tail))

    @property
    def is_minor(self) -> bool:
        """Whether the editor marked the revision as minor."""
        return b"<minor" in self.head or b"<minor" in self.tail

    @property
    def model(self) -> str:
        """The content model of the revision's text, such as 'wikitext' (the default)."""
        match = _MODEL.search(self.head) or _MODEL.search(self.tail.partition(b"<content")[0])
        return _text_of(match) if match else "wikitext"

    @property
    def digest(self) -> tuple[str, bytes, int]:
        """A key that only equal texts share: kind of hash, hash, and size of the text in bytes."""
        raw = self.raw or b""
        if not raw:
            return "", b"", 0
        if match := _SHA1_OF_TEXT.search(self.attributes):
            return "text", match[1], len(raw)
        match = _SHA1.search(self.tail) or _SHA1.search(self.head)
        if match and b"<content" not in self.tail:  # with <content>, the hash is not of the text
            return "revision", match[1], len(raw)
        return "raw", hashlib.sha1(raw, usedforsecurity=False).digest(), len(raw)


def _number_in(match: re.Match[bytes] | None) -> int:
    """Return the number that a pattern matched; 0 without a match."""
    return int(match[1]) if match else 0


def _text_of(match: re.Match[bytes] | None) -> str:
    """Return the text of the last group that a pattern matched; '' without a match."""
    return unescape(match.groups()[-1].decode("utf-8", "replace")) if match else ""


def read_site(head: bytes) -> Site:
    """Return the site that the beginning of an export describes."""
    head = head.partition(b"<page>")[0]
    names = {_text_of(match): int(match[1]) for match in _NAMESPACE.finditer(head)}
    return Site(_text_of(_LANG.search(head)), names)


REVISION_MAX = 64 << 20  # most bytes of a revision that is read whole, tags included
HEADER_MAX = 1 << 20  # most bytes of a page before its first revision
_NEAR = 4 << 10  # the text of a revision nearly always begins within this many bytes

_NS = re.compile(rb"<ns>\s*(-?\d{1,9})")
_BYTES = re.compile(rb"""\sbytes=["'](-?\d{1,18})["']""")


def read_revisions(
    parts: Iterable[bytes],
    note: Callable[[str], None],
    wanted: Callable[[Page], bool],
    revision_max: int = REVISION_MAX,
) -> Iterator[Revision]:
    """Yield the revisions of the pages for which `wanted` returns True.

    `parts` are the bytes of the XML export; the first part must have the element <siteinfo>.
    Incomplete revisions are skipped; one over `revision_max` bytes is yielded without its text.
    `note` is called with a message whenever data was lost.
    """
    scanner = Scanner(note, wanted, revision_max)
    for part in parts:
        yield from scanner.feed(part)
    yield from scanner.finish()


class Scanner:
    """Scanner that finds the revisions of wanted pages in an XML export, which it gets in parts.

    Between parts, it keeps only the bytes of an incomplete revision or page header, at most
    `revision_max` or `header_max` bytes.
    """

    def __init__(
        self,
        note: Callable[[str], None],
        wanted: Callable[[Page], bool],
        revision_max: int = REVISION_MAX,
        header_max: int = HEADER_MAX,
    ) -> None:
        self.note, self.wanted = note, wanted
        self.revision_max, self.header_max = revision_max, header_max
        self.held, self.at = b"", 0
        self.parts: list[bytes] = []  # bytes after `held` that are not joined to it yet
        self.site: Site | None = None
        self.page: Page | None = None
        self.skipped = b""  # end tag of the page or revision that is being skipped

    def feed(self, part: bytes) -> Iterator[Revision]:
        """Add a part and yield the revisions that are now complete.

        An empty part stands for bytes lost to damage.
        """
        self.parts.append(part)
        # A long incomplete revision is scanned again only after it has grown by half.
        if part and sum(map(len, self.parts)) * 2 < len(self.held) - self.at:
            return
        yield from self._revisions()
        if not part:  # bytes were lost: what follows may be another page
            if b"<revision" in self.held[self.at :]:
                self.note("a revision without an end was skipped")
            self.held, self.at, self.page, self.skipped = b"", 0, None, b""

    def finish(self) -> Iterator[Revision]:
        """Yield the last revisions; report an export that ends too early."""
        yield from self._revisions()
        remainder = self.held[self.at :]
        if b"<revision" in remainder or self.skipped == b"</revision>":
            self.note("ends inside a revision, which was skipped")
        elif END not in remainder:
            self.note("the end of the file is missing")

    def _revisions(self) -> Iterator[Revision]:
        """Yield the complete revisions; the offset `at` stops at the first incomplete one."""
        self.held, self.at = b"".join([self.held[self.at :], *self.parts]), 0
        self.parts.clear()
        held = self.held
        if self.site is None:
            self.site = read_site(held[:HEAD])
        while self._reaches_revision():
            begin = self.at
            bounds = _bounds(held, begin)
            if bounds is None and len(held) - begin <= self.revision_max:
                return
            if bounds is None:
                self.skipped = b"</revision>"
                yield Revision(self._known_page(), held[begin : begin + 1000], b"", None, b"")
                continue
            later = held.rfind(b"<revision", bounds.text_stop, bounds.end)
            if later < 0:
                later = held.rfind(b"<revision", begin + len(b"<revision"), bounds.tag)
            if later >= 0:
                self.note("a revision without an end was skipped")
                # If a page begins between the two revisions, continue at its header
                page = held.rfind(PAGE, begin, later)
                self.at = later if page < 0 else page
                continue
            self.at = bounds.end + len(b"</revision>")
            head = held[begin : bounds.tag]
            attributes = held[bounds.tag : bounds.text]
            raw = _escaped_text(held[bounds.text : bounds.text_stop], attributes)
            tail = held[bounds.text_stop : bounds.end]
            yield Revision(self._known_page(head), head, attributes, raw, tail)

    def _reaches_revision(self) -> bool:
        """Move the offset `at` to the next revision of a wanted page; False if there is none."""
        while True:
            if tag := self.skipped:
                position = self.held.find(tag, self.at)
                if position < 0:
                    self.at = max(self.at, len(self.held) - len(tag))
                    return False
                self.at, self.skipped = position + len(tag), b""
            begin = self.held.find(b"<revision", self.at)
            if begin < 0:
                self._drop_header()
                return False
            between = self.held[self.at : begin]
            if b"</page" in between:
                self.page = None
            start = between.rfind(PAGE)
            if start >= 0:
                self.page = self._page_of(between[start:])
                if not self.wanted(self.page):
                    self.skipped = b"</page>"
                    self.at += start
                    continue
            self.at = begin
            return True

    def _drop_header(self) -> None:
        """If more than `header_max` bytes hold no revision, keep only the last page header."""
        if len(self.held) - self.at > self.header_max:
            page = self.held.rfind(PAGE, len(self.held) - self.header_max)
            self.at = page if page >= 0 else len(self.held) - 64

    def _page_of(self, head: bytes) -> Page:
        """Parse the XML between the start of a page and its first revision; return the page."""
        title = _text_of(_TITLE.search(head))
        prefix, colon, _ = title.partition(":")
        namespaces = self.site.namespaces if self.site and colon else {}
        namespace = namespaces.get(prefix, 0)  # export formats before 0.6 have no <ns>
        if match := _NS.search(head):
            namespace = int(match[1])
        return Page(_number_in(_ID.search(head)), namespace, title)

    def _known_page(self, head: bytes = b"") -> Page:
        """Return the current page; if its header was lost, report that and return an untitled page.

        The number of an untitled page is the negated id of the revision with the XML `head`.
        """
        if self.page is None:
            self.note("revisions without a page")
            self.page = Page(-_number_in(_ID.search(head)) or -1, 0, "")
        return self.page


class Bounds(NamedTuple):
    """Offsets of the tag <text>, of the text after it, of the text's end, and of </revision>."""

    tag: int
    text: int
    text_stop: int
    end: int


def _bounds(held: bytes, begin: int) -> Bounds | None:
    """Find the text of the revision at offset `begin`; None if the bytes `held` lack its end.

    Without a <text> tag, all offsets point to </revision>.
    """
    tag = held.find(b"<text", begin, begin + _NEAR)
    end = held.find(b"</revision>", begin, tag if tag >= 0 else len(held))
    if tag < 0:
        tag = held.find(b"<text", begin, end if end >= 0 else len(held))
        end = end if tag < 0 else -1
    if end >= 0:
        return Bounds(end, end, end, end)
    close = held.find(b">", tag) if tag >= 0 else -1
    if close < 0:
        return None
    stop = close + 1
    if held[close - 1] != ord("/"):
        stop = held.find(b"</text>", stop)
    end = held.find(b"</revision>", stop) if stop >= 0 else -1
    return Bounds(tag, close + 1, stop, end) if end >= 0 else None


def _escaped_text(raw: bytes, attributes: bytes) -> bytes | None:
    """Return the text of a revision, with XML escapes; None if the export deleted or omitted it."""
    if raw.startswith(CDATA):
        raw = raw[len(CDATA) :].removesuffix(b"]]>").replace(b"&", b"&amp;")
        return raw.replace(b"<", b"&lt;").replace(b">", b"&gt;")
    size = _BYTES.search(attributes)
    withheld = b"deleted=" in attributes or (size is not None and int(size[1]) != 0)
    return None if withheld and not raw else raw
