"""Derive noisegen/dictionaries/en/auto.tsv, what autocorrect puts for a word, from public data.

Usage, in the environment of the project, with English sentences of Tatoeba (CC BY 2.0 FR), a
sentence a line:

    python -m tools.autocorrect SENTENCES.txt [OUT.tsv]

A slip of the thumb makes one word of another: a neighbouring key, a letter too few or too many, two
letters swapped. It stays if the phone knows what results, behind the word before: the sentences
have both pairs of words. It fits the rest if both words have the same words behind them.
"""

import re
from collections import Counter, defaultdict
from itertools import pairwise
from math import sqrt
from pathlib import Path

from noisegen.transforms.keyboard import keyboard_of
from tools.paths import paths

OUT = Path(__file__).parents[1] / "noisegen/dictionaries/en/auto.tsv"
WORD_MIN, PAIR_MIN, FOUND_MIN = 8, 3, 2  # sentences with a word, with a pair, with its other word
SHARE_MIN = 0.05  # frequency ratio of the pair: a phone prefers frequent words
LIKE_MIN = 0.25  # cosine of the words behind both, by the roots of their counts
LEFT_OUT = Path(__file__).with_name("autocorrect_left_out.tsv")
# Apostrophes that are put in, and words that phones do not know.
WRITTEN = (
    ("its", "it's", 25),
    ("were", "we're", 6),
    ("well", "we'll", 4),
    ("hell", "he'll", 10),
    ("shell", "she'll", 30),
    ("ill", "I'll", 20),
    ("wed", "we'd", 30),
    ("fuck", "duck", 30),
    ("fucking", "ducking", 30),
    ("shit", "shot", 20),
)
HEAD = """# name: auto
# lang: en
# source: pairs of words in the English sentences of Tatoeba, by tools/autocorrect.py
# license: CC-BY-2.0
# of: 100
# note: weight is the percent of the rate; with the rest of its chance a phrase stays
clean\tnoisy\tweight
"""


def slips(word: str, near: dict[str, set[str]]) -> set[str]:
    """Return the word as a slip of the thumb types it."""
    found = set()
    for at, letter in enumerate(word):
        before, after = word[:at], word[at + 1 :]
        found |= {before + key + after for key in near[letter]} | {before + after}
        found |= {
            before + keys + after for key in near[letter] for keys in (key + letter, letter + key)
        }
        found |= {before + letter * 2 + after, before + after[:1] + letter + after[1:]}
    return found - {word}


def is_inflected(word: str, other: str) -> bool:
    """Tell whether two words may be forms of one: they begin alike, and are not short."""
    short, long = sorted((word, other), key=len)
    return len(short) > 2 and long.startswith(short[:-1]) and long[-1] in "sdegnty"


def main(sentences: Path, out: Path) -> None:
    """Write the list."""
    lines = set(sentences.read_text("utf-8").lower().replace("\u2019", "'").splitlines())
    words = [re.findall(r"[a-z]+(?:'[a-z]+)?", line) for line in lines]
    count = Counter(word for line in words for word in line)
    pairs = Counter(pair for line in words for pair in pairwise(line))
    behind: dict[str, dict[str, float]] = defaultdict(dict)
    for (word, following), number in pairs.items():
        behind[word][following] = sqrt(number / count[word])
    near: dict[str, set[str]] = defaultdict(set)
    for entry in keyboard_of("en").neighbours():
        near[entry.clean].add(entry.noisy)

    def fits(word: str, other: str) -> bool:
        mine, theirs = behind[word], behind[other]
        return sum(mine[key] * theirs[key] for key in mine.keys() & theirs) >= LIKE_MIN

    known = {word for word, number in count.items() if number >= WORD_MIN and len(word) > 1}
    left_out = {row for row in LEFT_OUT.read_text("utf-8").splitlines() if row[0] != "#"}
    known -= left_out
    others = {
        word: [o for o in slips(word, near) & known if not is_inflected(word, o) and fits(word, o)]
        for word in sorted(known)
    }
    found = {clean: (clean, noisy, weight) for clean, noisy, weight in WRITTEN}
    for (before, word), number in pairs.items():
        if number < PAIR_MIN or before in left_out:
            continue
        likely = {other: pairs[before, other] for other in others.get(word, ())}
        other = max(sorted(likely), key=lambda o: likely[o], default="")
        if other and likely[other] >= max(FOUND_MIN, SHARE_MIN * number):
            weight = min(100, 100 * likely[other] // number)
            left = before.replace("i", "I", 1) if re.match(r"i('|$)", before) else before
            found[f"{left} {word}"] = f"{left} {word}", f"{left} {other}", weight
    rows = ["\t".join(map(str, found[clean])) + "\n" for clean in sorted(found)]
    out.write_text(HEAD + "".join(rows), "utf-8")
    print(f"{len(rows)} entries")


if __name__ == "__main__":
    main(*paths(__doc__, data=None, out=OUT))
