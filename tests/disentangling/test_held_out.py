"""Figures of pairs that were held out: a loop over the pairs finds the same."""

from collections import Counter

import numpy as np
import pytest
import torch

from noisegen.disentangling import held_out
from noisegen.disentangling.heads import Heads
from noisegen.disentangling.held_out import by_label, retrieval_figures, retrieval_of
from noisegen.disentangling.labelled_pairs import LabelledPairs
from noisegen.disentangling.pair_vectors import PairVectors, Standard
from noisegen.training.teacher_vectors import TeacherVectors
from noisegen.training.text_store import write_texts

WIDTH, TEXTS, PAIRS = 5, 80, 60
NAMES = ("en", "de", "fr")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    random = np.random.Generator(np.random.PCG64(3))
    folder = tmp_path_factory.mktemp("texts")
    source, target = (random.permutation(TEXTS)[:PAIRS].astype(np.int32) for _ in range(2))
    labels = [random.integers(low, 3, PAIRS, dtype=np.int32) for low in (0, 1)]
    pairs = LabelledPairs(write_texts(folder, "texts", map(str, range(TEXTS))), source, target,
                          *labels, NAMES, Counter())  # fmt: skip
    frozen = random.normal(size=(TEXTS, WIDTH)).astype(np.float16)
    return PairVectors(pairs, TeacherVectors([frozen]), torch.device("cpu"), Standard.none(WIDTH))


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def found_by_loop(vectors, rows, head):
    """Per cent of pairs, among those of the same labels, whose target is nearest to the source."""
    pairs = vectors.pairs
    wanted = {}
    for labels in {(pairs.source_label[row], pairs.target_label[row]) for row in rows}:
        some = [row for row in rows if (pairs.source_label[row], pairs.target_label[row]) == labels]
        sides = [[head(vectors.vectors.take(np.array([side[row]]))[0]) for row in some]
                 for side in (pairs.source, pairs.target)]  # fmt: skip
        right = sum(
            int(np.argmax([cosine(one, other) for other in sides[1]])) == at
            for at, one in enumerate(sides[0])
        )
        wanted["-".join(NAMES[label] for label in labels)] = 100 * right / len(some)
    return wanted


def test_retrieval_of_each_two_labels_is_that_of_a_loop(vectors):
    heads = Heads(WIDTH, torch.Generator().manual_seed(1))
    rows = np.arange(5, PAIRS)
    found = retrieval_figures(retrieval_of(vectors, rows), heads)

    meaning, bias = heads.meaning.weight.detach().numpy(), heads.meaning.bias.detach().numpy()
    ways = {"encoder": lambda own: own, "meaning": lambda own: meaning @ own + bias}
    for name, head in ways.items():
        for labels, per_cent in found_by_loop(vectors, rows, head).items():
            assert found[name][f"retrieval.forward.{labels}"] == pytest.approx(per_cent)
    assert set(found) == {"encoder", "meaning", "language"}


def test_of_many_pairs_the_first_are_looked_up(vectors, monkeypatch):
    monkeypatch.setattr(held_out, "PAIRS_MAX", 3)
    rows = np.arange(PAIRS)[::-1]
    sizes = [len(one.source) for one in retrieval_of(vectors, rows)]
    assert max(sizes) == 3
    first = retrieval_of(vectors, rows)[0]
    pairs = vectors.pairs
    some = [row for row in rows if (NAMES[pairs.source_label[row]], NAMES[pairs.target_label[row]])
            == tuple(first.name.split("-"))][:3]  # fmt: skip
    assert np.array_equal(first.source, vectors.vectors.take(pairs.source[some]))


def test_texts_are_drawn_once_under_their_label(vectors):
    pairs = vectors.pairs
    rows = np.arange(20)
    found = by_label(vectors, rows)

    for number, name in enumerate(NAMES):
        texts = {int(text) for texts, labels in ((pairs.source, pairs.source_label),
                                                 (pairs.target, pairs.target_label))
                 for text, label in zip(texts[rows], labels[rows], strict=True)
                 if label == number}  # fmt: skip
        assert np.array_equal(found[name], vectors.vectors.take(np.array(sorted(texts))))
