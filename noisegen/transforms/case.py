"""Changes of case."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.characters import Variants
from noisegen.draws import I64, U64, decisions, draw_array
from noisegen.edits import Edits
from noisegen.errors import UsageError, did_you_mean
from noisegen.registry import Settings, kernel
from noisegen.text import Texts, as_arrow, ordinals

DOTTED_I = ("tr", "az")  # languages in which I is the capital of ı, and İ that of i


@dataclass(frozen=True)
class Recased:
    """Write words in a case of `CASES`, each with its rate; `limits`: one for every strength."""

    limits: I64
    write: Callable[[pa.Array, bool], pa.Array]
    dotted: bool  # whether i and ı are two letters

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the words of all rows that change."""
        words = texts.tokens
        drawn = decisions(draw_array(keys.take(words.rows), ordinals(words.rows)))
        hit = np.flatnonzero(drawn < self.limits.take(variants["rate"]).take(words.rows))
        rows, starts, stops = words.rows.take(hit), words.starts.take(hit), words.stops.take(hit)
        clean = _between(texts, starts, stops)
        noisy = self.write(clean, self.dotted)
        changed = np.flatnonzero(pc.not_equal(clean, noisy).to_numpy(zero_copy_only=False))
        pool = noisy.cast(pa.binary())
        return Edits(rows.take(changed), starts.take(changed), stops.take(changed), changed, pool)


def _between(texts: Texts, starts: I64, stops: I64) -> pa.Array:
    """Return the text between positions, which ascend, as a string array."""
    if not len(starts):
        return pa.array([], pa.string())
    cuts = np.stack([starts, stops], axis=1).ravel()  # word, gap, word, gap, ..., word
    pieces = Texts(texts.values, cuts).to_arrow()
    return pieces.take(as_arrow(np.arange(0, len(pieces), 2))).cast(pa.string())


def _raised(words: pa.Array, dotted: bool) -> pa.Array:
    return pc.utf8_upper(pc.replace_substring(words, "i", "İ") if dotted else words)


def _lowered(words: pa.Array, dotted: bool) -> pa.Array:
    return pc.utf8_lower(pc.replace_substring(words, "I", "ı") if dotted else words)


CASES = {"upper": _raised, "lower": _lowered}


@kernel("caps", lambda *_: [], lambda: ["*"])
def caps(settings: Settings, *, rate: float = 1.0, case: str = "upper") -> Recased:
    """Write words in capitals: 'see you tomorrow' -> 'SEE YOU TOMORROW'.

    With case=lower in small letters: 'I saw Anna' becomes 'i saw anna'. Raises UsageError for
    another case.
    """
    if case not in CASES:
        near = did_you_mean(case, CASES) or f"; known: {', '.join(CASES)}"
        raise UsageError(f"caps has no case {case!r}{near}")
    return Recased(settings.limits(rate), CASES[case], settings.lang in DOTTED_I)
