"""Presets: files that say how a paper, or a quick start, trains."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from noisegen.errors import UsageError, did_you_mean

FOLDER = Path(__file__).parent / "presets"
DEFAULT = "quickstart"


@dataclass(frozen=True)
class Preset:
    """A method of training, and values for its settings; the other fields tell people of it.

    `paper` names what it follows, `data` what it reads, `cost` what that took whom, `command` what
    to type, `table` what gives the paper's kind of table (`python -m benchmarks...`: a small one,
    from a clone of the repository).
    """

    name: str
    method: str
    paper: str
    data: str
    cost: str
    command: str
    table: str
    values: Mapping[str, Any] = field(repr=False)

    @property
    def objective(self) -> str:
        """What is minimised."""
        return str(self.values.get("objective", ""))

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def preset_names() -> list[str]:
    """Return the names of all presets, the default one first."""
    names = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    return [DEFAULT, *(name for name in names if name != DEFAULT)]


def read_preset(name: str) -> Preset:
    """Return a preset; raises UsageError."""
    if name not in (names := preset_names()):
        raise UsageError(
            f"no preset {name!r} among {', '.join(names)}{did_you_mean(str(name), names)}"
        )
    values = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    return Preset(name, values["method"], **values.pop("about"), values=values)
