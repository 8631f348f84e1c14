"""SVG charts drawn from plain data: rows of dots, curves, scatter plots and bars.

A style is a number that stands for a colour and a mark (a point's shape): style 3 has the colour of
the CSS class `m3` in page.css and the shape `_CORNERS[3]`. A scale converts values to pixels. Most
charts have a linear scale from 0, or a logarithmic scale on which 0 is drawn apart, at its start.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, cos, floor, hypot, isfinite, log, log10, pi, sin

from markupsafe import Markup

from noisegen.report.blocks import TEXT_MAX, Bars, cut

STYLES = 12  # number of styles with different colours in page.css; there are eight mark shapes
# Width of a chart, and left, right and top edge of the area where values are drawn, in pixels
_WIDTH, _LEFT, _RIGHT, _TOP = 380, 46, 272, 34
_LABEL_MAX, _TITLE_MAX = 15, 40  # most characters of labels and titles; tooltips have whole names
_WIDE_TITLE_MAX = 52  # most characters of the title of a bar chart, which has the whole width
_DESCRIPTION_MAX = 4_000  # most characters of the description of a chart for screen readers
Point = tuple[float, float]


# Functions that make scales, which convert values to pixels.

_LOG_FROM = 5.0  # a scale is logarithmic if its maximum is at least this multiple of its minimum
# Greatest ratio of maximum to minimum of a logarithmic scale; smaller values are at its edge
_SPAN_MAX = 1e4
_ZERO_ROOM = 18.0  # pixels between the value 0 and the minimum of a logarithmic scale
_TICKS = 6
_LETTER, _TICK_GAP = 7, 6  # pixels: width of a letter of a tick's label, least space between labels


@dataclass(frozen=True)
class Scale:
    """A scale that converts values to pixels: `low` is at pixel `start`, `high` at pixel `stop`.

    `zero` is the pixel of the value 0 on a logarithmic scale, None if the scale shows no 0.
    """

    low: float
    high: float
    start: float
    stop: float
    zero: float | None = None
    is_log: bool = False

    @property
    def begin(self) -> float:
        """The pixel where the scale begins: `zero` if there is one, else `start`."""
        return self.start if self.zero is None else self.zero

    def at(self, value: float) -> float:
        """Return the pixel of a value; values outside the scale are put at its edge."""
        if self.is_log and value <= 0 and self.zero is not None:
            return self.zero
        inside = min(max(value, self.low), self.high)
        share = (
            log(inside / self.low) / log(self.high / self.low)
            if self.is_log
            else (inside - self.low) / (self.high - self.low)
        )
        return self.start + share * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Return the round values to label on the scale, including 0 if the scale shows it."""
        values = _log_ticks(self.low, self.high) if self.is_log else _ticks(self.low, self.high)
        return [0.0, *values] if self.zero is not None else values


def fitting(values: Iterable[float], start: float, stop: float, *, linear: bool = False) -> Scale:
    """Return a scale from pixel `start` to pixel `stop` that includes the range of `values`.

    It is logarithmic if the largest value is at least `_LOG_FROM` times the smallest positive
    value, unless `linear` is set.
    """
    known = [value for value in values if isfinite(value)]
    positive = [value for value in known if value > 0]
    if not positive:
        return Scale(0, 1, start, stop)
    low, high = min(positive), max(positive)
    if linear or high < _LOG_FROM * low:
        half_step = _step(high) / 2
        return Scale(min(0.0, *known), ceil(high / half_step - 1e-9) * half_step, start, stop)
    low = max(low, high / _SPAN_MAX)
    return _log_scale(low, high, start, stop, has_zero=min(known) <= 0)


def _log_scale(low: float, high: float, start: float, stop: float, *, has_zero: bool) -> Scale:
    """Return a logarithmic scale that is a little wider than the range from `low` to `high`.

    With `has_zero`, the value 0 is at pixel `start`, `_ZERO_ROOM` pixels before the other values.
    """
    zero, begin = None, start
    if has_zero:
        zero, begin = start, start + (_ZERO_ROOM if stop > start else -_ZERO_ROOM)
    return Scale(low / 1.12, high * 1.12, begin, stop, zero, is_log=True)


def between(low: float, high: float, start: float, stop: float) -> Scale:
    """Return a linear scale from the value `low` to the value `high`."""
    return Scale(low, high if high > low else low + 1, start, stop)


def _step(span: float) -> float:
    """Return a round distance between ticks, so that a range `span` has about `_TICKS` ticks."""
    rough = span / (_TICKS - 1)
    power = 10.0 ** floor(log10(rough))
    return next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= rough * 0.999)


def _ticks(low: float, high: float) -> list[float]:
    step = _step(high - low)
    numbers = range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
    return [round(step * number, 12) for number in numbers]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return the ticks of a logarithmic scale: 1, 2 and 5 times each power of ten.

    If these are too many, the ticks are 1 and 3 times each power, or only the powers, or only every
    second (third, ...) power.
    """
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        values = [round(one * 10.0**power, 12) for power in powers for one in digits]
        ticks = [value for value in values if low <= value <= high]
        if len(ticks) <= _TICKS + 1:
            return ticks
    return ticks[:: ceil(len(ticks) / _TICKS)]


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels apart as little as possible and return their new places, in the order given.

    All numbers are pixels. The new places are at least `gap` apart and inside [low, high], with the
    smallest sum of squared moves. This is isotonic regression: `place - gap * rank` must not fall
    from one label to the next; where it would, neighbouring labels get their mean.
    """
    order = sorted(range(len(places)), key=lambda index: places[index])
    pools: list[tuple[float, int]] = []
    for rank, index in enumerate(order):
        total, count = places[index] - gap * rank, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    level = [total / count for total, count in pools for _ in range(count)]
    most = max(low, high - gap * (len(places) - 1))
    moved = [0.0] * len(places)
    for rank, index in enumerate(order):
        moved[index] = min(max(level[rank], low), most) + gap * rank
    return moved


# Functions that return SVG elements.


def element(name: str, *content: str, **attributes: str | float) -> Markup:
    """Return an SVG element with the given content and attributes.

    The attribute `kind` is written as `class`. An underscore in the name of an attribute is written
    as a hyphen. Numbers are rounded to one decimal.

    >>> element("circle", kind="dot", cx=3.14159, r=2)
    Markup('<circle class="dot" cx="3.1" r="2"/>')
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(
            "class" if key == "kind" else key.replace("_", "-"),
            value if isinstance(value, str) else f"{round(value, 1):g}",
        )
        for key, value in attributes.items()
    )
    inside = Markup("").join(content)
    return Markup("<{0}{1}>{2}</{0}>" if inside else "<{0}{1}/>").format(name, written, inside)


def label(words: str, x: float, y: float, kind: str = "", anchor: str = "start") -> Markup:
    """Return a text element, cut to `_TITLE_MAX` characters; `y` is the middle of its height."""
    return element("text", cut(words, _TITLE_MAX), kind=kind, x=x, y=y + 4, text_anchor=anchor)


def line(kind: str, *points: Point, closed: bool = False) -> Markup:
    """Return an SVG path through points; with `closed`, the outline of an area."""
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return element("path", kind=kind, d=path + "Z" * closed)


def tip(words: str, *content: str) -> Markup:
    """Return a group of elements with the tooltip `words`."""
    return element("g", element("title", cut(words, TEXT_MAX)), *content, kind="tip")


def chart(width: float, height: float, title: str, description: str, *content: str) -> Markup:
    """Return an <svg> element of `width` x `height` pixels with the elements `content`.

    A narrower page shrinks the chart. `title` and `description` are for screen readers.
    """
    named = element("title", cut(title, TEXT_MAX))
    described = element("desc", cut(description or title, _DESCRIPTION_MAX))
    opening = Markup('<svg role="img" viewBox="0 0 {:g} {:g}" class="chart w{:g}">')
    return Markup("").join(
        [opening.format(width, height, width), named, described, *content, Markup("</svg>")]
    )


# Shape of each mark: count of corners (0: circle), angle of the first corner, relative size
_CORNERS: tuple[tuple[int, float, float], ...] = (
    (0, 0, 1.0),
    (4, pi / 4, 1.2),
    (3, -pi / 2, 1.3),
    (4, 0, 1.3),
    (3, pi / 2, 1.3),
    (5, -pi / 2, 1.2),
    (6, 0, 1.15),
    (8, pi / 8, 1.1),
)


def mark(style: int, x: float, y: float, size: float, kind: str = "") -> Markup:
    """Return the mark of a style, such as a circle, with radius `size` around the point (x, y)."""
    corners, turn, factor = _CORNERS[style % len(_CORNERS)]
    classes = f"m{style % STYLES} mark {kind}".strip()
    if not corners:
        return element("circle", kind=classes, cx=x, cy=y, r=size)
    angles = [turn + 2 * pi * number / corners for number in range(corners)]
    around = [(x + factor * size * cos(one), y + factor * size * sin(one)) for one in angles]
    return line(classes, *around, closed=True)


def sample(style: int, name: str) -> tuple[Markup, str]:
    """Return an entry for the legend `Figure.key`: the mark of a style, and its meaning, `name`."""
    return chart(20, 20, f"mark of {name}", "", mark(style, 10, 10, 6)), name


def link_sample(state: str, meaning: str) -> tuple[Markup, str]:
    """Return an entry for the legend `Figure.key`: a coloured line, and its meaning.

    The colour depends on `state`: 'better', 'worse' or 'same'.
    """
    return chart(36, 20, state, "", line(f"link {state}", (2, 10), (34, 10))), meaning


def short(value: float) -> str:
    """Return a value in short form, for a tick: 20k, 0.005, 1e-4."""
    if abs(value) >= 1e4:
        return f"{value / 1e6:g}M" if abs(value) >= 1e6 else f"{value / 1e3:g}k"
    if 0 < abs(value) < 0.001:
        return f"{value:.1e}".replace("e-0", "e-").replace(".0e", "e")
    return f"{value:g}"


# Functions that draw rows of dots, which compare values and their confidence intervals.


@dataclass(frozen=True)
class Dot:
    """A value drawn as the mark of a style, and its confidence interval, drawn as a line."""

    value: float
    style: int
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class DotRow:
    """A row of a chart: a line that joins the values in `dots`, in the order given.

    `state` colours the line: 'better', 'worse', 'same' or ''. `figures` are the values as text.
    `tip` is the text of the tooltip (default: name and figures).
    """

    dots: Sequence[Dot]
    name: str = ""
    figures: str = ""
    state: str = ""
    tip: str = ""

    @property
    def words(self) -> str:
        """The text of the tooltip: `tip` if it is given, otherwise name and figures."""
        return self.tip or f"{self.name} {self.figures}".strip()


def dots(
    rows: Sequence[DotRow],
    title: str,
    scale: Scale,
    *,
    heading: str = "",
    threshold: float | None = None,
) -> Markup:
    """Return a chart with the name, the figures and the dots of each row, one row below the other.

    `title` is for screen readers. `heading` is written above the rows; with it, the scale has
    labelled ticks. The value `threshold` is drawn as a dashed line.
    """
    step, top, width = 18, 26 if heading else 6, scale.stop + 12
    bottom = top + step * len(rows)
    drawn = []
    if heading:
        drawn.append(label(heading, 0, 12, f"m{rows[0].dots[-1].style} named"))
        drawn += _ticks_below(scale, bottom, top)
    if threshold is not None:
        drawn.append(line("threshold", (scale.at(threshold), 1), (scale.at(threshold), bottom)))
    for number, row in enumerate(rows):
        y = top + step * (number + 0.5)
        reach = element("rect", kind="reach", x=0, y=y - step / 2, width=width, height=step)
        drawn.append(tip(row.words, reach, *_dot_row(row, scale, y)))
    description = "; ".join(row.words for row in rows)
    return chart(width, bottom + (24 if heading else 4), title, description, *drawn)


def _dot_row(row: DotRow, scale: Scale, y: float) -> list[Markup]:
    """Return the elements of a row: lines, dots, name and figures; `y` is the middle of the row."""
    parts = []
    ends = [(scale.at(dot.value), y) for dot in row.dots]
    if len(ends) == 1 and row.name:
        ends = [(scale.at(0), y), *ends]
    if len(ends) > 1:
        parts.append(line(f"m{row.dots[-1].style} link {row.state}".strip(), *ends))
    for dot in row.dots:
        if dot.interval is not None:
            low, high = dot.interval
            parts.append(line(f"m{dot.style} whisker", (scale.at(low), y), (scale.at(high), y)))
    parts += [mark(dot.style, scale.at(dot.value), y, 3.6) for dot in row.dots]
    kind = f"small {row.state}".strip()
    parts.append(label(cut(row.name, _LABEL_MAX), 0, y, kind))
    parts.append(label(row.figures, scale.begin - 16, y, kind, "end"))
    return parts


# Functions that draw charts of curves.


@dataclass(frozen=True)
class Curve:
    """A line through points (x, y); with `dots`, every point also has a mark."""

    name: str
    style: int
    points: Sequence[Point]
    dots: bool = False

    @property
    def words(self) -> str:
        """The curve in words: its name, and its first and last value of y."""
        return f"{self.name}: {self.points[0][1]:.4g} at first, {self.points[-1][1]:.4g} at last"


def curves(
    given: Sequence[Curve],
    *,
    title: str,
    x_title: str,
    x_ticks: Sequence[float] | None = None,
    linear: bool = False,
) -> Markup | None:
    """Return a chart of curves, with the name of each curve at its end.

    Points whose x or y is not finite are left out. `x_ticks` are the ticks of the x axis (default:
    round numbers). The y axis is logarithmic for a wide range of values, unless `linear` is set.
    Returns None if no point is left.
    """
    finite = [replace(curve, points=_finite(curve.points)) for curve in given]
    known = [curve for curve in finite if curve.points]
    if not known:
        return None
    xs, ys = zip(*chain.from_iterable(curve.points for curve in known), strict=True)
    bottom = 208
    across = between(min(xs), max(xs), _LEFT + 8, _RIGHT - 6)
    up = fitting(ys, bottom, _TOP, linear=linear)
    drawn = _axes(across, up, title, x_title, across.ticks() if x_ticks is None else x_ticks)
    ends = []
    for curve in known:
        drawn += _curve_marks(curve, across, up)
        x, y = curve.points[-1]
        ends.append((curve.name, curve.style, across.at(x), up.at(y)))
    description = "; ".join(curve.words for curve in known)
    drawn += _named(ends, bottom)
    return chart(_WIDTH, bottom + 42, title, description, *drawn)


def _finite(points: Sequence[Point]) -> list[Point]:
    """Return the points whose x and y are finite."""
    return [(x, y) for x, y in points if isfinite(x) and isfinite(y)]


def _curve_marks(curve: Curve, across: Scale, up: Scale) -> list[Markup]:
    """Return the line of a curve, and the marks of its points with tooltips.

    The points have marks if `curve.dots` is set, or if there is only one point.
    """
    drawn = []
    if len(curve.points) > 1:
        places = [(across.at(x), up.at(y)) for x, y in curve.points]
        drawn.append(line(f"m{curve.style} curve", *places))
    if curve.dots or len(curve.points) == 1:
        for x, y in curve.points:
            place = mark(curve.style, across.at(x), up.at(y), 3.5)
            drawn.append(tip(f"{curve.name}, {x:g}: {y:.4g}", place))
    return drawn


# Functions that draw points, as scatter plots do.


@dataclass(frozen=True)
class Spot:
    """A point of a scatter plot or plane, drawn as the mark of a style.

    `tip` is its tooltip. `scatter` writes `name` beside it, and `plane` draws an arrow from the
    point `origin` to it.
    """

    x: float
    y: float
    style: int
    tip: str = ""
    name: str = ""
    origin: Point | None = None


def scatter(
    spots: Sequence[Spot],
    *,
    title: str,
    x_title: str,
    description: str,
    strong: Sequence[Spot],
    linear: bool = False,
) -> Markup:
    """Return a scatter plot with axes.

    Points in `spots` are small faint marks, points in `strong` are large marks with names. The y
    axis is logarithmic for a wide range of values, unless `linear` is set.
    """
    bottom = 256
    everything = [*spots, *strong]
    across = fitting([0.0, *(spot.x for spot in everything)], _LEFT + 8, _RIGHT, linear=True)
    up = fitting((spot.y for spot in everything), bottom, _TOP, linear=linear)
    drawn = _axes(across, up, title, x_title, across.ticks())
    for group, size, kind in ((spots, 2.5, "faint"), (strong, 7, "strong")):
        drawn += [
            tip(spot.tip, mark(spot.style, across.at(spot.x), up.at(spot.y), size, kind))
            for spot in group
        ]
    ends = [(spot.name, spot.style, across.at(spot.x), up.at(spot.y)) for spot in strong]
    drawn += _named(ends, bottom - 8)
    return chart(_WIDTH, bottom + 44, title, description, *drawn)


def plane(
    spots: Sequence[Spot],
    *,
    title: str,
    note: str = "",
    style: int | None = None,
    frame: Sequence[Point] | None = None,
) -> Markup:
    """Return a chart of points and arrows in a plane without axes.

    The chart shows the smallest rectangle around the points in `frame` (default: around `spots`).
    With a `frame`, x and y have the same scale, so that the angles of arrows are true. The title
    has the colour of `style`; `note` is written beside it.
    """
    height, top, edge, size = 340, 28, 12, 3.0
    points = [(spot.x, spot.y) for spot in spots]
    xs, ys = zip(*(points if frame is None else frame), strict=True)
    wide, tall = _WIDTH - 2 * edge, height - top - 2 * edge
    across, up = (wide / ((max(xs) - min(xs)) or 1), tall / ((max(ys) - min(ys)) or 1))
    if frame is not None:  # x and y get the same number of pixels per unit
        across = up = min(across, up)
    left = edge + (wide - across * (max(xs) - min(xs))) / 2
    low = height - edge - (tall - up * (max(ys) - min(ys))) / 2

    def placed(x: float, y: float) -> Point:
        return left + (x - min(xs)) * across, low - (y - min(ys)) * up

    field = element("rect", kind="field", x=0.5, y=top, width=_WIDTH - 1, height=height - top - 1)
    drawn = [field, label(cut(title, 24), 0, 12, "bold" if style is None else f"m{style} named")]
    drawn.append(label(note, _WIDTH, 12, "small quiet", "end"))
    for spot in spots:
        place = placed(spot.x, spot.y)
        if spot.origin is None:
            drawn.append(mark(spot.style, *place, size, "soft"))
        else:
            drawn.append(tip(spot.tip, *_arrow(spot.style, placed(*spot.origin), place)))
    return chart(_WIDTH, height, title, note or f"{len(spots):,} points", *drawn)


def _arrow(style: int, start: Point, end: Point) -> list[Markup]:
    """Return a dot at `end`, and an arrow from `start` to the dot.

    An arrow of less than 6 pixels is left out, since it could not be seen.
    """
    dot, head = 2.0, 5.0  # pixels: radius of the dot, length of the arrow's head
    drawn = [element("circle", kind=f"m{style} dot", cx=end[0], cy=end[1], r=dot)]
    length = hypot(end[0] - start[0], end[1] - start[1])
    if length < 6:
        return drawn
    dx, dy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    top = end[0] - dx * dot, end[1] - dy * dot
    back = top[0] - dx * head, top[1] - dy * head
    sides = [(back[0] - s * dy * head / 2, back[1] + s * dx * head / 2) for s in (1, -1)]
    arrow = [line(f"m{style} arrow", start, back), line(f"m{style} head", top, *sides, closed=True)]
    return [*arrow, *drawn]


# Functions that draw charts of bars.


def bars(shown: Bars) -> Markup:
    """Return a chart of horizontal bars that begin at 0: for each label one bar per series.

    Series n has the colour of style n. Beside each bar are its value, and its count if there is one
    in `shown.counts`. `shown.axis` is written above the labels, `shown.unit` below the ticks.
    """
    thick, gap, start, top = 11, 7, 136, _TOP + 4
    step = thick * len(shown.series) + gap
    bottom = top + step * len(shown.labels)
    labels = bar_labels(shown)
    longest = max((len(text) for texts in labels.values() for text in texts), default=0)
    scale = fitting([shown.most], start, _WIDTH - 10 - 6 * longest, linear=True)
    title = cut(shown.title, _WIDE_TITLE_MAX)
    drawn = [element("text", title, kind="bold", x=0, y=12)]
    drawn.append(label(shown.axis, start - 6, top - 8, "small quiet", "end"))
    drawn += _ticks_below(scale, bottom, top)
    drawn.append(label(shown.unit, start, bottom + 26, "small quiet"))
    described = []
    for row, name in enumerate(shown.labels):
        y = top + gap / 2 + step * row
        drawn.append(label(cut(name, 20), start - 6, y + (step - gap) / 2, "small", "end"))
        figures = [texts[row] for texts in labels.values()]
        for number, (series, figure) in enumerate(zip(labels, figures, strict=True)):
            end, middle = scale.at(shown.series[series][row]), y + thick * (number + 0.5)
            place = {"x": start, "y": y + thick * number}
            size = {"width": end - start, "height": thick - 1}
            rect = element("rect", kind=f"m{number + 1} bar", **place, **size)
            written = label(figure, end + 4, middle - 0.5, "tiny quiet halo")
            of = f", {series}" if len(figures) > 1 else ""
            drawn.append(tip(f"{name}{of}: {figure} {shown.unit}", rect, written))
        described.append(f"{name}: {', '.join(figures)}")
    return chart(_WIDTH, bottom + 36, shown.title, "; ".join(described), *drawn)


def bar_labels(shown: Bars) -> dict[str, list[str]]:
    """Return {series: texts beside its bars}: values, and any counts in brackets, '7.5 (120)'.

    Values have one decimal, or none if all values are whole numbers.
    """
    is_whole = all(float(value).is_integer() for row in shown.series.values() for value in row)
    form = ",.0f" if is_whole else ",.1f"
    figures = {name: [f"{value:{form}}" for value in row] for name, row in shown.series.items()}
    for name, counts in shown.counts.items():
        pairs = zip(figures[name], counts, strict=True)
        figures[name] = [f"{figure} ({count:,})" for figure, count in pairs]
    return figures


# Functions that draw axes and names for several kinds of charts.


def _axes(
    across: Scale, up: Scale, title: str, x_title: str, x_ticks: Sequence[float]
) -> list[Markup]:
    bottom = up.begin
    log = ", log scale" if up.is_log else ""
    drawn = [label(f"{title}{log}", 0, 12, "bold")]
    for tick in up.ticks():
        drawn.append(line("grid", (_LEFT, up.at(tick)), (_RIGHT, up.at(tick))))
        drawn.append(label(short(tick), _LEFT - 6, up.at(tick), "small quiet", "end"))
    drawn.append(line("axis", (_LEFT, bottom), (_RIGHT, bottom)))
    for tick in x_ticks:
        drawn.append(line("axis", (across.at(tick), bottom), (across.at(tick), bottom + 4)))
    for tick in _with_room(x_ticks, across):
        drawn.append(label(short(tick), across.at(tick), bottom + 15, "small quiet", "middle"))
    middle = (_LEFT + _RIGHT) / 2
    return [*drawn, label(x_title, middle, bottom + 34, "small quiet", "middle")]


def _ticks_below(scale: Scale, bottom: float, top: float) -> list[Markup]:
    """Return vertical grid lines at the ticks of a scale, with the ticks' values below them.

    Lines lead from y = `top` to y = `bottom`. A value too close to the one before is left out.
    """
    ticks = scale.ticks()
    drawn = [line("grid", (scale.at(tick), top), (scale.at(tick), bottom)) for tick in ticks]
    for tick in _with_room(ticks, scale):
        drawn.append(label(short(tick), scale.at(tick), bottom + 10, "small quiet", "middle"))
    return drawn


def _with_room(ticks: Sequence[float], scale: Scale) -> list[float]:
    """Return the ticks of a horizontal scale whose labels do not touch the label before."""
    kept: list[float] = []
    for tick in ticks:
        if kept:
            letters = (len(short(tick)) + len(short(kept[-1]))) / 2
            if scale.at(tick) - scale.at(kept[-1]) < _LETTER * letters + _TICK_GAP:
                continue
        kept.append(tick)
    return kept


def _named(ends: Sequence[tuple[str, int, float, float]], bottom: float) -> list[Markup]:
    """Return names for the right edge of a chart, each with a line that leads to its point.

    `ends` has (name, style, x, y) for each point. Names are moved up or down so that they do not
    overlap, but not below y = `bottom`.
    """
    label_ys = spread([y for *_, y in ends], 14, _TOP, bottom)
    drawn = []
    for (name, style, x, y), label_y in zip(ends, label_ys, strict=True):
        drawn.append(line("leader", (x + 5, y), (_RIGHT + 4, label_y)))
        kind = f"m{style} named small halo"
        drawn.append(label(cut(name, _LABEL_MAX), _RIGHT + 8, label_y, kind))
    return drawn
