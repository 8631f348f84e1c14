"""Two heads on a frozen encoder, for meaning and language: their folder, encoders and picture.

SPEC `heads:RUN/heads` opens the encoder of meaning vectors, `heads:RUN/heads#language` the encoder
of language vectors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from noisegen.encoders.encoder import Encoder, Progress, Vectors, digest_of, open_encoder
from noisegen.encoders.folders import save_folder
from noisegen.encoders.head import IDENTITY, Dense, HeadSettings
from noisegen.encoders.sentence_encoder import PLAIN, SentenceEncoder, Usage
from noisegen.encoders.stored import read_json, read_weights, write_json
from noisegen.errors import SourceError, naming_extras
from noisegen.evaluation.similarity import principal_axes, unit
from noisegen.report import charts, pages
from noisegen.report.blocks import Figure, Section
from noisegen.report.charts import Spot
from noisegen.runs.atomic import write_text
from noisegen.training.checkpoint import save_weights

KIND = "noisegen heads"
SIDES = ("meaning", "language")
PREFIX = "heads:"
FOLDERS = dict(zip(SIDES, ("student", "language"), strict=True))
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"


class Heads(nn.Module):
    """Two linear layers on a vector e: meaning m = W_m e + b_m, language l = W_l e + b_l."""

    def __init__(self, width: int, random: torch.Generator | None = None) -> None:
        super().__init__()
        self.meaning = new_linear(width, width, random)
        self.language = new_linear(width, width, random)

    def forward(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return meaning and language vectors, each of shape (rows, width)."""
        return self.meaning(vectors), self.language(vectors)

    @torch.no_grad()
    def absorb_standardisation(self, centre: Tensor, scale: float) -> None:
        """Change the weights so that the layers take vectors that are not standardised.

        The layers were trained on (e - centre) * scale for a vector e. After the change they take e
        itself, with the same output.
        """
        for layer in (self.meaning, self.language):
            layer.weight.mul_(scale)
            layer.bias.sub_(layer.weight @ centre)


def applied(heads: Heads, side: str) -> Callable[[Vectors], Vectors]:
    """Return a function that maps vectors of the frozen encoder to the output of one head.

    `side` is the name of the head, "meaning" or "language".
    """
    layer = getattr(heads, side)

    def head(vectors: Vectors) -> Vectors:
        with torch.inference_mode():
            out: Vectors = layer(torch.from_numpy(vectors)).numpy()
        return out

    return head


def new_linear(width: int, out: int, random: torch.Generator | None = None) -> nn.Linear:
    """Return a linear layer from `width` to `out` numbers, with random weights as torch sets them.

    Weights and bias are uniform between -1/sqrt(width) and 1/sqrt(width).
    """
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, width, out)  # type: ignore[no-untyped-call]
    bound = width**-0.5
    for weights in layer.parameters():
        nn.init.uniform_(weights, -bound, bound, generator=random)
    return layer


@dataclass(frozen=True)
class HeadConfig:
    """Content of RUN/heads/config.json: encoder, labels and objective of the heads."""

    encoder: str  # SPEC of the frozen encoder
    digest: str  # digest of the frozen encoder when the heads were trained
    width: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]
    labels: Sequence[str]
    objective: str


def save_heads(heads: Heads, config: HeadConfig, folder: Path) -> None:
    """Write heads into a folder, RUN/heads: their weights as safetensors, and config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(heads, folder / _WEIGHTS)
    write_json(folder / _CONFIG, {"kind": KIND, **vars(config), "labels": list(config.labels)})


def load_heads(folder: Path) -> tuple[Heads, HeadConfig]:
    """Return the heads and the config that `save_heads` wrote to a folder; raises SourceError."""
    path = folder / _CONFIG
    if not path.is_file():
        raise SourceError(f"{folder} has no heads: no {_CONFIG}; give RUN/heads")
    record = read_json(path)
    try:
        if record.get("kind") != KIND:
            raise ValueError(KIND)
        config = msgspec.convert(record, HeadConfig)
    except ValueError as error:
        raise SourceError(
            f"{path} is not the {_CONFIG} of heads; give RUN/heads of noisegen train"
        ) from error
    weights, wide = read_weights(folder / _WEIGHTS), config.width
    shapes = {name: tuple(value.shape) for name, value in weights.items()}
    wanted: dict[str, tuple[int, ...]] = {f"{side}.weight": (wide, wide) for side in SIDES}
    wanted |= {f"{side}.bias": (wide,) for side in SIDES}
    if shapes != wanted or not all(value.isfinite().all() for value in weights.values()):
        raise SourceError(
            f"{folder / _WEIGHTS} does not hold two heads of width {wide}, as {_CONFIG} says"
        )
    heads = Heads(wide)
    heads.load_state_dict(weights)
    return heads.eval().requires_grad_(False), config


def save_students(heads: Heads, encoder: Encoder, out: Path) -> None:
    """Write an encoder of meaning vectors to RUN/student, one of language vectors to RUN/language.

    `out` is the folder RUN. Each encoder is the frozen `encoder` with a trained head as last layer.
    Nothing is written if `encoder` is not a SentenceEncoder. Then the SPEC `heads:RUN/heads`, which
    reads the files of `save_heads`, is the only way to apply the heads.
    """
    if not isinstance(encoder, SentenceEncoder):
        return
    own = encoder.head
    settings = HeadSettings((*own.settings.steps, Dense(encoder.width, True, IDENTITY)))
    for side, name in FOLDERS.items():
        student = SentenceEncoder(encoder.network, encoder.tokenizer, settings, name, encoder.usage)
        student.head.steps[:-1].load_state_dict(own.steps.state_dict())
        assert student.head.projection is not None
        student.head.projection.load_state_dict(getattr(heads, side).state_dict())
        save_folder(student, out / name)


class HeadEncoder(nn.Module):
    """An encoder that applies a linear layer to the vectors of a frozen encoder."""

    def __init__(self, name: str, frozen: Encoder, layer: nn.Linear) -> None:
        super().__init__()
        self.name, self.frozen = name, frozen
        self.weight, self.bias = layer.weight.numpy(), layer.bias.numpy()

    @property
    def width(self) -> int:
        """Number of dimensions of a vector."""
        return len(self.weight)

    @property
    def usage(self) -> Usage:
        """Prompts and other settings of the frozen encoder, whose default prompt is applied."""
        return getattr(self.frozen, "usage", PLAIN)

    @property
    def digest(self) -> str:
        """Hex digest of the frozen encoder and the linear layer."""
        weights = sha256(self.weight.tobytes() + self.bias.tobytes()).hexdigest()
        return digest_of(self.frozen.digest, weights)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return the vectors of texts, shape (texts, width), not normalised."""
        vectors: Vectors = self.frozen.encode(texts, progress) @ self.weight.T + self.bias
        return vectors


def open_heads(spec: str) -> HeadEncoder:
    """Return an encoder that applies a trained head to the vectors of its frozen encoder.

    `spec` is FOLDER or FOLDER#meaning for meaning vectors, FOLDER#language for language vectors.
    Raises SourceError for a folder without heads, or if the frozen encoder has changed since the
    heads were trained.
    """
    path, mark, side = spec.rpartition("#")
    folder, side = (path, side) if mark and side in SIDES else (spec, SIDES[0])
    heads, config = load_heads(Path(folder))
    if config.encoder.startswith(PREFIX):
        raise SourceError(f"{folder}: heads cannot be trained on heads; train them on an encoder")
    frozen = open_encoder(config.encoder)
    if (frozen.width, frozen.digest) != (config.width, config.digest):
        raise SourceError(
            f"{folder}: its heads were trained on another {config.encoder} (width {config.width}, "
            f"digest {config.digest[:8]}) than this (width {frozen.width}, digest "
            f"{frozen.digest[:8]}); train the heads again"
        )
    layer = getattr(heads, side)
    return HeadEncoder(f"{PREFIX}{spec}", frozen, layer)


PAIRS_DRAWN = 1_000  # maximum pairs per figure of the picture, as in the ORACLE paper
PERPLEXITY, ITERATIONS = 10, 300  # settings of t-SNE in the ORACLE paper, with metric cosine
Points = npt.NDArray[np.float64]  # positions in a plane, shape (rows, 2)
Flatten = Callable[[Vectors], Points]


def write_picture(sets: Mapping[str, tuple[Vectors, Vectors]], heads: Heads, path: Path) -> None:
    """Write an HTML page that plots the meaning and the language vectors of pairs in one plane.

    `sets` maps a name, such as "en-de", to the frozen encoder's vectors of sources and targets. For
    each set, PCA and t-SNE are fitted to four groups together: meaning and language vectors, of
    sources and targets. A language vector among meaning vectors shows leakage, as in Figures 1 and
    5 of the ORACLE paper. Raises MissingExtra without scikit-learn.
    """
    groups = [f"{side}, {text}" for side in SIDES for text in ("source", "target")]
    key = [charts.sample(style, name) for style, name in enumerate(groups)]
    sections, total = [], 0
    for number, (name, texts) in enumerate(sets.items()):
        parts = [applied(heads, side)(vectors) for side in SIDES for vectors in texts]
        styles = np.repeat(np.arange(len(parts)), len(parts[0])).tolist()
        panels = []
        for way, flatten in _WAYS.items():
            places = zip(flatten(np.concatenate(parts)).tolist(), styles, strict=True)
            spots = [Spot(x, y, style) for (x, y), style in places]
            panels.append(charts.plane(spots, title=f"{name} by {way}"))
        sections.append(Section(f"set{number}", name, [Figure(panels, _CAPTION, key=key)]))
        total += len(parts[0])
    title = f"Meaning and language vectors of {total:,} pairs"
    write_text(path, pages.page(title, sections, kicker="noisegen: heads"))


def principal_components(vectors: Vectors) -> Points:
    """Scale vectors to length 1, and return their first two principal components."""
    units = unit(vectors).astype(np.float64)
    return principal_axes(units).project(units)


def neighbour_map(vectors: Vectors) -> Points:
    """Return positions of vectors in a plane, by t-SNE with cosine distance and a fixed seed."""
    with naming_extras():
        from sklearn.manifold import TSNE
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 2)
    tsne = TSNE(
        metric="cosine", perplexity=perplexity, max_iter=ITERATIONS, init="random", random_state=0
    )
    points: Points = tsne.fit_transform(vectors).astype(np.float64)
    return points


_WAYS: dict[str, Flatten] = {"PCA": principal_components, "t-SNE": neighbour_map}
_CAPTION = (
    "All four groups in one plane: by the first two principal components of the vectors, each of "
    f"length one, and by t-SNE with cosine distance, perplexity {PERPLEXITY}, {ITERATIONS} "
    "iterations."
)
