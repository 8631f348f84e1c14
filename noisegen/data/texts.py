"""Texts of a source, read into memory."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from noisegen.data.rows import Columns
from noisegen.data.sources import expand, no_column, read, shard_ranges

AUTHOR_POSTS = 5  # posts of one author that are read as one text


def read_texts(
    sources: Sequence[str],
    column: str,
    most: int,
    dropped: Counter[str],
    group_by: str | None = None,
) -> list[str]:
    """Return the texts of sources; with `group_by`, up to `AUTHOR_POSTS` of an author joined.

    Adds the dropped rows and unread files to `dropped`, by reason.
    """
    named, columns = expand(sources), Columns.of_texts(column)
    inputs = [item for item in named if not item.skipped]
    dropped.update(["unread_file"] * (len(named) - len(inputs)))
    texts, of_author = list[str](), defaultdict[Any, list[str]](list)
    for shard in shard_ranges(inputs, columns, most, most):
        for batch in read(shard, columns):
            rows = batch.table["clean"].to_pylist()
            dropped.update(batch.dropped)
            if group_by is None:
                texts += rows
                continue
            if group_by not in batch.table.column_names:
                raise no_column(inputs[0].path, group_by, batch.table.column_names)
            for author, text in zip(batch.table[group_by].to_pylist(), rows, strict=True):
                of_author[author].append(text)
    for written in of_author.values():
        starts = range(0, len(written), AUTHOR_POSTS)
        texts += ["\n".join(written[at : at + AUTHOR_POSTS]) for at in starts]
    return [text for text in texts if text and not text.isspace()]
