"""How often words stand in corrected sentences: a wrong form that is common there is a word."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import pyarrow.parquet as pq

from noisegen.mining.dictionary import Alternative, Frequencies
from noisegen.mining.languages import language

ROWS = 8_192


def words_of(entries: Iterable[Alternative]) -> set[tuple[str, str]]:
    """Return language and word of both sides of all entries."""
    return {(entry.lang, word) for entry in entries for word in (entry.clean, entry.noisy)}


def frequencies(paths: Sequence[Path], words: Collection[tuple[str, str]]) -> Frequencies:
    """Count these words in the clean sentences of shards of pairs."""
    found: Counter[tuple[str, str]] = Counter()
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS, columns=["lang", "clean"]):
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                for lang, clean in rows:
                    tokens = ((lang, token) for token in language(lang).tokens(clean))
                    found.update(word for word in tokens if word in words)
    return found
