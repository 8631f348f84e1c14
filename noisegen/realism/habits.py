"""Marks of habits in texts, and a search for strengths of a recipe by the marks of posts.

The marks of a text are numbers that its topic hardly decides. Marks of words: how many words each
step of the recipe may have written (`forms`), whether there is any, and which steps go together.
Marks of the surface: capitals, ends of rows, signs, function words. The search matches means: noise
should have the mean marks of the posts (method of simulated moments, McFadden 1989). Strengths with
rare marks stay near the base recipe.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from noisegen.augmentation.on_the_fly import Noising
from noisegen.noising.recipe import Recipe
from noisegen.realism.forms import Forms, word_spans
from noisegen.realism.two_sample import F64
from noisegen.runs.progress import Progress, Show, silent

ROUNDS = 5  # Gauss-Newton steps
SLOPES = 2  # first steps whose slopes are measured; later steps use the last slopes
STEP_MAX = 0.7  # largest change of a logarithm in a step
FACTOR_MAX = 8.0  # largest factor of a step
PRIOR = 0.5  # standard deviation of the logarithm of a factor or weight
UNKNOWN = 0.97 * PRIOR  # standard error of a factor of which no mark tells anything
TOLERANCE = 0.15  # share of a mean that the model may miss
WORD_TOLERANCE = 0.3  # the same of a function word, of which topics have more or fewer
OUTLIER = 2.0  # standard errors from which on a mark of the surface counts less
PROBE = 0.3  # change of a logarithm whose effect is measured


@dataclass(frozen=True)
class WordMarks:
    """Marks of words: counts of forms by the step that writes them."""

    forms: Forms
    steps: tuple[str, ...]
    cache: dict[str, F64] = field(default_factory=dict)

    @cached_property
    def names(self) -> list[str]:
        """The names of the marks, in the order of `of`."""
        pairs = [f"{a}+{b}" for a, b in combinations(self.steps, 2)]
        return [
            *self.steps,
            *(f"any {step}" for step in self.steps),
            *pairs,
            "1 form",
            "2 forms",
            "3+ forms",
        ]

    @property
    def tolerances(self) -> F64:
        """The share of each mean that the model may miss."""
        return np.full(len(self.names), TOLERANCE)

    def of(self, text: str) -> F64:
        """Return the marks of a text."""
        if text not in self.cache:
            counts = Counter(form.step for form in self.forms.found(text))
            numbers = np.array([counts[step] for step in self.steps])
            some = numbers > 0
            first, second = np.triu_indices(len(self.steps), 1)
            total = numbers.sum()
            bins = [total == 1, total == 2, total > 2]
            both = some[first] & some[second]
            self.cache[text] = np.array([*numbers, *some, *both, *bins], float)
        return self.cache[text]


_SIGNS = {
    "commas": re.compile(r","),
    "stops inside": re.compile(r"[.!?](?=.*\w)"),
    "repeated signs": re.compile(r"([!?.,])\1"),
    "exclamation marks": re.compile(r"!"),
    "question marks": re.compile(r"\?"),
    "signs without blank": re.compile(r"(?<=\w)[,;!?](?=\w)"),
    "blanks before signs": re.compile(r"(?<=\w) [,;!?.]"),
    "typographic signs": re.compile(r"[\u2018\u2019\u201c\u201d\u2013\u2014\u2026]"),
    "typewritten signs": re.compile(r"['\"]|\.\.\.| - "),
    "small i": re.compile(r"\bi\b"),
    "capital I": re.compile(r"\bI\b"),
    "small after stop": re.compile(r"[.!?] +[^\W\d_A-Z](?<=[a-zß-öø-ÿа-яё])"),
    "held letters": re.compile(r"([^\W\d_])\1\1"),
}
_STARTS = ("starts small", "starts large", "all capitals", "no capitals")
_ENDS = ("ends in a stop", "ends in ! or ?", "ends in a word")
EDGES = (*_STARTS, *_ENDS, "small i", "capital I", "small after stop")
SURFACE = (*_STARTS, *_ENDS, "capitals inside", "shouted words", *_SIGNS)


@dataclass(frozen=True)
class SurfaceMarks:
    """Marks of capitals and signs, and of the function words `frequent`.

    Without function words, only capitals and ends are marks (`EDGES`): of restored posts no more is
    known.
    """

    frequent: tuple[str, ...] = ()
    cache: dict[str, F64] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the marks, in the order of `of`."""
        words = [f'"{word}"' for word in self.frequent]
        return (*SURFACE, *words) if words else EDGES

    @property
    def tolerances(self) -> F64:
        """The share of each mean that the model may miss."""
        surface = len(self.names) - len(self.frequent)
        return np.repeat([TOLERANCE, WORD_TOLERANCE], [surface, len(self.frequent)])

    def of(self, text: str) -> F64:
        """Return the marks of a text: 0 or 1 for starts and ends, else a number per ten words."""
        if text not in self.cache:
            words = [text[a:b] for a, b in word_spans(text)]
            first = next((c for c in text if c.isalpha()), "")
            end = text.rstrip()[-1:]
            starts = first.islower(), first.isupper(), text.isupper(), text == text.lower()
            found = dict(zip(_STARTS, map(float, starts), strict=True))
            found |= zip(_ENDS, map(float, (end == ".", end in "!?", end.isalnum())), strict=True)
            per, lower = 10 / max(1, len(words)), Counter(map(str.lower, words))
            large = sum(word[:1].isupper() and not word.isupper() for word in words[1:])
            shouted = sum(len(word) > 1 and word.isupper() for word in words)
            found |= {"capitals inside": per * large, "shouted words": per * shouted}
            found |= {name: per * len(sign.findall(text)) for name, sign in _SIGNS.items()}
            found |= {f'"{word}"': per * lower[word] for word in self.frequent}
            self.cache[text] = np.array([found[name] for name in self.names])
        return self.cache[text]


AnyMarks = WordMarks | SurfaceMarks


def table_of(marks: AnyMarks, texts: Sequence[str]) -> F64:
    """Return the marks of texts, shape (texts, marks)."""
    return np.array([marks.of(text) for text in texts])


@dataclass(frozen=True)
class Side:
    """Clean texts that are noised, the posts whose marks the noise should have, and the marks."""

    clean: Sequence[str]
    posts: Sequence[str]
    marks: AnyMarks


@dataclass(frozen=True)
class Strengths:
    """Logarithms of the factors of steps and of the weights of writers, against a base recipe."""

    steps: tuple[str, ...]
    writers: tuple[str, ...]
    values: F64

    def recipe(self, base: Recipe) -> Recipe:
        """Return the base mix with these factors and weights."""
        return self.weighted(base.with_factors(self.factors))

    @property
    def factors(self) -> dict[str, float]:
        """The factors of the steps."""
        found = np.exp(self.values[: len(self.steps)])
        return {step: float(f"{v:.3g}") for step, v in zip(self.steps, found, strict=True)}

    def weighted(self, mix: Recipe) -> Recipe:
        """Return the mix with these weights of its writers."""
        weights = self.weights(mix)
        return mix.with_writers(lambda writer: replace(writer, weight=weights[writer.name]))

    def weights(self, mix: Recipe) -> dict[str, int]:
        """Return whole weights of the writers, about 1,000 in all."""
        raw = np.array([writer.weight for writer in mix.writers], float)
        if self.writers:
            raw *= np.exp(self.values[len(self.steps) :])
        return {
            writer.name: max(1, round(1_000 * share))
            for writer, share in zip(mix.writers, raw / max(1, raw.sum()), strict=True)
        }


@dataclass(frozen=True)
class Match:
    """Strengths with their standard errors, and mean marks: of posts, and of noise before."""

    strengths: Strengths
    errors: F64
    target: F64
    before: F64


def mean_marks(recipe: Recipe, noising: Noising, sides: Sequence[Side], seed: int) -> F64:
    """Return the mean marks of the noise of a recipe on the clean texts of all sides."""
    noised = (noising.noise(recipe, list(side.clean), seed) for side in sides)
    parts = [
        table_of(side.marks, texts).mean(axis=0) for side, texts in zip(sides, noised, strict=True)
    ]
    return np.concatenate(parts)


def _slopes(base: Recipe, at: Strengths, mean: F64, noise: Callable[[Recipe], F64]) -> F64:
    """Return the derivatives of mean marks by the strengths, shape (marks, strengths).

    `mean` are the mean marks at the strengths `at`; `noise` returns those of a recipe.
    """
    columns = []
    for number in range(len(at.steps)):
        moved = at.values.copy()
        moved[number] += PROBE
        columns.append((noise(replace(at, values=moved).recipe(base)) - mean) / PROBE)
    if at.writers:
        recipe, weights = base.with_factors(at.factors), at.weights(base)
        of_writers = [noise(replace(recipe, writers=(own,))) for own in recipe.writers]
        shares = np.array(list(weights.values())) / sum(weights.values())
        mixed = shares @ np.array(of_writers)
        columns += [share * (own - mixed) for share, own in zip(shares, of_writers, strict=True)]
    return np.array(columns).T


def match(
    base: Recipe,
    noising: Noising,
    sides: Sequence[Side],
    steps: tuple[str, ...],
    seed: int,
    progress: Show = silent,
) -> Match:
    """Fit the strengths of a mix so that noise on clean texts has the mean marks of posts."""
    tables = [table_of(side.marks, side.posts) for side in sides]
    target = np.concatenate([table.mean(axis=0) for table in tables])
    sampled = np.concatenate([table.var(axis=0) / len(table) for table in tables])
    posts = np.concatenate([np.full(table.shape[1], len(table)) for table in tables])
    tolerance = np.concatenate([side.marks.tolerances for side in sides])
    kinds = [isinstance(side.marks, SurfaceMarks) for side in sides]
    is_surface = np.repeat(kinds, [len(side.marks.names) for side in sides])
    writers = tuple(writer.name for writer in base.writers) if len(base.writers) > 1 else ()
    strengths = Strengths(steps, writers, np.zeros(len(steps) + len(writers)))

    def noise(recipe: Recipe) -> F64:
        return mean_marks(recipe, noising, sides, seed)

    prior = np.full(len(strengths.values), PRIOR**-2)
    before = noise(base)
    rows = min(len(side.clean) for side in sides)
    for number in range(ROUNDS):
        progress(Progress("matching marks", number, ROUNDS, unit="rounds"))
        mean = noise(strengths.recipe(base))
        if number < SLOPES:
            slopes = _slopes(base, strengths, mean, noise)
        floor = 1 / posts
        variance = np.maximum(sampled, target * np.clip(1 - target, 0, 1) / posts)
        variance = np.maximum(variance, floor**2) / (target + floor) ** 2
        variance += np.maximum(mean, 1 / rows) / rows / (mean + floor) ** 2
        variance += tolerance**2
        gap = np.log((target + floor) / (mean + floor))
        errors = np.abs(gap) / np.sqrt(variance)  # far marks count less (Huber, 1964)
        variance *= np.where(is_surface, np.maximum(1, errors / OUTLIER), 1)
        relative = slopes.T / (mean + floor)
        weighted = relative / variance
        information = weighted @ relative.T + np.diag(prior)
        step = np.linalg.solve(information, weighted @ gap - prior * strengths.values)
        values = strengths.values + np.clip(step, -STEP_MAX, STEP_MAX)
        values = np.clip(values, -4, np.log(FACTOR_MAX))
        strengths = replace(strengths, values=values)
        if np.abs(step).max() < 0.05:
            break
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    known = replace(strengths, values=np.where(errors > UNKNOWN, 0, strengths.values))
    return Match(known, errors, target, before)
