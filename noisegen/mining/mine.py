"""Mining runs: one task in, one shard of pairs with its word counts out; then the dictionary.

`mine_wiki`, `mine_lang8` and `mine_pairs` are the Python twins of the commands.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, fields, replace
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.errors import SourceError, UsageError
from noisegen.mining.dictionary import (
    ThresholdTotals,
    WordCounter,
    apply_thresholds,
    merged,
    seen_words,
    write_counts,
    write_dictionary,
)
from noisegen.mining.filters import FilterProfile, profile
from noisegen.mining.miner import (
    THRESHOLDS,
    Account,
    Miner,
    SentencePair,
    Task,
    Thresholds,
    WordPair,
)
from noisegen.options import Strings, argument, internal, option, public
from noisegen.runs.files import atomic, file_digest
from noisegen.runs.folder import (
    METADATA,
    Folder,
    Lang,
    Layout,
    PartOptions,
    RunFolder,
    Splitter,
    listed,
    note_text,
    shard_path,
)
from noisegen.runs.manifest import Manifest, dataset_card, packages, source_names, summed
from noisegen.runs.progress import Progress, publishing, watching
from noisegen.text.segmentation import language
from noisegen.version import __version__

ROWS = 8_192  # of a row group of pairs
WORD_MAX = 100  # characters of a word that is counted
DAMAGE_MAX = 1_000  # lines of damage in the manifest
DICTIONARY = ("dictionary.parquet", "dictionary.tsv")

_TEXTS = [("noisy", pa.string()), ("clean", pa.string()), ("lang", pa.string()),
          ("key", pa.uint64())]  # fmt: skip
_REVISIONS = [
    ("page_id", pa.int64()), ("rev_old", pa.int64()), ("rev_new", pa.int64()),
    ("timestamp", pa.string()), ("minor", pa.bool_()), ("comment_flag", pa.bool_()),
    ("reverted", pa.bool_()), ("survived", pa.bool_()),
]  # fmt: skip
WIKI = "wiki"
PAIRS = {
    WIKI: pa.schema([*_TEXTS, *_REVISIONS]),
    "": pa.schema([*_TEXTS, ("unit", pa.int64())]),
}


Out = Annotated[
    Folder, option("Output folder for pairs and dictionary", "-o", "--out", metavar="FOLDER")
]


@dataclass(frozen=True, kw_only=True)
class MiningOptions(PartOptions):
    """Which pairs and which words are kept; a threshold of None is that of the profile."""

    lang: Lang = "en"
    profile: Annotated[
        Literal["rcp", "strict", "all"],
        option("Pairs to keep: as in the RCP paper, only the surest, or all sentences"),
    ] = "rcp"
    max_char_distance: Annotated[
        str | None, option("Maximum edits between the words of a pair", metavar="N|none")
    ] = None
    fuzzy_pinyin: Annotated[
        bool, option("Chinese: treat zh/z, sh/s, ch/c, n/l and -ng/-n as the same sound")
    ] = False
    min_pages: Annotated[int | None, option("Minimum pages (or rows) of a word pair", ge=0)] = None
    min_count: Annotated[int | None, option("Minimum sentence pairs of a word pair", ge=0)] = None
    balance: Annotated[
        int | None,
        option("Minimum count of a word pair, in counts of its reverse (0: any)", ge=0),
    ] = None
    frequency: Annotated[
        int | None,
        option("Minimum frequency of the right word, in frequencies of the wrong form among the "
               "corrected sentences (0: any)", ge=0),
    ] = None  # fmt: skip
    top: Annotated[int | None, option("Maximum wrong forms of a word (0: all)", ge=0)] = None
    strict: Annotated[bool, option("Treat damaged input as an error")] = False
    tell: Annotated[Callable[[str], None] | None, internal()] = None

    def deciding(self, *names: str) -> dict[str, Any]:
        """Return the options that decide which pairs are mined: those of all runs and `names`."""
        shared = ("profile", "max_char_distance", "fuzzy_pinyin")
        return {name: getattr(self, name) for name in (*shared, *names)}

    def pair_profile(self) -> FilterProfile:
        """Return the filters of pairs."""
        return profile(self.profile, self.max_char_distance)

    def thresholds(self) -> Thresholds:
        """Return the thresholds of the profile, with those that were given."""
        given = {field.name: getattr(self, field.name) for field in fields(Thresholds)}
        chosen = {name: value for name, value in given.items() if value is not None}
        return replace(THRESHOLDS[self.profile], **chosen)


@dataclass(frozen=True)
class WikiOptions(MiningOptions):
    """The revision history of a wiki; without `skip` whole pages are compared, slowly."""

    dumps: Annotated[Strings, argument("DUMP...")]
    out: Out
    _: KW_ONLY
    splitter: Splitter = "sentencex"
    skip: Annotated[bool, option("Compare whole pages: slow, to check the short cuts")] = True


@dataclass(frozen=True)
class Lang8Options(MiningOptions):
    """Sentences of learners and their corrections."""

    files: Annotated[Strings, argument("FILE...")]
    out: Out
    _: KW_ONLY
    with_uncorrected: Annotated[
        bool, option("Keep a sentence that nobody corrected, as a pair of itself")
    ] = False


@dataclass(frozen=True)
class PairsOptions(MiningOptions):
    """Parallel noisy and clean text: tables, or a text file and its corrected versions."""

    sources: Annotated[Strings, argument("SOURCE...")]
    out: Out
    _: KW_ONLY
    noisy_column: Annotated[str, option("Column with the errors")] = "noisy"
    clean_columns: Annotated[
        Strings,
        option("Column with the corrected text, or lists of it; repeatable", "--clean-column"),
    ] = ("clean",)
    clean_files: Annotated[
        Strings, option("Text file with the correction of each line; repeatable", "--clean-file")
    ] = ()
    lang_column: Annotated[str | None, option("Column with the language, as code or name")] = None
    split: Annotated[bool, option("Split rows of several sentences and align those")] = False
    splitter: Splitter = "sentencex"

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = listed(self.clean_columns)
        if self.clean_files and len(listed(self.sources)) > 1:
            raise UsageError("--clean-file goes with one SOURCE, the noisy text file")
        if self.clean_files and (
            self.lang_column or [self.noisy_column, *columns] != ["noisy", "clean"]
        ):
            raise UsageError("--clean-file goes with text files, which have no columns")
        if self.noisy_column in columns:
            raise UsageError(f"column {self.noisy_column!r} cannot be both noisy and clean")


# The commands.


def _mine_wiki(options: WikiOptions) -> Manifest:
    """Mine sentence pairs and a dictionary from the revision history of a wiki.

    `dumps`: files, folders or globs; without `skip` whole pages are compared, slowly, for the same
    word pairs; `tell` is called with a line for every file that is left out. A threshold of None is
    that of the profile (see `Thresholds`). Raises NoisegenError.
    """
    from noisegen.mining.dumps import tasks_of
    from noisegen.mining.wiki import WikiMiner

    spoken = language(options.lang, splitter=options.splitter, fuzzy_pinyin=options.fuzzy_pinyin)
    tasks, left_out = tasks_of(listed(options.dumps), spoken.code)
    miner = WikiMiner(spoken, options.pair_profile(), skip=options.skip)
    config = options.deciding("splitter", "skip")
    return mine(Work(tasks, miner, WIKI, spoken.code, config, left_out), options)


def _mine_lang8(options: Lang8Options) -> Manifest:
    """Mine learners' sentences: Lang-8 entries (a JSON array per line) or M2.

    `with_uncorrected` keeps a sentence that nobody corrected, as a pair of itself. A threshold of
    None is that of the profile. Raises NoisegenError.
    """
    from noisegen.mining.parallel import Lang8Miner, lang8_tasks

    spoken = language(options.lang, fuzzy_pinyin=options.fuzzy_pinyin)
    miner = Lang8Miner(spoken, options.pair_profile(), options.with_uncorrected)
    tasks = lang8_tasks(listed(options.files))
    config = options.deciding("with_uncorrected")
    return mine(Work(tasks, miner, "lang8", spoken.code, config), options)


def _mine_pairs(options: PairsOptions) -> Manifest:
    """Mine a dictionary from parallel noisy and clean text.

    `sources`: tables as for `augment`, or one text file with the corrections of its lines in
    `clean_files`. `split` cuts rows into sentences and aligns those. `tell` is called with a line
    for every file that is left out. A threshold of None is that of the profile. Raises
    NoisegenError.
    """
    from noisegen.mining.parallel import PairsMiner, aligned_tasks, table_tasks

    spoken = language(options.lang, splitter=options.splitter, fuzzy_pinyin=options.fuzzy_pinyin)
    sources, corrected = listed(options.sources), listed(options.clean_files)
    columns = options.noisy_column, tuple(listed(options.clean_columns)), options.lang_column
    miner = PairsMiner(spoken, options.pair_profile(), *columns, options.split)
    left_out: list[str] = []
    if corrected:
        tasks = aligned_tasks(sources[0], corrected)
    else:
        tasks, left_out = table_tasks(sources, miner)
    config = options.deciding(
        "splitter", "split", "noisy_column", "clean_columns", "lang_column", "clean_files"
    )
    return mine(Work(tasks, miner, "pairs", spoken.code, config, left_out), options)


mine_wiki = public(WikiOptions, _mine_wiki)
mine_lang8 = public(Lang8Options, _mine_lang8)
mine_pairs = public(PairsOptions, _mine_pairs)


# A run.


@dataclass(frozen=True)
class Work:
    """What is to be mined: `config` are the options that decide the pairs.

    `kind` is wiki, lang8 or pairs, `left_out` says which files are not mined and why.
    """

    tasks: Sequence[Task]
    miner: Miner
    kind: str
    lang: str
    config: dict[str, Any]
    left_out: Sequence[str] = ()

    def binding(self) -> dict[str, Any]:
        """Return what a folder is bound to; raises SourceError for a file that is not there."""
        sources = []
        for task in self.tasks:
            for path in task.paths:
                size, modified = _stat(path)
                sources.append(
                    {"task": task.number, "path": path, "bytes": size, "modified": modified}
                )
        config = {
            "version": __version__, "kind": self.kind, "lang": self.lang, "options": self.config,
            "sources": sources,
        }  # fmt: skip
        as_read: dict[str, Any] = json.loads(json.dumps(config))  # as it comes from the manifest
        return as_read


def _stat(path: str) -> tuple[int | None, int | None]:
    """Return the bytes of a file and when it was written, in ns: one of equal size may be another.

    Of what is no file, both are None.
    """
    if path == "-" or path.startswith("hf:"):
        return None, None
    try:
        status = Path(path).stat()
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    return status.st_size, status.st_mtime_ns


@dataclass(frozen=True)
class MiningJob:
    """All that a worker needs for any task of a run; small, and pickled with every task."""

    out: Path
    config: str  # JSON that binds a folder to one configuration
    kind: str
    miner: Miner
    strict: bool = False


@dataclass(frozen=True)
class Mined:
    """What one task gave: rows of pairs, rows of word counts, and the account of its losses."""

    number: int
    rows: int
    words: int = 0
    words_sha256: str = ""
    read: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    damaged: int = 0
    damage: list[str] = field(default_factory=list)
    sha256: str = ""  # of the pairs; the note inside them cannot say it


LAYOUT = Layout(
    "mine", "manifest.json", frozenset({"missing_tasks"}),
    whole=("manifest.json", "README.md", *DICTIONARY),
    parts=("pairs/part-*.parquet", "words/part-*.parquet"),
    notes="pairs/part-*.parquet", note=Mined,
    columns=frozenset({"lang", "clean", "noisy", "count"}),
)  # fmt: skip


def pairs_path(out: Path, number: int) -> Path:
    """Return the file of a task's sentence pairs."""
    return shard_path(out / "pairs", number)


def words_path(out: Path, number: int) -> Path:
    """Return the file of a task's word counts, before any threshold."""
    return shard_path(out / "words", number)


def mine(work: Work, options: WikiOptions | Lang8Options | PairsOptions) -> Manifest:
    """Mine all tasks into a folder: pairs, word counts, and, once none is missing, the dictionary.

    Thresholds may differ between runs: a later run applies its own. `progress` is called with every
    finished task, and every second with what is read by running ones. Raises NoisegenError.
    """
    for line in work.left_out:
        if options.tell:
            options.tell(f"skipped {line}")
    thresholds, binding = options.thresholds(), work.binding()
    out = Path(options.out).resolve()
    folder = RunFolder(out, LAYOUT, binding, options.share)
    job = MiningJob(out, json.dumps(binding, sort_keys=True), work.kind, work.miner, options.strict)
    folder.refuse_inputs(source["path"] for source in binding["sources"])
    folder.open(resume=options.resume or options.part is not None, force=options.force)
    done, (remainder, count) = _done(folder), options.share
    missing = [t for t in work.tasks if t.number % count == remainder and t.number not in done]
    # The longest first, so that none is left for the end.
    missing.sort(key=lambda task: sum(_stat(path)[0] or 0 for path in task.paths), reverse=True)
    meter = _Meter(options, len(missing))
    with watching(out / "pairs", meter.show):
        folder.run(partial(mine_task, job), missing, options, meter.finished)
    command = options.command or f"noisegen mine-{work.kind}"
    return _finish(folder, work, thresholds, command, meter.digests)


class _Meter:
    """How much has been mined so far."""

    def __init__(self, options: MiningOptions, tasks: int) -> None:
        self.options, self.tasks = options, tasks
        self.pairs = 0
        self.read: Counter[str] = Counter()
        self.digests: dict[str, str] = {}  # of the files of pairs

    def finished(self, mined: Mined) -> None:
        """Count a finished task."""
        self.digests[f"pairs/{shard_path(Path(), mined.number)}"] = mined.sha256
        self.pairs += mined.rows
        self.read.update(mined.read)
        self.show(Counter())

    def show(self, running: Counter[str]) -> None:
        """Report what is done, with what the running tasks have read."""
        read = self.read + running
        counts = {name: read[name] for name in ("pages", "revisions", "entries", "rows", "bytes")}
        self.options.report(
            Progress("", len(self.digests), self.tasks, "files", {"pairs": self.pairs, **counts})
        )


def _done(folder: RunFolder[Mined]) -> dict[int, Mined]:
    """Return the finished tasks: those whose word counts are there too."""

    def has_words(mined: Mined) -> bool:
        path = words_path(folder.out, mined.number)
        return path.exists() and file_digest(path) == mined.words_sha256

    return {number: mined for number, mined in folder.done().items() if has_words(mined)}


def _finish(
    folder: RunFolder[Mined], work: Work, thresholds: Thresholds, command: str,
    fresh: Mapping[str, str],
) -> Manifest:  # fmt: skip
    """Write dictionary, manifest and card, unless tasks are missing or nothing is new.

    `fresh` has the digests of the shards that were just written.
    """
    done = _done(folder)
    notes = [done[task.number] for task in work.tasks if task.number in done]
    digest = folder.digests(fresh)
    shards = []
    for note in notes:
        name = f"pairs/{shard_path(Path(), note.number)}"
        shards.append(
            {"file": name, "rows": note.rows, "words": note.words, "sha256": digest(name),
             "words_sha256": note.words_sha256}
        )  # fmt: skip
    manifest = Manifest(
        command=command, thresholds=asdict(thresholds), shards=shards, packages=packages(),
        totals={
            "pairs": sum(note.rows for note in done.values()),
            "read": summed(note.read for note in done.values()),
            "dropped": summed(note.dropped for note in done.values()),
            "damaged": sum(note.damaged for note in done.values()),
        },
        dictionary={"words": 0, "entries": 0, "dropped": {}},
        damage=[line for note in notes for line in note.damage][:DAMAGE_MAX],
        left_out=list(work.left_out), missing_tasks=len(work.tasks) - len(notes),
        **folder.config,
    )  # fmt: skip
    if manifest.missing_tasks:
        return manifest
    if (earlier := _unchanged(folder, manifest)) is not None:
        return earlier
    numbers = [note.number for note in notes]
    manifest = replace(manifest, dictionary=_merge(folder.out, numbers, thresholds))
    return folder.publish(manifest, _card(manifest))


def _unchanged(folder: RunFolder[Mined], manifest: Manifest) -> Manifest | None:
    """Return the manifest on disk if it says the same and all its files are on disk."""
    if not all((folder.out / name).exists() for name in LAYOUT.whole):
        return None
    present = Manifest.load(folder.out)
    same = (present.shards, present.thresholds) == (manifest.shards, manifest.thresholds)
    digests = {name: file_digest(folder.out / name) for name in DICTIONARY}
    return present if same and present.dictionary.get("sha256") == digests else None


def _merge(out: Path, numbers: list[int], thresholds: Thresholds) -> dict[str, Any]:
    """Write the dictionary of all tasks; return what the manifest says about it."""
    totals = ThresholdTotals()
    words = [words_path(out, number) for number in numbers]
    pairs = [pairs_path(out, number) for number in numbers]
    seen = seen_words(words, pairs, thresholds)
    entries = write_dictionary(apply_thresholds(merged(words), thresholds, totals, seen), out)
    return {
        "words": totals.words,
        "entries": entries,
        "dropped": dict(sorted(totals.dropped.items())),
        "pages_in_several_files": shared_pages(pairs),
        "sha256": {name: file_digest(out / name) for name in DICTIONARY},
    }


def shared_pages(paths: Sequence[Path]) -> int:
    """Return how many pages with pairs occur in more than note file; 0 where there are no pages."""
    pages = [np.zeros(0, np.int64)]
    for path in paths:
        if "page_id" in pq.read_schema(path).names:
            pages.append(pq.read_table(path, columns=["page_id"])["page_id"].unique().to_numpy())
    counts = np.unique(np.concatenate(pages), return_counts=True)[1]
    return int(np.count_nonzero(counts > 1))


_BODY = """`pairs` has the columns {columns}: the side with errors, the corrected side, and where they stood.
`dictionary` (also `dictionary.tsv`) has a row for each wrong form of a word: `count` sentence pairs
on `pages` pages (or rows) correct it so, `reverse_count` change it the other way round, and `prob`
is its share among the wrong forms of the word. `words/` keeps the counts before any threshold, for
`noisegen dictionary filter`.

Made by `{command}`. The text comes from {sources}: its licence is theirs.

Noise from it: `noisegen augment TEXT -o OUT -t wiki:dictionary=dictionary.parquet,rate=0.1`"""  # noqa: E501


def _card(manifest: Manifest) -> str:
    """Return the text of the dataset card."""
    columns = [f"`{name}`" for name in PAIRS.get(manifest.kind, PAIRS[""]).names]
    body = _BODY.format(
        columns=", ".join(columns), command=manifest.command, sources=source_names(manifest)
    )
    configs = {"pairs": "pairs/part-*.parquet", "dictionary": "dictionary.parquet"}
    title, tags = "Real errors and their corrections, mined", "noise, real-errors"
    return dataset_card(manifest, title, tags, body, "pairs", configs)


# A task.


def mine_task(job: MiningJob, task: Task) -> Mined:
    """Mine one task: its word counts first, then its pairs, whose metadata says all is there.

    Raises OutputError if it cannot be written, SourceError for input that cannot be read or, under
    `strict`, that is damaged.
    """
    pairs, words = pairs_path(job.out, task.number), words_path(job.out, task.number)
    schema = PAIRS.get(job.kind, PAIRS[""])
    repetitive = [name for name in ("lang", "page_id", "timestamp") if name in schema.names]
    with (
        atomic(pairs) as file,
        WordCounter() as counter,
        pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=repetitive) as writer,
    ):
        mined = _write_pairs(job, task, writer, counter)
        with atomic(words) as counts:
            mined = replace(mined, words=write_counts(counter.rows(), counts))
        mined = replace(mined, words_sha256=file_digest(words))
        writer.add_key_value_metadata({METADATA: note_text(job.config, mined)})
        writer.close()
    return replace(mined, sha256=file_digest(pairs))


def _write_pairs(
    job: MiningJob, task: Task, writer: pq.ParquetWriter, counter: WordCounter
) -> Mined:
    """Write the pairs of a task, count their words, and return the account."""
    account, rows = Account(), 0
    distinct = _distinct(_mined(job.miner, task, account), account)
    shard = pairs_path(job.out, task.number)
    with publishing(shard.with_name(f"{shard.name}.live.tmp"), account.read):
        while part := list(islice(distinct, ROWS)):
            for pair, _ in part:
                counter.add(pair)
            writer.write_batch(_batch(part, writer.schema))
            rows += len(part)
    if job.strict and account.damaged:
        more = f" (and {account.damaged.total - 1:,} more)" if account.damaged[1:] else ""
        raise SourceError(f"damaged input: {account.damaged[0]}{more}; --strict makes it an error")
    return Mined(
        task.number, rows, read=dict(account.read), dropped=dict(account.dropped),
        damaged=account.damaged.total, damage=list(account.damaged),
    )  # fmt: skip


def _mined(miner: Miner, task: Task, account: Account) -> Iterator[SentencePair]:
    """Yield what the miner yields; what goes wrong with its files is not a failure of ours."""
    try:
        yield from miner(task, account)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SourceError(f"cannot read {', '.join(task.paths)}: {reason}") from error


def _distinct(
    pairs: Iterator[SentencePair], account: Account
) -> Iterator[tuple[SentencePair, int]]:
    """Yield the pairs and their keys; one that its unit has had, as in an edit war, is dropped."""
    unit: int | None = None
    seen: set[int] = set()
    for pair in pairs:
        if pair.unit != unit:
            unit, seen = pair.unit, set()
        key = pair_key(pair.noisy, pair.clean)
        if key in seen:
            account.dropped["repeated"] += 1
            continue
        seen.add(key)
        words = tuple(word for word in pair.words if _is_counted(word))
        if len(words) < len(pair.words):
            account.dropped["word_not_one_token"] += len(pair.words) - len(words)
            pair = replace(pair, words=words)
        yield pair, key


def pair_key(noisy: str, clean: str) -> int:
    """Return the 64-bit number of a pair (BLAKE2b, 8 bytes, over both sides)."""
    content = b"\x00".join((noisy.encode(), clean.encode()))
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def _is_counted(word: WordPair) -> bool:
    """Tell whether both sides can be put in place of each other: one token each, and different."""
    one_token = (len(side) <= WORD_MAX and side.split() == [side] for side in word[:2])
    return word.clean != word.noisy and all(one_token)


def _batch(pairs: list[tuple[SentencePair, int]], schema: pa.Schema) -> pa.RecordBatch:
    names = {"page_id": "unit"}  # fields of a pair that are called otherwise
    columns = {
        name: [
            key if name == "key" else getattr(pair, names.get(name, name)) for pair, key in pairs
        ]
        for name in schema.names
    }
    return pa.record_batch(columns, schema)
