"""How far the packaged bilingual dictionary reaches, how right one from bitext is.

`python -m benchmarks.bilingual` prints the two tables of docs/codeswitch.md: the share of words
that have a translation, and of sentences with one; and of dictionaries built from Tatoeba's pairs
the share of words whose first translation the packaged dictionary has too.
"""

import re
from collections.abc import Sequence

import pyarrow as pa
from rich.console import Console

from benchmarks.tatoeba import FOLDER, english_pairs
from noisegen.bilingual.building import Built, Thresholds, build, silent
from noisegen.bilingual.packaged import COMMON, languages
from noisegen.bilingual.reading import load
from noisegen.engine import noise_table
from noisegen.recipe import Recipe
from noisegen.tables import titled

WORD = re.compile(r"\w+")
FREQUENT = 200  # words
BUILT = {"de": "deu-eng", "es": "eng-spa", "ar": "ara-eng"}


def coverage(texts: Sequence[str], lang: str, into: str) -> tuple[float, float]:
    """Return the shares of words and of sentences that can be switched."""
    recipe = Recipe.named(f"codeswitch:into={into},rate=1")
    made = noise_table(recipe, pa.table({"text": texts}), edits=True, lang=lang)
    words = sum(len(WORD.findall(text)) for text in texts)
    switched = sum(
        len(WORD.findall(text[edit["clean_start"] : edit["clean_end"]]))
        for text, edits in zip(texts, made["edits"].to_pylist(), strict=True)
        for edit in edits
    )
    return switched / words, sum(map(bool, made["edits"].to_pylist())) / len(texts)


def right(built: Built, lang: str) -> tuple[float, float]:
    """Return the shares of words whose first translation is right: of frequent ones, of all.

    Of the words that the packaged dictionary has; the most frequent are those of most pairs.
    """
    known: dict[str, set[str]] = {}
    for entry in load(COMMON, lang, "en").entries:
        known.setdefault(entry.clean.lower(), set()).add(entry.noisy.lower())
    first: dict[str, str] = {}
    counts: dict[str, int] = {}
    for one in built.entries:
        first.setdefault(one.clean.lower(), one.noisy.lower())
        counts[one.clean.lower()] = counts.get(one.clean.lower(), 0) + one.expected
    words = sorted((word for word in first if word in known), key=lambda word: -counts[word])
    found = [first[word] in known[word] for word in words]
    frequent = found[:FREQUENT]
    return sum(frequent) / len(frequent), sum(found) / len(found)


def main() -> None:
    """Print both tables."""
    reach = titled("words and sentences with a translation, %")
    quality = titled("built from bitext, into English")
    for table, names in (
        (reach, ("text", "into English", "English into it")),
        (quality, ("bitext", "pairs", "words", f"right, {FREQUENT}", "right, all")),
    ):
        for name in names:
            table.add_column(name, justify="right")
    pairs = english_pairs([lang for lang in languages() if lang not in ("en", "ro")])
    for lang, rows in pairs.items():
        english, other = (list(side) for side in zip(*rows, strict=True))
        shares = (coverage(other, lang, "en"), coverage(english, "en", lang))
        reach.add_row(lang, *(f"{100 * one:.0f}, {100 * all_:.0f}" for one, all_ in shares))
    for lang, name in BUILT.items():
        bitext = str(FOLDER / f"{name}.tsv.gz")
        built = build([bitext], (lang, "en"), Thresholds(), silent)
        shown = (f"{100 * share:.1f}" for share in right(built, lang))
        account = built.account()
        quality.add_row(lang, f"{account['pairs']:,}", f"{account['words']:,}", *shown)
    for table in (reach, quality):
        Console(width=100).print(table)


if __name__ == "__main__":
    main()
