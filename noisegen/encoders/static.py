"""Static encoders: each token has one vector, and a text's vector is the mean over its tokens.

They are distilled as model2vec does (github.com/MinishLab/model2vec): the teacher encodes each
token by itself, principal components reduce the vectors, and frequent tokens get small weights. A
folder has the layout of model2vec, which sentence-transformers opens too.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import processors
from torch import Tensor, nn

from noisegen.encoders.encoder import LENGTH_MAX, Encoder, Vectors
from noisegen.encoders.head import IDENTITY, Dense, HeadSettings, Normalize, Pooling
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.stored import (
    read_json,
    read_weights,
    reading,
    reading_model,
    save_tensors,
    write_json,
)
from noisegen.encoders.tokens import (
    PieceTokenizer,
    PreparedTokenizer,
    keeping_rules,
    model_length,
    naming_panics,
    piece_tokenizer,
)
from noisegen.errors import SourceError, UsageError
from noisegen.runs.progress import silent

KIND = "model2vec"  # model_type in config.json
WIDTH = 160  # numbers per vector: with 15,000 noisy words, MiniLM's tokens take 15 MB in float16
SIF = 1e-4  # model2vec's default weight of frequent tokens
# Names of the matrix in model.safetensors: as model2vec and as sentence-transformers write it.
_NAMES = ("embeddings", "embedding.weight")
_CONFIG, _WEIGHTS, _PIECES = "config.json", "model.safetensors", "tokenizer.json"
_HEAD = HeadSettings((Pooling(), Normalize()))


class StaticNetwork(nn.Module):
    """A network whose state of a token is the token's own vector, whatever stands beside it.

    `vectors` has shape (tokens, width). The vector of the token `unknown` stays as it is: with
    zeros, the token does not change the direction of a text's vector.
    """

    def __init__(self, vectors: Tensor, unknown: int | None) -> None:
        super().__init__()
        self._set(vectors, unknown)
        self.config = SimpleNamespace(
            model_type=KIND,
            hidden_size=vectors.shape[1],
            num_hidden_layers=0,
            _attn_implementation="eager",
        )

    def _set(self, vectors: Tensor, unknown: int | None) -> None:
        rows, width = vectors.shape
        self.embedding = nn.Embedding(rows, width, padding_idx=unknown, _weight=vectors)

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the vectors of the tokens, as networks of transformers do."""
        return self.embedding

    def resize_token_embeddings(self, count: int, *, mean_resizing: bool = False) -> None:
        """Add rows of zeros for new tokens, up to `count` rows; other modes are not supported."""
        old = self.embedding.weight.detach()
        added = old.new_zeros(count - len(old), old.shape[1])
        self._set(torch.cat([old, added]), self.embedding.padding_idx)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> SimpleNamespace:
        """Return the tokens' vectors as `last_hidden_state`, shape (rows, longest, width)."""
        return SimpleNamespace(last_hidden_state=self.embedding(input_ids))


class StaticForm(NamedTuple):
    """A teacher with vectors of the static student's width, and the student before training."""

    teacher: SentenceEncoder
    student: SentenceEncoder


def static_form(
    teacher: Encoder, width: int = WIDTH, tell: Callable[[str], None] = silent
) -> StaticForm:
    """Distil a teacher into a static encoder; both get vectors of `width` numbers or fewer.

    The directions kept are the principal ones of the teacher's vectors of its tokens. The teacher's
    vectors of texts are projected on the same directions, so a student can learn them. Vectors have
    length 1. Raises UsageError for a teacher that does not cut texts into pieces of words.
    """
    if not isinstance(teacher, SentenceEncoder):
        raise UsageError(
            f"teacher {teacher.name} has no vectors of tokens, which a static student needs: "
            "give a Hugging Face folder or a student of noisegen"
        )
    if teacher.config.model_type == KIND:
        raise UsageError(f"teacher {teacher.name} is static already: give --student copy")
    advice = "a static student needs a teacher of pieces"
    whole = piece_tokenizer(teacher.tokenizer, f"teacher {teacher.name}", advice)
    count = max(whole.tokenizer.get_vocab().values()) + 1
    tell(f"the teacher encodes each of its {count:,} tokens for the static student")
    vectors = teacher.encode_ids(whole.alone(range(count)))
    _, directions = np.linalg.eigh(vectors.T @ vectors)  # by rising variance
    kept = np.ascontiguousarray(directions[:, ::-1][:, :width])
    pieces = _without_ends(whole.tokenizer)
    starts = _weighted((vectors - vectors.mean(0)) @ kept)
    starts[pieces.all_special_ids] = 0
    network = StaticNetwork(torch.from_numpy(starts), pieces.unk_token_id)
    tokenizer: Any = PieceTokenizer(pieces, whole.max_length)
    if isinstance(teacher.tokenizer, PreparedTokenizer):
        tokenizer = replace(teacher.tokenizer, tokenizer=tokenizer)
    student = SentenceEncoder(network, tokenizer, _HEAD, "static", teacher.usage)
    return StaticForm(_projected(teacher, kept), student.eval())


def _weighted(vectors: Vectors) -> Vectors:
    """Return the vectors times weights that are small for frequent tokens (SIF: Arora, 2017).

    Vocabularies list frequent tokens first, so Zipf's law gives the frequency of a token's id.
    """
    ranks = 1 / np.arange(2, len(vectors) + 2)
    shares = ranks / ranks.sum()
    weighted: Vectors = (vectors * (SIF / (SIF + shares))[:, None]).astype(np.float32)
    return weighted


def _without_ends(pieces: Any) -> Any:
    """Return a copy of the tokenizer that adds no tokens at the ends of a text."""
    copy = keeping_rules(deepcopy(pieces))
    ends = processors.TemplateProcessing(single="$A", pair="$A $B:1", special_tokens=[])
    copy.backend_tokenizer.post_processor = ends
    return copy


def _projected(teacher: SentenceEncoder, directions: Vectors) -> SentenceEncoder:
    """Return the teacher with vectors projected on `directions`, (width, fewer), of length 1."""
    layer = Dense(directions.shape[1], bias=False, activation_function=IDENTITY)
    before = teacher.head.settings.normalized(False).steps
    made = SentenceEncoder(
        teacher.network,
        teacher.tokenizer,
        HeadSettings((*before, layer, Normalize())),
        teacher.name,
        teacher.usage,
    )
    modules: list[Any] = [*made.head.steps]
    for module, known in zip(modules[: len(before)], teacher.head.steps, strict=False):
        module.load_state_dict(known.state_dict())
    with torch.no_grad():
        modules[len(before)].linear.weight.copy_(torch.from_numpy(directions.T.copy()))
    return made.eval()


def open_static(folder: Path) -> tuple[StaticNetwork, PieceTokenizer]:
    """Return network and tokenizer of a folder that model2vec or sentence-transformers wrote.

    Raises SourceError.
    """
    from transformers import PreTrainedTokenizerFast

    config = read_json(folder / _CONFIG) if (folder / _CONFIG).is_file() else {}
    length = config.get("max_length") or LENGTH_MAX
    weights = read_weights(folder / _WEIGHTS)
    vectors = next((weights[name] for name in _NAMES if name in weights), None)
    if vectors is None or len(weights) > 1:
        raise SourceError(
            f"{folder}/{_WEIGHTS} has {', '.join(weights) or 'nothing'}; supported is one matrix "
            f"{_NAMES[0]} of one vector per token"
        )
    with reading_model(folder), naming_panics(folder / _PIECES):
        pieces: Any = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        pieces.model_max_length = int(length)
        tokenizer = PieceTokenizer(pieces, min(int(length), LENGTH_MAX))
        if vectors.dim() != 2 or max(pieces.get_vocab().values()) >= len(vectors):
            raise ValueError(f"{len(pieces):,} tokens do not fit {tuple(vectors.shape)} vectors")
        return StaticNetwork(vectors.float(), pieces.unk_token_id), tokenizer


def save_static(encoder: SentenceEncoder, folder: Path) -> None:
    """Write the vectors in float16, the tokenizer, and a config.json for model2vec."""
    network: Any = encoder.network
    save_tensors({_NAMES[0]: network.embedding.weight.half().contiguous()}, folder / _WEIGHTS)
    encoder.tokenizer.save(folder)
    length, path = model_length(encoder.tokenizer), folder / _PIECES
    with reading(path, OSError, ValueError):
        backend = Backend.from_file(str(path))
        backend.enable_truncation(length)  # sentence-transformers knows no other limit
        backend.save(str(path), pretty=False)
    config = {
        "model_type": KIND,
        "architectures": ["StaticModel"],
        "hidden_dim": encoder.width,
        "max_length": length,
        "normalize": encoder.head.settings.normalize,
    }
    write_json(folder / _CONFIG, config)
