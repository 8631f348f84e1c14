"""The draft of a batch: its rows while the engine rewrites them pass by pass, and their edits."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisegen.noising.edits import EditRecord, Edits, compose, rewritten
from noisegen.text.buffers import I64, Texts, as_arrow
from noisegen.text.spans import NO_SPANS, RowSpans, Spans, protected


@dataclass(frozen=True)
class PassRows:
    """The rows that one pass rewrites, in the order in which it processes them.

    `numbers` has the index of each row in the batch. `protected` are the spans of `texts` that
    must not change; `changed` are the spans of words that an earlier pass has changed.
    """

    numbers: I64
    texts: Texts
    protected: Spans
    changed: Spans


class Draft:
    """The rows of a batch, with their protected spans, their changed words and their edits.

    A pass takes some rows, rewrites them, and puts them back. The attribute `record` has the edits
    that turn the clean rows into their latest versions. It stays empty if `with_record` is False.
    """

    def __init__(self, clean: pa.Array, protect: tuple[str, ...], with_record: bool) -> None:
        texts = Texts.from_arrow(clean)
        rows = np.arange(len(texts))
        self._versions = _Versions(texts)
        self._protected = RowSpans.of(protected(texts, protect), texts, rows)
        self._changed = RowSpans.of(NO_SPANS, texts, rows)
        self._with_record = with_record
        self.record = EditRecord.none()

    def take(self, rows: I64, needs: bytes) -> PassRows:
        """Take rows out of the draft; return their texts, their protected and their changed spans.

        `put` returns them to the draft. If `needs` is not empty, rows that contain none
        of these bytes are left out.
        """
        texts = self._versions.latest(rows)
        if needs:
            holding = texts.rows_holding(needs)
            rows = rows.take(holding)
            texts = Texts.from_arrow(texts.to_arrow().take(as_arrow(holding)))
        places = np.full(len(self._versions), -1)
        places[rows] = np.arange(len(rows))
        self._protected, protected_here = self._protected.split(places, texts)
        self._changed, changed_here = self._changed.split(places, texts)
        return PassRows(rows, texts, protected_here, changed_here)

    def put(self, taken: PassRows, parts: Iterable[Edits], changed: Spans, step_bits: I64) -> None:
        """Apply edits to the taken rows, and put the rows and their spans back.

        `parts` yields the edits in portions, sorted by row and position. `changed` has the spans of
        all words changed so far, this pass included. `step_bits` has each row's step: `1 << step`.
        """
        records = list[EditRecord]()
        if self._with_record:
            parts = _recorded(taken, parts, step_bits, records)
        texts, (protected_now, changed_now) = rewritten(
            taken.texts, parts, (taken.protected, changed)
        )
        self._protected = self._protected.joined(protected_now, texts, taken.numbers)
        self._changed = self._changed.joined(changed_now, texts, taken.numbers)
        if self._with_record:
            is_here = np.isin(self.record.rows, taken.numbers)
            composed = compose(self.record.take(is_here), EditRecord.join(records))
            self.record = EditRecord.join([self.record.take(~is_here), composed])
        self._versions.add(taken.numbers, texts)

    def latest(self) -> pa.Array:
        """Return the latest version of every row as a string array."""
        return self._versions.latest(np.arange(len(self._versions))).to_arrow(pa.string())


def _recorded(
    taken: PassRows, parts: Iterable[Edits], step_bits: I64, records: list[EditRecord]
) -> Iterator[Edits]:
    """Yield the edits of a pass, portion by portion, and add them to the list `records`.

    If the last edit of a portion touches the first edit of the next portion, they are recorded as
    one edit. `step_bits` has each row's step: `1 << step`.
    """
    bytes_added = np.zeros(len(taken.texts), np.int64)
    for part in parts:
        record = part.recorded(taken.texts, taken.numbers, step_bits, bytes_added)
        if records:
            before = records.pop()
            records.append(before.take(slice(-1)))
            record = EditRecord.touching([before.take(slice(-1, None)), record])
        records.append(record)
        bytes_added += np.diff(part.growth_of_rows(len(taken.texts)))
        yield part


class _Versions:
    """The texts of all rows, in a buffer to which new versions of rows are appended.

    A full buffer is replaced by one with only the latest versions.
    """

    _texts: Texts  # all versions of all rows
    _places: I64  # index in `_texts` of the latest version of each row

    def __init__(self, texts: Texts) -> None:
        self._store(texts, room=0)

    def __len__(self) -> int:
        return len(self._places)

    def latest(self, rows: I64) -> Texts:
        """Return the latest versions of the rows with these indices."""
        places = as_arrow(self._places.take(rows))
        return Texts.from_arrow(self._texts.to_arrow().take(places))

    def add(self, rows: I64, texts: Texts) -> None:
        """Append new versions, `texts`, of the rows with the indices `rows`."""
        size = len(texts.values)
        if self._texts.offsets[-1] + size > len(self._texts.values):
            self._store(self.latest(np.arange(len(self))), room=size)
        values, offsets = self._texts.values, self._texts.offsets
        values[offsets[-1] : offsets[-1] + size] = texts.values
        self._places[rows] = len(self._texts) + np.arange(len(texts))
        self._texts = Texts(values, np.append(offsets, offsets[-1] + texts.offsets[1:]))

    def _store(self, texts: Texts, room: int) -> None:
        """Start a buffer that holds one version of every row.

        The buffer has room for twice the bytes of the texts, and for `room` more bytes.
        """
        size = len(texts.window)
        self._texts = Texts(np.empty(2 * size + room, np.uint8), texts.offsets - texts.offsets[0])
        self._texts.values[:size] = texts.window
        self._places = np.arange(len(texts))
