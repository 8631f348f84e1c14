"""The folder that a run writes into: claimed, resumed, refused, and cleared of what was cut short.

A worker writes its files under temporary names and last, with its file or beside it, a note: what
the task gave, as a dataclass. A task is done when its note is there, so a run that was killed at
any moment can be resumed.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import msgspec

from noisegen.errors import OutputError, resumable
from noisegen.runs import executors
from noisegen.runs.atomic import file_digest, remove, write_text, writing
from noisegen.runs.journal import Journal, Noted, SourceHead, listing, mark_of
from noisegen.runs.lock import STATE, WHOLE, Lock, Part, locked, part_name
from noisegen.runs.manifest import LISTS, Manifest
from noisegen.runs.options import RunOptions
from noisegen.runs.progress import LIVE, Show, silent

N = TypeVar("N")
R = TypeVar("R")
T = TypeVar("T")

METADATA = "noisegen"  # the key of a note in the metadata of a Parquet file
CONFIG = "config.yaml"  # of a training run
PARTS = ("data/part-*.parquet", "part-*.parquet")  # the second in runs of the first layout
_NUMBER = re.compile(r"[a-z]+-(\d{5,})\.[a-z]+")
_CARD = re.compile(r"\A---\n.*?^# [^\n]*, \w+ with noisegen ", re.DOTALL | re.MULTILINE)
_TEMPORARY = re.compile(r"\.(?:[0-9a-f]{16}|(?:new)?live|(?:\w+-)?\d+)\.tmp$")  # the last: old
CARD_BYTES = 1 << 18  # read of a card or a config.yaml; ours have some kB
_BEGUN = f"{STATE}/begun.json"  # until a run ends: its names were free, so what has them is its own


@dataclass(frozen=True)
class Layout(Generic[N]):
    """The files of one kind of run, and how they are known from the files of others.

    `notes` are the patterns of the files that hold notes of the type `note`, `parts` those of all
    numbered files, `whole` the files and folders that are written once. `marker`, one of
    `whole`, is a JSON or YAML file with the keys `keys`. Numbered Parquet files without a note have
    the columns `columns`. `scratch` is a folder of intermediate files, of the patterns
    `intermediate`, which are removed at the end; `temporary` are patterns of what does not outlive
    a task. Where `file_of` names the file of a task by its note, the run has a journal.
    """

    verb: str
    marker: str
    keys: frozenset[str]
    whole: tuple[str, ...] = ("manifest.json", "README.md")
    parts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    note: type[N] | None = None
    columns: frozenset[str] = frozenset()
    scratch: str = ""
    intermediate: tuple[str, ...] = ()
    temporary: tuple[str, ...] = ()
    file_of: Callable[[N], str] | None = None


@dataclass(frozen=True)
class RunFolder(Generic[N]):
    """A folder bound to a configuration: `config` is what the manifest of an equal run says."""

    out: Path
    layout: Layout[N]
    config: Mapping[str, Any]
    share: Part = WHOLE
    _notes: dict[str, tuple[str, str, N | None]] = field(
        default_factory=dict, repr=False, compare=False
    )  # mark, configuration and note by file, for a run may have hundreds of thousands
    _held: list[Lock] = field(default_factory=list, repr=False, compare=False)

    @property
    def shards(self) -> Path:
        """The folder of the shards: `data`, or, if some lie beside the manifest, `out` itself."""
        from noisegen.data.files import shard_folder

        return shard_folder(self.out)

    @contextmanager
    def locked(
        self, *, resume: bool = False, force: bool, can_resume: bool = True, show: Show = silent
    ) -> Iterator[None]:
        """Make the folder or check what is in it, and hold its lock.

        Raises OutputError for a folder that cannot be written, that another run uses, that is not
        empty while neither `resume` nor `force` is given, or that has files with our names which
        are not proved to be ours.
        """
        is_refused = make_folder(self.out) and not (resume or force)
        if is_refused and not (self.out / STATE).exists():  # no run is at work in it
            refuse_full(self.out, can_resume=can_resume)
        with locked(self.out, part_name(self.share), show) as lock:
            if is_refused:
                refuse_full(self.out, can_resume=can_resume)
            self._read_journal()
            self._refuse_foreign()
            write_text(self.out / _BEGUN, json.dumps(self._kind))
            self._held.append(lock)
            try:
                yield
            finally:
                self._held.remove(lock)
                self._end_journal()
                has_files = any(self._names()) or any(self._intermediate())
                if (self.out / self.layout.marker).exists() or not has_files:
                    remove(self.out / _BEGUN)
                    remove(*(other.path for other in lock.others() if not other.is_alive(lock)))

    @property
    def _kind(self) -> dict[str, str]:
        return {"verb": self.layout.verb, "marker": self.layout.marker}

    @contextmanager
    def opened(
        self, *, resume: bool, force: bool, can_resume: bool = True, show: Show = silent
    ) -> Iterator[dict[int, N]]:
        """Hold the lock of the folder; yield the notes of the tasks that are done.

        With `resume` the folder must hold a run of the same configuration, with `force` the run in
        it is removed. Raises OutputError as `locked` does, and for another configuration.
        """
        with self.locked(resume=resume, force=force, can_resume=can_resume, show=show):
            if force:
                self.remove_all()
            self._forget_damaged(self.earlier_manifest())  # refuses that of another configuration
            with writing(self.out):
                folders = [(self.out / name).parent for name in self.layout.parts]
                if self.layout.parts == PARTS:
                    folders = [self.shards]
                for folder in (*folders, self.out / self.layout.scratch):
                    folder.mkdir(exist_ok=True)
            self.remove_temporary()
            with resumable() if self.layout.notes else nullcontext():
                yield self.done()

    @contextmanager
    def alone(self, step: str) -> Iterator[None]:
        """Hold the lock of a step that one part does at a time; wait while another does it."""
        with locked(self.out, step, wait=True):
            yield

    def _forget_damaged(self, manifest: Manifest | None) -> None:
        """Take shards that are newer than the manifest, and not what it says, for not done."""
        if manifest is None:
            return
        written, known = (self.out / "manifest.json").stat().st_mtime_ns, self._digests()
        for shard in manifest.shards:
            if known.get(name := shard["file"]) == shard["sha256"]:
                continue
            path = self.out / name
            is_newer = path.exists() and path.stat().st_mtime_ns >= written
            if is_newer and file_digest(path) != shard["sha256"]:
                self._notes[name] = mark_of(path), "", None

    def done(self) -> dict[int, N]:
        """Return the notes of finished tasks by number; raises OutputError for foreign files."""
        self._read_journal()
        notes: dict[int, N] = {}
        configs = set[str]()
        for name, config, note in self._noted():
            match = _NUMBER.fullmatch(name.rpartition("/")[2])
            if match is None or (note is None and not is_cut_short(self.out / name)):
                raise OutputError(
                    f"{self.out / name} was not made by this program: use another folder"
                )
            if note is not None:
                notes[int(match[1])] = note
                configs.add(config)
        for config in configs - {""}:
            agree(self.out, json.loads(config), self._bound)
        return dict(sorted(notes.items()))

    def expect_all(self, tasks: int, done: Mapping[int, Any]) -> None:
        """Raise OutputError unless our share of the tasks is done, and nothing beyond it.

        `tasks` are those of all shares. What lies beyond them is of an input that was longer.
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

    def _noted(self) -> Iterator[tuple[str, str, N | None]]:
        """Yield files by name with their configuration and note; None for what is damaged.

        The configuration is '' where it is ours. Only files that are new are opened.
        """
        for name, mark in self._listing(self.layout.notes):
            known = self._notes.get(name, ("", "", None))
            if known[0] != mark:
                path, digest = self.out / name, getattr(known[2], "sha256", "")
                if not digest:
                    known = mark, *self._note_in(path)
                elif file_digest(path) == digest:
                    known = mark, *known[1:]
                else:  # damaged since its task ended
                    known = mark, "", None
                self._notes[name] = known
            yield name, *known[1:]

    def _note_in(self, path: Path) -> tuple[str, N | None]:
        """Return the configuration and the note in a file; ('', None) for one without."""
        try:
            if path.suffix == ".parquet":
                content = (parquet_metadata(path).metadata or {})[METADATA.encode()]
            else:
                content = path.read_text("utf-8")
            note = msgspec.json.decode(content, type=dict[str, Any])
            config = note.pop("config")
            msgspec.json.decode(config, type=dict[str, Any])
            return sys.intern(config), msgspec.convert(note, self.layout.note)
        except (OSError, KeyError, TypeError, ValueError, AttributeError):
            return "", None

    @cached_property
    def _bound(self) -> Mapping[str, Any]:
        return bound(self.config)

    @cached_property
    def _journal(self) -> Journal[N] | None:
        """The journal of the run, if runs of its kind have one."""
        if self.layout.file_of is None or self.layout.note is None:
            return None
        config = json.dumps(self._bound, sort_keys=True).encode()
        return Journal(self.out / STATE, self.layout.note, hashlib.sha256(config).hexdigest())

    def _read_journal(self) -> None:
        """Take the notes of journals that are new; of several of a file the one that fits it."""
        for entry in self._journal.read() if self._journal else ():
            file = self._file_of(entry.note)
            known = self._notes.get(file)
            if known is None or (known[0] != entry.mark and self._has_mark(file, entry.mark)):
                self._notes[file] = entry.mark, "", entry.note

    def noted_heads(self) -> Iterator[SourceHead]:
        """Yield what runs of the same configuration have noted of the sources."""
        return self._journal.heads() if self._journal else iter(())

    def note_heads(self, lines: bytes) -> None:
        """Note the heads of the sources for the next run."""
        if self._journal:
            self._journal.note_heads(lines)

    def _file_of(self, note: N) -> str:
        return self.layout.file_of(note) if self.layout.file_of else ""

    def _has_mark(self, file: str, mark: str) -> bool:
        with suppress(OSError, OutputError):
            return mark_of(self.out / file) == mark
        return False

    def _end_journal(self) -> None:
        """Remove the journal of a run that is complete; a long one stays, for the next resume."""
        manifest = read_mapping(self.out / self.layout.marker)
        is_whole = manifest.keys() >= self.layout.keys and not manifest.get("missing_tasks")
        if self._journal and is_whole and isinstance(manifest.get("shards"), list):
            self._journal.remove()

    def _digests(self) -> dict[str, str]:
        """Return the SHA-256 of the files whose notes say it: those of tasks, not of files."""
        found = {name: getattr(note, "sha256", "") for name, (*_, note) in self._notes.items()}
        return {name: digest for name, digest in found.items() if digest}

    def run(
        self, function: Callable[[T], R], tasks: Iterable[T], options: RunOptions,
        finished: Callable[[R], None],
    ) -> None:  # fmt: skip
        """Run the tasks on the executor and call `finished` with every result as it comes."""
        results = executors.run(function, tasks, options.executor, options.workers)
        journal, note_type = self._journal, self.layout.note or type(None)
        try:
            with closing(results):
                for result in results:
                    self.check_lock()
                    if journal and isinstance(result, note_type):
                        self._note(journal, cast(N, result))
                    finished(result)
        finally:
            if journal:
                journal.flush()
            self.remove_temporary()

    def _note(self, journal: Journal[N], note: N) -> None:
        """Note a task that has just been finished."""
        file = self._file_of(note)
        mark = mark_of(self.out / file)
        self._notes[file] = mark, "", note
        journal.add(Noted(mark, note))

    def check_lock(self) -> None:
        """Raise OutputError if the folder was taken over by another run, or removed."""
        for lock in self._held:
            lock.check(self.out)

    def live(self, folder: Path) -> list[Path]:
        """Return the files in which running tasks of this share publish what they have done."""
        names = listing(folder, f"*{LIVE}") if isinstance(folder, Path) else ()  # none in a store
        files = {folder / name: number_of(Path(name.removesuffix(LIVE))) for name, _ in names}
        remainder, count = self.share
        return [path for path, n in files.items() if n is not None and n % count == remainder]

    def earlier_manifest(self) -> Manifest | None:
        """Return the manifest in the folder; raises OutputError for another configuration."""
        path = self.out / self.layout.marker
        if path.name != "manifest.json" or not path.exists():
            return None
        manifest = Manifest.load(path)
        agree(self.out, vars(manifest), self._bound)
        return manifest

    def digests(self, fresh: Mapping[str, str]) -> Callable[[str], str]:
        """Return what gives the SHA-256 of a file of the run by its name in the manifest.

        `fresh` has the digests of this run; those of the last manifest hold for files that are
        older than it; all others are computed.
        """
        known = self._digests()
        if (manifest := self.earlier_manifest()) is not None:
            written = (self.out / "manifest.json").stat().st_mtime_ns
            for shard in manifest.shards:
                path = self.out / shard["file"]
                if (
                    shard["file"] not in known
                    and path.exists()
                    and path.stat().st_mtime_ns < written
                ):
                    known[shard["file"]] = shard["sha256"]
        known.update(fresh)
        return lambda name: known.get(name) or file_digest(self.out / name)

    def publish(self, manifest: Manifest, card: str) -> Manifest:
        """Write the manifest and the dataset card, which end a run."""
        self.check_lock()
        manifest.save(self.out)
        write_text(self.out / "README.md", card)
        return manifest

    def refuse_inputs(self, paths: Iterable[str]) -> None:
        """Raise OutputError for an input where the run writes: --force would remove it."""
        names = set(self._names())
        out, resolved = str(self.out.resolve()), cache(os.path.realpath)
        for path in paths if names else ():
            is_link = os.path.islink(path)  # noqa: PTH114 - of hundreds of thousands of files
            folder, name = os.path.split(os.path.realpath(path) if is_link else path)
            place = folder if "://" in path else resolved(folder)
            if f"{place}/{name}".removeprefix(f"{out}/") in names:
                raise OutputError(f"{path} is an input, and its name one of the output: use -o")

    def remove_temporary(self) -> None:
        """Remove what a run that was cut short left half written of this share of the tasks.

        What is left of the files that one run alone writes goes too, unless the share is a part.
        """
        if not isinstance(self.out, Path):
            return  # a store has whole objects alone
        for path in self._left(self.layout.parts):
            number = number_of(Path(path.name.rsplit(".", 2)[0]))
            if number is not None and number % self.share[1] == self.share[0]:
                remove(path)
        if self.share == WHOLE:
            left = [path for name in self.layout.temporary for path in self.out.glob(name)]
            ours = (*self.layout.whole, *LISTS.values())
            inside = (path for name in ours for path in self.out.glob(f"{name}/**/*.tmp"))
            remove(*left, *self._left(ours), *filter(_is_temporary, inside))

    def _left(self, names: Iterable[str]) -> list[Path]:
        """Return the temporary files of those that such patterns name."""
        found = self._listing(f"{name}.*.tmp" for name in names)
        return [path for name, _ in found if _is_temporary(path := self.out / name)]

    def remove_all(self) -> None:
        """Remove the run, its marker last: until then the folder is known to be ours."""
        marker = self.out / self.layout.marker
        remove(*self._left(self.layout.parts))
        remove(*(path for name in [*self._names()] if (path := self.out / name) != marker))
        if self._journal:
            self._journal.remove()
        self._notes.clear()
        self.remove_scratch()
        remove(marker)

    def remove_scratch(self) -> None:
        """Remove intermediate files, and their folder if nothing else is in it."""
        names = self.layout.intermediate
        remove(*self._left(names), *(self.out / name for name, _ in self._listing(names)))
        if self.layout.scratch:
            with suppress(OSError):
                (self.out / self.layout.scratch).rmdir()

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

    def _names(self) -> Iterator[str]:
        """Yield what a run of this kind may have written, or others of these names."""
        lists = LISTS.values() if self.layout.marker == "manifest.json" else ()
        yield from (name for name, _ in self._listing((*self.layout.parts, *lists)))
        yield from (name for name in self.layout.whole if (self.out / name).exists())

    def _listing(self, patterns: Iterable[str]) -> Iterator[tuple[str, str]]:
        return chain.from_iterable(listing(self.out, pattern) for pattern in patterns)

    def _intermediate(self) -> list[Path]:
        """Return what is in the folder of intermediate files."""
        return [*self.out.glob(f"{self.layout.scratch}/*")] if self.layout.scratch else []

    def _refuse_foreign(self) -> None:
        """Raise OutputError for what has one of our names and is not proved to be a run's."""
        layout = self.layout
        marker = self.out / layout.marker
        content, begun = read_mapping(marker), read_mapping(self.out / _BEGUN)
        has_ended, has_begun = layout.keys <= content.keys(), begun == self._kind
        known = {name for name in (*_listed(content), *layout.whole) if has_ended} | {*self._notes}
        noted = {name for name, _, note in self._noted() if note is not None}
        is_ours = has_ended or has_begun or bool(noted)
        for name in self._names():
            if name in noted:
                continue
            path = self.out / name
            if path == marker:
                is_proved = has_ended
            elif path.name == "README.md":
                is_proved = bool(_CARD.match(_beginning(path)))
            elif path.suffix == ".parquet":
                is_proved = self._is_table(path, is_ours, has_begun or name in known)
            else:
                is_proved = is_ours
            if not is_proved:
                self._refuse(path)
        if not is_ours and (intermediate := self._intermediate()):
            self._refuse(intermediate[0])

    def _refuse(self, path: Path) -> None:
        raise OutputError(
            f"noisegen did not {self.layout.verb} {path}; move it, or use another folder"
        )

    def _is_table(self, path: Path, is_ours: bool, is_known: bool) -> bool:
        """Tell whether a Parquet file is proved to be of the run; one that is damaged, by its name.

        `is_ours`: there is a run in the folder, `is_known`: it wrote a file of this name.
        """
        if (metadata := parquet_metadata(path)) is None:
            return is_known
        has_note = METADATA.encode() in (metadata.metadata or {})
        columns = self.layout.columns
        missing = len(columns - {*metadata.schema.names})
        is_like = missing < len(columns) / 2 if is_known else not missing  # a name may have rotted
        return has_note or (is_ours and bool(columns) and is_like)


def _is_temporary(path: Path) -> bool:
    return _TEMPORARY.search(path.name) is not None


def _listed(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the files of all shards in the content of a manifest."""
    shards = manifest.get("shards")
    for shard in shards if isinstance(shards, list) else ():
        name = str(shard.get("file")) if isinstance(shard, dict) else ""
        yield from (name, name.replace("pairs/", "words/"))  # the second of a mining run


def make_folder(out: Path) -> bool:
    """Make the folder; tell whether something is in it; raises OutputError."""
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
    """Raise OutputError: the folder is not empty, and nothing says what to do with that."""
    resume = "--resume to resume its run or " if can_resume else ""
    raise OutputError(f"{out} is not empty; add {resume}--force to overwrite it")


SOURCES_NOTED = 1_000  # in a note; of more it has the digest


def bound(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration as notes have it: of many sources the digest alone."""
    sources = config.get("sources")
    if not isinstance(sources, list) or len(sources) <= SOURCES_NOTED:
        return config
    digest, encode = hashlib.sha256(), json.JSONEncoder(sort_keys=True).encode
    for number, source in enumerate(sources):  # the text of the list, never held as a whole
        digest.update(f"{', ' if number else '['}{encode(source)}".encode())
    digest.update(b"]")
    return {**config, "sources": {"count": len(sources), "sha256": digest.hexdigest()}}


def agree(out: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Raise OutputError unless the folder was made with our configuration."""
    if changed := difference(theirs, ours):
        raise OutputError(
            f"{out} was made with another configuration ({changed}); "
            "use another folder, or --force to overwrite it"
        )


def difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Name the first thing that differs between two configurations; '' if nothing does."""
    theirs, ours = bound(theirs), bound(ours)
    name = next((name for name in ours if theirs.get(name) != ours[name]), None)
    if name is None:
        return ""
    old, new = theirs.get(name), ours[name]
    if isinstance(old, dict) and isinstance(new, dict) and name == "options":
        return difference(old, new) or "other options"
    shown = f"{name} {old!r}, not {new!r}"
    return shown if len(shown) < 80 else f"other {name}"


def note_text(config: str, note: Any) -> str:
    """Return a note, a dataclass, as JSON with the configuration that it belongs to."""
    return json.dumps({"config": config, **asdict(note)})


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping in a JSON or YAML file; an empty one if it has none or cannot be read."""
    import yaml

    try:
        if path.suffix == ".json":
            content = json.loads(path.read_text("utf-8")) if path.exists() else {}
        else:
            content = yaml.safe_load(_beginning(path)) if path.exists() else {}
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return content if isinstance(content, dict) else {}


def _beginning(path: Path) -> str:
    """Return the text of a card or configuration; a file of others may be of any size."""
    with path.open("rb") as file:
        return file.read(CARD_BYTES).decode(errors="replace")


def read_config(out: Path) -> dict[str, Any] | None:
    """Return what config.yaml of a training run says; None where it cannot be read."""
    return read_mapping(out / CONFIG) or None


def number_of(path: Path) -> int | None:
    """Return the number of a task from the name of one of its files; None for any other file."""
    match = _NUMBER.fullmatch(path.name)
    return int(match[1]) if match else None


def shard_path(out: Path, number: int) -> Path:
    """Return the Parquet file of a task."""
    return out / f"part-{number:05d}.parquet"


def is_cut_short(path: Path) -> bool:
    """Tell whether a file is no whole Parquet, or one whose note is damaged."""
    metadata = parquet_metadata(path)
    return metadata is None or METADATA.encode() in (metadata.metadata or {})


def parquet_metadata(path: Path) -> Any:
    """Return the `pyarrow.parquet.FileMetaData` of a file; None if it is no Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            return pq.read_metadata(file)
    except (OSError, ValueError, pa.ArrowException):  # a name may be no UTF-8
        return None
