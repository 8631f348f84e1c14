"""Keys come back range by range: all of them, once, in bounded parts."""

from itertools import pairwise

import numpy as np
import pytest

from noisegen.prepare import duplicates
from noisegen.prepare.duplicates import KeyWriter, ranges


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(duplicates, "HELD", 300)
    monkeypatch.setattr(duplicates, "GROUP", 50)
    monkeypatch.setattr(duplicates, "RANGE", 400)


def write(path, parts):
    with path.open("wb") as file:
        writer = KeyWriter(file)
        for part in parts:
            writer.add(*part)
        writer.close()
    return path


def drawn(seed, size):
    draw = np.random.default_rng(seed)
    return (
        draw.integers(0, 1 << 64, size, np.uint64, endpoint=False),
        draw.integers(0, 9, size, np.uint64),
        np.arange(size),
    )


@pytest.mark.usefixtures("small")
def test_all_entries_come_back_once_in_ascending_ranges(tmp_path):
    first = [drawn(1, 250), drawn(2, 200), drawn(3, 7)]
    second = [drawn(4, 900), drawn(5, 0)]
    paths = [write(tmp_path / "a", first), write(tmp_path / "b", second), write(tmp_path / "c", [])]
    found = list(ranges(paths, [0, 1_000, 5_000]))
    wanted = [(k, m, r) for part in first for k, m, r in zip(*part, strict=True)]
    wanted += [(k, m, r + 1_000) for k, m, r in zip(*second[0], strict=True)]
    assert sorted(row for part in found for row in zip(*part, strict=True)) == sorted(wanted)
    assert len(found) > 2
    for one, after in pairwise(found):
        assert one[0].max() < after[0].min()
    assert max(len(keys) for keys, _, _ in found) < 500


@pytest.mark.usefixtures("small")
def test_row_groups_outside_of_a_range_are_not_read(tmp_path, monkeypatch):
    path = write(tmp_path / "a", [drawn(1, 5_000)])
    read = []
    whole = duplicates.pq.ParquetFile.read_row_groups

    def counted(file, groups, **options):
        read.append(len(groups))
        return whole(file, groups, **options)

    monkeypatch.setattr(duplicates.pq.ParquetFile, "read_row_groups", counted)
    parts = list(ranges([path], [0]))
    assert len(parts) == 13
    assert max(read) <= 5_000 / 50 / 13 + 2


def test_the_least_and_the_greatest_key(tmp_path):
    keys = np.array([0, (1 << 64) - 1], np.uint64)
    path = write(tmp_path / "a", [(keys, keys, np.array([0, 1]))])
    [(found, _, places)] = ranges([path], [10])
    assert found.tolist() == keys.tolist()
    assert places.tolist() == [10, 11]
