"""Word lists as transforms: the kernel that replaces matches, and how a list is registered."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.errors import UsageError
from noisegen.noising import phrases
from noisegen.noising.edits import Edits
from noisegen.noising.lexicon import POS, Lexicon, Parser, head_of, parser_of
from noisegen.noising.phrases import Matches, PhraseTable, RowMatch, load_table, row_forms
from noisegen.noising.registry import Kind, Parameter, Settings, Transform, called_from, register
from noisegen.noising.rng import RowDraws, Variants, choices, form_hits, hits
from noisegen.noising.tagging import Tagger, make_tagger
from noisegen.text.buffers import I64, U64, Bool, Texts, as_arrow, ordinals
from noisegen.text.case import are_names
from noisegen.text.resources import DICTIONARIES
from noisegen.text.rows import Row, RowEdit

# No clitic stands without a word to lean on: "You have." does not become "You've.".
CLITICS = "(?i)['\u2019](m|re|s|ve|d|ll)$"
_CLITIC = re.compile(CLITICS)
# Words that come behind a gap more often than behind a verb without stress: "how happy I am now".
BEHIND_GAPS = (
    "and anymore are as but can could did does has is nor now or right should than then today too "
    "was were will would"
)
_BEHIND_GAPS = Texts.from_strings([BEHIND_GAPS]).tokens.hashes
_BEHIND_GAP = frozenset(_BEHIND_GAPS.tolist())

BEFORE_VERBS = "(?i)(a|gon)$"  # gonna, gotta, hafta, imma
_BEFORE_VERB = re.compile(BEFORE_VERBS)
# Words before which "to" leads to a place or a person: "going to the shop", "got to me".
NO_VERBS = (
    "a all an any bed both church class college court dinner each every heaven hell her him his "
    "home it jail lunch me my no one our prison school some that the their them these this those "
    "town university us war what where which work you your"
)
_NO_VERBS = Texts.from_strings([NO_VERBS]).tokens.hashes
_NO_VERB = frozenset(_NO_VERBS.tolist())
_TO = int(Texts.from_strings(["to"]).tokens.hashes[0])


def _are_names(texts: Texts, table: PhraseTable, matches: Matches) -> Bool:
    names: Bool = table.cases_asked.take(matches.keys) == 0
    return names & are_names(texts, table.words(texts), matches.firsts)


def _are_alone(texts: Texts, table: PhraseTable, matches: Matches) -> Bool:
    words = table.words(texts)
    behind_gaps = np.isin(words.hashes.take(matches.lasts + 1, mode="clip"), _BEHIND_GAPS)
    alone: Bool = (words.gaps(matches.lasts) != ord(" ")) | behind_gaps
    return alone


def _lead_to_nouns(texts: Texts, table: PhraseTable, matches: Matches) -> Bool:
    words, nexts = table.words(texts), np.minimum(matches.lasts + 1, len(table.words(texts)) - 1)
    end_in_to = (words.hashes.take(matches.lasts) == _TO) & (matches.firsts < matches.lasts)
    are_nouns = np.isin(words.hashes.take(nexts), _NO_VERBS) | are_names(texts, words, nexts)
    lead: Bool = end_in_to & (words.gaps(matches.lasts) == ord(" ")) & are_nouns
    return lead


# Matches whose replacement does not fit in if it has this ending.
_MISFITS = {
    "no-name": (_are_names, ""),
    "clitic": (_are_alone, CLITICS),
    "infinitive": (_lead_to_nouns, BEFORE_VERBS),
}
TAGS = ("", "equal", "no-verb", *_MISFITS)  # see `lexical`


@dataclass(frozen=True)
class LexicalKernel:
    """Replace each match of a row in its lexicon with its rate; for one or more lexicons.

    `limits` holds the 48-bit thresholds, shape (lexicons, strengths); `taggers`, `tags` (see
    `lexical`) and `by_form` (see `Settings`) have one entry per lexicon. `lexicons` has the number
    of each row's lexicon.
    """

    table: PhraseTable
    limits: I64
    taggers: tuple[Tagger | None, ...]
    tags: tuple[str, ...]
    by_form: tuple[bool, ...] = (False,)
    lexicons: I64 | None = None

    @classmethod
    def joined(cls, kernels: Sequence["LexicalKernel"]) -> "LexicalKernel":
        """Return one kernel with the lexicons of all, whose strengths are the same."""
        return cls(
            phrases.side_by_side([kernel.table for kernel in kernels]),
            np.concatenate([kernel.limits for kernel in kernels]),
            tuple(tagger for kernel in kernels for tagger in kernel.taggers),
            tuple(rule for kernel in kernels for rule in kernel.tags),
            tuple(by_form for kernel in kernels for by_form in kernel.by_form),
        )

    @property
    def row_limits(self) -> I64:
        """The thresholds of the first lexicon."""
        limits: I64 = self.limits[0]
        return limits

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        return self.replaced(texts, self.table.find(texts, self.lexicons), keys, variants)

    def replaced(self, texts: Texts, found: Matches, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of the matches that were found."""
        lexicons = np.zeros(len(texts), np.int64) if self.lexicons is None else self.lexicons
        matches, pos = self._eligible(texts, found, lexicons)
        if not len(matches):
            return Edits.none()
        limits, numbers = self.limits[lexicons, variants["rate"]], None
        if any(self.by_form):
            by_form = np.array(self.by_form)[lexicons.take(matches.rows)]
            places = ordinals(matches.rows).astype(np.uint64)
            numbers = np.where(by_form, matches.forms(self.table.words(texts)), places)
        hit, draws = hits(keys, matches.rows, limits, numbers=numbers)
        matches, pos = matches.take(hit), pos.take(hit)
        drawn = self.table.alternatives(texts.values, matches, pos, choices(draws))
        changed = np.flatnonzero(self.table.stays.take(drawn // 3) == 0)
        matches, drawn = matches.take(changed), drawn.take(changed)
        dropped = self._misfits(texts, matches, drawn, lexicons.take(matches.rows))
        matches, drawn = matches.without(dropped), np.delete(drawn, dropped)
        # Take in the dot behind a match if the replacement has its own: 'Sun.', not 'Sun..'.
        behind = texts.values[np.minimum(matches.stops, len(texts.values) - 1)]
        dotted = (matches.stops < texts.offsets[matches.rows + 1]) & (behind == ord("."))
        stops = matches.stops + (dotted & self.table.ends_in_dot[drawn])
        return Edits(matches.rows, matches.starts, stops, drawn, self.table.pool)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the replacements of one row, for one lexicon."""
        row = self.table.row_words(row)
        found = self.table.find_row(row, 1 if self.by_form[0] else draws.least)
        return self.replaced_in(row, found, draws)

    def replaced_in(self, row: Row, found: list[RowMatch], draws: RowDraws) -> list[RowEdit]:
        """Propose the replacements of the matches that were found in one row."""
        by_form, limit = self.by_form[0], int(self.limits[0, draws.variants["rate"]])
        matches, groups = self._eligible_in(row, found)
        forms = row_forms(row, matches) if by_form else None
        hit = draws.hits(len(matches)) if forms is None else form_hits(draws.key, forms, limit)
        edits = list[RowEdit]()
        for number, drawn in hit:
            match = matches[number]
            start, stop = row.span(*match[:2])
            written = self.table.written(row, match, drawn, groups[number] if groups else None)
            if written != row.text[start:stop] and not self._is_misfit(row, match, written):
                dotted = written.endswith(".") and row.text[stop : stop + 1] == "."
                edits.append((start, stop + dotted, written))
        return edits

    def _misfits(self, texts: Texts, matches: Matches, drawn: I64, lexicon: I64) -> I64:
        """Return the numbers of the matches whose replacement does not fit in, see `lexical`."""
        misfits = np.zeros(len(matches), np.bool_)
        for rule in _MISFITS.keys() & {*self.tags}:
            are_out, endings = _MISFITS[rule]
            at = np.flatnonzero(np.array([tag == rule for tag in self.tags])[lexicon])
            at = at[are_out(texts, self.table, matches.take(at))]
            written = self.table.pool.take(as_arrow(drawn.take(at))).cast(pa.string())
            found = pc.match_substring_regex(written, endings).to_numpy(zero_copy_only=False)
            misfits[at[found.astype(np.bool_)]] = True
        return np.flatnonzero(misfits)

    def _is_misfit(self, row: Row, match: RowMatch, written: str) -> bool:
        """Tell whether a replacement in one row does not fit in, as `_misfits`."""
        (first, last, key), rule, is_followed = match, self.tags[0], row.is_followed(match[1])
        if rule == "no-name":
            return not self.table.cases_asked[key] and row.is_name(first)
        if rule == "clitic":
            leads_on = is_followed and row.hashes[last + 1] not in _BEHIND_GAP
            return not leads_on and _CLITIC.search(written) is not None
        if rule != "infinitive" or row.hashes[last] != _TO or first == last or not is_followed:
            return False
        is_noun = row.hashes[last + 1] in _NO_VERB or row.is_name(last + 1)
        return is_noun and _BEFORE_VERB.search(written) is not None

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
    kind: Kind = "habit"

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
            table = load_table(path, self.parser or parser_of(path), settings.matched_by)
        asks = self.tags in ("equal", "no-verb")
        tagger = make_tagger(settings.tagger, settings.lang) if asks else None
        limits = settings.limits(float(values["rate"]))[None]
        return LexicalKernel(table, limits, (tagger,), (self.tags,), (settings.by_form,))


def register_lexicon(
    source: LexicalSource, rate: float, summary: str, defined_at: str | None = None
) -> None:
    """Register a word list with a default rate as a transform; `defined_at` is file:line."""
    if source.tags not in TAGS:
        known = ", ".join(TAGS[1:])
        raise UsageError(f"{source.name} has no tags {source.tags!r}; known: {known}, or none")
    parameters = {"rate": Parameter("rate", rate, float)}
    where = defined_at or called_from(1)
    of_source = source.kernel, source.languages, source.files
    described = source.name, summary, parameters
    register(Transform(*described, *of_source, where, kind=source.kind))


def lexical(
    name: str, path: str | Path, *, rate: float = 1.0, summary: str = "", tags: str = "",
    kind: Kind = "habit",
) -> None:  # fmt: skip
    """Register a word list as a transform: each match is replaced with chance `rate`.

    `path` is a TSV (its head names source, license and lang) or a mined dictionary in Parquet;
    '{lang}' in it stands for the language. `tags` is '' (any), 'equal' (the entry's part of speech
    must be that of the match), 'no-verb' (the match must not be a verb), 'no-name' (it must not
    begin with a capital within a sentence), 'clitic' (a replacement that ends in one, such as
    "you've", needs a word after it) or 'infinitive' (one such as "gonna" needs a verb after it). In
    recipes with writers a word list is a 'habit', the same for each occurrence of a word in a row,
    or a 'slip' of one place.
    """
    where = Path(path)
    langs = head_of(where, "lang").get("lang", "*") if where.exists() else "*"
    source = LexicalSource(name, lambda: where, tags, langs=tuple(langs.split()), kind=kind)
    if not summary:
        summary = f"Replace words of {where.name}."
        if where.suffix != ".parquet" and "{lang}" not in str(where):
            first = Lexicon.load(where).entries[0]
            summary = f"{summary[:-1]}: '{first.clean}' -> '{first.noisy}'."
    register_lexicon(source, rate, summary, called_from(1))


def packaged(name: str) -> Path:
    """Return the path template of a packaged word list."""
    return DICTIONARIES / "{lang}" / f"{name}.tsv"
