"""Options of mining runs, and the tasks and the miner that they define."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal

from noisegen.data.files import is_url, modified, size_of
from noisegen.data.m2 import text_head
from noisegen.data.pairs import PairColumns, aligned_files
from noisegen.data.sources import is_hub
from noisegen.errors import SourceError, UsageError
from noisegen.mining import parallel
from noisegen.mining.dumps import tasks_of
from noisegen.mining.filters import PROFILES, FilterProfile
from noisegen.mining.miner import THRESHOLD_OPTIONS, THRESHOLDS, Miner, Task, Thresholds
from noisegen.mining.wiki import WikiMiner
from noisegen.options import Strings, argument, internal, listed, option
from noisegen.runs.options import Folder, Lang, PartOptions, Splitter
from noisegen.runs.progress import silent
from noisegen.text.segmentation import language
from noisegen.version import __version__

Out = Annotated[
    Folder, option("Output folder for pairs and dictionary", "-o", "--out", metavar="FOLDER")
]

Profile = Annotated[
    Literal["spelling", "rcp", "strict", "all"],
    option(
        "Pairs to keep: as in the RCP paper, with misspellings alone in the dictionary (spelling) "
        "or all that the paper takes (rcp); only the most reliable (strict); all"
    ),
]


@dataclass(frozen=True)
class Work:
    """Tasks of a mining run, and the miner of these tasks.

    `config` has the options that decide which pairs are mined. `left_out` has a message for each
    file that is not mined.
    """

    tasks: Sequence[Task]
    miner: Miner
    config: dict[str, Any]
    left_out: Sequence[str] = ()

    def binding(self) -> dict[str, Any]:
        """Return the configuration that the manifest records: version, options and sources.

        A run can be resumed only with an equal configuration. Raises SourceError for a missing
        file.
        """
        sources = []
        for paths, group in groupby(self.tasks, key=attrgetter("paths")):
            tasks = list(group)
            pieces = {}
            if len(tasks) > 1:
                pieces = {"tasks": len(tasks), "first_cut": tasks[0].files[0].stop}
            for path in paths:
                source = {"task": tasks[0].number, "path": path}
                sources.append(source | _written(path) | pieces)
        config = {
            "version": __version__,
            "kind": self.miner.kind,
            "lang": self.miner.language.code,
            "options": self.config,
            "sources": sources,
        }
        # Turns tuples into lists, for comparison with a manifest that was read from JSON
        as_read: dict[str, Any] = json.loads(json.dumps(config))
        return as_read

    def sizes(self) -> dict[int, int]:
        """Return {task number: bytes of its input}; 0 bytes if the size of a file is unknown."""
        sizes = {}
        for task in self.tasks:
            known = [file.size or _written(file.path)["bytes"] for file in task.files]
            sizes[task.number] = 0 if None in known else sum(filter(None, known))
        return sizes


def _written(path: str) -> dict[str, Any]:
    """Return the size of a file in bytes and its modification time in nanoseconds.

    Both are None for standard input and data sets of the Hub. Raises SourceError.
    """
    if path == "-" or is_hub(path):
        return {"bytes": None, "modified": None}
    if is_url(path):
        return {"bytes": size_of(path), "modified": modified(path)}
    try:
        status = Path(path).stat()
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    return {"bytes": status.st_size, "modified": status.st_mtime_ns}


@dataclass(frozen=True, kw_only=True)
class MiningOptions(PartOptions):
    """Options shared by all mining runs; a threshold of None has the default of `profile`."""

    lang: Lang = "en"
    profile: Profile = "rcp"
    max_char_distance: Annotated[
        str | None, option("Maximum edit distance between the words of a pair", metavar="N|none")
    ] = None
    fuzzy_pinyin: Annotated[
        bool, option("Chinese: treat zh/z, sh/s, ch/c, n/l and -ng/-n as the same sound")
    ] = False
    min_pages: Annotated[int | None, THRESHOLD_OPTIONS["min_pages"]] = None
    min_count: Annotated[int | None, THRESHOLD_OPTIONS["min_count"]] = None
    balance: Annotated[int | None, THRESHOLD_OPTIONS["balance"]] = None
    frequency: Annotated[int | None, THRESHOLD_OPTIONS["frequency"]] = None
    top: Annotated[int | None, THRESHOLD_OPTIONS["top"]] = None
    strict: Annotated[bool, option("Treat damaged input as an error")] = False
    tell: Annotated[Callable[[str], None], internal()] = silent

    def deciding(self, *names: str) -> dict[str, Any]:
        """Return the options that decide which pairs are mined, by name, with their values.

        These are `profile`, `max_char_distance`, `fuzzy_pinyin` and the options in `names`.
        """
        shared = ("profile", "max_char_distance", "fuzzy_pinyin")
        return {name: getattr(self, name) for name in (*shared, *names)}

    def pair_profile(self) -> FilterProfile:
        """Return the filter profile, changed by --max-char-distance; raises UsageError."""
        chosen, distance = PROFILES[self.profile], self.max_char_distance
        if distance is None:
            return chosen
        if not re.fullmatch("none|[1-9][0-9]{0,3}", distance):
            raise UsageError(
                f"--max-char-distance {distance!r}: write a number from 1 to 9999, or none"
            )
        return replace(chosen, char_distance_max=None if distance == "none" else int(distance))

    def thresholds(self) -> Thresholds:
        """Return the thresholds that the user gave, and the profile's values for all others."""
        given = {field.name: getattr(self, field.name) for field in fields(Thresholds)}
        chosen = {name: value for name, value in given.items() if value is not None}
        return replace(THRESHOLDS[self.profile], **chosen)


@dataclass(frozen=True)
class WikiOptions(MiningOptions):
    """Options of mining a revision history; with `skip`, only changed lines are compared."""

    dumps: Annotated[Strings, argument("DUMP...")]
    out: Out
    _: KW_ONLY
    profile: Profile = "spelling"
    splitter: Splitter = "sentencex"
    skip: Annotated[bool, option("Compare only what changed, not whole pages")] = True

    def work(self) -> Work:
        """Return the tasks of the dumps, and the miner that does them; raises NoisegenError."""
        spoken = language(self.lang, splitter=self.splitter, fuzzy_pinyin=self.fuzzy_pinyin)
        tasks, left_out = tasks_of(listed(self.dumps), spoken.code)
        miner = WikiMiner(spoken, self.pair_profile(), skip=self.skip)
        return Work(tasks, miner, self.deciding("splitter", "skip"), left_out)


@dataclass(frozen=True)
class Lang8Options(MiningOptions):
    """Options of mining learners' sentences and their corrections."""

    files: Annotated[Strings, argument("FILE...")]
    out: Out
    _: KW_ONLY
    with_uncorrected: Annotated[
        bool, option("Keep sentences without a correction, as pairs of equal sides")
    ] = False

    def work(self) -> Work:
        """Return the tasks of the files, and the miner that does them; raises NoisegenError."""
        spoken = language(self.lang, fuzzy_pinyin=self.fuzzy_pinyin)
        miner = parallel.Lang8Miner(spoken, self.pair_profile(), self.with_uncorrected)
        tasks = parallel.lang8_tasks(listed(self.files))
        return Work(tasks, miner, self.deciding("with_uncorrected"))


@dataclass(frozen=True)
class PairsOptions(MiningOptions):
    """Options of mining parallel text: tables, or a text file and its corrected versions."""

    sources: Annotated[Strings, argument("PAIRS...")]
    out: Out
    _: KW_ONLY
    noisy_column: Annotated[str, option("Column with the errors")] = "noisy"
    clean_columns: Annotated[
        Strings,
        option(
            "Column with the corrected text or a list of corrections; repeatable", "--clean-column"
        ),
    ] = ("clean",)
    clean_files: Annotated[
        Strings, option("Text file with the correction of each line; repeatable", "--clean-file")
    ] = ()
    lang_column: Annotated[str | None, option("Column with the language (code or name)")] = None
    split: Annotated[bool, option("Split rows into sentences and align them")] = False
    splitter: Splitter = "sentencex"

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = listed(self.clean_columns)
        if self.clean_files and len(listed(self.sources)) > 1:
            raise UsageError("--clean-file goes with one noisy text file")
        if self.clean_files and (
            self.lang_column or [self.noisy_column, *columns] != ["noisy", "clean"]
        ):
            raise UsageError(
                "--clean-file is for text files, which have no columns: omit column options"
            )
        if self.noisy_column in columns:
            raise UsageError(f"column {self.noisy_column!r} cannot be both noisy and clean")

    def work(self) -> Work:
        """Return the tasks of the sources, and the miner that does them; raises NoisegenError."""
        spoken = language(self.lang, splitter=self.splitter, fuzzy_pinyin=self.fuzzy_pinyin)
        sources, corrected = listed(self.sources), listed(self.clean_files)
        clean_columns = tuple(listed(self.clean_columns))
        columns = PairColumns(self.noisy_column, clean_columns, self.lang_column)
        miner = parallel.PairsMiner(spoken, self.pair_profile(), columns, self.split)
        left_out: list[str] = []
        if corrected:
            files = aligned_files(sources[0], corrected)
            if not any(text_head(file.path) for file in files):
                raise SourceError(f"no pairs in {', '.join(file.path for file in files)}")
            tasks = [Task(0, tuple(files))]
        else:
            tasks, left_out = parallel.table_tasks(sources, miner)
        config = self.deciding(
            "splitter", "split", "noisy_column", "clean_columns", "lang_column", "clean_files"
        )
        return Work(tasks, miner, config, left_out)


AnyOptions = WikiOptions | Lang8Options | PairsOptions
