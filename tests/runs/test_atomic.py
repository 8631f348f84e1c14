"""Files and folders written at once: their modes are those of new ones."""

import os
import stat
import tempfile
import threading

import pytest
from runs import DEMO, augment, begin, end, left_over, wait_for

from noisegen.runs.atomic import atomic, atomic_folder, remove_left, write_text


@pytest.fixture(params=[0o022, 0o007])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def _modes(path):
    files = [path, *path.rglob("*")]
    return {(file.is_dir(), stat.S_IMODE(file.stat().st_mode)) for file in files}


def test_a_folder_follows_the_umask_whatever_a_library_wrote(tmp_path, umask):
    with atomic_folder(tmp_path / "student") as folder:
        (folder / "pooling").mkdir(mode=0o700)
        handle, _ = tempfile.mkstemp(dir=folder)  # 0600, as safetensors makes its files
        os.close(handle)

    assert _modes(tmp_path / "student") == {(True, 0o777 & ~umask), (False, 0o666 & ~umask)}
    assert [path.name for path in tmp_path.iterdir()] == ["student"]


def test_a_run_follows_the_umask(tmp_path, umask):
    augment(DEMO, tmp_path / "out", transforms=["week"], limit=3)

    assert _modes(tmp_path / "out") == {(True, 0o777 & ~umask), (False, 0o666 & ~umask)}


@pytest.mark.parametrize("out", ["out", "noisy.jsonl"])
def test_the_next_run_removes_what_a_killed_one_left(tmp_path, out):
    (tmp_path / "in.txt").write_text("see you tomorrow, my friend\n" * 120_000)
    options = ("-t", "spac", "--rows-per-shard", "30000", "--workers", "1")
    process = begin("augment", tmp_path / "in.txt", "-o", tmp_path / out, *options)
    wait_for(lambda: any(".parquet." in name or "noisy" in name for name in left_over(tmp_path)))
    end(process)
    assert left_over(tmp_path)

    augment(DEMO, tmp_path / out, transforms="spac", limit=3, force=True)

    assert left_over(tmp_path) == []


def test_the_files_of_others_who_write_are_left_alone(tmp_path):
    with atomic(tmp_path / "a.txt"), atomic(tmp_path / "a.txt.b"):
        (tmp_path / "a.txt.other-1.tmp").touch()  # of another machine
        before = left_over(tmp_path)
        remove_left(tmp_path)

        assert len(before) == 3
        assert left_over(tmp_path) == before


def test_a_file_that_is_being_written_is_not_what_was_left(tmp_path):
    """Parts that begin at once write the same note, and remove what others have left."""
    over = threading.Event()

    def clean():
        while not over.is_set():
            remove_left(tmp_path)

    cleaner = threading.Thread(target=clean)
    cleaner.start()
    try:
        for number in range(500):
            write_text(tmp_path / f"{number % 3}.json", str(number))
    finally:
        over.set()
        cleaner.join()

    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["497", "498", "499"]
