"""Measurements of a model on a set, and comparisons with the baseline.

Intervals and tests are over the values by row: a paired bootstrap over sentences for means and for
Spearman's correlation; McNemar's exact test where an item is right or wrong and there is one
noise seed; t-tests over the seeds on request. Holm's correction is over the sets of one kind.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from math import isfinite

import numpy as np

from noisegen.augmentation.statistics import wilson
from noisegen.encoders.encoder import Encoder, Progress, Ragged, Vectors
from noisegen.evaluation import similarity, statistics
from noisegen.evaluation.metrics import metric_of
from noisegen.evaluation.negatives import HardNegatives
from noisegen.evaluation.results import Comparison, Score, StrengthCurve
from noisegen.evaluation.sets import EvaluationSet, PairSet, TextSet, is_tested
from noisegen.evaluation.similarity import F64, Bool
from noisegen.evaluation.xsim_search import (
    HardVectors,
    search_both_ways,
    xsim,
    xsim_hard,
)

CACHE_BYTES = 1 << 30  # of vectors; when there are more, all are forgotten and made again as needed
_POINTS = 100  # sts figures are 100 x Spearman


class VectorStore:
    """A cache of the vectors of texts by one encoder."""

    def __init__(self, encoder: Encoder, progress: Progress | None = None) -> None:
        self.encoder = encoder
        self._progress = progress
        self._vectors: dict[str, Vectors] = {}

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return shape (texts, width)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if (len(self._vectors) + len(new)) * self.encoder.width * 4 > CACHE_BYTES:
            self._vectors, new = {}, list(dict.fromkeys(texts))
        if new:
            self._vectors |= zip(new, self.encoder.encode(new, self._progress), strict=True)
        rows = [self._vectors[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.encoder.width), np.float32)


Rows = dict[str, F64]  # the value of each row, by metric
Figures = dict[str, float]  # what is no mean over all rows, by metric


@dataclass(frozen=True)
class Measured:
    """The figures of a model on a set: `seeds` has one per noise seed, by metric.

    `rows` has, for metrics that are means over rows, the value of each row (of several seeds their
    mean); for correlations the cosine of each row.
    """

    seeds: dict[str, tuple[float, ...]]
    rows: Rows = field(default_factory=dict)


def measure(
    dataset: EvaluationSet, store: VectorStore, anchor: Vectors | None = None,
    targets: VectorStore | None = None,
) -> Measured:  # fmt: skip
    """Measure a model on a set; `anchor` has the baseline's vectors of a pair set's clean texts.

    If its width differs, drift and anchored distance are left out. Without `anchor` the model is
    the baseline, which also has a type/token ratio if it has a tokenizer. `targets` encodes the
    targets of translations, if another model does.
    """
    if isinstance(dataset, TextSet):
        return _of_texts(dataset, {"target": targets or store}, store)
    clean = store(dataset.clean)
    hard = dataset.negatives and _hard_vectors(dataset.negatives, store)
    by_seed = []
    for noisy, changed in zip(dataset.noisy, dataset.changed, strict=True):
        vectors = store(noisy)
        rows = pair_distances(vectors, clean, clean if anchor is None else anchor)
        figures = Figures()
        if changed.any():
            figures["distance_changed"] = float(rows["distance"][changed].mean())
        rows |= _searched(vectors, noisy, clean, dataset.clean)
        if hard:
            rows["xsim_hard_error"], lost = _among_hard(vectors, clean, hard, dataset.clean)
            figures |= lost
        if dataset.pool:
            pool, texts = store(dataset.pool), [*dataset.clean, *dataset.pool]
            nearest = xsim(vectors, np.concatenate([clean, pool]), margin="absolute", texts=texts)
            rows["accuracy_pool"] = _percent(nearest.correct)
        by_seed.append((rows, figures))
    measured = _over_seeds(by_seed)
    if anchor is None:  # no drift against itself: nothing but rounding
        del measured.rows["drift"]
        measured.seeds["drift"] = (0.0,) * len(dataset.noisy)
        tokenizer = getattr(store.encoder, "tokenizer", store.encoder)
        if hasattr(tokenizer, "tokenize"):  # LASER2 splits into pieces itself
            measured.seeds.update(_type_token_ratios(dataset, tokenizer.tokenize))
    return measured


def _searched(x: Vectors, x_texts: Sequence[str], y: Vectors, y_texts: Sequence[str]) -> Rows:
    """Return which rows of x miss or match their own row of y, and the other way round."""
    found = search_both_ways(x, y, x_texts, y_texts)
    return {
        "xsim_error": _percent(~found.forward.correct),
        "xsim_error_reverse": _percent(~found.backward.correct),
        "accuracy_forward": _percent(found.matching.forward),
        "accuracy_backward": _percent(found.matching.backward),
    }


def _hard_vectors(negatives: HardNegatives, store: VectorStore) -> HardVectors:
    return HardVectors(store(negatives.texts), negatives.sources, negatives.kinds)


def _among_hard(
    x: Vectors, y: Vectors, hard: HardVectors, y_texts: Sequence[str]
) -> tuple[F64, Figures]:
    """Return which rows of x miss their own row of y among hard negatives, and errors by kind."""
    lost = xsim_hard(x, y, hard, texts=y_texts)
    rates = {f"xsim_hard_{kind}": rate for kind, rate in lost.kind_rates.items()}
    return _percent(~lost.correct), rates


def _type_token_ratios(
    dataset: PairSet, tokenize: Callable[[Sequence[str]], Ragged]
) -> dict[str, tuple[float, ...]]:
    """Return the type/token ratios of both sides, and of each noisy side over the clean one."""
    special = set(tokenize([""]).values.tolist())
    clean, *noisy = (
        similarity.type_token_ratio(tokenize(side), without=special)
        for side in (dataset.clean, *dataset.noisy)
    )
    ratios = tuple(ratio / clean for ratio in noisy)
    return {"ttr_ratio": ratios, "ttr_noisy": tuple(noisy), "ttr_clean": (clean,)}


def _of_texts(dataset: TextSet, stores: Mapping[str, VectorStore], store: VectorStore) -> Measured:
    """Measure a set whose columns are encoded by `stores`, or else by `store`."""
    vectors = {name: stores.get(name, store)(texts) for name, texts in dataset.columns.items()}
    labels, rows, figures = dataset.truth.tolist(), Rows(), Figures()
    match dataset.kind:
        case "sts":
            first, second = vectors["first"], vectors["second"]
            first_noisy, second_noisy = vectors["first_noisy"], vectors["second_noisy"]
            rows["sts_clean"] = similarity.cosines(first, second)
            rows["sts_one_noisy"] = similarity.cosines(first_noisy, second)
            rows["sts_both_noisy"] = similarity.cosines(first_noisy, second_noisy)
            for name, cosines in rows.items():
                figures[name] = _POINTS * similarity.spearman(cosines, np.array(labels))
        case "retrieval":
            source, target = dataset.columns["source"], dataset.columns["target"]
            rows |= _searched(vectors["source"], source, vectors["target"], target)
            for side, negatives in dataset.negatives.items():
                (other,) = dataset.columns.keys() - {side}
                hard = _hard_vectors(negatives, stores.get(side, store))
                rows["xsim_hard_error"], figures = _among_hard(
                    vectors[other], vectors[side], hard, dataset.columns[side]
                )
        case "classification":
            tested = is_tested(dataset.columns["clean"])
            train, trained = vectors["clean"][~tested], list(compress(labels, ~tested))
            tests = {side: vectors[side][tested] for side in ("clean", "noisy")}
            truth = list(compress(labels, tested))
            for side, classified in similarity.classify(train, trained, tests, truth).items():
                rows[f"accuracy_{side}"] = 100 * classified.correct
                figures[f"f1_{side}"] = classified.f1
            if max(Counter(labels).values()) > 1:
                within = similarity.mean_class_similarity(vectors["clean"], labels)
                figures["class_similarity"] = within
        case "pair_classification":
            for side, column in (("clean", "first"), ("noisy", "first_noisy")):
                precision = similarity.classify_pairs(vectors[column], vectors["second"], labels)
                figures[f"average_precision_{side}"] = precision
    return _over_seeds([(rows, figures)])


def _over_seeds(by_seed: Sequence[tuple[Rows, Figures]]) -> Measured:
    """Return figures by seed, means of rows unless given, and the mean over seeds of each row."""
    names = list(by_seed[0][0])
    seeds = {name: tuple(float(rows[name].mean()) for rows, _ in by_seed) for name in names}
    for name in dict.fromkeys(name for _, figures in by_seed for name in figures):
        seeds[name] = tuple(figures[name] for _, figures in by_seed if name in figures)
    return Measured(
        seeds, {name: np.mean([rows[name] for rows, _ in by_seed], axis=0) for name in names}
    )


def _percent(where: Bool) -> F64:
    return np.where(where, 100.0, 0.0)


def pair_distances(noisy: Vectors, clean: Vectors, anchor: Vectors) -> Rows:
    """Return the distances of all pairs by metric; `anchor` are the baseline's of the clean texts.

    If its width differs, there is no `drift` and no `anchored_distance`.
    """
    distances = {"distance": similarity.cosine_distances(noisy, clean)}
    if anchor.shape[1] == clean.shape[1]:
        distances["drift"] = similarity.cosine_distances(clean, anchor)
        distances["anchored_distance"] = similarity.cosine_distances(noisy, anchor)
    return distances


def by_strength(model: str, dataset: PairSet, store: VectorStore) -> StrengthCurve:
    """Return distance and xSIM error at each strength."""
    clean, sides = store(dataset.clean), [store(noisy) for noisy in dataset.strengths.values()]
    distances = tuple(similarity.cosine_distance(noisy, clean) for noisy in sides)
    errors = tuple(xsim(noisy, clean, texts=dataset.clean).error_rate for noisy in sides)
    return StrengthCurve(model, dataset.name, tuple(dataset.strengths), distances, errors)


BySet = Mapping[str, Measured]
Key = tuple[str, str]  # set, metric


def scores(
    sets: Sequence[EvaluationSet], measured: BySet, *, paper_stats: bool = False
) -> dict[str, dict[str, Score]]:
    """Return the figures of one model by set and metric, without those that are not finite.

    `paper_stats`: with one-sample t-tests over the noise seeds, as in RoLASER.
    """
    intervals: dict[Key, tuple[float, float]] = {}
    for columns, gold in _resampled_together(sets, measured):
        if gold is not None:
            for key, estimate in statistics.spearman_intervals(columns, gold).items():
                intervals[key] = _POINTS * estimate.low, _POINTS * estimate.high
            continue
        for key, estimate in statistics.mean_intervals(columns).items():
            intervals[key] = estimate.low, estimate.high
            rows = columns[key]
            if metric_of(key[1]).test == "items" and set(np.unique(rows)) <= {0.0, 100.0}:
                # Wilson's: a bootstrap of no errors would be sure of none.
                limits = wilson(float(rows.mean()) / 100, len(rows))
                intervals[key] = 100 * limits[0], 100 * limits[1]
    by_set: dict[str, dict[str, Score]] = {}
    for dataset in sets:
        by_set[dataset.name] = of_set = {}
        for metric, values in measured[dataset.name].seeds.items():
            if values and all(map(isfinite, values)):
                low, high = intervals.get((dataset.name, metric), (None, None))
                several = len(values) > 1
                sd = float(np.std(values, ddof=1)) if several else None
                seeds = values if several else ()
                null, p = metric_of(metric).null if paper_stats and several else None, None
                if null is not None:
                    p = statistics.one_sample_t(values, null)
                of_set[metric] = Score(float(np.mean(values)), low, high, sd, seeds, p)
    return by_set


def _resampled_together(
    sets: Iterable[EvaluationSet], measured: BySet
) -> list[tuple[dict[Key, F64], F64 | None]]:
    """Return the values by row of sets with the same rows, and the scores they correlate with."""
    means: dict[str, dict[Key, F64]] = defaultdict(dict)
    correlations = []
    for dataset in sets:
        rows = measured[dataset.name].rows
        columns = {(dataset.name, metric): values for metric, values in rows.items()}
        if isinstance(dataset, TextSet) and dataset.kind == "sts":
            correlations.append((columns, dataset.truth.astype(np.float64)))
        elif isinstance(dataset, PairSet) and dataset.seeds:
            means[f"rows of {dataset.group}"] |= columns
        elif columns:
            means[dataset.name] |= columns
    return [*((columns, None) for columns in means.values()), *correlations]


def compare(
    sets: Sequence[EvaluationSet], model: str, ours: BySet, theirs: BySet,
    *, paper_stats: bool = False,
) -> list[Comparison]:  # fmt: skip
    """Compare a model with the baseline (`theirs`) in each metric that both have by row.

    `paper_stats`: two-sample t-tests over the noise seeds, as in RoLASER, if there are two or more.
    """
    comparisons: list[Comparison] = []
    families: dict[Key, list[int]] = defaultdict(list)
    kinds = {dataset.name: dataset.kind for dataset in sets}
    groups = zip(_resampled_together(sets, ours), _resampled_together(sets, theirs), strict=True)
    for (columns, gold), (others, _) in groups:
        shared = [key for key in columns if key in others and metric_of(key[1]).test]
        if not shared:
            continue
        left, right = ({key: side[key] for key in shared} for side in (columns, others))
        if gold is None:
            differences, factor = statistics.mean_differences(left, right), 1
        else:
            differences, factor = statistics.spearman_differences(left, right, gold), _POINTS
        for (name, metric), difference in differences.items():
            rows = left[name, metric], right[name, metric]
            p = 1.0 if np.array_equal(*rows) else difference.p
            value = factor * difference.value
            comparison = Comparison(model, name, metric, value, "bootstrap", p, p)
            seeds = [side[name].seeds[metric] for side in (ours, theirs)]
            if metric_of(metric).test == "items" and len(seeds[0]) == 1:
                goal = 0 if metric_of(metric).better == "low" else 100
                test = statistics.mcnemar(rows[0] == goal, rows[1] == goal)
                comparison = replace(comparison, test="mcnemar", **vars(test))
            if paper_stats and min(map(len, seeds)) > 1:
                comparison = replace(comparison, test="t", p=statistics.two_sample_t(*seeds))
            families[kinds[name], metric].append(len(comparisons))
            comparisons.append(comparison)
    for family in families.values():
        corrected = statistics.holm([comparisons[index].p for index in family]).tolist()
        for index, p in zip(family, corrected, strict=True):
            comparisons[index] = replace(comparisons[index], p_holm=p)
    return comparisons
