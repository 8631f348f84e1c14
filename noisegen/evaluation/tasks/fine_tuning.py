"""Fine-tune an encoder with linear heads for the label of a text and the tag of every token.

Rows are tokenised to ids of word pieces; a token is represented by its first piece. The training
loop cannot resume, and has one process per seed, because the updates of the papers are small and a
run takes minutes. `noisegen.training` has the loop for long runs.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, count
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from noisegen.data.labelled import OUTSIDE, LabelledRow
from noisegen.encoders.code_points import CodePointTokenizer
from noisegen.encoders.encoder import (
    Ints,
    Ragged,
    Tokenizer,
    autocast,
    half_precision,
    replace_surrogates,
)
from noisegen.encoders.sentence_encoder import DEVICE_TOKENS, SentenceEncoder
from noisegen.encoders.tokens import (
    PREPARATIONS,
    Padded,
    PieceTokenizer,
    PreparedTokenizer,
    Rows,
    attending_fast,
    by_length,
    piece_tokenizer,
    plan,
    upload,
)
from noisegen.errors import NoisegenError
from noisegen.evaluation.tasks.sets import TaskData

NO_PIECE = -1
OTHER_MODEL = "give a Hugging Face folder with a tokenizer.json, or CANINE"
CHECK_EVERY = 10  # updates between checks of their gradients
IGNORED = -100  # class index of a token that the loss ignores
Step = Callable[[int], None]  # called with the number of rows that an update or a test processed


@dataclass(frozen=True)
class Pieces:
    """Rows of texts as ids of word pieces.

    `types` is 0 for pieces of the first sentence of a pair, 1 for pieces of the second. `firsts`
    has, for each token of a row, the index of its first piece. The index is NO_PIECE (-1) if the
    token was cut off, or if the tokenizer knows none of its characters. `is_cut` is a mask of the
    rows that were cut at the maximum length.
    """

    ids: Ragged
    types: Ragged
    firsts: Ragged
    is_cut: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    def beyond(self) -> int:
        """Return the number of tokens that were cut off, over all rows.

        In a row that was cut, these are the tokens after the last token with a piece.
        """
        total = 0
        for row in np.flatnonzero(self.is_cut).tolist():
            firsts = self.firsts[row]
            last = int(np.flatnonzero(firsts != NO_PIECE).max(initial=-1))
            total += len(firsts) - 1 - last
        return total


def tunable_tokenizer(encoder: SentenceEncoder, name: str) -> PieceTokenizer | CodePointTokenizer:
    """Return the tokenizer of pieces or characters of a model, without preparation.

    Raises UsageError, which says `name`, for a model that reads words.
    """
    if isinstance(encoder.tokenizer, CodePointTokenizer):
        return encoder.tokenizer
    return piece_tokenizer(encoder.tokenizer, f"model {name}", OTHER_MODEL)


def prepared_rows(tokenizer: Tokenizer, rows: Sequence[LabelledRow]) -> Sequence[LabelledRow]:
    """Return the rows with their texts prepared as the tokenizer of the model wants them.

    Rows with tags are prepared token by token, so that each tag keeps its token.
    """
    if not isinstance(tokenizer, PreparedTokenizer):
        return rows
    prepare = cache(PREPARATIONS[tokenizer.preparation])  # cached, because tokens repeat often
    prepared: list[LabelledRow] = []
    for row in rows:
        if row.tags:
            prepared.append(replace(row, tokens=tuple(map(prepare, row.tokens))))
        else:
            text, second = prepare(row.text), prepare(row.second)
            prepared.append(replace(row, tokens=(text,), second=second))
    return prepared


def cut_into_pieces(
    tokenizer: PieceTokenizer | CodePointTokenizer, rows: Sequence[LabelledRow], max_length: int
) -> Pieces:
    """Tokenise rows to at most `max_length` pieces, or to the tokenizer's limit if that is lower.

    The sentences of a pair are joined in the tokenizer's own format.
    """
    cut = type(tokenizer)(tokenizer.tokenizer, min(max_length, tokenizer.max_length))
    texts: list[str | tuple[str, str]] = []
    for row in rows:
        text = replace_surrogates(row.text)
        texts.append((text, replace_surrogates(row.second)) if row.second else text)
    encodings = cut.encodings(texts)
    firsts: list[list[int]] = []
    for row, encoding in zip(rows, encodings, strict=True):
        text = replace_surrogates(row.text)
        firsts.append(_first_pieces(row.tokens, text, encoding.offsets) if row.tags else [])
    return Pieces(
        Ragged.of([encoding.ids for encoding in encodings]),
        Ragged.of([encoding.type_ids for encoding in encodings]),
        Ragged.of(firsts),
        np.array([bool(encoding.overflowing) for encoding in encodings], np.bool_),
    )


def _first_pieces(
    tokens: Sequence[str], text: str, offsets: Sequence[tuple[int, int]]
) -> list[int]:
    """Return the index of the first piece of every token; NO_PIECE for a token without a piece.

    `text` has the tokens joined by spaces, `offsets` the characters [start, stop) of each piece in
    it (none for special pieces). A piece belongs to the token that contains its first character,
    white space aside.
    """
    owners = [number for number, token in enumerate(tokens) for _ in range(len(token) + 1)]
    firsts = [NO_PIECE] * len(tokens)
    for position, (start, stop) in enumerate(offsets):
        begin = next((at for at in range(start, stop) if not text[at].isspace()), None)
        if begin is not None and firsts[owners[begin]] == NO_PIECE:
            firsts[owners[begin]] = position
    return firsts


def vocabulary_of(parts: Sequence[Pieces], pad_id: int) -> Rows:
    """Return, sorted, the ids in `parts` and the ids 0 to `pad_id` (unchanged by `renumbered`)."""
    return np.unique(np.concatenate([np.arange(pad_id + 1), *(part.ids.values for part in parts)]))


def renumbered(part: Pieces, vocabulary: Rows) -> Pieces:
    """Return the pieces with each id replaced by its index in `vocabulary`."""
    values = np.searchsorted(vocabulary, part.ids.values).astype(np.int32)
    return replace(part, ids=Ragged(values, part.ids.offsets))


@dataclass(frozen=True)
class Examples:
    """Training rows as pieces, with class indices for the tags of tokens and the labels of rows."""

    pieces: Pieces
    tags: Ragged
    labels: Ints

    @classmethod
    def of(cls, pieces: Pieces, tags: Sequence[Sequence[int]], labels: Sequence[int]) -> "Examples":
        """Combine pieces with class indices; a token without a piece gets the index IGNORED."""
        classes = Ragged.of(tags)
        classes.values[pieces.firsts.values == NO_PIECE] = IGNORED
        return cls(pieces, classes, np.array(labels, np.int64))

    def __len__(self) -> int:
        return len(self.pieces)


@dataclass(frozen=True)
class Tuning:
    """Hyperparameters of fine-tuning.

    `batch_tokens` is the number of tokens per update, padding included; `max_length` is in pieces
    per row. Gradients are scaled to a norm of at most `clip`. There is no weight decay: see
    `TaskNetwork.keep_embeddings`.
    """

    epochs: float
    lr: float
    batch_tokens: int = 512
    max_length: int = 50
    clip: float = 1.0
    seed: int = 0


class TaskBatch(NamedTuple):
    """Rows of pieces on the device of the network.

    `types` is None if the network does not tell the two sentences of a pair apart. `firsts`, shape
    (rows, tokens), has the index of every token's first piece, 0 for a token without one. Tokens at
    the end that have no piece in any row are left out, because a row may have far more tokens than
    pieces.
    """

    padded: Padded
    types: Tensor | None
    firsts: Tensor


class Classes(NamedTuple):
    """Predictions for a row as class indices: one for its label, one for the tag of each token.

    NO_PIECE stands for no prediction.
    """

    label: int
    tags: list[int]


class Answer(NamedTuple):
    """The predicted label of a row, and the predicted tag of each token."""

    label: str
    tags: list[str]


class TaskNetwork(nn.Module):
    """Copy of an encoder's network with heads for labels and tags.

    The copy has only the embeddings of the ids in `vocabulary` (None: all). The label is predicted
    from the first piece, [CLS] or <s>; a tag from the first piece of its token. `labels` and `tags`
    are numbers of classes; for 0 classes there is no head. The weights of the heads are drawn from
    torch's generator.
    """

    def __init__(
        self,
        encoder: SentenceEncoder,
        vocabulary: Ints | None,
        labels: int,
        tags: int,
        device: torch.device,
    ) -> None:
        super().__init__()
        self.network = deepcopy(encoder.network)
        if vocabulary is not None:
            self.keep_embeddings(vocabulary)
        self.config: Any = self.network.config
        self.pad_id, self.device = encoder.tokenizer.pad_id, device
        self.has_types = getattr(self.config, "type_vocab_size", 0) > 1
        hidden: int = encoder.config.hidden_size
        self.dropout = nn.Dropout(getattr(encoder.config, "hidden_dropout_prob", 0.1))
        self.label_head = nn.Linear(hidden, labels) if labels else None
        self.tag_head = nn.Linear(hidden, tags) if tags else None
        self.precision = half_precision("auto", device)
        self.to(device)

    def keep_embeddings(self, vocabulary: Ints) -> None:
        """Keep only the embeddings of the ids in `vocabulary`, and renumber these ids from 0.

        The removed embeddings get no gradient, so training without weight decay would not change
        them. With 250,000 embeddings of 384 numbers this saves 0.14 s of CPU time per update and
        1.5 GB.
        """
        network: Any = self.network
        full = network.get_input_embeddings()
        weights = full.weight.detach()[torch.from_numpy(vocabulary).to(full.weight.device)].clone()
        untyped: Any = nn.Embedding.from_pretrained  # unlike __init__ it draws no random weights
        network.set_input_embeddings(untyped(weights, freeze=False, padding_idx=full.padding_idx))

    def batch(self, pieces: Pieces, rows: Ints) -> TaskBatch:
        """Return the given rows of `pieces` as a batch on the device."""
        types = pieces.types.take(rows).padded(0) if self.has_types else None
        firsts = pieces.firsts.take(rows).padded(NO_PIECE)
        stop = int(np.flatnonzero((firsts != NO_PIECE).any(0)).max(initial=-1)) + 1
        return TaskBatch(
            Padded.of(pieces.ids.take(rows), self.pad_id, self.device),
            None if types is None else upload(types, self.device),
            upload(firsts[:, :stop].clip(min=0), self.device),
        )

    def forward(self, batch: TaskBatch) -> tuple[Tensor | None, Tensor | None]:
        """Return label logits (rows, labels), then tag logits (rows, tokens, tags).

        Either is None if the network has no head for it.
        """
        types = {} if batch.types is None else {"token_type_ids": batch.types}
        fast = attending_fast(self.config, batch.padded) if self.precision else nullcontext()
        with autocast(self.precision, self.device), fast:
            states = batch.padded.states(self.network, **types)
        states = self.dropout(states.float())
        label = self.label_head(states[:, 0]) if self.label_head is not None else None
        if self.tag_head is None:
            return label, None
        positions = batch.firsts[..., None].expand(-1, -1, states.shape[-1])
        return label, self.tag_head(states.gather(1, positions))

    def loss(self, training: Examples, rows: Ints) -> Tensor:
        """Return the cross-entropy of labels (mean over rows) plus tags (mean over tokens)."""
        label, tag = self(self.batch(training.pieces, rows))
        losses = [] if label is None else [self._cross_entropy(label, training.labels[rows])]
        if tag is not None:
            classes = training.tags.take(rows).padded(IGNORED)[:, : tag.shape[1]]
            losses.append(self._cross_entropy(tag.flatten(0, 1), classes.ravel()))
        return torch.stack(losses).sum()

    def _cross_entropy(self, logits: Tensor, classes: Ints) -> Tensor:
        """Return the mean cross-entropy of rows of `logits`; `classes` has the right class per row.

        Rows of the class IGNORED do not count. If all rows are ignored, the result is 0.
        """
        wanted = upload(classes, self.device)
        total = nn.functional.cross_entropy(logits, wanted, ignore_index=IGNORED, reduction="sum")
        return total / (wanted != IGNORED).sum().clamp(min=1)

    def fine_tune(self, training: Examples, tuning: Tuning, step: Step) -> None:
        """Train all weights with AdamW; the learning rate falls linearly from `lr` to 0 at the end.

        `step` is called after each update, with the number of its rows. Raises NoisegenError for a
        gradient that is not finite, up to `CHECK_EVERY` updates later.
        """
        done, total = 0, max(1, round(tuning.epochs * len(training)))
        norms: list[Tensor] = []  # not read at once, which would wait for a GPU
        optimizer = torch.optim.AdamW(self.parameters(), lr=tuning.lr, weight_decay=0.0, fused=True)
        scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == torch.float16)
        self.train()
        lengths = training.pieces.ids.lengths[:, None]
        epochs = (plan(lengths, tuning.batch_tokens, tuning.seed, epoch, 0) for epoch in count())
        for rows, *_ in chain.from_iterable(epochs):
            for group in optimizer.param_groups:
                group["lr"] = tuning.lr * (1 - done / total)
            loss = self.loss(training, rows)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            scaler.unscale_(optimizer)
            norms.append(nn.utils.clip_grad_norm_(self.parameters(), tuning.clip))
            scaler.step(optimizer)
            scaler.update()
            done += len(rows)
            if len(norms) >= CHECK_EVERY or done >= total:
                if not scaler.is_enabled():  # else updates with such a gradient are skipped
                    _check_finite(norms, done)
                norms.clear()
            step(len(rows))
            if done >= total:
                return

    def predict(self, pieces: Pieces, budget: int, step: Step) -> list[Classes]:
        """Return the classes with the highest logits for the label and the tags of each row.

        The label is NO_PIECE if the model predicts no labels. A tag is NO_PIECE if the model
        predicts no tags, or if the tokenizer made no piece of its token. `budget` is the number of
        tokens per batch on a CPU; `step` is called after each batch, with the number of its rows.
        """
        answers = [Classes(NO_PIECE, [])] * len(pieces)
        self.eval()
        if self.device.type != "cpu":
            budget = max(budget, DEVICE_TOKENS)
        with torch.inference_mode():
            for rows in by_length(pieces.ids.lengths, budget):
                labels, tags = map(_best, self(self.batch(pieces, rows)))
                for position, row in enumerate(rows.tolist()):
                    firsts = pieces.firsts[row]
                    row_tags = np.full(len(firsts), NO_PIECE)
                    if tags is not None:
                        has_piece = np.flatnonzero(firsts != NO_PIECE)
                        row_tags[has_piece] = tags[position][has_piece]
                    label = NO_PIECE if labels is None else int(labels[position])
                    answers[row] = Classes(label, row_tags.tolist())
                step(len(rows))
        return answers


def _check_finite(norms: Sequence[Tensor], rows: int) -> None:
    """Raise NoisegenError if a gradient norm of the last updates, up to `rows`, is not finite."""
    for norm in torch.stack(list(norms)).tolist():
        if not isfinite(norm):
            raise NoisegenError(f"the gradient is {norm} within {rows:,} rows: use a lower --lr")


def _best(logits: Tensor | None) -> npt.NDArray[np.int64] | None:
    """Return the index of the highest logit for each row or token; None if there are no logits."""
    return None if logits is None else logits.argmax(-1).cpu().numpy()


Answers = dict[tuple[str, str], list[Answer]]  # (language, side) -> predictions for its rows


class Trial:
    """A model, and a task's training and test rows as pieces of the model's tokenizer."""

    def __init__(
        self,
        encoder: SentenceEncoder,
        data: TaskData,
        training: Sequence[LabelledRow],
        max_length: int,
    ) -> None:
        task = data.task
        self.encoder = encoder
        labels = {row.label for row in data.training}
        tags = {tag for row in data.training for tag in row.tags}
        self.labels = sorted(labels) if task.label_metric else []
        self.tags = sorted(tags) if task.tag_metric else []
        tests = {(t.lang, side): rows for t in data.tests for side, rows in t.sides.items()}
        tokenizer = tunable_tokenizer(encoder, encoder.name)
        self.max_length = min(max_length, tokenizer.max_length)
        parts = [
            cut_into_pieces(tokenizer, prepared_rows(encoder.tokenizer, rows), max_length)
            for rows in (training, *tests.values())
        ]
        # CANINE's embeddings are sums of shared ones by hashes of the ids, so that none can be left
        # out.
        self.vocabulary: Rows | None = None
        if isinstance(tokenizer, PieceTokenizer):
            self.vocabulary = vocabulary = vocabulary_of(parts, encoder.tokenizer.pad_id)
            parts = [renumbered(part, vocabulary) for part in parts]
        pieces, *test_pieces = parts
        self.tests = dict(zip(tests, test_pieces, strict=True))  # (language, side) -> pieces
        self.training = self._examples(pieces, training)

    def _examples(self, pieces: Pieces, rows: Sequence[LabelledRow]) -> Examples:
        """Return the training rows with class indices for their tags and labels.

        In a task without labels, the index of each label is 0.
        """
        tag_classes = {tag: number for number, tag in enumerate(self.tags)}
        label_classes = {label: number for number, label in enumerate(self.labels)}
        return Examples.of(
            pieces,
            [[tag_classes[tag] for tag in row.tags] for row in rows],
            [label_classes.get(row.label, 0) for row in rows],
        )

    def truncation_notes(self) -> list[str]:
        """Return a note on test rows that are cut at the maximum length; [] if no row is cut."""
        tests = self.tests.values()
        rows = sum(int(pieces.is_cut.sum()) for pieces in tests)
        note = f"{rows:,} of {sum(map(len, tests)):,} test rows are cut at {self.max_length} pieces"
        if rows and self.tags:
            tokens = sum(len(pieces.firsts.values) for pieces in tests)
            beyond = sum(pieces.beyond() for pieces in tests)
            note += f": {beyond:,} of {tokens:,} tokens lie beyond and are predicted as outside"
        return [note] if rows else []

    def network(self, device: torch.device) -> TaskNetwork:
        """Return a new network; the weights of its heads are drawn from torch's generator."""
        labels, tags = len(self.labels), len(self.tags)
        return TaskNetwork(self.encoder, self.vocabulary, labels, tags, device)

    def named(self, answers: Sequence[Classes]) -> list[Answer]:
        """Convert indices of predicted classes to labels and tags.

        A token without a piece gets the tag OUTSIDE.
        """
        labels, tags = [*self.labels, ""], [*self.tags, OUTSIDE]  # NO_PIECE (-1) is the last index
        return [Answer(labels[label], [tags[tag] for tag in row]) for label, row in answers]

    def run(self, tuning: Tuning, device: torch.device, step: Step) -> Answers:
        """Fine-tune and test a new network; return its predictions for all tests.

        The seed of `tuning` decides the weights of the heads, dropout, and the order of the rows.
        """
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(tuning.seed)
            network = self.network(device)
            network.fine_tune(self.training, tuning, step)
        return {
            test: self.named(network.predict(pieces, tuning.batch_tokens, step))
            for test, pieces in self.tests.items()
        }
