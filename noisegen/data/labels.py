"""Labels of clean tokens, transferred to noisy tokens."""

from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Any

# For each noisy token, the index of the clean token it was made from; None for an added token
Owners = Sequence[int | None]


def carried(labels: Sequence[Any], owners: Owners) -> list[Any]:
    """Return the label of each noisy token: its clean token's label, or O for an added token.

    The second part of a split token continues its label (B-x, then I-x). A merged token has the
    label of its first clean token. If the first token of a span of x is merged into a token before
    the span, the rest of the span begins with B-x.
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

    The first part of a split word has the normal form of the word, the other parts have ''. A word
    merged from several has their normal forms, joined by a space.
    """
    made = [""] * len(owners)
    for clean, noisy in units(owners, len(forms)):
        made[noisy.start] = " ".join(filter(None, (forms[number] for number in clean)))
    return made


def units(owners: Owners, count: int) -> list[tuple[range, range]]:
    """Return pairs (range of clean tokens, range of noisy tokens made from them) for a sentence.

    `count` is the count of clean tokens. Each range has one token, unless a token was split into
    several noisy ones, or several clean ones were merged. A deleted token is in the range of the
    clean token before it, or in the first range.
    """
    if not owners:
        return []
    starts = [at for at, owner in enumerate(owners) if at and owner != owners[at - 1]]
    clean = pairwise([0, *(owners[at] or 0 for at in starts), count])
    noisy = pairwise([0, *starts, len(owners)])
    return [(range(*ours), range(*theirs)) for ours, theirs in zip(clean, noisy, strict=True)]
