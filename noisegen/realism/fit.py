"""Fit the steps and writers of a recipe to posts alone, without pairs.

1. The posts are restored (`forms`): noisy forms that the recipe can write become clean again.
2. Strengths are searched under which noise on restored posts has as many marks of each step as
   the posts, and noise on clean text (`--clean`) the capitals, signs and words of the posts.
   Without clean text, the restored posts get a capital, and a stop after their last word.
3. With clean text, a classifier that sees function words, noisy forms and the shapes of words
   searches the strengths that the marks left uncertain.
4. The classifier judges recipes on held-out posts. If it tells these from the noise of the fitted
   recipe more easily than from noise of the base recipe, half of the change is tried, then none.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from noisegen.augmentation import AnyRecipe
from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.columns import by_reason
from noisegen.data.pairs import Pairs, refuse_onto
from noisegen.data.texts import read_texts
from noisegen.errors import UsageError
from noisegen.noising import registry
from noisegen.noising.mix import chance_of
from noisegen.noising.recipe import FILE_ENDINGS, Recipe, file_text
from noisegen.options import Strings, argument, decode, internal, listed, option, public
from noisegen.realism.compare import Realism, compare_pairs
from noisegen.realism.forms import Forms, edited, without_addresses
from noisegen.realism.habits import (
    UNKNOWN,
    Match,
    Side,
    Strengths,
    SurfaceMarks,
    WordMarks,
    match,
    mean_marks,
)
from noisegen.realism.two_sample import F64, Auc, auc, ngram_texts
from noisegen.realism.unpaired import (
    ROWS_SHOWN,
    frequent_words,
    posts_forms,
    shuffled,
    topic_free_pairs,
)
from noisegen.runs.atomic import refuse_existing, write_text
from noisegen.runs.manifest import counted
from noisegen.runs.options import Folder, Lang, TextColumn
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.languages import normalize_language
from noisegen.text.notebook import framed
from noisegen.text.resources import DEFAULT_RECIPE

POSTS_MAX, CLEAN_MAX = 100_000, 20_000  # most posts and clean texts that are read
POSTS_MIN = 50  # fewest posts
ROWS = 1_500  # texts that are noised per measurement
MARKS_MIN = 5  # fewest marks of a step in posts and noise, for its strength to be fitted
HELD_BACK = 4  # one post in this many is kept out of the search
JUDGED_MAX = 1_000  # most posts that the classifier reads
SEARCHED = 800  # posts and clean texts that the classifier reads in the search
TRIALS, GAIN = 24, 0.003  # most trials of the search; least gain of AUC for a change
FAR = 1.5  # standard errors by which a factor is moved in a trial
UNCERTAIN = 0.35  # standard error of the logarithm of a factor from which on it is searched
UNLIKE = 0.95  # AUC after the fit above which the clean text is too unlike the posts
HALF = 0.5  # share of the change that is tried if the whole change is worse


@dataclass(frozen=True)
class FitOptions:
    """Options of a fit: posts, the recipe to start from, and clean text like that to be noised."""

    posts: Annotated[Strings, argument("POSTS...")]
    out: Annotated[
        Folder | None,
        option("File for the new recipe (default: print it)", "-o", "--out", metavar="RECIPE.yaml"),
    ] = None
    _: KW_ONLY
    clean: Annotated[
        Strings, option("Clean text like that to be noised; repeatable", metavar="SOURCE")
    ] = ()
    extends: Annotated[AnyRecipe, option("Recipe to start from", metavar="NAME|FILE.yaml")] = (
        DEFAULT_RECIPE
    )
    lang: Lang = "en"
    text_column: TextColumn = "text"
    group_by: Annotated[
        str | None, option("Column with the author: habits hold through the posts of an author")
    ] = None
    seed: Annotated[int, option("Seed of the noise that is measured")] = 0
    limit: Annotated[int, option("Maximum posts to read", "-n", "--limit", ge=1)] = POSTS_MAX
    force: Annotated[bool, option("Overwrite the output file")] = False
    progress: Annotated[Show, internal()] = silent


@dataclass(frozen=True)
class FittedHabit:
    """The strength of a step: its factor, the bounds of the factor, and its marks.

    `posts`, `before` and `after` are marks per 100 posts: in the posts, in the noise of the base
    recipe, and in the noise of the fitted recipe. The three are None for a step that writes no
    noisy forms of words (capitals, signs, missing words).
    """

    step: str
    factor: float
    low: float
    high: float
    posts: float | None
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Fitted:
    """A recipe fitted to posts.

    `base` is the name of the recipe that was extended, `content` the recipe file as plain data, and
    `recipe` the mix of the file for the language `lang`. `aucs` has the AUCs of a classifier of
    held-out posts and noise, with the keys 'before' (base recipe) and 'after' (fitted recipe).
    `left` compares held-out posts with the noise of the fitted recipe. `rows` has such posts, each
    beside a noisy text.
    """

    base: str
    content: dict[str, Any]
    recipe: Recipe
    lang: str
    posts: int
    clean: int
    habits: tuple[FittedHabit, ...]
    writers: dict[str, tuple[float, float]]  # name -> shares before and after
    aucs: dict[str, Auc | None]
    left: Realism | None
    rows: tuple[tuple[str, str], ...]
    about: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Fitted {self.about[0]}>"

    def _repr_html_(self) -> str:
        return framed(self, "noisegen.realism.fit_blocks:fit_page")

    def to_yaml(self) -> str:
        """Return the text of the recipe file: comment lines, then the recipe."""
        return file_text(self.content, self.about)

    def save(self, path: str | Path) -> None:
        """Write the recipe file, completely or not at all; raises OutputError."""
        write_text(Path(path), self.to_yaml())

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe file, habits, writers and AUCs as plain data for JSON."""
        return {
            "recipe": self.content,
            "posts": self.posts,
            "clean": self.clean,
            "habits": [vars(habit) for habit in self.habits],
            "writers": {name: list(shares) for name, shares in self.writers.items()},
            "aucs": {name: auc and vars(auc) for name, auc in self.aucs.items()},
            "warnings": list(self.warnings),
            "dropped": dict(self.dropped),
        }


@public
def fit(
    posts: Strings,
    out: str | Path | None = None,
    *,
    clean: Strings = (),
    extends: str | Recipe = "ugc",
    lang: str = "en",
    text_column: str = "text",
    group_by: str | None = None,
    seed: int = 0,
    limit: int = 100_000,
    force: bool = False,
    progress: Show = silent,
) -> Fitted:
    """Fit a recipe to unpaired noisy posts, and write it to `out` if that is set.

    `posts` and `clean` are files, folders or `hf:NAME` with a column of text. `clean` is text like
    that to be noised. Without it, capitals and stops are fitted as if each post should begin with a
    capital and end with a stop; commas, quotes and missing words keep their strengths.
    Equal input gives an equal recipe. Raises NoisegenError.
    """
    return _fit(decode(FitOptions, locals()))


def _fit(options: FitOptions) -> Fitted:
    """Run `fit` with checked options."""
    sources = listed(options.posts)
    out = Path(options.out) if options.out else None
    if out:
        refuse_onto(out, [*sources, *listed(options.clean)])
        refuse_existing(out, options.force)
        if out.suffix not in FILE_ENDINGS:
            raise UsageError(f"-o {str(out)!r}: the name of a recipe file ends in .yaml")
    lang = normalize_language(options.lang)
    options.progress(Progress("reading"))
    dropped: Counter[str] = Counter()
    column = options.text_column
    texts = read_texts(sources, column, options.limit, dropped, options.group_by)
    clean = read_texts(listed(options.clean), column, CLEAN_MAX, dropped) if options.clean else []
    found = fit_texts(texts, clean, options.extends, lang, options.seed, options.progress)
    name = out.stem if out else f"{found.recipe.name}-fitted"
    found = replace(found, content={"name": name, **found.content}, dropped=dropped)
    if dropped:
        line = f"dropped or damaged: {by_reason(dropped)}"
        found = replace(found, warnings=(*found.warnings, line))
    if out:
        found.save(out)
    return found


def fit_texts(
    posts: Sequence[str],
    clean: Sequence[str] = (),
    extends: str | Recipe = DEFAULT_RECIPE,
    lang: str = "en",
    seed: int = 0,
    progress: Show = silent,
) -> Fitted:
    """Fit a recipe to posts in memory; see `fit`. Raises UsageError for fewer than `POSTS_MIN`."""
    recipe = extends if isinstance(extends, Recipe) else Recipe.named(extends)
    posts, clean = shuffled(posts), shuffled(clean)
    if len(posts) < POSTS_MIN:
        raise UsageError(f"{counted(len(posts), 'different post')}: give at least {POSTS_MIN}")
    size = min(len(posts) // HELD_BACK, JUDGED_MAX)
    held, used = posts[:size], posts[size:]
    base, _ = recipe.for_language(lang)
    progress(Progress("learning noisy forms"))
    forms = posts_forms(base, lang, used, clean)
    noising = Noising(lang, "none")
    sides, steps = _sides(base, noising, forms, used, clean)
    if not steps:
        raise UsageError(
            f"the posts have no noisy form that {recipe.name} can write in {lang!r}: is --lang "
            "right? Give more posts"
        )
    matched = match(base, noising, sides, steps, seed, progress)
    bare = list(filter(None, map(without_addresses, held)))
    # With names, restored posts would give themselves away: "@ann" at the start becomes "@Ann"
    judge = _Judge(base, lang, bare, [edited(forms.restored(text), lang) for text in bare], seed)
    chooser = judge
    if clean:
        kept = forms.counted.union(frequent_words(clean))
        chooser = replace(judge, posts=used[:SEARCHED], clean=clean[:SEARCHED], kept=kept)
        matched = chooser.searched(matched, progress)
        chooser = replace(chooser, posts=held, clean=clean[-len(held) :])
    progress(Progress("judging held-out posts"))
    strengths, aucs = chooser.chosen(matched.strengths)
    after = mean_marks(strengths.recipe(base), noising, sides, seed)
    matched = replace(matched, strengths=strengths)
    return Fitted(
        base=recipe.name,
        content=_content(strengths, base, extends),
        recipe=strengths.recipe(base),
        lang=lang,
        posts=len(posts),
        clean=len(clean),
        habits=tuple(_habits(matched, after, sides[0].marks.names)),
        writers=_shares(base, strengths),
        aucs=aucs,
        left=judge.compared(strengths) if any(aucs.values()) else None,
        rows=tuple(chooser.rows(strengths)),
        about=(_about(recipe.name, lang, len(posts), len(clean)),),
        warnings=tuple(_doubts(bool(clean), aucs.get("after"))),
    )


def _doubts(has_clean: bool, found: Auc | None) -> Iterator[str]:
    """Yield a warning if there is no clean text, or if it is too unlike the posts."""
    if not has_clean:
        yield (
            "no --clean: commas, quotes and missing words keep their strengths, and each post "
            "counts as a text that begins with a capital and ends with a stop; give clean text "
            "like that to be noised"
        )
    elif found and found.value > UNLIKE:
        yield (
            f"noise on --clean is told from the posts {found.value:.0%} of the time: the clean "
            "text is of another style, and capitals and signs were fitted to that too; give text "
            "more like the posts, or none"
        )


def _about(name: str, lang: str, posts: int, clean: int) -> str:
    given = f" and {counted(clean, 'clean text')}" if clean else ""
    return f"{name} fitted to {counted(posts, 'post')}{given} ({lang})"


def _habits(matched: Match, after: F64, names: Sequence[str]) -> Iterator[FittedHabit]:
    """Yield the habits of a match; `after` are the mean marks of noise with its strengths.

    `names` are the names of the marks of words, which come first.
    """
    means = matched.target, matched.before, after
    for number, (step, factor) in enumerate(matched.strengths.factors.items()):
        if factor == 1 and matched.errors[number] > UNKNOWN:
            continue  # no mark tells how strong the step is
        error = 1.96 * float(matched.errors[number])
        bounds = factor * math.exp(-error), factor * math.exp(error)
        at = names.index(step) if step in names else None
        marks = (None if at is None else 100 * float(mean[at]) for mean in means)
        yield FittedHabit(step, factor, *bounds, *marks)


def _shares(base: Recipe, strengths: Strengths) -> dict[str, tuple[float, float]]:
    """Return the share of rows of each writer, in the base recipe and in the fitted one."""
    before = {writer.name: writer.weight for writer in base.writers}
    after = strengths.weights(base)
    totals = sum(before.values()), sum(after.values())
    return {name: (before[name] / totals[0], after[name] / totals[1]) for name in before}


def _sides(
    base: Recipe, noising: Noising, forms: Forms, posts: Sequence[str], clean: Sequence[str]
) -> tuple[list[Side], tuple[str, ...]]:
    """Return the sides to be matched, and the steps whose strengths they tell.

    A step that writes words counts if the posts, or the noise of the base recipe, have its marks.
    """
    posts = list(map(without_addresses, posts))
    some = posts[: 2 * ROWS]
    restored = _rows([forms.restored(text) for text in some])
    both = [*posts, *noising.noise(base, restored)]
    counts = Counter(form.step for text in both for form in forms.found(text))
    labels = [step.label for step in base.steps() if chance_of(base, step.label)]
    of_words = tuple(label for label in labels if counts[label] >= MARKS_MIN)
    surface = _rows(clean) if clean else [edited(text, noising.lang) for text in restored]
    sides = [
        Side(restored, posts, WordMarks(forms, of_words)),
        Side(surface, some, SurfaceMarks(frequent_words(clean))),
    ]
    kinds = {step.label: registry.get(step.transform).kind for step in base.steps()}
    names = {step.label: step.transform for step in base.steps()}
    return sides, tuple(
        label
        for label in labels
        if label in of_words or kinds[label] == "style" or (clean and names[label] == "drop")
    )


def _rows(texts: Sequence[str]) -> list[str]:
    """Return `ROWS` texts without addresses: the texts repeated, or the first ones."""
    shorter = list(map(without_addresses, texts[:ROWS]))
    return [shorter[row % len(shorter)] for row in range(ROWS)]


@dataclass(frozen=True)
class _Judge:
    """A classifier that tells posts from the noise of a recipe on clean texts.

    If `kept` is None, `clean` are the restored posts, in their order. Otherwise `clean` are other
    texts, and the classifier sees only words in `kept` and the shapes of other words.
    """

    base: Recipe
    lang: str
    posts: Sequence[str]
    clean: Sequence[str]
    seed: int
    kept: frozenset[str] | None = None

    def noise(self, strengths: Strengths) -> list[str]:
        """Return the noise with these strengths on the clean texts."""
        return Noising(self.lang).noise(strengths.recipe(self.base), list(self.clean), self.seed)

    def rows(self, strengths: Strengths) -> Iterator[tuple[str, str]]:
        """Yield posts, each beside a noisy text; these are no versions of one clean text.

        Nothing is yielded if there is only one noisy text.
        """
        made = self.noise(strengths)
        half = min(ROWS_SHOWN, len(made) // 2)
        others = [*made[half:], *made[:half]] if half else []
        return zip(self.posts[:ROWS_SHOWN], others, strict=False)

    def pairs(self, strengths: Strengths) -> tuple[Pairs, Pairs]:
        """Return posts and noise with these strengths, each with clean texts."""
        made = self.noise(strengths)
        if self.kept is None:
            return Pairs([*self.posts], [*self.clean]), Pairs(made, [*self.clean])
        return topic_free_pairs(self.posts, made, self.clean, self.kept)

    def auc(self, strengths: Strengths) -> Auc | None:
        """Return the AUC on all rows; None for too few."""
        real, made = self.pairs(strengths)
        texts = ngram_texts(real, made)
        return auc(texts, texts.real, texts.synthetic) if texts else None

    def compared(self, strengths: Strengths) -> Realism:
        """Return the comparison of the posts with the noise."""
        found = compare_pairs(*self.pairs(strengths), lang=self.lang)
        return replace(found, names=("held-out posts, restored", "noise on the restored posts"))

    def chosen(self, found: Strengths) -> tuple[Strengths, dict[str, Auc | None]]:
        """Return the largest share of the fitted change that is no worse, and AUCs by recipe.

        The shares are all, half and nothing. Too few posts to judge get half. Without scikit-learn
        the whole change is chosen, and there are no AUCs.
        """
        none, half = (replace(found, values=share * found.values) for share in (0, HALF))
        try:
            before = self.auc(none)
        except ImportError:
            return found, {}
        if before is None:
            return half, {"before": None, "after": None}
        for strengths in (found, half):
            after = self.auc(strengths)
            if after and after.value <= before.value:
                return strengths, {"before": before, "after": after}
        return none, {"before": before, "after": before}

    def searched(self, matched: Match, progress: Show) -> Match:
        """Return the match with strengths of uncertain steps at which the AUC is lower.

        Each uncertain factor is tried at both ends of an interval, at most `TRIALS` in all.
        """
        found, errors = matched.strengths, matched.errors
        try:
            least = self.auc(found)
        except ImportError:
            return matched
        uncertain = [n for n in range(len(found.steps)) if errors[n] > UNCERTAIN]
        trials = [(n, way) for n in uncertain for way in (-FAR, FAR)][:TRIALS]
        for number, (step, way) in enumerate(trials if least else ()):
            progress(Progress("searching", number, len(trials), unit="trials"))
            values = found.values.copy()
            values[step] += way * errors[step]
            tried = replace(found, values=values)
            value = self.auc(tried)
            if least and value and value.value < least.value - GAIN:
                found, least = tried, value
        return replace(matched, strengths=found)


def _content(strengths: Strengths, base: Recipe, extends: str | Recipe) -> dict[str, Any]:
    """Return the recipe file as plain data: what differs from the recipe that it extends.

    A recipe given as an object, which no file can name, is written whole, for the language.
    """
    if isinstance(extends, Recipe):
        return strengths.recipe(base).to_dict()
    content: dict[str, Any] = {"extends": extends}
    if scale := {step: factor for step, factor in strengths.factors.items() if factor != 1}:
        content["scale"] = scale
    if strengths.writers:
        content["writers"] = strengths.weights(base)
    return content
