"""How real noise is, by set and recipe: `noisegen realism` on pairs that nothing was fitted to.

`python -m benchmarks.realism [--set NAME]... [--noise NAME]... [--peers] [--json FILE]` prints the
table of docs/guides/realism.md: every packaged recipe, `channel` with a profile of the other half
of the set, and `fit`: `ugc` fitted to the noisy side of the other half alone. `fit:clean` also got
the clean side of that half, sorted, so that no pair was left. With --peers, other tools as well. A
seed cuts the set anew and gives other noise; figures are means over the seeds, AUCs with half the
distance of the highest from the lowest. All sets take ten minutes on one core without `fit`, which
takes 5 to 20 seconds a set and seed, and an hour with --peers.
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from benchmarks.peer_noise import PEERS, Noiser, calibrated
from benchmarks.real_pairs import SETS, available, load
from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.pairs import Pairs
from noisegen.errors import NoisegenError
from noisegen.noising.recipe import Recipe, recipe_names
from noisegen.realism import learn
from noisegen.realism.figures import RowCounts, measure, row_divergences
from noisegen.realism.fit import fit_texts
from noisegen.realism.kinds import KINDS
from noisegen.realism.learn import profile_of
from noisegen.realism.two_sample import auc, changed, ngram_texts
from noisegen.text.buffers import Bool

ROWS = 1_000  # judged rows per set: an AUC grows with them
FITTED_MAX = 5_000  # pairs that a profile is learned from
HALF = 0.5
FITS = ("fit", "fit:clean")
REAL = "*real*"  # a set against its own clean side, and its halves against each other
IS_SLIGHT = np.array([kind.startswith(("punctuation", "casing", "spaces")) for kind in KINDS])
TITLES = {
    "auc": "AUC",
    "auc_changed": "AUC, changed rows",
    "kinds": "kinds",
    "times_floor": "/ floor",
    "slight": "slight",
    "changed": "changed",
    "cer": "CER",
}


class Figures(NamedTuple):
    """Comparison of noise with the noise of a set; None where too few rows changed.

    AUCs of all rows and of changed rows; divergence of the kinds of edit, and over that of two
    halves of the set; `slight`, share of changed rows in which only punctuation, spaces and
    capitals changed; share of changed rows; character error rate.
    """

    auc: float | None
    auc_changed: float | None
    kinds: float
    times_floor: float | None
    slight: float | None
    changed: float
    cer: float


def compared(
    name: str, seed: int, wanted: Sequence[str] = (), peers: bool = False
) -> Iterator[tuple[str, Figures]]:
    """Yield noises, all or those `wanted`, compared with the half of a set that is held back.

    With `peers`, other tools too: at their default strength, and with the CER of the real noise.
    """
    lang = SETS[name].lang
    # Tools drop spaces at the ends of a text, and a classifier would see it.
    noisy, clean = ([text.strip() for text in side] for side in zip(*load(name), strict=True))
    fitted, held = Pairs(noisy, clean).split(HALF, seed)
    held = held.sample(ROWS)
    noise, real = measure(held.clean, held.noisy, lang)
    yield REAL, figures(held, held, real, lang)
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        others = ("channel", *FITS)
        recipes = {recipe: recipe for recipe in wanted or [*recipe_names(), *others]}
        if "channel" in recipes:
            learn.save(profile_of(fitted.sample(FITTED_MAX), lang), folder)
            recipes["channel"] = f"channel:profile={folder}"
        for title, recipe in recipes.items():
            try:
                chosen = fit_to(fitted, title, lang) if title in FITS else Recipe.named(recipe)
                made = Noising(lang).noise(chosen, held.clean, seed)
            except NoisegenError as error:
                print(f"{name}: no {title}: {error}", file=sys.stderr)
            else:
                yield title, figures(held, Pairs(made, held.clean), real, lang)
    for title, made in peers_noise(lang, held.clean, noise.cer or 0.0, seed) if peers else ():
        yield title, figures(held, Pairs(made, held.clean), real, lang)


def peers_noise(
    lang: str, clean: list[str], error_rate: float, seed: int
) -> Iterator[tuple[str, list[str]]]:
    """Yield (name, noisy texts) of the other tools that know a language.

    Each is shown at its default strength and with an error rate, two of our recipes with that rate.
    """
    for recipe in ("ugc", "mix_all"):
        strength = calibrated(noiser := ours(recipe, lang), clean, error_rate, seed)
        yield f"{recipe}, same CER", noiser(clean, strength, seed)
    for peer in PEERS:
        if theirs := peer.noiser(lang):
            yield peer.name, theirs(clean, 1.0, seed)
            strength = calibrated(theirs, clean, error_rate, seed)
            yield f"{peer.name}, same CER", theirs(clean, strength, seed)


def ours(recipe: str, lang: str) -> Noiser:
    """Return the noise of a packaged recipe as a function of texts, strength and seed."""
    noising, made = Noising(lang), Recipe.named(recipe)
    return lambda texts, strength, seed: noising.noise(made.scaled(strength), texts, seed)


def fit_to(fitted: Pairs, noise: str, lang: str) -> Recipe:
    """Return `ugc` fitted to the noisy side of pairs, and to the clean side for `fit:clean`."""
    some = fitted.sample(FITTED_MAX)
    return fit_texts(some.noisy, sorted(some.clean) if noise == FITS[1] else (), lang=lang).recipe


def figures(held: Pairs, made: Pairs, real: RowCounts, lang: str) -> Figures:
    """Compare noise, or the set itself, with a set's noise, whose edits are counted in `real`."""
    noise, counts = measure(made.clean, made.noisy, lang)
    kinds = row_divergences(real, counts, is_paired=True)["kinds"]
    value, noisy = (kinds.value, made.noisy) if made is not held else (kinds.floor, held.clean)
    edits = counts["kinds"][changed(made)]
    return Figures(
        *aucs(held, noisy, changed(made)),
        kinds=value,
        times_floor=value / kinds.floor if kinds.floor else None,
        slight=1 - float(edits[:, ~IS_SLIGHT].any(axis=1).mean()) if len(edits) else None,
        changed=noise.changed_share or 0.0,
        cer=noise.cer or 0.0,
    )


def aucs(held: Pairs, noisy: list[str], rows: Bool) -> tuple[float | None, float | None]:
    """Return the AUCs of other texts against the texts of a set: all rows, and changed rows."""
    if (texts := ngram_texts(held, Pairs(noisy, held.clean))) is None:
        return None, None
    every = auc(texts, texts.real, texts.synthetic)
    some = auc(texts, texts.real[changed(held)], texts.synthetic[rows])
    return every.value if every else None, some.value if some else None


Means = dict[str, float | None]


def means(runs: Sequence[Figures]) -> Means:
    """Return the mean of every figure, and the spread of the AUCs over the seeds."""
    found: Means = {}
    for name in Figures._fields:
        values = [value for run in runs if (value := getattr(run, name)) is not None]
        found[name] = fmean(values) if values else None
        if name.startswith("auc"):
            found[f"{name}_spread"] = (max(values) - min(values)) / 2 if values else None
    return found


def measured(
    name: str, seeds: int, wanted: Sequence[str] = (), peers: bool = False
) -> dict[str, Means]:
    """Return means over seeds of noises compared with a set."""
    runs = defaultdict(list)
    for seed in range(seeds):
        for noise, found in compared(name, seed, wanted, peers):
            runs[noise].append(found)
    return {noise: means(by_seed) for noise, by_seed in runs.items()}


def line(name: str, noise: str, found: Means) -> str:
    """Return a line of the table."""
    cells = []
    for figure in Figures._fields:
        value, spread = found[figure], found.get(f"{figure}_spread")
        digits = 3 if figure in ("kinds", "cer") else 1 if figure == "times_floor" else 2
        cell = "-" if value is None else f"{value:.{digits}f}"
        cells.append(cell if spread is None else f"{cell} ±{spread:.2f}")
    title = f"{name} ({SETS[name].lang})" if noise == REAL else ""
    return f"| {' | '.join([title, noise, *cells])} |"


def chosen(wanted: Sequence[str]) -> list[str]:
    """Return the sets that are here, by name, beginning of a name, or language."""
    return [
        name
        for name in available()
        if not wanted or {name, name.partition(":")[0], SETS[name].lang} & {*wanted}
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table in Markdown; with --json, write the figures too."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", action="append", default=[], dest="sets", help="name or language")
    parser.add_argument("--noise", action="append", default=[], help="recipe, channel or fit")
    parser.add_argument("--peers", action="store_true", help="other tools that are installed, too")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    print(f"| set | noise | {' | '.join(TITLES.values())} |")
    print("|---|---|" + "---:|" * len(TITLES))
    records = []
    for name in chosen(given.sets):
        found = measured(name, given.seeds, given.noise, given.peers)
        for noise, mean in found.items():
            print(line(name, noise, mean), flush=True)
            records.append({"set": name, "lang": SETS[name].lang, "noise": noise, **mean})
    if given.json:
        given.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
