"""Memory that does not grow with the input, measured as `benchmarks.memory` does."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.memory import CASES, measured

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("name", ["review make", "review report", "preview"])
def test_ten_times_the_input_takes_no_more_memory(name: str, tmp_path: Path) -> None:
    result = measured(name, CASES[name], tmp_path)
    assert result.met, str(result)


def test_a_row_of_30_megabytes_takes_less_than_a_gigabyte(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("see you tomorrow, my friends, @Bob " * 880_000 + "\n")
    words = ["augment", "in.txt", "-o", "out", "-t", "fing:rate=1", "--workers", "1", "-q"]
    # Of a small process: a child has what its parent held when it was forked in its peak.
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    words = [sys.executable, "-c", code, sys.executable, "-m", "noisegen", *words]
    made = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert int(made.stdout) < 1 << 20  # of kB
