"""Profiles: what was counted in real pairs, as a folder of small files, and the chances it makes.

A profile holds counts, no chances and no sentence: single words, what stands for them, gaps between
words with at most two words in them, and pieces of words. What is read is bounded and checked, as a
profile may come from anywhere.

Compiled to a channel, counts are smoothed towards coarser ones: a word in its case, the word in any
case, words of its length and case; a gap before its word, the gap before any word; letters between
their neighbours, the letters by their place in the word. The arithmetic is that of Python's floats,
the results are whole numbers, so that all machines have the same.
"""

import hashlib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from noisegen.errors import SourceError, UsageError
from noisegen.noising.lexicon import bounded_batches
from noisegen.text.case import CASES, SHAPES, bare, lower, shape_of
from noisegen.version import __version__

START, END = "^", "$"  # stand for the edges of a word or row; no word looks so
SAME, SMALL_CASE, TITLE_CASE, UPPER_CASE = range(4)  # how a form is written
KEPT, GONE, OTHER = "kept", "gone", "other"  # what became of a word; else how it is written, or ...
WRITTEN = (KEPT, "small", "title", "upper")
LETTERS = ("", "letters1", "letters2", "letters3")  # ... in how many places its letters changed
CHANGES = (*WRITTEN, *LETTERS[1:], GONE, OTHER)
LETTERS_MAX = 3  # of a part of a word that becomes another
PHRASE_MAX = 3  # words that become fewer, as one: want to -> wanna
_IDEOGRAPHS = "\u2e80"  # from here on a letter may stand beside any other
HABITS: dict[str, Callable[[str], str]] = {"small": lower, "upper": str.upper, "bare": bare}

FACTOR_BITS = 8  # of the fraction of a factor
FACTORS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 11.0, 18.0)
WEIGHT_TOTAL = 1 << 16

FORMAT = 2  # of the files; raise it when a change alters what they mean
FORMATS = (1, FORMAT)  # that are read: in the first all rows must change, and there is no phrase
HEAD = "profile.json"
TABLE_ROWS_MAX = 2_000_000
TABLE_BYTES_MAX = 1 << 29  # of a table in memory
FILE_BYTES_MAX = 1 << 28
CHARACTERS_MAX = 200  # of a text in a table
COUNT_MAX = 1 << 40


class WordKey(NamedTuple):
    """A word or phrase (small letters) in a case, what stands for it, and how that is written.

    A phrase is words with a space between two, in the case of the first.

    `noisy` equal to `clean` and SAME: it stayed; '': it is gone, and `written` says how the next
    word is written then; None: it became something that is not kept.
    """

    clean: str
    case: int
    noisy: str | None
    written: int


class GapKey(NamedTuple):
    """A gap before the word `right` ('': any other), and what stands for it (None: not kept).

    `initial`: it begins its row. `written`: how the word behind is written then.
    """

    right: str
    initial: bool
    gap: str
    noisy: str | None
    written: int


class LetterKey(NamedTuple):
    """Up to three letters between two others became `noisy`; equal: words that have them there."""

    before: str
    clean: str
    after: str
    noisy: str


class ShapeKey(NamedTuple):
    """What became of a word of this shape that is in no table: one of `CHANGES`."""

    shape: int
    change: str


class RowKey(NamedTuple):
    """Words of a row, how many of them changed, and how many gaps did."""

    words: int
    word_edits: int
    gap_edits: int


class Factor(NamedTuple):
    """Factors of the words and gaps of a row, in 1/256; their weight, out of 2^16 for all.

    `must`: a row in which nothing is hit is changed where it came nearest to it.
    """

    words: int
    gaps: int
    weight: Annotated[int, msgspec.Meta(gt=0, le=WEIGHT_TOTAL)]
    must: bool = True


Factors = list[Factor]


class HabitKey(NamedTuple):
    """A habit of whole rows, one of `HABITS`, and whether a row that could show it did."""

    habit: str
    shown: bool


@dataclass(frozen=True)
class Profile:
    """Counts of what happened in real pairs.

    `factors` scale the chances of whole rows, `consistency` is the share of rows, out of 256, in
    which a word is written the same way each time (see `row_factors`).
    `source` and `license` are of the pairs, where they are known.
    """

    lang: str
    totals: Counter[str] = field(default_factory=Counter)
    words: Counter[WordKey] = field(default_factory=Counter)
    gaps: Counter[GapKey] = field(default_factory=Counter)
    letters: Counter[LetterKey] = field(default_factory=Counter)
    shapes: Counter[ShapeKey] = field(default_factory=Counter)
    rows: Counter[RowKey] = field(default_factory=Counter)
    habits: Counter[HabitKey] = field(default_factory=Counter)
    factors: Factors = field(default_factory=list)
    consistency: int = 0
    source: str = ""
    license: str = ""

    @property
    def digest(self) -> str:
        """A hash of all that is counted."""
        content = hashlib.sha256(self.lang.encode())
        for name in TABLES:
            lines = sorted(map(repr, getattr(self, name).items()))
            content.update("\n".join([name, *lines]).encode("utf-8", "surrogatepass"))
        return content.hexdigest()[:16]


def merged(profiles: Sequence[Profile]) -> Profile:
    """Add up the counts of profiles of one language; raises UsageError for several languages."""
    langs = sorted({profile.lang for profile in profiles})
    if len(langs) != 1:
        raise UsageError(f"profiles of several languages cannot be merged: {', '.join(langs)}")
    sums: dict[str, Any] = {name: Counter() for name in ("totals", *TABLES)}
    for profile in profiles:
        for name, counts in sums.items():
            counts.update(getattr(profile, name))
    sources, licenses = (
        dict.fromkeys(getattr(one, name) for one in profiles if getattr(one, name))
        for name in ("source", "license")
    )
    pairs = max(1, sums["totals"]["pairs"])
    consistency = sum(one.consistency * one.totals["pairs"] for one in profiles) // pairs
    return Profile(
        langs[0], **sums, factors=_mixed(profiles), consistency=consistency,
        source="; ".join(sources), license=" AND ".join(licenses),
    )  # fmt: skip


def _mixed(profiles: Sequence[Profile]) -> Factors:
    """Return the factors of all profiles, each with a weight by its pairs."""
    weights: Counter[tuple[int, int, bool]] = Counter()
    for profile in profiles:
        for words, gaps, weight, must in profile.factors:
            weights[words, gaps, must] += weight * profile.totals["pairs"]
    total = max(1, weights.total())
    shares = {key: round(weight * WEIGHT_TOTAL / total) for key, weight in weights.items()}
    return [
        Factor(words, gaps, share, must)
        for (words, gaps, must), share in sorted(shares.items())
        if share
    ]


_BELOW = {"case": len(CASES), "written": len(WRITTEN), "shape": SHAPES, "count": COUNT_MAX}
_ONE_OF = {"change": CHANGES, "habit": tuple(HABITS)}
_LINE_BREAK = "[\n\r\v\f\x1c-\x1e\u0085\u2028\u2029]"


def _schema(key: type) -> pa.Schema:
    """Return the columns of a table whose rows are keys of a kind and their count."""
    kinds = {str: pa.string(), str | None: pa.string(), bool: pa.bool_()}
    columns = [
        pa.field(
            name,
            pa.int8() if name in _BELOW else kinds.get(kind, pa.int32()),
            nullable=kind == str | None,
        )
        for name, kind in key.__annotations__.items()
    ]
    return pa.schema([*columns, pa.field("count", pa.int64(), nullable=False)])


_KEYS = {
    "words": WordKey, "gaps": GapKey, "letters": LetterKey, "shapes": ShapeKey, "rows": RowKey,
    "habits": HabitKey,
}  # fmt: skip
TABLES = {name: (key, _schema(key)) for name, key in _KEYS.items()}


class ProfileHead(msgspec.Struct, omit_defaults=True):
    """The content of `HEAD`."""

    format: int
    lang: str
    version: str
    digest: str
    totals: dict[str, Annotated[int, msgspec.Meta(ge=0, lt=COUNT_MAX)]]
    factors: Annotated[
        list[Factor],
        msgspec.Meta(min_length=1, max_length=2 * len(FACTORS) ** 2),
    ]
    consistency: Annotated[int, msgspec.Meta(ge=0, le=1 << FACTOR_BITS)] = 0
    source: str = ""
    license: str = ""


def load(folder: str | Path) -> Profile:
    """Read a profile; raises SourceError saying what is wrong with it and what to do."""
    folder = Path(folder)
    head = _head(folder)
    tables = {name: _counts(folder / f"{name}.parquet", name) for name in TABLES}
    profile = Profile(
        head.lang, Counter(head.totals), **tables, factors=head.factors,
        consistency=head.consistency, source=head.source, license=head.license,
    )  # fmt: skip
    if profile.digest != head.digest:
        raise SourceError(
            f"profile {folder} is damaged: its files do not belong together; learn it again"
        )
    return profile


def _head(folder: Path) -> ProfileHead:
    path = folder / HEAD
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ValueError("it is too large")
        content = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        if content.get("format") not in FORMATS:
            raise SourceError(
                f"profile {folder} has format {content.get('format')!r}, this noisegen "
                f"{__version__} reads {' and '.join(map(str, FORMATS))}; learn it again from its "
                "pairs"
            )
        head = msgspec.convert(content, ProfileHead)
        grid = {int(factor * (1 << FACTOR_BITS)) for factor in FACTORS}
        if not {factor for pair in head.factors for factor in pair[:2]} <= grid:
            raise ValueError("its factors cannot be")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(
            f"{folder} is no profile, it has no {HEAD}; make one: noisegen learn PAIRS -o {folder}"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(
            f"{path} cannot be read as the head of a profile: {reason}; learn the profile again"
        ) from error
    return head


def _counts(path: Path, name: str) -> Counter[Any]:
    """Read a table of counts; raises SourceError for a file that is damaged, foreign or huge."""
    key, schema = TABLES[name]
    counts: Counter[Any] = Counter()
    size = 0
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ValueError(f"over {FILE_BYTES_MAX:,} bytes")
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows > TABLE_ROWS_MAX:
                raise ValueError(f"over {TABLE_ROWS_MAX:,} rows")
            if not file.schema_arrow.equals(schema):
                raise ValueError("its columns are not those of a profile")
        for batch in bounded_batches(path, schema.names):
            size += batch.nbytes
            if size > TABLE_BYTES_MAX:
                raise ValueError(f"over {TABLE_BYTES_MAX:,} bytes in memory")
            batch.validate(full=True)
            for column, values in zip(schema, batch.columns, strict=True):
                _check(column, values)
            for *parts, number in zip(*map(pa.Array.to_pylist, batch.columns), strict=True):
                counts[key(*parts)] += number
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"{path} cannot be read as part of a profile: {reason}") from error
    return counts


def _check(column: pa.Field, values: pa.Array) -> None:
    """Raise ValueError for texts that are long or have line breaks, and numbers out of range."""
    if not column.nullable and values.null_count:
        raise ValueError(f"column {column.name!r} has empty places")
    if pa.types.is_string(values.type):
        long = pc.any(pc.greater(pc.utf8_length(values), CHARACTERS_MAX)).as_py()
        if long or pc.any(pc.match_substring_regex(values, _LINE_BREAK)).as_py():
            raise ValueError(f"a text of column {column.name!r} is too long or has a line break")
        if column.name in _ONE_OF and not set(values.to_pylist()) <= set(_ONE_OF[column.name]):
            raise ValueError(f"column {column.name!r} has an unknown name")
    elif not pa.types.is_boolean(values.type):
        low, high = pc.min_max(values).as_py().values()
        if low is not None and not 0 <= low <= high < _BELOW.get(column.name, COUNT_MAX):
            raise ValueError(f"a number of column {column.name!r} is out of range")


# The channel.

CHANCE_BITS = 32
WEIGHT_BITS = 20
# Counts that a coarser estimate is worth.
WORD_PRIOR, CASE_PRIOR, SHAPE_PRIOR, GAP_PRIOR, LETTER_PRIOR = 3.0, 4.0, 4.0, 10.0, 3.0
FORM, AS_WRITTEN, WORD_GONE, SOME_LETTERS, COARSER = range(5)  # kinds of option


class Option(NamedTuple):
    """What a thing may become.

    FORM: `noisy`, in small letters for words, `how` it is written (see `profile`); AS_WRITTEN: the
    word itself, written so; WORD_GONE; SOME_LETTERS: changes of letters in `how` many places;
    COARSER: what group `how` says, or the group of the word's shape for -1. Of gaps and words gone
    `how` says how the next word is written.
    """

    kind: int
    noisy: str = ""
    how: int = SAME


BY_SHAPE = Option(COARSER, "", -1)
_OF_CHANGE = {  # what a change of `CHANGES` is as an option
    **{name: Option(AS_WRITTEN, "", written) for written, name in enumerate(WRITTEN)},
    **{name: Option(SOME_LETTERS, "", places) for places, name in enumerate(LETTERS)},
    OTHER: Option(SOME_LETTERS, "", 1),
    GONE: Option(WORD_GONE),
}
Weights = dict[Option, float]
Outcomes = Counter[tuple[str | None, int]]  # what stands for a thing, and how it is written


class OptionGroup(NamedTuple):
    """What may become of a thing.

    `chance` is out of 2^32; of the options one is drawn by `bounds`, cumulative out of 2^32.
    """

    chance: int
    options: tuple[Option, ...]
    bounds: tuple[int, ...]


@dataclass(frozen=True)
class Channel:
    """All groups, and which of them a thing has.

    `words`: by word and case; `shapes`: by shape; `gaps`: by word behind ('': any), whether it
    begins its row, gap; `letters`: by neighbours and letters, or ('', letters, place): group and
    weight. `habits`: cumulative chances of the habits of rows. `pairs`: neighbouring letters, with
    START and END, that words and what was written for them have.
    """

    lang: str
    groups: list[OptionGroup] = field(default_factory=list)
    words: dict[tuple[str, int], int] = field(default_factory=dict)
    shapes: list[int] = field(default_factory=list)
    gaps: dict[tuple[str, bool, str], int] = field(default_factory=dict)
    letters: dict[tuple[str, str, str], tuple[int, int]] = field(default_factory=dict)
    habits: list[int] = field(default_factory=list)
    pairs: set[str] = field(default_factory=set)

    def lacks(self, word: str, noisy: str) -> bool:
        """Tell whether the noisy form has neighbouring letters that are new to the language."""
        made, known = (set(map("".join, pairwise(f"{START}{form}{END}"))) for form in (noisy, word))
        return any(map(letter_pairs, made - self.pairs - known))

    def add(self, chance: float, weights: Mapping[Option, float]) -> int:
        """Add a group and return its number."""
        options = tuple(option for option, weight in weights.items() if weight > 0)
        sums = list(accumulate(weights[option] for option in options))
        bounds = tuple(int(part / sums[-1] * (1 << CHANCE_BITS)) for part in sums)
        whole = int(min(chance, 1.0) * (1 << CHANCE_BITS)) if options else 0
        self.groups.append(OptionGroup(whole, options, bounds))
        return len(self.groups) - 1


def letter_pairs(framed: str) -> set[str]:
    """Return the neighbouring letters of a text, START and END among them, but no ideographs."""
    return {
        a + b
        for a, b in pairwise(framed)
        if max(a, b) < _IDEOGRAPHS and all(c in (START, END) or _is_letter(c) for c in (a, b))
    }


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"


def compiled(profile: Profile) -> Channel:
    """Return the chances of a profile."""
    channel = Channel(profile.lang)
    _add_shapes(channel, profile)
    _add_words(channel, profile)
    _add_gaps(channel, profile.gaps)
    _add_letters(channel, profile.letters)
    _add_pairs(channel, profile)
    total = 0.0  # with all habits a row still may have none
    for habit in HABITS:
        shown, other = (profile.habits.get(HabitKey(habit, shows), 0) for shows in (True, False))
        total += shown / max(1, shown + other)
        channel.habits.append(int(min(total, 1.0) * (1 << CHANCE_BITS)))
    return channel


def _add_pairs(channel: Channel, profile: Profile) -> None:
    """Add the neighbouring letters of the words, of what they became, and of changed parts."""
    forms = {form for key in profile.words for form in (key.clean, key.noisy) if form}
    for word in {word for form in forms for word in form.split(" ")}:
        channel.pairs.update(letter_pairs(f"{START}{word}{END}"))
    for before, _, after, noisy in profile.letters:
        channel.pairs.update(letter_pairs(f"{before}{noisy}{after}"))


def _smoothed(changed: float, total: float, rate: float, prior: float) -> float:
    """Return the rate of a few cases, with `prior` more that have a coarser rate."""
    return (changed + prior * rate) / (total + prior)


def _add_shapes(channel: Channel, profile: Profile) -> None:
    """Add the groups of words that nothing is known of."""
    changed = [Counter[str]() for _ in range(SHAPES)]
    for key, count in profile.shapes.items():
        changed[key.shape][key.change] += count
    kept = [counts.pop(KEPT, 0) for counts in changed]
    every = sum(changed, Counter[str]())
    rate = every.total() / max(1, sum(kept) + every.total())
    every = every or Counter({LETTERS[1]: 1})
    for counts, same in zip(changed[:-1], kept, strict=False):
        weights: Weights = defaultdict(float)
        for change in sorted(every):
            share = SHAPE_PRIOR * max(rate, 1e-9) * every[change] / every.total()
            weights[_OF_CHANGE[change]] += counts[change] + share
        chance = _smoothed(counts.total(), same + counts.total(), rate, SHAPE_PRIOR)
        channel.shapes.append(channel.add(chance, weights))
    channel.shapes.append(_add_numbers(channel, changed[-1], kept[-1]))


def _add_numbers(channel: Channel, changed: Counter[str], kept: int) -> int:
    """Add the group of numbers: they go or change their case as those of the pairs, or stay."""
    weights = {_OF_CHANGE[name]: float(changed[name]) for name in (*WRITTEN[1:], GONE)}
    number = channel.add(sum(weights.values()) / max(1, changed.total() + kept), weights)
    if not channel.groups[number].options:  # for known numbers that became what is not kept
        channel.groups[number] = OptionGroup(0, (Option(AS_WRITTEN),), (1 << CHANCE_BITS,))
    return number


def _add_words(channel: Channel, profile: Profile) -> None:
    """Add four groups for each word that is known, one for each case.

    The options of a group are its own, those of the word in any case, and those of its shape.
    """
    seen, changed = Counter[int](), Counter[int]()  # words of each shape
    by_word: dict[str, list[Outcomes]] = defaultdict(lambda: [Counter() for _ in CASES])
    for key, count in sorted(profile.words.items(), key=lambda item: item[0][:2]):
        by_word[key.clean][key.case][key.noisy, key.written] += count
        if " " not in key.clean:
            shape = shape_of(key.clean, key.case)
            seen[shape] += count
            changed[shape] += count * ((key.noisy, key.written) != (key.clean, SAME))
    for unknown, count in profile.shapes.items():
        seen[unknown.shape] += count
        changed[unknown.shape] += count * (unknown.change != KEPT)
    overall = changed.total() / max(1, seen.total())
    for word, cases in by_word.items():
        pooled: Outcomes = Counter()  # in all cases, but for how it is written
        for outcomes in cases:
            for (noisy, _), count in outcomes.items():
                if noisy != word:
                    pooled[noisy, SAME] += count
        totals = [outcomes.total() for outcomes in cases]
        shape = shape_of(word, max(range(len(CASES)), key=lambda case: (totals[case], case)))
        prior = WORD_PRIOR * _smoothed(changed[shape], seen[shape], overall, SHAPE_PRIOR)
        # A number stays where the pairs did not change it; a phrase has no letters to change.
        prior *= shape != SHAPES - 1 and " " not in word
        weight = pooled.total() + prior
        rate = weight / (sum(totals) + WORD_PRIOR)
        share = CASE_PRIOR * rate / weight if weight else 0.0
        for case, mine in enumerate(cases):
            weights: Weights = defaultdict(float)
            for outcomes, factor in ((mine, 1.0), (pooled, share)):
                for (noisy, written), count in outcomes.items():
                    if (noisy, written) != (word, SAME):
                        kind = FORM if noisy else WORD_GONE
                        option = BY_SHAPE if noisy is None else Option(kind, noisy, written)
                        weights[option] += count * factor
            weights[BY_SHAPE] += prior * share
            chance = _smoothed(totals[case] - mine[word, SAME], totals[case], rate, CASE_PRIOR)
            channel.words[word, case] = channel.add(chance, weights)


def _add_gaps(channel: Channel, counts: Mapping[GapKey, int]) -> None:
    """Add the groups of gaps, and of gaps before certain words."""
    by_gap: dict[tuple[bool, str], dict[str, Outcomes]] = {}
    for key, count in sorted(counts.items(), key=lambda item: item[0][:3]):
        rights = by_gap.setdefault((key.initial, key.gap), {})
        for right in {key.right, ""}:
            rights.setdefault(right, Counter())[key.noisy, key.written] += count
    for (initial, gap), rights in by_gap.items():
        every = rights.pop("")
        rate = 1 - every[gap, SAME] / every.total()
        base = channel.gaps["", initial, gap] = channel.add(rate, _form_weights(every, gap))
        for right, outcomes in rights.items():
            group, _ = _add_finer(channel, outcomes, gap, (base, rate), GAP_PRIOR)
            channel.gaps[right, initial, gap] = group


def _add_letters(channel: Channel, counts: Mapping[LetterKey, int]) -> None:
    """Add the groups of parts of words, by place (START, END or '') and by neighbours."""
    near: dict[tuple[str, str, str], Outcomes] = defaultdict(Counter)
    far: dict[tuple[str, str, str], Outcomes] = defaultdict(Counter)
    for (before, part, after, noisy), count in sorted(counts.items()):
        near[before, part, after][noisy, SAME] += count
        far["", part, _place(before, after)][noisy, SAME] += count
    coarser: dict[tuple[str, str, str], tuple[int, float]] = {}
    for key, outcomes in far.items():
        # Words that have a part, and changes of it, are counted apart.
        rate = (outcomes.total() - outcomes[key[1], SAME]) / (outcomes.total() + 1)
        group = channel.add(rate, _form_weights(outcomes, key[1]))
        coarser[key] = group, rate
        channel.letters[key] = group, int(rate * (1 << WEIGHT_BITS))
    for key, outcomes in near.items():
        base = coarser["", key[1], _place(key[0], key[2])]
        group, chance = _add_finer(channel, outcomes, key[1], base, LETTER_PRIOR)
        channel.letters[key] = group, int(chance * (1 << WEIGHT_BITS))


def _place(before: str, after: str) -> str:
    return START if before == START else END if after == END else ""


def _form_weights(outcomes: Outcomes, clean: str) -> Weights:
    """Return the weights of the forms that a gap or letters became, in a fixed order."""
    changed = sorted(
        (noisy, written, count)
        for (noisy, written), count in outcomes.items()
        if noisy is not None and (noisy, written) != (clean, SAME)
    )
    return {Option(FORM, noisy, written): float(count) for noisy, written, count in changed}


def _add_finer(
    channel: Channel, outcomes: Outcomes, clean: str, coarser: tuple[int, float], prior: float
) -> tuple[int, float]:
    """Add the group of a thing for which there is a coarser group with a rate; return it, its rate.

    What the thing became that was not kept is drawn from the coarser group, if it has options.
    """
    base, rate = coarser
    weights = _form_weights(outcomes, clean)
    if channel.groups[base].options:
        weights[Option(COARSER, "", base)] = prior * rate + outcomes[None, SAME]
    total = outcomes.total()
    chance = _smoothed(total - outcomes[clean, SAME], total, rate, prior)
    return channel.add(chance, weights), chance
