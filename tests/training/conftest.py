"""A tiny teacher of the real layout, and pairs of our own to train on."""

import pytest

import noisegen


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """A folder with a BERT of two layers, 32 wide, and word pieces of our sentences."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    signs = list("abcdefghijklmnopqrstuvwxyz0123456789.,'!?-")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *signs, *(f"##{sign}" for sign in signs)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", model_max_length=128
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=128, initializer_range=0.2,
    )  # fmt: skip
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def sentences(demo):
    """English sentences, four hundred of them, made of the bundled ones."""
    texts = [row["text"] for row in demo if row["lang"] == "en"]
    made = [f"{a[:40]} {b[-40:]}" for a in texts for b in texts if a != b]
    return list(dict.fromkeys(made))[:400]


@pytest.fixture(scope="session")
def pairs_file(tmp_path_factory, sentences):
    """Pairs as a table: the noise of `fing`."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    rows = [
        f"{text}\t{noisegen.noise(text, 'ugc', seed=1, id=number)}"
        for number, text in enumerate(sentences)
    ]
    path.write_text("\n".join(["clean\tnoisy", *rows]) + "\n")
    return path


@pytest.fixture(autouse=True, scope="session")
def _two_threads():
    import torch

    torch.set_num_threads(2)
