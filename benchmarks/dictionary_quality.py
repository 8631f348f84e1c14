"""How right mined dictionaries are: Icelandic ones by a hand-checked list, English by codespell.

The candidates are word pairs that another miner took from the revisions of the Icelandic Wikipedia;
a person kept the misspellings without capitals. Every second line of the kept pairs is here: a pair
that was mined once is among them by a chance of a half, so it counts twice. Codespell is no list of
all misspellings, and has no capitals.
"""

import gzip
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import noisegen
from benchmarks.measure import ROOT, Result, Skipped, report
from noisegen.data.dictionaries import Alternative, load_dictionary
from noisegen.mining.counts import WordCounter
from noisegen.mining.dictionary import apply_thresholds
from noisegen.mining.filters import PROFILES, judge
from noisegen.mining.miner import THRESHOLDS, SentencePair, Thresholds
from noisegen.text.segmentation import Language, language

DATA = ROOT.parent / "shared" / "data"
TYPOS = DATA / "is-wiki-typos"
HISTORIES = DATA / "wiki-history"
CODESPELL = DATA / "codespell" / "dictionary.txt.gz"
PACKAGED = ROOT / "noisegen" / "dictionaries" / "en" / "wiki.tsv"
FRAME = "og " * 9  # a word pair is judged as the end of a sentence

Words = tuple[str, str]  # wrong, right
ONE_PAGE = Thresholds(balance=THRESHOLDS["strict"].balance)


def results(rows: int) -> Iterator[Result | Skipped]:
    """Score the dictionaries; `rows` has no say."""
    if not (TYPOS.exists() and HISTORIES.exists() and CODESPELL.exists()):
        yield Skipped("dictionary quality", "the candidates and lists are not here")
        return
    yield from _icelandic()
    yield from _english()


def _icelandic() -> Iterator[Result]:
    """Score the candidates that each set of rules keeps."""
    mined = word_pairs(TYPOS / "misspelling_cands.txt.gz")
    times = Counter(mined)
    right = {
        pair: 1 if times[pair] > 1 else 2
        for pair in word_pairs(TYPOS / "misspelling_cands_gold.even.txt.gz")
    }
    for name, found in _dictionaries(mined):
        hits = sum(right.get(pair, 0) for pair in found)
        yield Result(f"{name}: precision", hits, len(found), "pairs", "the dictionary")
        yield Result(f"{name}: recall", hits, sum(right.values()), "pairs", "the checked list")


def _dictionaries(mined: Sequence[Words]) -> Iterator[tuple[str, set[Words]]]:
    spoken = language("is")
    rcp = dictionary(mined, spoken, "rcp", THRESHOLDS["rcp"])
    spelling = dictionary(mined, spoken, "spelling", ONE_PAGE)  # a list has no pages
    balanced = dictionary(mined, spoken, "strict", ONE_PAGE)
    strict = dictionary(mined, spoken, "strict", THRESHOLDS["strict"])
    yield "all candidates", set(mined)
    yield "candidates without capitals", without_capitals(set(mined))
    yield "rcp", rcp
    yield "rcp without capitals", without_capitals(rcp)
    yield "spelling", spelling
    yield "spelling without capitals", without_capitals(spelling)
    yield "strict --min-pages 1", balanced
    yield "strict --min-pages 1 without capitals", without_capitals(balanced)
    yield "strict without capitals", without_capitals(strict)


def word_pairs(path: Path) -> list[Words]:
    """Return the lines of a list, wrong and right word."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [line.split("\t") for line in file]
    return [(noisy.strip(), clean.strip()) for noisy, clean in rows]


def without_capitals(pairs: set[Words]) -> set[Words]:
    """Keep the pairs in which both sides are in lower case, as in the hand-checked list."""
    return {pair for pair in pairs if all(word == word.lower() for word in pair)}


def dictionary(
    mined: Sequence[Words], spoken: Language, profile: str, thresholds: Thresholds
) -> set[Words]:
    """Return the candidates that pass the rules and thresholds; a line counts as a page."""
    with WordCounter() as counter:
        for unit, (noisy, clean) in enumerate(mined):
            sides = FRAME + noisy, FRAME + clean
            words = judge(*sides, spoken, PROFILES[profile], Counter()) or ()
            counter.add(SentencePair(*sides, spoken.code, unit, words))
        return {(one.noisy, one.clean) for one in apply_thresholds(counter.rows(), thresholds)}


def _english() -> Iterator[Result]:
    """Say how many entries of small dictionaries codespell knows, with that correction."""
    known = codespell()
    made = {
        f"{profile} --min-pages 1": histories(profile) for profile in ("rcp", "spelling", "strict")
    }
    for name, entries in {**made, "packaged": load_dictionary(PACKAGED)}.items():
        found = without_capitals({(one.noisy, one.clean) for one in entries})
        name = f"English, {name}: known to codespell"
        yield Result(name, len(found & known), len(found), "pairs", "those without capitals")


def histories(profile: str) -> list[Alternative]:
    """Return the dictionary of the English histories, one page being enough."""
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        noisegen.mine_wiki(HISTORIES, folder, profile=profile, min_pages=1)
        return load_dictionary(Path(folder, "dictionary.parquet"))


def codespell() -> set[Words]:
    """Return codespell's pairs of a wrong and a right word."""
    with gzip.open(CODESPELL, "rt", encoding="utf-8") as file:
        rows = [line.strip().partition("->") for line in file]
    return {(wrong, right.strip()) for wrong, _, rights in rows for right in rights.split(",")}


if __name__ == "__main__":
    report(results)
