"""Heads: steps that turn the token states of a network into a sentence vector.

A step is a module of sentence-transformers; `STEPS` has the supported modules. Settings of a step
have the same names as in the module's config.json. Only activations in `ACTIVATIONS` are supported,
so that no code named by a folder is imported.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import torch
from torch import Tensor, nn

from noisegen.encoders.tokens import Packed, Padded

# Supported activations: modules of torch.nn without weights, arguments or randomness.
ACTIVATIONS = (
    *"CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh Identity".split(),  # noqa: SIM905
    *"LeakyReLU LogSigmoid Mish ReLU ReLU6 SELU SiLU Sigmoid Softplus".split(),  # noqa: SIM905
    *"Softshrink Softsign Tanh Tanhshrink".split(),  # noqa: SIM905
)
IDENTITY, TANH = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"
PROJECTIONS = {None: IDENTITY, "tanh": TANH, "gelu": "torch.nn.modules.activation.GELU"}
_ACTIVATION = re.compile(r"torch\.nn\.(?:modules\.\w+\.)?(\w+)")
# Modes of pooling, and their keys in config.json before version 5 of sentence-transformers.
# Their order is the order in which sentence-transformers concatenates their vectors.
POOLINGS = {
    "cls": "cls_token",
    "max": "max_tokens",
    "mean": "mean_tokens",
    "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "weightedmean": "weightedmean_tokens",
    "lasttoken": "lasttoken",
}
# Names that sentence-transformers gives to the vectors before and after pooling.
TOKENS, SENTENCE = "token_embeddings", "sentence_embedding"
Width = Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]


class HeadStep(msgspec.Struct, frozen=True):
    """A step of a head; this base class leaves vectors unchanged."""

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> "HeadStep":
        """Make a step from the content of its config.json; raises ValueError for wrong settings."""
        return msgspec.convert(config, cls)

    def config(self, width: int, inputs: str) -> dict[str, Any]:
        """Return the content of the step's config.json.

        `width` is the width of the step's input vectors; `inputs` is TOKENS for token vectors,
        SENTENCE for sentence vectors.
        """
        return msgspec.to_builtins(self) or {}

    def width(self, width: int) -> int:
        """Return the width of the step's output for input vectors of `width` numbers."""
        return width

    def module(self, width: int) -> nn.Module:
        """Return the step's torch module for input vectors of `width` numbers.

        The names of its weights are the names in a folder of sentence-transformers.
        """
        return nn.Identity()

    def apply(self, module: nn.Module, vectors: Tensor, batch: Padded | Packed) -> Tensor:
        """Apply the step and its torch module to the vectors of a batch."""
        after: Tensor = module(vectors)
        return after


class Pooling(HeadStep, frozen=True):
    """Pooling of a row's token vectors into one vector; several modes are concatenated.

    If `include_prompt` is false, sentence-transformers leaves out the tokens of a prompt.
    """

    pooling_mode: tuple[str, ...] = ("mean",)
    include_prompt: bool = True

    def __repr__(self) -> str:
        # Vectors do not depend on `include_prompt`: an encoder without prompts has one digest.
        return f"Pooling(pooling_mode={self.pooling_mode!r})"

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> "Pooling":
        """Make a Pooling from config.json of any sentence-transformers version.

        Raises ValueError for wrong settings.
        """
        old = [name for name, key in POOLINGS.items() if config.get(f"pooling_mode_{key}")]
        given = config.get("pooling_mode") or old or ["mean"]
        modes = msgspec.convert([given] if isinstance(given, str) else given, tuple[str, ...])
        if not {*modes} <= {*POOLINGS}:
            raise ValueError(f"it pools by {'+'.join(modes)}; supported are {', '.join(POOLINGS)}")
        return cls(modes, config.get("include_prompt") is not False)

    def config(self, width: int, inputs: str) -> dict[str, Any]:
        """Return the content of config.json.

        If the modes are in the order of POOLINGS, all versions of sentence-transformers can read
        the content; else only version 5 can.
        """
        prompt = {} if self.include_prompt else {"include_prompt": False}
        if self.pooling_mode != tuple(name for name in POOLINGS if name in self.pooling_mode):
            return {"embedding_dimension": width, "pooling_mode": [*self.pooling_mode], **prompt}
        modes = {f"pooling_mode_{key}": name in self.pooling_mode for name, key in POOLINGS.items()}
        return {"word_embedding_dimension": width, **modes, **prompt}

    def width(self, width: int) -> int:
        """Return the width of the concatenated vectors of all modes."""
        return width * len(self.pooling_mode)

    def apply(self, module: nn.Module, vectors: Tensor, batch: Padded | Packed) -> Tensor:
        """Return one vector per row of the batch, shape (rows, width)."""
        return torch.cat([batch.pooled(vectors, mode) for mode in self.pooling_mode], -1)


class Dense(HeadStep, frozen=True):
    """A linear layer with an activation; `use_residual` adds the layer's input to its output."""

    out_features: Width
    bias: bool = True
    activation_function: str = TANH
    use_residual: bool = False

    def __post_init__(self) -> None:
        match = _ACTIVATION.fullmatch(self.activation_function)
        if not match or match[1] not in ACTIVATIONS:
            raise ValueError(
                f"the activation function {self.activation_function!r} is not supported, only "
                "plain ones of torch.nn"
            )

    def config(self, width: int, inputs: str) -> dict[str, Any]:
        """Return the content of config.json."""
        names = dict.fromkeys(("module_input_name", "module_output_name"), inputs)
        settings = msgspec.to_builtins(self)
        if not self.use_residual:
            del settings["use_residual"]  # sentence-transformers before 5.7 refuses the key
        return {"in_features": width, **settings, **(names if inputs == TOKENS else {})}

    def width(self, width: int) -> int:
        """Return the width of the layer's output."""
        return self.out_features

    def module(self, width: int) -> nn.Module:
        """Return the layer for input vectors of `width` numbers."""
        return DenseLayer(width, self)


class DenseLayer(nn.Module):
    """The torch module of a Dense step."""

    def __init__(self, width: int, step: Dense) -> None:
        super().__init__()
        self.linear = nn.Linear(width, step.out_features, bias=step.bias)
        self.activation = getattr(nn, step.activation_function.rpartition(".")[2])()
        self.use_residual = step.use_residual
        if step.use_residual and width != step.out_features:
            self.residual = nn.Linear(width, step.out_features, bias=False)

    def forward(self, vectors: Tensor) -> Tensor:
        """Apply linear layer and activation; with `use_residual`, add the input."""
        out: Tensor = self.activation(self.linear(vectors))
        if self.use_residual:
            out = out + (self.residual(vectors) if hasattr(self, "residual") else vectors)
        return out


class Normalize(HeadStep, frozen=True):
    """Scaling of each vector to length 1."""

    def apply(self, module: nn.Module, vectors: Tensor, batch: Padded | Packed) -> Tensor:
        """Return the vectors, each scaled to length 1."""
        return nn.functional.normalize(vectors, dim=-1)


class LayerNorm(HeadStep, frozen=True):
    """Layer normalisation of vectors of `dimension` numbers."""

    dimension: Width

    def module(self, width: int) -> nn.Module:
        """Return the layer; raises ValueError if `dimension` is not `width`."""
        if width != self.dimension:
            raise ValueError(f"a LayerNorm of {self.dimension} numbers cannot read {width}")
        return nn.Sequential(OrderedDict(norm=nn.LayerNorm(self.dimension)))


class Dropout(HeadStep, frozen=True):
    """Dropout, which zeroes random components of vectors in training; `dropout` is its rate."""

    dropout: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.2

    def module(self, width: int) -> nn.Module:
        """Return torch's dropout layer."""
        return nn.Dropout(self.dropout)


STEPS: Mapping[str, type[HeadStep]] = {
    kind.__name__: kind for kind in (Pooling, Dense, Normalize, LayerNorm, Dropout)
}


@dataclass(frozen=True)
class HeadSettings:
    """The steps of a head in their order; one of the steps is the pooling."""

    steps: tuple[HeadStep, ...] = (Pooling(),)

    @property
    def pooling(self) -> str:
        """The names of the modes of pooling, joined by +."""
        return "+".join(self.steps[self._at].pooling_mode)  # type: ignore[attr-defined]

    @property
    def normalize(self) -> bool:
        """Whether the last step scales vectors to length 1."""
        return isinstance(self.steps[-1], Normalize)

    @property
    def _at(self) -> int:
        return next(at for at, step in enumerate(self.steps) if isinstance(step, Pooling))

    def inputs_of(self, index: int) -> str:
        """Return the input of step `index`: TOKENS before pooling, else SENTENCE."""
        return TOKENS if index < self._at else SENTENCE

    def pooled(self, pooling: str) -> "HeadSettings":
        """Return the head with another mode of pooling."""
        at = self._at
        step = msgspec.structs.replace(self.steps[at], pooling_mode=(pooling,))
        return HeadSettings((*self.steps[:at], step, *self.steps[at + 1 :]))

    def projected(
        self, width: int, place: str, *, bias: bool, activation: str | None = None
    ) -> "HeadSettings":
        """Return the head with one linear layer in place of all its Dense steps.

        The layer's output has `width` numbers. If `place` is "before", the layer projects each
        token before pooling (RoLASER, section 4); if it is "after", the layer projects the pooled
        vector. `activation` is "gelu", "tanh" or None.
        """
        kept = HeadSettings(tuple(step for step in self.steps if not isinstance(step, Dense)))
        at = kept._at + (place == "after")
        layer = Dense(width, bias, PROJECTIONS[activation])
        return HeadSettings((*kept.steps[:at], layer, *kept.steps[at:]))

    def normalized(self, normalize: bool) -> "HeadSettings":
        """Return the head with or without Normalize as its last step."""
        if normalize == self.normalize:
            return self
        return HeadSettings((*self.steps, Normalize()) if normalize else self.steps[:-1])


class SentenceHead(nn.Module):
    """The torch modules of a head; they compute in float32 even if the network computes in bf16."""

    def __init__(self, hidden: int, settings: HeadSettings) -> None:
        super().__init__()
        self.settings, self.widths = settings, [hidden]
        self.steps = nn.ModuleList()
        for step in settings.steps:
            self.steps.append(step.module(self.widths[-1]))
            self.widths.append(step.width(self.widths[-1]))
        self.width = self.widths[-1]

    @property
    def projection(self) -> nn.Linear | None:
        """The linear layer of the last Dense step; None without a Dense step."""
        layers = [module.linear for module in self.steps if isinstance(module, DenseLayer)]
        return layers[-1] if layers else None

    def forward(self, states: Tensor, batch: Padded | Packed) -> Tensor:
        """Return one vector per row of a batch, shape (rows, width), float32.

        `states` are the token states that the network gave for the batch.
        """
        with torch.autocast(states.device.type, enabled=False):
            vectors = states.float()
            for step, module in zip(self.settings.steps, self.steps, strict=True):
                vectors = step.apply(module, vectors, batch)
            return vectors
