"""Scale a recipe until its expected rate of character or word errors is the one asked for.

The rate of a text, errors over characters (or words) of its clean side, is measured with the same
draws at every factor, so it moves with the factor and not with chance. The factor is searched first
on few rows, then on as many as the standard error asks.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, partial
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from noisegen.augmentation import AnyRecipe, Code, Protect, Tagger
from noisegen.augmentation.catalog import demo_texts
from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.columns import by_reason
from noisegen.data.sources import Columns, expand, read, shard_ranges
from noisegen.errors import UsageError
from noisegen.noising import registry
from noisegen.noising.recipe import Recipe, factor_max, scaled
from noisegen.options import Strings, argument, decode, internal, listed, option, public
from noisegen.runs import executors
from noisegen.runs.atomic import write_text
from noisegen.runs.manifest import counted
from noisegen.runs.options import ALONE, Lang, TextColumn, WorkerOptions
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.alignment import character_errors, word_errors
from noisegen.text.languages import normalize_language
from noisegen.text.resources import DEFAULT_RECIPE
from noisegen.text.spans import PROTECTED

TEXTS_MAX = 20_000  # of a source are read
PRECISION = 0.004  # relative standard error of the rate that is fitted
NEAR = 0.001  # relative distance from the target at which the search ends
ROUGH_ROWS, ROWS_MAX, BLOCK_ROWS = 4_000, 400_000, 20_000
BLOCKS_MIN = 2  # for a process, which takes a second to start
SURE = 6  # standard errors of a rough rate: a target so far above it is out of reach
FEW_TEXTS = 30
HELD_BACK = 3  # every third text is kept for the check
HALVINGS_MAX, STEPS_MAX = 40, 40
CLOSE = 1e-6  # of the logarithm of a factor: nothing lies between
FIGURES: dict[str, tuple[Callable[[str], int], Callable[[str, str], int]]] = {
    "cer": (len, character_errors),
    "wer": (lambda text: len(text.split()), word_errors),
}

Distance = Callable[[float], float]  # factor -> rate / target - 1


@dataclass(frozen=True)
class CalibrateOptions(WorkerOptions):
    """The recipe to scale, the error rate to reach (0.05 is 5 %), and the clean text it is for."""

    recipe: Annotated[AnyRecipe, option("Recipe to scale", metavar="NAME|FILE.yaml")] = (
        DEFAULT_RECIPE
    )
    _: KW_ONLY
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
    """An error rate of `rows` rows; standard errors for these texts, and for others like them."""

    value: float
    error: float
    error_between: float
    rows: int


@dataclass(frozen=True)
class RateEstimator:
    """Estimates errors per character ("cer") or word ("wer") of noise on these texts.

    `code` are the files with transforms that a worker has to know.
    """

    texts: Sequence[str]
    figure: str = "cer"
    noising: Noising = field(default_factory=Noising)
    seed: int = 0
    workers: WorkerOptions = ALONE
    code: tuple[Path, ...] = ()

    def rate(self, recipe: Recipe, rows: int) -> RateEstimate:
        """Return the rate over so many rows: the texts in turn, each time with new draws.

        It is a ratio of sums; its standard errors are the linearised ones, of rows and of texts.
        """
        size, _ = FIGURES[self.figure]
        blocks = range(0, rows, BLOCK_ROWS)
        tasks = (
            (block, first, min(first + BLOCK_ROWS, rows)) for block, first in enumerate(blocks)
        )
        errors_of = partial(replace(self, workers=ALONE).errors, recipe)
        most = max(1, len(blocks) // BLOCKS_MIN)
        workers = replace(self.workers, workers=min(self.workers.workers, most))
        with closing(workers.in_order(errors_of, tasks)) as parts:
            errors = list(chain.from_iterable(parts))
        sizes = np.resize(np.array(list(map(size, self.texts)), np.float64), rows)
        value = float(np.sum(errors) / sizes.sum())
        residuals = np.array(errors) - value * sizes
        numbers = np.resize(np.arange(len(self.texts)), rows)
        between = np.bincount(numbers, residuals, len(self.texts))
        error, error_between = (float(np.sqrt(r @ r) / sizes.sum()) for r in (residuals, between))
        return RateEstimate(value, error, error_between, rows)

    def errors(self, recipe: Recipe, task: tuple[int, int, int]) -> list[int]:
        """Return the errors of each row of a block: its number, first row and stop."""
        registry.load_code(*self.code)
        block, first, stop = task
        clean = [self.texts[row % len(self.texts)] for row in range(first, stop)]
        _, errors_of = FIGURES[self.figure]
        return list(map(errors_of, clean, self.noising.noise(recipe, clean, self.seed, block)))


@dataclass(frozen=True)
class Calibrated:
    """A recipe scaled by `factor`, and the rates of it and of the recipe as it was given.

    `reached` is on the `texts` that were used, `check` on `texts_checked` others with another seed.
    `about` are the lines of comment in the head of the file: nothing of a source's text, no date.
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
    dropped: Mapping[str, int] = field(default_factory=dict)  # rows that could not be read

    @property
    def warnings(self) -> list[str]:
        """What makes the rates uncertain."""
        lines, reached, check = [], self.reached, self.check
        few = f"{counted(self.texts, 'text')} may not stand for others"
        if self.dropped:
            lines.append(f"dropped or damaged: {by_reason(self.dropped)}")
        if reached.error > 0.01 * reached.value:
            share = f"{reached.error / reached.value:.1%}"
            lines.append(f"the standard error of {reached.rows:,} rows is {share}")
        if self.texts < FEW_TEXTS:
            lines.append(f"{few}; give more")
        elif check.error_between > 0.02 * check.value:
            share = f"{check.error_between / check.value:.1%}"
            lines.append(f"{few}: the standard error between texts is {share}; give more")
        return lines

    def to_yaml(self) -> str:
        """Return the recipe file: a head of comments, then the recipe."""
        return "".join(f"# {line}\n" for line in self.about) + self.recipe.to_yaml()

    def save(self, path: str | Path) -> None:
        """Write the recipe file at once, or not at all; raises OutputError."""
        write_text(Path(path), self.to_yaml())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        sides = {"target": self.target, "given": self.given.value, "reached": self.reached.value}
        return {
            "recipe": self.recipe.to_dict(),
            "figures": {self.title: sides},
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
    """Scale a recipe so that a text gets an expected CER or WER (shares: 0.05 is 5%).

    `source` is the clean text that the target is for (default: the bundled demo text), of which
    `TEXTS_MAX` texts are read. `values` ({'leet.rate': 0.1}) change the recipe first; `name` is
    that of the new one. `tell` gets notes for the user, `progress` an event after every
    measurement. Raises NoisegenError.
    """
    return _calibrate(decode(CalibrateOptions, locals()))


def _calibrate(options: CalibrateOptions) -> Calibrated:
    """Run `calibrate` with options that are checked."""
    registry.load_code(*listed(options.code))
    base = options.recipe if isinstance(options.recipe, Recipe) else Recipe.named(options.recipe)
    base = base.with_values(options.values or {})
    noising = Noising(normalize_language(options.lang), options.protect, options.tagger)
    if note := base.note_on(noising.lang):
        options.tell(note)
    texts, dropped = _texts(options, noising.lang)
    figure, target = "cer", options.target_cer
    if target is None:
        figure, target = "wer", options.target_wer or 0.0
    code = tuple(Path(path).resolve() for path in listed(options.code))
    estimator = RateEstimator(texts, figure, noising, options.seed, options, code)
    with executors.workers_reused():
        calibrated = calibrate_rate(base, estimator, target, options.progress)
    name = options.name or f"{base.name}-calibrated"
    return replace(calibrated, recipe=replace(calibrated.recipe, name=name), dropped=dropped)


def _texts(options: CalibrateOptions, lang: str) -> tuple[list[str], Counter[str]]:
    """Return the texts of the source, and counts of what could not be read, by reason."""
    dropped = Counter[str]()
    if not options.source:
        texts = demo_texts().get(lang, [])
        if not texts:
            raise UsageError(f"no demo text in {lang!r}: give a SOURCE of clean text")
        rows = counted(len(texts), f"{lang!r} row")
        options.tell(f"no SOURCE given: using the {rows} of the bundled demo text")
        return texts, dropped
    named, columns = expand(listed(options.source)), Columns(options.text_column)
    inputs = [item for item in named if not item.skipped]
    dropped.update(["unread_file"] * (len(named) - len(inputs)))
    texts = []
    for shard in shard_ranges(inputs, columns, TEXTS_MAX, TEXTS_MAX):
        for batch in read(shard, columns):
            texts += batch.table["clean"].to_pylist()
            dropped.update(batch.dropped)
    return texts, dropped


def calibrate_rate(
    recipe: Recipe, estimator: RateEstimator, target: float, progress: Show = silent
) -> Calibrated:
    """Scale a recipe so that its expected rate on the texts of `estimator` is `target`.

    A third of the texts is kept from the search, and noised with another seed for the check. Raises
    UsageError for a rate out of reach, naming the highest within reach.
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
    stronger = scaled(recipe, factor)
    reached, check = (each.rate(stronger, rows) for each in (estimator, checker))
    about = (
        f"{recipe.name} times {factor:.6g} for {title} {target:g} ({estimator.noising.lang})",
        f"reached: {reached.value:.5f} +- {1.96 * reached.error:.5f} on "
        f"{counted(len(used), 'text')}, noised repeatedly ({rows:,} rows)",
        f"check: {check.value:.5f} +- {1.96 * check.error_between:.5f} on the other "
        f"{counted(len(others), 'text')}, with another seed",
    )
    given = estimator.rate(recipe, ROUGH_ROWS)
    return Calibrated(
        stronger, title, target, factor, given, reached, check, len(used), len(others), about
    )


# The search.


def _factor(
    recipe: Recipe, estimator: RateEstimator, target: float, progress: Show
) -> tuple[float, int]:
    """Return the factor that gives the target, and how many rows the last search took."""
    top = factor_max(recipe)
    if not top:
        raise UsageError(f"recipe {recipe.name} has no p or rate above 0 that could be scaled")
    numbers = count(1)

    @cache
    def estimate(factor: float, rows: int) -> RateEstimate:
        rate = estimator.rate(scaled(recipe, factor), rows)
        step = f"measuring the rate at factor {factor:.4g} in {rows:,} noisy rows"
        progress(Progress(step, next(numbers), unit="measurements"))
        return rate

    def far(factor: float, rows: int = ROUGH_ROWS) -> float:
        return estimate(factor, rows).value / target - 1

    def out_of_reach() -> UsageError:
        factors = (top / 2**halvings for halvings in range(4))  # the rate may fall near the top
        most = max(estimate(factor, ROUGH_ROWS).value for factor in factors)
        return UsageError(
            f"recipe {recipe.name} cannot reach {estimator.figure.upper()} {target:g} on this "
            f"text; the highest rate within reach is {most:.3g}"
        )

    low, high = _bracket(far, min(1.0, top), 2.0, top)
    most = estimate(high, ROUGH_ROWS)
    if most.value + SURE * most.error < target:
        raise out_of_reach()
    rough = _root(far, low, high, near=0.01)
    rows, step = _fine_search(estimate(rough, ROUGH_ROWS))
    fine = partial(far, rows=rows)
    low, high = _bracket(fine, rough, step, top)
    if fine(high) < -NEAR:
        raise out_of_reach()
    return _root(fine, low, high, near=NEAR), rows


def _fine_search(rough: RateEstimate) -> tuple[int, float]:
    """Return how many rows the last search takes, and the first step from the rough factor."""
    if not rough.value:
        return ROUGH_ROWS, 2.0
    relative = rough.error / rough.value
    rows = int(min(ROWS_MAX, max(ROUGH_ROWS, rough.rows * (relative / PRECISION) ** 2)))
    return rows, 1 + max(0.02, 4 * relative)


def _bracket(far: Distance, start: float, step: float, top: float) -> tuple[float, float]:
    """Return factors below and above the target; `top`, the most, twice if it is not enough."""
    at = start
    if far(at) >= 0:
        for _ in range(HALVINGS_MAX):
            at /= step
            if far(at) < 0:
                break
        return at, at * step
    while at < top:
        below, at = at, min(top, at * step)
        if far(at) >= 0:
            return below, at
    return top, top


def _root(far: Distance, low: float, high: float, near: float) -> float:
    """Return a factor between two, at most `near` from the target if there is one.

    False position on the logarithm, kept off the ends of the interval so that it always shrinks.
    """
    ends = [(math.log(factor), factor, far(factor)) for factor in (low, high)]
    for _ in range(STEPS_MAX):
        (x, _, below), (y, _, above) = ends
        if min(abs(below), abs(above)) <= near or y - x < CLOSE:
            break
        share = min(0.9, max(0.1, -below / (above - below)))
        at = x + share * (y - x)
        factor = math.exp(at)
        value = far(factor)
        ends[value >= 0] = (at, factor, value)
    return min(ends, key=lambda end: (abs(end[2]), end[0]))[1]
