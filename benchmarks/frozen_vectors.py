"""Frozen vectors of any texts, kept in the cache that training has too."""

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from noisegen.encoders.encoder import Vectors, open_encoder
from noisegen.text.resources import cache_folder
from noisegen.training.stores import TextStore, teacher_vectors, writing_texts

Lookup = Callable[[Iterable[str]], Vectors]


def cached(spec: str, texts: Iterable[str]) -> Lookup:
    """Return what gives the vectors of these texts."""
    known = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    with TemporaryDirectory() as folder:
        with writing_texts(Path(folder), "texts") as add:
            for text in known:
                add(text)
        store = TextStore(Path(folder), "texts")
        made = teacher_vectors(open_encoder(spec), store, cache_folder() / "vectors")
    return lambda wanted: made.take(np.array([known[text] for text in wanted]))
