"""The figure of docs/proof.md: what noise teaches, against how far it moves clean text.

`benchmarks.which_noise` writes it as a page from its own values. `python tools/screenshots.py
which-noise=DIR/which_noise.html` draws the page in light and in dark.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from benchmarks.development import ANCHORED, SETS, Values
from noisegen.report.blocks import Figure, Section
from noisegen.report.charts import Spot, sample, scatter
from noisegen.report.pages import page

# The number of a kind is its style
NO_NOISE, NOISEGEN, OTHERS, REAL = KINDS = ("no noise", "noisegen", "others", "real pairs")
CAPTION = (
    "Upwards: how much smaller the anchored distance of noisy text is than with no noise (%). To "
    "the right: drift of clean text. Upper left is best. A large point is the mean over seeds of "
    "training, a small point one seed."
)


def arms_page(
    values: Mapping[str, Sequence[Values]], kinds: Mapping[str, str], control: str
) -> str:
    """Return a page with a chart per set: gain against drift, a point per arm.

    `values` has the values of each arm per seed, `kinds` the arm's kind, one of `KINDS`, whose
    place is its style. The gain is against the arm `control` of the same seed.
    """
    charts = []
    for dataset in SETS:
        seeds, means = list[Spot](), list[Spot]()
        for name, of_arm in values.items():
            style = KINDS.index(kinds[name])
            own = [
                Spot(_mean(one, dataset, "drift"), _gain(one, other, dataset), style)
                for one, other in zip(of_arm, values[control], strict=True)
            ]
            x, y = fmean(spot.x for spot in own), fmean(spot.y for spot in own)
            tip = f"{name}: {y:.0f} % nearer, drift {x:.4f}"
            means.append(Spot(x, y, style, tip, name.replace(", four kinds", "")))
            seeds += own
        described = "; ".join(spot.tip for spot in means)
        title = f"{dataset}: nearer by, %"
        drawn = {"title": title, "x_title": "drift", "description": described}
        charts.append(scatter(seeds, strong=means, linear=True, **drawn))
    key = [sample(KINDS.index(kind), kind) for kind in KINDS if kind in kinds.values()]
    figure = Figure(charts, CAPTION, key=key)
    return page("Which noise teaches?", [Section("arms", "Gain and drift", [figure])])


def _mean(values: Values, dataset: str, metric: str) -> float:
    return float(values[f"{dataset}/{metric}"].mean())


def _gain(values: Values, control: Values, dataset: str) -> float:
    """Return by how much an anchored distance is smaller than the control arm's, in per cent."""
    distance, without = (_mean(one, dataset, ANCHORED) for one in (values, control))
    return 100 * (1 - distance / without)
