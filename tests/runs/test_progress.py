"""Events, their rates and times left, and progress inside tasks that take long."""

import threading
import time
from collections import Counter

import pytest

from noisegen.runs import progress
from noisegen.runs.progress import BYTES, Pace, Progress, Tracker, duration, percent, size


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_UPDATES", 0.02)


def wait_for(condition, seconds=5.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def paced(*timed):
    pace = Pace()
    for seconds, event in timed:
        pace.add(event, seconds)
    return pace


# Events.


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Progress("encoding", 300, 1_200, "texts"), "encoding, 25%, 300 of 1,200 texts"),
        (Progress("opening minilm"), "opening minilm"),
        (
            Progress("noising", 50, unit="rows", counts={"shards": 2, "files": 0}, share=0.999),
            "noising, 99%, 50 rows, 2 shards",
        ),
        (
            Progress("mining", 31e5, 72e8, BYTES, {"pairs": 12_345}),
            "mining, 0%, 3.1 MB of 7.2 GB, 12,345 pairs",
        ),
        (
            Progress("training", 1_000, unit="pairs", share=0.5, note="loss 0.1234"),
            "training, 50%, 1,000 pairs, loss 0.1234",
        ),
    ],
)
def test_an_event_is_one_line(event, line):
    assert event.line(paced((0.0, event))) == line


def test_rate_and_time_left_come_of_the_events_of_a_stage():
    start = Progress("noising", 0, unit="rows", share=0.0)
    later = Progress("noising", 3_000, unit="rows", share=0.25)
    line = later.line(paced((5.0, start), (35.0, later)))
    assert line == "noising, 25%, 3,000 rows, 100 rows/s, 1 min 30 s left"
    read = Progress("mining", 3e6, 9e6, BYTES)
    line = read.line(paced((0.0, Progress("mining", 0, 9e6, BYTES)), (2.0, read)))
    assert line == "mining, 33%, 3.0 MB of 9.0 MB, 1.5 MB/s, 4 s left"


def test_what_a_resumed_run_has_counts_for_the_share_and_not_for_the_rate():
    start = Progress("noising", 6_000, unit="rows", share=0.6)
    later = Progress("noising", 7_000, unit="rows", share=0.7)
    pace = paced((0.0, start), (10.0, later))
    assert (pace.rate, round(pace.left)) == (100, 30)


def test_a_rate_is_that_of_the_last_minute():
    slow = [(float(t), Progress("a", t, 1_000, "rows")) for t in range(0, 101, 10)]
    fast = [(100.0 + t, Progress("a", 100 + 10 * t, 1_000, "rows")) for t in range(10, 81, 10)]
    assert paced(*slow).rate == 1
    assert paced(*slow, *fast).rate == 10


def test_a_new_stage_has_a_pace_of_its_own_and_none_before_a_second():
    first = [(0.0, Progress("a", 0, 10, "rows")), (9.0, Progress("a", 9, 10, "rows"))]
    assert paced(*first, (10.0, Progress("b", 1, 5, "rows"))).rate is None
    assert paced(*first, (10.0, Progress("b", 0, 10, "rows"))).rate is None
    assert paced(*first, (10.0, Progress("b", 10, 10, "rows"))).rate == 1
    assert paced(first[0], (0.5, first[1][1])).left is None
    assert paced(first[0], (9.0, Progress("a", 10, 10, "rows"))).left is None  # it has ended


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (44.6, "45 s"),
        (60, "1 min"),
        (245, "4 min 5 s"),
        (4_330, "1 h 12 min"),
        (273_700, "3 d 4 h"),
        (86_400, "1 d"),
    ],
)
def test_a_duration_in_words(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (312_400, "312 kB"),
        (999_900, "1.0 MB"),
        (4_500_000, "4.5 MB"),
        (12e9, "12 GB"),
        (3.2e12, "3.2 TB"),
    ],
)
def test_a_size_in_words(count, words):
    assert size(count) == words


def test_a_hundred_per_cent_is_the_whole_alone():
    assert [percent(share) for share in (0, 0.29, 0.999, 1)] == ["0%", "29%", "99%", "100%"]


# Tasks of a run.


def test_what_running_tasks_have_done_is_added_up_and_gone_when_they_end(tmp_path):
    read = [Counter(), Counter()]
    with (
        progress.publishing(tmp_path / "part-0.live.tmp", read[0]),
        progress.publishing(tmp_path / "part-1.live.tmp", read[1], {"bytes": 10}),
    ):
        read[0]["pages"] = 3
        read[1].update(pages=4, bytes=99)
        wait_for(lambda: progress.running(tmp_path.iterdir()) == {"pages": 7, "bytes": 10})
    assert not progress.running(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_a_tracker_shows_finished_and_running_tasks_and_never_goes_back(tmp_path):
    seen = []
    tracker = Tracker(seen.append, "noising", "rows", ("shards",), total=1_000)
    tracker.add({"rows": 5, "shards": 1, BYTES: 500})
    tracker.report()
    assert seen[-1] == Progress("noising", 5, 0, "rows", {"shards": 1}, share=0.5)
    with tracker.watching(tmp_path.iterdir):
        with progress.publishing(tmp_path / "part-1.live.tmp", {"rows": 2, BYTES: 250}):
            wait_for(lambda: (seen[-1].done, seen[-1].share) == (7, 0.75))
        tracker.report()  # the task has ended and is not added yet
        assert (seen[-1].done, seen[-1].share) == (7, 0.75)
    tracker.add({"rows": 2, "shards": 1, BYTES: 500})
    tracker.report()
    assert seen[-1] == Progress("noising", 7, 0, "rows", {"shards": 2}, share=1.0)


def test_a_tracker_without_a_total_has_no_share_and_one_with_a_limit_has_the_larger():
    seen = []
    for options in ({}, {"most": 10}, {"most": 10, "total": 50}):
        tracker = Tracker(seen.append, "noising", "rows", (), **options)
        tracker.add({"rows": 4, BYTES: 25})
        tracker.report()
    assert [event.share for event in seen] == [None, 0.4, 0.5]


def test_a_half_written_note_and_a_folder_that_is_gone_harm_nobody(tmp_path):
    (tmp_path / "part-0.live.tmp").write_text('{"pages"')
    assert not progress.running(tmp_path.iterdir())
    before = threading.active_count()
    with progress.publishing(tmp_path / "gone" / "part-0.live.tmp", {}):
        wait_for(lambda: threading.active_count() == before)
