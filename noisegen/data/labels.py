"""Labels of clean tokens carried over to noisy tokens."""

from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any

Owners = Sequence[int | None]  # per noisy token the number of its clean token; None without one


def carried(labels: Sequence[Any], owners: Owners) -> list[Any]:
    """Return the labels of noisy tokens: the label of the clean token, or O without clean token.

    A token split in two continues its label (B-x, then I-x). Tokens merged into one keep the first
    label; if that takes the B-x of a span, the rest of the span begins with B-x.
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
    """Return the normal forms of noisy words by the rules of MultiLexNorm.

    The first part of a split word has its form, the other parts have ''. Words merged into one have
    their forms joined by a space.
    """
    made = [""] * len(owners)
    for clean, noisy in units(owners, len(forms)):
        made[noisy.start] = " ".join(filter(None, (forms[number] for number in clean)))
    return made


def units(owners: Owners, count: int) -> list[tuple[range, range]]:
    """Return ranges of the `count` clean tokens with the ranges of noisy tokens they became.

    A split has several noisy tokens, a merger several clean tokens. A clean token that noise
    removed belongs to the range of the token before it, or else to the first range.
    """
    if not owners:
        return []
    starts = [at for at, owner in enumerate(owners) if at and owner != owners[at - 1]]
    clean = pairwise([0, *(owners[at] or 0 for at in starts), count])
    noisy = pairwise([0, *starts, len(owners)])
    return [(range(*ours), range(*theirs)) for ours, theirs in zip(clean, noisy, strict=True)]
