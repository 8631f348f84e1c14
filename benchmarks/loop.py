"""Noise in a training loop: small batches of strings, beside nlpaug, textnoisr and glitchlings.

The peers make typing slips, misspellings or substituted characters, one kind each; `ugc` mixes the
noise of posts. The second part compares noise made ahead for batches with the engine on blocks.
"""

import random
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec

from benchmarks import inputs, peers
from benchmarks.measure import REPEATS, Result, Skipped, Target, best, cpu, report
from noisegen.augmentation.noisy_dataset import NoisyDataset
from noisegen.augmentation.on_the_fly import Collator, Mapper

BATCHES = {1: 3_000, 16: None, 64: 20_000, 256: None, 8_192: None}  # rows: rows a CPU second wanted
ROWS = {1: 1_000, 16: 4_000, 64: 8_000, 256: 8_192, 8_192: 16_384}  # measured at once
RECIPE = "ugc"
BATCH, BLOCK, AHEAD = 64, 8_192, 65_536  # rows: of a batch, of a block, of an epoch


def results(rows: int) -> Iterator[Result | Skipped]:
    """Measure Mapper and Collator with `ugc` by size of batch, against the fastest peer here."""
    texts = inputs.texts(max(rows, max(ROWS.values()))).to_pylist()
    random.Random(1).shuffle(texts)
    others = _peers(texts[:500]) or {"a copy": _speed(_copy, texts, 64)}
    (name, other), *slower = sorted(others.items(), key=lambda peer: -peer[1])
    note = ", ".join(f"{peer}: {speed:,.0f}" for peer, speed in slower)
    for size, wanted in BATCHES.items():
        target = Target(">=", wanted, "ours") if wanted else None
        for way, noiser in (("Mapper", _mapper()), ("Collator", _collator())):
            noiser(texts[:64], 0)  # loads the lexicons
            speed = _speed(noiser, texts[: ROWS[size]], size)
            yield Result(f"{way}, batches of {size}", speed, other, "rows/s", name, target, note)
    for package, peer, _, _ in peers.PEERS:
        if not find_spec(package):
            yield Skipped(f"{RECIPE} against {peer}", f"{package} is not installed")
    yield from _ahead(inputs.texts(AHEAD).to_pylist(), f"{name}: {other:,.0f}, {note}")


def _ahead(texts: list[str], note: str) -> Iterator[Result]:
    """Measure NoisyDataset in batches of 64 against the engine on blocks, in new epochs."""
    random.Random(1).shuffle(texts)
    rows, mapper = [{"text": text} for text in texts], _mapper()
    in_order = list(range(len(rows)))
    shuffled = random.Random(2).sample(in_order, len(rows))

    def engine() -> None:
        for first in range(0, len(texts), BLOCK):
            mapper(texts[first : first + BLOCK], first)

    jobs = {
        "engine": cpu(engine),
        "in order": _epochs(NoisyDataset(rows, recipe=RECIPE, seed=7), in_order),
        "in random order": _epochs(NoisyDataset(rows, recipe=RECIPE, seed=7), shuffled),
        "a stream": _epochs(NoisyDataset(_Stream(rows), recipe=RECIPE, seed=7), None),
    }
    seconds = best(jobs)
    block = len(texts) / seconds.pop("engine")
    for order, spent in seconds.items():
        speed, than = len(texts) / spent, f"the engine on blocks of {BLOCK:,}"
        name = f"NoisyDataset, batches of {BATCH}, {order}"
        yield Result(name, speed, block, "rows/s", than, Target(">=", 0.6), note)


class _Stream:
    """Rows that can only be iterated."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[dict[str, str]]:
        return iter(self.rows)


def _epochs(dataset: NoisyDataset, order: list[int] | None) -> Callable[[], float]:
    """Return a job that reads one new epoch, in the order of these indices or of a stream."""

    def work() -> None:
        dataset.set_epoch(dataset.epoch + 1)
        if order is None:
            for _ in dataset:
                pass
            return
        for first in range(0, len(order), BATCH):
            dataset.__getitems__(order[first : first + BATCH])

    return cpu(work)


def _speed(noiser: Callable[[list[str], int], object], texts: list[str], size: int) -> float:
    """Return the rows per CPU second, the best of a few runs."""

    def work() -> None:
        for first in range(0, len(texts), size):
            noiser(texts[first : first + size], first)

    return len(texts) / min(cpu(work)() for _ in range(REPEATS))


def _mapper() -> Callable[[list[str], int], object]:
    mapper = Mapper(RECIPE, seed=7)
    return lambda texts, first: mapper.noise(texts, range(first, first + len(texts)))


def _collator() -> Callable[[list[str], int], object]:
    collator = Collator(RECIPE, seed=7)
    return lambda texts, first: collator(
        [{"id": number, "text": text} for number, text in enumerate(texts, first)]
    )


def _peers(texts: list[str]) -> dict[str, float]:
    """Return the rows per CPU second of each peer here; they take a text at a time."""
    noisers = {name: make() for package, name, make, _ in peers.PEERS if find_spec(package)}
    return {name: _speed(partial(_batch, noiser), texts, 64) for name, noiser in noisers.items()}


def _batch(noiser: peers.Noiser, texts: list[str], _: int) -> list[str]:
    return noiser(texts)


def _copy(texts: list[str], _: int) -> list[str]:
    return [text[:1] + text[1:] for text in texts]


if __name__ == "__main__":
    report(results)
