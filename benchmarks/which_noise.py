"""Which noise teaches: `python -m benchmarks.which_noise TEXT -o DIR`.

Students of MiniLM differ in the noise of their training pairs alone; the arm "pairs" has other
text, too. Text, settings and CPU time are those of the preset `robust-minilm`. Only with `--words`
are noisy words, found in the noise of each arm, and misspellings tokens. Each noise is made once,
`noise/ARM.csv`. "none" has clean text on both sides: it is the control arm. The noise of other
tools has the character error rate of `ugc` or, as "heavy", of `ugc-heavy`. "fit" is fitted to the
noisy side of tweets from the train part of MultiLexNorm2, and "pairs" are these tweets with their
clean form. "robust-minilm" has the noise of the preset, which is drawn anew in each epoch. What is
there already is not made again. TEXT is the output of `python -m benchmarks.natural_text`.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from statistics import fmean

import numpy as np

from benchmarks.arms_figure import NO_NOISE, NOISEGEN, OTHERS, REAL, arms_page
from benchmarks.development import (
    ANCHORED,
    HARD,
    SETS,
    TEACHER,
    TWEETS,
    Values,
    anchors,
    development_sets,
    errors_of,
    markdown,
    mean_values,
    slug,
    student_values,
    tweets,
)
from benchmarks.natural_noise import ROWS, write_pairs
from benchmarks.peer_noise import PEERS, calibrated, cer
from noisegen.augmentation.on_the_fly import Noising
from noisegen.encoders.encoder import open_encoder
from noisegen.evaluation.findings import ALPHA
from noisegen.evaluation.statistics import holm, mean_differences
from noisegen.noising.recipe import Recipe
from noisegen.realism.fit import fit_texts
from noisegen.runs.atomic import write_text

CONTROL, FIT, PAIRS, SEED = "none", "fit", "pairs", 1
PRESET = "robust-minilm"
SETTINGS = {"recipe": "stored", "noisy_words_also": "", "precision": "fp32"}
NO_WORDS = {"noisy_words": 0, "misspellings": 0}
# Settings of the arm PRESET: the noise is drawn anew in each epoch, as the preset does
DRAWN = {"recipe": "ugc-heavy", "noisy_words_also": "spel"}
MIXED = "ugc-heavy+learner+spel"  # a third of the texts each
# Arms that are tested against the best of other tools
OURS = ("ugc", "ugc-heavy", MIXED, FIT, PRESET)

Noiser = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Arm:
    """The noise of one row of the table; `make` returns the noisy form of each text."""

    name: str
    make: Noiser
    package: str = ""  # of another tool

    @property
    def is_here(self) -> bool:
        """Whether all that the noise needs is installed or beside the clone."""
        if self.package:
            return find_spec(self.package) is not None
        return self.name != FIT or TWEETS in SETS


def of_recipe(recipe: Recipe, seed: int = SEED, lang: str = "en") -> Noiser:
    """Return the noise of a recipe in a language."""
    return lambda texts: Noising(lang).noise(recipe, texts, seed)


def in_turn(names: str) -> Noiser:
    """Return the noise of recipes joined by "+": texts get one of them in turn."""
    noisers = [of_recipe(Recipe.named(name)) for name in names.split("+")]

    def noise(texts: list[str]) -> list[str]:
        noisy = list(texts)
        for first, noiser in enumerate(noisers):
            noisy[first :: len(noisers)] = noiser(texts[first :: len(noisers)])
        return noisy

    return noise


def of_peer(name: str, like: str, seed: int = SEED, lang: str = "en") -> Noiser:
    """Return the noise of another tool, as strong as the recipe `like` by character error rate."""
    peer = next(peer for peer in PEERS if peer.name == name)

    def noise(texts: list[str]) -> list[str]:
        noiser = peer.noiser(lang)
        if noiser is None:
            raise ModuleNotFoundError(f"{name}: install {peer.package}")
        wanted = cer(texts, of_recipe(Recipe.named(like), lang=lang)(texts))
        return noiser(texts, calibrated(noiser, texts, wanted, SEED), seed)

    return noise


@cache
def fitted() -> Recipe:
    """Return a recipe fitted to the noisy side of tweets, without their clean form."""
    return fit_texts([noisy for noisy, _ in tweets("train")]).recipe


_AT_UGC = ("glitchlings, four kinds", "multypo", "nlpaug spelling", "textnoisr")
_AT_UGC_HEAVY = ("glitchlings, four kinds", "multypo")
_ALL = (
    Arm(CONTROL, lambda texts: texts),
    Arm("mix_all", of_recipe(Recipe.named("mix_all"))),
    *(Arm(name, of_peer(name, "ugc"), name.split()[0].strip(",")) for name in _AT_UGC),
    *(
        Arm(f"{name}, heavy", of_peer(name, "ugc-heavy"), name.split()[0].strip(","))
        for name in _AT_UGC_HEAVY
    ),
    Arm("channel", of_recipe(Recipe.named("channel"))),
    Arm("learner", of_recipe(Recipe.named("learner"))),
    Arm("ugc", of_recipe(Recipe.named("ugc"))),
    Arm("ugc-heavy", of_recipe(Recipe.named("ugc-heavy"))),
    Arm(MIXED, in_turn(MIXED)),
    Arm(FIT, lambda texts: of_recipe(fitted())(texts)),
)
ARMS = tuple(arm for arm in _ALL if arm.is_here)
MISSING = {arm.name for arm in _ALL if not arm.is_here}
NAMES = (*(arm.name for arm in ARMS), *([PAIRS] if TWEETS in SETS else []))
# Arms of the table with words as tokens
WITH_WORDS = (
    CONTROL,
    "glitchlings, four kinds",
    "nlpaug spelling",
    "textnoisr",
    "ugc-heavy",
    MIXED,
    PRESET,
)


def make_noise(names: Sequence[str], texts: list[str], folder: Path) -> dict[str, float]:
    """Write the pairs of the arms that the folder lacks; return their character error rates."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rates.json"
    rates: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    for arm in ARMS:
        if arm.name in names and arm.name not in rates:
            noisy = arm.make(texts)
            write_pairs(folder / f"{slug(arm.name)}.csv", zip(noisy, texts, strict=True))
            rates[arm.name] = cer(texts, noisy)
            write_text(path, json.dumps(rates, indent=1))
            print(f"{arm.name}: character error rate {rates[arm.name]:.4f}", flush=True)
    if PAIRS in names:
        write_pairs(folder / f"{PAIRS}.csv", tweets("train"))
    return rates


def train(pairs: Path, run: Path, preset: str = PRESET, **limits: object) -> None:
    """Train a student on pairs, on one core, unless it is there."""
    if (run / "metrics.json").exists():
        return
    command = [sys.executable, "-m", "noisegen", "train", str(pairs), "-o", str(run), "--force"]
    settings = [f"--set={key}={value}" for key, value in {**SETTINGS, **limits}.items()]
    subprocess.run(
        [*command, f"--preset={preset}", "--quiet", *settings],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    rmtree(run / "checkpoints")  # half a gigabyte
    print(f"trained {run.name}", flush=True)


def kind_of(name: str) -> str:
    """Return whose noise an arm has, one of the kinds of `arms_figure`."""
    if name in (CONTROL, PAIRS):
        return NO_NOISE if name == CONTROL else REAL
    others = {"mix_all", *(arm.name for arm in _ALL if arm.package)}  # mix_all is RoLASER's
    return OTHERS if name in others else NOISEGEN


def differences(
    ours: Sequence[Values], theirs: Sequence[Values], key: str
) -> list[tuple[float, float]]:
    """Return the mean difference of each seed, ours minus theirs, and its two-sided p-value."""
    tests = [
        mean_differences({key: mine[key]}, {key: other[key]})[key]
        for mine, other in zip(ours, theirs, strict=True)
    ]
    return [(test.value, test.p) for test in tests]


def main_table(values: Mapping[str, Sequence[Values]], rates: Mapping[str, float]) -> str:
    """Return the table of all arms; figures are means over rows and seeds."""
    mean = mean_values(values)
    titles = ["noise", "CER"]
    for dataset in SETS:
        titles += [f"{dataset}: nearer", "drift", "xSIM", *(["hard"] if dataset in HARD else [])]
    rows = []
    for name, of_arm in mean.items():
        row = [name, f"{rates[name]:.3f}" if name in rates else ""]
        for dataset in SETS:
            nearer = mean[CONTROL][f"{dataset}/{ANCHORED}"] / of_arm[f"{dataset}/{ANCHORED}"]
            errors = (of_arm[f"{dataset}/{metric}"] for metric in errors_of(dataset))
            row += [f"{nearer:.2f}", f"{of_arm[f'{dataset}/drift']:.4f}"]
            row += [f"{error:.1f}" for error in errors]
        row += [f"{of_arm[f'STS/{metric}']:.1f}" for metric in ("sts_clean", "sts_one_noisy")]
        rows.append(row)
    return markdown([*titles, "STS", "STS, noisy"], rows)


def tests_table(values: Mapping[str, Sequence[Values]]) -> str:
    """Return the table of our noise against the best of other tools, by anchored distance.

    The best is chosen set by set, by the mean over the seeds. P-values are corrected after Holm
    over the arms and sets of a seed.
    """
    peers = [arm.name for arm in ARMS if arm.package and arm.name in values]
    ours = [name for name in OURS if name in values]
    if not peers or not ours:
        return "No noise of other tools to test ours against."
    cells, found = [], []
    for dataset in SETS:
        key = f"{dataset}/{ANCHORED}"
        distance = {
            name: fmean(float(seed[key].mean()) for seed in seeds) for name, seeds in values.items()
        }
        best = min(peers, key=distance.__getitem__)
        for name in ours:
            cells.append((dataset, name, best, distance[best] / distance[name]))
            found.append(differences(values[name], values[best], key))
    tests = np.array(found)  # shape (cells, seeds, 2)
    corrected = np.stack([holm(column) for column in tests[:, :, 1].T], axis=1)
    signs = np.where(corrected < ALPHA, np.sign(tests[:, :, 0]), 0)
    return markdown(
        ["set", "noise", "best of other tools", "nearer than it", "better, worse in seeds"],
        [
            (*names, f"{ratio:.2f}", f"{(row < 0).sum()}, {(row > 0).sum()} of {len(row)}")
            for (*names, ratio), row in zip(cells, signs, strict=True)
        ],
    )


def main() -> None:
    """Read the arguments; make noise, train, measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="clean sentences, one per line")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=10, help="CPU time of each training")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at once, a core each")
    parser.add_argument("--rows", type=int, default=ROWS, help="most rows of a set")
    parser.add_argument(
        "--words", action="store_true", help="with the arm's noisy words and misspellings as tokens"
    )
    parser.add_argument(
        "--arms", nargs="+", choices=(*NAMES, PRESET), metavar="ARM", help="rows of the table"
    )
    given = parser.parse_args()
    texts = given.text.read_text("utf-8").splitlines()
    arms = given.arms or (WITH_WORDS if given.words else NAMES)
    names = [name for name in (*NAMES, PRESET) if name in (CONTROL, *arms)]
    rates = make_noise(names, texts, given.out / "noise")
    kind = f"{given.minutes:g}m{'-words' * given.words}"
    students = given.out / f"students-{kind}"
    pairs = {name: given.out / "noise" / f"{slug(name)}.csv" for name in names}
    pairs[PRESET] = pairs[CONTROL]
    train(pairs[CONTROL], given.out / "teacher", steps=1, **NO_WORDS)  # its vectors are kept
    limits = {"cpu_limit": f"{60 * given.minutes:g}s", **({} if given.words else NO_WORDS)}
    settings = {name: limits | (DRAWN if name == PRESET else {}) for name in names}
    pool = ThreadPoolExecutor(given.jobs)
    runs = [
        pool.submit(
            train, pairs[name], students / f"{slug(name)}-{seed}", seed=seed, **settings[name]
        )
        for seed in range(given.seeds)
        for name in names
    ]
    try:
        for run in runs:
            run.result()
    finally:
        pool.shutdown(cancel_futures=True)
    sets = development_sets(given.out / "sets", given.rows)
    anchored = anchors(sets, open_encoder(TEACHER))

    def values_of_run(name: str, seed: int) -> Values:
        run = students / f"{slug(name)}-{seed}"
        path = given.out / f"values-{kind}" / f"{run.name}.npz"
        return student_values(run / "student", path, f"{SETS} {given.rows}", sets, anchored)

    values = {name: [values_of_run(name, seed) for seed in range(given.seeds)] for name in names}
    tables = [main_table(values, rates), tests_table(values)]
    page = given.out / f"which_noise{'-words' * given.words}.html"
    write_text(page.with_suffix(".md"), "\n".join(tables))
    kinds = {name: kind_of(name) for name in values}
    write_text(page, arms_page(values, kinds, CONTROL))
    print(*tables, sep="\n")


if __name__ == "__main__":
    main()
