"""Numbers and names as the report writes them."""

from math import isfinite

from noisegen.evaluation.metrics import Metric
from noisegen.evaluation.report.findings import bounds
from noisegen.evaluation.results import Comparison, Score

_DIGITS = {"%": 2, "points": 1, "": 3}
_BLANK = "\u00a0"  # no line ends between a figure and its unit
_SMALL = 0.01  # below it a figure without unit gets one digit more
KINDS = {
    "pairs": ("natural set", "natural sets"),
    "noise": ("kind of noise", "kinds of noise"),
    "sts": ("STS set", "STS sets"),
    "retrieval": ("retrieval set", "retrieval sets"),
    "classification": ("classification set", "classification sets"),
    "pair_classification": ("pair classification set", "pair classification sets"),
}


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters, with an ellipsis where some are missing."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def number(metric: Metric, value: float) -> str:
    """Return a figure without its unit, with as many digits as the metric bears."""
    digits = _DIGITS.get(metric.unit, 3) + (metric.unit == "" and 0 < abs(value) < _SMALL)
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")  # + 0.0: never -0


def signed(metric: Metric, value: float) -> str:
    """Return a difference with its sign."""
    said = number(metric, value)
    return said if said.startswith("−") or not said.strip("0.") else f"+{said}"


def with_unit(metric: Metric, value: float) -> str:
    """Return a figure with its unit."""
    return number(metric, value) + (f"{_BLANK}{metric.unit}" if metric.unit else "")


def heading(metric: Metric) -> str:
    """Return the title of a metric with its unit."""
    return f"{metric.title} ({metric.unit})" if metric.unit else metric.title


def title_case(words: str) -> str:
    """Return words with a capital at their beginning, unless a name begins them: xSIM."""
    return words if words[1:2].isupper() else words[:1].upper() + words[1:]


def interval(metric: Metric, score: Score) -> str:
    """Return '[0.101, 0.130]', '± 0.004' or the empty string."""
    if score.low is not None and score.high is not None and bounds(score):
        return f"[{number(metric, score.low)}, {number(metric, score.high)}]"
    found = score.sd is not None and isfinite(score.sd)
    return f"± {number(metric, score.sd or 0)}" if found else ""


def figure(metric: Metric, score: Score) -> str:
    """Return a figure with its unit and its interval."""
    return f"{with_unit(metric, score.value)} {interval(metric, score)}".strip()


def p_value(p: float) -> str:
    """Return 'p < 0.001', 'p = 0.034', with blanks that do not break."""
    said = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return said.replace(" ", _BLANK)


def items(one: Comparison) -> str:
    """Return '14 repaired, 10 broken', or the empty string where items are not counted."""
    if one.repaired is None or one.broken is None:
        return ""
    return f"{one.repaired:,} repaired, {one.broken:,} broken"


def change(metric: Metric, before: float, after: float) -> str:
    """Return '0.302 to 0.121, 2.5 times lower'; the factor only of errors, where it is one."""
    said = f"{number(metric, before)} to {with_unit(metric, after)}"
    if metric.better != "low" or min(before, after) <= 0:
        return said
    factor, way = (before / after, "lower") if after < before else (after / before, "higher")
    return f"{said}, {factor:.1f} times {way}" if factor >= 1.15 else said


def several(count: int, one: str, many: str) -> str:
    """Return '1 set', '2,000 sets'."""
    return f"{count:,} {one if count == 1 else many}"


def listed(names: list[str], most: int = 3) -> str:
    """Return 'a, b and c'; 'a, b, c and 4 more' where there are many."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
