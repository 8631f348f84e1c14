"""Compiled lexicons kept in a cache folder, by content, and memory-mapped from there."""

import json
import os
import tempfile
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.lexicon import POS, Parser, read_lexicon_file
from noisegen.phrases import ARRAYS, PhraseTable, build
from noisegen.text import as_arrow, as_numpy

FORMAT = 8  # of a compiled lexicon; raise it when a change alters what a table means


def load_table(path: Path, parser: Parser) -> PhraseTable:
    """Return the compiled lexicon of a file, from the cache if its content was compiled before."""
    content = read_lexicon_file(path)
    return cached_table(
        path.stem, content, parser.__name__, lambda: build(parser(content, str(path)))
    )


def cached_table(
    name: str, content: bytes, meant: str, make: Callable[[], PhraseTable]
) -> PhraseTable:
    """Return what `make` compiles of a content, or did before; `meant` says how it is read."""
    key = blake2b(content, digest_size=10, person=f"noisegen {FORMAT}".encode())
    key.update(meant.encode())
    cached = cache_folder() / f"{name}-{key.hexdigest()}.arrow"
    try:
        return _open(cached)
    except (OSError, ValueError, KeyError):
        table = make()
    _save(table, cached)
    return table


def cache_folder() -> Path:
    """Return the folder of compiled lexicons: NOISEGEN_CACHE, or the user's cache."""
    from platformdirs import user_cache_path

    return Path(os.environ.get("NOISEGEN_CACHE") or user_cache_path("noisegen", appauthor=False))


def _save(table: PhraseTable, path: Path) -> None:
    """Write one record: every array a list. Concurrent writers each rename a file of their own."""
    columns = [as_arrow(getattr(table, name).ravel()) for name in ARRAYS]
    lists = [
        pa.ListArray.from_arrays(as_arrow(np.array([0, len(c)], np.int32)), c) for c in columns
    ]
    note = json.dumps({"head": table.head, "words_max": table.words_max})
    batch = pa.record_batch(lists, ARRAYS).replace_schema_metadata({"noisegen": note})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file,
            pa.ipc.new_file(file, batch.schema) as writer,
        ):
            writer.write(batch)
        Path(file.name).replace(path)
    except OSError:
        return  # a read-only or full cache costs time, not correctness


def _open(path: Path) -> PhraseTable:
    batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
    note = json.loads(batch.schema.metadata[b"noisegen"])
    arrays: dict[str, Any] = {name: as_numpy(batch[name].values) for name in ARRAYS}
    arrays["groups"] = arrays["groups"].reshape(-1, len(POS))
    return PhraseTable(**arrays, **note)
