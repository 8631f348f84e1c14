"""A blind sample: changed rows by keyed draws, each text once, and orders that tell nothing."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.draws import I64, row_keys, stream_key
from noisegen.ids import id_numbers
from noisegen.review.candidates import SLOTS, Candidates
from noisegen.review.store import Group

TEXT_MAX = 2_000  # characters that a reviewer is asked to read
Slots = tuple[list[tuple[str, str]], list[tuple[str, str]]]


class Row(NamedTuple):
    """A row that was drawn; `slots` are those of the clean and of the noisy side."""

    key: int
    row_id: str
    clean: str
    noisy: str
    slots: Slots | None = None


class Pool:
    """The rows of one group that come first in the keyed order, and counts of all its rows."""

    def __init__(self, group: Group, seed: int, room: int) -> None:
        self.group = group
        self._stream = stream_key(seed, f"review/{group.recipe}/{group.strength}")
        self._room = room
        self._rows: dict[str, Row] = {}

    def add(self, table: pa.Table) -> None:
        """Count the rows of a batch and keep those that changed and come early."""
        changed = pc.not_equal(table["clean"], table["noisy"]).to_numpy()
        lengths = [pc.utf8_length(table[name]).to_numpy() for name in ("clean", "noisy")]
        too_long = changed & (np.maximum(*lengths) > TEXT_MAX)
        counts = (len(table), int(changed.sum()), int(too_long.sum()))
        rows, altered, long = (old + new for old, new in zip(self.group[4:], counts, strict=True))
        self.group = self.group._replace(rows=rows, changed=altered, too_long=long)
        self._keep(table.take(np.flatnonzero(changed & ~too_long)))

    def _keep(self, table: pa.Table) -> None:
        keys = row_keys(self._stream, id_numbers(table["clean"].combine_chunks()))
        keys, places = np.unique(keys, return_index=True)  # equal texts have equal keys
        for key, place in zip(keys[: self._room].tolist(), places.tolist(), strict=False):
            row = _row(key, table, place)
            self._rows.setdefault(row.clean, row)
        if len(self._rows) > self._room:
            first = sorted(self._rows.values())[: self._room]
            self._rows = {row.clean: row for row in first}

    def ordered(self) -> Iterator[Row]:
        """Yield the rows that are kept, in the keyed order."""
        yield from sorted(self._rows.values())


def _row(key: int, table: pa.Table, place: int) -> Row:
    values = {name: table[name][place].as_py() for name in ("row_id", "clean", "noisy")}
    slots = None
    if set(SLOTS) <= set(table.column_names):
        tokens, labels, noisy_tokens, noisy_labels = (table[n][place].as_py() for n in SLOTS)
        slots = slots_of(tokens, labels), slots_of(noisy_tokens, noisy_labels)
    return Row(key, **values, slots=slots)


def slots_of(tokens: Sequence[Any], labels: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the labelled spans of a sentence: label, text.

    >>> slots_of(["to", "new", "york"], ["O", "B-city", "I-city"])
    [('city', 'new york')]
    """
    found: list[tuple[str, str]] = []
    before = "O"
    for token, label in zip(tokens or [], map(str, labels or []), strict=False):
        kind = label[2:] if label[:2] in ("B-", "I-") else label
        if label.startswith("I-") and before[2:] == kind:
            found[-1] = kind, f"{found[-1][1]} {token}"
        elif label != "O":
            found.append((kind, str(token)))
        before = label
    return found


def pools(
    batches: Iterable[Candidates], seed: int, room: int, only: set[tuple[str, str, str]] | None
) -> list[Pool]:
    """Return a pool of every group, in the order they are met; `only` names the groups wanted."""
    made: dict[tuple[str, str, str], Pool] = {}
    for one in batches:
        if only is None or one.group.name in only:
            pool = made.setdefault(one.group.name, Pool(one.group, seed, room))
            pool.add(one.table)
    return list(made.values())


def sample(
    made: Sequence[Pool], count: int, taken: dict[str, set[str]]
) -> list[tuple[Group, list[Row]]]:
    """Draw `count` rows of every group; of one language, no text is drawn twice or if `taken`."""
    drawn: list[tuple[Group, list[Row]]] = [(pool.group, []) for pool in made]
    queues = [pool.ordered() for pool in made]
    for _ in range(count):  # in turns, so that what is scarce is shared
        for (group, rows), queue in zip(drawn, queues, strict=True):
            used = taken.setdefault(group.lang, set())
            if row := next((row for row in queue if row.clean not in used), None):
                rows.append(row)
                used.add(row.clean)
    return drawn


def shuffled(drawn: Sequence[tuple[Group, list[Row]]], seed: int) -> Iterator[tuple[Group, Row]]:
    """Yield the rows of all groups in an order that tells nothing of their group."""
    rows = [(group, row) for group, part in drawn for row in part]
    texts = pa.array([f"{group.lang}\t{row.clean}" for group, row in rows], pa.string())
    keys = row_keys(stream_key(seed, "review/shuffle"), id_numbers(texts))
    for place in np.argsort(keys, kind="stable").tolist():
        yield rows[place]


def order_of(seed: int, reviewer: str, items: I64, stages: I64) -> I64:
    """Return the items in the order of one reviewer: stage by stage, shuffled within each."""
    keys = row_keys(stream_key(seed, f"review/reviewer/{reviewer}"), items.astype(np.uint64))
    ordered: I64 = items[np.lexsort((keys, stages))]
    return ordered
