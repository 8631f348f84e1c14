"""Text in twelve languages to train on: `python -m benchmarks.multilingual_text OUT`.

OUT/LANG.txt has sentences of Tatoeba and of NTREX-128, and posts: the clean side of the train part
of MultiLexNorm2, and tweets of CrisisLex in Spanish and Italian. OUT/pairs/LANG.csv has 100 changed
pairs of its dev part (of the train part where there is no other), and none of these is in the text.
"""

import argparse
import csv
import random
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.natural_noise import spread
from benchmarks.natural_text import SEED, crisis_tweets
from benchmarks.real_pairs import DATA, Pair, posts
from benchmarks.tatoeba import english_pairs
from noisegen.text.languages import is_other_language

LANGS = {
    "da": "dan",
    "de": "deu",
    "en": "eng",
    "es": "spa",
    "hr": "hrv",
    "id": "ind",
    "it": "ita",
    "nl": "nld",
    "sl": "slv",
    "sr": "srp-Latn",
    "tr": "tur",
    "vi": "vie",
}
TATOEBA = ("de", "es", "it", "nl", "tr", "vi")
EVENTS = {"es": ("Guatemala", "Venezuela"), "it": ("Sardinia",)}
SENTENCES, PAIRS = 6_000, 100


def news(lang: str) -> list[str]:
    """Return the sentences of NTREX-128 in a language."""
    kind = "src.eng" if lang == "en" else f"ref.{LANGS[lang]}"
    with tarfile.open(DATA / "ntrex128" / "ntrex128.even.tar.gz") as archive:
        file = archive.extractfile(f"newstest2019-{kind}.txt")
        assert file
        return file.read().decode().splitlines()


def sentences(lang: str) -> Iterator[str]:
    """Yield at most `SENTENCES` of Tatoeba, and all of the news."""
    if lang in (*TATOEBA, "en"):
        known = english_pairs([lang if lang != "en" else "de"])
        column = 0 if lang == "en" else 1
        texts = sorted({pair[column] for pairs in known.values() for pair in pairs})
        random.Random(SEED).shuffle(texts)
        yield from texts[:SENTENCES]
    yield from news(lang)


def judged_pairs(lang: str) -> list[Pair]:
    """Return changed pairs of the dev part, or of the train part where there is no other."""
    pairs = list(posts(lang, "dev")) or list(posts(lang, "train"))
    return spread(pairs, PAIRS)


def clean_posts(lang: str, judged: list[Pair]) -> Iterator[str]:
    """Yield normal forms of posts that are not judged, and tweets of CrisisLex."""
    held = {re.sub(r"\W", "", side).lower() for pair in judged for side in pair}
    for _, clean in posts(lang, "train"):
        if clean.strip() and re.sub(r"\W", "", clean).lower() not in held:
            yield clean
    for text in crisis_tweets(*EVENTS.get(lang, ())) if lang in EVENTS else ():
        if len(text.split()) >= 4 and not is_other_language(text, lang):
            yield text


def main() -> None:
    """Read the arguments, write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    (out / "pairs").mkdir(parents=True, exist_ok=True)
    for lang in LANGS:
        pairs = judged_pairs(lang)
        with (out / "pairs" / f"{lang}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("noisy", "clean"), *pairs])
        texts = list(dict.fromkeys([*sentences(lang), *clean_posts(lang, pairs)]))
        random.Random(SEED).shuffle(texts)
        (out / f"{lang}.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
        print(f"{lang}: {len(texts):,} texts, {len(pairs)} pairs")


if __name__ == "__main__":
    main()
