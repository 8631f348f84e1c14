"""Labels carried over noise: every noisy token gets the label of the clean token it came from."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import Any

import pyarrow as pa

Edit = dict[str, Any]
BLANK_OF_EDIT = -1


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
    """Return the tokens of the noisy text and their labels.

    The clean text is the tokens joined by one blank. The noisy text is split where these blanks are
    left and at any blank that an edit wrote. A token that begins in an unchanged part comes from
    the clean token there; the k-th of n tokens that begin in a changed span comes from the same
    share of the clean tokens of that span. A token split in two continues its label (B-x, then
    I-x); tokens merged into one keep the first label, and what is left of a span whose B-x went
    into such a token begins with B-x.
    """
    if not edits:
        return list(tokens), list(labels)
    starts = list(accumulate((len(token) + 1 for token in tokens), initial=0))[:-1]
    pieces = list(_pieces(tokens, starts, noisy, edits))
    begins = [begin for begin, _ in pieces]
    owners = [_owner(begin, starts, edits, begins) if starts else None for begin in begins]
    carried: list[Any] = []
    for before, owner in pairwise([None, *owners]):
        label = "O" if owner is None else labels[owner]
        label = _inside(label) if owner == before else label
        carried.append(_begun(label, carried, labels[: owner or 0]))
    return [noisy[begin:end] for begin, end in pieces], carried


def _pieces(
    tokens: Sequence[str], starts: list[int], noisy: str, edits: Sequence[Edit]
) -> Iterator[tuple[int, int]]:
    """Yield where the noisy tokens begin and end; an empty one only where a clean one is empty."""
    ends = [(-1, 0), *_blanks(starts, noisy, edits), (len(noisy), len(tokens))]
    for (before, token), (end, following) in pairwise(ends):
        untouched = token != BLANK_OF_EDIT and following == token + 1
        if end > before + 1 or (untouched and not tokens[token]):
            yield before + 1, end


def _blanks(starts: list[int], noisy: str, edits: Sequence[Edit]) -> list[tuple[int, int]]:
    """Return the blanks that split the noisy text, each with the clean token that follows it."""
    found = []
    for token, start in enumerate(starts[1:], 1):
        number = bisect_right(edits, start - 1, key=lambda edit: edit["clean_start"]) - 1
        if number < 0:
            found.append((start - 1, token))
        elif edits[number]["clean_end"] <= start - 1:
            shift = edits[number]["noisy_end"] - edits[number]["clean_end"]
            found.append((start - 1 + shift, token))
    for edit in edits:
        span = range(edit["noisy_start"], edit["noisy_end"])
        found += [(at, BLANK_OF_EDIT) for at in span if noisy[at].isspace()]
    return sorted(found)


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


def _begun(label: Any, carried: Sequence[Any], before: Sequence[Any]) -> Any:
    """Return B-x for an I-x whose B-x (in the clean labels `before`) went into a merged token."""
    kind = _kind(label)
    if kind is None or label[0] == "B" or (carried and _kind(carried[-1]) == kind):
        return label
    span = takewhile(lambda earlier: _kind(earlier) == kind, reversed(before))
    return f"B-{kind}" if f"B-{kind}" in span else label


def _kind(label: Any) -> str | None:
    """Return x of B-x and I-x."""
    return label[2:] if isinstance(label, str) and label[:2] in ("B-", "I-") else None
