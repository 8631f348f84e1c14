"""One task in: the sentences that pass on their own, on disk, with keys to find duplicates by."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.atomic import atomic, write_text
from noisegen.draws import I64, U64
from noisegen.mining.languages import Language
from noisegen.preparing.duplicates import (
    BANDS,
    COMPARED_MIN,
    SHINGLE_SPACED,
    SHINGLE_UNSPACED,
    band_keys,
    normal_form,
)
from noisegen.preparing.key_files import KeyWriter
from noisegen.preparing.sentences import Criteria, sentences
from noisegen.sources import Columns, Task, read

WORK = "work"  # folder, in the output's, that is removed at the end
ROWS = 8_192  # of a record batch of candidates, all full but the last
NUMBERS = 1 << 24  # sentences that ids leave room for in a row: a text has 32 MiB at most
DUPLICATES = ("near", "exact", "keep")
KINDS = ("texts", "forms", "bands", "note")
_ENDINGS = {"texts": "arrow", "note": "json"}


@dataclass(frozen=True)
class Job:
    """All that a worker needs for any task of a run; small, and pickled with every task."""

    out: Path
    config: str  # JSON that binds a folder to one configuration
    spoken: Language
    criteria: Criteria
    columns: Columns
    duplicates: str = "near"

    @property
    def shingle(self) -> int:
        """The length of a shingle in characters."""
        return SHINGLE_SPACED if self.spoken.is_spaced else SHINGLE_UNSPACED


@dataclass(frozen=True)
class Portion:
    """What one worker prepares at a time: tasks of sources one after the other, as one shard."""

    number: int
    first_row: int
    rows: int
    parts: tuple[tuple[str, Task], ...]  # (source, its rows)


@dataclass(frozen=True)
class Found:
    """What a portion gave: `rows` candidates of `sentences`; damaged rows, dropped sentences."""

    number: int
    first_row: int
    rows_in: int
    rows: int = 0
    sentences: int = 0
    damaged: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)


def work_path(out: Path, kind: str, number: int) -> Path:
    """Return the file of a portion: its texts, keys of normal forms or of bands, or its note."""
    return out / WORK / f"{kind}-{number:05d}.{_ENDINGS.get(kind, 'parquet')}"


def make_candidates(job: Job, portion: Portion) -> Found:
    """Write the candidates of a portion and its keys, and last the note that says all is there."""
    with ExitStack() as stack:
        files = {
            kind: stack.enter_context(atomic(work_path(job.out, kind, portion.number)))
            for kind in KINDS[:-1]
        }
        found = _Candidates(job, files).take(portion)
    note = json.dumps({"config": job.config, **asdict(found)})
    write_text(work_path(job.out, "note", portion.number), note)
    return found


def read_note(path: Path) -> tuple[str, Found] | None:
    """Return configuration and account of a finished portion; None if it is not one of ours."""
    try:
        note = json.loads(path.read_text("utf-8"))
        return note.pop("config"), Found(**note)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def schema_of(columns: Columns) -> pa.Schema:
    """Return the columns of candidates and of the output."""
    row = pa.int64() if columns.row_id is None else pa.string()
    texts = pa.string()
    return pa.schema([("id", pa.int64()), ("source", texts), ("row", row), ("text", texts)])


class _Candidates:
    """Collects the candidates of a portion; a text that it had is dropped at once."""

    def __init__(self, job: Job, files: dict[str, Any]) -> None:
        self.job = job
        self.schema = schema_of(job.columns)
        self.writer = pa.ipc.new_file(files["texts"], self.schema)
        self.forms, self.bands = KeyWriter(files["forms"]), KeyWriter(files["bands"])
        self.held: list[tuple[int, str, Any, str, str, int, int]] = []
        self.seen_texts: set[int] = set()
        self.seen_forms: set[int] = set()
        self.rows = 0
        self.damaged: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def take(self, portion: Portion) -> Found:
        """Read, judge and write all rows of a portion; return the account."""
        count = 0
        for source, row_id, ordinal, text in self._rows(portion):
            for sentence in sentences(text, self.job.spoken, self.job.criteria):
                count += 1
                identity = ordinal * NUMBERS + sentence.number
                if sentence.reason:
                    self.dropped[sentence.reason] += 1
                else:
                    self._add(identity, sentence.text, source, row_id)
        self._flush()
        self.writer.close()
        self.forms.close()
        self.bands.close()
        return Found(
            portion.number, portion.first_row, portion.rows, self.rows, count,
            dict(self.damaged), dict(self.dropped),
        )  # fmt: skip

    def _rows(self, portion: Portion) -> Iterator[tuple[str, Any, int, str]]:
        """Yield source, id, ordinal in the whole input, and text."""
        first, numbered = portion.first_row, self.job.columns.row_id is None
        for source, task in portion.parts:
            kept = 0
            for batch in read(task, self.job.columns):
                self.damaged.update(batch.dropped)
                ids, texts = batch.table["id"].to_pylist(), batch.table["clean"].to_pylist()
                for row_id, text in zip(ids, texts, strict=True):
                    ordinal = first + (row_id - task.first_row if numbered else kept)
                    yield source, ordinal if numbered else str(row_id), ordinal, text
                    kept += 1
            first += task.rows

    def _add(self, identity: int, text: str, source: str, row_id: Any) -> None:
        """Hold a sentence, unless the portion had it."""
        form, mark, key = "", 0, 0
        if self.job.duplicates != "keep":
            key = mark = text_key(text)
            if mark in self.seen_texts:
                self.dropped["duplicate"] += 1
                return
            self.seen_texts.add(mark)
        if self.job.duplicates == "near":
            form = normal_form(text)
            key = text_key(form)
            form = "" if key in self.seen_forms else form  # its key says all: no bands
            self.seen_forms.add(key)
        self.held.append((identity, source, row_id, text, form, mark, key))
        if len(self.held) == ROWS:
            self._flush()

    def _flush(self) -> None:
        """Write what is held, and its keys."""
        if not self.held:
            return
        ids, sources, row_ids, texts, forms, marks, keys = zip(*self.held, strict=True)
        arrays = [
            pa.array(values, kind)
            for values, kind in zip((ids, sources, row_ids, texts), self.schema.types, strict=True)
        ]
        self.writer.write_batch(pa.record_batch(arrays, self.schema))
        self._add_keys(forms, np.array(marks, np.uint64), np.array(keys, np.uint64))
        self.rows += len(texts)
        self.held = []

    def _add_keys(self, forms: tuple[str, ...], marks: U64, keys: U64) -> None:
        if self.job.duplicates == "keep":
            return
        places = np.arange(self.rows, self.rows + len(forms))
        self.forms.add(keys, marks, places)
        if self.job.duplicates == "exact":
            return
        long = [at for at, form in enumerate(forms) if len(form) >= COMPARED_MIN * self.job.shingle]
        bands = band_keys([forms[at] for at in long], self.job.shingle)
        rows = np.repeat(places[long], BANDS)
        self.bands.add(bands.ravel(), np.zeros(bands.size, np.uint64), rows)


def text_key(text: str) -> int:
    """Return the 64-bit number of a text (BLAKE2b, 8 bytes)."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


class Texts:
    """The texts of all candidates by their place, read from the files where they lie."""

    def __init__(self, out: Path, firsts: I64) -> None:
        self._out, self._firsts = out, firsts
        self._batch = lru_cache(64)(_batch)

    def __getitem__(self, place: int) -> str:
        number = int(np.searchsorted(self._firsts, place, side="right")) - 1
        batch, row = divmod(place - int(self._firsts[number]), ROWS)
        text: str = self._batch(work_path(self._out, "texts", number), batch)["text"][row].as_py()
        return text


def _batch(path: Path, number: int) -> pa.RecordBatch:
    """Return a record batch, mapped and not copied."""
    return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(number)
