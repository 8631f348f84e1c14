"""Read the data of a task, and add noise to labelled rows; their tags follow the noisy tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.augmentation.shards import carry
from noisegen.data import labelled
from noisegen.data.columns import by_reason
from noisegen.data.formats.slot_files import is_split
from noisegen.data.labelled import LabelledRow, LabelledRows, tag_kind
from noisegen.encoders.tokens import generator
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.tasks.kinds import NLI_NOISE_RATE, NOISE_RATES, LabelledTask
from noisegen.noising.recipe import Recipe
from noisegen.runs.manifest import counts_line

CLEAN, NOISY = "clean", "noisy"
CHANGE = "change"  # name of the results "noisy minus clean", over the rows that have both forms
AVERAGE = "mean"  # for means over languages, in place of a language code
_ROWS = 10_000  # rows that are noised in one call


@dataclass(frozen=True)
class LanguageSet:
    """Test rows of one language: `sides` maps 'clean' and 'noisy' to rows.

    `shared[i]` is the index of the clean row that noisy row i was made from. `shared` is None if
    this is unknown, or if there are no noisy rows.
    """

    lang: str
    sides: dict[str, list[LabelledRow]]
    shared: list[int] | None = None


@dataclass
class TaskData:
    """All rows of a task, with notes for the user and reports of damaged input.

    `corpus` names the corpus of the first training file, such as 'snips'. It decides which default
    hyperparameters are used.
    """

    task: LabelledTask
    corpus: str = ""
    training: list[LabelledRow] = field(default_factory=list)
    tests: list[LanguageSet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


def read_data(
    task: LabelledTask,
    train: Sequence[str],
    tests: Sequence[str],
    *,
    lang: str = "en",
    recipe: str | None = None,
) -> TaskData:
    """Read the training data and the test sets; a test set is LANG=CLEAN or LANG=CLEAN,NOISY.

    `recipe` names a recipe or transform. It makes noisy rows for a test set that has none, from its
    clean rows; as in RCP, rows that the noise does not change are left out of the noisy rows.
    Raises UsageError, SourceError.
    """
    named = _named_tests(tests)
    data = TaskData(task)
    for source in train:
        training = _read(data, source, lang)
        data.corpus = data.corpus or training.corpus
        data.training += training.rows
    for code, clean, noisy in named:
        test = _read_test(data, code, clean, noisy)
        if recipe and NOISY not in test.sides:
            test = _with_noise(data, test, recipe)
        data.tests.append(test)
    _unify_tags(data)
    _note_single_classes(data, ", ".join(train))
    _note_unknown_classes(data)
    return data


def _named_tests(given: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """Return (language, clean source, noisy source) for each test set.

    Raises UsageError for no test set, and for a language that is tested twice.
    """
    named = list(map(_named_test, given))
    if not named:
        raise UsageError("no test set: give --test LANG=FILE")
    langs = [code for code, *_ in named]
    if twice := next((code for code in langs if langs.count(code) > 1), None):
        raise UsageError(f"language {twice!r} is tested twice; write --test {twice}=CLEAN,NOISY")
    return named


def _named_test(given: str) -> tuple[str, str, str | None]:
    """Return (language, clean source, noisy source) of a test set; raises UsageError.

    The noisy source is None if it is not given.
    """
    lang, equals, files = given.partition("=")
    if lang.strip() == AVERAGE:
        raise UsageError(f"--test {given!r}: {AVERAGE!r} is reserved for the mean over languages")
    if not (equals and files and lang.strip()):
        raise UsageError(f"--test {given!r}: write LANG=CLEAN or LANG=CLEAN,NOISY")
    clean, comma, noisy = files.partition(",")
    return (lang, clean, noisy) if comma and not Path(files).exists() else (lang, files, None)


def _read(data: TaskData, source: str, lang: str) -> LabelledRows:
    """Read a source in the format of its task, and note its dropped rows and its damage.

    For intents and slots the format is recognised from the file. Raises SourceError if no row is
    left.
    """
    match data.task.name:
        case "ner":
            rows = labelled.read_tags(source, lang)
        case "nli":
            rows = labelled.read_nli(source, lang)
        case _ if is_split(source):
            rows = labelled.read_split(source)
        case _ if labelled.is_snips(source):
            rows = labelled.read_snips(source)
        case _:
            rows = labelled.read_slots(source)
    rows.drop_strays()
    if not rows.rows:
        lost = ", ".join(filter(None, [by_reason(rows.dropped), *rows.damaged]))
        raise SourceError(f"{source}: no rows of language {lang!r} ({lost or 'it is empty'})")
    data.damaged += rows.damaged
    if rows.dropped:
        count = f"{source}: dropped {rows.dropped.total():,} rows"
        data.notes.append(counts_line(count, dict(sorted(rows.dropped.items()))))
    return rows


def _read_test(data: TaskData, lang: str, clean: str, noisy: str | None) -> LanguageSet:
    """Read a test set, and find the clean row of each noisy row.

    If `noisy` is None, the file `clean` may have both clean and noisy rows.
    """
    clean_rows = _read(data, clean, lang)
    if noisy is None:
        if not clean_rows.noisy:
            return LanguageSet(lang, {CLEAN: clean_rows.rows})
        sides = {CLEAN: clean_rows.rows, NOISY: clean_rows.noisy}
        return LanguageSet(lang, sides, list(range(len(clean_rows.rows))))
    noisy_file = _read(data, noisy, lang)
    noisy_rows = noisy_file.noisy or noisy_file.rows
    shared = _paired(clean_rows.rows, noisy_rows)
    if shared is None:
        data.notes.append(
            f"{lang}: no {CHANGE}: {clean} has not all ids of {noisy}; without ids both must have "
            "as many rows"
        )
    return LanguageSet(lang, {CLEAN: clean_rows.rows, NOISY: noisy_rows}, shared)


def _paired(clean: Sequence[LabelledRow], noisy: Sequence[LabelledRow]) -> list[int] | None:
    """Return for each noisy row the index of its clean row: the row with the same id.

    Without ids, it is the row at the same index. Returns None if a clean row is not found, or if
    without ids the clean and noisy rows differ in number.
    """
    by_key = {row.key: number for number, row in enumerate(clean) if row.key}
    keys = [row.key for row in noisy]
    if len(by_key) == len(clean) and all(keys):
        return [by_key[key] for key in keys] if by_key.keys() >= set(keys) else None
    return list(range(len(noisy))) if len(clean) == len(noisy) else None


def _with_noise(data: TaskData, test: LanguageSet, given: str) -> LanguageSet:
    """Return a test set with noisy rows, made from its clean rows by the recipe `given`.

    Raises UsageError if the recipe changes no row.
    """
    clean = test.sides[CLEAN]
    recipe = noise_recipe(given, test.lang, is_nli=data.task.name == "nli")
    noisy = noised(clean, recipe, lang=test.lang)
    shared = [number for number, row in enumerate(noisy) if row != clean[number]]
    if not shared:
        raise UsageError(f"--recipe {given} changes none of the {len(clean):,} {test.lang} rows")
    if len(shared) < len(clean):
        data.notes.append(
            f"{test.lang}: {given} leaves {len(clean) - len(shared):,} of {len(clean):,} rows as "
            "they are; the noisy side is without them"
        )
    sides = {CLEAN: clean, NOISY: [noisy[number] for number in shared]}
    return replace(test, sides=sides, shared=shared)


def _unify_tags(data: TaskData) -> None:
    """Remove B- and I- from all tags, unless the training set and all test sets have them."""
    sides = [rows for test in data.tests for rows in test.sides.values()]
    if all(map(labelled.is_marked, (data.training, *sides))):
        return
    data.training = labelled.unmarked(data.training)
    for test in data.tests:
        test.sides.update({side: labelled.unmarked(rows) for side, rows in test.sides.items()})
    data.notes.append(
        "not all tags have B- and I-: they are removed, a run of equal tags is a span"
    )


def _tag_kinds(rows: Sequence[LabelledRow]) -> list[str]:
    """Return the tags of all tokens of the rows, without B- and I-."""
    return [tag_kind(tag) for row in rows for tag in row.tags]


def _note_single_classes(data: TaskData, train: str) -> None:
    """Add a note to `data` if all training rows have one label, or all tokens one tag.

    Raises SourceError if there are neither two labels nor two tags.
    """
    labels = {row.label for row in data.training}
    kinds = set(_tag_kinds(data.training))
    rows = [f"rows have the label {label}" for label in labels if data.task.label_metric]
    tokens = [f"tokens have the tag {kind}" for kind in kinds]
    alone = [classes[0] for classes in (rows, tokens) if len(classes) == 1]
    if max(len(rows), len(tokens)) < 2:
        raise SourceError(f"{train}: all {' and all '.join(alone)}: there is nothing to learn")
    data.notes += [f"{train}: all {words}, so every model will predict it" for words in alone]


def _note_unknown_classes(data: TaskData) -> None:
    """Note the labels and the tags of test sets that the training data lacks."""
    labels = {row.label for row in data.training}
    kinds = set(_tag_kinds(data.training))
    for test in data.tests:
        for side, tested in test.sides.items():
            unknown = {
                "tokens": [kind for kind in _tag_kinds(tested) if kind not in kinds],
                "rows": [row.label for row in tested if row.label not in labels],
            }
            for unit, lost in unknown.items():
                if lost:
                    names = ", ".join(sorted(set(map(tag_kind, lost)))[:5])
                    data.notes.append(
                        f"{test.lang} {side}: {len(lost):,} {unit} have a label that the "
                        f"training data lacks ({names}); they count as wrong"
                    )


def noise_recipe(given: str, lang: str, *, is_nli: bool) -> Recipe:
    """Return the recipe for the test set of a language.

    A transform `wiki` without a rate gets RCP's rate for the language.
    """
    kind, _, values = given.partition(":")
    if kind == "wiki" and "rate=" not in values:
        rate = NLI_NOISE_RATE if is_nli else NOISE_RATES.get(lang, 0.1)
        given = f"wiki:{values}{',' if values else ''}rate={rate}"
    return Recipe.named(given)


def noised(
    rows: Sequence[LabelledRow], recipe: Recipe, *, lang: str, seed: int = 0, copy: int = 0
) -> list[LabelledRow]:
    """Return the rows with noise; both sentences of a pair get noise.

    The random draws for a row depend on its index. The tokens that replace a token get its tag. A
    row that would lose all its words is unchanged.
    """

    def noise(texts: list[str], ids: list[str]) -> list[dict[str, Any]]:
        table = pa.table({"text": pa.array(texts, pa.string()), "id": pa.array(ids, pa.string())})
        noisy = recipe.noise_batch(table, seed, copy=copy, edits=True, lang=lang)
        return list(noisy.to_pylist())

    noisy_rows: list[LabelledRow] = []
    for start in range(0, len(rows), _ROWS):
        block = rows[start : start + _ROWS]
        numbers = range(start, start + len(block))
        firsts = noise([row.text for row in block], [f"{n}" for n in numbers])
        seconds = noise([row.second for row in block], [f"{n}/2" for n in numbers])
        for row, first, second in zip(block, firsts, seconds, strict=True):
            noisy_rows.append(_noised_row(row, first["noisy"], first["edits"], second["noisy"]))
    return noisy_rows


def _noised_row(
    row: LabelledRow, noisy: str, edits: list[dict[str, Any]], second: str
) -> LabelledRow:
    """Return a row with its noisy sentences.

    `edits` (of the first sentence) show which noisy tokens replace a token and get its tag.
    """
    tokens, tags = carry(row.tokens, row.tags or row.tokens, noisy, edits)
    if not tokens or (row.second and not second.strip()):
        return row
    return replace(row, tokens=tuple(tokens), tags=tuple(tags if row.tags else ()), second=second)


def augmented(
    rows: Sequence[LabelledRow], recipe: Recipe, growth: float, *, lang: str, seed: int = 0
) -> list[LabelledRow]:
    """Return the rows and noisy copies of them, `growth` * len(rows) rows in all.

    If `growth` is no whole number, `seed` decides which rows of the last copy are taken.
    """
    more = list(rows)
    wanted = round(growth * len(rows))
    copy = 0
    while missing := max(0, wanted - len(more)):
        copy += 1
        noisy = noised(rows, recipe, lang=lang, seed=seed, copy=copy)
        if missing < len(rows):
            chosen = np.sort(generator(seed, copy).permutation(len(rows))[:missing])
            noisy = [noisy[number] for number in chosen.tolist()]
        more += noisy
    return more
