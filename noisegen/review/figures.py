"""What a review found, as data."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class GroupFigures:
    """The judged items of one language, recipe and strength; shares are means over items.

    `low` and `high` are the 95 % Wilson interval of `realistic`; shares are None of no item.
    `rows`, `changed` and `too_long` count the source, not the sample.
    """

    lang: str
    recipe: str
    strength: str
    items: int
    judged: int
    second_stage: int
    realistic: float | None
    low: float
    high: float
    moderate_or_better: float | None
    meaning_kept: float | None
    rows: int
    changed: int
    too_long: int


@dataclass(frozen=True)
class Verdict:
    """The strength to choose for one language and recipe, and why.

    `passes` is None as long as the second stage is not complete.
    """

    lang: str
    recipe: str
    strength: str | None
    passes: bool | None
    reason: str


@dataclass(frozen=True)
class Agreement:
    """Krippendorff's alpha of one question over the items that two reviewers or more judged."""

    question: str
    metric: str
    alpha: float | None
    items: int


@dataclass(frozen=True)
class KindShares:
    """In what share of a language's judged items a kind of noise was seen (mean of reviewers)."""

    lang: str
    items: int
    shares: dict[str, float]


@dataclass(frozen=True)
class ReviewerFigures:
    """What one reviewer did; `seconds` is the median time from one item's last answer to the next.

    Times over ten minutes are taken for a break and left out.
    """

    name: str
    items: int
    complete: int
    realistic: float | None
    seconds: float | None
    comments: int


@dataclass(frozen=True)
class Report:
    """All figures of a review; `cut_off` is the share of realistic items that is asked."""

    cut_off: float
    items: int
    judged: int
    answers: int
    groups: list[GroupFigures]
    verdicts: list[Verdict]
    agreement: list[Agreement]
    kinds: list[KindShares]
    reviewers: list[ReviewerFigures]
    comments: list[tuple[str, str, str]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)
