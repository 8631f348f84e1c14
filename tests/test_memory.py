"""Memory that does not grow with the input, measured as `benchmarks.memory` does."""

import os
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
    process = subprocess.Popen([sys.executable, "-m", "noisegen", *words], cwd=tmp_path)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert usage.ru_maxrss < 1 << 20  # of kB
