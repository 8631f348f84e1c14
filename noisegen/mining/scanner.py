"""Find the revisions of a MediaWiki export by looking for tags in its bytes; no tree is built.

User text is escaped in an export, so that a tag is always a tag. Formats 0.4 to 0.11.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from noisegen.mining.revisions import (
    HEAD,
    ID,
    Page,
    Revision,
    Site,
    element,
    number_in,
    read_site,
)

REVISION_MAX = 64 << 20  # bytes of a revision, tags included
HEADER_MAX = 1 << 20  # bytes of a page before its first revision
_NEAR = 4 << 10  # bytes from the beginning of a revision within which its text mostly begins

_CDATA = b"<![CDATA["
_NS = re.compile(rb"<ns>\s*(-?\d{1,9})")
_BYTES = re.compile(rb"""\sbytes=["'](-?\d{1,18})["']""")


def read_revisions(
    parts: Iterable[bytes], note: Callable[[str], None], wanted: Callable[[Page], bool]
) -> Iterator[Revision]:
    """Yield the revisions of the pages that are wanted; what is lost is told to `note`.

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
        self.is_skipped = False  # the page
        self.is_cut = False  # the revision is too long

    def feed(self, part: bytes) -> Iterator[Revision]:
        """Yield the revisions that are complete with these bytes; none stand for a gap."""
        self.parts.append(part)
        # A long revision is looked through again only when it has grown by half.
        if part and sum(map(len, self.parts)) * 2 < len(self.held) - self.at:
            return
        yield from self._read()
        if not part:
            self._lose()

    def finish(self) -> Iterator[Revision]:
        """Yield the last revisions and say what is missing at the end."""
        yield from self._read()
        rest = self.held[self.at :]
        if b"<revision" in rest or self.is_cut:
            self.note("ends within a revision, which was left out")
        elif b"</mediawiki>" not in rest:
            self.note("its end is missing")

    def _read(self) -> Iterator[Revision]:
        self.held, self.at = b"".join([self.held[self.at :], *self.parts]), 0
        self.parts.clear()
        if self.site is None:
            self.site = read_site(self.held[:HEAD])
        while self._advance():
            if revision := self._taken:
                yield revision

    def _lose(self) -> None:
        """Forget what has no end: what follows a gap may belong to another page."""
        if b"<revision" in self.held[self.at :]:
            self.note("a revision without an end was left out")
        self.held, self.at, self.page = b"", 0, None
        self.is_skipped = self.is_cut = False

    def _advance(self) -> bool:
        """Move on by a revision, a gap or a page that is not wanted; False: more bytes, please."""
        self._taken: Revision | None = None
        if self.is_cut:
            return self._skip(b"</revision>", "is_cut")
        if self.is_skipped:
            return self._skip(b"</page>", "is_skipped")
        begin = self.held.find(b"<revision", self.at)
        if begin < 0:
            self._forget()
            return False
        if not self._enter(self.held[self.at : begin]):
            return True
        self.at = begin
        return self._revision(begin)

    def _skip(self, tag: bytes, flag: str) -> bool:
        """Go behind a tag, and take the flag away there."""
        found = self.held.find(tag, self.at)
        self.at = found + len(tag) if found >= 0 else max(self.at, len(self.held) - len(tag))
        if found >= 0:
            setattr(self, flag, False)
        return found >= 0

    def _forget(self) -> None:
        """Keep of what is no revision only the head of a page and the end of the file."""
        if len(self.held) - self.at > HEADER_MAX:
            page = self.held.rfind(b"<page", len(self.held) - HEADER_MAX)
            self.at = page if page >= 0 else len(self.held) - 64

    def _enter(self, between: bytes) -> bool:
        """Learn of the page from what stands before a revision; False if it is not wanted."""
        if b"</page" in between:
            self.page = None
        start = between.rfind(b"<page")
        if start < 0:
            return True
        self.page = self._page_of(between[start:])
        if self.wanted(self.page):
            return True
        self.is_skipped = True
        self.at += start
        return False

    def _page_of(self, head: bytes) -> Page:
        title = element(head, b"title")
        if found := _NS.search(head):
            namespace = int(found[1])
        else:  # formats before 0.6 do not tell
            prefix, colon, _ = title.partition(":")
            namespace = self.site.namespaces.get(prefix, 0) if colon and self.site else 0
        return Page(number_in(ID.search(head)), namespace, title, b"<redirect" in head)

    def _revision(self, begin: int) -> bool:
        """Take the revision that begins there, if it is complete; `at` is its beginning."""
        held = self.held
        text = held.find(b"<text", begin, begin + _NEAR)
        end = held.find(b"</revision>", begin, text if text >= 0 else len(held))
        if text < 0:
            text = held.find(b"<text", begin, end if end >= 0 else len(held))
            end = end if text < 0 else -1
        if end >= 0:
            return self._take(begin, end, end, end, end)
        close = held.find(b">", text) if text >= 0 else -1
        if close < 0:
            return self._wait(begin)
        stop = close + 1
        if held[close - 1] != ord("/"):
            stop = held.find(b"</text>", stop)
        end = held.find(b"</revision>", stop) if stop >= 0 else -1
        return self._take(begin, text, close + 1, stop, end) if end >= 0 else self._wait(begin)

    def _wait(self, begin: int) -> bool:
        """Wait for the rest of a revision unless it has become too long."""
        if len(self.held) - begin <= REVISION_MAX:
            return False
        self.is_cut = True
        self._taken = Revision(self._known(b""), self.held[begin : begin + 1000], b"", None, b"")
        return True

    def _known(self, head: bytes) -> Page:
        """Return the page, or one without a name for revisions that have lost theirs."""
        if self.page is None:
            self.note("revisions have lost their page")
            self.page = Page(-number_in(ID.search(head)) or -1, 0, "")
        return self.page

    def _take(self, begin: int, text: int, start: int, stop: int, end: int) -> bool:
        """Make the revision of [begin, end), whose text is [start, stop), and go behind it."""
        held = self.held
        after = held.rfind(b"<revision", stop, end)
        after = held.rfind(b"<revision", begin + 9, text) if after < 0 else after
        if after >= 0:
            self.note("a revision without an end was left out")
            self.at = after
            return True
        head, raw, tail = held[begin:text], held[start:stop], held[stop:end]
        attributes = held[text:start]
        self._taken = Revision(self._known(head), head, attributes, _text(raw, attributes), tail)
        self.at = end + len(b"</revision>")
        return True


def _text(raw: bytes, attributes: bytes) -> bytes | None:
    """Return the escaped text; None where it is withheld, or not in a stub dump."""
    if raw:
        if raw.startswith(_CDATA):
            raw = raw[len(_CDATA) :].removesuffix(b"]]>").replace(b"&", b"&amp;")
            raw = raw.replace(b"<", b"&lt;").replace(b">", b"&gt;")
        return raw
    size = _BYTES.search(attributes)
    withheld = b"deleted=" in attributes or (size is not None and int(size[1]) != 0)
    return None if withheld else b""
