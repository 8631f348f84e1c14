"""The two sets of a comparison: read from files, or made by a recipe."""

from collections.abc import Callable, Sequence

from noisegen.errors import UsageError
from noisegen.realism import comparison
from noisegen.realism.comparison import ROWS_MAX, Realism
from noisegen.realism.noising import Noising
from noisegen.realism.pairs import Pairs, read_pairs
from noisegen.recipe import Recipe


def compare(
    real: Sequence[str],
    synthetic: Sequence[str] = (),
    *,
    recipe: str | None = None,
    seed: int = 0,
    lang: str = "en",
    noisy_column: str = "noisy",
    clean_column: str = "clean",
    clean_file: str | None = None,
    rows_max: int = ROWS_MAX,
    progress: Callable[[str], None] = lambda _: None,
) -> Realism:
    """Read real pairs and compare them with synthetic ones, or with what a recipe makes of them.

    `real`, `synthetic`, the columns and `clean_file` are those of `pairs.read_pairs`; a folder of
    `synthetic` has the columns noisy and clean. Raises NoisegenError.
    """
    if bool(synthetic) == (recipe is not None):
        raise UsageError("give either --synthetic or --recipe")
    progress("reading")
    ours = read_pairs(
        list(real), noisy_column=noisy_column, clean_column=clean_column, clean_file=clean_file
    )
    if recipe is None:
        theirs = read_pairs(list(synthetic))
    else:
        theirs = noised(ours.sample(rows_max).clean, recipe, seed, lang)
    return comparison.compare(ours, theirs, lang=lang, rows_max=rows_max, progress=progress)


def noised(clean: Sequence[str], recipe: str, seed: int, lang: str) -> Pairs:
    """Return clean texts with the noise of a recipe; row numbers are the ids.

    Steps without data for the language are left out; raises UsageError if none is left.
    """
    return Pairs(Noising(lang).noise(Recipe.named(recipe), clean, seed), list(clean))
