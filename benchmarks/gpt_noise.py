"""Kinds of edit in the noise that GPT-4o was asked for, beside people's and ours.

`NOISEGEN_CLAIM_MATCHING=CLONE python -m benchmarks.gpt_noise` reads a clone of
JabezNzomo99/claim-matching-robustness, which has no licence, so that its noise is read in place:
202 tweets of CheckThat 2021 with few typos and with many. Prints for each noise of these tweets the
divergence of its kinds of edit from those of the English tweets of MultiLexNorm2, and shares of
kinds. Only edits of words count: the annotators of MultiLexNorm2 left capitals and signs alone.
"""

import csv
import io
import os
import subprocess
from collections.abc import Sequence

import numpy as np

from benchmarks.real_pairs import load
from benchmarks.realism import IS_SLIGHT
from noisegen.augmentation.on_the_fly import Noising
from noisegen.realism.figures import jensen_shannon, measure
from noisegen.realism.kinds import KINDS
from noisegen.realism.two_sample import F64

FOLDER = "experiments/typos/gpt4o/clef2021-checkthat-task2a--english"
SHOWN = ("apostrophe", "deletion", "digits", "merge", "shortening")
SEEDS = 5


def texts_of(name: str) -> dict[str, str]:
    """Return the texts of a table of the clone, by the id of the tweet."""
    clone = os.environ["NOISEGEN_CLAIM_MATCHING"]
    path = f"HEAD:{FOLDER}/{name}_typos_queries.tsv"
    content = subprocess.check_output(["git", "-C", clone, "show", path]).decode()
    return {row[0]: row[1] for row in list(csv.reader(io.StringIO(content)))[1:]}


def kinds_of(clean: Sequence[str], noisy: Sequence[str]) -> F64:
    """Return the share of each kind among the edits of words."""
    _, counts = measure(clean, noisy, "en")
    words = counts["kinds"].sum(axis=0) * ~IS_SLIGHT
    return words / words.sum()


def main() -> None:
    """Print a line for each noise."""
    noisy, clean = zip(*load("multilexnorm2:en"), strict=True)
    real = kinds_of(clean, noisy)
    few, many, tweets = map(texts_of, ("edited_baseline", "edited_worstcase", "orig_baseline"))
    ours = list(tweets.values())
    rows = {"people": real, "GPT-4o, few": kinds_of(ours, [few[name] for name in tweets])}
    rows["GPT-4o, many"] = kinds_of(ours, [many[name] for name in tweets])
    for recipe in ("ugc", "mix_all"):
        made = (Noising("en").noise(recipe, ours, seed) for seed in range(SEEDS))
        rows[recipe] = np.mean([kinds_of(ours, texts) for texts in made], axis=0)
    print("| noise | divergence |", *(f"{kind} |" for kind in SHOWN))
    for name, shares in rows.items():
        cells = (f"{shares[KINDS.index(kind)]:.0%} |" for kind in SHOWN)
        print(f"| {name} | {float(jensen_shannon(shares[None], real[None])[0]):.3f} |", *cells)


if __name__ == "__main__":
    main()
