"""Write pairs of recognised and spoken sentences, to which the recipe `asr` is fitted.

`python -m tools.asr_pairs REPOSITORY OUT` reads a clone of revdotcom/speech-datasets (CC-BY-SA-4.0)
and writes OUT/asr.train.tsv and OUT/asr.test.tsv: what Rev's Kaldi wrote, and what people
transcribed, with their capitals, punctuation and digits. Every fifth call is for testing alone.
"""

import argparse
import re
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from noisegen.noising.rng import name_number
from noisegen.transforms.speech import number_words, spoken_numbers

TEST = 5  # one call in so many is for testing alone
WORDS = range(4, 41)  # words of a sentence
WER_MAX = 0.5  # sentences with a larger word error rate are not well aligned


class Spoken(NamedTuple):
    """A token of a transcript as it is written, and the words that were spoken."""

    written: str
    words: list[str]


def sentences_of(transcript: Path) -> list[list[Spoken]]:
    """Return the sentences of a transcript, a table with a token and its punctuation per line."""
    names, sentences = number_words("en"), [list[Spoken]()]
    for line in transcript.read_text("utf-8").splitlines()[1:]:
        token, _, _, _, sign, *_ = line.split("|")
        if not token.startswith("<"):  # a sound that is no word
            words = spoken_numbers(token, names).lower().replace("-", " ")
            sentences[-1].append(Spoken(token + sign, re.findall(r"[a-z0-9']+", words)))
            if sign and sign in ".?!":
                sentences.append([])
    return [sentence for sentence in sentences if sentence]


def aligned(spoken: list[str], heard: list[str]) -> list[int]:
    """Return for each spoken word, and the end, the index of the heard word that it became."""
    places = [0] * len(spoken) + [len(heard)]
    for change in Levenshtein.opcodes(spoken, heard):
        for at in range(change.src_start, change.src_end):
            room = change.dest_end - change.dest_start
            places[at] = change.dest_start + min(at - change.src_start, room)
    return places


def pairs_of(transcript: Path, times: Path) -> list[tuple[str, str]]:
    """Return the (recognised, spoken) sentences of a call; `times` has a recognised word a line."""
    fields = (line.split() for line in times.read_text("utf-8").splitlines())
    heard = [row[4].lower() for row in fields if len(row) > 4 and not row[4].startswith("<")]
    sentences = sentences_of(transcript)
    words = [[word for token in sentence for word in token.words] for sentence in sentences]
    places = aligned([word for sentence in words for word in sentence], heard)
    bounds = pairwise(accumulate(map(len, words), initial=0))
    found = []
    for sentence, own, (start, stop) in zip(sentences, words, bounds, strict=True):
        here = heard[places[start] : places[stop]]
        wrong = Levenshtein.distance(own, here)
        if here and len(sentence) in WORDS and wrong <= WER_MAX * len(own):
            found.append((" ".join(here), " ".join(token.written for token in sentence)))
    return found


def main() -> None:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    folder = given.repository / "earnings21"
    tables: dict[str, list[tuple[str, str]]] = {"train": [], "test": []}
    for transcript in sorted((folder / "transcripts" / "nlp_references").glob("*.nlp")):
        times = folder / "output" / "rev" / "kaldi" / "ctm" / f"{transcript.stem}.ctm"
        part = "test" if name_number(transcript.stem) % TEST == 0 else "train"
        tables[part] += pairs_of(transcript, times)
    given.out.mkdir(parents=True, exist_ok=True)
    for part, pairs in tables.items():
        path = given.out / f"asr.{part}.tsv"
        path.write_text("noisy\tclean\n" + "".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
        print(f"{path}: {len(pairs):,} sentences", file=sys.stderr)


if __name__ == "__main__":
    main()
