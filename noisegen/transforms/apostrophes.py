"""Apostrophes left out, misplaced, or typed as a sign beside them."""

from functools import partial
from typing import NamedTuple

from noisegen.registry import Settings, kernel
from noisegen.word_kernel import WordKernel
from noisegen.words import APOSTROPHES


class Slips(NamedTuple):
    """Of 100 slips, how many: dont, don t, don;t, do'nt, dont'."""

    dropped: int
    blank: int
    other_sign: int
    early: int
    late: int


WITHIN = Slips(78, 4, 8, 6, 4)
BETWEEN = Slips(60, 32, 8, 0, 0)  # where it parts two words: j'ai, c'è
PARTED = ("ca", "fr", "it", "oc")  # languages in which it does
SIGNS = ("`", "´", ";", ",")  # what is typed for an apostrophe: accents, and the keys beside it
ENDING_MAX = 2  # letters of an ending ('t, 's, 're) that the apostrophe strays into


def misplaced(word: str, lang: str) -> list[tuple[str, int]]:
    """Return what a word may become without its apostrophes, as a `word_kernel.WordRule`."""
    at = next((at for at, sign in enumerate(word) if sign in APOSTROPHES), 0)
    before, sign, after = word[:at], word[at : at + 1], word[at + 1 :]
    if not before or (before + after).isdecimal():  # 5'11 is a measure
        return []
    slips = BETWEEN if lang in PARTED else WITHIN
    forms = {
        "".join(part for part in word if part not in APOSTROPHES): slips.dropped * len(SIGNS),
        f"{before} {after}": slips.blank * len(SIGNS),
        **{before + other + after: slips.other_sign for other in SIGNS},
    }
    if slips.late and len(after) <= ENDING_MAX:
        forms[before + after + sign] = slips.late * len(SIGNS)
        if len(before) > 1:
            forms[before[:-1] + sign + before[-1] + after] = slips.early * len(SIGNS)
    return list(forms.items())


@kernel("apos", lambda *_: [], lambda: ["*"])
def apos(settings: Settings, *, rate: float = 0.5) -> WordKernel:
    """Leave out or misplace apostrophes: 'I don't know' -> 'I dont know'.

    `rate` is the chance of each word that has one.
    """
    return WordKernel(partial(misplaced, lang=settings.lang), settings.limits(rate))
