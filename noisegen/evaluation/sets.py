"""The sets of an evaluation: sources are read, sampled, and given their noise."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, compress, count, islice
from math import isfinite
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from noisegen.augment.on_the_fly import Noising
from noisegen.data.bitext import SIDES, find_bitext, stream_bitext
from noisegen.data.columns import ROWS_MAX, TextColumns, in_brackets, read_columns
from noisegen.data.pairs import read_pairs
from noisegen.data.sources import named_source
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.negatives import HardNegatives, hard_negatives
from noisegen.evaluation.results import EvaluateOptions
from noisegen.noise import registry
from noisegen.noise.recipe import Recipe, scaled
from noisegen.noise.rng import name_number
from noisegen.runs.progress import Progress, Show
from noisegen.text.languages import language_pair

Bool = npt.NDArray[np.bool_]
FIRST_SEED = 100  # of generation, as in RoLASER: 100 to 109
ROLASER = (  # the twelve of its Appendix A
    "abr1", "abr2", "abr3", "cont", "dysl", "fing", "homo", "leet", "slng", "spac", "spel", "week",
)  # fmt: skip
POSTS = (
    "apos", "caps", "cens", "clip", "diac", "init", "join", "long", "mash", "phon", "punc", "rebus",
    "vowl",
)  # fmt: skip
MIXES = ("mix_all", "ugc")
_TEST_PARTS = 2  # one in so many texts with labels is for testing
_ROWS_MIN = 2


class _Columns:
    """Rows of texts: `columns` names the fields that have them, one text for each row."""

    columns: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self.columns[0]))

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded, duplicates too."""
        for name in self.columns:
            yield from getattr(self, name)


@dataclass(frozen=True)
class PairSet(_Columns):
    """Clean texts and, for each generation seed, their noisy forms; natural pairs have no seeds.

    `group` names the rows: sets with the same clean texts are resampled together.
    """

    columns = ("clean",)
    name: str
    kind: str  # pairs or noise
    clean: Sequence[str]
    noisy: tuple[Sequence[str], ...]
    group: str
    seeds: tuple[int, ...] = ()
    negatives: HardNegatives | None = None
    note: str = ""

    @cached_property
    def changed(self) -> tuple[Bool, ...]:
        """Which rows differ from their clean form, for each seed."""
        return tuple(
            np.array([a != b for a, b in zip(side, self.clean, strict=True)], np.bool_)
            for side in self.noisy
        )

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded, duplicates too."""
        return chain(self.clean, *self.noisy, self.negatives.texts if self.negatives else ())


@dataclass(frozen=True)
class StrengthSet:
    """Clean texts with the noise of a recipe at several strengths, factors on its rates."""

    name: str
    clean: Sequence[str]
    strengths: tuple[float, ...]
    noisy: tuple[Sequence[str], ...]

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded, duplicates too."""
        return chain(self.clean, *self.noisy)


@dataclass(frozen=True)
class StsSet(_Columns):
    """Pairs of sentences with a human score, and both sides with noise."""

    kind = "sts"
    columns = ("first", "second", "first_noisy", "second_noisy")
    name: str
    first: Sequence[str]
    second: Sequence[str]
    first_noisy: Sequence[str]
    second_noisy: Sequence[str]
    scores: npt.NDArray[np.float64]
    note: str = ""


@dataclass(frozen=True)
class RetrievalSet(_Columns):
    """Sentences and their translations, row by row."""

    kind = "retrieval"
    columns = ("source", "target")
    name: str
    source: Sequence[str]
    target: Sequence[str]
    note: str = ""


@dataclass(frozen=True)
class LabelledSet(_Columns):
    """Texts with labels, and the same with noise; `tested` are held back from training."""

    kind = "classification"
    columns = ("clean", "noisy")
    name: str
    clean: Sequence[str]
    noisy: Sequence[str]
    labels: Sequence[str]
    tested: Bool
    note: str = ""


@dataclass(frozen=True)
class LabelledPairSet(_Columns):
    """Pairs of sentences labelled 1 (they belong together) or 0; the first side also with noise."""

    kind = "pair_classification"
    columns = ("first", "second", "first_noisy")
    name: str
    first: Sequence[str]
    second: Sequence[str]
    first_noisy: Sequence[str]
    labels: Sequence[int]
    note: str = ""


EvaluationSet = PairSet | StsSet | RetrievalSet | LabelledSet | LabelledPairSet


@dataclass
class Sets:
    """All sets of an evaluation, and what the user should know about how they were read."""

    sets: list[EvaluationSet] = field(default_factory=list)
    strengths: list[StrengthSet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded, duplicates too."""
        for dataset in (*self.sets, *self.strengths):
            yield from dataset.texts()


def make_sets(options: EvaluateOptions, progress: Show) -> Sets:
    """Read and noise everything; raises NoisegenError for what cannot be used."""
    recipe = Recipe.named(options.noise)  # a wrong name shows before anything is read
    recipes = chosen_recipes(options.transforms, options.lang) if options.source else {}
    reader = _SetReader(options, recipe, Noising(options.lang), Sets(), progress)
    sets = reader.sets
    for sources, read in (
        (options.pairs, reader.pairs),
        (options.sts, reader.sts),
        (options.retrieval, reader.retrieval),
        (options.labelled, reader.labelled),
    ):
        for name, source in map(named_source, sources):
            progress(Progress(f"reading {source}"))
            sets.sets.append(read(name, source))
    for name, source in map(named_source, options.source):
        progress(Progress(f"reading {source}"))
        reader.noise(name, source, recipes)
    names = unique_names([dataset.name for dataset in sets.sets])
    sets.sets = [
        replace(dataset, name=name) for dataset, name in zip(sets.sets, names, strict=True)
    ]
    return sets


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names, those met before with -2, -3 and so on, so that no two are alike."""
    taken, unique = set(names), []
    for index, name in enumerate(names):
        if name in names[:index]:
            name = next(new for n in count(2) if (new := f"{name}-{n}") not in taken)
            taken.add(name)
        unique.append(name)
    return unique


def chosen_recipes(given: Sequence[str], lang: str) -> dict[str, Recipe]:
    """Return the recipes by name; `all` stands for RoLASER's twelve, those of posts, and two mixes.

    Commas separate names, but for those between the parameters of one transform. Transforms keep
    their own rates. Those of `all` without data for the language are left out; raises UsageError
    for others, and for unknown names.
    """
    chosen: dict[str, Recipe] = {}
    for text in given:
        for name in filter(None, [text] if "=" in text else map(str.strip, text.split(","))):
            for recipe in (*ROLASER, *POSTS, *MIXES) if name == "all" else (name,):
                has_data = (
                    recipe in MIXES
                    or name != "all"
                    or bool({lang, "*"} & set(registry.get(recipe).languages()))
                )
                if has_data:
                    chosen[recipe] = Recipe.named(recipe)
                    chosen[recipe].for_language(lang)
    if not chosen:
        raise UsageError("--transforms names nothing")
    return chosen


@dataclass(frozen=True)
class _SetReader:
    """Reads the sources of each kind; what is dropped and damaged is noted in `sets`."""

    options: EvaluateOptions
    recipe: Recipe  # of the noise on sts and labelled sets
    noising: Noising
    sets: Sets
    progress: Show

    def pairs(self, name: str, source: str) -> PairSet:
        """Read natural noisy and clean text."""
        loaded = read_pairs(
            [source],
            noisy_column=self.options.noisy_column,
            clean_column=self.options.clean_column,
            clean_file=self.options.clean_file,
        )
        sides = {"noisy": loaded.noisy, "clean": loaded.clean}
        rows, note = self._sample(TextColumns(sides, loaded.dropped, loaded.damaged), name)
        clean, noisy = rows["clean"], rows["noisy"]
        hard, hard_note = self._negatives(clean)
        return PairSet(
            name, "pairs", clean, (noisy,), name, negatives=hard, note=_joined(note, hard_note)
        )

    def sts(self, name: str, source: str) -> StsSet:
        """Read pairs with human scores and noise both sides, by two draws."""
        table = read_columns(source, [("sentence1", "sentence2", "score")], "--sts")
        rows, note = self._sample(_with_number(table, source), name)
        scores = np.array([float(cell) for cell in rows["score"]])
        if len(set(scores.tolist())) < _ROWS_MIN:
            raise SourceError(f"{source}: all scores are {scores[0]:g}; --sts needs different ones")
        first, second = rows["sentence1"], rows["sentence2"]
        noisy = [
            self.noising.noise(self.recipe, side, FIRST_SEED, copy)
            for copy, side in enumerate([first, second])
        ]
        note = _joined(note, f"noise: {self.options.noise}")
        return StsSet(name, first, second, noisy[0], noisy[1], scores, note)

    def retrieval(self, name: str, source: str) -> RetrievalSet:
        """Read sentences and their translations: bitext, or a table that names its sides."""
        table = _translations(name, source) or read_columns(source, [SIDES], "--retrieval")
        rows, note = self._sample(table, name)
        return RetrievalSet(name, rows["source"], rows["target"], note)

    def labelled(self, name: str, source: str) -> LabelledSet | LabelledPairSet:
        """Read texts, or pairs of sentences, with labels."""
        choices = [("text", "label"), ("sentence1", "sentence2", "label")]
        rows, note = self._sample(read_columns(source, choices, "--labelled"), name)
        labels = rows["label"]
        if len(set(labels)) < _ROWS_MIN:
            raise SourceError(f"{source}: all labels are {labels[0][:40]!r}; --labelled needs two")
        note = _joined(note, f"noise: {self.options.noise}")
        clean = rows["text" if "text" in rows else "sentence1"]
        noisy = self.noising.noise(self.recipe, clean, FIRST_SEED)
        if "sentence2" in rows:
            truth = _binary(labels, source)
            return LabelledPairSet(name, clean, rows["sentence2"], noisy, truth, note)
        tested, split_note = _split(clean, labels, source)
        return LabelledSet(name, clean, noisy, labels, tested, _joined(note, split_note))

    def noise(self, name: str, source: str, recipes: Mapping[str, Recipe]) -> None:
        """Read clean text; add a set for each recipe, and its strengths where it is a mix."""
        options = self.options
        table = read_columns(source, [(options.text_column,)], "--source")
        rows, note = self._sample(table, name)
        clean = rows[options.text_column]
        hard, hard_note = self._negatives(clean)
        note = _joined(name, note, hard_note)
        prefix = f"{name}: " if len(options.source) > 1 else ""
        seeds = tuple(range(FIRST_SEED, FIRST_SEED + options.seeds))
        for label, recipe in recipes.items():
            self.progress(Progress(f"noise: {label}"))
            noisy = tuple(self._noised(recipe, clean, seed) for seed in seeds)
            pairs = PairSet(f"{prefix}{label}", "noise", clean, noisy, name, seeds, hard, note)
            self.sets.sets.append(pairs)
            if len(recipe.steps()) > 1 and len(options.strengths) > 1:
                self.sets.strengths.append(self._strengths(pairs, recipe))

    def _strengths(self, pairs: PairSet, recipe: Recipe) -> StrengthSet:
        strengths = tuple(sorted(set(self.options.strengths)))
        known = {0.0: pairs.clean, 1.0: pairs.noisy[0]}
        noisy = tuple(
            known.get(factor) or self._noised(scaled(recipe, factor), pairs.clean, FIRST_SEED)
            for factor in strengths
        )
        return StrengthSet(pairs.name, pairs.clean, strengths, noisy)

    def _noised(self, recipe: Recipe, clean: Sequence[str], seed: int) -> list[str]:
        """Return the noisy texts; those without change are the same objects as the clean ones."""
        noisy = self.noising.noise(recipe, clean, seed)
        return [a if a != b else b for a, b in zip(noisy, clean, strict=True)]

    def _sample(self, cells: TextColumns, name: str) -> tuple[dict[str, list[str]], str]:
        """Note what was dropped; return at most `limit` rows, and a note on them."""
        self.sets.damaged.extend(cells.damaged)
        if cells.dropped:
            lost = ", ".join(f"{reason} {rows:,}" for reason, rows in cells.dropped.items())
            self.sets.notes.append(f"{name}: dropped {cells.dropped.total():,} rows: {lost}")
        if len(cells) < _ROWS_MIN:
            raise SourceError(f"{name}: one row is left; an evaluation needs two at least")
        sample = cells.sample(self.options.limit)
        is_all = len(sample) == len(cells)
        note = "" if is_all else f"{len(sample):,} of {len(cells):,} rows, spread evenly"
        return sample.columns, note

    def _negatives(self, texts: Sequence[str]) -> tuple[HardNegatives | None, str]:
        hard = hard_negatives(texts, lang=self.options.lang) if self.options.hard else None
        return (hard, f"{len(hard):,} hard negatives, {hard.note}") if hard else (None, "")


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def _with_number(cells: TextColumns, source: str) -> TextColumns:
    """Return the rows whose score is a number."""
    scores = cells.columns["score"]
    numeric = [_is_number(score) for score in scores]
    if not any(numeric):
        raise SourceError(f"{source}: no score is a number; the first is {scores[0][:40]!r}")
    if not all(numeric):
        cells.dropped["score_is_no_number"] += numeric.count(False)
    rows = {name: list(compress(column, numeric)) for name, column in cells.columns.items()}
    return TextColumns(rows, cells.dropped, cells.damaged)


def _is_number(cell: str) -> bool:
    try:
        return isfinite(float(cell))
    except ValueError:
        return False


def _translations(name: str, source: str) -> TextColumns | None:
    """Return both sides of bitext in one pair of languages; None where the source is no bitext."""
    try:
        files = find_bitext(source, language_pair(name))
    except UsageError:  # a table that does not say its languages: here they do not matter
        return None
    if not files:
        return None
    dropped: Counter[str] = Counter()
    rows = list(islice(stream_bitext(files, dropped), ROWS_MAX))
    languages = sorted({f"{row.source_lang}-{row.target_lang}" for row in rows})
    if len(languages) > 1:
        raise SourceError(f"{source} has pairs of {', '.join(languages)}: give one a set")
    if not rows:
        raise SourceError(f"{source} has no rows{in_brackets(dropped)}")
    return TextColumns({side: [getattr(row, side) for row in rows] for side in SIDES}, dropped)


def _split(texts: Sequence[str], labels: Sequence[str], source: str) -> tuple[Bool, str]:
    """Return which texts are for testing, by the text alone: equal texts are on the same side.

    The note says how many of them cannot be right, as no training text has their label.
    """
    tested = np.array([name_number(text) % _TEST_PARTS == 0 for text in texts], np.bool_)
    trained = set(compress(labels, ~tested))
    if len(trained) < _ROWS_MIN or not tested.any():
        raise SourceError(
            f"{source}: too few texts with labels to train on some and test on others"
        )
    lost = sum(label not in trained for label in compress(labels, tested))
    return tested, f"{lost:,} test texts have a label that no training text has" if lost else ""


def _binary(labels: Sequence[str], source: str) -> list[int]:
    known = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
    wrong = next((label for label in labels if label.lower() not in known), None)
    if wrong is not None:
        raise SourceError(f"{source}: label {wrong[:40]!r} of a pair of sentences is not 0 or 1")
    return [known[label.lower()] for label in labels]
