"""The pairs that say most: those that a model repaired, those still broken, and a map of some."""

from collections.abc import Mapping, Sequence

import numpy as np

from noisegen.evaluation.measuring import Measured
from noisegen.evaluation.results import Example
from noisegen.evaluation.sets import EvaluationSet, PairSet
from noisegen.evaluation.transform_choice import MIXES

EXAMPLES = 20  # of each kind
MAPPED = 200  # pairs on the map

Found = Mapping[str, Mapping[str, Measured]]  # by model and set


def told(sets: Sequence[EvaluationSet]) -> list[PairSet]:
    """Return the sets that examples come from: natural pairs, else a mix, else what there is.

    Of noise only sets with one generation seed: of several, distances are means over texts.
    """
    pairs = [one for one in sets if isinstance(one, PairSet)]
    natural = [one for one in pairs if one.kind == "pairs"]
    mixes = [one for one in pairs if one.name.rpartition(" ")[2] in MIXES]
    return natural or mixes[-1:] or pairs[:1]


def examples(sets: Sequence[PairSet], found: Found, baseline: str) -> list[Example]:
    """Return the pairs whose distance fell most from the baseline to the other models' mean.

    It must have halved. Then come others, whose distance is the largest still; with the baseline
    alone, only these.
    """
    rows = [(one, row) for one in sets for row in np.flatnonzero(one.changed[0]).tolist()]
    if not rows:
        return []
    others = [name for name in found if name != baseline] or [baseline]
    distances = {
        name: np.array([of_sets[one.name].rows["distance"][row] for one, row in rows])
        for name, of_sets in found.items()
    }
    now = np.mean([distances[name] for name in others], axis=0)
    before = distances[baseline]
    gained = np.argsort(now - before, kind="stable")
    repaired = gained[now[gained] <= before[gained] / 2][:EXAMPLES].tolist()
    broken = [place for place in np.argsort(-now, kind="stable") if place not in repaired]
    chosen = [("repaired", place) for place in repaired]
    chosen += [("broken", place) for place in broken[:EXAMPLES]]
    return [
        Example(
            kind, rows[place][0].name, rows[place][0].clean[rows[place][1]],
            rows[place][0].noisy[0][rows[place][1]],
            {name: float(values[place]) for name, values in distances.items()},
        )
        for kind, place in chosen
    ]  # fmt: skip


def mapped_rows(one: PairSet) -> list[int]:
    """Return rows of changed pairs for the map, spread evenly; any rows if none changed."""
    rows = np.flatnonzero(one.changed[0]).tolist() or list(range(len(one)))
    most = min(MAPPED, len(rows))
    return [rows[place * len(rows) // most] for place in range(most)]
