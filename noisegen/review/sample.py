"""Make a review file: a blind sample for the first stage, and more rows for the second stage.

The rows come from outputs of `noisegen augment`, or from clean text that is noised here. If the
clean text comes from real pairs, rows with the real noise of the pairs are judged, too.
"""

import json
import secrets
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.augmentation import NoiseRequest
from noisegen.augmentation.plan import recipe_of
from noisegen.data.columns import by_reason
from noisegen.data.files import shard_files
from noisegen.errors import SourceError, UsageError
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import load_code
from noisegen.noising.rng import id_numbers, row_keys, stream_key
from noisegen.options import Strings, decode, listed, option, public
from noisegen.review import store
from noisegen.review.sources import SLOT_COLUMNS, ReviewSource, strength_labels
from noisegen.review.store import Judged, Stratum
from noisegen.runs.manifest import counted
from noisegen.runs.options import Folder, IdColumn, Lang, Limit, TextColumn
from noisegen.text.spans import PROTECTED

TEXT_MAX = 2_000  # maximum characters of a text that a reviewer is asked to read
BEST = "best"

Row = dict[str, Any]  # {column: value}; rows are drawn in the order of "key", a random number
StratumName = tuple[str, str, str]
Sample = list[tuple[Stratum, list[Row]]]


@dataclass(frozen=True)
class MakeOptions(NoiseRequest):
    """Options of `make`: rows to draw from, strengths of their noise, and the file to write.

    `sources` are outputs of `noisegen augment`, with a strength each or with several, or clean
    text. Clean text is noised at `strengths` by the recipe and other options of `augment`.
    """

    out: Annotated[
        Folder,
        option(
            "Review file to create, or to extend with --more",
            "-o",
            "--out",
            metavar="REVIEW.sqlite",
        ),
    ]
    _: KW_ONLY
    lang: Lang = "en"
    lang_column: Annotated[
        str, option("Column with the language of each row (where there is none: --lang)")
    ] = "lang"
    strengths: Annotated[
        str,
        option(
            "Strengths of the noise: 0.05,0.1,0.2 sets every rate of the recipe, x0.5,x1,x2 "
            "multiplies the rates below 1; for outputs of augment: a name for each",
            metavar="S,S,S",
        ),
    ] = ""
    rows: Annotated[int, option("Rows per language and strength in the first stage", ge=1)] = (
        store.FIRST_STAGE
    )
    with_real: Annotated[
        bool,
        option(
            "SOURCE is real pairs, as for noisegen realism: draw as many rows with the noise of "
            "people, and noise others at --strengths (default: x1)"
        ),
    ] = False
    text_column: TextColumn = "text"
    id_column: IdColumn = None
    limit: Limit = None


@dataclass(frozen=True)
class MoreOptions:
    """Options of `more`: the review to extend, and the number and strength of the new rows.

    `sources` are needed if the sources of the review have moved, `code` if the review was made with
    `code`.
    """

    out: Annotated[Folder, option("Review file", "-o", "--out", metavar="REVIEW.sqlite")]
    _: KW_ONLY
    rows: Annotated[
        int, option("Rows per language and recipe in the second stage", "--more", ge=1)
    ] = store.SECOND_STAGE
    strength: Annotated[
        str,
        option(
            "Strength that --more adds (best: the most realistic of the first stage)",
            metavar="best|S",
        ),
    ] = BEST
    sources: Annotated[Strings, option("Sources, if they have moved")] = ()
    code: Annotated[Strings, option("Python files with transforms")] = ()


@dataclass(frozen=True)
class SampleSummary:
    """Counts of the rows that were added to a review.

    `drawn` has the number of added rows per stratum (language, recipe, strength), and `asked` the
    number requested for each. `unjudged` counts rows of the first stage that nobody has judged yet,
    so that the best strength was chosen without them. `dropped` counts unreadable rows and files of
    the sources, by reason.
    """

    path: Path
    stage: int
    asked: int
    drawn: list[tuple[Stratum, int]]
    dropped: Counter[str]
    unjudged: int = 0

    @property
    def items(self) -> int:
        """The number of rows added from all strata."""
        return sum(count for _, count in self.drawn)

    def lines(self) -> list[str]:
        """Return a line for each stratum, then lines for unjudged and dropped rows."""
        lines = []
        for stratum, count in self.drawn:
            rows, same = counted(stratum.rows, "row"), stratum.rows - stratum.changed
            line = f"drew {counted(count, 'row')} of {stratum.changed:,} changed; "
            line += f"{same:,} of {rows} unchanged"
            line += f"; {stratum.too_long:,} too long" if stratum.too_long else ""
            line += f"; {self.asked - count:,} fewer than asked" if count < self.asked else ""
            if not stratum.changed:
                line = f"none of {rows} changed; nothing drawn"
            lines.append(f"{stratum.lang}, {stratum.recipe} at {stratum.strength}: {line}")
        if self.unjudged:
            left = counted(self.unjudged, "row")
            lines.append(
                f"warning: {left} of the first stage not judged yet; the best strength may change"
            )
        if self.dropped:
            lines.append(f"dropped or damaged: {by_reason(self.dropped)}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain data that JSON can hold."""
        strata = [{**stratum._asdict(), "drawn": count} for stratum, count in self.drawn]
        added = {"stage": self.stage, "items": self.items, "unjudged": self.unjudged}
        return {"out": str(self.path), **added, "groups": strata, "dropped": dict(self.dropped)}


@public
def make(
    sources: Strings,
    out: str | Path,
    *,
    transforms: Strings = (),
    recipe: str | Recipe = "ugc",
    values: Mapping[str, object] | None = None,
    seed: int = 0,
    lang: str = "en",
    protect: str = PROTECTED,
    code: Strings = (),
    nlaug_data: str | None = None,
    tagger: Literal["rule", "spacy"] = "rule",
    lang_column: str = "lang",
    strengths: str = "",
    rows: int = 15,
    with_real: bool = False,
    text_column: str = "text",
    id_column: str | None = None,
    limit: int | None = None,
) -> SampleSummary:
    """Draw a blind sample of `rows` changed rows at every strength and write it as a review.

    `sources` are outputs of `noisegen augment`, with a strength each or with several by
    `--strength`, or clean text that is noised here at `strengths` ('0.05,0.1,0.2' are rates,
    'x0.5,x1,x2' factors of the recipe's rates). Each language has its own sample. With `with_real`,
    the sources are real pairs, and rows with the real noise of the pairs are drawn, too. Raises
    NoisegenError.
    """
    return _make(decode(MakeOptions, locals()))


def _make(options: MakeOptions) -> SampleSummary:
    """Run `make` with checked options."""
    source, path = source_of(options), Path(options.out)
    with store.created(path) as database:
        plan = msgspec.json.encode(source, enc_hook=str).decode()
        review = {"id": secrets.token_hex(8), "seed": str(source.seed), "plan": plan}
        database.executemany("INSERT INTO review VALUES (?, ?)", review.items())
        return SampleSummary(path, 1, options.rows, *_add(database, source, 1, options.rows))


@public
def more(
    out: str | Path,
    *,
    rows: int = 60,
    strength: str = "best",
    sources: Strings = (),
    code: Strings = (),
) -> SampleSummary:
    """Add `rows` rows of one strength to a review, with texts that are not in the review yet.

    With `strength` 'best', each language and recipe gets rows of the strength that was judged most
    realistic. The rows come from the sources of the review; name `sources` if they have moved.
    `code` are the Python files that the review was made with. They must be named again: code never
    runs only because a review file names it. Raises NoisegenError.
    """
    return _more(decode(MoreOptions, locals()))


def _more(options: MoreOptions) -> SampleSummary:
    """Run `more` with checked options."""
    path = Path(options.out)
    with store.reading(path), closing(store.connect(path)) as database:
        source = _stored_source(database, options)
        judged = store.judged_items(database)
        if options.strength == BEST:
            chosen, unjudged = _best(judged), _unjudged(judged)
        else:
            chosen, unjudged = _of_strength(judged, options.strength), 0
        added = _add(database, source, 2, options.rows, chosen)
    return SampleSummary(path, 2, options.rows, *added, unjudged)


def _stored_source(database: sqlite3.Connection, options: MoreOptions) -> ReviewSource:
    """Return the sources and noise options stored in a review, updated from `options`.

    Raises UsageError if the review was made with code files but the options name none, or from
    standard input but the options name no sources. Raises SourceError for a damaged review.
    """
    try:
        source = msgspec.json.decode(store.stored(database, "plan"), type=ReviewSource)
    except ValueError as error:
        raise SourceError("the review is damaged: its plan cannot be read") from error
    if source.code and not options.code:
        raise UsageError(f"the review was made with --code {source.code[0]}: give it again")
    if "-" in source.sources and not options.sources:
        raise UsageError("the review was made from standard input: give the source again")
    sources = _absolute(listed(options.sources)) or source.sources
    return replace(source, sources=sources, code=_absolute(listed(options.code)))


def _unjudged(judged: Judged) -> int:
    """Count the rows of the first stage that no reviewer has judged."""
    items = chain.from_iterable(chain.from_iterable(map(dict.values, judged.values())))
    return sum(item.stage == 1 and not item.realism for item in items)


def _of_strength(judged: Judged, strength: str) -> set[StratumName]:
    """Return the (language, recipe, strength) of all strata with this strength, except real noise.

    Raises UsageError if the review has no such stratum.
    """
    names = [s.name for group in judged.values() for s in group if s.recipe != store.REAL]
    chosen = {name for name in names if name[-1] == strength}
    if not chosen:
        known = ", ".join(dict.fromkeys(strength for _, _, strength in names))
        raise UsageError(f"the review has no strength {strength!r}; it has {known}")
    return chosen


def _best(judged: Judged) -> set[StratumName]:
    """Return (language, recipe, most realistic strength) of each language and recipe with rows.

    Real noise has no strengths and is left out. Raises UsageError if no row of a language and
    recipe is judged.
    """
    chosen = set()
    for (lang, recipe), strata in judged.items():
        if recipe == store.REAL or not any(strata.values()):
            continue
        if (best := store.most_realistic(strata)) is None:
            raise UsageError(
                f"no best strength for {lang}, {recipe}: nothing is judged yet; "
                f"review first, or choose one with --strength VALUE"
            )
        chosen.add((lang, recipe, best.strength))
    return chosen


def _add(
    database: sqlite3.Connection,
    source: ReviewSource,
    stage: int,
    count: int,
    only: Collection[StratumName] | None = None,
) -> tuple[list[tuple[Stratum, int]], Counter[str]]:
    """Draw `count` rows per stratum and add them to a review, in a shuffled order.

    `only` has the strata to draw from, as (language, recipe, strength); None is all. Returns the
    number of rows from each stratum, and counts of dropped rows of the source by reason. Raises
    UsageError if another process added rows meanwhile.
    """
    newest = database.execute("SELECT max(id) FROM items").fetchone()
    taken: dict[str, set[str]] = {}
    query = "SELECT lang, clean FROM items JOIN groups ON groups.id = group_id"
    for lang, clean in database.execute(query):
        taken.setdefault(lang, set()).add(clean)
    sample, dropped = _drawn(source, count, taken, only)
    rows = [(stratum, row) for stratum, part in sample for row in part]
    texts = pa.array([f"{stratum.lang}\t{row['clean']}" for stratum, row in rows], pa.string())
    keys = row_keys(stream_key(source.seed, "review/shuffle"), id_numbers(texts))
    with store.transaction(database):
        if database.execute("SELECT max(id) FROM items").fetchone() != newest:
            raise UsageError("other rows were added to the review meanwhile: run again")
        database.executemany(
            "INSERT INTO groups (lang, recipe, strength, value, rows, changed, too_long)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            [stratum for stratum, _ in sample],
        )
        for stratum, row in (rows[index] for index in np.argsort(keys, kind="stable")):
            database.execute(
                "INSERT INTO items (stage, group_id, row_id, clean, noisy, slots) SELECT"
                " ?, id, ?, ?, ?, ? FROM groups WHERE (lang, recipe, strength) = (?, ?, ?)",
                (stage, row["row_id"], row["clean"], row["noisy"], _slots(row), *stratum.name),
            )
    return [(stratum, len(part)) for stratum, part in sample], dropped


# Draw the sample: changed rows in the order of random keys, with no clean text twice.


def _drawn(
    source: ReviewSource,
    count: int,
    taken: dict[str, set[str]],
    only: Collection[StratumName] | None,
) -> tuple[Sample, Counter[str]]:
    """Draw `count` rows of each (language, recipe, strength) in `only`, or of all if it is None.

    Rows with real noise are drawn even if `only` lacks them, as they have no strength to choose. No
    clean text is drawn twice in a language; `taken` maps each language to the texts drawn before.
    Returns the rows, and counts of unreadable rows by reason. Raises SourceError if there is no row
    to draw.
    """
    dropped = Counter[str]()
    room = count * source.strata + max(map(len, taken.values()), default=0)
    pools: dict[StratumName, _Pool] = {}
    for stratum, table in source.batches(dropped):
        if only is None or stratum.name in only or stratum.recipe == store.REAL:
            stream = stream_key(source.seed, f"review/{stratum.recipe}/{stratum.strength}")
            pools.setdefault(stratum.name, _Pool(stratum, stream, room)).add(table)
    sample = _dealt(list(pools.values()), count, taken)
    if not any(rows for _, rows in sample):
        seen = sum(stratum.rows for stratum, _ in sample)
        raise SourceError(f"nothing to review: none of {counted(seen, 'row')} is changed and new")
    return sample, dropped


def _dealt(pools: "Sequence[_Pool]", count: int, taken: dict[str, set[str]]) -> Sample:
    """Draw up to `count` rows from each pool of candidates; add their clean texts to `taken`.

    One row is drawn from each pool in turn, so that all strata get rows if there are few texts.
    """
    sample: Sample = [(pool.stratum, []) for pool in pools]
    queues = [iter(pool.rows) for pool in pools]
    for _ in range(count):
        for (stratum, rows), queue in zip(sample, queues, strict=True):
            used = taken.setdefault(stratum.lang, set())
            if row := next((row for row in queue if row["clean"] not in used), None):
                rows.append(row)
                used.add(row["clean"])
    return sample


@dataclass
class _Pool:
    """Candidates of one stratum: up to `room` changed rows with the lowest random keys.

    The seed `stream` and the clean text of a row determine its key. The counts in `stratum` are of
    all rows of the source.
    """

    stratum: Stratum
    stream: int
    room: int
    rows: list[Row] = field(default_factory=list)

    def add(self, table: pa.Table) -> None:
        """Count the rows of a batch; keep changed rows whose keys are among the `room` lowest.

        Rows with texts longer than `TEXT_MAX` are not kept.
        """
        changed = pc.not_equal(table["clean"], table["noisy"]).to_numpy()
        lengths = [pc.utf8_length(table[name]).to_numpy() for name in ("clean", "noisy")]
        too_long = changed & (np.maximum(*lengths) > TEXT_MAX)
        self.stratum = self.stratum._replace(
            rows=self.stratum.rows + len(table),
            changed=self.stratum.changed + int(changed.sum()),
            too_long=self.stratum.too_long + int(too_long.sum()),
        )
        columns = ("row_id", "clean", "noisy", *SLOT_COLUMNS)
        table = table.select([name for name in columns if name in table.column_names])
        table = table.filter(changed & ~too_long)
        keys = row_keys(self.stream, id_numbers(table["clean"].combine_chunks()))
        early = np.unique(keys, return_index=True)[1][: self.room]  # lowest keys, one per text
        rows = table.append_column("key", pa.array(keys)).take(early).to_pylist()
        by_text = {row["clean"]: row for row in [*rows, *self.rows]}
        self.rows = sorted(by_text.values(), key=itemgetter("key"))[: self.room]


def _slots(row: Row) -> str:
    """Return the labelled spans of the clean and the noisy text as JSON.

    Returns 'null' for a row without labels.
    """
    if not row.keys() >= set(SLOT_COLUMNS):
        return "null"
    tokens, labels, noisy_tokens, noisy_labels = (row[name] for name in SLOT_COLUMNS)
    return json.dumps([slots_of(tokens, labels), slots_of(noisy_tokens, noisy_labels)])


def slots_of(tokens: Sequence[Any], labels: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the label and text of each labelled span (slot) of a sentence.

    >>> slots_of(["to", "new", "york"], ["O", "B-city", "I-city"])
    [('city', 'new york')]
    """
    slots: list[tuple[str, str]] = []
    before = "O"
    for token, label in zip(tokens or [], map(str, labels or []), strict=False):
        kind = label[2:] if label[:2] in ("B-", "I-") else label
        if label.startswith("I-") and before[2:] == kind:
            slots[-1] = kind, f"{slots[-1][1]} {token}"
        elif label != "O":
            slots.append((kind, str(token)))
        before = label
    return slots


# Options of `make` as a ReviewSource, which a review stores.


def source_of(options: MakeOptions) -> ReviewSource:
    """Return the sources and noise options of a new review.

    Raises UsageError for options that do not fit the type of the sources.
    """
    sources, code = listed(options.sources), listed(options.code)
    if not sources:
        raise UsageError("name at least one SOURCE")
    strengths = strength_labels(options.strengths or ("x1" if options.with_real else ""))
    values = {**vars(options), "sources": _absolute(sources), "code": _absolute(code)}
    values |= {"strengths": strengths, "recipe": None}
    if options.nlaug_data:
        values["nlaug_data"] = str(Path(options.nlaug_data).resolve())
    if options.with_real:
        of_texts = ("text_column", "id_column", "lang_column")
        _refuse(options, of_texts, "real pairs have columns of their own and one language")
    if options.with_real or not _are_outputs(sources):
        if not strengths:
            raise UsageError("clean text needs --strengths, such as 0.05,0.1,0.2 or x0.5,x1,x2")
        values["recipe"] = _recipe_for_text(options).to_dict()
    else:
        fixed = ("recipe", "transforms", "values", "limit", "text_column", "id_column")
        _refuse(options, fixed, "outputs of augment bring their own noise and columns")
    return msgspec.convert(values, ReviewSource)


def _recipe_for_text(options: MakeOptions) -> Recipe:
    """Return the recipe that noises the text of a review.

    Raises UsageError for a recipe named 'real noise' in a review with real noise.
    """
    load_code(*listed(options.code))
    recipe = recipe_of(options)
    if options.with_real and recipe.name == store.REAL:
        raise UsageError(f"the recipe cannot be named {store.REAL!r} beside real pairs")
    return recipe


def _are_outputs(sources: Sequence[str]) -> bool:
    """Tell whether all sources are outputs of `augment`; raises UsageError if only some are."""
    outputs = [name for name in sources if shard_files(Path(name))]
    if 0 < len(outputs) < len(sources):
        raise UsageError(f"{outputs[0]!r} is an output of augment, others are not: use one kind")
    return bool(outputs)


def _refuse(options: MakeOptions, names: Sequence[str], why: str) -> None:
    """Raise UsageError if an option in `names` is set; `why` is the reason in the error."""
    bare = MakeOptions(options.sources, out=options.out)
    for name in names:
        if getattr(options, name) not in (getattr(bare, name), {}):
            raise UsageError(f"{why}: leave out {name}")


def _absolute(sources: Sequence[str]) -> tuple[str, ...]:
    """Return existing sources as absolute paths, so that they are found from any working folder.

    Other sources, such as URLs, are returned unchanged.
    """
    return tuple(str(Path(name).resolve()) if Path(name).exists() else name for name in sources)
