"""Tokenizers of folders: the rows of the library's own call, without its padding."""

import pytest
from transformers import AutoTokenizer

from noisegen.encoders.encoder import Tokenizer as AnyTokenizer
from noisegen.encoders.pieces import PieceTokenizer, lowered


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
