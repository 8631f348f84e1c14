"""How real noise is, by set and recipe: `noisegen realism` on pairs that nothing was fitted to.

`python -m benchmarks.realism [SET...]` prints the table of docs/realism.md. Dictionaries and
profiles are made from the other pairs of the same set. Takes minutes.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.real_pairs import SETS, available, load
from noisegen.augment.on_the_fly import Noising
from noisegen.data.pairs import Pairs
from noisegen.errors import NoisegenError
from noisegen.mining.mine import mine_pairs
from noisegen.noise.recipe import Recipe
from noisegen.realism import learn
from noisegen.realism.compare import HISTOGRAMS, Realism, compare_pairs
from noisegen.realism.learn import profile_of
from noisegen.realism.two_sample import Auc
from noisegen.text.resources import DICTIONARIES

HELD_MAX = 2_000  # pairs that are judged
AUC_GAIN = 0.1  # over mix_all
HEAD = ("set", "noise", "AUC", "AUC, changed rows", *HISTOGRAMS, "changed", "CER")


def recipes(name: str, pairs: Pairs, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield what a kind of noise is called, and its recipe; what cannot be made is left out."""
    lang, fitted = SETS[name].lang, pairs.split()[0]
    yield "mix_all", "mix_all"
    yield "wiki", _wiki(lang, fitted, folder)
    yield "ugc", "ugc"
    learn.save(profile_of(fitted, lang), folder / "profile")
    yield "channel", f"channel:profile={folder / 'profile'}"


def _wiki(lang: str, fitted: Pairs, folder: Path) -> str:
    """Return wiki with its packaged dictionary, or with one mined from the fitted pairs."""
    if (DICTIONARIES / lang / "wiki.tsv").exists():
        return "wiki"
    table = pa.table({"noisy": fitted.noisy, "clean": fitted.clean})
    pq.write_table(table, folder / "fitted.parquet")
    mine_pairs([str(folder / "fitted.parquet")], folder / "mined", lang=lang, profile="all")
    return f"wiki:dictionary={folder / 'mined' / 'dictionary.parquet'}"


def compared(name: str) -> Iterator[tuple[str, Realism]]:
    """Yield the noises that there are for a set, each compared with the pairs held back."""
    noisy, clean = map(list, zip(*load(name), strict=True))
    pairs, lang = Pairs(noisy, clean), SETS[name].lang
    held = pairs.split()[1].sample(HELD_MAX)
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        for noise, recipe in recipes(name, pairs, Path(folder)):
            began = time.monotonic()
            try:
                made = Noising(lang).noise(Recipe.named(recipe), held.clean)
            except NoisegenError as error:
                print(f"{name}: no {noise}: {error}", file=sys.stderr)
                continue
            yield noise, compare_pairs(held, Pairs(made, held.clean), lang=lang)
            print(f"{name}, {noise}: {time.monotonic() - began:.0f} s", file=sys.stderr)


def lines(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table for a set: first what halves of it differ by, then the noises."""
    found = dict(compared(name))
    first = next(iter(found.values()))
    floors = (f"{first.divergences[one].floor:.3f}" for one in HISTOGRAMS)
    rates = f"{first.real.changed_share:.2f}", f"{first.real.cer:.3f}"
    yield f"{name} ({SETS[name].lang})", "*real halves*", "", "", *floors, *rates
    for noise, one in found.items():
        aucs = _auc(one.two_sample.all_rows), _auc(one.two_sample.changed_rows)
        values = (f"{one.divergences[key].value:.3f}" for key in HISTOGRAMS)
        rates = f"{one.synthetic.changed_share:.2f}", f"{one.synthetic.cer:.3f}"
        marked = f"**{noise}**" if noise != "mix_all" and _nearer(one, found["mix_all"]) else noise
        yield "", marked, *aucs, *values, *rates


def _auc(found: Auc | None) -> str:
    return f"{found.value:.2f}" if found else "-"


def _nearer(one: Realism, other: Realism) -> bool:
    """Tell whether noise reaches the goal against other noise.

    It is nearer by every divergence, and `AUC_GAIN` harder to tell.
    """
    aucs = one.two_sample.all_rows, other.two_sample.all_rows
    return bool(
        all(one.divergences[key].value < other.divergences[key].value for key in HISTOGRAMS)
        and aucs[0]
        and aucs[1]
        and aucs[0].value <= aucs[1].value - AUC_GAIN
    )


def main() -> None:
    """Print the table in Markdown; noise in bold reaches the goal against mix_all."""
    names = sys.argv[1:] or available()
    print(f"| {' | '.join(HEAD)} |".replace("_", " "))
    print("|---|---|" + "---:|" * (len(HEAD) - 2))
    for name in names:
        for line in lines(name):
            print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
