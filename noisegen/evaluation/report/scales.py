"""From figures to pixels: linear from nought, or logarithmic with a place for nought."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log, log10

_LOG_FROM = 5.0  # a scale is logarithmic where the greatest figure is so many times the least
_SPAN_MAX = 1e4  # of a logarithmic scale; what is less is put at its edge
_ZERO_ROOM = 18.0  # pixels between nought and the least figure of a logarithmic scale
_TICKS = 6


@dataclass(frozen=True)
class Scale:
    """Pixels of figures from `low` (at `start`) to `high` (at `stop`); `zero`: pixel of nought."""

    low: float
    high: float
    start: float
    stop: float
    zero: float | None = None  # of a logarithmic scale on which there is a nought
    is_log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a figure; what lies outside is put at the edge."""
        if self.is_log and value <= 0 and self.zero is not None:
            return self.zero
        inside = min(max(value, self.low), self.high)
        share = (
            log(inside / self.low) / log(self.high / self.low)
            if self.is_log
            else (inside - self.low) / (self.high - self.low)
        )
        return self.start + share * (self.stop - self.start)

    def share(self, value: float) -> float:
        """Return where a figure lies between both ends, 0 to 1."""
        return (self.at(value) - self.start) / (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Return round figures on the scale, nought among them where it has a place."""
        found = _log_ticks(self.low, self.high) if self.is_log else _ticks(self.low, self.high)
        return [0.0, *found] if self.zero is not None else found


def fitting(values: Iterable[float], start: float, stop: float, *, linear: bool = False) -> Scale:
    """Return the scale that shows these figures best; logarithmic where they span much."""
    known = [value for value in values if isfinite(value)]
    positive = [value for value in known if value > 0]
    if not positive:
        return Scale(0, 1, start, stop)
    low, high = min(positive), max(positive)
    if linear or high < _LOG_FROM * low:
        return Scale(min(0.0, *known), _round_up(high), start, stop)
    room = _ZERO_ROOM if stop > start else -_ZERO_ROOM
    zero = start if min(known) <= 0 else None
    begin = start + room if zero is not None else start
    low = max(low, high / _SPAN_MAX)
    return Scale(low / 1.12, high * 1.12, begin, stop, zero, is_log=True)


def between(low: float, high: float, start: float, stop: float) -> Scale:
    """Return a linear scale between two figures."""
    return Scale(low, high if high > low else low + 1, start, stop)


def _step(span: float) -> float:
    """Return the round distance of ticks over a span."""
    rough = span / (_TICKS - 1)
    power = 10.0 ** floor(log10(rough))
    return next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= rough * 0.999)


def _round_up(high: float) -> float:
    step = _step(high) / 2
    return ceil(high / step - 1e-9) * step


def _ticks(low: float, high: float) -> list[float]:
    step = _step(high - low)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(step * number, 12) for number in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2, 5 of every power of ten; where these are many, the powers alone."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [one * 10.0**power for power in powers for one in digits]
        shown = [round(value, 12) for value in found if low <= value <= high]
        if len(shown) <= _TICKS + 1:
            return shown
    return shown[:: ceil(len(shown) / _TICKS)]


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels apart as little as can be: at least `gap` between them, inside [low, high].

    Least squares under an order: pooled neighbours of `place - gap * rank`.
    """
    order = sorted(range(len(places)), key=lambda one: places[one])
    pools: list[tuple[float, int]] = []
    for rank, one in enumerate(order):
        total, count = places[one] - gap * rank, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    level = [total / count for total, count in pools for _ in range(count)]
    most = max(low, high - gap * (len(places) - 1))
    moved = [0.0] * len(places)
    for rank, one in enumerate(order):
        moved[one] = min(max(level[rank], low), most) + gap * rank
    return moved
