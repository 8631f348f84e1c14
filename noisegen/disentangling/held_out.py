"""What heads make of the pairs that were held out: retrieval both ways, vectors to draw."""

import numpy as np

from noisegen.disentangling.heads import Heads
from noisegen.disentangling.measures import Figures, Retrieval, Sets, measure, measure_heads
from noisegen.disentangling.pair_vectors import PairVectors
from noisegen.encoders.encoder import Vectors
from noisegen.training.plan import Rows

ENCODER = "encoder"
PAIRS_MAX = 1_000  # of two labels that are looked up, as in the ORACLE paper


def retrieval_of(vectors: PairVectors, rows: Rows) -> list[Retrieval]:
    """Return the frozen vectors of these pairs, a set for each two labels, `en-de`.

    Of many pairs the first `PAIRS_MAX` of each are taken.
    """
    pairs = vectors.pairs
    labels = np.stack([pairs.source_label[rows], pairs.target_label[rows]], axis=1)
    sets = []
    for source, target in np.unique(labels, axis=0).tolist():
        some = rows[(labels == (source, target)).all(1)][:PAIRS_MAX]
        there, back = (vectors.vectors.take(side[some]) for side in (pairs.source, pairs.target))
        sets.append(Retrieval(f"{pairs.names[source]}-{pairs.names[target]}", there, back))
    return sets


def retrieval_figures(sets: list[Retrieval], heads: Heads) -> dict[str, Figures]:
    """Return per cent found of the encoder's own, of meaning and of language vectors.

    Of each: `retrieval.forward`, `.backward` (means over the sets), `.forward.en-de` and so on.
    """
    found = Sets(sets)
    return {ENCODER: measure(found, lambda own: own), **measure_heads(found, heads)}


def by_label(vectors: PairVectors, rows: Rows) -> dict[str, Vectors]:
    """Return the frozen vectors of the distinct texts of these pairs by their labels."""
    pairs = vectors.pairs
    texts = np.concatenate([pairs.source[rows], pairs.target[rows]])
    labels = np.concatenate([pairs.source_label[rows], pairs.target_label[rows]])
    return {
        pairs.names[label]: vectors.vectors.take(np.unique(texts[labels == label]))
        for label in np.unique(labels).tolist()
    }
