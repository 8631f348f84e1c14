"""Mining runs: tasks write sentence pairs and word counts, from which a dictionary is made.

The commands mine-wiki, mine-lang8 and mine-pairs call `mine_wiki`, `mine_lang8` and `mine_pairs`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.data.files import metered
from noisegen.errors import SourceError, UsageError
from noisegen.mining import counts, dictionary
from noisegen.mining.miner import (
    DAMAGE_MAX,
    Miner,
    SentencePair,
    Tally,
    Task,
    Thresholds,
    WordPair,
)
from noisegen.mining.miner_options import (
    AnyOptions,
    Lang8Options,
    MiningOptions,
    PairsOptions,
    WikiOptions,
    Work,
)
from noisegen.mining.wiki import WikiMiner
from noisegen.options import Strings, decode, public
from noisegen.runs.atomic import atomic, file_digest
from noisegen.runs.card import Card, dataset_card
from noisegen.runs.executors import is_remote
from noisegen.runs.folder import DESCRIPTION, Layout, RunFolder, shard_path
from noisegen.runs.manifest import Manifest, packages, summed
from noisegen.runs.progress import BYTES, Show, Tracker, live_path, publishing, silent
from noisegen.runs.records import File, Record
from noisegen.runs.store import output_path

ROWS = 8_192  # pairs per Parquet row group
WORD_MAX = 100  # most characters of a word that is counted
DICTIONARY = ("dictionary.parquet", "dictionary.tsv")
_SHOWN = ("pairs", "pages", "revisions", "entries", "rows")  # counts shown as progress

_TEXTS = [
    ("noisy", pa.string()),
    ("clean", pa.string()),
    ("lang", pa.string()),
    ("key", pa.uint64()),
]
_REVISIONS = [
    ("page_id", pa.int64()),
    ("rev_old", pa.int64()),
    ("rev_new", pa.int64()),
    ("timestamp", pa.string()),
    ("minor", pa.bool_()),
    ("comment_flag", pa.bool_()),
    ("reverted", pa.bool_()),
    ("survived", pa.bool_()),
]
WIKI = WikiMiner.kind
_ROWS = pa.schema([*_TEXTS, ("unit", pa.int64())])
PAIRS = {WIKI: pa.schema([*_TEXTS, *_REVISIONS]), "lang8": _ROWS, "pairs": _ROWS}


# Functions of the commands.


@public
def mine_wiki(
    dumps: Strings,
    out: str | Path,
    *,
    workers: int = 1,
    executor: str = "processes",
    resume: bool = False,
    force: bool = False,
    progress: Show = silent,
    command: str | None = None,
    part: str | None = None,
    lang: str = "en",
    profile: Literal["spelling", "rcp", "strict", "all"] = "spelling",
    max_char_distance: str | None = None,
    fuzzy_pinyin: bool = False,
    min_pages: int | None = None,
    min_count: int | None = None,
    balance: int | None = None,
    frequency: int | None = None,
    top: int | None = None,
    strict: bool = False,
    tell: Callable[[str], None] = silent,
    splitter: Literal["sentencex", "punkt", "spacy"] = "sentencex",
    skip: bool = True,
) -> Manifest:
    """Mine sentence pairs and a dictionary from the revision history of a wiki.

    `dumps` are files, folders or globs. With `skip` False, whole pages are compared instead of
    changed lines, which is slow and gives the same word pairs. `tell` is called with a line per
    file that is left out. A threshold of None has the default of the filter profile (see
    `Thresholds`). Raises NoisegenError.
    """
    options = decode(WikiOptions, locals())
    return mine(options.work(), options)


@public
def mine_lang8(
    files: Strings,
    out: str | Path,
    *,
    workers: int = 1,
    executor: str = "processes",
    resume: bool = False,
    force: bool = False,
    progress: Show = silent,
    command: str | None = None,
    part: str | None = None,
    lang: str = "en",
    profile: Literal["spelling", "rcp", "strict", "all"] = "rcp",
    max_char_distance: str | None = None,
    fuzzy_pinyin: bool = False,
    min_pages: int | None = None,
    min_count: int | None = None,
    balance: int | None = None,
    frequency: int | None = None,
    top: int | None = None,
    strict: bool = False,
    tell: Callable[[str], None] = silent,
    with_uncorrected: bool = False,
) -> Manifest:
    """Mine learners' sentences from `files`: Lang-8 entries (a JSON array per line) or M2 files.

    `with_uncorrected` keeps a sentence that nobody corrected as a pair of equal sides. A threshold
    of None has the default of the filter profile. Raises NoisegenError.
    """
    options = decode(Lang8Options, locals())
    return mine(options.work(), options)


@public
def mine_pairs(
    sources: Strings,
    out: str | Path,
    *,
    workers: int = 1,
    executor: str = "processes",
    resume: bool = False,
    force: bool = False,
    progress: Show = silent,
    command: str | None = None,
    part: str | None = None,
    lang: str = "en",
    profile: Literal["spelling", "rcp", "strict", "all"] = "rcp",
    max_char_distance: str | None = None,
    fuzzy_pinyin: bool = False,
    min_pages: int | None = None,
    min_count: int | None = None,
    balance: int | None = None,
    frequency: int | None = None,
    top: int | None = None,
    strict: bool = False,
    tell: Callable[[str], None] = silent,
    noisy_column: str = "noisy",
    clean_columns: Strings = ("clean",),
    clean_files: Strings = (),
    lang_column: str | None = None,
    split: bool = False,
    splitter: Literal["sentencex", "punkt", "spacy"] = "sentencex",
) -> Manifest:
    """Mine a dictionary from parallel noisy and clean text.

    `sources` are tables as for `augment`, or one noisy text file with corrected versions, line by
    line, in `clean_files`. `split` splits both texts of a row into sentences and aligns these.
    `tell` is called with a line per file that is left out. A threshold of None has the default of
    the filter profile. Raises NoisegenError.
    """
    options = decode(PairsOptions, locals())
    return mine(options.work(), options)


# Runs: all tasks, the manifest and the dictionary.


@dataclass(frozen=True)
class Mined:
    """Result of a task: pairs and word counts written, input read, pairs dropped and damage.

    `rows` is the number of sentence pairs, `words` the number of rows in the file of word counts.
    `read` counts the input, such as pages and revisions, `dropped` the dropped pairs by reason.
    `damaged` is the number of messages about damage; `damage` has at most `DAMAGE_MAX` of them.
    """

    rows: int
    words: int = 0
    read: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    damaged: int = 0
    damage: list[str] = field(default_factory=list)


LAYOUT = Layout(
    "mine",
    whole={**DESCRIPTION, **dict.fromkeys(DICTIONARY, "")},
    parts=("pairs/part-*.parquet", "words/part-*.parquet"),
    result=Mined,
    columns=frozenset({"lang", "clean", "noisy"}),
)


def mine(work: Work, options: AnyOptions) -> Manifest:
    """Mine the tasks into an output folder and return the manifest.

    The folder has pairs, word counts and, once all tasks are done, a dictionary. A resumed run may
    have other thresholds than before: they decide the dictionary only. `options.progress` is called
    with a `Progress` every second and after every task. Raises NoisegenError.
    """
    if not work.tasks:
        raise UsageError("no sources are given: nothing can be mined")
    for line in work.left_out:
        options.tell(f"skipped {line}")
    binding = work.binding()
    out = output_path(options.out)
    out = out.resolve() if is_remote(options.executor) else out
    folder = RunFolder(out, LAYOUT, binding, options.share)
    folder.refuse_inputs(source["path"] for source in binding["sources"])
    resume = options.resume or options.part is not None
    with folder.opened(resume=resume, force=options.force, show=options.progress) as done:
        return _mine(folder, work, done, options)


def _mine(
    folder: RunFolder[Mined], work: Work, done: Mapping[int, Record[Mined]], options: AnyOptions
) -> Manifest:
    """Mine this process's unfinished tasks (`options.share`); finish the run if all are done."""
    remainder, count = options.share
    missing = [t for t in work.tasks if t.number % count == remainder and t.number not in done]
    sizes = work.sizes()
    # Longest first, since a long task at the end would run alone
    missing.sort(key=lambda task: -sizes[task.number])
    total = sum(sizes[t.number] for t in missing) if all(sizes.values()) else 0
    tracker = Tracker(options.progress, "mining", BYTES if total else "pairs", _SHOWN, total=total)
    tracker.report()

    def finished(record: Record[Mined]) -> None:
        mined = record.result
        tracker.add(mined.read | {"pairs": mined.rows, BYTES: sizes[record.number]})
        tracker.report()

    job = partial(mine_task, folder.out, work.miner)
    with tracker.watching(partial(folder.live, folder.out / "pairs")):
        folder.run(partial(job, options.strict), missing, options, finished)
    return _finish(folder, work, options)


def _finish(folder: RunFolder[Mined], work: Work, options: MiningOptions) -> Manifest:
    """Write dictionary, manifest and card, unless tasks are missing or the files are up to date."""
    done, thresholds = folder.done(), options.thresholds()
    folder.expect_all(len(work.tasks), done)
    records = [done[task.number] for task in work.tasks if task.number in done]
    manifest = _manifest(folder, work, options, records)
    if manifest.missing_tasks:
        return manifest
    earlier = folder.earlier_manifest()
    if earlier and all((folder.out / name).exists() for name in ("README.md", *DICTIONARY)):
        same = (earlier.shards, earlier.thresholds) == (manifest.shards, manifest.thresholds)
        if same and earlier.dictionary.get("sha256") == _digests(folder.out):
            return folder.end(earlier)
    pairs = [folder.out / shard["file"] for shard in manifest.shards]
    manifest = replace(manifest, dictionary=_merge(folder.out, pairs, thresholds))
    return folder.end(manifest, _card(manifest))


def _manifest(
    folder: RunFolder[Mined], work: Work, options: MiningOptions, records: Sequence[Record[Mined]]
) -> Manifest:
    """Return the manifest of the finished tasks; the figures of the dictionary are still 0."""
    results = [record.result for record in records]
    return Manifest(
        command=options.command or f"noisegen mine-{work.miner.kind}",
        thresholds=asdict(options.thresholds()),
        shards=[_shard(record) for record in records],
        packages=packages(),
        totals={
            "pairs": sum(result.rows for result in results),
            "read": summed(result.read for result in results),
            "dropped": summed(result.dropped for result in results),
            "damaged": sum(result.damaged for result in results),
        },
        dictionary={"words": 0, "entries": 0, "dropped": {}},
        damage=[line for result in results for line in result.damage][:DAMAGE_MAX],
        left_out=list(work.left_out),
        missing_tasks=len(work.tasks) - len(records),
        **folder.config,
    )


def _shard(record: Record[Mined]) -> dict[str, Any]:
    """Return the manifest's entry for a finished task: its file, row counts and digests."""
    pairs, words = record.files
    return {
        "file": pairs.name,
        "rows": record.result.rows,
        "words": record.result.words,
        "sha256": pairs.sha256,
        "words_sha256": words.sha256,
    }


def _digests(out: Path) -> dict[str, str]:
    return {name: file_digest(out / name) for name in DICTIONARY}


def _merge(out: Path, pairs: list[Path], thresholds: Thresholds) -> dict[str, Any]:
    """Write the dictionary of all tasks; return the manifest's entry for it."""
    totals = dictionary.ThresholdTotals()
    words = list(map(counts.words_of, pairs))
    seen = dictionary.seen_words(words, pairs, thresholds)
    entries = dictionary.write_dictionary(
        dictionary.apply_thresholds(counts.merged(words), thresholds, totals, seen), out
    )
    return {
        "words": totals.words,
        "entries": entries,
        "dropped": dict(sorted(totals.dropped.items())),
        "pages_in_several_files": _pages_in_several_files(pairs),
        "sha256": _digests(out),
    }


def _pages_in_several_files(pairs: Sequence[Path]) -> int:
    """Return the number of pages that have pairs in several files."""
    pages = [np.zeros(0, np.int64)]
    for path in pairs:
        with counts.readable(path) as source, pq.ParquetFile(source) as file:
            if "page_id" in file.schema_arrow.names:
                ids = file.read(columns=["page_id"])["page_id"]
                pages.append(ids.unique().to_numpy())
    files_of_page = np.unique(np.concatenate(pages), return_counts=True)[1]
    return int(np.count_nonzero(files_of_page > 1))


def _card(manifest: Manifest) -> str:
    """Return the text of the dataset card."""
    card = Card(
        title="Real errors and their corrections",
        verb="mined",
        tags=("noise", "real-errors"),
        tasks=("sentence-similarity", "text-generation"),
        configs={"pairs": "pairs/part-*.parquet", "dictionary": "dictionary.parquet"},
        template=Path(__file__).with_name("card.md"),
        values={"columns": PAIRS[manifest.kind].names},
        license="cc-by-sa-4.0" if manifest.kind == WIKI else "unknown",
    )
    return dataset_card(manifest, card)


# A single task.


def mine_task(out: Path, miner: Miner, strict: bool, task: Task) -> Record[Mined]:
    """Mine a task into two files, pairs and word counts; return the record of the task.

    Raises OutputError if a file cannot be written, SourceError if input cannot be read. With
    `strict`, damaged input raises SourceError too.
    """
    path = shard_path(out / "pairs", task.number)
    schema, tally, made = PAIRS[miner.kind], Tally(), Counter(pairs=0)
    repetitive = [name for name in ("lang", "page_id", "timestamp") if name in schema.names]
    with (
        atomic(path) as file,
        counts.WordCounter() as counter,
        pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=repetitive) as writer,
    ):
        with (
            metered() as tally.input,
            publishing(live_path(path), tally.read, made, tally.input),
        ):
            for part in counts.portions(_distinct(miner, task, tally), ROWS):
                for pair, _ in part:
                    counter.add(pair)
                counter.see(miner.language.code, tally.words)
                writer.write_batch(_batch(part, schema))
                made["pairs"] += len(part)
        damaged = tally.damaged
        if strict and damaged:
            more = f" (and {damaged.total - 1:,} more)" if damaged[1:] else ""
            raise SourceError(f"damaged input: {damaged[0]}{more}; --strict makes it an error")
        counter.see(miner.language.code, tally.words)
        with atomic(counts.words_of(path)) as file_of_words:
            words = counts.write_counts(counter.rows(), file_of_words)
    mined = Mined(
        rows=made["pairs"],
        words=words,
        read=dict(tally.read),
        dropped=dict(tally.dropped),
        damaged=damaged.total,
        damage=list(damaged),
    )
    files = File.of(path, out), File.of(counts.words_of(path), out)
    return Record(task.number, files, mined)


def _batch(pairs: list[tuple[SentencePair, int]], schema: pa.Schema) -> pa.RecordBatch:
    """Return pairs, each with its key, as a record batch."""
    columns: dict[str, list[Any]] = {"key": [key for _, key in pairs]}
    for name in schema.names:
        if name != "key":
            attribute = "unit" if name == "page_id" else name
            columns[name] = [getattr(pair, attribute) for pair, _ in pairs]
    return pa.record_batch(columns, schema)


def _distinct(miner: Miner, task: Task, tally: Tally) -> Iterator[tuple[SentencePair, int]]:
    """Yield the pairs of a task, each with its key; repeated pairs of a page or row are dropped.

    Edit wars repeat pairs. Raises SourceError for a file that cannot be read.
    """
    unit: int | None = None
    seen: set[int] = set()
    try:
        for pair in miner(task, tally):
            if pair.unit != unit:
                unit, seen = pair.unit, set()
            key = pair_key(pair.noisy, pair.clean)
            if key in seen:
                tally.dropped["repeated"] += 1
                continue
            seen.add(key)
            words = tuple(filter(_is_counted, pair.words))
            if len(words) < len(pair.words):
                tally.dropped["word_not_one_token"] += len(pair.words) - len(words)
                pair = replace(pair, words=words)
            yield pair, key
    except OSError as error:
        reason = error.strerror or str(error)
        raise SourceError(f"cannot read {', '.join(task.paths)}: {reason}") from error


def pair_key(noisy: str, clean: str) -> int:
    """Return the 64-bit key of a pair: BLAKE2b with 8 bytes, over both texts."""
    content = b"\x00".join((noisy.encode(), clean.encode()))
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def _is_counted(word: WordPair) -> bool:
    """Tell whether a word pair is counted: both sides are one token, and they differ."""
    return word.clean != word.noisy and _is_token(word.clean) and _is_token(word.noisy)


def _is_token(text: str) -> bool:
    return len(text) <= WORD_MAX and text.split() == [text]
