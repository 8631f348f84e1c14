"""Rows of a task as piece ids, and which piece begins each token."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from noisegen.encoders.encoder import Tokenizer
from noisegen.encoders.pieces import PieceTokenizer
from noisegen.encoders.prepared import PREPARATIONS, PreparedTokenizer
from noisegen.encoders.ragged import Ragged
from noisegen.encoders.surrogates import whole
from noisegen.errors import UsageError
from noisegen.tasks.rows import Row

NO_PIECE = -1
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """Rows of ids, `types` of the same shape (which sentence of a pair an id is of, from 0).

    `firsts` has for each token of a row the place of its first piece, -1 where it has none: it was
    cut off, or the tokenizer knows none of its characters. `is_cut` says which rows were cut.
    """

    ids: Ragged
    types: Ragged
    firsts: Ragged
    is_cut: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    def beyond(self) -> int:
        """Return how many tokens lie behind the last piece of their row."""
        rows = (self.firsts[row] for row in np.flatnonzero(self.is_cut).tolist())
        lasts = ((len(row), np.flatnonzero(row != NO_PIECE).max(initial=-1)) for row in rows)
        return sum(length - int(last) - 1 for length, last in lasts)


def piece_tokenizer(tokenizer: Tokenizer, name: str) -> PieceTokenizer:
    """Return the tokenizer of pieces that a model has, without the preparation of its texts.

    Raises UsageError for one of words, MissingExtra without what the preparation needs.
    """
    if isinstance(tokenizer, PreparedTokenizer):
        PREPARATIONS[tokenizer.preparation]("")
        tokenizer = tokenizer.tokenizer
    if not isinstance(tokenizer, PieceTokenizer):
        raise UsageError(
            f"model {name} reads characters of whole words and cannot be fine-tuned here: give a "
            "Hugging Face folder with a tokenizer.json"
        )
    return tokenizer


def prepared_rows(tokenizer: Tokenizer, rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows as a model reads them that prepares its texts.

    Rows with tags are prepared token by token, so that every tag keeps its token, though that
    becomes several words or none.
    """
    if not isinstance(tokenizer, PreparedTokenizer):
        return rows
    prepare = cache(PREPARATIONS[tokenizer.preparation])  # tokens come again and again
    return [
        replace(row, tokens=tuple(map(prepare, row.tokens)))
        if row.tags
        else replace(row, tokens=(prepare(row.text),), second=prepare(row.second))
        for row in rows
    ]


def shortened(tokenizer: PieceTokenizer, max_length: int) -> PieceTokenizer:
    """Return a tokenizer that cuts rows at so many pieces, or at the model's own limit."""
    return PieceTokenizer(tokenizer.tokenizer, min(max_length, tokenizer.max_length))


def cut_into_pieces(tokenizer: PieceTokenizer, rows: Sequence[Row]) -> Pieces:
    """Tokenise rows, pairs in the tokenizer's own format."""
    texts = [whole(row.text) for row in rows]
    found = tokenizer.encodings([
        (text, whole(row.second)) if row.second else text
        for text, row in zip(texts, rows, strict=True)
    ])  # fmt: skip
    firsts = [
        first_pieces(row.tokens, text, one.offsets) if row.tags else []
        for row, text, one in zip(rows, texts, found, strict=True)
    ]
    ids, types = ([getattr(one, name) for one in found] for name in ("ids", "type_ids"))
    is_cut = np.array([bool(one.overflowing) for one in found], np.bool_)
    return Pieces(Ragged.of(ids), Ragged.of(types), Ragged.of(firsts), is_cut)


def first_pieces(tokens: Sequence[str], text: str, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Return the place of the first piece of every token, NO_PIECE where there is none.

    `text` is the tokens joined by one blank. A piece begins at its first character that is not
    white space; special ones cover no character.
    """
    owners = [number for number, token in enumerate(tokens) for _ in range(len(token) + 1)]
    firsts = [NO_PIECE] * len(tokens)
    for place, (start, stop) in enumerate(offsets):
        while start < stop and text[start].isspace():
            start += 1
        if start < stop and firsts[owners[start]] == NO_PIECE:
            firsts[owners[start]] = place
    return firsts


def vocabulary_of(parts: Sequence[Pieces], pad_id: int) -> Numbers:
    """Return all ids that occur, ascending, and all up to the padding's."""
    used = [part.ids.values.astype(np.int64) for part in parts]
    return np.unique(np.concatenate([np.arange(pad_id + 1), *used]))


def renumbered(part: Pieces, kept: Numbers) -> Pieces:
    """Return the same with ids replaced by their places in `kept`, which has them all."""
    values = np.searchsorted(kept, part.ids.values).astype(np.int32)
    return replace(part, ids=Ragged(values, part.ids.offsets))
