"""Insertions: emoticons, emoji and interjections at the places where people put them.

They add content, so they change what a text says, and no default recipe has them.
"""

from itertools import accumulate
from pathlib import Path

import numpy as np

from noisegen.characters import Variants, code_points
from noisegen.draws import CHOICE_BITS, I64, U64, choices, decisions, draw_array
from noisegen.edits import Edits
from noisegen.lexicon import Entry, Lexicon
from noisegen.registry import DICTIONARIES, Settings, kernel
from noisegen.text import U8, Bool, Texts, ordinals

START, OPENING, COMMA, BARE, MARK, STOP = range(6)  # kinds of place
# What a list may hold for a kind of place: at the start of a text before a small letter, there
# before a capital, behind a comma, at the end, before the last mark, instead of a full stop.
ROLES = (
    ("start",), ("opening",), ("comma",),
    ("end",), ("end", "before"), ("end", "before", "instead"),
)  # fmt: skip
WORDS_BESIDE_COMMA = 3  # on either side: fewer are an address or a greeting
STOPPED_WORD_MIN = 5  # characters; shorter words before a full stop are often abbreviations
ANY_LANGUAGE = "any"  # folder of the list for languages without their own

_BLANK, _BREAK, _END_MARK, _GOES_ON = (
    bytes(code in signs for code in range(256))
    for signs in (b" \t\n\r\v\f", b"\n\r", b".!?", b"abcdefghijklmnopqrstuvwxyz0123456789")
)


def _is(values: U8, table: bytes) -> Bool:
    return np.frombuffer(values.tobytes().translate(table), np.bool_)


class InsertionList:
    """A list compiled: what may be inserted at each kind of place.

    Alternative a of kind k has its cumulative weight in `uppers` (k * 2^17 + share of 2^16); it is
    `pool[a]`, begins `backs[a]` bytes before the place and takes `widths[a]` bytes of text.
    """

    def __init__(self, entries: list[Entry]) -> None:
        uppers: list[int] = []
        chosen: list[Entry] = []
        for kind, roles in enumerate(ROLES):
            group = [entry for entry in entries if entry.clean in roles]
            sums = list(accumulate(entry.weight for entry in group))
            uppers += [(kind << 17) + (part << CHOICE_BITS) // sums[-1] for part in sums]
            chosen += group
        self.uppers = np.array(uppers, np.int64)
        self.kinds = np.unique(self.uppers - 1 >> 17)  # those with alternatives
        self.backs = np.array([entry.clean in ("before", "instead") for entry in chosen], np.int64)
        self.widths = np.array([entry.clean == "instead" for entry in chosen], np.int64)
        self.pool = Texts.from_strings([_spaced(entry) for entry in chosen]).to_arrow()


def _spaced(entry: Entry) -> str:
    return f"{entry.noisy} " if entry.clean in ("start", "opening") else f" {entry.noisy}"


class Insertions:
    """Insert at each place with its rate; `limits` has the 48-bit threshold of every strength.

    Draw number i of a row decides on its i-th place for which the list has something.
    """

    def __init__(self, listed: InsertionList, limits: I64) -> None:
        self._listed, self._limits = listed, limits

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the insertions of all rows."""
        rows, at, kinds = places(texts)
        served = np.flatnonzero(np.isin(kinds, self._listed.kinds))
        rows, at, kinds = rows.take(served), at.take(served), kinds.take(served)
        draws = draw_array(keys.take(rows), ordinals(rows))
        limits = self._limits.take(variants["rate"]).take(rows)
        hit = np.flatnonzero(decisions(draws) < limits)
        drawn = (kinds.take(hit) << 17) + choices(draws.take(hit))
        chosen = np.searchsorted(self._listed.uppers, drawn, side="right").astype(np.int64)
        starts = at.take(hit) - self._listed.backs.take(chosen)
        stops = starts + self._listed.widths.take(chosen)
        return Edits(rows.take(hit), starts, stops, chosen, self._listed.pool)


def places(texts: Texts) -> tuple[I64, I64, I64]:
    """Return row, byte position and kind of every place, ascending."""
    if not len(texts.window):
        none = np.zeros(0, np.int64)
        return none, none, none
    blank = _is(texts.window, _BLANK)
    inked = np.flatnonzero(~blank) + int(texts.offsets[0])
    ends = _line_ends(texts, inked)
    inner = np.setdiff1d(_inner_ends(texts), ends, assume_unique=True)
    # An end comes first: where rows touch, it may be at the same byte as the start of the next.
    found = [_ended(texts, np.union1d(ends, inner)), _commas(texts), _starts(texts, inked)]
    at, kinds = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(at, kind="stable")
    at, kinds = at.take(order), kinds.take(order)
    ending = kinds >= BARE
    rows: I64 = np.searchsorted(texts.offsets, at - ending, side="right") - 1
    return rows, at, kinds


def _line_ends(texts: Texts, inked: I64) -> I64:
    """Return the positions behind the last sign of every line that is not blank."""
    base = int(texts.offsets[0])
    breaks = np.flatnonzero(_is(texts.window, _BREAK)) + base
    edges = np.concatenate([breaks, texts.offsets[1:]])
    last = np.searchsorted(inked, edges) - 1
    ends: I64 = np.unique(inked.take(last[last >= 0])) + 1
    return ends


def _inner_ends(texts: Texts) -> I64:
    """Return the positions behind marks that end a sentence within a line."""
    base, window = int(texts.offsets[0]), texts.window
    marks = np.flatnonzero(_is(window[:-2], _END_MARK))
    marks = marks[(window[marks + 1] == ord(" ")) & ~_is(window[marks + 2], _GOES_ON)]
    rows = texts.rows_of(marks + base)
    marks = marks[marks + base + 2 < texts.offsets[rows + 1]]
    dots = window[marks] == ord(".")
    ends: I64 = marks[~dots | _behind_long_word(texts, marks + base)] + base + 1
    return ends


def _behind_long_word(texts: Texts, at: I64) -> Bool:
    """Tell which positions stand right behind a word that is hardly an abbreviation."""
    words = texts.tokens
    if not len(words):
        return np.zeros(len(at), np.bool_)
    number = np.minimum(np.searchsorted(words.stops, at), len(words) - 1)
    starts, stops = words.starts.take(number), words.stops.take(number)
    lengths = stops - starts
    if not texts.is_ascii:
        base = int(texts.offsets[0])
        inside = np.concatenate([[0], np.cumsum((texts.window & 0xC0) == 0x80)])
        lengths = lengths - (inside.take(stops - base) - inside.take(starts - base))
    long: Bool = (stops == at) & (lengths >= STOPPED_WORD_MIN)
    return long


def _ended(texts: Texts, at: I64) -> tuple[I64, I64]:
    """Return positions of ends with their kinds, by the marks before them."""
    base, window = int(texts.offsets[0]), texts.window
    last, before = window[at - base - 1], window[np.maximum(at - base - 2, 0)]
    first_of_row = np.isin(at - 1, texts.offsets)
    alone = ~_is(before, _END_MARK) & ~_is(before, _BLANK)  # neither "?!" nor "word ?"
    single = _is(last, _END_MARK) & alone & ~first_of_row
    return at, np.where(single, np.where(last == ord("."), STOP, MARK), BARE)


def _starts(texts: Texts, inked: I64) -> tuple[I64, I64]:
    """Return the first sign of every row that begins with a letter, and its kind."""
    first = np.searchsorted(inked, texts.offsets[:-1])
    rows = np.flatnonzero(first < len(inked))
    at = inked.take(first.take(rows))
    at = at[at < texts.offsets[rows + 1]]
    letters, which = np.unique(code_points(texts.values, at), return_inverse=True)
    shapes = [chr(point) for point in letters.tolist()]
    kinds = np.array([OPENING if sign.isupper() else START for sign in shapes], np.int64)
    is_letter = np.array([sign.isalpha() for sign in shapes], np.bool_)
    return at[is_letter[which]], kinds[which][is_letter[which]]


def _commas(texts: Texts) -> tuple[I64, I64]:
    """Return the positions behind commas that are the only one of a row, between clauses."""
    base, window, words = int(texts.offsets[0]), texts.window, texts.tokens
    at = np.flatnonzero(window == ord(",")) + base
    rows = texts.rows_of(at)
    single = np.flatnonzero(np.bincount(rows, minlength=len(texts)).take(rows) == 1)
    at, rows = at.take(single), rows.take(single)
    spaced = (at + 1 < texts.offsets[rows + 1]) & (
        window[np.minimum(at - base + 1, len(window) - 1)] == ord(" ")
    )
    at, rows = at[spaced], rows[spaced]
    passed = np.searchsorted(words.starts, at)
    firsts, lasts = (np.searchsorted(words.rows, rows + more) for more in (0, 1))
    fit = np.minimum(passed - firsts, lasts - passed) >= WORDS_BESIDE_COMMA
    return at[fit] + 1, np.full(int(fit.sum()), COMMA)


def _path(name: str, lang: str) -> Path:
    own = DICTIONARIES / lang / f"{name}.tsv"
    return own if own.exists() else DICTIONARIES / ANY_LANGUAGE / f"{name}.tsv"


def _made(name: str, settings: Settings, rate: float) -> Insertions:
    entries = Lexicon.load(_path(name, settings.lang)).entries
    return Insertions(InsertionList(entries), settings.limits(rate))


def _spoken() -> list[str]:
    return sorted(path.parent.name for path in DICTIONARIES.glob("*/intj.tsv"))


@kernel(
    "emot", lambda settings, _: [_path("emot", settings.lang)], lambda: ["*"], keeps_meaning=False
)
def emot(settings: Settings, *, rate: float = 0.3) -> Insertions:
    """Add emoticons and emoji at the ends of sentences: 'See you.' -> 'See you :)'."""
    return _made("emot", settings, rate)


@kernel("intj", lambda settings, _: [_path("intj", settings.lang)], _spoken, keeps_meaning=False)
def intj(settings: Settings, *, rate: float = 0.1) -> Insertions:
    """Add interjections: 'he forgot his keys' -> 'he forgot his keys lol'."""
    return _made("intj", settings, rate)
