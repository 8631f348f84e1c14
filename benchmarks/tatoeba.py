"""Tatoeba's sentence pairs of English and another language, as tatoeba-opus has them."""

from collections import Counter
from collections.abc import Collection

from benchmarks.real_pairs import DATA
from noisegen.data.bitext import all_bitext, stream_bitext

FOLDER = DATA / "tatoeba-opus"
Sides = list[tuple[str, str]]  # English, translation


def english_pairs(langs: Collection[str]) -> dict[str, Sides]:
    """Return the pairs of these languages in the order of their files, English first."""
    files = [file for file in all_bitext([str(FOLDER)]) if {*file.langs} & {*langs}]
    pairs: dict[str, Sides] = {}
    for source, target, one, other, _ in stream_bitext(files, Counter()):
        if one == "en":
            pairs.setdefault(other, []).append((source, target))
        else:
            pairs.setdefault(one, []).append((target, source))
    return {lang: pairs[lang] for lang in langs}
