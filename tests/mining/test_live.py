"""Progress inside tasks that take long."""

import threading
import time
from collections import Counter

import pytest

from noisegen.cli.progress import mining_progress
from noisegen.mining import live
from noisegen.mining.pairs import Account


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(live, "SECONDS", 0.02)


def wait_for(condition, seconds=5.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_what_running_tasks_have_read_is_added_up_and_gone_when_they_end(tmp_path):
    accounts = [Account(), Account()]
    seen: list[Counter[str]] = []
    with live.watched(tmp_path, seen.append):
        with (
            live.telling(tmp_path / "part-0.live.tmp", accounts[0]),
            live.telling(tmp_path / "part-1.live.tmp", accounts[1]),
        ):
            accounts[0].read["pages"] = 3
            accounts[1].read.update(pages=4, bytes=10)
            wait_for(lambda: seen and seen[-1] == {"pages": 7, "bytes": 10})
        wait_for(lambda: not seen[-1])
    assert list(tmp_path.iterdir()) == []


def test_a_half_written_note_and_a_folder_that_is_gone_harm_nobody(tmp_path):
    (tmp_path / "part-0.live.tmp").write_text('{"pages"')
    assert not live.running(tmp_path)
    before = threading.active_count()
    with live.telling(tmp_path / "gone" / "part-0.live.tmp", Account()):
        wait_for(lambda: threading.active_count() == before)


def test_the_line_says_files_pairs_and_speed(capfd, monkeypatch):
    monkeypatch.setattr("noisegen.cli.progress.SECONDS_BETWEEN_LINES", 0)
    with mining_progress(False) as (add, running):
        add(type("Mined", (), {"rows": 2, "read": {"pages": 1, "bytes": 5_000_000}}))
        running(Counter(pages=2, revisions=9, bytes=1_000_000))
    line = capfd.readouterr().err
    assert line.startswith("1 files done, 2 pairs; 3 pages, 9 revisions, ")
    assert line.endswith(" MB/s\n")
    with mining_progress(True) as nothing:
        assert nothing == (None, None)
