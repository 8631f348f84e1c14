"""Figures agree with a slow count of the same pairs, and divergences with the formula."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from learned import divergences, measure, noised_by
from rapidfuzz.distance import Levenshtein

from noisegen.realism.figures import HISTOGRAMS, jensen_shannon, word_place
from noisegen.realism.kinds import KINDS, kind_of
from noisegen.text.alignment import TokenEdit, edits

ROWS = [
    ("See you at noon.", "see u at noon"),
    ("Nothing changed here.", "Nothing changed here."),
    ("I like winter", "I liek winxter !!!"),
    ("", "a"),
    ("今天天氣好", "今天天汽好"),
]


def slow(rows: list[tuple[str, str]], lang: str) -> dict[str, object]:
    kinds, places, tenths, sizes = Counter(), Counter(), Counter(), Counter()
    for clean, noisy in rows:
        found = edits(clean, noisy)
        sizes[min(len(found), 10)] += 1
        for edit in found:
            kinds[kind_of(clean, noisy, edit, lang)] += 1
            middle = (edit.clean_start + edit.clean_stop) / 2
            tenths[min(int(middle / len(clean) * 10), 9) if clean else 0] += 1
            places[word_place(clean, noisy, edit)] += 1
    places.pop(None, None)
    characters, words = (
        sum(map(len, side))
        for side in ([clean for clean, _ in rows], [clean.split() for clean, _ in rows])
    )
    return {
        "kinds": [kinds[kind] for kind in KINDS],
        "edits_per_row": [sizes[number] for number in range(11)],
        "sentence_positions": [tenths[number] for number in range(10)],
        "word_positions": [places[name] for name in ("start", "inside", "end", "whole")],
        "changed_share": sum(a != b for a, b in rows) / len(rows),
        "cer": sum(Levenshtein.distance(a, b) for a, b in rows) / characters,
        "wer": sum(Levenshtein.distance(a.split(), b.split()) for a, b in rows) / words,
    }


def check(rows: list[tuple[str, str]], lang: str) -> None:
    clean, noisy = zip(*rows, strict=True)
    found, expected = measure(clean, noisy, lang), slow(rows, lang)
    for name in HISTOGRAMS:
        assert found.histogram(name) == expected[name]
    for name in ("changed_share", "cer", "wer"):
        assert getattr(found, name) == pytest.approx(expected[name])
    assert found.rows == len(rows)
    assert found.edits == sum(expected["kinds"])


def test_figures_agree_with_a_slow_count() -> None:
    check(ROWS, "en")


@pytest.mark.nightly
def test_figures_agree_with_a_slow_count_on_noise_in_many_languages(demo) -> None:
    clean = [row["text"] for row in demo]
    rows = [
        pair
        for seed in range(1_000 // len(clean) + 1)
        for pair in zip(clean, noised_by(clean, "mix_all", seed), strict=True)
    ]
    assert len(rows) > 1_000
    check(rows, "")


def test_unseen_words_and_ratios_are_counted_over_the_whole_set() -> None:
    found = measure(["See you", "you see it"], ["see u", "you sea it , u"])
    assert found.oov_ratio == 3 / 6  # u, sea, u of see u you sea it u
    assert found.type_token_ratio == 5 / 6
    assert found.clean_type_token_ratio == 3 / 5


def test_no_pairs_have_no_rates() -> None:
    found = measure([], [])
    assert (found.rows, found.edits, found.changed_share, found.cer) == (0, 0, None, None)
    assert (found.oov_ratio, found.type_token_ratio) == (None, None)


@pytest.mark.parametrize(
    ("clean", "noisy", "place"),
    [
        ("winter", "Winter", "start"),
        ("winter", "wimter", "inside"),
        ("winter", "winters", "end"),
        ("winter", "", "whole"),
        ("", "winter", "whole"),
        ("big", "huge", "whole"),
        ("committee", "comittee", "inside"),
        (",", "", None),
    ],
)
def test_the_place_in_a_word_is_what_both_ends_leave(clean, noisy, place) -> None:
    assert word_place(clean, noisy, TokenEdit(0, len(clean), 0, len(noisy))) == place


def slow_divergence(ours: list[int], theirs: list[int]) -> float:
    if not sum(ours) or not sum(theirs):
        return float(bool(sum(ours)) != bool(sum(theirs)))
    p, q = ([value / sum(side) for value in side] for side in (ours, theirs))
    total = 0.0
    for a, b in zip(p, q, strict=True):
        for one in (a, b):
            total += one * math.log2(one / ((a + b) / 2)) / 2 if one else 0
    return total


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8))
def test_the_divergence_is_that_of_jensen_and_shannon(counts) -> None:
    import numpy as np

    ours, theirs = map(list, zip(*counts, strict=True))
    found = jensen_shannon(np.array([ours], float), np.array([theirs], float))[0]
    assert found == pytest.approx(slow_divergence(ours, theirs), abs=1e-12)
    assert 0 <= found <= 1


def test_equal_noise_has_no_divergence_and_other_noise_has() -> None:
    clean = [f"the winter of {year} was cold" for year in range(50)]
    typos = measure(clean, [text.replace("winter", "wimter") for text in clean])
    capitals = measure(clean, [text.replace("winter", "Winter") for text in clean])
    assert divergences(typos, typos) == dict.fromkeys(HISTOGRAMS, 0.0)
    found = divergences(typos, capitals)
    assert found["kinds"] == found["word_positions"] == 1
    assert found["edits_per_row"] == 0
