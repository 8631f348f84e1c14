"""An evaluation from SPECs and sources to a folder with figures and the report."""

import csv
import io
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path
from typing import Any

from noisegen.atomic import write_text
from noisegen.encoders.encoder import Vectors
from noisegen.errors import OutputError
from noisegen.evaluation import comparing, examples, measuring
from noisegen.evaluation.measuring import Measured
from noisegen.evaluation.models import Named, described, named_models, opened, training_of
from noisegen.evaluation.projection import project
from noisegen.evaluation.results import Comparison, Dataset, Dose, Model, Projection, Results
from noisegen.evaluation.set_making import Request, Sets, make_sets
from noisegen.evaluation.sets import EvaluationSet, PairSet
from noisegen.evaluation.vector_store import VectorStore
from noisegen.keyword_options import request_of
from noisegen.run_folder import make
from noisegen.version import __version__

Tick = Callable[[str, int, int], None]  # what is done, how many texts, of how many (0: unknown)
_MAPS_MAX = 3  # sets that are mapped
_VERSIONS = ("torch", "transformers", "numpy", "spacy")


def evaluate(
    models: Sequence[str],
    out: str | Path,
    *,
    baseline: str | None = None,
    paper_stats: bool = False,
    force: bool = False,
    progress: Tick | None = None,
    **options: Any,
) -> Results:
    """Evaluate models against a baseline and write metrics.json, metrics.csv, results.json, report.

    `models` and `baseline` are SPECs, or NAME=SPEC; `options` are the fields of
    `set_making.Request`: pairs, source, transforms, seeds, sts, retrieval, labelled, noise,
    strengths, lang, limit, hard, and names of columns. `progress` is told what is done. Raises
    NoisegenError; a folder `out` that is not empty needs `force`, which replaces those four files.
    """
    began = time.monotonic()
    request = request_of(Request, options, "evaluate")
    chosen = named_models([models] if isinstance(models, str) else models, baseline)
    out = Path(out)
    if make(out) and not force:
        raise OutputError(f"{out} is not empty; add --force to replace the report in it")
    tick = progress or (lambda what, done, total: None)
    for model in chosen:  # a wrong SPEC shows before minutes of work on the others
        tick(f"opening {model.name}", 0, 0)
        opened(model)
    sets = make_sets(request, lambda what: tick(what, 0, 0))
    work = _Work(sets, chosen, tick)
    for model in chosen:
        work.measure(model)
    results = _results(work, request, paper_stats, began)
    write(results, out)
    return results


@dataclass
class _Work:
    """What has been measured so far; one model is open at a time, the baseline first."""

    sets: Sets
    chosen: Sequence[Named]
    tick: Tick
    models: list[Model] = field(default_factory=list)
    found: dict[str, dict[str, Measured]] = field(default_factory=dict)
    doses: list[Dose] = field(default_factory=list)
    anchors: dict[str, Vectors] = field(default_factory=dict)  # baseline's clean vectors by group
    mapped: dict[str, dict[str, tuple[Vectors, Vectors]]] = field(default_factory=dict)
    done: int = 0

    @property
    def baseline(self) -> str:
        """The name of the model that the others are compared with."""
        return self.chosen[0].name

    def measure(self, model: Named) -> None:
        """Open a model and measure it on all sets."""
        self.tick(f"{model.name}: opening", self.done, self._texts)
        encoder = opened(model)
        store = VectorStore(encoder, lambda count: self._encoded(model.name, count))
        is_baseline = not self.models
        self.models.append(described(model, encoder, baseline=is_baseline))
        made = self.found[model.name] = {}
        for one in self.sets.sets:
            made[one.name] = self._measured(one, store, is_baseline)
        self.doses += [measuring.dose(model.name, one, store) for one in self.sets.doses]
        for told in examples.told(self.sets.sets)[:_MAPS_MAX]:
            rows = examples.mapped_rows(told)
            clean, noisy = ([side[row] for row in rows] for side in (told.clean, told.noisy[0]))
            self.mapped.setdefault(told.name, {})[model.name] = store(clean), store(noisy)

    def _measured(self, one: EvaluationSet, store: VectorStore, is_baseline: bool) -> Measured:
        if not isinstance(one, PairSet):
            return measuring.measure(one, store)
        if is_baseline and one.group not in self.anchors:
            self.anchors[one.group] = store(one.clean)
        found = measuring.measure(one, store, self.anchors[one.group])
        if is_baseline:  # against itself: nothing but rounding
            found.seeds["drift"] = (0.0,) * len(one.noisy)
            found.rows.pop("drift")
        if is_baseline and (ratios := measuring.type_token_ratios(one, store.encoder)):
            found.seeds["ttr_ratio"] = ratios
        return found

    def _encoded(self, model: str, count: int) -> None:
        self.done += count
        self.tick(f"{model}: encoding", self.done, max(self._texts, self.done))

    @cached_property
    def _texts(self) -> int:
        """How many texts are encoded in all, if memory holds their vectors."""
        return len(set(self.sets.texts())) * len(self.chosen)


def _results(work: _Work, request: Request, paper_stats: bool, began: float) -> Results:
    sets, baseline = work.sets.sets, work.baseline
    work.tick("statistics", 0, 0)
    compared: list[Comparison] = []
    for name in work.found:
        if name != baseline:
            tested = comparing.Contest(name, work.found[name], work.found[baseline])
            compared += comparing.compare(sets, tested, paper_stats=paper_stats)
    told = examples.told(sets)
    settings = {
        **_plain(request), "recipe": request.noise if request.sts or request.labelled else "",
        "paper_stats": paper_stats,
        "notes": [*work.sets.notes, *_width_notes(work.models), *_sts_notes(work)],
        "damaged": work.sets.damaged, "versions": _versions(),
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    return Results(
        tuple(work.models),
        tuple(map(_dataset, sets)),
        {name: comparing.scores(sets, found) for name, found in work.found.items()},
        tuple(compared),
        tuple(work.doses),
        tuple(examples.examples(told, work.found, baseline)),
        tuple(_projection(work, one) for one in told[:_MAPS_MAX]),
        training_of(work.chosen),
        settings,
    )


def _plain(request: Request) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(request).items()
    }


def _dataset(one: EvaluationSet) -> Dataset:
    if not isinstance(one, PairSet):
        return Dataset(one.name, one.kind, len(one), note=one.note)
    changed = round(sum(int(side.sum()) for side in one.changed) / len(one.changed))
    return Dataset(one.name, one.kind, len(one), changed, one.seeds, one.note)


def _width_notes(models: Sequence[Model]) -> list[str]:
    first = models[0]
    return [
        f"{model.name} is {model.width:,} wide and {first.name} {first.width:,}: "
        "no drift and no anchored distance"
        for model in models
        if model.width != first.width
    ]


def _sts_notes(work: _Work) -> list[str]:
    """Say where a correlation is left out: ranks of equal cosines have none."""
    return [
        f"{one.name}: all cosines of {model} are equal in {metric}, which is left out"
        for one in work.sets.sets
        for model, found in work.found.items()
        for metric, values in found[one.name].seeds.items()
        if one.kind == "sts" and not all(map(isfinite, values))
    ]


def _projection(work: _Work, one: PairSet) -> Projection:
    rows = examples.mapped_rows(one)
    texts = [(one.clean[row], one.noisy[0][row]) for row in rows]
    sides = work.mapped[one.name]
    return project(one.name, texts, work.anchors[one.group], sides, pairs_max=len(rows))


def _versions() -> dict[str, str]:
    found = {"noisegen": __version__}
    for name in _VERSIONS:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


# Files.


def write(results: Results, out: Path) -> None:
    """Write what the contract names; each file appears whole. Raises OutputError."""
    from noisegen.evaluation.report import write as write_report

    write_text(out / "metrics.json", _json(results.metrics()))
    write_text(out / "metrics.csv", metrics_csv(results))
    write_text(out / "results.json", _json(results.to_dict()))
    write_report(results, out / "report.html")


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


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
                told = [getattr(one, name) if one else None for name in _COMPARED]
                head = model, dataset, kinds[dataset], metric
                table.writerow((*head, score.value, score.low, score.high, score.sd, *told))
    return lines.getvalue()


_SCORE = ("model", "dataset", "kind", "metric", "value", "low", "high", "sd")
_COMPARED = ("difference", "test", "p", "p_holm", "repaired", "broken")
