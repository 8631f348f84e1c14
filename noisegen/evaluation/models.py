"""The models of an evaluation: names, the baseline, and how a student was trained."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from noisegen.encoders.encoder import Encoder
from noisegen.encoders.specs import names_model
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.naming import names_apart
from noisegen.evaluation.results import Model
from noisegen.training.claim import CONFIG, read_config

LOG_MAX = 20_000  # rows of a training log that are kept
STUDENT = "student"  # the folder of a training run that holds its model


@dataclass(frozen=True)
class Named:
    """A model that was asked for: its name in tables, and its SPEC."""

    name: str
    spec: str


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
        shown = "" if names == twice[0].spec else f", as {names}"
        raise UsageError(f"the model {twice[0].spec} is named twice{shown}")
    first = _named(baseline) if baseline else _teacher(models[0]) or models[0]
    others = [model for model in models if model.spec != first.spec]
    if baseline is None or "=" not in baseline:  # a name given with the models holds
        first = next((model for model in models if model.spec == first.spec), first)
    return _apart([first, *others])


def _named(given: str) -> Named:
    name, equals, spec = given.partition("=")
    if equals and spec and not Path(given).exists() and not set(name) & set("/\\:"):
        return Named(name, spec)
    return Named(_short(given), given)


def _short(spec: str) -> str:
    """Return a short name: of RUN/student RUN, of a folder its last part, else the SPEC."""
    path = Path(spec)
    if not path.is_dir():
        return spec
    path = path.resolve()
    return path.parent.name if path.name == STUDENT and path.parent.name else path.name


def _apart(models: Sequence[Named]) -> list[Named]:
    names = names_apart([model.name for model in models])
    return [Named(name, model.spec) for name, model in zip(names, models, strict=True)]


def _teacher(model: Named) -> Named | None:
    run = _run_of(model.spec)
    teacher = (read_config(run) or {}).get("teacher") if run else None
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


def training_of(models: Sequence[Named]) -> dict[str, Any] | None:
    """Return config and log of the first model that a run of ours made; None where none was.

    What is missing or cannot be read is left out: the report then has no learning curve.
    """
    for model in models:
        run = _run_of(model.spec)
        if run is not None and (config := read_config(run)) is not None:
            return {"model": model.name, "config": config, "log": _log(run / "log.jsonl")}
    return None


def _log(path: Path) -> list[dict[str, Any]]:
    rows = []
    try:
        with path.open(encoding="utf-8") as file:
            for line, _ in zip(file, range(LOG_MAX), strict=False):
                row = _row(line)
                if row:
                    rows.append(row)
    except (OSError, UnicodeDecodeError):
        return rows
    return rows


def _row(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:  # cut short by a stop
        return {}
    return found if isinstance(found, dict) else {}


def opened(model: Named) -> Encoder:
    """Open a model; raises UsageError or SourceError naming it."""
    from noisegen.encoders.specs import open_encoder

    try:
        return open_encoder(model.spec)
    except SourceError as error:
        raise SourceError(f"model {model.name}: {error}") from error


def described(model: Named, encoder: Encoder, *, baseline: bool) -> Model:
    """Return what tables and the report say of a model."""
    weights = getattr(encoder, "parameters", None)
    count = sum(one.numel() for one in weights()) if callable(weights) else None
    return Model(model.name, model.spec, encoder.width, encoder.digest, count, baseline)
