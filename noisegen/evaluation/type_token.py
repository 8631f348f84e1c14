"""Type/token ratio: how many different pieces a text is cut into, noisy against clean."""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

import numpy as np

from noisegen.encoders.ragged import Ragged

Tokens = Callable[[str], Iterable[Hashable]]


def type_token_ratio(
    texts: Sequence[str] | Ragged, tokens: Tokens = str.split, without: Collection[int] = ()
) -> float:
    """Return 100 x types / tokens over all texts together (RoLASER, section 5); NaN without tokens.

    Texts are cut by `tokens`; or give rows of ids that are cut already, where `without` are those
    that do not count, such as the special ids of a tokenizer.
    """
    if isinstance(texts, Ragged):
        ids = texts.values[~np.isin(texts.values, list(without))]
        types, total = len(np.unique(ids)), len(ids)
    else:
        seen: set[Hashable] = set()
        total = 0
        for text in texts:
            cut = list(tokens(text))
            seen.update(cut)
            total += len(cut)
        types = len(seen)
    return 100 * types / total if total else float("nan")


def type_token_change(
    noisy: Sequence[str] | Ragged, clean: Sequence[str] | Ragged, tokens: Tokens = str.split,
    without: Collection[int] = (),
) -> float:  # fmt: skip
    """Return the ratio of noisy text over that of clean text; NaN if one side has no tokens."""
    ratio = type_token_ratio(clean, tokens, without)
    return type_token_ratio(noisy, tokens, without) / ratio if ratio else float("nan")
