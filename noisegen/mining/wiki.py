"""Miner of a wiki's revision history: every correction that was not reverted becomes a pair.

Dropped items are counted under the reasons of the filters and under: page_other_namespace,
revision_not_wikitext, edit_shrinks (the page was blanked), edit_many_lines and edit_many_sentences
(the page was rewritten), edit_out_of_order (revisions were imported), line_too_long, line_not_utf8,
reverted and, with the filter profile strict, not_survived.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import ClassVar
from xml.sax.saxutils import unescape

from noisegen.data.decoders import salvage
from noisegen.mining.changes import History, align, changed_lines
from noisegen.mining.dumps import name_in
from noisegen.mining.exports import as_exported, pages_of
from noisegen.mining.filters import FilterProfile, is_word, judge
from noisegen.mining.miner import SentencePair, Tally, Task
from noisegen.mining.revisions import Page, Revision, read_revisions
from noisegen.text.resources import rows_of
from noisegen.text.segmentation import Language

LINE_MAX = 64 << 10  # most bytes of a line; longer lines are dropped
# Maximum lines that an edit removes, or adds; more is a rewrite or vandalism
LINES_MAX = 60
SHRINK = 5  # an edit that leaves less than 1 / SHRINK of a page's bytes blanks it
CACHE_BYTES = 16 << 20  # maximum bytes of lines per page whose sentences are in the cache
_ENTITIES = {"&quot;": '"', "&#039;": "'"}  # entities that `unescape` does not know


@dataclass(frozen=True)
class WikiMiner:
    """Miner of dump files.

    With `skip` False, it compares whole pages instead of changed lines: slow, to check results.
    """

    kind: ClassVar[str] = "wiki"
    language: Language
    profile: FilterProfile
    skip: bool = True
    namespaces: tuple[int, ...] = (0,)

    def __call__(self, task: Task, tally: Tally) -> Iterator[SentencePair]:
        """Yield the pairs in the files; the revisions of a page may continue in the next file."""
        name = name_in(task.paths[0])
        revisions = self._revisions(task, tally)
        for number, history in groupby(revisions, key=lambda revision: revision.page.number):
            tally.read["pages"] += 1
            yield from _PageMiner(self, tally, f"{name}: page {number}").pairs(history)

    def _revisions(self, task: Task, tally: Tally) -> Iterator[Revision]:
        """Yield the revisions of pages in the wanted namespaces; report damage to `tally`."""

        def counted(parts: Iterable[bytes]) -> Iterator[bytes]:
            for part in parts:
                tally.read["bytes"] += len(part)
                yield part

        def is_wanted(page: Page) -> bool:
            if page.namespace in self.namespaces:
                return True
            tally.dropped["page_other_namespace"] += 1
            return False

        for file in task.files:

            def note(text: str, name: str = name_in(file.path)) -> None:
                tally.damaged.append(f"{name}: {text}")

            parts = counted(salvage(file.path, note, file.start, file.stop))
            parts = parts if file.start else as_exported(parts, note)
            if file.start or file.stop is not None:
                parts = pages_of(file, parts)
            yield from read_revisions(parts, note, is_wanted)


class _PageMiner:
    """Miner of one page, with the page's history so far and cached sentences of its lines."""

    def __init__(self, miner: WikiMiner, tally: Tally, where: str) -> None:
        self.language, self.profile, self.skip = miner.language, miner.profile, miner.skip
        self.tally, self.where = tally, where
        self.history = History(trusts_hashes=miner.skip)
        self.sentences: dict[bytes, list[str]] = {}  # cached sentences of each line
        self.cached = 0  # bytes of the lines in `sentences`
        self.noted: set[str] = set()  # damage reported so far

    def pairs(self, revisions: Iterable[Revision]) -> Iterator[SentencePair]:
        """Yield the pairs of the page, each as soon as no later revert can withdraw it."""
        read, dropped = self.tally.read, self.tally.dropped
        last = None
        for revision in revisions:
            read["revisions"] += 1
            if revision.model != "wikitext":
                dropped["revision_not_wikitext"] += 1
                continue
            last = revision.raw or last
            kind, previous = self.history.add(revision)
            read[kind] += 1
            read["text_bytes"] += len(revision.raw or b"")
            if previous is not None:
                self._compare(previous, revision)
                yield from self._final_pairs()
        yield from self._final_pairs(ended=True)
        if self.history.withdrawn:
            dropped["reverted"] += self.history.withdrawn
        if self.profile.spelling_only and self.language.is_spaced:
            self._count_words(last or b"")

    def _count_words(self, text: bytes) -> None:
        """Add the words of the page's last revision to the counts in `tally`."""
        for line in text.split(b"\n"):
            for sentence in self._sentences_of(line):
                self.tally.words.update(filter(is_word, self.language.tokens(sentence)))

    def _final_pairs(self, *, ended: bool = False) -> Iterator[SentencePair]:
        """Yield the pairs that no later revert can withdraw; all pairs if the page has `ended`."""
        for pair, survived in self.history.final_pairs(ended=ended):
            if self.profile.has_quality_rules and not survived:
                self.tally.dropped["not_survived"] += 1
            else:
                yield replace(pair, survived=survived)

    def _compare(self, old: Revision, new: Revision) -> None:
        """Find the pairs of an edit; store them until no later revert can withdraw them."""
        dropped = self.tally.dropped
        changed = self._changed_lines(old.raw or b"", new.raw or b"")
        if changed is None:
            self.history.rewritten(new.raw or b"")
            return
        before, after = map(self._sentences_of_lines, changed)
        if not before:
            return
        matches = align(before, after, dropped)
        self.history.follow(set(before).difference(after), matches, self.language.tokens)
        if matches and (new.timestamp or "") < (old.timestamp or ""):
            # Imported revisions may be in the wrong order, so either text may be the corrected one
            dropped["edit_out_of_order"] += 1
            return
        self._queue(matches, old, new)

    def _queue(self, matches: Iterable[tuple[str, str]], old: Revision, new: Revision) -> None:
        """Filter sentence pairs; store passing pairs until no later revert can withdraw them."""
        for noisy, clean in matches:
            words = judge(noisy, clean, self.language, self.profile, self.tally.dropped)
            if words is None:
                continue
            pair = SentencePair(
                noisy,
                clean,
                self.language.code,
                new.page.number,
                words,
                rev_old=old.number,
                rev_new=new.number,
                timestamp=new.timestamp,
                minor=new.is_minor,
                # Words such as 'revert' are only a hint: comments on corrections have them too
                comment_flag=revert_words().search(new.comment) is not None,
                reverted=False,
            )
            self.history.store(pair)

    def _changed_lines(self, old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]] | None:
        """Return the changed lines of the old text and of the new text.

        Return None if the edit blanks the page or changes more than `LINES_MAX` lines. With `skip`
        False, all lines are returned.
        """
        if len(new) * SHRINK < len(old):
            self.tally.dropped["edit_shrinks"] += 1
            return None
        changed = changed_lines(old, new)
        if changed is None or max(map(len, changed)) > LINES_MAX:
            self.tally.dropped["edit_many_lines"] += 1
            return None
        self.tally.read["changed_bytes"] += sum(map(len, changed[1]))
        if not self.skip:
            return old.split(b"\n"), new.split(b"\n")
        return changed if all(changed) else (changed[0], [])

    def _sentences_of_lines(self, lines: Iterable[bytes]) -> list[str]:
        """Return the sentences of several lines in one list."""
        sentences: list[str] = []
        for line in lines:
            sentences += self._sentences_of(line)
        return sentences

    def _sentences_of(self, line: bytes) -> list[str]:
        """Return the sentences of a line, cached if possible."""
        if line not in self.sentences:
            self.cached += len(line)
            if self.cached > CACHE_BYTES:
                self.sentences.clear()
                self.cached = len(line)
            self.sentences[line] = self._cleaned(line)
        return self.sentences[line]

    def _cleaned(self, line: bytes) -> list[str]:
        """Return the sentences of a line without markup; damage is reported."""
        if len(line) > LINE_MAX:
            self.tally.dropped["line_too_long"] += 1
            return []
        try:
            text = line.decode()
        except UnicodeDecodeError:
            self.tally.dropped["line_not_utf8"] += 1
            self._note("text that is not UTF-8 was skipped")
            return []
        if "<" in text:  # XML is damaged here, but the text can still be read
            self._note("unescaped '<' in text")
        if not text.isprintable() and _NOT_XML.search(text):
            self._note("control characters in text were removed")
        if "&" in text:
            text = unescape(text, _ENTITIES)
        text = plain_text(text)
        return self.language.sentences(text) if text else []

    def _note(self, text: str) -> None:
        """Report damage; the same message is reported once per page."""
        if text not in self.noted:
            self.noted.add(text)
            self.tally.damaged.append(f"{self.where}: {text}")


@cache
def revert_words() -> re.Pattern[str]:
    """Return a pattern of words in edit comments that announce a revert."""
    rows = rows_of(Path(__file__).with_name("revert_words.tsv"))
    return re.compile("|".join(row[1] for row in rows), re.IGNORECASE)


PASSES = 8  # levels of nested templates and links that are removed

_TEMPLATE = re.compile(r"\{\{[^{}]*+\}\}")
_LINK = re.compile(r"\[\[([^\[\]]*+)\]\]")
_WEB_LINK = re.compile(r"\[(?:[a-z]{3,6}:)?//[^\s\[\]]*+\s*+([^\[\]]*+)\]")
_ADDRESS = re.compile(r"(?:https?|ftp)://[^\s<>\[\]{}|]*+")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ELEMENT = re.compile(  # references, formulas and other elements, removed with their content
    r"<((?i:ref|math|chem|gallery|code|pre|syntaxhighlight|source|timeline|score|graph|hiero))\b"
    r"[^<>]*+>(?:(?<=/>)|.*?(?:</\1[^>]*+>|\Z))",
    re.DOTALL,
)
_BREAK = re.compile(r"<(?:br|hr|p|div|li|td|tr)\b[^<>]*+>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*+>")
_QUOTES = re.compile(r"'''''|'''|''")
_SWITCH = re.compile(r"__[A-Z]{3,30}__")
# -{text}-: markup for languages with several scripts; here all scripts have the same text
_VARIANT = re.compile(r"-\{([^{}:;|]*+)\}-")
_MEDIA = re.compile(
    r"\.(?:jpe?g|png|svg|gif|tiff?|webp|xcf|og[agv]|web[am]|mp[34]|wav|flac|midi?|pdf|djvu)\s*$",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"[^\W\d_][\w -]{0,40}:(?=\S)")  # namespace or language before a title
_NO_PROSE = re.compile(r"\s*+(?:\{\||\||!|-{4}|#[^\W\d_]{4,20}\s{0,3}:?\s{0,3}\[\[)")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def plain_text(line: str) -> str:
    """Return the prose of a line with single spaces; '' for a table, redirect or category.

    If a template begins or ends in another line, its text in this line is removed too.

    >>> plain_text("* '''Fox'''es are [[canid|dogs]].<ref>A book</ref> {{citation needed}}")
    'Foxes are dogs.'
    """
    if "{" in line or "}" in line:
        line = _repeated(_TEMPLATE, "", _VARIANT.sub(r"\1", line))
        line = line.partition("{{")[0].rpartition("}}")[2]
    if _NO_PROSE.match(line):
        return ""
    if "<" in line or "-->" in line:
        line = _COMMENT.sub("", line).rpartition("-->")[2]
        line = _TAG.sub("", _BREAK.sub(" ", _ELEMENT.sub("", line)))
    if "[" in line:
        line = _without_links(line)
    if "|" in line:
        return ""  # a line of a gallery, or of a template with several lines
    if "://" in line:
        line = _ADDRESS.sub("", line)
    if "''" in line:
        line = _QUOTES.sub("", line)
    if "__" in line:
        line = _SWITCH.sub("", line)
    if "&" in line:
        line = html.unescape(line)
    return _without_frame(line.strip())


def _without_frame(line: str) -> str:
    """Remove the markup of a heading or list, and repeated white space, from a stripped line."""
    line = line.strip("= ") if line.startswith("=") else line.lstrip("*#:; ")
    if line.isprintable() and "  " not in line:
        return line
    return " ".join(_CONTROL.sub("", line).split())


def _repeated(pattern: re.Pattern[str], by: str | Callable[[re.Match[str]], str], line: str) -> str:
    """Replace matches of a pattern by `by`, up to `PASSES` times, since they may be nested."""
    for _ in range(PASSES):
        line, count = pattern.subn(by, line)
        if not count:
            break
    return line


def _without_links(line: str) -> str:
    """Replace each link by the text that it shows.

    A line becomes '' if it has only links to categories, files or other languages.
    """
    if line.lstrip().startswith("[[") and ":" in line:
        remainder = _LINK.sub(lambda link: "" if _PREFIX.match(link[1]) else link[0], line)
        if not remainder.strip():
            return ""
    if "[[" in line:
        line = _repeated(_LINK, _shown, line)
    return _WEB_LINK.sub(r"\1", line) if "//" in line else line


def _shown(link: re.Match[str]) -> str:
    """Return the text that a link shows; '' for a file, or a category without a label."""
    target, _, label = link[1].partition("|")
    if ":" in target:
        if _MEDIA.search(target):
            return ""
        if _PREFIX.match(target):
            return label
        target = target.lstrip(":")
    return label or target
