"""A row of raw text to sentences, each with the reason why it is dropped, if it is."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from noisegen.errors import UsageError
from noisegen.mining.languages import Language
from noisegen.preparing.characters import common_share, letter_share
from noisegen.preparing.cleaning import clean_lines
from noisegen.preparing.identification import SHORT, is_other_language

LETTERS_MIN = 0.5  # of the characters that are no blanks; below are tables, scores, addresses


@dataclass(frozen=True)
class Criteria:
    """What a sentence must be like; lengths are in characters."""

    chars_min: int = 10  # wikiedits, from which RCP's corpus came, drops shorter ones
    chars_max: int = 1_000  # about 250 tokens: an encoder's 512 hold it, also when noisy
    common_min: float = 0.9  # RoLASER, preparation of OSCAR
    identified: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.chars_min <= self.chars_max:
            raise UsageError(
                f"--chars-min {self.chars_min} and --chars-max {self.chars_max}: "
                "write whole numbers with 1 <= min <= max"
            )
        if not 0 <= self.common_min <= 1:
            raise UsageError(f"--common-min {self.common_min} must be from 0 to 1")


class Sentence(NamedTuple):
    """A sentence, its number in its row, and why it is dropped (empty: it is kept)."""

    number: int
    text: str
    reason: str


def sentences(text: str, spoken: Language, criteria: Criteria) -> Iterator[Sentence]:
    """Yield the sentences of a row, dropped ones too; no sentence reaches over a line break."""
    split = ((part, line) for line in clean_lines(text) for part in spoken.sentences(line))
    for number, (sentence, line) in enumerate(split):
        yield Sentence(number, sentence, _reason(sentence, line, spoken.code, criteria))


def _reason(sentence: str, line: str, lang: str, criteria: Criteria) -> str:
    """Return the first criterion that a sentence fails, the cheap ones first."""
    if len(sentence) < criteria.chars_min:
        return "too_short"
    if len(sentence) > criteria.chars_max:
        return "too_long"
    if common_share(sentence, lang) < criteria.common_min:
        return "uncommon_characters"
    if letter_share(sentence) < LETTERS_MIN:
        return "few_letters"
    if criteria.identified:
        known_by = sentence if len(sentence) >= SHORT else line  # a few words tell no language
        if is_other_language(known_by, lang):
            return "other_language"
    return ""
