"""Hard negatives: sentences that say something else in nearly the same words.

Three families, as in xSIM++ (Chen and others, 2023), but with noisegen's own generator: figures are
not comparable with those of xSIM++, unless the lines published for it are read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from noisegen.errors import SourceError, UsageError
from noisegen.evaluation import alterations
from noisegen.evaluation.results import PER_KIND
from noisegen.noising.rng import Draws, check_seed, name_number, row_key, stream_key
from noisegen.noising.tagging import installed_model

KINDS = ("number", "entity", "causality")
CHARS_MAX = 2_000  # of a text that gets negatives: a parser's memory grows with the text
_TRIES = 3  # draws for each negative wanted; the same one may come twice

Alter = Callable[[int, Draws], str | None]  # row, draws -> an altered text, if there is one


@dataclass(frozen=True)
class HardNegatives:
    """`texts[i]` is the text of row `sources[i]` with one change of family `kinds[i]`.

    `note` says how they were made.
    """

    texts: list[str]
    sources: npt.NDArray[np.int64]
    kinds: list[str]
    note: str = ""

    def __len__(self) -> int:
        return len(self.texts)


def hard_negatives(
    texts: Sequence[str], *, seed: int = 0, lang: str = "en", per_kind: int = PER_KIND,
    parse: bool = True,
) -> HardNegatives:  # fmt: skip
    """Return up to `per_kind` negatives of each family for each text.

    A negative differs from all texts and all other negatives; of equal texts only the first gets
    negatives. Draws are keyed by the text itself, so they do not depend on its position; names come
    from the other texts. English has all three families, better with spaCy's English model, which
    is used if it is installed, unless `parse` is false (rules are far faster). Other languages have
    numbers only. Raises UsageError for a wrong seed or `per_kind`.
    """
    check_seed(seed)
    if per_kind < 0:
        raise UsageError(f"per_kind {per_kind} must be at least 0")
    first = {text: row for row, text in reversed(list(enumerate(texts)))}
    rows = sorted(row for text, row in first.items() if len(text) <= CHARS_MAX)
    families, note = _families([texts[row] for row in rows], lang, parse)
    if long := len(first) - len(rows):
        note += f"; none of {long:,} texts of over {CHARS_MAX:,} characters"
    streams = {kind: stream_key(seed, f"hard:{kind}") for kind in families}
    made: dict[str, tuple[int, str]] = {}
    for index, row in enumerate(rows):
        for kind, alter in families.items():
            draws = Draws(row_key(streams[kind], name_number(texts[row])))
            missing = per_kind
            for _ in range(per_kind * _TRIES):
                new = alter(index, draws.fork(str(draws.integer()))) if missing else None
                if new is None:
                    break
                if new not in first and new not in made:
                    made[new] = row, kind
                    missing -= 1
    sources = np.array([row for row, _ in made.values()], np.int64)
    return HardNegatives([*made], sources, [kind for _, kind in made.values()], note)


class _Origin(msgspec.Struct):
    src: str
    errtype: str


class NoLinesError(SourceError):
    """No published line is made from any of the sentences."""


@dataclass(frozen=True)
class PublishedNegatives:
    """The lines of xSIM++ in `file`, each with the sentence and the type of error it came from."""

    file: Path
    lines: Sequence[tuple[str, _Origin]]
    note: str

    @classmethod
    def read(cls, path: str) -> "PublishedNegatives":
        """Read its JSON file, {line: {"src": sentence, "errtype": type}}.

        The lines are in the order of the text file beside it (eng_Latn_augmented.devtest of
        eng_Latn_errtype.devtest.json), if there is one. Raises SourceError for a wrong file.
        """
        file = Path(path)
        try:
            decoded = msgspec.json.decode(file.read_text("utf-8-sig"), type=dict[str, _Origin])
        except (OSError, ValueError, RecursionError) as error:
            raise SourceError(f"{path} is no file of xSIM++: {error}") from error
        origins = {line.strip(): origin for line, origin in decoded.items()}
        beside = file.with_name(file.name.replace("errtype", "augmented").removesuffix(".json"))
        lines = list(origins)
        if beside != file and beside.is_file():
            try:
                lines = list(
                    filter(None, map(str.strip, beside.read_text("utf-8-sig").split("\n")))
                )
            except (OSError, ValueError) as error:
                raise SourceError(f"{beside} is no file of xSIM++: {error}") from error
        known = [(line, origins[line]) for line in lines if line in origins]
        if not known:
            raise SourceError(f"{path} has no line of {beside}: get both from one release")
        apart = len(lines) - len(known) + len(origins.keys() - {*lines})
        only = f"; {apart:,} lines are only in {beside.name} or only in {file.name}"
        return cls(file, known, only if apart else "")

    def made_from(self, texts: Sequence[str]) -> HardNegatives:
        """Return the lines that were made from these texts; raises NoLinesError if none was."""
        first = {text.strip(): row for row, text in reversed(list(enumerate(texts)))}
        found = [(line, origin) for line, origin in self.lines if origin.src.strip() in first]
        if not found:
            raise NoLinesError(
                f"{self.file}: no line is made from any of the {len(texts):,} sentences: give the "
                "English sentences it was made from"
            )
        return HardNegatives(
            [line for line, _ in found],
            np.array([first[origin.src.strip()] for _, origin in found], np.int64),
            [_family(origin.errtype) for _, origin in found],
            f"those of xSIM++, {len(self.lines) - len(found):,} of other sentences{self.note}",
        )


def _family(errtype: str) -> str:
    """Return the family that an error type of xSIM++ begins with, else the type as a name."""
    name = "_".join(errtype.lower().split())
    return next((kind for kind in KINDS if name.startswith(kind)), name)


def _families(texts: Sequence[str], lang: str, parse: bool) -> tuple[dict[str, Alter], str]:
    """Return the function that alters a text, by family, and a note on the method."""

    def number(row: int, draws: Draws) -> str | None:
        changes = alterations.number_changes(texts[row], draws, lang)
        return draws.pick(changes).applied(texts[row]) if changes else None

    def statement(row: int, draws: Draws) -> str | None:
        return alterations.apply(texts[row], draws.pick(ways[row])) if ways[row] else None

    if lang != "en":
        return {"number": number}, "numbers only: names and statements are altered in English alone"
    documents = parsed(texts, lang) if parse else None
    names = alterations.Names.of(texts, documents)
    if documents is None:
        ways = list(map(alterations.plain_statement_changes, texts))
    else:
        ways = list(map(alterations.statement_changes, documents))
    how = "by rules, without spaCy's model" if documents is None else "as spaCy reads them"
    families: dict[str, Alter] = {"number": number, "entity": names.altered, "causality": statement}
    return families, f"sentences {how}"


def parsed(texts: Sequence[str], lang: str) -> list[Any] | None:
    """Return the texts as spaCy documents; None without a model of the language."""
    model = installed_model(lang)
    return list(_pipeline(model).pipe(texts, batch_size=64)) if model else None


@cache
def _pipeline(model: str) -> Any:
    import spacy

    return spacy.load(model)
