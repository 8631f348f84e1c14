"""Habits of whole rows: all in small letters, all in capitals, no marks on letters."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from noisegen.characters import code_points, utf8_lengths
from noisegen.draws import I64
from noisegen.edits import Edits
from noisegen.realism.letters import bare, lower
from noisegen.text import Texts, as_arrow

HABITS: dict[str, Callable[[str], str]] = {"small": lower, "upper": str.upper, "bare": bare}
_BY_NUMBER = list(HABITS.values())


def with_habits(edits: Edits, texts: Texts, habits: I64) -> Edits:
    """Return the edits with those of habits: the number of each row's, or one behind the last."""
    rows = np.flatnonzero(habits < len(_BY_NUMBER))
    if not len(rows):
        return edits
    edits = _rewritten(edits, habits)
    at, owners = _characters(texts, rows, edits)
    points = code_points(texts.values, at)
    kinds = habits.take(owners)
    pairs, which = np.unique(points * len(_BY_NUMBER) + kinds, return_inverse=True)
    made = [_BY_NUMBER[pair % len(_BY_NUMBER)](chr(pair // len(_BY_NUMBER))) for pair in pairs]
    same = np.array([m == chr(p // len(_BY_NUMBER)) for m, p in zip(made, pairs, strict=True)],
                    np.bool_)  # fmt: skip
    changed = np.flatnonzero(~same.take(which))
    at, owners, points = at.take(changed), owners.take(changed), points.take(changed)
    stops = at + utf8_lengths(points)
    starts, stops = np.concatenate([edits.starts, at]), np.concatenate([edits.stops, stops])
    order = np.lexsort((stops, starts))
    replacements = np.concatenate([edits.replacements, which.take(changed) + len(edits.pool)])
    rows = np.concatenate([edits.rows, owners])
    pool = pa.concat_arrays([edits.pool, Texts.from_strings(made).to_arrow()])
    columns = (column.take(order) for column in (rows, starts, stops, replacements))
    rows, starts, stops, replacements = columns
    return Edits(rows, starts, stops, replacements, pool)


def _rewritten(edits: Edits, habits: I64) -> Edits:
    """Return edits whose replacements follow the habit of their row."""
    kinds = habits.take(edits.rows)
    here = np.flatnonzero(kinds < len(_BY_NUMBER))
    written = edits.pool.take(as_arrow(edits.replacements.take(here))).to_pylist()
    made = [
        _BY_NUMBER[kind](text.decode())
        for text, kind in zip(written, kinds.take(here).tolist(), strict=True)
    ]
    replacements = edits.replacements.copy()
    replacements[here] = np.arange(len(made)) + len(edits.pool)
    pool = pa.concat_arrays([edits.pool, Texts.from_strings(made).to_arrow()])
    return Edits(edits.rows, edits.starts, edits.stops, replacements, pool)


def _characters(texts: Texts, rows: I64, edits: Edits) -> tuple[I64, I64]:
    """Return where the characters of some rows begin that no edit covers, and the rows."""
    sizes = texts.lengths.take(rows)
    firsts = np.cumsum(sizes) - sizes
    at = np.arange(int(sizes.sum())) + np.repeat(texts.offsets[:-1].take(rows) - firsts, sizes)
    owners = np.repeat(rows, sizes)
    covering = np.searchsorted(edits.starts, at, side="right") - 1
    reach = np.append(np.maximum.accumulate(edits.stops), 0).take(covering)
    free = ((texts.values.take(at) & 0xC0) != 0x80) & (at >= reach)
    return at[free], owners[free]
