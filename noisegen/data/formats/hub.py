"""Data sets of the Hugging Face Hub, streamed by the package `datasets`."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from noisegen.data.files import first_line
from noisegen.data.formats.base import Format, Tables, conform, plain_schema
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import ROWS, with_reasons
from noisegen.errors import SourceError, naming_extras


def hf_tables(spec: str) -> Iterator[pa.Table]:
    """Yield the rows of hf:NAME[:CONFIG][:SPLIT] in tables; raises SourceError.

    A word train, validation or test right after the name is the split. The default split is train.
    """
    with naming_extras("datasets"):
        import datasets
    name, *options = spec.removeprefix("hf:").split(":")
    if options and options[0].partition("[")[0] in ("train", "validation", "test"):
        options.insert(0, "")
    config, split = (*options, "", "")[:2]
    if name in datasets.packaged_modules._PACKAGED_DATASETS_MODULES:
        raise SourceError(f"{spec}: {name} is a format, not a dataset; name the files themselves")
    try:
        data = datasets.load_dataset(name, config or None, split=split or "train", streaming=True)
        yield from data.with_format("arrow").iter(batch_size=ROWS)
    except Exception as error:  # the data set's code, or the network, may raise any exception
        raise SourceError(f"cannot read {spec}: {first_line(error)}") from error


def _head(file: FileRange, beginning: bytes, columns: Columns) -> FileRange | None:
    first = next(hf_tables(file.path), None)
    return None if first is None else replace(file, schema=plain_schema(first.schema, columns))


def _tables(file: FileRange, columns: Columns, batch_bytes: int) -> Tables:
    return conform(map(with_reasons, hf_tables(file.path)), file)


HUB = Format(name="hf", endings=(), head=_head, tables=_tables, is_text=False)
