"""What people do against noisy text: encoders, spell checkers before one, means of noisy copies.

Each is an encoder, so that `benchmarks.beside` and `benchmarks.rankings` measure it like a model.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from itertools import chain

import numpy as np

import noisegen
from noisegen.encoders.encoder import Encoder, Progress, Vectors, digest_of, open_encoder
from noisegen.encoders.static import static_form

_WORD = re.compile(r"[^\W\d_](?:[\w'’]*\w)?")  # words; numbers, signs and blanks stay
_ADDRESS = re.compile(r"(?:https?://|[@#])\S+")  # links, mentions, hashtags
COPY_SEED = 1_000_000
COPIES = 4  # noisy copies in a mean, besides the text itself


@dataclass(frozen=True)
class Around:
    """An encoder that uses another one, with vectors of the same width."""

    name: str
    encoder: Encoder

    @property
    def width(self) -> int:
        """The number of dimensions of a text's vector."""
        return self.encoder.width

    @property
    def digest(self) -> str:
        """A digest of name and encoder."""
        return digest_of(self.name, self.encoder.digest)


@dataclass(frozen=True)
class Fronted(Around):
    """An encoder of corrected texts."""

    correct: Callable[[str], str]

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return one vector per text, shape (texts, width)."""
        return self.encoder.encode([self.correct(text) for text in texts], progress)


@dataclass(frozen=True)
class MeanOfCopies(Around):
    """An encoder that gives a text the mean vector of itself and of noisy copies of it.

    The noise depends on the text alone, and no test has its seeds.
    """

    recipe: str = "ugc"

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return one vector per text, shape (texts, width)."""
        seeds = range(COPY_SEED, COPY_SEED + COPIES)
        copies = [noisegen.noise(list(texts), self.recipe, seed=seed) for seed in seeds]
        vectors = self.encoder.encode([*texts, *chain(*copies)], progress)
        mean: Vectors = vectors.reshape(COPIES + 1, len(texts), -1).mean(axis=0)
        return mean


@dataclass(frozen=True)
class Characters:
    """Counts of hashed n-grams: of three to five characters inside words, or of words."""

    name: str
    analyzer: str
    ngrams: tuple[int, int]
    width: int = 4_096

    @property
    def digest(self) -> str:
        """A digest of the settings."""
        return digest_of(self.name, self.analyzer, self.ngrams, self.width)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return one vector per text, shape (texts, width)."""
        from sklearn.feature_extraction.text import HashingVectorizer

        counts = HashingVectorizer(
            analyzer=self.analyzer,
            ngram_range=self.ngrams,
            n_features=self.width,
            alternate_sign=False,
            token_pattern=r"(?u)\b\w+\b",
        )
        vectors: Vectors = counts.transform(texts).toarray().astype(np.float32)
        vectors[~vectors.any(axis=1), 0] = 1  # a text without words, as direction
        return vectors


def in_words(correct: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that corrects each word of a text but links, mentions and hashtags."""

    def one(word: re.Match[str]) -> str:
        if "'" in word[0] or "’" in word[0]:  # dictionaries lack contractions
            return word[0]
        corrected = correct(word[0].lower())
        if corrected == word[0].lower():
            return word[0]
        return corrected.capitalize() if word[0][0].isupper() else corrected

    def whole(text: str) -> str:
        parts, end = [], 0
        for address in _ADDRESS.finditer(text):
            parts += [_WORD.sub(one, text[end : address.start()]), address[0]]
            end = address.end()
        return "".join([*parts, _WORD.sub(one, text[end:])])

    return whole


def symspellpy() -> Callable[[str], str]:
    """Return symspellpy's correction of words, with its English dictionary and two edits."""
    from symspellpy import SymSpell, Verbosity

    speller = SymSpell(max_dictionary_edit_distance=2)
    listed = files("symspellpy") / "frequency_dictionary_en_82_765.txt"
    speller.load_dictionary(str(listed), 0, 1)

    @cache
    def corrected(word: str) -> str:
        found = speller.lookup(word, Verbosity.TOP, max_edit_distance=2, include_unknown=True)
        return str(found[0].term)

    return in_words(corrected)


def pyspellchecker() -> Callable[[str], str]:
    """Return pyspellchecker's correction of words, at its defaults but one edit, for speed."""
    from spellchecker import SpellChecker

    speller = SpellChecker(distance=1)

    @cache
    def corrected(word: str) -> str:
        return str(speller.correction(word) or word)

    return in_words(corrected)


def fronts() -> dict[str, Callable[[], Callable[[str], str]]]:
    """Return the spell checkers that are installed."""
    modules = {"symspellpy": symspellpy, "spellchecker": pyspellchecker}
    return {make.__name__: make for module, make in modules.items() if find_spec(module)}


@cache
def static(spec: str) -> Encoder:
    """Return the static form of an encoder, before any training."""
    return static_form(open_encoder(spec)).student
