"""A bilingual dictionary built from bitext: read pairs, align their words, keep the sure ones."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.atomic import atomic
from noisegen.bilingual.bitext_sides import Two, read_sides
from noisegen.bilingual.bitext_words import Cells, Side
from noisegen.bilingual.word_alignment import F64, Tell, translations
from noisegen.draws import I64
from noisegen.errors import SourceError, UsageError
from noisegen.manifest import counted
from noisegen.text import Bool

WORDS_MAX = 80  # of a sentence; longer ones are left out
CELLS_MAX = 15_000_000  # word pairs held in memory
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("lang", "into", "clean", "noisy")),
        ("count", pa.int64()),
        ("prob", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Thresholds:
    """What a translation needs: how often it is expected, and which share of its word's."""

    min_count: int = 2
    min_prob: float = 0.1
    top: int = 5

    def __post_init__(self) -> None:
        if self.min_count < 1 or self.top < 1:
            raise UsageError("--min-count and --top must be at least 1")
        if not 0 <= self.min_prob <= 1:
            raise UsageError(f"--min-prob {self.min_prob} is not a share from 0 to 1")


class Translation(NamedTuple):
    """A word and a translation: how often it is expected, and its share of the word's count."""

    clean: str
    noisy: str
    expected: int
    prob: float


@dataclass(frozen=True)
class Built:
    """The translations of a bitext, by word and falling share, and what became of its rows."""

    entries: list[Translation]
    pairs: int
    dropped: Counter[str] = field(default_factory=Counter)

    def account(self) -> dict[str, Any]:
        """Return the numbers of the run."""
        return {
            "words": len({entry.clean for entry in self.entries}),
            "translations": len(self.entries),
            "pairs": self.pairs,
            "dropped": dict(sorted(self.dropped.items())),
        }

    def summary(self) -> str:
        """Return one line for people."""
        lost = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self.dropped.items()))
        account = self.account()
        return (
            f"{counted(account['translations'], 'translation')} of "
            f"{counted(account['words'], 'word')} from {counted(self.pairs, 'sentence pair')}"
            f"{f'; dropped: {lost}' if lost else ''}"
        )


def silent(*_: object) -> None:
    """Tell nobody how far it is."""


def build(
    sources: Sequence[str], langs: Two, thresholds: Thresholds, tell: Tell,
    *, columns: Two | None = None,
) -> Built:  # fmt: skip
    """Learn the translations of words from sentence pairs of two languages; raises SourceError.

    `columns` are the two sides where the sources do not say them: names, or numbers in a table
    without a header line.
    """
    dropped: Counter[str] = Counter()
    pairs = read_sides(sources, langs, columns, dropped)
    first, second = (Side.of(texts, thresholds.min_count) for texts in pairs)
    kept = _chosen(first.lengths(len(pairs[0])), second.lengths(len(pairs[0])), dropped)
    first, second = first.of_rows(kept), second.of_rows(kept)
    cells = Cells.of(first, second, int(kept.sum()))
    counts = translations(cells, first, second, tell)
    return Built(_entries(cells, counts, first, second, thresholds), int(kept.sum()), +dropped)


def _chosen(widths: I64, heights: I64, dropped: Counter[str]) -> Bool:
    """Tell which pairs are aligned: those that fit, and of too many some, spread evenly."""
    long = np.maximum(widths, heights) > WORDS_MAX
    empty = np.minimum(widths, heights) == 0
    kept: Bool = ~long & ~empty
    sizes = np.where(kept, widths * heights, 0)
    most = int(sizes.sum())
    if most > CELLS_MAX:
        turns = (np.arange(len(kept)) * CELLS_MAX) // most
        kept &= np.diff(turns, prepend=-1) > 0
    dropped.update(
        {"too_long": int(long.sum()), "no_frequent_word": int((empty & ~long).sum()),
         "sampled_out": int((~long & ~empty & ~kept).sum())}
    )  # fmt: skip
    if not kept.any():
        raise SourceError("no sentence pair to align: all are empty, too long or of rare words")
    return kept


def _entries(
    cells: Cells, counts: F64, first: Side, second: Side, thresholds: Thresholds
) -> list[Translation]:
    """Return the pairs above the thresholds, both ways."""
    others = len(second.spellings)
    cleans, noisies = cells.pairs // others, cells.pairs % others
    there = counts / np.maximum(np.bincount(cleans, counts)[cleans], 1e-300)
    back = counts / np.maximum(np.bincount(noisies, counts)[noisies], 1e-300)
    sure = np.minimum(there, back) >= thresholds.min_prob
    kept = np.flatnonzero(sure & (counts >= thresholds.min_count - 0.5))
    order = kept[np.lexsort((kept, -counts[kept], cleans[kept]))]
    places: Counter[int] = Counter()
    found = []
    for pair in order.tolist():
        clean, noisy = int(cleans[pair]), second.spellings[int(noisies[pair])]
        spelled = first.spellings[clean]
        if spelled.lower() != noisy.lower() and places[clean] < thresholds.top:
            places[clean] += 1
            found.append(Translation(spelled, noisy, round(counts[pair]), there[pair]))
    return sorted(found, key=lambda one: (one.clean, -one.expected, one.noisy))


def check_output(path: Path) -> None:
    """Raise UsageError for an ending that is not written."""
    if path.suffix not in (".tsv", ".parquet"):
        raise UsageError(f"{path}: write a dictionary as .tsv or .parquet")


def write(built: Built, path: Path, head: dict[str, str]) -> None:
    """Write a dictionary as .tsv (with a head) or .parquet; raises UsageError for another ending.

    `head` has name, lang, into, source and license.
    """
    check_output(path)
    if path.suffix == ".parquet":
        columns = list(zip(*built.entries, strict=True)) or [()] * 4
        langs = ([head[name]] * len(built.entries) for name in ("lang", "into"))
        with atomic(path) as file:
            pq.write_table(pa.table([*langs, *columns], schema=SCHEMA), file, compression="zstd")
    else:
        lines = [f"# {key}: {' '.join(value.split())}" for key, value in head.items()]
        lines.append("clean\tnoisy\tweight")
        lines += [f"{one.clean}\t{one.noisy}\t{max(one.expected, 1)}" for one in built.entries]
        with atomic(path) as file:
            file.write(("\n".join(lines) + "\n").encode())
