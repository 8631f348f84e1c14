"""The taggers against hand-tagged text: `python -m benchmarks.taggers en_ewt-ud-dev.conllu.gz`.

Of the words that slng could replace, by the tag that a person gave: how many it replaces (recall),
and how many of those that it replaces are right (precision).
"""

import argparse
import gzip
import time
from pathlib import Path

import numpy as np

from noisegen.noising.engine import Engine
from noisegen.noising.lexicon import POS
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings
from noisegen.text.buffers import Texts

Sentence = tuple[str, list[tuple[int, str]]]  # its words joined by spaces: ends in bytes, tags


def sentences(path: Path) -> list[Sentence]:
    """Read a CoNLL-U file."""
    read: list[Sentence] = []
    for block in gzip.decompress(path.read_bytes()).decode().split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if line[:1].isdigit()]
        words = [(row[1], row[3]) for row in rows if row[0].isdecimal()]
        ends = np.cumsum([len(word.encode()) + 1 for word, _ in words]) - 1
        tags = ["VERB" if tag == "AUX" else tag for _, tag in words]
        read.append(
            (" ".join(word for word, _ in words), list(zip(ends.tolist(), tags, strict=True)))
        )
    return [sentence for sentence in read if sentence[0]]


def measure(name: str, tagger: str, read: list[Sentence]) -> tuple[int, int, int, float]:
    """Return right replacements, all replacements, all that would be right, and seconds."""
    texts = Texts.from_strings([text for text, _ in read])
    kernel = Engine(Recipe.of([f"{name}:rate=1"]), Settings(tagger=tagger)).steps[0].kernel
    zeros = np.zeros(len(texts), np.int64)
    matches = kernel.table.find(texts, zeros)
    began = time.perf_counter()
    replaced, pos = kernel._eligible(texts, matches, zeros)
    seconds = time.perf_counter() - began

    def gold(found) -> list[int]:
        ends = found.stops - texts.offsets[found.rows]
        tags = (dict(read[row][1]).get(end, "") for row, end in zip(found.rows, ends, strict=True))
        return [POS.index(tag) if tag in POS else -1 for tag in tags]

    groups = kernel.table.groups[matches.keys]
    wanted = [tag >= 0 and groups[at, tag] >= 0 for at, tag in enumerate(gold(matches))]
    right = sum(tag == chosen for tag, chosen in zip(gold(replaced), pos, strict=True))
    return right, len(replaced), sum(wanted), seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    read = sentences(parser.parse_args().path)
    for tagger in ("rule", "spacy"):
        right, replaced, wanted, seconds = measure("slng", tagger, read)
        shares = f"precision {right / replaced:.3f}, recall {right / wanted:.3f}"
        print(f"{tagger}: {shares} ({replaced:,} of {wanted:,}), {seconds:.2f} s")
