"""The dataset card of an output folder: README.md, by which `datasets` loads the folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from noisegen.runs.manifest import Manifest, rows_of

SOURCES_MAX = 20  # most sources that a card names; the manifest has all of them
_CARD = Path(__file__).with_name("card.md")
# The size categories of the Hugging Face Hub end at these numbers of rows
_BOUNDS = "1K 10K 100K 1M 10M 100M 1B 10B 100B 1T"


@dataclass(frozen=True, kw_only=True)
class Card:
    """Content of a dataset card that the manifest of the run does not have.

    `title`, `tags`, `tasks` and `license` are fields of the Hugging Face Hub. `verb` is the past
    participle in the heading, such as 'made'. `template` is a Jinja template of the text; it can
    use the manifest as `run`, the names of the sources as `sources`, and the names in `values`. In
    the code example, the rows are in the variable `variable`. `configs` has {table: pattern of its
    files}, the default table first; without it, one table has all shards.
    """

    title: str
    verb: str
    tags: Sequence[str]
    tasks: Sequence[str]
    template: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    variable: str = "pairs"
    license: str = "unknown"
    configs: Mapping[str, str] = field(default_factory=dict)


def dataset_card(manifest: Manifest, card: Card) -> str:
    """Return the text of README.md for an output folder with this manifest."""
    import yaml

    from noisegen.text.languages import normalize_language  # slow to import

    first = manifest.shards[0]["file"] if manifest.shards else "data/part-"
    files = card.configs or {"default": f"{first.partition('part-')[0]}part-*.parquet"}
    tables = [{"config_name": name, "data_files": path} for name, path in files.items()]
    rows = rows_of(manifest.totals)
    lang = manifest.lang or manifest.options["lang"]  # None if each row has its own
    head = {
        "pretty_name": card.title,
        "language": [normalize_language(lang) if lang else "multilingual"],
        "size_categories": [_size_category(rows)],
        "task_categories": list(card.tasks),
        "tags": [*card.tags, "noisegen"],
        "configs": [tables[0] | ({"default": True} if card.configs else {}), *tables[1:]],
    }
    values = {"run": manifest, "sources": source_names(manifest), **card.values}
    body = _rendered(card.template, **values)
    front_matter = yaml.safe_dump(head, sort_keys=False, allow_unicode=True)
    return _rendered(_CARD, card=card, run=manifest, body=body, head=front_matter)


def _size_category(rows: int) -> str:
    """Return the size category of the Hub for a number of rows, such as '1K<n<10K'."""
    bounds = _BOUNDS.split()
    place = max(0, len(str(rows)) - 3)  # a new category begins with each digit: 1,000, 10,000, ...
    if place == 0:
        return f"n<{bounds[0]}"
    if place >= len(bounds):
        return f"n>{bounds[-1]}"
    return f"{bounds[place - 1]}<n<{bounds[place]}"


def _rendered(template: Path, **values: Any) -> str:
    from jinja2 import StrictUndefined, Template

    text, strict = template.read_text("utf-8"), StrictUndefined
    made = Template(text, trim_blocks=True, lstrip_blocks=True, undefined=strict).render(values)
    return f"{made.rstrip()}\n"


def source_names(manifest: Manifest) -> str:
    """Return the names of the sources as text: 'a, b', and after SOURCES_MAX names 'and 9 more'."""
    names = [f"`{path}`" for path in dict.fromkeys(source["path"] for source in manifest.sources)]
    more = f" and {len(names) - SOURCES_MAX:,} more" if len(names) > SOURCES_MAX else ""
    return ", ".join(names[:SOURCES_MAX]) + more
