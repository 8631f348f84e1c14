"""Labels carried over noise: every noisy token gets the label of the clean token it came from."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa

Edit = dict[str, Any]


def aligned(
    tokens: pa.ChunkedArray, labels: pa.ChunkedArray, noisy: pa.Array, edits: pa.Array
) -> dict[str, pa.Array]:
    """Return the columns noisy_tokens and noisy_labels (lists of equal length)."""
    rows = zip(
        tokens.to_pylist(), labels.to_pylist(), noisy.to_pylist(), edits.to_pylist(), strict=True
    )
    pairs = [carry(*row) for row in rows]
    kind = pa.list_(pa.string())
    return {
        "noisy_tokens": pa.array([words for words, _ in pairs], kind),
        "noisy_labels": pa.array([carried for _, carried in pairs], labels.type),
    }


def carry(
    tokens: Sequence[str], labels: Sequence[Any], noisy: str, edits: Sequence[Edit]
) -> tuple[list[str], list[Any]]:
    """Return the blank-separated tokens of the noisy text and their labels.

    The clean text is the tokens joined by one blank. A token that begins in an unchanged part comes
    from the clean token there; the k-th of n tokens that begin in a changed span comes from the
    same share of the clean tokens of that span. A token split in two continues its label (B-x,
    then I-x); tokens merged into one keep the first label.
    """
    starts = list(accumulate((len(token) + 1 for token in tokens), initial=0))[:-1]
    words, begins = _split(noisy)
    owners = [_owner(begin, starts, edits, begins) for begin in begins]
    if not owners:
        return [], []
    carried = [labels[owners[0]]]
    for before, owner in pairwise(owners):
        carried.append(_inside(labels[owner]) if owner == before else labels[owner])
    return words, carried


def _split(text: str) -> tuple[list[str], list[int]]:
    words = text.split()
    begins, at = [], 0
    for word in words:
        at = text.index(word, at)
        begins.append(at)
        at += len(word)
    return words, begins


def _owner(begin: int, starts: list[int], edits: Sequence[Edit], begins: list[int]) -> int:
    """Return the number of the clean token that the noisy token at `begin` came from."""
    number = bisect_right(edits, begin, key=lambda edit: edit["noisy_start"]) - 1
    edit = edits[number] if number >= 0 else None
    if edit is None or begin >= edit["noisy_end"]:
        shift = edit["clean_end"] - edit["noisy_end"] if edit else 0
        return _token_at(starts, begin + shift)
    last = _token_at(starts, max(edit["clean_start"], edit["clean_end"] - 1))
    first = min(bisect_left(starts, edit["clean_start"]), last)
    in_span = [b for b in begins if edit["noisy_start"] <= b < edit["noisy_end"]]
    return first + in_span.index(begin) * (last + 1 - first) // len(in_span)


def _token_at(starts: list[int], position: int) -> int:
    return max(0, bisect_right(starts, position) - 1)


def _inside(label: Any) -> Any:
    """Return the label of the rest of a token: B-x goes on as I-x."""
    return f"I-{label[2:]}" if isinstance(label, str) and label.startswith("B-") else label
