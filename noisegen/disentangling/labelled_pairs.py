"""DATA of heads: pairs of texts, and for each side the name of its language, or of its noise.

Language: bitext of every form. Side: pairs of noisy and clean text, named so. Transform: output of
augment; a noisy side is named after what made it.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.bitext import TEXT_MAX, stream_bitext
from noisegen.bitext_files import all_bitext
from noisegen.cells import in_brackets
from noisegen.disentangling.settings import HeadTraining
from noisegen.errors import SourceError
from noisegen.inputs import expand
from noisegen.readers import parquet_head, parquet_tables
from noisegen.realism.pairs import shards_of, stream_pairs
from noisegen.training.text_store import TextStore, write_texts

CLEAN, NOISY, SEVERAL = "clean", "noisy", "several"
LABELS_MAX = 1_000
_BATCH_BYTES = 4 << 20
_NOISED = ("noisy", "clean", "transforms")
_NOISED_TYPES = [pa.string(), pa.string(), pa.list_(pa.string())]

Row = tuple[str, str, str, str]  # source, target, and the labels of both
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class LabelledPairs:
    """Pair i is `texts[source[i]]` and `texts[target[i]]`, of labels `names[source_label[i]]`..."""

    texts: TextStore
    source: Rows
    target: Rows
    source_label: Rows
    target_label: Rows
    names: tuple[str, ...]
    dropped: Counter[str]

    def __len__(self) -> int:
        return len(self.source)


def prepare_pairs(folder: Path, sources: Sequence[str], settings: HeadTraining) -> LabelledPairs:
    """Read DATA, its distinct texts into the folder; raises SourceError for what cannot be parted.

    Rows with an empty side are dropped and counted, and of noisy text those that equal their clean
    form: one vector cannot be both.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dropped: Counter[str] = Counter()
    read = _Distinct()
    rows = _READERS[settings.labels](sources, settings, dropped)
    texts = write_texts(folder, "texts", read(rows))
    one, other, label, other_label = (np.array(column, np.int32) for column in read.columns)
    names = tuple(read.labels)
    pairs = LabelledPairs(texts, one, other, label, other_label, names, dropped)
    _check(pairs, ", ".join(sources))
    return pairs


class _Distinct:
    """Numbers texts and labels in the order in which they are met; yields the new texts."""

    def __init__(self) -> None:
        self.labels: dict[str, int] = {}
        self.columns = tuple(array("i") for _ in range(4))
        self._known: dict[bytes, int] = {}

    def __call__(self, rows: Iterator[Row]) -> Iterator[str]:
        for source, target, *labels in rows:
            for text, column in zip((source, target), self.columns[:2], strict=True):
                key = blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
                if key not in self._known:
                    self._known[key] = len(self._known)
                    yield text
                column.append(self._known[key])
            for label, column in zip(labels, self.columns[2:], strict=True):
                column.append(self.labels.setdefault(label, len(self.labels)))
            if len(self.labels) > LABELS_MAX:
                raise SourceError(f"more than {LABELS_MAX:,} labels, such as {source[:40]!r}'s: "
                                  "are these columns languages?")  # fmt: skip


def _check(pairs: LabelledPairs, shown: str) -> None:
    if not len(pairs):
        raise SourceError(f"no pairs to train on in {shown}{in_brackets(pairs.dropped)}")
    if len(pairs.names) < 2:
        raise SourceError(f"{shown}: all texts are {pairs.names[0]}: nothing to tell it from")
    for side, rows in (("source", pairs.source), ("target", pairs.target)):
        if (rows == rows[0]).all():
            raise SourceError(f"{shown}: every {side} is the same text: nothing to tell apart")


def _bitext(sources: Sequence[str], settings: HeadTraining, dropped: Counter[str]) -> Iterator[Row]:
    said = (settings.languages[0], settings.languages[1]) if settings.languages else None
    for pair in stream_bitext(all_bitext(sources, said), dropped):
        yield pair[:4]


def _sides(sources: Sequence[str], settings: HeadTraining, dropped: Counter[str]) -> Iterator[Row]:
    for noisy, clean in stream_pairs(sources, dropped):
        if noisy == clean:
            dropped["same_sides"] += 1
        else:
            yield noisy[:TEXT_MAX], clean[:TEXT_MAX], NOISY, CLEAN


def _transforms(
    sources: Sequence[str], settings: HeadTraining, dropped: Counter[str]
) -> Iterator[Row]:
    for path in (item.path for source in sources for item in expand([shards_of(source)])):
        for noisy, clean, names in _noised(path):
            if not (noisy and clean and noisy.strip() and clean.strip()):
                dropped["empty_side"] += 1
            elif noisy == clean:
                dropped["same_sides"] += 1
            else:
                label = names[0] if len(names or ()) == 1 else SEVERAL
                yield noisy[:TEXT_MAX], clean[:TEXT_MAX], label, CLEAN


def _noised(path: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the rows of a file of augment; raises SourceError for any other."""
    schema, rows = parquet_head(path) if path.endswith(".parquet") else (pa.schema([]), 0)
    if [schema.field(name).type for name in _NOISED if name in schema.names] != _NOISED_TYPES:
        raise SourceError(
            f"{path} has no columns {', '.join(_NOISED)}: labels transform are for the output of "
            "augment"
        )
    for table in parquet_tables(path, 0, rows, _BATCH_BYTES):
        columns = [table[name].to_pylist() for name in _NOISED]
        yield from zip(*columns, strict=True)


_READERS: dict[str, Callable[[Sequence[str], HeadTraining, Counter[str]], Iterator[Row]]] = {
    "language": _bitext,
    "side": _sides,
    "transform": _transforms,
}
