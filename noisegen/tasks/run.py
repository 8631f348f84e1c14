"""`evaluate-task`: models fine-tuned on a task, tested clean and noisy, and a folder of figures."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import OutputError, UsageError
from noisegen.evaluation.models import Named, named_models, opened
from noisegen.keyword_options import request_of
from noisegen.recipe import Recipe
from noisegen.run_folder import make
from noisegen.tasks.kinds import FINE_TUNING, SEEDS
from noisegen.tasks.noising import augmented
from noisegen.tasks.pieces import piece_tokenizer
from noisegen.tasks.reading import TaskData, known_task, read_data
from noisegen.tasks.results import TaskResults, write
from noisegen.tasks.rows import Row, spread
from noisegen.tasks.scores import Figure, figures
from noisegen.tasks.trial import Trial
from noisegen.tasks.tuning import Tuning
from noisegen.training.workers import join_workers
from noisegen.version import __version__

Tick = Callable[[str, int, int], None]  # what is done, how many rows, of how many (0: unknown)
FAST_EPOCHS, FAST_ROWS = 3.0, 4_000
AUGMENTED = "+t"  # behind the name of a model with task-time augmentation, as in RCP's tables


@dataclass(frozen=True)
class Request:
    """What a user wants; every field is an option of the command.

    `test` has LANG=CLEAN or LANG=CLEAN,NOISY; the recipe `noise` makes noisy sides where there are
    none. With the recipe `augment` every model is also trained on data that it made larger. What
    is None is RCP's for the corpus whose format the data has: `kinds.FINE_TUNING`. `fast` is a few
    epochs on some rows, to see that all works.
    """

    train: str
    test: Sequence[str]
    task: str = "intent-slots"
    lang: str = "en"
    seeds: int = 3
    augment: str | None = None
    noise: str | None = None
    epochs: float | None = None
    growth: float | None = None
    lr: float | None = None
    max_length: int | None = None
    batch_tokens: int = 512
    fast: bool = False
    device: str = "auto"

    def __post_init__(self) -> None:
        if isinstance(self.test, str):  # one alone may be given as it is
            object.__setattr__(self, "test", (self.test,))
        if not 1 <= self.seeds <= len(SEEDS):
            raise UsageError(
                f"--seeds {self.seeds} is not from 1 to {len(SEEDS)}, as many as RCP's"
            )
        for name in ("epochs", "lr", "max_length", "batch_tokens"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"--{name.replace('_', '-')} {value} is not above 0 and finite")
        if self.growth is not None and not 1 <= self.growth <= 100:
            raise UsageError(f"--growth {self.growth} is not from 1 to 100")


@dataclass(frozen=True)
class Variant:
    """A way to train: the rows, and how; `suffix` goes behind the model's name."""

    suffix: str
    rows: list[Row]
    tuning: Tuning


def evaluate_task(
    models: Sequence[str],
    out: str | Path,
    *,
    force: bool = False,
    progress: Tick | None = None,
    **options: Any,
) -> TaskResults:
    """Fine-tune models on labelled data, test them in other languages, write the figures.

    `models` are SPECs, or NAME=SPEC; `options` are the fields of `Request`. The weights after the
    last epoch count: no development data chooses among epochs, and RCP does not say how it chose.
    Writes metrics.json, metrics.csv and results.json, in a folder that is not empty with `force`
    alone. Raises NoisegenError.
    """
    began = time.monotonic()
    request, out = request_of(Request, options, "evaluate_task"), Path(out)
    task, device = known_task(request.task), join_workers(request.device).device
    recipe = Recipe.named(request.augment) if request.augment else None
    models = [models] if isinstance(models, str) else list(models)
    chosen = named_models(models, next(iter(models), None))
    if make(out) and not force:
        raise OutputError(f"{out} is not empty; add --force to replace the figures in it")
    tick = progress or (lambda what, done, total: None)
    notes = []
    for model in chosen:  # a wrong SPEC shows before minutes of work on the others
        tick(f"opening {model.name}", 0, 0)
        notes += _left_out(model, _trainable(model))
    tick("reading", 0, 0)
    data = read_data(task, request.train, request.test, lang=request.lang, noise=request.noise)
    data.notes += notes
    variants = _variants(data, request, recipe)
    work = _Work(data, request.seeds, device, tick, len(chosen), variants)
    found: list[Figure] = []
    for model in chosen:
        found += work.measure(model)
        told = _settings(request, chosen, data, variants, time.monotonic() - began)
        results = TaskResults(task, tuple(found), told)
        write(results, out)  # so that a stop leaves what the models before it gave
    return results


def _trainable(model: Named) -> SentenceEncoder:
    found = opened(model)
    if not isinstance(found, SentenceEncoder):
        raise UsageError(f"model {model.name} cannot be fine-tuned: give a Hugging Face folder")
    piece_tokenizer(found.tokenizer, model.name)
    return found


def _left_out(model: Named, encoder: SentenceEncoder) -> list[str]:
    """Return what people must know of a model whose vectors are not those of its network."""
    if encoder.head.projection is None:
        return []
    place = "before" if encoder.head.settings.place == "before" else "after"
    return [
        f"{model.name}: its projection {place} pooling is left out: token states are what is "
        "fine-tuned"
    ]


def _variants(data: TaskData, request: Request, recipe: Recipe | None) -> list[Variant]:
    """Return plain training, and with a recipe also that on more data."""
    paper = FINE_TUNING[data.corpus]
    rows = spread(data.training, FAST_ROWS) if request.fast else data.training
    tuning = Tuning(
        epochs=request.epochs or (min(FAST_EPOCHS, paper.epochs) if request.fast else paper.epochs),
        lr=request.lr or paper.lr,
        max_length=request.max_length or paper.max_length,
        batch_tokens=request.batch_tokens,
    )
    made = [Variant("", rows, tuning)]
    if recipe is not None:
        growth = request.growth or paper.growth
        more = augmented(rows, recipe, growth, lang=request.lang)
        share = paper.epochs_augmented / paper.epochs
        shorter = tuning.epochs if request.epochs else tuning.epochs * share
        made.append(Variant(AUGMENTED, more, replace(tuning, epochs=shorter)))
    return made


@dataclass
class _Work:
    """What is to be done, and how much of it was: rows read to train and test, of all models."""

    data: TaskData
    seeds: int
    device: torch.device
    tick: Tick
    models: int
    variants: Sequence[Variant]
    done: int = 0

    def measure(self, model: Named) -> list[Figure]:
        """Fine-tune a model in all ways with all seeds; return its figures."""
        made: list[Figure] = []
        encoder = _trainable(model)
        for variant in self.variants:
            name = f"{model.name}{variant.suffix}"
            self.tick(f"{name}: tokenising", self.done, self._rows)
            trial = Trial(encoder, self.data, variant.rows, variant.tuning.max_length)
            if not variant.suffix:  # the same rows are tested in all ways
                self.data.notes += [f"{model.name}: {told}" for told in trial.cut_off()]
            measured = []
            for seed in SEEDS[: self.seeds]:
                tuning = replace(variant.tuning, seed=seed)
                measured.append(trial.run(tuning, self.device, self._step(f"{name}, seed {seed}")))
            made += figures(name, measured)
        return made

    def _step(self, what: str) -> Callable[[int], None]:
        def step(rows: int) -> None:
            self.done += rows
            self.tick(what, self.done, max(self._rows, self.done))

        return step

    @property
    def _rows(self) -> int:
        """How many rows are read in all."""
        tested = sum(1 for _ in self.data.tested())
        once = sum(round(one.tuning.epochs * len(one.rows)) + tested for one in self.variants)
        return once * self.seeds * self.models


def _settings(
    request: Request, chosen: Sequence[Named], data: TaskData, variants: Sequence[Variant],
    seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """Return what results.json says besides the figures."""
    return {
        **asdict(request), "test": list(request.test), "corpus": data.corpus,
        "models": {model.name: model.spec for model in chosen},
        "seeds": list(SEEDS[: request.seeds]),
        "training": [
            {"suffix": one.suffix, "rows": len(one.rows), **_of(one.tuning)} for one in variants
        ],
        "rows": {t.lang: {side: len(rows) for side, rows in t.sides.items()} for t in data.tests},
        "notes": data.notes, "damaged": data.damaged, "seconds": round(seconds, 1),
        "versions": {"noisegen": __version__, "torch": str(torch.__version__)},
    }  # fmt: skip


def _of(tuning: Tuning) -> dict[str, Any]:
    return {name: value for name, value in asdict(tuning).items() if name != "seed"}
