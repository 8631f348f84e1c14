"""Transforms that readers hardly see and filters miss: look-alikes, styled letters, hidden signs.

`look` writes letters of other alphabets, `font` the styled alphabets of Unicode, `hide` puts signs
without width into words. Normalization to NFKC undoes `font`; leaving out the characters of the
category Cf (format) undoes `hide`; `look` needs the table of confusable characters.
"""

import unicodedata
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from noisegen.errors import UsageError, did_you_mean
from noisegen.noising.kernels import Substitution, WordKernel, character_map
from noisegen.noising.lexical import LexicalKernel, LexicalSource, packaged
from noisegen.noising.lexicon import Lexicon
from noisegen.noising.registry import Settings, kernel
from noisegen.text.languages import script_of
from noisegen.transforms import Forms, LanguageFiles

_LOOK = LanguageFiles("look.tsv")
_PHRASES = LexicalSource("look", partial(packaged, "look"), kind="slip")


@kernel("look", _LOOK.read_or_any, kind="slip")
def look(settings: Settings, *, rate: float = 0.02) -> Substitution | LexicalKernel:
    """Replace letters with others that look alike: 'paypal' -> 'рaypаl'.

    The letters are those of any alphabet that have the same shape (from Unicode's confusable
    characters), and `rate` is the chance that a letter with a look-alike is replaced. In Chinese,
    the characters are those that writers mix up, in phrases: '而已' becomes '而己'.
    """
    [path] = _LOOK.read_or_any(settings, {})
    if path == _LOOK.of(settings.lang):
        return _PHRASES.kernel(settings, {"rate": rate})
    return Substitution(character_map(Lexicon.load(path).entries), settings.gaps(rate), bare=True)


class Alphabet(NamedTuple):
    """First code points of the capitals, small letters and digits of a styled alphabet.

    `digits` is 0 for an alphabet without digits.
    """

    capitals: int
    small: int
    digits: int = 0


ALPHABETS = {
    "bold": Alphabet(0x1D400, 0x1D41A, 0x1D7CE),
    "bold-italic": Alphabet(0x1D468, 0x1D482),
    "script": Alphabet(0x1D4D0, 0x1D4EA),
    "fraktur": Alphabet(0x1D56C, 0x1D586),
    "sans": Alphabet(0x1D5D4, 0x1D5EE, 0x1D7EC),
    "mono": Alphabet(0x1D670, 0x1D68A, 0x1D7F6),
    "circled": Alphabet(0x24B6, 0x24D0),
    "wide": Alphabet(0xFF21, 0xFF41, 0xFF10),
}
ANY_KIND = "any"


def chosen(transform: str, parameter: str, value: str, known: Sequence[str]) -> list[str]:
    """Return the kinds that a parameter names: one, or all for 'any'.

    Raises UsageError for a kind that is not in `known`.
    """
    if value != ANY_KIND and value not in known:
        near = did_you_mean(value, [*known, ANY_KIND])
        shown = near or f"; known: {', '.join([*known, ANY_KIND])}"
        raise UsageError(f"{transform} has no {parameter} {value!r}{shown}")
    return list(known) if value == ANY_KIND else [value]


def styled(word: str, alphabets: Sequence[str]) -> Forms:
    """Return a word with a Latin letter in each of the styled alphabets; other letters stay.

    Words with combining marks and words without a letter of A to Z stay.
    """
    if not any(sign.isascii() and sign.isalpha() for sign in word) or _has_marks(word):
        return []
    return [("".join(_styled(sign, ALPHABETS[name]) for sign in word), 1) for name in alphabets]


def _styled(sign: str, alphabet: Alphabet) -> str:
    """Return a character in a styled alphabet, or the character itself if the alphabet lacks it."""
    if "A" <= sign <= "Z":
        return chr(alphabet.capitals + ord(sign) - ord("A"))
    if "a" <= sign <= "z":
        return chr(alphabet.small + ord(sign) - ord("a"))
    if "0" <= sign <= "9" and alphabet.digits:
        return chr(alphabet.digits + ord(sign) - ord("0"))
    return sign


def _has_marks(word: str) -> bool:
    return any(unicodedata.category(sign)[0] == "M" for sign in word)


@kernel("font", kind="style")
def font(settings: Settings, *, rate: float = 0.3, alphabet: str = ANY_KIND) -> WordKernel:
    """Write words in the styled letters of Unicode: 'free money' -> '𝐟𝐫𝐞𝐞 𝐦𝐨𝐧𝐞𝐲'.

    `rate` is the chance per word with a Latin letter. `alphabet` is 'bold', 'bold-italic',
    'script', 'fraktur', 'sans', 'mono', 'circled', 'wide' or 'any': one for each row. Raises
    UsageError for another.
    """
    names = chosen("font", "alphabet", alphabet, [*ALPHABETS])
    rule = partial(styled, alphabets=names)
    return WordKernel(rule, settings.limits(rate), one_way=True)


# Kinds of hidden signs -> signs. ZERO WIDTH SPACE, WORD JOINER, ZERO WIDTH NO-BREAK SPACE and SOFT
# HYPHEN have no width; LEFT-TO-RIGHT MARK and RIGHT-TO-LEFT MARK change nothing within a word.
SIGNS = {"zero-width": ("\u200b", "\u2060", "\ufeff"), "hyphen": ("\u00ad",)}
DIRECTION = {"L": "\u200e", "R": "\u200f", "AL": "\u200f"}  # direction of a letter -> its mark
HIDDEN = (*SIGNS, "direction")
RIGHT_TO_LEFT, POP = "\u202e", "\u202c"
JOINED = ("ARABIC", "SYRIAC", "MONGOLIAN", "NKO")  # a sign between two letters parts their shapes


def with_hidden_signs(word: str, kinds: Sequence[str]) -> Forms:
    """Return the forms of a word with one hidden sign between two of its letters.

    Of the kind 'direction', a word of ASCII letters is also stored backwards after RIGHT-TO-LEFT
    OVERRIDE, which shows it as before. Words of joined letters get marks of direction only.
    """
    if not word.isalpha():
        return []
    scripts = {script_of(letter) for letter in word}
    signs = [sign for kind in kinds for sign in SIGNS.get(kind, ()) if not scripts & {*JOINED}]
    forms = []
    if "direction" in kinds and (mark := DIRECTION.get(unicodedata.bidirectional(word[0]))):
        signs.append(mark)
        if word.isascii() and len(word) > 1:
            forms.append((RIGHT_TO_LEFT + word[::-1] + POP, len(word) - 1))
    return forms + [
        (word[:at] + sign + word[at:], 1) for at in range(1, len(word)) for sign in signs
    ]


@kernel("hide", kind="style")
def hide(settings: Settings, *, rate: float = 0.1, signs: str = ANY_KIND) -> WordKernel:
    """Put signs that nobody sees into words: 'free' -> 'fr\u200bee'.

    `rate` is the chance per word of at least two letters. `signs` is 'zero-width', 'hyphen' (soft
    hyphens), 'direction' (marks and overrides of the direction of writing) or 'any'. Raises
    UsageError for another.
    """
    kinds = chosen("hide", "signs", signs, HIDDEN)
    return WordKernel(partial(with_hidden_signs, kinds=kinds), settings.limits(rate))
