"""Frozen vectors of pairs: standardised, in batches, and in retrieval compared with a loop."""

from collections import Counter

import numpy as np
import pytest
import torch
from text_stores import write_texts

from noisegen.training.disentangle import LabelledPairs, PairVectors, retrieval, standard
from noisegen.training.heads import Heads, applied
from noisegen.training.stores import TeacherVectors

WIDTH, TEXTS, PAIRS = 5, 80, 60
NAMES = ("en", "de", "fr")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    random = np.random.Generator(np.random.PCG64(3))
    folder = tmp_path_factory.mktemp("texts")
    sides, labels = (
        np.stack(columns, 1).astype(np.int32)
        for columns in (
            [random.permutation(TEXTS)[:PAIRS] for _ in range(2)],
            [random.integers(low, 3, PAIRS, dtype=np.int32) for low in (0, 1)],
        )
    )
    texts = write_texts(folder, "texts", map(str, range(TEXTS)))
    pairs = LabelledPairs(texts, sides, labels, NAMES, Counter())
    frozen = random.normal(size=(TEXTS, WIDTH)).astype(np.float16)
    return PairVectors(
        pairs, TeacherVectors([frozen]), torch.device("cpu"), np.zeros(WIDTH, np.float32)
    )


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def found_by_loop(vectors, rows, head):
    """Return, by labels, the percentage of pairs whose target is nearest to their source."""
    pairs = vectors.pairs
    wanted = {}
    for labels in {tuple(pairs.labels[row]) for row in rows}:
        some = [row for row in rows if tuple(pairs.labels[row]) == labels]
        sides = [
            [head(vectors.vectors.take(side[[row]])[0]) for row in some] for side in pairs.sides.T
        ]
        right = sum(
            int(np.argmax([cosine(one, other) for other in sides[1]])) == at
            for at, one in enumerate(sides[0])
        )
        wanted["-".join(NAMES[label] for label in labels)] = 100 * right / len(some)
    return wanted


def test_retrieval_of_each_two_labels_is_that_of_a_loop(vectors):
    heads = Heads(WIDTH, torch.Generator().manual_seed(1))
    rows = np.arange(5, PAIRS)
    sets = vectors.sets_by_labels(rows)
    found = {
        "encoder": retrieval(sets, lambda own: own),
        "meaning": retrieval(sets, applied(heads, "meaning")),
    }

    meaning, bias = heads.meaning.weight.detach().numpy(), heads.meaning.bias.detach().numpy()
    ways = {"encoder": lambda own: own, "meaning": lambda own: meaning @ own + bias}
    for name, head in ways.items():
        for labels, per_cent in found_by_loop(vectors, rows, head).items():
            assert found[name][f"retrieval.forward.{labels}"] == pytest.approx(per_cent)
        per_set = [found[name][key] for key in found[name] if key.startswith("retrieval.backward.")]
        assert found[name]["retrieval.backward"] == pytest.approx(np.mean(per_set))


def test_of_many_pairs_the_first_are_drawn(vectors):
    rows = np.arange(PAIRS)[::-1]
    sets = vectors.sets_by_labels(rows, most=3)
    assert max(len(source) for source, _ in sets.values()) == 3
    name, (source, _) = next(iter(sets.items()))
    pairs = vectors.pairs
    labels = [NAMES.index(label) for label in name.split("-")]
    some = [row for row in rows if pairs.labels[row].tolist() == labels][:3]
    assert np.array_equal(source, vectors.vectors.take(pairs.sides[some, 0]))


class Rows:
    """Vectors as the cache gives them."""

    def __init__(self, array):
        self.array, self.width = array, array.shape[1]

    def __len__(self):
        return len(self.array)

    def take(self, rows):
        return self.array[rows].astype(np.float32)


def test_standard_vectors_have_mean_0_and_mean_square_1_and_heads_take_them_raw():
    random = np.random.Generator(np.random.PCG64(0))
    raw = random.normal(2, 0.1, (9_000, 5)).astype(np.float16)
    centre, scale = standard(Rows(raw))
    made = (raw.astype(np.float64) - centre) * scale
    heads = Heads(5, torch.Generator().manual_seed(0))
    wanted = [one.detach() for one in heads(torch.from_numpy(made).float())]
    heads.absorb_standardisation(torch.from_numpy(centre), scale)

    assert np.allclose(made.mean(0), 0, atol=1e-5)
    assert np.square(made).mean() == pytest.approx(1, rel=1e-4)
    for one, other in zip(heads(torch.from_numpy(raw).float()), wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-3)
    assert standard(Rows(np.ones((3, 5))))[1] == 1  # all vectors are the same
