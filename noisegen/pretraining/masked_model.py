"""A masked-language model of transformers as a sentence encoder with the head that fills masks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from noisegen.encoders.folders import quietly, save_folder
from noisegen.encoders.head import HeadSettings
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.specs import open_encoder
from noisegen.errors import UsageError
from noisegen.pretraining.contrast import Memory
from noisegen.pretraining.masking import Masker, inner_tokenizer
from noisegen.pretraining.settings import PretrainSettings
from noisegen.training.students import cut, freeze, set_dropout


@dataclass(frozen=True)
class _Family:
    """Where a kind of model has the dense layer and the norm of its head; which activation."""

    dense: str
    norm: str
    activation: str | None = None  # a name in its config; None: gelu, whatever the config says


_ROBERTA = _Family("lm_head.dense", "lm_head.layer_norm")
_FAMILIES: Mapping[str, _Family] = {
    "bert": _Family(
        "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "hidden_act"
    ),
    "distilbert": _Family("vocab_transform", "vocab_layer_norm", "activation"),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert", "mpnet"), _ROBERTA),
}


class PredictionHead(nn.Module):
    """States to scores of all tokens: dense layer, activation, norm, the embeddings and a bias."""

    def __init__(
        self, dense: nn.Module, activation: Callable[[Tensor], Tensor], norm: nn.Module,
        bias: nn.Parameter,
    ) -> None:  # fmt: skip
        super().__init__()
        self.dense, self.norm, self.bias = dense, norm, bias
        self._activation = activation

    def forward(self, states: Tensor, embeddings: Tensor) -> Tensor:
        """Return shape (states, tokens of the vocabulary); `embeddings` has a row for each."""
        made = self.norm(self._activation(self.dense(states)))
        return nn.functional.linear(made, embeddings, self.bias)


class MaskedModel(nn.Module):
    """What is trained: an encoder that takes the mean, its head for masks, and its memory.

    `is_new`: the head was not in the model's folder; it is drawn at random.
    """

    def __init__(
        self, encoder: SentenceEncoder, prediction: PredictionHead, memory: Memory, whole: Any,
        *, is_new: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.encoder, self.prediction, self.memory = encoder, prediction, memory
        self.is_new = is_new
        self._whole = (whole,)  # in a tuple: its weights are those above, and no others

    @property
    def embeddings(self) -> Tensor:
        """The embeddings of the vocabulary, (tokens, hidden): of the input and of the head."""
        found: Any = self.encoder.network
        return found.get_input_embeddings().weight  # type: ignore[no-any-return]

    def scores(self, states: Tensor) -> Tensor:
        """Return the score of every token of the vocabulary for each state."""
        found: Tensor = self.prediction(states, self.embeddings)
        return found

    def save(self, folder: Path) -> None:
        """Write a folder for SentenceTransformer, AutoModel and AutoModelForMaskedLM."""
        save_folder(self.encoder, folder)
        with quietly():
            self._whole[0].save_pretrained(folder)  # over the network alone: it has the head too


def open_model(settings: PretrainSettings) -> MaskedModel:
    """Open the model that the settings name, at its start.

    Raises UsageError for a model whose head we do not know, or that has no token for masks.
    """
    spec = settings.student
    start = open_encoder(spec)
    if not isinstance(start, SentenceEncoder) or start.config.model_type not in _FAMILIES:
        raise UsageError(
            f"model {spec} cannot be pre-trained on masks: give one of the kinds "
            f"{', '.join(_FAMILIES)}"
        )
    try:
        Masker.of(start.tokenizer, settings.mask_rate, settings.seed)
    except UsageError as error:
        raise UsageError(f"model {spec}: {error}") from error
    torch.manual_seed(settings.seed)  # a head that is new is drawn at random
    whole, missing = _opened(Path(start.network.name_or_path))  # type: ignore[arg-type]
    _check_tied(spec, whole, len(inner_tokenizer(start.tokenizer)))
    return _model(settings, start, whole, is_new=bool(missing))


def _opened(folder: Path) -> tuple[Any, set[str]]:
    """Return the model with its head, and the names of the weights that the folder lacks."""
    from transformers import AutoModelForMaskedLM

    with quietly():
        whole, info = AutoModelForMaskedLM.from_pretrained(
            folder, use_safetensors=True, local_files_only=True, trust_remote_code=False,
            dtype=torch.float32, output_loading_info=True,
        )  # fmt: skip
    return whole, set(info["missing_keys"])


def _check_tied(spec: str, whole: Any, pieces: int) -> None:
    """Refuse a head with a table of its own, and a vocabulary that the embeddings do not have."""
    embeddings = whole.get_input_embeddings().weight
    if whole.get_output_embeddings().weight is not embeddings:
        raise UsageError(
            f"model {spec}: its head is not tied to its embeddings (tie_word_embeddings in "
            "config.json): tie them, or give another model"
        )
    if pieces > len(embeddings):
        raise UsageError(
            f"model {spec}: its tokenizer has {pieces:,} pieces, its embeddings "
            f"{len(embeddings):,}: give another model"
        )


def _model(
    settings: PretrainSettings, start: SentenceEncoder, whole: Any, *, is_new: bool
) -> MaskedModel:
    from transformers.activations import ACT2FN

    family = _FAMILIES[whole.config.model_type]
    activation = getattr(whole.config, family.activation) if family.activation else "gelu"
    head = PredictionHead(
        whole.get_submodule(family.dense), ACT2FN[activation], whole.get_submodule(family.norm),
        whole.get_output_embeddings().bias,
    )  # fmt: skip
    tokenizer = cut(start.tokenizer, settings.max_length)
    encoder = SentenceEncoder(whole.base_model, tokenizer, HeadSettings(), settings.student)
    memory = Memory(settings.memory, encoder.width)
    model = MaskedModel(encoder, head, memory, whole, is_new=is_new)
    set_dropout(model, settings.dropout)
    freeze(encoder, settings.freeze)
    return model
