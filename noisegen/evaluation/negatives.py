"""Hard negatives: sentences with another meaning in nearly the same words.

The three families (a changed number, a changed name, a reversed statement) come from xSIM++ (Chen
and others, 2023). noisegen generates its own negatives. Error rates with them cannot be compared
with the rates in xSIM++; rates with the published sentences of xSIM++ (`PublishedNegatives`) can.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.alterations import apply
from noisegen.evaluation.altered_names import Names
from noisegen.evaluation.altered_numbers import number_changes
from noisegen.evaluation.altered_statements import plain_statement_changes, statement_changes
from noisegen.evaluation.results import PER_KIND
from noisegen.noising.rng import Draws, check_seed, name_number, row_key, stream_key
from noisegen.noising.tagging import installed_model

KINDS = ("number", "entity", "causality")
CHARS_MAX = 2_000  # characters; longer texts get no negatives: a parser's memory grows with them
_TRIES = 3  # draws for each negative, because some draws repeat an earlier negative

Alter = Callable[[int, Draws], str | None]  # (index of a text, random draws) -> new text


@dataclass(frozen=True)
class HardNegatives:
    """Altered texts: `texts[i]` was made from the original text with the index `sources[i]`.

    The change is of the family `kinds[i]`. `note` says in words how the texts were altered.
    """

    texts: list[str]
    sources: npt.NDArray[np.int64]
    kinds: list[str]
    note: str = ""

    def __len__(self) -> int:
        return len(self.texts)


def hard_negatives(
    texts: Sequence[str],
    *,
    seed: int = 0,
    lang: str = "en",
    per_kind: int = PER_KIND,
    parse: bool = True,
) -> HardNegatives:
    """Return up to `per_kind` negatives of each family for each text.

    A negative differs from all texts and from all other negatives. Among equal texts only the first
    gets negatives. The random draws for a text depend on `seed` and the text, not on its index.
    New names come from the other texts. English has all three families, other languages only
    changed numbers. English negatives are better with spaCy's English model, which is used if it is
    installed and `parse` is true; rules without the model are far faster. Raises UsageError for a
    wrong seed or `per_kind`.
    """
    check_seed(seed)
    if per_kind < 0:
        raise UsageError(f"per_kind {per_kind} must be at least 0")
    first_rows = _first_rows(texts)
    rows = sorted(row for text, row in first_rows.items() if len(text) <= CHARS_MAX)
    families, note = _families([texts[row] for row in rows], lang, parse)
    if long := len(first_rows) - len(rows):
        note += f"; none of {long:,} texts of over {CHARS_MAX:,} characters"
    made = _drawn(texts, rows, families, seed, per_kind)
    sources = np.array([row for row, _ in made.values()], np.int64)
    return HardNegatives([*made], sources, [kind for _, kind in made.values()], note)


def _drawn(
    texts: Sequence[str],
    rows: Sequence[int],
    families: Mapping[str, Alter],
    seed: int,
    per_kind: int,
) -> dict[str, tuple[int, str]]:
    """Return {negative: (row index, family)} for the texts at the indices in `rows`.

    `families` maps each family to its function, which gets i to alter the text `texts[rows[i]]`.
    """
    streams = {kind: stream_key(seed, f"hard:{kind}") for kind in families}
    known = set(texts)
    negatives: dict[str, tuple[int, str]] = {}
    for position, row in enumerate(rows):
        for kind, alter in families.items():
            draws = Draws(row_key(streams[kind], name_number(texts[row])))
            for new in _new_texts(partial(alter, position), draws, per_kind, known):
                negatives[new] = row, kind
    return negatives


def _new_texts(
    alter: Callable[[Draws], str | None], draws: Draws, wanted: int, known: set[str]
) -> list[str]:
    """Alter a text until there are `wanted` new results or no tries are left; return the results.

    A result is new if it is not in the set `known`, to which it is then added.
    """
    new: list[str] = []
    for _ in range(wanted * _TRIES):
        altered = alter(draws.fork(str(draws.integer())))
        if altered is None:
            break
        if altered not in known:
            known.add(altered)
            new.append(altered)
        if len(new) == wanted:
            break
    return new


def _first_rows(texts: Sequence[str]) -> dict[str, int]:
    """Return {text: index of the first row that has it}."""
    return {text: row for row, text in reversed(list(enumerate(texts)))}


class _Origin(msgspec.Struct):
    """Sentence from which a line of xSIM++ was made, and the type of the change (`errtype`)."""

    src: str
    errtype: str


class NoLinesError(SourceError):
    """No published negative of xSIM++ was made from any of the given sentences."""


@dataclass(frozen=True)
class PublishedNegatives:
    """Lines (published hard negatives) of xSIM++, each with the sentence it was made from.

    `file` is the JSON file of the lines. Lines that are only in this file, or only in the text file
    beside it, are left out; `note` counts them.
    """

    file: Path
    lines: Sequence[tuple[str, _Origin]]
    note: str

    @classmethod
    def read(cls, path: str) -> "PublishedNegatives":
        """Read the JSON file of xSIM++, {line: {"src": sentence, "errtype": type}}.

        Lines are in the order of the text file beside the JSON file, if there is one: for
        eng_Latn_errtype.devtest.json this is eng_Latn_augmented.devtest. Raises SourceError for a
        wrong file.
        """
        file = Path(path)
        try:
            decoded = msgspec.json.decode(file.read_text("utf-8-sig"), type=dict[str, _Origin])
        except (OSError, ValueError, RecursionError) as error:
            raise SourceError(f"{path} is no file of xSIM++: {error}") from error
        origins = {line.strip(): origin for line, origin in decoded.items()}
        beside = file.with_name(file.name.replace("errtype", "augmented").removesuffix(".json"))
        is_ordered = beside != file and beside.is_file()
        lines = _stripped_lines(beside) if is_ordered else list(origins)
        known = [(line, origins[line]) for line in lines if line in origins]
        if not known:
            raise SourceError(f"{path} has no line of {beside}: get both from one release")
        unmatched = len(lines) - len(known) + len(origins.keys() - {*lines})
        note = f"; {unmatched:,} lines are only in {beside.name} or only in {file.name}"
        return cls(file, known, note if unmatched else "")

    def made_from(self, texts: Sequence[str]) -> HardNegatives:
        """Return the lines made from these texts; raises NoLinesError if there are none."""
        first_rows = _first_rows([text.strip() for text in texts])
        found = [(line, origin) for line, origin in self.lines if origin.src.strip() in first_rows]
        if not found:
            raise NoLinesError(
                f"{self.file}: no line is made from any of the {len(texts):,} sentences: give the "
                "English sentences it was made from"
            )
        sources = [first_rows[origin.src.strip()] for _, origin in found]
        return HardNegatives(
            [line for line, _ in found],
            np.array(sources, np.int64),
            [_family(origin.errtype) for _, origin in found],
            f"published with xSIM++, {len(self.lines) - len(found):,} more for other sentences"
            f"{self.note}",
        )


def _stripped_lines(file: Path) -> list[str]:
    """Return the lines of a text file that are not empty, stripped; raises SourceError."""
    try:
        lines = file.read_text("utf-8-sig").split("\n")
    except (OSError, ValueError) as error:
        raise SourceError(f"{file} is no file of xSIM++: {error}") from error
    return [line.strip() for line in lines if line.strip()]


def _family(errtype: str) -> str:
    """Return the family of an error type of xSIM++: 'entity' for 'EntityReplacement'.

    A type that begins with no family's name becomes a family of its own: in lower case, with
    underscores for spaces.
    """
    name = "_".join(errtype.lower().split())
    return next((kind for kind in KINDS if name.startswith(kind)), name)


def _families(texts: Sequence[str], lang: str, parse: bool) -> tuple[dict[str, Alter], str]:
    """Return {family: function that alters a text}, and a note on the method.

    The functions take the index of a text in `texts`.
    """

    def number(row: int, draws: Draws) -> str | None:
        changes = number_changes(texts[row], draws, lang)
        return draws.pick(changes).applied(texts[row]) if changes else None

    def statement(row: int, draws: Draws) -> str | None:
        return apply(texts[row], draws.pick(ways[row])) if ways[row] else None

    if lang != "en":
        return {"number": number}, "numbers only: names and statements are altered only in English"
    documents = parsed(texts, lang) if parse else None
    names = Names.of(texts, documents)
    if documents is None:
        ways = [plain_statement_changes(text) for text in texts]
        note = "made by rules, without spaCy's model"
    else:
        ways = [statement_changes(document) for document in documents]
        note = "made from spaCy's parse"
    return {"number": number, "entity": names.altered, "causality": statement}, note


def parsed(texts: Sequence[str], lang: str) -> list[Any] | None:
    """Parse texts with spaCy; return None if no spaCy model of the language is installed."""
    model = installed_model(lang)
    return list(_pipeline(model).pipe(texts, batch_size=64)) if model else None


@cache
def _pipeline(model: str) -> Any:
    import spacy

    return spacy.load(model)
