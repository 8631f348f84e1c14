"""Pages of a file are given back, and what the file holds can still be read."""

from pathlib import Path

import numpy as np
import pytest

from noisegen.encoders.mapped import let_go
from noisegen.training.teacher_vectors import TeacherVectors
from noisegen.training.text_store import write_texts

STATUS = Path("/proc/self/status")
MEGABYTES = 48


def of_files():
    """Return the megabytes of files that count as memory of this process."""
    if not STATUS.exists():
        pytest.skip("only Linux says so")
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("RssFile"))
    return int(line.split()[1]) / 1000


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.npy"
    made = np.arange(MEGABYTES * 500_000, dtype=np.float16).reshape(-1, 500)
    np.save(path, made)
    return np.load(path, mmap_mode="r")


def test_pages_that_were_read_are_given_back(vectors):
    before = of_files()
    total = float(vectors.astype(np.float32).sum())
    read = of_files()
    let_go(vectors)

    assert read - before > 0.8 * MEGABYTES
    assert of_files() - before < 0.2 * MEGABYTES
    assert float(vectors.astype(np.float32).sum()) == total


def test_vectors_and_texts_that_were_taken_leave_nothing_in_memory(vectors, tmp_path):
    stored = TeacherVectors([vectors])
    texts = write_texts(tmp_path, "text", (f"{number} " * 600 for number in range(8_000)))
    before = of_files()
    rows = np.arange(0, 4_000, 7)

    assert (stored.take(rows) == vectors[rows]).all()
    assert texts.take(np.arange(8_000))[7_999].as_py() == "7999 " * 600
    stored.take(rows[:1])
    assert of_files() - before < 0.2 * MEGABYTES


def test_an_array_in_memory_is_left_alone():
    array = np.ones(3)
    let_go(array)
    assert array.sum() == 3
