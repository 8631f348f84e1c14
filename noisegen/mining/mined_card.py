"""The dataset card (README.md) of a mining run, which `datasets.load_dataset` reads."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noisegen.mining.mined_folder import MiningManifest

SOURCES_MAX = 20  # named in the card; the manifest has them all

_CARD = """---
configs:
- config_name: pairs
  data_files: pairs/part-*.parquet
  default: true
- config_name: dictionary
  data_files: dictionary.parquet
language: ["{lang}"]
tags: [noise, real-errors, noisegen]
---

# Real errors and their corrections, mined with noisegen {version}

{summary}

```python
import datasets
pairs = datasets.load_dataset("path/of/this/folder", "pairs", split="train")
```

`pairs` has the columns {columns}: the side with errors, the corrected side, and where they stood.
`dictionary` (also `dictionary.tsv`) has a row for each wrong form of a word: `count` sentence pairs
on `pages` pages (or rows) correct it so, `reverse_count` change it the other way round, and `prob`
is its share among the wrong forms of the word. `words/` keeps the counts before any threshold, for
`noisegen dictionary filter`.

Made by `{command}`. The text comes from {sources}: its licence is theirs.

Noise from it: `noisegen augment TEXT -o OUT -t wiki:dictionary=dictionary.parquet,rate=0.1`
"""

_COLUMNS = {
    "wiki": "noisy, clean, lang, key, page_id, rev_old, rev_new, timestamp, minor, comment_flag, "
    "reverted, survived"
}


def card(made: "MiningManifest") -> str:
    """Return the card's text."""
    names = list(dict.fromkeys(source["path"] for source in made.sources))
    more = f" and {len(names) - SOURCES_MAX:,} more" if len(names) > SOURCES_MAX else ""
    columns = _COLUMNS.get(made.kind, "noisy, clean, lang, key, unit").split(", ")
    return _CARD.format(
        lang=made.lang,
        version=made.version,
        summary=made.summary(),
        columns=", ".join(f"`{name}`" for name in columns),
        command=made.command,
        sources=", ".join(f"`{name}`" for name in names[:SOURCES_MAX]) + more,
    )
