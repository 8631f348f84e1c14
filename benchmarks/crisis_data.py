"""Data of `benchmarks.crisis`: labelled tweets, bitext parted into training and test, news."""

import csv
import gzip
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.real_pairs import DATA
from benchmarks.tatoeba import Sides, english_pairs
from noisegen.text.languages import language_code

UNLABELLED = ("Not labeled", "Not applicable")


@dataclass(frozen=True)
class Event:
    """Tweets of one crisis, with their labels by the question that was asked."""

    name: str
    texts: list[str]
    labels: dict[str, list[str]]


def events(most: int) -> Iterator[Event]:
    """Yield the events of CrisisLex T26 and T6, at most `most` evenly spaced tweets of each."""
    for path in sorted((DATA / "crisislex").glob("*.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            _, *rows = csv.reader(file, skipinitialspace=True)
        kind, name = path.name.split("-")[0].split("_", 1)
        width = 5 if kind == "T26" else 3
        rows = [row for row in rows if len(row) == width and row[1].strip()]
        if kind == "T26":
            rows = [row for row in rows if not set(row[3:]) & {*UNLABELLED}]
        rows = _spread(rows, most)
        labels = {"information type": 3, "informativeness": 4} if kind == "T26" else {"topic": 2}
        yield Event(
            f"{kind} {name.replace('_', ' ')}",
            [row[1] for row in rows],
            {question: [row[column] for row in rows] for question, column in labels.items()},
        )


def parted(
    langs: Sequence[str], train: int, test: int, seed: int
) -> dict[str, tuple[Sides, Sides]]:
    """Return pairs of Tatoeba to train on and to test with, by language.

    No sentence of a test set, on either side, is in any training set; all of a test set differ.
    """
    mixed = {lang: _shuffled(rows, seed) for lang, rows in english_pairs(langs).items()}
    tests = {lang: _distinct(rows)[:test] for lang, rows in mixed.items()}
    held = {text for rows in tests.values() for row in rows for text in row}
    return {
        lang: ([row for row in rows if not held & {*row}][:train], tests[lang])
        for lang, rows in mixed.items()
    }


def _shuffled(rows: Sides, seed: int) -> Sides:
    """Return the rows in a random order."""
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(rows))
    return [rows[number] for number in order]


def _distinct(rows: Sides) -> Sides:
    """Return the rows with a text on either side that no row before had."""
    seen: set[str] = set()
    found = []
    for row in rows:
        if not seen & {*row}:
            found.append(row)
        seen |= {*row}
    return found


def write_bitext(folder: Path, parts: dict[str, tuple[Sides, Sides]]) -> None:
    """Write the training pairs as tables named by their languages."""
    folder.mkdir(parents=True, exist_ok=True)
    for lang, (train, _) in parts.items():
        lines = ("\t".join(" ".join(side.split()) for side in row) for row in train)
        (folder / f"en-{lang}.tsv").write_text("".join(f"{line}\n" for line in lines), "utf-8")


def news(langs: Sequence[str], most: int) -> dict[str, list[str]]:
    """Return sentences of NTREX-128 in English and these languages, line by line the same."""
    found = {}
    with tarfile.open(DATA / "ntrex128" / "ntrex128.even.tar.gz") as packed:
        for member in packed:
            lang = language_code(member.name.split(".")[-2]) if member.isfile() else None
            if lang in {*langs, "en"} and lang not in found and "ref-2" not in member.name:
                file = packed.extractfile(member)
                assert file is not None
                found[lang] = _spread(file.read().decode("utf-8-sig").splitlines(), most)
    return {lang: found[lang] for lang in ("en", *langs)}


def _spread(rows: list, most: int) -> list:
    """Return at most `most` evenly spaced rows."""
    count = min(most, len(rows))
    return [rows[number * len(rows) // count] for number in range(count)]
