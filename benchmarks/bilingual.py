"""How far the packaged bilingual dictionary reaches.

`python -m benchmarks.bilingual` prints the table of docs/guides/codeswitch.md: the share of words
that have a translation, and of sentences with one.
"""

import re
from collections.abc import Sequence

import pyarrow as pa
from rich.console import Console

from benchmarks.tatoeba import english_pairs
from noisegen.data.dictionaries import packaged_languages
from noisegen.noising.recipe import Recipe
from noisegen.report.terminal import titled

WORD = re.compile(r"\w+")


def coverage(texts: Sequence[str], lang: str, into: str) -> tuple[float, float]:
    """Return the shares of words and of sentences that can be switched."""
    recipe = Recipe.named(f"codeswitch:into={into},rate=1")
    made = recipe.noise_batch(pa.table({"text": texts}), edits=True, lang=lang)
    words = sum(len(WORD.findall(text)) for text in texts)
    switched = sum(
        len(WORD.findall(text[edit["clean_start"] : edit["clean_end"]]))
        for text, edits in zip(texts, made["edits"].to_pylist(), strict=True)
        for edit in edits
    )
    return switched / words, sum(map(bool, made["edits"].to_pylist())) / len(texts)


def main() -> None:
    """Print the table."""
    table = titled("words and sentences with a translation, %")
    for name in ("text", "into English", "English into it"):
        table.add_column(name, justify="right")
    pairs = english_pairs([lang for lang in packaged_languages() if lang not in ("en", "ro")])
    for lang, rows in pairs.items():
        english, other = (list(side) for side in zip(*rows, strict=True))
        shares = (coverage(other, lang, "en"), coverage(english, "en", lang))
        table.add_row(lang, *(f"{100 * one:.0f}, {100 * all_:.0f}" for one, all_ in shares))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
