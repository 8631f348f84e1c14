"""Character n-grams of many texts as a sparse matrix of tf-idf weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SIZES = (1, 2, 3, 4)  # characters
ROWS_MIN = 3  # that an n-gram must occur in
CHARACTERS_MAX = 500  # of a text; what follows is not looked at
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of the polynomial that numbers n-grams
_EDGE = "\n"  # stands at both ends, so that an n-gram can tell the beginning of a text

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Ngrams:
    """Weights of n-grams (columns) in texts (rows, of length 1), and what the columns stand for.

    A line break in a name is the beginning or the end of a text.
    """

    weights: "csr_array"
    names: list[str]


def ngrams(texts: Sequence[str]) -> Ngrams:
    """Count the n-grams of `SIZES` in every text and weigh them: (1 + log tf) idf.

    Those in fewer than `ROWS_MIN` texts are left out.
    """
    from scipy.sparse import hstack

    codes, owners = _joined(texts)
    parts = [_of_size(codes, owners, size, len(texts)) for size in SIZES]
    weights = hstack([part.weights for part in parts], format="csr")
    return Ngrams(_compact(_unit_rows(weights)), [name for part in parts for name in part.names])


def _joined(texts: Sequence[str]) -> tuple[U64, I64]:
    """Return the code points of all texts, each between edges, and whose each is."""
    framed = [f"{_EDGE}{text[:CHARACTERS_MAX]}{_EDGE}" for text in texts]
    joined = "".join(framed).encode("utf-32-le", "surrogatepass")
    lengths = [len(text) for text in framed]
    codes = np.frombuffer(joined, np.uint32).astype(np.uint64)
    return codes, np.repeat(np.arange(len(texts)), lengths)


def _of_size(codes: U64, owners: I64, size: int, rows: int) -> Ngrams:
    from scipy.sparse import coo_array

    count = max(len(codes) - size + 1, 0)
    whole = owners[:count] == owners[size - 1 : size - 1 + count]
    starts = np.flatnonzero(whole)
    keys = np.zeros(len(starts), np.uint64)
    for place in range(size):
        keys = keys * _FACTOR + codes[starts + place]
    _, first, columns = np.unique(keys, return_index=True, return_inverse=True)
    counts = coo_array((np.ones(len(starts)), (owners[starts], columns)), (rows, len(first)))
    weights, kept = _weighed(counts.tocsr())
    found = codes[starts[first[kept]][:, None] + np.arange(size)]
    names = found.astype(np.uint32).tobytes().decode("utf-32-le", "surrogatepass")
    return Ngrams(weights, [names[at : at + size] for at in range(0, len(names), size)])


def _weighed(counts: "csr_array") -> tuple["csr_array", I64]:
    """Return the weights of the n-grams that are in enough rows, and which those are."""
    rows_with = np.bincount(counts.indices, minlength=counts.shape[1])
    kept = np.flatnonzero(rows_with >= ROWS_MIN)
    weights = counts[:, kept]
    rarity = 1 + np.log(counts.shape[0] / rows_with[kept])
    weights.data = (1 + np.log(weights.data)) * rarity[weights.indices]
    return weights, kept


def _unit_rows(weights: "csr_array") -> "csr_array":
    """Return the rows with length 1; an empty row stays."""
    squares = np.add.reduceat(np.append(weights.data**2, 0), weights.indptr[:-1])
    lengths = np.sqrt(np.where(np.diff(weights.indptr) > 0, squares, 1))
    weights.data /= np.repeat(lengths, np.diff(weights.indptr))
    return weights


def _compact(weights: "csr_array") -> "csr_array":
    """Return the matrix with 32-bit indices: the classifier takes no others."""
    weights.indices = weights.indices.astype(np.int32)
    weights.indptr = weights.indptr.astype(np.int32)
    return weights
