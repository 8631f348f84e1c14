"""Measure a model on a set, and compare models with the baseline.

Intervals and tests use the values of single rows: a paired bootstrap over sentences for means and
for Spearman's correlation; McNemar's exact test where a row is right or wrong and there is one
noise seed. On request, t-tests over the noise seeds are used instead. Holm's method corrects the
p-values over all sets of one kind.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from math import isfinite

import numpy as np

from noisegen.augmentation.statistics import wilson
from noisegen.encoders.encoder import Encoder, Progress, Ragged, Vectors
from noisegen.evaluation import similarity, statistics
from noisegen.evaluation.document_search import PART, ranked, ranking_scores
from noisegen.evaluation.metrics import metric_of
from noisegen.evaluation.negatives import HardNegatives
from noisegen.evaluation.results import Comparison, Score, StrengthCurve, floor_of
from noisegen.evaluation.sets import EvaluationSet, PairSet, SearchSet, TextSet, is_tested
from noisegen.evaluation.similarity import F64, Bool
from noisegen.evaluation.xsim_search import (
    HardVectors,
    search_both_ways,
    xsim,
    xsim_hard,
)

CACHE_BYTES = 1 << 30  # maximum bytes of vectors in a cache; a full cache is cleared
_POINTS = 100  # STS results are 100 x Spearman's correlation


class VectorStore:
    """Encoder that caches the vectors of texts it has encoded, up to `cache_bytes` bytes."""

    def __init__(
        self, encoder: Encoder, progress: Progress | None = None, cache_bytes: int = CACHE_BYTES
    ) -> None:
        self.encoder, self.cache_bytes = encoder, cache_bytes
        self._progress = progress
        self._vectors: dict[str, Vectors] = {}

    @property
    def cached(self) -> int:
        """The number of texts whose vectors are in the cache."""
        return len(self._vectors)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, shape (texts, width).

        Only texts that are not in the cache are encoded.
        """
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if (len(self._vectors) + len(new)) * self.encoder.width * 4 > self.cache_bytes:
            self._vectors, new = {}, list(dict.fromkeys(texts))
        if new:
            self._vectors |= zip(new, self.encoder.encode(new, self._progress), strict=True)
        rows = [self._vectors[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.encoder.width), np.float32)

    def parts(self, texts: Sequence[str], size: int) -> Iterator[Vectors]:
        """Yield the vectors of `size` texts at a time; only texts that all fit are cached."""
        fit = len(texts) * self.encoder.width * 4 <= self.cache_bytes
        for start in range(0, len(texts), size):
            part = texts[start : start + size]
            yield self(part) if fit else self.encoder.encode(part, self._progress)


Rows = dict[str, F64]  # metric -> its value in each row
Figures = dict[str, float]  # metric -> its value, for metrics that are not a mean over all rows


@dataclass(frozen=True)
class Measured:
    """Values of the metrics of a model on a test set.

    `seeds` maps each metric to its value under each noise seed. `rows` maps each metric that is
    computed row by row to a value per row, averaged over the noise seeds. For a correlation this is
    the cosine of the two sentences in the row. `ndcg` has the nDCG@10 of a search at each strength
    of the noise.
    """

    seeds: dict[str, tuple[float, ...]]
    rows: Rows = field(default_factory=dict)
    ndcg: tuple[float, ...] = ()


def measure(
    dataset: EvaluationSet,
    store: VectorStore,
    anchor: Vectors | None = None,
    targets: VectorStore | None = None,
) -> Measured:
    """Measure a model on a set; `store` encodes texts with the model.

    `anchor` has the baseline's vectors of the clean texts in a set of pairs; if their width differs
    from the model's, clean drift and anchored distance are left out. If `anchor` is None, the model
    is the baseline, which also gets type/token ratios if it has a tokenizer. `targets` encodes
    translations with another model (--target-model).
    """
    if isinstance(dataset, TextSet):
        return _of_texts(dataset, store, store if targets is None else targets)
    if isinstance(dataset, SearchSet):
        return _of_search(dataset, store)
    return _of_pairs(dataset, store, anchor)


def _of_pairs(dataset: PairSet, store: VectorStore, anchor: Vectors | None) -> Measured:
    """Measure a model on a set of clean texts and their noisy forms."""
    clean = store(dataset.clean)
    hard = _hard_vectors(dataset.negatives, store) if dataset.negatives else None
    by_seed = []
    for noisy, changed in zip(dataset.noisy, dataset.changed, strict=True):
        vectors = store(noisy)
        rows = pair_distances(vectors, clean, clean if anchor is None else anchor)
        figures = Figures()
        if changed.any():
            figures["distance_changed"] = float(rows["distance"][changed].mean())
        rows |= _searched(vectors, noisy, clean, dataset.clean)
        if hard:
            rows["xsim_hard_error"], rates = _among_hard(vectors, clean, hard, dataset.clean)
            figures |= rates
        if dataset.pool:
            lines = np.concatenate([clean, store(dataset.pool)])
            texts = [*dataset.clean, *dataset.pool]
            nearest = xsim(vectors, lines, margin="absolute", texts=texts)
            rows["accuracy_pool"] = _percent(nearest.correct)
        by_seed.append((rows, figures))
    measured = _over_seeds(by_seed)
    measured.seeds.update(_by_kind(dataset, store, clean if anchor is None else anchor))
    if anchor is None:  # the baseline: its computed drift would be rounding errors
        del measured.rows["drift"]
        measured.seeds["drift"] = (0.0,) * len(dataset.noisy)
        tokenizer = getattr(store.encoder, "tokenizer", store.encoder)  # LASER2 tokenises by itself
        if hasattr(tokenizer, "tokenize"):
            measured.seeds.update(_type_token_ratios(dataset, tokenizer.tokenize))
    return measured


def _by_kind(dataset: PairSet, store: VectorStore, anchor: Vectors) -> dict[str, tuple[float, ...]]:
    """Return the anchored distance that the edits of each kind make alone, by metric.

    It is the sum over the pairs that have such edits, divided by the number of all pairs: so the
    kinds can be added up. {} for a model whose width is not the baseline's.
    """
    if anchor.shape[1] != store.encoder.width:
        return {}
    sums = {
        kind: float(similarity.cosine_distances(store(texts), anchor[rows]).sum())
        for kind, (rows, texts) in dataset.kinds.items()
    }
    return {f"anchored_{kind}": (total / len(dataset),) for kind, total in sums.items()}


def pair_distances(noisy: Vectors, clean: Vectors, anchor: Vectors) -> Rows:
    """Return the cosine distances of each pair, by metric.

    `anchor` are the baseline's vectors of the clean texts. If they differ in width from `clean`,
    `drift` and `anchored_distance` are left out.
    """
    distances = {"distance": similarity.cosine_distances(noisy, clean)}
    if anchor.shape[1] == clean.shape[1]:
        distances["drift"] = similarity.cosine_distances(clean, anchor)
        distances["anchored_distance"] = similarity.cosine_distances(noisy, anchor)
    return distances


def _searched(x: Vectors, x_texts: Sequence[str], y: Vectors, y_texts: Sequence[str]) -> Rows:
    """Search each row of x in y and each row of y in x; return {metric: a value per row}.

    The value is 100 for a row that finds its own row, else 0; for errors it is the reverse.
    """
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
    """Search each row of x among the rows of y and hard negatives.

    The first result has 100 for each row of x that found a wrong row, else 0. The second has the
    percentage of rows that found each kind of wrong row, such as one with a changed number.
    """
    lost = xsim_hard(x, y, hard, texts=y_texts)
    rates = {f"xsim_hard_{kind}": rate for kind, rate in lost.kind_rates.items()}
    return _percent(~lost.correct), rates


def _type_token_ratios(
    dataset: PairSet, tokenize: Callable[[Sequence[str]], Ragged]
) -> dict[str, tuple[float, ...]]:
    """Return counts of tokens and type/token ratios, by metric.

    Ratios are of clean text, of noisy text, and noisy divided by clean. Noisy figures have a value
    per noise seed.
    """
    special = list(set(tokenize([""]).values.tolist()))
    sides = [tokenize(side) for side in (dataset.clean, *dataset.noisy)]
    clean, *noisy = (similarity.type_token_ratio(side, without=special) for side in sides)
    tokens, *noisy_tokens = (float((~np.isin(side.values, special)).sum()) for side in sides)
    return {
        "ttr_ratio": tuple(ratio / clean for ratio in noisy),
        "ttr_noisy": tuple(noisy),
        "ttr_clean": (clean,),
        "tokens_noisy": tuple(noisy_tokens),
        "tokens_clean": (tokens,),
    }


def _of_texts(dataset: TextSet, store: VectorStore, targets: VectorStore) -> Measured:
    """Measure a model on a set of texts.

    `targets` encodes the column `target`, `store` encodes all other columns.
    """
    stores = {name: targets if name == "target" else store for name in dataset.columns}
    vectors = {name: stores[name](texts) for name, texts in dataset.columns.items()}
    match dataset.kind:
        case "sts":
            measured = _similarity(dataset, vectors)
        case "retrieval":
            measured = _retrieval(dataset, vectors, stores)
        case "classification":
            measured = _classification(dataset, vectors)
        case _:
            measured = _pair_classification(dataset, vectors)
    return _over_seeds([measured])


def _similarity(dataset: TextSet, vectors: Mapping[str, Vectors]) -> tuple[Rows, Figures]:
    """Return the cosine of each sentence pair, and the correlation of cosines and human scores."""
    second = vectors["second"]
    rows = {
        "sts_clean": similarity.cosines(vectors["first"], second),
        "sts_one_noisy": similarity.cosines(vectors["first_noisy"], second),
        "sts_both_noisy": similarity.cosines(vectors["first_noisy"], vectors["second_noisy"]),
    }
    scores = np.array(dataset.truth.tolist())
    figures = {
        name: _POINTS * similarity.spearman(cosines, scores) for name, cosines in rows.items()
    }
    return rows, figures


def _retrieval(
    dataset: TextSet, vectors: Mapping[str, Vectors], stores: Mapping[str, VectorStore]
) -> tuple[Rows, Figures]:
    """Search translations in both directions; return {metric: 100 or 0 per row}, {metric: value}.

    The second result has the mean accuracy of both directions. If the set has hard negatives, one
    direction is searched once more with them as candidates, and the second result also has the
    percentage of rows that found each kind of negative.
    """
    columns, figures = dataset.columns, Figures()
    rows = _searched(vectors["source"], columns["source"], vectors["target"], columns["target"])
    both = np.concatenate([rows["accuracy_forward"], rows["accuracy_backward"]])
    figures["accuracy_both"] = float(both.mean())
    for side, negatives in dataset.negatives.items():
        other = "source" if side == "target" else "target"
        hard = _hard_vectors(negatives, stores[side])
        rows["xsim_hard_error"], rates = _among_hard(
            vectors[other], vectors[side], hard, columns[side]
        )
        figures |= rates
    return rows, figures


def _classification(dataset: TextSet, vectors: Mapping[str, Vectors]) -> tuple[Rows, Figures]:
    """Train a classifier on clean texts, and test it on clean and on noisy texts.

    Without a column `train`, half of the clean texts are for training. Return {metric: accuracy of
    each test row}, then {metric: value} for F1 and for the mean cosine of clean texts of the same
    class. Accuracy and F1 are measured without and with noise.
    """
    labels = dataset.truth.tolist()
    sides = {side: vectors[side] for side in ("clean", "noisy")}
    if dataset.train_labels:
        train, known, truth = vectors["train"], list(dataset.train_labels), labels
    else:
        tested = is_tested(dataset.columns["clean"])
        train, known = vectors["clean"][~tested], list(compress(labels, ~tested))
        sides, truth = (
            {name: s[tested] for name, s in sides.items()},
            list(compress(labels, tested)),
        )
    by_side = similarity.classify(
        train, known, sides, truth, samples_per_label=dataset.samples_per_label
    )
    rows, figures = Rows(), Figures()
    for side, classified in by_side.items():
        rows[f"accuracy_{side}"] = 100 * classified.correct
        figures[f"f1_{side}"] = classified.f1
    if max(Counter(labels).values()) > 1:
        figures["class_similarity"] = similarity.mean_class_similarity(vectors["clean"], labels)
    return rows, figures


def _pair_classification(dataset: TextSet, vectors: Mapping[str, Vectors]) -> tuple[Rows, Figures]:
    """Return the average precision of sentence pairs ranked by cosine, without and with noise."""
    labels, second = dataset.truth.tolist(), vectors["second"]
    figures = {
        "average_precision_clean": similarity.classify_pairs(vectors["first"], second, labels),
        "average_precision_noisy": similarity.classify_pairs(
            vectors["first_noisy"], second, labels
        ),
    }
    return Rows(), figures


def _of_search(dataset: SearchSet, store: VectorStore) -> Measured:
    """Measure a model on queries and documents.

    All forms of the queries are searched together, so that each document is encoded once.
    """
    sides = {"clean": dataset.clean, "noisy": dataset.noisy}
    forms = [*sides.values(), *dataset.strengths.values()]
    queries = np.concatenate([store(form) for form in forms])
    documents = store.parts(dataset.documents, PART)
    found = ranked(queries, documents, np.tile(dataset.own, len(forms)))
    by_form = [ranking_scores(part, dataset.grades) for part in np.split(found, len(forms))]
    rows = {
        f"{name}_{side}": values
        for side, scores in zip(sides, by_form, strict=False)
        for name, values in scores.items()
    }
    rows["ndcg_drop"] = rows["ndcg_clean"] - rows["ndcg_noisy"]
    ndcg = tuple(float(scores["ndcg"].mean()) for scores in by_form[len(sides) :])
    return replace(_over_seeds([(rows, {})]), ndcg=ndcg)


def _over_seeds(by_seed: Sequence[tuple[Rows, Figures]]) -> Measured:
    """Combine the measurements made with different noise seeds.

    Each metric gets one value per seed: the mean over its rows or, if it has no rows, its value.
    Each row gets its mean over the seeds.
    """
    seeds: dict[str, tuple[float, ...]] = {}
    means: Rows = {}
    for name in by_seed[0][0]:
        seeds[name] = tuple(float(rows[name].mean()) for rows, _ in by_seed)
        means[name] = np.mean([rows[name] for rows, _ in by_seed], axis=0)
    for name in dict.fromkeys(name for _, figures in by_seed for name in figures):
        seeds[name] = tuple(figures[name] for _, figures in by_seed if name in figures)
    return Measured(seeds, means)


def _percent(where: Bool) -> F64:
    return np.where(where, 100.0, 0.0)


def by_strength(model: str, dataset: PairSet, store: VectorStore) -> StrengthCurve:
    """Return a model's mean cosine distance and xSIM error at each strength of the noise."""
    clean, sides = store(dataset.clean), [store(noisy) for noisy in dataset.strengths.values()]
    distances = tuple(similarity.cosine_distance(noisy, clean) for noisy in sides)
    errors = tuple(xsim(noisy, clean, texts=dataset.clean).error_rate for noisy in sides)
    return StrengthCurve(model, dataset.name, tuple(dataset.strengths), distances, errors)


BySet = Mapping[str, Measured]
Key = tuple[str, str]  # name of a set, name of a metric


def scores(
    sets: Sequence[EvaluationSet], measured: BySet, *, paper_stats: bool = False
) -> dict[str, dict[str, Score]]:
    """Return the finite scores of one model by set and metric.

    `paper_stats` adds one-sample t-tests over the noise seeds, as in RoLASER.
    """
    intervals = _intervals(sets, measured)
    by_set: dict[str, dict[str, Score]] = {}
    for dataset in sets:
        by_set[dataset.name] = {
            metric: _score(metric, values, intervals.get((dataset.name, metric)), paper_stats)
            for metric, values in measured[dataset.name].seeds.items()
            if values and all(map(isfinite, values))
        }
    return by_set


def _score(
    metric: str,
    values: tuple[float, ...],
    interval: tuple[float, float] | None,
    paper_stats: bool,
) -> Score:
    """Return the score of a metric: the mean of `values`, which has one value per noise seed.

    With `paper_stats` and several seeds, a t-test compares the values with `Metric.null`.
    """
    low, high = interval or (None, None)
    mean = float(np.mean(values))
    if len(values) == 1:
        return Score(mean, low, high)
    null = metric_of(metric).null if paper_stats else None
    p = None if null is None else statistics.one_sample_t(values, null)
    return Score(mean, low, high, float(np.std(values, ddof=1)), values, p)


def _intervals(sets: Sequence[EvaluationSet], measured: BySet) -> dict[Key, tuple[float, float]]:
    """Return the 95 % intervals of all metrics that have a value for each row."""
    intervals: dict[Key, tuple[float, float]] = {}
    for group in _row_groups(sets, measured):
        if group.scores is not None:
            correlations = statistics.spearman_intervals(group.columns, group.scores)
            for key, estimate in correlations.items():
                intervals[key] = _POINTS * estimate.low, _POINTS * estimate.high
            continue
        for key, estimate in statistics.mean_intervals(group.columns).items():
            rows = group.columns[key]
            if metric_of(key[1]).test == "items" and set(np.unique(rows)) <= {0.0, 100.0}:
                # If all rows are right, a bootstrap interval has no width; Wilson's has.
                low, high = wilson(float(rows.mean()) / 100, len(rows))
                intervals[key] = 100 * low, 100 * high
            else:
                intervals[key] = estimate.low, estimate.high
    return intervals


@dataclass(frozen=True)
class _RowGroup:
    """Metrics measured on the same rows, as columns; the bootstrap draws the same rows for all.

    It estimates the mean of each column or, if there are human `scores`, the correlation of the
    column with the scores.
    """

    columns: dict[Key, F64]
    scores: F64 | None = None


def _row_groups(sets: Iterable[EvaluationSet], measured: BySet) -> list[_RowGroup]:
    """Group the metrics that are measured on the same rows; groups with human scores come last."""
    means: dict[str, dict[Key, F64]] = defaultdict(dict)
    correlations = []
    for dataset in sets:
        rows = measured[dataset.name].rows
        columns = {(dataset.name, metric): values for metric, values in rows.items()}
        if isinstance(dataset, TextSet) and dataset.kind == "sts":
            correlations.append(_RowGroup(columns, dataset.truth.astype(np.float64)))
        elif isinstance(dataset, PairSet) and dataset.seeds:
            means[f"rows of {dataset.group}"] |= columns
        elif columns:
            means[dataset.name] |= columns
    return [*map(_RowGroup, means.values()), *correlations]


def compare(
    sets: Sequence[EvaluationSet],
    model: str,
    ours: BySet,
    theirs: BySet,
    *,
    paper_stats: bool = False,
) -> list[Comparison]:
    """Compare a model with the baseline in each metric for which both have a value per row.

    `ours` and `theirs` are the measurements of the model and of the baseline, by set. With
    `paper_stats` and at least two noise seeds the test is a two-sample t-test over the seeds, as in
    RoLASER.
    """
    comparisons: list[Comparison] = []
    groups = zip(_row_groups(sets, ours), _row_groups(sets, theirs), strict=True)
    for left, right in groups:
        for key, difference in _differences(left, right).items():
            name, metric = key
            rows = left.columns[key], right.columns[key]
            p = 1.0 if np.array_equal(*rows) else difference.p
            seeds = ours[name].seeds[metric], theirs[name].seeds[metric]
            floors = [floor for floor in map(floor_of, seeds) if floor is not None]
            comparison = Comparison(model, name, metric, difference.value, "bootstrap", p, p)
            comparison = replace(comparison, floor=max(floors, default=None))
            if metric_of(metric).test == "items" and len(seeds[0]) == 1:
                goal = 0 if metric_of(metric).better == "low" else 100
                test = statistics.mcnemar(rows[0] == goal, rows[1] == goal)
                comparison = replace(comparison, test="mcnemar", **vars(test))
            if paper_stats and min(map(len, seeds)) > 1:
                comparison = replace(comparison, test="t", p=statistics.two_sample_t(*seeds))
            comparisons.append(comparison)
    return _corrected(comparisons, {dataset.name: dataset.kind for dataset in sets})


def _differences(left: _RowGroup, right: _RowGroup) -> dict[Key, statistics.Resampled]:
    """Bootstrap the difference, model minus baseline, in each tested metric that both have.

    Differences of correlations are multiplied by 100.
    """
    shared = [key for key in left.columns if key in right.columns and metric_of(key[1]).test]
    if not shared:
        return {}
    ours = {key: left.columns[key] for key in shared}
    theirs = {key: right.columns[key] for key in shared}
    if left.scores is None:
        return statistics.mean_differences(ours, theirs)
    correlations = statistics.spearman_differences(ours, theirs, left.scores)
    return {
        key: replace(difference, value=_POINTS * difference.value)
        for key, difference in correlations.items()
    }


def _corrected(comparisons: list[Comparison], kinds: Mapping[str, str]) -> list[Comparison]:
    """Add p-values corrected by Holm's method, for each metric over all sets of one kind."""
    families: dict[Key, list[int]] = defaultdict(list)
    for index, comparison in enumerate(comparisons):
        families[kinds[comparison.dataset], comparison.metric].append(index)
    corrected = list(comparisons)
    for family in families.values():
        p_values = statistics.holm([comparisons[index].p for index in family]).tolist()
        for index, p in zip(family, p_values, strict=True):
            corrected[index] = replace(comparisons[index], p_holm=p)
    return corrected
