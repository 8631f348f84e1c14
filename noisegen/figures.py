"""The figures of a run as data."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Drawn:
    """Rows that drew so many transforms, and how many the recipe lets one expect."""

    transforms: int
    rows: int
    expected: float | None


@dataclass(frozen=True)
class TransformFigures:
    """One transform; `edits` counts those that it made alone or with others."""

    name: str
    rows: int
    rows_alone: int
    changed_alone: int
    changed_alone_share: float | None
    edits: int | None


@dataclass(frozen=True)
class EditKind:
    """Edits of one kind; one is of blanks if a side of it holds nothing but white space."""

    kind: str
    characters: int
    blanks: int


@dataclass(frozen=True)
class EditKinds:
    """Kinds of edits in so many changed rows, all or a sample; from 'edits' or 'alignment'."""

    source: str
    rows: int
    is_sample: bool
    kinds: tuple[EditKind, ...]


@dataclass(frozen=True)
class TypeTokenRatio:
    """Distinct tokens over tokens in so many rows, all or a sample; it falls with their number."""

    rows: int
    is_sample: bool
    clean: float | None
    noisy: float | None
    quotient: float | None


@dataclass(frozen=True)
class LengthBin:
    """Rows of at least `low` and less than `high` characters (None: no limit)."""

    low: int
    high: int | None
    clean: int
    noisy: int


@dataclass(frozen=True)
class Statistics:
    """What a run did; a ratio is None where there is nothing to divide by.

    `cer_of_changed_rows` counts rows by CER in steps of 0.01; its last entry is for 1 and above.
    """

    shards: int
    rows: int
    copies: int
    changed: int
    changed_share: float | None
    clean_characters: int
    noisy_characters: int
    length_ratio: float | None
    character_errors: int
    cer: float | None
    clean_words: int
    word_errors: int
    wer: float | None
    transforms_per_row: tuple[Drawn, ...]
    transforms: tuple[TransformFigures, ...]
    edit_kinds: EditKinds
    type_token_ratio: TypeTokenRatio
    row_lengths: tuple[LengthBin, ...]
    cer_of_changed_rows: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)
