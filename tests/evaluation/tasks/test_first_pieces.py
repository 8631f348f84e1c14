"""The first piece of each token, for tokenizers of three kinds and odd tokens."""

import random

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from noisegen.data.labelled import LabelledRow
from noisegen.encoders.folders import open_folder
from noisegen.encoders.tokens import (
    PREPARATIONS,
    PieceTokenizer,
    piece_tokenizer,
    with_preparation,
)
from noisegen.errors import UsageError
from noisegen.evaluation.tasks.fine_tuning import (
    NO_PIECE,
    cut_into_pieces,
    prepared_rows,
    renumbered,
    vocabulary_of,
)

ODD = [
    "don't",
    "...",
    "\u200b",
    "it's",
    "日本語",
    "naïve",
    "\U0001f600",
    "a\u00a0b",
    "x",
    "123",
    "’",
]


def trained(kind):
    """A tokenizer of a kind, trained on a few words."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    texts = ["play the song don't stop", "weather in new york 123", "naïve it's a b c d e"] * 9
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    if kind == "bytes":
        made = Tokenizer(models.BPE(unk_token="<unk>"))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=special,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
    elif kind == "sentence pieces":
        made = Tokenizer(models.Unigram())
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=60, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    else:
        made = Tokenizer(models.WordPiece(unk_token="<unk>"))
        made.normalizer = normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=60, special_tokens=special, show_progress=False
        )
    made.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", model_max_length=40
    )
    return PieceTokenizer(fast, 40)


def slow_firsts(tokens, offsets):
    """For every token, look through all pieces for one that begins in it."""
    text, found, at = " ".join(tokens), [], 0
    for token in tokens:
        inside = range(at, at + len(token))
        places = [
            place
            for place, (start, stop) in enumerate(offsets)
            if any(not text[n].isspace() for n in range(start, stop))
            and next(n for n in range(start, stop) if not text[n].isspace()) in inside
        ]
        found.append(places[0] if places else NO_PIECE)
        at += len(token) + 1
    return found


def slow_beyond(firsts):
    """How many tokens come behind the last that has a piece."""
    count = 0
    for place in reversed(firsts):
        if place != NO_PIECE:
            break
        count += 1
    return count


@pytest.mark.parametrize("kind", ["word pieces", "bytes", "sentence pieces"])
def test_first_pieces_equal_a_plain_search(kind):
    tokenizer = trained(kind)
    draw = random.Random(5)
    words = [*ODD, "play", "weather", "stop.", "(new", "york)", "q" * 30]
    rows = [
        LabelledRow(tuple(tokens), ("O",) * len(tokens))
        for tokens in (draw.choices(words, k=draw.randint(1, 12)) for _ in range(200))
    ]
    found = cut_into_pieces(tokenizer, rows, 24)
    encodings = tokenizer.encodings([row.text for row in rows])
    cut_off = 0
    for number, (row, full) in enumerate(zip(rows, encodings, strict=True)):
        length = len(found.ids[number])
        expected = slow_firsts(row.tokens, full.offsets[:length])
        assert found.firsts[number].tolist() == expected
        assert found.is_cut[number] == (len(full.ids) > 24)
        cut_off += slow_beyond(expected) if found.is_cut[number] else 0
    assert found.beyond() == cut_off
    assert cut_off  # the test has tokens behind the end


@pytest.mark.parametrize("kind", ["word pieces", "bytes", "sentence pieces"])
def test_pieces_of_a_known_word_begin_where_the_word_does(kind):
    tokenizer = trained(kind)
    row = LabelledRow(("weather", "in", "york"), ("O", "O", "O"))
    found = cut_into_pieces(tokenizer, [row], 40)
    pieces = tokenizer.tokenizer.convert_ids_to_tokens(found.ids[0])
    begun = [pieces[place].lstrip("Ġ▁") for place in found.firsts[0]]
    assert all(
        token.startswith(piece) or piece == ""
        for token, piece in zip(row.tokens, begun, strict=True)
    )


def test_pairs_have_the_types_of_the_tokenizers_own_format(tiny_bert):
    tokenizer = open_folder(tiny_bert).tokenizer
    found = cut_into_pieces(tokenizer, [LabelledRow(("a", "b"), second="c d")], 40)
    pieces = tokenizer.tokenizer.convert_ids_to_tokens(found.ids[0])
    assert pieces == ["[CLS]", "a", "b", "[SEP]", "c", "d", "[SEP]"]
    assert found.types[0].tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_renumbered_ids_name_the_same_pieces_and_the_padding_stays(tiny_bert):
    tokenizer = open_folder(tiny_bert).tokenizer
    parts = [
        cut_into_pieces(tokenizer, [LabelledRow(tuple(text.split()))], 40)
        for text in ("see you", "a zoo")
    ]
    kept = vocabulary_of(parts, tokenizer.pad_id)
    assert kept[tokenizer.pad_id] == tokenizer.pad_id
    for part in parts:
        assert np.array_equal(kept[renumbered(part, kept).ids.values], part.ids.values)


def test_a_model_of_whole_words_is_refused():
    class Words:
        pad_id, max_length = 0, 20

    with pytest.raises(UsageError, match=r"model mine reads words or characters.*: try"):
        piece_tokenizer(Words(), "model mine", "try another")


POSTS = [
    "@ann",
    "see",
    "https://t.co/x?a=1",
    "\U0001f525",
    "&nbsp;",
    "rock&amp;roll",
    "cafÃ©",
    "don't",
]


def test_prepared_tokens_keep_their_tags_and_have_the_pieces_of_what_they_became():
    pytest.importorskip("ftfy")
    prepare, tokenizer = PREPARATIONS["social"], trained("word pieces")
    social, draw = with_preparation(tokenizer, "social"), random.Random(2)
    for tokens in (draw.choices(POSTS, k=draw.randint(1, 9)) for _ in range(100)):
        row = LabelledRow(tuple(tokens), tuple(f"B-{number}" for number in range(len(tokens))))
        (read,) = prepared_rows(social, [row])
        assert (read.tokens, read.tags) == (tuple(map(prepare, tokens)), row.tags)
        found = cut_into_pieces(piece_tokenizer(social, "mine", ""), [read], 40)
        assert found.ids[0].tolist() == social.tokenize([" ".join(tokens)])[0].tolist()
        (full,) = tokenizer.encodings([read.text])
        assert found.firsts[0].tolist() == slow_firsts(read.tokens, full.offsets)


def test_pairs_without_tags_are_prepared_as_whole_texts():
    pytest.importorskip("ftfy")
    social = with_preparation(trained("word pieces"), "social")
    (read,) = prepared_rows(social, [LabelledRow(("hi", "@ann"), (), "x", "&lt;3 \U0001f525")])
    assert (read.text, read.second, read.label) == ("hi @MENTION", "<3 :fire:", "x")


def test_texts_of_a_model_without_preparation_stay():
    rows = [LabelledRow(("@ann",), ("O",))]
    assert prepared_rows(trained("bytes"), rows) is rows
