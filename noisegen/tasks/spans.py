"""Spans of tags, and the F1 that seqeval and conlleval compute of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from noisegen.tasks.rows import OUTSIDE, kind_of

Span = tuple[str, int, int]  # kind, first token, behind the last


def spans(tags: Sequence[str]) -> list[Span]:
    """Return the spans of a row of tags.

    A span begins at B-x, and at any x or I-x behind O or another kind, as in conlleval and in
    seqeval's default mode. So tags without marks make a span of every run of equal ones.
    """
    found: list[Span] = []
    before = OUTSIDE
    for place, tag in enumerate(tags):
        kind = kind_of(tag)
        if kind != OUTSIDE:
            if tag[:2] == "B-" or kind != before:
                found.append((kind, place, place + 1))
            else:
                found[-1] = (kind, found[-1][1], place + 1)
        before = kind
    return found


@dataclass(frozen=True)
class SpanCounts:
    """Counts over rows: spans that agree, those of the gold tags, and those predicted.

    Hallucinated are predicted tags where gold has O, and predicted spans that lie on O alone.
    """

    correct: int
    gold: int
    predicted: int
    hallucinated_tokens: int
    hallucinated_spans: int

    @property
    def f1(self) -> float:
        """Micro-averaged F1 from 0 to 1; 0 where there is no span at all."""
        return 2 * self.correct / max(1, self.gold + self.predicted)


def count_spans(gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]) -> SpanCounts:
    """Compare rows of tags; rows are equally long in pairs."""
    totals = [0] * 5
    for truth, guess in zip(gold, predicted, strict=True):
        real, made = spans(truth), spans(guess)
        out = [tag == OUTSIDE for tag in truth]
        invented = [tag != OUTSIDE and empty for tag, empty in zip(guess, out, strict=True)]
        found = (
            len(set(real) & set(made)), len(real), len(made), sum(invented),
            sum(all(out[first:stop]) for _, first, stop in made),
        )  # fmt: skip
        totals = [total + more for total, more in zip(totals, found, strict=True)]
    return SpanCounts(*totals)
