"""Derive noisegen/dictionaries/any/look.tsv, letters that look alike, from Unicode's confusables.

Usage: `python -m tools.confusables CONFUSABLES.TXT`, the file of UTS #39 (its head names the
version). Kept are pairs of single letters that people write today, of one writing direction, and
that normalization (NFKC) leaves apart: styled alphabets are of the transform `font`.
"""

import re
import sys
import unicodedata
from collections import defaultdict
from itertools import permutations
from pathlib import Path

from noisegen.text.resources import DICTIONARIES

HEAD = """# name: look
# lang: *
# source: Unicode confusables.txt {} (UTS #39), by tools/confusables.py
# license: Unicode-DFS-2016 (see look.LICENSE.txt)
# note: weights are shares; letters of the large alphabets before those that few fonts have
clean\tnoisy\tweight
"""
# Scripts in everyday use (UAX #31, table 5), by the first word of the names of their letters.
LARGE = ("LATIN", "GREEK", "CYRILLIC")
SCRIPTS = {
    *LARGE,
    *("ARABIC", "ARMENIAN", "BENGALI", "CJK", "DEVANAGARI", "ETHIOPIC", "GEORGIAN", "GUJARATI"),
    *("GURMUKHI", "HANGUL", "HEBREW", "HIRAGANA", "KANNADA", "KATAKANA", "KHMER"),
    *("MALAYALAM", "MYANMAR", "ORIYA", "SINHALA", "TAMIL", "TELUGU", "THAI"),
}
LATIN_MAX, CYRILLIC_MAX = 0x2B0, 0x530  # letters above are of phonetics, and not in common fonts
PHONETIC = "\u0180"  # first letter after those that languages of Europe write
LEFT_OUT = {"oσ", "οσ", "оσ", "iɩ", "lƖ", "IƖ", "nռ", "fք", "าๅ"}  # pairs that no reader mixes up
WEIGHTS = (9, 2)  # of a letter of a large alphabet, and of another or of phonetics


def is_common(letter: str) -> bool:
    """Tell whether people write a letter today, and computers show it."""
    name = unicodedata.name(letter, "?")
    most = {"LATIN": LATIN_MAX, "CYRILLIC": CYRILLIC_MAX}.get(name.split()[0], 0xFFFF)
    return (
        unicodedata.category(letter) in ("Ll", "Lu", "Lo")
        and name.split()[0] in SCRIPTS
        and ord(letter) <= most
        and unicodedata.normalize("NFKC", letter) == letter
        and not re.search("CLICK|RADICAL|CHOSEONG|JUNGSEONG|JONGSEONG", name)  # parts of letters
    )


def look_alikes(path: Path) -> dict[tuple[str, str], int]:
    """Return the weights of the pairs (letter, letter that looks alike) in a file of Unicode."""
    groups = defaultdict[str, set[str]](set)
    for line in path.read_text("utf-8-sig").splitlines():
        if fields := re.match("([0-9A-F]+) ;\t([0-9A-F]+) ;", line):
            letter, model = (chr(int(code, 16)) for code in fields.groups())
            groups[model] |= {letter, model}
    pairs = {}
    for group in groups.values():
        for clean, noisy in permutations(sorted(filter(is_common, group)), 2):
            directions = {unicodedata.bidirectional(letter) for letter in (clean, noisy)}
            if len(directions) == 1 and not {clean + noisy, noisy + clean} & LEFT_OUT:
                name = unicodedata.name(noisy).split()[0]
                is_large = name in LARGE and (name != "LATIN" or noisy < PHONETIC)
                pairs[clean, noisy] = WEIGHTS[not is_large]
    return pairs


def main() -> None:
    """Write the list."""
    path = Path(sys.argv[1])
    version = re.search("Version: ([0-9.]+)", path.read_text("utf-8-sig"))
    rows = [f"{a}\t{b}\t{weight}\n" for (a, b), weight in sorted(look_alikes(path).items())]
    head = HEAD.format(version[1] if version else "")
    (DICTIONARIES / "any" / "look.tsv").write_text(head + "".join(rows), "utf-8")
    print(f"{len(rows):,} pairs", file=sys.stderr)


if __name__ == "__main__":
    main()
