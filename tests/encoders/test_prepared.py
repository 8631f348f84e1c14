"""Encoders that prepare their texts: alike in training, in their folder, and by SPEC."""

import json
import sys

import numpy as np
import pytest

from noisegen.encoders.folders import open_folder, save_folder
from noisegen.encoders.prepared import PreparedEncoder, prepared
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.specs import open_encoder
from noisegen.errors import MissingExtra, SourceError
from noisegen.preparing.social import social_text

pytest.importorskip("ftfy")
pytest.importorskip("emoji")

POSTS = [
    "@ann  see https://t.co/x &lt;3 🔥", "Itâ€™s a flood\nhere", "plain words", "",
    "www.a.org @b_c!", "half \ud83d of a pair",
]  # fmt: skip


def test_ids_are_those_of_the_prepared_texts(tiny_bert):
    found = open_encoder(f"social:{tiny_bert}").tokenizer.tokenize(POSTS)
    wanted = open_folder(tiny_bert).tokenizer.tokenize([social_text(text) for text in POSTS])
    assert [row.tolist() for row in found] == [row.tolist() for row in wanted]


def test_a_saved_folder_prepares_too(tiny_bert, tmp_path):
    encoder = open_encoder(f"social:{tiny_bert}")
    save_folder(encoder, tmp_path / "saved")
    again = open_encoder(str(tmp_path / "saved"))
    np.testing.assert_array_equal(again.encode(POSTS), encoder.encode(POSTS))
    assert again.digest == encoder.digest != open_folder(tiny_bert).digest
    assert np.abs(again.encode(POSTS) - open_folder(tiny_bert).encode(POSTS)).max() > 0.01


def test_it_is_prepared_once(tiny_bert, tmp_path):
    save_folder(open_encoder(f"social:{tiny_bert}"), tmp_path / "saved")
    twice = open_encoder(f"social:{tmp_path / 'saved'}")
    texts = ["&amp;lt;"]  # what is decoded twice is another text
    np.testing.assert_array_equal(
        twice.encode(texts), open_encoder(f"social:{tiny_bert}").encode(texts)
    )


def test_sentence_transformers_opens_the_folder_of_a_prepared_encoder(tiny_bert, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    encoder = open_encoder(f"social:{tiny_bert}")
    save_folder(encoder, tmp_path / "saved")
    theirs = sentence_transformers.SentenceTransformer(
        str(tmp_path / "saved"), device="cpu", local_files_only=True
    )
    texts = [social_text(text) for text in POSTS[:3]]
    np.testing.assert_allclose(theirs.encode(texts), encoder.encode(POSTS[:3]), atol=1e-5)


class Lengths:
    """An encoder that is no network."""

    name, width, digest = "lengths", 1, "ab"

    def encode(self, texts, progress=None):
        return np.array([[len(text)] for text in texts], np.float32)


def test_an_encoder_that_cannot_be_trained_is_prepared_too():
    found = prepared(Lengths(), "social")
    assert isinstance(found, PreparedEncoder)
    assert found.name == "social:lengths"
    assert found.digest != Lengths.digest
    assert found.encode(POSTS).ravel().tolist() == [len(social_text(text)) for text in POSTS]


def test_an_unknown_preparation_is_refused(tiny_bert, tmp_path):
    save_folder(open_folder(tiny_bert), tmp_path / "saved")
    (tmp_path / "saved" / "preparation.json").write_text(json.dumps({"preparation": "magic"}))
    with pytest.raises(SourceError, match="preparation 'magic' is not known; known are social"):
        open_encoder(str(tmp_path / "saved"))


def test_a_missing_package_shows_before_anything_is_encoded(monkeypatch, tiny_bert):
    monkeypatch.setitem(sys.modules, "ftfy", None)
    with pytest.raises(MissingExtra, match=r"noisegen\[social\]"):
        open_encoder(f"social:{tiny_bert}")


def test_it_stays_trainable(tiny_bert):
    assert isinstance(open_encoder(f"social:{tiny_bert}"), SentenceEncoder)
