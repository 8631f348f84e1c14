"""`noisegen calibrate` against its promises: target rates met, real pairs come nearer.

`python -m benchmarks.calibration rates` prints the expected rate that recipes scaled to 1 to 15 %
have with other draws; `... real` prints the divergences of the real sets before and after a fit.
"""

import sys
import time
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from benchmarks.real_pairs import SETS, available, load
from noisegen.errors import UsageError
from noisegen.realism.calibrated import Figure
from noisegen.realism.calibration import demo_texts
from noisegen.realism.noising import Noising
from noisegen.realism.pairs import Pairs
from noisegen.realism.real_fit import calibrate_pairs
from noisegen.realism.target_rate import Measure, calibrate_rate
from noisegen.recipe import Recipe

TARGETS = (0.01, 0.03, 0.08, 0.15)
CHECKED_ROWS = 100_000
RATES = (
    *((name, "en") for name in ("mix_all", "ugc", "fing", "spel", "spac")),
    *((name, lang) for name in ("mix_all", "ugc") for lang in ("de", "es", "tr", "hi")),
)
TITLES = {
    "kinds, divergence": "kinds", "edits per row, divergence": "edits per row",
    "sentence positions, divergence": "sentence", "word positions, divergence": "word",
    "changed rows": "changed", "CER": "CER", "WER": "WER",
}  # fmt: skip


def rate_rows() -> Iterator[tuple[str, ...]]:
    """Yield recipe, language, and for each target the miss in per cent, or what is in reach."""
    for name, lang in RATES:
        texts = demo_texts(lang)
        cells = [_miss(Recipe.named(name), texts, target, lang) for target in TARGETS]
        yield name, lang, *cells


def _miss(recipe: Recipe, texts: list[str], target: float, lang: str) -> str:
    noising = Noising(lang, tagger="rule")
    try:
        made = calibrate_rate(recipe, texts, target, "cer", noising)
    except UsageError as error:
        return str(error).rpartition("it has ")[2].partition(";")[0] + " at most"
    used = [text for number, text in enumerate(texts) if number % 3]
    found = Measure(used, "cer", noising, seed=99).rate(made.recipe, CHECKED_ROWS)
    return f"{found.value / target - 1:+.1%} (s.e. {found.error / target:.1%})"


def real_rows(recipe: str, names: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield set, seconds, and for each figure: real, as given, fitted."""
    for name in names:
        noisy, clean = zip(*load(name), strict=True)
        lang, began = SETS[name].lang, time.perf_counter()
        made = calibrate_pairs(
            Recipe.named(recipe), Pairs(list(noisy), list(clean)), name,
            Noising(lang, tagger="rule"), "fitted", seed=0, rounds=6,
        )  # fmt: skip
        figures = {one.name: one for one in made.figures}
        seconds = f"{time.perf_counter() - began:.0f}"
        yield name, lang, seconds, *(_sides(figures[title]) for title in TITLES)


def _sides(figure: Figure) -> str:
    return f"{figure.target:.3f} {figure.given:.3f} {figure.reached:.3f}"


def main() -> None:
    """Print one of the tables."""
    what, *chosen = sys.argv[1:] or ["rates"]
    if what == "rates":
        columns, rows = ("recipe", "lang", *map(str, TARGETS)), rate_rows()
    else:
        recipe, *names = chosen or ["ugc"]
        columns = ("set", "lang", "s", *TITLES.values())
        rows = real_rows(recipe, names or available())
    table = Table(*columns)
    for row in rows:
        print(*row, sep="\t", flush=True)
        table.add_row(*row)
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
