"""The allocator keeps what it frees."""

import subprocess
import sys

import pytest

RUN = """
import resource
import numpy as np
from noisegen.text.resources import keep_freed_memory
{call}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(1 << 20)
before = faults()
for _ in range(20):
    np.ones(1 << 20)  # 8 MiB
print(faults() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_large_arrays_are_not_cleared_again():
    """A page fault clears a page: without the call, every page of every array."""
    code = [RUN.format(call=call) for call in ("", "keep_freed_memory()")]
    plain, kept = (
        int(subprocess.run([sys.executable, "-c", one], capture_output=True, check=True).stdout)
        for one in code
    )
    assert kept < plain / 4 or plain < 2_000  # huge pages leave nothing to save
