"""Rows for the preview: given texts, the first rows of a source, or the bundled demo text."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from noisegen.engine import add_noise
from noisegen.ids import id_numbers
from noisegen.inputs import file_input
from noisegen.mixing import Dice
from noisegen.preview import Change, Example
from noisegen.request import Request, Run, prepare
from noisegen.sources import read

DEMO = Path(__file__).parent / "demo" / "demo.tsv"


def is_source(text: str) -> bool:
    """Tell whether an argument names a source, there or not, rather than being a text."""
    if text == "-" or text.startswith("hf:"):
        return True
    if len(text) > 1024 or " " in text:
        return False
    return Path(text).exists() or "*" in text or not file_input(Path(text)).skipped


def examples_of(request: Request, rows: int) -> list[Example]:
    """Return the first rows of a request's sources, which may also be texts, with their noise."""
    texts = [source for source in request.sources if not is_source(source)]
    tables = iter([_table_of(texts)]) if texts else None
    sources = (str(DEMO),) if texts or not request.sources else request.sources
    run = prepare(replace(request, sources=sources, limit=rows), Path("preview"))
    return list(_examples(run, tables or _tables(run)))[:rows]


def _table_of(texts: list[str]) -> pa.Table:
    return pa.table({"id": pa.array(range(len(texts)), pa.int64()), "clean": pa.array(texts)})


def _tables(run: Run) -> Iterator[pa.Table]:
    for task in run.tasks():
        for batch in read(task, run.request.columns):
            yield batch.table


def _examples(run: Run, tables: Iterator[pa.Table]) -> Iterator[Example]:
    for table in tables:
        clean = table["clean"].combine_chunks()
        dice = Dice(id_numbers(table["id"].combine_chunks()), run.request.seed)
        table = table.select(["id", "clean"])
        noised = add_noise(run.job.engine(), table, clean, dice, run.job.protect, edits=True)
        for row in noised.to_pylist():
            changes = [Change(*edit.values()) for edit in row["edits"]]
            yield Example(row["id"], row["clean"], row["noisy"], row["transforms"], changes)


def plan_of(request: Request) -> str:
    """Return what a run would do, in lines of text."""
    run = prepare(request, Path("out"))
    sources = ", ".join(str(source.path) for source in run.inputs)
    lines = [
        f"sources   {sources}",
        f"recipe    {run.recipe.name} ({', '.join(s.transform for s in run.recipe.steps())})",
        f"seed      {request.seed}, copies {request.copies}, language {request.lang}",
        f"columns   {', '.join(f'{k}={v}' for k, v in vars(request.columns).items() if v)}",
        f"shards    of {request.rows_per_shard:,} rows",
    ]
    return "\n".join([*lines, "nothing is written; the first rows would become:"])
