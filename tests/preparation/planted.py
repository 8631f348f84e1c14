"""Near duplicates planted among real sentences: each kind changes a sentence as the web does."""

import random

from noisegen.preparation.fingerprints import shingles, similarity

_SIGNS = str.maketrans("", "", ".,;:'\"()")


def alike(one, other, size=5):
    """Return the similarity of two normal forms."""
    return similarity(shingles(one, size), shingles(other, size))


def _typo(words, draw):
    at = max(range(len(words)), key=lambda number: len(words[number]))
    word = words[at]
    place = draw.randrange(1, len(word) - 1)
    return [*words[:at], word[:place] + word[place + 1 :], *words[at + 1 :]]


def _without_a_word(words, draw):
    at = draw.randrange(len(words))
    return words[:at] + words[at + 1 :]


def _with_a_word(words, draw):
    at = draw.randrange(len(words))
    return [*words[:at], draw.choice(("also", "then", "really")), *words[at:]]


def _other_word(words, draw):
    at = draw.randrange(len(words))
    return [*words[:at], draw.choice(("harbour", "whole", "sometimes")), *words[at + 1 :]]


def _two_other_words(words, draw):
    return _other_word(_other_word(words, draw), draw)


KINDS = {
    "capitals": lambda words, draw: [word.upper() for word in words],
    "signs": lambda words, draw: " ".join(words).translate(_SIGNS).split(),
    "other_numbers": lambda words, draw: ["3" if word.isdigit() else word for word in words],
    "repost": lambda words, draw: ["RT", "@ann:", *words, "https://t.co/x"],
    "lead_in": lambda words, draw: ["Read", "more:", *words],
    "typo": _typo,
    "word_left_out": _without_a_word,
    "word_put_in": _with_a_word,
    "other_word": _other_word,
    "two_other_words": _two_other_words,
}


def planted(texts, seed=0):
    """Return (kind, changed text) for each text, the kinds in turn; an unchanged one has none."""
    draw, names = random.Random(seed), list(KINDS)
    rows = []
    for number, text in enumerate(texts):
        kind = names[number % len(names)]
        changed = " ".join(KINDS[kind](text.split(), draw))
        rows.append((kind if changed != text else "", changed))
    return rows
