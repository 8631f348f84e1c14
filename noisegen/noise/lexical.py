"""Word lists as transforms: the kernel that replaces matches, and how a list is registered."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.noise import phrases
from noisegen.noise.edits import Edits
from noisegen.noise.lexicon import POS, Lexicon, Parser, head_of, parser_of
from noisegen.noise.phrases import Matches, PhraseTable, RowMatch, load_table
from noisegen.noise.registry import (
    Parameter,
    Settings,
    Transform,
    called_from,
    register,
)
from noisegen.noise.rng import RowDraws, Variants, choices, hits
from noisegen.noise.tagging import Tagger, make_tagger
from noisegen.text.buffers import I64, U64, Texts, as_arrow
from noisegen.text.resources import DICTIONARIES
from noisegen.text.rows import Row, RowEdit

CLITICS = "(?i)['\u2019](m|re|s|ve|d|ll)$"
_CLITIC = re.compile(CLITICS)


@dataclass(frozen=True)
class LexicalKernel:
    """Replace each match of a row in its lexicon with its rate; for one or more lexicons.

    `limits` holds the 48-bit thresholds, shape (lexicons, strengths); `taggers` and `tags` (see
    `lexical`) have one entry per lexicon. `lexicons` is the number of each row's lexicon.
    """

    table: PhraseTable
    limits: I64
    taggers: tuple[Tagger | None, ...]
    tags: tuple[str, ...]
    lexicons: I64 | None = None

    @classmethod
    def joined(cls, kernels: Sequence["LexicalKernel"]) -> "LexicalKernel":
        """Return one kernel with the lexicons of all, whose strengths are the same."""
        return cls(
            phrases.side_by_side([kernel.table for kernel in kernels]),
            np.concatenate([kernel.limits for kernel in kernels]),
            tuple(tagger for kernel in kernels for tagger in kernel.taggers),
            tuple(rule for kernel in kernels for rule in kernel.tags),
        )

    @property
    def row_limits(self) -> I64:
        """The thresholds of the first lexicon."""
        limits: I64 = self.limits[0]
        return limits

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        lexicons = np.zeros(len(texts), np.int64) if self.lexicons is None else self.lexicons
        matches, pos = self._eligible(texts, self.table.find(texts, lexicons), lexicons)
        if not len(matches):
            return Edits.none()
        hit, draws = hits(keys, matches.rows, self.limits[lexicons, variants["rate"]])
        matches, pos = matches.take(hit), pos.take(hit)
        drawn = self.table.alternatives(texts.values, matches, pos, choices(draws))
        # No clitic without a word to lean on: "You have." does not become "You've.".
        clitics = np.array([rule == "clitic" for rule in self.tags])[lexicons.take(matches.rows)]
        alone = np.flatnonzero(clitics & (texts.tokens.gaps.take(matches.lasts) != ord(" ")))
        written = self.table.pool.take(as_arrow(drawn.take(alone))).cast(pa.string())
        leaning = pc.match_substring_regex(written, CLITICS).to_numpy(zero_copy_only=False)
        dropped = alone[leaning.astype(np.bool_)]
        matches, drawn = matches.without(dropped), np.delete(drawn, dropped)
        # Take in the dot behind a match if the replacement has its own: 'Sun.', not 'Sun..'.
        behind = texts.values[np.minimum(matches.stops, len(texts.values) - 1)]
        dotted = (matches.stops < texts.offsets[matches.rows + 1]) & (behind == ord("."))
        stops = matches.stops + (dotted & self.table.ends_in_dot[drawn])
        return Edits(matches.rows, matches.starts, stops, drawn, self.table.pool)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the replacements of one row, for one lexicon."""
        matches, groups = self._eligible_in(row, self.table.find_row(row, draws.least))
        edits = list[RowEdit]()
        for number, drawn in draws.hits(len(matches)):
            match = matches[number]
            start, stop = row.span(*match[:2])
            written = self.table.written(row, match, drawn, groups[number] if groups else None)
            leans = self.tags[0] == "clitic" and not row.is_followed(match[1])
            if not (leans and _CLITIC.search(written)):
                dotted = written.endswith(".") and row.text[stop : stop + 1] == "."
                edits.append((start, stop + dotted, written))
        return edits

    def _eligible_in(self, row: Row, matches: list[RowMatch]) -> tuple[list[RowMatch], list[int]]:
        """Drop matches with the wrong part of speech; return the others and their groups.

        There are no groups where no part of speech is asked for.
        """
        if not matches or not (tagger := self.taggers[0]):
            return matches, []
        eligible, groups = list[RowMatch](), list[int]()
        for match, (best, second) in zip(matches, tagger.tag_row(row, matches), strict=True):
            of_key = self.table.groups[match[2]]
            if self.tags[0] == "no-verb":
                group = -1 if best == POS.index("VERB") else self.table.first_groups[match[2]]
            else:
                group = int(of_key[best] if of_key[best] >= 0 else of_key[second])
            if group >= 0:
                eligible.append(match)
                groups.append(group)
        return eligible, groups

    def _eligible(self, texts: Texts, matches: Matches, lexicons: I64) -> tuple[Matches, I64]:
        """Drop matches with the wrong part of speech; return the `groups` column of the others."""
        pos = self.table.first_pos.take(matches.keys)
        keep = np.ones(len(matches), np.bool_)
        for number, (tagger, rule) in enumerate(zip(self.taggers, self.tags, strict=True)):
            if tagger is None:
                continue
            here = np.flatnonzero(lexicons.take(matches.rows) == number)
            best, second = tagger.tag(texts, matches.take(here))
            if rule == "no-verb":
                keep[here] = best != POS.index("VERB")
            else:
                groups = self.table.groups[matches.keys.take(here)]
                each = np.arange(len(here))
                pos[here] = np.where(groups[each, best] >= 0, best, second)
                keep[here] = groups[each, pos[here]] >= 0
        eligible = np.flatnonzero(keep)
        return matches.take(eligible), pos.take(eligible)


class Original(Protocol):
    """The vocabulary of a transform in the user's checkout of NL-Augmenter."""

    def files(self, folder: Path) -> list[Path]:
        """Return the files that are read."""
        ...

    def table(self, folder: Path) -> PhraseTable:
        """Return the compiled vocabulary."""
        ...


@dataclass(frozen=True)
class LexicalSource:
    """Where the word list of a transform lies: a path ('{lang}' in it is the language)."""

    name: str
    path: Callable[[], Path]
    tags: str = ""
    parser: Parser | None = None
    langs: tuple[str, ...] = ("*",)
    original: Original | None = None

    def files(self, settings: Settings, values: Mapping[str, Any]) -> list[Path]:
        """Return the files that a kernel for these settings reads, whatever the values."""
        if self.original and settings.nlaug_data:
            return self.original.files(settings.nlaug_data)
        return [Path(str(self.path()).replace("{lang}", settings.lang))]

    def languages(self) -> list[str]:
        """Return the languages that have a file."""
        before, placeholder, after = str(self.path()).partition("{lang}")
        if not placeholder:
            return list(self.langs)
        return sorted(path.parent.name for path in Path(before).glob(f"*{after}"))

    def kernel(self, settings: Settings, values: Mapping[str, Any]) -> LexicalKernel:
        """Make the kernel for these settings and the value of `rate`."""
        if self.original and settings.nlaug_data:
            table = self.original.table(settings.nlaug_data)
        else:
            [path] = self.files(settings, values)
            table = load_table(path, self.parser or parser_of(path))
        asks = self.tags in ("equal", "no-verb")
        tagger = make_tagger(settings.tagger, settings.lang) if asks else None
        limits = settings.limits(float(values["rate"]))[None]
        return LexicalKernel(table, limits, (tagger,), (self.tags,))


def register_lexicon(
    source: LexicalSource, rate: float, summary: str, defined_at: str | None = None
) -> None:
    """Register a word list with a default rate as a transform; `defined_at` is file:line."""
    parameters = {"rate": Parameter("rate", rate, float)}
    where = defined_at or called_from(1)
    of_source = source.kernel, source.languages, source.files
    register(Transform(source.name, summary, parameters, *of_source, where))


def lexical(
    name: str, path: str | Path, *, rate: float = 1.0, summary: str = "", tags: str = "",
) -> None:  # fmt: skip
    """Register a word list as a transform: each match is replaced with chance `rate`.

    `path` is a TSV (its head names source, license and lang) or a mined dictionary in Parquet;
    '{lang}' in it stands for the language. `tags` is '' (any), 'equal' (the entry's part of speech
    must be that of the match), 'no-verb' (the match must not be a verb) or 'clitic' (a replacement
    that ends in one, such as "you've", needs a word after it).
    """
    where = Path(path)
    langs = head_of(where, "lang").get("lang", "*") if where.exists() else "*"
    source = LexicalSource(name, lambda: where, tags, langs=tuple(langs.split()))
    if not summary:
        summary = f"Replace words of {where.name}."
        if where.suffix != ".parquet" and "{lang}" not in str(where):
            first = Lexicon.load(where).entries[0]
            summary = f"{summary[:-1]}: '{first.clean}' -> '{first.noisy}'."
    register_lexicon(source, rate, summary, called_from(1))


def packaged(name: str) -> Path:
    """Return the path template of a packaged word list."""
    return DICTIONARIES / "{lang}" / f"{name}.tsv"
