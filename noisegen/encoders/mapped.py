"""Memory-mapped arrays: pages that were read count as memory of the process until it lets go."""

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def let_go(array: npt.NDArray[np.generic]) -> None:
    """Give the pages of a memory-mapped array back; a later read takes them from the file again.

    Does nothing to other arrays, and where the system has no such advice.
    """
    pages: Any = getattr(array, "_mmap", None)
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
