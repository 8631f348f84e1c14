"""A mining run: one task in, one shard of pairs with its word counts out; then the dictionary."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen import executors
from noisegen.atomic import atomic, file_digest
from noisegen.errors import SourceError
from noisegen.mining import live, mined_folder
from noisegen.mining.counts import WordCounter, write_counts
from noisegen.mining.dictionary import Thresholds
from noisegen.mining.mined_folder import Mined, MiningManifest
from noisegen.mining.pairs import Account, Miner, SentencePair, Task, WordPair
from noisegen.run_folder import check_options
from noisegen.version import __version__

ROWS = 8_192  # of a row group of pairs
WORD_MAX = 100  # characters of a word that is counted

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


@dataclass(frozen=True)
class Job:
    """All that a worker needs for any task of a run; small, and pickled with every task."""

    out: Path
    config: str  # JSON that binds a folder to one configuration
    kind: str
    miner: Miner
    strict: bool = False


def mine(
    tasks: Sequence[Task],
    miner: Miner,
    out: Path,
    *,
    config: dict[str, Any],
    kind: str,
    lang: str,
    workers: int = 1,
    executor: str = "processes",
    part: str | None = None,
    resume: bool = False,
    force: bool = False,
    strict: bool = False,
    thresholds: Thresholds,
    progress: Callable[[Mined], None] | None = None,
    running: live.Show | None = None,
    command: str | None = None,
    left_out: Sequence[str] = (),
) -> MiningManifest:
    """Mine all tasks into `out`: pairs, word counts, and, once none is missing, the dictionary.

    `config` are the options that decide what is mined, as JSON knows them; `kind` is wiki, lang8 or
    pairs; `part` 'I/N' does every N-th task from the I-th; `strict` makes damage an error.
    Thresholds may differ between runs: a later run applies its own. `progress` is called with every
    finished task, `running` every second with what is read by running ones. Raises NoisegenError.
    """
    mine_part = check_options(workers, executor, part, resume, force)
    bound = bound_config(tasks, config, kind, lang)
    job = Job(out.resolve(), json.dumps(bound, sort_keys=True), kind, miner, strict)
    folder = mined_folder.MinedFolder(job.out, bound, [task.number for task in tasks])
    done = folder.open(mine_part, resume=resume or part is not None, force=force)
    digests: dict[int, str] = {}
    missing = [t for t in tasks if t.number % mine_part[1] == mine_part[0] and t.number not in done]
    missing.sort(key=_size, reverse=True)  # the longest first, so that none is left for the end
    try:
        with (
            live.watched(mined_folder.pairs_path(job.out, 0).parent, running),
            closing(executors.run(partial(mine_task, job), missing, executor, workers)) as it,
        ):
            for mined in it:
                digests[mined.number] = mined.sha256
                if progress:
                    progress(mined)
    finally:
        folder.remove_temporary(mine_part)
    return folder.finish(thresholds, command or f"noisegen mine-{kind}", digests, left_out)


def bound_config(
    tasks: Sequence[Task], config: dict[str, Any], kind: str, lang: str
) -> dict[str, Any]:
    """Return what a folder is bound to; raises SourceError for a file that is not there."""
    sources = [
        {"task": task.number, "path": path, "bytes": _bytes(path), "modified": _modified(path)}
        for task in tasks
        for path in task.paths
    ]
    whole = {"version": __version__, "kind": kind, "lang": lang, "options": config}
    bound: dict[str, Any] = json.loads(json.dumps({**whole, "sources": sources}))
    return bound


def _bytes(path: str) -> int | None:
    if path == "-" or path.startswith("hf:"):
        return None
    try:
        return Path(path).stat().st_size
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error


def _modified(path: str) -> int | None:
    """Return when a file was written, in nanoseconds: one of equal size may be another."""
    return None if _bytes(path) is None else Path(path).stat().st_mtime_ns


def _size(task: Task) -> int:
    return sum(_bytes(path) or 0 for path in task.paths)


def mine_task(job: Job, task: Task) -> Mined:
    """Mine one task: its word counts first, then its pairs, whose metadata says all is there.

    Raises OutputError if it cannot be written, SourceError for input that cannot be read or, under
    `strict`, that is damaged.
    """
    pairs = mined_folder.pairs_path(job.out, task.number)
    words = mined_folder.words_path(job.out, task.number)
    with atomic(pairs) as file:
        mined = _write(job, task, file, words)
    return replace(mined, sha256=file_digest(pairs))


def _write(job: Job, task: Task, file: IO[bytes], words: Path) -> Mined:
    """Write the pairs, the word counts to a file of their own, and the note last."""
    with WordCounter() as counter, _writer(file, job.kind) as writer:
        mined = _write_pairs(job, task, writer, counter)
        with atomic(words) as counts:
            mined = replace(mined, words=write_counts(counter.rows(), counts))
        mined = replace(mined, words_sha256=file_digest(words))
        note = json.dumps({"config": job.config, **asdict(mined)})
        writer.add_key_value_metadata({mined_folder.METADATA: note})
        writer.close()
    return mined


def _writer(file: IO[bytes], kind: str) -> pq.ParquetWriter:
    schema = PAIRS.get(kind, PAIRS[""])
    dictionaries = [name for name in ("lang", "page_id", "timestamp") if name in schema.names]
    return pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=dictionaries)


def _write_pairs(job: Job, task: Task, writer: pq.ParquetWriter, counter: WordCounter) -> Mined:
    """Write the pairs of a task, count their words, and return the account."""
    account, rows = Account(), 0
    found = _distinct(_mined(job.miner, task, account), account)
    shard = mined_folder.pairs_path(job.out, task.number)
    with live.telling(shard.with_name(f"{shard.name}.live.tmp"), account):
        while part := list(islice(found, ROWS)):
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
    sides = word.clean, word.noisy
    return sides[0] != sides[1] and all(
        len(side) <= WORD_MAX and side.split() == [side] for side in sides
    )


def _batch(pairs: list[tuple[SentencePair, int]], schema: pa.Schema) -> pa.RecordBatch:
    columns = {
        name: [getattr(pair, "unit" if name == "page_id" else name) for pair, _ in pairs]
        for name in schema.names
        if name != "key"
    }
    columns["key"] = [key for _, key in pairs]
    arrays = [pa.array(columns[field.name], field.type) for field in schema]
    return pa.record_batch(arrays, schema)
