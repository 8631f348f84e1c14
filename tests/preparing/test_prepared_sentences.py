"""Rows become sentences, each with the reason why it is dropped."""

import pytest

from noisegen.errors import UsageError
from noisegen.mining.languages import language
from noisegen.preparing.sentences import Criteria, sentences

ENGLISH = language("en")


def judged(text, **criteria):
    return [tuple(one) for one in sentences(text, ENGLISH, Criteria(**criteria))]


def reason(text, **criteria):
    [(_, _, found)] = judged(text, **criteria)
    return found


def test_a_row_is_split_and_numbered_with_what_is_dropped():
    assert judged("He left. She stayed in the garden.<br>It rained the whole night.") == [
        (0, "He left.", "too_short"),
        (1, "She stayed in the garden.", ""),
        (2, "It rained the whole night.", ""),
    ]


def test_no_sentence_reaches_over_a_line_break():
    assert [one[1] for one in judged("The end of a line\nand the next one")] == [
        "The end of a line",
        "and the next one",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It rained the whole night.", ""),
        ("Too short", "too_short"),
        ("word " * 300, "too_long"),
        ("Он вышел из дома рано утром.", "uncommon_characters"),
        ("{{cite|url=x|date=[[y]]}} {{z}}", "uncommon_characters"),
        ("2-1, 3-0, 4:1 (15), 77, A", "few_letters"),
        ("@ann @bob https://example.org/a", "few_letters"),
    ],
)
def test_reasons(text, found):
    assert reason(text) == found


def test_the_lengths_are_limits_that_are_still_kept():
    text = "Twelve signs"
    assert reason(text, chars_min=12, chars_max=12) == ""
    assert reason(text, chars_min=13, chars_max=13) == "too_short"
    assert reason(text, chars_min=1, chars_max=11) == "too_long"


def test_the_share_is_a_limit_that_is_still_kept():
    text = "abcdefghi_"  # 9 of 10
    assert reason(text) == ""
    assert reason(text, common_min=0.91) == "uncommon_characters"


@pytest.mark.parametrize(
    "wrong", [{"chars_min": 0}, {"chars_min": 9, "chars_max": 8}, {"common_min": 1.5}]
)
def test_impossible_criteria(wrong):
    with pytest.raises(UsageError):
        Criteria(**wrong)
