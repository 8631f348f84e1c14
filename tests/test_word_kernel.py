"""The kernel of word rules: its two forms, the words that it remembers, and its questions."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noisegen.noising import kernels
from noisegen.noising.kernels import WordKernel
from noisegen.noising.registry import Settings
from noisegen.noising.rng import Draws, RowDraws, row_key, row_keys, stream_key
from noisegen.text.buffers import WORD_BYTES_MAX, Texts
from noisegen.text.rows import Row


def marked(word):
    """A rule with every case: words that stay, one form, several, and the word itself."""
    forms = [(word + "+", 3), (word.upper(), 2), (word, 1), ("", 1)]
    return forms[: len(word) % 5]


def kernel(rule=marked, rate="0.5"):
    return WordKernel(rule, Settings().limits(Fraction(rate)))


def proposed(made, texts, first=0):
    """What a kernel makes of every row; ids count from `first`."""
    rows = Texts.from_strings(texts)
    keys = row_keys(stream_key(7, "marked"), np.arange(first, first + len(rows), dtype=np.uint64))
    edits = made.propose(rows, keys, {"rate": np.zeros(len(rows), np.int64)})
    return [[] for _ in texts], rows, edits


def spans(made, texts, first=0):
    """The edits of every row as (start, stop, noisy), in bytes."""
    found, rows, edits = proposed(made, texts, first)
    written = edits.written().to_strings()
    for row, start, stop, noisy in zip(edits.rows, edits.starts, edits.stops, written, strict=True):
        found[row].append((start - rows.offsets[row], stop - rows.offsets[row], noisy))
    return found


def expected(texts, rule=marked, rate="0.5", first=0):
    """The same by the row form."""
    made, found = kernel(rule, rate), []
    for number, text in enumerate(texts, first):
        draws = RowDraws(row_key(stream_key(7, "marked"), number), {"rate": 0})
        edits = made.edit_row(Row(text), draws)
        at = [len(text[:n].encode()) for n in range(len(text) + 1)]
        found.append([(at[start], at[stop], noisy) for start, stop, noisy in edits])
    return found


@pytest.mark.parametrize("rate", ["0", "0.1", "0.5", "1"])
def test_the_array_form_is_the_row_form(demo_texts, odd_texts, real_sentences, rate):
    texts = demo_texts + odd_texts[:-1] + real_sentences[:3_000]

    assert spans(kernel(rate=rate), texts) == expected(texts, rate=rate)


@given(st.lists(st.text(max_size=40), max_size=10), st.sampled_from(["0.3", "1"]))
@settings(max_examples=100)
def test_both_forms_give_the_same_on_any_text(texts, rate):
    assert spans(kernel(rate=rate), texts) == expected(texts, rate=rate)


def test_neither_batches_nor_their_order_matter(real_sentences):
    texts, made = real_sentences[:1_000], kernel()
    whole = spans(kernel(), texts)

    backwards = {at: spans(made, texts[at : at + 77], at) for at in range(924, -1, -77)}
    assert [row for at in sorted(backwards) for row in backwards[at]] == whole
    assert spans(made, texts) == whole


@pytest.mark.parametrize("limit", ["WORDS_MAX", "FORMS_MAX"])
def test_what_is_forgotten_is_asked_for_again(real_sentences, monkeypatch, limit):
    monkeypatch.setattr(kernels, limit, 50)
    asked, made, sizes = Counter(), [], []
    forgetful = kernel(lambda word: asked.update([word]) or marked(word))
    for at in range(0, 300, 10):
        made += spans(forgetful, real_sentences[at : at + 10], at)
        sizes.append(len(forgetful.hashes))

    assert made == expected(real_sentences[:300])
    assert asked.most_common(1)[0][1] > 5
    assert max(sizes) < 50 + 10 * 200


def test_a_word_is_asked_for_once_and_only_if_it_is_hit(real_sentences):
    asked = Counter()
    made = kernel(lambda word: asked.update([word]) or marked(word), rate="0.2")
    for at in range(0, 1_000, 100):
        proposed(made, real_sentences[at : at + 100], at)
    words = {word for text in real_sentences[:1_000] for word in Row(text).words}

    assert set(asked.values()) == {1}
    assert 0 < len(asked) < len(words)


def test_a_word_that_its_rule_cannot_change_is_not_asked_for():
    asked, limits = [], Settings().limits(1)

    def rule(word):
        asked.append(word)
        return []

    texts = ["it's a dog’s life", "no ones", "é - 'tis—"]
    spans(WordKernel(rule, limits, needs=b"'\xe2"), texts)
    assert asked == ["it's", "dog’s"]
    asked.clear()
    spans(WordKernel(rule, limits, bytes_min=4), texts)
    assert sorted(asked) == ["dog’s", "it's", "life", "ones"]


def test_words_that_stay_take_no_room():
    made = kernel(lambda word: [("x", 1)] if word == "two" else [], "1")

    assert spans(made, ["one two three"]) == [[(4, 7, "x")]]
    assert len(made.hashes) == 3
    assert len(made.pool) == 1


def test_case_counts():
    assert spans(kernel(lambda word: [(word[::-1], 1)], "1"), ["The the THE"]) == [
        [(0, 3, "ehT"), (4, 7, "eht"), (8, 11, "EHT")]
    ]


@pytest.mark.parametrize("length", [WORD_BYTES_MAX, WORD_BYTES_MAX + 1])
def test_words_over_the_longest_stay(length):
    """Their hash is 0, which no other word has; they are not asked for either."""
    asked = []
    made = kernel(lambda word: asked.append(word) or [("x", 1)], "1")
    texts = ["w" * length + " short", "é" * (length // 2) + "e" * (length % 2)]
    found = spans(made, texts)

    long = length > WORD_BYTES_MAX
    assert [len(row) for row in found] == ([1, 0] if long else [2, 1])
    assert (0 in made.hashes) is False
    assert len(asked) == (1 if long else 3)


def test_the_word_itself_among_its_forms_is_the_chance_that_it_stays():
    made = kernel(lambda word: [("x", 1), (word, 3)], "1")
    changed = sum(map(len, spans(made, ["word"] * 40_000)))

    assert abs(changed - 10_000) < 4 * (40_000 * 0.25 * 0.75) ** 0.5


def test_forms_are_drawn_by_their_weights():
    made = kernel(lambda word: [("a", 1), ("b", 2), ("c", 5)], "1")
    drawn = Counter(row[0][2] for row in spans(made, ["word"] * 40_000))

    for noisy, share in (("a", 1 / 8), ("b", 2 / 8), ("c", 5 / 8)):
        assert abs(drawn[noisy] - 40_000 * share) < 4 * (40_000 * share * (1 - share)) ** 0.5


def test_what_was_proposed_stays_when_more_is_learnt():
    """The alternatives of one batch are not moved by those of the next."""
    made = kernel(lambda word: [(word * 2, 1)], "1")
    _, _, first = proposed(made, ["one two"])
    proposed(made, ["three four five"])

    assert first.written().to_strings() == ["oneone", "twotwo"]


def test_rows_may_differ_in_strength():
    made = WordKernel(lambda word: [("x", 1)], np.array([0, 1 << 48]))
    keys, strengths = np.arange(4, dtype=np.uint64), np.array([0, 1, 0, 1])
    edits = made.propose(Texts.from_strings(["word"] * 4), keys, {"rate": strengths})

    assert edits.rows.tolist() == [1, 3]


def test_a_scalar_stream_gives_the_draws_of_the_kernel():
    key = int(row_keys(stream_key(7, "marked"), np.zeros(1, np.uint64))[0])
    assert Draws(key).integer() == Draws(row_key(stream_key(7, "marked"), 0)).integer()
