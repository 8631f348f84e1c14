"""`noisegen calibrate` against its promise: target rates are met.

`python -m benchmarks.calibration` prints the expected rate that recipes scaled to 1 to 15 % have
with other draws.
"""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from noisegen.augmentation.on_the_fly import Noising
from noisegen.errors import UsageError
from noisegen.noising.recipe import Recipe
from noisegen.realism.calibrate import RateEstimator, calibrate_rate, demo_texts

TARGETS = (0.01, 0.03, 0.08, 0.15)
CHECKED_ROWS = 100_000
RATES = (
    *((name, "en") for name in ("mix_all", "ugc", "fing", "spel", "spac")),
    *((name, lang) for name in ("mix_all", "ugc") for lang in ("de", "es", "tr", "hi")),
)


def rate_rows() -> Iterator[tuple[str, ...]]:
    """Yield recipe, language, and per target the miss in per cent, or the rate within reach."""
    for name, lang in RATES:
        texts = demo_texts(lang)
        cells = [_miss(Recipe.named(name), texts, target, lang) for target in TARGETS]
        yield name, lang, *cells


def _miss(recipe: Recipe, texts: list[str], target: float, lang: str) -> str:
    noising = Noising(lang, tagger="rule")
    try:
        made = calibrate_rate(recipe, RateEstimator(texts, noising=noising), target)
    except UsageError as error:
        return str(error).rpartition(" ")[2] + " at most"
    used = [text for number, text in enumerate(texts) if number % 3]
    found = RateEstimator(used, noising=noising, seed=99).rate(made.recipe, CHECKED_ROWS)
    return f"{found.value / target - 1:+.1%} (s.e. {found.error / target:.1%})"


def main() -> None:
    """Print the table."""
    table = Table("recipe", "lang", *map(str, TARGETS))
    for row in rate_rows():
        print(*row, sep="\t", flush=True)
        table.add_row(*row)
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
