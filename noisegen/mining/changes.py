"""What an edit changed, found without reading the page: hashes, reverts, a window on raw bytes."""

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from noisegen.mining.pairs import SentencePair
from noisegen.mining.revisions import Revision

RADIUS = 15  # edits within which a text that comes back is a revert (mwreverts' default)
LINES_MAX = 100_000  # between the first and the last line that differ
_STEP = 128  # bytes compared at once, at least: lines are wanted, which are as long
_WITH_THE_PAGE = ""  # in place of a sentence that is gone because all is
_STANDING_MAX = 100  # texts remembered before those that are too old are forgotten

FIRST, SAME, REVERT, WITHHELD, EDIT = "first", "null_edits", "reverts", "withheld", "edits"


def changed_lines(old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]] | None:
    """Return the lines that only the old text has and those that only the new one has, in order.

    Lines outside of what lies between the common beginning and end are not looked at; a line
    that moves is no change. None where over `LINES_MAX` lines lie between them.
    """
    ours, theirs = _window(old, new)
    if max(ours.count(b"\n"), theirs.count(b"\n")) > LINES_MAX:
        return None
    before, after = ours.split(b"\n"), theirs.split(b"\n")
    if len(before) == len(after) == 1:
        return ([], []) if before == after else (before, after)
    shared = set(before).intersection(after)
    return _without(before, shared), _without(after, shared)


def _without(lines: list[bytes], shared: set[bytes]) -> list[bytes]:
    return [line for line in lines if line not in shared]


def _window(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Cut off the whole lines that both texts begin and end with."""
    room = min(len(old), len(new))
    start = old.rfind(b"\n", 0, common_prefix(old, new, room)) + 1
    same = common_suffix(old, new, room - start)
    end = old.find(b"\n", len(old) - same)
    same = len(old) - end if end >= 0 else 0
    return old[start : len(old) - same], new[start : len(new) - same]


def common_prefix(one: bytes, other: bytes, room: int) -> int:
    """Return how many bytes, of `room`, are the same, or about _STEP less."""
    at, step = 0, min(_STEP, room)
    while step and one.startswith(other[at : at + step], at):
        at += step
        step = min(4 * step, room - at)
    while step > _STEP:
        step = step // 2
        if one.startswith(other[at : at + step], at):
            at += step
    return at


def common_suffix(one: bytes, other: bytes, room: int) -> int:
    """Return how many bytes, of `room`, are the same at the end, or about _STEP less."""
    mine, theirs = len(one), len(other)  # where what is the same begins
    step = min(_STEP, room)
    while step and one.startswith(other[theirs - step : theirs], mine - step):
        mine, theirs = mine - step, theirs - step
        step = min(4 * step, room - len(one) + mine)
    while step > _STEP:
        step = step // 2
        if one.startswith(other[theirs - step : theirs], mine - step):
            mine, theirs = mine - step, theirs - step
    return len(one) - mine


class Step(NamedTuple):
    """What a revision is, and the one before it if it is an edit."""

    kind: str
    previous: Revision | None = None


@dataclass
class _Pending:
    """A pair that waits for a revert, and what its clean sentence was after later edits."""

    index: int
    pair: SentencePair
    trail: list[tuple[int, str | None]]  # edit, sentence; None where it is gone for good


@dataclass
class History:
    """The latest revisions of a page: tells edits from reverts, and withdraws what is reverted.

    With `trusts_hashes` off, texts are hashed here, whatever the export says of them.
    """

    trusts_hashes: bool = True
    withdrawn: int = 0  # pairs
    _index: int = 0
    _previous: Revision | None = None
    _digest: Hashable = None
    _standing: dict[Hashable, int] = field(default_factory=dict)  # not reverted: their indices
    _pending: deque[_Pending] = field(default_factory=deque)

    def add(self, revision: Revision) -> Step:
        """Take the next revision and tell what it is."""
        if revision.raw is None:
            self._previous = None
            return Step(WITHHELD)
        digest = self._digest_of(revision)
        previous, self._previous = self._previous, revision
        if previous is not None and digest == self._digest:
            return Step(SAME)
        self._digest = digest
        self._index += 1
        target = self._standing.get(digest, 0)
        if target and target >= self._index - RADIUS:
            self._revert(target)
            self._standing[digest] = self._index
            return Step(REVERT)
        self._standing[digest] = self._index
        if len(self._standing) > _STANDING_MAX:
            self._forget(self._index - RADIUS)
        return Step(EDIT, previous) if previous is not None else Step(FIRST)

    def _digest_of(self, revision: Revision) -> Hashable:
        if self.trusts_hashes:
            return revision.digest
        return hashlib.sha1(revision.raw or b"", usedforsecurity=False).digest()

    def _forget(self, oldest: int) -> None:
        self._standing = {known: at for known, at in self._standing.items() if at >= oldest}

    def _revert(self, target: int) -> None:
        """Withdraw what was made since; a revision that was reverted is no target of a revert.

        Else a vandal who repeats himself would withdraw what good editors did between.
        """
        self._standing = {known: at for known, at in self._standing.items() if at <= target}
        kept = deque(waiting for waiting in self._pending if waiting.index <= target)
        self.withdrawn += len(self._pending) - len(kept)
        self._pending = kept
        for waiting in kept:
            while waiting.trail[-1][0] > target:
                waiting.trail.pop()

    def wait(self, pair: SentencePair) -> None:
        """Keep a pair of the latest revision until no revert can withdraw it."""
        self._pending.append(_Pending(self._index, pair, [(self._index, pair.clean)]))

    def rewritten(self, text: bytes) -> None:
        """Note that the latest revision, now `text`, is blank, new, or restored after that.

        A pair is still there if its clean words are.
        """
        for waiting in self._pending:
            if waiting.index < self._index and waiting.trail[-1][1] is not None:
                last = next(sentence for _, sentence in reversed(waiting.trail) if sentence)
                wanted = [word.clean for word in waiting.pair.words] or [last]
                there = all(one.encode() in text for one in wanted)
                waiting.trail.append((self._index, last if there else _WITH_THE_PAGE))

    def follow(
        self, removed: Collection[str], successors: Iterable[tuple[str, str]],
        tokens: Callable[[str], list[str]],
    ) -> None:  # fmt: skip
        """Note the sentences that the latest revision removed, and those that took their place.

        A pair of words outlives its sentence where the next one still has all its clean words.
        """
        if not self._pending:
            return
        next_of = dict(successors)
        for waiting in self._pending:
            sentence = waiting.trail[-1][1]
            if sentence is not None and sentence in removed and waiting.index < self._index:
                following = next_of.get(sentence)
                words = waiting.pair.words
                found = set(tokens(following)) if following and words else set()
                kept = words and found.issuperset(word.clean for word in words)
                waiting.trail.append((self._index, following if kept else None))

    @property
    def has_settled(self) -> bool:
        """Whether there are pairs that no revert can withdraw."""
        return bool(self._pending) and self._pending[0].index <= self._index - RADIUS

    def settled(self, *, ended: bool = False) -> Iterator[tuple[SentencePair, bool]]:
        """Yield the pairs that no revert can withdraw, and whether their clean side is left.

        These are all of them once the page has ended.
        """
        while self.has_settled or (ended and self._pending):
            waiting = self._pending.popleft()
            yield waiting.pair, bool(waiting.trail[-1][1])
