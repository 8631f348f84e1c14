"""Noise made ahead for a training loop: `NoisyDataset`.

The engine noises thousands of texts at once several times faster than batches of 64. The noise of a
row depends on seed, id and epoch alone, so whole blocks of rows can be noised before a loader asks
for them.
"""

import json
import os
import random
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice, repeat
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from noisegen.augmentation.on_the_fly import (
    Batch,
    Mapper,
    Row,
    check_epoch,
    copied,
    joined,
    refuse_rows_without,
)
from noisegen.data.paths import is_path
from noisegen.data.rows import ID
from noisegen.errors import UsageError
from noisegen.noising.noise import RecipeLike
from noisegen.options import Strings, listed, public
from noisegen.runs.atomic import atomic, lock_file
from noisegen.text.resources import DEFAULT_RECIPE
from noisegen.text.spans import PROTECTED

BLOCK_ROWS = 16_384
FIRST_ROWS = 64  # rows of a stream's first block; each further block has twice as many
Block = tuple[pa.LargeStringArray, np.ndarray[Any, np.dtype[np.uint32]]]
# Schema of a block. `noisy` has the noisy texts of a plain column, or else the changes of the rows.
LAYOUT = pa.schema({"noisy": pa.large_string(), "check": pa.uint32()})
_ABSENT = object()


class NoisyDataset:
    """Rows of a dataset with noise, for a torch `DataLoader` or any other loop.

    `dataset` has `__len__` and `__getitem__` (a list of dicts, `datasets.Dataset`, a torch
    `Dataset`), or only `__iter__` (a stream). A row is a mapping. The id of a row is its value in
    `id_column` (default: the column `id` if there is one, otherwise the index of the row). In epoch
    n, a row gets the noise of its copy n in the output of `augment`.

    `recipe`, `seed`, `lang`, `protect`, `epoch`, `tagger`, `noisy_column`, `column`, `spans` and
    `lang_column` are options of `Mapper`; wrong ones raise UsageError. Noisy text comes in a new
    column, or in place where `column` is a path or names several columns.

    Noise is made for `block_rows` rows at once. With `__getitem__`, a block is made when one of its
    rows is first used, and kept until the next epoch in a temporary folder, which the workers of a
    loader share. The folder needs 12 bytes a row and the noisy text of one epoch. A stream holds
    one block of rows in memory per worker.
    """

    @public
    def __init__(
        self,
        dataset: Any,
        recipe: RecipeLike = DEFAULT_RECIPE,
        seed: int = 0,
        column: Strings = "text",
        id_column: str | None = None,
        noisy_column: str = "noisy",
        lang: str | None = None,
        protect: str = PROTECTED,
        epoch: int = 0,
        tagger: str = "rule",
        block_rows: int = BLOCK_ROWS,
        spans: Strings = (),
        lang_column: str | None = None,
    ) -> None:
        """Check the options and the first row; raises UsageError for a wrong one."""
        if isinstance(block_rows, bool) or not isinstance(block_rows, int) or block_rows < 1:
            raise UsageError(f"block_rows {block_rows!r} is not a whole number of at least 1")
        names = column, id_column or ID, noisy_column
        self._mapper = Mapper(
            recipe, seed, *names, lang, protect, epoch, tagger, spans, lang_column
        )
        self.dataset, self.id_column, self.block_rows = dataset, id_column, block_rows
        self._store = _Store(int(epoch))
        if _is_stream(dataset):
            self.__class__ = _NoisyStream
            if loading := _torch_loading():
                loading.IterableDataset.register(_NoisyStream)
        else:
            self._check_first()

    @property
    def epoch(self) -> int:
        """Number of the pass over the data."""
        return self._store.epoch

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the pass over the data: 0, 1, 2, ...; call it between passes.

        Persistent workers of a loader follow. A `dataset` that has `set_epoch` is set, too. Raises
        UsageError for a value that is not a whole number of at least 0.
        """
        check_epoch(epoch)
        self._store.set_epoch(int(epoch))
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(epoch)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.dataset)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the noisy rows in their order."""
        for first in range(0, len(self), FIRST_ROWS):
            yield from self.__getitems__(range(first, min(first + FIRST_ROWS, len(self))))

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return a row with its noise; raises IndexError if there is no such row."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Return the rows of a batch with their noise; a loader calls this with its indices."""
        known = range(len(self))
        places = [known[index] for index in indices]
        if not places:
            return []
        rows, epoch = _rows(self.dataset, places), self.epoch
        batch = self._mapper.batch_of(rows, places)
        noisy, changed = self._stored(batch, places, epoch)
        if changed:
            ids = [self._id(rows[position], places[position]) for position in changed]
            some = {name: [values[at] for at in changed] for name, values in batch.items()}
            for position, text in zip(changed, self._noise(some, ids, epoch), strict=True):
                noisy[position] = text
        if self._mapper.used(batch).is_plain:
            return joined(rows, {self._mapper.noisy_column: noisy})
        plain = zip(rows, _rows_of(batch), noisy, strict=True)
        return [{**row, **values, **_with_changes(values, made)} for row, values, made in plain]

    def _stored(
        self, batch: Batch, places: Sequence[int], epoch: int
    ) -> tuple[list[str | None], list[int]]:
        """Return the noise of rows from their blocks.

        Also returns the positions of rows that have changed since their block was made.
        """
        blocks = self._blocks(epoch, {place // self.block_rows for place in places})
        noisy: list[str | None] = []
        changed = []
        for position, (check, place) in enumerate(zip(_checks(batch), places, strict=True)):
            number, row = divmod(place, self.block_rows)
            made, checks = blocks[number]
            noisy.append(made[row].as_py())
            if checks[row] != check:
                changed.append(position)
        return noisy, changed

    def _blocks(self, epoch: int, numbers: Iterable[int]) -> dict[int, Block]:
        """Return the blocks with these numbers; blocks that no process has made yet are made."""
        shuffled = list(numbers)
        # Workers make blocks in different orders, so that they seldom wait for each other.
        random.Random(os.getpid()).shuffle(shuffled)
        return {number: self._store.block(epoch, number, self._made) for number in shuffled}

    def _made(self, epoch: int, number: int) -> pa.Table:
        """Make the noise of a block; return a table of noisy texts and checksums of clean texts."""
        first = number * self.block_rows
        places = range(first, min(first + self.block_rows, len(self)))
        rows = _rows(self._narrowed(), places)
        batch = self._mapper.batch_of(rows, places)
        ids = [self._id(row, place) for row, place in zip(rows, places, strict=True)]
        try:
            noisy = self._noise(batch, ids, epoch)
        except UsageError as error:
            raise UsageError(f"from row {first} on, {error}") from error
        checks = pa.array(_checks(batch), pa.uint32())
        return pa.table([pa.array(noisy, pa.large_string()), checks], schema=LAYOUT)

    def _narrowed(self) -> Any:
        """Return the dataset without the columns that noise does not need, such as images."""
        if not hasattr(self.dataset, "select_columns") or self.dataset.format["type"] == "custom":
            return self.dataset  # a custom format computes the row from all columns
        names = self.dataset.column_names
        wanted = (*self._mapper.used(names).names, self._mapper.id_column)
        return self.dataset.select_columns([name for name in names if name in wanted])

    def _noise(self, batch: Batch, ids: Sequence[Any], epoch: int) -> list[str | None]:
        """Return the noisy texts of rows, or their changes where noise changes columns."""
        made = self._columns(batch, ids, epoch)
        if self._mapper.used(batch).is_plain:
            return made[self._mapper.noisy_column]
        pairs = zip(_rows_of(batch), _rows_of(made), strict=True)
        return [json.dumps(list(_changes(*pair)), default=int) for pair in pairs]

    def _columns(self, batch: Batch, ids: Sequence[Any], epoch: int) -> dict[str, list[Any]]:
        """Return the columns that noise adds or changes in an epoch."""
        return replace(self._mapper, epoch=epoch).columns(batch, ids)

    def _id(self, row: Row, place: int | None) -> Any:
        if self.id_column is not None:
            refuse_rows_without(self.id_column, [row], [place])
        found = row.get(self.id_column or ID, place)
        if found is None and place is None:
            raise UsageError("each worker reads its own part of this stream: name an id_column")
        return found

    def _check_first(self) -> None:
        """Raise UsageError if the first row cannot be used."""
        if not len(self):
            return
        is_nested = any(map(is_path, [*listed(self._mapper.column), *listed(self._mapper.spans)]))
        are_many = bool(self._mapper.spans) or is_nested
        places = range(min(len(self), FIRST_ROWS if are_many else 1))
        try:
            rows = _rows(self.dataset, places)
        except (LookupError, TypeError) as error:
            kind = type(self.dataset).__name__
            shape = getattr(self.dataset, "format", None)
            if isinstance(shape, dict) and shape.get("type"):
                message = f"a {kind} in format {shape['type']!r} has no rows that are dicts"
                raise UsageError(f"{message}: give dataset.with_format(None)") from error
            raise UsageError(f"a {kind} has no row 0: give a list of dicts") from error
        self._mapper.check_first(self._mapper.batch_of(rows, places), are_many=True)
        self._id(rows[0], 0)


class _NoisyStream(NoisyDataset):
    """Noisy rows of a dataset that can only be iterated.

    A torch `IterableDataset` or a stream of `datasets` yields the rows of each loader worker by
    itself. From any other stream, worker w of n takes rows w, w + n, w + 2n, ...
    """

    def __len__(self) -> int:
        raise TypeError("a stream has no length; for a DataLoader, import torch before you wrap it")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the noisy rows in their order, noised in blocks."""
        epoch, size, stream = self.epoch, min(FIRST_ROWS, self.block_rows), self._share()
        is_first = True
        while block := list(islice(stream, size)):
            places, rows = zip(*block, strict=True)
            batch = self._mapper.batch_of(rows, places)
            if is_first:
                self._mapper.check_first(batch, are_many=False)
            is_first = False
            ids = [self._id(row, place) for place, row in block]
            yield from joined(rows, self._columns(batch, ids, epoch))
            size = min(2 * size, self.block_rows)

    def _share(self) -> Iterator[tuple[int | None, Row]]:
        """Return this worker's rows, each with its position in the stream if it is known."""
        loading = _torch_loading()
        worker = loading.get_worker_info() if loading else None
        if worker is None or worker.num_workers == 1:
            return enumerate(self.dataset)
        if isinstance(self.dataset, loading.IterableDataset):
            return zip(repeat(None), self.dataset, strict=False)
        return islice(enumerate(self.dataset), worker.id, None, worker.num_workers)


class _Store:
    """Epoch and blocks of noise in a temporary folder, shared with the workers of a loader.

    A block is an Arrow file that every process maps into its memory; one process makes it. The
    process that makes the folder removes it.
    """

    def __init__(self, epoch: int, folder: Path | None = None) -> None:
        """Make a folder for `epoch`, or use the folder of the process that starts this one."""
        self.folder = folder or Path(tempfile.mkdtemp(prefix="noisegen-"))
        self._epoch = np.memmap(self.folder / "epoch", np.int64, "r+" if folder else "w+", shape=1)
        self._opened: dict[tuple[int, int], Block] = {}
        if folder is None:
            self._epoch[0] = epoch
            weakref.finalize(self, _remove, self.folder, os.getpid())

    def __reduce__(self) -> tuple[Any, ...]:
        """Share the folder with a worker that is being started; any other copy gets its own."""
        return _Store, (self.epoch, self.folder if get_spawning_popen() else None)

    @property
    def epoch(self) -> int:
        """The epoch that the main process has set."""
        return int(self._epoch[0])

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch for all processes, and remove the blocks of other epochs."""
        self._epoch[0] = epoch
        for path in self.folder.glob("*.arrow"):
            if not path.name.startswith(f"{epoch}-"):
                path.unlink(missing_ok=True)

    def block(self, epoch: int, number: int, make: Callable[[int, int], pa.Table]) -> Block:
        """Return a block; `make` makes it from epoch and number if no process has made it."""
        key = epoch, number
        if key not in self._opened:
            if any(opened != epoch for opened, _ in self._opened):
                self._opened.clear()
            self._opened[key] = self._mapped(epoch, number, make)
        return self._opened[key]

    def _mapped(self, epoch: int, number: int, make: Callable[[int, int], pa.Table]) -> Block:
        path = self.folder / f"{epoch}-{number}.arrow"
        with (self.folder / f"{number}.lock").open("ab") as lock:
            lock_file(lock, wait=True)  # another process may be making the block
            if not path.exists():
                table = make(epoch, number)
                with atomic(path) as file, pa.ipc.new_file(file, table.schema) as writer:
                    writer.write_table(table)
        with pa.memory_map(str(path)) as file:
            made = pa.ipc.open_file(file).get_batch(0)
        return made["noisy"], made["check"].to_numpy()


def _remove(folder: Path, process: int) -> None:
    """Remove a folder in the process that made it; a forked worker leaves the folder alone."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _is_stream(dataset: Any) -> bool:
    """Tell whether a dataset can only be iterated; raises UsageError for something else than rows.

    A torch `IterableDataset` inherits a `__getitem__` that does not work.
    """
    has_rows = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
    is_other = isinstance(dataset, str | bytes | Mapping)
    if is_other or not (has_rows or hasattr(dataset, "__iter__")):
        kind = type(dataset).__name__
        raise UsageError(f"a NoisyDataset takes a dataset or a list of dicts, not a {kind}")
    loading = _torch_loading()
    return not has_rows or bool(loading and isinstance(dataset, loading.IterableDataset))


def _torch_loading() -> Any:
    """Return the module `torch.utils.data` if it has been imported, otherwise None."""
    return sys.modules.get("torch.utils.data")


def _rows(dataset: Any, places: Sequence[int]) -> list[Row]:
    """Read rows, at once where a dataset can."""
    if hasattr(dataset, "__getitems__"):
        return list(dataset.__getitems__(places))
    return [dataset[place] for place in places]


def _rows_of(batch: Batch) -> list[dict[str, Any]]:
    """Return the rows of a batch of columns."""
    return [dict(zip(batch, row, strict=True)) for row in zip(*batch.values(), strict=True)]


def _checks(batch: Batch) -> list[int]:
    """Return a checksum of each row, of the columns that decide its noise."""
    return [_check(row) for row in zip(*batch.values(), strict=True)]


def _check(row: tuple[Any, ...]) -> int:
    if len(row) == 1 and isinstance(row[0], str):
        text = row[0]
    else:  # images and other objects beside the texts count by their type
        text = json.dumps(row, default=lambda value: str(type(value)), skipkeys=True)
    return crc32(text.encode("utf-8", "surrogatepass"))


def _changes(before: Any, after: Any) -> Iterator[tuple[list[str | int], Any]]:
    """Yield each value in `after` that differs from `before`, with the keys that lead to it."""
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = [(name, before.get(name, _ABSENT), value) for name, value in after.items()]
    elif isinstance(before, list) and isinstance(after, list):
        pairs = list(zip(count(), before, after, strict=False))
    else:
        if before is not after and before != after:
            yield [], after
        return
    for key, old, new in pairs:
        yield from (([key, *keys], value) for keys, value in _changes(old, new))


def _with_changes(row: Row, changes: str | None) -> dict[str, Any]:
    """Return the changed columns of a row; `changes` is JSON of the result of `_changes`."""
    made: dict[str, Any] = {}
    for (column, *inner), value in json.loads(changes or "[]"):
        if column not in made:
            made[column] = copied(row.get(column))
        holder, key = made, column
        for deeper in inner:
            holder, key = holder[key], deeper
        holder[key] = value
    return made
