"""The rule of RCP: the most realistic strength is chosen, more rows of it decide."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

CUT_OFF = 0.95  # of the judged rows (RCP, human check of the noise)
FIRST_STAGE, SECOND_STAGE = 15, 60  # rows of a strength


class Judged(NamedTuple):
    """What the reviewers said of one strength in the first stage."""

    strength: str
    value: float | None
    items: int
    realistic: float  # share of items, each the mean of its reviewers


def most_realistic(found: Iterable[Judged]) -> Judged | None:
    """Return the strength with the highest share; of equal ones the strongest, None of none.

    Strengths without a number rank by the order given.
    """
    judged = [one for one in found if one.items]
    if not judged:
        return None
    places: Mapping[str, int] = {one.strength: place for place, one in enumerate(judged)}
    return max(judged, key=lambda one: (one.realistic, one.value or 0, places[one.strength]))
