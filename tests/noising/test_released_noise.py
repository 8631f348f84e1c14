"""Recipe `rolaser` against the released transforms, whose figures `benchmarks` recorded."""

import pytest

from benchmarks import released_noise
from noisegen.noising.tagging import installed_model

WITHIN = 0.25
TAGGER = "spacy" if installed_model("en") else "rule"


@pytest.fixture(scope="module")
def ours():
    return released_noise.ours("rolaser", released_noise.sentences(), TAGGER)


@pytest.mark.parametrize("name", released_noise.ORIGINAL)
def test_a_transform_is_as_strong_as_the_released_one(name, ours):
    if name == "slng" and TAGGER == "rule":
        pytest.skip("slng asks for parts of speech; the original has them from spaCy")
    for figure, released in zip(ours[name], released_noise.recorded()[name], strict=True):
        assert figure == pytest.approx(released, rel=WITHIN)
