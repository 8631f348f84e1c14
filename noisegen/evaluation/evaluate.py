"""An evaluation from SPECs and sources to a folder with figures and the report."""

import csv
import io
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import combinations, islice
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from noisegen.encoders.encoder import Encoder, Vectors, names_model
from noisegen.errors import OutputError, SourceError, UsageError
from noisegen.evaluation.examples import example_sets, examples, mapped_rows, project
from noisegen.evaluation.measure import (
    Measured,
    VectorStore,
    compare,
    measure,
    scores,
    strength_curve,
    type_token_changes,
)
from noisegen.evaluation.results import (
    Comparison,
    Dataset,
    EvaluateOptions,
    Model,
    Projection,
    Results,
    StrengthCurve,
)
from noisegen.evaluation.sets import (
    EvaluationSet,
    PairSet,
    Sets,
    make_sets,
    unique_names,
)
from noisegen.options import public
from noisegen.runs.files import write_text
from noisegen.runs.folder import make_folder
from noisegen.runs.progress import Progress, Show
from noisegen.version import __version__

LOG_MAX = 20_000  # rows of a training log that are read
STUDENT, CONFIG, LOG = "student", "config.yaml", "log.jsonl"  # in the folder of a training run
_MAPS_MAX = 3  # sets that are mapped
_VERSIONS = ("torch", "transformers", "numpy", "spacy")


def _evaluate(options: EvaluateOptions) -> Results:
    """Evaluate models against a baseline and write metrics.json, metrics.csv, results.json, report.

    `models` and `baseline` are SPECs, or NAME=SPEC. `strengths` are factors on the rates of the
    recipes over `source`; () for none. `progress` gets events. Raises NoisegenError; a
    folder `out` that is not empty needs `force`, which replaces those four files.
    """
    began = time.monotonic()
    progress = options.progress or (lambda event: None)
    models = named_models(options.models, options.baseline)
    out = Path(options.out)
    if make_folder(out) and not options.force:
        raise OutputError(f"{out} is not empty; add --force to replace the report in it")
    for model in models:  # a wrong SPEC shows before minutes of work on the others
        progress(Progress(f"opening {model.name}"))
        opened(model)
    sets = make_sets(options, progress)
    run = _Measurement(sets, models, progress, total=len(set(sets.texts())) * len(models))
    for model in models:
        run.add(model)
    progress(Progress("statistics"))
    results = run.results(options, began)
    write(results, out)
    return results


evaluate = public(EvaluateOptions, _evaluate)


@dataclass(frozen=True)
class Named:
    """A model that was asked for: its name in tables, and its SPEC."""

    name: str
    spec: str


@dataclass
class _Measurement:
    """What has been measured so far; one model is open at a time, the baseline first."""

    sets: Sets
    named: Sequence[Named]
    progress: Show
    total: int  # texts to encode, if memory holds their vectors
    done: int = 0
    models: list[Model] = field(default_factory=list)
    found: dict[str, dict[str, Measured]] = field(default_factory=dict)
    strengths: list[StrengthCurve] = field(default_factory=list)
    anchors: dict[str, Vectors] = field(default_factory=dict)  # baseline's clean vectors by group
    mapped: dict[str, dict[str, tuple[Vectors, Vectors]]] = field(default_factory=dict)

    def add(self, model: Named) -> None:
        """Open a model and measure it on all sets."""

        def encoded(count: int) -> None:
            self.done += count
            total = max(self.total, self.done)
            self.progress(Progress(f"{model.name}: encoding", self.done, total, "texts"))

        self.progress(Progress(f"{model.name}: opening", self.done, self.total, "texts"))
        encoder = opened(model)
        store = VectorStore(encoder, encoded)
        is_baseline = not self.models
        self.models.append(described(model, encoder, baseline=is_baseline))
        self.found[model.name] = {
            dataset.name: self._measured(dataset, store, is_baseline) for dataset in self.sets.sets
        }
        self.strengths += [
            strength_curve(model.name, dataset, store) for dataset in self.sets.strengths
        ]
        for dataset in example_sets(self.sets.sets)[:_MAPS_MAX]:
            rows = mapped_rows(dataset)
            clean, noisy = (
                [side[row] for row in rows] for side in (dataset.clean, dataset.noisy[0])
            )
            self.mapped.setdefault(dataset.name, {})[model.name] = store(clean), store(noisy)

    def _measured(self, dataset: EvaluationSet, store: VectorStore, is_baseline: bool) -> Measured:
        if not isinstance(dataset, PairSet):
            return measure(dataset, store)
        if is_baseline and dataset.group not in self.anchors:
            self.anchors[dataset.group] = store(dataset.clean)
        measured = measure(dataset, store, self.anchors[dataset.group])
        if is_baseline:
            measured.seeds["drift"] = (0.0,) * len(
                dataset.noisy
            )  # against itself: nothing but rounding
            measured.rows.pop("drift")
            if ratios := type_token_changes(dataset, store.encoder):
                measured.seeds["ttr_ratio"] = ratios
        return measured

    def results(self, options: EvaluateOptions, began: float) -> Results:
        """Return what was found, with intervals and tests."""
        sets, baseline = self.sets.sets, self.named[0].name
        compared: list[Comparison] = []
        for name, measured in self.found.items():
            if name != baseline:
                theirs = self.found[baseline]
                compared += compare(sets, name, measured, theirs, paper_stats=options.paper_stats)
        shown = example_sets(sets)
        return Results(
            models=tuple(self.models),
            datasets=tuple(map(_dataset, sets)),
            scores={name: scores(sets, measured) for name, measured in self.found.items()},
            comparisons=tuple(compared),
            doses=tuple(self.strengths),
            examples=tuple(examples(shown, self.found, baseline)),
            projections=tuple(map(self._projection, shown[:_MAPS_MAX])),
            training=training_of(self.named),
            settings={
                **_settings(options),
                "notes": [*self.sets.notes, *self._width_notes(), *self._sts_notes()],
                "damaged": self.sets.damaged,
                "versions": _versions(),
                "seconds": round(time.monotonic() - began, 1),
            },
        )

    def _projection(self, pairs: PairSet) -> Projection:
        rows = mapped_rows(pairs)
        texts = [(pairs.clean[row], pairs.noisy[0][row]) for row in rows]
        anchor, sides = self.anchors[pairs.group], self.mapped[pairs.name]
        return project(pairs.name, texts, anchor, sides, pairs_max=len(rows))

    def _width_notes(self) -> list[str]:
        first = self.models[0]
        return [
            f"{model.name} is {model.width:,} wide and {first.name} {first.width:,}: "
            "no drift and no anchored distance"
            for model in self.models
            if model.width != first.width
        ]

    def _sts_notes(self) -> list[str]:
        """Say where a correlation is left out: ranks of equal cosines have none."""
        return [
            f"{dataset.name}: all cosines of {model} are equal in {metric}, which is left out"
            for dataset in self.sets.sets
            if dataset.kind == "sts"
            for model, measured in self.found.items()
            for metric, values in measured[dataset.name].seeds.items()
            if not all(map(isfinite, values))
        ]


def _dataset(dataset: EvaluationSet) -> Dataset:
    if not isinstance(dataset, PairSet):
        return Dataset(dataset.name, dataset.kind, len(dataset), note=dataset.note)
    changed = round(sum(int(side.sum()) for side in dataset.changed) / len(dataset.changed))
    return Dataset(dataset.name, dataset.kind, len(dataset), changed, dataset.seeds, dataset.note)


def _settings(options: EvaluateOptions) -> dict[str, Any]:
    others = {"models", "out", "baseline", "force", "progress"}
    plain = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(options).items()
        if name not in others
    }
    return {**plain, "recipe": options.noise if options.sts or options.labelled else ""}


def _versions() -> dict[str, str]:
    versions = {"noisegen": __version__}
    for name in _VERSIONS:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


# Files.


def write(results: Results, out: Path) -> None:
    """Write what the contract names; each file appears whole. Raises OutputError."""
    from noisegen.evaluation.page import write as write_report

    write_text(out / "metrics.json", _json(results.metrics()))
    write_text(out / "metrics.csv", metrics_csv(results))
    write_text(out / "results.json", _json(results.to_dict()))
    write_report(results, out / "report.html")


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


_SCORE = ("model", "dataset", "kind", "metric", "value", "low", "high", "sd")
_COMPARED = ("difference", "test", "p", "p_holm", "repaired", "broken")


def metrics_csv(results: Results) -> str:
    """Return a line for each figure; of those compared with the baseline also how they differ."""
    compared = {(one.model, one.dataset, one.metric): one for one in results.comparisons}
    kinds = {one.name: one.kind for one in results.datasets}
    lines = io.StringIO()
    table = csv.writer(lines, lineterminator="\n")
    table.writerow((*_SCORE, *_COMPARED))
    for model, datasets in results.scores.items():
        for dataset, found in datasets.items():
            for metric, score in found.items():
                one = compared.get((model, dataset, metric))
                head = model, dataset, kinds[dataset], metric
                figures = score.value, score.low, score.high, score.sd
                test = [getattr(one, name) if one else None for name in _COMPARED]
                table.writerow((*head, *figures, *test))
    return lines.getvalue()


# Models: their names, the baseline, and how a student was trained.


def named_models(specs: Sequence[str], baseline: str | None) -> list[Named]:
    """Return the baseline, then the other models, under names that differ.

    A SPEC may be NAME=SPEC. Without `baseline` it is the teacher of the first model, if that was
    trained by noisegen, else the first model itself. Raises UsageError for no model, for one that
    is named twice, and for a teacher that is not there.
    """
    if not specs:
        raise UsageError("no model to evaluate; name one, such as minilm or RUN/student")
    models = [_named(spec) for spec in specs]
    twice = next((pair for pair in combinations(models, 2) if pair[0].spec == pair[1].spec), None)
    if twice:
        names = " and ".join(dict.fromkeys(one.name for one in twice))
        aliases = "" if names == twice[0].spec else f", as {names}"
        raise UsageError(f"the model {twice[0].spec} is named twice{aliases}")
    first = _named(baseline) if baseline else _teacher(models[0]) or models[0]
    others = [model for model in models if model.spec != first.spec]
    if baseline is None or "=" not in baseline:  # a name given with the models holds
        first = next((model for model in models if model.spec == first.spec), first)
    models = [first, *others]
    unique = unique_names([model.name for model in models])
    return [replace(model, name=name) for name, model in zip(unique, models, strict=True)]


def _named(given: str) -> Named:
    """Read NAME=SPEC; else the name is RUN of RUN/student, a folder's last part, or the SPEC."""
    name, equals, spec = given.partition("=")
    if equals and spec and not Path(given).exists() and not set(name) & set("/\\:"):
        return Named(name, spec)
    if not Path(given).is_dir():
        return Named(given, given)
    path = Path(given).resolve()
    is_student = path.name == STUDENT and path.parent.name
    return Named(path.parent.name if is_student else path.name, given)


def _teacher(model: Named) -> Named | None:
    run = _run_of(model.spec)
    teacher = (_config(run) or {}).get("teacher") if run else None
    if not isinstance(teacher, str) or not teacher:
        return None
    if not names_model(teacher):  # a folder, named from where the student was trained
        raise UsageError(
            f"the teacher of {model.spec} was {teacher!r}, which is not here: give --baseline"
        )
    return _named(teacher)


def _run_of(spec: str) -> Path | None:
    """Return the folder of the run that made a student."""
    path = Path(spec)
    run = path.resolve().parent
    return run if path.is_dir() and (run / CONFIG).is_file() else None


def _config(run: Path) -> dict[str, Any] | None:
    try:
        config = yaml.safe_load((run / CONFIG).read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return config if isinstance(config, dict) else None


def training_of(models: Sequence[Named]) -> dict[str, Any] | None:
    """Return config and log of the first model that a run of ours made; None where none was.

    What is missing or cannot be read is left out: the report then has no learning curve.
    """
    for model in models:
        run = _run_of(model.spec)
        if run is not None and (config := _config(run)) is not None:
            return {"model": model.name, "config": config, "log": _log(run / LOG)}
    return None


def _log(path: Path) -> list[dict[str, Any]]:
    rows = []
    try:
        with path.open(encoding="utf-8") as file:
            for line in islice(file, LOG_MAX):
                try:
                    row = json.loads(line)
                except ValueError:  # cut short by a stop
                    continue
                if isinstance(row, dict) and row:
                    rows.append(row)
    except (OSError, UnicodeDecodeError):
        return rows
    return rows


def opened(model: Named) -> Encoder:
    """Open a model; raises UsageError or SourceError naming it."""
    from noisegen.encoders.encoder import open_encoder

    try:
        return open_encoder(model.spec)
    except SourceError as error:
        raise SourceError(f"model {model.name}: {error}") from error


def described(model: Named, encoder: Encoder, *, baseline: bool) -> Model:
    """Return what tables and the report say of a model."""
    weights = getattr(encoder, "parameters", None)
    count = sum(one.numel() for one in weights()) if callable(weights) else None
    return Model(model.name, model.spec, encoder.width, encoder.digest, count, baseline)
