"""One task in, one shard out: read rows, noise them, write Parquet, rename when complete."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen import labels, registry
from noisegen.atomic import atomic, file_digest
from noisegen.engine import Engine, Noised
from noisegen.errors import OutputError
from noisegen.ids import id_numbers
from noisegen.manifest import Shard
from noisegen.measures import error_counts
from noisegen.mixing import Dice
from noisegen.recipe import parse
from noisegen.registry import Settings
from noisegen.sources import Batch, Columns, Task, read
from noisegen.text import Texts, as_arrow

SAMPLED_ROWS = 2_000  # of a shard, evenly spaced, on which character and word errors are counted
METADATA = "noisegen"


@dataclass(frozen=True)
class Job:
    """All that a worker needs to make any shard of a run; small, and pickled with every task."""

    out: Path
    recipe: str  # YAML, with the steps of all languages: the labels of members count them
    config: str  # JSON that binds a folder to one configuration
    seed: int = 0
    copies: int = 1
    lang: str = "en"
    columns: Columns = field(default_factory=Columns)
    protect: tuple[str, ...] = ()
    edits: bool = False
    tagger: str = "auto"
    nlaug_data: Path | None = None
    code: tuple[tuple[str, str], ...] = ()  # files and their digests

    def engine(self) -> Engine:
        """Return the engine, made once in a process."""
        return _engine(self.recipe, self.lang, self.tagger, self.nlaug_data, self.code)


@cache
def _engine(
    recipe: str,
    lang: str,
    tagger: str,
    nlaug_data: Path | None,
    code: tuple[tuple[str, str], ...],
) -> Engine:
    for path, _ in code:
        registry.load_code(path)
    settings = Settings(lang, nlaug_data=nlaug_data, tagger=tagger)
    return Engine(parse(recipe, "recipe").for_language(lang)[0], settings)


def shard_path(out: Path, number: int) -> Path:
    """Return the file of a shard."""
    return out / f"part-{number:05d}.parquet"


def make_shard(job: Job, task: Task) -> Shard:
    """Make one shard and return what it holds; raises OutputError if it cannot be written."""
    path = shard_path(job.out, task.number)
    with atomic(path) as file:
        shard = _write(job, task, file)
    return replace(shard, file=path.name, sha256=file_digest(path))


def _write(job: Job, task: Task, file: IO[bytes]) -> Shard:
    """Write all rows and, last, what the shard holds as metadata."""
    shard = Shard("", 0, 0, first_row=task.first_row, rows_in=task.rows)
    dropped: Counter[str] = Counter()
    writer: pq.ParquetWriter | None = None
    for batch in read(task, job.columns, batch_bytes=job.engine().batch_bytes):
        dropped.update(batch.dropped)
        for table, clean, noised in _noised(job, batch):
            writer = writer or _writer(file, table.schema)
            writer.write_table(table, row_group_size=max(1, len(table)))
            shard = _counted(shard, clean, noised, max(1, task.rows // SAMPLED_ROWS))
    shard = replace(shard, dropped=dict(dropped))
    if writer is None:
        raise OutputError(f"no rows for shard {task.number}")
    writer.add_key_value_metadata({METADATA: _note(job, shard)})
    writer.close()
    return shard


def _writer(file: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    # zstd 1 beats snappy in speed and size; dictionary pages for unique text are waste.
    names = [f"{name}.list.element" for name in ("transforms", "noisy_labels")]
    return pq.ParquetWriter(
        file, schema, compression="zstd", compression_level=1,
        use_dictionary=[*names, "edits.list.element.transform"], write_statistics=["id"],
    )  # fmt: skip


def _note(job: Job, shard: Shard) -> str:
    return json.dumps({"config": job.config, **asdict(shard)})


def read_note(path: Path) -> tuple[str, Shard] | None:
    """Return the configuration and content of a finished shard; None if it is not one of ours."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
        note = json.loads(metadata[METADATA.encode()])
        return note.pop("config"), replace(Shard(**note), file=path.name)
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError):
        return None


def is_parquet(path: Path) -> bool:
    """Tell whether a file can be opened as Parquet."""
    try:
        pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return False
    return True


def _noised(job: Job, batch: Batch) -> Iterator[tuple[pa.Table, pa.Array, Noised]]:
    """Yield the output table of every copy of a batch."""
    clean = batch.table["clean"].combine_chunks()
    engine, ids = job.engine(), id_numbers(batch.table["id"].combine_chunks())
    account = job.edits or job.columns.labels is not None
    for copy in range(job.copies):
        noised = engine.noise(clean, Dice(ids, job.seed, copy), job.protect, account)
        yield _table(job, batch.table, clean, noised, copy), clean, noised


def _table(job: Job, given: pa.Table, clean: pa.Array, noised: Noised, copy: int) -> pa.Table:
    """Return the columns of a shard, in the order of the contract."""
    engine = job.engine()
    columns = {
        "id": given["id"],
        "clean": clean,
        "noisy": noised.noisy,
        "transforms": engine.transforms(noised.plan, len(clean)),
    }
    if job.copies > 1:
        columns["copy"] = as_arrow(np.full(len(clean), copy, np.int32))
    columns |= {name: given[name] for name in given.column_names if name not in columns}
    if job.edits or job.columns.labels is not None:
        edits = engine.edits(
            Texts.from_arrow(clean), Texts.from_arrow(noised.noisy), noised.account
        )
        columns |= {"edits": edits} if job.edits else {}
        if job.columns.tokens is not None and job.columns.labels is not None:
            tokens, carried = given[job.columns.tokens], given[job.columns.labels]
            columns |= labels.aligned(tokens, carried, noised.noisy, edits)
    return pa.table(columns)


def _counted(shard: Shard, clean: pa.Array, noised: Noised, step: int) -> Shard:
    """Return the shard with a batch counted in; errors on every step-th row, times step."""
    differs = pc.not_equal(clean, noised.noisy)
    sample = as_arrow(np.arange(0, len(clean), step))
    cleans, noisies = clean.take(sample).to_pylist(), noised.noisy.take(sample).to_pylist()
    character_errors, word_errors = error_counts(cleans, noisies)
    return replace(
        shard,
        rows=shard.rows + len(clean),
        changed=shard.changed + (pc.sum(differs).as_py() or 0),
        characters=shard.characters + step * sum(map(len, cleans)),
        words=shard.words + step * sum(len(text.split()) for text in cleans),
        character_errors=shard.character_errors + step * character_errors,
        word_errors=shard.word_errors + step * word_errors,
    )
