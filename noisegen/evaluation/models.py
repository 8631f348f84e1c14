"""Name the models of an evaluation, choose the baseline, find the training run of a student."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from noisegen.encoders.encoder import Encoder, names_model, open_encoder
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.sets import unique_names
from noisegen.runs.folder import read_config
from noisegen.runs.progress import Progress, Show

LOG_MAX = 20_000  # rows of a training log that are read
STUDENT, LOG = "student", "log.jsonl"  # model and log in the folder of a training run


@dataclass(frozen=True)
class NamedModel:
    """Model to evaluate: its name in tables, and its SPEC (a model name or a folder)."""

    name: str
    spec: str


def named_models(specs: Sequence[str], baseline: str | None) -> list[NamedModel]:
    """Return the models to evaluate, each with a unique name; the baseline comes first.

    A SPEC may be NAME=SPEC. If noisegen trained the first model, the default baseline is its
    teacher, else the first model itself. Raises UsageError for no model, for a model given twice,
    and for a teacher that is not found.
    """
    if not specs:
        raise UsageError("no model to evaluate: give one, such as minilm or RUN/student")
    models = [_named(spec) for spec in specs]
    _check_distinct(models)
    first = _baseline(baseline, models)
    models = [first, *(model for model in models if model.spec != first.spec)]
    unique = unique_names([model.name for model in models])
    return [replace(model, name=name) for name, model in zip(unique, models, strict=True)]


def _check_distinct(models: Sequence[NamedModel]) -> None:
    """Raise UsageError for two models with the same SPEC."""
    for first, second in combinations(models, 2):
        if first.spec == second.spec:
            names = " and ".join(dict.fromkeys((first.name, second.name)))
            aliases = "" if names == first.spec else f", as {names}"
            raise UsageError(f"the model {first.spec} is given twice{aliases}")


def _baseline(given: str | None, models: Sequence[NamedModel]) -> NamedModel:
    """Return the baseline: the model `given`, or the default that `named_models` describes.

    A baseline that is also in `models` keeps its name from there, unless `given` is NAME=SPEC.
    """
    baseline = _named(given) if given else _teacher(models[0]) or models[0]
    if given and "=" in given:
        return baseline
    return next((model for model in models if model.spec == baseline.spec), baseline)


def _named(given: str) -> NamedModel:
    """Parse NAME=SPEC.

    Without NAME, the folder RUN/student is called RUN, and any other folder by its own name.
    """
    name, equals, spec = given.partition("=")
    if equals and spec and not Path(given).exists() and not set(name) & set("/\\:"):
        return NamedModel(name, spec)
    if not Path(given).is_dir():
        return NamedModel(given, given)
    path = Path(given).resolve()
    is_student = path.name == STUDENT and path.parent.name
    return NamedModel(path.parent.name if is_student else path.name, given)


def _teacher(model: NamedModel) -> NamedModel | None:
    """Return the teacher of a student that noisegen trained; None for other models.

    Raises UsageError if the teacher is not found.
    """
    teacher = (_config(model) or {}).get("teacher")
    if not isinstance(teacher, str) or not teacher:
        return None
    if not names_model(teacher):  # a path relative to the folder in which the training was started
        raise UsageError(
            f"the teacher of {model.spec} was {teacher!r}, which is not found here: give --baseline"
        )
    return _named(teacher)


def _config(model: NamedModel) -> dict[str, Any] | None:
    """Return the configuration of the training run that made a student; None for other models."""
    return read_config(Path(model.spec).resolve().parent) if Path(model.spec).is_dir() else None


def training_of(models: Sequence[NamedModel]) -> dict[str, Any] | None:
    """Return the training run of the first model that noisegen trained: name, config and log.

    Returns None if noisegen trained none of the models. If the log is missing or cannot be read,
    its list of rows is empty, and the report has no learning curve.
    """
    for model in models:
        if (config := _config(model)) is None:
            continue
        log, path = [], Path(model.spec).resolve().parent / LOG
        with suppress(OSError, UnicodeDecodeError), path.open(encoding="utf-8") as file:
            for line in islice(file, LOG_MAX):
                with suppress(json.JSONDecodeError):  # a line that a stopped run left incomplete
                    log.append(json.loads(line))
        rows = [row for row in log if isinstance(row, dict) and row]
        return {"model": model.name, "config": config, "log": rows}
    return None


def open_all(models: Sequence[NamedModel], progress: Show) -> dict[str, Encoder]:
    """Open all models, and return them by name.

    Opening all of them first makes a wrong SPEC fail before minutes of work on other models. Raises
    UsageError, or SourceError that names the model.
    """
    encoders = {}
    for model in models:
        progress(Progress(f"opening {model.name}"))
        try:
            encoders[model.name] = open_encoder(model.spec)
        except SourceError as error:
            raise SourceError(f"model {model.name}: {error}") from error
    return encoders
