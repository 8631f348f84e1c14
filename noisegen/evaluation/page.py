"""The report of an evaluation: one HTML page that needs nothing beside it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import hypot, isfinite
from pathlib import Path
from typing import Any

import yaml

from noisegen.evaluation.findings import (
    ALPHA,
    STYLES,
    Findings,
    bounds,
    clauses,
    counted,
    interval,
    items,
    listed,
    p_value,
    sets_in_words,
    verdict,
    with_interval,
)
from noisegen.evaluation.metrics import METRICS, Metric
from noisegen.evaluation.results import Dataset, Model, Projection, Results, Score, ShownPair
from noisegen.report import charts, pages
from noisegen.report.charts import Curve, Dot, DotRow, Spot, chart, curves, dots, fitting, line
from noisegen.report.pages import (
    MISSING,
    Block,
    Cell,
    Custom,
    Figure,
    Folded,
    Row,
    Section,
    Table,
    Text,
)
from noisegen.runs.files import write_text
from noisegen.text.alignment import edits
from noisegen.version import __version__

_MACROS = Path(__file__).parent / "templates" / "evaluation.html"
_TASKS = ("sts", "retrieval", "classification", "pair_classification")
_ARROWS = {"low": "↓", "high": "↑"}
_STATES = {"better": "Better", "same": "No difference shown", "worse": "Worse"}
_PAPERS = (
    "Nishimwe, Sagot and Bawden, “Making Sentence Embeddings Robust to User-Generated Content”, "
    "LREC-COLING 2024 (distance and xSIM under noise); Artetxe and Schwenk, “Margin-based Parallel "
    "Corpus Mining with Multilingual Sentence Embeddings”, ACL 2019 (the ratio margin of xSIM)"
)


def write(results: Results, path: str | Path) -> None:
    """Write the report at once; raises OutputError if the file cannot be written."""
    write_text(Path(path), page(results))


def page(results: Results) -> str:
    """Return the report as HTML; text of the results is escaped, cut and free of controls."""
    findings = Findings(results)
    baseline = results.baseline.name
    students = [model.name for model in findings.students]
    title = f"{listed(students)} against {baseline}" if students else baseline
    title += " under noise"
    natural, noises = findings.datasets("pairs"), findings.datasets("noise")
    sections = [
        Section("short", "In short", _short(findings)),
        Section("noise", "Noise by noise", _changes(findings, noises),
                "Each line is one kind of noise, put on clean text."),
        Section("natural", "Natural noise",
                [*_changes(findings, natural), *_comparisons(findings, natural)],
                "Sentences as people wrote them, and their clean form."),
        Section("map", "All models, all noise", _heat_maps(findings),
                "The fuller the colour, the larger the error."),
        Section("drift", "Robust, or only indifferent?", _robustness(findings)),
        Section("strength", "More noise, more error", list(_strengths(findings))),
        Section("space", "Where noisy sentences land", list(_projections(findings))),
        Section("learning", "How the student learned", _learning(findings)),
        Section("tasks", "Similarity, retrieval, classification",
                _comparisons(findings, findings.datasets(*_TASKS))),
        Section("examples", "Sentences repaired, sentences still broken",
                list(_examples(findings)),
                "What differs is marked. Lines show the cosine distance between the two sides."),
        Section("figures", "All figures", _all_figures(findings)),
        Section("again", "To make it again, to cite it", _reproduction(findings)),
    ]  # fmt: skip
    head = [
        Custom("models", [_card(findings, model) for model in findings.models]),
        Custom("facts", list(_facts(findings))),
    ]
    kicker = "noisegen: encoders under noise"
    return pages.page(title, sections, kicker=kicker, head=head, macros=_MACROS, script=True)


def _capital(words: str) -> str:
    """Return words with a capital at their beginning, unless a name begins them: xSIM."""
    return words if words[1:2].isupper() else words[:1].upper() + words[1:]


# The head.


def _card(findings: Findings, model: Model) -> dict[str, Any]:
    style, count = findings.style(model.name), model.parameters
    millions = "" if count is None else f"{count / 1e6:.1f} M" if count >= 1e5 else f"{count:,}"
    size = f", {millions} parameters" if millions else ""
    return {
        "style": style,
        "name": model.name,
        "mark": charts.sample(style, model.name)[0],
        "role": "baseline" if model is findings.results.baseline else "model",
        "spec": model.spec,
        "size": f"{model.width:,} wide{size}",
    }


def _facts(findings: Findings) -> Iterator[tuple[str, list[str]]]:
    """Yield what is known of the evaluation: a name, and lines."""
    results, settings = findings.results, findings.results.settings
    rows = counted(
        sum(dataset.rows for dataset in results.datasets), "sentence or pair", "sentences or pairs"
    )
    yield "evaluated on", [f"{sets_in_words(results)}; {rows}"]
    if seeds := sorted({seed for dataset in results.datasets for seed in dataset.seeds}):
        is_range = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
        span = f"{seeds[0]} to {seeds[-1]}" if is_range else listed([*map(str, seeds)], most=12)
        yield "seeds of the noise", [span]
    if recipe := settings.get("recipe"):
        yield "noise recipe", [str(recipe)]
    if trained := _trained(results.training or {}):
        yield "trained", [trained]
    if minutes := _minutes(settings):
        yield "evaluated in", [minutes]
    for name in ("notes", "damaged"):
        if settings.get(name):
            yield name, settings[name]
    versions = settings.get("versions")
    if isinstance(versions, Mapping) and versions:
        yield "with", [", ".join(f"{name} {version}" for name, version in versions.items())]


def _trained(training: Mapping[str, Any]) -> str:
    """Return how the student was made."""
    config = training.get("config") or {}
    last = {key: value for row in training.get("log") or [] for key, value in row.items()}
    keys = ("preset", "teacher", "student", "objective", "noise", "seed")
    words = [f"{key} {config[key]}" for key in keys if config.get(key) not in (None, "")]
    counts = (("step", "steps"), ("sentences", "sentences"), ("tokens", "tokens"))
    words += [f"{last[key]:,} {name}" for key, name in counts if isinstance(last.get(key), int)]
    minutes = _minutes(training) or _minutes(last)
    return ", ".join([*words, *([minutes] if minutes else [])])


def _minutes(known: Mapping[str, Any]) -> str:
    seconds = known.get("seconds")
    if not isinstance(seconds, int | float) or seconds <= 0:
        return ""
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:,.1f} minutes"


# In short.


def _short(findings: Findings) -> list[Block]:
    """Return the verdict on every model that is not the baseline."""
    if not findings.students:
        return [Text("One model was evaluated; there is nothing to compare it with.")]
    note = (
        f"Against {findings.results.baseline.name}. A difference counts as shown where "
        f"p < {ALPHA:g} after Holm’s correction over the sets of one kind. The first two sentences "
        "give the main figures, the third all that were tested."
    )
    return [Custom("verdicts", [_verdict(findings, model) for model in findings.students]),
            Text(note, "quiet")]  # fmt: skip


def _verdict(findings: Findings, model: Model) -> dict[str, Any]:
    tested = any(comparison.model == model.name for comparison in findings.results.comparisons)
    drifts = findings.values(model.name, findings.datasets("pairs", "noise"), "drift")
    drift = f"{sum(drifts) / len(drifts):.3f}" if drifts else ""
    sets = counted(len(drifts), "set", "sets")
    return {
        "name": model.name,
        "style": findings.style(model.name),
        "sentences": [
            (state, lead, clauses(findings, model.name, state)) for state, lead in _STATES.items()
        ] if tested else [],
        "drift": f"Clean text moved by {drift} (clean drift, mean of {sets})." if drift else "",
    }  # fmt: skip


# From the baseline to each model, set by set.


def _changes(findings: Findings, datasets: Sequence[Dataset]) -> list[Block]:
    """Return a figure for each metric that has a chart, with a panel for each model."""
    blocks: list[Block] = []
    baseline = findings.results.baseline.name
    for metric in findings.charted(datasets) if findings.students else ():
        panels = [
            (model, _change_rows(findings, metric, model, datasets)) for model in findings.students
        ]
        values = [dot.value for _, rows in panels for row in rows for dot in row.dots]
        scale = fitting(values, 196, 368)
        drawn = [
            dots(rows, f"{metric.title} from {baseline} to {model.name}", scale, heading=model.name)
            for model, rows in panels if rows
        ]  # fmt: skip
        if not drawn:
            continue
        better = "higher" if metric.better == "high" else "lower"
        scaled = "logarithmic" if scale.is_log else "linear"
        caption = (
            f"{_capital(metric.meaning)}; {scaled} scale, {better} is better. Broad bars: 95 % "
            "intervals over sentences, or one standard deviation over seeds."
        )
        key = [charts.sample(findings.style(model.name), model.name) for model in findings.models]
        key += [(_line_sample(state), words) for state, words in (
            ("better", "better"), ("same", "no difference shown"), ("worse", "worse"))]  # fmt: skip
        blocks.append(Figure(drawn, caption, _capital(metric.heading), key))
    return blocks


def _line_sample(state: str) -> Any:
    return chart(36, 20, state, "", line(f"link {state}", (2, 10), (34, 10)))


def _change_rows(
    findings: Findings, metric: Metric, model: Model, datasets: Sequence[Dataset]
) -> list[DotRow]:
    """Return a row for each set with the baseline's figure and the model's, the largest first."""
    rows = []
    for dataset in datasets:
        names = findings.results.baseline.name, model.name
        before, after = (findings.score(name, dataset.name, metric.name) for name in names)
        if before is None or after is None:
            continue
        test = findings.compared.get((model.name, dataset.name, metric.name))
        tip = f"{dataset.name}: {with_interval(metric, before)} to {with_interval(metric, after)}"
        tip += f", {p_value(test.p_holm)} after Holm" if test else ""
        rows.append(DotRow(
            [Dot(score.value, findings.style(name), bounds(score))
             for name, score in zip(names, (before, after), strict=True)],
            dataset.name,
            f"{metric.number(before.value)} → {metric.number(after.value)}",
            verdict(test) if test else "",
            tip,
        ))  # fmt: skip
    return sorted(rows, key=lambda row: -row.dots[0].value)


# Tables.


def _heads(findings: Findings, *first: str) -> list[Cell | str]:
    models = [
        Cell(model.name, kind=f"m{findings.style(model.name)} named") for model in findings.models
    ]
    return [*first, *models]


def _comparisons(findings: Findings, datasets: Sequence[Dataset]) -> list[Block]:
    """Return a table for each set: metrics by models, each figure with its interval and test."""
    blocks: list[Block] = []
    for dataset in datasets:
        rows = [
            [
                Cell(f"{metric.heading} {_ARROWS.get(metric.better, '')}".strip(),
                     title={"low": "lower is better", "high": "higher is better"}.get(
                         metric.better, "")),
                *(_compared(findings, dataset, metric, model.name) for model in findings.models),
            ]
            for metric in findings.metrics([dataset])
        ]  # fmt: skip
        if rows:
            changed = "" if dataset.changed is None else f", {dataset.changed:,} of them changed"
            about = (
                f"{dataset.kind.replace('_', ' ')}, {dataset.rows:,} rows{changed}. {dataset.note}"
            )
            heads = _heads(findings, "figure")
            blocks.append(Table(dataset.name, heads, rows, "compared", about.strip(), "compared"))
    note = (
        "In brackets: 95 % interval over sentences; ±: standard deviation over seeds. Second line: "
        f"difference from the baseline, its verdict (n.s.: not significant, p ≥ {ALPHA:g} after "
        "Holm) and p after Holm. Repaired and broken: items that only the model, or only the "
        "baseline, gets right."
    )
    return [*blocks, Text(note, "quiet")] if blocks else []


def _compared(findings: Findings, dataset: Dataset, metric: Metric, model: str) -> Cell:
    score = findings.score(model, dataset.name, metric.name)
    if score is None:
        return MISSING
    detail: dict[str, Any] = {"interval": interval(metric, score), "test": None}
    if test := findings.compared.get((model, dataset.name, metric.name)):
        detail["test"] = {
            "difference": metric.signed(test.difference),
            "state": verdict(test),
            "p": p_value(test.p_holm),
            "how": f"{test.test}, {p_value(test.p)} before Holm",
            "counts": items(test),
        }
    return Cell(metric.number(score.value), score.value, detail=detail)


def _heat_maps(findings: Findings) -> list[Block]:
    """Return a table for each metric that has a chart: models by kinds of noise."""
    datasets, tables = findings.datasets("noise"), []
    for metric in findings.metrics(datasets):
        if not metric.chart:
            continue
        models = [model.name for model in findings.models]
        values = [
            value for name in models for value in findings.values(name, datasets, metric.name)
        ]
        scale = fitting(values, 0, 100)
        rows: list[Row] = []
        for dataset in datasets:
            scores = [findings.score(name, dataset.name, metric.name) for name in models]
            cells = [
                _figure(metric, score, scale.at(score.value) / 100) if score else MISSING
                for score in scores
            ]
            rows += [[dataset.name, *cells]] if any(scores) else []
        heads = _heads(findings, "noise")
        tables.append(Table(_capital(metric.heading), heads, rows, "heat sortable"))
    return [Custom("beside", tables)] if tables else []


def _figure(metric: Metric, score: Score, shade: float | None = None) -> Cell:
    return Cell(metric.number(score.value), score.value, with_interval(metric, score), shade=shade)


def _all_figures(findings: Findings) -> list[Block]:
    """Return the definitions of the figures, and all of them in one table."""
    rows: list[Row] = []
    for dataset in findings.results.datasets:
        for metric in findings.metrics([dataset]):
            scores = [
                findings.score(model.name, dataset.name, metric.name) for model in findings.models
            ]
            figures = [_figure(metric, score) if score else MISSING for score in scores]
            name = Cell(metric.heading, title=metric.name)
            rows.append([dataset.name, dataset.kind.replace("_", " "), name, *figures])
    if not rows:
        return []
    ways = {"low": "lower", "high": "higher", "": "-"}
    meanings = [
        [metric.heading, ways[metric.better], metric.meaning, metric.name]
        for metric in findings.metrics(findings.results.datasets)
    ]
    heads = ["figure", "better", "what it is", "name in metrics.json"]
    everything = Table(
        "All figures", _heads(findings, "set", "kind", "metric"), rows, "sortable copied filtered"
    )
    return [
        Table("What the figures mean", heads, meanings, "definitions"),
        Folded(f"All {len(rows):,} rows of figures", [everything]),
    ]


# Charts over all models.


def _robustness(findings: Findings) -> list[Block]:
    """Return error over clean drift: a model that collapsed looks robust until drift is seen."""
    datasets = findings.datasets("noise", "pairs")
    panels = [_drift_panel(findings, metric, datasets) for metric in findings.charted(datasets)]
    caption = (
        "Across: how far vectors of clean text moved from the baseline’s; up: error on noisy text. "
        "Lower left is better. Large marks are means over the sets, small ones single sets. A "
        "model to which all sentences are alike has small distances too: its drift and its xSIM "
        "errors give it away."
    )
    drawn = [panel for panel in panels if panel]
    return [Figure(drawn, caption)] if drawn else []


def _drift_panel(findings: Findings, metric: Metric, datasets: Sequence[Dataset]) -> Any:
    spots, means = [], []
    for model in findings.models:
        own: list[Spot] = []
        style, is_baseline = findings.style(model.name), model is findings.results.baseline
        for dataset in datasets:
            drift, score = (
                findings.score(model.name, dataset.name, name) for name in ("drift", metric.name)
            )
            moved = drift.value if drift else 0.0 if is_baseline else None
            if moved is not None and score is not None:
                tip = f"{model.name} on {dataset.name}: drift {moved:.3f}, {metric.title} "
                tip += with_interval(metric, score)
                own.append(Spot(moved, score.value, style, tip))
        if own:
            x, y = (sum(values) / len(own) for values in zip(*((p.x, p.y) for p in own),
                                                             strict=True))  # fmt: skip
            tip = f"{model.name}: mean drift {x:.3f}, mean {metric.title} {metric.with_unit(y)}"
            means.append(Spot(x, y, style, tip, model.name))
        spots += own
    if not any(spot.x for spot in spots):
        return None
    return charts.scatter(
        spots, title=_capital(metric.heading), x_title="clean drift", strong=means,
        description="; ".join(mean.tip for mean in means),
    )  # fmt: skip


def _strengths(findings: Findings) -> Iterator[Figure]:
    """Yield distance and errors over the strength of the noise, a figure for each set."""
    caption = (
        "Strength is a factor on the rates of the recipe: 1 is the recipe as it stands, 0 clean "
        "text."
    )
    models = [model.name for model in findings.models]
    for dataset in dict.fromkeys(curve.dataset for curve in findings.results.doses):
        chosen = [curve for curve in findings.results.doses if curve.dataset == dataset]
        chosen.sort(key=lambda curve: models.index(curve.model) if curve.model in models else 99)
        strengths = sorted({strength for curve in chosen for strength in curve.strengths})
        panels = [
            curves(
                [Curve(curve.model, findings.style(curve.model),
                       list(zip(curve.strengths, getattr(curve, name), strict=False)), dots=True)
                 for curve in chosen],
                title=_capital(METRICS[name].heading), x_title="strength of the noise",
                x_ticks=strengths if len(strengths) <= 7 else None, linear=True,
            )
            for name in ("distance", "xsim_error")
        ]  # fmt: skip
        if drawn := list(filter(None, panels)):
            yield Figure(drawn, f"{dataset}. {caption}")


def _projections(findings: Findings) -> Iterator[Figure]:
    """Yield the baseline's space in two dimensions, with arrows from noisy to clean."""
    most = 150  # arrows of a panel; more would hide one another
    for projection in findings.results.projections:
        shown = {name: points[:most] for name, points in projection.points.items()}
        values = [value for points in shown.values() for four in points for value in four]
        if not values or not all(map(isfinite, values)):
            continue
        frame = [pair for points in shown.values() for a, b, c, d in points
                 for pair in ((a, b), (c, d))]  # fmt: skip
        panels = []
        for model in findings.models:
            if points := shown.get(model.name):
                style = findings.style(model.name)
                mean = sum(hypot(a - c, b - d) for a, b, c, d in points) / len(points)
                spots = [
                    Spot(a, b, style, f"{pages.cut(noisy, 90)} → {pages.cut(clean, 90)}",
                         origin=(c, d))
                    for (a, b, c, d), (clean, noisy) in zip(points, projection.texts, strict=False)
                ]  # fmt: skip
                panels.append(charts.plane(spots, title=model.name, style=style, frame=frame,
                                           note=f"mean arrow {mean:.3f}"))  # fmt: skip
        yield Figure(panels, _projection_caption(findings, projection, most))


def _projection_caption(findings: Findings, projection: Projection, most: int) -> str:
    first, second = (f"{100 * share:.0f} %" for share in projection.explained)
    count = len(projection.texts)
    drawn = f" {most} of {count:,} pairs drawn." if most < count else ""
    return (
        f"{projection.dataset}: arrows lead from the noisy sentence to its clean form (dot); the "
        "shorter, the better. First two principal components of "
        f"{findings.results.baseline.name}’s "
        f"vectors of clean text, which explain {first} and {second} of their variance; Spearman "
        f"correlation of distances before and after projection {projection.spearman:.2f}.{drawn}"
    )


def _learning(findings: Findings) -> list[Block]:
    """Return the learning curves of a student, from the rows of its log."""
    log = (findings.results.training or {}).get("log") or []
    names = list(dict.fromkeys(key for row in log for key in row))
    validation = [name for name in names if name.startswith("validation")]
    losses = [name for name in validation if "loss" in name]
    groups = (
        ("training loss", [n for n in names if n == "loss" or n.startswith("loss_")], False),
        ("validation loss", losses, False),
        ("validation distances", [name for name in validation if name not in losses], True),
        ("learning rate", [name for name in names if name == "lr"], True),
    )
    panels = []
    for title, keys, linear in groups:
        drawn = []
        for number, key in enumerate(islice(keys, STYLES)):
            part = key.removeprefix("validation").strip("_").removeprefix("loss_")
            name = {"lr": "rate", "": title}.get(part, part)
            drawn.append(Curve(name, (number + 1) % STYLES, _thinned(log, key)))
        panels.append(curves(drawn, title=_capital(title), x_title="step", linear=linear))
    caption = (
        "The loss and its parts, in training and on pairs kept out of it; missed: share of noisy "
        "sentences nearer to the baseline’s vector of another sentence. Of long runs, a point is "
        "the mean of neighbouring rows of the log."
    )
    shown = list(filter(None, panels))
    return [Figure(shown, caption)] if shown else []


def _thinned(log: Sequence[Mapping[str, Any]], key: str) -> list[tuple[float, float]]:
    """Return a column of a log over its steps, as means over neighbours where it is long."""
    pairs = [(row.get("step"), row.get(key)) for row in log]
    points = [
        (float(x), float(y)) for x, y in pairs
        if isinstance(x, int | float) and isinstance(y, int | float) and isfinite(x + y)
    ]  # fmt: skip
    size = -(-len(points) // 160) or 1
    parts = [points[start : start + size] for start in range(0, len(points), size)]
    return [(part[-1][0], sum(y for _, y in part) / len(part)) for part in parts]


# Examples.

_EXAMPLES = {
    "repaired": ("Most repaired", "Where a model brought the two sides closest to each other."),
    "broken": ("Still broken", "Where the two sides are still far apart."),
}
_ALIGNED_MAX, _SIDE_MAX = 2_000, 280  # characters of a side that are compared, and shown
_LEAD_MAX = 60  # characters before the first edit, where it stands far from the beginning


def _examples(findings: Findings) -> Iterator[Custom]:
    """Yield the examples of both kinds."""
    shown = findings.results.examples
    most = max((value for example in shown for value in example.distances.values()), default=1)
    for kind, (title, about) in _EXAMPLES.items():
        if chosen := [
            _example(findings, example, most) for example in shown if example.kind == kind
        ]:
            yield Custom("examples", {"title": title, "about": about, "cards": chosen})


def _example(findings: Findings, example: ShownPair, most: float) -> dict[str, Any]:
    clean, noisy = example.clean[:_ALIGNED_MAX], example.noisy[:_ALIGNED_MAX]
    changed = edits(clean, noisy)
    noisy_parts = [(edit.noisy_start, edit.noisy_stop) for edit in changed]
    clean_parts = [(edit.clean_start, edit.clean_stop) for edit in changed]
    rows = [
        DotRow([Dot(example.distances[model.name], findings.style(model.name))], model.name,
               f"{example.distances[model.name]:.3f}")
        for model in findings.models if model.name in example.distances
    ]  # fmt: skip
    scale = fitting([0.0, most], 138, 232, linear=True)
    return {
        "dataset": example.dataset,
        "sides": [("noisy", _marked(noisy, noisy_parts)), ("clean", _marked(clean, clean_parts))],
        "chart": dots(rows, "Cosine distance", scale),
    }


def _marked(text: str, parts: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """Return a window of a text as pieces, each marked or not; an empty place is a caret."""
    first = parts[0][0] if parts else 0
    at = max(0, first - _LEAD_MAX) if first > _SIDE_MAX - _LEAD_MAX else 0
    stop = at + _SIDE_MAX
    pieces = [("…", False)] if at else []
    for start, end in dict.fromkeys(parts):  # several insertions at one place are one caret
        if start >= stop:
            break
        pieces += [(text[at:start], False), (text[start : min(end, stop)] or "‸", True)]
        at = min(end, stop)
    pieces.append((text[at:stop], False))
    return [*pieces, ("…", False)] if len(text) > stop else pieces


# To make it again.


def _reproduction(findings: Findings) -> list[Block]:
    """Return the models with their digests, the settings, and a line to cite."""
    results = findings.results
    rows: list[Row] = [
        [model.name, model.spec, Cell(f"{model.width:,}", model.width), model.digest]
        for model in findings.models
    ]
    blocks: list[Block] = [
        Table("Models", ["model", "SPEC", "width", "digest"], rows, "definitions")
    ]
    config = (results.training or {}).get("config")
    for title, settings in (
        ("Settings of the evaluation", results.settings), ("Settings of the training", config),
    ):  # fmt: skip
        if settings:
            plain = json.loads(json.dumps(settings, default=str))
            written = yaml.safe_dump(plain, allow_unicode=True, sort_keys=False)
            blocks.append(Folded(title, [Custom("code", written)]))
    versions = results.settings.get("versions")
    version = versions.get("noisegen", __version__) if isinstance(versions, dict) else __version__
    models = ", ".join(model.name for model in findings.students) or results.baseline.name
    baseline = results.baseline
    against = f" against {baseline.name} ({baseline.spec})" if findings.students else ""
    cited = f"noisegen {version}, evaluation of {models}{against} on {sets_in_words(results)}."
    return [*blocks, Text(f"To cite: {cited} Methods: {_PAPERS}.")]
