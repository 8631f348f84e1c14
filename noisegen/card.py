"""The dataset card (README.md) of an output folder, which `datasets.load_dataset` reads."""

import json
from collections.abc import Iterable

from noisegen.manifest import Manifest
from noisegen.recipe import parse

SOURCES_MAX = 20  # named in the card; the manifest has them all

_HEAD = """---
configs:
- config_name: default
  data_files: part-*.parquet
language: ["{lang}"]
tags: [noise, user-generated-content, noisegen]
---

# Clean and noisy text, made with noisegen {version}

{summary}

```python
import datasets
pairs = datasets.load_dataset("path/of/this/folder", split="train")
```

Made by `{command}` (seed {seed}). Again: `noisegen augment --from manifest.json -o OTHER`.

| column | content |
|---|---|
{columns}

Transforms (recipe `{recipe}`, digest `{digest}`): {transforms}.

## Sources and licences

The text comes from {sources}: its licence is theirs. Word lists that changed it:

| transform | file | source | licence |
|---|---|---|---|
{dictionaries}
"""

_COLUMNS = {
    "id": "the row's stable name",
    "clean": "the text as given",
    "noisy": "the text with noise",
    "transforms": "what was drawn for the row, in applied order",
}


def card(made: Manifest) -> str:
    """Return the card's text."""
    columns = dict(_COLUMNS)
    if made.options["copies"] > 1:
        columns["copy"] = "number of the noisy copy; (id, copy) names a row"
    if made.options["edits"]:
        columns["edits"] = "changed spans on both sides, in characters"
    if made.options["tokens"]:
        columns["noisy_tokens"] = "the tokens of the noisy text"
        columns["noisy_labels"] = "their labels, those of the clean tokens they came from"
    recipe, _ = parse(json.dumps(made.recipe), "manifest").for_language(made.options["lang"])
    names = dict.fromkeys(step.transform for step in recipe.steps())
    paths = [f"`{source['path']}`" for source in made.sources]
    more = f" and {len(paths) - SOURCES_MAX:,} more" if len(paths) > SOURCES_MAX else ""
    return _HEAD.format(
        lang=made.options["lang"],
        version=made.version,
        summary=made.summary(),
        command=made.command,
        seed=made.seed,
        columns=_rows(columns.items()),
        recipe=made.recipe["name"],
        digest=made.recipe_digest,
        transforms=", ".join(f"`{name}`" for name in names),
        sources=", ".join(paths[:SOURCES_MAX]) + more,
        dictionaries=_rows(
            (d["transform"], d["file"], d.get("source", ""), d.get("license", ""))
            for d in made.dictionaries
        ),
    )


def _rows(rows: Iterable[Iterable[str]]) -> str:
    cells = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)
