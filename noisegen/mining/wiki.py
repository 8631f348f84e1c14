"""Mine the revision history of a wiki: every correction that stood becomes a sentence pair.

Dropped, beside what the filters drop: page_other_namespace, revision_not_wikitext, edit_shrinks (a
page blanked), edit_many_lines, edit_many_sentences (rewritten), edit_out_of_order (imported),
line_too_long, line_not_utf8, reverted, and by strict not_survived.
"""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import Path

from noisegen.data.files import salvage
from noisegen.mining.changes import History, align, changed_lines
from noisegen.mining.dumps import Page, Revision, as_exported, read_revisions
from noisegen.mining.filters import FilterProfile, judge
from noisegen.mining.miner import Account, SentencePair, Task
from noisegen.text.segmentation import Language

LINE_MAX = 64 << 10  # bytes of a line that is cleaned
LINES_MAX = 60  # changed on one side: more is a rewrite or vandalism, not a correction
SHRINK = 5  # an edit that leaves less than a fifth of a page blanks it
CACHE_BYTES = 16 << 20  # of the lines of a page that are kept clean
_MANY: tuple[list[bytes], list[bytes]] = ([b""] * (LINES_MAX + 1), [])
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#039;", "'"), ("&amp;", "&"))


@dataclass(frozen=True)
class WikiMiner:
    """Mines dump files; `skip` off compares whole pages, slowly, as a check of the short cuts."""

    language: Language
    profile: FilterProfile
    skip: bool = True
    namespaces: tuple[int, ...] = (0,)

    def __call__(self, task: Task, account: Account) -> Iterator[SentencePair]:
        """Yield the pairs of the files, in which a page may go on from one file to the next."""
        for number, revisions in groupby(
            self._revisions(task, account), key=lambda revision: revision.page.number
        ):
            account.read["pages"] += 1
            name = Path(task.paths[0]).name
            yield from _PageMiner(self, account, number, name).pairs(revisions)

    def _revisions(self, task: Task, account: Account) -> Iterator[Revision]:
        for path in map(Path, task.paths):

            def note(text: str, name: str = path.name) -> None:
                account.damaged.append(f"{name}: {text}")

            parts = as_exported(self._counted(salvage(path, note), account), note)
            yield from read_revisions(parts, note, lambda page: self._is_wanted(page, account))

    def _counted(self, parts: Iterable[bytes], account: Account) -> Iterator[bytes]:
        for part in parts:
            account.read["bytes"] += len(part)
            yield part

    def _is_wanted(self, page: Page, account: Account) -> bool:
        is_wanted = page.namespace in self.namespaces
        if not is_wanted:
            account.dropped["page_other_namespace"] += 1
        return is_wanted


@dataclass
class _PageMiner:
    """What is known of one page while its revisions go by."""

    miner: WikiMiner
    account: Account
    page: int
    source: str
    history: History = field(init=False)
    lines: dict[bytes, list[str]] = field(default_factory=dict)
    cached: int = 0  # bytes of `lines`
    noted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.history = History(trusts_hashes=self.miner.skip)

    def pairs(self, revisions: Iterable[Revision]) -> Iterator[SentencePair]:
        """Yield the pairs of a page, each when no revert can withdraw it any more."""
        for revision in revisions:
            self.account.read["revisions"] += 1
            if revision.model != "wikitext":
                self.account.dropped["revision_not_wikitext"] += 1
                continue
            step = self.history.add(revision)
            self.account.read[step.kind] += 1
            self.account.read["text_bytes"] += len(revision.raw or b"")
            if step.previous is not None:
                self._compare(step.previous, revision)
                if self.history.has_settled:
                    yield from self._settled(ended=False)
        yield from self._settled(ended=True)
        if self.history.withdrawn:
            self.account.dropped["reverted"] += self.history.withdrawn

    def _settled(self, *, ended: bool) -> Iterator[SentencePair]:
        for pair, survived in self.history.settled(ended=ended):
            if self.miner.profile.has_quality_rules and not survived:
                self.account.dropped["not_survived"] += 1
            else:
                yield replace(pair, survived=survived)

    def _compare(self, old: Revision, new: Revision) -> None:
        """Put the pairs of an edit among those that wait."""
        sides = self._sentences(old.raw or b"", new.raw or b"")
        if sides is None:
            self.history.rewritten(new.raw or b"")
            return
        before, after = sides
        if not before:
            return
        matches, reason = align(before, after)
        tokens = self.miner.language.tokens
        self.history.follow(set(before).difference(after), matches, tokens)
        if reason:
            self.account.dropped[reason] += 1
        if matches and (new.timestamp or "") < (old.timestamp or ""):
            self.account.dropped["edit_out_of_order"] += 1  # imported: which is the correction?
            return
        for noisy, clean in matches:
            verdict = judge(noisy, clean, self.miner.language, self.miner.profile)
            self.account.dropped.update(verdict.dropped_words)
            if verdict.reason:
                self.account.dropped[verdict.reason] += 1
            else:
                says_revert = revert_words().search(new.comment) is not None  # a hint only
                pair = SentencePair(
                    noisy, clean, self.miner.language.code, self.page, verdict.words,
                    rev_old=old.number, rev_new=new.number, timestamp=new.timestamp,
                    minor=new.is_minor, comment_flag=says_revert, reverted=False,
                )  # fmt: skip
                self.history.wait(pair)

    def _sentences(self, old: bytes, new: bytes) -> tuple[list[str], list[str]] | None:
        """Return the sentences of both sides that may differ; None for what is no correction."""
        if len(new) * SHRINK < len(old):
            self.account.dropped["edit_shrinks"] += 1
            return None
        ours, theirs = changed_lines(old, new) or _MANY
        if max(len(ours), len(theirs)) > LINES_MAX:
            self.account.dropped["edit_many_lines"] += 1
            return None
        self.account.read["changed_bytes"] += sum(map(len, theirs))
        if not self.miner.skip:
            ours, theirs = old.split(b"\n"), new.split(b"\n")
        elif not (ours and theirs):
            theirs = []
        return self._all_of(ours), self._all_of(theirs)

    def _all_of(self, lines: Iterable[bytes]) -> list[str]:
        """Return the sentences of lines, of which those that are known are not cleaned again."""
        sentences: list[str] = []
        for line in lines:
            known = self.lines.get(line)
            if known is None:
                self.cached += len(line)
                if self.cached > CACHE_BYTES:
                    self.lines.clear()
                    self.cached = len(line)
                known = self.lines[line] = self._cleaned(line)
            sentences += known
        return sentences

    def _cleaned(self, line: bytes) -> list[str]:
        if len(line) > LINE_MAX:
            self.account.dropped["line_too_long"] += 1
            return []
        try:
            text = line.decode()
        except UnicodeDecodeError:
            self.account.dropped["line_not_utf8"] += 1
            self._note("text that is not UTF-8 was left out")
            return []
        if "<" in text:  # no XML may hold it, but it does no harm here
            self._note("unescaped '<' in text")
        if has_control_characters(text):
            self._note("control characters in text were removed")
        if "&" in text:
            for name, sign in _ENTITIES:
                text = text.replace(name, sign)
        text = plain_text(text)
        return self.miner.language.sentences(text) if text else []

    def _note(self, text: str) -> None:
        """Say it once a page."""
        if text not in self.noted:
            self.noted.add(text)
            self.account.damaged.append(f"{self.source}: page {self.page}: {text}")


@cache
def revert_words() -> re.Pattern[str]:
    """Return the pattern of comments that say to undo the work of others."""
    path = Path(__file__).with_name("revert_words.tsv")
    lines = [line for line in path.read_text("utf-8").splitlines() if line[:1] != "#"]
    return re.compile("|".join(line.split("\t")[1] for line in lines[1:]), re.IGNORECASE)


PASSES = 8  # depth of nested templates and links that is undone

_TEMPLATE = re.compile(r"\{\{[^{}]*+\}\}")
_LINK = re.compile(r"\[\[([^\[\]]*+)\]\]")
_WEB_LINK = re.compile(r"\[(?:[a-z]{3,6}:)?//[^\s\[\]]*+\s*+([^\[\]]*+)\]")
_ADDRESS = re.compile(r"(?:https?|ftp)://[^\s<>\[\]{}|]*+")
_DROPPED = re.compile(
    r"<(ref|math|chem|gallery|code|pre|syntaxhighlight|source|timeline|score|graph|hiero)\b"
    r"([^<>]*+)>",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<(?:br|hr|p|div|li|td|tr)\b[^<>]*+>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*+>")
_QUOTES = re.compile(r"'''''|'''|''")
_SWITCH = re.compile(r"__[A-Z]{3,30}__")
_VARIANT = re.compile(r"-\{([^{}:;|]*+)\}-")
_MEDIA = re.compile(
    r"\.(?:jpe?g|png|svg|gif|tiff?|webp|xcf|og[agv]|web[am]|mp[34]|wav|flac|midi?|pdf|djvu)\s*$",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"[^\W\d_][\w -]{0,40}:(?=\S)")  # of a namespace or a language
_NO_PROSE = re.compile(r"\s*+(?:\{\||\||!|-{4}|#[^\W\d_]{4,20}\s{0,3}:?\s{0,3}\[\[)")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def plain_text(line: str) -> str:
    """Return the prose of a line, blanks single; '' where it is a table, a redirect, a category.

    >>> plain_text("* '''Fox'''es are [[canid|dogs]].<ref>A book</ref> {{citation needed}}")
    'Foxes are dogs.'
    """
    if "{" in line or "}" in line:
        line = _without_templates(line)
    if _NO_PROSE.match(line):
        return ""
    if "<" in line or "-->" in line:
        line = _without_tags(line)
    if "[" in line:
        line = _without_links(line)
    if "|" in line:
        return ""  # a row of a gallery, or what is left of a template
    if "://" in line:
        line = _ADDRESS.sub("", line)
    if "''" in line:
        line = _QUOTES.sub("", line)
    if "__" in line:
        line = _SWITCH.sub("", line)
    if "&" in line:
        line = html.unescape(line)
    line = line.strip()
    line = line.strip("= ") if line.startswith("=") else line.lstrip("*#:; ")
    if line.isprintable() and "  " not in line:
        return line
    return " ".join(_CONTROL.sub("", line).split())


def has_control_characters(line: str) -> bool:
    """Tell whether a line holds what no XML may."""
    return not line.isprintable() and _NOT_XML.search(line) is not None


def _without_templates(line: str) -> str:
    """Remove {{...}} from within; one that another line opens or closes, to that end."""
    if "-{" in line:
        line = _VARIANT.sub(r"\1", line)  # a choice between scripts without a choice
    line = _repeated(_TEMPLATE, "", line)
    line = line.partition("{{")[0]
    return line[line.rfind("}}") + 2 :] if "}}" in line else line


def _repeated(pattern: re.Pattern[str], by: str, line: str) -> str:
    for _ in range(PASSES):
        line, count = pattern.subn(by, line)
        if not count:
            break
    return line


def _without_tags(line: str) -> str:
    line = _between(line, "<!--", "-->")
    line = _without_elements(line)
    return _TAG.sub("", _BREAK.sub(" ", line))


def _between(line: str, opening: str, closing: str) -> str:
    """Remove comments; one that another line opens or closes, to that end."""
    outside, at = [], 0
    while (start := line.find(opening, at)) >= 0:
        outside.append(line[at:start])
        end = line.find(closing, start + len(opening))
        at = end + len(closing) if end >= 0 else len(line)
    line = "".join([*outside, line[at:]])
    return line.rpartition(closing)[2]


def _without_elements(line: str) -> str:
    """Remove references, formulas and so on with what is in them."""
    outside, at = [], 0
    for opening in _DROPPED.finditer(line):
        if opening.start() < at:
            continue
        outside.append(line[at : opening.start()])
        at = opening.end()
        if not opening[2].endswith("/"):
            close = line.find(f"</{opening[1]}", at)
            end = line.find(">", close) if close >= 0 else -1
            at = end + 1 if end >= 0 else len(line)
    return "".join([*outside, line[at:]])


def _without_links(line: str) -> str:
    """Put the shown text in place of links; remove files, categories and links to languages."""
    if line.lstrip().startswith("[[") and ":" in line:
        remainder = _LINK.sub(lambda link: "" if _PREFIX.match(link[1]) else link[0], line)
        if not remainder.strip():
            return ""
    line = _plain_links(line)
    for _ in range(PASSES):
        if "[[" not in line:
            break
        line = _LINK.sub(_shown, line)
    return _WEB_LINK.sub(r"\1", line) if "//" in line else line


def _plain_links(line: str) -> str:
    """Put the shown text in place of links that hold no link, nor a colon: most do not."""
    before, *links = line.split("[[")
    shown = [before]
    for link in links:
        inside, end, after = link.partition("]]")
        if not end or ":" in inside or "[" in inside or "]" in inside:
            shown.append(f"[[{link}")
        else:
            target, _, label = inside.partition("|")
            shown += (label or target, after)
    return "".join(shown)


def _shown(link: re.Match[str]) -> str:
    target, bar, label = link[1].partition("|")
    if ":" in target:
        if _MEDIA.search(target):
            return ""
        if _PREFIX.match(target):
            return label
        target = target.lstrip(":")
    return label if bar and label else target
