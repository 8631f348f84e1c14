"""The sets of an evaluation: sources are read, sampled, and noised."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, compress, count
from math import isfinite

import numpy as np
import numpy.typing as npt

from noisegen.augmentation.on_the_fly import Noising
from noisegen.data.bitext import SIDES, find_bitext, stream_bitext
from noisegen.data.columns import (
    ROWS_MAX,
    TextColumns,
    evenly,
    in_brackets,
    read_columns,
    within_memory,
)
from noisegen.data.pairs import read_pairs
from noisegen.data.sources import named_source
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.negatives import (
    HardNegatives,
    NoLinesError,
    PublishedNegatives,
    hard_negatives,
)
from noisegen.evaluation.results import EvaluateOptions
from noisegen.evaluation.similarity import Bool
from noisegen.noising import registry
from noisegen.noising.recipe import Recipe, scaled
from noisegen.noising.rng import name_number
from noisegen.runs.progress import Progress, Show
from noisegen.text.languages import language_pair

FIRST_SEED = 100  # of generation, as in RoLASER: 100 to 109
ROLASER = (  # the twelve of its Appendix A
    "abr1", "abr2", "abr3", "cont", "dysl", "fing", "homo", "leet", "slng", "spac", "spel", "week",
)  # fmt: skip
POSTS = (
    "apos", "caps", "cens", "clip", "diac", "init", "join", "long", "mash", "phon", "punc", "rebus",
    "vowl",
)  # fmt: skip
MIXES = ("mix_all", "ugc")
_UNLABELLED = "not labeled"  # in CrisisLexT26
_OTHER_COLUMNS = "; name others with --text-column and --label-column"
_TRUTHS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}  # of a pair of sentences
_TEST_PARTS = 2  # one in so many texts with labels is for testing
_ROWS_MIN = 2
POOL_MAX = 50_000  # sentences that a noisy one is searched in
SOURCE_MAX = 2_000  # clean sentences that are noised without --limit: each 270 times by default


@dataclass(frozen=True)
class PairSet:
    """Clean texts and, for each noise seed, their noisy forms; natural pairs have no seeds.

    `group` names the rows: sets with the same clean texts are resampled together. `pool` has other
    clean texts to search. `strengths` has the noisy texts of a mix by factors on its rates.
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

    def __len__(self) -> int:
        return len(self.clean)

    @cached_property
    def changed(self) -> tuple[Bool, ...]:
        """For each seed, which rows differ from their clean form."""
        pairs = [zip(side, self.clean, strict=True) for side in self.noisy]
        return tuple(np.array([a != b for a, b in side], np.bool_) for side in pairs)

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded, duplicates too."""
        hard = self.negatives.texts if self.negatives else ()
        return chain(self.clean, *self.noisy, hard, self.pool, *self.strengths.values())


@dataclass(frozen=True)
class TextSet:
    """Rows of texts by column, and the human judgement of each row (`truth`).

    kind                 columns                                   truth
    sts                  first, second, first_noisy, second_noisy  human scores
    retrieval            source, target: a translation             nothing
    classification       clean, noisy                              labels
    pair_classification  first, second, first_noisy                1: they belong together, or 0

    `negatives` has hard negatives of a column, which are searched together with it.
    """

    name: str
    kind: str
    columns: Mapping[str, Sequence[str]]
    truth: npt.NDArray[np.generic] = field(default_factory=lambda: np.zeros(0))
    note: str = ""
    negatives: Mapping[str, HardNegatives] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded, duplicates too."""
        hard = (negatives.texts for negatives in self.negatives.values())
        return chain(*self.columns.values(), *hard)


EvaluationSet = PairSet | TextSet


@dataclass
class Sets:
    """All sets of an evaluation, with notes on how they were read."""

    sets: list[EvaluationSet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded, duplicates too."""
        return chain.from_iterable(dataset.texts() for dataset in self.sets)


def make_sets(options: EvaluateOptions, progress: Show) -> Sets:
    """Read and noise all sets; raises NoisegenError for unusable sources."""
    recipe = Recipe.named(options.recipe)  # a wrong name shows before anything is read
    recipes = chosen_recipes(options.transforms, options.lang) if options.source else {}
    reader = _SetReader(options, recipe, recipes, Noising(options.lang), Sets(), progress)
    sets = reader.sets
    for sources, read in (
        (options.pairs, reader.pairs),
        (options.sts, reader.sts),
        (options.retrieval, reader.retrieval),
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
    """Return the names, repeated ones with -2, -3 and so on."""
    taken, unique = set(names), []
    for index, name in enumerate(names):
        if name in names[:index]:
            name = next(new for n in count(2) if (new := f"{name}-{n}") not in taken)
            taken.add(name)
        unique.append(name)
    return unique


def chosen_recipes(given: Sequence[str], lang: str) -> dict[str, Recipe]:
    """Return the recipes by name; `all` is RoLASER's twelve, those of posts, and two mixes.

    Names are separated by commas, except in a transform with parameters. Transforms have their
    default rates. `all` leaves out transforms without data for the language; others without data,
    and unknown names, raise UsageError.
    """
    fits = {lang, "*"}.intersection
    known = [name for name in (*ROLASER, *POSTS) if fits(registry.get(name).languages())]
    chosen: dict[str, Recipe] = {}
    for text in given:
        for name in filter(None, [text] if "=" in text else map(str.strip, text.split(","))):
            for recipe in [*known, *MIXES] if name == "all" else [name]:
                chosen[recipe] = Recipe.named(recipe)
                chosen[recipe].for_language(lang)
    if not chosen:
        raise UsageError("--transforms is empty: give names, or all")
    return chosen


@dataclass(frozen=True)
class _SetReader:
    """Reads the sources of each kind; what is dropped and damaged is noted in `sets`."""

    options: EvaluateOptions
    recipe: Recipe  # of the noise on sts and labelled sets
    recipes: Mapping[str, Recipe]  # of the noise on clean text
    noising: Noising
    sets: Sets
    progress: Show

    def pairs(self, name: str, source: str) -> list[EvaluationSet]:
        """Read natural noisy and clean text."""
        loaded = read_pairs(
            [source],
            noisy_column=self.options.noisy_column,
            clean_column=self.options.clean_column,
            clean_file=self.options.clean_file,
        )
        sides = {"noisy": loaded.noisy, "clean": loaded.clean}
        rows, notes = self._sample(TextColumns(sides, loaded.dropped, loaded.damaged), name)
        clean, hard = rows["clean"], self._negatives(rows["clean"], notes)
        known = set(clean)
        others = [text for text in self.pool if text not in known]
        pool = evenly(others, max(0, POOL_MAX - len(known)))
        if others:
            of = f" of {len(others):,}" if len(pool) < len(others) else ""
            notes.append(f"{len(pool):,}{of} other sentences in the pool")
            self.sets.notes += [f"{name}: {notes[-1]}"] if of else []
        note = "; ".join(notes)
        return [PairSet(name, "pairs", clean, (rows["noisy"],), name, (), hard, note, pool)]

    @cached_property
    def published(self) -> PublishedNegatives | None:
        """The lines of `--augmented`."""
        path = self.options.augmented
        return PublishedNegatives.read(path) if path else None

    @cached_property
    def pool(self) -> list[str]:
        """The texts of `--pool`, each once."""
        texts: dict[str, None] = {}
        for source in self.options.pool:
            table = read_columns(source, [(self.options.text_column,)], "--pool")
            self._note_losses(table, source)
            texts |= dict.fromkeys(table.columns[self.options.text_column])
        return list(texts)

    def sts(self, name: str, source: str) -> list[EvaluationSet]:
        """Read pairs with human scores; noise both sides independently."""
        table = read_columns(source, [("sentence1", "sentence2", "score")], "--sts")
        cells = table.columns["score"]
        numeric = list(map(_is_number, cells))
        if not any(numeric):
            raise SourceError(f"{source}: no score is a number; the first is {cells[0][:40]!r}")
        if not all(numeric):
            table.dropped["score_is_no_number"] += numeric.count(False)
        known = {column: list(compress(texts, numeric)) for column, texts in table.columns.items()}
        rows, notes = self._sample(replace(table, columns=known), name)
        scores = np.array(list(map(float, rows["score"])))
        if len(np.unique(scores)) < _ROWS_MIN:
            raise SourceError(f"{source}: all scores are {scores[0]:g}; --sts needs different ones")
        columns = {"first": rows["sentence1"], "second": rows["sentence2"]}
        columns |= {
            f"{side}_noisy": self.noising.noise(self.recipe, texts, FIRST_SEED, copy)
            for copy, (side, texts) in enumerate(columns.items())
        }
        note = "; ".join([*notes, f"noise: {self.options.recipe}"])
        return [TextSet(name, "sts", columns, scores, note)]

    def retrieval(self, name: str, source: str) -> Iterator[EvaluationSet]:
        """Read sentences and their translations: bitext, or a table that names its sides."""
        tables = _translations(name, source) or {name: read_columns(source, [SIDES], "--retrieval")}
        for label, table in tables.items():
            if not len(table):
                self._note_losses(table, label)
                continue
            rows, notes = self._sample(table, label)
            sides, hard = {side: rows[side] for side in SIDES}, {}
            if self.published:
                hard = _english_negatives(self.published, sides)
                is_only = len(tables) == len(self.options.retrieval) == 1
                if is_only and not hard:
                    self.published.made_from([*chain(*sides.values())])  # raises
                notes += [f"{len(lines):,} hard negatives, {lines.note}" for lines in hard.values()]
                notes += [] if hard else ["no hard negatives: none was made from either side"]
            if self.options.target_model:
                notes.append(f"target side encoded by {self.options.target_model}")
            yield TextSet(label, "retrieval", sides, note="; ".join(notes), negatives=hard)

    def labelled(self, name: str, source: str) -> list[EvaluationSet]:
        """Read texts, or pairs of sentences, with labels."""
        text = self.options.text_column
        choices = [
            (*sides, label)
            for label in dict.fromkeys((self.options.label_column, "label"))  # of other sets
            for sides in ((text,), ("sentence1", "sentence2"))
        ]
        table = read_columns(source, choices, "--labelled", _OTHER_COLUMNS)
        label = list(table.columns)[-1]
        cells = [cell.strip() for cell in table.columns[label]]
        labelled = [cell.casefold() != _UNLABELLED for cell in cells]
        if not all(labelled):
            table.dropped["no_label"] += labelled.count(False)
        columns = table.columns | {label: cells}
        known = {column: list(compress(cells, labelled)) for column, cells in columns.items()}
        rows, notes = self._sample(replace(table, columns=known), name)
        labels, notes = rows[label], [*notes, f"noise: {self.options.recipe}"]
        if len(set(labels)) < _ROWS_MIN:
            raise SourceError(f"{source}: all labels are {labels[0][:40]!r}; --labelled needs two")
        clean = rows[text if text in rows else "sentence1"]
        noisy = self.noising.noise(self.recipe, clean, FIRST_SEED)
        if "sentence2" in rows:
            if unknown := [label for label in labels if label.lower() not in _TRUTHS]:
                wrong = f"label {unknown[0][:40]!r} of a pair of sentences is not 0 or 1"
                raise SourceError(f"{source}: {wrong}")
            columns = {"first": clean, "second": rows["sentence2"], "first_noisy": noisy}
            truth = np.array([_TRUTHS[label.lower()] for label in labels])
            return [TextSet(name, "pair_classification", columns, truth, "; ".join(notes))]
        tested = is_tested(clean)
        trained = set(compress(labels, ~tested))
        if len(trained) < _ROWS_MIN or not tested.any():
            few = "too few texts with labels to train on some and test on others"
            raise SourceError(f"{source}: {few}")
        if lost := sum(label not in trained for label in compress(labels, tested)):
            notes.append(f"{lost:,} test texts have a label that no training text has")
        columns, truth = {"clean": clean, "noisy": noisy}, np.array(labels, np.object_)
        return [TextSet(name, "classification", columns, truth, "; ".join(notes))]

    def noise(self, name: str, source: str) -> Iterator[EvaluationSet]:
        """Read clean text; yield a set per recipe, with strengths if it is a mix."""
        options = self.options
        table = read_columns(source, [(options.text_column,)], "--source")
        rows, notes = self._sample(table, name, SOURCE_MAX)
        clean = rows[options.text_column]
        hard = self._negatives(clean, notes)
        note, prefix = "; ".join([name, *notes]), f"{name}: " if len(options.source) > 1 else ""
        seeds = tuple(range(FIRST_SEED, FIRST_SEED + options.seeds))

        def noised(recipe: Recipe, seed: int) -> list[str]:
            """Return the noisy texts; those without change are the same objects as the clean."""
            noisy = self.noising.noise(recipe, clean, seed)
            return [a if a != b else b for a, b in zip(noisy, clean, strict=True)]

        for number, (label, recipe) in enumerate(self.recipes.items()):
            doing = f"noising with {label}"
            self.progress(Progress(doing, number, len(self.recipes), "recipes"))
            noisy = tuple(noised(recipe, seed) for seed in seeds)
            strengths: dict[float, Sequence[str]] = {}
            if len(recipe.steps()) > 1 and len(options.strengths) > 1:
                known = {0.0: clean, 1.0: noisy[0]}
                strengths = {
                    factor: known.get(factor) or noised(scaled(recipe, factor), FIRST_SEED)
                    for factor in sorted(set(options.strengths))
                }
            given = prefix + label, "noise", clean, noisy, name, seeds, hard, note
            yield PairSet(*given, strengths=strengths)

    def _sample(
        self, table: TextColumns, name: str, most: int = ROWS_MAX
    ) -> tuple[dict[str, list[str]], list[str]]:
        """Return all rows, at most `limit` or else `most`, and notes; note what is left out."""
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
        self.sets.damaged.extend(table.damaged)
        if table.dropped:
            lost = ", ".join(f"{reason} {rows:,}" for reason, rows in table.dropped.items())
            self.sets.notes.append(f"{name}: dropped {table.dropped.total():,} rows: {lost}")

    def _negatives(self, texts: Sequence[str], notes: list[str]) -> HardNegatives | None:
        if not self.options.hard:
            return None
        hard = (
            self.published.made_from(texts) if self.published
            else hard_negatives(texts, lang=self.options.lang, per_kind=self.options.per_kind)
        )  # fmt: skip
        if not hard:
            return None
        notes.append(f"{len(hard):,} hard negatives, {hard.note}")
        return hard


def is_tested(texts: Sequence[str]) -> Bool:
    """Return which texts are for testing; equal texts are on the same side."""
    return np.array([name_number(text) % _TEST_PARTS == 0 for text in texts], np.bool_)


def _is_number(cell: str) -> bool:
    try:
        return isfinite(float(cell))
    except ValueError:
        return False


def _english_negatives(
    published: PublishedNegatives, sides: Mapping[str, Sequence[str]]
) -> dict[str, HardNegatives]:
    """Return published lines by the side that most were made from; none if there is none."""
    found = {}
    for side, texts in sides.items():
        with suppress(NoLinesError):
            found[side] = published.made_from(texts)
    if not found:
        return {}
    side = max(found, key=lambda side: len(found[side]))
    return {side: found[side]}


def _translations(name: str, source: str) -> dict[str, TextColumns]:
    """Return both sides of bitext by name, a set per pair of languages; none for no bitext.

    A set without rows says what was lost of a pair, or of a file of several pairs.
    """
    try:
        files = find_bitext(source, language_pair(name))
    except UsageError:  # a table that does not say its languages: here they do not matter
        return {}
    tables: defaultdict[str, TextColumns] = defaultdict(lambda: TextColumns({s: [] for s in SIDES}))
    for file in files:
        dropped: Counter[str] = Counter()
        rows = list(within_memory(stream_bitext([file], dropped), dropped))
        own = "-".join(file.langs) if all(file.langs) else ""
        pairs = [own or "-".join(row[2:4]) for row in rows]
        for pair, row in zip(pairs, rows, strict=True):
            for side, texts in tables[pair].columns.items():
                texts.append(getattr(row, side))
        if dropped:  # of a file of several pairs, losses are the file's
            alone = own or (pairs[0] if len(set(pairs)) == 1 else file.paths[0])
            tables[alone].dropped.update(dropped)
    read = sum(len(table) > 0 for table in tables.values())
    if files and not read:
        lost = sum((table.dropped for table in tables.values()), Counter[str]())
        raise SourceError(f"{source} has no rows{in_brackets(lost) or ': get it again'}")
    return {
        name if read == 1 and len(table) else f"{name} {pair}": table
        for pair, table in tables.items()
    }
