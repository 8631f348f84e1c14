"""Models small enough to make for a test."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def bert_folder(folder: Path, words: Sequence[str] = ()) -> Path:
    """Write a BERT of two layers, 32 wide, with pieces of letters and words; return the folder."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    signs = list("abcdefghijklmnopqrstuvwxyz0123456789.,'!?-")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *signs, *(f"##{sign}" for sign in signs), *words]
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
        vocab_size=len(pieces),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
        initializer_range=0.2,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def xlmr_folder(folder: Path, words: Sequence[str] = (), *, is_split: bool = False) -> Path:
    """Write an XLM-R with a pooler: Unigram pieces, `<s> text </s>`, positions after padding.

    `is_split` tells whether text is split at white space first, as by published ones.
    """
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!:?'"
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *(f"▁{sign}" for sign in letters), *letters, "▁"]
    pieces += [*(f"▁{word}" for word in words), "<mask>"]
    backend = Tokenizer(models.Unigram([(piece, -1.0 - n) for n, piece in enumerate(pieces)], 3))
    backend.normalizer = normalizers.NFKC()
    spaces = pre_tokenizers.Metaspace()
    split = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces])
    backend.pre_tokenizer = split if is_split else spaces
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        model_max_length=128,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        initializer_range=0.2,
        vocab_size=len(pieces),
        max_position_embeddings=130,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        layer_norm_eps=1e-5,
    )
    XLMRobertaModel(config).save_pretrained(folder)
    return folder


def laser2_pieces(folder: Path, texts: Sequence[str]) -> tuple[bytes, list[str]]:
    """Train a SentencePiece model of few pieces; return its file and the pieces."""
    import sentencepiece

    (folder / "text.txt").write_text("\n".join(texts).lower() * 3, "utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text.txt"),
        model_prefix=str(folder / "m"),
        vocab_size=300,
        hard_vocab_limit=False,
        character_coverage=0.99,
        minloglevel=5,
    )
    read = sentencepiece.SentencePieceProcessor(model_file=str(folder / "m.model"))
    pieces = [read.id_to_piece(number) for number in range(read.get_piece_size())]
    return (folder / "m.model").read_bytes(), pieces


def laser2_checkpoint(
    pieces: Sequence[str], width: int, hidden: int, layers: int
) -> dict[str, Any]:
    """Return what laser2.pt holds: same keys, pieces under other numbers than the model's."""
    import torch

    known = [piece for piece in reversed(pieces) if not piece.startswith("<")]
    dictionary = {piece: 4 + number for number, piece in enumerate(known)}
    dictionary |= {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    torch.manual_seed(3)
    count = len(dictionary) + 3  # fairseq left three rows too many
    lstm = torch.nn.LSTM(width, hidden, layers, bidirectional=True)
    weights = {f"lstm.{name}": value.detach() for name, value in lstm.state_dict().items()}
    weights["embed_tokens.weight"] = torch.randn(count, width)
    params = {
        "num_embeddings": count,
        "padding_idx": 1,
        "embed_dim": width,
        "hidden_size": hidden,
        "num_layers": layers,
        "bidirectional": True,
        "left_pad": False,
        "padding_value": 0.0,
    }
    return {"params": params, "dictionary": dictionary, "model": weights}


REFERENCE = (  # our names of weights, and CharacterBERT's
    ("characters.weight", "_char_embedding_weights"),
    ("convolutions.", "char_conv_"),
    ("highways.", "_highways._layers."),
    ("ings.projection.", "ings._projection."),
)


def character_bert(folder, *, prefix="", pickled=False):
    """Write a small CharacterBERT as its authors publish it; return an encoder of its weights."""
    import torch
    from safetensors.torch import save_file
    from transformers import BertConfig

    from noisegen.encoders.character_folder import character_student

    torch.manual_seed(5)
    config = BertConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=60,
    )
    made = character_student(config, max_length=60, lower=True)
    weights = {
        "cls.predictions.bias": torch.zeros(3),
        f"{prefix}pooler.dense.weight": torch.ones(2),
    }
    for name, value in made.network.state_dict().items():
        for ours, theirs in REFERENCE:
            name = name.replace(ours, theirs)
        weights[f"{prefix}{name}"] = value.contiguous()
    folder.mkdir()
    if pickled:
        torch.save(weights, folder / "pytorch_model.bin")
    else:
        save_file(weights, folder / "model.safetensors")
    said = config.to_dict() | {"model_type": "character_bert", "mlm_vocab_size": 100_000}
    (folder / "config.json").write_text(json.dumps(said))
    return made


def head_of(
    pooling: str = "mean",
    projection: int | None = None,
    place: str = "before",
    *,
    bias: bool = True,
    normalize: bool = False,
) -> Any:
    """Return a head with pooling, and maybe a projection and vectors of length 1."""
    from noisegen.encoders.head import HeadSettings

    head = HeadSettings().pooled(pooling)
    head = head.projected(projection, place, bias=bias) if projection else head
    return head.normalized(normalize)


def canine_folder(folder: Path) -> Path:
    """Write a CANINE of two layers, whose tokens are characters; return the folder."""
    import torch
    from transformers import CanineConfig, CanineModel, CanineTokenizer

    CanineTokenizer().save_pretrained(folder)
    torch.manual_seed(0)
    config = CanineConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        num_hash_buckets=2_100,
        max_position_embeddings=2_100,
        initializer_range=0.2,
    )
    CanineModel(config).save_pretrained(folder)
    return folder
