"""What tests of the dump reader share: small exports as MediaWiki writes them."""

import hashlib
from collections.abc import Sequence
from html import escape

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="{lang}">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>{lang}wiki</dbname>
    <generator>MediaWiki 1.43.0</generator>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Talk</namespace>
    </namespaces>
  </siteinfo>
"""  # noqa: E501
END = "</mediawiki>\n"


def revision(number: int, text: str | None, *, comment: str = "", when: int | None = None) -> str:
    """Return a revision; one without text has been suppressed."""
    content = escape(text or "", quote=True)
    size, sha1 = len((text or "").encode()), hashlib.sha1((text or "").encode()).hexdigest()
    shown = f'sha1="{sha1}" xml:space="preserve">{content}</text>'
    return (
        f"    <revision>\n      <id>{number}</id>\n"
        f"      <timestamp>{2000 + (when or number)}-01-01T00:00:00Z</timestamp>\n"
        "      <contributor>\n        <username>A</username>\n        <id>5</id>\n"
        "      </contributor>\n"
        + (f"      <comment>{escape(comment)}</comment>\n" if comment else "")
        + f"      <origin>{number}</origin>\n      <model>wikitext</model>\n"
        f'      <text bytes="{size}" {shown if text is not None else deleted()}\n'
        "    </revision>\n"
    )


def deleted() -> str:
    return 'deleted="deleted" />'


def page(
    number: int, texts: Sequence[str | None], *, namespace: int = 0, first: int = 1, title: str = ""
) -> str:
    """Return a page whose revisions are numbered from `first`."""
    revisions = "".join(revision(first + index, text) for index, text in enumerate(texts))
    return (
        f"  <page>\n    <title>{title or f'Page {number}'}</title>\n    <ns>{namespace}</ns>\n"
        f"    <id>{number}</id>\n{revisions}  </page>\n"
    )


def export(*pages: str, lang: str = "en") -> bytes:
    """Return a whole file."""
    return (HEAD.format(lang=lang) + "".join(pages) + END).encode()
