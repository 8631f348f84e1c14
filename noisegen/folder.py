"""The output folder: may it be written, which shards are there to keep, manifest and card last."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from noisegen import manifest
from noisegen.atomic import file_digest, remove, write_text
from noisegen.card import card
from noisegen.draws import mix_array
from noisegen.errors import OutputError
from noisegen.ids import id_numbers
from noisegen.manifest import Manifest, Shard
from noisegen.request import Run
from noisegen.run_folder import (
    Part,
    agree,
    known_digests,
    make,
    number_of,
    refuse_full,
    remove_temporary,
)
from noisegen.shards import is_parquet, read_note

SHARDS = "part-*.parquet"
NOTES = ("manifest.json", "README.md")
OURS = tuple(pattern for name in (SHARDS, *NOTES) for pattern in (name, f"{name}.*.tmp"))
IDS_AT_ONCE = 4_000_000  # held in memory while duplicate ids are counted: 32 MB


def open_folder(run: Run, part: Part, *, resume: bool, force: bool) -> dict[int, Shard]:
    """Make the folder or check what is in it; return the shards that are there to keep.

    Raises OutputError for a folder that cannot be written, or holds something else.
    """
    out = run.job.out
    _refuse_inputs(run)
    present = make(out)
    if force:
        _refuse_foreign(out)
        remove(*(path for pattern in OURS for path in out.glob(pattern)))
        return {}
    if present and not resume:
        refuse_full(out)
    _earlier(run)
    done = dict(_shards(run))
    remove_temporary(out, part, NOTES)
    return done


def _refuse_inputs(run: Run) -> None:
    """Never take a file for a shard that a run reads."""
    for item in run.inputs:
        if Path(item.path).parent == run.job.out and number_of(Path(item.path)) is not None:
            raise OutputError(f"{item.path} is an input, and its name one of the output: use -o")


def _refuse_foreign(out: Path) -> None:
    """Never write over a file whose name is one of ours and whose content is not."""
    for path in (*out.glob(SHARDS), out / "manifest.json", out / "README.md"):
        if path.is_file() and not _is_ours(path):
            raise OutputError(f"noisegen did not write {path}; move it, or use another folder")


def _is_ours(path: Path) -> bool:
    """Tell whether an earlier run wrote a file; of shards also one that is damaged."""
    if path.suffix == ".parquet":
        return read_note(path) is not None or (number_of(path) is not None and not is_parquet(path))
    text = path.read_text("utf-8", errors="replace")
    return '"recipe_digest"' in text if path.suffix == ".json" else "made with noisegen" in text


def _shards(run: Run) -> Iterator[tuple[int, Shard]]:
    """Yield the finished shards in their order; raises OutputError for what is none of this run."""
    found = {number_of(path): path for path in run.job.out.glob(SHARDS)}
    if None in found:
        raise OutputError(f"{found[None]} is no shard of this run: use another folder")
    for number, path in sorted((number or 0, path) for number, path in found.items()):
        note = read_note(path)
        if note is not None:
            agree(run.job.out, json.loads(note[0]), run.config)
            yield number, note[1]
        elif is_parquet(path):
            raise OutputError(f"{path} was not made by this program: use another folder")


def _earlier(run: Run) -> Manifest | None:
    """Return the manifest in the folder; raises OutputError for one of another configuration."""
    path = run.job.out / "manifest.json"
    if not path.exists():
        return None
    found = Manifest.load(path)
    agree(run.job.out, {name: getattr(found, name) for name in run.config}, run.config)
    return found


def is_finished(run: Run) -> Manifest | None:
    """Return the manifest in the folder if it lists just the shards that are there."""
    found = _earlier(run)
    if found is None or not (run.job.out / "README.md").exists():
        return None
    shards = [(shard.file, shard.rows) for _, shard in _shards(run)]
    return found if [(one["file"], one["rows"]) for one in found.shards] == shards else None


def finish(run: Run, command: str, made: Mapping[str, Shard]) -> Manifest:
    """Write manifest and card for the shards present; again if another part added some."""
    out = run.job.out
    while True:
        shards = [shard for _, shard in _shards(run)]
        listed = _listed(out, shards, _digests(run) | {n: s.sha256 for n, s in made.items()})
        duplicates = duplicate_ids(run, shards) if run.request.id_column else 0
        written = Manifest(
            command=command, shards=listed, totals=manifest.totals(shards, duplicates),
            packages=manifest.packages(), **run.config,
        )  # fmt: skip
        write_text(out / "manifest.json", written.to_json())
        write_text(out / "README.md", card(written))
        if [shard.file for _, shard in _shards(run)] == [shard.file for shard in shards]:
            return written


def _digests(run: Run) -> dict[str, str]:
    """Return the digests of the last manifest, of the shards that are not newer than it."""
    found = _earlier(run)
    return known_digests(run.job.out, found.shards) if found else {}


def _listed(out: Path, shards: list[Shard], digests: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "file": shard.file,
            "rows": shard.rows,
            "changed": shard.changed,
            "sha256": digests.get(shard.file) or file_digest(out / shard.file),
        }
        for shard in shards
    ]


def duplicate_ids(run: Run, shards: list[Shard]) -> int:
    """Count the rows whose id an earlier row has, in bounded memory."""
    paths = [run.job.out / shard.file for shard in shards]
    copies = run.request.copies
    passes = sum(shard.rows for shard in shards) // copies // IDS_AT_ONCE + 1
    return sum(_repeated(paths, copies, number, passes) for number in range(passes))


def _repeated(paths: list[Path], copies: int, number: int, passes: int) -> int:
    parts = [np.zeros(0, np.uint64)]
    for path in paths:
        with pq.ParquetFile(path) as file:
            table = file.read(["id", "copy"] if copies > 1 else ["id"])
        if copies > 1:
            table = table.filter(table["copy"].to_numpy() == 0)
        ids = id_numbers(table["id"].combine_chunks())
        parts.append(ids if passes == 1 else ids[mix_array(ids) % np.uint64(passes) == number])
    ids = np.sort(np.concatenate(parts))
    return int(np.count_nonzero(ids[1:] == ids[:-1]))
