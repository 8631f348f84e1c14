"""Word lists as transforms: the kernel that replaces their phrases, and their registration."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
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
from noisegen.noising.rng import RowDraws, Strengths, choices, hits, row_hits
from noisegen.noising.tagging import Tagger, before_words, make_tagger
from noisegen.text.buffers import APOSTROPHES, I64, U64, Bool, Texts, as_arrow, ordinals
from noisegen.text.case import are_names
from noisegen.text.resources import DICTIONARIES
from noisegen.text.rows import Row, RowEdit

# Clitics, which need a word after them: "You have." does not become "You've.".
CLITICS = "(?i)['\u2019](m|re|s|ve|d|ll)$"
# Words that often follow a verb whose complement is missing or stands before the verb.
# Such a verb is not shortened: "how happy I am now" does not become "how happy I'm now".
BEHIND_GAPS = (
    "and anymore are as but can could did does has is nor now or right should than then today too "
    "was were will would"
)
BEFORE_VERBS = "(?i)(a|gon)$"  # end of 'gonna', 'gotta', 'imma' and 'gon', which need a verb next
# Words before which "to" introduces a place or a person, not a verb: "going to the shop".
NO_VERBS = (
    "a all an another any bed being both breakfast church class college court dinner doing each "
    "every everyone everything getting going having heaven hell her him his home it jail law lunch "
    "me my no one our parties prison school sea some someone something that the their them these "
    "this those town university us war what where which work you your"
)
# Forms of "have" behind a modal verb, and the words after which they help a verb, besides those in
# -ed: "should have seen it", but not "should have one".
HAVE = "have could've have might've must've should've would've"
PARTICIPLES = (
    "already also always become been begun bet bitten blown born bought bound broken brought "
    "built burnt caught chosen come cost cut dealt done drawn dreamt driven drunk dug easily "
    "eaten ever fallen felt flown forgiven forgot forgotten fought found frozen given gone got "
    "gotten grown had heard held hidden hit hung hurt just kept known laid lain learnt left lent "
    "let lit lost made meant met never not paid probably put quit read really ridden risen rung "
    "run said sat seen sent set shaken shown shrunk shut slept smelt sold spelt spent spoken "
    "spread stolen stood struck stuck sung sunk sworn swum taken taught thought thrown told torn "
    "understood won worn written"
)
ADDED = "(?i) (the|an?|am|are|is|be|they)$"  # end of "of the", which needs a content word next
# Words besides those of `before.tsv` before which no article or form of "be" is added.
NO_CONTENT = (
    "above abroad across after again ago ahead ain't alone along already also always among "
    "anybody anymore anyone anything anywhere apart around away back before behind below beside "
    "besides best better beyond cannot case cause doing down either else enough even ever "
    "everybody everyone everything everywhere exactly example except far fewer first front "
    "getting giving going had hadn't half has hasn't have haven't having hers him himself home "
    "how however hundreds i've inside instance instead it itself lots making me mine myself near "
    "nearly neither never nobody non none nor nothing now nowhere off often once only others ours "
    "ourselves out outside own perhaps regard respect since somebody somehow someone something "
    "sometimes somewhere soon still sure taking terms than theirs them themselves they've though "
    "thousands till today together tomorrow tonight toward towards twice until up upon us using "
    "usually versus via vs we've well where whether whom why within yesterday yet you've yours "
    "yourself yourselves"
)
TAGS = ("", "equal", "no-verb", "no-name", "article", "clitic", "infinitive")  # see `lexical`


def _hashes_of(words: str) -> U64:
    return Texts.from_strings([words]).tokens.hashes


_GAP_HASHES, _NO_VERB_HASHES = _hashes_of(BEHIND_GAPS), _hashes_of(NO_VERBS)
_HAVE_HASHES, _PARTICIPLE_HASHES = _hashes_of(HAVE), _hashes_of(PARTICIPLES)
_TO = int(_hashes_of("to")[0])


@dataclass(frozen=True)
class ListRules:
    """Rules by which the matches of one word list are replaced.

    `limits` has the 48-bit threshold of the rate at every strength. `tags` says which matches may
    be replaced, see `lexical`; where `tags` needs parts of speech, `tagger` finds them. With
    `words_alike`, equal phrases of a row get equal draws (see `Settings`).
    """

    limits: I64
    tagger: Tagger | None = None
    tags: str = ""
    words_alike: bool = False


@dataclass(frozen=True)
class LexicalKernel:
    """Kernel that replaces each phrase of a lexicon with a given chance.

    `table` may hold several lexicons; `lists[n]` has the rules of lexicon n. `propose` searches row
    r for phrases of lexicon `lexicons[r]` (default: 0), `edit_row` for phrases of lexicon 0.
    """

    table: PhraseTable
    lists: tuple[ListRules, ...]
    lexicons: I64 | None = None

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the replacements of the hit matches of one row.

        Draw i decides on match i: the match is hit if the high 48 bits of the draw are below the
        limit of the rate. The low 16 bits choose the replacement.
        """
        row = row.cut(self.table.matched_by)
        return self.replaced_in(row, self.table.find_row(row), draws)

    def replaced_in(self, row: Row, found: list[RowMatch], draws: RowDraws) -> list[RowEdit]:
        """Draw which of the matches found in one row are hit, and return their replacements."""
        rules = self.lists[0]
        groups: dict[int, int] = {}
        if found and rules.tagger:
            found, groups = self._eligible_in(row, found, rules.tagger)
        limit = int(rules.limits[draws.strengths["rate"]])
        forms = row_forms(row, found) if rules.words_alike else None
        hit = row_hits(draws.key, range(len(found)), limit, forms)
        edits: list[RowEdit] = []
        is_misfit = _ROW_MISFITS.get(rules.tags)
        for number, drawn in hit:
            match = found[number]
            start, stop = row.span(*match[:2])
            written = self.table.written(row, match, drawn, groups.get(number))
            if written == row.text[start:stop]:
                continue
            if is_misfit and is_misfit(row, self.table, match, written):
                continue
            if written.endswith(".") and row.text[stop : stop + 1] == ".":
                stop += 1  # replace the following full stop too: write 'Sun.', not 'Sun..'
            edits.append((start, stop, written))
        return edits

    def _eligible_in(
        self, row: Row, matches: list[RowMatch], tagger: Tagger
    ) -> tuple[list[RowMatch], dict[int, int]]:
        """Drop the matches in one row that have a part of speech excluded by the list's `tags`.

        Returns the other matches, and a dictionary from the index of a match to the group of its
        replacements.
        """
        eligible: list[RowMatch] = []
        groups: dict[int, int] = {}
        for match, (best, second) in zip(matches, tagger.tag_row(row, matches), strict=True):
            of_key = self.table.groups[match[2]]
            if self.lists[0].tags == "no-verb":
                group = -1 if best == POS.index("VERB") else self.table.first_groups[match[2]]
            else:
                group = int(of_key[best] if of_key[best] >= 0 else of_key[second])
            if group >= 0:
                groups[len(eligible)] = group
                eligible.append(match)
        return eligible, groups

    @classmethod
    def joined(cls, kernels: Sequence["LexicalKernel"]) -> "LexicalKernel":
        """Join kernels, which must have equal strengths, into one kernel with all lexicons."""
        table = phrases.side_by_side([kernel.table for kernel in kernels])
        return cls(table, tuple(rules for kernel in kernels for rules in kernel.lists))

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return the replacements of the hit matches of all rows."""
        return self.replaced(texts, self.table.find(texts, self.lexicons), keys, strengths)

    def replaced(self, texts: Texts, found: Matches, keys: U64, strengths: Strengths) -> Edits:
        """Draw which of the matches found in `texts` are hit, and return their replacements."""
        lexicons = np.zeros(len(texts), np.int64) if self.lexicons is None else self.lexicons
        matches, pos = self._eligible(texts, found, lexicons)
        if not len(matches):
            return Edits.none()
        all_limits = np.stack([rules.limits for rules in self.lists])
        limits, numbers = all_limits[lexicons, strengths["rate"]], None
        if any(rules.words_alike for rules in self.lists):
            words_alike = np.array([rules.words_alike for rules in self.lists])
            places = ordinals(matches.rows).astype(np.uint64)
            forms = matches.forms(self.table.words(texts))
            numbers = np.where(words_alike[lexicons.take(matches.rows)], forms, places)
        hit, draws = hits(keys, matches.rows, limits, numbers=numbers)
        matches, pos = matches.take(hit), pos.take(hit)
        drawn = self.table.alternatives(texts.values, matches, pos, choices(draws))
        changed = np.flatnonzero(self.table.stays.take(drawn // 3) == 0)
        matches, drawn = matches.take(changed), drawn.take(changed)
        misfits = self._misfits(texts, matches, drawn, lexicons.take(matches.rows))
        matches, drawn = matches.without(misfits), np.delete(drawn, misfits)
        # If a replacement ends in a full stop, a full stop after the match is replaced too.
        behind = texts.values[np.minimum(matches.stops, len(texts.values) - 1)]
        dotted = (matches.stops < texts.offsets[matches.rows + 1]) & (behind == ord("."))
        stops = matches.stops + (dotted & self.table.ends_in_dot[drawn])
        return Edits(matches.rows, matches.starts, stops, drawn, self.table.pool)

    def _eligible(self, texts: Texts, matches: Matches, lexicons: I64) -> tuple[Matches, I64]:
        """Drop the matches that have a part of speech excluded by the `tags` of their list.

        Returns the other matches, and for each of them the column in `PhraseTable.groups` of its
        part of speech. `lexicons` has the index of each row's lexicon.
        """
        pos = self.table.first_pos.take(matches.keys)
        keep = np.ones(len(matches), np.bool_)
        for number, rules in enumerate(self.lists):
            if rules.tagger is None:
                continue
            here = np.flatnonzero(lexicons.take(matches.rows) == number)
            best, second = rules.tagger.tag(texts, matches.take(here))
            if rules.tags == "no-verb":
                keep[here] = best != POS.index("VERB")
            else:
                groups = self.table.groups[matches.keys.take(here)]
                each = np.arange(len(here))
                pos[here] = np.where(groups[each, best] >= 0, best, second)
                keep[here] = groups[each, pos[here]] >= 0
        eligible = np.flatnonzero(keep)
        return matches.take(eligible), pos.take(eligible)

    def _misfits(self, texts: Texts, matches: Matches, drawn: I64, lexicons: I64) -> I64:
        """Return the indices of matches whose replacement is excluded by the `tags` of their list.

        `drawn` has the index of each match's replacement in the pool, `lexicons` the index of its
        lexicon.
        """
        misfits = np.zeros(len(matches), np.bool_)
        for tags in _MISFITS.keys() & {rules.tags for rules in self.lists}:
            of_tags = np.array([rules.tags == tags for rules in self.lists])
            here = np.flatnonzero(of_tags[lexicons])
            for are_out, endings in _MISFITS[tags]:
                at = here[are_out(texts, self.table, matches.take(here))]
                written = self.table.pool.take(as_arrow(drawn.take(at))).cast(pa.string())
                found = pc.match_substring_regex(written, endings).to_numpy(zero_copy_only=False)
                misfits[at[found.astype(np.bool_)]] = True
        return np.flatnonzero(misfits)


# Tests whether `tags` exclude a replacement. Each test is written twice: for one match (`_is_name`)
# and for arrays of matches (`_are_names`).


def _is_name(row: Row, table: PhraseTable, match: RowMatch, _: str) -> bool:
    """Tell whether a match such as 'Will' looks like a name, but is listed as 'will'."""
    first, _last, key = match
    return not table.cases_asked[key] and row.is_name(first)


def _is_alone(row: Row, table: PhraseTable, match: RowMatch, written: str) -> bool:
    """Tell whether a replacement such as "I'm" lacks the word that it needs after it."""
    last = match[1]
    leads_on = row.is_followed(last) and row.hashes[last + 1] not in _GAP_HASH_SET
    return not leads_on and re.search(CLITICS, written) is not None


def _leads_to_noun(row: Row, table: PhraseTable, match: RowMatch, written: str) -> bool:
    """Tell whether a noun follows a replacement such as "gonna" or "coulda", which needs a verb."""
    first, last, _ = match
    if not row.is_followed(last) or re.search(BEFORE_VERBS, written) is None:
        return False
    following = row.hashes[last + 1]
    if row.hashes[last] in _HAVE_HASH_SET:
        ends_in_ed = row.words[last + 1].lower().endswith("ed")
        return following not in _PARTICIPLE_HASH_SET and not ends_in_ed
    is_noun = following in _NO_VERB_HASH_SET or row.is_name(last + 1)
    return is_noun and row.hashes[last] == _TO and first < last


def _lacks_content(row: Row, table: PhraseTable, match: RowMatch, written: str) -> bool:
    """Tell whether a match is a name, or a replacement such as "of the" lacks a content word."""
    if _is_name(row, table, match, written):
        return True
    if re.search(ADDED, written) is None:
        return False
    following = match[1] + 1
    if not row.is_followed(following - 1) or row.hashes[following] in _function_hashes()[1]:
        return True
    return not "a" <= row.words[following][0] <= "z"


@cache
def _function_hashes() -> tuple[U64, frozenset[int]]:
    """Return the hashes of the words before which no article is added, as an array and a set."""
    listed = " ".join([*before_words(), NO_CONTENT])
    hashes = _hashes_of(" ".join(listed.replace("'", mark) for mark in APOSTROPHES))
    return hashes, frozenset(hashes.tolist())


_GAP_HASH_SET = frozenset(_GAP_HASHES.tolist())
_NO_VERB_HASH_SET = frozenset(_NO_VERB_HASHES.tolist())
_HAVE_HASH_SET = frozenset(_HAVE_HASHES.tolist())
_PARTICIPLE_HASH_SET = frozenset(_PARTICIPLE_HASHES.tolist())
_ROW_MISFITS = {
    "no-name": _is_name,
    "article": _lacks_content,
    "clitic": _is_alone,
    "infinitive": _leads_to_noun,
}


def _are_names(texts: Texts, table: PhraseTable, matches: Matches) -> Bool:
    names: Bool = table.cases_asked.take(matches.keys) == 0
    return names & are_names(texts, table.words(texts), matches.firsts)


def _are_alone(texts: Texts, table: PhraseTable, matches: Matches) -> Bool:
    words = table.words(texts)
    behind_gaps = np.isin(words.hashes.take(matches.lasts + 1, mode="clip"), _GAP_HASHES)
    alone: Bool = (words.gaps(matches.lasts) != ord(" ")) | behind_gaps
    return alone


def _lead_to_nouns(texts: Texts, table: PhraseTable, matches: Matches) -> Bool:
    words, nexts = table.words(texts), np.minimum(matches.lasts + 1, len(table.words(texts)) - 1)
    ends, following = words.hashes.take(matches.lasts), words.hashes.take(nexts)
    are_nouns = np.isin(following, _NO_VERB_HASHES) | are_names(texts, words, nexts)
    lead: Bool = (ends == _TO) & (matches.firsts < matches.lasts) & are_nouns
    stops, small = words.stops.take(nexts) - words.base, words.window | 32  # a bit of small letters
    end_in_ed = (small.take(stops - 2, mode="clip") == ord("e")) & (small[stops - 1] == ord("d"))
    lead |= np.isin(ends, _HAVE_HASHES) & ~np.isin(following, _PARTICIPLE_HASHES) & ~end_in_ed
    lead &= words.gaps(matches.lasts) == ord(" ")
    return lead


def _lack_content(texts: Texts, table: PhraseTable, matches: Matches) -> Bool:
    words, nexts = table.words(texts), np.minimum(matches.lasts + 1, len(table.words(texts)) - 1)
    letters = words.window.take(words.starts.take(nexts) - words.base)
    lack: Bool = (letters < ord("a")) | (letters > ord("z"))
    lack |= np.isin(words.hashes.take(nexts), _function_hashes()[0])
    lack |= words.gaps(matches.lasts) != ord(" ")
    return lack


# Value of `tags` -> pairs of (test of matches, regular expression). A match is not replaced if a
# test is True and the expression of the test is found in the replacement.
_MISFITS = {
    "no-name": ((_are_names, ""),),
    "article": ((_are_names, ""), (_lack_content, ADDED)),
    "clitic": ((_are_alone, CLITICS),),
    "infinitive": ((_lead_to_nouns, BEFORE_VERBS),),
}


class Original(Protocol):
    """Word list of a transform as found in the user's checkout of NL-Augmenter."""

    def files(self, folder: Path) -> list[Path]:
        """Return the files of the word list in `folder`, the checkout of NL-Augmenter."""
        ...

    def table(self, folder: Path) -> PhraseTable:
        """Compile the word list in `folder`, the checkout of NL-Augmenter, and return its table."""
        ...


@dataclass(frozen=True)
class LexicalSource:
    """Word list of a transform: its file, its `tags` (see `lexical`) and its languages.

    `path` returns the path of the file, in which '{lang}' stands for the language. `original`, if
    given, is read instead of the file if the user has a checkout of NL-Augmenter. `parser` reads
    the file (default: see `parser_of`). `langs` are the languages of a file without '{lang}'.
    """

    name: str
    path: Callable[[], Path]
    tags: str = ""
    parser: Parser | None = None
    langs: tuple[str, ...] = ("*",)
    original: Original | None = None
    kind: Kind = "habit"

    def files(self, settings: Settings, values: Mapping[str, Any]) -> list[Path]:
        """Return the files that a kernel with these settings reads."""
        if self.original and settings.nlaug_data:
            return self.original.files(settings.nlaug_data)
        return [Path(str(self.path()).replace("{lang}", settings.lang))]

    def languages(self) -> list[str]:
        """Return the languages that have a word list."""
        before, placeholder, after = str(self.path()).partition("{lang}")
        if not placeholder:
            return list(self.langs)
        return sorted(path.parent.name for path in Path(before).glob(f"*{after}"))

    def kernel(self, settings: Settings, values: Mapping[str, Any]) -> LexicalKernel:
        """Make the kernel for these settings; `values` has the parameter `rate`."""
        if self.original and settings.nlaug_data:
            table = self.original.table(settings.nlaug_data)
        else:
            [path] = self.files(settings, values)
            table = load_table(path, self.parser or parser_of(path), settings.matched_by)
        asks = self.tags in ("equal", "no-verb")
        tagger = make_tagger(settings.tagger, settings.lang) if asks else None
        limits = settings.limits(float(values["rate"]))
        rules = ListRules(limits, tagger, self.tags, settings.words_alike)
        return LexicalKernel(table, (rules,))


def register_lexicon(
    source: LexicalSource, rate: float, summary: str, defined_at: str | None = None
) -> None:
    """Register a word list as a transform with `rate` as its default rate.

    `summary` is the help text. `defined_at` is the file:line of the definition (default: the line
    of the caller).
    """
    if source.tags not in TAGS:
        known = ", ".join(TAGS[1:])
        raise UsageError(f"{source.name} has no tags {source.tags!r}; known: {known}, or none")
    parameters = {"rate": Parameter("rate", rate, float)}
    where = defined_at or called_from(1)
    of_source = source.kernel, source.languages, source.files
    described = source.name, summary, parameters
    register(Transform(*described, *of_source, where, kind=source.kind))


def lexical(
    name: str,
    path: str | Path,
    *,
    rate: float = 1.0,
    summary: str = "",
    tags: str = "",
    kind: Kind = "habit",
) -> None:
    """Register a word list as the transform `name`: each match is replaced with chance `rate`.

    `summary` is its help text. Raises LexiconError for a file that cannot be read, and UsageError
    for unknown `tags`. `path` is a TSV file (its head names source, license and lang) or a mined
    dictionary in Parquet; '{lang}' in the path stands for the language. `kind` matters in recipes
    with writers: a 'habit' is drawn once for all occurrences of a phrase in a row, a 'slip' for
    each occurrence.

    `tags` limits the matches that are replaced:

    - '': no limit;
    - 'equal': match and entry have the same part of speech;
    - 'no-verb': the match is not a verb;
    - 'no-name': the match does not begin with a capital within a sentence;
    - 'article': as 'no-name', and a replacement that ends in an added article, pronoun or form of
      "be", such as "of the", needs a word in small letters after it that is no function word;
    - 'clitic': a replacement that ends in a clitic, such as "you've", needs a word after it;
    - 'infinitive': a replacement such as "gonna" needs a verb after it, one such as "coulda" a
      participle.
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
    """Return the path of a packaged word list, with '{lang}' for the language."""
    return DICTIONARIES / "{lang}" / f"{name}.tsv"
