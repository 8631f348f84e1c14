"""Labels of clean tokens, transferred to noisy tokens."""

from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any

# Per noisy token the index of its clean token; None for an added token
Owners = Sequence[int | None]


def carried(labels: Sequence[Any], owners: Owners) -> list[Any]:
    """Return the label of each noisy token: its clean token's label, or O for an added token.

    If a token is split in two, the second part continues the label (B-x, then I-x). Merged tokens
    have the label of the first; if a merger swallows the B-x of a span, the rest of the span starts
    with B-x.
    """
    made: list[Any] = []
    for before, owner in pairwise([None, *owners]):
        label = "O" if owner is None else labels[owner]
        if isinstance(label, str) and label[:2] in ("B-", "I-"):
            begun, inside = f"B-{label[2:]}", f"I-{label[2:]}"
            label = inside if owner == before else label
            if label == inside and (not made or made[-1] not in (begun, inside)):
                span = takewhile({begun, inside}.__contains__, reversed(labels[:owner]))
                label = begun if begun in span else inside
        made.append(label)
    return made


def carried_forms(forms: Sequence[str], owners: Owners) -> list[str]:
    """Return the normal form of each noisy word by the rules of MultiLexNorm.

    The first part of a split word has the normal form of the word, the other parts have ''. A
    merged word has the forms of its words, joined by a space.
    """
    made = [""] * len(owners)
    for clean, noisy in units(owners, len(forms)):
        made[noisy.start] = " ".join(filter(None, (forms[number] for number in clean)))
    return made


def units(owners: Owners, count: int) -> list[tuple[range, range]]:
    """Return pairs of a range of clean tokens and the range of noisy tokens that they became.

    `count` is the number of clean tokens. A split gives several noisy tokens, a merger takes
    several clean ones. A deleted token belongs to the range of the token before it, or to the first
    range.
    """
    if not owners:
        return []
    starts = [at for at, owner in enumerate(owners) if at and owner != owners[at - 1]]
    clean = pairwise([0, *(owners[at] or 0 for at in starts), count])
    noisy = pairwise([0, *starts, len(owners)])
    return [(range(*ours), range(*theirs)) for ours, theirs in zip(clean, noisy, strict=True)]
