"""Profiles on disk: a head in JSON and a Parquet file for each table of counts.

What is read is bounded and checked: a profile may come from anywhere.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisegen.atomic import atomic, write_text
from noisegen.errors import OutputError, SourceError
from noisegen.realism.channel_habits import HABITS
from noisegen.realism.letters import CASES, SHAPES
from noisegen.realism.profile import CHANGES, TABLES, WRITTEN, Profile
from noisegen.realism.row_factors import FACTOR_BITS, FACTORS, WEIGHT_TOTAL
from noisegen.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1  # of the files; raise it when a change alters what they mean
HEAD = "profile.json"
TABLE_ROWS_MAX = 2_000_000
TABLE_BYTES_MAX = 1 << 29  # of a table in memory
FILE_BYTES_MAX = 1 << 28
CHARACTERS_MAX = 200  # of a text in a table
COUNT_MAX = 1 << 40
_LINE_BREAK = "[\n\r\v\f\x1c-\x1e\u0085\u2028\u2029]"
_BELOW = {"case": len(CASES), "written": len(WRITTEN), "shape": SHAPES, "count": COUNT_MAX}
_ONE_OF = {"change": CHANGES, "habit": tuple(HABITS)}


def save(profile: Profile, folder: str | Path) -> None:
    """Write the files of a profile; raises OutputError."""
    import pyarrow.parquet as pq

    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror}") from error
    for name in TABLES:
        with atomic(folder / f"{name}.parquet") as file:
            pq.write_table(_table(name, getattr(profile, name)), file, compression="zstd")
    head = {
        "format": FORMAT, "lang": profile.lang, "version": __version__, "digest": profile.digest,
        "totals": dict(sorted(profile.totals.items())), "factors": profile.factors,
    }  # fmt: skip
    write_text(folder / HEAD, json.dumps(head, ensure_ascii=False) + "\n")


def load(folder: str | Path) -> Profile:
    """Read a profile; raises SourceError saying what is wrong with it and what to do."""
    folder = Path(folder)
    head = _head(folder)
    tables = {name: _counts(folder / f"{name}.parquet", name) for name in TABLES}
    factors = [(words, gaps, weight) for words, gaps, weight in head["factors"]]
    made = Profile(head["lang"], Counter(head["totals"]), **tables, factors=factors)
    if made.digest != head.get("digest"):
        raise SourceError(
            f"profile {folder} is damaged: its files do not belong together; learn it again"
        )
    return made


def _schema(name: str) -> "pa.Schema":
    import pyarrow as pa

    columns = TABLES[name][1].items()
    kinds = {"bool": pa.bool_(), "int8": pa.int8(), "int32": pa.int32(), "string": pa.string()}
    fields = [
        pa.field(column, kinds[kind.rstrip("?")], nullable=kind.endswith("?"))
        for column, kind in columns
    ]
    return pa.schema([*fields, pa.field("count", pa.int64(), nullable=False)])


def _table(name: str, counts: Mapping[Any, int]) -> "pa.Table":
    """Return counts as a table, in an order that does not depend on how they were counted."""
    import pyarrow as pa

    rows = sorted(counts.items(), key=lambda item: [(part is None, part) for part in item[0]])
    columns = zip(*((*key, count) for key, count in rows), strict=True) if rows else ()
    schema = _schema(name)
    arrays = list(columns) or [()] * len(schema)
    return pa.table([pa.array(a, f.type) for a, f in zip(arrays, schema, strict=True)], schema)


def _head(folder: Path) -> dict[str, Any]:
    path = folder / HEAD
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ValueError("it is too large")
        head = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(
            f"{folder} is no profile, it has no {HEAD}; make one: noisegen learn PAIRS -o {folder}"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"{path} cannot be read as the head of a profile: {reason}") from error
    if not isinstance(head, dict) or "format" not in head:
        raise SourceError(f"{path} is not the head of a profile; give a folder of noisegen learn")
    if head["format"] != FORMAT:
        raise SourceError(
            f"profile {folder} has format {head['format']!r}, this noisegen {__version__} reads "
            f"{FORMAT}; learn it again from its pairs"
        )
    for name, fits in _FITS.items():
        if not fits(head.get(name)):
            raise SourceError(f"{path} is damaged: its {name} cannot be; learn the profile again")
    return head


def _are_totals(totals: object) -> bool:
    return isinstance(totals, dict) and all(
        type(count) is int and 0 <= count < COUNT_MAX for count in totals.values()
    )


def _are_factors(factors: object) -> bool:
    """Tell whether these are pairs of factors of the grid with weights."""
    grid = {int(factor * (1 << FACTOR_BITS)) for factor in FACTORS}
    if not isinstance(factors, list) or not 0 < len(factors) <= len(FACTORS) ** 2:
        return False
    return all(
        isinstance(one, list) and len(one) == 3 and set(map(type, one)) == {int}
        and {one[0], one[1]} <= grid and 0 < one[2] <= WEIGHT_TOTAL
        for one in factors
    )  # fmt: skip


_FITS = {
    "lang": lambda lang: isinstance(lang, str),
    "totals": _are_totals,
    "factors": _are_factors,
}


def _counts(path: Path, name: str) -> Counter[Any]:
    """Read a table of counts; raises SourceError for a file that is damaged, foreign or huge."""
    import pyarrow as pa

    key, columns = TABLES[name]
    found: Counter[Any] = Counter()
    try:
        for table in _batches(path, name):
            _check(table)
            keys = zip(*(table[column].to_pylist() for column in columns), strict=True)
            counts = table["count"].to_pylist()
            found.update({key(*parts): n for parts, n in zip(keys, counts, strict=True)})
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"{path} cannot be read as part of a profile: {reason}") from error
    return found


def _batches(path: Path, name: str) -> Iterator["pa.RecordBatch"]:
    """Yield the rows of a table in parts; raises ValueError for too many."""
    import pyarrow.parquet as pq

    if path.stat().st_size > FILE_BYTES_MAX:
        raise ValueError(f"over {FILE_BYTES_MAX:,} bytes")
    with pq.ParquetFile(path) as file:
        if file.metadata.num_rows > TABLE_ROWS_MAX:
            raise ValueError(f"over {TABLE_ROWS_MAX:,} rows")
        if not file.schema_arrow.equals(_schema(name)):
            raise ValueError("its columns are not those of a profile")
        size = 0
        for batch in file.iter_batches(1 << 14):
            size += batch.nbytes
            if size > TABLE_BYTES_MAX:
                raise ValueError(f"over {TABLE_BYTES_MAX:,} bytes in memory")
            batch.validate(full=True)
            yield batch


def _check(table: "pa.RecordBatch") -> None:
    """Raise ValueError for texts that are long or have line breaks, and numbers out of range."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in table.schema.names:
        values = table[column]
        if not table.schema.field(column).nullable and values.null_count:
            raise ValueError(f"column {column!r} has empty places")
        if pa.types.is_string(values.type):
            long = pc.any(pc.greater(pc.utf8_length(values), CHARACTERS_MAX)).as_py()
            if long or pc.any(pc.match_substring_regex(values, _LINE_BREAK)).as_py():
                raise ValueError(f"a text of column {column!r} is too long or has a line break")
            if column in _ONE_OF and not set(values.to_pylist()) <= set(_ONE_OF[column]):
                raise ValueError(f"column {column!r} has an unknown name")
        elif not pa.types.is_boolean(values.type):
            low, high = pc.min_max(values).as_py().values()
            if low is not None and not 0 <= low <= high < _BELOW.get(column, COUNT_MAX):
                raise ValueError(f"a number of column {column!r} is out of range")
