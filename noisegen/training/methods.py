"""What `train` trains: each preset has a method, and each method a function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from noisegen.training.preset import DEFAULT, read_preset


@dataclass(frozen=True)
class Method:
    """Where its `train` is, and the objectives that only it has, with the preset they ask for."""

    home: str
    objectives: tuple[str, ...] = ()
    preset: str = DEFAULT


METHODS: Mapping[str, Method] = {
    "distil": Method("noisegen.training.run"),
    "pretrain": Method("noisegen.pretraining.run", ("mlm",), "rcp-small"),
    "heads": Method("noisegen.disentangling.run", ("dream", "meat", "oracle"), "oracle-small"),
}


def train(
    data: Sequence[str],
    out: str | Path,
    *,
    preset: str | None = None,
    values: Mapping[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Train what the preset says, or where none is given, what the objective belongs to.

    Arguments, files and errors are those of `noisegen.training.run.train`.
    """
    preset = preset or preset_for(str((values or {}).get("objective", "")))
    home = METHODS[read_preset(preset).method].home
    run = cast(Callable[..., dict[str, Any]], import_module(home).train)
    return run(data, out, preset=preset, values=values, **options)


def preset_for(objective: str) -> str:
    """Return the preset of the method that has the first part of an objective."""
    first = objective.partition("+")[0].rpartition("*")[2].partition(":")[0].strip()
    return next((one.preset for one in METHODS.values() if first in one.objectives), DEFAULT)
