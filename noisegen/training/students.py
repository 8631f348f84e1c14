"""The student at its start: a copy of the teacher, some of its layers, or another encoder."""

from copy import deepcopy
from typing import Any

import torch
from torch import nn

from noisegen.encoders.character_words import WordTokenizer
from noisegen.encoders.encoder import Encoder, Tokenizer
from noisegen.encoders.head import HeadSettings
from noisegen.encoders.pieces import PieceTokenizer, lowered
from noisegen.encoders.prepared import PreparedTokenizer, prepared, with_preparation
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.specs import open_encoder
from noisegen.errors import UsageError
from noisegen.training.settings import Settings


def open_teacher(settings: Settings) -> Encoder:
    """Open the teacher, its texts prepared as the settings say; raises UsageError, SourceError."""
    teacher = open_encoder(settings.teacher)
    return prepared(teacher, settings.prepare) if settings.prepare else teacher


def make_student(settings: Settings, teacher: Encoder) -> SentenceEncoder:
    """Return the student that the settings ask for, with the teacher's width.

    Raises UsageError for a student that cannot be trained or has another width.
    """
    torch.manual_seed(settings.seed)  # new layers are drawn at random
    start = _start(settings.student, teacher)
    head = _head(settings, start, teacher)
    tokenizer = cut(start.tokenizer, settings.max_length, settings.lower)
    if settings.prepare:
        tokenizer = with_preparation(tokenizer, settings.prepare)
    student = SentenceEncoder(start.network, tokenizer, head, "student")
    if head == start.head.settings:
        student.head.load_state_dict(start.head.state_dict())
    _check_width(student, teacher)
    set_dropout(student, settings.dropout)
    freeze(student, settings.freeze)
    return student


def cut(tokenizer: Tokenizer, max_length: int, lower: bool = False) -> Tokenizer:
    """Return the tokenizer with texts cut no later than at `max_length` pieces, or words."""
    length = min(max_length, tokenizer.max_length)
    if isinstance(tokenizer, PreparedTokenizer):
        return PreparedTokenizer(cut(tokenizer.tokenizer, length, lower), tokenizer.preparation)
    if isinstance(tokenizer, PieceTokenizer):
        pieces = PieceTokenizer(tokenizer.tokenizer, length)
        return lowered(pieces) if lower else pieces
    if isinstance(tokenizer, WordTokenizer):
        return tokenizer.with_rules(length, lower=lower or tokenizer.lower)
    return tokenizer


def _start(spec: str, teacher: Encoder) -> SentenceEncoder:
    """Return the encoder that the student begins as."""
    kind, _, rest = spec.partition(":")
    if spec == "char":
        from noisegen.encoders.character_start import character_student

        return character_student()
    if spec == "copy" or kind == "layers":
        if not isinstance(teacher, SentenceEncoder):
            raise UsageError(
                f"teacher {teacher.name} is no transformer that a student can copy: "
                "give --student FOLDER, hf:NAME or char"
            )
        copy = deepcopy(teacher)
        return copy if spec == "copy" else _thinned(copy, rest)
    found = open_encoder(spec)
    if not isinstance(found, SentenceEncoder):
        raise UsageError(f"student {spec} cannot be trained: give a Hugging Face folder")
    return found


def _thinned(encoder: SentenceEncoder, numbers: str) -> SentenceEncoder:
    """Keep these layers of the network, counted from 0."""
    stack = _layers(encoder.network)
    chosen = [int(number) if number.strip().isdecimal() else -1 for number in numbers.split(",")]
    if len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(len(stack))):
        raise UsageError(
            f"student 'layers:{numbers}': write numbers from 0 to {len(stack) - 1}, each once, as "
            "layers:0,3,5"
        )
    kept = [stack[number] for number in chosen]
    del stack[:]
    stack.extend(kept)
    encoder.config.num_hidden_layers = len(kept)
    return encoder


def _layers(network: nn.Module) -> Any:
    """Return the list of layers of an encoder of transformers."""
    for path in ("encoder.layer", "encoder.layers", "layers", "transformer.layer"):
        try:
            return network.get_submodule(path)
        except AttributeError:
            continue
    raise UsageError(f"layers: cannot be taken of a {type(network).__name__}")


def _head(settings: Settings, start: SentenceEncoder, teacher: Encoder) -> HeadSettings:
    """Return the start's head with what the settings ask of it."""
    own = start.head.settings
    normal = isinstance(teacher, SentenceEncoder) and teacher.head.settings.normalize
    project = settings.project is not None
    return HeadSettings(
        pooling=settings.pooling or own.pooling,
        projection=teacher.width if project else own.projection,
        place=settings.project or own.place,
        bias=settings.projection_bias if project else own.bias,
        normalize=normal if settings.normalize is None else settings.normalize,
    )


def interpolate(student: SentenceEncoder, start: SentenceEncoder, share: float) -> None:
    """Draw the student's weights back to those it began with: `share` of what it learned stays.

    A copy of the teacher loses most of its drift so, and little of its robustness (WiSE-FT:
    Wortsman and others, 2022, section 3; `share` is their alpha).
    """
    begun = start.state_dict()
    with torch.no_grad():
        for name, weight in student.state_dict().items():
            if weight.is_floating_point():
                weight.lerp_(begun[name].to(weight), 1 - share)


def _check_width(student: SentenceEncoder, teacher: Encoder) -> None:
    if student.width != teacher.width:
        raise UsageError(
            f"the student has {student.width} numbers a vector, teacher {teacher.name} "
            f"{teacher.width}: add --set project=after (a linear layer), or choose a student "
            "of the teacher's width"
        )


def set_dropout(student: nn.Module, share: float) -> None:
    """Let every layer that drops states or weights drop this share of them."""
    for module in student.modules():
        if isinstance(module, nn.Dropout):
            module.p = share
        elif hasattr(module, "dropout_prob"):  # attention that drops in its kernel
            setattr(module, "dropout_prob", share)  # noqa: B010


def freeze(student: SentenceEncoder, beginnings: tuple[str, ...]) -> None:
    """Freeze the weights whose name in the network begins so, such as `embeddings`.

    Raises UsageError for a beginning that none has.
    """
    found = dict.fromkeys(beginnings, 0)
    for name, weight in student.network.named_parameters():
        for beginning in beginnings:
            if name.startswith(beginning):
                weight.requires_grad_(False)
                found[beginning] += 1
    for beginning, count in found.items():
        if not count:
            raise UsageError(f"freeze {beginning!r}: no weight of the student begins so")
