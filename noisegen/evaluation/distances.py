"""How far noisy text lies from its clean form: cosine distances of pairs of vectors."""

from noisegen.evaluation.unit_vectors import F64, Bool, Vectors, cosines


def cosine_distances(one: Vectors, other: Vectors) -> F64:
    """Return 1 - cosine of each pair of rows; 1 where a vector is zero."""
    return 1 - cosines(one, other)


def cosine_distance(one: Vectors, other: Vectors, changed: Bool | None = None) -> float:
    """Return the mean of 1 - cosine over all pairs, or over the `changed` ones: NaN if none is.

    m(noisy) and m(clean) give RoLASER's distance (Table 4); m(clean) and baseline(clean) the clean
    drift (Table 7); m(noisy) and baseline(clean) the anchored distance.
    """
    distances = cosine_distances(one, other)
    kept = distances if changed is None else distances[changed]
    return float(kept.mean()) if len(kept) else float("nan")


def pair_distances(
    noisy: Vectors, clean: Vectors, changed: Bool, anchor: Vectors | None = None
) -> dict[str, F64]:
    """Return the distances of all pairs by metric: what their means and statistics are made of.

    `changed` tells the pairs whose texts differ; `distance_changed` has only those. With `anchor`,
    the baseline's vectors of the clean texts, there are `drift` and `anchored_distance` too, unless
    its width is another.
    """
    distances = cosine_distances(noisy, clean)
    found = {"distance": distances, "distance_changed": distances[changed]}
    if anchor is not None and anchor.shape[1] == clean.shape[1]:
        found["drift"] = cosine_distances(clean, anchor)
        found["anchored_distance"] = cosine_distances(noisy, anchor)
    return found
