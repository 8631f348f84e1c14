"""The manifest of an output folder: what was asked, what each shard holds, totals, versions."""

import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from noisegen.run_folder import load_manifest, manifest_text
from noisegen.version import __version__

PACKAGES = ("noisegen", "numpy", "pyarrow", "codespell", "spacy", "datasets", "distributed")


@dataclass(frozen=True)
class Shard:
    """What one shard holds; the error sums are over a sample, scaled to the shard."""

    file: str
    rows: int
    changed: int
    sha256: str = ""
    first_row: int = 0
    rows_in: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    characters: int = 0
    character_errors: int = 0
    words: int = 0
    word_errors: int = 0


_KINDS = {"seed": int, "recipe": dict, "sources": list, "options": dict, "totals": dict}


@dataclass(frozen=True)
class Manifest:
    """All that is needed to make the same rows again, and what came out."""

    version: str
    command: str
    seed: int
    recipe: dict[str, Any]
    recipe_digest: str
    sources: list[dict[str, Any]]
    dictionaries: list[dict[str, str]]
    options: dict[str, Any]
    shards: list[dict[str, Any]]
    totals: dict[str, Any]
    packages: dict[str, str]

    @classmethod
    def load(cls, path: str | Path) -> "Manifest":
        """Read manifest.json (or the one in a folder); raises OutputError."""
        return load_manifest(cls, path, "an augment run")

    def __post_init__(self) -> None:
        """Raise TypeError where a file that was read holds something else."""
        for name, kind in _KINDS.items():
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} is not a {kind.__name__}")

    def to_json(self) -> str:
        """Return the file's text."""
        return manifest_text(self)

    def summary(self) -> str:
        """Return one line for people."""
        totals = self.totals
        share = totals["changed"] / max(1, totals["rows"])
        line = (
            f"{counted(totals['rows'], 'row')} in {counted(len(self.shards), 'shard')}; "
            f"{share:.1%} changed, "
            f"CER {totals['cer']:.2%}, WER {totals['wer']:.2%}"
        )
        dropped = ", ".join(f"{reason} {count:,}" for reason, count in totals["dropped"].items())
        return f"{line}; dropped or damaged: {dropped}" if dropped else line


def counted(count: int, noun: str) -> str:
    """Return '1 row', '1,200 rows'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def totals(shards: Iterable[Shard], duplicate_ids: int = 0) -> dict[str, Any]:
    """Add the shards up; rates are errors per clean character and word."""
    shards = list(shards)
    dropped: Counter[str] = Counter()
    for shard in shards:
        dropped.update(shard.dropped)
    if duplicate_ids:
        dropped["duplicate_id"] = duplicate_ids
    sums = {name: sum(getattr(shard, name) for shard in shards) for name in _SUMMED}
    return {
        "rows": sums["rows"],
        "changed": sums["changed"],
        "cer": round(sums["character_errors"] / max(1, sums["characters"]), 6),
        "wer": round(sums["word_errors"] / max(1, sums["words"]), 6),
        "rows_in": sums["rows_in"],
        "dropped": dict(sorted(dropped.items())),
    }


_SUMMED = ("rows", "changed", "rows_in", "characters", "character_errors", "words", "word_errors")


def packages() -> dict[str, str]:
    """Return the versions that can matter for the output."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {"noisegen": __version__}
