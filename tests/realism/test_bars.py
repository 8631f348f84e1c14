"""How real the packaged noise has to be: bars on the development sets, held every night."""

from typing import NamedTuple

import pytest

from benchmarks.real_pairs import available
from benchmarks.realism import measured

SEEDS = 2
PACKAGED = ("ugc-light", "ugc", "tweets")
ENGLISH = ("multilexnorm2:en", "ud-corrected:en")
POST_LANGUAGES = "da de es hr id iden it ja nl sl sr th tr trde vi"
POSTS = ("vilexnorm", *(f"multilexnorm2:{lang}" for lang in POST_LANGUAGES.split()))
OTHER_SETS = "cowsl2h falko-merlin ice-error sighan ua-gec vilexnorm ud-corrected:ga"
LEARNED = (*OTHER_SETS.split(), *(f"multilexnorm2:{lang}" for lang in ("en", "hr", "sl", "sr")))


class Bar(NamedTuple):
    """How high a figure may be on each of these sets: that of the best of these noises.

    `channel` is learned from the other half of the set, `fit` is fitted to the noisy side of that
    half alone, and `fit:clean` to both sides without their pairing.
    """

    figure: str
    most: float
    noises: tuple[str, ...]
    sets: tuple[str, ...]


# Wanted, and not among them until they are reached: AUC 0.75 of `ugc` on posts in Korean; one
# recipe that is within twice the floor by kinds of edit and within 0.65 on weblogs; AUC 0.6 of what
# is learned from the sets that LEARNED lacks.
BARS = (
    Bar("auc_changed", 0.65, PACKAGED, ENGLISH),
    Bar("auc_changed", 0.70, ("ugc",), ENGLISH),
    Bar("auc_changed", 0.75, ("ugc",), POSTS),
    Bar("slight", 0.5, ("ugc",), (*ENGLISH, *POSTS)),
    Bar("auc_changed", 0.70, ("ugc", "channel"), ("cowsl2h", "mucgec", "ruspellru", "sighan")),
    Bar("auc_changed", 0.70, ("ugc",), ("ruspellru:words",)),
    Bar("times_floor", 2, ("tweets",), ENGLISH),
    Bar("auc_changed", 0.60, ("channel",), LEARNED),
    Bar("auc_changed", 0.64, ("fit",), ("cweb:G",)),
    Bar("auc_changed", 0.76, ("fit",), ("falko-merlin",)),
    Bar("auc_changed", 0.66, ("fit:clean",), ENGLISH),
    Bar("times_floor", 2, ("channel",), ("multilexnorm2:en", "ruspellru", "vilexnorm")),
)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted({name for bar in BARS for name in bar.sets}))
def test_noise_is_as_real_as_it_has_to_be(name: str) -> None:
    if name not in available():
        pytest.skip(f"no {name} here")
    bars = [bar for bar in BARS if name in bar.sets]
    found = measured(name, SEEDS, sorted({noise for bar in bars for noise in bar.noises}))
    for bar in bars:
        figures = {noise: found[noise][bar.figure] for noise in bar.noises}
        is_met = any(value is not None and value <= bar.most for value in figures.values())
        assert is_met, (bar, figures)
