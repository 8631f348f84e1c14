"""Changed lines and sentences of an edit of a wiki page, and reverts, found without parsing."""

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from rapidfuzz.distance import Levenshtein, Postfix, Prefix
from rapidfuzz.process import cdist

from noisegen.mining.miner import SentencePair
from noisegen.mining.revisions import Revision

RADIUS = 15  # restoring a text from at most this many edits ago is a revert (mwreverts' default)
# Edits with more lines than this from the first to the last changed line are not compared
LINES_MAX = 100_000
_LOST_IN_REWRITE = ""  # in `trail`: the clean sentence was lost when an edit rewrote the whole page
# Hashes of texts stored per page; above this, those from over RADIUS edits ago are removed
_TEXTS_MAX = 100

FIRST, SAME, REVERT, WITHHELD, EDIT = "first", "null_edits", "reverts", "withheld", "edits"


def changed_lines(old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]] | None:
    """Return the lines that only the old text has, and the lines that only the new text has.

    A line that moved within the text counts as unchanged. Returns None if there are more than
    `LINES_MAX` lines from the first to the last changed line.
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
    """A pair found in edit number `index`; it is dropped if a later revert undoes that edit.

    `trail` is the history of the clean sentence, from edit `index` on: (edit number, sentence after
    the edit) per edit that changed it; the sentence is None if the edit deleted it.
    """

    index: int
    pair: SentencePair
    trail: list[tuple[int, str | None]]


@dataclass
class History:
    """Latest revisions of a page: tells edits from reverts, and withdraws pairs of reverted edits.

    Texts are compared by the hashes in the XML export or, with `trusts_hashes` False, by hashes
    that are computed from the texts.
    """

    trusts_hashes: bool = True
    withdrawn: int = 0  # pairs withdrawn so far
    _index: int = 0
    _previous: Revision | None = None
    _digest: Hashable = None
    # Hash of a page text that no revert undid -> number of the edit that saved it
    _edit_of: dict[Hashable, int] = field(default_factory=dict)
    _pending: deque[_Pending] = field(default_factory=deque)

    def add(self, revision: Revision) -> tuple[str, Revision | None]:
        """Add the next revision; return its kind and, for an edit, the revision before it.

        FIRST has no text before it, SAME repeats the previous text, REVERT restores an earlier
        text, WITHHELD has no text, and EDIT is any other revision.
        """
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
        target = self._edit_of.get(digest, 0)
        is_revert = target >= max(1, oldest)
        if is_revert:
            self._revert(target)
        self._edit_of[digest] = self._index
        if is_revert:
            return REVERT, None
        if len(self._edit_of) > _TEXTS_MAX:
            self._edit_of = {known: at for known, at in self._edit_of.items() if at >= oldest}
        return (FIRST if previous is None else EDIT), previous

    def _revert(self, target: int) -> None:
        """Withdraw the pairs of all edits that a revert undid: those after edit number `target`.

        The undone texts are forgotten, so that saving one of them again counts as an edit, not as a
        revert: a vandal who repeats an edit must not undo the good edits in between.
        """
        self._edit_of = {known: at for known, at in self._edit_of.items() if at <= target}
        pending = deque(waiting for waiting in self._pending if waiting.index <= target)
        self.withdrawn += len(self._pending) - len(pending)
        self._pending = pending
        for waiting in pending:
            while waiting.trail[-1][0] > target:
                waiting.trail.pop()

    def store(self, pair: SentencePair) -> None:
        """Store a pair of the latest revision until reverts can no longer withdraw it."""
        self._pending.append(_Pending(self._index, pair, [(self._index, pair.clean)]))

    def rewritten(self, text: bytes) -> None:
        """Record that the latest revision replaced the whole page by `text`.

        The correction in a stored pair from an earlier edit survives if `text` has the clean words
        of all word pairs in it. Without word pairs, `text` must have the pair's clean sentence.
        """
        for waiting in self._pending:
            if waiting.index < self._index and waiting.trail[-1][1] is not None:
                last = next(sentence for _, sentence in reversed(waiting.trail) if sentence)
                wanted = [word.clean for word in waiting.pair.words] or [last]
                is_left = all(word.encode() in text for word in wanted)
                waiting.trail.append((self._index, last if is_left else _LOST_IN_REWRITE))

    def follow(
        self,
        removed: Collection[str],
        successors: Iterable[tuple[str, str]],
        tokens: Callable[[str], list[str]],
    ) -> None:
        """Record how the latest revision changed the clean sentences of stored pairs.

        The revision removed the sentences in `removed`; `successors` are pairs (old sentence, new
        sentence that replaced it). The correction in a stored pair survives if the new sentence
        has the clean words of all its word pairs. `tokens` splits a sentence into words.
        """
        next_of = dict(successors)
        for waiting in self._pending:
            sentence = waiting.trail[-1][1]
            if sentence is not None and sentence in removed and waiting.index < self._index:
                following = next_of.get(sentence)
                words = {word.clean for word in waiting.pair.words}
                survives = following and words and words <= set(tokens(following))
                waiting.trail.append((self._index, following if survives else None))

    def final_pairs(self, *, ended: bool = False) -> Iterator[tuple[SentencePair, bool]]:
        """Yield each pair that reverts can no longer withdraw, and whether its correction survived.

        If `ended` is True, the page has no more revisions, and all stored pairs are yielded.
        """
        while self._pending and (ended or self._pending[0].index <= self._index - RADIUS):
            waiting = self._pending.popleft()
            yield waiting.pair, bool(waiting.trail[-1][1])


# Minimum similarity of aligned sentences: 1 - Levenshtein distance / characters of the longer one
LIKENESS_MIN = 0.5
SENTENCE_MAX = 5_000  # most characters of a sentence that is compared
# Maximum of (characters of all old sentences) x (characters of all new sentences); takes 0.2 s
WORK_MAX = 1 << 32
# Maximum of (old sentence count) x (new sentence count): limits many short sentences; takes 0.1 s
PAIRS_MAX = 250_000


def align(old: Sequence[str], new: Sequence[str], dropped: Counter[str]) -> list[tuple[str, str]]:
    """Pair old sentences with similar new ones; return the pairs in the order of `old`.

    The most similar pair is chosen first, and each sentence is used once. Sentences that are in
    both lists, at any position, are unchanged and not paired. If the others exceed `WORK_MAX` or
    `PAIRS_MAX`, the result is empty, and edit_many_sentences is counted in `dropped`.
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
    """Pair rows with columns of `scores`, the highest score first; return the column of each row.

    Each row and column is used once. A row without a positive score gets no column.
    """
    rows, columns = np.nonzero(scores)
    # The highest score first; at equal scores, the first row, then the first column
    order = np.lexsort((columns, rows, -scores[rows, columns]))
    partners: dict[int, int] = {}
    used: set[int] = set()
    for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if row not in partners and column not in used:
            used.add(column)
            partners[row] = column
    return partners


def _only(these: Sequence[str], those: Sequence[str]) -> list[str]:
    """Return the sentences of the first list that the second lacks, each once, in order.

    Sentences of more than `SENTENCE_MAX` characters are left out.
    """
    shared = set(those)
    return [
        sentence
        for sentence in dict.fromkeys(these)
        if sentence not in shared and len(sentence) <= SENTENCE_MAX
    ]
