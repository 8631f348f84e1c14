"""`augment`: sources in, a folder of clean/noisy shards with manifest and dataset card out."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from noisegen import executors, folder
from noisegen.manifest import Manifest, Shard
from noisegen.request import Request, Run, prepare
from noisegen.run_folder import check_options, remove_temporary
from noisegen.shards import make_shard
from noisegen.sources import Task

Progress = Callable[[Shard], None]


def augment(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    workers: int = 1,
    executor: str = "processes",
    part: str | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    command: str | None = None,
    **options: Any,
) -> Manifest:
    """Write clean/noisy pairs of `sources` to `out` as Parquet shards and return the manifest.

    `options` are the fields of `Request`: recipe, transforms, seed, copies, lang, text_column,
    id_column, tokens, labels, protect, edits, rows_per_shard, limit, code, nlaug_data, tagger,
    values. `part` 'I/N' makes every N-th shard beginning with the I-th. With several `workers` a
    script must call it below `if __name__ == "__main__":`. Raises NoisegenError.
    """
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    request = Request(tuple(map(str, given)), **options)
    return carry_out(
        prepare(request, Path(out)), workers=workers, executor=executor, part=part, resume=resume,
        force=force, progress=progress, command=command or request.command(out),
    )  # fmt: skip


def carry_out(
    run: Run, *, workers: int, executor: str, part: str | None, resume: bool, force: bool,
    progress: Progress | None, command: str,
) -> Manifest:  # fmt: skip
    """Make the shards that are missing and write manifest and card."""
    mine = check_options(workers, executor, part, resume, force)
    planned = run.tasks()
    first = next(planned)  # so that a source that cannot be read leaves the folder alone
    done = folder.open_folder(run, mine, resume=resume or part is not None, force=force)
    missing = (
        task
        for task in chain([first], planned)
        if task.number % mine[1] == mine[0] and not _is_done(done.get(task.number), task)
    )
    made: dict[str, Shard] = {}
    try:
        with closing(executors.run(partial(make_shard, run.job), missing, executor, workers)) as it:
            for shard in it:
                made[shard.file] = shard
                if progress:
                    progress(shard)
    finally:
        remove_temporary(run.job.out, mine, folder.NOTES)
    return (folder.is_finished(run) if not made else None) or folder.finish(run, command, made)


def _is_done(shard: Shard | None, task: Task) -> bool:
    return shard is not None and (shard.first_row, shard.rows_in) == (task.first_row, task.rows)


def cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
