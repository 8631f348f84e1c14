"""Settings from outside: presets, a file, and single values, each over the last."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, TypeVar

import yaml

from noisegen.errors import UsageError, did_you_mean
from noisegen.training.preset import read_preset
from noisegen.training.run_settings import LENGTHS, RunSettings

S = TypeVar("S", bound=RunSettings)
_UNITS = {"s": 1, "m": 60, "h": 3600}
_RECORDED = ("version", "data")  # what config.yaml of a run says besides its settings


def load_settings(
    kind: type[S],
    preset: str,
    config: str | Path | None = None,
    values: Mapping[str, Any] | None = None,
) -> S:
    """Return a preset, changed by a file and then by single values; raises UsageError.

    `kind` is the class of settings of the preset's method.
    """
    known = {field.name: field for field in fields(kind)}
    merged: dict[str, Any] = {"preset": preset}
    for layer in (read_preset(preset).values, _read(Path(config)) if config else {}, values or {}):
        if layer.get("preset", preset) != preset:
            raise UsageError(f"setting preset: give it as --preset {layer['preset']}")
        if any(layer.get(name) is not None for name in LENGTHS):  # another length replaces one
            merged = {name: value for name, value in merged.items() if name not in LENGTHS}
        if foreign := [name for name in layer if name not in known]:
            near = did_you_mean(str(foreign[0]), known)
            raise UsageError(f"preset {preset} has no setting {foreign[0]!r}{near}")
        merged |= {name: _value(known[name], name, value) for name, value in layer.items()}
    return kind(**merged)


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


def _value(field: Field[Any], name: str, value: Any) -> Any:
    """Check the type of a value from outside; raises UsageError."""
    if name == "time_limit" and isinstance(value, str):
        return seconds(value)
    given = field.type
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
