"""The classifier's figures agree with slow twins, and it tells what can be told, no more."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learned import noised_by

from noisegen.data.pairs import Pairs
from noisegen.realism import two_sample as tests

pytest.importorskip("sklearn")

NOUNS = [
    "river",
    "winter",
    "garden",
    "teacher",
    "kitchen",
    "window",
    "summer",
    "letter",
    "market",
    "village",
]
VERBS = [
    "reaches",
    "follows",
    "answers",
    "watches",
    "covers",
    "carries",
    "visits",
    "changes",
    "remembers",
    "leaves",
]
ENDS = ["every morning", "after the rain", "without a word", "in the evening", "for a long time"]
TEXTS = [
    f"The {NOUNS[a]} {VERBS[b]} the {NOUNS[c]} {ENDS[(a + b + c) % 5]}."
    for a in range(10)
    for b in range(10)
    for c in range(0, 10, 2)
]


def noised(name: str, seed: int, texts: list[str] = TEXTS) -> Pairs:
    return Pairs(noised_by(texts, name, seed), texts)


def swapped(pairs: Pairs) -> Pairs:
    return Pairs([text.replace("the", "teh") for text in pairs.clean], pairs.clean)


def test_the_same_noise_with_another_seed_cannot_be_told() -> None:
    found = tests.two_sample(noised("fing:rate=0.1", 1), noised("fing:rate=0.1", 2))
    assert abs(found.all_rows.value - 0.5) < 0.06
    assert found.all_rows.low <= found.all_rows.value <= found.all_rows.high
    assert found.clean_sides is None
    assert found.real_against_clean.value > 0.8


def test_equal_texts_have_exactly_one_half() -> None:
    pairs = noised("fing:rate=0.1", 1)
    found = tests.two_sample(pairs, pairs).all_rows
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)


def test_another_kind_of_noise_is_told_and_its_letters_are_named() -> None:
    pairs = noised("fing:rate=0.02", 1)
    found = tests.two_sample(pairs, swapped(pairs))
    assert found.all_rows.value > 0.95
    ours = [one for one in found.contrasts if one.side == "synthetic"]
    assert any("teh" in one.ngram or one.ngram in " teh " for one in ours[:3])
    assert any(one.example and "teh" in one.example.text for one in ours)
    for one in found.contrasts:
        if one.example:
            framed = f"\n{one.example.text}\n"
            assert one.ngram.strip("\n") in one.example.text[one.example.start : one.example.stop]
            assert one.ngram in framed[one.example.start : one.example.stop + 2]
    assert all(one.synthetic_share > one.real_share for one in ours)


def test_changed_rows_are_told_where_few_rows_change() -> None:
    light = noised("fing:rate=0.004", 1)
    other = [
        text.replace("the", "teh") if n % 8 == 0 else text for n, text in enumerate(light.clean)
    ]
    found = tests.two_sample(light, Pairs(other, light.clean))
    assert found.all_rows.value < 0.65 < 0.9 < found.changed_rows.value
    assert found.changed_rows.other == sum(n % 8 == 0 for n in range(len(TEXTS)))


def test_few_texts_have_no_figure() -> None:
    pairs = noised("fing:rate=0.1", 1, TEXTS[: tests.TEXTS_MIN - 1])
    found = tests.two_sample(pairs, swapped(pairs))
    assert (found.all_rows, found.changed_rows, found.contrasts) == (None, None, ())


def test_copies_of_few_texts_have_no_figure() -> None:
    pairs = noised("fing:rate=0.1", 1, TEXTS[:5] * 20)
    assert tests.two_sample(pairs, swapped(pairs)).all_rows is None


def test_versions_of_a_text_are_in_the_same_fold(monkeypatch) -> None:
    trained: list[Counter[int]] = []
    fit = tests.fit

    def watched(texts, numbers, is_other):
        trained.append(Counter(texts.clean_numbers[numbers].tolist()))
        return fit(texts, numbers, is_other)

    monkeypatch.setattr(tests, "fit", watched)
    copies = TEXTS[:60] * 2
    tests.two_sample(noised("fing:rate=0.1", 1, copies), noised("fing:rate=0.1", 2, copies))
    assert len(trained) >= tests.FOLDS
    for versions in trained[: tests.FOLDS]:
        assert len(versions) == 48  # four fifths
        assert set(versions.values()) == {4}


def test_topics_are_reported_where_the_clean_texts_differ() -> None:
    other = noised("fing:rate=0.1", 1, [text.replace("the", "a") for text in TEXTS])
    found = tests.two_sample(noised("fing:rate=0.1", 1), other)
    assert found.clean_sides.value > 0.95


def test_equal_input_gives_equal_figures() -> None:
    pairs = noised("fing:rate=0.1", 1)
    assert tests.two_sample(pairs, swapped(pairs)) == tests.two_sample(pairs, swapped(pairs))


# Slow twins.


def slow_area(scores: list[int], is_theirs: list[bool], times: list[int]) -> float:
    won = pairs = 0.0
    for score, theirs, often in zip(scores, is_theirs, times, strict=True):
        for other, other_theirs, other_often in zip(scores, is_theirs, times, strict=True):
            if theirs and not other_theirs:
                pairs += often * other_often
                won += often * other_often * (0.5 if score == other else score > other)
    return won / pairs if pairs else 0.5


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), min_size=1, max_size=9)
)
def test_the_area_is_the_share_of_pairs_in_order(rows) -> None:
    scores, is_theirs, times = map(list, zip(*rows, strict=True))
    found = tests.areas(np.array(scores, float), np.array(is_theirs), np.array([times], float))
    assert found[0] == pytest.approx(slow_area(scores, is_theirs, times))


def slow_weights(texts: list[str]) -> list[dict[str, float]]:
    counts = []
    for text in texts:
        framed = f"\n{text[: tests.CHARACTERS_MAX]}\n"
        counts.append(
            Counter(
                framed[at : at + size]
                for size in tests.SIZES
                for at in range(len(framed) - size + 1)
            )
        )
    rows_with = Counter(name for row in counts for name in row)
    lines = []
    for row in counts:
        line = {
            name: (1 + math.log(often)) * (1 + math.log(len(texts) / rows_with[name]))
            for name, often in row.items()
            if rows_with[name] >= tests.ROWS_MIN
        }
        length = math.sqrt(sum(value**2 for value in line.values())) or 1
        lines.append({name: value / length for name, value in line.items()})
    return lines


def test_weights_of_ngrams_agree_with_a_slow_count(demo_texts, odd_texts) -> None:
    texts = [*demo_texts, *odd_texts, *demo_texts[:40]]
    weights, names = tests.ngram_weights(texts)
    assert len(set(names)) == len(names) == weights.shape[1]
    for row, line in enumerate(slow_weights(texts)):
        start, stop = weights.indptr[row : row + 2]
        found = [names[column] for column in weights.indices[start:stop]]
        assert set(found) == set(line)
        expected = [line[name] for name in found]
        np.testing.assert_allclose(weights.data[start:stop], expected, rtol=1e-6)
