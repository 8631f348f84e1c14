"""Files and folders written at once: their modes are those of new ones."""

import os
import stat
import tempfile

import pytest
from runs import DEMO, augment

from noisegen.runs.atomic import atomic_folder


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
