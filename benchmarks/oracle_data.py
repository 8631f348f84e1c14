"""Bitext for the tables of ORACLE: tatoeba-opus, parted into training, development and test."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.real_pairs import DATA
from noisegen.draws import mix, name_number

TATOEBA = DATA / "tatoeba-opus"
FILES = {
    "ar": "ara-eng", "de": "deu-eng", "es": "eng-spa", "fr": "eng-fra", "it": "eng-ita",
    "ja": "eng-jpn", "nl": "eng-nld", "pt": "eng-por", "ru": "eng-rus", "tr": "eng-tur",
    "zh": "eng-cmn_Hans",
}  # fmt: skip
TEST, DEVELOPMENT = 1_000, 500  # pairs a language
Pair = tuple[str, str]  # English and the other language


class Parts(NamedTuple):
    """Pairs of each language; no text of the test or development part is in another part."""

    training: dict[str, list[Pair]]
    development: dict[str, list[Pair]]
    test: dict[str, list[Pair]]


def bitext(most: int) -> Parts:
    """Part the pairs by their English side; at most so many a language to train on."""
    ranked = {lang: sorted(_pairs(file), key=_rank) for lang, file in FILES.items()}
    test = {lang: _distinct(pairs, TEST) for lang, pairs in ranked.items()}
    known = {text for pairs in test.values() for pair in pairs for text in pair}
    development = {
        lang: _distinct(_without(pairs, known), DEVELOPMENT) for lang, pairs in ranked.items()
    }
    known |= {text for pairs in development.values() for pair in pairs for text in pair}
    training = {lang: list(_without(pairs, known))[:most] for lang, pairs in ranked.items()}
    return Parts(training, development, test)


def _pairs(file: str) -> Iterator[Pair]:
    turn = 1 if file.startswith("eng-") else -1
    with gzip.open(TATOEBA / f"{file}.tsv.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            english, other = line.rstrip("\n").split("\t")[:2][::turn]
            if english.strip() and other.strip():
                yield english, other


def _rank(pair: Pair) -> int:
    return mix(name_number(pair[0]))


def _without(pairs: list[Pair], known: set[str]) -> list[Pair]:
    return [pair for pair in pairs if not known & set(pair)]


def _distinct(pairs: list[Pair], most: int) -> list[Pair]:
    """Return the first pairs whose sides are new on both sides."""
    seen: set[str] = set()
    found = []
    for pair in pairs:
        if not seen & set(pair):
            found.append(pair)
            seen |= set(pair)
    return found[:most]


def write_tables(parts: dict[str, list[Pair]], folder: Path) -> list[str]:
    """Write `en-LANG.tsv` with columns source and target for each language; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for lang, pairs in parts.items():
        path = folder / f"en-{lang}.tsv"
        path.write_text("".join(f"{a}\t{b}\n" for a, b in [("source", "target"), *pairs]), "utf-8")
        paths.append(str(path))
    return paths
