"""Compare a noisy text with its clean version: align tokens, count errors, list edits.

A token is a word, a symbol that is not white space, or one character of a script written without
spaces. First, equal tokens in equal order are matched. The tokens between two such matches are then
matched by similarity: one to one, or one to several if words were run together or broken apart.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice, pairwise
from operator import itemgetter
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein, Opcode, Postfix, Prefix

from noisegen.text.buffers import NO_WORD, SINGLE, character_class

TOKENS_MAX = 40  # a changed range with more tokens, in either text, becomes a single edit
PARTS_MAX = 3  # most words that are run together, and most parts of a broken word
# Costs of leaving out or inserting a token, of replacing a token, and of joining or breaking words.
# The cost of replacing, joining or breaking grows with the share of characters that differ.
_SKIP, _SUBSTITUTE, _JOIN = 1.0, 0.2, 0.3
_TWO_INITIALS = 1.75  # cost of "in Spain" -> "is": two letters may be a word by chance
_SHORT = 0.5  # added to the cost of a short form: "người ta" -> "ngta", "going to" -> "gonna"
_FUSED_MIN = 3  # fewest letters of a fusion: a shorter word may have these letters by chance
_FUNCTION_MAX = 4  # most letters of a word whose vowel may be reduced: to, of, have
_VOWELS = "aeiou"
_REDUCED = "ae"  # letters by which a reduced vowel may be written: going to -> gonna
_STEM = 4  # words that begin with so many equal letters count as forms of one word
_DOUBLED = re.compile(r"(.)\1+")
NEVER = 9.0  # cost of tokens that must not be matched
_SIMILAR = 0.5
_INNER = frozenset("'\u2019-*@$")  # symbols inside words: moment's, anti-slip, sh*t, p@ss
_NO_INNER = str.maketrans(dict.fromkeys(_INNER))

_WORD = f"[^{NO_WORD}{character_class(SINGLE)}]"
_TOKEN = re.compile(f"{_WORD}+(?:['\u2019]{_WORD}+)*|\\S")

WINDOW = 20_000  # characters or tokens aligned at once; the time grows with the square
EXACT_MAX = 20_000  # characters or words; longer texts get an estimate (exact counts take 6 ms)
PIECE = 1 << 20  # characters of a long text that are split into words at a time
ESTIMATED_FROM = 10_000  # the errors of a long text are estimated from so many characters or words
ALIGNED_CHARS_MAX = 10_000  # `difference` returns a longer changed part as one edit, to save time

# Letters that Unicode does not decompose into a base letter and a mark, and their base letters.
_STROKES = str.maketrans("đðøłħıŋ", "ddolhin")
_VIRAMA = 9  # combining class of the viramas of Indic scripts, which belong to the spelling

Span = tuple[int, int]
# Range of a clean sequence and its counterpart in the noisy sequence: (are they equal, start and
# stop in the clean sequence, start and stop in the noisy sequence).
Aligned = tuple[bool, int, int, int, int]
Step = tuple[int, int]  # a match: (count of its clean tokens, count of its noisy tokens)


class TokenEdit(NamedTuple):
    """One edit between two texts: a range of the clean text became a range of the noisy text.

    The ranges are [clean_start, clean_stop) and [noisy_start, noisy_stop), in characters.
    """

    clean_start: int
    clean_stop: int
    noisy_start: int
    noisy_stop: int

    def texts(self, clean: str, noisy: str) -> tuple[str, str]:
        """Return the clean text that the edit replaces, and the noisy text that replaces it."""
        return clean[self.clean_start : self.clean_stop], noisy[self.noisy_start : self.noisy_stop]


def token_spans(text: str) -> list[Span]:
    """Return the start and stop of every token of a text, in characters.

    >>> token_spans("don't, 好的")
    [(0, 5), (5, 6), (7, 8), (8, 9)]
    """
    return [match.span() for match in _TOKEN.finditer(text)]


def aligned_words(noisy: str, clean: str, most: int = 4) -> Iterator[tuple[str, str]]:
    """Yield each token of a noisy text with the clean token or phrase that it stands for.

    A phrase has up to `most` tokens. Tokens that stand for nothing of the kind are left out.
    """
    spans = token_spans(clean)
    ours = [clean[start:stop] for start, stop in spans]
    theirs = [noisy[start:stop] for start, stop in token_spans(noisy)]
    for is_equal, block in groupby(aligned(ours, theirs), itemgetter(0)):
        parts = list(block)
        first, stop = parts[0][1], parts[-1][2]
        words, forms = ours[first:stop], theirs[parts[0][3] : parts[-1][4]]
        if not is_equal and len(forms) == 1 < len(words) <= most:
            words = [clean[spans[first][0] : spans[stop - 1][1]]]
        if len(words) == len(forms):
            yield from zip(forms, words, strict=True)


def edits(clean: str, noisy: str) -> list[TokenEdit]:
    """Return the edits that turn a clean text into a noisy one, in order.

    An edit changes words, symbols, or the space between two equal tokens. An inserted token has an
    empty range in the clean text, at the start of the next token. A deleted token has such a range
    in the noisy text.
    """
    if clean == noisy:
        return []
    changed = []
    for edit in _matched_parts(clean, noisy):
        before, after = edit.texts(clean, noisy)
        if before != after:
            changed.append(edit)
    return changed


def _matched_parts(clean: str, noisy: str) -> Iterator[TokenEdit]:
    """Yield each range of a clean text with its counterpart in the noisy text, in order.

    A range is the space between two neighbouring tokens that both texts have, or one or more tokens
    that differ between the texts. A range and its counterpart may be equal.
    """
    clean_spans, noisy_spans = token_spans(clean), token_spans(noisy)
    clean_tokens = [clean[start:stop] for start, stop in clean_spans]
    noisy_tokens = [noisy[start:stop] for start, stop in noisy_spans]
    # All tokens between two equal tokens are matched together: `cheapest_steps` decides where an
    # insertion ends and a replacement begins.
    for is_equal, block in groupby(aligned(clean_tokens, noisy_tokens), itemgetter(0)):
        codes = list(block)
        _, i, _, j, _ = codes[0]
        _, _, i_stop, _, j_stop = codes[-1]
        if is_equal:
            gaps = pairwise(clean_spans[i:i_stop]), pairwise(noisy_spans[j:j_stop])
            for (left, right), (noisy_left, noisy_right) in zip(*gaps, strict=True):
                yield TokenEdit(left[1], right[0], noisy_left[1], noisy_right[0])
            continue
        steps: Sequence[Step] = [(i_stop - i, j_stop - j)]
        if max(steps[0]) <= TOKENS_MAX:
            steps = cheapest_steps(tuple(clean_tokens[i:i_stop]), tuple(noisy_tokens[j:j_stop]))
        for a, b in steps:
            clean_extent = _extent(clean_spans, i, i + a, len(clean))
            noisy_extent = _extent(noisy_spans, j, j + b, len(noisy))
            yield TokenEdit(*clean_extent, *noisy_extent)
            i, j = i + a, j + b


def aligned(clean: Sequence[str], noisy: Sequence[str]) -> Iterator[Aligned]:
    """Align two sequences by Levenshtein distance; yield their equal and different parts in order.

    Sequences longer than `WINDOW` are aligned in windows of this length. The parts of a window are
    kept up to the last equal part that begins in its first half; the next window begins after it.
    """
    i = j = 0
    while max(len(clean) - i, len(noisy) - j) > WINDOW:
        codes = Levenshtein.opcodes(clean[i : i + WINDOW], noisy[j : j + WINDOW])
        steps, half = [_moved(code, i, j) for code in codes], i + WINDOW // 2
        while steps[1:] and not (steps[-1][0] and steps[-1][1] < half):
            steps.pop()
        yield from steps
        _, _, i, _, j = steps[-1]
    yield from (_moved(code, i, j) for code in Levenshtein.opcodes(clean[i:], noisy[j:]))


def _moved(code: Opcode, i: int, j: int) -> Aligned:
    ours, theirs = (code.src_start + i, code.src_end + i), (code.dest_start + j, code.dest_end + j)
    return code.tag == "equal", *ours, *theirs


def _extent(spans: Sequence[Span], first: int, stop: int, length: int) -> Span:
    """Return start and stop in characters of the tokens with indices from `first` to `stop` - 1.

    `spans` has start and stop of every token. If no token is asked for, the result is the empty
    range before token `first`, or at `length`, the end of the text.
    """
    if first < stop:
        return spans[first][0], spans[stop - 1][1]
    at = spans[first][0] if first < len(spans) else length
    return at, at


_STEPS: tuple[Step, ...] = (
    (1, 0),
    (0, 1),
    (1, 1),
    *((parts, 1) for parts in range(2, PARTS_MAX + 1)),
    *((1, parts) for parts in range(2, PARTS_MAX + 1)),
)


@lru_cache(maxsize=1 << 14)
def cheapest_steps(clean: tuple[str, ...], noisy: tuple[str, ...]) -> tuple[Step, ...]:
    """Match all clean tokens with all noisy tokens, in order, at the least total cost.

    Returns a pair per match: how many clean tokens, and how many noisy tokens are in it.
    """
    initialisms = _initialisms(clean, noisy)
    best: dict[Step, tuple[float, Step]] = {(0, 0): (0.0, (0, 0))}
    for i in range(len(clean) + 1):
        for j in range(len(noisy) + 1):
            options = [
                (best[i - a, j - b][0] + step_cost(clean[i - a : i], noisy[j - b : j]), (a, b))
                for a, b in _STEPS
                if a <= i and b <= j
            ]
            if size := initialisms.get((i, j), 0):
                cost = _JOIN if size > 2 else _TWO_INITIALS
                options.append((best[i - size, j - 1][0] + cost, (size, 1)))
            if options:
                best[i, j] = min(options)
    steps, at = [], (len(clean), len(noisy))
    while at != (0, 0):
        steps.append(best[at][1])
        at = at[0] - steps[-1][0], at[1] - steps[-1][1]
    return tuple(reversed(steps))


def _initialisms(clean: Sequence[str], noisy: Sequence[str]) -> dict[Step, int]:
    """Find noisy tokens made of the initials of successive clean tokens: 'be right back' -> 'brb'.

    Returns {(index after the last of these clean tokens, index after the noisy token): count of
    these clean tokens}.
    """
    found: dict[Step, int] = {}
    initials = "".join(token[0].lower()[0] for token in clean)
    for j, token in enumerate(noisy, 1):
        size, start = len(token), initials.find(token.lower())
        while size > 1 and start >= 0:
            found[start + size, j] = size
            start = initials.find(token.lower(), start + 1)
    return found


def step_cost(clean: Sequence[str], noisy: Sequence[str]) -> float:
    """Return the cost of matching clean with noisy tokens; a token without a partner costs 1."""
    if not (clean and noisy):
        return _SKIP
    if clean == noisy:
        return 0.0
    if len(clean) == len(noisy) == 1:
        return _substitution_cost(clean[0], noisy[0])
    return _join_cost(clean, noisy)


def _substitution_cost(clean: str, noisy: str) -> float:
    """Return the cost of replacing one token by another; `NEVER` if one is a word, one a symbol."""
    if clean[0].isalnum() != noisy[0].isalnum():
        return NEVER
    clean, noisy = clean.lower(), noisy.lower()
    return _SUBSTITUTE + Levenshtein.distance(clean, noisy) / max(len(clean), len(noisy))


def _join_cost(clean: Sequence[str], noisy: Sequence[str]) -> float:
    """Return the cost of running several words together, or of breaking one word apart."""
    ends = clean[0], clean[-1], noisy[0], noisy[-1]
    if not all(end[0].isalnum() for end in ends):
        return NEVER
    parts = [*clean, *noisy]
    symbols = [part for part in parts if not part[0].isalnum()]
    if not _INNER.issuperset(symbols):
        return NEVER
    joined = "".join(clean).lower(), "".join(noisy).lower()
    if symbols:
        return _cost_with_symbols(*joined)
    distance = Levenshtein.distance(*joined)
    if distance < min(map(len, parts)):
        return _JOIN + distance / max(map(len, joined))
    # A noisy word without letters of one of the clean words is no short form: that word is missing.
    is_short = len(noisy) == 1 and _is_short_form(clean, noisy[0])
    return _JOIN + _SHORT if is_short else NEVER


def _cost_with_symbols(clean: str, noisy: str) -> float:
    """Return the cost of joining or breaking words that contain symbols: 'anti-slip', 'p@ss'.

    `clean` and `noisy` are the tokens of each text, joined without spaces, in lower case.
    """
    if clean.translate(_NO_INNER) == noisy.translate(_NO_INNER):
        return _JOIN
    difference = Levenshtein.distance(clean, noisy) / max(len(clean), len(noisy))
    return _JOIN + difference if difference < _SIMILAR else NEVER


def _is_short_form(words: Sequence[str], form: str) -> bool:
    """Tell whether one word shortens several words to prefixes, or fuses them."""
    if len(form) > len(words) and is_initialism(words, form):
        return True
    return is_fused(words, form)


def is_fused(words: Sequence[str], noisy: str) -> bool:
    """Tell whether a noisy word fuses several words: it has letters of the first and the last word.

    Doubled letters count once. The vowel of a short last word may be reduced to 'a' or 'e'.

    >>> is_fused(["going", "to"], "gonna"), is_fused(["wants", "to"], "want")
    (True, False)
    """
    if len(words) < 2 or not noisy.isalpha():
        return False
    words = [plain(word).translate(_NO_INNER) for word in words]
    form, *short = (_DOUBLED.sub(r"\1", word) for word in (plain(noisy), *words))
    if not (_begins_as_fused(form, short) and _is_made_of(form, short)):
        return False
    is_of_one_word = _is_part(form, short[0]) or _is_part(form, short[-1])
    return not is_of_one_word and not _is_slip_of_one(plain(noisy), words[0], words[-1])


def _begins_as_fused(form: str, words: Sequence[str]) -> bool:
    """Tell whether length and first letter of `form` allow that it fuses several words.

    A fusion is shorter than its words together. It begins with the first letter of the first word.
    A fusion of two words may also begin with the second or the last letter of the first word.
    """
    first, last = words[0], words[-1]
    heads = first[:1] if len(words) > 2 else first[:2] + first[-1:]  # b as in "about to" -> "bouta"
    has_length = _FUSED_MIN <= len(form) < sum(map(len, words))
    return has_length and bool(last) and form[0] in heads


def _is_made_of(form: str, words: Sequence[str]) -> bool:
    """Tell whether a form has letters of the words in order, its last letter from the last word."""
    last, joined = words[-1], "".join(words)
    end = _end_within(last, form[-1])
    return end >= 0 and _is_part(form[:-1], joined[: len(joined) - len(last) + end])


def _end_within(last: str, letter: str) -> int:
    """Return the index of `letter`, the last of a fused word such as 'gonna', in the word `last`.

    `last` is the last of the fused words ('to'). Only its first or last letter may end the fusion
    or, if `last` is short, an 'a' or 'e' in place of its last vowel. Returns -1 for another letter.
    """
    if letter in _REDUCED and len(last) <= _FUNCTION_MAX:
        return max(map(last.rfind, _VOWELS))
    if letter == last[-1]:
        return len(last) - 1
    return 0 if letter == last[0] else -1


def _is_slip_of_one(form: str, first: str, last: str) -> bool:
    """Tell whether `form` is just `first` or `last`, misspelled or with another ending."""
    near = [word for word in (first, last) if Levenshtein.distance(form, word) <= 1]
    if not form.startswith(first) and (first in near or common_prefix(form, first) >= _STEM):
        return True
    return last in near and not form.endswith(last)


def _is_part(letters: str, word: str) -> bool:
    """Tell whether a word contains all `letters` in their order; other letters may lie between."""
    rest = iter(word)
    return all(letter in rest for letter in letters)


def is_initialism(words: Sequence[str], noisy: str) -> bool:
    """Tell whether a noisy word consists of the initials, or of short prefixes, of several words.

    >>> is_initialism(["be", "right", "back"], "brb"), is_initialism(["người", "ta"], "ngta")
    (True, True)
    """
    short, words = plain(noisy), [plain(word) for word in words]
    if len(words) < 2 or len(short) < len(words) or not all(words):
        return False
    if short == "".join(word[0] for word in words):
        return True
    if len(short) * 5 >= sum(map(len, words)) * 3:
        return False
    return _are_prefixes(short, words)


def _are_prefixes(short: str, words: Sequence[str]) -> bool:
    """Tell whether a short form consists of one prefix of each word, in the order of the words."""
    ends = {0}  # possible lengths in `short` of the joined prefixes of the words so far
    for word in words:
        ends = {
            end + size for end in ends for size in range(1, common_prefix(word, short[end:]) + 1)
        }
    return len(short) in ends


def plain(word: str) -> str:
    """Return a word in lower case without diacritics.

    >>> plain("Đã Nổi")
    'da noi'
    """
    if word.isascii():
        return word.lower()
    letters = unicodedata.normalize("NFD", word.casefold()).translate(_STROKES)
    bare = (letter for letter in letters if unicodedata.combining(letter) in (0, _VIRAMA))
    return unicodedata.normalize("NFC", "".join(bare))


def common_prefix(left: str, right: str) -> int:
    """Return the number of characters that two texts share at their beginnings."""
    return Prefix.similarity(left, right)


def character_errors(clean: str, noisy: str) -> int:
    """Return the Levenshtein distance of two texts in characters (code points, not normalised).

    The distance of texts longer than `EXACT_MAX` is estimated from their beginnings.
    """
    if len(clean) * len(noisy) <= EXACT_MAX**2:
        return Levenshtein.distance(clean, noisy)
    return _estimated(clean[:ESTIMATED_FROM], noisy[:ESTIMATED_FROM], len(clean))


def word_errors(clean: str, noisy: str) -> int:
    """Return the Levenshtein distance of two texts in words, which white space separates.

    The distance of texts of more than `EXACT_MAX` words is estimated from their beginnings.
    """
    sizes = words_in(clean), words_in(noisy)
    if sizes[0] * sizes[1] <= EXACT_MAX**2:
        return Levenshtein.distance(clean.split(), noisy.split())
    words = (islice(re.finditer(r"\S+", text), ESTIMATED_FROM) for text in (clean, noisy))
    ours, theirs = ([word[0] for word in of_text] for of_text in words)
    return _estimated(ours, theirs, sizes[0])


def words_in(text: str) -> int:
    """Return the number of words in a text; it is split piece by piece to save memory."""
    cuts = range(PIECE, len(text), PIECE)
    inside = sum(not (text[at - 1].isspace() or text[at].isspace()) for at in cuts)
    return sum(len(text[at : at + PIECE].split()) for at in (0, *cuts)) - inside


def _estimated(clean: Sequence[str], noisy: Sequence[str], size: int) -> int:
    """Estimate the Levenshtein distance of two long texts from their beginnings.

    `clean` and `noisy` are the beginnings, as text or lists of words. `size` is the length of the
    whole clean text in the same unit.
    """
    # Near the end of the beginnings, a token may match one that was cut off, which looks like an
    # error. So only errors in the first half are counted.
    counted = min(ESTIMATED_FROM // 2, size)
    operations = Levenshtein.editops(clean, noisy)
    return sum(step.src_pos < counted for step in operations) * size // counted


def error_counts(clean: Sequence[str], noisy: Sequence[str]) -> tuple[int, int]:
    """Return the number of character errors and the number of word errors in all rows together.

    Raises ValueError if `clean` and `noisy` have different numbers of rows.
    """
    changed = [pair for pair in zip(clean, noisy, strict=True) if pair[0] != pair[1]]
    characters = sum(character_errors(*pair) for pair in changed)
    return characters, sum(word_errors(*pair) for pair in changed)


def difference(clean: str, noisy: str) -> list[tuple[int, int, str]]:
    """Return the edits (start, stop, replacement) that turn the clean text into the noisy text.

    `start` and `stop` count characters of the clean text.
    """
    if clean == noisy:
        return []
    start = common_prefix(clean, noisy)
    tail = Postfix.similarity(clean[start:], noisy[start:])
    old, new = clean[start : len(clean) - tail], noisy[start : len(noisy) - tail]
    if max(len(old), len(new)) > ALIGNED_CHARS_MAX:
        return [(start, start + len(old), new)]
    return [
        (start + step.src_start, start + step.src_end, new[step.dest_start : step.dest_end])
        for step in Levenshtein.opcodes(old, new)
        if step.tag != "equal"
    ]
