"""The folder that a run writes into: claimed, resumed, refused, and cleaned of unfinished files.

A worker writes its files under temporary names and renames them. The run then records the task in
OUT/.noisegen (`noisegen.runs.records`), so a run that is killed at any moment can be resumed.

A run begins only where its names are free. Until it ends, files with its names are its own; after
that only files of recorded tasks are, and the files that a run writes once. A file that somebody
put there later is told by its content: a text that begins otherwise than noisegen's, or a table of
another kind, is foreign.
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
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

from noisegen.errors import OutputError, resumable
from noisegen.runs import executors
from noisegen.runs.atomic import file_digest, remove, write_text, writing
from noisegen.runs.lock import STATE, WHOLE, Lock, Part, locked, part_name
from noisegen.runs.manifest import LISTS, Manifest
from noisegen.runs.options import RunOptions
from noisegen.runs.progress import LIVE, Show, silent
from noisegen.runs.records import HEADS, RUN, File, Record, Records, Run
from noisegen.runs.store import listing

N = TypeVar("N")
R = TypeVar("R")
T = TypeVar("T")

CONFIG = "config.yaml"  # file of a training run
BEGINNING = 1 << 18  # bytes read to know a text file; own files have some kB, others any size
DESCRIPTION = {  # files that describe a run with tasks, each with a pattern of its beginning
    "manifest.json": r'\{\n "version": "[^"\n]*",\n "command": "',
    "README.md": r"---\n.*?\n# [^\n]*, \w+ with noisegen ",
    **dict.fromkeys(LISTS.values(), ""),
}
SOURCES_BOUND = 1_000  # sources listed in run.json; of more it has the digest
_NUMBER = re.compile(r"[a-z]+-(\d{5,})\.[a-z]+")
_TEMPORARY = re.compile(r"\.(?:[0-9a-f]{16}|(?:new)?live)\.tmp$")


@dataclass(frozen=True)
class Layout(Generic[N]):
    """The files of one kind of run.

    `parts` are the patterns of the numbered files of tasks. `whole` are the patterns of files and
    folders written once, each with a regular expression that a text of noisegen begins with; ''
    fits any content. `scratch` are patterns of intermediate files, all in one folder, which are
    removed at the end. `result` is the type of the result of a task, for runs with tasks. `columns`
    are columns of all its Parquet files. With `is_overwritten` --force removes no file first: the
    run overwrites one file after the other.
    """

    verb: str
    whole: Mapping[str, str] = field(default_factory=DESCRIPTION.copy)
    parts: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    result: type[N] | None = None
    columns: frozenset[str] = frozenset()
    is_overwritten: bool = False

    def folders(self) -> set[str]:
        """Return the names of the folders of parts and intermediate files."""
        return {name.rpartition("/")[0] for name in (*self.parts, *self.scratch)}


@dataclass
class RunFolder(Generic[N]):
    """An output folder bound to a configuration; this process does the part `share` of the tasks.

    `config` is the configuration as JSON gives it back.
    """

    out: Path
    layout: Layout[N]
    config: Mapping[str, Any]
    share: Part = WHOLE
    _lock: Lock | None = field(default=None, repr=False)
    _is_complete: bool = field(default=False, repr=False)

    @property
    def shards(self) -> Path:
        """The folder of the shards of augment and prepare."""
        return self.out / "data"

    @cached_property
    def requested(self) -> Run:
        """The requested run, as run.json has it."""
        return Run(self.layout.verb, dict(bound(self.config)) if self.layout.result else {})

    @cached_property
    def records(self) -> Records[N]:
        """The records of this configuration."""
        return self._records(self.requested)

    def _records(self, run: Run) -> Records[N]:
        return Records(self.out, self.layout.result or Any, run.key)  # type: ignore[arg-type]

    # Claim.

    @contextmanager
    def claimed(
        self, *, resume: bool = False, force: bool, can_resume: bool = True, show: Show = silent
    ) -> Iterator[None]:
        """Make the folder or check its content, and hold its lock.

        Raises OutputError for a folder that cannot be written, that another run uses, that is not
        empty while neither `resume` nor `force` is given, that has files of others under names of
        the run, or, unless `force`, a run of another configuration.
        """
        is_refused = make_folder(self.out) and not (resume or force)
        if is_refused and not (self.out / STATE).exists():  # no run is at work in it
            refuse_full(self.out, can_resume=can_resume)
        with locked(self.out, part_name(self.share), show) as lock:
            if is_refused:
                refuse_full(self.out, can_resume=can_resume)
            self._refuse_foreign()
            if force and not self.layout.is_overwritten:
                self.remove_all()
            if run := Run.read(self.out, self.layout.verb):
                agree(self.out, run.config, self.requested.config)
            self.requested.write(self.out)
            self._lock = lock
            try:
                yield
                self._is_complete |= not self.layout.result
            finally:
                self._lock = None
                self._leave(lock)

    def _refuse_foreign(self) -> None:
        """Raise OutputError for a foreign file with a name of the run."""
        found = [*self._found()]  # listed first: another part may begin meanwhile
        run = Run.read(self.out, self.layout.verb)
        recorded: Mapping[int, Record[N]] = {}
        if run and self.layout.result:
            is_same = run.key == self.requested.key
            recorded = (self.records if is_same else self._records(run)).read()
        for name, mark in found:
            if not run or not self._is_own(name, mark, run, recorded):
                raise OutputError(
                    f"noisegen did not {self.layout.verb} {self.out / name}; move it, or use "
                    "another folder"
                )

    def _is_own(self, name: str, mark: str, run: Run, recorded: Mapping[int, Record[N]]) -> bool:
        """Return whether a file with a name of the run is its own.

        A damaged table is own, so that it is made again. Once the run has ended, a whole table of
        another size than recorded is foreign; a table without the columns of the run always is, and
        so is a text that begins otherwise than noisegen's.
        """
        number = number_of(name)
        if number is None:
            is_scratch = name in self.layout.scratch and not run.has_ended
            return is_scratch or self._is_written_once(name)
        if number not in recorded:
            return not run.has_ended and self._has_our_columns(name)
        marks = {file.name: file.mark for file in recorded[number].files}
        if (written := marks.get(name)) == mark:
            return True
        is_resized = written is not None and written.split()[:1] != mark.split()[:1]
        if run.has_ended and is_resized and column_names(self.out / name) is not None:
            return False
        return self._has_our_columns(name)

    def _is_written_once(self, name: str) -> bool:
        """Return whether a file is one that the run writes once, by its name and content."""
        for pattern, start in self.layout.whole.items():
            if fnmatchcase(name, pattern):
                return _begins_with(self.out / name, start) and self._has_our_columns(name)
        return False

    def _has_our_columns(self, name: str) -> bool:
        """Return whether a file has columns of this kind of run, or is no whole table."""
        columns = column_names(self.out / name) if name.endswith(".parquet") else None
        if columns is None:
            return True
        shared = len(self.layout.columns & columns)  # a name may have rotted
        return 2 * shared > len(self.layout.columns)

    def _leave(self, lock: Lock) -> None:
        """Record the end of a complete run; leave no trace of a run that has made nothing."""
        self.records.close()
        if not lock.path.exists():
            return  # another run took the folder over
        if self._is_complete:
            Run(self.requested.verb, self.requested.config, has_ended=True).write(self.out)
        elif not any(self._names()) and not lock.others():
            self._remove_records()
        if self._is_complete or not (self.out / RUN).exists():
            remove(*(other.path for other in lock.others() if not other.is_alive(lock)))

    @contextmanager
    def opened(
        self, *, resume: bool, force: bool, can_resume: bool = True, show: Show = silent
    ) -> Iterator[dict[int, Record[N]]]:
        """Claim the folder; yield the records of the finished tasks by number.

        With `resume` the folder must hold a run of the same configuration, with `force` the run in
        it is removed. Raises OutputError as `claimed` does.
        """
        with self.claimed(resume=resume, force=force, can_resume=can_resume, show=show):
            with writing(self.out):
                for folder in self.layout.folders():
                    (self.out / folder).mkdir(exist_ok=True)
            self.remove_temporary()
            with resumable() if self.layout.result else nullcontext():
                yield self.done()

    @contextmanager
    def alone(self, step: str) -> Iterator[None]:
        """Hold the lock of a step that one part does at a time; wait while another does it."""
        with locked(self.out, step, wait=True):
            yield

    def check_lock(self) -> None:
        """Raise OutputError if the folder was taken over by another run, or removed."""
        if self._lock:
            self._lock.check(self.out)

    # Tasks.

    def done(self) -> dict[int, Record[N]]:
        """Return the records of finished tasks whose files are as they were written."""
        patterns = (*self.layout.parts, *self.layout.scratch)
        marks = {name: mark for pattern in patterns for name, mark in listing(self.out, pattern)}
        found = self.records.read()
        done: dict[int, Record[N]] = {}
        for number in sorted(found):
            record = found[number]
            if not all(file.name in marks for file in record.files):
                continue
            changed = [file for file in record.files if marks[file.name] != file.mark]
            if changed and all(self._has_content(file) for file in changed):
                record = found[number] = record.marked(self.out)
            elif changed:
                continue
            done[number] = record
        return done

    def _has_content(self, file: File) -> bool:
        """Return whether a file has the content that was recorded, though another mark."""
        return bool(file.sha256) and file_digest(self.out / file.name) == file.sha256

    def run(
        self,
        function: Callable[[T], R],
        tasks: Iterable[T],
        options: RunOptions,
        finished: Callable[[R], None],
    ) -> None:
        """Run the tasks on the executor; record each result and call `finished` with it."""
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
        """Raise OutputError unless our share of the tasks is done, and no task beyond them.

        `tasks` counts the tasks of all shares. A task beyond them is of an input that was longer.
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
            raise OutputError(f"{problem} in {self.out}, such as {lost}; run again").passes()

    def live(self, folder: Path) -> list[Path]:
        """Return the files in which running tasks of this share publish their counts."""
        if not isinstance(folder, Path):
            return []  # tasks publish nothing in a store
        names = (name for name, _ in listing(folder, f"*{LIVE}"))
        return [folder / name for name in names if self._is_ours(name.removesuffix(LIVE))]

    def _is_ours(self, name: str) -> bool:
        """Return whether a numbered file belongs to our share of the tasks."""
        number = number_of(name)
        return number is not None and number % self.share[1] == self.share[0]

    # End.

    def earlier_manifest(self) -> Manifest | None:
        """Return the manifest in the folder; None without a readable manifest."""
        with suppress(OutputError):
            return Manifest.load(self.out)
        return None

    def end(self, manifest: Manifest, card: str | None = None) -> Manifest:
        """Write manifest and card; without `card` both are there already."""
        self.check_lock()
        # Another part, with another configuration, may have written it.
        if run := Run.read(self.out, self.layout.verb):
            agree(self.out, run.config, self.requested.config)
        if card is not None:
            manifest.save(self.out)
            write_text(self.out / "README.md", card)
        self._is_complete = not manifest.missing_tasks
        return manifest

    # Files.

    def _found(self) -> Iterator[tuple[str, str]]:
        """Yield the names in the folder that a run gives, and the marks of numbered files."""
        for pattern in (*self.layout.parts, *self.layout.scratch, *self.layout.whole):
            if "*" in pattern:
                yield from listing(self.out, pattern)
            elif (self.out / pattern).exists():
                yield pattern, ""

    def _names(self) -> Iterator[str]:
        """Yield the names in the folder that a run of this kind gives."""
        return (name for name, _ in self._found())

    def _names_of(self, pattern: str) -> Iterator[str]:
        return (name for name, _ in listing(self.out, pattern))

    def refuse_inputs(self, paths: Iterable[str]) -> None:
        """Raise OutputError for an input where the run writes: --force would remove it."""
        names = (*self.layout.parts, *self.layout.scratch, *self.layout.whole)
        out, resolved = str(self.out.resolve()), cache(os.path.realpath)
        for path in paths if any(self._names()) else ():
            is_link = os.path.islink(path)  # noqa: PTH114 - of hundreds of thousands of files
            folder, name = os.path.split(os.path.realpath(path) if is_link else path)
            place = f"{folder if '://' in path else resolved(folder)}/{name}"
            inside = place.removeprefix(f"{out}/")
            if inside != place and any(fnmatchcase(inside, pattern) for pattern in names):
                raise OutputError(f"{path} is an input, and its name one of the output: use -o")

    def remove_temporary(self) -> None:
        """Remove half-written files of our share of the tasks.

        Files that are written once are left to the run that does all tasks, and so are their
        half-written ones.
        """
        if not isinstance(self.out, Path):
            return  # a store has whole objects alone
        left = self._temporary((*self.layout.parts, *self.layout.scratch))
        remove(*(path for path in left if self._is_ours(path.name.rsplit(".", 2)[0])))
        if self.share == WHOLE:
            inside = (
                path for name in self.layout.whole for path in self.out.glob(f"{name}/**/*.tmp")
            )
            remove(*left, *self._temporary(self.layout.whole), *filter(_is_temporary, inside))

    def _temporary(self, patterns: Iterable[str]) -> list[Path]:
        """Return the half-written files of the names that patterns mean."""
        names = chain.from_iterable(self._names_of(f"{pattern}.*.tmp") for pattern in patterns)
        return [path for name in names if _is_temporary(path := self.out / name)]

    def remove_all(self) -> None:
        """Remove the run, its records last: until then the folder is known to be ours."""
        names = [*self._names()]
        remove(*self._temporary(self.layout.parts), *(self.out / name for name in names))
        self.remove_scratch()
        self._remove_records()

    def _remove_records(self) -> None:
        self.records.remove()
        remove(self.out / HEADS, self.out / RUN)

    def remove_scratch(self) -> None:
        """Remove intermediate files, and their folder if nothing else is in it."""
        scratch = self.layout.scratch
        names = chain.from_iterable(map(self._names_of, scratch))
        remove(*self._temporary(scratch), *(self.out / name for name in names))
        with suppress(OSError):
            (self.out / scratch[0]).parent.rmdir() if scratch else None

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """Remove the run, and the folder if nothing else is in it, when the block fails."""
        try:
            yield
        except BaseException:
            self.remove_all()
            remove(self.out / STATE)
            with suppress(OSError):
                self.out.rmdir()
            raise


def _is_temporary(path: Path) -> bool:
    return _TEMPORARY.search(path.name) is not None


def make_folder(out: Path) -> bool:
    """Make the folder; return whether something is in it; raises OutputError."""
    if isinstance(out, Path) and any(part.endswith(":") for part in out.parts):  # once a URL
        raise OutputError(
            f"{out}: only augment, prepare and mine-* write to a store; name a folder here"
        )
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file: name a folder to write into")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        return any(out.iterdir())


def refuse_full(out: Path, *, can_resume: bool = True) -> None:
    """Raise OutputError: the folder is not empty, and no option says what to do with that."""
    resume = "--resume to resume its run or " if can_resume else ""
    raise OutputError(f"{out} is not empty; add {resume}--force to overwrite it")


def bound(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration as run.json has it: many sources are replaced by their digest."""
    sources = config.get("sources")
    if not isinstance(sources, list) or len(sources) <= SOURCES_BOUND:
        return config
    digest, encode = hashlib.sha256(), json.JSONEncoder(sort_keys=True).encode
    for source in sources:  # one by one: the text of all is long
        digest.update(f"{encode(source)}\n".encode())
    return {**config, "sources": {"count": len(sources), "sha256": digest.hexdigest()}}


def agree(out: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Raise OutputError unless the folder was made with our configuration."""
    if changed := difference(theirs, ours):
        raise OutputError(
            f"{out} was made with another configuration ({changed}); "
            "use another folder, or --force to overwrite it"
        )


def difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Name the first value that differs between two configurations; '' if they are equal."""
    theirs, ours = bound(theirs), bound(ours)
    name = next((name for name in ours if theirs.get(name) != ours[name]), None)
    if name is None:
        return ""
    old, new = theirs.get(name), ours[name]
    if isinstance(old, dict) and isinstance(new, dict) and name == "options":
        return difference(old, new) or "other options"
    shown = f"{name} {old!r}, not {new!r}"
    return shown if len(shown) < 80 else f"other {name}"


def _begins_with(path: Path, start: str) -> bool:
    """Return whether a text file begins with a regular expression; '' fits files and folders."""
    return not start or (path.is_file() and bool(re.match(start, beginning(path), re.DOTALL)))


def beginning(path: Path) -> str:
    """Return the beginning of a text file."""
    with path.open("rb") as file:
        return file.read(BEGINNING).decode(errors="replace")


def column_names(path: Path) -> frozenset[str] | None:
    """Return the columns of a Parquet file; None for a damaged file, or one of another format."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            return frozenset(pq.read_metadata(file).schema.names)
    except (OSError, OutputError, ValueError, pa.ArrowException):  # a name may be no UTF-8
        return None


def read_config(out: Path) -> dict[str, Any] | None:
    """Return the content of config.yaml of a training run; None if it cannot be read."""
    import yaml

    try:
        content = yaml.safe_load(beginning(out / CONFIG))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    return content if isinstance(content, dict) and content else None


def number_of(name: str) -> int | None:
    """Return the number of a task from the name of one of its files; None for any other file."""
    match = _NUMBER.fullmatch(name.rpartition("/")[2])
    return int(match[1]) if match else None


def shard_path(out: Path, number: int) -> Path:
    """Return the Parquet file of a task."""
    return out / f"part-{number:05d}.parquet"
