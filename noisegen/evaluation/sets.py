"""Read the sources of an evaluation, sample their rows, and noise them into test sets."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, compress, count
from math import isfinite
from pathlib import Path

import numpy as np
import numpy.typing as npt

from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.bitext import SIDES, Bitext, find_bitext, stream_bitext
from noisegen.data.columns import (
    ROWS_MAX,
    TextColumns,
    evenly,
    in_brackets,
    read_columns,
    within_memory,
)
from noisegen.data.judged import read_judged
from noisegen.data.pairs import read_pairs
from noisegen.data.sources import named_source
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.document_search import NOTHING
from noisegen.evaluation.edit_kinds import by_kind
from noisegen.evaluation.negatives import (
    HardNegatives,
    NoLinesError,
    PublishedNegatives,
    hard_negatives,
)
from noisegen.evaluation.results import EvaluateOptions
from noisegen.evaluation.similarity import I64, SAMPLES_PER_LABEL, Bool
from noisegen.noising import registry
from noisegen.noising.recipe import Recipe
from noisegen.noising.rng import name_number
from noisegen.runs.manifest import counts_line
from noisegen.runs.progress import Progress, Show
from noisegen.text.languages import language_pair

FIRST_SEED = 100  # first of the noise seeds; RoLASER has 100 to 109, the default
# The twelve transforms of RoLASER, Appendix A.
ROLASER = tuple("abr1 abr2 abr3 cont dysl fing homo leet slng spac spel week".split())  # noqa: SIM905
# Transforms that imitate online posts and are not among RoLASER's twelve.
POSTS = tuple("apos caps cens clip diac init join long mash phon punc rebus vowl".split())  # noqa: SIM905
MIXES = ("mix_all", "ugc")
POOL_MAX = 50_000  # maximum clean sentences to search for the clean form of a noisy one
SOURCE_MAX = 2_000  # sentences without --limit; each is noised by 27 recipes x 10 seeds
_UNLABELLED = "not labeled"  # CrisisLexT26's label of a text without a label
_OTHER_COLUMNS = "; name others with --text-column and --label-column"
_TRUTHS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}  # label in a file -> 0 or 1
_FLORES = re.compile("[a-z]{3}_[A-Z][a-z]{3}")  # FLORES's code of a language and its script
_TEST_PARTS = 2  # half of the labelled texts are for testing, the rest for training
_ROWS_MIN = 2


@dataclass(frozen=True)
class PairSet:
    """Clean texts and their noisy forms.

    `noisy` has a list of texts per noise seed, or a single list for natural pairs (noise written by
    people). Sets of the same `group` have the same clean texts, so the bootstrap draws the same
    rows for all of them. The clean form of a noisy text is searched in `clean` and in the list
    `pool`. `strengths` maps a factor on all rates of the recipe to the noisy texts made with it.
    `kinds` maps a kind of edit to rows and their texts with edits of this kind (`edit_kinds`).
    """

    name: str
    kind: str  # pairs or noise
    clean: Sequence[str]
    noisy: tuple[Sequence[str], ...]
    group: str
    seeds: tuple[int, ...] = ()
    negatives: HardNegatives | None = None
    note: str = ""
    pool: Sequence[str] = ()
    strengths: Mapping[float, Sequence[str]] = field(default_factory=dict)
    kinds: Mapping[str, tuple[list[int], list[str]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.clean)

    @cached_property
    def changed(self) -> tuple[Bool, ...]:
        """For each noise seed, a mask of the rows whose noisy text differs from the clean one."""
        pairs = [zip(side, self.clean, strict=True) for side in self.noisy]
        return tuple(np.array([a != b for a, b in side], np.bool_) for side in pairs)

    def texts(self) -> Iterator[str]:
        """Yield every text that models encode, with duplicates."""
        hard = self.negatives.texts if self.negatives else ()
        of_kinds = (texts for _, texts in self.kinds.values())
        sides = *self.noisy, *self.strengths.values(), *of_kinds
        return chain(self.clean, hard, self.pool, *sides)


@dataclass(frozen=True)
class TextSet:
    """Rows of texts by column, and the human judgement of each row (`truth`).

    kind                 columns                                   truth
    sts                  first, second, first_noisy, second_noisy  human scores
    retrieval            source, target: a translation             nothing
    classification       clean, noisy; train                       labels of clean
    pair_classification  first, second, first_noisy                1 if they belong together, else 0

    `negatives` maps a column to hard negatives, which a search of the column may find by mistake.
    A classifier trains on `samples_per_label` texts per label: of the column `train`, whose labels
    are `train_labels`, or of a part of the column `clean` if there are no `train_labels`.
    """

    name: str
    kind: str
    columns: Mapping[str, Sequence[str]]
    truth: npt.NDArray[np.generic] = field(default_factory=lambda: np.zeros(0))
    note: str = ""
    negatives: Mapping[str, HardNegatives] = field(default_factory=dict)
    train_labels: Sequence[str] = ()
    samples_per_label: int = SAMPLES_PER_LABEL

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def texts(self) -> Iterator[str]:
        """Yield every text that models encode, with duplicates."""
        hard = (negatives.texts for negatives in self.negatives.values())
        return chain(*self.columns.values(), *hard)


@dataclass(frozen=True)
class SearchSet:
    """Queries, clean and noisy, and the documents to search for them.

    `grades` has {index of a document: grade} for each query, `own` the index of the document with
    the same id as the query, or `NOTHING`; `document_search` explains both. `strengths` maps a
    factor on all rates of the recipe to the noisy queries made with it. With `is_typed` the noisy
    queries are as people typed them.
    """

    name: str
    clean: Sequence[str]
    noisy: Sequence[str]
    documents: Sequence[str]
    grades: Sequence[Mapping[int, int]]
    own: I64
    note: str = ""
    strengths: Mapping[float, Sequence[str]] = field(default_factory=dict)
    is_typed: bool = False
    kind: str = "search"

    def __len__(self) -> int:
        return len(self.clean)

    @property
    def changed(self) -> int:
        """The number of queries whose noisy form differs from the clean one."""
        return sum(old != new for old, new in zip(self.clean, self.noisy, strict=True))

    def texts(self) -> Iterator[str]:
        """Yield every text that models encode, with duplicates."""
        return chain(self.clean, self.noisy, *self.strengths.values(), self.documents)


EvaluationSet = PairSet | TextSet | SearchSet


@dataclass
class Sets:
    """All test sets of an evaluation, notes for the user, and reports of damaged input."""

    sets: list[EvaluationSet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def texts(self) -> Iterator[str]:
        """Yield every text that models encode, with duplicates."""
        return chain.from_iterable(dataset.texts() for dataset in self.sets)


def make_sets(options: EvaluateOptions, progress: Show) -> Sets:
    """Read and noise all test sets that `options` name.

    Raises NoisegenError for unusable sources.
    """
    # A wrong name fails before anything is read.
    recipe = Recipe.chosen(options.recipe, options.steps, lang=options.lang)
    recipes = {options.noise: recipe} if options.steps else {}
    if options.source and not options.steps:
        recipes = chosen_recipes(options.transforms, options.lang)
    reader = _SetReader(options, recipe, recipes, Noising(options.lang), Sets(), progress)
    sets = reader.sets
    for sources, read in (
        (options.pairs, reader.pairs),
        (options.sts, reader.sts),
        (options.retrieval, reader.retrieval),
        (options.retrieval_set, reader.search),
        (options.labelled, reader.labelled),
        (options.source, reader.noise),
    ):
        for name, source in map(named_source, sources):
            progress(Progress(f"reading {source}"))
            sets.sets += read(name, source)
    names = unique_names([dataset.name for dataset in sets.sets])
    sets.sets = [
        replace(dataset, name=name) for dataset, name in zip(sets.sets, names, strict=True)
    ]
    return sets


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names, with -2, -3 and so on added to a name that occurs again."""
    taken = set(names)
    unique: list[str] = []
    for index, name in enumerate(names):
        if name in names[:index]:
            name = next(new for n in count(2) if (new := f"{name}-{n}") not in taken)
            taken.add(name)
        unique.append(name)
    return unique


def chosen_recipes(given: Sequence[str], lang: str) -> dict[str, Recipe]:
    """Return {name: recipe} for the names given with --transforms.

    `all` stands for the names in `ROLASER`, `POSTS` and `MIXES`, except transforms without data for
    the language. Names are separated by commas, except in a transform with parameters. Transforms
    have their default rates. Raises UsageError if no name is given, for unknown names, and for
    other transforms without data.
    """
    chosen: dict[str, Recipe] = {}
    for text in given:
        names = [text] if "=" in text else [name.strip() for name in text.split(",")]
        for name in filter(None, names):
            for recipe in _all_for(lang) if name == "all" else [name]:
                chosen[recipe] = Recipe.named(recipe)
                chosen[recipe].for_language(lang)
    if not chosen:
        raise UsageError("--transforms is empty: give names, or all")
    return chosen


def _all_for(lang: str) -> list[str]:
    """Return the names of transforms and recipes that `all` stands for in a language."""
    transforms = [
        name
        for name in (*ROLASER, *POSTS)
        if not {lang, "*"}.isdisjoint(registry.get(name).languages())
    ]
    return [*transforms, *MIXES]


@dataclass(frozen=True)
class _SetReader:
    """Reader of test sets, with a method for each kind of source.

    `sets` collects the notes on dropped rows and the reports of damaged input.
    """

    options: EvaluateOptions
    recipe: Recipe  # adds noise to STS sets and labelled sets
    recipes: Mapping[str, Recipe]  # name -> recipe; each gives a set of clean text
    noising: Noising
    sets: Sets
    progress: Show

    def pairs(self, name: str, source: str) -> list[EvaluationSet]:
        """Read a set of natural pairs of noisy and clean text."""
        loaded = read_pairs(
            [source],
            noisy_column=self.options.noisy_column,
            clean_column=self.options.clean_column,
            clean_file=self.options.clean_file,
        )
        sides = {"noisy": loaded.noisy, "clean": loaded.clean}
        rows, notes = self._sample(TextColumns(sides, loaded.dropped, loaded.damaged), name)
        clean = rows["clean"]
        hard = self._negatives(clean, notes)
        known = set(clean)
        others = [text for text in self.pool if text not in known]
        pool = evenly(others, max(0, POOL_MAX - len(known)))
        if others:
            is_cut = len(pool) < len(others)
            total = f" of {len(others):,}" if is_cut else ""
            notes.append(f"{len(pool):,}{total} other sentences in the pool")
            if is_cut:
                self.sets.notes.append(f"{name}: {notes[-1]}")
        return [
            PairSet(
                name,
                "pairs",
                clean,
                (rows["noisy"],),
                group=name,
                negatives=hard,
                note="; ".join(notes),
                pool=pool,
                kinds=by_kind(clean, rows["noisy"]),
            )
        ]

    @cached_property
    def published(self) -> PublishedNegatives | None:
        """The hard negatives in the file given with --augmented; None without this option."""
        path = self.options.augmented
        return PublishedNegatives.read(path) if path else None

    @cached_property
    def pool(self) -> list[str]:
        """The distinct texts of all sources given with `--pool`."""
        texts: dict[str, None] = {}
        for source in self.options.pool:
            table = read_columns(source, [(self.options.text_column,)], "--pool")
            self._note_losses(table, source)
            texts |= dict.fromkeys(table.columns[self.options.text_column])
        return list(texts)

    def sts(self, name: str, source: str) -> list[EvaluationSet]:
        """Read sentence pairs with human scores; each sentence gets noise of its own."""
        table = read_columns(source, [("sentence1", "sentence2", "score")], "--sts")
        cells = table.columns["score"]
        is_score = [_is_number(cell) for cell in cells]
        if not any(is_score):
            raise SourceError(f"{source}: no score is a number; the first is {cells[0][:40]!r}")
        rows, notes = self._sample(_only(table, is_score, "score_is_no_number"), name)
        scores = np.array([float(cell) for cell in rows["score"]])
        if len(np.unique(scores)) < _ROWS_MIN:
            raise SourceError(f"{source}: all scores are {scores[0]:g}; --sts needs different ones")
        first, second = rows["sentence1"], rows["sentence2"]
        columns = {
            "first": first,
            "second": second,
            "first_noisy": self.noising.noise(self.recipe, first, FIRST_SEED, copy=0),
            "second_noisy": self.noising.noise(self.recipe, second, FIRST_SEED, copy=1),
        }
        note = "; ".join([*notes, f"noise: {self.options.noise}"])
        return [TextSet(name, "sts", columns, scores, note)]

    def retrieval(self, name: str, source: str) -> Iterator[EvaluationSet]:
        """Read sentences and their translations.

        The source is bitext, or a table with the columns source and target. Bitext with several
        language pairs gives a set per language pair.
        """
        tables = _translations(name, source) or {name: read_columns(source, [SIDES], "--retrieval")}
        is_only = len(tables) == len(self.options.retrieval) == 1
        for label, table in tables.items():
            if not len(table):
                self._note_losses(table, label)
                continue
            rows, notes = self._sample(table, label)
            sides = {side: rows[side] for side in SIDES}
            hard: dict[str, HardNegatives] = {}
            if self.published:
                hard = _english_negatives(self.published, sides, is_required=is_only)
                notes += [f"{len(lines):,} hard negatives, {lines.note}" for lines in hard.values()]
                if not hard:
                    notes.append("no hard negatives: none was made from either side")
            if self.options.target_model:
                notes.append(f"target side encoded by {self.options.target_model}")
            yield TextSet(label, "retrieval", sides, note="; ".join(notes), negatives=hard)

    def search(self, name: str, source: str) -> list[EvaluationSet]:
        """Read queries, documents and judgements; queries without a noisy form get noise."""
        judged = read_judged(source, self.options.noisy_queries)
        for what, lost in judged.lost.items():
            count = f"{name}: dropped {lost.total():,} {what}"
            self.sets.notes += filter(None, [counts_line(count, lost)])
        rows, notes = self._sample(judged.queries, name)
        ids, clean = rows["id"], rows["clean"]
        notes.append(f"{len(judged.documents):,} documents")
        grades = [_numbered(judged.grades[one], judged.rows) for one in ids]
        own = np.array([judged.rows.get(one, NOTHING) for one in ids], np.int64)
        is_typed = "noisy" in rows
        notes.append("typed by people" if is_typed else f"noise: {self.options.noise}")
        noisy = rows["noisy"] if is_typed else self._noised(self.recipe, clean, FIRST_SEED)
        return [
            SearchSet(
                name,
                clean,
                noisy,
                judged.documents,
                grades,
                own,
                "; ".join(notes),
                {} if is_typed else self._strengths(self.recipe, clean, noisy),
                is_typed,
            )
        ]

    def labelled(self, name: str, source: str) -> list[EvaluationSet]:
        """Read texts, or pairs of sentences, with labels.

        The text, or the first sentence of a pair, gets noise.
        """
        (clean, *second), labels, notes = self._labelled_rows(name, source)
        notes.append(f"noise: {self.options.noise}")
        noisy = self.noising.noise(self.recipe, clean, FIRST_SEED)
        if second:
            columns = {"first": clean, "second": second[0], "first_noisy": noisy}
            truth = _pair_truth(labels, source)
            return [TextSet(name, "pair_classification", columns, truth, "; ".join(notes))]
        train, train_labels = self.training or ([], [])
        if self.training:
            notes += _note_lost_labels(labels, set(train_labels))
        else:
            notes += _check_split(clean, labels, source)
        return [
            TextSet(
                name,
                "classification",
                {"clean": clean, "noisy": noisy} | ({"train": train} if train else {}),
                np.array(labels, np.object_),
                "; ".join(notes),
                train_labels=train_labels,
                samples_per_label=self.options.samples_per_label,
            )
        ]

    @cached_property
    def training(self) -> tuple[list[str], list[str]] | None:
        """The texts and labels given with --labelled-train; None without this option.

        Raises SourceError for pairs of sentences, which need no training.
        """
        source = self.options.labelled_train
        if not source:
            return None
        (texts, *second), labels, _ = self._labelled_rows(source, source)
        if second:
            raise SourceError(f"{source} has pairs of sentences; --labelled-train needs texts")
        return texts, labels

    def _labelled_rows(
        self, name: str, source: str
    ) -> tuple[list[list[str]], list[str], list[str]]:
        """Read labelled texts, or pairs; return their text columns, their labels, and notes."""
        choices = [
            (*sides, label)
            for label in dict.fromkeys((self.options.label_column, "label"))
            for sides in ((self.options.text_column,), ("sentence1", "sentence2"))
        ]
        table = read_columns(source, choices, "--labelled", _OTHER_COLUMNS)
        label_column = list(table.columns)[-1]
        cells = [cell.strip() for cell in table.columns[label_column]]
        table = replace(table, columns=table.columns | {label_column: cells})
        has_label = [cell.casefold() != _UNLABELLED for cell in cells]
        rows, notes = self._sample(_only(table, has_label, "no_label"), name)
        labels = rows.pop(label_column)
        if len(set(labels)) < _ROWS_MIN:
            raise SourceError(f"{source}: all labels are {labels[0][:40]!r}; --labelled needs two")
        return list(rows.values()), labels, notes

    def noise(self, name: str, source: str) -> Iterator[EvaluationSet]:
        """Read clean text; yield a set of noisy text for each recipe.

        For recipes of several steps, the set also has noisy text of several strengths.
        """
        options = self.options
        table = read_columns(source, [(options.text_column,)], "--source")
        rows, notes = self._sample(table, name, SOURCE_MAX)
        clean = rows[options.text_column]
        hard = self._negatives(clean, notes)
        note = "; ".join([name, *notes])
        prefix = f"{name}: " if len(options.source) > 1 else ""
        seeds = tuple(range(FIRST_SEED, FIRST_SEED + options.seeds))
        for number, (label, recipe) in enumerate(self.recipes.items()):
            doing = f"noising with {label}"
            self.progress(Progress(doing, number, len(self.recipes), "recipes"))
            noisy = tuple(self._noised(recipe, clean, seed) for seed in seeds)
            yield PairSet(
                prefix + label,
                "noise",
                clean,
                noisy,
                group=name,
                seeds=seeds,
                negatives=hard,
                note=note,
                strengths=self._strengths(recipe, clean, noisy[0]),
            )

    def _noised(self, recipe: Recipe, clean: Sequence[str], seed: int) -> list[str]:
        """Return the noisy form of each text; unchanged texts are not copied, to save memory."""
        noisy = self.noising.noise(recipe, clean, seed)
        return [new if new != old else old for new, old in zip(noisy, clean, strict=True)]

    def _strengths(
        self, recipe: Recipe, clean: Sequence[str], noisy: Sequence[str]
    ) -> dict[float, Sequence[str]]:
        """Return {strength: noisy texts} for a recipe of several steps; {} for other recipes.

        `noisy` are the texts at strength 1.
        """
        strengths = sorted(set(self.options.strengths))
        if len(recipe.steps()) < 2 or len(self.options.strengths) < 2:
            return {}
        known = {0.0: clean, 1.0: noisy}
        return {
            factor: known.get(factor) or self._noised(recipe.scaled(factor), clean, FIRST_SEED)
            for factor in strengths
        }

    def _sample(
        self, table: TextColumns, name: str, most: int = ROWS_MAX
    ) -> tuple[dict[str, list[str]], list[str]]:
        """Return an even sample of the rows of a table, and a note if rows are left out.

        The sample has at most --limit rows (default: `most`). Raises SourceError for fewer than two
        rows.
        """
        self._note_losses(table, name)
        if len(table) < _ROWS_MIN:
            raise SourceError(f"{name}: only one row is left; an evaluation needs at least two")
        sample = table.sample(self.options.limit or most)
        if len(sample) == len(table):
            return sample.columns, []
        note = f"{len(sample):,} of {len(table):,} rows, evenly sampled"
        more = "" if self.options.limit else "; --limit takes more"
        self.sets.notes.append(f"{name}: {note}{more}")
        return sample.columns, [note]

    def _note_losses(self, table: TextColumns, name: str) -> None:
        """Add the damage and the dropped rows of a table to the notes for the user."""
        self.sets.damaged.extend(table.damaged)
        if table.dropped:
            count = f"{name}: dropped {table.dropped.total():,} rows"
            self.sets.notes.append(counts_line(count, table.dropped))

    def _negatives(self, texts: Sequence[str], notes: list[str]) -> HardNegatives | None:
        """Return hard negatives of clean texts, and add a note on them to `notes`.

        Returns None with --no-hard, or if no negative could be made.
        """
        options = self.options
        if not options.hard:
            return None
        if self.published:
            hard = self.published.made_from(texts)
        else:
            hard = hard_negatives(texts, lang=options.lang, per_kind=options.per_kind)
        if not hard:
            return None
        notes.append(f"{len(hard):,} hard negatives, {hard.note}")
        return hard


def is_tested(texts: Sequence[str]) -> Bool:
    """Return a mask: True for each text to test on, False for each text to train on.

    Equal texts are all for testing, or all for training.
    """
    return np.array([name_number(text) % _TEST_PARTS == 0 for text in texts], np.bool_)


def _is_number(cell: str) -> bool:
    try:
        return isfinite(float(cell))
    except ValueError:
        return False


def _only(table: TextColumns, is_wanted: list[bool], reason: str) -> TextColumns:
    """Return the rows for which `is_wanted` is True; count the others in `dropped[reason]`."""
    if not all(is_wanted):
        table.dropped[reason] += is_wanted.count(False)
    columns = {name: list(compress(cells, is_wanted)) for name, cells in table.columns.items()}
    return replace(table, columns=columns)


def _numbered(grades: Mapping[str, int], rows: Mapping[str, int]) -> dict[int, int]:
    """Return grades by the index of the document, by a negative number if it is missing."""
    missing = count(NOTHING - 1, -1)
    return {rows[one] if one in rows else next(missing): grade for one, grade in grades.items()}


def _pair_truth(labels: Sequence[str], source: str) -> npt.NDArray[np.generic]:
    """Return the labels of sentence pairs as 0 and 1; raises SourceError for other labels."""
    unknown = [label for label in labels if label.lower() not in _TRUTHS]
    if unknown:
        wrong = f"label {unknown[0][:40]!r} of a pair of sentences is not 0 or 1"
        raise SourceError(f"{source}: {wrong}")
    return np.array([_TRUTHS[label.lower()] for label in labels])


def _check_split(texts: Sequence[str], labels: Sequence[str], source: str) -> list[str]:
    """Return [note] if some test texts have a label that no training text has, else [].

    Raises SourceError if there are too few texts to train on some and test on others.
    """
    tested = is_tested(texts)
    trained = set(compress(labels, ~tested))
    if len(trained) < _ROWS_MIN or not tested.any():
        few = "too few texts with labels to train on some and test on others"
        raise SourceError(f"{source}: {few}")
    return _note_lost_labels(list(compress(labels, tested)), trained)


def _note_lost_labels(labels: Sequence[str], trained: set[str]) -> list[str]:
    """Return [note] if some of the test texts' `labels` are not in `trained`, else []."""
    lost = sum(label not in trained for label in labels)
    return [f"{lost:,} test texts have a label that no training text has"] if lost else []


def _english_negatives(
    published: PublishedNegatives, sides: Mapping[str, Sequence[str]], *, is_required: bool
) -> dict[str, HardNegatives]:
    """Return {column: published hard negatives} for the English column, 'source' or 'target'.

    English is the column from which more of the negatives were made. If none was, the result is {},
    or NoLinesError is raised if `is_required` is True.
    """
    found = {}
    for side, texts in sides.items():
        with suppress(NoLinesError):
            found[side] = published.made_from(texts)
    if not found:
        if is_required:
            published.made_from([*chain(*sides.values())])  # raises NoLinesError
        return {}
    side = max(found, key=lambda side: len(found[side]))
    return {side: found[side]}


def _translations(name: str, source: str) -> dict[str, TextColumns]:
    """Return {name of a test set: its rows}, a test set for each language pair of parallel text.

    The rows have the columns source and target. A pair without rows only counts dropped rows. The
    result is {} if the source is no bitext that names its languages.
    """
    try:
        files = find_bitext(source, language_pair(name))
    except UsageError:  # bitext must name its languages; a table need not
        return {}
    tables = _read_translations(files)
    filled = sum(len(table) > 0 for table in tables.values())
    if files and not filled:
        lost = sum((table.dropped for table in tables.values()), Counter[str]())
        raise SourceError(f"{source} has no rows{in_brackets(lost) or ': get it again'}")
    return {
        name if filled == 1 and len(table) else f"{name} {pair}": table
        for pair, table in tables.items()
    }


def _read_translations(files: Sequence[Bitext]) -> dict[str, TextColumns]:
    """Read bitext files; return {language pair: table of source and target}.

    A table also counts the dropped rows of its language pair. For a file with several language
    pairs, an extra table without rows counts them; its key is the path of the file. Files of FLORES
    that differ in script alone, such as zho_Hans and zho_Hant, are keyed by their names.
    """
    files_of = Counter(file.langs for file in files)
    tables: defaultdict[str, TextColumns] = defaultdict(lambda: TextColumns({s: [] for s in SIDES}))
    for file in files:
        dropped: Counter[str] = Counter()
        own_pair = _own_pair(file, is_alone=files_of[file.langs] == 1)
        pairs: set[str] = set()
        for row in within_memory(stream_bitext([file], dropped), dropped):
            pair = own_pair or f"{row.source_lang}-{row.target_lang}"
            pairs.add(pair)
            columns = tables[pair].columns
            columns["source"].append(row.source)
            columns["target"].append(row.target)
        if dropped:
            owner = own_pair or (pairs.pop() if len(pairs) == 1 else file.paths[0])
            tables[owner].dropped.update(dropped)
    return tables


def _own_pair(file: Bitext, *, is_alone: bool) -> str:
    """Return the two languages of a bitext file, such as 'en-de'; '' if its rows name them.

    If the file is not the only one in these languages, the names of two files of FLORES are used.
    """
    names = [Path(path).name.partition(".")[0] for path in file.paths]
    if not is_alone and all(map(_FLORES.fullmatch, names)):
        return "-".join(names)
    return "-".join(file.langs) if all(file.langs) else ""
