"""Noisy copies of clean text: shards on disk, rows on the fly, a preview, and statistics of a run.

This module declares the options of `augment`. It imports little, so that `--help` answers fast.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from noisegen.errors import UsageError
from noisegen.options import Strings, argument, internal, listed, option
from noisegen.runs.options import (
    Folder,
    IdColumn,
    Limit,
    PartOptions,
    RowsPerShard,
)
from noisegen.text.resources import DEFAULT_RECIPE

if TYPE_CHECKING:
    from noisegen.noising.recipe import Recipe

    AnyRecipe: TypeAlias = str | Recipe
else:
    AnyRecipe = str | Any

Format = Literal["txt", "tsv", "csv", "jsonl", "json", "parquet", "conll", "conllu", "norm", "m2"]
Protect = Annotated[
    str, option("Kinds of span and '/patterns/' to leave unchanged, or 'none'", metavar="KINDS")
]
Code = Annotated[Strings, option("Python file with transforms; repeatable", metavar="FILE.py")]
Transforms = Annotated[
    Strings,
    option(
        "Transform to apply instead of a recipe; repeatable, in order",
        "-t",
        "--transform",
        metavar="NAME[:k=v,...]",
    ),
]
Tagger = Annotated[Literal["rule", "spacy"], option("Part-of-speech tagger for slng and abr3")]
Levels = Annotated[
    Strings,
    option(
        "Factors of the noise, such as x0.5,x1,x2: each row comes once per factor",
        metavar="xN[,xN...]",
    ),
]
PROTECTED = "url,mention,hashtag,email"  # same as text.spans.PROTECTED, which is slow to import


@dataclass(frozen=True)
class NoiseRequest:
    """Options that choose the clean text and the noise for it."""

    sources: Annotated[Strings, argument("SOURCE...")]
    _: KW_ONLY
    transforms: Transforms = ()
    recipe: Annotated[AnyRecipe, option("Mix of transforms", metavar="NAME|FILE.yaml")] = (
        DEFAULT_RECIPE
    )
    values: Annotated[Mapping[str, object] | None, internal()] = None
    seed: Annotated[int, option("Seed of the noise; equal seeds give equal noise")] = 0
    lang: Annotated[str | None, option("Language of all rows (default: en)")] = None
    protect: Protect = PROTECTED
    code: Code = ()
    nlaug_data: Annotated[
        str | None, option("Folder of an NL-Augmenter checkout", metavar="FOLDER")
    ] = None
    tagger: Tagger = "rule"

    def __post_init__(self) -> None:
        for name in ("sources", "transforms", "code"):  # callers may give one text, not a list
            object.__setattr__(self, name, tuple(listed(getattr(self, name))))
        object.__setattr__(self, "lang", self.lang and self.lang.lower())


@dataclass(frozen=True, kw_only=True)
class Request(NoiseRequest):
    """Options that decide the noisy rows of a run: equal requests give equal rows."""

    text_column: Annotated[
        Strings,
        option(
            "Column with the text, its number (from 1) in a file without header, or a path such as "
            "messages[role=user].content; repeatable",
            metavar="PATH",
        ),
    ] = ("text",)
    spans: Annotated[
        Strings,
        option(
            "Column with spans of the text, which follow the changes: a path, or PATH=TEXT with "
            "the path of its text; repeatable",
            metavar="PATH",
        ),
    ] = ()
    spans_lost: Annotated[
        Literal["keep-clean", "drop"],
        option("Rows with a span or an alignment that is lost: keep them unchanged, or drop"),
    ] = "keep-clean"
    align: Annotated[
        str | None,
        option(
            "Column with alignments of words (0-0 1-2), which follow the changes: a path, or "
            "PATH=SOURCE,TARGET with the paths of the two texts",
            metavar="PATH",
        ),
    ] = None
    id_column: IdColumn = None
    encoding: Annotated[
        str | None,
        option(
            "Encoding of text files (default: UTF-8); one file of text keeps it", metavar="NAME"
        ),
    ] = None
    lang_column: Annotated[
        str | None,
        option(
            "Column with the language of each row, or 'none' (default without --lang: the column "
            "lang, if it has languages)",
            metavar="COLUMN",
        ),
    ] = None
    group_by: Annotated[
        str | None,
        option(
            "Column with the author or thread; its rows have one writer of the recipe",
            metavar="COLUMN",
        ),
    ] = None
    tokens: Annotated[
        str | None,
        option(
            "Column with the tokens of each row, or its number in .conll files "
            "(default there: the first)",
            metavar="COLUMN",
        ),
    ] = None
    labels: Annotated[
        str | None,
        option(
            "Column with the labels of the tokens (default in .conll files: the "
            "last with tags such as B-x)",
            metavar="COLUMN",
        ),
    ] = None
    label_names: Annotated[
        Strings,
        option(
            "Names of the classes in a column of numbers, in the order of the numbers: "
            "O,B-PER,I-PER, or a file with a name per line",
            metavar="NAMES|FILE",
        ),
    ] = ()
    copies: Annotated[int, option("Noisy copies of each row", ge=1)] = 1
    with_clean: Annotated[bool, option("Write the clean row too, as copy -1")] = False
    strength: Levels = ()
    edits: Annotated[bool, option("Add a column with the changed spans")] = False
    rows_per_shard: RowsPerShard = 100_000
    limit: Limit = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "text_column", tuple(listed(self.text_column)))
        object.__setattr__(self, "spans", tuple(dict.fromkeys(listed(self.spans))))
        object.__setattr__(self, "strength", levels_in(self.strength))


def levels_in(given: Strings) -> tuple[str, ...]:
    """Return the factors in values of --strength; raises UsageError if one occurs twice.

    A plain number is a factor too.

    >>> levels_in("x0.5,1")
    ('x0.5', 'x1')
    """
    levels = [
        f"x{level}" if level[:1].isdigit() else level
        for text in listed(given)
        for level in map(str.strip, text.split(","))
    ]
    if len({*levels}) < len(levels):
        raise UsageError(f"--strength {','.join(levels)}: write each factor once")
    return tuple(levels)


# Fields of a NoiseRequest that several commands have as options.
NOISE = ("transforms", "recipe", "seed", "lang", "protect", "code", "nlaug_data", "tagger")


@dataclass(frozen=True)
class AugmentOptions(PartOptions, Request):
    """Options of `augment`: a request, its output, and how the work is spread over workers."""

    out: Annotated[
        Folder,
        option(
            "Folder for the shards, a file such as noisy.jsonl, or - for standard output",
            "-o",
            "--out",
            metavar="FOLDER|FILE|-",
        ),
    ]
    to: Annotated[
        Format | None, option("Format of one noisy file (default: by its ending, or the input's)")
    ] = None

    def __post_init__(self) -> None:
        Request.__post_init__(self)
        PartOptions.__post_init__(self)
