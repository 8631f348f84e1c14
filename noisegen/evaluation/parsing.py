"""English sentences as spaCy reads them, where it is installed."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from noisegen.taggers import installed_model


@cache
def _pipeline(model: str) -> Any:
    import spacy

    return spacy.load(model)


def parsed(texts: Sequence[str], lang: str) -> list[Any] | None:
    """Return the texts as spaCy documents; None where no model of the language is installed."""
    model = installed_model(lang)
    return list(_pipeline(model).pipe(texts, batch_size=64)) if model else None
