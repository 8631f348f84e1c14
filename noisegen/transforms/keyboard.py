"""Typing slips: a neighbouring key hit instead of the right key, and several slips in one word.

The neighbours of a key are computed from the positions of the keys in a keyboard layout.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations, product
from math import hypot
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisegen.errors import UsageError, did_you_mean
from noisegen.noising import rng
from noisegen.noising.edits import Edits
from noisegen.noising.kernels import Substitution, character_map
from noisegen.noising.lexicon import Entry, head_of
from noisegen.noising.registry import Settings, kernel
from noisegen.text import buffers
from noisegen.text.buffers import I64, U64, Bool, Texts, Tokens
from noisegen.text.resources import DICTIONARIES
from noisegen.text.rows import Row, RowEdit
from noisegen.text.sequences import forbidden_sequences, may_replace
from noisegen.transforms import rows_of
from noisegen.transforms.checkout import original_characters, original_files

KEYBOARDS = DICTIONARIES / "keyboards"
# First, middle and last letters of Hangul syllables, in Unicode's order; a blank is no letter.
_FIRST = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_MIDDLE = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_LAST = " ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"
REACH = 1.3  # greatest distance of the centres of neighbouring keys, in key widths


class Key(NamedTuple):
    """A key: its position in key widths, and its letters without and with shift ('' for none)."""

    x: float
    y: float
    plain: str
    shifted: str


@dataclass(frozen=True)
class Keyboard:
    """A keyboard layout: its name, the languages that are typed on it, and its keys."""

    name: str
    langs: tuple[str, ...]
    keys: tuple[Key, ...]

    def neighbours(self) -> list[Entry]:
        """Return an entry (wanted letter, hit letter) for each two letters on neighbouring keys.

        The keys are at most `REACH` apart, and both letters are typed without shift, or both with
        shift. A key of the number row, such as é on a French keyboard, is hit by mistake only if
        the wanted key is in the number row too.
        """
        pairs = set[tuple[str, str]]()
        for key, other in permutations(self.keys, 2):
            touches = hypot(key.x - other.x, key.y - other.y) <= REACH
            if touches and (other.y or not key.y):
                pairs |= {(key.plain, other.plain), (key.shifted, other.shifted)}
        return sorted(Entry(wanted, hit) for wanted, hit in pairs if wanted and hit)

    def substitutes(self) -> list[Entry]:
        """Return the `neighbours` whose hit letter may stand wherever the wanted letter may stand.

        A vowel sign may not replace a letter, where vowel signs have keys of their own (Inscript).
        Korean keys write letters of syllables; its entries have syllables that differ in a letter.
        """
        entries = self.neighbours()
        if self.name == "korean":
            return _syllables(entries)
        return [entry for entry in entries if may_replace(entry.clean, entry.noisy)]


def _syllables(letters: list[Entry]) -> list[Entry]:
    """Return an entry for each two Hangul syllables that differ in one letter as in `letters`.

    Only the 2,350 syllables of KS X 1001 are in it, which are those of Korean words.
    """
    letters_of = {
        chr(code): parts
        for code, parts in enumerate(product(_FIRST, _MIDDLE, _LAST), 0xAC00)
        if len(chr(code).encode("euc_kr")) == 2  # the codec writes all others in 8 bytes
    }
    written = {"".join(parts): syllable for syllable, parts in letters_of.items()}
    found = []
    for wanted, parts in letters_of.items():
        for place, entry in product(range(3), letters):
            if parts[place] == entry.clean:
                hit = "".join([*parts[:place], entry.noisy, *parts[place + 1 :]])
                found += [Entry(wanted, written[hit])] if hit in written else []
    return found


@cache
def all_keyboards() -> list[Keyboard]:
    """Read the packaged layouts, one file each.

    A file has lines `# key: value`, a header, and a line per key: x, y, letter, shifted letter. A
    layout without languages, such as Dvorak, is used only where it is named.
    """
    keyboards = []
    for path in sorted(KEYBOARDS.glob("*.tsv")):
        keys = [Key(float(x), float(y), plain, shifted) for x, y, plain, shifted in rows_of(path)]
        langs = head_of(path, "lang")["lang"].split()
        keyboards.append(Keyboard(path.stem, tuple(langs), tuple(keys)))
    return keyboards


def languages() -> list[str]:
    """Return the codes of the languages that have a layout, sorted."""
    return sorted({lang for keyboard in all_keyboards() for lang in keyboard.langs})


def _mash_languages() -> list[str]:
    return sorted(set(languages()) - {"ko"})  # words have syllables, its keys write their letters


def keyboard_of(lang: str, layout: str | None = None) -> Keyboard:
    """Return the layout named `layout`, or by default the first layout of a language.

    Raises UsageError for an unknown name.
    """
    for keyboard in all_keyboards():
        if keyboard.name == layout or (layout is None and lang in keyboard.langs):
            return keyboard
    names = [keyboard.name for keyboard in all_keyboards()]
    near = did_you_mean(str(layout), names) or f"; known: {', '.join(names)}"
    raise UsageError(f"no keyboard layout named {layout!r}{near}")


def _layout_file(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    layout = keyboard_of(settings.lang, values.get("layout"))
    return [KEYBOARDS / f"{layout.name}.tsv"]


def _key_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    layout = _layout_file(settings, values)  # raises UsageError for an unknown layout
    return original_files(settings.nlaug_data, "fing") or layout


@kernel("fing", _key_files, languages)
def fing(settings: Settings, *, rate: float = 0.05, layout: str | None = None) -> Substitution:
    """Hit a neighbouring key: 'soon' -> 'aiib'."""
    entries = original_characters(settings.nlaug_data, "fing")
    entries = entries or keyboard_of(settings.lang, layout).substitutes()
    return Substitution(character_map(entries), settings.gaps(rate))


SLIPS_FROM = (3, 6, 10)  # fewest letters of words that get one, two and three slips
ADDED, SWAPPED, DOUBLED, DROPPED = range(4)  # kinds of slips; ADDED: a neighbouring key is also hit
# Kinds of slips to choose from, each entry with equal chance.
KINDS = np.array([ADDED] * 3 + [SWAPPED] * 2 + [DOUBLED] + [DROPPED] * 2)
_POINT_BITS = 21  # bits per code point in a number made of two code points


def allowed_slips(word: str, slips: list[RowEdit]) -> list[RowEdit]:
    """Return the longest start of a word's typing slips that its script allows.

    `slips` are edits of the word. The last slip is dropped until the noisy word has no more
    forbidden letter sequences than `word`. [] is returned if the slips together leave the word
    unchanged, as when one of two equal letters is dropped and the other is doubled.
    """
    forbidden = forbidden_sequences(word).total()
    while slips:
        written = word
        for start, stop, letters in reversed(slips):
            written = written[:start] + letters + written[stop:]
        if forbidden_sequences(written).total() <= forbidden:
            return slips if written != word else []
        slips = slips[:-1]
    return slips


@dataclass(frozen=True)
class Mashing:
    """Kernel that makes slips in words of three letters or more, each word with chance `rate`.

    `keys` maps letters to the letters of neighbouring keys; words with other letters stay. `limits`
    has `rate` at each strength of the recipe, in units of 2^-48. The i-th random number of a row
    decides on its i-th word. The first letter of a word stays, as it is seldom wrong (Kukich,
    1992). The other letters are cut into one to three runs, with one slip in each. Slip k of word i
    uses the random numbers 6i + 2k and 6i + 2k + 1 of the random stream "slip"; i and k are counted
    from 0.
    """

    keys: rng.WeightedTexts
    limits: I64

    def edit_row(self, row: Row, draws: rng.RowDraws) -> list[RowEdit]:
        """Return the edits of all slips in one row."""
        edits: list[RowEdit] = []
        stream = rng.fork(draws.key, "slip")
        limit = int(self.limits[draws.strengths["rate"]])
        for number, _ in rng.row_hits(draws.key, range(len(row.words)), limit):
            word, begin = row.words[number], row.span(number)[0]
            if self._can_be_typed(word):
                slips = self._slips(word, stream, 2 * len(SLIPS_FROM) * number)
                edits += [(begin + start, begin + stop, written) for start, stop, written in slips]
        return edits

    def _can_be_typed(self, word: str) -> bool:
        has_length = SLIPS_FROM[0] <= len(word.encode()) <= buffers.WORD_BYTES_MAX
        return has_length and all(ord(letter) in self.keys.group_of for letter in word)

    def _slips(self, word: str, stream: int, first: int) -> list[RowEdit]:
        """Return the slips of a word as edits of the word.

        They use the random numbers of the stream with the key `stream`, from index `first` on.
        """
        count = bisect_right(SLIPS_FROM, len(word))
        slips: list[RowEdit] = []
        for run in range(count):
            low, high = (1 + (len(word) - 1) * (run + more) // count for more in (0, 1))
            draws = rng.draw(stream, first + 2 * run), rng.draw(stream, first + 2 * run + 1)
            start, stop, written = self._slip(word, range(low, high), *draws)
            if written != word[start:stop]:
                slips.append((start, stop, written))
        return allowed_slips(word, slips)

    def _slip(self, word: str, run: range, draw: int, key_draw: int) -> RowEdit:
        """Return the slip that two random numbers make in a run of letters, as an edit of the word.

        `draw` chooses the kind and the position of the slip. `key_draw` chooses the key of an added
        letter, and whether this letter comes before or after the right letter.
        """
        kind = KINDS[(draw & rng.CHOICE_MASK) * len(KINDS) >> rng.CHOICE_BITS]
        at = run.start + ((draw >> rng.CHOICE_BITS) * len(run) >> rng.DECISION_BITS)
        if kind == SWAPPED:
            at = min(at, run.stop - 2)
            return at, at + 2, word[at + 1] + word[at]
        letter = word[at]
        if kind == ADDED:
            group = self.keys.group_of[ord(letter)]
            hit = self.keys.written(group, key_draw & rng.CHOICE_MASK)[0]
            is_behind = key_draw >> rng.CHOICE_BITS & 1
            return at, at + 1, letter + hit if is_behind else hit + letter
        return at, at + 1, letter + letter if kind == DOUBLED else ""

    def propose(self, texts: Texts, keys: U64, strengths: rng.Strengths) -> Edits:
        """Return the edits of all slips in a batch of rows."""
        words = texts.tokens
        sizes = words.stops - words.starts
        has_length = (sizes >= SLIPS_FROM[0]) & (sizes <= buffers.WORD_BYTES_MAX)
        limits = self.limits.take(strengths["rate"])
        hit, _ = rng.hits(keys, words.rows, limits, has_length)
        letters = self._letters(texts, words, hit)
        # The arrays below have an element per slip; `owners` has the index in `hit` of its word.
        counts = np.searchsorted(SLIPS_FROM, letters.counts, side="right")
        owners = np.repeat(np.arange(len(hit)), counts)
        run, runs = buffers.ordinals(owners), counts.take(owners)
        left = letters.counts.take(owners) - 1
        low, high = (1 + left * (run + more) // runs for more in (0, 1))
        rows = words.rows.take(hit.take(owners))
        word_numbers = buffers.ordinals(words.rows).take(hit.take(owners))
        first = 2 * (len(SLIPS_FROM) * word_numbers + run)
        stream = rng.fork_array(keys, "slip").take(rows)
        draws, key_draws = (rng.draw_array(stream, first + more) for more in (0, 1))
        kinds = KINDS[(rng.choices(draws) * len(KINDS)) >> rng.CHOICE_BITS]
        at = low + ((rng.decisions(draws) * (high - low)) >> rng.DECISION_BITS)
        at = letters.firsts.take(owners) + np.minimum(at, high - 1 - (kinds == SWAPPED))
        here, following = (letters.points.take(at + more, mode="clip") for more in (0, 1))
        last = at + (kinds == SWAPPED)
        stops = letters.starts.take(last) + buffers.utf8_lengths(letters.points.take(last))
        codes = self._written(kinds, here, following, key_draws)
        codes, written = np.unique(codes, return_inverse=True)
        pairs = [divmod(code, 1 << _POINT_BITS) for code in codes.tolist()]
        pool = Texts.from_strings([chr(a) + chr(b) if a or b else "" for a, b in pairs]).to_arrow()
        starts = letters.starts.take(at)
        edits = Edits(rows, starts, stops, written.astype(np.int64), pool)
        edits = edits.keep(changed := (kinds != SWAPPED) | (here != following))
        return edits.keep(self._are_allowed(texts, words, hit.take(owners)[changed], edits))

    def _letters(self, texts: Texts, words: Tokens, hit: I64) -> "_Letters":
        """Return the letters of the words in a batch whose indices are in `hit`."""
        starts = words.starts.take(hit)
        at, owners = buffers.within(starts, words.stops.take(hit) - starts)
        points = buffers.code_points(texts.values, at)
        lead = np.flatnonzero(points >= 0)
        at, points, owners = at.take(lead), points.take(lead), owners.take(lead)
        _, known = self.keys.find(points)
        counts = np.bincount(owners, minlength=len(hit))
        typed = counts * (np.bincount(owners, known, len(hit)) == counts)
        return _Letters(at, points, np.cumsum(counts) - counts, typed)

    def _written(self, kinds: I64, here: I64, following: I64, draws: U64) -> I64:
        """Return the two letters that each slip of a batch writes, packed into a number by `_pair`.

        The number is 0 if the slip drops its letter. `here` has the letter at each slip, and
        `following` the letter after it.
        """
        groups, _ = self.keys.find(here)
        hit = self._key_points.take(self.keys.pick(groups, rng.choices(draws)))
        is_behind = rng.decisions(draws) & 1 == 1
        added = _pair(np.where(is_behind, here, hit), np.where(is_behind, hit, here))
        swapped, doubled, dropped = _pair(following, here), _pair(here, here), np.zeros_like(here)
        codes: I64 = np.choose(kinds, [added, swapped, doubled, dropped])
        return codes

    def _are_allowed(self, texts: Texts, words: Tokens, owners: I64, edits: Edits) -> Bool:
        """Tell for each slip of a batch whether `allowed_slips` keeps it.

        `edits` are the slips; `owners` has for each slip the index of its word in the batch.
        """
        allowed = np.ones(len(edits), np.bool_)
        if not len(edits):
            return allowed
        written = edits.written().to_strings()
        for slips in np.split(np.arange(len(edits)), np.flatnonzero(np.diff(owners)) + 1):
            if len(slips) == 1 and not self._has_marks:
                continue
            start, stop = words.starts[owners[slips[0]]], words.stops[owners[slips[0]]]
            word = texts.values[start:stop].tobytes()
            of_word: list[RowEdit] = []
            for slip in slips.tolist():
                low, high = edits.starts[slip] - start, edits.stops[slip] - start
                edges = len(word[:low].decode()), len(word[:high].decode())
                of_word.append((*edges, written[slip]))
            allowed[slips[len(allowed_slips(word.decode(), of_word)) :]] = False
        return allowed

    @cached_property
    def _has_marks(self) -> bool:
        """True if the keyboard has vowel signs, which may stand only after a letter."""
        return any(map(buffers.joins, self.keys.group_of))

    @cached_property
    def _key_points(self) -> I64:
        """Code point of each text in the pool of `keys`; all texts are single letters."""
        pool = Texts.from_arrow(self.keys.pool)
        return buffers.code_points(pool.values, pool.offsets[:-1])


class _Letters(NamedTuple):
    """The letters of several words, one word after the other.

    Per letter: `starts` (position of its first byte) and `points` (code point). Per word: `firsts`
    (index of its first letter) and `counts` (number of letters; 0 for a word with a letter that is
    not on the keyboard).
    """

    starts: I64
    points: I64
    firsts: I64
    counts: I64


def _pair(first: I64, second: I64) -> I64:
    """Pack two arrays of code points into one array: each number holds two code points."""
    return first << _POINT_BITS | second


@kernel("mash", _layout_file, _mash_languages)
def mash(settings: Settings, *, rate: float = 0.05, layout: str | None = None) -> Mashing:
    """Mistype several letters of a word: 'amazing' -> 'amzaign'.

    A slip hits a neighbouring key together with the right key, or swaps, doubles or drops letters.
    A word of three to five letters gets one slip, of six to nine letters two, a longer word three.
    """
    entries = keyboard_of(settings.lang, layout).neighbours()
    return Mashing(character_map(entries), settings.limits(rate))
