"""Tokenizers of folders, and texts that are prepared first."""

import json
import sys

import numpy as np
import pytest
from transformers import AutoTokenizer

from noisegen.encoders.encoder import Tokenizer as AnyTokenizer
from noisegen.encoders.encoder import open_encoder
from noisegen.encoders.folders import open_folder, save_folder
from noisegen.encoders.sentence_encoder import PreparedEncoder, SentenceEncoder, prepared
from noisegen.encoders.tokens import PieceTokenizer, lowered
from noisegen.errors import MissingExtra, SourceError
from noisegen.text.normalize import social_text


@pytest.fixture
def read(tiny_bert):
    return lambda: AutoTokenizer.from_pretrained(tiny_bert)


def test_rows_are_those_of_the_library(read, demo_texts, odd_texts):
    texts = [*demo_texts, *odd_texts]
    rows = PieceTokenizer(read(), 40).tokenize(texts)
    expected = read()(texts, truncation=True, max_length=40)["input_ids"]
    assert [row.tolist() for row in map(rows.__getitem__, range(len(texts)))] == expected
    assert max(rows.lengths) == 40
    assert min(rows.lengths) == 2


def test_other_uses_of_the_same_tokenizer_change_nothing(read):
    library = read()
    cut = PieceTokenizer(library, 40)
    assert max(PieceTokenizer(library, 9).tokenize(["a " * 99]).lengths) == 9
    library(["a", "a longer text"], padding="max_length", max_length=64, truncation=True)
    assert cut.tokenize(["a"])[0].tolist() == read()(["a"])["input_ids"][0]
    assert max(cut.tokenize(["a " * 99]).lengths) == 40


def test_the_digest_names_the_rules_and_the_length(read, tmp_path):
    cut = PieceTokenizer(read(), 40)
    before = cut.digest
    assert PieceTokenizer(read(), 40).digest == before
    assert PieceTokenizer(read(), 41).digest != before
    cut.save(tmp_path)
    assert PieceTokenizer(AutoTokenizer.from_pretrained(tmp_path), 40).digest == before


def test_lowered_makes_letters_small_first_also_after_saving(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel({"[PAD]": 0, "big": 1, "Big": 2, "?": 3}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    library = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]")
    assert PieceTokenizer(library, 9).tokenize(["Big big"])[0].tolist() == [2, 1]
    small = lowered(PieceTokenizer(library, 9))
    assert isinstance(small.digest, str)
    assert small.tokenize(["Big big"])[0].tolist() == [1, 1]
    small.save(tmp_path)
    again = PieceTokenizer(AutoTokenizer.from_pretrained(tmp_path), 9)
    assert again.tokenize(["Big big"])[0].tolist() == [1, 1]
    assert again.digest == small.digest


def test_a_tokenizer_without_rules_in_a_file_is_refused():
    class Slow:
        is_fast = False

    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        PieceTokenizer(Slow(), 9)


def test_half_a_pair_of_surrogates_does_not_end_a_run(read):
    assert len(PieceTokenizer(read(), 40).tokenize(["half \ud83d a pair"])) == 1


def test_it_has_what_every_tokenizer_has(read):
    cut: AnyTokenizer = PieceTokenizer(read(), 40)
    assert (cut.pad_id, cut.max_length) == (0, 40)


pytest.importorskip("ftfy")
pytest.importorskip("emoji")

POSTS = [
    "@ann  see https://t.co/x &lt;3 🔥",
    "Itâ€™s a flood\nhere",
    "plain words",
    "",
    "www.a.org @b_c!",
    "half \ud83d of a pair",
]


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
    with pytest.raises(SourceError, match=r"preparation\.json: Invalid enum value 'magic'"):
        open_encoder(str(tmp_path / "saved"))


def test_a_missing_package_shows_before_anything_is_encoded(monkeypatch, tiny_bert):
    monkeypatch.setitem(sys.modules, "ftfy", None)
    with pytest.raises(MissingExtra, match=r"noisegen\[social\]"):
        open_encoder(f"social:{tiny_bert}")


def test_it_stays_trainable(tiny_bert):
    assert isinstance(open_encoder(f"social:{tiny_bert}"), SentenceEncoder)
