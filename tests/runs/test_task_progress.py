"""Progress inside tasks that take long."""

import threading
import time
from collections import Counter

import pytest

from noisegen.runs import progress


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_UPDATES", 0.02)


def wait_for(condition, seconds=5.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_what_running_tasks_have_read_is_added_up_and_gone_when_they_end(tmp_path):
    read = [Counter(), Counter()]
    seen: list[Counter[str]] = []
    with progress.watching(tmp_path, seen.append):
        with (
            progress.publishing(tmp_path / "part-0.live.tmp", read[0]),
            progress.publishing(tmp_path / "part-1.live.tmp", read[1]),
        ):
            read[0]["pages"] = 3
            read[1].update(pages=4, bytes=10)
            wait_for(lambda: seen and seen[-1] == {"pages": 7, "bytes": 10})
        wait_for(lambda: not seen[-1])
    assert list(tmp_path.iterdir()) == []


def test_a_half_written_note_and_a_folder_that_is_gone_harm_nobody(tmp_path):
    (tmp_path / "part-0.live.tmp").write_text('{"pages"')
    assert not progress.running(tmp_path)
    before = threading.active_count()
    with progress.publishing(tmp_path / "gone" / "part-0.live.tmp", {}):
        wait_for(lambda: threading.active_count() == before)
