"""Stores of texts that tests write."""

from collections.abc import Iterable
from pathlib import Path

from noisegen.training.stores import TextStore, writing_texts


def write_texts(folder: Path, name: str, texts: Iterable[str]) -> TextStore:
    """Write texts and open their store."""
    with writing_texts(folder, name) as add:
        for text in texts:
            add(text)
    return TextStore(folder, name)
