"""Real errors: mine them from the edit history of a wiki, and inject them into your own text.

    pip install noisegen
    python examples/mine_and_inject.py enwiki-*-pages-meta-history1.xml-*.7z news.txt out

One dump of a few hundred megabytes takes minutes and gives thousands of errors. Dumps are listed at
https://dumps.wikimedia.org; .7z needs the extra `7z`.
"""

import sys
from pathlib import Path

import pyarrow.dataset as ds

import noisegen

SHOWN = 5


def main(dumps: list[str], text: str, out: Path) -> None:
    """Mine `dumps` into out/mined, add the errors to `text` in out/noisy, and show some rows."""
    mined = noisegen.mine_wiki(dumps, str(out / "mined"), workers=2, resume=True)
    print(f"mined {mined.totals['pairs']:,} pairs of sentences; dropped: {mined.totals['dropped']}")

    errors = f"wiki:dictionary={out / 'mined'},rate=0.2"
    noised = noisegen.augment(text, str(out / "noisy"), transforms=[errors], edits=True, force=True)
    print(f"{noised.totals['changed']:,} of {noised.totals['rows']:,} rows changed")

    changed = ds.dataset(out / "noisy" / "data")
    for row in changed.filter(ds.field("clean") != ds.field("noisy")).head(SHOWN).to_pylist():
        for edit in row["edits"]:
            wrong = row["noisy"][edit["noisy_start"] : edit["noisy_end"]]
            print(f"{row['clean'][edit['clean_start'] : edit['clean_end']]!r} -> {wrong!r}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(f"usage: {sys.argv[0]} DUMP... TEXT OUT")
    *dumps, text, out = sys.argv[1:]
    main(dumps, text, Path(out))
