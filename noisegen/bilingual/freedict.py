"""FreeDict's dictionaries in their source format, TEI: streamed, bounded, without entities."""

import re
from collections.abc import Iterator
from itertools import product
from xml.parsers import expat

from noisegen.bilingual.translations import Row
from noisegen.errors import LexiconError

DEPTH_MAX = 200  # elements within each other
WORDS_OF_ENTRY_MAX = 200  # headwords, or translations, that are read of one entry
CHARACTERS_MAX = 1_000  # of one headword or translation
WORDS_MAX = 5  # of a translation; a longer one is an explanation
_NOTES = re.compile(r"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}|<[^<>]*>")
_BETWEEN = re.compile("[,;]")


class _Entries:
    """The handlers of a parser: they gather headwords and translations, entry by entry.

    A translation is a `quote` in a `cit` whose type begins with 'trans', or a `tr` (TEI P4);
    those of examples and of related entries (`re`) stay out.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.rows: list[Row] = []
        self.path: list[str] = []  # the open elements; a cit with its type
        self._forget()

    def _forget(self) -> None:
        self.headwords, self.translations = list[str](), list[str]()
        self.text: list[str] | None = None
        self.size = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        name = name.rpartition(":")[2]
        if len(self.path) >= DEPTH_MAX:
            raise LexiconError(f"{self.where}: over {DEPTH_MAX} elements within each other")
        self.path.append(f"cit {attributes.get('type', '')}" if name == "cit" else name)
        if name == "entry":
            self._forget()
        elif "re" not in self.path and (self._is_headword() or self._is_translation()):
            self.text, self.size = [], 0

    def _is_headword(self) -> bool:
        return self.path[-1] == "orth" and not any(one.startswith("cit") for one in self.path)

    def _is_translation(self) -> bool:
        cits = [one for one in self.path if one.startswith("cit ")]
        quoted = self.path[-1] in ("quote", "orth") and bool(cits)
        told = all(one.startswith("cit trans") for one in cits)
        return told and (quoted or (self.path[-1] == "tr" and "eg" not in self.path))

    def characters(self, text: str) -> None:
        """Take the text of a headword or translation."""
        if self.text is not None and self.size <= CHARACTERS_MAX:
            self.text.append(text[: CHARACTERS_MAX + 1])
            self.size += len(text)

    def end(self, name: str) -> None:
        """Close an element."""
        name = name.rpartition(":")[2]
        if self.text is not None and name in ("orth", "quote", "tr"):
            listed = self.headwords if self._is_headword() else self.translations
            if len(listed) < WORDS_OF_ENTRY_MAX:
                listed.append("".join(self.text))
            self.text = None
        elif name == "entry":
            self.rows += _rows(self.headwords, self.translations)
        self.path.pop()

    def refuse(self, name: str, *_: object) -> None:
        """Refuse entities: they could expand without bound, or name files."""
        raise LexiconError(f"{self.where} declares an entity ({name[:40]!r}): not read")


def _rows(headwords: list[str], translations: list[str]) -> Iterator[Row]:
    meant = [part for text in translations for part in _BETWEEN.split(_NOTES.sub(" ", text))]
    for headword, noisy in product(headwords, meant):
        explains = len(noisy.split()) > WORDS_MAX
        yield Row(_NOTES.sub(" ", headword), noisy, reason="explanation" if explains else "")


def tei_rows(parts: Iterator[bytes], where: str) -> Iterator[Row]:
    """Yield the translations of a TEI file given in parts; raises LexiconError if it is none."""
    parser, entries = expat.ParserCreate(), _Entries(where)
    parser.StartElementHandler, parser.EndElementHandler = entries.start, entries.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = entries.characters, entries.refuse
    try:
        for part in parts:
            parser.Parse(part, False)
            yield from entries.rows
            entries.rows.clear()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise LexiconError(f"{where} is not XML: {error}") from error
