"""Sources to sets: what a user names is read, sampled, and given its noise."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from noisegen.bitext import stream_bitext
from noisegen.bitext_files import SIDES, find_bitext
from noisegen.cells import ROWS_MAX, Cells, in_brackets, named_source, read_cells
from noisegen.draws import name_number
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.naming import names_apart
from noisegen.evaluation.negatives import HardNegatives, hard_negatives
from noisegen.evaluation.sets import (
    Bool,
    DoseSet,
    EvaluationSet,
    LabelledPairSet,
    LabelledSet,
    PairSet,
    RetrievalSet,
    StsSet,
)
from noisegen.evaluation.transform_choice import chosen_recipes
from noisegen.language_codes import language_pair
from noisegen.realism.noising import Noising
from noisegen.realism.pairs import read_pairs
from noisegen.realism.scaling import scaled
from noisegen.recipe import Recipe

FIRST_SEED = 100  # of generation, as in RoLASER: 100 to 109
STRENGTHS = (0.0, 0.5, 1.0, 1.5)
_TESTED_PARTS = 2  # one in so many texts with labels is for testing
_FEW = 2


@dataclass(frozen=True)
class Request:
    """What a user wants to be evaluated on; every field is an option of the command."""

    pairs: Sequence[str] = ()
    source: Sequence[str] = ()
    transforms: Sequence[str] = ("all",)
    seeds: int = 10
    sts: Sequence[str] = ()
    retrieval: Sequence[str] = ()
    labelled: Sequence[str] = ()
    noise: str = "ugc"  # recipe of sts and labelled sets
    strengths: Sequence[float] = STRENGTHS
    lang: str = "en"
    limit: int = 1_000
    hard: bool = True
    noisy_column: str = "noisy"
    clean_column: str = "clean"
    clean_file: str | None = None
    text_column: str = "text"

    def __post_init__(self) -> None:
        for name in ("pairs", "source", "transforms", "sts", "retrieval", "labelled"):
            if isinstance(given := getattr(self, name), str):  # one alone may be given as it is
                object.__setattr__(self, name, (given,))
        if not any((self.pairs, self.source, self.sts, self.retrieval, self.labelled)):
            raise UsageError(
                "nothing to evaluate on: give --pairs, --source, --sts, --retrieval or --labelled"
            )
        for name in ("seeds", "limit"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name} {getattr(self, name)} must be at least 1")
        if any(not 0 <= factor <= 100 for factor in self.strengths):
            raise UsageError("--strengths are factors from 0 to 100")


@dataclass
class Sets:
    """All sets of an evaluation; `notes` say what people should know, `damaged` what was lost."""

    sets: list[EvaluationSet] = field(default_factory=list)
    doses: list[DoseSet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def texts(self) -> Iterator[str]:
        """Yield all that is encoded, doubles too."""
        for one in (*self.sets, *self.doses):
            yield from one.texts()


Tell = Callable[[str], None]  # what is being done


def make_sets(request: Request, tell: Tell) -> Sets:
    """Read and noise everything; raises NoisegenError for what cannot be used."""
    made = Sets()
    recipe = Recipe.named(request.noise)  # a wrong name shows before anything is read
    recipes = chosen_recipes(request.transforms, request.lang) if request.source else {}
    readers: tuple[tuple[Sequence[str], Callable[[str, str], EvaluationSet]], ...] = (
        (request.pairs, lambda name, source: _pairs(name, source, request, made)),
        (request.sts, lambda name, source: _sts(name, source, request, recipe, made)),
        (request.retrieval, lambda name, source: _retrieval(name, source, request, made)),
        (request.labelled, lambda name, source: _labelled(name, source, request, recipe, made)),
    )
    for given, read in readers:
        for name, source in map(named_source, given):
            tell(f"reading {source}")
            made.sets.append(read(name, source))
    for source in request.source:
        _noised(source, recipes, request, made, tell)
    _name_apart(made)
    return made


def _name_apart(made: Sets) -> None:
    """Give sets that would have the same name a number."""
    names = names_apart([one.name for one in made.sets])
    made.sets = [
        replace(one, name=name) if one.name != name else one
        for one, name in zip(made.sets, names, strict=True)
    ]


def _kept(cells: Cells, name: str, limit: int, made: Sets) -> Cells:
    """Note what was dropped, and return a sample."""
    made.damaged += cells.damaged
    if cells.dropped:
        lost = ", ".join(f"{reason} {count:,}" for reason, count in cells.dropped.items())
        made.notes.append(f"{name}: dropped {cells.dropped.total():,} rows: {lost}")
    if len(cells) < _FEW:
        raise SourceError(f"{name}: one row is left; an evaluation needs two at least")
    return cells.sample(limit)


def _note(kept: int, of: int) -> str:
    return f"{kept:,} of {of:,} rows, spread evenly" if kept < of else ""


def _negatives(texts: Sequence[str], request: Request) -> HardNegatives | None:
    found = hard_negatives(texts, lang=request.lang) if request.hard else None
    return found if found and len(found) else None


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def _pairs(name: str, source: str, request: Request, made: Sets) -> PairSet:
    found = read_pairs(
        [source],
        noisy_column=request.noisy_column,
        clean_column=request.clean_column,
        clean_file=request.clean_file,
    )
    sides = {"noisy": found.noisy, "clean": found.clean}
    kept = _kept(Cells(sides, found.dropped, found.damaged), name, request.limit, made)
    clean, noisy = kept.columns["clean"], kept.columns["noisy"]
    hard = _negatives(clean, request)
    note = _joined(_note(len(kept), len(found)), _hard_note(hard))
    return PairSet(name, "pairs", clean, (noisy,), name, negatives=hard, note=note)


def _hard_note(hard: HardNegatives | None) -> str:
    return f"{len(hard):,} hard negatives, {hard.note}" if hard else ""


def _sts(name: str, source: str, request: Request, recipe: Recipe, made: Sets) -> StsSet:
    columns = "sentence1", "sentence2", "score"
    found = read_cells(source, [columns], "--sts")
    scored = _scored(found, source)
    kept = _kept(scored, name, request.limit, made)
    scores = np.array([float(cell) for cell in kept.columns["score"]])
    if len(set(scores.tolist())) < _FEW:
        raise SourceError(f"{source}: all scores are {scores[0]:g}; --sts needs different ones")
    first, second = kept.columns["sentence1"], kept.columns["sentence2"]
    noising = Noising(request.lang)
    noisy = [
        noising.noise(recipe, side, FIRST_SEED, copy) for copy, side in enumerate([first, second])
    ]
    note = _joined(_note(len(kept), len(found)), f"noise: {request.noise}")
    return StsSet(name, first, second, noisy[0], noisy[1], scores, note)


def _scored(found: Cells, source: str) -> Cells:
    """Return the rows whose score is a number."""
    good = [_is_number(cell) for cell in found.columns["score"]]
    if not any(good):
        first = found.columns["score"][0][:40]
        raise SourceError(f"{source}: no score is a number; the first is {first!r}")
    if not all(good):
        found.dropped["score_is_no_number"] += good.count(False)
    kept = {
        name: [cell for cell, fine in zip(cells, good, strict=True) if fine]
        for name, cells in found.columns.items()
    }
    return Cells(kept, found.dropped, found.damaged)


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


def _retrieval(name: str, source: str, request: Request, made: Sets) -> RetrievalSet:
    found = _translations(name, source) or read_cells(source, [SIDES], "--retrieval")
    kept = _kept(found, name, request.limit, made)
    note = _note(len(kept), len(found))
    return RetrievalSet(name, kept.columns["source"], kept.columns["target"], note)


def _translations(name: str, source: str) -> Cells | None:
    """Return both sides of bitext in one pair of languages; None where the source is no bitext."""
    try:
        files = find_bitext(source, language_pair(name))
    except UsageError:  # a table that does not say its languages: here they do not matter
        return None
    if not files:
        return None
    dropped: Counter[str] = Counter()
    rows = list(islice(stream_bitext(files, dropped), ROWS_MAX))
    pairs = sorted({f"{row.source_lang}-{row.target_lang}" for row in rows})
    if len(pairs) != 1:
        none = f"no rows{in_brackets(dropped)}"
        said = f"pairs of {', '.join(pairs)}: give one a set" if pairs else none
        raise SourceError(f"{source} has {said}")
    return Cells({side: [getattr(row, side) for row in rows] for side in SIDES}, dropped)


def _labelled(
    name: str, source: str, request: Request, recipe: Recipe, made: Sets
) -> LabelledSet | LabelledPairSet:
    choices = [("text", "label"), ("sentence1", "sentence2", "label")]
    found = read_cells(source, choices, "--labelled")
    kept = _kept(found, name, request.limit, made)
    labels = kept.columns["label"]
    if len(set(labels)) < _FEW:
        raise SourceError(f"{source}: all labels are {labels[0][:40]!r}; --labelled needs two")
    note = _joined(_note(len(kept), len(found)), f"noise: {request.noise}")
    clean = kept.columns["text" if "text" in kept.columns else "sentence1"]
    noisy = Noising(request.lang).noise(recipe, clean, FIRST_SEED)
    if "sentence2" not in kept.columns:
        tested = _tested(clean, labels, source)
        return LabelledSet(name, clean, noisy, labels, tested, _joined(note, _new(labels, tested)))
    truth = _binary(labels, source)
    return LabelledPairSet(name, clean, kept.columns["sentence2"], noisy, truth, note)


def _tested(texts: Sequence[str], labels: Sequence[str], source: str) -> Bool:
    """Tell which texts are for testing, by the text alone: equal texts are on the same side."""
    tested = np.array([name_number(text) % _TESTED_PARTS == 0 for text in texts], np.bool_)
    trained = {label for label, held in zip(labels, tested, strict=True) if not held}
    if len(trained) < _FEW or not tested.any():
        raise SourceError(
            f"{source}: too few texts with labels to train on some and test on others"
        )
    return tested


def _new(labels: Sequence[str], tested: Bool) -> str:
    """Say how many texts cannot be right, as no text to train on has their label; '' for none."""
    trained = {label for label, held in zip(labels, tested, strict=True) if not held}
    lost = sum(held and label not in trained for label, held in zip(labels, tested, strict=True))
    return f"{lost:,} texts to test on have a label that none to train on has" if lost else ""


def _binary(labels: Sequence[str], source: str) -> list[int]:
    known = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
    wrong = next((label for label in labels if label.lower() not in known), None)
    if wrong is not None:
        raise SourceError(f"{source}: label {wrong[:40]!r} of a pair of sentences is not 0 or 1")
    return [known[label.lower()] for label in labels]


def _noised(
    given: str, recipes: dict[str, Recipe], request: Request, made: Sets, tell: Tell
) -> None:
    """Add a set for each transform and recipe, and the strengths of the recipes."""
    name, source = named_source(given)
    tell(f"reading {source}")
    found = read_cells(source, [(request.text_column,)], "--source")
    kept = _kept(found, name, request.limit, made)
    clean = kept.columns[request.text_column]
    hard = _negatives(clean, request)
    note = _joined(name, _note(len(kept), len(found)), _hard_note(hard))
    prefix = f"{name}: " if len(request.source) > 1 else ""
    seeds = tuple(range(FIRST_SEED, FIRST_SEED + request.seeds))
    noising = Noising(request.lang)
    for label, recipe in recipes.items():
        tell(f"noise: {label}")
        noisy = tuple(_shared(noising.noise(recipe, clean, seed), clean) for seed in seeds)
        one = PairSet(f"{prefix}{label}", "noise", clean, noisy, name, seeds, hard, note)
        made.sets.append(one)
        if len(recipe.steps()) > 1 and len(request.strengths) > 1:
            made.doses.append(_doses(one, recipe, request, noising))


def _shared(noisy: Sequence[str], clean: Sequence[str]) -> list[str]:
    """Return the noisy texts; those without change are the same objects as the clean ones."""
    return [one if one != other else other for one, other in zip(noisy, clean, strict=True)]


def _doses(one: PairSet, recipe: Recipe, request: Request, noising: Noising) -> DoseSet:
    strengths = tuple(sorted(set(map(float, request.strengths))))
    made: list[Sequence[str]] = []
    for factor in strengths:
        if factor in (0, 1):
            made.append(one.noisy[0] if factor else one.clean)
        else:
            noisy = noising.noise(scaled(recipe, factor), one.clean, FIRST_SEED)
            made.append(_shared(noisy, one.clean))
    return DoseSet(one.name, one.clean, strengths, tuple(made))
