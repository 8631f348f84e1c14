"""Noise as the "language" of ORACLE's heads: `python -m benchmarks.oracle_noise -o DIR`.

Heads learn from output of augment (labels clean and noisy) on a frozen English encoder; measured is
whether meaning vectors of noisy text come nearer to those of its clean form, on held-out sentences
with artificial noise and on natural pairs. Prints mean and sd over seeds; writes table.json.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console

import noisegen
from benchmarks.frozen_vectors import Lookup, cached
from benchmarks.natural_noise import ENGLISH, changed_pairs
from benchmarks.oracle_data import bitext
from benchmarks.oracle_figures import Figures, Table, over_runs, plain
from benchmarks.real_pairs import Pair
from noisegen.encoders.encoder import Vectors
from noisegen.evaluation import cosine_distance, xsim_hard
from noisegen.evaluation.negatives import HardNegatives, hard_negatives
from noisegen.evaluation.xsim_search import HardVectors
from noisegen.options import parse_values
from noisegen.report.terminal import titled
from noisegen.training.heads import applied, load_heads
from noisegen.training.train import train

RECIPES = ("ugc", "mix_all")
ALONE = "encoder alone"
FIGURES = ("distance", "relative", "anchored", "drift", "xsim_hard")
Sets = dict[str, tuple[list[Pair], HardNegatives]]


def test_sets(texts: list[str], rows: int, per_kind: int) -> Sets:
    """Return pairs by set: artificial noise of unseen sentences, natural noise; and negatives."""
    sets = {
        recipe: [
            (noisegen.noise(text, recipe, seed=100, id=row), text)
            for row, text in enumerate(texts[:rows])
        ]
        for recipe in RECIPES
    }
    sets = {name: [pair for pair in pairs if pair[0] != pair[1]] for name, pairs in sets.items()}
    sets |= {name: changed_pairs(name, rows) for name in ENGLISH}
    return {
        name: (pairs, hard_negatives([clean for _, clean in pairs], parse=False, per_kind=per_kind))
        for name, pairs in sets.items()
    }


def measured(sets: Sets, lookup: Lookup, head: Callable[[Vectors], Vectors]) -> Figures:
    """Return the figures of each set; `head` makes meaning vectors of frozen ones."""
    found = {}
    for name, (pairs, negatives) in sets.items():
        frozen = lookup(clean for _, clean in pairs)
        noisy, clean = head(lookup(noisy for noisy, _ in pairs)), head(frozen)
        distance = cosine_distance(noisy, clean)
        altered = head(lookup(negatives.texts))
        hard = xsim_hard(noisy, clean, HardVectors(altered, negatives.sources, negatives.kinds))
        values = (
            distance,
            distance / between(clean),
            cosine_distance(noisy, frozen),
            cosine_distance(clean, frozen),
            hard.error_rate,
        )
        found |= {f"{name}.{figure}": value for figure, value in zip(FIGURES, values, strict=True)}
    return found


def between(clean: Vectors) -> float:
    """Return the mean distance of each clean sentence to the next: of texts that are unrelated."""
    return cosine_distance(clean, np.roll(clean, 1, axis=0))


def augmented(texts: list[str], out: Path) -> list[str]:
    """Write the texts with noise of each recipe; return the folders."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "clean.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    for recipe in RECIPES:
        noisegen.augment(out / "clean.txt", out / recipe, recipe=recipe, seed=1, force=True)
    return [str(out / recipe) for recipe in RECIPES]


def main() -> None:
    """Read the arguments; make noise, train, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--teacher", default="minilm")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--objectives", nargs="+", default=["meat", "meat+oracle", "dream+oracle"])
    parser.add_argument("--labels", default="side")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=6_000)
    parser.add_argument("--rows", type=int, default=600, help="of each test set")
    parser.add_argument("--negatives", type=int, default=3, help="hard ones of a text and family")
    given = parser.parse_args()
    parts = bitext(given.texts)
    english = [
        list(dict.fromkeys(a for pairs in part.values() for a, _ in pairs))
        for part in (parts.training, parts.test)
    ]
    data = augmented(english[0][: given.texts], given.out / "data")
    sets = test_sets(english[1], given.rows, given.negatives)
    texts = [text for pairs, _ in sets.values() for pair in pairs for text in pair]
    lookup = cached(given.teacher, [*texts, *(t for _, hard in sets.values() for t in hard.texts)])
    table = {ALONE: over_runs([measured(sets, lookup, lambda vectors: vectors)])}
    for objective in given.objectives:
        runs = []
        for seed in range(given.seeds):
            out = given.out / f"{objective}-{seed}"
            values = {"teacher": given.teacher, "objective": objective, "labels": given.labels}
            train(
                data,
                out,
                preset="oracle-small",
                force=True,
                values={**values, "seed": seed, **parse_values(given.set)},
            )
            heads, _ = load_heads(out / "heads")
            runs.append(measured(sets, lookup, applied(heads, "meaning")))
        table[objective] = over_runs(runs)
        print(objective, flush=True)
    show(table, list(sets))
    (given.out / "table.json").write_text(json.dumps(plain(table), indent=1) + "\n")


def show(table: Table, names: list[str]) -> None:
    """Print a table for each figure: methods by sets."""
    for figure in FIGURES:
        made = titled(figure)
        for column in ("method", *names):
            made.add_column(column)
        for method, row in table.items():
            shown = [row[f"{name}.{figure}"] for name in names]
            made.add_row(method, *(f"{one.mean:.4g} ± {one.sd:.2g}" for one in shown))
        Console(width=120).print(made)


if __name__ == "__main__":
    main()
