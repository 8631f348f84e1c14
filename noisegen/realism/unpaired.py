"""Compare noise with posts that have no clean version (`noisegen realism --posts`).

A classifier that sees function words, noisy forms, signs and the shapes of all other words tells
noise on clean text from the posts. Marks say how often both have a habit (`habits`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np

from noisegen.augmentation import AnyRecipe, Transforms
from noisegen.augmentation.catalog import demo_texts
from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.columns import by_reason
from noisegen.data.pairs import Pairs
from noisegen.data.texts import read_texts
from noisegen.errors import UsageError
from noisegen.noising.mix import chance_of
from noisegen.noising.recipe import Recipe
from noisegen.noising.rng import name_number, splitmix
from noisegen.options import Strings, decode, internal, listed, option, public
from noisegen.realism.forms import Forms, forms_of, without_addresses, words_of
from noisegen.realism.habits import AnyMarks, SurfaceMarks, WordMarks, table_of
from noisegen.realism.two_sample import Auc, TwoSample, auc, ngram_texts, topic_free, two_sample
from noisegen.runs.options import Lang, TextColumn
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.languages import normalize_language
from noisegen.text.notebook import framed
from noisegen.text.resources import DEFAULT_RECIPE

KNOWN_SHARE = 0.3  # least frequency in clean text, as a share of that in posts, of a clean word
LEARNED_MAX = 5_000  # most posts whose noisy forms are learned
POSTS_MAX = 10_000  # most posts and clean texts that a comparison reads
JUDGED_MAX = 2_000  # most posts, and clean texts, that the classifier reads
FUNCTION_WORDS = 25  # most frequent words of the clean text whose share is a mark
ROWS_SHOWN = 50  # posts in a report, each beside a noisy text


@dataclass(frozen=True)
class Mark:
    """How often posts, noise and clean text have a habit.

    Frequencies of forms that a step writes are numbers per text, of other words and signs numbers
    per ten words. Frequencies of capitals and ends are shares of the texts. `difference` is the
    frequency in the noise less that in the posts, in standard errors.
    """

    name: str
    posts: float
    noise: float
    clean: float
    difference: float


@dataclass(frozen=True)
class Unpaired:
    """The result of comparing noise on clean text with posts.

    `names` are the names of the posts and of the noise, `read` the numbers of posts and clean
    texts. `classifier` has the AUC of posts against noise (`all_rows`), and of posts against the
    clean text (`clean_sides`). `floor` is the AUC of one half of the posts against the other half.
    `rows` has posts, each beside a noisy text. `damaged` has messages about damaged input.
    """

    lang: str
    names: tuple[str, str]
    read: tuple[int, int]
    classifier: TwoSample
    floor: Auc | None
    marks: tuple[Mark, ...]
    rows: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()

    def __repr__(self) -> str:
        auc = self.classifier.all_rows
        told = f"told apart {auc.value:.0%} of the time (50% is guessing)" if auc else "no AUC"
        return f"<Unpaired {self.names[1]} against {self.names[0]}: {told}>"

    def _repr_html_(self) -> str:
        return framed(self, "noisegen.realism.unpaired_blocks:unpaired_page")

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        return asdict(self)


def shuffled(texts: Sequence[str]) -> list[str]:
    """Return the different texts in an order that depends on their content alone."""
    return sorted(set(texts), key=lambda text: (splitmix(name_number(text)), text))


def posts_forms(base: Recipe, lang: str, posts: Sequence[str], clean: Sequence[str]) -> Forms:
    """Return the noisy forms of words that the steps of a mix write, as posts have them.

    A word is no noisy form if clean text (default: the demo text) has it, and posts have it not
    much more often: the, its, no.
    """
    posts = posts[:LEARNED_MAX]
    ours, theirs = (
        Counter(word for text in texts for word in words_of(text))
        for texts in (posts, clean or demo_texts().get(lang, []))
    )
    least = KNOWN_SHARE * theirs.total() / max(1, ours.total())
    known = {word for word, count in theirs.items() if count >= least * ours[word]}
    return forms_of(base, lang, posts, known)


def frequent_words(clean: Sequence[str]) -> tuple[str, ...]:
    """Return the most frequent words of clean text: function words."""
    words = Counter(word for text in clean for word in words_of(text) if word.isalpha())
    return tuple(word for word, _ in words.most_common(FUNCTION_WORDS))


def topic_free_pairs(
    posts: Sequence[str], noise: Sequence[str], clean: Sequence[str], kept: frozenset[str]
) -> tuple[Pairs, Pairs]:
    """Return posts and noise, each with clean texts, in which words outside `kept` are shapes.

    The posts are their own clean texts.
    """
    ours, theirs, sources = (
        [topic_free(without_addresses(text), kept) for text in texts]
        for texts in (posts, noise, clean)
    )
    return Pairs(ours, ours), Pairs(theirs, sources)


@dataclass(frozen=True)
class PostsOptions:
    """Options of a comparison of posts with the noise of a recipe on clean text."""

    posts: Annotated[
        Strings,
        option("Noisy posts without a clean version, instead of --pairs", metavar="SOURCE"),
    ]
    clean: Annotated[
        Strings, option("Clean text that is noised and compared with --posts", metavar="SOURCE")
    ]
    _: KW_ONLY
    recipe: Annotated[AnyRecipe, option("Recipe of the noise", metavar="NAME|FILE.yaml")] = (
        DEFAULT_RECIPE
    )
    transforms: Transforms = ()
    lang: Lang = "en"
    text_column: TextColumn = "text"
    seed: Annotated[int, option("Seed of the noise")] = 0
    limit: Annotated[int, option("Maximum posts and clean texts to read", ge=1)] = POSTS_MAX
    progress: Annotated[Show, internal()] = silent


@public
def compare_posts(
    posts: Strings,
    clean: Strings,
    *,
    recipe: str | Recipe = "ugc",
    transforms: Strings = (),
    lang: str = "en",
    text_column: str = "text",
    seed: int = 0,
    limit: int = 10_000,
    progress: Show = silent,
) -> Unpaired:
    """Compare posts, which have no clean version, with the noise of a recipe on clean text.

    `posts` and `clean` are files, folders or `hf:NAME` with a column of text. Equal input gives
    equal figures. Raises NoisegenError, MissingExtra without scikit-learn.
    """
    return _compare_posts(decode(PostsOptions, locals()))


def _compare_posts(options: PostsOptions) -> Unpaired:
    """Run `compare_posts` with checked options."""
    options.progress(Progress("reading"))
    dropped: Counter[str] = Counter()
    posts, clean = (
        read_texts(listed(sources), options.text_column, options.limit, dropped)
        for sources in (options.posts, options.clean)
    )
    recipe = Recipe.chosen(options.recipe, options.transforms, lang=options.lang)
    lang = normalize_language(options.lang)
    found = compare_texts(posts, clean, recipe, lang, options.seed, options.progress)
    note = recipe.note_on(lang)
    return replace(
        found,
        names=(", ".join(listed(options.posts)), found.names[1]),
        warnings=(note,) if note else (),
        damaged=(by_reason(dropped),) if dropped else (),
    )


def compare_texts(
    posts: Sequence[str],
    clean: Sequence[str],
    recipe: Recipe,
    lang: str = "en",
    seed: int = 0,
    progress: Show = silent,
) -> Unpaired:
    """Compare posts in memory with noise on clean texts; see `compare_posts`.

    Raises UsageError if there are no posts or clean texts.
    """
    posts, clean = shuffled(posts), shuffled(clean)
    for name, texts in (("posts", posts), ("clean texts", clean)):
        if not texts:
            raise UsageError(f"there are no {name}")
    base, _ = recipe.for_language(lang)
    progress(Progress("learning noisy forms"))
    forms, frequent = posts_forms(base, lang, posts, clean), frequent_words(clean)
    ours, sources = posts[:JUDGED_MAX], clean[:JUDGED_MAX]
    made = Noising(lang).noise(base, sources, seed)
    pairs = topic_free_pairs(ours, made, sources, forms.counted.union(frequent))
    halves = [Pairs(half, half) for half in (pairs[0].noisy[::2], pairs[0].noisy[1::2])]
    labels = tuple(step.label for step in base.steps() if chance_of(base, step.label))
    sides = [list(map(without_addresses, texts)) for texts in (ours, made, sources)]
    return Unpaired(
        lang=lang,
        names=("posts", f"recipe {recipe.name} (seed {seed})"),
        read=(len(posts), len(clean)),
        classifier=two_sample(*pairs, progress),
        floor=_auc(*halves),
        marks=(*_marks(WordMarks(forms, labels), *sides), *_marks(SurfaceMarks(frequent), *sides)),
        rows=tuple(zip(ours[:ROWS_SHOWN], made[:ROWS_SHOWN], strict=False)),
    )


def _auc(real: Pairs, other: Pairs) -> Auc | None:
    texts = ngram_texts(real, other)
    return auc(texts, texts.real, texts.synthetic) if texts else None


def _marks(
    marks: AnyMarks, posts: Sequence[str], noise: Sequence[str], clean: Sequence[str]
) -> Iterator[Mark]:
    """Yield the marks of posts, noise and clean texts, without marks that no text has."""
    tables = [table_of(marks, texts) for texts in (posts, noise, clean)]
    means = np.array([table.mean(axis=0) for table in tables])
    errors = np.sqrt(sum(table.var(axis=0) / len(table) for table in tables[:2]))
    for name, (ours, theirs, source), error in zip(marks.names, means.T, errors, strict=True):
        if error:
            difference = float((theirs - ours) / error)
            yield Mark(name, float(ours), float(theirs), float(source), difference)
