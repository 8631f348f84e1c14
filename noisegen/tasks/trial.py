"""One model on one task: tokenised once, fine-tuned with every seed, tested on every set."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.tasks.network import Examples, TaskNetwork, examples
from noisegen.tasks.pieces import (
    NO_PIECE,
    Pieces,
    cut_into_pieces,
    piece_tokenizer,
    prepared_rows,
    renumbered,
    shortened,
    vocabulary_of,
)
from noisegen.tasks.reading import CLEAN, NOISY, TaskData
from noisegen.tasks.rows import OUTSIDE, Row
from noisegen.tasks.scores import CHANGE, Measured, measure
from noisegen.tasks.tuning import Predicted, Step, Tuning, fine_tune, predict

Side = tuple[str, str]  # language, clean or noisy
Answers = dict[Side, tuple[list[str], list[list[str]]]]  # labels and tags of the rows of a side


@dataclass(frozen=True)
class Classes:
    """The labels and tags of the training data, in the order of their classes."""

    labels: list[str]
    tags: list[str]

    @classmethod
    def of(cls, data: TaskData) -> "Classes":
        """Collect them."""
        labels = sorted({row.label for row in data.training}) if data.task.has_label else []
        tags = sorted({tag for row in data.training for tag in row.tags})
        return cls(labels, tags if data.task.has_tags else [])

    def examples(self, pieces: Pieces, rows: Sequence[Row]) -> Examples:
        """Give the classes of training rows to their pieces."""
        numbers = {tag: number for number, tag in enumerate(self.tags)}
        tags = [[numbers[tag] for tag in row.tags] for row in rows]
        places = {label: number for number, label in enumerate(self.labels)}
        return examples(pieces, tags, [places.get(row.label, 0) for row in rows])

    def read(self, found: Predicted) -> tuple[list[str], list[list[str]]]:
        """Return predicted classes as labels and tags; a token without a piece is outside."""
        named = [*self.tags, OUTSIDE]  # the last is that of NO_PIECE, which is -1
        labels = [self.labels[number] for number in found.labels if number != NO_PIECE]
        return labels, [[named[number] for number in row] for row in found.tags]


class Trial:
    """A model with the rows that it is trained on and tested on, cut into its pieces."""

    def __init__(
        self, encoder: SentenceEncoder, data: TaskData, training: Sequence[Row], max_length: int
    ) -> None:
        self.encoder, self.data = encoder, data
        self.classes = Classes.of(data)
        sides = {(t.lang, side): rows for t in data.tests for side, rows in t.sides.items()}
        tokenizer = shortened(piece_tokenizer(encoder.tokenizer, encoder.name), max_length)
        self.max_length = tokenizer.max_length
        cut = [
            cut_into_pieces(tokenizer, prepared_rows(encoder.tokenizer, rows))
            for rows in (training, *sides.values())
        ]
        self.kept = vocabulary_of(cut, encoder.tokenizer.pad_id)
        first, *others = (renumbered(pieces, self.kept) for pieces in cut)
        self.training = self.classes.examples(first, training)
        self.tests = dict(zip(sides, others, strict=True))

    def cut_off(self) -> list[str]:
        """Return what to tell people of test rows that are longer than the model reads."""
        tests = self.tests.values()
        rows = sum(int(pieces.is_cut.sum()) for pieces in tests)
        if not rows:
            return []
        told = f"{rows:,} of {sum(map(len, tests)):,} test rows are cut at {self.max_length} pieces"
        if not self.classes.tags:
            return [told]
        tokens = sum(len(pieces.firsts.values) for pieces in tests)
        beyond = sum(pieces.beyond() for pieces in tests)
        return [f"{told}: {beyond:,} of {tokens:,} tokens lie beyond and are predicted as outside"]

    def network(self, device: torch.device) -> TaskNetwork:
        """Return a new network with heads drawn by torch's generator."""
        labels, tags = len(self.classes.labels), len(self.classes.tags)
        return TaskNetwork(self.encoder, self.kept, labels, tags, device)

    def run(self, tuning: Tuning, device: torch.device, step: Step) -> Measured:
        """Fine-tune with the seed of `tuning`, and measure on all sets."""
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(tuning.seed)
            network = self.network(device)
            fine_tune(network, self.training, tuning, step)
        answers = {
            key: self.classes.read(predict(network, pieces, tuning.batch_tokens, step))
            for key, pieces in self.tests.items()
        }
        return self._measured(answers)

    def _measured(self, answers: Answers) -> Measured:
        """Return the metrics of every side, and how they change from clean to noisy."""
        found = {}
        for test in self.data.tests:
            for side, rows in test.sides.items():
                found[test.lang, side] = self._of(rows, *answers[test.lang, side])
            if NOISY in test.sides and test.shared is not None:
                labels, tags = answers[test.lang, CLEAN]
                before = self._of(
                    [test.sides[CLEAN][number] for number in test.shared],
                    [labels[number] for number in test.shared] if labels else [],
                    [tags[number] for number in test.shared],
                )
                after = found[test.lang, NOISY]
                found[test.lang, CHANGE] = {k: after[k] - v for k, v in before.items()}
        return found

    def _of(
        self, rows: Sequence[Row], labels: list[str], tags: list[list[str]]
    ) -> dict[str, float]:
        return measure(self.data.task, rows, labels, tags)
