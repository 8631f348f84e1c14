"""Models small enough to make for a test."""

from pathlib import Path


def bert_folder(folder: Path) -> Path:
    """Write a BERT of two layers, 32 wide, and word pieces of letters; return the folder."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

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
