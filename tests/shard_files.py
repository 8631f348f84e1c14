"""Shards as `noisegen augment` writes them, small and known."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = [
    {"clean": "see you tomorrow", "noisy": "c u tomorrow", "transforms": ["abr1"]},
    {"clean": "at the station", "noisy": "at thestation", "transforms": ["spac"]},
    {"clean": "nothing here", "noisy": "nothing here", "transforms": ["spac"]},
    {"clean": "two at once", "noisy": "tw0 at on ce", "transforms": ["leet", "spac"]},
    {"clean": "quiet", "noisy": "quiet", "transforms": []},
]
EDITS = [
    [("abr1", 0, 3, 0, 1), ("abr1", 4, 7, 2, 3)],
    [("spac", 6, 7, 6, 6)],
    [],
    [("leet", 2, 3, 2, 3), ("leet+spac", 9, 9, 9, 10)],
    None,
]
SPAN = ("transform", "clean_start", "clean_end", "noisy_start", "noisy_end")
EDITS_TYPE = pa.list_(
    pa.struct([(SPAN[0], pa.string()), *((name, pa.int32()) for name in SPAN[1:])])
)

TWELVE = "abr1 abr2 abr3 cont dysl fing homo leet slng spac spel week".split()  # noqa: SIM905
MIX_ALL = json.dumps(
    {"recipe": {"name": "mix_all", "steps": [{"shuffle": [{name: {"p": 0.1}} for name in TWELVE]}]}}
)


def shard(folder: Path, rows: list[dict[str, Any]], number: int = 0, **more: pa.Array) -> Path:
    columns = {
        "id": pa.array(range(len(rows)), pa.int64()),
        "clean": pa.array([row["clean"] for row in rows], pa.string()),
        "noisy": pa.array([row["noisy"] for row in rows], pa.string()),
        "transforms": pa.array([row["transforms"] for row in rows], pa.list_(pa.string())),
    }
    (folder / "data").mkdir(exist_ok=True)
    pq.write_table(pa.table(columns | more), folder / "data" / f"part-{number:05d}.parquet")
    return folder


def edits_column() -> pa.Array:
    spans = [edits and [dict(zip(SPAN, edit, strict=True)) for edit in edits] for edits in EDITS]
    return pa.array(spans, EDITS_TYPE)
