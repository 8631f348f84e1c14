"""The two heads, their folder of safetensors and JSON, and the classifiers that train with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from noisegen.disentangling.objectives import Layer
from noisegen.encoders.files import read_json, read_weights, write_json
from noisegen.errors import SourceError

KIND = "noisegen heads"
SIDES = ("meaning", "language")
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"


class Heads(nn.Module):
    """Two single linear layers on a vector e: meaning m = W_m e + b_m, and language likewise."""

    def __init__(self, width: int, random: torch.Generator | None = None) -> None:
        super().__init__()
        self.meaning, self.language = linear(width, width, random), linear(width, width, random)

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return meaning and language vectors, each of shape (rows, width)."""
        return self.meaning(vectors), self.language(vectors)

    @torch.no_grad()
    def unfold(self, centre: Tensor, scale: float) -> None:
        """Change the layers so that they do to e what they did to (e - centre) * scale."""
        for layer in (self.meaning, self.language):
            layer.weight.mul_(scale)
            layer.bias.sub_(layer.weight @ centre)


def linear(width: int, out: int, random: torch.Generator | None = None) -> nn.Linear:
    """Return a layer with torch's usual start, uniform within 1/sqrt(width), by this generator."""
    made: nn.Linear = nn.utils.skip_init(nn.Linear, width, out)  # type: ignore[no-untyped-call]
    bound = width**-0.5
    for weights in made.parameters():
        nn.init.uniform_(weights, -bound, bound, generator=random)
    return made


def as_layer(made: nn.Linear, *, still: bool = False) -> Layer:
    """Return weights and bias for an objective; `still`: without their gradients."""
    weights = made.weight, made.bias
    return Layer(*(one.detach() for one in weights)) if still else Layer(*weights)


@dataclass(frozen=True)
class HeadConfig:
    """What config.json of heads says: for which vectors they are, and what they tell apart."""

    encoder: str  # SPEC
    digest: str  # of the encoder
    width: int
    labels: Sequence[str]
    objective: str


def save_heads(heads: Heads, config: HeadConfig, folder: Path) -> None:
    """Write RUN/heads: weights as safetensors, and config.json."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: value.detach().cpu().clone() for name, value in heads.state_dict().items()}
    save_file(weights, folder / _WEIGHTS)
    write_json(folder / _CONFIG, {"kind": KIND, **vars(config), "labels": list(config.labels)})


def load_heads(folder: Path) -> tuple[Heads, HeadConfig]:
    """Open what `save_heads` wrote; raises SourceError for any other folder."""
    if not (folder / _CONFIG).is_file():
        raise SourceError(f"{folder} has no heads: no {_CONFIG}; give RUN/heads")
    config = _config(folder / _CONFIG)
    weights = read_weights(folder / _WEIGHTS)
    shapes = {name: tuple(value.shape) for name, value in weights.items()}
    wide = config.width
    kinds: dict[str, tuple[int, ...]] = {"weight": (wide, wide), "bias": (wide,)}
    wanted = {f"{side}.{kind}": shape for side in SIDES for kind, shape in kinds.items()}
    if shapes != wanted or not all(value.isfinite().all() for value in weights.values()):
        raise SourceError(
            f"{folder / _WEIGHTS} does not hold two heads of width {wide}, as {_CONFIG} says"
        )
    heads = Heads(wide)
    heads.load_state_dict(weights)
    return heads.eval().requires_grad_(False), config


def _config(path: Path) -> HeadConfig:
    said = read_json(path)
    kinds = {"encoder": str, "digest": str, "width": int, "labels": list, "objective": str}
    fits = said.get("kind") == KIND and all(type(said.get(k)) is v for k, v in kinds.items())
    if not fits or not 1 <= said["width"] <= 1 << 16:
        raise SourceError(f"{path} is not the {_CONFIG} of heads; give RUN/heads of noisegen train")
    return HeadConfig(**{name: said[name] for name in kinds})
