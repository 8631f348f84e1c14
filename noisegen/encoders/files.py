"""Files of a model's folder: read as data, and refused in one line."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from noisegen.errors import SourceError

_SHOWN: dict[type, str] = {dict: "an object", list: "a list"}


def read_json(path: Path, kind: type = dict) -> Any:
    """Return an object, or a list, of JSON; raises SourceError."""
    try:
        said = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"cannot read {path}: {error}") from error
    if not isinstance(said, kind):
        raise SourceError(f"{path} does not hold {_SHOWN[kind]}")
    return said


def write_json(path: Path, value: Any) -> None:
    """Write JSON that people can read."""
    path.write_text(json.dumps(value, indent=1) + "\n", "utf-8")


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file; raises SourceError."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"cannot read {path}: {reason}{pickled_hint(path.parent)}") from error


def pickled_hint(folder: Path) -> str:
    """Return what to do about weights that are pickled only, "" where they are not."""
    pickled = any(folder.glob("*.bin")) or any(folder.glob("*.pt"))
    if pickled and not any(folder.glob("*.safetensors")):
        return "; its weights are pickled: convert them to model.safetensors"
    return ""
