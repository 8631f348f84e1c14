"""Figures of shards, counted batch by batch in bounded memory."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rapidfuzz.distance import Levenshtein

from noisegen.figures import (
    Drawn,
    EditKind,
    EditKinds,
    LengthBin,
    Statistics,
    TransformFigures,
    TypeTokenRatio,
)
from noisegen.measures import character_errors, word_errors
from noisegen.spread import Spread

if TYPE_CHECKING:
    import pyarrow as pa

LENGTH_EDGES = (0, 10, 20, 40, 80, 160, 320, 640, 1280)  # characters; the last bin is open
CER_BINS = 100  # of 0.01 each, and one more for 1 and above
KINDS = ("substitution", "insertion", "deletion")
KIND_ROWS_MAX = 20_000
TOKEN_ROWS_MAX = 100_000


def ratio(part: float | None, whole: float | None) -> float | None:
    """Return part / whole, None where that is not a number."""
    return None if part is None or not whole else part / whole


def edit_kind(clean: str, noisy: str) -> tuple[str, bool]:
    """Return the kind of a replacement, and whether it is of blanks only."""
    kind = "insertion" if not clean else "substitution" if noisy else "deletion"
    return kind, clean.isspace() or noisy.isspace()


Kinds = Counter[tuple[str, bool]]


@dataclass
class Tokens:
    """Tokens of clean and noisy text in every n-th row."""

    every: int
    rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    types: dict[str, set[str]] = field(default_factory=lambda: {"clean": set(), "noisy": set()})

    def add(self, first_row: int, clean: Sequence[str], noisy: Sequence[str]) -> None:
        """Count the sampled rows of a batch."""
        from nltk.tokenize import TweetTokenizer

        tokenize = TweetTokenizer(reduce_len=False).tokenize
        for row in range(-first_row % self.every, len(clean), self.every):
            tokens = tokenize(clean[row])
            self._count("clean", tokens)
            self._count("noisy", tokens if clean[row] == noisy[row] else tokenize(noisy[row]))
            self.rows += 1

    def _count(self, side: str, tokens: list[str]) -> None:
        self.counts[side] += len(tokens)
        self.types[side].update(tokens)

    def result(self) -> TypeTokenRatio:
        """Return the ratios of both sides and noisy / clean."""
        clean, noisy = (ratio(len(self.types[x]), self.counts[x]) for x in ("clean", "noisy"))
        return TypeTokenRatio(self.rows, self.every > 1, clean, noisy, ratio(noisy, clean))


class Tally:
    """Counts of all batches so far. `rows` of the whole run are known from the shards' footers."""

    def __init__(self, rows: int, has_edits: bool) -> None:
        self.has_edits = has_edits
        self.sums: Counter[str] = Counter()
        self.copies: set[int] = set()
        self.per_row: Counter[int] = Counter()
        self.by_transform: Counter[tuple[str, str]] = Counter()
        self.lengths: Counter[tuple[str, int]] = Counter()
        self.cer_bins: Counter[int] = Counter()
        self.kinds: Spread[Kinds] = Spread(KIND_ROWS_MAX)
        self.all_kinds: Kinds = Counter()
        self.tokens = Tokens(max(1, -(-rows // TOKEN_ROWS_MAX)))

    def add(self, batch: "pa.RecordBatch") -> None:
        """Count a batch with the columns clean, noisy, transforms, and copy and edits if there."""
        columns = batch.to_pydict()
        clean, noisy, drawn = columns["clean"], columns["noisy"], columns["transforms"]
        edits = columns.get("edits", [None] * len(clean))
        self.copies.update(columns.get("copy", []))
        self.tokens.add(self.sums["rows"], clean, noisy)
        self.sums["rows"] += len(clean)
        for before, after, names, account in zip(clean, noisy, drawn, edits, strict=True):
            self._add_lengths(before, after)
            self._add_drawn(names or [], before != after)
            self._add_edits(account or [], before, after)
            if before != after:
                self._add_changed(before, after)

    def _add_lengths(self, clean: str, noisy: str) -> None:
        self.sums["clean_words"] += len(clean.split())
        for side, text in (("clean", clean), ("noisy", noisy)):
            self.sums[f"{side}_characters"] += len(text)
            self.lengths[side, bisect_right(LENGTH_EDGES, len(text)) - 1] += 1

    def _add_changed(self, clean: str, noisy: str) -> None:
        errors = character_errors(clean, noisy)
        self.sums["changed"] += 1
        self.sums["character_errors"] += errors
        self.sums["word_errors"] += word_errors(clean, noisy)
        self.cer_bins[min(errors * CER_BINS // len(clean), CER_BINS) if clean else CER_BINS] += 1
        if not self.has_edits:
            self.kinds.offer(lambda: _aligned_kinds(clean, noisy))

    def _add_drawn(self, drawn: list[str], changed: bool) -> None:
        self.per_row[len(drawn)] += 1
        names = set(drawn)
        self.by_transform.update((name, "rows") for name in names)
        if len(names) == 1:
            self.by_transform[drawn[0], "alone"] += 1
            self.by_transform[drawn[0], "changed"] += changed

    def _add_edits(self, edits: list[dict[str, Any]], clean: str, noisy: str) -> None:
        for edit in edits:
            before = clean[edit["clean_start"] : edit["clean_end"]]
            after = noisy[edit["noisy_start"] : edit["noisy_end"]]
            self.all_kinds[edit_kind(before, after)] += 1
            for name in edit["transform"].split("+"):
                self.by_transform[name, "edits"] += 1

    def statistics(self, shards: int, chances: Sequence[float] | None) -> Statistics:
        """Return the figures; `chances` are those of the transforms of a row, if they are known."""
        sums = self.sums
        return Statistics(
            shards=shards,
            rows=sums["rows"],
            copies=len(self.copies) or 1,
            changed=sums["changed"],
            changed_share=ratio(sums["changed"], sums["rows"]),
            clean_characters=sums["clean_characters"],
            noisy_characters=sums["noisy_characters"],
            length_ratio=ratio(sums["noisy_characters"], sums["clean_characters"]),
            character_errors=sums["character_errors"],
            cer=ratio(sums["character_errors"], sums["clean_characters"]),
            clean_words=sums["clean_words"],
            word_errors=sums["word_errors"],
            wer=ratio(sums["word_errors"], sums["clean_words"]),
            transforms_per_row=tuple(self._per_row(chances)),
            transforms=tuple(self._transforms()),
            edit_kinds=self._edit_kinds(),
            type_token_ratio=self.tokens.result(),
            row_lengths=tuple(self._row_lengths()),
            cer_of_changed_rows=tuple(self.cer_bins[number] for number in range(CER_BINS + 1)),
        )

    def _per_row(self, chances: Sequence[float] | None) -> Iterator[Drawn]:
        rows = self.sums["rows"]
        expected = None if chances is None else [rows * share for share in _distribution(chances)]
        for number in range(max([*self.per_row, len(expected or [0]) - 1]) + 1):
            here = None if expected is None else expected[number] if number < len(expected) else 0.0
            yield Drawn(number, self.per_row[number], here)

    def _transforms(self) -> Iterator[TransformFigures]:
        counts = self.by_transform
        for name in sorted({name for name, _ in counts}):
            alone, changed = counts[name, "alone"], counts[name, "changed"]
            edits = counts[name, "edits"] if self.has_edits else None
            share = ratio(changed, alone)
            yield TransformFigures(name, counts[name, "rows"], alone, changed, share, edits)

    def _edit_kinds(self) -> EditKinds:
        sample = self.kinds
        counts = sum(sample.kept, self.all_kinds)
        kinds = tuple(EditKind(kind, counts[kind, False], counts[kind, True]) for kind in KINDS)
        if self.has_edits:
            return EditKinds("edits", self.sums["changed"], False, kinds)
        return EditKinds("alignment", len(sample.kept), sample.every > 1, kinds)

    def _row_lengths(self) -> Iterator[LengthBin]:
        highs = (*LENGTH_EDGES[1:], None)
        for number, (low, high) in enumerate(zip(LENGTH_EDGES, highs, strict=True)):
            yield LengthBin(low, high, *(self.lengths[x, number] for x in ("clean", "noisy")))


def _aligned_kinds(clean: str, noisy: str) -> Kinds:
    """Count the replacements of a shortest alignment of characters."""
    blocks = (block for block in Levenshtein.opcodes(clean, noisy) if block.tag != "equal")
    spans = (
        (clean[block.src_start : block.src_end], noisy[block.dest_start : block.dest_end])
        for block in blocks
    )
    return Counter(edit_kind(*span) for span in spans)


def _distribution(chances: Sequence[float]) -> list[float]:
    """Return the chance of every number of hits (Binomial if all chances are equal)."""
    shares = [1.0]
    for chance in chances:
        padded = [0.0, *shares, 0.0]
        shares = [miss * (1 - chance) + hit * chance for hit, miss in pairwise(padded)]
    return shares
