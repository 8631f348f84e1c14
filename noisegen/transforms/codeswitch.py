"""Words of a sentence replaced by their translations, as in the code-switched sets of ORACLE.

ORACLE replaces random words by one of their translations in a bilingual dictionary (MUSE) and keeps
sentences with at least one replaced word; which share of the words it replaces is not said.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noisegen.characters import Variants
from noisegen.draws import I64, U64, choices, decisions, draw_array
from noisegen.edits import Edits
from noisegen.phrases import PhraseTable
from noisegen.registry import DICTIONARIES, Settings, kernel
from noisegen.spans import Spans
from noisegen.text import Texts, ordinals

if TYPE_CHECKING:
    from noisegen.registry import Kernel

RATE = 0.3  # of the words in the three examples that ORACLE prints, 5 of 18 are replaced


def _nothing() -> Spans:
    return Spans(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class CodeSwitch:
    """Replace matches by translations, each with its rate, but at least one of a row.

    `limits` holds the 48-bit threshold of every strength; at a threshold of 0 nothing is replaced.
    Draw number i of a row decides on its i-th match outside `spans`, and which translation it gets.
    Where it decides on none, the match whose draw is the lowest is replaced.
    """

    table: PhraseTable
    limits: I64
    spans: Spans = field(default_factory=_nothing)

    def sparing(self, spans: Spans) -> "Kernel":
        """Return a kernel that chooses among the words outside these spans."""
        return replace(self, spans=spans)

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the translations of all rows."""
        from noisegen.bilingual.table import alternatives

        matches = self.table.find(texts)
        matches = matches.without(np.flatnonzero(self.spans.touch(matches.starts, matches.stops)))
        if not len(matches):
            return Edits.none()
        draws = draw_array(keys.take(matches.rows), ordinals(matches.rows))
        limits = self.limits.take(variants["rate"]).take(matches.rows)
        reached = np.maximum(limits, _lowest(decisions(draws), matches.rows) + 1)
        hit = np.flatnonzero((decisions(draws) < reached) & (limits > 0))
        matches, chosen = matches.take(hit), choices(draws.take(hit))
        written = alternatives(self.table, texts, matches, chosen)
        return Edits(matches.rows, matches.starts, matches.stops, written, self.table.pool)


def _lowest(decided: I64, rows: I64) -> I64:
    """Return for every match the lowest decision of its row."""
    heads = np.flatnonzero(np.diff(rows, prepend=-1))
    counts = np.diff(np.append(heads, len(rows)))
    lowest: I64 = np.repeat(np.minimum.reduceat(decided, heads), counts)
    return lowest


def _files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    given = values.get("dictionary")
    path = Path(given) if given else DICTIONARIES / "bilingual" / "common.tsv"
    return [path] if path.exists() else []


@kernel("codeswitch", _files, lambda: ["*"])
def codeswitch(
    settings: Settings, *, dictionary: str | None = None, into: str | None = None,
    rate: float = RATE,
) -> CodeSwitch:  # fmt: skip
    """Replace words by translations, at least one: 'where is my house' -> 'where is mi casa'."""
    from noisegen.bilingual.packaged import source
    from noisegen.bilingual.table import table_of

    path, other = source(dictionary, settings.lang, into)
    written = path.stat().st_mtime_ns if path.exists() else 0
    table = table_of(path.resolve(), written, settings.lang, other)
    return CodeSwitch(table, settings.limits(rate))
