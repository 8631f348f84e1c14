"""Paths of packaged data, the folder of caches, and the memory allocator of the process."""

import os
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
DICTIONARIES = PACKAGE / "dictionaries"
RECIPES = PACKAGE / "recipes"
DEFAULT_RECIPE = "ugc"
DEMO = PACKAGE / "demo" / "demo.tsv"
EXAMPLE_PAIRS = DEMO.with_name("pairs.tsv")
EXAMPLE_CASUAL = DEMO.with_name("casual.txt")

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # options M_TRIM_THRESHOLD, M_MMAP_THRESHOLD of mallopt
KEPT_BYTES = 64 << 20  # freed memory that the process keeps for later use
ONE_BLOCK_MAX = 32 << 20  # memory of larger arrays is not kept; glibc allows no higher limit


def cache_folder() -> Path:
    """Return noisegen's cache folder: $NOISEGEN_CACHE, or a folder in the user's cache folder."""
    from platformdirs import user_cache_path

    return Path(os.environ.get("NOISEGEN_CACHE") or user_cache_path("noisegen", appauthor=False))


def rows_of(path: Path) -> list[list[str]]:
    """Return the rows of a packaged table as lists of fields, which tabs separate in the file.

    Comments and the header line are left out.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("# ")][1:]


@cache
def keep_freed_memory() -> None:
    """Let the C library keep up to `KEPT_BYTES` of freed memory for the next batch.

    By default, the library returns the memory of large arrays to the system at once. The system
    then clears each page before it is used again, which takes a fifth of the time of a run. Without
    glibc, this function does nothing.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, ONE_BLOCK_MAX)
    mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
