"""Estimate of the output and the time of a mining run, by mining its largest task for a second."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from noisegen.mining.mine import LAYOUT, mine_task
from noisegen.mining.miner import Miner, SentencePair, Tally, Task
from noisegen.mining.miner_options import Work
from noisegen.runs.estimate import SAMPLE_SECONDS, RunEstimate
from noisegen.runs.progress import BYTES
from noisegen.text.segmentation import Language


@dataclass
class _Stopwatch:
    """Wrapper of a miner that stops it a second after its first pair, to measure its speed.

    `start` is the number of seconds until the first pair: the miner loads models in this time.
    `seconds` is the time after that, and `read` the number of input bytes that were read by then.
    """

    miner: Miner
    kind: str
    language: Language
    start: float = 0.0
    seconds: float = 0.0
    read: int = 0
    pairs: int = 0

    def __call__(self, task: Task, tally: Tally) -> Iterator[SentencePair]:
        """Yield pairs of the task; stop about a second after the first pair."""
        called = began = time.perf_counter()
        for pair in self.miner(task, tally):
            now = time.perf_counter()
            if not self.pairs:
                self.start, began = now - called, now
            if tally.input[BYTES] > self.read > 0 and now - began > SAMPLE_SECONDS:
                break  # at the start of a new block of input: only whole blocks are measured
            self.pairs += 1
            self.read, self.seconds = tally.input[BYTES], now - began
            yield pair
        else:
            self.read, self.seconds = tally.input[BYTES], time.perf_counter() - began


def estimate(work: Work, workers: int) -> RunEstimate | None:
    """Return the estimate of a run; None if the size of its input is unknown.

    The output size counts pairs and word counts, but not the dictionary.
    """
    sizes = work.sizes()
    if not all(sizes.values()):
        return None
    largest = max(work.tasks, key=lambda task: sizes[task.number])
    watch = _Stopwatch(work.miner, work.miner.kind, work.miner.language)
    with TemporaryDirectory() as folder:
        out = Path(folder)
        for name in LAYOUT.parts:
            (out / name).parent.mkdir()
        mine_task(out, cast(Miner, watch), False, largest)
        written = sum(path.stat().st_size for name in LAYOUT.parts for path in out.glob(name))
    if not watch.read:
        return None
    total, at_once = sum(sizes.values()), min(workers, len(work.tasks))
    read = min(watch.read, sizes[largest.number])
    times, rate = total / read, read / watch.seconds
    bytes_per_worker = max(total / at_once, sizes[largest.number])
    return RunEstimate(
        input=total,
        input_unit=BYTES,
        exact=True,
        made=round(watch.pairs * times),
        unit="pairs",
        shards=len(work.tasks),
        bytes=round(written * times),
        workers=at_once,
        rate=rate,
        seconds=watch.start + bytes_per_worker / rate,
    )
