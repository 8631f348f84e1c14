"""Count results by class, and count which classes are confused.

Classes are intents, kinds of slots, kinds of names, or relations. RCP compares two models by the
number of slot kinds in which one has a higher F1, and by the classes they confuse. Counts are sums
over training seeds.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from noisegen.data.labelled import OUTSIDE, LabelledRow, tag_kind
from noisegen.evaluation.tasks.fine_tuning import Answer, Answers
from noisegen.evaluation.tasks.kinds import LabelledTask
from noisegen.evaluation.tasks.sets import TaskData

Span = tuple[str, int, int]  # kind, first token, token after the last
Test = tuple[str, str, str, str]  # model, language, 'clean' or 'noisy', metric


def spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans in a row of tags, such as ("city", 0, 2) in ["B-city", "I-city", "O"].

    A span of kind x begins at the tag B-x, and at x or I-x after O or a tag of another kind, as in
    conlleval and in seqeval's default mode. If tags have no B- and I-, each run of equal tags is a
    span.
    """
    out: list[Span] = []
    previous = OUTSIDE
    for position, tag in enumerate(tags):
        kind = tag_kind(tag)
        if kind != OUTSIDE:
            if tag[:2] == "B-" or kind != previous:
                out.append((kind, position, position + 1))
            else:
                out[-1] = (kind, out[-1][1], position + 1)
        previous = kind
    return out


@dataclass(frozen=True)
class ClassFigure:
    """Counts of one class in a test set: in the gold data, in predictions, and in both.

    Labels are counted per row, tags per span.
    """

    model: str
    lang: str
    side: str
    metric: str
    name: str
    gold: int
    predicted: int
    correct: int

    @property
    def f1(self) -> float:
        """F1 in per cent; 0 for a class that occurs in neither gold nor predictions."""
        return 200 * self.correct / max(1, self.gold + self.predicted)


@dataclass(frozen=True)
class WonClasses:
    """Comparison of a model with the first model by the F1 of each class in a test set.

    `won`, `lost` and `equal` count the classes in which its F1 is higher, lower and equal.
    """

    model: str
    lang: str
    side: str
    metric: str
    won: int = 0
    lost: int = 0
    equal: int = 0


class ClassCounts:
    """Counts of classes, and counts of (gold, predicted) pairs of classes.

    `confusion` has the pairs, counted in rows for labels and in tokens for tags.
    """

    def __init__(self) -> None:
        self.confusion: dict[Test, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._counts: dict[Test, dict[str, Counter[str]]] = defaultdict(
            lambda: defaultdict(Counter)
        )

    def add_all(self, data: TaskData, model: str, answers: Answers) -> None:
        """Count a model's predictions on both sides of all test sets."""
        for test in data.tests:
            for side, rows in test.sides.items():
                self.add(data.task, (model, test.lang, side), rows, answers[test.lang, side])

    def add(
        self,
        task: LabelledTask,
        test: tuple[str, str, str],
        rows: Iterable[LabelledRow],
        answers: Iterable[Answer],
    ) -> None:
        """Count a model's predictions on the clean or the noisy rows of a test set.

        `test` is (model, language, side); the side is 'clean' or 'noisy'.
        """
        for row, (label, tags) in zip(rows, answers, strict=True):
            if metric := task.label_metric:
                self._count((*test, metric), {(row.label, 0, 0)}, {(label, 0, 0)})
                self.confusion[*test, metric][row.label, label] += 1
            if metric := task.tag_metric:
                self._count((*test, metric), {*spans(row.tags)}, {*spans(tags)})
                kinds = zip(map(tag_kind, row.tags), map(tag_kind, tags), strict=True)
                self.confusion[*test, metric].update(kinds)

    def _count(self, test: Test, gold: set[Span], predicted: set[Span]) -> None:
        both = gold & predicted
        for side, found in (("gold", gold), ("predicted", predicted), ("correct", both)):
            self._counts[test][side].update(kind for kind, *_ in found)

    def figures(self) -> list[ClassFigure]:
        """Return the counts per model, test set and class, in the order of the calls of `add`."""
        figures = []
        for test, counts in self._counts.items():
            gold, predicted, correct = (counts[side] for side in ("gold", "predicted", "correct"))
            for name in sorted({*gold, *predicted}):
                figure = ClassFigure(*test, name, gold[name], predicted[name], correct[name])
                figures.append(figure)
        return figures


def won(figures: Sequence[ClassFigure]) -> Iterator[WonClasses]:
    """Compare the F1 of each model with the F1 of the first model, class by class.

    Only classes that occur in the gold data count.
    """
    first = next((figure.model for figure in figures), "")
    by_test: dict[tuple[str, str, str], dict[str, dict[str, float]]] = defaultdict(dict)
    for figure in figures:
        if figure.gold:
            models = by_test[figure.lang, figure.side, figure.metric]
            models.setdefault(figure.model, {})[figure.name] = figure.f1
    for test, models in by_test.items():
        for model, ours in models.items():
            if model != first:
                gains = [ours[name] - f1 for name, f1 in models[first].items()]
                better, worse = (sum(sign * gain > 0 for gain in gains) for sign in (1, -1))
                yield WonClasses(model, *test, better, worse, len(gains) - better - worse)
