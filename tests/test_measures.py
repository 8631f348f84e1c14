"""The distances agree with the textbook."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisegen.measures import character_errors, error_counts, word_errors

TEXTS = st.text(max_size=12) | st.text("ab é\u0301", max_size=12)


def textbook(first: Sequence[str], second: Sequence[str]) -> int:
    row = list(range(len(second) + 1))
    for i, left in enumerate(first, 1):
        above, row = row, [i]
        for j, right in enumerate(second, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right)))
    return row[-1]


@given(TEXTS, TEXTS)
def test_character_errors_are_the_textbook_distance(clean: str, noisy: str) -> None:
    assert character_errors(clean, noisy) == textbook(clean, noisy)


@given(TEXTS, TEXTS)
def test_word_errors_are_the_textbook_distance_of_words(clean: str, noisy: str) -> None:
    assert word_errors(clean, noisy) == textbook(clean.split(), noisy.split())


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5))
def test_a_batch_is_the_sum_of_its_rows(pairs: list[tuple[str, str]]) -> None:
    expected = (
        sum(textbook(*pair) for pair in pairs),
        sum(textbook(clean.split(), noisy.split()) for clean, noisy in pairs),
    )
    assert error_counts([pair[0] for pair in pairs], [pair[1] for pair in pairs]) == expected


def test_other_white_space_is_no_word_error() -> None:
    assert word_errors("see  you\t", "see you") == 0
    assert character_errors("see  you\t", "see you") == 2


def test_sides_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        error_counts(["a", "b"], ["a"])
