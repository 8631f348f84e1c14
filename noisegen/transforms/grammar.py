"""Grammar noise: dropped function words, mixed-up word forms, sentences that run together."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from noisegen.noising.edits import Edits
from noisegen.noising.lexical import LexicalSource, packaged, register_lexicon
from noisegen.noising.lexicon import Entry, Lexicon, head_of
from noisegen.noising.phrases import Matches, PhraseTable, RowMatch, build
from noisegen.noising.registry import Settings, kernel
from noisegen.noising.rng import (
    RowDraws,
    Strengths,
    WeightedChoices,
    choices,
    fork,
    fork_array,
    hits,
    row_hits,
)
from noisegen.text.buffers import (
    APOSTROPHES,
    I64,
    U64,
    Bool,
    Texts,
    as_arrow,
    code_points,
    find_sorted,
    overlapping,
)
from noisegen.text.case import case_class, case_classes, title
from noisegen.text.rows import Row, RowEdit
from noisegen.transforms import IS_BREAK, IS_END, IS_SPACE, SPACES, LanguageFiles, rows_of

# Kinds of phrases that `drop` leaves out.
KINDS = ("subject", "article", "auxiliary", "preposition", "other")
_LISTED = LanguageFiles("drop.tsv")


@dataclass(frozen=True)
class Phrases:
    """Phrases of `drop.tsv` that are searched together in a text.

    `kinds[key]` is the index in `KINDS` of the kind of the phrase with this key in `table`.
    `left_out` has for each replacement in `table` how many words it removes from the start of the
    phrase, or 0 if it replaces the whole phrase. A phrase is removed only at the beginning of a
    sentence unless `within` is True.
    """

    table: PhraseTable
    kinds: I64
    left_out: I64
    within: bool

    @classmethod
    def of(cls, head: dict[str, str], rows: list[list[str]], within: bool) -> "Phrases":
        """Compile rows of `drop.tsv`, each with the columns clean, noisy, weight, kind."""
        entries = [Entry(clean, noisy, int(weight)) for clean, noisy, weight, _ in rows]
        kinds = {clean: KINDS.index(kind) for clean, *_, kind in rows}
        lexicon = Lexicon(head, entries)
        alternatives = chain.from_iterable(lexicon.groups().values())
        left_out = np.array(list(map(_words_left_out, alternatives)), np.int64)
        return cls(build(lexicon), np.array([0, *kinds.values()], np.int64), left_out, within)


def _words_left_out(entry: Entry) -> int:
    """Return how many words an entry removes from the start of its phrase: 1 for 'I am' -> 'am'.

    Returns 0 if the noisy text is not the end of the clean phrase.
    """
    if entry.noisy and not entry.clean.endswith(f" {entry.noisy}"):
        return 0
    return len(entry.clean.split()) - len(entry.noisy.split())


@cache
def phrases_of(path: Path) -> tuple[Phrases, Phrases]:
    """Read `drop.tsv` into two groups: subjects, which begin a sentence, and all other phrases."""
    head, rows = head_of(path, "name", "of"), rows_of(path)
    subjects = [row for row in rows if row[3] == KINDS[0]]
    others = [row for row in rows if row[3] != KINDS[0]]
    return Phrases.of(head, subjects, within=False), Phrases.of(head, others, within=True)


@dataclass(frozen=True)
class Omissions:
    """Kernel that leaves out listed phrases before another word.

    Each kind of phrase has its own rate and its own random stream. `limits` maps 'article_rate' and
    so on to the rate at each strength of the recipe, in units of 2^-48. In a row, the i-th random
    number of the stream decides on the i-th phrase of the kind and chooses its replacement. If two
    omissions overlap, only the first is made. If a capitalised phrase is left out, the next word is
    capitalised.
    """

    phrases: tuple[Phrases, ...]
    limits: dict[str, I64]

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the edits that leave out phrases in one row."""
        found: list[RowEdit] = []
        for phrases in self.phrases:
            of_rate: dict[str, list[RowMatch]] = defaultdict(list)
            for match in phrases.table.find_row(row):
                if _may_go(row, match, phrases):
                    of_rate[f"{KINDS[phrases.kinds[match[2]]]}_rate"].append(match)
            for rate, matches in of_rate.items():
                limit = int(self.limits[rate][draws.strengths[rate]])
                for number, drawn in row_hits(fork(draws.key, rate), range(len(matches)), limit):
                    found.append(_omission(row, matches[number], phrases, drawn))
        edits: list[RowEdit] = []
        for start, stop, written in sorted(found, key=itemgetter(0)):
            is_first = not edits or start >= edits[-1][1]
            if is_first and row.text[start:stop] != written:
                edits.append((start, stop, written))
        return edits

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return the edits that leave out phrases in a batch of rows."""
        if not len(texts.tokens):
            return Edits.none()
        parts = list[Edits]()
        for phrases in self.phrases:
            matches = phrases.table.find(texts)
            matches = matches.take(np.flatnonzero(_which_may_go(texts, matches, phrases)))
            kinds, drawn = phrases.kinds.take(matches.keys), np.full(len(matches), -1)
            for kind in np.unique(kinds).tolist():
                rate, of_kind = f"{KINDS[kind]}_rate", np.flatnonzero(kinds == kind)
                limits = self.limits[rate].take(strengths[rate])
                hit, draws = hits(fork_array(keys, rate), matches.rows.take(of_kind), limits)
                drawn[of_kind.take(hit)] = choices(draws)
            hit = np.flatnonzero(drawn >= 0)
            parts.append(_omissions(texts, matches.take(hit), phrases, drawn.take(hit)))
        edits = Edits.join(parts)
        is_first = np.ones(len(edits), np.bool_)
        is_first[overlapping(edits.starts, edits.stops)] = False
        return edits.keep(is_first)


def _may_go(row: Row, match: RowMatch, phrases: Phrases) -> bool:
    """Tell whether a phrase may be left out: it begins a sentence, and a space and a word follow.

    With `phrases.within` the phrase may also stand inside a sentence, unless it begins a name, such
    as 'The Hague': it is capitalised in the text, but not in the list.
    """
    first, last, key = match
    start = row.span(first)[0]
    before = row.text[max(0, start - 2) : start]
    may_go = not start or before[-1] in "\n\r"
    may_go = may_go or (start > 1 and before[-1] in SPACES and before[0] in ".!?")
    if phrases.within and not may_go:
        has_own_capital = phrases.table.cases_asked[key] == 1
        may_go = case_class(row.phrase(first, last)) != 1 or has_own_capital
    return may_go and row.is_followed(last)


def _which_may_go(texts: Texts, matches: Matches, phrases: Phrases) -> Bool:
    """Return the result of `_may_go` for each phrase found in a batch."""
    values, at = texts.values, matches.starts - texts.offsets[matches.rows]
    before, earlier = (values.take(matches.starts - back, mode="clip") for back in (1, 2))
    may_go: Bool = (at == 0) | IS_BREAK[before] | ((at > 1) & IS_SPACE[before] & IS_END[earlier])
    if phrases.within:
        may_go |= case_classes(values, matches.starts, matches.stops) != 1
        may_go |= phrases.table.cases_asked.take(matches.keys) == 1
    may_go &= texts.tokens.gaps(matches.lasts) == ord(" ")
    return may_go


def _capital(letter: str) -> str:
    """Return the capital of a small letter; '' if the letter has none or is a capital itself."""
    capital = title(letter)
    return capital if capital != letter else ""


def _omission(row: Row, match: RowMatch, phrases: Phrases, drawn: int) -> RowEdit:
    """Return the edit of a found phrase; the 16 random bits `drawn` choose its replacement.

    If the replacement equals the phrase, the edit changes nothing, and `edit_row` drops it.
    """
    (first, last, key), table = match, phrases.table
    start, stop = row.span(first, last)
    chosen = table.choices.pick_one(table.first_groups[key], drawn)
    if table.stays[chosen]:
        return start, stop, row.text[start:stop]
    if not (left_out := int(phrases.left_out[chosen])):
        return start, stop, table.written(row, match, drawn)
    next_word = row.span(first + left_out)[0]
    is_cased = case_class(row.phrase(first, last)) > 0
    capital = _capital(row.text[next_word]) if is_cased else ""
    return start, next_word + len(capital), capital


def _omissions(texts: Texts, matches: Matches, phrases: Phrases, drawn: I64) -> Edits:
    """Return the edits of phrases in a batch, as `_omission`, except edits that change nothing."""
    table, words = phrases.table, texts.tokens
    forms = table.alternatives(texts.values, matches, table.first_pos.take(matches.keys), drawn)
    goes = np.flatnonzero(table.stays.take(forms // 3) == 0)
    matches, forms = matches.take(goes), forms.take(goes)
    left_out = phrases.left_out.take(forms // 3)
    stops = np.where(left_out, words.starts.take(matches.firsts + left_out), matches.stops)
    is_cased = case_classes(texts.values, matches.starts, matches.stops) > 0
    letters = code_points(texts.values, stops)  # first letter of the word after each omission
    written = table.pool.take(as_arrow(forms)).cast(pa.string()).to_pylist()
    for number in np.flatnonzero(left_out).tolist():
        letter = chr(letters[number])
        written[number] = _capital(letter) if is_cased[number] else ""
        stops[number] += len(letter.encode()) if written[number] else 0
    pool = Texts.from_strings(written).to_arrow()
    return Edits(matches.rows, matches.starts, stops, np.arange(len(written)), pool)


@kernel("drop", _LISTED.read, _LISTED.languages)
def drop(
    settings: Settings,
    *,
    subject_rate: float = 0.3,
    article_rate: float = 0.2,
    auxiliary_rate: float = 0.05,
    preposition_rate: float = 0.05,
    other_rate: float = 0.1,
) -> Omissions:
    """Leave out subjects and function words: 'I think the shop is open' -> 'Think shop is open'.

    Subjects are left out at the start of a sentence, words of other kinds before another word. Each
    kind has a rate: the chance to leave out the words of the kind that people omit most often.
    Other words of the kind have a lower chance: a percentage of the rate, listed in `drop.tsv`.
    """
    rates = {
        "subject_rate": subject_rate,
        "article_rate": article_rate,
        "auxiliary_rate": auxiliary_rate,
        "preposition_rate": preposition_rate,
        "other_rate": other_rate,
    }
    limits = {name: settings.limits(rate) for name, rate in rates.items()}
    return Omissions(phrases_of(_LISTED.of(settings.lang)), limits)


# Transforms that mix up words by a word list: name, default rate, tags and help of each.
MIXED_UP = (
    (
        "infl",
        0.1,
        "no-name",
        "Mix up forms of words, as learners do: 'she goes with two cats' -> 'she go with two cat'.",
    ),
    (
        "func",
        0.2,
        "article",
        "Mix up and add function words, as learners do: 'married to him in old age' -> 'married "
        "with him in the old age'.",
    ),
    (
        "auto",
        0.02,
        "no-name",
        "Write another word of like letters that fits, as autocorrect does: 'I brought it back on "
        "time' -> 'I bought it back in time'.",
    ),
)
for _name, _rate, _tags, _summary in MIXED_UP:
    _source = LexicalSource(_name, partial(packaged, _name), _tags, kind="slip")
    register_lexicon(_source, _rate, _summary)


# Sentences that run together.


class RunOn(NamedTuple):
    """A way to join two sentences: `between` replaces the full stop and the space after it."""

    between: str
    lowers: bool  # True if the first letter of the second sentence becomes small
    weight: int


RUN_ON = (
    RunOn(", ", True, 5),
    RunOn(" ", True, 2),
    RunOn("... ", False, 2),
    RunOn("...", False, 1),
    RunOn(".. ", False, 1),
)
_OPENERS = LanguageFiles("runs.tsv")
_LATIN_1 = 0xC3  # a character whose first UTF-8 byte is greater is beyond Latin-1
_LOWERS = np.array([way.lowers for way in RUN_ON], np.bool_)
_WAYS = WeightedChoices.of([[way.weight for way in RUN_ON]])


@dataclass(frozen=True)
class RunOns:
    """Kernel that joins two sentences with chance `rate` if the second begins with an opener.

    An opener is a word that often begins a sentence. `openers` has the ascending hashes of the
    capitalised openers; `small` tells for each opener whether it may lose its capital ('I' may
    not). `limits` has `rate` at each strength of the recipe, in units of 2^-48. The i-th random
    number of a row decides on the i-th pair of sentences that may be joined.
    """

    openers: U64
    small: Bool
    limits: I64
    needs: bytes = b"."

    @classmethod
    def of(cls, path: Path, limits: I64) -> "RunOns":
        """Read a file of openers, each written as in the middle of a sentence: 'but', 'I'."""
        words = [word for [word] in rows_of(path)]
        forms = {title(word).replace("'", mark): word for word in words for mark in APOSTROPHES}
        hashes = Texts.from_strings(list(forms)).tokens.hashes
        small = np.array([title(word) != word for word in forms.values()], np.bool_)
        order = np.argsort(hashes)
        return cls(hashes[order], small[order], limits)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the edits that join sentences in one row."""
        numbers = [number for number in range(1, len(row.words)) if self._may_join(row, number)]
        limit = int(self.limits[draws.strengths["rate"]])
        edits: list[RowEdit] = []
        for place, drawn in row_hits(draws.key, range(len(numbers)), limit):
            number = numbers[place]
            way, word = RUN_ON[_WAYS.pick_one(0, drawn)], row.words[number]
            start = row.span(number)[0]
            lowers = way.lowers and self._is_small[row.hashes[number]]
            lowers = lowers and case_class(word) < 2  # 'THE END' keeps its capitals
            written = way.between + (word[0].lower() if lowers else "")
            edits.append((row.span(number - 1)[1], start + lowers, written))
        return edits

    def _may_join(self, row: Row, number: int) -> bool:
        """Tell whether the word with index `number` begins a sentence that may be joined."""
        before, word = row.words[number - 1], row.words[number]
        if row.gaps[number - 1] != ". " or row.hashes[number] not in self._is_small:
            return False
        is_initial = len(before.encode()) == 1
        # Hashes ignore case in ASCII and Latin-1 only, so only there a small letter must be ruled
        # out: beyond Latin-1, a word has the hash of a capitalised word only with a capital.
        return not is_initial and (case_class(word) > 0 or word[0].encode()[0] > _LATIN_1)

    @cached_property
    def _is_small(self) -> dict[int, bool]:
        """Hash of each word in `openers` -> whether the word may lose its capital."""
        return dict(zip(self.openers.tolist(), self.small.tolist(), strict=True))

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return the edits that join sentences in a batch of rows."""
        words, number = texts.tokens, self._which_may_join(texts)
        hit, draws = hits(keys, words.rows.take(number), self.limits.take(strengths["rate"]))
        number, ways = number.take(hit), _WAYS.pick(0, choices(draws))
        starts, stops = words.stops.take(number - 1), words.starts.take(number)
        opener, _ = find_sorted(self.openers, words.hashes.take(number))
        lowers = self.small[opener] & _LOWERS[ways]
        lowers &= case_classes(texts.values, stops, words.stops.take(number)) < 2
        letters, written = code_points(texts.values, stops), list[str]()
        for place, way in enumerate(ways.tolist()):
            letter = chr(letters[place]) if lowers[place] else ""
            written.append(RUN_ON[way].between + letter.lower())
            stops[place] += len(letter.encode())
        pool = Texts.from_strings(written).to_arrow()
        return Edits(words.rows.take(number), starts, stops, np.arange(len(number)), pool)

    def _which_may_join(self, texts: Texts) -> I64:
        """Return the indices of the words in a batch for which `_may_join` is true."""
        words, values = texts.tokens, texts.values
        number = np.flatnonzero(words.rows[1:] == words.rows[:-1]) + 1
        number = number[find_sorted(self.openers, words.hashes.take(number))[1]]
        ends, starts = words.stops.take(number - 1), words.starts.take(number)
        is_stop = (values[ends] == ord(".")) & (values[ends + 1] == ord(" ")) & (starts == ends + 2)
        is_initial = ends - words.starts.take(number - 1) == 1
        is_capital = case_classes(values, starts, words.stops.take(number)) > 0
        is_capital |= values[starts] > _LATIN_1
        which: I64 = number[is_stop & ~is_initial & is_capital]
        return which


@kernel("runs", _OPENERS.read, _OPENERS.languages, kind="style")
def runs(settings: Settings, *, rate: float = 0.2) -> RunOns:
    """Run sentences together: 'It works. I like it.' -> 'It works, I like it.'.

    Before words that often begin a sentence, a full stop becomes a comma, an ellipsis or nothing.
    """
    return RunOns.of(_OPENERS.of(settings.lang), settings.limits(rate))
