"""The dataset card (README.md) of an output folder, which `datasets.load_dataset` reads."""

from collections.abc import Iterable

from noisegen.manifest import Manifest

_HEAD = """---
configs:
- config_name: default
  data_files: part-*.parquet
language: {lang}
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
    names = dict.fromkeys(note["transform"] for note in made.dictionaries)
    return _HEAD.format(
        lang=made.options["lang"],
        version=made.version,
        summary=made.summary(),
        command=made.command,
        seed=made.seed,
        columns=_rows(columns.items()),
        recipe=made.recipe["name"],
        digest=made.recipe_digest,
        transforms=", ".join(f"`{name}`" for name in names) or "see the recipe in manifest.json",
        sources=", ".join(f"`{source['path']}`" for source in made.sources),
        dictionaries=_rows(
            (d["transform"], d["file"], d.get("source", ""), d.get("license", ""))
            for d in made.dictionaries
        ),
    )


def _rows(rows: Iterable[Iterable[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
