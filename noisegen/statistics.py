"""What a run did: figures of a folder of shards, as data, as tables and as a picture."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from noisegen.errors import SourceError, UsageError
from noisegen.figures import Statistics
from noisegen.tables import bar, percent, titled
from noisegen.tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from rich.console import Console

__all__ = ["Statistics", "measure", "plot", "render"]

_BATCH_ROWS = 4096
_BAR = 24  # columns


def measure(folder: Path) -> Statistics:
    """Read all shards of a folder, batch by batch.

    CER and WER are exact: Levenshtein distances over clean characters and words. Raises SourceError
    if there is no such folder, no shard in it, or a shard that cannot be read.
    """
    paths = _shard_paths(folder)
    heads = [_check(path) for path in paths]
    has_edits = all("edits" in names for _, names in heads)
    tally = Tally(sum(rows for rows, _ in heads), has_edits)
    for path in paths:
        for batch in _batches(path, has_edits):
            tally.add(batch)
    return tally.statistics(len(paths), _chances(folder / "manifest.json"))


def render(statistics: Statistics, console: "Console") -> None:
    """Print the figures as tables with bars."""
    tables = (_summary, _per_row, _transforms, _edit_kinds, _row_lengths)
    for table in tables:
        console.print(table(statistics))
        console.print()


def plot(statistics: Statistics, path: Path) -> None:
    """Write a picture, PNG or self-contained HTML by the ending of `path`.

    Raises UsageError for another ending, MissingExtra without matplotlib, OutputError if the file
    cannot be written.
    """
    if path.suffix.lower() not in (".png", ".html"):
        raise UsageError(f"cannot plot to {str(path)!r}: the name must end in .png or .html")
    from noisegen.plots import write

    write(statistics, path)


# Reading.


def _shard_paths(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise SourceError(f"there is no folder {str(folder)!r}")
    paths = sorted(folder.glob("part-*.parquet"))
    if not paths:
        raise SourceError(f"no part-*.parquet in {str(folder)!r}; give the OUT of noisegen augment")
    return paths


@contextmanager
def _opened(path: Path) -> Iterator["pq.ParquetFile"]:
    """Open a shard; raises SourceError if it, or what is read from it inside, is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as shard:
            yield shard
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"cannot read {str(path)!r} as Parquet: {reason}") from error


def _check(path: Path) -> tuple[int, list[str]]:
    """Return the rows and columns of a shard; raises SourceError if they are not those of a run."""
    with _opened(path) as shard:
        rows, schema = shard.metadata.num_rows, shard.schema_arrow
    for name, fits in _columns().items():
        if name not in schema.names:
            if name in _OPTIONAL:
                continue
            raise SourceError(f"{str(path)!r} has no column {name!r}; is it from noisegen augment?")
        if not fits(schema.field(name).type):
            kind = schema.field(name).type
            raise SourceError(f"column {name!r} of {str(path)!r} has the wrong type: {kind}")
    return rows, schema.names


_OPTIONAL = ("copy", "edits")
_SPAN = {"transform", "clean_start", "clean_end", "noisy_start", "noisy_end"}


def _columns() -> dict[str, Callable[["pa.DataType"], bool]]:
    """Return the columns of a shard, each with a test of its type."""
    from pyarrow import types

    def is_text(kind: "pa.DataType") -> bool:
        return bool(types.is_string(kind) or types.is_large_string(kind))

    def is_list(kind: "pa.DataType") -> bool:
        return bool(types.is_list(kind) or types.is_large_list(kind))

    def is_edits(kind: "pa.DataType") -> bool:
        if not is_list(kind) or not types.is_struct(kind.value_type):
            return False
        return {part.name for part in kind.value_type} >= _SPAN

    return {
        "id": lambda _: True,
        "clean": is_text,
        "noisy": is_text,
        "transforms": lambda kind: is_list(kind) and is_text(kind.value_type),
        "copy": types.is_integer,
        "edits": is_edits,
    }


def _batches(path: Path, has_edits: bool) -> Iterator["pa.RecordBatch"]:
    """Yield the columns that are counted; raises SourceError for a text that is null."""
    with _opened(path) as shard:
        wanted = ["clean", "noisy", "transforms", "copy", *(["edits"] if has_edits else [])]
        names = [name for name in wanted if name in shard.schema_arrow.names]
        for batch in shard.iter_batches(_BATCH_ROWS, columns=names):
            batch.validate(full=True)  # damaged UTF-8 shows here
            for name in ("clean", "noisy"):
                if batch[name].null_count:
                    raise SourceError(f"column {name!r} of {str(path)!r} has rows without a text")
            yield batch


def _chances(manifest: Path) -> list[float] | None:
    """Return the chance of every transform if the run's recipe is mix_all: twelve times 0.1."""
    try:
        recipe = json.loads(manifest.read_text("utf-8"))["recipe"]
        if recipe == "mix_all":
            return [0.1] * 12
        if recipe["name"] != "mix_all":
            return None
        steps = recipe["steps"][0]["shuffle"]
        return [float(options["p"]) for step in steps for options in step.values()]
    except (OSError, ValueError, LookupError, TypeError):
        return None  # no manifest, or none that says so: the figures stand without


# Tables.


def _number(value: float | None, digits: int = 0) -> str:
    """Return a number with thousands separators, '-' for None."""
    return "-" if value is None else f"{value:,.{digits}f}"


def _table(title: str, *columns: str) -> Table:
    """Return a table: the first column to the left, figures to the right, then a bar."""
    table = titled(title)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=bool(place))
    table.add_column("", style="cyan", no_wrap=True, min_width=_BAR)
    return table


def _summary(statistics: Statistics) -> Table:
    table = titled("the run", None)
    table.show_header = False
    found, tokens = statistics, statistics.type_token_ratio
    copies = f", {found.copies:,} copies of each" if found.copies > 1 else ""
    sample = " (a sample)" if tokens.is_sample else ""
    lines = {
        "rows": f"{found.rows:,} in {found.shards:,} shard{'s' * (found.shards != 1)}{copies}",
        "changed": f"{found.changed:,} ({percent(found.changed_share)})",
        "CER": f"{percent(found.cer, 2)} of {found.clean_characters:,} characters",
        "WER": f"{percent(found.wer, 2)} of {found.clean_words:,} words",
        "length": f"noisy / clean {_number(found.length_ratio, 4)} in characters",
        "type/token": f"clean {_number(tokens.clean, 4)}, noisy {_number(tokens.noisy, 4)}, "
        f"noisy / clean {_number(tokens.quotient, 4)}; {tokens.rows:,} rows{sample}",
    }
    for name, line in lines.items():
        table.add_row(name, line)
    return table


def _per_row(statistics: Statistics) -> Table:
    drawn = statistics.transforms_per_row
    expects = any(line.expected is not None for line in drawn)
    table = _table("transforms per row", "", "rows", "share", *(["expected"] if expects else []))
    shown = [line for line in drawn if line.rows or (line.expected or 0) >= 0.5]
    most = max((line.rows for line in shown), default=0)
    for line in shown:
        share = percent(line.rows / statistics.rows) if statistics.rows else "-"
        expected = [_number(line.expected)] if expects else []
        figures = (str(line.transforms), _number(line.rows), share, *expected)
        table.add_row(*figures, bar(line.rows, most))
    return table


def _transforms(statistics: Statistics) -> Table:
    counted = any(line.edits is not None for line in statistics.transforms)
    titles = ("rows", "alone", "changed", "share", *(["edits"] if counted else []))
    table = _table("transforms: rows drawn, drawn alone, and changed of these", "", *titles)
    for line in statistics.transforms:
        figures = [_number(line.rows), _number(line.rows_alone), _number(line.changed_alone)]
        figures += [percent(line.changed_alone_share), *([_number(line.edits)] if counted else [])]
        table.add_row(Text(line.name), *figures, bar(line.changed_alone_share or 0, 1))
    return table


def _edit_kinds(statistics: Statistics) -> Table:
    found = statistics.edit_kinds
    source = {"edits": "from the column edits", "alignment": "from a shortest alignment"}
    sample = "a sample of " if found.is_sample else ""
    title = f"edit kinds, {source[found.source]}; {sample}{found.rows:,} changed rows"
    table = _table(title, "", "of characters", "of blanks", "share")
    total = sum(line.characters + line.blanks for line in found.kinds)
    for line in found.kinds:
        count = line.characters + line.blanks
        share = percent(count / total) if total else "-"
        figures = (_number(line.characters), _number(line.blanks), share)
        table.add_row(line.kind, *figures, bar(count, total))
    return table


def _row_lengths(statistics: Statistics) -> Table:
    table = _table("row lengths in characters", "", "clean", "noisy")
    bins = list(statistics.row_lengths)
    while len(bins) > 1 and not bins[-1].clean + bins[-1].noisy:
        bins.pop()
    most = max(line.clean for line in bins)
    for line in bins:
        span = (
            f"{line.low:,} or more" if line.high is None else f"{line.low:,} to {line.high - 1:,}"
        )
        table.add_row(span, _number(line.clean), _number(line.noisy), bar(line.clean, most))
    return table
