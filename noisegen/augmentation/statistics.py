"""Statistics of a run, measured on its shards; `statistics_report` shows them."""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise, starmap
from math import sqrt
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.augmentation.annotated import PER_TEXT, one_per_text
from noisegen.augmentation.shards import CLEAN
from noisegen.data.files import reading, shard_files
from noisegen.data.formats.parquet import parquet_head
from noisegen.data.tables import is_list, is_string
from noisegen.errors import SourceError
from noisegen.noising.engine import EDITS
from noisegen.runs.manifest import content_of
from noisegen.runs.records import Run
from noisegen.text.alignment import aligned, character_errors, word_errors, words_in

# Least number of characters in each bin of row lengths.
LENGTH_EDGES = (0, 10, 20, 40, 80, 160, 320, 640, 1280)
CER_BINS = 100  # bins of width 0.01; one more bin counts rows with a CER of 1 and above
KINDS = ("substitution", "insertion", "deletion")
# Parts into which a text is cut for the tokenizer of NLTK. Its time grows with the square of the
# length of a sequence of digits, and it gives up after 5 seconds.
_PARTS = re.compile(r".{1,2000}(?!\S)|.{2000}", re.DOTALL)
_Z95 = 1.959963984540054  # 97.5 % quantile of the normal distribution, for 95 % intervals


@dataclass(frozen=True)
class TransformsPerRow:
    """How many rows drew a number of transforms, and how many are expected to by the recipe."""

    transforms: int
    rows: int
    expected: float | None


@dataclass(frozen=True)
class TransformFigures:
    """Counts for one transform.

    `rows` counts the rows for which it was drawn. `rows_alone` counts those for which no other
    transform was drawn; `changed_alone` of them changed. The other counts come from the column of
    edits, and are None if the shards have none: `edits` that the transform made, alone or together
    with others, `characters` that these edits inserted, deleted or replaced, and `changed` rows
    that have such an edit.
    """

    name: str
    rows: int
    rows_alone: int
    changed_alone: int
    changed_alone_share: float | None
    edits: int | None
    characters: int | None = None
    changed: int | None = None


@dataclass(frozen=True)
class EditKind:
    """Number of edits of one kind: `spaces` of white space alone, `characters` of other text."""

    kind: str
    characters: int
    spaces: int


@dataclass(frozen=True)
class EditKinds:
    """Numbers of edits by kind, in all changed rows or in a sample of `rows` changed rows.

    `source` is 'edits' if the edits were read from the column of that name, and 'alignment' if they
    were found by a shortest alignment of clean and noisy text.
    """

    source: str
    rows: int
    is_sample: bool
    kinds: tuple[EditKind, ...]


@dataclass(frozen=True)
class TypeTokenRatio:
    """Distinct tokens divided by all tokens, in clean and in noisy text.

    They are counted in all rows of the first copy and strength, or in a sample; `rows` is their
    number. The ratio depends on it: it falls as rows are added. `quotient` is the noisy ratio
    divided by the clean ratio.
    """

    rows: int
    is_sample: bool
    clean: float | None
    noisy: float | None
    quotient: float | None


@dataclass(frozen=True)
class LengthBin:
    """Numbers of clean and of noisy texts with at least `low` and fewer than `high` characters."""

    low: int
    high: int | None
    clean: int
    noisy: int


@dataclass(frozen=True)
class StrengthFigures:
    """Figures of the rows at one strength, a factor such as 'x0.5'."""

    strength: str
    rows: int
    changed: int
    changed_share: float | None
    cer: float | None
    wer: float | None

    @classmethod
    def of(cls, strength: str, sums: Mapping[str, int]) -> "StrengthFigures":
        """Return the figures for the sums of counts of all rows at a strength."""
        return cls(
            strength,
            sums["rows"],
            sums["changed"],
            ratio(sums["changed"], sums["rows"]),
            ratio(sums["character_errors"], sums["clean_characters"]),
            ratio(sums["word_errors"], sums["clean_words"]),
        )


@dataclass(frozen=True)
class RunOrigin:
    """Recipe, seed, options and sources of a run, from its manifest; empty without a manifest."""

    recipe: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    sources: list[dict[str, Any]] = field(default_factory=list)

    @property
    def recipe_name(self) -> str:
        """The name of the recipe; '' if it is unknown."""
        return str(self.recipe.get("name", ""))

    @property
    def has_strengths(self) -> bool:
        """Whether the shards have a column with the strength of each row."""
        return bool(self.options.get("strength"))

    @property
    def chances(self) -> list[float] | None:
        """The chances of the 12 transforms of the recipe mix_all, by default 0.1 each.

        None for other recipes, and for rows at several strengths.
        """
        if self.has_strengths:
            return None
        try:
            steps = self.recipe["steps"][0]["shuffle"] if self.recipe_name == "mix_all" else None
            return steps and [float(values["p"]) for step in steps for values in step.values()]
        except (LookupError, ValueError, TypeError, AttributeError):
            return None


class ChangedWord(NamedTuple):
    """Words before and after a change, with the names of the transforms that made it."""

    clean: str
    noisy: str
    transforms: tuple[str, ...]


@dataclass(frozen=True)
class ChangedRow:
    """A changed row, the transforms that it drew, and its changed words.

    `changes` is empty if the shards have no column of edits. `strength` is '' without --strength.
    """

    clean: str
    noisy: str
    transforms: tuple[str, ...]
    changes: tuple[ChangedWord, ...] = ()
    strength: str = ""


@dataclass(frozen=True)
class Statistics:
    """Statistics of a run; a ratio is None if its divisor is 0.

    `strengths` is empty for a run without --strength. `cer_of_changed_rows` counts rows by CER in
    steps of 0.01; its last entry counts 1 and above. `examples` are changed rows, evenly spaced
    over the run. `unit` is 'text' for a run with several texts per row, whose texts count as rows
    here, else 'row'. `has_ended` is False for a run that was cut or is still writing.
    """

    origin: RunOrigin
    has_ended: bool
    shards: int
    unit: str
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
    strengths: tuple[StrengthFigures, ...]
    transforms_per_row: tuple[TransformsPerRow, ...]
    transforms: tuple[TransformFigures, ...]
    edit_kinds: EditKinds
    type_token_ratio: TypeTokenRatio
    row_lengths: tuple[LengthBin, ...]
    cer_of_changed_rows: tuple[int, ...]
    examples: tuple[ChangedRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class SampleSizes:
    """Maximum numbers of rows to align, to tokenize and to show, and the rows per batch."""

    aligned_rows: int = 20_000
    token_rows: int = 100_000
    examples: int = 12
    batch_rows: int = 4096


SAMPLES = SampleSizes()


def measure(folder: Path, samples: SampleSizes = SAMPLES) -> Statistics:
    """Return the statistics of all shards in a folder; clean rows of `--with-clean` do not count.

    CER and WER are exact: Levenshtein distances over clean characters and words. Raises SourceError
    if the folder is missing, if it has no shard, or if a shard cannot be read.
    """
    heads = {path: _checked(path) for path in _shards_in(folder)}
    has_edits = all("edits" in schema.names for schema, _ in heads.values())
    counts = _Counts(sum(rows for _, rows in heads.values()), has_edits, samples)
    origin = _origin(folder / "manifest.json")
    wanted = _TYPES.keys() - ({"id"} if has_edits else {"id", "edits"}) | {"paths"}
    wanted |= {"strength"} if origin.has_strengths else set()
    for path, (schema, _) in heads.items():
        columns = [name for name in schema.names if name in wanted]
        for batch in _batches(path, columns, samples.batch_rows):
            for strength, rows in by_strength(batch):
                counts.add(rows, strength)
    unit = "text" if any("paths" in schema.names for schema, _ in heads.values()) else "row"
    run = Run.read(folder, "write")
    return counts.statistics(len(heads), origin, unit, has_ended=run is None or run.has_ended)


def ratio(part: float | None, whole: float | None) -> float | None:
    """Return part / whole; None if the part is None or the whole is 0 or None."""
    return None if part is None or not whole else part / whole


def edit_kind(clean: str, noisy: str) -> tuple[str, bool]:
    """Return the kind of an edit, one of KINDS, and whether its old or new text is white space."""
    kind = "insertion" if not clean else "substitution" if noisy else "deletion"
    return kind, clean.isspace() or noisy.isspace()


def changed_words(
    clean: str, noisy: str, edits: Sequence[Mapping[str, Any]]
) -> tuple[ChangedWord, ...]:
    """Return the words that the edits of a row change; edits of one word are joined.

    `edits` are in the order of the text, and outside them both sides are equal.
    """
    words: list[list[Mapping[str, Any]]] = []
    for edit in edits:
        between = clean[words[-1][-1]["clean_end"] : edit["clean_start"]] if words else " "
        if any(map(str.isspace, between)):
            words.append([edit])
        else:
            words[-1].append(edit)
    return tuple(_changed_word(clean, noisy, word) for word in words)


def _changed_word(clean: str, noisy: str, edits: Sequence[Mapping[str, Any]]) -> ChangedWord:
    """Return the words around edits that no white space separates.

    White space at the end of whole words that are dropped or added is left out.
    """
    first, last = edits[0], edits[-1]
    replaced = clean[first["clean_start"] : last["clean_end"]]
    longer = max(replaced, noisy[first["noisy_start"] : last["noisy_end"]], key=len)
    has_words = not longer.isspace()
    starts, ends = (has_words and side.isspace() for side in (longer[:1], longer[-1:]))
    before = 0 if starts else _word_length(clean[: first["clean_start"]][::-1])
    after = 0 if ends else _word_length(clean[last["clean_end"] :])
    names = dict.fromkeys(name for edit in edits for name in edit["transform"].split("+"))
    return ChangedWord(
        clean[first["clean_start"] - before : last["clean_end"] + after].strip(),
        noisy[first["noisy_start"] - before : last["noisy_end"] + after].strip(),
        tuple(names),
    )


def _word_length(text: str) -> int:
    """Return the number of characters before the first white space of a text."""
    return next((at for at, character in enumerate(text) if character.isspace()), len(text))


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share of n observations (Wilson, 1927).

    Without observations the interval is (0, 1). The share may also be a mean of values from 0 to 1:
    their variance is at most the variance of a share, so the interval is wide enough.
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


def _shards_in(folder: Path) -> list[Path]:
    """Return the shards of a run; raises SourceError without a folder or a shard."""
    if folder.exists() and not folder.is_dir():
        raise SourceError(
            f"{str(folder)!r} is a file, no folder of a run; give the OUT of noisegen augment"
        )
    if not folder.is_dir():
        raise SourceError(f"there is no folder {str(folder)!r}")
    if paths := shard_files(folder):
        return paths
    raise SourceError(f"no part-*.parquet in {str(folder)!r}; give the OUT of noisegen augment")


def _batches(path: Path, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a shard in batches of `rows`; raises SourceError for damaged rows."""
    with reading(str(path)), pq.ParquetFile(path) as shard:
        for batch in shard.iter_batches(rows, columns=columns):
            batch.validate(full=True)  # raises an error for damaged UTF-8
            batch = batch.cast(pa.schema([(f.name, _plain(f.type)) for f in batch.schema]))
            if "copy" in batch.schema.names:
                batch = batch.filter(pc.not_equal(batch["copy"], CLEAN))
            table = one_per_text(pa.Table.from_batches([batch])).combine_chunks()
            if missing := [name for name in ("clean", "noisy") if table[name].null_count]:
                raise SourceError(f"column {missing[0]!r} of {path} has rows without a text")
            yield from table.to_batches()


def by_strength(rows: Any) -> Iterator[tuple[str, Any]]:
    """Yield each strength in a table or batch of a run with its rows; '' without the column."""
    if "strength" not in rows.schema.names:
        yield "", rows
        return
    for strength in pc.unique(rows["strength"]).to_pylist():
        yield strength, rows.filter(pc.equal(rows["strength"], strength))


def _checked(path: Path) -> tuple[pa.Schema, int]:
    """Return the schema and the number of rows of a shard.

    Raises SourceError for a file without the columns that `augment` writes.
    """
    schema, rows = parquet_head(str(path))
    for name in _TYPES:
        if name not in schema.names and name not in ("copy", "edits"):
            raise SourceError(f"{str(path)!r} has no column {name!r}; is it from noisegen augment?")
    for name, kind in zip(schema.names, schema.types, strict=True):
        if "paths" in schema.names and name in PER_TEXT and is_list(kind):
            kind = kind.value_type
        if _plain(kind) != (_TYPES.get(name) or _plain(kind)):
            raise SourceError(f"column {name!r} of {str(path)!r} has the wrong type: {kind}")
    return schema, rows


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which `augment` writes a column that has the type `kind` now.

    pandas and polars may have rewritten a shard, with large strings, views, or other integers.
    """
    if is_string(kind):
        return pa.string()
    if is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind])
    return pa.int32() if pa.types.is_integer(kind) else kind


def _origin(path: Path) -> RunOrigin:
    """Return recipe, seed, options and sources from a manifest; all empty if it is unreadable."""
    try:
        return msgspec.convert(content_of(path), RunOrigin)
    except (OSError, ValueError, AttributeError):
        return RunOrigin()


# Counting.

Item = TypeVar("Item")


@dataclass
class _EvenSample(Generic[Item]):
    """An evenly spaced sample of a stream: every `step`-th item, at most `most` in all.

    When there would be more, every second item is dropped and `step` doubles.
    """

    most: int
    items: list[Item] = field(default_factory=list)
    step: int = 1
    seen: int = 0

    def add(self, make: Callable[[], Item]) -> None:
        """Take the next item of the stream; `make` is called only for an item that is kept."""
        if self.seen % self.step == 0:
            self.items.append(make())
        if len(self.items) > self.most:
            del self.items[1::2]
            self.step *= 2
        self.seen += 1


@dataclass
class _TransformCounts:
    """Counts of rows and edits of one transform; an edit by several transforms counts for each."""

    rows: int = 0
    alone: int = 0
    changed_alone: int = 0
    edits: int = 0
    characters: int = 0
    changed: int = 0


class _TypesAndTokens:
    """Distinct words and all words of every `step`-th row, in clean and in noisy text."""

    def __init__(self, step: int) -> None:
        from nltk.tokenize import TweetTokenizer

        self.step = step
        self.seen = 0
        self.rows = 0
        self.tokens = Counter[str]()
        self.types: dict[str, set[str]] = {"clean": set(), "noisy": set()}
        self._tokenizer = TweetTokenizer(reduce_len=False)

    def add(self, clean: str, noisy: str) -> None:
        """Count the words of the next row if it is a `step`-th row."""
        self.seen += 1
        if (self.seen - 1) % self.step:
            return
        self.rows += 1
        clean_words = self._words(clean)
        noisy_words = clean_words if clean == noisy else self._words(noisy)
        for side, words in (("clean", clean_words), ("noisy", noisy_words)):
            self.tokens[side] += len(words)
            self.types[side].update(words)

    def _words(self, text: str) -> list[str]:
        words: list[str] = []
        for part in _PARTS.finditer(text):
            words += map(sys.intern, self._tokenizer.tokenize(part[0]))
        return words

    def ratio(self) -> TypeTokenRatio:
        """Return the type/token ratios of the rows counted so far."""
        clean, noisy = (ratio(len(self.types[x]), self.tokens[x]) for x in ("clean", "noisy"))
        return TypeTokenRatio(self.rows, self.step > 1, clean, noisy, ratio(noisy, clean))


class _Counts:
    """Counts of rows, words, errors and edits in all batches so far.

    `rows` is the number of rows of the run, from the footers of its shards. Without a column
    `edits`, an even sample of the changed rows is aligned to find the kinds of edits.
    """

    def __init__(self, rows: int, has_edits: bool, samples: SampleSizes) -> None:
        self.has_edits = has_edits
        self.sums = Counter[str]()
        self.by_strength = defaultdict[str, Counter[str]](Counter)  # the sums of each strength
        self.copies = set[int]()
        self.rows_by_drawn = Counter[int]()  # rows by the number of transforms that they drew
        self.transforms = defaultdict[str, _TransformCounts](_TransformCounts)
        self.lengths = {side: np.zeros(len(LENGTH_EDGES), np.int64) for side in ("clean", "noisy")}
        self.cer_bins = Counter[int]()
        self.kinds = Counter[tuple[str, bool]]()
        self.aligned = _EvenSample[Counter[tuple[str, bool]]](samples.aligned_rows)
        self.examples = _EvenSample[ChangedRow](samples.examples)
        self.words = _TypesAndTokens(max(1, -(-rows // samples.token_rows)))

    def add(self, batch: pa.RecordBatch, strength: str) -> None:
        """Count the rows of a batch at one strength, which may lack the columns copy and edits."""
        counted_before = self.sums.copy()
        for side, bins in self.lengths.items():
            lengths = pc.utf8_length(batch[side]).to_numpy()
            self.sums[f"{side}_characters"] += int(lengths.sum())
            bins += np.bincount(np.digitize(lengths, LENGTH_EDGES) - 1, minlength=len(bins))
        columns = batch.to_pydict()
        clean, noisy = columns["clean"], columns["noisy"]
        self.copies.update(columns.get("copy", []))
        self.sums["rows"] += len(clean)
        self.sums["clean_words"] += sum(map(words_in, clean))
        edits = columns.get("edits", [None] * len(clean))
        # Other copies and strengths would count their clean text again
        is_one = strength == next(iter(self.by_strength), strength)
        first = [is_one and not copy for copy in columns.get("copy", [0] * len(clean))]
        for before, after, drawn, row_edits, is_first in zip(
            clean, noisy, columns["transforms"], edits, first, strict=True
        ):
            if is_first:
                self.words.add(before, after)
            self._add_drawn(drawn or (), before != after)
            self._add_edits(before, after, row_edits or ())
            if before != after:
                row = ChangedRow(before, after, tuple(drawn or ()), (), strength)
                self._add_changed(row, row_edits or ())
        self.by_strength[strength] += self.sums - counted_before

    def _add_drawn(self, drawn: Sequence[str], is_changed: bool) -> None:
        """Count the transforms that one row drew."""
        self.rows_by_drawn[len(drawn)] += 1
        names = set(drawn)
        for name in names:
            counts = self.transforms[name]
            counts.rows += 1
            if len(names) == 1:
                counts.alone += 1
                counts.changed_alone += is_changed

    def _add_edits(self, clean: str, noisy: str, edits: Sequence[Mapping[str, Any]]) -> None:
        """Count the edits of one row, from the column `edits`."""
        names = set[str]()
        for edit in edits:
            replaced = clean[edit["clean_start"] : edit["clean_end"]]
            written = noisy[edit["noisy_start"] : edit["noisy_end"]]
            self.kinds[edit_kind(replaced, written)] += 1
            errors = character_errors(replaced, written)
            for name in edit["transform"].split("+"):
                self.transforms[name].edits += 1
                self.transforms[name].characters += errors
                names.add(name)
        for name in names:
            self.transforms[name].changed += 1

    def _add_changed(self, row: ChangedRow, edits: Sequence[Mapping[str, Any]]) -> None:
        """Count the errors of a changed row, whose changed words are not known yet."""
        clean, noisy = row.clean, row.noisy
        errors = character_errors(clean, noisy)
        self.sums.update(changed=1, character_errors=errors, word_errors=word_errors(clean, noisy))
        cer_bin = errors * CER_BINS // len(clean) if clean else CER_BINS
        self.cer_bins[min(cer_bin, CER_BINS)] += 1
        if not self.has_edits:
            self.aligned.add(lambda: _aligned_kinds(clean, noisy))
        self.examples.add(lambda: replace(row, changes=changed_words(clean, noisy, edits)))

    def statistics(
        self, shards: int, origin: RunOrigin, unit: str, *, has_ended: bool
    ) -> Statistics:
        """Return the statistics of all batches, with the arguments copied into them."""
        sums = self.sums
        of_strengths = [pair for pair in self.by_strength.items() if pair[0]]
        return Statistics(
            origin=origin,
            has_ended=has_ended,
            shards=shards,
            unit=unit,
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
            strengths=tuple(starmap(StrengthFigures.of, of_strengths)),
            transforms_per_row=self._per_row(origin.chances),
            transforms=tuple(self._transforms()),
            edit_kinds=self._edit_kinds(),
            type_token_ratio=self.words.ratio(),
            row_lengths=self._length_bins(),
            cer_of_changed_rows=tuple(self.cer_bins[number] for number in range(CER_BINS + 1)),
            examples=tuple(self.examples.items),
        )

    def _transforms(self) -> Iterator[TransformFigures]:
        for name, counts in sorted(self.transforms.items()):
            yield TransformFigures(
                name=name,
                rows=counts.rows,
                rows_alone=counts.alone,
                changed_alone=counts.changed_alone,
                changed_alone_share=ratio(counts.changed_alone, counts.alone),
                edits=counts.edits if self.has_edits else None,
                characters=counts.characters if self.has_edits else None,
                changed=counts.changed if self.has_edits else None,
            )

    def _edit_kinds(self) -> EditKinds:
        counts = sum(self.aligned.items, self.kinds)
        kinds = tuple(EditKind(kind, counts[kind, False], counts[kind, True]) for kind in KINDS)
        if self.has_edits:
            return EditKinds("edits", self.sums["changed"], False, kinds)
        return EditKinds("alignment", len(self.aligned.items), self.aligned.step > 1, kinds)

    def _length_bins(self) -> tuple[LengthBin, ...]:
        clean, noisy = (self.lengths[side].tolist() for side in ("clean", "noisy"))
        bounds = pairwise([*LENGTH_EDGES, None])
        return tuple(
            LengthBin(low or 0, high, clean[number], noisy[number])
            for number, (low, high) in enumerate(bounds)
        )

    def _per_row(self, chances: Sequence[float] | None) -> tuple[TransformsPerRow, ...]:
        """Return the numbers of rows that drew 0, 1, 2, ... transforms: counted, and expected.

        Transforms are drawn independently, each with its own of the `chances`. So the expected
        distribution is the convolution of one two-point distribution per transform.
        """
        expected = np.array([float(self.sums["rows"])])
        for chance in chances or ():
            expected = np.convolve(expected, [1 - chance, chance])
        numbers = range(max([*self.rows_by_drawn, len(expected) - 1]) + 1)
        expected = np.pad(expected, (0, len(numbers)))
        return tuple(
            TransformsPerRow(
                transforms=number,
                rows=self.rows_by_drawn[number],
                expected=None if chances is None else float(expected[number]),
            )
            for number in numbers
        )


def _aligned_kinds(clean: str, noisy: str) -> Counter[tuple[str, bool]]:
    """Count the edits of each kind in a shortest alignment of two texts."""
    kinds = Counter[tuple[str, bool]]()
    for is_equal, start, stop, noisy_start, noisy_stop in aligned(clean, noisy):
        if not is_equal:
            kinds[edit_kind(clean[start:stop], noisy[noisy_start:noisy_stop])] += 1
    return kinds
