"""Write the report of an evaluation: one self-contained HTML page.

templates/evaluation.toml has the texts of its sections. templates/evaluation.html has the layout of
the parts that only this report has.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import hypot, isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml
from markupsafe import Markup

from noisegen.evaluation.findings import (
    ALPHA,
    STYLES,
    UNHARMED,
    Findings,
    floor_words,
    is_one_error,
    listed,
    p_value,
    verdict,
)
from noisegen.evaluation.metrics import METRICS, Metric, counted
from noisegen.evaluation.results import Dataset, Model, Projection, Results, Score, StrengthCurve
from noisegen.report import charts, pages
from noisegen.report.blocks import (
    MISSING,
    Block,
    Cell,
    Custom,
    Example,
    Facts,
    Figure,
    Folded,
    Row,
    Section,
    Table,
    Text,
    cut,
    differences,
    figure,
)
from noisegen.report.charts import Curve, Dot, DotRow, Spot, curves, dots, fitting
from noisegen.runs.atomic import write_text
from noisegen.version import __version__

_MACROS = Path(__file__).parent / "templates" / "evaluation.html"
_WORDS = tomllib.loads(_MACROS.with_suffix(".toml").read_text("utf-8"))
_TASKS = ("sts", "retrieval", "search", "classification", "pair_classification")
_BETTER = {"low": ("lower", "↓"), "high": ("higher", "↑"), "": ("-", "")}
_STATES = {"better": "better", "same": "no difference shown", "worse": "worse"}
_ARROWS_MAX = 150  # arrows on the map of a model; more arrows would hide one another
_LEARNING = (  # titles of the learning curves, in the order of the report
    "training loss",
    "validation loss",
    "validation distances",
    "validation xSIM error (%)",
    "learning rate",
)
_EXPLAINED_MIN = 0.3  # least share of the variance that the two axes of a map explain
_POINTS_MAX = 160  # points of a learning curve; longer curves are averaged


def write(results: Results, path: str | Path) -> None:
    """Write the report as an HTML file, atomically; raises OutputError."""
    write_text(Path(path), page(results))


def page(results: Results) -> str:
    """Return the report as HTML.

    Texts of the test sets are escaped and shortened, and their control characters removed.
    """
    findings = Findings(results)
    students = [model.name for model in findings.students]
    models = f"{listed(students)} against " if students else ""
    natural, noises = findings.datasets("pairs"), findings.datasets("noise")
    blocks: dict[str, Sequence[Block]] = {
        "noise": _changes(findings, noises),
        "natural": [*_changes(findings, natural), *_comparisons(findings, natural)],
        "map": _heat_maps(findings, noises),
        "drift": _robustness(findings, [*noises, *natural]),
        "strength": list(_strengths(findings)),
        "space": list(_projections(findings)),
        "learning": _learning(results.training or {}),
        "tasks": _comparisons(findings, findings.datasets(*_TASKS)),
        "examples": list(_examples(findings)),
        "figures": _all_figures(findings),
        "again": _reproduction(findings),
    }
    model = {"model": findings.model_word}
    damaged = results.settings.get("damaged", [])
    return pages.page(
        findings.headline,
        [
            Section(name, _WORDS[name]["title"].format(**model), found, _lead(name, findings))
            for name, found in blocks.items()
        ],
        kicker=f"noisegen: {models}{results.baseline.name} under noise",
        head=[*_short(findings), *(Text(line, "warning") for line in damaged)],
        macros=_MACROS,
        script=True,
    )


def _lead(name: str, findings: Findings) -> str:
    words: str = _WORDS[name].get("lead", "")
    return words.format(model=findings.model_word)


def _capital(words: str) -> str:
    """Capitalise the first letter of a phrase, unless a name such as xSIM begins it."""
    return words if words[1:2].isupper() else words[:1].upper() + words[1:]


def _facts(findings: Findings) -> dict[str, list[str]]:
    """Return the facts at the end of the report, {title: lines}; unknown facts are left out."""
    results, settings = findings.results, findings.results.settings
    total = sum(dataset.rows for dataset in results.datasets)
    rows = counted(total, "sentence or pair", "sentences or pairs")
    versions = settings.get("versions")
    known = versions.items() if isinstance(versions, Mapping) else ()
    facts = {
        "evaluated on": [f"{findings.sets_in_words}; {rows}"],
        "noise seeds": [_seeds(results.datasets)],
        "noise recipe": [str(settings.get("recipe") or "")],
        "trained": [_trained(results.training or {})],
        "evaluated in": [_minutes(settings)],
        "notes": settings.get("notes", []),
        "with": [", ".join(f"{name} {version}" for name, version in known)],
    }
    return {name: lines for name, lines in facts.items() if any(lines)}


def _seeds(datasets: Sequence[Dataset]) -> str:
    """Return the noise seeds of all sets in words: '100 to 109', or a list of seeds."""
    seeds = sorted({seed for dataset in datasets for seed in dataset.seeds})
    if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{seeds[0]} to {seeds[-1]}"
    return listed([str(seed) for seed in seeds], most=12)


def _trained(training: Mapping[str, Any]) -> str:
    """Describe a training run in words: settings, number of steps and of pairs, duration."""
    config = training.get("config") or {}
    last: dict[str, Any] = {}
    for row in training.get("log") or []:
        last.update(row)
    keys = ("preset", "teacher", "student", "objective", "recipe", "noise", "seed")
    facts = [f"{key} {config[key]}" for key in keys if config.get(key) not in (None, "")]
    for key, unit in (("step", "step"), ("pairs", "pair")):
        if isinstance(last.get(key), int):
            facts.append(counted(last[key], unit, f"{unit}s"))
    return ", ".join(filter(None, [*facts, _minutes(last)]))


def _minutes(known: Mapping[str, Any]) -> str:
    """Return known["seconds"] in words, such as '42 seconds' or '3.5 minutes'; '' if it is missing.

    `known` are settings, or a row of a training log.
    """
    seconds = known.get("seconds")
    if not isinstance(seconds, int | float) or seconds <= 0:
        return ""
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:,.1f} minutes"


def _short(findings: Findings) -> list[Block]:
    """Return the summary: a card of verdicts for each model, and a note on terms and tests."""
    words = _WORDS["short"]
    tested = {test.model for test in findings.results.comparisons}
    cards, named = [], set[str]()
    for model in findings.students:
        name = model.name
        states = {state: findings.by_metric(name, state) for state in _STATES if name in tested}
        named |= {one.title for found in states.values() for one in found}
        cards.append(
            {
                "name": name,
                "style": findings.style(name),
                "extremes": findings.extremes(name),
                "sentences": states,
                "drift": findings.drift(name),
            }
        )
    if not cards:
        return [Text(words["alone"])]
    terms = findings.terms(metric for metric in METRICS.values() if metric.title in named)
    note = words["note"].format(
        baseline=findings.results.baseline.name, alpha=ALPHA, unharmed=UNHARMED
    )
    return [
        Custom("verdicts", cards),
        *([Text(f"{_capital(terms)}.", "quiet")] if terms else []),
        Folded("How the verdict is made", [Text(note, "quiet")]),
    ]


def _changes(findings: Findings, datasets: Sequence[Dataset]) -> list[Block]:
    """Return the charts of changes from the baseline: one per charted metric.

    Each chart has a panel per model. Without models besides the baseline there is no chart.
    """
    if not findings.students:
        return []
    blocks: list[Block] = []
    for metric in findings.charted(datasets):
        if nothing := findings.nearly_nothing(metric, datasets):
            blocks.append(Text(_capital(nothing)))
        elif drawn := _change_figure(findings, metric, datasets):
            blocks.append(drawn)
    return blocks


def _change_figure(
    findings: Findings, metric: Metric, datasets: Sequence[Dataset]
) -> Figure | None:
    """Return the chart of one metric's changes from the baseline; None if no set has values."""
    panels = {
        model.name: _change_rows(findings, metric, model, datasets) for model in findings.students
    }
    values = [dot.value for rows in panels.values() for row in rows for dot in row.dots]
    if not values:
        return None
    scale, way = fitting(values, 196, 368), f"{findings.results.baseline.name} to"
    drawn = [
        dots(rows, f"{metric.title} from {way} {name}", scale, heading=name)
        for name, rows in panels.items()
        if rows
    ]
    caption = _WORDS["noise"]["caption"].format(
        meaning=_capital(metric.meaning),
        scale="logarithmic" if scale.is_log else "linear",
        better=_BETTER[metric.better][0],
    )
    return Figure(drawn, caption, _capital(metric.heading), _change_key(findings))


def _change_key(findings: Findings) -> list[tuple[Markup, str]]:
    """Return the legend of the charts of changes: a symbol per model, a line style per verdict."""
    key = [charts.sample(findings.style(model.name), model.name) for model in findings.models]
    return key + [charts.link_sample(state, words) for state, words in _STATES.items()]


def _change_rows(
    findings: Findings, metric: Metric, model: Model, datasets: Sequence[Dataset]
) -> list[DotRow]:
    """Return a chart row per set: the values of baseline and model, highest baseline first."""
    rows, names = [], (findings.results.baseline.name, model.name)
    for dataset in datasets:
        before, after = (findings.score(name, dataset.name, metric.name) for name in names)
        if before is None or after is None:
            continue
        test = findings.compared.get((model.name, dataset.name, metric.name))
        tip = f"{dataset.name}: {metric.with_interval(before)} to {metric.with_interval(after)}"
        tip += f", {p_value(test.p_shown)}, {test.test}" if test else ""
        tip = ", ".join(filter(None, [tip, floor_words(test)]))
        both = [
            Dot(score.value, findings.style(name), score.bounds)
            for name, score in zip(names, (before, after), strict=True)
        ]
        figures = f"{metric.number(before.value)} → {metric.number(after.value)}"
        rows.append(DotRow(both, dataset.name, figures, verdict(test) if test else "", tip))
    return sorted(rows, key=lambda row: -row.dots[0].value)


def _heads(findings: Findings, *first: str) -> list[Cell | str]:
    """Return the column heads of a table: the texts in `first`, then the name of each model."""
    names = [model.name for model in findings.models]
    return [*first, *(Cell(name, kind=f"m{findings.style(name)} named") for name in names)]


def _comparisons(findings: Findings, datasets: Sequence[Dataset]) -> list[Block]:
    """Return a table per set: a row per metric, a column per model. A note on the tests follows."""
    blocks: list[Block] = []
    for dataset in datasets:
        rows = [_compared(findings, dataset, metric) for metric in findings.metrics([dataset])]
        if not rows:
            continue
        changed = "" if dataset.changed is None else f", {dataset.changed:,} of them changed"
        note = "; ".join(filter(None, [dataset.note, findings.gold(dataset)]))
        about = f"{_kind(dataset)}, {dataset.rows:,} rows{changed}. {note}".strip()
        heads = _heads(findings, "figure")
        blocks.append(Table(dataset.name, heads, rows, "compared", about, "compared"))
    if not blocks:
        return []
    terms = findings.terms(findings.metrics(datasets))
    note = _WORDS["tasks"]["note"].format(alpha=ALPHA, model=findings.model_word)
    said = [Text(f"{_capital(terms)}.", "quiet")] if terms else []
    return [*blocks, *said, Folded("How to read the tables", [Text(note, "quiet")])]


def _compared(findings: Findings, dataset: Dataset, metric: Metric) -> Row:
    """Return a metric's row in the table of a set: its heading, and each model's value and test."""
    way, arrow = _BETTER[metric.better]
    cells = [Cell(f"{metric.heading} {arrow}".strip(), title=f"{way} is better" if arrow else "")]
    for model in findings.models:
        score = findings.score(model.name, dataset.name, metric.name)
        cell = _figure(metric, score)
        if score:
            test = findings.compared.get((model.name, dataset.name, metric.name))
            state = verdict(test) if test else ""
            cell = replace(cell, detail=(metric, score, test, state, p_value))
        cells.append(cell)
    return cells


def _kind(dataset: Dataset) -> str:
    return dataset.kind.replace("_", " ")


def _figure(metric: Metric, score: Score | None, shade: float | None = None) -> Cell:
    """Return a table cell with a value; the interval is its tooltip.

    `shade` is the intensity of the background colour, from 0 to 1.
    """
    if score is None:
        return MISSING
    return Cell(metric.number(score.value), score.value, metric.with_interval(score), shade=shade)


def _heat_maps(findings: Findings, datasets: Sequence[Dataset]) -> list[Block]:
    """Return a heat map per metric that has a chart: a row per set, a column per model."""
    tables = []
    for metric in findings.metrics(datasets):
        is_told = findings.students and findings.nearly_nothing(metric, datasets)  # in _changes
        if metric.chart and not is_told:
            heads = [*_heads(findings, "noise"), *["floor"] * findings.has_floor]
            rows = _heat_rows(findings, metric, datasets)
            tables.append(Table(_capital(metric.heading), heads, rows, "heat sortable"))
    if not tables:
        return []
    return [Custom("beside", tables), Text(f"{_capital(findings.floor_note)}.", "quiet")]


def _heat_rows(findings: Findings, metric: Metric, datasets: Sequence[Dataset]) -> list[Row]:
    """Return the rows of a heat map: the name of a set, a shaded value per model, the floor.

    Sets without a value are left out; with one noise seed there is no floor.
    """
    by_set = {dataset.name: findings.scores(dataset.name, metric.name) for dataset in datasets}
    scale = fitting([score.value for row in by_set.values() for score in row if score], 0, 100)
    rows: list[Row] = []
    for name, scores in by_set.items():
        shades = [scale.at(score.value) / 100 if score else None for score in scores]
        if any(scores):
            cells = [_figure(metric, *both) for both in zip(scores, shades, strict=True)]
            if findings.has_floor:
                floor = findings.floor(name, metric.name)
                cells.append(_figure(metric, None if floor is None else Score(floor)))
            rows.append([name, *cells])
    return rows


def _all_figures(findings: Findings) -> list[Block]:
    """Return a table that defines each metric, and a folded table of all values."""
    rows: list[Row] = []
    for dataset in findings.results.datasets:
        for metric in findings.metrics([dataset]):
            scores = findings.scores(dataset.name, metric.name)
            figures = [_figure(metric, score) for score in scores]
            heading = Cell(metric.heading, title=metric.name)
            rows.append([dataset.name, _kind(dataset), heading, *figures])
    if not rows:
        return []
    meanings = [
        [metric.heading, _BETTER[metric.better][0], metric.meaning, metric.name]
        for metric in findings.metrics(findings.results.datasets)
    ]
    titles = ["figure", "better", "definition", "name in metrics.json"]
    heads = _heads(findings, "set", "kind", "metric")
    everything = Table("All figures", heads, rows, "sortable copied filtered")
    return [
        Table("What the figures mean", titles, meanings, "definitions stacked"),
        Folded(f"All {len(rows):,} rows of figures", [everything]),
    ]


def _captioned(panels: Sequence[Markup | None], caption: str, title: str = "") -> list[Figure]:
    """Combine the panels that are not None into one figure; return [] if all are None."""
    drawn = list(filter(None, panels))
    return [Figure(drawn, caption, title)] if drawn else []


def _robustness(findings: Findings, datasets: Sequence[Dataset]) -> list[Figure]:
    """Return a scatter chart per charted metric: the metric against the clean drift.

    Each point is a model on a set. A collapsed model, which gives all texts nearly the same vector,
    has low distances but a large drift.
    """
    drawn = []
    for metric in findings.charted(datasets):
        if findings.nearly_nothing(metric, datasets):
            continue
        spots: list[Spot] = []
        means: list[Spot] = []
        for model in findings.models:
            own = _drift_spots(findings, metric, model, datasets)
            if own:
                x, y = fmean(spot.x for spot in own), fmean(spot.y for spot in own)
                tip = f"{model.name}: mean drift {x:.3f}, mean {metric.title} {metric.with_unit(y)}"
                means.append(Spot(x, y, findings.style(model.name), tip, model.name))
            spots += own
        if any(spot.x for spot in spots):
            panel = charts.scatter(
                spots,
                title=_capital(metric.heading),
                x_title="clean drift",
                strong=means,
                description="; ".join(mean.tip for mean in means),
            )
            drawn.append(panel)
    return _captioned(drawn, _WORDS["drift"]["caption"])


def _drift_spots(
    findings: Findings, metric: Metric, model: Model, datasets: Sequence[Dataset]
) -> list[Spot]:
    """Return a point per set: x is the model's clean drift, y is its value in the metric.

    The baseline has a drift of 0.
    """
    no_drift = Score(0.0) if model is findings.results.baseline else None
    spots = []
    for dataset in datasets:
        score = findings.score(model.name, dataset.name, metric.name)
        drift = findings.score(model.name, dataset.name, "drift") or no_drift
        if drift is not None and score is not None:
            tip = f"{model.name} on {dataset.name}: drift {drift.value:.3f}, "
            tip += f"{metric.title} {metric.with_interval(score)}"
            spots.append(Spot(drift.value, score.value, findings.style(model.name), tip))
    return spots


def _strengths(findings: Findings) -> Iterator[Figure]:
    """Yield a figure for each set that has noise of several strengths.

    The figure shows distance and xSIM error against the strength, for queries nDCG@10.
    """
    order = [model.name for model in findings.models]
    for dataset in dict.fromkeys(curve.dataset for curve in findings.results.doses):
        chosen = [curve for curve in findings.results.doses if curve.dataset == dataset]
        chosen.sort(key=lambda curve: order.index(curve.model) if curve.model in order else 99)
        rows = next((one.rows for one in findings.results.datasets if one.name == dataset), 0)
        caption: str = _WORDS["strength"]["caption"]
        if any(curve.ndcg_noisy for curve in chosen):
            yield from _captioned(
                [_strength_panel(findings, chosen, "ndcg_noisy")], caption, dataset
            )
            continue
        panels = [_strength_panel(findings, chosen, "distance")]
        if all(is_one_error(error, rows) for curve in chosen for error in curve.xsim_error):
            caption += f" xSIM error: at most one error in {rows:,} sentences at every strength."
        else:
            panels.append(_strength_panel(findings, chosen, "xsim_error"))
        yield from _captioned(panels, caption, dataset)


def _strength_panel(
    findings: Findings, chosen: Sequence[StrengthCurve], metric: str
) -> Markup | None:
    """Return a chart of a metric against the strength of the noise, with a curve per model."""
    strengths = sorted({strength for curve in chosen for strength in curve.strengths})
    drawn = []
    for curve in chosen:
        points = list(zip(curve.strengths, getattr(curve, metric), strict=False))
        drawn.append(Curve(curve.model, findings.style(curve.model), points, dots=True))
    return curves(
        drawn,
        title=_capital(METRICS[metric].heading),
        x_title="strength of the noise",
        x_ticks=strengths if len(strengths) <= 7 else None,
        linear=True,
    )


def _projections(findings: Findings) -> Iterator[Figure | Text]:
    """Yield a map per set, with a panel per model, or a text if a map would explain too little.

    An arrow leads from each noisy sentence to its clean form.
    """
    poor = {
        projection.dataset: sum(projection.explained)
        for projection in findings.results.projections
        if sum(projection.explained) < _EXPLAINED_MIN
    }
    if poor:
        sets, most = listed(list(poor)), max(poor.values())
        yield Text(_WORDS["space"]["poor"].format(sets=sets, most=most))
    for projection in findings.results.projections:
        if projection.dataset in poor:
            continue
        shown = {name: points[:_ARROWS_MAX] for name, points in projection.points.items()}
        frame = [point for arrows in shown.values() for point in _ends(arrows)]
        if not frame or not all(isfinite(x + y) for x, y in frame):
            continue
        tips = [f"{cut(noisy, 90)} → {cut(clean, 90)}" for clean, noisy in projection.texts]
        panels = []
        for model in findings.models:
            if shown.get(model.name):
                style = findings.style(model.name)
                panels.append(_arrows(model.name, style, shown[model.name], tips, frame))
        yield Figure(panels, _space_caption(findings, projection), projection.dataset)


def _ends(arrows: Sequence[tuple[float, float, float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the points at both ends of arrows, which are (clean x, clean y, noisy x, noisy y)."""
    for clean_x, clean_y, noisy_x, noisy_y in arrows:
        yield clean_x, clean_y
        yield noisy_x, noisy_y


def _arrows(
    model: str,
    style: int,
    points: Sequence[tuple[float, float, float, float]],
    tips: Sequence[str],
    frame: Sequence[tuple[float, float]],
) -> Markup:
    """Return a model's panel of a map, with an arrow per pair, from noisy to clean sentence.

    `points` has (clean x, clean y, noisy x, noisy y) for each pair, `tips` the tooltip of its
    arrow. `frame` has the points of all models, so that all panels have the same scale.
    """
    mean = fmean(hypot(a - c, b - d) for a, b, c, d in points)
    spots = [
        Spot(a, b, style, tip, origin=(c, d))
        for (a, b, c, d), tip in zip(points, tips, strict=False)
    ]
    note = f"mean arrow {mean:.3f}"
    return charts.plane(spots, title=model, style=style, frame=frame, note=note)


def _space_caption(findings: Findings, projection: Projection) -> str:
    """Return the caption of a map; if pairs are left out, it says how many are drawn."""
    shares = [100 * share for share in projection.explained]
    baseline = findings.results.baseline.name
    caption: str = _WORDS["space"]["caption"].format(projection, baseline, *shares)
    if (count := len(projection.texts)) > _ARROWS_MAX:
        caption += f" {_ARROWS_MAX} of {count:,} pairs drawn."
    return caption


def _learning(training: Mapping[str, Any]) -> list[Figure]:
    """Return the learning curves of a training log: losses, distances, errors, learning rate."""
    log = training.get("log") or []
    columns = list(dict.fromkeys(key for row in log for key in row))
    panels: list[Markup | None] = []
    caption: str = _WORDS["learning"]["caption"]
    for title in _LEARNING:
        keys = [column for column in columns if _learning_chart(column) == title]
        drawn = []
        for number, key in enumerate(islice(keys, STYLES), 1):
            part = key.removeprefix("validation").strip("_").removeprefix("loss_")
            name = {"lr": "rate", "": title, "xsim_error": "error"}.get(part, part)
            drawn.append(Curve(name, number % STYLES, _thinned(log, key)))
        linear = not title.endswith("loss")
        if drawn and not any(y for curve in drawn for _, y in curve.points):
            caption += f" {_capital(title)}: 0 at every step."
            continue
        panels.append(curves(drawn, title=_capital(title), x_title="step", linear=linear))
    return _captioned(panels, caption)


def _learning_chart(column: str) -> str:
    """Return the title of the chart for a column of a training log; '' if no chart shows it."""
    if column == "lr":
        return "learning rate"
    if column == "loss" or column.startswith("loss_"):
        return "training loss"
    if not column.startswith("validation"):
        return ""
    if "loss" in column:
        return "validation loss"
    is_error = column.endswith("xsim_error")
    return "validation xSIM error (%)" if is_error else "validation distances"


def _thinned(log: Sequence[Mapping[str, Any]], key: str) -> list[tuple[float, float]]:
    """Return a column of a training log as points (step, value).

    If there are more than `_POINTS_MAX` rows, neighbouring rows are averaged.
    """
    points: list[tuple[float, float]] = []
    for row in log:
        x, y = row.get("step"), row.get(key)
        if isinstance(x, int | float) and isinstance(y, int | float) and isfinite(x + y):
            points.append((float(x), float(y)))
    size = -(-len(points) // _POINTS_MAX) or 1
    parts = [points[start : start + size] for start in range(0, len(points), size)]
    return [(part[-1][0], fmean(y for _, y in part)) for part in parts]


def _examples(findings: Findings) -> Iterator[Custom]:
    """Yield the cards of repaired and of broken pairs, each with its distance under every model."""
    shown = findings.results.examples
    most = max((value for example in shown for value in example.distances.values()), default=1)
    scale = fitting([0.0, most], 138, 232, linear=True)
    cards: dict[str, list[Example]] = {"repaired": [], "broken": []}
    for example in shown:
        clean, noisy = differences(example.clean, example.noisy)
        rows = [
            DotRow([Dot(distance, findings.style(model.name))], model.name, f"{distance:.3f}")
            for model in findings.models
            if (distance := example.distances.get(model.name)) is not None
        ]
        drawn = dots(rows, "Cosine distance", scale)
        versions = {"noisy": noisy, "clean": clean}
        cards[example.kind].append(Example(versions, example.dataset, drawn))
    for kind, chosen in cards.items():
        if chosen:
            yield Custom("examples", {"kind": kind, "cards": chosen, "model": findings.model_word})


def _reproduction(findings: Findings) -> list[Block]:
    """Return the blocks for repeating the evaluation: facts, models, settings, citation."""
    results, baseline = findings.results, findings.results.baseline
    rows: list[Row] = [
        [
            Cell(model.name, kind=f"m{findings.style(model.name)} named"),
            model.spec,
            figure(model.width),
            figure(model.parameters),
            model.digest,
        ]
        for model in findings.models
    ]
    heads = ["model", "SPEC", "dimensions", "parameters", "digest"]
    models = Table("Models, the baseline first", heads, rows, "definitions stacked")
    blocks: list[Block] = [Facts(_facts(findings)), models]
    config = (results.training or {}).get("config")
    for name, settings in (("evaluation", results.settings), ("training", config)):
        if settings:
            plain = json.loads(json.dumps(settings, default=str))
            written = yaml.safe_dump(plain, allow_unicode=True, sort_keys=False)
            blocks.append(Folded(f"Settings of the {name}", [Custom("code", written)]))
    versions = results.settings.get("versions")
    version = versions.get("noisegen", __version__) if isinstance(versions, dict) else __version__
    cited = ", ".join(model.name for model in findings.students)
    cited += f" against {baseline.name} ({baseline.spec})" if cited else baseline.name
    sets = findings.sets_in_words
    cite = _WORDS["again"]["cite"].format(version=version, models=cited, sets=sets)
    return [*blocks, Text(cite)]
