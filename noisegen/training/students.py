"""Students: the encoder that one starts as, and the folder that it is written into.

It starts as a copy of the teacher, some of its layers, or another encoder.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar

import torch
import yaml
from torch import nn

from noisegen.encoders.character_cnn import WordTokenizer
from noisegen.encoders.encoder import Encoder, Tokenizer, open_encoder
from noisegen.encoders.sentence_encoder import HeadSettings, SentenceEncoder, prepared
from noisegen.encoders.tokens import PieceTokenizer, PreparedTokenizer, lowered, with_preparation
from noisegen.errors import UsageError
from noisegen.runs.files import write_text
from noisegen.training.checkpoint import writing_weights
from noisegen.training.pairs import PairData, Reading, read_pairs
from noisegen.training.settings import DistilSettings
from noisegen.training.trainer import C, Method


def open_teacher(settings: DistilSettings) -> Encoder:
    """Open the teacher, its texts prepared as the settings say; raises UsageError, SourceError."""
    teacher = open_encoder(settings.teacher)
    return prepared(teacher, settings.prepare) if settings.prepare else teacher


def make_student(settings: DistilSettings, teacher: Encoder) -> SentenceEncoder:
    """Return the student that the settings ask for, with the teacher's width.

    Raises UsageError for a student that cannot be trained or has another width.
    """
    torch.manual_seed(settings.seed)  # new layers are drawn at random
    start = _start(settings.student, teacher)
    own, project = start.head.settings, settings.project is not None
    normal = isinstance(teacher, SentenceEncoder) and teacher.head.settings.normalize
    head = HeadSettings(
        pooling=settings.pooling or own.pooling,
        projection=teacher.width if project else own.projection,
        place=settings.project or own.place,
        bias=settings.projection_bias if project else own.bias,
        normalize=normal if settings.normalize is None else settings.normalize,
    )
    tokenizer = cut(start.tokenizer, settings.max_length, settings.lower)
    if settings.prepare:
        tokenizer = with_preparation(tokenizer, settings.prepare)
    student = SentenceEncoder(start.network, tokenizer, head, "student")
    if head == own:
        student.head.load_state_dict(start.head.state_dict())
    if student.width != teacher.width:
        raise UsageError(
            f"the student has {student.width} numbers a vector, teacher {teacher.name} "
            f"{teacher.width}: add --set project=after (a linear layer), or choose a student "
            "of the teacher's width"
        )
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
    kind, _, numbers = spec.partition(":")
    if spec == "char":
        from noisegen.encoders.character_folder import character_student

        return character_student()
    if spec == "copy" or kind == "layers":
        if not isinstance(teacher, SentenceEncoder):
            raise UsageError(
                f"teacher {teacher.name} is no transformer that a student can copy: "
                "give --student FOLDER, hf:NAME or char"
            )
        copy = deepcopy(teacher)
        return copy if spec == "copy" else _thinned(copy, numbers)
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


class PairMethod(Method[C]):
    """A method whose student learns from pairs of noisy and clean text, and is written with a card.

    A class of its own says `card`, the text of the model card.
    """

    card: ClassVar[str]
    pairs: PairData

    def read_pairs(
        self, sources: Sequence[str], folder: Path, reading: Reading, *, resume: bool
    ) -> PairData:
        """Read DATA into the folder and count its pairs; raises SourceError."""
        self.pairs = read_pairs(folder, sources, reading, self.workers, resume=resume)
        self.pairs_read, self.rows = len(self.pairs.noisy), len(self.pairs.training)
        return self.pairs

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the student's folder."""

    def export(
        self, out: Path, recorded: Mapping[str, Any], reached: Mapping[str, Any],
        best: Mapping[str, float],
    ) -> dict[str, Any]:  # fmt: skip
        """Write RUN/student with a model card."""
        metrics = {
            "validation": self.validate(), **reached,
            "parameters": sum(weight.numel() for weight in self.network.parameters()),
            **self.pairs.losses,
        }  # fmt: skip
        with torch.no_grad(), writing_weights(out / "student"):
            self.save(out / "student")
        write_text(out / "student" / "README.md", model_card(self.card, recorded, metrics))
        return metrics


def model_card(text: str, recorded: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """Return a model card: `text` with what config.yaml and metrics.json say."""
    validation, prepare = metrics["validation"], recorded.get("prepare")
    return text.replace("HOW IT WAS MADE", _HOW_MADE).format(
        figures="\n".join(f"| {name} | {value:.4f} |" for name, value in validation.items()),
        prepared=_PREPARED.format(prepare=prepare) if prepare else "",
        settings=yaml.safe_dump(dict(recorded), sort_keys=False, allow_unicode=True),
        **{name: recorded.get(name) for name in ("teacher", "student", "objective", "version")},
        **{name: metrics[name] for name in ("pairs", "updates", "seconds", "parameters")},
    )


_HOW_MADE = """## How it was made

{pairs:,} pairs in {updates:,} updates and {seconds:,.0f} seconds; {parameters:,} weights.

```yaml
{settings}```
"""
STUDENT_CARD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags:
- sentence-transformers
- noisegen
- robustness
---

# A sentence encoder for noisy text

This student of `{teacher}` was trained by noisegen {version} to put a noisy sentence where its
teacher puts the clean one.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("PATH/TO/THIS/FOLDER")
vectors = model.encode(["see you tomorrow", "c u 2moro"])
```
{prepared}
## What it reached

On pairs kept out of training, with noise of the same kind (training chose its checkpoint by the
first figure):

| figure | value |
| --- | ---: |
{figures}

`drift` is the mean of 1 - cosine between student and teacher on clean text, `anchored` between the
student on noisy and the teacher on clean text, `distance` between the student's noisy and clean
side; `missed` is the share of noisy sentences whose nearest clean vector of the teacher is another
sentence's.

HOW IT WAS MADE
The data and the teacher have licences of their own, which hold for this model too.
"""
LANGUAGE_MODEL_CARD = """---
library_name: transformers
pipeline_tag: fill-mask
tags:
- sentence-transformers
- noisegen
- robustness
---

# A language model pre-trained on noisy and clean text

`{student}`, trained on by noisegen {version} to fill masks on the noisy and the clean side of pairs
(`{objective}`). It is a start for fine-tuning.

```python
from transformers import AutoModel, AutoModelForMaskedLM

network = AutoModel.from_pretrained("PATH/TO/THIS/FOLDER")  # or with the head that fills masks:
model = AutoModelForMaskedLM.from_pretrained("PATH/TO/THIS/FOLDER")
```

`SentenceTransformer` opens the folder too: its vectors are means over the tokens.

## What it reached

On pairs kept out of training (training chose its checkpoint by the first figure):

| figure | value |
| --- | ---: |
{figures}

`loss_mlm_noisy` and `loss_mlm_clean` are the cross-entropy under masks, `loss_contrast` that of
finding a text's other side among those of its batch. Without masks, `distance` is the mean of
1 - cosine between noisy and clean side; `missed` is the share of noisy sentences whose nearest
clean one is another's.

HOW IT WAS MADE
The data and the model it began as have licences of their own, which hold for this model too.
"""
_PREPARED = """
Its texts were prepared by `noisegen.text.normalize.{prepare}_text`. noisegen does so by itself
when it opens this folder; for sentence-transformers, do it to each text before `encode`.
"""
