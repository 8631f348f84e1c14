"""Which old sentence became which new one: by likeness, not by position."""

from collections.abc import Sequence

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

LIKENESS_MIN = 0.5  # 1 - Levenshtein distance / length of the longer, in characters
SENTENCE_MAX = 5_000  # characters
WORK_MAX = 1 << 32  # characters of the old sentences times those of the new ones: 0.2 s
PAIRS_MAX = 250_000  # old sentences times new ones: 0.1 s, however short they are


def align(old: Sequence[str], new: Sequence[str]) -> tuple[list[tuple[str, str]], str | None]:
    """Return pairs of an old and a new sentence, each used once, the most alike first.

    Sentences that both share, wherever they stand, are no change. The second value is the reason
    why nothing was compared, if so.
    """
    ours, theirs = _only(old, new), _only(new, old)
    if not (ours and theirs):
        return [], None
    work = sum(map(len, ours)) * sum(map(len, theirs))
    if work > WORK_MAX or len(ours) * len(theirs) > PAIRS_MAX:
        return [], "edit_many_sentences"
    if len(ours) == len(theirs) == 1:
        alike = Levenshtein.normalized_similarity(ours[0], theirs[0], score_cutoff=LIKENESS_MIN)
        return ([(ours[0], theirs[0])] if alike else []), None
    return _matched(ours, theirs), None


def _only(these: Sequence[str], those: Sequence[str]) -> list[str]:
    """Return the sentences that only the first list has, each once, in order."""
    shared = set(those)
    return [
        sentence
        for sentence in dict.fromkeys(these)
        if sentence not in shared and len(sentence) <= SENTENCE_MAX
    ]


def _matched(ours: list[str], theirs: list[str]) -> list[tuple[str, str]]:
    """Take the most alike pair, again and again; among equals the first."""
    scores = cdist(
        ours, theirs, scorer=Levenshtein.normalized_similarity, score_cutoff=LIKENESS_MIN
    )
    rows, columns = np.nonzero(scores)
    order = np.lexsort((columns, rows, -scores[rows, columns]))
    pairs: list[tuple[int, int]] = []
    left, right = set(range(len(ours))), set(range(len(theirs)))
    for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if row in left and column in right:
            left.remove(row)
            right.remove(column)
            pairs.append((row, column))
    return [(ours[row], theirs[column]) for row, column in sorted(pairs)]
