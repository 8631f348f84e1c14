"""Students: their start, how they learn from pairs, and the folder they are saved in.

A student starts as a copy of the teacher, as some of its layers, or as another encoder.
"""

from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import yaml
from torch import nn

from noisegen.encoders.character_cnn import WordTokenizer
from noisegen.encoders.encoder import Encoder, Ragged, Tokenizer, Vectors, open_encoder
from noisegen.encoders.head import DenseLayer, SentenceHead
from noisegen.encoders.laser2 import LaserEncoder
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import (
    PieceTokenizer,
    PreparedTokenizer,
    Rows,
    chunks_of,
    lowered,
    with_preparation,
)
from noisegen.errors import UsageError
from noisegen.evaluation.xsim_search import xsim
from noisegen.runs.atomic import write_text
from noisegen.training.checkpoint import writing_weights
from noisegen.training.computation import Computation, flop_per_token
from noisegen.training.pairs import PIECE_ROWS, NoiseSource, PairData, Reading, read_pairs
from noisegen.training.settings import DistilSettings, PretrainSettings
from noisegen.training.summary import tables
from noisegen.training.trainer import Chunk, Method, Rehearsal, Trainer

# Where the networks of transformers have their list of layers.
_LAYERS = ("encoder.layer", "encoder.layers", "layers", "transformer.layer")
_BYTES = 16  # of a trained float32 weight: itself, gradient, two moments of Adam
_REHEARSED = 50  # held-out pairs
_TEMPLATES = Path(__file__).parent / "templates"


def make_student(settings: DistilSettings, teacher: Encoder) -> SentenceEncoder:
    """Return the student of these settings, with the teacher's width.

    Raises UsageError for a student that cannot be trained or has another width.
    """
    torch.manual_seed(settings.seed)  # new layers are drawn at random
    start = _start(settings.student, teacher)
    own = head = start.head.settings
    if settings.pooling:
        head = head.pooled(settings.pooling)
    if settings.project:
        bias, activation = settings.projection_bias, settings.projection_activation
        head = head.projected(teacher.width, settings.project, bias=bias, activation=activation)
    normal = isinstance(teacher, SentenceEncoder) and teacher.head.settings.normalize
    head = head.normalized(normal if settings.normalize is None else settings.normalize)
    head = own if head == own else head
    tokenizer = cut(start.tokenizer, settings.max_length, settings.lower)
    is_prepared = isinstance(tokenizer, PreparedTokenizer) and tokenizer.preparation
    of_teacher = teacher.preparation if isinstance(teacher, LaserEncoder) else ""
    if settings.prepare == "plain":
        tokenizer = with_preparation(tokenizer, "") if is_prepared else tokenizer
    elif preparation := settings.prepare or ("" if is_prepared else of_teacher):
        tokenizer = with_preparation(tokenizer, preparation)
    student = SentenceEncoder(start.network, tokenizer, head, "student")
    _begin_head(student.head, start.head)
    if student.width != teacher.width:
        raise UsageError(
            f"the student has {student.width} numbers per vector, teacher {teacher.name} "
            f"{teacher.width}: add --set project=after (a linear layer), or choose a student "
            "of the teacher's width"
        )
    set_dropout(student, settings.dropout)
    if settings.activation_dropout:
        add_activation_dropout(student.network, settings.activation_dropout)
    freeze(student, settings.freeze)
    if not any(weight.requires_grad for weight in student.parameters()):
        raise UsageError(f"freeze {', '.join(settings.freeze)!r} leaves no weight to train")
    return student


def _begin_head(head: SentenceHead, before: SentenceHead) -> None:
    """Give steps that were there before their weights, and start new projections as RoLASER's do.

    Its code draws them from N(0, 1 / width); a layer with an activation starts as torch's.
    """
    for step, module, width in zip(head.settings.steps, head.steps, head.widths, strict=False):
        places = [at for at, known in enumerate(before.settings.steps) if known is step]
        if places and before.widths[places[0]] == width:
            module.load_state_dict(before.steps[places[0]].state_dict())
        elif isinstance(module, DenseLayer) and isinstance(module.activation, nn.Identity):
            nn.init.normal_(module.linear.weight, std=width**-0.5)


def cut(tokenizer: Tokenizer, max_length: int, lower: bool = False) -> Tokenizer:
    """Return the tokenizer with texts cut to at most `max_length` tokens, or words."""
    length = min(max_length, tokenizer.max_length)
    if isinstance(tokenizer, PreparedTokenizer):
        return replace(tokenizer, tokenizer=cut(tokenizer.tokenizer, length, lower))
    if isinstance(tokenizer, PieceTokenizer):
        pieces = PieceTokenizer(tokenizer.tokenizer, length)
        return lowered(pieces) if lower else pieces
    if isinstance(tokenizer, WordTokenizer):
        return tokenizer.with_rules(length, lower=lower or tokenizer.lower)
    return tokenizer


def _start(spec: str, teacher: Encoder) -> SentenceEncoder:
    """Return the encoder that the student starts as."""
    kind, _, numbers = spec.partition(":")  # or the folder of a CharacterBERT
    if kind == "char" and (numbers or spec == "char"):
        from noisegen.encoders.character_folder import character_student, open_character_bert

        return open_character_bert(numbers) if numbers else character_student()
    if spec == "copy" or kind == "layers":
        if not isinstance(teacher, SentenceEncoder):
            raise UsageError(
                f"teacher {teacher.name} is not a transformer that can be copied: "
                "give --student FOLDER, hf:NAME or char"
            )
        copy = deepcopy(teacher)
        if kind == "layers":
            _keep_layers(copy, numbers)
        return copy
    encoder = open_encoder(spec)
    if not isinstance(encoder, SentenceEncoder):
        raise UsageError(f"student {spec} cannot be trained: give a Hugging Face folder")
    return encoder


def _keep_layers(encoder: SentenceEncoder, numbers: str) -> None:
    """Keep only these layers of the network, numbered from 0."""
    modules = dict(encoder.network.named_modules())
    stack: Any = next((modules[path] for path in _LAYERS if path in modules), None)
    if stack is None:
        raise UsageError(f"layers: is not supported for a {type(encoder.network).__name__}")
    chosen = [int(number) if number.strip().isdecimal() else -1 for number in numbers.split(",")]
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(len(stack))):
        raise UsageError(
            f"student 'layers:{numbers}': write numbers from 0 to {len(stack) - 1}, each once, as "
            "layers:0,3,5"
        )
    layers = [stack[number] for number in chosen]
    del stack[:]
    stack.extend(layers)
    encoder.config.num_hidden_layers = len(layers)


def interpolate(student: SentenceEncoder, start: SentenceEncoder, share: float) -> None:
    """Interpolate the student's weights with those it started with; `share` is of the trained ones.

    A copy of the teacher then loses most of its drift and little of its robustness (WiSE-FT:
    Wortsman and others, 2022, section 3; `share` is their alpha).
    """
    begun = start.state_dict()
    with torch.no_grad():
        for name, weight in student.state_dict().items():
            if weight.is_floating_point():
                weight.lerp_(begun[name].to(weight), 1 - share)


def set_dropout(student: nn.Module, share: float) -> None:
    """Set the rate of all dropout layers."""
    for module in student.modules():
        if isinstance(module, nn.Dropout):
            module.p = share
        elif hasattr(module, "dropout_prob"):  # attention that drops in its kernel
            setattr(module, "dropout_prob", share)  # noqa: B010


def add_activation_dropout(network: nn.Module, share: float) -> None:
    """Drop activations of the feed-forward layers in training; raises UsageError.

    Networks of transformers have no such dropout, the paper's student of fairseq has (RoLASER).
    """
    layers: list[Any] = [m for m in network.modules() if hasattr(m, "intermediate_act_fn")]
    if not layers:
        raise UsageError(
            f"activation_dropout is not supported for a {type(network).__name__}: set it to 0"
        )
    for layer in layers:
        layer.intermediate_act_fn = nn.Sequential(layer.intermediate_act_fn, nn.Dropout(share))


def freeze(student: SentenceEncoder, beginnings: tuple[str, ...]) -> None:
    """Freeze the weights whose names have one of these prefixes, such as `embeddings`.

    Raises UsageError for a prefix that no weight has.
    """
    names = dict(student.network.named_parameters())
    for beginning in beginnings:
        frozen = [weight for name, weight in names.items() if name.startswith(beginning)]
        if not frozen:
            raise UsageError(f"freeze {beginning!r}: no weight of the student has this prefix")
        for weight in frozen:
            weight.requires_grad_(False)


@dataclass(frozen=True)
class PairChunk(Chunk):
    """Token ids of pairs.

    Batches are rows of each of the `sides`; row i belongs to clean text `owner[i]`.
    """

    sides: tuple[Ragged, ...]
    owner: npt.NDArray[np.integer]

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return len(self.owner)


P = TypeVar("P", bound=PairChunk)


class PairMethod(Method[P]):
    """A method whose student learns from pairs of noisy and clean text, and gets a model card."""

    card: ClassVar[str]  # the template of the model card
    settings: DistilSettings | PretrainSettings
    pairs: PairData
    noise: NoiseSource
    computation: Computation

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read pairs, or clean text if all noise comes from recipes.

        Raises SourceError, and UsageError if a recipe lacks a language.
        """
        settings = self.settings
        reading = Reading(
            not self.noise.is_stored, settings.lang, getattr(settings, "bitext_rows", None),
            settings.validation_rows, settings.seed, getattr(settings, "validation_share", 0.1),
        )  # fmt: skip
        self.pairs = read_pairs(folder, sources, reading, self.workers, resume=resume)
        self.pairs_read, self.rows = len(self.pairs.noisy), len(self.pairs.training)
        self.noise.check(self.pairs)
        return self.pairs.summary

    @property
    def held_rows(self) -> Rows:
        """The pairs that the network is validated on."""
        return self.pairs.validation[: self.settings.validation_rows]

    @abstractmethod
    def hold_out(self, rows: Rows) -> None:
        """Keep these pairs for `validate`, noised and tokenised."""

    def stand_in(self) -> float:
        """Replace what is computed before training; return the seconds that it would take."""
        return 0.0

    def rehearse(self) -> Rehearsal:
        """Prepare with some of the held-out pairs, and without a teacher."""
        seconds, rows = self.stand_in(), self.held_rows[:_REHEARSED]
        self.hold_out(rows)
        return Rehearsal(seconds, len(self.held_rows) / len(rows))

    def chunk(self, epoch: int, number: int) -> P | None:
        """Return a chunk of an epoch, in batches; None after the last."""
        chunks = chunks_of(self.pairs.training, self.settings.seed, epoch)
        return self.batched(chunks[number], epoch, number) if number < len(chunks) else None

    @abstractmethod
    def batched(self, rows: Rows, epoch: int, number: int) -> P:
        """Return these pairs as a chunk; all processes have equally many batches per step."""

    def tokens(self, rows: Rows, epoch: int, *, both_sides: bool) -> tuple[Ragged, ...]:
        """Return the token ids of the noisy side of these pairs, then those of the clean one."""
        tokenizer, pairs = self.computation.student.tokenizer, self.pairs
        noisy, clean = [], []
        for first in range(0, len(rows), PIECE_ROWS):
            piece = rows[first : first + PIECE_ROWS]
            noisy.append(tokenizer.tokenize(self.noise.noisy(pairs, piece, epoch)))
            if both_sides:
                texts = pairs.clean.take(pairs.owner[piece]).to_pylist()
                clean.append(tokenizer.tokenize(texts))
        return tuple(map(Ragged.joined, (noisy, clean) if both_sides else (noisy,)))

    def estimate(self, chunk: P) -> dict[str, Any]:
        """Return the numbers of weights, pairs and tokens, with their cost.

        `trained` are the weights that are not frozen. `flop_per_token` is for forward and backward;
        `weight_bytes` includes gradients and moments.
        """
        tokens = sum(len(side.values) for side in chunk.sides)
        computed = sum(
            len(batch) * int(side.lengths[batch].max())
            for step in chunk.steps for batch in step for side in chunk.sides
        )  # fmt: skip
        weights = [(w.numel(), w.requires_grad) for w in self.network.parameters()]
        parameters, trained = sum(n for n, _ in weights), sum(n for n, grad in weights if grad)
        length = tokens / len(chunk.sides[0])
        return {
            "parameters": parameters, "trained": trained, "pairs": self.rows,
            "tokens_per_pair": tokens / chunk.pairs,
            "pairs_per_update": chunk.pairs / len(chunk.steps), "padding": 1 - tokens / computed,
            "updates_per_epoch": round(self.rows / chunk.pairs * len(chunk.steps)),
            "flop_per_token": flop_per_token(self.computation.student, length),
            "weight_bytes": parameters * 4 + trained * (_BYTES - 4),
        }  # fmt: skip

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the student's folder."""

    def export(self, trainer: Trainer[P]) -> dict[str, Any]:
        """Write RUN/student with a model card."""
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        folder, recorded = trainer.out / "student", trainer.recorded
        best = None if self.is_altered else trainer.best_validation
        with torch.no_grad(), writing_weights(folder):
            self.save(folder)
        metrics = {
            "validation": best.figures if best else self.validate(), **trainer.reached,
            "parameters": sum(weight.numel() for weight in self.network.parameters()),
            "dropped": dict(self.pairs.dropped), "cut": self.pairs.cut,
        }  # fmt: skip
        templates = Environment(
            loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, trim_blocks=True,
            keep_trailing_newline=True,
        )  # fmt: skip
        settings = yaml.safe_dump(recorded, sort_keys=False, allow_unicode=True)
        values = {"select_by": None, **recorded, **metrics, "settings": settings}
        values["tables"] = tables(metrics)
        values["prepare"] = getattr(self.computation.student.tokenizer, "preparation", "")
        values["validation_pairs"] = recorded.get("validation")  # metrics have figures so called
        card = templates.get_template(self.card).render(values)
        write_text(folder / "README.md", card)
        return metrics


def xsim_error(noisy: Vectors, clean: Vectors, owners: npt.NDArray[np.integer]) -> float:
    """Return the xSIM error of noisy against clean rows, as a percentage.

    `owners` are the numbers of the clean texts: to find an equal text of another row is no error.
    """
    return xsim(noisy, clean, texts=list(map(str, owners.tolist()))).error_rate
