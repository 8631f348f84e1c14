"""One task in, one shard out: read rows, noise them, carry labels over, write Parquet."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.data.sources import Columns, RowBatch, ShardInput, read
from noisegen.errors import OutputError
from noisegen.noise import registry
from noisegen.noise.engine import Engine, Noised
from noisegen.noise.plan import Streams
from noisegen.noise.recipe import parse
from noisegen.noise.registry import Settings
from noisegen.noise.rng import id_numbers
from noisegen.runs.files import atomic, file_digest
from noisegen.runs.folder import METADATA, note_text, shard_path
from noisegen.text.alignment import error_counts
from noisegen.text.buffers import Texts, as_arrow

SAMPLED_ROWS = 2_000  # of a shard, evenly spaced, on which character and word errors are counted


@dataclass(frozen=True)
class Shard:
    """What one shard holds; the error sums are over a sample, scaled to the shard."""

    file: str
    rows: int
    changed: int
    sha256: str = ""
    first_row: int = 0
    rows_in: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    characters: int = 0
    character_errors: int = 0
    words: int = 0
    word_errors: int = 0


@dataclass(frozen=True)
class ShardJob:
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

    @property
    def needs_edits(self) -> bool:
        """Whether the spans of all edits are wanted, for their column or to carry labels."""
        return self.edits or self.columns.labels is not None


@cache
def _engine(
    recipe: str, lang: str, tagger: str, nlaug_data: Path | None, code: tuple[tuple[str, str], ...]
) -> Engine:
    for path, _ in code:
        registry.load_code(path)
    settings = Settings(lang, nlaug_data=nlaug_data, tagger=tagger)
    return Engine(parse(recipe, "recipe").for_language(lang)[0], settings)


def make_shard(job: ShardJob, task: ShardInput) -> Shard:
    """Make one shard and return what it holds; raises OutputError if it cannot be written."""
    path = shard_path(job.out, task.number)
    with atomic(path) as file:
        shard = _write(job, task, file)
    return replace(shard, file=path.name, sha256=file_digest(path))


def _write(job: ShardJob, task: ShardInput, file: IO[bytes]) -> Shard:
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
    writer.add_key_value_metadata({METADATA: note_text(job.config, shard)})
    writer.close()
    return shard


def _writer(file: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    # zstd 1 beats snappy in speed and size; dictionary pages for unique text are waste.
    names = [f"{name}.list.element" for name in ("transforms", "noisy_labels")]
    return pq.ParquetWriter(
        file, schema, compression="zstd", compression_level=1,
        use_dictionary=[*names, "edits.list.element.transform"], write_statistics=["id"],
    )  # fmt: skip


def _noised(job: ShardJob, batch: RowBatch) -> Iterator[tuple[pa.Table, pa.Array, Noised]]:
    """Yield the output table of every copy of a batch."""
    clean = batch.table["clean"].combine_chunks()
    engine, ids = job.engine(), id_numbers(batch.table["id"].combine_chunks())
    for copy in range(job.copies):
        noised = engine.noise(clean, Streams(ids, job.seed, copy), job.protect, job.needs_edits)
        yield _table(job, batch.table, clean, noised, copy), clean, noised


def _table(job: ShardJob, given: pa.Table, clean: pa.Array, noised: Noised, copy: int) -> pa.Table:
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
    if job.needs_edits:
        edits = engine.edits(
            Texts.from_arrow(clean), Texts.from_arrow(noised.noisy), noised.account
        )
        columns |= {"edits": edits} if job.edits else {}
        if job.columns.tokens is not None and job.columns.labels is not None:
            tokens, carried = given[job.columns.tokens], given[job.columns.labels]
            columns |= aligned_labels(tokens, carried, noised.noisy, edits)
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


# Labels.


Edit = dict[str, Any]
BLANK_OF_EDIT = -1


def aligned_labels(
    tokens: pa.ChunkedArray, labels: pa.ChunkedArray, noisy: pa.Array, edits: pa.Array
) -> dict[str, pa.Array]:
    """Return the columns noisy_tokens and noisy_labels (lists of equal length)."""
    rows = zip(
        tokens.to_pylist(), labels.to_pylist(), noisy.to_pylist(), edits.to_pylist(), strict=True
    )
    pairs = [carry(*row) for row in rows]
    kind = pa.list_(pa.string())
    return {
        "noisy_tokens": pa.array([words for words, _ in pairs], kind),
        "noisy_labels": pa.array([carried for _, carried in pairs], labels.type),
    }


def carry(
    tokens: Sequence[str], labels: Sequence[Any], noisy: str, edits: Sequence[Edit]
) -> tuple[list[str], list[Any]]:
    """Return the tokens of the noisy text and their labels.

    The clean text is the tokens joined by one blank. The noisy text is split where these blanks are
    left and at any blank that an edit wrote. A token that begins in an unchanged part comes from
    the clean token there; the k-th of n tokens that begin in a changed span comes from the same
    share of the clean tokens of that span. A token split in two continues its label (B-x, then
    I-x); tokens merged into one keep the first label, and what is left of a span whose B-x went
    into such a token begins with B-x.
    """
    if not edits:
        return list(tokens), list(labels)
    starts = list(accumulate((len(token) + 1 for token in tokens), initial=0))[:-1]
    pieces = list(_pieces(tokens, starts, noisy, edits))
    begins = [begin for begin, _ in pieces]
    owners = [_owner(begin, starts, edits, begins) if starts else None for begin in begins]
    carried: list[Any] = []
    for before, owner in pairwise([None, *owners]):
        label = "O" if owner is None else labels[owner]
        label = _inside(label) if owner == before else label
        carried.append(_begun(label, carried, labels[: owner or 0]))
    return [noisy[begin:end] for begin, end in pieces], carried


def _pieces(
    tokens: Sequence[str], starts: list[int], noisy: str, edits: Sequence[Edit]
) -> Iterator[tuple[int, int]]:
    """Yield where the noisy tokens begin and end; an empty one only where a clean one is empty."""
    ends = [(-1, 0), *_blanks(starts, noisy, edits), (len(noisy), len(tokens))]
    for (before, token), (end, following) in pairwise(ends):
        untouched = token != BLANK_OF_EDIT and following == token + 1
        if end > before + 1 or (untouched and not tokens[token]):
            yield before + 1, end


def _blanks(starts: list[int], noisy: str, edits: Sequence[Edit]) -> list[tuple[int, int]]:
    """Return the blanks that split the noisy text, each with the clean token that follows it."""
    blanks = []
    for token, start in enumerate(starts[1:], 1):
        number = bisect_right(edits, start - 1, key=lambda edit: edit["clean_start"]) - 1
        if number < 0:
            blanks.append((start - 1, token))
        elif edits[number]["clean_end"] <= start - 1:
            shift = edits[number]["noisy_end"] - edits[number]["clean_end"]
            blanks.append((start - 1 + shift, token))
    for edit in edits:
        span = range(edit["noisy_start"], edit["noisy_end"])
        blanks += [(at, BLANK_OF_EDIT) for at in span if noisy[at].isspace()]
    return sorted(blanks)


def _owner(begin: int, starts: list[int], edits: Sequence[Edit], begins: list[int]) -> int:
    """Return the number of the clean token that the noisy token at `begin` came from."""
    number = bisect_right(edits, begin, key=lambda edit: edit["noisy_start"]) - 1
    edit = edits[number] if number >= 0 else None
    if edit is None or begin >= edit["noisy_end"]:
        shift = edit["clean_end"] - edit["noisy_end"] if edit else 0
        return _token_at(starts, begin + shift)
    last = _token_at(starts, max(edit["clean_start"], edit["clean_end"] - 1))
    first = min(bisect_left(starts, edit["clean_start"]), last)
    in_span = [b for b in begins if edit["noisy_start"] <= b < edit["noisy_end"]]
    return first + in_span.index(begin) * (last + 1 - first) // len(in_span)


def _token_at(starts: list[int], position: int) -> int:
    return max(0, bisect_right(starts, position) - 1)


def _inside(label: Any) -> Any:
    """Return the label of the rest of a token: B-x goes on as I-x."""
    return f"I-{label[2:]}" if isinstance(label, str) and label.startswith("B-") else label


def _begun(label: Any, carried: Sequence[Any], before: Sequence[Any]) -> Any:
    """Return B-x for an I-x whose B-x (in the clean labels `before`) went into a merged token."""
    kind = _kind(label)
    if kind is None or label[0] == "B" or (carried and _kind(carried[-1]) == kind):
        return label
    span = takewhile(lambda earlier: _kind(earlier) == kind, reversed(before))
    return f"B-{kind}" if f"B-{kind}" in span else label


def _kind(label: Any) -> str | None:
    """Return x of B-x and I-x."""
    return label[2:] if isinstance(label, str) and label[:2] in ("B-", "I-") else None
