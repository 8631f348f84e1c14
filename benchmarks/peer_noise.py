"""Noise of other tools, each at a strength, for `python -m benchmarks.realism --peers`.

glitchlings 1.0, multypo 0.1.1, nlpaug 1.1.11 and textnoisr 1.2 from the package index, each at its
default strength; multypo and textnoisr have none, and get the .1 of their documentation. Each is
used in its own favour: glitchlings draws alike in every text of a batch, so each text gets a seed;
nlpaug cuts off punctuation and joins it to the word before, which shows in tokenised sets, so it
gets words between spaces; multypo cuts texts into sentences with a model that it downloads, so it
gets whole texts.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from noisegen.text.alignment import error_counts

Noiser = Callable[[list[str], float, int], list[str]]  # texts, strength, seed -> noisy texts

ROUNDS = 14  # halvings of the interval in which the strength lies
ROWS = 300  # texts of a round
STRENGTH_MAX = 50.0  # largest multiple of the default strength


@dataclass(frozen=True)
class Peer:
    """A transform of another tool.

    `languages` has its name of each language that it knows; empty if the language does not matter.
    `make` takes that name and returns a function of texts, strength as a multiple of the default,
    and seed.
    """

    name: str
    package: str
    make: Callable[[str], Noiser]
    languages: dict[str, str]

    def noiser(self, lang: str) -> Noiser | None:
        """Return its noise in a language; None if it lacks the language or is not installed."""
        known = self.languages or {lang: lang}
        if lang not in known or not find_spec(self.package):
            return None
        return self.make(known[lang])


def cer(clean: Sequence[str], noisy: Sequence[str]) -> float:
    """Return the character error rate of noisy texts."""
    return error_counts(clean, noisy)[0] / sum(map(len, clean))


def calibrated(noiser: Noiser, clean: list[str], wanted: float, seed: int) -> float:
    """Return the multiple of the default strength at which noise has the error rate `wanted`.

    It is searched by halving an interval, and judged on every n-th text. A tool that cannot reach
    the rate gets the end of the interval.
    """
    some = clean[:: max(1, len(clean) // ROWS)]
    low, high = 0.0, STRENGTH_MAX
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        is_low = cer(some, noiser(some, middle, seed)) < wanted
        low, high = (middle, high) if is_low else (low, middle)
    return (low + high) / 2


def _typogre(_: str) -> Noiser:
    from glitchlings import Typogre

    return _of_glitchlings(lambda strength: [Typogre(rate=_share(0.02 * strength))])


def _four_glitchlings(_: str) -> Noiser:
    """Return the noise of its typos, homophones, held letters and dropped words together."""
    from glitchlings import Hokey, Rushmore, Typogre, Wherewolf

    return _of_glitchlings(
        lambda strength: [
            Typogre(rate=_share(0.02 * strength)),
            Wherewolf(rate=_share(0.02 * strength)),
            Hokey(rate=_share(0.3 * strength)),
            Rushmore(rate=_share(0.01 * strength)),
        ]
    )


def _of_glitchlings(make: "Callable[[float], list[Any]]") -> Noiser:
    """Return the noise of the glitchlings that `make` returns for a strength."""
    from glitchlings import Gaggle

    def noise(texts: list[str], strength: float, seed: int) -> list[str]:
        made = make(strength)
        seeds = range(seed * 1_000_003, seed * 1_000_003 + len(texts))
        return [
            str(Gaggle(made, seed=each).corrupt(text))
            for each, text in zip(seeds, texts, strict=True)
        ]

    return noise


def _multypo(language: str) -> Noiser:
    from multypo import MultiTypoGenerator

    made = MultiTypoGenerator(language)

    def noise(texts: list[str], strength: float, seed: int) -> list[str]:
        random.seed(seed)
        return [made.insert_typos(text, _share(0.1 * strength)) if text else "" for text in texts]

    return noise


def _keyboard_aug(language: str) -> Noiser:
    from nlpaug.augmenter.char import KeyboardAug

    @cache
    def made(strength: float) -> "KeyboardAug":
        share = _share(0.3 * strength)
        return KeyboardAug(lang=language, aug_word_min=0, aug_word_p=share, **_BETWEEN_SPACES)

    return lambda texts, strength, seed: _by_nlpaug(made(strength), texts, seed)


def _spelling_aug(_: str) -> Noiser:
    from nlpaug.augmenter.word import SpellingAug

    @cache
    def made(strength: float) -> "SpellingAug":
        return SpellingAug(aug_min=0, aug_p=_share(0.3 * strength), **_BETWEEN_SPACES)

    return lambda texts, strength, seed: _by_nlpaug(made(strength), texts, seed)


def _by_nlpaug(augmenter: "object", texts: list[str], seed: int) -> list[str]:
    """Return one noisy text of nlpaug for each text; it returns none for a text without words."""
    random.seed(seed)
    np.random.seed(seed)
    found = [augmenter.augment(text) for text in texts]  # type: ignore[attr-defined]
    return [made[0] if made else text for made, text in zip(found, texts, strict=True)]


def _textnoisr(_: str) -> Noiser:
    from textnoisr.noise import CharNoiseAugmenter

    def noise(texts: list[str], strength: float, seed: int) -> list[str]:
        made = CharNoiseAugmenter(noise_level=min(0.5, 0.1 * strength), seed=seed)
        return [made.add_noise(text) for text in texts]

    return noise


def _share(value: float) -> float:
    return min(1.0, value)


_BETWEEN_SPACES: dict[str, Any] = {"tokenizer": str.split, "reverse_tokenizer": " ".join}
_MULTYPO = {
    "de": "german",
    "en": "english",
    "fr": "french",
    "el": "greek",
    "ru": "russian",
    "ar": "arabic",
    "hi": "hindi",
    "bn": "bengali",
    "ta": "tamil",
}
_KEYBOARDS = {lang: lang for lang in ("de", "en", "es", "fr", "he", "it", "nl", "pl", "tr", "uk")}

PEERS = (
    Peer("glitchlings typos", "glitchlings", _typogre, {}),
    Peer("glitchlings, four kinds", "glitchlings", _four_glitchlings, {"en": "en"}),
    Peer("multypo", "multypo", _multypo, _MULTYPO),
    Peer("nlpaug keyboard", "nlpaug", _keyboard_aug, _KEYBOARDS),
    Peer("nlpaug spelling", "nlpaug", _spelling_aug, {"en": "en"}),
    Peer("textnoisr", "textnoisr", _textnoisr, {}),
)
