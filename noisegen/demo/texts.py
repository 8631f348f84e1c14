"""Real English sentences that gensim's wheel carries as test data; nothing of it is copied here.

300 news documents of the Australian Broadcasting Corporation (Lee, Pincombe and Welsh, 2005) and
106 articles of the English Wikipedia (CC BY-SA 3.0). 50 further news documents have been compared
with each other by people.
"""

from collections.abc import Iterator
from html import unescape
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from noisegen.errors import MissingExtra
from noisegen.mining.containers import chunks
from noisegen.mining.languages import language
from noisegen.mining.markup import plain_text
from noisegen.mining.scanner import read_revisions
from noisegen.preparing.sentences import Criteria, sentences

NEWS = "lee_background.cor"
ARTICLES = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
COMPARED, SIMILARITIES = "lee.cor", "similarities0-1.txt"
WORDS_MIN, WORDS_MAX = 5, 40
HELD_OUT = 10  # of so many documents one


class Split(NamedTuple):
    """Sentences to train on, and those of other documents, to measure by; none is in both."""

    training: list[str]
    held_out: list[str]


def demo_texts() -> Split:
    """Return all sentences, each once; raises MissingExtra."""
    split = Split([], [])
    known: set[str] = set()
    english, criteria = language("en"), Criteria()
    for number, document in enumerate(_documents(folder())):
        side = split[number % HELD_OUT == 0]
        for found in sentences(document, english, criteria):
            if not found.reason and found.text not in known and _is_whole(found.text):
                known.add(found.text)
                side.append(found.text)
    return split


def compared_documents() -> Iterator[tuple[str, str, float]]:
    """Yield pairs of news documents and how alike people found them, 0 to 1 (Lee and others)."""
    where = folder()
    documents = (where / COMPARED).read_text("latin-1").splitlines()
    rows = [line.split() for line in (where / SIMILARITIES).read_text().splitlines()]
    for first, second in combinations(range(len(documents)), 2):
        yield documents[first], documents[second], float(rows[first][second])


def folder() -> Path:
    """Return the folder of gensim's test data; gensim itself is not imported."""
    found = find_spec("gensim")
    if found is None or not found.submodule_search_locations:
        raise MissingExtra("gensim", "demo")
    return Path(found.submodule_search_locations[0]) / "test" / "test_data"


def _documents(where: Path) -> Iterator[str]:
    yield from (where / NEWS).read_text("utf-8").splitlines()
    parts = chunks(where / ARTICLES, lambda text: None)
    for article in read_revisions(parts, lambda text: None, lambda page: not page.namespace):
        lines = unescape((article.raw or b"").decode("utf-8", "replace")).splitlines()
        yield "\n".join(map(plain_text, lines))


def _is_whole(sentence: str) -> bool:
    """Tell a sentence from a heading, an item of a list, or half of one."""
    is_long = WORDS_MIN <= len(sentence.split()) <= WORDS_MAX
    return is_long and sentence[0].isupper() and sentence[-1] in '.!?"'
