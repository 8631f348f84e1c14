"""Stand-ins for the packages of extras, so that the site is built on the core alone.

The page of the public names shows functions such as `train`, whose modules import torch. The page
has their signatures and docstrings, so no function is called.
"""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from noisegen.errors import EXTRAS


class _Names(type):
    """The type of `StandIn`: any attribute of the class is the class itself."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class StandIn(metaclass=_Names):
    """A class in place of any class, function or value; as a decorator it changes nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __call__(self, decorated: Any) -> Any:
        """Return a decorated function as it is."""
        return decorated


class _Finder:
    """Finds and makes the stand-ins of the packages that are missing, and of their modules."""

    def __init__(self, missing: set[str]) -> None:
        self.missing = missing

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        missing = name.partition(".")[0] in self.missing
        return ModuleSpec(name, self, is_package=True) if missing else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__getattr__ = lambda name: getattr(StandIn, name)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it was made."""


def install() -> None:
    """Let imports of the missing packages find their stand-ins."""
    sys.meta_path.append(_Finder({name for name in EXTRAS if not find_spec(name)}))
