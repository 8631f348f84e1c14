"""Search documents for queries; score the ranking as BEIR does: nDCG@10, MRR@10, recall@100.

The search is the exact one of `xsim_search`, over documents that are encoded part by part, so that
no more than one part of the document vectors is in memory.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from noisegen.evaluation.similarity import F64, I64, Vectors
from noisegen.evaluation.xsim_search import Neighbours, neighbours

PART = 1 << 16  # documents whose vectors are in memory at a time
TOP, DEPTH = 10, 100  # ranks that count for nDCG and MRR, and for recall
NOTHING = -1  # own row of a query that is no document


def search_parts(queries: Vectors, parts: Iterable[Vectors], k: int) -> Neighbours:
    """Return the k documents nearest to each query by cosine; `parts` are vectors of documents.

    Documents are numbered through all parts. Documents with equal cosines are in the order of their
    numbers.
    """
    empty = np.zeros((len(queries), 0))
    best, start = Neighbours(empty, empty.astype(np.int64)), 0
    for part in parts:
        found = neighbours(queries, part, k)
        values = np.concatenate([best.cosines, found.cosines], axis=1)
        rows = np.concatenate([best.rows, found.rows + start], axis=1)
        order = np.argsort(-values, axis=1, kind="stable")[:, :k]
        best = Neighbours(
            np.take_along_axis(values, order, axis=1), np.take_along_axis(rows, order, axis=1)
        )
        start += len(part)
    return best


def ranked(queries: Vectors, parts: Iterable[Vectors], own: I64) -> I64:
    """Return the numbers of the `DEPTH` documents nearest to each query, the nearest first.

    `own` has the number of the document that has the same id as the query, or `NOTHING`. A query
    does not find this document, as in BEIR.
    """
    rows = search_parts(queries, parts, DEPTH + 1).rows
    order = np.argsort(rows == own[:, None], axis=1, kind="stable")
    found = np.take_along_axis(rows, order, axis=1)[:, :DEPTH]
    return np.where(found == own[:, None], NOTHING, found)


def ranking_scores(found: I64, grades: Sequence[Mapping[int, int]]) -> dict[str, F64]:
    """Return nDCG@10, MRR@10 and recall@100 of each query in per cent, by name.

    `found` has the numbers of the documents that each query found, shape (queries, documents).
    `grades` has {number of a document: grade} for each query. Grades above 0 are relevant. The gain
    of a document is its grade, its discount log2(rank + 1), as in trec_eval. A judged document that
    the collection lacks has a negative number below `NOTHING`: it is never found, but counts in the
    ideal ranking.
    """
    names = ("ndcg", "mrr", "recall")
    scores = {name: np.zeros(len(found)) for name in names}
    discounts = 1 / np.log2(np.arange(TOP) + 2)
    for number, (rows, judged) in enumerate(zip(found.tolist(), grades, strict=True)):
        gains = np.array([max(0, judged.get(row, 0)) for row in rows], np.float64)
        ideal = np.sort([grade for grade in judged.values() if grade > 0])[::-1]
        best = discounts[: len(ideal)] @ ideal[:TOP]
        relevant = np.flatnonzero(gains)
        scores["ndcg"][number] = 100 * (discounts[: len(gains)] @ gains[:TOP]) / best
        if len(relevant) and relevant[0] < TOP:
            scores["mrr"][number] = 100 / (relevant[0] + 1)
        scores["recall"][number] = 100 * len(relevant) / len(ideal)
    return scores
