"""Derive noisegen/dictionaries/LANG/neighbours.parquet, counts of words and pairs of neighbours.

Usage: `python -m tools.neighbours NTREX TATOEBA`: folders with `newstest2019-ref.LANG.txt` of
MicrosoftTranslator/NTREX and with sentence pairs of Tatoeba, `LANG-LANG.tsv.gz` as OPUS-MT has
them. Both are edited text. Languages of both get the counts of both.
"""

import gzip
import re
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

from noisegen.errors import UsageError
from noisegen.noising.neighbours import FILE, NeighbourCounts
from noisegen.text.languages import MATCHED_BY, normalize_language
from noisegen.text.resources import DICTIONARIES

PAIR_MIN = 2  # least count of a pair of words
NTREX = "NTREX-128 (github.com/MicrosoftTranslator/NTREX), CC-BY-SA-4.0"
TATOEBA = "Tatoeba (tatoeba.org, through OPUS), CC-BY-2.0-FR"
LATIN = {"sr": "srp-Latn"}  # languages whose posts are in another script than their first file


def ntrex(folder: Path, lang: str) -> list[str]:
    """Return the sentences of a language in NTREX-128."""
    for path in sorted(folder.glob("newstest2019-*.txt")):
        code = re.sub(r"newstest2019-(ref|src)(-2)?\.", "", path.stem)
        with suppress(UsageError):  # a language that noisegen has no code for
            if LATIN.get(lang, code) != code or normalize_language(code.split("-")[0]) != lang:
                continue
            return path.read_text(encoding="utf-8").splitlines()
    return []


def tatoeba(folder: Path, lang: str) -> list[str]:
    """Return the different sentences of a language in Tatoeba's pairs."""
    found = dict[str, None]()
    for path in sorted(folder.glob("*.tsv.gz")):
        for column, code in enumerate(path.name.removesuffix(".tsv.gz").split("-")):
            if normalize_language(code.split("_")[0]) == lang:
                with gzip.open(path, "rt", encoding="utf-8") as file:
                    found.update(
                        dict.fromkeys(line.rstrip("\n").split("\t")[column] for line in file)
                    )
    return list(found)


def main(ntrex_folder: str, tatoeba_folder: str) -> None:
    """Write the counts of all languages that have word lists and spaces between words."""
    for folder in sorted(path for path in DICTIONARIES.iterdir() if path.is_dir()):
        lang = folder.name
        if lang in ("any", "bilingual", "keyboards") or lang in MATCHED_BY:
            continue
        texts = ntrex(Path(ntrex_folder), lang), tatoeba(Path(tatoeba_folder), lang)
        if not any(texts):
            print(f"{lang}: no text")
            continue
        counts = NeighbourCounts.of([*texts[0], *texts[1]])
        pairs = Counter({pair: n for pair, n in counts.pairs.items() if n >= PAIR_MIN})
        sources = [name for name, some in zip((NTREX, TATOEBA), texts, strict=True) if some]
        license_ = "CC-BY-SA-4.0" if texts[0] else "CC-BY-2.0-FR"
        head = {"source": "; ".join(sources) + "; by tools/neighbours.py", "license": license_}
        NeighbourCounts(counts.words, pairs, counts.usual).save(
            folder / FILE, {"lang": lang, **head}
        )
        size = (folder / FILE).stat().st_size >> 10
        print(
            f"{lang}: {sum(map(len, texts)):,} sentences, {len(counts.words):,} words, "
            f"{len(pairs):,} pairs, {size} KiB"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
