"""Does the ranking of encoders depend on the noise: `python -m benchmarks.rankings -o DIR`.

Systems are ranked by how far noise moves a text: the mean distance of noisy from clean text, as a
share of the distance between unrelated clean texts. The clean texts are those of real pairs that
people's noise changed, so that people's noise and made noise are of the same texts. Kendall's tau
compares the order under a kind of noise with the order on the real pairs (1: the same order, -1:
the reverse). Beside it stand the bounds of the middle 95 % of its values when rows are drawn anew.
These values lie lower than tau, since systems that are nearly equal change places. "another seed"
compares the orders under two seeds of the same noise. Made noise changes fewer rows than people
did, and kinds differ in strength, too.
"""

import argparse
from collections.abc import Mapping
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import torch

from benchmarks.beside import System, systems, unlike
from benchmarks.development import SETS, Values, development_sets, kept, markdown, slug
from benchmarks.natural_noise import ROWS
from benchmarks.systems import Characters
from benchmarks.which_noise import MISSING, Noiser, fitted, of_peer, of_recipe
from noisegen.evaluation.sets import PairSet
from noisegen.evaluation.similarity import F64, cosine_distances
from noisegen.noising.recipe import Recipe

REAL, RESAMPLES, SEEDS = "people", 2_000, (1, 2)
PERCENTILES = (2.5, 97.5)
AGAIN = ", another seed"


def noises(seed: int) -> dict[str, Noiser]:
    """Return the kinds of noise that are made, by name; "fit" is fitted to other tweets."""
    made = {
        "typos (multypo)": of_peer("multypo", "ugc", seed),
        "letters (textnoisr)": of_peer("textnoisr", "ugc", seed),
        "mix_all": of_recipe(Recipe.named("mix_all"), seed),
        "ugc": of_recipe(Recipe.named("ugc"), seed),
        "learner": of_recipe(Recipe.named("learner"), seed),
        "fit": lambda texts: of_recipe(fitted(), seed)(texts),
    }
    return {name: make for name, make in made.items() if _arm(name) not in MISSING}


def _arm(name: str) -> str:
    """Return the name of the arm of `which_noise` that makes a kind of noise."""
    return name.partition("(")[2].rstrip(")") or name


def noisy_texts(sets: list[PairSet]) -> dict[str, dict[str, list[str]]]:
    """Return the noisy texts of each set, by noise; the first set has 'ugc, another seed', too."""
    texts = {dataset.name: {REAL: [*dataset.noisy[0]]} for dataset in sets}
    for seed, end in zip(SEEDS, ("", AGAIN), strict=True):
        for name, make in noises(seed).items():
            for dataset in sets[:1] if end else sets:
                texts[dataset.name][name + end] = make([*dataset.clean])
    return texts


def distances(
    system: System, sets: list[PairSet], texts: Mapping[str, Mapping[str, list[str]]]
) -> Values:
    """Return {"set/noise": the distance of each row}, as shares of that of unlike texts."""
    found, model = Values(), system.make()
    for dataset in sets:
        clean = model.encode(dataset.clean)
        scale = unlike(clean)
        for name, noisy in texts[dataset.name].items():
            found[f"{dataset.name}/{name}"] = cosine_distances(model.encode(noisy), clean) / scale
    return found


def tau(one: F64, other: F64) -> F64:
    """Return Kendall's tau of the orders of systems; both have shape (systems, ...)."""
    pairs = list(combinations(range(len(one)), 2))
    signs = [np.sign(one[a] - one[b]) * np.sign(other[a] - other[b]) for a, b in pairs]
    found: F64 = np.mean(signs, axis=0)
    return found


def with_interval(values: Mapping[str, Values], dataset: str, one: str, other: str) -> str:
    """Return tau of the orders of all systems under two kinds of noise, with its interval."""
    rows = [
        np.stack([of_system[f"{dataset}/{noise}"] for of_system in values.values()])
        for noise in (one, other)
    ]
    count = rows[0].shape[1]
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    low, high = np.percentile(tau(*(part @ drawn.T / count for part in rows)), PERCENTILES)
    return f"{tau(*(part.mean(axis=1) for part in rows)):.2f} ({low:.2f} to {high:.2f})"


def compared(given: list[str]) -> list[System]:
    """Return the systems of `beside`, and word counts."""
    words = Characters("word counts", "word", (1, 1))
    return [*systems(given), System(words.name, lambda: words)]


def main() -> None:
    """Read the arguments, measure, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=ROWS, help="most rows of a set")
    given = parser.parse_args()
    torch.set_num_threads(1)
    all_sets = development_sets(given.out / "sets", given.rows)
    sets = [dataset for dataset in all_sets if isinstance(dataset, PairSet)]
    texts, values = noisy_texts(sets), {}
    for system in compared(given.models):
        path = given.out / "distances" / f"{slug(system.name)}.npz"
        inputs = f"{system.inputs} {SETS} {given.rows} {[*noises(0)]}"
        values[system.name] = kept(path, inputs, partial(distances, system, sets, texts))
        print(system.name, flush=True)
    names = [REAL, *noises(0)]
    shares = markdown(
        ["system", *(f"{dataset}: {name}" for dataset in SETS for name in names)],
        (
            [
                system,
                *(
                    f"{100 * own[f'{dataset}/{name}'].mean():.1f}"
                    for dataset in SETS
                    for name in names
                ),
            ]
            for system, own in values.items()
        ),
    )
    orders = markdown(
        [
            "order under",
            *(f"{dataset}: tau with people's" for dataset in SETS),
            f"{SETS[0]}: another seed",
        ],
        (
            [
                name,
                *(with_interval(values, dataset, REAL, name) for dataset in SETS),
                with_interval(values, SETS[0], name, name + AGAIN),
            ]
            for name in names[1:]
        ),
    )
    (given.out / "rankings.md").write_text(f"{orders}\n{shares}", "utf-8")
    print(orders, shares, sep="\n")


if __name__ == "__main__":
    main()
