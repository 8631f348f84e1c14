"""Students: the network that a run begins with, and changes to it before and after training.

A student starts as a copy of the teacher, as some layers of such a copy, or as another encoder.
"""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from noisegen.encoders.character_cnn import WordTokenizer
from noisegen.encoders.encoder import Encoder, Tokenizer, open_encoder
from noisegen.encoders.head import DenseLayer, HeadSettings, SentenceHead
from noisegen.encoders.laser2 import LaserEncoder
from noisegen.encoders.sentence_encoder import PLAIN, SentenceEncoder, Usage
from noisegen.encoders.tokens import (
    PieceTokenizer,
    PreparedTokenizer,
    lowered,
    model_length,
    with_preparation,
)
from noisegen.errors import UsageError
from noisegen.training.settings import DistilSettings

STATIC = "static"  # setting `student` for a student of one vector per token
# Dotted paths under which networks of the library transformers have their list of layers.
_LAYERS = ("encoder.layer", "encoder.layers", "layers", "transformer.layer")


def make_student(
    settings: DistilSettings, teacher: Encoder, start: SentenceEncoder | None = None
) -> SentenceEncoder:
    """Return the student that the settings describe, before training.

    `start` is the encoder that it starts as a copy of; by default the settings name it. The student
    has the teacher's prompts, similarity and truncation for sentence-transformers. If the
    teacher has no such settings, it has those settings of the encoder it starts as.

    Raises UsageError for a student that cannot be trained, or whose width is not the teacher's.
    """
    torch.manual_seed(settings.seed)  # new layers get random weights
    start = _start(settings.student, teacher) if start is None else deepcopy(start)
    head = _head(settings, start.head.settings, teacher)
    tokenizer = _tokenizer(settings, start.tokenizer, teacher)
    usage: Usage = getattr(teacher, "usage", PLAIN)
    if usage == PLAIN:
        usage = start.usage
    student = SentenceEncoder(start.network, tokenizer, head, "student", usage)
    _initialise_head(student.head, start.head)
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


def refuse_for_static(settings: DistilSettings) -> None:
    """Raise UsageError for settings that a static student cannot have.

    Other libraries pool the vectors of its tokens by their mean, and scale the mean to length 1.
    """
    for name in ("pooling", "project", "prepare", "lower"):
        if value := getattr(settings, name):
            raise UsageError(f"a static student has no setting {name} ({value}): leave it out")
    if settings.normalize is False:
        raise UsageError("a static student has vectors of length 1: leave normalize=false out")


def _head(settings: DistilSettings, before: HeadSettings, teacher: Encoder) -> HeadSettings:
    """Return the student's head: `before`, the head of the encoder it starts as, with changes.

    The settings of the run may change the pooling, add a projection to the teacher's width, and
    normalise vectors.
    """
    head = before
    if settings.pooling:
        head = head.pooled(settings.pooling)
    if settings.project:
        bias, activation = settings.projection_bias, settings.projection_activation
        head = head.projected(teacher.width, settings.project, bias=bias, activation=activation)
    normalize = settings.normalize
    if normalize is None:
        normalize = isinstance(teacher, SentenceEncoder) and teacher.head.settings.normalize
    head = head.normalized(normalize)
    # Equal heads must have identical steps: `_initialise_head` compares steps with `is`.
    return before if head == before else head


def _tokenizer(settings: DistilSettings, before: Tokenizer, teacher: Encoder) -> Tokenizer:
    """Return the student's tokenizer: `before`, its initial encoder's tokenizer, with changes.

    The settings of the run may limit the length of texts, and have texts lower-cased and prepared.
    Without such a limit, texts are cut as the teacher cuts them. By default texts are prepared as
    `before` does, or if it does not, as a LASER teacher does.
    """
    own = teacher if isinstance(teacher, SentenceEncoder) else None
    limit = settings.max_length or model_length(own.tokenizer if own else before)
    tokenizer = cut(before, limit, settings.lower)
    is_prepared = isinstance(tokenizer, PreparedTokenizer) and bool(tokenizer.preparation)
    preparation: str | None = settings.prepare
    if preparation == "plain":
        return with_preparation(tokenizer, "") if is_prepared else tokenizer
    if preparation is None and not is_prepared and isinstance(teacher, LaserEncoder):
        preparation = teacher.preparation or None
    return with_preparation(tokenizer, preparation) if preparation else tokenizer


def not_kept(student: SentenceEncoder, teacher: Encoder) -> list[str]:
    """Return a phrase for each setting of sentence-transformers that only the teacher has."""
    if not isinstance(teacher, SentenceEncoder):
        has_usage = hasattr(teacher, "usage")
        return [] if has_usage else [f"teacher {teacher.name} has no prompts and no max_seq_length"]
    ours, theirs = model_length(student.tokenizer), model_length(teacher.tokenizer)
    return [f"max_seq_length {theirs} (the student's is {ours})"] if ours != theirs else []


def _initialise_head(head: SentenceHead, before: SentenceHead) -> None:
    """Set the first weights of a student's head; `before` is the head of the encoder it starts as.

    Steps taken from `before` keep their weights. A new projection has weights from N(0, 1 / width),
    as in RoLASER's code, or torch's initial weights if it has an activation.
    """
    for step, module, width in zip(head.settings.steps, head.steps, head.widths, strict=False):
        places = [at for at, known in enumerate(before.settings.steps) if known is step]
        if places and before.widths[places[0]] == width:
            module.load_state_dict(before.steps[places[0]].state_dict())
        elif isinstance(module, DenseLayer) and isinstance(module.activation, nn.Identity):
            nn.init.normal_(module.linear.weight, std=width**-0.5)


def cut(tokenizer: Tokenizer, max_length: int, lower: bool = False) -> Tokenizer:
    """Return a copy of the tokenizer that cuts texts to `max_length` tokens.

    If it is a tokenizer of words, it counts words. With `lower`, it also lower-cases texts.
    """
    length = min(max_length, tokenizer.max_length)
    if isinstance(tokenizer, PreparedTokenizer):
        return replace(tokenizer, tokenizer=cut(tokenizer.tokenizer, max_length, lower))
    if isinstance(tokenizer, PieceTokenizer):
        inner = tokenizer.tokenizer
        inner.model_max_length = min(max_length, inner.model_max_length)
        pieces = PieceTokenizer(inner, length)
        return lowered(pieces) if lower else pieces
    if isinstance(tokenizer, WordTokenizer):
        return tokenizer.with_rules(length, lower=lower or tokenizer.lower)
    return tokenizer


def _start(spec: str, teacher: Encoder) -> SentenceEncoder:
    """Return the encoder that the student starts as; `spec` is the setting `student`."""
    kind, _, rest = spec.partition(":")
    if spec == "char" or (kind == "char" and rest):
        from noisegen.encoders.character_folder import character_student, open_character_bert

        return open_character_bert(rest) if rest else character_student()
    if spec == "copy" or kind == "layers":
        if not isinstance(teacher, SentenceEncoder):
            raise UsageError(
                f"teacher {teacher.name} is not a transformer that can be copied: "
                "give --student FOLDER, hf:NAME or char"
            )
        copy = deepcopy(teacher)
        if kind == "layers":
            _keep_layers(copy, rest)
        return copy
    encoder = open_encoder(spec)
    if not isinstance(encoder, SentenceEncoder):
        raise UsageError(f"student {spec} cannot be trained: give a Hugging Face folder")
    return encoder


def _keep_layers(encoder: SentenceEncoder, numbers: str) -> None:
    """Keep only the layers of the network with the indices in `numbers`, such as "0,3,5"."""
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
    """Replace the student's weights by `share` * weights + (1 - `share`) * weights of `start`.

    `start` is the student before training. If it is a copy of the teacher, this removes most of
    the drift and little of the robustness (WiSE-FT: Wortsman and others, 2022, section 3; `share`
    is their alpha).
    """
    started = start.state_dict()
    with torch.no_grad():
        for name, weight in student.state_dict().items():
            if weight.is_floating_point():
                weight.lerp_(started[name].to(weight), 1 - share)


def set_dropout(student: nn.Module, share: float) -> None:
    """Set the rate of all dropout layers to `share`."""
    for module in student.modules():
        if isinstance(module, nn.Dropout):
            module.p = share
        elif hasattr(module, "dropout_prob"):  # attention that applies dropout itself
            setattr(module, "dropout_prob", share)  # noqa: B010


def add_activation_dropout(network: nn.Module, share: float) -> None:
    """Add dropout after the activations of the feed-forward layers.

    RoLASER's student in fairseq has this dropout; networks of the library transformers have none.
    Raises UsageError for a network whose feed-forward layers are not found.
    """
    layers: list[Any] = [m for m in network.modules() if hasattr(m, "intermediate_act_fn")]
    if not layers:
        raise UsageError(
            f"activation_dropout is not supported for a {type(network).__name__}: set it to 0"
        )
    for layer in layers:
        layer.intermediate_act_fn = nn.Sequential(layer.intermediate_act_fn, nn.Dropout(share))


def freeze(student: SentenceEncoder, prefixes: tuple[str, ...]) -> None:
    """Freeze the weights whose names have one of these prefixes, such as `embeddings`.

    Raises UsageError for a prefix that no weight has.
    """
    weights = dict(student.network.named_parameters())
    for prefix in prefixes:
        frozen = [weight for name, weight in weights.items() if name.startswith(prefix)]
        if not frozen:
            raise UsageError(f"freeze {prefix!r}: no weight of the student has this prefix")
        for weight in frozen:
            weight.requires_grad_(False)
