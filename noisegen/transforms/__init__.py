"""The built-in transforms, each loaded by its entry point, and where their packaged data lies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from noisegen.noising.registry import Settings
from noisegen.text.buffers import is_byte
from noisegen.text.resources import DICTIONARIES
from noisegen.text.resources import rows_of as rows_of

Loaded = TypeVar("Loaded")
Forms = list[tuple[str, int]]  # the possible forms of a word, with whole-number weights


@dataclass(frozen=True)
class LanguageFiles:
    """A packaged word list or table: the file of this name in the folder of each language."""

    name: str

    def of(self, lang: str) -> Path:
        """Return the file of a language, which may not exist."""
        return DICTIONARIES / lang / self.name

    def read(self, settings: Settings, _: Mapping[str, Any]) -> list[Path]:
        """Return the file of the settings' language, if it exists (the `data` of a transform)."""
        return existing(self.of(settings.lang))

    def read_or_any(self, settings: Settings, _: Mapping[str, Any]) -> list[Path]:
        """Return the file of the settings' language, or else the file for any language."""
        return existing(self.of(settings.lang)) or [self.of("any")]

    def languages(self) -> list[str]:
        """Return the languages that have the file."""
        return sorted(path.parent.name for path in DICTIONARIES.glob(f"*/{self.name}"))


def existing(*paths: Path) -> list[Path]:
    """Return the files that exist."""
    return [path for path in paths if path.exists()]


SPACES = " \t\n\r\v\f"
IS_SPACE, IS_BREAK, IS_END = is_byte(SPACES.encode()), is_byte(b"\n\r"), is_byte(b".!?")


def remembered(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    """Cache the loader of a user's file or folder; a file that changed is loaded again."""

    @lru_cache(maxsize=8)
    def as_written(path: Path, _: tuple[int, ...], *settings: str | None) -> Loaded:
        return load(path, *settings)

    def loaded(path: Path, *settings: str | None) -> Loaded:
        files = sorted(path.glob("*")) if path.is_dir() else [path] if path.exists() else []
        written = tuple(file.stat().st_mtime_ns for file in files if file.is_file())
        return as_written(path.resolve(), written, *settings)

    return loaded
