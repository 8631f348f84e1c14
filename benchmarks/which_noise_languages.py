"""Which noise teaches in ten languages: `python -m benchmarks.which_noise_languages TEXTS -o DIR`.

As `benchmarks.which_noise`, with the text, the settings and the teacher of the preset `robust-e5`,
multilingual e5: a student of an arm learns all languages at once. The arms are kinds of noise that
exist in each of the languages; letters and typos have the character error rate of `ugc` in the
language. glitchlings knows the English keyboard alone. TEXTS is the folder that `python -m
benchmarks.multilingual_text` writes, with the pairs that students are judged on.
"""

import argparse
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.development import (
    ANCHORED,
    Values,
    anchors,
    markdown,
    mean_values,
    slug,
    student_values,
)
from benchmarks.multilingual_text import LANGS as ALL_LANGS
from benchmarks.natural_noise import write_pairs
from benchmarks.which_noise import CONTROL, NO_WORDS, Noiser, differences, of_peer, of_recipe, train
from noisegen.encoders.encoder import open_encoder
from noisegen.evaluation.findings import ALPHA
from noisegen.evaluation.results import EvaluateOptions
from noisegen.evaluation.sets import make_sets
from noisegen.evaluation.statistics import holm
from noisegen.noising.recipe import Recipe
from noisegen.runs.atomic import write_text
from noisegen.runs.progress import silent

TEACHER, PRESET = "e5", "robust-e5"
LANGS = tuple(lang for lang in ALL_LANGS if lang not in ("en", "vi"))
PEERS = ("glitchlings typos", "textnoisr")
RECIPES = ("mix_all", "ugc", "ugc-heavy")
ARMS = (CONTROL, *PEERS, *RECIPES)
OURS = RECIPES[1:]  # arms that are tested against the best of other tools
TEXTS = 1_000  # of a language: the teacher reads each of them


def noiser(arm: str, lang: str) -> Noiser:
    """Return the noise of an arm in a language."""
    if arm == CONTROL:
        return list
    if arm in PEERS:
        return of_peer(arm, "ugc", lang=lang)
    return of_recipe(Recipe.named(arm), lang=lang)


def make_pairs(arm: str, texts: Mapping[str, list[str]], path: Path) -> Path:
    """Write the training pairs of an arm, in all languages, unless they are there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        noisy = (zip(noiser(arm, lang)(clean), clean, strict=True) for lang, clean in texts.items())
        write_pairs(path, chain.from_iterable(noisy))
    return path


def main_table(values: Mapping[str, Sequence[Values]]) -> str:
    """Return how much nearer than the control arm each arm brings each language, and mean drift."""
    mean = mean_values(values)
    rows = []
    for arm, figures in mean.items():
        nearer = [
            mean[CONTROL][f"{lang}/{ANCHORED}"] / figures[f"{lang}/{ANCHORED}"] for lang in LANGS
        ]
        drift = fmean(figures[f"{lang}/drift"] for lang in LANGS)
        rows.append([arm, *(f"{value:.2f}" for value in [*nearer, fmean(nearer)]), f"{drift:.4f}"])
    return markdown(["noise", *LANGS, "mean", "drift"], rows)


def tests_table(values: Mapping[str, Sequence[Values]]) -> str:
    """Return in how many languages our noise is better or worse than the best of other tools.

    The best is chosen in each language. P-values are corrected after Holm over languages and arms.
    """
    peers = [name for name in PEERS if name in values]
    ours = [name for name in OURS if name in values]
    if not peers or not ours:
        return "No noise of other tools to test ours against."
    found = []
    for lang in LANGS:
        key = f"{lang}/{ANCHORED}"
        best = min(peers, key=lambda name: fmean(seed[key].mean() for seed in values[name]))
        found += [differences(values[name], values[best], key) for name in ours]
    tests = np.array(found).reshape(len(LANGS), len(ours), -1, 2)
    rows = []
    for number in range(tests.shape[2]):
        corrected = holm(tests[:, :, number, 1].ravel()).reshape(len(LANGS), len(ours))
        signs = np.where(corrected < ALPHA, np.sign(tests[:, :, number, 0]), 0)
        rows += [
            (number, name, (of_name < 0).sum(), (of_name > 0).sum())
            for name, of_name in zip(ours, signs.T, strict=True)
        ]
    return markdown(["seed", "noise", "better in languages", "worse in languages"], rows)


def main() -> None:
    """Read the arguments; make noise, train, measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path, help="folder of benchmarks.multilingual_text")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10, help="CPU time of each training")
    parser.add_argument("--arms", nargs="+", default=ARMS, choices=ARMS, metavar="ARM")
    given = parser.parse_args()
    arms = [arm for arm in ARMS if arm in (CONTROL, *given.arms)]
    texts = {
        lang: (given.texts / f"{lang}.txt").read_text("utf-8").splitlines()[:TEXTS]
        for lang in LANGS
    }
    noise = given.out / "noise"
    pairs = {arm: make_pairs(arm, texts, noise / f"{slug(arm)}.csv") for arm in arms}
    train(pairs[CONTROL], given.out / "teacher", PRESET, steps=1, **NO_WORDS)  # vectors are kept
    judged = tuple(f"{lang}={given.texts}/pairs/{lang}.csv" for lang in LANGS)
    options = EvaluateOptions(models=(TEACHER,), out="", pairs=judged, hard=False)
    sets = make_sets(options, silent).sets
    anchored = anchors(sets, open_encoder(TEACHER))

    def values_of_run(arm: str, seed: int) -> Values:
        run = given.out / f"students-{given.minutes:g}m" / f"{slug(arm)}-{seed}"
        limit = f"{60 * given.minutes:g}s"
        train(pairs[arm], run, PRESET, seed=seed, cpu_limit=limit, **NO_WORDS)
        path = given.out / f"values-{given.minutes:g}m" / f"{run.name}.npz"
        return student_values(run / "student", path, str(LANGS), sets, anchored)

    values = {arm: [values_of_run(arm, seed) for seed in range(given.seeds)] for arm in arms}
    tables = [main_table(values), tests_table(values)]
    write_text(given.out / "which_noise_languages.md", "\n".join(tables))
    print(*tables, sep="\n")


if __name__ == "__main__":
    main()
