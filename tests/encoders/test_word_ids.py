"""Ids joined from those of words are the ids of the library for whole texts."""

import pickle
from random import Random
from threading import Thread

import pytest
from models import xlmr_folder
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import noisegen
from noisegen.encoders import word_ids
from noisegen.encoders.encoder import open_encoder, replace_surrogates
from noisegen.encoders.folders import minilm_folder
from noisegen.encoders.tokens import PieceTokenizer

SPACED = (
    "  two  spaces ",
    "tab\there",
    "line\nbreak",
    "no\u00a0break",
    "zero\u200bwidth",
    "a \u0301b",
    "e\u0301 \u00e9",
    "\ufdfa \u00b4 \u2017 x",
    "it's we'll",
    "[MASK] <mask> x<mask>y </s>",
    "",
    " ",
    "x" * 300,
    "한국어 日本語 中文字符 हिन्दी ไทย",
    "👩‍👩‍👧 🇩🇪 ok",
    "\u1680 \u3000",
    "\x1f \x85",
    "I\u0307 İ",
)


@pytest.fixture(scope="module")
def texts(demo_texts, odd_texts):
    """Clean, noisy and unusual texts, and words of random characters."""
    random = Random(0)
    words = ["".join(chr(random.randrange(32, 0x1F650)) for _ in range(4)) for _ in range(6_000)]
    made = [replace_surrogates(" ".join(words[at : at + 6])) for at in range(0, 6_000, 6)]
    clean = [*demo_texts[:300], *odd_texts, *SPACED, *made]
    return [*clean, *noisegen.noise(clean, "ugc-heavy", seed=3)]


def fast(backend):
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>")


def byte_level(texts):
    """Return a tokenizer like RoBERTa's, trained on the texts."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = ["<s>", "<pad>", "</s>"]
    backend.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    made = fast(backend)
    made.add_special_tokens({"mask_token": "<mask>"})
    return made


def replacing(library):
    """Return the tokenizer with a rule that replaces `u` by `you`, as the student's may have."""
    backend = library.backend_tokenizer
    rule = normalizers.Replace(Regex(word_ids.WHOLE_WORD % "u|w"), "you see")
    backend.normalizer = normalizers.Sequence([backend.normalizer, rule])
    return library


@pytest.fixture(
    params=["minilm", "replacing", "e5", "roberta", "xlm-r", "xlm-r split"], scope="module"
)
def library(request, texts, tmp_path_factory):
    kind = request.param
    if kind == "e5":
        return open_encoder("e5").tokenizer.tokenizer
    if kind == "roberta":
        return byte_level(texts)
    if kind.startswith("xlm-r"):
        folder = xlmr_folder(
            tmp_path_factory.mktemp("xlmr"), ["the", "and"], is_split=kind.endswith("split")
        )
        return AutoTokenizer.from_pretrained(folder)
    made = AutoTokenizer.from_pretrained(minilm_folder())
    return replacing(made) if kind == "replacing" else made


@pytest.mark.parametrize("length", [8, 128])
def test_ids_are_those_of_the_library(library, texts, length, monkeypatch):
    assert word_ids.is_local(library.backend_tokenizer)
    monkeypatch.setattr(word_ids, "WORDS_MAX", 2_000)  # words are forgotten on the way
    cut = PieceTokenizer(library, length)
    wanted = library(texts, truncation=True, max_length=length)["input_ids"]
    for first in range(0, len(texts), 150):
        some = slice(first, first + 150)
        rows = cut.tokenize(texts[some])
        for text, row, ids in zip(texts[some], rows, wanted[some], strict=False):
            assert row.tolist() == ids, text
    assert len(cut.tokenize([])) == 0


def test_a_tokenizer_that_reads_beyond_words_is_called_with_whole_texts(texts):
    """A rule of a user, or no splitting at spaces, may join words."""
    joining = byte_level(texts)
    backend = joining.backend_tokenizer
    backend.normalizer = normalizers.Replace("u r", "you are")
    bare = Tokenizer(models.BPE(vocab={"a": 0, "a ": 1, " ": 2}, merges=[("a", " ")]))

    assert not word_ids.is_local(backend)
    assert not word_ids.is_local(bare)
    wanted = joining(["u r late"])["input_ids"][0]
    assert PieceTokenizer(joining, 40).tokenize(["u r late"])[0].tolist() == wanted


def test_threads_and_copies_get_the_same_ids(library, texts):
    texts = texts[::4]
    cut = PieceTokenizer(library, 40)
    wanted, found = PieceTokenizer(library, 40).tokenize(texts).values.tolist(), []

    def work():
        for _ in range(3):
            found.append(cut.tokenize(texts).values.tolist())

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 12
    assert pickle.loads(pickle.dumps(cut)).tokenize(texts).values.tolist() == wanted
