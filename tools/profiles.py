"""Learn noisegen/dictionaries/LANG/channel, profiles of real errors, from openly licensed corpora.

`python -m tools.profiles [LANG]...` reads the corpora of `benchmarks.real_pairs` and writes the
profile of each language, or of these. A word, a gap and what either became are kept only if they
occur in `SUPPORT_MIN` different pairs; in large corpora more, so that a profile stays small. Names
of users, addresses and numbers are not learned.
"""

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.real_pairs import load
from noisegen.data.pairs import Pairs
from noisegen.noising.profile import SAME, GapKey, Profile, WordKey
from noisegen.realism.learn import profile_of, save
from noisegen.text.resources import DICTIONARIES
from noisegen.text.spans import PROTECTED, protect_kinds, protected_in

SUPPORT_MIN = 3
LARGE, SUPPORT_LARGE = 20_000, 8  # pairs, and the support in so many
_BEFORE = re.compile(r" +([.,;:!?…)\]}»”%])")
_BEHIND = re.compile(r"([(\[{«„“]) +")
_QUOTED = re.compile(r'" ([^"]*?) "')
DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Corpus:
    """A set of `benchmarks.real_pairs`, whom to credit, and whether its tokens are apart."""

    name: str
    source: str
    license: str
    is_tokenised: bool = False


CORPORA = {
    "de": Corpus(
        "falko-merlin",
        "Falko-MERLIN, learner German (spraakbanken/multiged-2023)",
        "CC-BY-SA-4.0",
        is_tokenised=True,
    ),
    "en": Corpus(
        "ud-corrected:en",
        "UD English EWT, posts, mail and reviews (UniversalDependencies/UD_English-EWT)",
        "CC-BY-SA-4.0",
    ),
    "es": Corpus("cowsl2h", "COWS-L2H, learner Spanish (ucdaviscl/cowsl2h)", "Apache-2.0"),
    "ga": Corpus(
        "ud-corrected:ga",
        "UD Irish TwittIrish, tweets (UniversalDependencies/UD_Irish-TwittIrish)",
        "CC-BY-SA-4.0",
    ),
    "is": Corpus("ice-error", "Icelandic Error Corpus (antonkarl/iceErrorCorpus)", "CC-BY-4.0"),
    "pt": Corpus(
        "ud-corrected:pt",
        "UD Portuguese DANTEStocks, tweets (UniversalDependencies/UD_Portuguese-DANTEStocks)",
        "CC-BY-4.0",
    ),
    "ru": Corpus("ruspellru", "RUSpellRU, blogs (ai-forever/sage)", "MIT"),
    "uk": Corpus(
        "ua-gec",
        "UA-GEC, texts corrected by editors (grammarly/ua-gec)",
        "CC-BY-4.0",
        is_tokenised=True,
    ),
    "zh": Corpus("mucgec", "MuCGEC, learner Chinese (HillZhang1999/MuCGEC)", "Apache-2.0"),
}


def joined(text: str) -> str:
    """Return tokenised text with its signs at the words.

    >>> joined('" Ja , ( gut ) " , sagte er .')
    '"Ja, (gut)", sagte er.'
    """
    return _BEHIND.sub(r"\1", _BEFORE.sub(r"\1", _QUOTED.sub(r'"\1"', text)))


def anonymous(text: str) -> str:
    """Return a text with 0 for names of users and addresses.

    >>> anonymous("@someone see www.example.org")
    '0 see 0'
    """
    for start, stop in reversed(protected_in(text, protect_kinds(PROTECTED))):
        text = text[:start] + re.sub(r"\S+", "0", text[start:stop]) + text[stop:]
    return text


def pairs_of(corpus: Corpus) -> Pairs:
    """Return the pairs of a corpus, as people write."""
    write = joined if corpus.is_tokenised else str
    noisy, clean = (
        [anonymous(write(text)) for text in side] for side in zip(*load(corpus.name), strict=True)
    )
    return Pairs(noisy, clean)


def supported(profile: Profile, least: int) -> Profile:
    """Return a profile without numbers and rare forms of words, slips included."""
    words, gaps = Counter[WordKey](), Counter[GapKey]()
    for word, count in profile.words.items():
        is_rare = word.noisy not in (word.clean, "") and count < least
        if not DIGIT.search(word.clean):
            words[word._replace(noisy=None, written=SAME) if is_rare else word] += count
    for gap, count in profile.gaps.items():
        gaps[gap._replace(right="") if DIGIT.search(gap.right) else gap] += count
    return replace(profile, words=words, gaps=gaps)


def main(arguments: Sequence[str] | None = None, folder: Path = DICTIONARIES) -> None:
    """Write the profile of every language, or of those named, below `folder`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("langs", nargs="*")
    for lang in parser.parse_args(arguments).langs or CORPORA:
        corpus = CORPORA[lang]
        pairs, out = pairs_of(corpus), folder / lang / "channel"
        support = SUPPORT_MIN if len(pairs) < LARGE else SUPPORT_LARGE
        profile = supported(profile_of(pairs, lang, support), SUPPORT_MIN)
        save(replace(profile, source=corpus.source, license=corpus.license), out)
        size = sum(path.stat().st_size for path in out.iterdir())
        totals = f"{profile.totals['edits']:,} edits in {len(pairs):,} pairs"
        print(f"{out}: {totals}, support {support}, {size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
