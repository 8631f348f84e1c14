"""Names under which figures are kept: no two alike, or one would hide the other."""

from collections.abc import Sequence
from itertools import count


def names_apart(names: Sequence[str]) -> list[str]:
    """Return the names, those met before with -2, -3 and so on, in so far as no other has that."""
    taken, made = set(names), []
    for place, name in enumerate(names):
        if name in names[:place]:
            name = next(new for n in count(2) if (new := f"{name}-{n}") not in taken)
            taken.add(name)
        made.append(name)
    return made
