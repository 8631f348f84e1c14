"""Pairs, batches and losses for SentenceTransformerTrainer of sentence-transformers.

`noisy_pairs` makes the datasets, `TokenBudget` is a `batch_sampler`, `StudentLoss` is a loss.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Sampler

from noisegen.encoders.encoder import LENGTH_MAX, find_device, open_encoder
from noisegen.encoders.sentence_encoder import encoding_on
from noisegen.encoders.tokens import PieceTokenizer, Rows, plan
from noisegen.errors import UsageError, naming_extras
from noisegen.options import Strings, decode, option, public
from noisegen.text.resources import cache_folder
from noisegen.training.losses import TEMPERATURE, Batch, Output
from noisegen.training.objectives import WeightedSum
from noisegen.training.pairs import (
    PIECE_ROWS,
    VALIDATION_EPOCH,
    NoiseSource,
    PairData,
    Reading,
    prepare_data,
)
from noisegen.training.stores import TeacherVectors, teacher_vectors

SPARE = 0.02  # share added to the first epoch's number of batches, since noise changes lengths
_WIDER = 1.01  # factor by which the token budget grows while an epoch has too many batches


class Datasets(NamedTuple):
    """Pairs to train on, and held-out pairs, each as a `datasets.Dataset`."""

    training: Any
    validation: Any


@dataclass(frozen=True)
class NoisyPairsOptions:
    """Options of `noisy_pairs`."""

    data: Annotated[Strings, option("Sources, as for `noisegen train`")]
    folder: Annotated[str | Path, option("Folder for the texts read from the data")]
    teacher: Annotated[str, option("SPEC of the teacher")] = "minilm"
    recipe: Annotated[str, option("Noisy side, as for `noisegen train`")] = "stored"
    lang: Annotated[str, option("Language of clean text")] = "en"
    held_out: Annotated[int, option("Maximum held-out pairs", ge=1)] = 500
    both_sides: Annotated[
        bool, option("Whether to have the column clean, for objectives that encode it")
    ] = True
    seed: Annotated[int, option("Seed of the noise and of the choice of held-out pairs", ge=0)] = 0


@public
def noisy_pairs(
    data: Strings,
    folder: str | Path,
    teacher: str = "minilm",
    recipe: str = "stored",
    lang: str = "en",
    held_out: int = 500,
    both_sides: bool = True,
    seed: int = 0,
) -> Datasets:
    """Return datasets with the columns noisy, clean and label (the teacher's vector of clean).

    The datasets store only indices of pairs: texts and vectors stay in memory-mapped files.
    Recipes draw new noise in every epoch. Raises UsageError, SourceError, OutputError,
    MissingExtra.
    """
    return _noisy_pairs(decode(NoisyPairsOptions, locals()))


def _noisy_pairs(options: NoisyPairsOptions) -> Datasets:
    """Run `noisy_pairs` with its decoded options."""
    with naming_extras():
        from datasets import Dataset
    lang, seed = options.lang, options.seed
    source = NoiseSource(options.recipe, seed, lang)
    reading = Reading(not source.is_stored, lang, held_out=options.held_out, seed=seed)
    pairs = prepare_data(Path(options.folder), cast(tuple[str, ...], options.data), reading)
    source.check(pairs)
    teacher = open_encoder(options.teacher)
    with encoding_on(find_device("auto"), teacher, "fp32"):
        vectors = teacher_vectors(teacher, pairs.clean, cache_folder() / "vectors")

    def dataset(rows: Rows, *, is_fixed: bool) -> Any:
        epoch = torch.tensor(VALIDATION_EPOCH if is_fixed else 0)
        texts = PairTexts(pairs, source, vectors, options.both_sides, is_fixed, epoch)
        return Dataset.from_dict({"pair": rows}).with_transform(texts)

    return Datasets(
        dataset(pairs.training, is_fixed=False), dataset(pairs.validation, is_fixed=True)
    )


@dataclass
class PairTexts:
    """Transform of a dataset: maps indices of pairs to noisy texts, clean texts and vectors.

    The vectors are the teacher's vectors of the clean texts. Noise depends on the epoch that
    `set_epoch` sets; with `is_fixed` it stays the same. The epoch is in shared memory, so that
    the loader's processes see the change. If `both_sides` is false, clean texts are left out.
    """

    data: PairData
    noise: NoiseSource
    vectors: TeacherVectors
    both_sides: bool
    is_fixed: bool
    epoch: Tensor

    def __post_init__(self) -> None:
        self.epoch.share_memory_()  # type: ignore[no-untyped-call]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def set_epoch(self, epoch: int) -> None:
        """Draw the noise of this epoch from now on; does nothing if the epoch is fixed."""
        if not self.is_fixed:
            self.epoch.fill_(epoch)

    def __call__(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        """Return the columns noisy, clean and label of pairs; `batch["pair"]` has their indices."""
        rows = np.asarray(batch["pair"], np.int64)
        owners = self.data.owner[rows]
        columns: dict[str, Any] = {"noisy": self.noise.noisy(self.data, rows, int(self.epoch))}
        if self.both_sides:
            columns["clean"] = self.data.clean.take(owners).to_pylist()
        return {**columns, "label": list(torch.from_numpy(self.vectors.take(owners)))}


@dataclass(frozen=True)
class TokenBudget:
    """A `batch_sampler` for SentenceTransformerTrainingArguments that limits tokens per batch.

    Each text column of a batch has at most `tokens` tokens, padding included. The dataset may have
    any columns of text. `per_device_train_batch_size` and `drop_last` are ignored. Several
    processes are not supported.
    """

    tokenizer: PieceTokenizer
    tokens: int = 2048

    @classmethod
    def of(cls, model: Any, tokens: int = 2048) -> "TokenBudget":
        """Return a budget of `tokens`, which the tokenizer of a SentenceTransformer counts.

        Raises ValueError for a tokenizer without tokenizer.json.
        """
        return cls(PieceTokenizer(model.tokenizer, model.max_seq_length or LENGTH_MAX), tokens)

    def __call__(self, dataset: Any, *, seed: int = 0, **_: object) -> "BudgetedBatches":
        """Return the batches of a dataset; raises UsageError if several processes train."""
        if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
            raise UsageError("TokenBudget supports one process only: use noisegen train")
        return BudgetedBatches(dataset, self, seed)


class BudgetedBatches(Sampler[list[int]]):
    """Batches of rows of similar length, each row once per epoch; seed and epoch determine them.

    A text column of a batch has at most `budget.tokens` tokens, padding included. The Trainer
    expects the same number of batches in every epoch, but noise changes lengths. So all epochs get
    the number that the first epoch needs, plus the share `SPARE`. If an epoch needs fewer batches,
    its largest are halved; if it needs more, its batches may have more tokens.
    """

    def __init__(self, dataset: Any, budget: TokenBudget, seed: int) -> None:
        self.dataset, self.budget, self.seed, self.epoch = dataset, budget, seed, -1
        self.set_epoch(0)
        first = len(self._plan(budget.tokens))
        self._count = min(len(dataset), first + int(first * SPARE) + 1)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of batches and noise, and count the tokens of the new noisy texts."""
        if epoch == self.epoch:
            return
        self.epoch = epoch
        transform = self.dataset.format["format_kwargs"].get("transform")
        if hasattr(transform, "set_epoch"):
            transform.set_epoch(epoch)
        lengths = []  # token counts, shape (rows, text columns)
        for first in range(0, len(self.dataset), PIECE_ROWS):
            columns = self.dataset[first : first + PIECE_ROWS].values()
            texts = [column for column in columns if isinstance(column[0], str)]
            sides = [self.budget.tokenizer.tokenize(column).lengths for column in texts]
            lengths.append(np.stack(sides, 1))
        self.lengths = np.concatenate(lengths)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[list[int]]:
        tokens: float = self.budget.tokens
        batches = self._plan(int(tokens))
        while len(batches) > self._count:
            tokens *= _WIDER
            batches = self._plan(int(tokens))
        while len(batches) < self._count:
            largest = max(range(len(batches)), key=lambda at: len(batches[at]))
            batches[largest : largest + 1] = np.array_split(batches[largest], 2)
        return (batch.tolist() for batch in batches)

    def _plan(self, tokens: int) -> list[Rows]:
        steps = plan(self.lengths, tokens, self.seed, self.epoch, 0)
        return [batch for step in steps for batch in step]


class StudentLoss(nn.Module):
    """Loss for SentenceTransformerTrainer: an objective of `noisegen train`.

    The objective may be a weighted sum, such as `two_term+0.2*info_nce`. The dataset has the
    columns noisy, clean (if an objective needs it), and label (the teacher's vector). Contrastive
    objectives use only the other rows of the batch as negatives.
    """

    def __init__(
        self, model: nn.Module, objective: str = "two_term", temperature: float = TEMPERATURE
    ) -> None:
        super().__init__()
        self.model, self.name, self.temperature = model, objective, temperature
        self.objective = WeightedSum.parse(objective)

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None
    ) -> Tensor:
        """Return the weighted sum of the losses of a batch.

        Raises UsageError if the dataset lacks a column, or if the vectors of student and teacher
        differ in width.
        """
        sides = 1 + self.objective.needs("clean")
        needed = list(sentence_features)[:sides]
        if labels is None or len(needed) < sides:
            raise UsageError(f"{self.name} needs the columns noisy, clean and label")
        vectors = [self.model(side)["sentence_embedding"].float() for side in needed]
        student, teacher = vectors[0].shape[1], labels.shape[1]
        if student != teacher:
            raise UsageError(
                f"the student has {student} numbers per vector, its teacher {teacher}: add a Dense "
                "module to the model, or choose a student of the teacher's width"
            )
        batch = Batch(labels.to(vectors[0]), temperature=self.temperature)
        return self.objective(batch, Output(*vectors))[0]

    def get_config_dict(self) -> dict[str, Any]:
        """Return the name of the objective and the temperature, for the model card."""
        return {"objective": self.name, "temperature": self.temperature}
