"""English sentences to train on, posts among them: `python -m benchmarks.natural_text FILE`.

20,000 sentences of Tatoeba, 8,000 of WikiSplit, 17,000 tweets of CrisisLex without links and
retweets, in random order. `--held-out FILE` gets 1,000 other tweets, to measure drift on. Tweets
with words that noise makes of others (ppl) are left out of the text: a student would learn to keep
them.
"""

import argparse
import html
import random
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.crisis_data import events
from benchmarks.real_pairs import DATA, lines_of
from noisegen.encoders.encoder import open_encoder
from noisegen.training.noisy_words import WORD, find_noisy_words
from noisegen.training.pairs import NoiseSource, Reading, prepare_data

SENTENCES, LONG, TWEETS, HELD_OUT = 20_000, 8_000, 17_000, 1_000
SEED, PASSES = 7, 6  # passes of noise over the sentences
COMMON = {
    "the",
    "a",
    "to",
    "of",
    "and",
    "in",
    "is",
    "i",
    "you",
    "for",
    "on",
    "it",
    "my",
    "at",
    "this",
    "that",
    "with",
    "be",
    "are",
    "have",
    "was",
    "your",
}
_SIGNS = re.compile(r" ([.,;:!?')])")
_RETWEET, _LINK = re.compile(r"^RT @\w+:? ?"), re.compile(r"https?://\S+")


def tatoeba() -> Iterator[str]:
    """Yield English sentences of 3 to 30 words."""
    for path in sorted((DATA / "tatoeba-opus").glob("*.gz")):
        side = 1 if path.name.endswith("-eng.tsv.gz") else 0
        for line in lines_of(f"tatoeba-opus/{path.name}"):
            text = line.split("\t")[side]
            if 3 <= len(text.split()) <= 30:
                yield text


def wiki_split() -> Iterator[str]:
    """Yield sentences of Wikipedia of 5 to 40 words, without the spaces between tokens."""
    for part in ("tune", "validation"):
        for line in lines_of(f"wiki-split/{part}.tsv.gz"):
            for sentence in line.split("\t")[1].split("<::::>"):
                text = _SIGNS.sub(r"\1", sentence.strip()).replace("( ", "(")
                text = text.replace(" n't", "n't").replace("''", '"')
                if 5 <= len(text.split()) <= 40:
                    yield text


def crisis_tweets(*places: str) -> Iterator[str]:
    """Yield the tweets of CrisisLex, of some places or all, without links and "RT"."""
    for event in events(10**6):
        if not places or any(place in event.name for place in places):
            for tweet in event.texts:
                text = _RETWEET.sub("", html.unescape(tweet).replace("\n", " ").strip())
                yield _LINK.sub("", text).strip()


def english_tweets() -> list[str]:
    """Return English tweets, each wording once."""
    found: dict[str, str] = {}
    for text in crisis_tweets():
        words = text.lower().split()
        is_english = sum(word in COMMON for word in words) >= 2
        if len(words) >= 4 and is_english and sum(ord(char) > 0x24F for char in text) <= 3:
            found.setdefault(re.sub(r"\W", "", text.lower())[:60], text)
    return list(found.values())


def noisy_words(sentences: list[str]) -> set[str]:
    """Return the forms that noise makes of the words of these sentences, and that they lack."""
    with TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text("\n".join(sentences), "utf-8")
        data = prepare_data(Path(folder, "data"), [str(text)], Reading(clean_only=True))
        student: Any = open_encoder("minilm")
        noise = NoiseSource("ugc-heavy", SEED)
        return {*find_noisy_words(student, data, noise, PASSES * len(sentences))}


def main() -> None:
    """Read the arguments, write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--held-out", type=Path)
    given = parser.parse_args()
    rng = random.Random(SEED)
    sources = [sorted({*tatoeba()}), sorted({*wiki_split()}), english_tweets()]
    for source in sources:
        rng.shuffle(source)
    short, long, posts = sources
    texts = short[:SENTENCES] + long[:LONG]
    noisy = noisy_words(texts)
    clean = (post for post in posts[HELD_OUT:] if noisy.isdisjoint(WORD.findall(post.lower())))
    texts += islice(clean, TWEETS)
    rng.shuffle(texts)
    for path, lines in ((given.out, texts), (given.held_out, posts[:HELD_OUT])):
        if path:
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main()
