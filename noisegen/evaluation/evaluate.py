"""`noisegen evaluate`: measure models on test sets, and write the values and a report."""

import csv
import io
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import chain
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from noisegen.encoders.encoder import Encoder, Vectors, find_device, move
from noisegen.encoders.stored import write_json
from noisegen.errors import UsageError
from noisegen.evaluation.examples import example_sets, examples, mapped_texts, project
from noisegen.evaluation.measure import Measured, VectorStore, by_strength, compare, measure, scores
from noisegen.evaluation.metrics import metric_of
from noisegen.evaluation.models import NamedModel, named_models, open_all, training_of
from noisegen.evaluation.results import (
    Comparison,
    Dataset,
    EvaluateOptions,
    Model,
    Results,
    StrengthCurve,
)
from noisegen.evaluation.sets import EvaluationSet, PairSet, SearchSet, Sets, TextSet, make_sets
from noisegen.options import Strings, decode, public
from noisegen.runs.atomic import write_text
from noisegen.runs.folder import Layout, RunFolder
from noisegen.runs.manifest import packages
from noisegen.runs.progress import Progress, Show, silent

if TYPE_CHECKING:
    import torch

# Matches the beginning of a metrics.json of noisegen: {model: {dataset: {metric: value}}}.
METRICS_BEGIN = r'\{\n "[^\n]*": \{\n  "[^\n]*": \{'
LAYOUT: Layout[None] = Layout(
    "write",
    whole={
        "metrics.json": METRICS_BEGIN,
        "metrics.csv": "",
        "means.csv": "",
        "report.html": "",
        "results.json": r'\{\n "models": .*\n "datasets": ',
    },
    is_overwritten=True,
)
_MAPS_MAX = 3  # maximum maps of vectors in the report, one per test set
_NOT_RECORDED = ("models", "out", "baseline", "workers", "force", "progress")
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
    retrieval_set: tuple[str, ...] = (),
    noisy_queries: str | None = None,
    target_model: str | None = None,
    labelled: tuple[str, ...] = (),
    labelled_train: str | None = None,
    samples_per_label: int = 8,
    steps: Strings = (),
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
    device: str = "auto",
    force: bool = False,
    progress: Show = silent,
) -> Results:
    """Evaluate models against a baseline; write two JSON files, two CSV files, a report.

    `models` and `baseline` are SPECs (a model name or a folder), or NAME=SPEC to name a model in
    tables. `steps` ('abr1:rate=1', 'fing') are the transforms of one recipe, which replaces
    `recipe` and `transforms`. For recipes of several steps on `source` texts, the report charts
    cosine distance and xSIM error against the strength of the noise, for queries nDCG@10:
    `strengths` are factors on all noise rates, () leaves the chart out. `progress` is called with
    progress events. A folder `out` that is not empty needs `force`, which overwrites the five
    files. Raises NoisegenError.
    """
    return _evaluate(decode(EvaluateOptions, locals()))


def _evaluate(options: EvaluateOptions) -> Results:
    """Run `evaluate` with checked options."""
    began = time.monotonic()
    progress = options.progress
    device = find_device(options.device) if find_spec("torch") else None
    models = named_models(options.models, options.baseline)
    folder = RunFolder(Path(options.out), LAYOUT, {})
    with folder.claimed(force=options.force, can_resume=False, show=progress):
        encoders = open_all(models, progress)
        targets = _target_store(options.target_model, models, encoders, progress)
        sets = make_sets(options, progress)
        if targets and device:
            move(targets.encoder, device, sets.notes.append)
        total = len(set(sets.texts())) * len(models)
        run = _Measurement(sets, models, progress, total, device, targets)
        for model in models:
            run.add(model, encoders.pop(model.name))
        progress(Progress("statistics"))
        results = run.results(options, began)
        write(results, folder.out)
    return results


def _target_store(
    spec: str | None, models: Sequence[NamedModel], encoders: Mapping[str, Encoder], progress: Show
) -> VectorStore | None:
    """Return the model that encodes translations, as a VectorStore; None without --target-model.

    A model that is also evaluated is opened once. Raises UsageError if the target vectors differ in
    width from an evaluated model's.
    """
    if spec is None:
        return None
    opened = next((encoders[model.name] for model in models if model.spec == spec), None)
    encoder = opened or open_all([NamedModel("of --target-model", spec)], progress).popitem()[1]
    for name, other in encoders.items():
        if other.width != encoder.width:
            raise UsageError(
                f"{name} has {other.width:,} numbers per vector, --target-model {spec} "
                f"{encoder.width:,}: they cannot be compared"
            )
    return VectorStore(encoder)


@dataclass
class _Measurement:
    """Test sets, and the measurements of models on them so far; the baseline is measured first."""

    sets: Sets
    named: Sequence[NamedModel]
    progress: Show
    total: int  # texts to encode: distinct texts x models; more if the vector cache is too small
    device: "torch.device | None"  # None without torch: then no model can move
    targets: VectorStore | None = None  # encodes translations, with --target-model
    done: int = 0
    models: list[Model] = field(default_factory=list)
    measured: dict[str, dict[str, Measured]] = field(default_factory=dict)  # model -> set -> values
    strengths: list[StrengthCurve] = field(default_factory=list)
    # {group: the baseline's vectors of the clean texts}; all sets of a `PairSet.group` share them.
    anchors: dict[str, Vectors] = field(default_factory=dict)
    # {set: {model: (clean vectors, noisy vectors)}} of the pairs that the report's maps show.
    mapped: dict[str, dict[str, tuple[Vectors, Vectors]]] = field(default_factory=dict)

    def add(self, model: NamedModel, encoder: Encoder) -> None:
        """Measure a model on all sets; the first model that is added is the baseline."""
        is_baseline = not self.models
        if self.device:
            move(encoder, self.device, self.sets.notes.append)
        store = VectorStore(encoder, partial(self._encoded, model.name))
        self._encoded(model.name, 0)
        self.models.append(
            Model(
                model.name,
                model.spec,
                encoder.width,
                encoder.digest,
                _parameter_count(encoder),
                baseline=is_baseline,
            )
        )
        self.measured[model.name] = by_set = {}
        for dataset in self.sets.sets:
            if not isinstance(dataset, PairSet):
                by_set[dataset.name] = found = measure(dataset, store, targets=self.targets)
                if isinstance(dataset, SearchSet) and dataset.strengths:
                    factors = tuple(dataset.strengths)
                    curve = StrengthCurve(model.name, dataset.name, factors, ndcg_noisy=found.ndcg)
                    self.strengths.append(curve)
                continue
            if is_baseline:
                self.anchors.setdefault(dataset.group, store(dataset.clean))
            anchor = None if is_baseline else self.anchors[dataset.group]
            by_set[dataset.name] = measure(dataset, store, anchor)
        for dataset in self.sets.sets:
            if isinstance(dataset, PairSet) and dataset.strengths:
                self.strengths.append(by_strength(model.name, dataset, store))
        for dataset in self._mapped_sets():
            clean, noisy = zip(*mapped_texts(dataset), strict=True)
            self.mapped.setdefault(dataset.name, {})[model.name] = store(clean), store(noisy)

    def _encoded(self, model: str, count: int) -> None:
        """Report that `count` more texts have been encoded."""
        self.done += count
        total = max(self.total, self.done)
        self.progress(Progress(f"encoding with {model}", self.done, total, "texts"))

    def _mapped_sets(self) -> list[PairSet]:
        return example_sets(self.sets.sets)[:_MAPS_MAX]

    def results(self, options: EvaluateOptions, began: float) -> Results:
        """Compare the models with the baseline and return all results, with intervals and tests.

        `began` is the time in `time.monotonic()` seconds when the evaluation began.
        """
        sets, baseline = self.sets.sets, self.named[0].name
        comparisons: list[Comparison] = []
        for name, ours in self.measured.items():
            if name != baseline:
                theirs = self.measured[baseline]
                comparisons += compare(sets, name, ours, theirs, paper_stats=options.paper_stats)
        projections = [
            project(
                dataset.name,
                mapped_texts(dataset),
                self.anchors[dataset.group],
                self.mapped[dataset.name],
            )
            for dataset in self._mapped_sets()
        ]
        return Results(
            models=tuple(self.models),
            datasets=tuple(_dataset(dataset) for dataset in sets),
            scores={
                name: scores(sets, measured, paper_stats=options.paper_stats)
                for name, measured in self.measured.items()
            },
            comparisons=tuple(comparisons),
            doses=tuple(self.strengths),
            examples=tuple(examples(example_sets(sets), self.measured, baseline)),
            projections=tuple(projections),
            training=training_of(self.named),
            settings={
                **recorded(options),
                "recipe": options.noise if any(map(_has_noise, sets)) else "",
                "notes": [*self.sets.notes, *self._notes()],
                "damaged": self.sets.damaged,
                "versions": packages(*_VERSIONS),
                "seconds": round(time.monotonic() - began, 1),
            },
        )

    def _notes(self) -> list[str]:
        """Return a note on each metric that is left out.

        Clean drift and anchored distance compare vectors with the baseline's, so they need the same
        width. A correlation is left out where all cosines of a model are equal.
        """
        first, *others = self.models
        notes = [
            f"{model.name} has {model.width:,} numbers per vector, {first.name} {first.width:,}: "
            "no drift and no anchored distance"
            for model in others
            if model.width != first.width
        ]
        for dataset in self.sets.sets:
            if dataset.kind != "sts":
                continue
            for model, measured in self.measured.items():
                for metric, values in measured[dataset.name].seeds.items():
                    if not all(map(isfinite, values)):
                        notes.append(
                            f"{dataset.name}: {metric} of {model} is left out, all its cosines are "
                            "equal"
                        )
        return notes


def _parameter_count(encoder: Encoder) -> int | None:
    """Return the number of weights of an encoder; None if it has no weights of torch."""
    parameters = getattr(encoder, "parameters", None)
    count = sum(array.numel() for array in parameters()) if callable(parameters) else 0
    return count or None


def recorded(options: Any) -> dict[str, Any]:
    """Return the options that results.json records, with tuples as lists."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(options).items()
        if name not in _NOT_RECORDED
    }


def _has_noise(dataset: EvaluationSet) -> bool:
    """Tell whether the noise of --recipe or -t was added to a set."""
    if isinstance(dataset, SearchSet):
        return not dataset.is_typed
    return isinstance(dataset, TextSet) and dataset.kind != "retrieval"


def _dataset(dataset: EvaluationSet) -> Dataset:
    if isinstance(dataset, TextSet):
        return Dataset(dataset.name, dataset.kind, len(dataset), note=dataset.note)
    if isinstance(dataset, SearchSet):
        rows, changed = len(dataset), dataset.changed
        return Dataset(dataset.name, dataset.kind, rows, changed, note=dataset.note)
    changed = round(sum(int(side.sum()) for side in dataset.changed) / len(dataset.changed))
    return Dataset(dataset.name, dataset.kind, len(dataset), changed, dataset.seeds, dataset.note)


def write(results: Results, out: Path) -> None:
    """Write the five files of an evaluation, each atomically; raises OutputError."""
    from noisegen.evaluation.page import write as write_report

    write_json(out / "metrics.json", results.metrics())
    write_csv(out / "metrics.csv", _table(results))
    write_csv(out / "means.csv", _means(results))
    write_json(out / "results.json", results.to_dict())
    write_report(results, out / "report.html")


def write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file whose first row is its header; raises OutputError.

    An apostrophe is put before a text that a spreadsheet would read as a formula.
    """
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    for row in rows:
        writer.writerow([_FORMULA.sub("'", c) if isinstance(c, str) else c for c in row])
    write_text(path, lines.getvalue())


# Matches a text that a spreadsheet would read as a formula; a list of numbers does not match.
_FORMULA = re.compile(r"^(?=[=+\-@\t\r])(?![-+.e\d ]+$)")
_SCORE = ("value", "low", "high", "sd", "floor", "p_null")
_COMPARED = ("difference", "test", "p", "p_holm", "repaired", "broken")


def _table(results: Results) -> Iterator[Sequence[object]]:
    """Yield the rows of metrics.csv: the header, then a row per model, set and metric.

    A row has the value, its interval, and the comparison with the baseline if there is one.
    """
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


def _means(results: Results) -> Iterator[Sequence[object]]:
    """Yield the header of means.csv, then a row per kind of set, metric and model.

    Each row has the mean over the sets that all models have a value for, and the number of sets in
    which no other model is better. This number is empty if neither low nor high values are better.
    """
    yield ("kind", "metric", "model", "sets", "mean", "best")
    models = list(results.scores)
    for (kind, metric), values in _values_by_set(results).items():
        shared = [of_set for of_set in values if len(of_set) == len(models)]
        find = {"low": min, "high": max}.get(metric_of(metric).better)
        for model in models if shared else ():
            mean = fmean(of_set[model] for of_set in shared)
            best = find and sum(of_set[model] == find(of_set.values()) for of_set in shared)
            yield kind, metric, model, len(shared), mean, best


def _values_by_set(results: Results) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Return {(kind of set, metric): [{model: value} of each set]}."""
    values: dict[tuple[str, str], list[dict[str, float]]] = {}
    for dataset in results.datasets:
        scores = {model: of_model[dataset.name] for model, of_model in results.scores.items()}
        for metric in dict.fromkeys(chain.from_iterable(scores.values())):
            of_set = {model: by[metric].value for model, by in scores.items() if metric in by}
            values.setdefault((dataset.kind, metric), []).append(of_set)
    return values
