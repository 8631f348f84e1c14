"""Bitext for the tables of ORACLE: tatoeba-opus, parted into training, development and test."""

from pathlib import Path
from typing import NamedTuple

from benchmarks.tatoeba import Sides, english_pairs
from noisegen.noising.rng import name_number, splitmix

LANGS = ("ar", "de", "es", "fr", "it", "ja", "nl", "pt", "ru", "tr", "zh")
TEST, DEVELOPMENT = 1_000, 500  # pairs a language
Pair = tuple[str, str]  # English and the other language


class Parts(NamedTuple):
    """Pairs of each language; no text of the test or development part is in another part."""

    training: dict[str, Sides]
    development: dict[str, Sides]
    test: dict[str, Sides]


def bitext(most: int) -> Parts:
    """Split the pairs by their English side; at most `most` per language to train on."""
    ranked = {lang: sorted(rows, key=_rank) for lang, rows in english_pairs(LANGS).items()}
    test = {lang: _distinct(pairs, TEST) for lang, pairs in ranked.items()}
    known = {text for pairs in test.values() for pair in pairs for text in pair}
    development = {
        lang: _distinct(_without(pairs, known), DEVELOPMENT) for lang, pairs in ranked.items()
    }
    known |= {text for pairs in development.values() for pair in pairs for text in pair}
    training = {lang: list(_without(pairs, known))[:most] for lang, pairs in ranked.items()}
    return Parts(training, development, test)


def _rank(pair: Pair) -> int:
    return splitmix(name_number(pair[0]))


def _without(pairs: Sides, known: set[str]) -> Sides:
    return [pair for pair in pairs if not known & set(pair)]


def _distinct(pairs: Sides, most: int) -> Sides:
    """Return the first pairs whose sides are new on both sides."""
    seen: set[str] = set()
    found = []
    for pair in pairs:
        if not seen & set(pair):
            found.append(pair)
            seen |= set(pair)
    return found[:most]


def write_tables(parts: dict[str, Sides], folder: Path) -> list[str]:
    """Write `en-LANG.tsv` with columns source and target for each language; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for lang, pairs in parts.items():
        path = folder / f"en-{lang}.tsv"
        path.write_text("".join(f"{a}\t{b}\n" for a, b in [("source", "target"), *pairs]), "utf-8")
        paths.append(str(path))
    return paths
