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


@pytest.mark.parametrize(
    ("megabytes", "options", "most"), [(30, (), 1 << 30), (10, ("--edits",), 500_000_000)]
)
def test_a_huge_row(tmp_path: Path, megabytes: int, options: tuple[str, ...], most: int) -> None:
    # 10 MB with edits take 433 to 440 MB in five runs, and took 1,350 without windows.
    text = "see you tomorrow, my friends, @Bob "
    (tmp_path / "in.txt").write_text(text * (megabytes * 1_000_000 // len(text)) + "\n")
    words = ["augment", "in.txt", "-o", "out", "-t", "fing:rate=1", "--workers", "1", "-q"]
    # Of a small process: a child has what its parent held when it was forked in its peak.
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    words = [sys.executable, "-c", code, sys.executable, "-m", "noisegen", *words, *options]
    made = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert int(made.stdout) * 1024 < most
