"""Scale a recipe until its expected rate of character or word errors reaches a target.

The error rate is the number of errors divided by the characters (or words) of the clean texts.
Every `rate` and `p` of the recipe is multiplied by one factor, which is searched. The error rates
of all factors are measured with the same random draws, so that they do not differ by chance. A
rough search uses few rows; a fine search then uses enough rows for the wanted standard error.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from noisegen.augmentation import AnyRecipe, Code, Protect, Tagger, Transforms
from noisegen.augmentation.catalog import demo_texts
from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.columns import by_reason
from noisegen.data.texts import read_texts
from noisegen.errors import UsageError
from noisegen.noising import registry
from noisegen.noising.recipe import Recipe, file_text
from noisegen.noising.scaling import DIGITS
from noisegen.options import Strings, argument, decode, internal, listed, option, public
from noisegen.runs import executors
from noisegen.runs.atomic import write_text
from noisegen.runs.manifest import counted
from noisegen.runs.options import ALONE, Lang, TextColumn, WorkerOptions
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.alignment import character_errors, word_errors
from noisegen.text.languages import normalize_language
from noisegen.text.notebook import folded
from noisegen.text.resources import DEFAULT_RECIPE
from noisegen.text.spans import PROTECTED

TEXTS_MAX = 20_000  # most texts read from a source
PRECISION = 0.004  # wanted standard error in the fine search, as a share of the rate
NEAR = 0.001  # the search ends when the rate differs from the target by this share of the target
# Rows per measurement in the rough search, their maximum in the fine search; rows per call
ROUGH_ROWS, ROWS_MAX, BLOCK_ROWS = 4_000, 400_000, 20_000
BLOCKS_MIN = 2  # minimum blocks of rows per process, since a process takes a second to start
# A target that exceeds the rate at the highest factor by this many standard errors is out of reach
SURE = 6
FEW_TEXTS = 30  # texts; a calibration on fewer texts gives a warning
HELD_BACK = 3  # one text in this many is kept out of the search, for the check
HALVINGS_MAX, STEPS_MAX = 40, 40  # maximum divisions in `_bracket`, maximum iterations in `_root`
CLOSE = 1e-6  # the search also ends when the logarithms of its two factors differ by less
# Error rate -> (function that counts characters or words, function that counts errors)
FIGURES: dict[str, tuple[Callable[[str], int], Callable[[str, str], int]]] = {
    "cer": (len, character_errors),
    "wer": (lambda text: len(text.split()), word_errors),
}

Distance = Callable[[float], float]  # factor -> rate / target - 1


@dataclass(frozen=True)
class CalibrateOptions(WorkerOptions):
    """Options of a calibration: a recipe, the error rate to reach (0.05 is 5 %), clean text."""

    recipe: Annotated[AnyRecipe, option("Recipe to scale", metavar="NAME|FILE.yaml")] = (
        DEFAULT_RECIPE
    )
    _: KW_ONLY
    transforms: Transforms = ()
    source: Annotated[Strings, argument("[SOURCE...]")] = ()
    target_cer: Annotated[float | None, option("Character error rate", metavar="SHARE")] = None
    target_wer: Annotated[float | None, option("Word error rate", metavar="SHARE")] = None
    lang: Lang = "en"
    text_column: TextColumn = "text"
    seed: Annotated[int, option("Seed of the noise that is measured")] = 0
    protect: Protect = PROTECTED
    tagger: Tagger = "rule"
    code: Code = ()
    values: Annotated[Mapping[str, object] | None, internal()] = None
    name: Annotated[str | None, internal()] = None
    tell: Annotated[Callable[[str], None], internal()] = silent
    progress: Annotated[Show, internal()] = silent

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.target_cer is None) == (self.target_wer is None):
            raise UsageError("give one of --target-cer and --target-wer")


@dataclass(frozen=True)
class RateEstimate:
    """An error rate measured on `rows` rows, and its standard error in two cases.

    `error`: the same texts are noised again, with other random draws.
    `error_between`: other, similar texts are noised.
    """

    value: float
    error: float
    error_between: float
    rows: int


class Block(NamedTuple):
    """Rows `first` to `stop` - 1, which are noised in one call.

    `number` is the index of the block; it determines the random draws, together with the seed.
    """

    number: int
    first: int
    stop: int


@dataclass(frozen=True)
class RateEstimator:
    """Estimator of the error rate that a recipe causes in `texts`.

    `figure` is "cer" (errors per character) or "wer" (errors per word). `code` are Python files
    with transforms, which each worker loads. `block_rows` rows are noised in one call.
    """

    texts: Sequence[str]
    figure: str = "cer"
    noising: Noising = field(default_factory=Noising)
    seed: int = 0
    workers: WorkerOptions = ALONE
    code: tuple[Path, ...] = ()
    block_rows: int = BLOCK_ROWS

    def rate(self, recipe: Recipe, rows: int) -> RateEstimate:
        """Return the error rate of a recipe over `rows` rows.

        The texts are repeated until there are `rows` rows; each row has its own random draws. The
        rate is the sum of all errors divided by the sum of all characters (or words). Linearisation
        gives the standard errors of this ratio.
        """
        size, _ = FIGURES[self.figure]
        errors = np.array(self._all_errors(recipe, rows))
        sizes = np.resize(np.array(list(map(size, self.texts)), np.float64), rows)
        value = float(errors.sum() / sizes.sum())
        residuals = errors - value * sizes
        text_numbers = np.resize(np.arange(len(self.texts)), rows)
        residuals_of_texts = np.bincount(text_numbers, residuals, len(self.texts))
        error = float(np.sqrt(residuals @ residuals) / sizes.sum())
        error_between = float(np.sqrt(residuals_of_texts @ residuals_of_texts) / sizes.sum())
        return RateEstimate(value, error, error_between, rows)

    def _all_errors(self, recipe: Recipe, rows: int) -> list[int]:
        """Return the number of errors in each row; the workers count block by block."""
        blocks = [
            Block(number, first, min(first + self.block_rows, rows))
            for number, first in enumerate(range(0, rows, self.block_rows))
        ]
        most = max(1, len(blocks) // BLOCKS_MIN)
        workers = replace(self.workers, workers=min(self.workers.workers, most))
        count_errors = partial(replace(self, workers=ALONE).errors, recipe)
        with closing(workers.in_order(count_errors, blocks)) as parts:
            return list(chain.from_iterable(parts))

    def errors(self, recipe: Recipe, block: Block) -> list[int]:
        """Return the number of errors in each row of a block."""
        registry.load_code(*self.code)
        clean = [self.texts[row % len(self.texts)] for row in range(block.first, block.stop)]
        noisy = self.noising.noise(recipe, clean, self.seed, block.number)
        _, errors_of = FIGURES[self.figure]
        return list(map(errors_of, clean, noisy))


@dataclass(frozen=True)
class Calibrated:
    """A recipe scaled by `factor`, with its error rates.

    `given` and `reached` are the rates of the original and of the scaled recipe on the texts of the
    search; `texts` counts these texts. `check` is the rate of the scaled recipe on `texts_checked`
    other texts, with another seed. `about` are the comment lines at the beginning of the recipe
    file; they quote no text of the source. `extends` is the name or file of the original recipe, ''
    if no file can name it.
    """

    recipe: Recipe
    title: str  # CER or WER
    target: float
    factor: float
    given: RateEstimate
    reached: RateEstimate
    check: RateEstimate
    texts: int
    texts_checked: int
    about: tuple[str, ...]
    # Dropped rows and unread files of the source, counted by reason
    dropped: Mapping[str, int] = field(default_factory=dict)
    extends: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """The recipe file as plain data: the factor, or the whole recipe if `extends` is ''."""
        if not self.extends:
            return self.recipe.to_dict()
        return {"name": self.recipe.name, "extends": self.extends, "scale": self.factor}

    @property
    def warnings(self) -> list[str]:
        """Reasons why the rates are uncertain, one line each."""
        lines, reached, check = [], self.reached, self.check
        few = f"{counted(self.texts, 'text')} may not stand for others"
        if self.dropped:
            lines.append(f"dropped or damaged: {by_reason(self.dropped)}")
        if reached.error > 0.01 * reached.value:
            share = f"{reached.error / reached.value:.1%}"
            lines.append(f"the standard error of the rate over {reached.rows:,} rows is {share}")
        if self.texts < FEW_TEXTS:
            lines.append(f"{few}; give more")
        elif check.error_between > 0.02 * check.value:
            share = f"{check.error_between / check.value:.1%}"
            lines.append(f"{few}: the standard error between texts is {share}; give more")
        return lines

    def __repr__(self) -> str:
        reached = f"{self.title} {self.reached.value:.4f} for {self.target:g}"
        return f"<Calibrated {self.recipe.name}: {reached}, factor {self.factor:g}>"

    def _repr_html_(self) -> str:
        return folded(repr(self), self.to_yaml())

    def to_yaml(self) -> str:
        """Return the text of the recipe file: comment lines, then the recipe."""
        return file_text(self.content, self.about)

    def save(self, path: str | Path) -> None:
        """Write the recipe file, completely or not at all; raises OutputError."""
        write_text(Path(path), self.to_yaml())

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe, its rates and the warnings as plain data for JSON."""
        rates = {"target": self.target, "given": self.given.value, "reached": self.reached.value}
        return {
            "recipe": self.content,
            "figures": {self.title: rates},
            "warnings": self.warnings,
            "factor": self.factor,
            "reached": vars(self.reached),
            "check": vars(self.check),
            "texts": self.texts,
            "texts_checked": self.texts_checked,
            "dropped": dict(self.dropped),
        }


@public
def calibrate(
    recipe: str | Recipe = "ugc",
    *,
    workers: int = 1,
    executor: str = "processes",
    transforms: Strings = (),
    source: Strings = (),
    target_cer: float | None = None,
    target_wer: float | None = None,
    lang: str = "en",
    text_column: str = "text",
    seed: int = 0,
    protect: str = PROTECTED,
    tagger: Literal["rule", "spacy"] = "rule",
    code: Strings = (),
    values: Mapping[str, object] | None = None,
    name: str | None = None,
    tell: Callable[[str], None] = silent,
    progress: Show = silent,
) -> Calibrated:
    """Scale a recipe so that its expected CER or WER is the target (a share: 0.05 is 5%).

    `source` is clean text like the text that will be noised (default: the bundled demo text); at
    most `TEXTS_MAX` texts of it are read. `transforms` ('fing:rate=0.1') replace the recipe.
    `values` ({'leet.rate': 0.1}) change parameters of the recipe before it is scaled. The recipe
    file extends `recipe` by a factor; with `transforms`, `values` or a Recipe, which no file can
    name, it has the whole recipe. `name` is the name of the new recipe. `tell` is called with notes
    for the user, `progress` with an event after every measurement. Raises NoisegenError.
    """
    return _calibrate(decode(CalibrateOptions, locals()))


def _calibrate(options: CalibrateOptions) -> Calibrated:
    """Run `calibrate` with checked options."""
    registry.load_code(*listed(options.code))
    base = Recipe.chosen(options.recipe, options.transforms, options.values, options.lang)
    noising = Noising(normalize_language(options.lang), options.protect, options.tagger)
    if note := base.note_on(noising.lang):
        options.tell(note)
    texts, dropped = _texts(options, noising.lang)
    figure, target = "cer", options.target_cer
    if target is None:
        figure, target = "wer", options.target_wer or 0.0
    code = tuple(Path(path).resolve() for path in listed(options.code))
    estimator = RateEstimator(texts, figure, noising, options.seed, options, code, BLOCK_ROWS)
    with executors.workers_reused():
        calibrated = calibrate_rate(base, estimator, target, options.progress)
    name = options.name or f"{base.name}-calibrated"
    is_file = not (options.transforms or options.values or isinstance(options.recipe, Recipe))
    return replace(
        calibrated,
        recipe=replace(calibrated.recipe, name=name),
        dropped=dropped,
        extends=str(options.recipe) if is_file else "",
    )


def _texts(options: CalibrateOptions, lang: str) -> tuple[list[str], Counter[str]]:
    """Return the texts of the source, and the counts of unread files and of dropped rows by reason.

    Without a source, the texts are the demo text in `lang`; raises UsageError if there is none.
    """
    dropped = Counter[str]()
    if not options.source:
        texts = demo_texts().get(lang, [])
        if not texts:
            raise UsageError(f"no demo text in {lang!r}: give a SOURCE of clean text")
        rows = counted(len(texts), f"{lang!r} row")
        options.tell(f"no SOURCE given: using the {rows} of the bundled demo text")
        return texts, dropped
    return read_texts(listed(options.source), options.text_column, TEXTS_MAX, dropped), dropped


def calibrate_rate(
    recipe: Recipe, estimator: RateEstimator, target: float, progress: Show = silent
) -> Calibrated:
    """Scale a recipe so that its expected error rate on the texts of `estimator` is `target`.

    A third of the texts is kept out of the search, and noised with another seed for the check. If
    no factor reaches the target, raises UsageError that names the highest rate within reach.
    """
    title = estimator.figure.upper()
    if not 0 < target < math.inf:
        raise UsageError(f"a target {title} must be above 0, not {target:g}")
    texts = [text for text in estimator.texts if FIGURES[estimator.figure][0](text)]
    if not texts:
        raise UsageError("the source has no text to noise")
    used = [text for number, text in enumerate(texts) if number % HELD_BACK] or texts
    others = texts[::HELD_BACK] if len(texts) > 1 else texts
    checker = replace(estimator, texts=others, seed=estimator.seed + 1)
    estimator = replace(estimator, texts=used)
    factor, rows = _factor(recipe, estimator, target, progress)
    stronger = recipe.scaled(factor)
    reached, check = estimator.rate(stronger, rows), checker.rate(stronger, rows)
    return Calibrated(
        recipe=stronger,
        title=title,
        target=target,
        factor=factor,
        given=estimator.rate(recipe, ROUGH_ROWS),
        reached=reached,
        check=check,
        texts=len(used),
        texts_checked=len(others),
        about=(
            f"{recipe.name} times {factor:.6g} for {title} {target:g} ({estimator.noising.lang})",
            f"reached: {reached.value:.5f} +- {1.96 * reached.error:.5f} on "
            f"{counted(len(used), 'text')}, noised repeatedly ({rows:,} rows)",
            f"check: {check.value:.5f} +- {1.96 * check.error_between:.5f} on the other "
            f"{counted(len(others), 'text')}, with another seed",
        ),
    )


# Search for the factor that, applied to every `rate` and `p`, gives the target error rate.


def _factor(
    recipe: Recipe, estimator: RateEstimator, target: float, progress: Show
) -> tuple[float, int]:
    """Return the factor that gives the target rate, and the rows per measurement that found it.

    Raises UsageError for a target out of reach.
    """
    search = _Search(recipe, estimator, target, progress)
    if not search.top:
        raise UsageError(f"recipe {recipe.name} has no p or rate above 0 that could be scaled")
    low, high = _bracket(search.distance, min(1.0, search.top), 2.0, search.top)
    highest = search.estimate(high, ROUGH_ROWS)
    if highest.value + SURE * highest.error < target:
        raise search.out_of_reach()
    rough = _root(search.distance, low, high, near=0.01)
    rows, step = _fine_search(search.estimate(rough, ROUGH_ROWS))
    fine = partial(search.distance, rows=rows)
    low, high = _bracket(fine, rough, step, search.top)
    if fine(high) < -NEAR:
        raise search.out_of_reach()
    return float(f"{_root(fine, low, high, near=NEAR):.{DIGITS}g}"), rows


class _Search:
    """Cache of measured error rates by factor; a factor above `top` would not add more noise."""

    def __init__(
        self, recipe: Recipe, estimator: RateEstimator, target: float, progress: Show
    ) -> None:
        self._recipe, self._estimator, self._target = recipe, estimator, target
        self._progress = progress
        self._measured: dict[tuple[float, int], RateEstimate] = {}
        self.top = recipe.factor_max

    def estimate(self, factor: float, rows: int) -> RateEstimate:
        """Return the error rate of the recipe scaled by `factor`, over `rows` rows."""
        if (factor, rows) not in self._measured:
            rate = self._estimator.rate(self._recipe.scaled(factor), rows)
            self._measured[factor, rows] = rate
            repeats = f"{counted(len(self._estimator.texts), 'text')}, repeated to {rows:,} rows"
            step = f"measuring the error rate at factor {factor:.4g} on {repeats}"
            self._progress(Progress(step, len(self._measured), unit="measurements"))
        return self._measured[factor, rows]

    def distance(self, factor: float, rows: int = ROUGH_ROWS) -> float:
        """Return how far the rate at `factor` is from the target: rate / target - 1."""
        return self.estimate(factor, rows).value / self._target - 1

    def out_of_reach(self) -> UsageError:
        """Return the error for a target that no factor reaches; it names the highest rate."""
        # The highest factor may not give the highest rate, so lower factors are measured too
        factors = [self.top / 2**halvings for halvings in range(4)]
        highest = max(self.estimate(factor, ROUGH_ROWS).value for factor in factors)
        return UsageError(
            f"recipe {self._recipe.name} cannot reach {self._estimator.figure.upper()} "
            f"{self._target:g} on this text; the highest rate within reach is {highest:.3g}"
        )


def _fine_search(rough: RateEstimate) -> tuple[int, float]:
    """Return two values for the fine search: rows per measurement, and `step` for `_bracket`.

    Both grow with the standard error of `rough`, the rate that the rough search found.
    """
    if not rough.value:
        return ROUGH_ROWS, 2.0
    relative = rough.error / rough.value
    rows = int(min(ROWS_MAX, max(ROUGH_ROWS, rough.rows * (relative / PRECISION) ** 2)))
    return rows, 1 + max(0.02, 4 * relative)


def _bracket(distance: Distance, start: float, step: float, top: float) -> tuple[float, float]:
    """Return two factors, one with a rate below the target and one with a rate above it.

    From `start`, the factor is multiplied or divided by `step` until its rate passes the target.
    If even `top`, the highest factor, has a rate below the target, both factors are `top`.
    """
    at = start
    if distance(at) >= 0:
        for _ in range(HALVINGS_MAX):
            at /= step
            if distance(at) < 0:
                break
        return at, at * step
    while at < top:
        below, at = at, min(top, at * step)
        if distance(at) >= 0:
            return below, at
    return top, top


class _End(NamedTuple):
    """One end of the searched interval: a factor, and its `distance` (rate / target - 1)."""

    factor: float
    distance: float


def _root(distance: Distance, low: float, high: float, near: float) -> float:
    """Return the factor between `low` and `high` whose rate is nearest to the target.

    `distance` maps a factor to rate / target - 1; the search stops once it is within `near` of 0.
    The method is false position on the logarithm of the factor. Each new factor is at least a tenth
    of the interval away from both ends, so that the interval always shrinks.
    """
    below, above = _End(low, distance(low)), _End(high, distance(high))
    log_low, log_high = math.log(low), math.log(high)
    for _ in range(STEPS_MAX):
        is_near = min(abs(below.distance), abs(above.distance)) <= near
        if is_near or log_high - log_low < CLOSE:
            break
        share = -below.distance / (above.distance - below.distance)
        at = log_low + min(0.9, max(0.1, share)) * (log_high - log_low)
        factor = math.exp(at)
        found = _End(factor, distance(factor))
        if found.distance >= 0:
            above, log_high = found, at
        else:
            below, log_low = found, at
    return min(below, above, key=lambda end: (abs(end.distance), end.factor)).factor
