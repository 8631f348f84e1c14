"""From what a user names to the rows of a task: training data, and test sets clean and noisy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from noisegen.cells import by_reason
from noisegen.errors import SourceError, UsageError
from noisegen.tasks.kinds import TASKS, Task
from noisegen.tasks.noising import noise_recipe, noised
from noisegen.tasks.rows import Row, RowSet, is_marked, kind_of, unmarked
from noisegen.tasks.scores import AVERAGE, CHANGE
from noisegen.tasks.snips import is_snips, read_snips
from noisegen.tasks.tables import read_nli, read_slots
from noisegen.tasks.wikiann import read_wikiann

CLEAN, NOISY = "clean", "noisy"


@dataclass(frozen=True)
class LanguageSet:
    """The rows of one language, by side.

    `shared` has the numbers of the clean rows that the noisy ones came from; None where it is not
    known.
    """

    lang: str
    sides: dict[str, list[Row]]
    shared: list[int] | None = None


@dataclass
class TaskData:
    """All rows; `notes` say what people should know, `damaged` what was lost."""

    task: Task
    corpus: str
    training: list[Row]
    tests: list[LanguageSet]
    notes: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def tested(self) -> Iterable[Row]:
        """Yield all rows of all test sets."""
        for test in self.tests:
            for rows in test.sides.values():
                yield from rows


def known_task(name: str) -> Task:
    """Return a task by its name; raises UsageError."""
    if name not in TASKS:
        raise UsageError(f"no task {name!r}; known: {', '.join(TASKS)}")
    return TASKS[name]


def read_data(
    task: Task, train: str, tests: Sequence[str], *, lang: str = "en", noise: str | None = None,
    seed: int = 0,
) -> TaskData:  # fmt: skip
    """Read the training data and the test sets, given as LANG=CLEAN or LANG=CLEAN,NOISY.

    With `noise` (a transform or recipe) the clean rows of a set without a noisy side get one; rows
    that it leaves as they are drop out of that side, as in RCP. Raises UsageError, SourceError.
    """
    named = [_named_test(given) for given in tests]
    if not named:
        raise UsageError("no test set: give --test LANG=FILE")
    twice = next((one for one, *_ in named if [n for n, *_ in named].count(one) > 1), None)
    if twice:
        raise UsageError(f"language {twice!r} is tested twice; write --test {twice}=CLEAN,NOISY")
    found = _read(task, train, lang)
    data = TaskData(task, found.corpus, found.rows, [])
    _tell(data, train, found)
    for code, clean, noisy in named:
        data.tests.append(_test(data, code, clean, noisy))
    if noise:
        data.tests = [_with_noise(data, test, noise, seed) for test in data.tests]
    _unify(data)
    _refuse_one_class(data, train)
    _tell_unknown(data)
    return data


def _named_test(given: str) -> tuple[str, str, str | None]:
    lang, equals, files = given.partition("=")
    if lang.strip() == AVERAGE:
        raise UsageError(f"--test {given!r}: {AVERAGE!r} is what the mean over languages is called")
    if not (equals and files and lang.strip()):
        raise UsageError(f"--test {given!r}: write LANG=CLEAN or LANG=CLEAN,NOISY")
    clean, comma, noisy = files.partition(",")
    if not comma or Path(files).exists():
        return lang, files, None
    return lang, clean, noisy


def _read(task: Task, source: str, lang: str) -> RowSet:
    """Read one source in the format that the task or the file itself says."""
    if task.name == "ner":
        found = read_wikiann(source, lang)
    elif task.name == "nli":
        found = read_nli(source, lang)
    else:
        found = read_snips(source) if is_snips(source) else read_slots(source)
    found.drop_strays()
    if not found.rows:
        lost = ", ".join(filter(None, [by_reason(found.dropped), *found.damaged]))
        raise SourceError(f"{source}: no rows of language {lang!r} ({lost or 'it is empty'})")
    return found


def _test(data: TaskData, lang: str, clean: str, noisy: str | None) -> LanguageSet:
    found = _read(data.task, clean, lang)
    _tell(data, clean, found)
    if noisy is None:
        sides = {CLEAN: found.rows} | ({NOISY: found.noisy} if found.noisy else {})
        return LanguageSet(lang, sides, list(range(len(found.rows))) if found.noisy else None)
    other = _read(data.task, noisy, lang)
    _tell(data, noisy, other)
    rows = other.noisy or other.rows
    shared = _shared(found.rows, rows)
    if shared is None:
        data.notes.append(
            f"{lang}: no {CHANGE}: {clean} has not all ids of {noisy}; without ids both must have "
            "as many rows"
        )
    return LanguageSet(lang, {CLEAN: found.rows, NOISY: rows}, shared)


def _shared(clean: Sequence[Row], noisy: Sequence[Row]) -> list[int] | None:
    """Return which clean row every noisy one is of: by key, or by place in files equally long."""
    numbers = {row.key: number for number, row in enumerate(clean) if row.key}
    keys = [row.key for row in noisy]
    if len(numbers) == len(clean) and all(keys):
        return [numbers[key] for key in keys] if numbers.keys() >= set(keys) else None
    return list(range(len(clean))) if len(clean) == len(noisy) else None


def _with_noise(data: TaskData, test: LanguageSet, noise: str, seed: int) -> LanguageSet:
    if NOISY in test.sides:
        return test
    clean = test.sides[CLEAN]
    recipe = noise_recipe(noise, test.lang, is_nli=data.task.name == "nli")
    noisy = noised(clean, recipe, lang=test.lang, seed=seed)
    shared = [number for number, row in enumerate(noisy) if row != clean[number]]
    if not shared:
        raise UsageError(f"--noise {noise} changes none of the {len(clean):,} {test.lang} rows")
    if len(shared) < len(clean):
        data.notes.append(
            f"{test.lang}: {noise} leaves {len(clean) - len(shared):,} of {len(clean):,} rows as "
            "they are; the noisy side is without them"
        )
    return replace(
        test, sides={CLEAN: clean, NOISY: [noisy[number] for number in shared]}, shared=shared
    )


def _unify(data: TaskData) -> None:
    """Take B- and I- off all tags, unless all sets have them."""
    sides = [rows for test in data.tests for rows in test.sides.values()]
    if all(map(is_marked, (data.training, *sides))):
        return
    data.training = unmarked(data.training)
    data.tests = [
        replace(test, sides={side: unmarked(rows) for side, rows in test.sides.items()})
        for test in data.tests
    ]
    data.notes.append("not all tags have B- and I-: they are taken off, a run of a tag is a span")


def _refuse_one_class(data: TaskData, train: str) -> None:
    """Raise SourceError where the training data has nothing to tell apart; note half of that."""
    labels = {f"rows have the label {row.label}" for row in data.training if data.task.has_label}
    tags = {f"tokens have the tag {kind_of(tag)}" for row in data.training for tag in row.tags}
    alone = [next(iter(found)) for found in (labels, tags) if len(found) == 1]
    if max(len(labels), len(tags)) < 2:
        raise SourceError(f"{train}: all {' and all '.join(alone)}: there is nothing to learn")
    data.notes += [f"{train}: all {one}, so every model will predict it" for one in alone]


def _tell(data: TaskData, source: str, found: RowSet) -> None:
    data.damaged += found.damaged
    if found.dropped:
        lost = ", ".join(f"{reason} {count:,}" for reason, count in sorted(found.dropped.items()))
        data.notes.append(f"{source}: dropped {found.dropped.total():,} rows: {lost}")


def _tell_unknown(data: TaskData) -> None:
    """Note what the training data does not have: its tokens and rows cannot be right."""
    kinds = {kind_of(tag) for row in data.training for tag in row.tags}
    labels = {row.label for row in data.training}
    for test in data.tests:
        for side, rows in test.sides.items():
            tags = [tag for row in rows for tag in row.tags if kind_of(tag) not in kinds]
            lost = [row.label for row in rows if row.label not in labels]
            for what, unknown in (("tokens", tags), ("rows", lost)):
                if unknown:
                    names = ", ".join(sorted(set(map(kind_of, unknown)))[:5])
                    data.notes.append(
                        f"{test.lang} {side}: {len(unknown):,} {what} have a label that the "
                        f"training data has not ({names}); they count as wrong"
                    )
