"""The folder of prepared sentences: what may be resumed, and what is written once all is found."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen import manifest, run_folder
from noisegen.atomic import atomic, file_digest, write_text, writing
from noisegen.errors import OutputError
from noisegen.preparing.candidates import (
    KINDS,
    WORK,
    Found,
    Job,
    read_note,
    schema_of,
    work_path,
)
from noisegen.preparing.deduplication import KEPT, REASONS, Codes, duplicates
from noisegen.preparing.prepared_card import card
from noisegen.shards import shard_path

OURS = ("part-*.parquet", "part-*.parquet.*.tmp", "manifest.json*", "README.md*")
MARK = '"identification"'  # in the manifest of every prepared folder


@dataclass(frozen=True)
class PreparingManifest:
    """What was asked of `prepare`, and what came out."""

    version: str
    command: str
    lang: str
    options: dict[str, Any]
    identification: str | None
    sources: list[dict[str, Any]]
    shards: list[dict[str, Any]]
    totals: dict[str, Any]
    packages: dict[str, str]

    @classmethod
    def load(cls, path: str | Path) -> "PreparingManifest":
        """Read manifest.json (or the one in a folder); raises OutputError."""
        return run_folder.load_manifest(cls, path, "a prepare run")

    def to_json(self) -> str:
        """Return the file's text."""
        return run_folder.manifest_text(self)

    def summary(self) -> str:
        """Return one line for people."""
        totals = self.totals
        checked = f"checked by {self.identification}" if self.identification else "not checked"
        parts = [
            f"{totals['kept']:,} of {totals['sentences']:,} sentences kept",
            f"{totals['rows_in']:,} rows read",
            f"language {checked}",
        ]
        for name, counts in (("dropped", totals["dropped"]), ("damaged rows", totals["damaged"])):
            if counts:
                listed = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
                parts.append(f"{name}: {listed}")
        return "; ".join(parts)


@dataclass(frozen=True)
class PreparedFolder:
    """An output folder bound to a job and its configuration."""

    job: Job
    config: dict[str, Any]

    def open(self, *, resume: bool, force: bool) -> PreparingManifest | None:
        """Make the folder or check what is in it; return the manifest if all is done.

        Raises OutputError for a folder that cannot be written, or holds something else.
        """
        out = self.job.out
        present = run_folder.make(out)
        if present and (force or resume):
            self._refuse_foreign()
        if force:
            self._remove(OURS)
        elif present and not resume:
            run_folder.refuse_full(out)
        if (made := self._finished()) is not None:
            self._remove(())
            return made
        with writing(out):
            (out / WORK).mkdir(exist_ok=True)
        self.remove_temporary()
        return None

    def refuse_inputs(self, paths: Iterable[str]) -> None:
        """Never take a file for a shard that a run reads."""
        for path in map(Path, paths):
            if path.resolve().parent == self.job.out and path.match(OURS[0]):
                raise OutputError(f"{path} is an input, and its name one of the output: use -o")

    def _refuse_foreign(self) -> None:
        """Never write over a file whose name is one of ours and whose content is not."""
        out = self.job.out
        made, shards = out / "manifest.json", sorted(out.glob(OURS[0]))
        foreign = shards if not made.exists() and not (out / WORK).is_dir() else []
        if made.exists() and MARK not in made.read_text("utf-8", errors="replace"):
            foreign = [made]
        if foreign:
            hint = "move it, or use another folder"
            raise OutputError(f"noisegen did not prepare {foreign[0]}; {hint}")

    def _remove(self, patterns: Iterable[str]) -> None:
        out = self.job.out
        with writing(out):
            for path in [path for pattern in patterns for path in out.glob(pattern)]:
                path.unlink()
            if (out / WORK).exists():
                shutil.rmtree(out / WORK)

    def remove_temporary(self) -> None:
        """Remove what a run that was cut short left half written."""
        out = self.job.out
        with writing(out):
            for path in [
                *out.glob("*.tmp"),
                *out.glob(f"{WORK}/*.tmp"),
                *out.glob(f"{WORK}/links-*"),
            ]:
                path.unlink()

    def _finished(self) -> PreparingManifest | None:
        """Return the manifest that is there if it and its shards are whole."""
        out = self.job.out
        if not (out / "manifest.json").exists():
            return None
        found = PreparingManifest.load(out)
        theirs = {name: getattr(found, name) for name in self.config}
        run_folder.agree(out, theirs, self.config)
        whole = (out / "README.md").exists() and all(
            (out / shard["file"]).exists() and file_digest(out / shard["file"]) == shard["sha256"]
            for shard in found.shards
        )
        return found if whole else None

    def done(self) -> dict[int, Found]:
        """Return the finished portions; raises OutputError for those of another configuration."""
        found = {}
        for path in sorted((self.job.out / WORK).glob("note-*.json")):
            if (note := read_note(path)) is not None:
                run_folder.agree(self.job.out, json.loads(note[0]), self.config)
                one = note[1]
                if all(work_path(self.job.out, kind, one.number).exists() for kind in KINDS):
                    found[one.number] = one
        return found

    def finish(
        self, found: Sequence[Found], similarity_min: float, command: str
    ) -> PreparingManifest:
        """Find the duplicates, write shards, manifest and card, remove what led there."""
        out, counts = self.job.out, [one.rows for one in found]
        codes = duplicates(
            out, counts, near=self.job.duplicates == "near",
            shingle=self.job.shingle, similarity_min=similarity_min,
        )  # fmt: skip
        firsts = np.concatenate(([0], np.cumsum(counts))).tolist()
        shards = [self._write(number, codes[firsts[number] : firsts[number + 1]])
                  for number in range(len(found))]  # fmt: skip
        made = PreparingManifest(
            command=command, shards=shards, totals=_totals(found, codes),
            packages=manifest.packages(), **self.config,
        )  # fmt: skip
        write_text(out / "manifest.json", made.to_json())
        write_text(out / "README.md", card(made))
        self._remove(())
        return made

    def _write(self, number: int, codes: Codes) -> dict[str, Any]:
        """Write a shard, a batch of candidates at a time."""
        path, schema = shard_path(self.job.out, number), schema_of(self.job.columns)
        order = ["id", "text", "source", "row"]
        at = rows = 0
        with atomic(path) as file, pq.ParquetWriter(
            file, pa.schema([schema.field(name) for name in order]),
            compression="zstd", use_dictionary=["source"],
        ) as to:  # fmt: skip
            source = pa.ipc.open_file(pa.memory_map(str(work_path(self.job.out, "texts", number))))
            for batch in map(source.get_batch, range(source.num_record_batches)):
                kept = batch.filter(pa.array(codes[at : at + len(batch)] == KEPT)).select(order)
                at, rows = at + len(batch), rows + len(kept)
                to.write_batch(kept)
        return {"file": path.name, "rows": rows, "sha256": file_digest(path)}


def _totals(found: Sequence[Found], codes: Codes) -> dict[str, Any]:
    dropped: Counter[str] = Counter()
    damaged: Counter[str] = Counter()
    for one in found:
        dropped.update(one.dropped)
        damaged.update(one.damaged)
    for code, reason in REASONS.items():
        if count := int(np.count_nonzero(codes == code)):
            dropped[reason] += count
    return {
        "rows_in": sum(one.rows_in for one in found),
        "sentences": sum(one.sentences for one in found),
        "kept": int(np.count_nonzero(codes == KEPT)),
        "dropped": dict(sorted(dropped.items())),
        "damaged": dict(sorted(damaged.items())),
    }
