"""`noisegen evaluate`: from models and sources to a folder with figures and the report."""

import csv
import io
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice
from math import isfinite
from pathlib import Path
from typing import Any

from noisegen.encoders.encoder import Encoder, Vectors, names_model, open_encoder
from noisegen.encoders.stored import write_json
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.examples import example_sets, examples, mapped_texts, project
from noisegen.evaluation.measure import Measured, VectorStore, by_strength, compare, measure, scores
from noisegen.evaluation.results import Dataset, EvaluateOptions, Model, Results, StrengthCurve
from noisegen.evaluation.sets import EvaluationSet, PairSet, Sets, make_sets, unique_names
from noisegen.options import decode, public
from noisegen.runs.atomic import write_text
from noisegen.runs.folder import Layout, RunFolder, read_config
from noisegen.runs.manifest import packages
from noisegen.runs.progress import Progress, Show, silent

LOG_MAX = 20_000  # rows of a training log that are read
STUDENT, LOG = "student", "log.jsonl"  # in the folder of a training run
LAYOUT: Layout[None] = Layout(
    "write", "results.json", frozenset({"scores", "settings"}),
    whole=("metrics.json", "metrics.csv", "report.html", "results.json"),
)  # fmt: skip
_MAPS_MAX = 3  # sets that are mapped
_NO_SETTINGS = ("models", "out", "baseline", "force", "progress")
_VERSIONS = ("noisegen", "torch", "transformers", "numpy", "spacy")


@public
def evaluate(
    models: tuple[str, ...],
    out: str,
    baseline: str | None = None,
    pairs: tuple[str, ...] = (),
    pool: tuple[str, ...] = (),
    source: tuple[str, ...] = (),
    transforms: tuple[str, ...] = ("all",),
    seeds: int = 10,
    strengths: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5),
    sts: tuple[str, ...] = (),
    retrieval: tuple[str, ...] = (),
    target_model: str | None = None,
    labelled: tuple[str, ...] = (),
    recipe: str = "ugc",
    lang: str = "en",
    limit: int | None = None,
    hard: bool = True,
    per_kind: int = 3,
    augmented: str | None = None,
    paper_stats: bool = False,
    noisy_column: str = "noisy",
    clean_column: str = "clean",
    clean_file: str | None = None,
    text_column: str = "text",
    label_column: str = "label",
    force: bool = False,
    progress: Show = silent,
) -> Results:
    """Evaluate models against a baseline; write metrics.json, metrics.csv, results.json, a report.

    `models` and `baseline` are SPECs, or NAME=SPEC. `strengths` are factors on the rates of the
    recipes for `source`; () for none. `progress` gets events. A folder `out` that is not empty
    needs `force`, which overwrites those four files. Raises NoisegenError.
    """
    return _evaluate(decode(EvaluateOptions, locals()))


def _evaluate(options: EvaluateOptions) -> Results:
    """Run `evaluate` with options that are checked."""
    began = time.monotonic()
    progress = options.progress
    models = named_models(options.models, options.baseline)
    folder = RunFolder(Path(options.out), LAYOUT, {})
    with folder.locked(force=options.force, can_resume=False, show=progress):
        encoders = open_all(models, progress)
        targets = _target_store(options.target_model, models, encoders, progress)
        sets = make_sets(options, progress)
        total = len(set(sets.texts())) * len(models)
        run = _Measurement(sets, models, progress, total, targets)
        for model in models:
            run.add(model, encoders.pop(model.name))
        progress(Progress("statistics"))
        results = run.results(options, began)
        write(results, folder.out)
    return results


@dataclass(frozen=True)
class Named:
    """A requested model: its name in tables, and its SPEC."""

    name: str
    spec: str


@dataclass
class _Measurement:
    """What has been measured so far, the baseline first."""

    sets: Sets
    named: Sequence[Named]
    progress: Show
    total: int  # texts to encode, if memory holds their vectors
    targets: VectorStore | None = None  # of the targets of translations
    done: int = 0
    models: list[Model] = field(default_factory=list)
    measured: dict[str, dict[str, Measured]] = field(default_factory=dict)  # by model and set
    strengths: list[StrengthCurve] = field(default_factory=list)
    anchors: dict[str, Vectors] = field(default_factory=dict)  # baseline's clean vectors by group
    mapped: dict[str, dict[str, tuple[Vectors, Vectors]]] = field(default_factory=dict)

    def add(self, model: Named, encoder: Encoder) -> None:
        """Measure a model on all sets."""

        def encoded(count: int) -> None:
            self.done += count
            total = max(self.total, self.done)
            self.progress(Progress(f"encoding with {model.name}", self.done, total, "texts"))

        encoded(0)
        is_baseline, sets = not self.models, self.sets.sets
        weights, store = getattr(encoder, "parameters", None), VectorStore(encoder, encoded)
        count = sum(array.numel() for array in weights()) if callable(weights) else None
        identity = model.name, model.spec, encoder.width, encoder.digest
        self.models.append(Model(*identity, count, baseline=is_baseline))
        self.measured[model.name] = by_set = {}
        for dataset in sets:
            if not isinstance(dataset, PairSet):
                by_set[dataset.name] = measure(dataset, store, targets=self.targets)
                continue
            if is_baseline:
                self.anchors.setdefault(dataset.group, store(dataset.clean))
            anchor = None if is_baseline else self.anchors[dataset.group]
            by_set[dataset.name] = measure(dataset, store, anchor)
        self.strengths += [
            by_strength(model.name, dataset, store)
            for dataset in sets
            if isinstance(dataset, PairSet) and dataset.strengths
        ]
        for dataset in example_sets(sets)[:_MAPS_MAX]:
            clean, noisy = zip(*mapped_texts(dataset), strict=True)
            self.mapped.setdefault(dataset.name, {})[model.name] = store(clean), store(noisy)

    def results(self, options: EvaluateOptions, began: float) -> Results:
        """Return the results, with intervals and tests."""
        sets, baseline = self.sets.sets, self.named[0].name
        shown, theirs = example_sets(sets), self.measured[baseline]
        compared = [
            compare(sets, name, ours, theirs, paper_stats=options.paper_stats)
            for name, ours in self.measured.items()
            if name != baseline
        ]
        return Results(
            models=tuple(self.models),
            datasets=tuple(map(_dataset, sets)),
            scores={
                name: scores(sets, measured, paper_stats=options.paper_stats)
                for name, measured in self.measured.items()
            },
            comparisons=tuple(chain(*compared)),
            doses=tuple(self.strengths),
            examples=tuple(examples(shown, self.measured, baseline)),
            projections=tuple(
                project(s.name, mapped_texts(s), self.anchors[s.group], self.mapped[s.name])
                for s in shown[:_MAPS_MAX]
            ),
            training=training_of(self.named),
            settings={
                **recorded(options),
                "recipe": options.recipe if options.sts or options.labelled else "",
                "notes": [*self.sets.notes, *self._notes()],
                "damaged": self.sets.damaged,
                "versions": packages(*_VERSIONS),
                "seconds": round(time.monotonic() - began, 1),
            },
        )

    def _notes(self) -> list[str]:
        """Report what is left out: drift between widths, correlations of constant cosines."""
        first, *others = self.models
        widths = [
            f"{model.name} has {model.width:,} numbers per vector, {first.name} {first.width:,}: "
            "no drift and no anchored distance"
            for model in others
            if model.width != first.width
        ]
        return widths + [
            f"{dataset.name}: {metric} of {model} is left out, all its cosines are equal"
            for dataset in self.sets.sets
            if dataset.kind == "sts"
            for model, measured in self.measured.items()
            for metric, values in measured[dataset.name].seeds.items()
            if not all(map(isfinite, values))
        ]


def recorded(options: Any) -> dict[str, Any]:
    """Return the options of an evaluation that results.json has, as JSON gives them back."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(options).items() if name not in _NO_SETTINGS
    }  # fmt: skip


def _dataset(dataset: EvaluationSet) -> Dataset:
    if not isinstance(dataset, PairSet):
        return Dataset(dataset.name, dataset.kind, len(dataset), note=dataset.note)
    changed = round(sum(int(side.sum()) for side in dataset.changed) / len(dataset.changed))
    return Dataset(dataset.name, dataset.kind, len(dataset), changed, dataset.seeds, dataset.note)


def write(results: Results, out: Path) -> None:
    """Write the files of a report, each atomically; raises OutputError."""
    from noisegen.evaluation.page import write as write_report

    write_json(out / "metrics.json", results.metrics())
    write_csv(out / "metrics.csv", _table(results))
    write_json(out / "results.json", results.to_dict())
    write_report(results, out / "report.html")


def write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file whose first row is its header; raises OutputError.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    lines = io.StringIO()
    inert = ([_FORMULA.sub("'", c) if isinstance(c, str) else c for c in row] for row in rows)
    csv.writer(lines, lineterminator="\n").writerows(inert)
    write_text(path, lines.getvalue())


_FORMULA = re.compile(r"^(?=[=+\-@\t\r])(?![-+.e\d ]+$)")  # but figures, alone or several
_SCORE = ("value", "low", "high", "sd", "p_null")
_COMPARED = ("difference", "test", "p", "p_holm", "repaired", "broken")


def _table(results: Results) -> Iterator[Sequence[object]]:
    """Yield a row per figure, with its comparison with the baseline if there is one."""
    compared = {(test.model, test.dataset, test.metric): test for test in results.comparisons}
    kinds = {dataset.name: dataset.kind for dataset in results.datasets}
    yield ("model", "dataset", "kind", "metric", *_SCORE, *_COMPARED)
    for model, datasets in results.scores.items():
        for dataset, by_metric in datasets.items():
            for metric, score in by_metric.items():
                test = compared.get((model, dataset, metric))
                figures = [getattr(score, name) for name in _SCORE]
                figures += [getattr(test, name, None) for name in _COMPARED]
                yield (model, dataset, kinds[dataset], metric, *figures)


def named_models(specs: Sequence[str], baseline: str | None) -> list[Named]:
    """Return the baseline, then the other models, under distinct names.

    A SPEC may be NAME=SPEC. The default baseline is the teacher of the first model, if noisegen
    trained it, else the first model. Raises UsageError for no model, for one that is given twice,
    and for a teacher that is not found.
    """
    if not specs:
        raise UsageError("no model to evaluate: give one, such as minilm or RUN/student")
    models = [_named(spec) for spec in specs]
    for first, second in combinations(models, 2):
        if first.spec == second.spec:
            names = " and ".join(dict.fromkeys((first.name, second.name)))
            aliases = "" if names == first.spec else f", as {names}"
            raise UsageError(f"the model {first.spec} is given twice{aliases}")
    first = _named(baseline) if baseline else _teacher(models[0]) or models[0]
    others = [model for model in models if model.spec != first.spec]
    if baseline is None or "=" not in baseline:  # a name given with the models holds
        first = next((model for model in models if model.spec == first.spec), first)
    models = [first, *others]
    unique = unique_names([model.name for model in models])
    return [replace(model, name=name) for name, model in zip(unique, models, strict=True)]


def _named(given: str) -> Named:
    """Parse NAME=SPEC; the default name is RUN of RUN/student, the folder's name, or the SPEC."""
    name, equals, spec = given.partition("=")
    if equals and spec and not Path(given).exists() and not set(name) & set("/\\:"):
        return Named(name, spec)
    if not Path(given).is_dir():
        return Named(given, given)
    path = Path(given).resolve()
    is_student = path.name == STUDENT and path.parent.name
    return Named(path.parent.name if is_student else path.name, given)


def _teacher(model: Named) -> Named | None:
    teacher = (_config(model) or {}).get("teacher")
    if not isinstance(teacher, str) or not teacher:
        return None
    if not names_model(teacher):  # a folder, named from where the student was trained
        raise UsageError(
            f"the teacher of {model.spec} was {teacher!r}, which is not found here: give --baseline"
        )
    return _named(teacher)


def _config(model: Named) -> dict[str, Any] | None:
    """Return the configuration of the run that made a student."""
    return read_config(Path(model.spec).resolve().parent) if Path(model.spec).is_dir() else None


def training_of(models: Sequence[Named]) -> dict[str, Any] | None:
    """Return config and log of the first model that noisegen trained; None if there is none.

    Files that are missing or cannot be read are left out: the report then has no learning curve.
    """
    for model in models:
        if (config := _config(model)) is None:
            continue
        log, path = [], Path(model.spec).resolve().parent / LOG
        with suppress(OSError, UnicodeDecodeError), path.open(encoding="utf-8") as file:
            for line in islice(file, LOG_MAX):
                with suppress(json.JSONDecodeError):  # cut short by a stop
                    log.append(json.loads(line))
        rows = [row for row in log if isinstance(row, dict) and row]
        return {"model": model.name, "config": config, "log": rows}
    return None


def _target_store(
    spec: str | None, models: Sequence[Named], encoders: Mapping[str, Encoder], progress: Show
) -> VectorStore | None:
    """Open the model of the target side, unless it is one of the others; raises UsageError."""
    if spec is None:
        return None
    opened = next((encoders[model.name] for model in models if model.spec == spec), None)
    encoder = opened or open_all([Named("of --target-model", spec)], progress).popitem()[1]
    for name, other in encoders.items():
        if other.width != encoder.width:
            raise UsageError(
                f"{name} has {other.width:,} numbers per vector, --target-model {spec} "
                f"{encoder.width:,}: they cannot be compared"
            )
    return VectorStore(encoder)


def open_all(models: Sequence[Named], progress: Show) -> dict[str, Encoder]:
    """Open all models, by name, so that a wrong SPEC fails before minutes of work on the others.

    Raises UsageError, or SourceError naming the model.
    """
    encoders = {}
    for model in models:
        progress(Progress(f"opening {model.name}"))
        try:
            encoders[model.name] = open_encoder(model.spec)
        except SourceError as error:
            raise SourceError(f"model {model.name}: {error}") from error
    return encoders
