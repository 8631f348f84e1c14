"""Measures a model on a set, and compares it with the baseline.

Intervals and tests are over the values by row: a paired bootstrap over sentences for means and for
Spearman's correlation; McNemar's exact test where an item is right or wrong and there is one
generation seed; t-tests over the seeds if asked for. Holm's correction over the sets of one kind.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from math import isfinite
from typing import Any

import numpy as np

from noisegen.augment.statistics import wilson
from noisegen.encoders.encoder import Encoder, Progress, Vectors
from noisegen.evaluation.metrics import METRICS
from noisegen.evaluation.results import Comparison, Score, StrengthCurve
from noisegen.evaluation.sets import (
    Bool,
    EvaluationSet,
    LabelledPairSet,
    LabelledSet,
    PairSet,
    RetrievalSet,
    StrengthSet,
    StsSet,
)
from noisegen.evaluation.similarity import (
    F64,
    classify,
    classify_pairs,
    cosine_distance,
    cosine_distances,
    cosines,
    mean_class_similarity,
    spearman,
    type_token_ratio,
)
from noisegen.evaluation.statistics import (
    WithInterval,
    holm,
    mcnemar,
    mean_differences,
    mean_intervals,
    spearman_differences,
    spearman_intervals,
    two_sample_t,
)
from noisegen.evaluation.xsim_search import matching_accuracy, xsim, xsim_hard

CACHE_BYTES = 1 << 30  # of vectors; when there are more, all are forgotten and made again as needed


class VectorStore:
    """Gives the vectors of texts by one encoder, each encoded once, and remembers them."""

    def __init__(self, encoder: Encoder, progress: Progress | None = None) -> None:
        self.encoder = encoder
        self._progress = progress
        self._rows: dict[str, int] = {}
        self._blocks: list[Vectors] = []

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return shape (texts, width)."""
        self.add(texts)
        if len(self._blocks) != 1:
            empty = np.zeros((0, self.encoder.width), np.float32)
            self._blocks = [np.concatenate([empty, *self._blocks])]
        return self._blocks[0][[self._rows[text] for text in texts]]

    def add(self, texts: Iterable[str]) -> None:
        """Encode those texts that are new, all at once."""
        wanted = list(dict.fromkeys(texts))
        new = [text for text in wanted if text not in self._rows]
        if (len(self._rows) + len(new)) * self.encoder.width * 4 > CACHE_BYTES:
            self._rows, self._blocks, new = {}, [], wanted
        if new:
            self._blocks.append(self.encoder.encode(new, self._progress))
            self._rows |= {text: row for row, text in enumerate(new, len(self._rows))}


@dataclass(frozen=True)
class Measured:
    """The figures of a model on a set: `seeds` has one for each generation seed, by metric.

    `rows` has, for metrics that are means over rows, the value of each row (of several seeds their
    mean). `cosines` are those of sts pairs, by metric.
    """

    seeds: dict[str, tuple[float, ...]]
    rows: dict[str, F64] = field(default_factory=dict)
    cosines: dict[str, F64] = field(default_factory=dict)


def measure(dataset: EvaluationSet, store: VectorStore, anchor: Vectors | None = None) -> Measured:
    """Measure a model on a set; `anchor` has the baseline's vectors of a pair set's clean texts.

    Without `anchor`, or if it is of another width, drift and anchored distance are left out.
    """
    if isinstance(dataset, PairSet):
        return _pairs(dataset, store, anchor)
    return _MEASURES[type(dataset)](dataset, store)


def type_token_changes(dataset: PairSet, encoder: Encoder) -> tuple[float, ...]:
    """Return the type/token ratio of noisy over clean text by seed; () without a tokenizer."""
    tokenizer = getattr(encoder, "tokenizer", None)
    if tokenizer is None:
        return ()
    special = set(tokenizer.tokenize([""]).values.tolist())
    clean = type_token_ratio(tokenizer.tokenize(dataset.clean), without=special)
    return tuple(
        type_token_ratio(tokenizer.tokenize(noisy), without=special) / clean
        for noisy in dataset.noisy
    )


def strength_curve(model: str, dataset: StrengthSet, store: VectorStore) -> StrengthCurve:
    """Return distance and xSIM error at every strength."""
    clean, sides = store(dataset.clean), [store(noisy) for noisy in dataset.noisy]
    distances = tuple(cosine_distance(noisy, clean) for noisy in sides)
    errors = tuple(xsim(noisy, clean, texts=dataset.clean).error_rate for noisy in sides)
    return StrengthCurve(model, dataset.name, dataset.strengths, distances, errors)


@dataclass(frozen=True)
class _OfSeed:
    """Values by row, and figures that are no mean over all rows."""

    rows: dict[str, F64]
    figures: dict[str, float] = field(default_factory=dict)


def _over_seeds(by_seed: Sequence[_OfSeed]) -> Measured:
    """Return figures by seed, and the mean over seeds of each row."""
    seeds = {
        name: tuple(float(of_seed.rows[name].mean()) for of_seed in by_seed)
        for name in by_seed[0].rows
    }
    for name in dict.fromkeys(name for of_seed in by_seed for name in of_seed.figures):
        seeds[name] = tuple(of_seed.figures[name] for of_seed in by_seed if name in of_seed.figures)
    rows = {
        name: np.mean([of_seed.rows[name] for of_seed in by_seed], axis=0)
        for name in by_seed[0].rows
    }
    return Measured(seeds, rows)


def _percent(where: Bool) -> F64:
    return np.where(where, 100.0, 0.0)


def _pairs(dataset: PairSet, store: VectorStore, anchor: Vectors | None) -> Measured:
    clean = store(dataset.clean)
    hard = store(dataset.negatives.texts) if dataset.negatives else None
    by_seed = []
    for noisy, changed in zip(dataset.noisy, dataset.changed, strict=True):
        vectors = store(noisy)
        rows, figures = pair_distances(vectors, clean, anchor), {}
        if changed.any():
            figures["distance_changed"] = float(rows["distance"][changed].mean())
        matched = matching_accuracy(vectors, clean)
        rows |= {
            "xsim_error": _percent(~xsim(vectors, clean, texts=dataset.clean).correct),
            "xsim_error_reverse": _percent(~xsim(clean, vectors, texts=noisy).correct),
            "accuracy_forward": _percent(matched.forward),
            "accuracy_backward": _percent(matched.backward),
        }
        if dataset.negatives is not None and hard is not None:
            sources, kinds = dataset.negatives.sources, dataset.negatives.kinds
            lost = xsim_hard(
                vectors, clean, hard, sources=sources, kinds=kinds, texts=dataset.clean
            )
            rows["xsim_hard_error"] = _percent(~lost.correct)
            figures |= {f"xsim_hard_{kind}": rate for kind, rate in lost.kind_rates.items()}
        by_seed.append(_OfSeed(rows, figures))
    return _over_seeds(by_seed)


def pair_distances(noisy: Vectors, clean: Vectors, anchor: Vectors | None) -> dict[str, F64]:
    """Return the distances of all pairs by metric.

    With `anchor`, the baseline's vectors of the clean texts, there are `drift` and
    `anchored_distance` too, unless its width is another.
    """
    distances = {"distance": cosine_distances(noisy, clean)}
    if anchor is not None and anchor.shape[1] == clean.shape[1]:
        distances["drift"] = cosine_distances(clean, anchor)
        distances["anchored_distance"] = cosine_distances(noisy, anchor)
    return distances


def _sts(dataset: StsSet, store: VectorStore) -> Measured:
    first, second = store(dataset.first), store(dataset.second)
    noisy = store(dataset.first_noisy), store(dataset.second_noisy)
    similarities = {
        "sts_clean": cosines(first, second),
        "sts_one_noisy": cosines(noisy[0], second),
        "sts_both_noisy": cosines(*noisy),
    }
    figures: dict[str, tuple[float, ...]] = {
        name: (100 * spearman(side, dataset.scores),) for name, side in similarities.items()
    }
    return Measured(figures, cosines=similarities)


def _retrieval(dataset: RetrievalSet, store: VectorStore) -> Measured:
    matched = matching_accuracy(store(dataset.source), store(dataset.target))
    sides = {"accuracy_forward": matched.forward, "accuracy_backward": matched.backward}
    return _over_seeds([_OfSeed({name: _percent(side) for name, side in sides.items()})])


def _labelled(dataset: LabelledSet, store: VectorStore) -> Measured:
    clean, noisy = store(dataset.clean), store(dataset.noisy)
    train, test = (
        list(compress(dataset.labels, side)) for side in (~dataset.tested, dataset.tested)
    )
    tests = {"clean": clean[dataset.tested], "noisy": noisy[dataset.tested]}
    by_side = classify(clean[~dataset.tested], train, tests, test)
    rows = {f"accuracy_{side}": 100 * classified.correct for side, classified in by_side.items()}
    figures = {f"f1_{side}": classified.f1 for side, classified in by_side.items()}
    if max(Counter(dataset.labels).values()) > 1:
        figures["class_similarity"] = mean_class_similarity(clean, dataset.labels)
    return _over_seeds([_OfSeed(rows, figures)])


def _labelled_pairs(dataset: LabelledPairSet, store: VectorStore) -> Measured:
    second = store(dataset.second)
    sides = {"clean": store(dataset.first), "noisy": store(dataset.first_noisy)}
    ranked = {name: classify_pairs(side, second, dataset.labels) for name, side in sides.items()}
    return Measured(
        {f"average_precision_{name}": (r.average_precision,) for name, r in ranked.items()}
    )


_MEASURES: Mapping[type, Callable[[Any, VectorStore], Measured]] = {
    StsSet: _sts,
    RetrievalSet: _retrieval,
    LabelledSet: _labelled,
    LabelledPairSet: _labelled_pairs,
}


BySet = Mapping[str, Measured]
Key = tuple[str, str]  # set, metric
_POINTS = 100  # sts figures are 100 x Spearman


def scores(sets: Sequence[EvaluationSet], measured: BySet) -> dict[str, dict[str, Score]]:
    """Return the figures of one model by set and metric; those that are no number are left out."""
    intervals = _intervals(sets, measured)
    by_set: dict[str, dict[str, Score]] = {}
    for dataset in sets:
        by_set[dataset.name] = of_set = {}
        for metric, values in measured[dataset.name].seeds.items():
            if values and all(map(isfinite, values)):
                interval = intervals.get((dataset.name, metric))
                low, high = (interval.low, interval.high) if interval else (None, None)
                several = len(values) > 1
                sd = float(np.std(values, ddof=1)) if several else None
                seeds = values if several else ()
                of_set[metric] = Score(float(np.mean(values)), low, high, sd, seeds)
    return by_set


def _intervals(sets: Sequence[EvaluationSet], measured: BySet) -> dict[Key, WithInterval]:
    intervals: dict[Key, WithInterval] = {}
    for columns in _columns(sets, measured):
        intervals |= mean_intervals(columns)
        for key, rows in columns.items():
            if METRICS[key[1]].test == "items" and set(np.unique(rows)) <= {0.0, 100.0}:
                # Wilson's: a bootstrap of no errors would be sure of none.
                share = float(rows.mean()) / 100
                limits = (100 * limit for limit in wilson(share, len(rows)))
                intervals[key] = WithInterval(100 * share, *limits)
    for dataset in sets:
        if isinstance(dataset, StsSet):
            cosines = measured[dataset.name].cosines
            for metric, estimate in spearman_intervals(cosines, dataset.scores).items():
                points = (_POINTS * value for value in vars(estimate).values())
                intervals[dataset.name, metric] = WithInterval(*points)
    return intervals


def _columns(sets: Sequence[EvaluationSet], measured: BySet) -> Iterator[dict[Key, F64]]:
    """Yield the values by row of sets with the same rows, which are resampled together."""
    groups: dict[str, dict[Key, F64]] = defaultdict(dict)
    for dataset in sets:
        shares_rows = isinstance(dataset, PairSet) and dataset.seeds
        group = (
            f"rows of {dataset.group}"
            if isinstance(dataset, PairSet) and shares_rows
            else dataset.name
        )
        rows = measured[dataset.name].rows
        groups[group] |= {(dataset.name, metric): values for metric, values in rows.items()}
    yield from filter(None, groups.values())


def compare(
    sets: Sequence[EvaluationSet], model: str, ours: BySet, theirs: BySet,
    *, paper_stats: bool = False,
) -> list[Comparison]:  # fmt: skip
    """Compare a model with the baseline (`theirs`) in each metric that both have by row.

    `paper_stats`: two-sample t-tests over the generation seeds, as in RoLASER, where there are two
    seeds or more.
    """
    comparisons = [*_by_means(sets, model, ours, theirs), *_by_spearman(sets, model, ours, theirs)]
    kinds = {dataset.name: dataset.kind for dataset in sets}
    families: dict[Key, list[Comparison]] = defaultdict(list)
    for comparison in comparisons:
        name, metric = comparison.dataset, comparison.metric
        seeds = [side[name].seeds[metric] for side in (ours, theirs)]
        if paper_stats and min(map(len, seeds)) > 1:
            comparison = replace(comparison, test="t", p=two_sample_t(*seeds))
        families[kinds[name], metric].append(comparison)
    corrected: dict[Key, Comparison] = {}
    for family in families.values():
        for comparison, p in zip(family, holm([one.p for one in family]).tolist(), strict=True):
            corrected[comparison.dataset, comparison.metric] = replace(comparison, p_holm=p)
    return [corrected[comparison.dataset, comparison.metric] for comparison in comparisons]


def _by_means(
    sets: Sequence[EvaluationSet], model: str, ours: BySet, theirs: BySet
) -> Iterator[Comparison]:
    """Compare means by the bootstrap, or by McNemar's test where rows are right or wrong."""
    for columns, others in zip(_columns(sets, ours), _columns(sets, theirs), strict=True):
        shared = [key for key in columns if key in others and METRICS[key[1]].test]
        if not shared:
            continue
        sides = [{key: side[key] for key in shared} for side in (columns, others)]
        for key, difference in mean_differences(sides[0], sides[1]).items():
            name, metric = key
            rows = [side[key] for side in sides]
            p = 1.0 if np.array_equal(rows[0], rows[1]) else difference.p
            comparison = Comparison(model, name, metric, difference.value, "bootstrap", p, p)
            if METRICS[metric].test == "items" and len(ours[name].seeds[metric]) == 1:
                right = [side == (0 if METRICS[metric].better == "low" else 100) for side in rows]
                test = mcnemar(right[0], right[1])
                comparison = replace(
                    comparison, test="mcnemar", p=test.p, repaired=test.repaired, broken=test.broken
                )
            yield comparison


def _by_spearman(
    sets: Sequence[EvaluationSet], model: str, ours: BySet, theirs: BySet
) -> Iterator[Comparison]:
    for dataset in sets:
        if isinstance(dataset, StsSet):
            side, other = ours[dataset.name].cosines, theirs[dataset.name].cosines
            for metric, estimate in spearman_differences(side, other, dataset.scores).items():
                p = 1.0 if np.array_equal(side[metric], other[metric]) else estimate.p
                difference = _POINTS * estimate.value
                yield Comparison(model, dataset.name, metric, difference, "bootstrap", p, p)
