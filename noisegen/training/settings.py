"""What a training run is asked to do: presets, a file, and single values, each over the last."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import Any

import yaml

from noisegen.errors import UsageError, did_you_mean

PRESETS = Path(__file__).parent / "presets"
_UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Settings:
    """All that decides a run; `config.yaml` of the run says the same.

    The length is `epochs`, `steps` (updates) or `time_limit` (seconds, or 90s, 10m, 2h), in which
    the learning rate then falls to 0 (`schedule` linear) or stays (`constant`).
    """

    preset: str = "quickstart"
    teacher: str = "minilm"
    student: str = "copy"  # copy, layers:0,3,5, char, or a SPEC of a folder
    objective: str = "two_term"  # names of losses.py with weights: two_term+0.2*info_nce
    noise: str = "stored"  # or recipes: noise anew in every epoch, of stored+ugc+mix_all one a row
    lang: str = "en"
    pooling: str | None = None  # mean, max, cls; None: the student's own
    project: str | None = None  # before, after pooling; None: no projection
    projection_bias: bool = True
    normalize: bool | None = None  # None: as the teacher
    lower: bool = False  # put text in small letters first
    freeze: tuple[str, ...] = ()  # beginnings of names of weights that are not trained
    epochs: float | None = None
    steps: int | None = None
    time_limit: float | None = None
    batch_tokens: int = 2048  # of one process, padding included
    accumulate: int = 1  # batches per update
    max_length: int = 128
    lr: float = 1e-4
    warmup: int = 40  # updates
    schedule: str = "linear"
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip: float = 1.0
    dropout: float = 0.0
    temperature: float = 0.05
    negatives: int = 1024  # teacher's vectors of other texts, for contrastive objectives
    hard_negatives: int = 0  # for each text so many with one thing altered; the teacher reads them
    precision: str = "auto"  # bf16, fp32
    packed: bool | None = None  # rows without padding; None: on CUDA in bf16 without dropout
    compile: bool = False  # the network by torch.compile, for packed batches on CUDA
    validation_rows: int = 500
    validate_every: int = 500  # updates
    keep: int = 3  # checkpoints
    interpolate: float = 1.0  # share of what was trained in the student's weights, else its start's
    max_drift: float | None = None  # stop when 1 - cos(T[clean], S[clean]) is above
    seed: int = 0

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            if not check(getattr(self, name)):
                raise UsageError(f"{name} {getattr(self, name)!r} is not {_MEANT[name]}")
        lengths = [n for n in ("epochs", "steps", "time_limit") if getattr(self, n) is not None]
        if len(lengths) != 1:
            given = " and ".join(lengths) or "none of them"
            raise UsageError(f"give one of --epochs, --steps, --time-limit (not {given})")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as they stand in config.yaml."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


_CHECKS: dict[str, Any] = {
    "pooling": lambda v: v in (None, "mean", "max", "cls"),
    "project": lambda v: v in (None, "before", "after"),
    "schedule": lambda v: v in ("linear", "constant"),
    "precision": lambda v: v in ("auto", "bf16", "fp32"),
    **dict.fromkeys(("batch_tokens", "accumulate", "validate_every", "keep", "validation_rows"),
                    lambda v: v >= 1),
    **dict.fromkeys(("epochs", "steps", "time_limit"), lambda v: v is None or 0 < v < inf),
    **dict.fromkeys(("lr", "eps", "temperature"), lambda v: 0 < v < inf),
    "clip": lambda v: v > 0,  # inf clips nothing
    **dict.fromkeys(("warmup", "weight_decay", "negatives", "hard_negatives"),
                    lambda v: 0 <= v < inf),
    "seed": lambda v: 0 <= v < 2**32,  # torch takes 64 bits, dropout multiplies it
    "betas": lambda v: all(0 <= beta < 1 for beta in v),
    "dropout": lambda v: 0 <= v < 1,
    "interpolate": lambda v: 0 < v <= 1,
    "max_length": lambda v: v >= 8,
    "max_drift": lambda v: v is None or v > 0,
}  # fmt: skip
_MEANT = {
    "pooling": "mean, max or cls", "project": "before or after",
    "schedule": "linear or constant", "precision": "auto, bf16 or fp32",
    **dict.fromkeys(("batch_tokens", "accumulate", "validate_every", "keep", "validation_rows"),
                    "at least 1"),
    **dict.fromkeys(("clip", "max_drift"), "above 0"),
    **dict.fromkeys(("epochs", "steps", "time_limit", "lr", "eps", "temperature"),
                    "above 0 and finite"),
    **dict.fromkeys(("warmup", "weight_decay", "negatives", "hard_negatives"),
                    "0 or more, and finite"),
    "seed": "from 0 to below 2**32", "betas": "two numbers from 0 to below 1",
    "dropout": "from 0 to below 1", "interpolate": "above 0, at most 1", "max_length": "at least 8",
}  # fmt: skip
_FIELDS = {field.name: field for field in fields(Settings)}
_LENGTHS = ("epochs", "steps", "time_limit")
_RECORDED = ("version", "data")  # what config.yaml of a run says besides its settings


def load_settings(
    preset: str = "quickstart",
    config: str | Path | None = None,
    values: Mapping[str, Any] | None = None,
) -> Settings:
    """Return a preset, changed by a file and then by single values; raises UsageError."""
    path = PRESETS / f"{preset}.yaml"
    if not path.is_file():
        names = sorted(one.stem for one in PRESETS.glob("*.yaml"))
        near = did_you_mean(preset, names)
        raise UsageError(f"no preset {preset!r} among {', '.join(names)}{near}")
    merged: dict[str, Any] = {"preset": preset}
    for layer in (_read(path), _read(Path(config)) if config else {}, values or {}):
        if layer.get("preset", preset) != preset:
            raise UsageError(f"setting preset: give it as --preset {layer['preset']}")
        if any(layer.get(name) is not None for name in _LENGTHS):  # another length replaces one
            merged = {name: value for name, value in merged.items() if name not in _LENGTHS}
        merged |= {name: _value(name, value) for name, value in layer.items()}
    return Settings(**merged)


def changed(settings: Settings, **values: Any) -> Settings:
    """Return the settings with other values; raises UsageError."""
    return replace(settings, **values)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path} is not a mapping of settings to values")
    return {name: value for name, value in found.items() if name not in _RECORDED}


def parse_values(given: Sequence[str]) -> dict[str, Any]:
    """Read KEY=VALUE pairs, values as in YAML; raises UsageError."""
    values = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise UsageError(f"--set {one!r}: write KEY=VALUE")
        try:
            values[name] = yaml.safe_load(value)
        except (ValueError, yaml.YAMLError):
            raise UsageError(f"--set {one!r}: the value is no YAML; put text in quotes") from None
    return values


def _value(name: str, value: Any) -> Any:
    """Check the type of a value from outside; raises UsageError."""
    if name not in _FIELDS:
        raise UsageError(f"no setting {name!r}{did_you_mean(str(name), _FIELDS)}")
    if name == "time_limit" and isinstance(value, str):
        return seconds(value)
    given = _FIELDS[name].type
    kind = given.__name__ if type(given) is type else str(given)
    if value is None and "None" in kind:
        return None
    read, wanted = _READERS[kind.removesuffix(" | None")]
    try:
        return read(value)
    except (TypeError, ValueError, OverflowError, LookupError):
        raise UsageError(f"setting {name}: {value!r} is not {wanted}") from None


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or int(value) != float(value):
        raise ValueError
    return int(value)


def _two(values: Any) -> tuple[float, float]:
    first, second = values
    return float(first), float(second)


def _names(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value))


_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "str": (str, "text"),
    "bool": (_flag, "true or false"),
    "int": (_whole, "a whole number"),
    "float": (float, "a number"),
    "tuple[str, ...]": (_names, "a list of names"),
    "tuple[float, float]": (_two, "two numbers"),
}


def seconds(text: str) -> float:
    """Read 90, 90s, 10m or 2h; raises UsageError."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        return float(number) * _UNITS[unit]
    except ValueError:
        raise UsageError(f"time {text!r}: write 90s, 10m or 2h") from None
