"""Sentences are matched by likeness: moved and inserted ones do not confuse it."""

import random
from collections import Counter

from noisegen.mining import changes
from noisegen.mining.changes import LIKENESS_MIN, SENTENCE_MAX

FOX = "The quick brown fox jumps over the lazy dog."
HEN = "Hens lay eggs in the morning when the sun is up."
COW = "A cow gives milk to the farmer and his wife."


def align(old, new):
    """Return the pairs, and what was counted."""
    dropped = Counter()
    return changes.align(old, new, dropped), dropped


def noisy(text, at=5):
    return text[:at] + text[at + 1 :]


def test_inserted_and_moved_sentences_are_no_trouble():
    old = [noisy(FOX), HEN, noisy(COW)]
    new = ["Something new came here first of all.", COW, HEN, FOX]

    assert align(old, new) == ([(noisy(FOX), FOX), (noisy(COW), COW)], {})


def test_shared_sentences_are_no_change():
    assert align([FOX, HEN], [HEN, FOX]) == ([], {})
    assert align([], [FOX]) == ([], {})
    assert align([FOX, FOX], [FOX]) == ([], {})


def test_unlike_sentences_are_no_pair():
    assert align([FOX], [HEN]) == ([], {})
    assert align([FOX, COW], [HEN, "x"]) == ([], {})


def test_each_sentence_is_used_once_the_most_alike_first():
    assert align([noisy(FOX), noisy(noisy(FOX), 9)], [FOX]) == ([(noisy(FOX), FOX)], {})


def test_too_many_sentences_are_not_compared():
    old, new = ([f"{number} {sign * 4_990}" for number in range(14)] for sign in "ab")

    assert align(old, new) == ([], {"edit_many_sentences": 1})


def test_a_sentence_of_a_book_is_left_out():
    book = FOX * (SENTENCE_MAX // len(FOX) + 1)

    assert align([noisy(book)], [book]) == ([], {})


def distance(one, other):
    """The slow twin: the whole matrix, row by row."""
    row = list(range(len(other) + 1))
    for i, mine in enumerate(one, 1):
        previous, row = row, [i]
        for j, theirs in enumerate(other, 1):
            least = min(previous[j], row[-1]) + 1
            row.append(min(least, previous[j - 1] + (mine != theirs)))
    return row[-1]


def slow(old, new):
    """Every pair, the most alike first, each sentence once."""
    ours = [one for one in dict.fromkeys(old) if one not in new]
    theirs = [one for one in dict.fromkeys(new) if one not in old]
    scored = sorted(
        (-(1 - distance(a, b) / max(len(a), len(b))), i, j)
        for i, a in enumerate(ours)
        for j, b in enumerate(theirs)
    )
    pairs, used = [], (set(), set())
    for score, i, j in scored:
        if -score >= LIKENESS_MIN - 1e-9 and i not in used[0] and j not in used[1]:
            used[0].add(i)
            used[1].add(j)
            pairs.append((i, j))
    return [(ours[i], theirs[j]) for i, j in sorted(pairs)]


def test_alignment_equals_its_slow_twin():
    dice = random.Random(8)
    for _ in range(400):
        old = ["".join(dice.choices("ab ", k=dice.randrange(1, 13))) for _ in range(4)]
        new = [
            noisy(one, dice.randrange(6)) if dice.random() < 0.5 else one + dice.choice("abc")
            for one in dice.sample(old, dice.randrange(5))
        ]
        new = [one for one in new if one]
        assert align(old, new)[0] == slow(old, new)
