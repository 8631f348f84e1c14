"""Changes of case."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.characters import Variants
from noisegen.draws import I64, U64, decisions, draw_array
from noisegen.edits import Edits
from noisegen.registry import Settings, kernel
from noisegen.text import Texts, as_arrow, ordinals

DOTTED_I = ("tr", "az")  # languages whose i is raised to a dotted capital


@dataclass(frozen=True)
class Capitals:
    """Write words in capitals, each with its rate; `limits` has the threshold of every strength."""

    limits: I64
    lang: str

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the capitals of all rows."""
        words = texts.tokens
        drawn = decisions(draw_array(keys.take(words.rows), ordinals(words.rows)))
        hit = np.flatnonzero(drawn < self.limits.take(variants["rate"]).take(words.rows))
        rows, starts, stops = words.rows.take(hit), words.starts.take(hit), words.stops.take(hit)
        clean = _between(texts, starts, stops)
        dotted = pc.replace_substring(clean, "i", "İ") if self.lang in DOTTED_I else clean
        noisy = pc.utf8_upper(dotted)
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


@kernel("caps", lambda *_: [], lambda: ["*"])
def caps(settings: Settings, *, rate: float = 1.0) -> Capitals:
    """Write words in capitals: 'see you tomorrow' -> 'SEE YOU TOMORROW'."""
    return Capitals(settings.limits(rate), settings.lang)
