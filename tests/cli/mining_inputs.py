"""Small inputs of the mining commands: invented text, one spelling corrected."""

import bz2
from pathlib import Path

NOISY = "They will definately close the old bridge near the harbour in spring ."
CLEAN = NOISY.replace("definately", "definitely")

PAIRS = f"noisy\tclean\n{NOISY}\t{CLEAN}\n"
M2 = f"S {NOISY}\nA 2 3|||R:SPELL|||definitely|||REQUIRED|||-NONE-|||0\n"
RAW = '{"text": "They closed the old bridge near the harbour.<br>It opens in spring again."}\n'
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
<siteinfo><sitename>Wiki</sitename><dbname>enwiki</dbname><generator>MediaWiki 1.43.0</generator>
</siteinfo><page><title>Harbour</title><ns>0</ns><id>7</id>
"""


def dump(*texts: str) -> str:
    """Return a dump of one page whose revisions have these texts."""
    revisions = "".join(
        f"<revision><id>{number}</id><timestamp>2024-05-{number:02}T10:00:00Z</timestamp>"
        "<contributor><username>A</username><id>1</id></contributor><model>wikitext</model>"
        f'<format>text/x-wiki</format><text bytes="{len(text)}" xml:space="preserve">{text}</text>'
        "<sha1 /></revision>\n"
        for number, text in enumerate(texts, 1)
    )
    return HEAD + revisions + "</page></mediawiki>\n"


def write(folder: Path) -> dict[str, str]:
    """Write the inputs into a folder and return their paths by what the commands call them."""
    files = {
        "PAIRS": "pairs.tsv",
        "FILE": "lang-8.m2",
        "DUMP": "enwiki-1.xml.bz2",
        "RAW": "raw.jsonl",
    }
    (folder / files["RAW"]).write_text(RAW)
    (folder / files["PAIRS"]).write_text(PAIRS)
    (folder / files["FILE"]).write_text(M2)
    (folder / files["DUMP"]).write_bytes(bz2.compress(dump(NOISY, CLEAN).encode()))
    return {name: str(folder / file) for name, file in files.items()}
