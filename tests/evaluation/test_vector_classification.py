"""Classification by MTEB's protocol, and of pairs by cosine."""

import sys
from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, average_precision_score, f1_score

from noisegen.errors import MissingExtra, UsageError
from noisegen.evaluation import classify, classify_pairs


@pytest.fixture
def draws():
    return np.random.Generator(np.random.PCG64(13))


def planted(draws, rows, spread):
    """Three classes around their own centres, of different sizes."""
    labels = [("music", "weather", "books")[one % 7 % 3] for one in range(rows)]
    centres = {"music": 0, "weather": 1, "books": 2}
    vectors = np.eye(8)[[centres[label] for label in labels]]
    return (vectors + spread * draws.standard_normal((rows, 8))).astype(np.float32), labels


def protocol(train, train_labels, test, test_labels):
    """MTEB's experiments one by one, written from its description."""
    order, scores = list(range(len(train))), []
    for _ in range(10):
        np.random.RandomState(42).shuffle(order)
        seen, rows = Counter(), []
        for row in order:
            if seen[train_labels[row]] < 8:
                rows.append(row)
                seen[train_labels[row]] += 1
        model = LogisticRegression(max_iter=100).fit(train[rows], [train_labels[r] for r in rows])
        found = model.predict(test)
        scores.append(
            (accuracy_score(test_labels, found), f1_score(test_labels, found, average="macro"))
        )
    return 100 * np.mean(scores, axis=0)


def test_classification_is_mtebs_protocol(draws):
    train, train_labels = planted(draws, 90, 0.5)
    test, test_labels = planted(draws, 60, 0.5)
    noisy = test + 0.5 * draws.standard_normal(test.shape).astype(np.float32)
    found = classify(train, train_labels, {"clean": test, "noisy": noisy}, test_labels)
    for name, vectors in (("clean", test), ("noisy", noisy)):
        accuracy, f1 = protocol(train, train_labels, vectors, test_labels)
        assert found[name].accuracy == pytest.approx(accuracy)
        assert found[name].f1 == pytest.approx(f1)
    assert found["clean"].accuracy > found["noisy"].accuracy + 5
    assert 100 * found["clean"].correct.mean() == pytest.approx(found["clean"].accuracy)
    assert set(np.round(10 * found["clean"].correct, 9)) <= set(range(11))


def test_classes_that_are_apart_are_found_in_every_experiment(draws):
    train, train_labels = planted(draws, 60, 0.01)
    test, test_labels = planted(draws, 30, 0.01)
    found = classify(train, train_labels, {"clean": test}, test_labels)["clean"]
    assert found.accuracy == found.f1 == 100


def test_few_and_unknown_labels_are_no_trouble(draws):
    vectors = 9 * np.eye(3, dtype=np.float32)
    found = classify(vectors, ["a", "b", "b"], {"clean": vectors}, ["a", "b", "never seen"])
    assert found["clean"].accuracy == pytest.approx(200 / 3)


@pytest.mark.parametrize(
    ("train_labels", "test_labels", "message"),
    [
        (["a", "a"], ["a", "b"], "one label only"),
        (["a"], ["a", "b"], "2 vectors to train on, but 1 labels"),
        (["a", "b"], ["a"], "2 vectors to test, but 1 labels"),
    ],
)
def test_labels_that_cannot_be_learnt_are_refused(train_labels, test_labels, message):
    with pytest.raises(UsageError, match=message):
        classify(np.eye(2), train_labels, {"clean": np.eye(2)}, test_labels)


def test_pairs_are_ranked_by_cosine(draws):
    for _ in range(50):
        x, y = draws.integers(-1, 2, (2, 15, 3)).astype(float)
        labels = draws.integers(0, 2, 15)
        labels[:2] = 0, 1
        lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
        cosines = np.divide((x * y).sum(1), lengths, out=np.zeros(15), where=lengths > 0).round(12)
        average = average_precision_score(labels, cosines)
        assert classify_pairs(x, y, labels) == pytest.approx(100 * average)


def test_pairs_need_a_label_each():
    with pytest.raises(UsageError, match="3 pairs, but 2 labels"):
        classify_pairs(np.eye(3), np.eye(3), [0, 1])


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(MissingExtra, match="pip install"):
        classify(np.eye(2), ["a", "b"], {"clean": np.eye(2)}, ["a", "b"])


@pytest.mark.parametrize("labels", [[1, 1, 1], [0, 0, 0], [0, 1, 2]])
def test_pairs_need_both_labels(labels):
    with pytest.raises(UsageError, match="must be 0 and 1, and both must occur"):
        classify_pairs(np.eye(3), np.eye(3), labels)
