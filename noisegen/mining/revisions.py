"""What an export holds: its site, pages, and revisions, which are bytes until they are asked."""

import hashlib
import re
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

HEAD = 64 << 10  # bytes in which the root and the site info are

ID = re.compile(rb"<id>\s*(\d{1,18})")
_PARENT = re.compile(rb"<parentid>\s*(\d{1,18})")
_TIMESTAMP = re.compile(rb"<timestamp>\s*([0-9TZ:.+-]{1,40})")
_COMMENT = re.compile(rb"<comment[^<>]*(?<!/)>([^<]*)")
_CONTRIBUTOR = re.compile(rb"<contributor[^<>]*>\s*+<(ip|username)")
_MODEL = re.compile(rb"<model>([^<]*)")
_SHA1 = re.compile(rb"<sha1>([0-9a-z]{1,40})")
_SHA1_OF_TEXT = re.compile(rb"""\ssha1=["']([0-9a-z]{1,40})["']""")
_LANG = re.compile(rb"""<mediawiki\b[^<>]*\sxml:lang=["']([A-Za-z0-9-]{1,40})["']""")
_NAMESPACE = re.compile(rb"""<namespace\b[^<>]*?\skey=["'](-?\d{1,9})["'][^<>]*(?<!/)>([^<]+)""")


@dataclass(frozen=True)
class Site:
    """What the head of an export says of its wiki; '' for what it does not say."""

    lang: str = ""
    dbname: str = ""
    generator: str = ""
    namespaces: dict[str, int] = field(default_factory=dict)  # by the name before the colon


@dataclass(frozen=True)
class Page:
    """A page; `number` is its id, or less than 0 where damage took its head away."""

    number: int
    namespace: int
    title: str
    is_redirect: bool = False


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
        return number_in(ID.search(self.head))

    @property
    def parent(self) -> int:
        """The id of the revision that was edited; 0 if it is not told."""
        return number_in(_PARENT.search(self.head))

    @property
    def timestamp(self) -> str | None:
        """When it was saved, in ISO 8601."""
        found = _TIMESTAMP.search(self.head) or _TIMESTAMP.search(self.tail)
        return found[1].decode() if found else None

    @property
    def comment(self) -> str:
        """What the editor said; '' also where that is withheld."""
        found = _COMMENT.search(self.head) or _COMMENT.search(self.tail)
        return unescape(found[1].decode("utf-8", "replace")) if found else ""

    @property
    def is_minor(self) -> bool:
        """Whether the editor called it minor."""
        return b"<minor" in self.head or b"<minor" in self.tail

    @property
    def is_anonymous(self) -> bool | None:
        """Whether an IP address stands for the editor; None where that is withheld."""
        found = _CONTRIBUTOR.search(self.head) or _CONTRIBUTOR.search(self.tail)
        return found[1] == b"ip" if found else None

    @property
    def model(self) -> str:
        """The content model, 'wikitext' where none is told."""
        found = _MODEL.search(self.head) or _MODEL.search(self.tail.partition(b"<content")[0])
        return found[1].decode("utf-8", "replace") if found else "wikitext"

    @property
    def digest(self) -> tuple[str, bytes, int]:
        """What only equal texts share: kind of the hash, hash, length."""
        raw = self.raw or b""
        if not raw:
            return "", b"", 0
        if found := _SHA1_OF_TEXT.search(self.attributes):
            return "text", found[1], len(raw)
        found = _SHA1.search(self.tail) or _SHA1.search(self.head)
        if found and b"<content" not in self.tail:  # else it is a hash over all slots
            return "revision", found[1], len(raw)
        return "raw", hashlib.sha1(raw, usedforsecurity=False).digest(), len(raw)


def number_in(found: re.Match[bytes] | None) -> int:
    """Return the number that a pattern found, else 0."""
    return int(found[1]) if found else 0


def read_site(head: bytes) -> Site:
    """Parse the beginning of an export."""
    head = head.partition(b"<page>")[0]
    names = {
        unescape(name.decode("utf-8", "replace")): int(key)
        for key, name in _NAMESPACE.findall(head)
    }
    lang = found[1].decode() if (found := _LANG.search(head)) else ""
    return Site(lang, element(head, b"dbname"), element(head, b"generator"), names)


def element(head: bytes, name: bytes) -> str:
    """Return the text of the first element of a name, else ''."""
    found = re.search(b"<%b>([^<]*)" % name, head)
    return unescape(found[1].decode("utf-8", "replace")) if found else ""


def is_export(head: bytes) -> bool:
    """Tell whether a file begins as an export, or as what damage left of one."""
    return b"<mediawiki" in head or b"<revision>" in head
