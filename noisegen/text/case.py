"""Case, diacritics and shapes of words in every script.

A text and its lower-case form have equal numbers of bytes, so that byte positions stay valid.
"""

import re
import unicodedata
from functools import cache
from itertools import chain

import numpy as np

from noisegen.text.buffers import (
    I64,
    U8,
    Bool,
    Texts,
    Tokens,
    code_points,
    is_latin1_capital,
    utf8_lengths,
    within,
)

_FOLD = {c: c + 32 for c in chain(range(65, 91), range(0xC0, 0xDF)) if c != 0xD7}
_UNFOLD = {lower: upper for upper, lower in _FOLD.items()}


def fold(text: str) -> str:
    """Return a text with its ASCII and Latin-1 capitals made lower-case."""
    return text.translate(_FOLD)


def is_upper(character: str) -> bool:
    """Tell whether a character is an ASCII or Latin-1 capital, which `fold` changes."""
    return ord(character) in _FOLD


def upper(text: str) -> str:
    """Return a text with its ASCII and Latin-1 letters made upper-case; inverse of `fold`."""
    return text.translate(_UNFOLD)


def capitalize(text: str) -> str:
    """Return a text with a capital first letter, if this letter is ASCII or Latin-1."""
    return upper(text[:1]) + text[1:]


def cased_as(word: str, form: str) -> str:
    """Return a form in lower case in the case of a word: 'Ppl', 'people' -> 'People'."""
    if len(word) > 1 and word.isupper():
        return form.upper()
    return form[:1].upper() + form[1:] if word[:1].isupper() else form


def case_classes(values: U8, starts: I64, stops: I64, any_script: bool = False) -> I64:
    """Return the `case_class` of each byte range `starts` to `stops` of UTF-8 text."""
    first, follow = values[starts], values.take(starts + 1, mode="clip")
    accented = (first == 0xC3) & is_latin1_capital(follow)
    classes: I64 = (((first >= 65) & (first <= 90)) | accented).astype(np.int64)
    if any_script:
        classes = _letters()[0].take(code_points(values, starts), mode="clip").astype(np.int64)
    begun = np.flatnonzero(classes)
    sizes = utf8_lengths(code_points(values, starts.take(begun)))
    second, last = starts.take(begun) + sizes, stops.take(begun) - 1
    for _ in range(3):  # step back to the first byte of the last character
        last -= (values[last] & 0xC0) == 0x80
    points = code_points(values, np.append(second, last)).reshape(2, -1)
    classes[begun[(second <= last) & ~_letters()[1].take(points, mode="clip").any(axis=0)]] = 2
    return classes


def case_class(text: str, any_script: bool = False) -> int:
    """Return the case of a text: 0 for lower case, 1 for a capital at its start, 2 for upper case.

    An upper-case text begins with a capital and has a second character; neither the second nor the
    last character is a small letter. A text whose first letter is not in Latin-1 has case
    0 unless `any_script` is True.
    """
    if not (text[0].isupper() if any_script else ord(text[0]) in _FOLD):
        return 0
    return 1 if len(text) == 1 or text[1].islower() or text[-1].islower() else 2


@cache
def _letters() -> tuple[Bool, Bool]:
    """Return flags of code points below 0x20000: which are capitals, which are small letters."""
    signs = [chr(point) for point in range(0x20000)]
    return np.array([sign.isupper() for sign in signs]), np.array([s.islower() for s in signs])


SENTENCE_ENDS = b".!?"
TITLE_BYTES_MAX = 3  # most bytes of initials, Mr and Mrs; a full stop after them ends no sentence


def begins_row(words: Tokens) -> Bool:
    """Tell for each word whether it is the first word of its row."""
    is_first: Bool = np.not_equal(np.diff(words.rows, prepend=-1), 0)
    return is_first


def begins_sentence(texts: Texts, words: Tokens, numbers: I64) -> Bool:
    """Tell for each word with an index in `numbers` whether it begins a second or later sentence.

    The gap before the word must have at least two characters, and among them '.', '?' or '!'. So
    the K of 'C.K.' begins no sentence.
    """
    before = numbers - 1  # -1 for word 0: takes the last word, so its gap is negative and set to 0
    stops, begins = words.stops.take(before), np.zeros(len(numbers), np.bool_)
    gaps = words.starts.take(numbers) - stops
    gaps[(gaps < 2) | (words.rows.take(before) != words.rows.take(numbers))] = 0
    between, owners = within(stops, gaps)
    begins[owners[np.isin(texts.values.take(between), [*SENTENCE_ENDS])]] = True
    return begins


def are_names(texts: Texts, words: Tokens, numbers: I64) -> Bool:
    """Tell for each word with an index in `numbers` whether it is a name.

    A name begins with a capital, and not because it begins a sentence. A row in which every word
    begins with a capital has no names.
    """

    def begin_with(letters: Bool, numbers: I64) -> Bool:
        begin: Bool = letters.take(
            code_points(texts.values, words.starts.take(numbers)), mode="clip"
        )
        return begin

    capitals, small_letters = _letters()
    names = begin_with(capitals, numbers)
    numbers = numbers[names]
    rows, sizes = words.rows.take(numbers), words.stops - words.starts
    is_title = begin_with(capitals, numbers - 1) & (sizes.take(numbers - 1) <= TITLE_BYTES_MAX)
    begins = begins_row(words).take(numbers)
    begins |= begins_sentence(texts, words, numbers) & ~is_title
    asked, in_small = np.zeros((2, len(texts)), np.bool_)
    asked[rows] = True
    beside = np.flatnonzero(asked.take(words.rows))
    in_small[words.rows.take(beside[begin_with(small_letters, beside)])] = True
    names[names] = in_small.take(rows) & ~begins
    return names


SMALL, TITLE, UPPER, INITIAL = range(4)  # cases of words; INITIAL: a capital at the start of a row
CASES = ("small", "title", "upper", "initial")
LENGTHS = (2, 3, 5, 8)  # word lengths at which a new length class begins; class 0 is below 2
SHAPES = len(CASES) * (len(LENGTHS) + 1) + 1  # count: each case in each class, and words like '2nd'
_PLANE = 0x10000  # only code points below this are lower-cased; few scripts beyond have capitals


@cache
def _small_letters() -> dict[int, int]:
    """Map code points of capitals to their small letters, for pairs with equally many bytes."""
    pairs = ((chr(point), chr(point).lower()) for point in range(_PLANE))
    return {
        ord(letter): ord(small)
        for letter, small in pairs
        if letter != small and len(small) == 1 and len(small.encode()) == len(letter.encode())
    }


@cache
def _lower_table() -> I64:
    table = np.arange(_PLANE)
    table[list(_small_letters())] = list(_small_letters().values())
    return table


def lower(text: str) -> str:
    """Return a text in lower case, except capitals whose small letter has another size in bytes."""
    return text.lower() if text.isascii() else text.translate(_small_letters())


def case_of(word: str, initial: bool) -> int:
    """Return the case of a word: SMALL, TITLE, UPPER or INITIAL.

    UPPER needs at least two capitals, and more capitals than other characters. `initial` tells
    whether the word is the first of its row.
    """
    small = lower(word)
    capitals = sum(a != b for a, b in zip(word, small, strict=True))
    if capitals > 1 and capitals * 2 > len(word):
        return UPPER
    if word[0] == small[0]:
        return SMALL
    return INITIAL if initial else TITLE


def cased(form: str, case: int) -> str:
    """Return a lower-case `form` in one of the cases that `case_of` returns."""
    if case == UPPER:
        return capitals(form)
    return title(form) if case else form


def title(text: str) -> str:
    """Return a text with a capital first letter, in any script."""
    return text[:1].upper() + text[1:]


_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]")
# An accented vowel before ι or υ: the accent shows that the two are no diphthong.
_HIATUS = re.compile(
    "([αεηιουω][\u0313\u0314]?[\u0300\u0301\u0342]\u0345?[ιυ])(?!\u0308)", re.IGNORECASE
)
_GREEK_MARKS = re.compile("(?<=[\u0370-\u03ff])[\u0300-\u0345]+")


def toneless(text: str) -> str:
    """Return Greek text without the accents that its capitals do not have: 'Μάιος' -> 'Μαϊος'.

    A dialytika stays. It is written on ι and υ after an accented vowel, as the accent no longer
    shows that they are no diphthong. An iota subscript becomes a letter. These are the rules of
    ICU. Text without Greek letters is returned as it is.
    """
    if text.isascii() or not _GREEK.search(text):
        return text
    parts = _HIATUS.sub("\\1\u0308", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", _GREEK_MARKS.sub(_kept_marks, parts))


def _kept_marks(marks: re.Match[str]) -> str:
    """Return the marks of a Greek letter that its capital has: a dialytika, and iota subscript."""
    return "\u0308" * ("\u0308" in marks[0]) + "ι" * ("\u0345" in marks[0])


def capitals(text: str) -> str:
    """Return a text in upper case, its Greek words without accents."""
    return toneless(text).upper()


def with_final_sigma(word: str) -> str:
    """Return a lower-case Greek word with ς as its last letter instead of σ."""
    return word[:-1] + "ς" if word[-1:] == "σ" and word[-2:-1].isalpha() else word


def shape_of(word: str, case: int) -> int:
    """Return a number for the case and length class of a word; words such as '2nd' share one."""
    if word[0] in "0123456789":
        return SHAPES - 1
    return case * (len(LENGTHS) + 1) + sum(len(word) >= least for least in LENGTHS)


def bare(text: str) -> str:
    """Return a text without diacritics; variation selectors of emoji and Han characters stay."""
    if text.isascii():
        return text
    parts = unicodedata.normalize("NFD", text).replace("đ", "d").replace("Đ", "D")
    kept = (part for part in parts if part >= "\ufe00" or unicodedata.category(part) != "Mn")
    return unicodedata.normalize("NFC", "".join(kept))


def lowered(window: U8) -> tuple[U8, Bool]:
    """Return UTF-8 bytes in lower case, and flags of the bytes at which a capital begins.

    Capitals stay if their small letter has another size in bytes.
    """
    small = np.frombuffer(bytearray(window.tobytes().lower()), np.uint8)
    capital: Bool = small != window
    if not len(window) or window.max() < 0x80:
        return small, capital
    leads = np.flatnonzero((window >= 0xC3) & (window < 0xF0))
    points = code_points(window, leads)
    lowers = _lower_table().take(points)
    changed = np.flatnonzero(lowers != points)
    leads, lowers = leads.take(changed), lowers.take(changed)
    capital[leads] = True
    for chosen, size, mark in ((lowers < 0x800, 2, 0xC0), (lowers >= 0x800, 3, 0xE0)):
        at, left = leads[chosen], lowers[chosen]
        for offset in range(size - 1, 0, -1):
            small[at + offset] = 0x80 | (left & 0x3F)
            left = left >> 6
        small[at] = mark | left
    return small, capital


def characters_in(values: U8, starts: I64, stops: I64) -> I64:
    """Return the number of characters that begin in each byte range `starts` to `stops`."""
    sizes = stops - starts
    if len(values) and int(values.max()) >= 0x80:
        inside = np.flatnonzero((values & 0xC0) == 0x80)
        sizes = sizes - (np.searchsorted(inside, stops) - np.searchsorted(inside, starts))
    return sizes
