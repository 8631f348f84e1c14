"""Options that several commands share: input, workers, and resuming or overwriting a run."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from noisegen.errors import UsageError
from noisegen.options import internal, option
from noisegen.runs import executors
from noisegen.runs.lock import ALL_TASKS, Share
from noisegen.runs.progress import Show, silent

Folder = str | Path  # `decode` turns a path into text

R = TypeVar("R")
T = TypeVar("T")

Lang = Annotated[str, option("Language of the text")]
TextColumn = Annotated[
    str, option("Column with the text; in a file without header its number, from 1")
]
IdColumn = Annotated[
    str | None,
    option("Column with the row ids, or 'none' (default: the column id, else row numbers)"),
]
RowsPerShard = Annotated[int, option("Rows per output file", ge=1)]
Limit = Annotated[int | None, option("Maximum rows to read", "-n", "--limit", ge=1)]
Device = Annotated[str, option("Device: cpu, cuda, cuda:1 or auto", metavar="DEVICE")]
Splitter = Annotated[Literal["sentencex", "punkt", "spacy"], option("Sentence splitter")]


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """How many workers run the tasks of a run, and where; the output never depends on it."""

    workers: Annotated[int, option("Worker processes", ge=1)] = 1
    executor: Annotated[
        str, option("Where the tasks run", metavar="processes|serial|dask:ADDRESS")
    ] = "processes"

    def __post_init__(self) -> None:
        executors.check_executor(self.executor)

    def in_order(self, function: Callable[[T], R], tasks: Iterable[T]) -> Generator[R, None, None]:
        """Call `function` with every task on the workers; yield the results in task order.

        Close the generator to end the workers.
        """
        return executors.run_in_order(function, tasks, self.executor, self.workers)


ALONE = WorkerOptions()  # one worker: this process


@dataclass(frozen=True, kw_only=True)
class RunOptions(WorkerOptions):
    """Options of a run: its workers, and whether to resume or overwrite an earlier run."""

    resume: Annotated[bool, option("Resume an interrupted run of the same configuration")] = False
    force: Annotated[bool, option("Overwrite the run in this folder")] = False
    progress: Annotated[Show, internal()] = silent
    command: Annotated[str | None, internal()] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        in_parts = self.share != ALL_TASKS
        if self.force and (self.resume or in_parts):
            raise UsageError(
                "--force removes what is there; --resume and --part keep it: choose one"
            )

    @property
    def share(self) -> Share:
        """The part of the tasks that this process does: all of them."""
        return ALL_TASKS

    def asked(self) -> Self:
        """Return a copy in which the options that never change the output have their defaults."""
        defaults: dict[str, Any] = {field.name: field.default for field in fields(RunOptions)}
        return replace(self, **defaults)


@dataclass(frozen=True, kw_only=True)
class PartOptions(RunOptions):
    """Options of a run whose tasks several machines may share out among themselves."""

    part: Annotated[
        str | None, option("Do every N-th task from the I-th: 1/4 ... 4/4", metavar="I/N")
    ] = None

    @property
    def share(self) -> Share:
        """The part of the tasks that this process does, from `--part I/N`; raises UsageError."""
        if self.part is None:
            return ALL_TASKS
        number, _, count = self.part.partition("/")
        if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
            raise UsageError(
                f"cannot read part {self.part!r}: write I/N with I from 1 to N, such as 2/8"
            )
        return int(number) - 1, int(count)
