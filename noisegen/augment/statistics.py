"""Statistics of a run: figures of its shards as data, tables and plots."""

import io
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import accumulate, pairwise
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import catch_warnings, filterwarnings

from rapidfuzz.distance import Levenshtein
from rich.table import Table
from rich.text import Text

from noisegen.errors import MissingExtra, SourceError, UsageError
from noisegen.report import charts, pages
from noisegen.report.pages import Figure, Section
from noisegen.report.terminal import bar, percent, titled
from noisegen.runs.files import atomic
from noisegen.runs.manifest import counted
from noisegen.text.alignment import character_errors, word_errors

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from rich.console import Console

LENGTH_EDGES = (0, 10, 20, 40, 80, 160, 320, 640, 1280)  # characters; the last bin is open
CER_BINS = 100  # of 0.01 each, and one more for 1 and above
KINDS = ("substitution", "insertion", "deletion")
KIND_ROWS_MAX = 20_000  # changed rows that are aligned where there are no edits to read
TOKEN_ROWS_MAX = 100_000
BATCH_ROWS = 4096
_BAR = 24  # columns
_CER_SHOWN = 0.99  # of the changed rows; the others are in the last bar
_CER_BARS = 20
_COLORS = ("#0072b2", "#e69f00")  # of Okabe and Ito, told apart by the colour-blind
_Z95 = 1.959963984540054  # the normal quantile of 97.5 %


@dataclass(frozen=True)
class TransformsPerRow:
    """Rows that drew this number of transforms, and how many rows the recipe lets one expect."""

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
    transforms_per_row: tuple[TransformsPerRow, ...]
    transforms: tuple[TransformFigures, ...]
    edit_kinds: EditKinds
    type_token_ratio: TypeTokenRatio
    row_lengths: tuple[LengthBin, ...]
    cer_of_changed_rows: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def measure(folder: Path) -> Statistics:
    """Read all shards of a folder, batch by batch.

    CER and WER are exact: Levenshtein distances over clean characters and words. Raises SourceError
    if there is no such folder, no shard in it, or a shard that cannot be read.
    """
    if not folder.is_dir():
        raise SourceError(f"there is no folder {str(folder)!r}")
    paths = sorted(folder.glob("part-*.parquet"))
    if not paths:
        raise SourceError(f"no part-*.parquet in {str(folder)!r}; give the OUT of noisegen augment")
    heads = [_check(path) for path in paths]
    has_edits = all("edits" in names for _, names in heads)
    counts = _Accumulator(sum(rows for rows, _ in heads), has_edits)
    for path in paths:
        for batch in _batches(path, has_edits):
            counts.add(batch)
    return counts.statistics(len(paths), _chances(folder / "manifest.json"))


def render(statistics: Statistics, console: "Console") -> None:
    """Print the figures as tables with bars."""
    tables = (_summary, _per_row, _transforms, _edit_kinds, _row_lengths)
    for table in tables:
        console.print(table(statistics))
        console.print()


def ratio(part: float | None, whole: float | None) -> float | None:
    """Return part / whole, None where that is not a number."""
    return None if part is None or not whole else part / whole


def edit_kind(clean: str, noisy: str) -> tuple[str, bool]:
    """Return the kind of a replacement, and whether it is of blanks only."""
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


@contextmanager
def _opened(path: Path) -> Iterator["pq.ParquetFile"]:
    """Open a shard; raises SourceError if it, or what is read from it inside, is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as shard:
            yield shard
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"cannot read {str(path)!r} as Parquet: {reason}") from error


def _check(path: Path) -> tuple[int, list[str]]:
    """Return the rows and columns of a shard; raises SourceError if they are not those of a run."""
    with _opened(path) as shard:
        rows, schema = shard.metadata.num_rows, shard.schema_arrow
    for name in ("id", "clean", "noisy", "transforms", "copy", "edits"):
        if name in schema.names:
            kind = schema.field(name).type
            if not _fits(name, kind):
                raise SourceError(f"column {name!r} of {str(path)!r} has the wrong type: {kind}")
        elif name not in ("copy", "edits"):
            raise SourceError(f"{str(path)!r} has no column {name!r}; is it from noisegen augment?")
    return rows, schema.names


_SPAN = {"transform", "clean_start", "clean_end", "noisy_start", "noisy_end"}


def _fits(column: str, kind: "pa.DataType") -> bool:
    """Tell whether the column of a shard may have this type."""
    from pyarrow import types

    if column in ("transforms", "edits"):
        if not (types.is_list(kind) or types.is_large_list(kind)):
            return False
        kind = kind.value_type
    if column == "edits":
        return types.is_struct(kind) and {part.name for part in kind} >= _SPAN
    if column == "copy":
        return bool(types.is_integer(kind))
    return column == "id" or bool(types.is_string(kind) or types.is_large_string(kind))


def _batches(path: Path, has_edits: bool) -> Iterator["pa.RecordBatch"]:
    """Yield the columns that are counted; raises SourceError for a text that is null."""
    with _opened(path) as shard:
        wanted = ["clean", "noisy", "transforms", "copy", *(["edits"] if has_edits else [])]
        names = [name for name in wanted if name in shard.schema_arrow.names]
        for batch in shard.iter_batches(BATCH_ROWS, columns=names):
            batch.validate(full=True)  # damaged UTF-8 shows here
            for name in ("clean", "noisy"):
                if batch[name].null_count:
                    raise SourceError(f"column {name!r} of {str(path)!r} has rows without a text")
            yield batch


def _chances(manifest: Path) -> list[float] | None:
    """Return the chance of every transform if the run's recipe is mix_all: twelve times 0.1."""
    try:
        recipe = json.loads(manifest.read_text("utf-8"))["recipe"]
        if recipe == "mix_all":
            return [0.1] * 12
        if recipe["name"] != "mix_all":
            return None
        steps = recipe["steps"][0]["shuffle"]
        return [float(options["p"]) for step in steps for options in step.values()]
    except (OSError, ValueError, LookupError, TypeError):
        return None  # no manifest, or none that says so: the figures stand without


# Counting.


_Kinds = Counter[tuple[str, bool]]  # (kind, whether of spaces only)


@dataclass
class _EvenSample:
    """An evenly spaced sample of a stream of unknown length: at most `limit` entries are kept."""

    limit: int
    seen: int = 0
    every: int = 1
    kept: list[_Kinds] = field(default_factory=list)

    def offer(self, make: Callable[[], _Kinds]) -> None:
        """Count an entry, and make and keep it if it is due."""
        if self.seen % self.every == 0:
            self.kept.append(make())
        self.seen += 1
        if len(self.kept) > self.limit:
            del self.kept[1::2]
            self.every *= 2


@dataclass
class _Tokens:
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
            noisy_tokens = tokens if clean[row] == noisy[row] else tokenize(noisy[row])
            for side, words in (("clean", tokens), ("noisy", noisy_tokens)):
                self.counts[side] += len(words)
                self.types[side].update(words)
            self.rows += 1

    def result(self) -> TypeTokenRatio:
        """Return the ratios of both sides and noisy / clean."""
        clean, noisy = (ratio(len(self.types[x]), self.counts[x]) for x in ("clean", "noisy"))
        return TypeTokenRatio(self.rows, self.every > 1, clean, noisy, ratio(noisy, clean))


class _Accumulator:
    """Counts of all batches so far. `rows` of the whole run are known from the shards' footers."""

    def __init__(self, rows: int, has_edits: bool) -> None:
        self.has_edits = has_edits
        self.sums: Counter[str] = Counter()
        self.copies: set[int] = set()
        self.per_row: Counter[int] = Counter()
        self.by_transform: Counter[tuple[str, str]] = Counter()
        self.lengths: Counter[tuple[str, int]] = Counter()
        self.cer_bins: Counter[int] = Counter()
        self.kinds = _EvenSample(KIND_ROWS_MAX)
        self.all_kinds: _Kinds = Counter()
        self.tokens = _Tokens(max(1, -(-rows // TOKEN_ROWS_MAX)))

    def add(self, batch: "pa.RecordBatch") -> None:
        """Count a batch with the columns clean, noisy, transforms, and copy and edits if there."""
        columns = batch.to_pydict()
        clean, noisy, drawn = columns["clean"], columns["noisy"], columns["transforms"]
        edits = columns.get("edits", [None] * len(clean))
        self.copies.update(columns.get("copy", []))
        self.tokens.add(self.sums["rows"], clean, noisy)
        self.sums["rows"] += len(clean)
        for before, after, names, account in zip(clean, noisy, drawn, edits, strict=True):
            self.sums["clean_words"] += len(before.split())
            for side, text in (("clean", before), ("noisy", after)):
                self.sums[f"{side}_characters"] += len(text)
                self.lengths[side, bisect_right(LENGTH_EDGES, len(text)) - 1] += 1
            self._add_drawn(names or [], before != after)
            self._add_edits(account or [], before, after)
            if before != after:
                self._add_changed(before, after)

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

    def _per_row(self, chances: Sequence[float] | None) -> Iterator[TransformsPerRow]:
        rows = self.sums["rows"]
        expected = None if chances is None else [rows * share for share in _distribution(chances)]
        for number in range(max([*self.per_row, len(expected or [0]) - 1]) + 1):
            here = None if expected is None else expected[number] if number < len(expected) else 0.0
            yield TransformsPerRow(number, self.per_row[number], here)

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


def _aligned_kinds(clean: str, noisy: str) -> _Kinds:
    """Count the replacements of a shortest alignment of characters."""
    return Counter(
        edit_kind(clean[block.src_start : block.src_end], noisy[block.dest_start : block.dest_end])
        for block in Levenshtein.opcodes(clean, noisy)
        if block.tag != "equal"
    )


def _distribution(chances: Sequence[float]) -> list[float]:
    """Return the chance of every number of hits (Binomial if all chances are equal)."""
    shares = [1.0]
    for chance in chances:
        padded = [0.0, *shares, 0.0]
        shares = [miss * (1 - chance) + hit * chance for hit, miss in pairwise(padded)]
    return shares


# Tables.


def _number(value: float | None, digits: int = 0) -> str:
    """Return a number with thousands separators, '-' for None."""
    return "-" if value is None else f"{value:,.{digits}f}"


def _table(title: str, heads: Sequence[str], rows: Iterable[tuple[str | Text, ...]]) -> Table:
    """Return a table: names at the left, then figures to the right, then a bar."""
    table = titled(title)
    table.add_column("")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("", style="cyan", no_wrap=True, min_width=_BAR)
    for row in rows:
        table.add_row(*row)
    return table


def _summary(figures: Statistics) -> Table:
    table = titled("the run", None)
    table.show_header = False
    tokens, shards = figures.type_token_ratio, counted(figures.shards, "shard")
    copies = f", {figures.copies:,} copies of each" if figures.copies > 1 else ""
    sample = " (a sample)" if tokens.is_sample else ""
    for row in (
        ("rows", f"{figures.rows:,} in {shards}{copies}"),
        ("changed", f"{figures.changed:,} ({percent(figures.changed_share)})"),
        ("CER", f"{percent(figures.cer, 2)} of {figures.clean_characters:,} characters"),
        ("WER", f"{percent(figures.wer, 2)} of {figures.clean_words:,} words"),
        ("length", f"noisy / clean {_number(figures.length_ratio, 4)} in characters"),
        ("type/token", f"clean {_number(tokens.clean, 4)}, noisy {_number(tokens.noisy, 4)}, "
         f"noisy / clean {_number(tokens.quotient, 4)}; {tokens.rows:,} rows{sample}"),
    ):  # fmt: skip
        table.add_row(*row)
    return table


def _per_row(figures: Statistics) -> Table:
    shown = _drawn(figures)
    most = max((line.rows for line in shown), default=0)
    rows = [
        (str(line.transforms), _number(line.rows), percent(ratio(line.rows, figures.rows)),
         *([_number(line.expected)] if line.expected is not None else []), bar(line.rows, most))
        for line in shown
    ]  # fmt: skip
    expected = ["expected"] if any(line.expected is not None for line in shown) else []
    return _table("transforms per row", ["rows", "share", *expected], rows)


def _drawn(figures: Statistics) -> list[TransformsPerRow]:
    """Return the numbers of transforms that rows drew, or were expected to draw."""
    return [x for x in figures.transforms_per_row if x.rows or (x.expected or 0) >= 0.5]


def _transforms(figures: Statistics) -> Table:
    rows: list[tuple[str | Text, ...]] = []
    for line in figures.transforms:
        counts = [line.rows, line.rows_alone, line.changed_alone]
        edits = [] if line.edits is None else [_number(line.edits)]
        share = line.changed_alone_share
        rows.append((Text(line.name), *map(_number, counts), percent(share), *edits,
                     bar(share or 0, 1)))  # fmt: skip
    edits = ["edits"] if any(line.edits is not None for line in figures.transforms) else []
    title = "transforms: rows drawn, drawn alone, and changed of these"
    return _table(title, ["rows", "alone", "changed", "share", *edits], rows)


def _edit_kinds(figures: Statistics) -> Table:
    kinds = figures.edit_kinds
    source = {"edits": "from the column edits", "alignment": "from a shortest alignment"}
    sample = "a sample of " if kinds.is_sample else ""
    title = f"edit kinds, {source[kinds.source]}; {sample}{kinds.rows:,} changed rows"
    total = sum(line.characters + line.blanks for line in kinds.kinds)
    rows = []
    for line in kinds.kinds:
        count = line.characters + line.blanks
        rows.append((line.kind, _number(line.characters), _number(line.blanks),
                     percent(ratio(count, total)), bar(count, total)))  # fmt: skip
    return _table(title, ["of characters", "of blanks", "share"], rows)


def _row_lengths(figures: Statistics) -> Table:
    bins = list(figures.row_lengths)
    while len(bins) > 1 and not bins[-1].clean + bins[-1].noisy:
        bins.pop()
    most = max(line.clean for line in bins)
    rows = []
    for line in bins:
        end = "or more" if line.high is None else f"to {line.high - 1:,}"
        rows.append((f"{line.low:,} {end}", _number(line.clean), _number(line.noisy),
                     bar(line.clean, most)))  # fmt: skip
    return _table("row lengths in characters", ["clean", "noisy"], rows)


# Plots.


class _Panel(NamedTuple):
    """A bar chart: a bar of each series for every label."""

    title: str
    unit: str
    labels: list[str]
    series: Mapping[str, Sequence[float]]


def plot(figures: Statistics, path: Path) -> None:
    """Write four bar charts, as a self-contained HTML page or as PNG by the ending of `path`.

    Raises UsageError for another ending, MissingExtra for PNG without matplotlib, OutputError if
    the file cannot be written.
    """
    ending = path.suffix.lower()
    if ending not in (".png", ".html"):
        raise UsageError(f"cannot plot to {str(path)!r}: the name must end in .png or .html")
    title = f"{figures.rows:,} rows, CER {percent(figures.cer, 2)}, WER {percent(figures.wer, 2)}"
    panels = [*_panels(figures)]
    content = _page(title, panels).encode() if ending == ".html" else _picture(title, panels)
    with atomic(path) as file:
        file.write(content)


def _panels(figures: Statistics) -> Iterator[_Panel]:
    drawn, rows = _drawn(figures), max(1, figures.rows)
    series: dict[str, Sequence[float]] = {"this run": [100 * line.rows / rows for line in drawn]}
    if any(line.expected is not None for line in drawn):
        series["expected of mix_all"] = [100 * (line.expected or 0) / rows for line in drawn]
    labels = [str(line.transforms) for line in drawn]
    yield _Panel("Transforms per row", "% of rows", labels, series)

    alone = {line.name: 100 * line.changed_alone_share for line in figures.transforms
             if line.changed_alone_share is not None}  # fmt: skip
    labels = sorted(alone, key=lambda name: (-alone[name], name))
    series = {"changed": [alone[name] for name in labels]}
    yield _Panel("Rows changed by a transform drawn alone", "% of these rows", labels, series)

    kinds = figures.edit_kinds.kinds
    series = {
        "of characters": [x.characters for x in kinds],
        "of blanks": [x.blanks for x in kinds],
    }
    sample = ", a sample" * figures.edit_kinds.is_sample
    yield _Panel(f"Edits by kind{sample}", "edits", [line.kind for line in kinds], series)

    counts = figures.cer_of_changed_rows
    last = next((i for i, total in enumerate(accumulate(counts))
                 if total >= _CER_SHOWN * figures.changed), 0)  # fmt: skip
    step = next(step for step in (1, 2, 5, 10) if last < _CER_BARS * step)
    starts = range(0, last + 1, step)
    bins = [*(sum(counts[low : low + step]) for low in starts[:-1]), sum(counts[starts[-1] :])]
    labels = [f"{low} % and above" if low == starts[-1] else f"{low} to {low + step} %"
              for low in starts]  # fmt: skip
    series = {"rows": [100 * count / max(1, figures.changed) for count in bins]}
    yield _Panel("CER of the changed rows", "% of these rows", labels, series)


def _page(title: str, panels: Sequence[_Panel]) -> str:
    blocks = []
    for panel in panels:
        series = list(panel.series.values())
        chart = charts.bars(panel.labels, series, title=panel.title, unit=panel.unit)
        names = enumerate(panel.series, 1) if len(series) > 1 else ()
        key = [charts.sample(style, name) for style, name in names]
        blocks.append(Figure([chart], panel.unit, key=key))
    return pages.page(title, [Section("run", "What the run did", blocks)], kicker="noisegen: stats")


def _picture(title: str, panels: Sequence[_Panel]) -> bytes:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Picture
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot") from error
    longest = max(len(panel.labels) for panel in panels)
    picture = Picture(figsize=(11, 8 + max(0, longest - 16) * 0.25), layout="constrained")
    picture.suptitle(title, fontsize=13)
    for axes, panel in zip(picture.subplots(2, 2).flat, panels, strict=True):
        thick = 0.8 / len(panel.series)
        for number, (name, values) in enumerate(panel.series.items()):
            rows = [row + number * thick for row in range(len(values))]
            axes.barh(rows, values, thick, color=_COLORS[number], label=name)
        axes.set_yticks(range(len(panel.labels)), panel.labels, parse_math=False)
        axes.set(title=panel.title, xlabel=panel.unit)
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
        if len(panel.series) > 1:
            axes.legend(frameon=False)
    content = io.BytesIO()
    with catch_warnings():
        filterwarnings("ignore", "Glyph .* missing")  # the font cannot write a transform's name
        FigureCanvasAgg(picture).print_figure(content, format="png", dpi=150)
    return content.getvalue()
