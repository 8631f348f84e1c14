"""Keys come back range by range: all of them, once, in bounded parts."""

from itertools import pairwise

import numpy as np

from noisegen.preparation.duplicates import equal_ranges
from noisegen.preparation.intermediate import key_writer, keys_between


def drawn(seed, size):
    draw = np.random.default_rng(seed)
    keys = draw.integers(0, 1 << 64, size, np.uint64, endpoint=False)
    return np.stack([keys, draw.integers(0, 9, size, np.uint64), np.arange(size, dtype=np.uint64)])


def write(path, parts):
    with key_writer(path, "key", "mark", "row", held_max=300) as add:
        for columns in parts:
            add(*columns)


def test_all_entries_come_back_once_in_ascending_ranges(tmp_path):
    parts = [
        [drawn(1, 250), drawn(2, 200)],
        [drawn(3, 450), drawn(6, 450), drawn(4, 0)],
        [drawn(5, 0)],
    ]
    paths = [tmp_path / f"{number}.arrow" for number in range(3)]
    for path, columns in zip(paths, parts, strict=True):
        write(path, columns)
    tasks = equal_ranges(1 << 64, 4)
    found = [keys_between(paths, [0, 1_000, 5_000], *task[1:]) for task in tasks]
    first, second = (np.concatenate(columns, axis=1) for columns in parts[:2])
    second[2] += np.uint64(1_000)
    wanted = np.concatenate([first, second], axis=1)
    assert sorted(np.concatenate(found, axis=1).T.tolist()) == sorted(wanted.T.tolist())
    assert len(found) > 2
    for one, after in pairwise(found):
        assert one[0].max() < after[0].min()
    assert max(part.shape[1] for part in found) < 500


def test_the_least_and_the_greatest_key(tmp_path):
    keys = np.array([0, (1 << 64) - 1], np.uint64)
    write(tmp_path / "a.arrow", [(keys, keys, [0, 1])])
    [task] = equal_ranges(1 << 64, 1)
    found, _, rows = keys_between([tmp_path / "a.arrow"], [10], *task[1:])
    assert found.tolist() == keys.tolist()
    assert rows.tolist() == [10, 11]
