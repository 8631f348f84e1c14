"""How often words stand in corrected sentences: a wrong form that is common there is a word."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq

from noisegen.mining.counts import merged
from noisegen.mining.dictionary import Frequencies, Thresholds, kept
from noisegen.mining.languages import language

ROWS = 8_192


def seen_words(words: Sequence[Path], pairs: Sequence[Path], thresholds: Thresholds) -> Frequencies:
    """Return how often the words of word counts stand in the corrected sentences, if it matters.

    `words` and `pairs` are the shards of one mining run or of several.
    """
    if not thresholds.frequency:
        return {}
    entries = kept(merged(list(words)), Thresholds(top=0))
    both = {(entry.lang, word) for entry in entries for word in (entry.clean, entry.noisy)}
    return frequencies(pairs, both)


def frequencies(paths: Sequence[Path], words: Collection[tuple[str, str]]) -> Frequencies:
    """Count these words in the clean sentences of shards of pairs."""
    found: Counter[tuple[str, str]] = Counter()
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS, columns=["lang", "clean"]):
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                for lang, clean in rows:
                    tokens = ((lang, token) for token in _tokenizer(lang)(clean))
                    found.update(word for word in tokens if word in words)
    return found


@cache
def _tokenizer(lang: str) -> Callable[[str], list[str]]:
    return language(lang).tokens
