"""Pairs that one core prepares per second for training: noise, tokens, batches, vectors.

Clean text gets noise `ugc`, MiniLM's tokenizer reads the noisy side, or both sides; the pairs are
planned into batches, and the teacher's vectors of each batch are gathered. Beside it stands what an
H100 needs: its bf16 peak, times the share of it that training is to use (35 % for MiniLM, 45 % for
RoBERTa-base), over the operations per pair. This is an estimate, no measurement.
"""

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from benchmarks.measure import ROWS, Result, Target, best, cpu, report
from noisegen.demo.quickstart import demo_texts
from noisegen.training.computation import Workers, flop_per_token, peak_flop_per_second
from noisegen.training.distil import Distillation, PairChunk
from noisegen.training.settings import load_settings
from noisegen.training.stores import random_vectors

PAIRS = 16_384
AIM = 20_000  # pairs per second of one core
MINILM_MFU, BASE_MFU = 0.35, 0.45
BASE_WEIGHTS, BASE_LAYERS, BASE_HIDDEN = 85_054_464, 12, 768  # RoBERTa-base without embeddings
OBJECTIVES = {"one side": "mse_sum", "both sides": "two_term"}


def results(rows: int) -> Iterator[Result]:
    """Measure objectives that read one side or both sides of a pair."""
    pairs = max(1_000, int(PAIRS * min(1, rows / ROWS)))
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        for sides, objective in OBJECTIVES.items():
            method = made_method(Path(folder) / objective, objective)
            epochs = count(1)
            prepare(method, 0, pairs)  # not timed: the tokenizer sees most words for the first time

            def work(method: Distillation = method, epochs: Iterator[int] = epochs) -> None:
                prepare(method, next(epochs), pairs)

            speed = pairs / best({sides: cpu(work)})[sides]
            chunk = prepare(method, 0, pairs)
            tokens = sum(len(side.values) for side in chunk.sides) / chunk.pairs
            yield Result(
                f"loader, ugc, {sides}", speed, AIM, "pairs/CPU s", "the aim", Target(">=", 1)
            )
            for model, needed in needs(method, tokens).items():
                what = f"an H100 training {model}"
                yield Result(f"loader, {sides}, {model}", speed, needed, "pairs/s", what)


def made_method(folder: Path, objective: str) -> Distillation:
    """Return a distillation that has read clean text, with random vectors as the teacher's."""
    folder.mkdir()
    source = folder / "text.txt"
    source.write_text("\n".join(demo_texts().training) + "\n", "utf-8")
    values = {"recipe": "ugc", "epochs": 1, "objective": objective}
    method = Distillation(load_settings("quickstart", values=values), Workers(), print)
    method.read([str(source)], folder / "data")
    method.vectors = random_vectors(len(method.pairs.clean), method.teacher.width)
    return method


def prepare(method: Distillation, epoch: int, pairs: int) -> PairChunk:
    """Prepare the first pairs of an epoch as the loader does, and gather the batches' vectors."""
    chunk = method.batched(method.pairs.training[:pairs], epoch, 0)
    for step in chunk.steps:
        for batch in step:
            method.vectors.take(chunk.owner[batch])
    return chunk


def needs(method: Distillation, tokens: float) -> dict[str, float]:
    """Return the pairs per second that an H100 needs per model, for so many tokens per pair."""
    peak = peak_flop_per_second("NVIDIA H100")
    assert peak is not None
    base = 6 * BASE_WEIGHTS + 12 * BASE_LAYERS * BASE_HIDDEN * tokens
    minilm = flop_per_token(method.network, tokens)
    return {
        "MiniLM": peak * MINILM_MFU / (minilm * tokens),
        "RoBERTa-base": peak * BASE_MFU / (base * tokens),
    }


if __name__ == "__main__":
    report(results)
