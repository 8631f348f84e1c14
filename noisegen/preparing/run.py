"""`prepare`: raw text in, a folder of clean sentences with manifest and dataset card out."""

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from noisegen import executors
from noisegen.errors import SourceError, UsageError
from noisegen.inputs import Columns, Input, expand
from noisegen.mining.languages import language
from noisegen.preparing import identification
from noisegen.preparing.candidates import DUPLICATES, Found, Job, Portion, make_candidates
from noisegen.preparing.prepared_folder import PreparedFolder, PreparingManifest
from noisegen.preparing.sentences import Criteria
from noisegen.run_folder import check_options
from noisegen.sources import STREAM_BYTES, Task, tasks
from noisegen.version import __version__

Progress = Callable[[Found], None]


@dataclass(frozen=True)
class Wish:
    """What a user asks of `prepare`; every field is an option of the command."""

    lang: str = "en"
    text_column: str = "text"
    id_column: str | None = None
    splitter: str = "sentencex"
    chars_min: int = Criteria.chars_min
    chars_max: int = Criteria.chars_max
    common_min: float = Criteria.common_min
    identify: str = "auto"
    duplicates: str = "near"
    similarity: float = 0.75
    rows_per_shard: int = 100_000
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.duplicates not in DUPLICATES:
            raise UsageError(f"--duplicates {self.duplicates!r} must be {', '.join(DUPLICATES)}")
        if not 0 < self.similarity <= 1:
            raise UsageError(f"--similarity {self.similarity} must be above 0 and at most 1")
        for name in ("rows_per_shard", "limit"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise UsageError(f"--{name.replace('_', '-')} {value} must be at least 1")

    def command(self, sources: Sequence[str], out: str | Path) -> str:
        """Return the command line that asks the same."""
        words = ["noisegen", "prepare", *sources, "-o", str(out)]
        for option in fields(self):
            if (value := getattr(self, option.name)) != option.default:
                words += [f"--{option.name.replace('_', '-')}", str(value)]
        return shlex.join(words)


def prepare(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    workers: int = 1,
    executor: str = "processes",
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    command: str | None = None,
    **options: Any,
) -> PreparingManifest:
    """Write the clean sentences of `sources` to `out` as Parquet shards; return the manifest.

    `options` are the fields of `Wish`: lang, text_column, id_column, splitter, chars_min and
    chars_max (characters of a sentence), common_min (share of common characters), identify ('auto',
    'yes', 'no'), duplicates ('near', 'exact', 'keep'), similarity (of near duplicates),
    rows_per_shard, limit (rows). The rows are the same whatever the workers. Raises NoisegenError.
    """
    named = [sources] if isinstance(sources, str | Path) else list(sources)
    wish = Wish(**options)
    check_options(workers, executor, None, resume, force)
    inputs = expand([str(source) for source in named])
    job, config = _job(wish, inputs, Path(out))
    planned = _portions(inputs, job.columns, wish.rows_per_shard, wish.limit)
    first = next(planned, None)  # so that a source that cannot be read leaves the folder alone
    if first is None:
        raise SourceError(f"no rows in {', '.join(item.path for item in inputs)}")
    folder = PreparedFolder(job, config)
    folder.refuse_inputs(item.path for item in inputs)
    if (made := folder.open(resume=resume, force=force)) is not None:
        return made
    done = folder.done()
    numbers: list[int] = []
    missing = _missing(chain([first], planned), done, numbers)
    try:
        with closing(
            executors.run(partial(make_candidates, job), missing, executor, workers)
        ) as it:
            for one in it:
                done[one.number] = one
                if progress:
                    progress(one)
    finally:
        folder.remove_temporary()
    found_all = [done[number] for number in sorted(numbers)]
    return folder.finish(
        found_all, wish.similarity, command or wish.command(list(map(str, named)), out)
    )


def _job(wish: Wish, inputs: Sequence[Input], out: Path) -> tuple[Job, dict[str, Any]]:
    """Return the job of a worker, and the configuration that its folder is bound to."""
    spoken = language(wish.lang, splitter=wish.splitter)
    model = identification.model_for(spoken.code, wish.identify)
    criteria = Criteria(wish.chars_min, wish.chars_max, wish.common_min, model is not None)
    config: dict[str, Any] = {
        "version": __version__,
        "lang": spoken.code,
        "options": asdict(wish),
        "identification": model,
        "sources": [{"path": item.path, "bytes": item.size} for item in inputs if not item.skipped],
    }
    columns = Columns(wish.text_column, wish.id_column)
    bound = json.dumps(config, sort_keys=True, ensure_ascii=False)
    job = Job(out.resolve(), bound, spoken, criteria, columns, wish.duplicates)
    return job, json.loads(bound)


def _portions(
    inputs: Sequence[Input], columns: Columns, rows_max: int, limit: int | None
) -> Iterator[Portion]:
    """Pack the rows of all inputs, in order, into shards; a small file shares one with others."""
    held: list[tuple[str, Task]] = []
    number = first = rows = size = 0
    for source, task in _tasks(inputs, columns, rows_max, limit):
        grown = size + (0 if task.table is None else task.table.nbytes)
        if held and (rows + task.rows > rows_max or grown > STREAM_BYTES):
            yield Portion(number, first, rows, tuple(held))
            number, first, rows, grown, held = number + 1, first + rows, 0, grown - size, []
        held.append((source, task))
        rows, size = rows + task.rows, grown
    if held:
        yield Portion(number, first, rows, tuple(held))


def _tasks(
    inputs: Sequence[Input], columns: Columns, rows_max: int, limit: int | None
) -> Iterator[tuple[str, Task]]:
    """Yield the tasks of each input by itself, for its path, and since columns need not agree."""
    left = limit
    for item in inputs:
        if item.skipped or left == 0:
            continue
        try:
            for task in tasks([item], columns, rows_max, left):
                yield item.path, task
                left = None if left is None else left - task.rows
        except SourceError as error:
            if not str(error).startswith("no rows in"):  # an empty file among others is none
                raise


def _missing(
    portions: Iterator[Portion], done: dict[int, Found], numbers: list[int]
) -> Iterator[Portion]:
    """Yield the portions to do, and note the numbers of all."""
    for portion in portions:
        numbers.append(portion.number)
        found = done.get(portion.number)
        if found is None or (found.first_row, found.rows_in) != (portion.first_row, portion.rows):
            yield portion
