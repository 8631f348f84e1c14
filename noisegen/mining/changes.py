"""Changes of an edit, found without reading the page: hashes, reverts, a window of raw bytes."""

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from rapidfuzz.distance import Levenshtein, Postfix, Prefix
from rapidfuzz.process import cdist

from noisegen.mining.miner import SentencePair
from noisegen.mining.revisions import Revision

RADIUS = 15  # edits; a text that comes back within as many is a revert (mwreverts' default)
LINES_MAX = 100_000  # lines between the first and the last line that differ
_WITH_THE_PAGE = ""  # in place of a sentence that went together with the text of the page
_STANDING_MAX = 100  # texts remembered before the oldest are forgotten

FIRST, SAME, REVERT, WITHHELD, EDIT = "first", "null_edits", "reverts", "withheld", "edits"


def changed_lines(old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]] | None:
    """Return the lines that only the old text has and the lines that only the new one has.

    Lines in the common beginning and end of both texts are not read, and a line that moves is no
    change. None if more than `LINES_MAX` lines lie between beginning and end.
    """
    start = old.rfind(b"\n", 0, Prefix.similarity(old, new)) + 1
    same = min(Postfix.similarity(old, new), min(len(old), len(new)) - start)
    end = old.find(b"\n", len(old) - same)
    same = len(old) - end if end >= 0 else 0
    ours, theirs = old[start : len(old) - same], new[start : len(new) - same]
    if max(ours.count(b"\n"), theirs.count(b"\n")) > LINES_MAX:
        return None
    before, after = ours.split(b"\n"), theirs.split(b"\n")
    if len(before) == len(after) == 1:
        return ([], []) if before == after else (before, after)
    shared = set(before).intersection(after)
    only_before = [line for line in before if line not in shared]
    only_after = [line for line in after if line not in shared]
    return only_before, only_after


@dataclass
class _Pending:
    """A pair that waits for a revert; `index` is the number of its edit.

    `trail` has the pair's clean sentence as later edits rewrote it, with the number of each edit;
    None if the sentence is gone for good.
    """

    index: int
    pair: SentencePair
    trail: list[tuple[int, str | None]]


@dataclass
class History:
    """The latest revisions of a page: tells edits from reverts, and withdraws reverted pairs.

    With `trusts_hashes` off, the hashes in the export are ignored and texts are hashed here.
    """

    trusts_hashes: bool = True
    withdrawn: int = 0  # pairs
    _index: int = 0
    _previous: Revision | None = None
    _digest: Hashable = None
    _standing: dict[Hashable, int] = field(default_factory=dict)  # unreverted texts: their index
    _pending: deque[_Pending] = field(default_factory=deque)

    def add(self, revision: Revision) -> tuple[str, Revision | None]:
        """Take the next revision; return its kind, and for an edit the revision before it."""
        if revision.raw is None:
            self._previous = None
            return WITHHELD, None
        digest: Hashable = revision.digest
        if not self.trusts_hashes:
            digest = hashlib.sha1(revision.raw, usedforsecurity=False).digest()
        previous, self._previous = self._previous, revision
        if previous is not None and digest == self._digest:
            return SAME, None
        self._digest = digest
        self._index += 1
        oldest = self._index - RADIUS
        target = self._standing.get(digest, 0)
        is_revert = target >= max(1, oldest)
        if is_revert:
            self._revert(target)
        self._standing[digest] = self._index
        if is_revert:
            return REVERT, None
        if len(self._standing) > _STANDING_MAX:
            self._standing = {known: at for known, at in self._standing.items() if at >= oldest}
        return (FIRST if previous is None else EDIT), previous

    def _revert(self, target: int) -> None:
        """Withdraw the pairs of all edits after `target`, the number of the restored revision.

        A reverted revision cannot be restored by a later revert. Otherwise a vandal who repeats an
        edit would withdraw the pairs of good editors in between.
        """
        self._standing = {known: at for known, at in self._standing.items() if at <= target}
        pending = deque(waiting for waiting in self._pending if waiting.index <= target)
        self.withdrawn += len(self._pending) - len(pending)
        self._pending = pending
        for waiting in pending:
            while waiting.trail[-1][0] > target:
                waiting.trail.pop()

    def wait(self, pair: SentencePair) -> None:
        """Keep a pair of the latest revision until no revert can withdraw it."""
        self._pending.append(_Pending(self._index, pair, [(self._index, pair.clean)]))

    def rewritten(self, text: bytes) -> None:
        """Note that the latest revision changed the whole page to `text`.

        A pair survives if all its clean words are in the text, or its clean sentence if it has no
        word pairs.
        """
        for waiting in self._pending:
            if waiting.index < self._index and waiting.trail[-1][1] is not None:
                last = next(sentence for _, sentence in reversed(waiting.trail) if sentence)
                wanted = [word.clean for word in waiting.pair.words] or [last]
                is_left = all(word.encode() in text for word in wanted)
                waiting.trail.append((self._index, last if is_left else _WITH_THE_PAGE))

    def follow(
        self,
        removed: Collection[str],
        successors: Iterable[tuple[str, str]],
        tokens: Callable[[str], list[str]],
    ) -> None:
        """Note the sentences that the latest revision removed, and pairs of (old, new) sentence.

        A word pair outlives its sentence if the new sentence still has all its clean words.
        """
        next_of = dict(successors)
        for waiting in self._pending:
            sentence = waiting.trail[-1][1]
            if sentence is not None and sentence in removed and waiting.index < self._index:
                following = next_of.get(sentence)
                words = {word.clean for word in waiting.pair.words}
                survives = following and words and words <= set(tokens(following))
                waiting.trail.append((self._index, following if survives else None))

    def settled(self, *, ended: bool = False) -> Iterator[tuple[SentencePair, bool]]:
        """Yield the pairs that no revert can withdraw, and whether their clean side survived.

        With `ended`, the page has no more revisions and all pairs are yielded.
        """
        while self._pending and (ended or self._pending[0].index <= self._index - RADIUS):
            waiting = self._pending.popleft()
            yield waiting.pair, bool(waiting.trail[-1][1])


LIKENESS_MIN = 0.5  # 1 - Levenshtein distance / length of the longer sentence, in characters
SENTENCE_MAX = 5_000  # characters
WORK_MAX = 1 << 32  # characters of the old sentences times characters of the new ones: 0.2 s
PAIRS_MAX = 250_000  # old sentences times new ones: 0.1 s, even if they are short


def align(old: Sequence[str], new: Sequence[str], dropped: Counter[str]) -> list[tuple[str, str]]:
    """Return pairs of an old and a new sentence, each used once, the most alike first.

    Sentences in both lists, at any place, are no change. Beyond `WORK_MAX` or `PAIRS_MAX` none are
    compared, and edit_many_sentences is counted in `dropped`.
    """
    ours, theirs = _only(old, new), _only(new, old)
    if not (ours and theirs):
        return []
    work = sum(map(len, ours)) * sum(map(len, theirs))
    if work > WORK_MAX or len(ours) * len(theirs) > PAIRS_MAX:
        dropped["edit_many_sentences"] += 1
        return []
    if len(ours) == len(theirs) == 1:
        alike = Levenshtein.normalized_similarity(*ours, *theirs, score_cutoff=LIKENESS_MIN)
        return [(ours[0], theirs[0])] if alike else []
    scores = cdist(
        ours, theirs, scorer=Levenshtein.normalized_similarity, score_cutoff=LIKENESS_MIN
    )
    partners = _best_partners(scores)
    return [(ours[row], theirs[partners[row]]) for row in sorted(partners)]


def _best_partners(scores: np.ndarray) -> dict[int, int]:
    """Return the column of each row that has one, the pair with the highest score taken first.

    Each column is used once. Rows and columns with score 0 are no pair.
    """
    rows, columns = np.nonzero(scores)
    order = np.lexsort((columns, rows, -scores[rows, columns]))  # the first among equals
    partners: dict[int, int] = {}
    used: set[int] = set()
    for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if row not in partners and column not in used:
            used.add(column)
            partners[row] = column
    return partners


def _only(these: Sequence[str], those: Sequence[str]) -> list[str]:
    """Return the sentences of the first list that the second lacks, each once, in order."""
    shared = set(those)
    return [
        sentence
        for sentence in dict.fromkeys(these)
        if sentence not in shared and len(sentence) <= SENTENCE_MAX
    ]
