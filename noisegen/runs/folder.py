"""The folder that a run writes into: claimed, resumed, refused, and cleared of what was cut short.

A worker writes its files under temporary names and last, with its file or beside it, a note: what
the task gave, as a dataclass. A task is done when its note is there, so a run that was killed at
any moment can be resumed.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Self, TypeVar

import msgspec

from noisegen.errors import OutputError, UsageError, resumable
from noisegen.options import internal, option
from noisegen.options import listed as listed
from noisegen.runs import executors
from noisegen.runs.atomic import file_digest, remove, write_text, writing
from noisegen.runs.manifest import Manifest
from noisegen.runs.progress import LIVE, Show, silent

if TYPE_CHECKING:
    Folder = str | Path  # what callers may give; it is decoded to text
else:
    Folder = str

Part = tuple[int, int]  # (remainder, count): the tasks whose number has this remainder
WHOLE: Part = (0, 1)

Lang = Annotated[str, option("Language of the text")]
TextColumn = Annotated[
    str, option("Column with the text; in a file without header its number, from 1")
]
IdColumn = Annotated[
    str | None, option("Column with the row ids (default: the column id, else row numbers)")
]
RowsPerShard = Annotated[int, option("Rows per output file", ge=1)]
Limit = Annotated[int | None, option("Maximum rows to read", "-n", "--limit", ge=1)]
Splitter = Annotated[Literal["sentencex", "punkt", "spacy"], option("Sentence splitter")]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is spread over workers, and what it may do with a folder that is not empty."""

    workers: Annotated[int, option("Worker processes", ge=1)] = 1
    executor: Annotated[
        str, option("Where the tasks run", metavar="processes|serial|dask:ADDRESS")
    ] = "processes"
    resume: Annotated[bool, option("Resume an interrupted run of the same configuration")] = False
    force: Annotated[bool, option("Overwrite the run in this folder")] = False
    progress: Annotated[Show, internal()] = silent
    command: Annotated[str | None, internal()] = None

    def __post_init__(self) -> None:
        executors.check_executor(self.executor)
        in_parts = self.share != WHOLE
        if self.force and (self.resume or in_parts):
            raise UsageError(
                "--force removes what is there; --resume and --part keep it: choose one"
            )

    @property
    def share(self) -> Part:
        """The tasks to do: all of them."""
        return WHOLE

    def asked(self) -> Self:
        """Return the options that decide the output, all others at their defaults."""
        defaults: dict[str, Any] = {field.name: field.default for field in fields(RunOptions)}
        return replace(self, **defaults)


@dataclass(frozen=True, kw_only=True)
class PartOptions(RunOptions):
    """The same for runs that several machines may share."""

    part: Annotated[
        str | None, option("Do every N-th task from the I-th: 1/4 ... 4/4", metavar="I/N")
    ] = None

    @property
    def share(self) -> Part:
        """The tasks to do, from `part`: I/N, with I from 1 to N; raises UsageError."""
        if self.part is None:
            return WHOLE
        number, _, count = self.part.partition("/")
        if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
            raise UsageError(
                f"cannot read part {self.part!r}: write I/N with I from 1 to N, such as 2/8"
            )
        return int(number) - 1, int(count)


N = TypeVar("N")
T = TypeVar("T")

METADATA = "noisegen"  # the key of a note in the metadata of a Parquet file
CONFIG = "config.yaml"  # of a training run
PARTS = ("data/part-*.parquet", "part-*.parquet")  # the second in runs of the first layout
_NUMBER = re.compile(r"[a-z]+-(\d{5,})\.[a-z]+")
_CARD = "with noisegen"  # in the title of every dataset card


@dataclass(frozen=True)
class Layout(Generic[N]):
    """The files of one kind of run, and how they are known from the files of others.

    `notes` are the patterns of the files that hold notes of the type `note`, `parts` those of all
    numbered files, `whole` the files and folders that are written once. `marker`, one of
    `whole`, is a JSON or YAML file with the keys `keys`. Numbered Parquet files without a note have
    the columns `columns`. `scratch` is a folder that is removed at the end, `temporary` are
    patterns of what does not outlive a task.
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
    temporary: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunFolder(Generic[N]):
    """A folder bound to a configuration: `config` is what the manifest of an equal run says."""

    out: Path
    layout: Layout[N]
    config: Mapping[str, Any]
    share: Part = WHOLE
    _notes: dict[tuple[int, ...], tuple[dict[str, Any], N] | None] = field(
        default_factory=dict, repr=False, compare=False
    )  # of files as they were read, for a run may have thousands

    @property
    def shards(self) -> Path:
        """The folder of the shards: `data`, or, if some lie beside the manifest, `out` itself."""
        from noisegen.data.files import shard_folder

        return shard_folder(self.out)

    def open(self, *, resume: bool, force: bool, can_resume: bool = True) -> dict[int, N]:
        """Make the folder or check what is in it; return the notes of the tasks that are done.

        With `resume` the folder must hold a run of the same configuration, with `force` the run in
        it is removed. Raises OutputError for a folder that cannot be written, that is not empty and
        neither is given, or whose files are not those of such a run.
        """
        present = make_folder(self.out)
        if present and not (resume or force):
            refuse_full(self.out, can_resume=can_resume)
        self._refuse_foreign()
        if force:
            self.remove_all()
        self.earlier_manifest()  # refuses that of another configuration
        with writing(self.out):
            parts = self.layout.parts
            for folder in (
                [self.shards] if parts == PARTS else [(self.out / name).parent for name in parts]
            ):
                folder.mkdir(exist_ok=True)
            (self.out / self.layout.scratch).mkdir(exist_ok=True)
        self.remove_temporary()
        return self.done()

    def done(self) -> dict[int, N]:
        """Return the notes of finished tasks by number; raises OutputError for foreign files."""
        notes: dict[int, N] = {}
        for path in (path for name in self.layout.notes for path in self.out.glob(name)):
            number, note = number_of(path), self._read_note(path)
            if number is None or (note is None and not is_cut_short(path)):
                raise OutputError(f"{path} was not made by this program: use another folder")
            if note is not None:
                config, notes[number] = note
                agree(self.out, config, self.config)
        return dict(sorted(notes.items()))

    def _read_note(self, path: Path) -> tuple[dict[str, Any], N] | None:
        """Return the configuration and the note in a file; None if it is damaged or not ours."""
        if self.layout.note is None or not path.exists():
            return None
        stat = path.stat()
        key = stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size
        if key not in self._notes:
            self._notes[key] = self._note_in(path, self.layout.note)
        return self._notes[key]

    @staticmethod
    def _note_in(path: Path, kind: type[N]) -> tuple[dict[str, Any], N] | None:
        try:
            if path.suffix == ".parquet":
                content = (parquet_metadata(path).metadata or {})[METADATA.encode()]
            else:
                content = path.read_text("utf-8")
            note = msgspec.json.decode(content, type=dict[str, Any])
            config = msgspec.json.decode(note.pop("config"), type=dict[str, Any])
            return config, msgspec.convert(note, kind)
        except (OSError, KeyError, TypeError, ValueError, AttributeError):
            return None

    def run(
        self, function: Callable[[T], N], tasks: Iterable[T], options: RunOptions,
        finished: Callable[[N], None],
    ) -> None:  # fmt: skip
        """Run the tasks on the executor and call `finished` with every note as it comes."""
        results = executors.run(function, tasks, options.executor, options.workers)
        try:
            with resumable(), closing(results):
                for note in results:
                    finished(note)
        finally:
            self.remove_temporary()

    def live(self, folder: Path) -> list[Path]:
        """Return the files in which running tasks of this share publish what they have done."""
        paths = folder.glob(f"*{LIVE}") if isinstance(folder, Path) else ()  # none in a store
        files = {path: number_of(Path(path.name.removesuffix(LIVE))) for path in paths}
        remainder, count = self.share
        return [path for path, n in files.items() if n is not None and n % count == remainder]

    def earlier_manifest(self) -> Manifest | None:
        """Return the manifest in the folder; raises OutputError for another configuration."""
        path = self.out / self.layout.marker
        if path.name != "manifest.json" or not path.exists():
            return None
        manifest = Manifest.load(path)
        agree(self.out, vars(manifest), self.config)
        return manifest

    def digests(self, fresh: Mapping[str, str]) -> Callable[[str], str]:
        """Return what gives the SHA-256 of a file of the run by its name in the manifest.

        `fresh` has the digests of this run; those of the last manifest hold for files that are
        older than it; all others are computed.
        """
        known: dict[str, str] = {}
        if (manifest := self.earlier_manifest()) is not None:
            written = (self.out / "manifest.json").stat().st_mtime_ns
            for shard in manifest.shards:
                path = self.out / shard["file"]
                if path.exists() and path.stat().st_mtime_ns < written:
                    known[shard["file"]] = shard["sha256"]
        known.update(fresh)
        return lambda name: known.get(name) or file_digest(self.out / name)

    def publish(self, manifest: Manifest, card: str) -> Manifest:
        """Write the manifest and the dataset card, which end a run."""
        write_text(self.out / "manifest.json", manifest.to_json())
        write_text(self.out / "README.md", card)
        return manifest

    def refuse_inputs(self, paths: Iterable[str]) -> None:
        """Raise OutputError for an input where the run writes: --force would remove it."""
        ours = {str(path.resolve()) for path in self._files()}
        for path in paths:
            if (path if "://" in path else str(Path(path).resolve())) in ours:
                raise OutputError(f"{path} is an input, and its name one of the output: use -o")

    def remove_temporary(self) -> None:
        """Remove what a run that was cut short left half written of this share of the tasks.

        What is left of the files that one run alone writes goes too, unless the share is a part.
        """
        if not isinstance(self.out, Path):
            return  # a store has whole objects alone
        for path in self._temporary():
            number = number_of(Path(path.name.rsplit(".", 2)[0]))
            if number is not None and number % self.share[1] == self.share[0]:
                remove(path)
        if self.share == WHOLE:
            ends = (".*.tmp", "/**/*.tmp")
            names = (f"{name}{end}" for name in self.layout.whole for end in ends)
            left = [*self.layout.temporary, *names]
            remove(*(path for name in left for path in [*self.out.glob(name)]))

    def _temporary(self) -> list[Path]:
        return [path for name in self.layout.parts for path in self.out.glob(f"{name}.*.tmp")]

    def remove_all(self) -> None:
        """Remove the run, its marker last: until then the folder is known to be ours."""
        marker = self.out / self.layout.marker
        remove(*self._temporary(), *(path for path in self._files() if path != marker))
        self.remove_scratch()
        remove(marker)

    def remove_scratch(self) -> None:
        """Remove the folder of intermediate files."""
        if self.layout.scratch:
            remove(self.out / self.layout.scratch)

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """Remove the run, and the folder if nothing else is in it, when the block fails."""
        try:
            yield
        except BaseException:
            self.remove_all()
            with suppress(OSError):
                self.out.rmdir()
            raise

    def _files(self) -> list[Path]:
        """Return the files that a run of this kind may have written, or others of their names."""
        parts = [path for name in self.layout.parts for path in sorted(self.out.glob(name))]
        return parts + [path for name in self.layout.whole if (path := self.out / name).exists()]

    def _refuse_foreign(self) -> None:
        """Raise OutputError for a file that has one of our names and is not what a run has left."""
        files = {path: self._has_mark(path) for path in self._files()}
        is_begun = any(files.values())
        for path, has_mark in files.items():
            if not (has_mark or self._is_left(path, is_begun)):
                raise OutputError(
                    f"noisegen did not {self.layout.verb} {path}; move it, or use another folder"
                )

    def _has_mark(self, path: Path) -> bool:
        """Tell whether a file can only be of such a run."""
        if path.name == self.layout.marker:
            return self.layout.keys <= read_mapping(path).keys()
        return path.suffix == ".parquet" and self._read_note(path) is not None

    def _is_left(self, path: Path, is_begun: bool) -> bool:
        """Tell whether a run left a file without a mark; `is_begun`: another file has one."""
        columns, scratch = self.layout.columns, self.layout.scratch
        if path.name == self.layout.marker:
            return False
        if path.name == "README.md":
            return _CARD in path.read_text("utf-8", errors="replace")
        if path.suffix != ".parquet":
            return is_begun
        if is_cut_short(path):
            return is_begun or number_of(path) is not None
        is_begun = is_begun or not scratch or (self.out / scratch).is_dir()
        return is_begun and bool(columns) and columns <= {*parquet_metadata(path).schema.names}


def make_folder(out: Path) -> bool:
    """Make the folder; tell whether something is in it; raises OutputError."""
    if isinstance(out, Path) and any(part.endswith(":") for part in out.parts):  # once a URL
        raise OutputError(f"{out}: only augment writes to a store; name a folder here")
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file: name a folder to write into")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        return any(out.iterdir())


def refuse_full(out: Path, *, can_resume: bool = True) -> None:
    """Raise OutputError: the folder is not empty, and nothing says what to do with that."""
    resume = "--resume to resume its run or " if can_resume else ""
    raise OutputError(f"{out} is not empty; add {resume}--force to overwrite it")


def agree(out: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Raise OutputError unless the folder was made with our configuration."""
    if changed := difference(theirs, ours):
        raise OutputError(
            f"{out} was made with another configuration ({changed}); "
            "use another folder, or --force to overwrite it"
        )


def difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Name the first thing that differs between two configurations; '' if nothing does."""
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
        text = path.read_text("utf-8")
        content = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return content if isinstance(content, dict) else {}


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
    except (OSError, pa.ArrowException):
        return None
