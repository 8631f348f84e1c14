"""Grammar: function words that go, inflected forms that are mixed up, sentences that run on."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain, pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa

from noisegen.noising.edits import Edits
from noisegen.noising.lexical import LexicalSource, packaged, register_lexicon
from noisegen.noising.lexicon import Entry, Lexicon, head_of
from noisegen.noising.phrases import Matches, PhraseTable, RowMatch, build
from noisegen.noising.registry import Settings, kernel
from noisegen.noising.rng import (
    RowDraws,
    Variants,
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

WORDS = ("subject", "article", "auxiliary", "preposition", "other")
_LISTED = LanguageFiles("drop.tsv")


@dataclass(frozen=True)
class Phrases:
    """The phrases of a list that are searched together.

    `kinds` has the kind of each key; `words` how many words of a match each alternative leaves out
    from its start, 0 where it is written instead.
    """

    table: PhraseTable
    kinds: I64
    words: I64

    @classmethod
    def of(cls, head: dict[str, str], rows: list[list[str]]) -> "Phrases":
        """Compile rows of a list: clean, noisy, weight, what."""
        entries = [Entry(clean, noisy, int(weight)) for clean, noisy, weight, _ in rows]
        kinds = {clean: WORDS.index(what) for clean, *_, what in rows}
        lexicon = Lexicon(head, entries)
        alternatives = chain.from_iterable(lexicon.groups().values())
        words = np.array(list(map(_words_left_out, alternatives)), np.int64)
        return cls(build(lexicon), np.array([0, *kinds.values()], np.int64), words)


def _words_left_out(entry: Entry) -> int:
    """Return how many words of a phrase an entry leaves out from its start."""
    if entry.noisy and not entry.clean.endswith(f" {entry.noisy}"):
        return 0
    return len(entry.clean.split()) - len(entry.noisy.split())


@cache
def phrases_of(path: Path) -> tuple[Phrases, Phrases]:
    """Read a list: what begins a sentence, and what may stand anywhere in it."""
    head, rows = head_of(path, "name", "of"), rows_of(path)
    return (
        Phrases.of(head, [row for row in rows if row[3] == WORDS[0]]),
        Phrases.of(head, [row for row in rows if row[3] != WORDS[0]]),
    )


@dataclass(frozen=True)
class Omissions:
    """Leave out words before another word, those of each kind with a rate and a stream of its own.

    `limits` has the thresholds of every strength. Draw number i of a stream decides on the i-th
    phrase of its kind in a row that may go, and what is left of it.
    """

    subjects: Phrases
    words: Phrases
    limits: dict[str, I64]

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the omissions of all rows; where two overlap, the first stays."""
        if not len(texts.tokens):
            return Edits.none()
        parts = list[Edits]()
        for phrases, anywhere in ((self.subjects, False), (self.words, True)):
            matches = phrases.table.find(texts)
            matches = matches.take(np.flatnonzero(_may_go(texts, matches, phrases, anywhere)))
            kinds, drawn = phrases.kinds.take(matches.keys), np.full(len(matches), -1)
            for kind in np.unique(kinds).tolist():
                rate, these = f"{WORDS[kind]}_rate", np.flatnonzero(kinds == kind)
                limits = self.limits[rate].take(variants[rate])
                hit, draws = hits(fork_array(keys, rate), matches.rows.take(these), limits)
                drawn[these.take(hit)] = choices(draws)
            hit = np.flatnonzero(drawn >= 0)
            parts.append(_left_out(texts, phrases, matches.take(hit), drawn.take(hit)))
        edits = Edits.join(parts)
        kept = np.ones(len(edits), np.bool_)
        kept[overlapping(edits.starts, edits.stops)] = False
        return edits.keep(kept)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the omissions of one row."""
        edits, kept = list[RowEdit](), list[RowEdit]()
        for phrases, anywhere in ((self.subjects, False), (self.words, True)):
            of_kind = defaultdict[str, list[RowMatch]](list)
            for match in phrases.table.find_row(row):
                if _may_go_in(row, match, phrases, anywhere):
                    of_kind[f"{WORDS[phrases.kinds[match[2]]]}_rate"].append(match)
            for rate, matches in of_kind.items():
                limit = int(self.limits[rate][draws.variants[rate]])
                hit = row_hits(fork(draws.key, rate), range(len(matches)), limit)
                edits += [_edit_of(row, phrases, matches[number], drawn) for number, drawn in hit]
        for edit in sorted(edits, key=itemgetter(0)):
            if row.text[edit[0] : edit[1]] != edit[2] and (not kept or edit[0] >= kept[-1][1]):
                kept.append(edit)
        return kept


def _may_go(texts: Texts, matches: Matches, phrases: Phrases, anywhere: bool) -> Bool:
    """Tell before which matches a sentence begins, or `anywhere`, and a space and a word follow.

    Within a sentence a capital that the list does not have is a name: 'The Hague'.
    """
    values, at = texts.values, matches.starts - texts.offsets[matches.rows]
    before, earlier = (values.take(matches.starts - back, mode="clip") for back in (1, 2))
    may_go: Bool = (at == 0) | IS_BREAK[before] | ((at > 1) & IS_SPACE[before] & IS_END[earlier])
    if anywhere:
        may_go |= case_classes(values, matches.starts, matches.stops) != 1
        may_go |= phrases.table.cases_asked.take(matches.keys) == 1
    may_go &= texts.tokens.gaps(matches.lasts) == ord(" ")
    return may_go


def _may_go_in(row: Row, match: RowMatch, phrases: Phrases, anywhere: bool) -> bool:
    """Return `_may_go` of a match in one row."""
    first, last, key = match
    start = row.span(first)[0]
    before = row.text[max(0, start - 2) : start]
    begins = not start or before[-1] in "\n\r"
    begins = begins or (start > 1 and before[-1] in SPACES and before[0] in ".!?")
    if not begins and anywhere:
        is_cased = case_class(row.phrase(first, last)) == 1
        begins = not is_cased or phrases.table.cases_asked[key] == 1
    return begins and row.is_followed(last)


def _edit_of(row: Row, phrases: Phrases, match: RowMatch, drawn: int) -> RowEdit:
    """Return the edit of `_left_out` of a match in one row, which changes nothing if it stays."""
    first, last, key = match
    start, stop = row.span(first, last)
    number = phrases.table.choices.pick_one(phrases.table.first_groups[key], drawn)
    if phrases.table.stays[number]:
        return start, stop, row.text[start:stop]
    if not (count := int(phrases.words[number])):
        return start, stop, phrases.table.written(row, match, drawn)
    at = row.span(first + count)[0]
    letter = row.text[at]
    is_raised = case_class(row.phrase(first, last)) > 0 and title(letter) != letter
    return start, at + is_raised, title(letter) * is_raised


def _left_out(texts: Texts, phrases: Phrases, matches: Matches, drawn: I64) -> Edits:
    """Return the edits of matches that are hit, for the 16 bits that each has drawn.

    With a word goes the space behind it, and its capital is passed on to the next word.
    """
    table, words = phrases.table, texts.tokens
    written = table.alternatives(texts.values, matches, table.first_pos.take(matches.keys), drawn)
    goes = np.flatnonzero(table.stays.take(written // 3) == 0)
    matches, written = matches.take(goes), written.take(goes)
    count = phrases.words.take(written // 3)
    stops = np.where(count, words.starts.take(matches.firsts + count), matches.stops)
    is_cased = case_classes(texts.values, matches.starts, matches.stops) > 0
    raised, capitals = np.flatnonzero((count > 0) & is_cased), [""]
    for number, point in zip(raised, code_points(texts.values, stops.take(raised)), strict=True):
        capital = title(letter := chr(point))
        capitals.append(capital if capital != letter else "")
        stops[number] += len(letter.encode()) * (capital != letter)
    forms, left = table.pool.take(as_arrow(written)), Texts.from_strings(capitals).to_arrow()
    pool_numbers = np.where(count, len(forms), np.arange(len(forms)))  # a form, "", a capital
    pool_numbers[raised] += np.arange(1, len(capitals))
    return Edits(matches.rows, matches.starts, stops, pool_numbers, pa.concat_arrays([forms, left]))


@kernel("drop", _LISTED.read, _LISTED.languages)
def drop(
    settings: Settings, *, subject_rate: float = 0.3, article_rate: float = 0.2,
    auxiliary_rate: float = 0.05, preposition_rate: float = 0.05, other_rate: float = 0.1,
) -> Omissions:  # fmt: skip
    """Leave out subjects and function words: 'I think the shop is open' -> 'Think shop is open'.

    Subjects go at the start of a sentence; the others, before another word. Each rate is that of
    the words that people leave out most readily; others of their kind have a part of it, which
    `drop.tsv` gives in percent.
    """
    rates = {
        "subject_rate": subject_rate, "article_rate": article_rate,
        "auxiliary_rate": auxiliary_rate, "preposition_rate": preposition_rate,
        "other_rate": other_rate,
    }  # fmt: skip
    subjects, words = phrases_of(_LISTED.of(settings.lang))
    return Omissions(subjects, words, {name: settings.limits(rate) for name, rate in rates.items()})


for _name, _rate, _summary in (
    (
        "infl", 0.1,
        "Mix up forms of words, as learners do: 'she goes with two cats' -> 'she go with two cat'.",
    ),
    (
        "func", 0.2,
        "Mix up function words, as learners do: 'married to him on Monday' -> 'married with him in "
        "Monday'.",
    ),
    (
        "auto", 0.02,
        "Write another word of like letters that fits, as autocorrect does: 'I brought it back on "
        "time' -> 'I bought it back in time'.",
    ),
):  # fmt: skip
    _source = LexicalSource(_name, partial(packaged, _name), "no-name", kind="slip")
    register_lexicon(_source, _rate, _summary)


# Sentences that run on.

_OPENERS = LanguageFiles("runs.tsv")
# What stands between the sentences, whether the next begins with a small letter, and how often.
RUN_ON = ((", ", True, 5), (" ", True, 2), ("... ", False, 2), ("...", False, 1), (".. ", False, 1))
_LATIN_1 = 0xC3  # the highest first byte of its letters
_LOWERS = np.array([lowers for _, lowers, _ in RUN_ON], np.bool_)
_BETWEEN = WeightedChoices.of([[often for *_, often in RUN_ON]])


@dataclass(frozen=True)
class RunOns:
    """Run sentences together before words that begin one, each time with the rate.

    `openers` are the ascending hashes of these words as they begin a sentence; `small` tells those
    that lose their capital. Draw number i of a row decides on its i-th such place.
    """

    openers: U64
    small: Bool
    limits: I64
    needs: bytes = b"."

    @classmethod
    def of(cls, path: Path, limits: I64) -> "RunOns":
        """Read a list of words as they stand within a sentence."""
        words = [word for [word] in rows_of(path)]
        forms = {title(word).replace("'", mark): word for word in words for mark in APOSTROPHES}
        hashes = Texts.from_strings(list(forms)).tokens.hashes
        small = np.array([title(word) != word for word in forms.values()], np.bool_)
        order = np.argsort(hashes)
        return cls(hashes[order], small[order], limits)

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose what stands between the sentences of all rows instead of a full stop."""
        words, number = texts.tokens, self._sentences(texts)
        hit, draws = hits(keys, words.rows.take(number), self.limits.take(variants["rate"]))
        number, drawn = number.take(hit), _BETWEEN.pick(0, choices(draws)).tolist()
        starts, stops = words.stops.take(number - 1), words.starts.take(number)
        opener, _ = find_sorted(self.openers, words.hashes.take(number))
        loses, written = self.small[opener] & _LOWERS[drawn], list[str]()
        loses &= case_classes(texts.values, stops, words.stops.take(number)) < 2  # not 'THE END'
        for at, letter in enumerate(map(chr, code_points(texts.values, stops).tolist())):
            written.append(RUN_ON[drawn[at]][0] + letter.lower() * bool(loses[at]))
            stops[at] += len(letter.encode()) * bool(loses[at])
        pool = Texts.from_strings(written).to_arrow()
        return Edits(words.rows.take(number), starts, stops, np.arange(len(number)), pool)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose what stands between the sentences of one row instead of a full stop."""
        small, edits = self._small_of, list[RowEdit]()
        numbers = [
            number
            for number, (before, word) in enumerate(pairwise(row.words), 1)
            if row.gaps[number - 1] == ". " and row.hashes[number] in small
            and len(before.encode()) > 1
            and (case_class(word) > 0 or word[0].encode()[0] > _LATIN_1)
        ]  # fmt: skip
        limit = int(self.limits[draws.variants["rate"]])
        for at, drawn in row_hits(draws.key, range(len(numbers)), limit):
            number = numbers[at]
            between, lowers, _ = RUN_ON[_BETWEEN.pick_one(0, drawn)]
            start, loses = row.span(number)[0], lowers and small[row.hashes[number]]
            loses = loses and case_class(row.words[number]) < 2
            edits.append(
                (row.span(number - 1)[1], start + loses, between + row.text[start].lower() * loses)
            )
        return edits

    @cached_property
    def _small_of(self) -> dict[int, bool]:
        return dict(zip(self.openers.tolist(), self.small.tolist(), strict=True))

    def _sentences(self, texts: Texts) -> I64:
        """Return the numbers of the words before which sentences may run together."""
        words, values = texts.tokens, texts.values
        number = np.flatnonzero(words.rows[1:] == words.rows[:-1]) + 1
        number = number[find_sorted(self.openers, words.hashes.take(number))[1]]
        ends, starts = words.stops.take(number - 1), words.starts.take(number)
        stopped = (values[ends] == ord(".")) & (values[ends + 1] == ord(" ")) & (starts == ends + 2)
        is_initial = ends - words.starts.take(number - 1) == 1
        is_capital = case_classes(values, starts, words.stops.take(number)) > 0
        is_capital |= values[starts] > _LATIN_1  # of others only capitals are openers
        sentences: I64 = number[stopped & ~is_initial & is_capital]
        return sentences


@kernel("runs", _OPENERS.read, _OPENERS.languages, kind="style")
def runs(settings: Settings, *, rate: float = 0.2) -> RunOns:
    """Run sentences together: 'It works. I like it.' -> 'It works, I like it.'.

    Before words that often begin a sentence, a full stop becomes a comma, an ellipsis or nothing.
    """
    return RunOns.of(_OPENERS.of(settings.lang), settings.limits(rate))
