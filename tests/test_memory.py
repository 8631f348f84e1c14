"""Memory that does not grow with the input, measured as `benchmarks.memory` does."""

from pathlib import Path

import pytest

from benchmarks.memory import CASES, measured

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("name", ["review make", "review report", "preview"])
def test_ten_times_the_input_takes_no_more_memory(name: str, tmp_path: Path) -> None:
    result = measured(name, CASES[name], tmp_path)
    assert result.met, str(result)
