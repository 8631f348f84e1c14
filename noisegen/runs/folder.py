"""The output folder OUT of a run: locked while the run works, resumable, safe for foreign files.

A worker writes a file under a temporary name and renames it when it is whole. The run then records
the finished task in OUT/.noisegen (see `noisegen.runs.records`). So a run that is killed at any
moment can be resumed.

A run begins only if OUT has no foreign file, which noisegen did not write, with a name that the run
would write. Numbered files count as written by the run if it is unfinished or has recorded their
tasks. The content is checked too: a text file that does not begin as noisegen's files do, or a
table with other columns, is foreign.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from noisegen.errors import OutputError, resumable
from noisegen.runs import executors
from noisegen.runs.atomic import file_digest, remove, write_text, writing
from noisegen.runs.lock import ALL_TASKS, STATE, Lock, Share, locked, share_scope
from noisegen.runs.manifest import LISTS, Manifest
from noisegen.runs.options import RunOptions
from noisegen.runs.progress import LIVE, Show, silent
from noisegen.runs.records import HEADS, RUN, File, Record, Records, Run
from noisegen.runs.store import listing

N = TypeVar("N")
R = TypeVar("R")
T = TypeVar("T")

CONFIG = "config.yaml"  # settings of a training run
BEGINNING = 1 << 18  # only so many bytes of a text file are read: a foreign file may be huge
# Files that describe the output of a run -> regular expression that their first lines match
DESCRIPTION = {
    "manifest.json": r'\{\n "version": "[^"\n]*",\n "command": "',
    "README.md": r"---\n.*?\n# [^\n]*, \w+ with noisegen ",
    **dict.fromkeys(LISTS.values(), ""),
}
SOURCES_BOUND = 1_000  # most sources that run.json lists; of more, it has only count and digest
_NUMBER = re.compile(r"[a-z]+-(\d{5,})\.[a-z]+")
_TEMPORARY = re.compile(r"\.(?:[0-9a-f]{16}|(?:new)?live)\.tmp$")


@dataclass(frozen=True)
class Layout(Generic[N]):
    """Names of the files that one kind of run writes.

    `verb`, such as 'write', names the kind of run in errors: 'noisegen did not write ...'. `parts`
    has glob patterns of the numbered files, which tasks write. `scratch` has patterns of
    intermediate files, all in one folder; the run removes them at its end. `whole` maps the name or
    pattern of every other file or folder to a regular expression. A file whose text does not begin
    with a match is foreign; '' accepts any content.

    `result` is the type of a task's result; None for a run without tasks. `columns` are columns
    that every Parquet file of the run has. With `is_overwritten`, `--force` does not empty the
    folder first: the run replaces its files one after the other.
    """

    verb: str
    whole: Mapping[str, str] = field(default_factory=DESCRIPTION.copy)
    parts: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    result: type[N] | None = None
    columns: frozenset[str] = frozenset()
    is_overwritten: bool = False


@dataclass
class RunFolder(Generic[N]):
    """An output folder, and the run that this process does in it.

    `config` has the options that decide the output, as values for JSON. `share` tells which tasks
    this process does: all, or every n-th.
    """

    out: Path
    layout: Layout[N]
    config: Mapping[str, Any]
    share: Share = ALL_TASKS
    _lock: Lock | None = field(default=None, repr=False)
    _is_complete: bool = field(default=False, repr=False)

    @property
    def shards(self) -> Path:
        """The folder in which the runs of `augment` and `prepare` write their Parquet files."""
        return self.out / "data"

    @cached_property
    def requested(self) -> Run:
        """The content of run.json for the run of this process.

        The configuration is left out for a run without tasks.
        """
        return Run(self.layout.verb, dict(bounded(self.config)) if self.layout.result else {})

    @cached_property
    def records(self) -> Records[N]:
        """The records of finished tasks of all runs in this folder with the same configuration."""
        return self._records(self.requested)

    def _records(self, run: Run) -> Records[N]:
        """Return the records of finished tasks of runs with the same configuration as `run`."""
        return Records(self.out, self.layout.result or Any, run.key)  # type: ignore[arg-type]

    # Claim.

    @contextmanager
    def claimed(
        self, *, resume: bool = False, force: bool, can_resume: bool = True, show: Show = silent
    ) -> Iterator[None]:
        """Make the folder or check its content, and hold its lock while the `with` block runs.

        With `force`, the files of an earlier run are removed first. Raises OutputError if the
        folder cannot be written, is in use by another run, has a foreign file with a name of this
        run, or has files of a run with another configuration. Without `resume` and `force`, it must
        be empty; the error then mentions the option `--resume` only if `can_resume` is True.
        """
        is_refused = make_folder(self.out) and not (resume or force)
        if is_refused and not (self.out / STATE).exists():  # no run has a lock to report first
            refuse_full(self.out, can_resume=can_resume)
        with locked(self.out, share_scope(self.share), show) as lock:
            if is_refused:
                refuse_full(self.out, can_resume=can_resume)
            self._refuse_foreign()
            if force and not self.layout.is_overwritten:
                self.remove_all()
            self._refuse_other_configuration()
            self.requested.write(self.out)
            self._lock = lock
            try:
                yield
                self._is_complete |= not self.layout.result
            finally:
                self._lock = None
                self._leave(lock)

    def _refuse_foreign(self) -> None:
        """Raise OutputError if noisegen did not write a file that has a name of this run."""
        found = [*self._files()]  # before run.json, which another process may be about to write
        run = Run.read(self.out, self.layout.verb)
        recorded: Mapping[int, Record[N]] = {}
        if run and self.layout.result:
            is_same = run.key == self.requested.key
            recorded = (self.records if is_same else self._records(run)).read()
        for name, mark in found:
            if not run or not self._is_of_run(name, mark, run, recorded):
                raise OutputError(
                    f"noisegen did not {self.layout.verb} {self.out / name}; move it, or use "
                    "another folder"
                )

    def _is_of_run(self, name: str, mark: str, run: Run, recorded: Mapping[int, Record[N]]) -> bool:
        """Return whether `run`, the run in run.json, wrote the file `name`.

        `mark` has the present size and time of the file, `recorded` is {task number: record}. A
        damaged table counts as the run's, so that its task writes it again. A readable table is
        foreign if the run has ended and recorded another size. A table with other columns and a
        text with another beginning are always foreign.
        """
        number = number_of(name)
        if number is None:
            is_scratch = name in self.layout.scratch and not run.has_ended
            return is_scratch or self._is_written_once(name)
        if number not in recorded:
            return not run.has_ended and self._has_our_columns(name)
        marks = {file.name: file.mark for file in recorded[number].files}
        written = marks.get(name, "")  # '' also for a file recorded without its mark, in a store
        if written and written == mark:
            return True
        is_resized = bool(written) and written.split()[:1] != mark.split()[:1]
        if run.has_ended and is_resized and column_names(self.out / name) is not None:
            return False
        return self._has_our_columns(name)

    def _is_written_once(self, name: str) -> bool:
        """Return whether a file that no task writes has a name and a beginning as in `Layout`."""
        for pattern, start in self.layout.whole.items():
            if fnmatchcase(name, pattern):
                return _begins_with(self.out / name, start) and self._has_our_columns(name)
        return False

    def _has_our_columns(self, name: str) -> bool:
        """Return whether a table has most columns of the layout; True if it is no readable table.

        Not all are needed, since damage on the disk may have changed a column's name.
        """
        columns = column_names(self.out / name) if name.endswith(".parquet") else None
        if columns is None:
            return True
        shared = len(self.layout.columns & columns)
        return 2 * shared > len(self.layout.columns)

    def _leave(self, lock: Lock) -> None:
        """Record in run.json that a complete run has ended; remove run.json if no output exists."""
        self.records.close()
        if not lock.path.exists():  # another run has removed the lock and taken the folder over
            return
        if self._is_complete:
            Run(self.requested.verb, self.requested.config, has_ended=True).write(self.out)
        elif not any(self._files()) and not lock.others():
            self._remove_records()
        if self._is_complete or not (self.out / RUN).exists():
            remove(*(other.path for other in lock.others() if not other.is_alive(lock)))

    @contextmanager
    def opened(
        self, *, resume: bool, force: bool, can_resume: bool = True, show: Show = silent
    ) -> Iterator[dict[int, Record[N]]]:
        """Hold the folder as `claimed` does, with the same errors, and remove half-written files.

        Yields the records of the finished tasks by number.
        """
        with self.claimed(resume=resume, force=force, can_resume=can_resume, show=show):
            with writing(self.out):
                for pattern in (*self.layout.parts, *self.layout.scratch):
                    (self.out / pattern).parent.mkdir(exist_ok=True)
            self.remove_temporary()
            with resumable() if self.layout.result else nullcontext():
                yield self.done()

    @contextmanager
    def alone(self, step: str) -> Iterator[None]:
        """Hold the lock of a step, such as 'finish', in the `with` block; wait if it is held."""
        with locked(self.out, step, wait=True):
            yield

    def check_lock(self) -> None:
        """Raise OutputError if the lock file is gone, since other files may be gone with it."""
        if self._lock and not self._lock.path.exists():
            reason = "another run took it over, or its files were removed"
            raise OutputError(
                f"lost {self.out} while writing into it: {reason}; run again"
            ).as_temporary()

    # Tasks.

    def done(self) -> dict[int, Record[N]]:
        """Return {task number: record} of the finished tasks whose files are unchanged.

        A file whose size or time is not as recorded is hashed: it may be a copy.
        """
        patterns = (*self.layout.parts, *self.layout.scratch)
        marks = {name: mark for pattern in patterns for name, mark in listing(self.out, pattern)}
        found = self.records.read()
        done: dict[int, Record[N]] = {}
        for number in sorted(found):
            record = found[number]
            if any(file.name not in marks for file in record.files):
                continue
            changed = [file for file in record.files if marks[file.name] != file.mark]
            if not all(map(self._has_content, changed)):
                continue
            if changed:
                record = found[number] = record.marked(self.out)
            done[number] = record
        return done

    def _has_content(self, file: File) -> bool:
        """Return whether the SHA-256 of a file is still the recorded one."""
        return bool(file.sha256) and file_digest(self.out / file.name) == file.sha256

    def run(
        self,
        function: Callable[[T], R],
        tasks: Iterable[T],
        options: RunOptions,
        finished: Callable[[R], None],
    ) -> None:
        """Run the tasks on the executor of `options`, and call `finished` with every result.

        Results of type `Record` are also added to the records of the folder.
        """
        results = executors.run(function, tasks, options.executor, options.workers)
        try:
            with closing(results):
                for result in results:
                    self.check_lock()
                    if isinstance(result, Record):
                        self.records.add(result.marked(self.out))
                    finished(result)
        finally:
            self.remove_temporary()

    def expect_all(self, tasks: int, done: Mapping[int, Any]) -> None:
        """Raise OutputError unless `done` has exactly the tasks that this process has to do.

        `done` has the finished tasks by number; `tasks` is the number of tasks of all processes. If
        `done` has more, an earlier run had a longer input.
        """
        remainder, count = self.share
        planned = range(remainder, tasks, count)
        ours = [number for number in done if number % count == remainder]
        if len(ours) > len(planned):
            raise OutputError(
                f"{self.out} has {len(ours)} shards, but the input now gives {len(planned)}; "
                "use another folder, or --force to overwrite it"
            )
        if len(ours) < len(planned):
            lost = shard_path(Path(), next(n for n in planned if n not in done))
            problem = f"{len(planned) - len(ours)} of {len(planned)} shards are gone or unreadable"
            raise OutputError(f"{problem} in {self.out}, such as {lost}; run again").as_temporary()

    def live(self, folder: Path) -> list[Path]:
        """Return the files in `folder` in which this process's running tasks publish their counts.

        Returns [] for an object store, which has no such files.
        """
        if not isinstance(folder, Path):
            return []
        names = (name for name, _ in listing(folder, f"*{LIVE}"))
        return [folder / name for name in names if self._is_of_share(name.removesuffix(LIVE))]

    def _is_of_share(self, name: str) -> bool:
        """Return whether this process does the task that writes the numbered file `name`."""
        number = number_of(name)
        return number is not None and number % self.share[1] == self.share[0]

    # End.

    def earlier_manifest(self) -> Manifest | None:
        """Return the manifest that is in the folder; None if there is none, or a damaged one."""
        with suppress(OutputError):
            return Manifest.load(self.out)
        return None

    def end(self, manifest: Manifest, card: str | None = None) -> Manifest:
        """Write manifest.json and README.md, which gets the text `card`; return the manifest.

        Without `card`, nothing is written: an earlier run has left both files.
        """
        self.check_lock()
        self._refuse_other_configuration()  # another process may have changed run.json meanwhile
        if card is not None:
            manifest.save(self.out)
            write_text(self.out / "README.md", card)
        self._is_complete = not manifest.missing_tasks
        return manifest

    def _refuse_other_configuration(self) -> None:
        """Raise OutputError if run.json records a run with another configuration."""
        run = Run.read(self.out, self.layout.verb)
        if run and (changed := difference(run.config, self.requested.config)):
            raise OutputError(
                f"{self.out} was made with another configuration ({changed}); "
                "use another folder, or --force to overwrite it"
            )

    # Files.

    def _files(self) -> Iterator[tuple[str, str]]:
        """Yield (name, mark) of each file in the folder whose name is in `Layout`.

        The mark has size and time (see `listing`), or is '' if the name in `Layout` is no pattern.
        """
        for pattern in (*self.layout.parts, *self.layout.scratch, *self.layout.whole):
            if "*" in pattern:
                yield from listing(self.out, pattern)
            elif (self.out / pattern).exists():
                yield pattern, ""

    def refuse_inputs(self, paths: Iterable[str]) -> None:
        """Raise OutputError if an input path is a file of the run, which `--force` would remove."""
        names = (*self.layout.parts, *self.layout.scratch, *self.layout.whole)
        out, resolved = str(self.out.resolve()), cache(os.path.realpath)
        for path in paths if any(self._files()) else ():
            is_link = os.path.islink(path)  # noqa: PTH114 - faster for many files
            folder, name = os.path.split(os.path.realpath(path) if is_link else path)
            place = f"{folder if '://' in path else resolved(folder)}/{name}"
            inside = place.removeprefix(f"{out}/")
            if inside != place and any(fnmatchcase(inside, pattern) for pattern in names):
                raise OutputError(f"{path} is an input, and its name one of the output: use -o")

    def remove_temporary(self) -> None:
        """Remove half-written files of the tasks that this process does.

        If it does all tasks, half-written files of no task, such as a manifest, are removed too. An
        object store has no half-written files.
        """
        if not isinstance(self.out, Path):
            return
        left = self._temporary((*self.layout.parts, *self.layout.scratch))
        remove(*(path for path in left if self._is_of_share(path.name.rsplit(".", 2)[0])))
        if self.share == ALL_TASKS:
            for name in self.layout.whole:
                inside = self.out.glob(f"{name}/**/*.tmp")
                left += [path for path in inside if _TEMPORARY.search(path.name)]
            remove(*left, *self._temporary(self.layout.whole))

    def _temporary(self, patterns: Iterable[str]) -> list[Path]:
        """Return the half-written files whose final names fit one of the patterns."""
        found = []
        for pattern in patterns:
            for name, _ in listing(self.out, f"{pattern}.*.tmp"):
                if _TEMPORARY.search(name):
                    found.append(self.out / name)
        return found

    def remove_all(self) -> None:
        """Remove all files of the run.

        The records are removed last: without them, the other files would count as foreign.
        """
        paths = [self.out / name for name, _ in self._files()]
        remove(*self._temporary(self.layout.parts), *paths)
        self.remove_scratch()
        self._remove_records()

    def _remove_records(self) -> None:
        self.records.remove()
        remove(self.out / HEADS, self.out / RUN)

    def remove_scratch(self) -> None:
        """Remove the intermediate files, and their folder if it is empty then."""
        scratch = self.layout.scratch
        names = (name for pattern in scratch for name, _ in listing(self.out, pattern))
        remove(*self._temporary(scratch), *(self.out / name for name in names))
        with suppress(OSError):
            (self.out / scratch[0]).parent.rmdir() if scratch else None

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """If the `with` block fails, remove all files of the run, and the folder if then empty."""
        try:
            yield
        except BaseException:
            self.remove_all()
            remove(self.out / STATE)
            with suppress(OSError):
                self.out.rmdir()
            raise


def make_folder(out: Path) -> bool:
    """Make a folder unless it exists; return whether it holds anything. Raises OutputError."""
    # A part that ends with ':' comes from a URL: pathlib turns s3://bucket into s3:/bucket
    if isinstance(out, Path) and any(part.endswith(":") for part in out.parts):
        raise OutputError(
            f"{out}: only augment, prepare and mine-* write to a store; name a folder here"
        )
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file: name a folder to write into")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        return any(out.iterdir())


def refuse_full(out: Path, *, can_resume: bool = True) -> None:
    """Raise OutputError: the folder is not empty, and the user gave no `--resume` or `--force`."""
    resume = "--resume to resume its run or " if can_resume else ""
    raise OutputError(f"{out} is not empty; add {resume}--force to overwrite it")


def bounded(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration in which a long list of sources is replaced by count and digest."""
    sources = config.get("sources")
    if not isinstance(sources, list) or len(sources) <= SOURCES_BOUND:
        return config
    digest, encode = hashlib.sha256(), json.JSONEncoder(sort_keys=True).encode
    for source in sources:  # encoded one by one, since the text of all may not fit in memory
        digest.update(f"{encode(source)}\n".encode())
    return {**config, "sources": {"count": len(sources), "sha256": digest.hexdigest()}}


def difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Describe the first difference between two configurations, such as 'seed 7, not 8'.

    Returns '' for equal configurations.
    """
    theirs, ours = bounded(theirs), bounded(ours)
    name = next((name for name in ours if theirs.get(name) != ours[name]), None)
    if name is None:
        return ""
    old, new = theirs.get(name), ours[name]
    if isinstance(old, dict) and isinstance(new, dict) and name == "options":
        return difference(old, new) or "other options"
    shown = f"{name} {old!r}, not {new!r}"
    return shown if len(shown) < 80 else f"other {name}"


def _begins_with(path: Path, start: str) -> bool:
    """Return whether a text file begins with a match of the regular expression `start`.

    If `start` is '', every file and folder is accepted.
    """
    return not start or (path.is_file() and bool(re.match(start, beginning(path), re.DOTALL)))


def beginning(path: Path) -> str:
    """Return the first BEGINNING bytes of a file as text."""
    with path.open("rb") as file:
        return file.read(BEGINNING).decode(errors="replace")


def column_names(path: Path) -> frozenset[str] | None:
    """Return the column names of a Parquet file; None if it cannot be read as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            return frozenset(pq.read_metadata(file).schema.names)
    except (OSError, OutputError, ValueError, pa.ArrowException):  # ValueError: a name is not UTF-8
        return None


def read_config(out: Path) -> dict[str, Any] | None:
    """Return the settings in config.yaml of the training run in `out`; None if unreadable."""
    import yaml

    try:
        content = yaml.safe_load(beginning(out / CONFIG))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    return content if isinstance(content, dict) and content else None


def number_of(name: str) -> int | None:
    """Return the task number in a file name: 12 for 'data/part-00012.parquet'; None without it."""
    match = _NUMBER.fullmatch(name.rpartition("/")[2])
    return int(match[1]) if match else None


def shard_path(out: Path, number: int) -> Path:
    """Return the path of the Parquet file that task `number` writes in the folder `out`."""
    return out / f"part-{number:05d}.parquet"
