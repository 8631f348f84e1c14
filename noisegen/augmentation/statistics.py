"""Statistics of a run: figures of its shards as data, tables and plots."""

import io
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate, chain, starmap
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.data.files import reading, shard_files
from noisegen.data.formats.parquet import parquet_head
from noisegen.data.sources import is_list, is_string
from noisegen.errors import SourceError, UsageError, naming_extras
from noisegen.noising.engine import EDITS
from noisegen.report import blocks, charts, pages
from noisegen.report.terminal import percent, show
from noisegen.runs.atomic import atomic, refuse_existing
from noisegen.runs.manifest import content_of, counted
from noisegen.text.alignment import aligned, character_errors, word_errors, words_in

if TYPE_CHECKING:
    from rich.console import Console

LENGTH_EDGES = (0, 10, 20, 40, 80, 160, 320, 640, 1280)  # characters; the last bin is open
CER_BINS = 100  # of 0.01 each, and one more for 1 and above
KINDS = ("substitution", "insertion", "deletion")
KIND_ROWS_MAX = 20_000  # changed rows that are aligned where there are no edits to read
TOKEN_ROWS_MAX = 100_000
EXAMPLES_MAX = 12
BATCH_ROWS = 4096
# NLTK takes the square of the length of a run of digits, and gives up after five seconds.
_PARTS = re.compile(r".{1,2000}(?!\S)|.{2000}", re.DOTALL)
_TRIED_MIN = 5  # rows that drew a transform alone, from which its effect is worth a sentence
_CER_SHOWN = 0.99  # of the changed rows; the others are in the last bar
_CER_BARS = 20
_COLORS = ("#0072b2", "#e69f00")  # of Okabe and Ito, told apart by the colour-blind
_ABOUT = {"Software": "noisegen"}  # in the head of a picture, by which it is known
_Z95 = 1.959963984540054  # the normal quantile of 97.5 %


@dataclass(frozen=True)
class TransformsPerRow:
    """Rows that drew this number of transforms, and the number expected by the recipe."""

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
    """Edits of one kind; `spaces` counts those with a side that is nothing but white space."""

    kind: str
    characters: int
    spaces: int


@dataclass(frozen=True)
class EditKinds:
    """Kinds of edits in `rows` changed rows, all or a sample; from 'edits' or 'alignment'."""

    source: str
    rows: int
    is_sample: bool
    kinds: tuple[EditKind, ...]


@dataclass(frozen=True)
class TypeTokenRatio:
    """Distinct tokens over tokens in `rows` rows, all or a sample; it falls with their number."""

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
class RunOrigin:
    """What the manifest says of a run; empty without one."""

    recipe: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    sources: list[dict[str, Any]] = field(default_factory=list)

    @property
    def recipe_name(self) -> str:
        """The name of the recipe, '' if it is unknown."""
        return str(self.recipe.get("name", ""))

    @property
    def chances(self) -> list[float] | None:
        """The chance of every transform if the recipe is mix_all: twelve times 0.1."""
        try:
            steps = self.recipe["steps"][0]["shuffle"] if self.recipe_name == "mix_all" else None
            return steps and [float(values["p"]) for step in steps for values in step.values()]
        except (LookupError, ValueError, TypeError, AttributeError):
            return None


@dataclass(frozen=True)
class ChangedRow:
    """A changed row, and the transforms that it drew."""

    clean: str
    noisy: str
    transforms: tuple[str, ...]


@dataclass(frozen=True)
class Statistics:
    """What a run did; a ratio is None where there is nothing to divide by.

    `cer_of_changed_rows` counts rows by CER in steps of 0.01; its last entry is for 1 and above.
    `examples` are changed rows from all over the run.
    """

    origin: RunOrigin
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
    transforms_per_row: tuple[TransformsPerRow, ...]
    transforms: tuple[TransformFigures, ...]
    edit_kinds: EditKinds
    type_token_ratio: TypeTokenRatio
    row_lengths: tuple[LengthBin, ...]
    cer_of_changed_rows: tuple[int, ...]
    examples: tuple[ChangedRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def measure(folder: Path) -> Statistics:
    """Read all shards of a folder, batch by batch.

    CER and WER are exact: Levenshtein distances over clean characters and words. Raises SourceError
    if there is no such folder, no shard in it, or a shard that cannot be read.
    """
    if folder.exists() and not folder.is_dir():
        raise SourceError(
            f"{str(folder)!r} is a file, no folder of a run; give the OUT of noisegen augment"
        )
    if not folder.is_dir():
        raise SourceError(f"there is no folder {str(folder)!r}")
    paths = shard_files(folder)
    if not paths:
        raise SourceError(f"no part-*.parquet in {str(folder)!r}; give the OUT of noisegen augment")
    heads = {path: _checked(path) for path in paths}
    has_edits = all("edits" in schema.names for schema, _ in heads.values())
    counts = _Accumulator(sum(rows for _, rows in heads.values()), has_edits)
    wanted = _TYPES.keys() - ({"id"} if has_edits else {"id", "edits"})
    for path, (schema, _) in heads.items():
        with reading(str(path)), pq.ParquetFile(path) as shard:
            columns = [name for name in schema.names if name in wanted]
            for batch in shard.iter_batches(BATCH_ROWS, columns=columns):
                batch.validate(full=True)  # damaged UTF-8 shows here
                batch = batch.cast(pa.schema([(f.name, _plain(f.type)) for f in batch.schema]))
                if missing := [name for name in ("clean", "noisy") if batch[name].null_count]:
                    raise SourceError(f"column {missing[0]!r} of {path} has rows without a text")
                counts.add(batch)
    return counts.statistics(len(paths), _origin(folder / "manifest.json"))


def ratio(part: float | None, whole: float | None) -> float | None:
    """Return part / whole, None where that is not a number."""
    return None if part is None or not whole else part / whole


def edit_kind(clean: str, noisy: str) -> tuple[str, bool]:
    """Return the kind of a replacement, and whether it is of spaces only."""
    kind = "insertion" if not clean else "substitution" if noisy else "deletion"
    return kind, clean.isspace() or noisy.isspace()


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share of n observations (Wilson, 1927); (0, 1) of none.

    The share may be a mean of values from 0 to 1: their variance is at most that of a yes and no,
    so the interval is then wide enough.
    """
    if not n:
        return 0.0, 1.0
    z = _Z95**2 / n
    middle = (share + z / 2) / (1 + z)
    reach = _Z95 / (1 + z) * sqrt(share * (1 - share) / n + z / (4 * n))
    return max(0.0, middle - reach), min(1.0, middle + reach)


# Reading.


_TYPES = {
    "id": None,
    "clean": pa.string(),
    "noisy": pa.string(),
    "transforms": pa.list_(pa.string()),
    "copy": pa.int32(),
    "edits": EDITS,
}


def _checked(path: Path) -> tuple[pa.Schema, int]:
    """Return the columns and rows of a shard; raises SourceError if they are not those of a run."""
    schema, rows = parquet_head(str(path))
    for name in _TYPES:
        if name not in schema.names and name not in ("copy", "edits"):
            raise SourceError(f"{str(path)!r} has no column {name!r}; is it from noisegen augment?")
    for name, kind in zip(schema.names, schema.types, strict=True):
        if _plain(kind) != (_TYPES.get(name) or _plain(kind)):
            raise SourceError(f"column {name!r} of {str(path)!r} has the wrong type: {kind}")
    return schema, rows


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type as `augment` writes it: pandas and polars write large strings and views."""
    if is_string(kind):
        return pa.string()
    if is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind])
    return pa.int32() if pa.types.is_integer(kind) else kind


def _origin(path: Path) -> RunOrigin:
    """Return what a manifest says of its run, as far as there is one."""
    try:
        return msgspec.convert(content_of(path), RunOrigin)
    except (OSError, ValueError, AttributeError):
        return RunOrigin()


# Counting.


class _Accumulator:
    """Counts of all batches so far. `rows` of the whole run are known from the shards' footers.

    Types and tokens are counted in every n-th row. Without edits to read, an even sample of the
    changed rows is aligned: every `align_every`-th, and never more than `KIND_ROWS_MAX`.
    """

    def __init__(self, rows: int, has_edits: bool) -> None:
        from nltk.tokenize import TweetTokenizer

        self.tokenizer = TweetTokenizer(reduce_len=False)
        self.has_edits = has_edits
        self.sums = Counter[str]()
        self.copies = set[int]()
        self.per_row = Counter[int]()
        self.by_transform = Counter[tuple[str, str]]()
        self.lengths = {side: np.zeros(len(LENGTH_EDGES), np.int64) for side in ("clean", "noisy")}
        self.cer_bins = Counter[int]()
        self.kinds = Counter[tuple[str, bool]]()
        self.aligned: list[Counter[tuple[str, bool]]] = []
        self.align_every = 1
        self.examples: list[ChangedRow] = []
        self.example_every = 1
        self.token_every = max(1, -(-rows // TOKEN_ROWS_MAX))
        self.types: dict[str, set[str]] = {"clean": set(), "noisy": set()}

    def add(self, batch: pa.RecordBatch) -> None:
        """Count a batch with the columns clean, noisy, transforms, and copy and edits if there."""
        for side, bins in self.lengths.items():
            lengths = pc.utf8_length(batch[side]).to_numpy()
            self.sums[f"{side}_characters"] += int(lengths.sum())
            bins += np.bincount(np.digitize(lengths, LENGTH_EDGES) - 1, minlength=len(bins))
        columns = batch.to_pydict()
        clean, noisy, drawn = columns["clean"], columns["noisy"], columns["transforms"]
        edits = columns.get("edits", [None] * len(clean))
        self.copies.update(columns.get("copy", []))
        self._add_tokens(clean, noisy)
        self.sums["rows"] += len(clean)
        self.sums["clean_words"] += sum(map(words_in, clean))
        for before, after, row_drawn, row_edits in zip(clean, noisy, drawn, edits, strict=True):
            names = set(row_drawn or ())
            self.per_row[len(row_drawn or ())] += 1
            self.by_transform.update((name, "rows") for name in names)
            if len(names) == 1:
                self.by_transform[row_drawn[0], "alone"] += 1
                self.by_transform[row_drawn[0], "changed"] += before != after
            for edit in row_edits or ():
                replaced = before[edit["clean_start"] : edit["clean_end"]]
                written = after[edit["noisy_start"] : edit["noisy_end"]]
                self.kinds[edit_kind(replaced, written)] += 1
                self.by_transform.update((name, "edits") for name in edit["transform"].split("+"))
            if before != after:
                self._add_changed(before, after, row_drawn or ())

    def _add_tokens(self, clean: Sequence[str], noisy: Sequence[str]) -> None:
        def tokenize(text: str) -> list[str]:
            parts = (self.tokenizer.tokenize(part[0]) for part in _PARTS.finditer(text))
            return list(map(sys.intern, chain.from_iterable(parts)))

        for row in range(-self.sums["rows"] % self.token_every, len(clean), self.token_every):
            tokens = tokenize(clean[row])
            noisy_tokens = tokens if clean[row] == noisy[row] else tokenize(noisy[row])
            for side, words in (("clean", tokens), ("noisy", noisy_tokens)):
                self.sums[f"{side}_tokens"] += len(words)
                self.types[side].update(words)
            self.sums["token_rows"] += 1

    def _add_changed(self, clean: str, noisy: str, drawn: Sequence[str]) -> None:
        errors = character_errors(clean, noisy)
        self.sums.update(changed=1, character_errors=errors, word_errors=word_errors(clean, noisy))
        self.cer_bins[min(errors * CER_BINS // len(clean), CER_BINS) if clean else CER_BINS] += 1
        if not self.has_edits and (self.sums["changed"] - 1) % self.align_every == 0:
            replaced = (
                (clean[start:stop], noisy[noisy_start:noisy_stop])
                for is_equal, start, stop, noisy_start, noisy_stop in aligned(clean, noisy)
                if not is_equal
            )
            self.aligned.append(Counter(starmap(edit_kind, replaced)))
            if len(self.aligned) > KIND_ROWS_MAX:
                del self.aligned[1::2]
                self.align_every *= 2
        if (self.sums["changed"] - 1) % self.example_every == 0:
            self.examples.append(ChangedRow(clean, noisy, tuple(drawn)))
            if len(self.examples) > EXAMPLES_MAX:
                del self.examples[1::2]
                self.example_every *= 2

    def statistics(self, shards: int, origin: RunOrigin) -> Statistics:
        """Return the figures of a run of this origin."""
        sums, lengths = self.sums, self.lengths
        clean, noisy = (ratio(len(self.types[x]), sums[f"{x}_tokens"]) for x in ("clean", "noisy"))
        is_sample, quotient = self.token_every > 1, ratio(noisy, clean)
        bins = zip(LENGTH_EDGES, [*LENGTH_EDGES[1:], None], *lengths.values(), strict=True)
        return Statistics(
            origin=origin,
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
            transforms_per_row=self._per_row(origin.chances),
            transforms=tuple(self._transforms()),
            edit_kinds=self._edit_kinds(),
            type_token_ratio=TypeTokenRatio(sums["token_rows"], is_sample, clean, noisy, quotient),
            row_lengths=tuple(LengthBin(low, high, int(x), int(y)) for low, high, x, y in bins),
            cer_of_changed_rows=tuple(self.cer_bins[number] for number in range(CER_BINS + 1)),
            examples=tuple(self.examples),
        )

    def _transforms(self) -> Iterator[TransformFigures]:
        for name in sorted({name for name, _ in self.by_transform}):
            whats = "rows", "alone", "changed"
            rows, alone, changed = (self.by_transform[name, what] for what in whats)
            edits = self.by_transform[name, "edits"] if self.has_edits else None
            yield TransformFigures(name, rows, alone, changed, ratio(changed, alone), edits)

    def _edit_kinds(self) -> EditKinds:
        counts = sum(self.aligned, self.kinds)
        kinds = tuple(EditKind(kind, counts[kind, False], counts[kind, True]) for kind in KINDS)
        if self.has_edits:
            return EditKinds("edits", self.sums["changed"], False, kinds)
        return EditKinds("alignment", len(self.aligned), self.align_every > 1, kinds)

    def _per_row(self, chances: Sequence[float] | None) -> tuple[TransformsPerRow, ...]:
        """Return how many transforms the rows drew; expected is a binomial of unequal chances."""
        expected = np.array([float(self.sums["rows"])])
        for chance in chances or ():
            expected = np.convolve(expected, [1 - chance, chance])
        numbers = range(max([*self.per_row, len(expected) - 1]) + 1)
        expected = np.pad(expected, (0, len(numbers)))
        return tuple(
            TransformsPerRow(
                number, self.per_row[number], None if chances is None else float(expected[number])
            )
            for number in numbers
        )


# Tables.


def render(figures: Statistics, console: "Console") -> None:
    """Print the figures as tables with bars."""
    run = blocks.Table("the run", ["", ""], [*_summary(figures)])
    show([run, *_tables(figures)], console)


def _summary(figures: Statistics) -> Iterator[tuple[str, str]]:
    tokens, shards = figures.type_token_ratio, counted(figures.shards, "shard")
    copies = f", {figures.copies:,} copies of each" if figures.copies > 1 else ""
    length, clean, noisy, quotient = (
        "-" if value is None else f"{value:.4f}"
        for value in (figures.length_ratio, tokens.clean, tokens.noisy, tokens.quotient)
    )
    ratios = f"clean {clean}, noisy {noisy}, noisy / clean {quotient}"
    yield "rows", f"{figures.rows:,} in {shards}{copies}"
    yield "changed", f"{figures.changed:,} ({percent(figures.changed_share)})"
    yield "CER", f"{percent(figures.cer, 2)} of {figures.clean_characters:,} characters"
    yield "WER", f"{percent(figures.wer, 2)} of {figures.clean_words:,} words"
    yield "length", f"noisy / clean {length} in characters"
    yield "type/token", f"{ratios}; {counted(tokens.rows, 'row')}{' (a sample)' * tokens.is_sample}"


def _counts(*values: float | None) -> list[blocks.Cell]:
    return [blocks.figure(value, ",.0f") for value in values if value is not None]


def _share(part: float, whole: float) -> blocks.Cell:
    return blocks.figure(ratio(part, whole), ".1%")


def _bar(part: float, whole: float) -> blocks.Cell:
    return blocks.Cell("", bar=ratio(part, whole) or 0.0)


def _changed_alone(line: TransformFigures) -> tuple[blocks.Cell, blocks.Cell, blocks.Cell]:
    """Return how many rows a transform changed of those that drew no other, as text, share, bar."""
    if not line.rows_alone:
        return blocks.Cell("never alone", kind="n quiet"), blocks.Cell("", kind="n"), _bar(0, 1)
    of_rows = blocks.Cell(f"{line.changed_alone:,} of {line.rows_alone:,}", line.changed_alone)
    shares = line.changed_alone, line.rows_alone
    return of_rows, _share(*shares), _bar(*shares)


def _tables(figures: Statistics) -> Iterator[blocks.Table]:
    """Yield the tables: names at the left, then figures, then a bar."""
    drawn, transforms, kinds = _drawn(figures), figures.transforms, figures.edit_kinds
    most = max((line.rows for line in drawn), default=0)
    expected = ["expected"] * any(line.expected is not None for line in drawn)
    yield blocks.Table("transforms per row", ("", "rows", "share", *expected, ""), [
        (str(line.transforms), *_counts(line.rows), _share(line.rows, figures.rows),
         *_counts(line.expected), _bar(line.rows, most))
        for line in drawn
    ])  # fmt: skip
    edits = ["edits"] * any(line.edits is not None for line in transforms)
    title = "transforms: rows that drew each (alone: and no other)"
    yield blocks.Table(title, ("", "rows", *edits, "changed alone", "share", ""), [
        (line.name, *_counts(line.rows, line.edits), *_changed_alone(line)) for line in transforms
    ])  # fmt: skip
    source = {"edits": "from the column edits", "alignment": "from a shortest alignment"}
    sample = "a sample of " * kinds.is_sample
    title = f"edit kinds, {source[kinds.source]}; {sample}{counted(kinds.rows, 'changed row')}"
    total = sum(line.characters + line.spaces for line in kinds.kinds)
    yield blocks.Table(title, ("", "of characters", "of spaces", "share", ""), [
        (line.kind, *_counts(line.characters, line.spaces),
         _share(line.characters + line.spaces, total), _bar(line.characters + line.spaces, total))
        for line in kinds.kinds
    ])  # fmt: skip
    filled = [number for number, line in enumerate(figures.row_lengths) if line.clean + line.noisy]
    bins = figures.row_lengths[: max(filled, default=0) + 1]
    most = max(line.clean for line in bins)
    yield blocks.Table("row lengths in characters", ("", "clean", "noisy", ""), [
        (f"{line.low:,} {'or more' if line.high is None else f'to {line.high - 1:,}'}",
         *_counts(line.clean, line.noisy), _bar(line.clean, most))
        for line in bins
    ])  # fmt: skip


def _drawn(figures: Statistics) -> list[TransformsPerRow]:
    """Return the numbers of transforms that rows drew, or were expected to draw."""
    return [x for x in figures.transforms_per_row if x.rows or (x.expected or 0) >= 0.5]


# Plots.


def check_plot(path: Path) -> None:
    """Raise UsageError for the name of a plot that ends in neither .png nor .html.

    Raises OutputError for a file that is there, unless it is a plot.
    """
    if path.suffix.lower() not in (".png", ".html"):
        raise UsageError(f"cannot plot to {str(path)!r}: the name must end in .png or .html")
    refuse_existing(path)


def plot(figures: Statistics, path: Path) -> None:
    """Write a report with examples as a self-contained HTML page, or its charts as PNG.

    Raises UsageError for another ending, MissingExtra for PNG without matplotlib, OutputError if
    the file cannot be written, or is there and no plot.
    """
    check_plot(path)
    if path.suffix.lower() == ".png":
        title = f"{counted(figures.rows, 'row')}, CER {percent(figures.cer, 2)}, "
        content = _picture(f"{title}WER {percent(figures.wer, 2)}", [*_panels(figures)])
    else:
        content = _page(figures).encode()
    with atomic(path) as file:
        file.write(content)


def _page(figures: Statistics) -> str:
    per_row, alone, kinds, cer = _panels(figures)
    drawn, transforms, edit_kinds, lengths = _tables(figures)
    origin = figures.origin
    facts = {
        "source": [str(source.get("path", "")) for source in origin.sources],
        "recipe": [origin.recipe_name],
        "seed": [] if origin.seed is None else [str(origin.seed)],
        "language": [str(origin.options.get("lang", ""))],
        **{name: [text] for name, text in _summary(figures)},
    }
    shown = []
    for row in figures.examples:
        clean, noisy = blocks.differences(row.clean, row.noisy)
        versions = {"clean": clean, "noisy": noisy}
        shown.append(blocks.Example(versions, ", ".join(row.transforms)))
    of_transforms = blocks.Folded("All figures", [drawn, transforms])
    of_edits = blocks.Folded("All figures", [edit_kinds, lengths])
    sections = [
        blocks.Section("examples", "Examples", [blocks.ExampleList(shown)] if shown else [],
                "Changed rows from all over the run, with the transforms that each drew."),
        blocks.Section("transforms", "Transforms", [per_row, alone, of_transforms],
                "A transform that a row draws changes it only where it finds something to change."),
        blocks.Section("edits", "Edits", [kinds, cer, of_edits],
                "CER: errors over the characters of the clean text."),
    ]  # fmt: skip
    known = blocks.Facts({name: lines for name, lines in facts.items() if any(lines)})
    head: list[blocks.Block] = [blocks.Text(" ".join(_sentences(figures))), known]
    rows = f"{figures.changed:,} of {counted(figures.rows, 'row')}"
    title = f"{origin.recipe_name or 'The run'} changed {rows}"
    return pages.page(title, sections, kicker="noisegen: stats", head=head)


def _sentences(figures: Statistics) -> Iterator[str]:
    """Yield what the run did in words."""
    origin, tokens = figures.origin, figures.type_token_ratio
    by = f"Recipe {origin.recipe_name}" if origin.recipe_name else "The run"
    seeded = "" if origin.seed is None else f" with seed {origin.seed}"
    rows = counted(figures.rows, "row")
    yield f"{by}{seeded} changed {figures.changed:,} of {rows} ({percent(figures.changed_share)})."
    if figures.changed:
        cer, wer = percent(figures.cer, 2), percent(figures.wer, 2)
        yield f"In all rows, {cer} of the characters (CER) and {wer} of the words (WER) are wrong."
    tried = [line for line in figures.transforms if line.rows_alone >= _TRIED_MIN]
    if tried:
        least = min(tried, key=lambda line: line.changed_alone_share or 0)
        yield (
            f"The transform with the least effect is {least.name}: it changed "
            f"{least.changed_alone:,} of the {least.rows_alone:,} rows that drew it alone."
        )
    if tokens.quotient is not None and figures.changed:
        more = "more" if tokens.quotient >= 1 else "fewer"
        share = percent(abs(tokens.quotient - 1))
        yield f"Noisy text has {share} {more} distinct words per word (type/token ratio)."


def _panels(figures: Statistics) -> Iterator[blocks.Bars]:
    drawn, kinds, rows = _drawn(figures), figures.edit_kinds, max(1, figures.rows)
    counts = {"this run": [line.rows for line in drawn]}
    series: dict[str, list[float]] = {"this run": [100 * line.rows / rows for line in drawn]}
    if any(line.expected is not None for line in drawn):
        series["expected of mix_all"] = [100 * (line.expected or 0) / rows for line in drawn]
    labels = [str(line.transforms) for line in drawn]
    yield blocks.Bars("Transforms per row", "% of rows (number of rows)", labels, series,
               axis="transforms", counts=counts)  # fmt: skip

    alone = sorted(
        (line for line in figures.transforms if line.rows_alone),
        key=lambda line: (-(line.changed_alone_share or 0), line.name),
    )
    shares = [100 * (line.changed_alone_share or 0) for line in alone]
    yield blocks.Bars(
        "Effect of each transform drawn alone", "% of its rows changed (number of rows)",
        [line.name for line in alone], {"changed": shares}, axis="transform",
        counts={"changed": [line.changed_alone for line in alone]},
    )  # fmt: skip

    series = {
        "of characters": [line.characters for line in kinds.kinds],
        "of spaces": [line.spaces for line in kinds.kinds],
    }
    labels = [line.kind for line in kinds.kinds]
    sample = ", a sample" * kinds.is_sample
    yield blocks.Bars(f"Edits by kind{sample}", "edits", labels, series, axis="kind")

    yield _cer_panel(figures)


def _cer_panel(figures: Statistics) -> blocks.Bars:
    """Return the changed rows by their CER, in at most about `_CER_BARS` bars."""
    shown = _CER_SHOWN * figures.changed
    sums = accumulate(figures.cer_of_changed_rows)
    last = next((number for number, total in enumerate(sums) if total >= shown), 0)
    step = next(step for step in (1, 2, 5, 10) if last < _CER_BARS * step)
    *lows, final = range(0, last + 1, step)
    counts = np.add.reduceat(figures.cer_of_changed_rows, [*lows, final])
    labels = [*(f"{low} to {low + step}%" for low in lows), f"{final}% and above"]
    series = {"rows": (100 * counts / max(1, figures.changed)).tolist()}
    return blocks.Bars(
        "CER of the changed rows", "% of changed rows (number of rows)", labels, series,
        axis="CER", counts={"rows": counts.tolist()},
    )  # fmt: skip


def _picture(title: str, panels: Sequence[blocks.Bars]) -> bytes:
    with naming_extras("matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    longest = max(len(panel.labels) for panel in panels)
    picture = Figure(figsize=(11, 8 + max(0, longest - 16) * 0.25), layout="constrained")
    picture.suptitle(title, fontsize=13)
    for axes, panel in zip(picture.subplots(2, 2).flat, panels, strict=True):
        thick = 0.8 / len(panel.series)
        for number, (name, values) in enumerate(panel.series.items()):
            rows = [row + number * thick for row in range(len(values))]
            drawn = axes.barh(rows, values, thick, color=_COLORS[number], label=name)
            axes.bar_label(drawn, charts.bar_labels(panel)[name], padding=2, fontsize=7)
        axes.margins(x=0.15)
        axes.set_yticks(range(len(panel.labels)), panel.labels, parse_math=False)
        axes.set(title=panel.title, xlabel=panel.unit, ylabel=panel.axis)
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
        if len(panel.series) > 1:
            axes.legend(frameon=False)
    content = io.BytesIO()
    with catch_warnings():
        filterwarnings("ignore", "Glyph .* missing")  # the font cannot write a transform's name
        FigureCanvasAgg(picture).print_figure(content, format="png", dpi=150, metadata=_ABOUT)
    return content.getvalue()
