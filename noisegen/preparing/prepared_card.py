"""The dataset card (README.md) of prepared sentences, which `datasets.load_dataset` reads."""

from typing import TYPE_CHECKING

from noisegen.card import SOURCES_MAX

if TYPE_CHECKING:
    from noisegen.preparing.prepared_folder import PreparingManifest

_CARD = """---
configs:
- config_name: default
  data_files: part-*.parquet
language: ["{lang}"]
tags: [text, sentences, noisegen]
---

# Clean sentences, prepared with noisegen {version}

{summary}

```python
import datasets
sentences = datasets.load_dataset("path/of/this/folder", split="train")
```

| column | content |
|---|---|
| id | stable name: number of the row * 2^24 + number of the sentence in the row, both from 0 |
| text | the sentence |
| source | the file it comes from |
| row | number of its row in the whole input{row} |

Dropped, by the first reason that held:

| reason | sentences |
|---|---|
{dropped}

Made by `{command}`. The text comes from {sources}: its licence is theirs.

Noise for it: `noisegen augment path/of/this/folder -o OUT --id-column id`
"""


def card(made: "PreparingManifest") -> str:
    """Return the card's text."""
    names = [f"`{source['path']}`" for source in made.sources]
    more = f" and {len(names) - SOURCES_MAX:,} more" if len(names) > SOURCES_MAX else ""
    column = made.options["id_column"]
    rows = made.totals["dropped"].items()
    return _CARD.format(
        lang=made.lang,
        version=made.version,
        summary=made.summary(),
        row=f", from column `{column}`" if column else "",
        dropped="\n".join(f"| {reason} | {count:,} |" for reason, count in rows),
        command=made.command,
        sources=", ".join(names[:SOURCES_MAX]) + more,
    )
