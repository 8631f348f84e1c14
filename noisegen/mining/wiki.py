"""Mine the revision history of a wiki: every correction that stood becomes a sentence pair.

Dropped, beside what the filters drop: page_other_namespace, revision_not_wikitext, edit_shrinks (a
page blanked), edit_many_lines, edit_many_sentences (rewritten), edit_out_of_order (imported),
line_too_long, line_not_utf8, reverted, and by strict not_survived.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import Path

from noisegen.mining.alignment import align
from noisegen.mining.changes import History, changed_lines
from noisegen.mining.containers import chunks
from noisegen.mining.expat import as_exported
from noisegen.mining.filters import Profile, judge
from noisegen.mining.languages import Language
from noisegen.mining.markup import has_control_characters, plain_text
from noisegen.mining.pairs import Account, SentencePair, Task, WordPair
from noisegen.mining.revisions import Page, Revision
from noisegen.mining.scanner import read_revisions

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
    profile: Profile
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
            note = _noter(account, path)
            parts = _counted(chunks(path, note), account)
            yield from read_revisions(as_exported(parts, note), note, self._is_wanted(account))

    def _is_wanted(self, account: Account) -> Callable[[Page], bool]:
        def is_wanted(page: Page) -> bool:
            wanted = page.namespace in self.namespaces
            if not wanted:
                account.dropped["page_other_namespace"] += 1
            return wanted

        return is_wanted


def _noter(account: Account, path: Path) -> Callable[[str], None]:
    return lambda text: account.damaged.append(f"{path.name}: {text}")


def _counted(parts: Iterable[bytes], account: Account) -> Iterator[bytes]:
    for part in parts:
        account.read["bytes"] += len(part)
        yield part


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
        found = self._sentences(old.raw or b"", new.raw or b"")
        if found is None:
            self.history.rewritten(new.raw or b"")
            return
        before, after = found
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
                self.history.wait(self._pair(noisy, clean, verdict.words, old, new))

    def _pair(
        self, noisy: str, clean: str, words: tuple[WordPair, ...], old: Revision, new: Revision
    ) -> SentencePair:
        return SentencePair(
            noisy, clean, self.miner.language.code, self.page, words,
            rev_old=old.number, rev_new=new.number, timestamp=new.timestamp, minor=new.is_minor,
            comment_flag=_speaks_of_reverts(new.comment), reverted=False,
        )  # fmt: skip

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
            found = self.lines.get(line)
            if found is None:
                self.cached += len(line)
                if self.cached > CACHE_BYTES:
                    self.lines.clear()
                    self.cached = len(line)
                found = self.lines[line] = self._cleaned(line)
            sentences += found
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
        self._check(text)
        if "&" in text:
            for name, sign in _ENTITIES:
                text = text.replace(name, sign)
        text = plain_text(text)
        return self.miner.language.sentences(text) if text else []

    def _check(self, text: str) -> None:
        """Say what no XML may hold; it does no harm here."""
        if "<" in text:
            self._note("unescaped '<' in text")
        if has_control_characters(text):
            self._note("control characters in text were removed")

    def _note(self, text: str) -> None:
        """Say it once a page."""
        if text not in self.noted:
            self.noted.add(text)
            self.account.damaged.append(f"{self.source}: page {self.page}: {text}")


def _speaks_of_reverts(comment: str) -> bool:
    """Tell whether an editor says to undo the work of others, which is a hint, not a verdict."""
    return bool(comment) and _revert_words().search(comment) is not None


@cache
def _revert_words() -> re.Pattern[str]:
    path = Path(__file__).with_name("revert_words.tsv")
    lines = [line for line in path.read_text("utf-8").splitlines() if line[:1] != "#"]
    return re.compile("|".join(line.split("\t")[1] for line in lines[1:]), re.IGNORECASE)
