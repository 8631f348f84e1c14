"""Both forms of the noises of disguise and of speech agree, on real and on any text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_disguise import NAMES as DISGUISES
from test_disguise import TEXT as DISGUISED
from test_engine import ANY_TEXT, LIVELY_TEXT, both, compare, single
from test_speech import NAMES as OF_SPEECH
from test_speech import TEXT as SPOKEN

NAMES = (*DISGUISES, *OF_SPEECH)
NUMBERS = ["3.14 7 %5 x9 9x 1,00 00 ٣ ²", ""]


@pytest.mark.parametrize("name", NAMES)
def test_they_agree_with_the_oracle(name, demo_texts, odd_texts):
    rows = demo_texts + odd_texts[:-1] + [DISGUISED, SPOKEN] * 50 + NUMBERS
    assert compare(single(name, rate=0.5), rows) > 60


@pytest.mark.nightly
@pytest.mark.parametrize("name", NAMES)
def test_real_sentences_agree_with_the_oracle(name, real_sentences):
    assert compare(single(name, rate=0.5), real_sentences[:3_000]) > 150


@pytest.mark.parametrize("name", NAMES)
@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=25)
def test_any_text_agrees_with_the_oracle(name, rows, seed):
    ours, expected = both(single(name, rate=0.7), rows, seed)
    assert ours == expected
