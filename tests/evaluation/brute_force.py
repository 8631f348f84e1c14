"""The obvious versions of the metrics: double loops over lists, nothing shared with the package."""

import math


def cosine(one, other):
    lengths = math.sqrt(math.fsum(a * a for a in one)) * math.sqrt(math.fsum(b * b for b in other))
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    return round(product / lengths, 12) if lengths else 0.0


def nearest(x, ys, k):
    """Return (cosine, row), nearest first, of equal ones the lower row."""
    found = sorted((-cosine(x, y), row) for row, y in enumerate(ys))
    return [(-one, row) for one, row in found[:k]]


def mean_of_nearest(x, ys, k):
    found = nearest(x, ys, k)
    return sum(one for one, _ in found) / len(found)


def xsim_predictions(xs, ys, k, margin):
    """Return the line that each x chooses, as LASER describes it."""
    if margin == "absolute":
        return [nearest(x, ys, 1)[0][1] for x in xs]
    back = [mean_of_nearest(y, xs, k) for y in ys]
    return [_prediction(x, ys, k, margin, back) for x in xs]


def _prediction(x, ys, k, margin, back):
    there = mean_of_nearest(x, ys, k)
    scored = []
    for one, row in nearest(x, ys, k):
        middle = (there + back[row]) / 2
        ratio = one / middle if middle else 0.0
        score = one - middle if margin == "distance" else ratio
        scored.append((-round(score, 12), row))
    return min(scored)[1]


def matching(xs, ys):
    """Return whether each x is at least as near to its own y as to every other."""
    return [all(cosine(x, ys[i]) >= cosine(x, y) for y in ys) for i, x in enumerate(xs)]


def class_similarity(vectors, labels):
    """Return D_avg by a double loop."""
    means, weights = [], []
    for label in set(labels):
        rows = [v for v, one in zip(vectors, labels, strict=True) if one == label]
        pairs = [cosine(a, b) for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j]
        if pairs:
            means.append(sum(pairs) / len(pairs))
            weights.append(len(rows))
    return sum(m * w for m, w in zip(means, weights, strict=True)) / sum(weights)
