"""The built-in transforms, each loaded by its entry point, and the paths of their data files."""

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
Forms = list[tuple[str, int]]  # possible noisy forms of a word, each with a whole-number weight


@dataclass(frozen=True)
class LanguageFiles:
    """A packaged word list or table: the file `name` in the dictionary folder of each language."""

    name: str

    def of(self, lang: str) -> Path:
        """Return the path of the file for a language; the file may not exist."""
        return DICTIONARIES / lang / self.name

    def read(self, settings: Settings, _: Mapping[str, Any]) -> list[Path]:
        """Return [path of the file for the language in `settings`], or [] if there is no file.

        A transform that reads the file is registered with this method, which lists its data files.
        """
        return existing(self.of(settings.lang))

    def read_or_any(self, settings: Settings, _: Mapping[str, Any]) -> list[Path]:
        """Return [path of the language's file]; if there is none, [path of the file for 'any']."""
        return existing(self.of(settings.lang)) or [self.of("any")]

    def languages(self) -> list[str]:
        """Return the names of the folders that contain the file: language codes, or 'any'."""
        return sorted(path.parent.name for path in DICTIONARIES.glob(f"*/{self.name}"))


def existing(*paths: Path) -> list[Path]:
    """Return a list of the paths whose files exist."""
    return [path for path in paths if path.exists()]


SPACES = " \t\n\r\v\f"
IS_SPACE, IS_BREAK, IS_END = is_byte(SPACES.encode()), is_byte(b"\n\r"), is_byte(b".!?")


def remembered(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    """Wrap `load`, which reads a file or folder, in a cache of its results.

    `load` is called again for a path if a file there has changed since (by modification time).
    """

    @lru_cache(maxsize=8)
    def as_written(path: Path, _: tuple[int, ...], *settings: str | None) -> Loaded:
        return load(path, *settings)

    def loaded(path: Path, *settings: str | None) -> Loaded:
        files = sorted(path.glob("*")) if path.is_dir() else [path] if path.exists() else []
        written = tuple(file.stat().st_mtime_ns for file in files if file.is_file())
        return as_written(path.resolve(), written, *settings)

    return loaded
