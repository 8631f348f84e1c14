"""The memory allocator of the process."""

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt, from glibc's malloc.h
KEPT_BYTES = 256 << 20
ONE_BLOCK_MAX = 32 << 20  # glibc allows no more


@cache
def keep_freed_memory() -> None:
    """Let the C library keep freed memory for the next batch, up to `KEPT_BYTES`.

    By default it returns large arrays to the system at once, and the system clears each page again
    before it hands it out: a fifth of the time of a run. Without glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_MMAP_THRESHOLD, ONE_BLOCK_MAX)
    mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
