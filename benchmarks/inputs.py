"""Sentences to measure on: WikiSplit where it lies beside the checkout, else the bundled demo."""

import csv
import gzip
import random
import re
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import ROOT

WIKI_SPLIT = ROOT.parent / "shared" / "data" / "wiki-split"
DEMO = ROOT / "noisegen" / "demo" / "demo.tsv"
ROWS_PER_GROUP = 100_000


@cache
def sentences() -> list[str]:
    """Return the sentences that all inputs are made of."""
    found = []
    for path in sorted(WIKI_SPLIT.glob("*.tsv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            parts = (part for line in file for part in re.split("\t|<::::>", line))
            found += [part.strip() for part in parts]  # a long sentence, and its two halves
    if not found:
        with DEMO.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            found = [row["text"] for row in rows if row["lang"] == "en"]
    return found


@cache
def texts(rows: int) -> pa.Array:
    """Return rows that differ: the sentences, then the head of one with the tail of another."""
    pool, chance = sentences(), random.Random(0)
    words = [sentence.split(" ") for sentence in pool]
    made = pool[:rows]
    while len(made) < rows:
        first, second, share = chance.choice(words), chance.choice(words), chance.random()
        head = first[: int(share * len(first))]
        made.append(" ".join(head + second[int(share * len(second)) :]))
    return pa.array(made, pa.string())


def parquet(folder: Path, rows: int) -> Path:
    """Write columns id and text as Parquet (zstd 1, groups of 100,000 rows)."""
    path = folder / "in.parquet"
    table = pa.table({"id": np.arange(rows), "text": texts(rows)})
    pq.write_table(
        table, path, row_group_size=ROWS_PER_GROUP, compression="zstd", compression_level=1
    )
    return path
