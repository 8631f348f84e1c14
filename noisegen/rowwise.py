"""The adapter that runs a plain function `(text, draws, **options) -> str` over a batch of rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from rapidfuzz.distance import Levenshtein

from noisegen.characters import Variants, strengths
from noisegen.draws import U64, Draws, fraction
from noisegen.edits import Edits
from noisegen.errors import NoisegenError
from noisegen.text import Texts

ALIGNED_CHARS_MAX = 10_000  # a longer rewritten part becomes one edit: alignment is quadratic

Edit = tuple[int, int, str]


def difference(clean: str, noisy: str) -> list[Edit]:
    """Return edits (start, stop, replacement) in characters that turn one text into the other."""
    if clean == noisy:
        return []
    start = _common(clean, noisy)
    tail = _common(clean[start:][::-1], noisy[start:][::-1])
    inner, written = clean[start : len(clean) - tail], noisy[start : len(noisy) - tail]
    if max(len(inner), len(written)) > ALIGNED_CHARS_MAX:
        return [(start, start + len(inner), written)]
    return [
        (start + step.src_start, start + step.src_end, written[step.dest_start : step.dest_end])
        for step in Levenshtein.opcodes(inner, written)
        if step.tag != "equal"
    ]


def _common(left: str, right: str) -> int:
    """Return the length of the common prefix, by halving."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if left[:middle] == right[:middle] else (low, middle - 1)
    return low


@dataclass(frozen=True)
class RowFunction:
    """A row function as a kernel."""

    name: str
    function: Callable[..., str]
    values: Mapping[str, Any]
    factors: tuple[Fraction, ...]

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Run the function on every row and align what it returns."""
        scaled = self._scaled()
        found: list[tuple[int, int, int, bytes]] = []
        for row, clean in enumerate(texts.to_strings()):
            options = {name: scaled[name][rows[row]] for name, rows in variants.items()}
            noisy = self._call(clean, Draws(int(keys[row])), {**self.values, **options})
            base = int(texts.offsets[row])
            found += [(row, *edit) for edit in _in_bytes(clean, difference(clean, noisy), base)]
        rows, starts, stops = (
            np.array([edit[column] for edit in found], np.int64) for column in range(3)
        )
        pool = pa.array([edit[3] for edit in found], pa.binary())
        return Edits(rows, starts, stops, np.arange(len(found)), pool)

    def _scaled(self) -> dict[str, list[float]]:
        rates = {name: value for name, value in self.values.items() if isinstance(value, float)}
        return {
            name: [float(rate) for rate in strengths(fraction(value), self.factors)]
            for name, value in rates.items()
        }

    def _call(self, clean: str, draws: Draws, options: Mapping[str, Any]) -> str:
        try:
            noisy = self.function(clean, draws, **options)
            if not isinstance(noisy, str):
                raise TypeError(f"it returned {type(noisy).__name__}, not str")
            noisy.encode()
        except (Exception, SystemExit) as error:
            what = f"{type(error).__name__}: {error}"
            raise NoisegenError(
                f"transform {self.name!r} failed on {clean[:60]!r}: {what}"
            ) from error
        return noisy


def _in_bytes(text: str, edits: list[Edit], base: int) -> list[tuple[int, int, bytes]]:
    if text.isascii():
        return [(base + start, base + stop, new.encode()) for start, stop, new in edits]
    return [
        (base + len(text[:start].encode()), base + len(text[:stop].encode()), new.encode())
        for start, stop, new in edits
    ]
