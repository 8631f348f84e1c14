"""Spans and their F1 equal seqeval's figures and a plain count; hallucinations are counted."""

import numpy as np
import pytest

from noisegen.evaluation.tasks.results import count_spans, spans

SEQEVAL = [  # gold, predicted, f1_score of seqeval 1.2.2
    ("B-y I-y B-x B-y B-y B-x B-x B-x", "B-y I-y B-x B-y I-y O B-x B-x", 0.666667),
    ("O O B-x O O I-y B-x B-x", "I-y O B-x O O I-y B-x B-x", 0.888889),
    ("O I-y I-y B-x I-x B-x I-y B-x", "O I-y I-y I-y I-x I-y B-y B-x", 0.400000),
    ("O O I-x O O I-y B-x O", "O O I-x B-y O I-y B-x I-x", 0.571429),
    ("I-y B-y B-y I-x O I-y I-y I-x", "I-y B-y I-y O O I-y O I-x", 0.400000),
    ("year year owner O owner owner city O", "O year year O O owner city city", 0.0),
    ("city year state O owner city O owner", "city year state year owner O city owner", 0.769231),
    (
        "year O year state state state owner city",
        "year state owner state owner state owner city",
        0.461538,
    ),
    ("city year year city O owner O city", "state year state city O owner O city", 0.545455),
    ("year city O owner state owner city state", "O city O owner state owner city state", 0.923077),
]
POOLS = (["O", "B-x", "I-x", "B-y", "I-y"], ["O", "city", "state", "year"])


@pytest.mark.parametrize(("gold", "predicted", "f1"), SEQEVAL)
def test_f1_is_that_of_seqeval(gold, predicted, f1):
    assert count_spans([gold.split()], [predicted.split()]).f1 == pytest.approx(f1, abs=1e-6)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:.*seems not to be NE tag:UserWarning")
@pytest.mark.parametrize("pool", [0, 1])
def test_f1_is_that_of_seqeval_on_random_cases(pool):
    metrics = pytest.importorskip("seqeval.metrics")
    random = np.random.Generator(np.random.PCG64(8))
    for _ in range(4_000):
        lengths = random.integers(1, 12, random.integers(1, 4))
        gold, guess = (
            [[POOLS[pool][n] for n in random.integers(0, len(POOLS[pool]), k)] for k in lengths]
            for _ in range(2)
        )
        wanted = metrics.f1_score(gold, guess, zero_division=0)
        assert count_spans(gold, guess).f1 == pytest.approx(wanted, abs=1e-12)


def slow_spans(tags):
    """Every stretch of tokens that is a span and cannot be longer."""

    def kind(tag):
        return tag[2:] if tag[:2] in ("B-", "I-") else tag

    found = []
    for first in range(len(tags)):
        fresh = first == 0 or kind(tags[first - 1]) != kind(tags[first])
        if tags[first] == "O" or not (fresh or tags[first].startswith("B-")):
            continue
        stop = first + 1
        while (
            stop < len(tags)
            and kind(tags[stop]) == kind(tags[first])
            and not tags[stop].startswith("B-")
        ):
            stop += 1
        found.append((kind(tags[first]), first, stop))
    return found


def test_spans_and_counts_equal_plain_loops():
    random = np.random.Generator(np.random.PCG64(3))
    for _ in range(600):
        pool = POOLS[random.integers(2)]
        rows = [
            tuple([pool[n] for n in random.integers(0, len(pool), length)] for _ in range(2))
            for length in random.integers(0, 9, 3)
        ]
        found = count_spans([gold for gold, _ in rows], [guess for _, guess in rows])
        correct = both = tokens = wholly = 0
        for gold, guess in rows:
            assert spans(gold) == slow_spans(gold)
            both += len(slow_spans(gold)) + len(slow_spans(guess))
            correct += sum(span in slow_spans(gold) for span in slow_spans(guess))
            tokens += sum(a == "O" and b != "O" for a, b in zip(gold, guess, strict=True))
            wholly += sum(set(gold[first:stop]) == {"O"} for _, first, stop in slow_spans(guess))
        assert found.correct == correct
        assert found.f1 == pytest.approx(2 * correct / both if both else 0.0)
        assert (found.hallucinated_tokens, found.hallucinated_spans) == (tokens, wholly)


def test_a_span_that_touches_a_gold_one_is_not_hallucinated():
    found = count_spans([["O", "city", "O", "O"]], [["city", "city", "O", "year"]])
    assert (found.hallucinated_tokens, found.hallucinated_spans) == (2, 1)


def test_rows_of_unequal_length_are_no_comparison():
    with pytest.raises(ValueError, match="longer"):
        count_spans([["O", "O"]], [["O"]])
