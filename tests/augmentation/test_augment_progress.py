"""Events of augment: the share by bytes, through compression, resumed, limited, unknown."""

import gzip

import pytest

import noisegen
from noisegen.runs import progress as module

ROWS = 900


@pytest.fixture
def sources(tmp_path, demo_texts):
    lines = [f"{text} {number}" for number, text in enumerate((list(demo_texts) * 3)[:ROWS])]
    (tmp_path / "a.txt").write_text("\n".join(lines[:500]) + "\n")
    with gzip.open(tmp_path / "b.txt.gz", "wt") as file:
        file.write("\n".join(lines[500:]) + "\n")
    return [str(tmp_path / "a.txt"), str(tmp_path / "b.txt.gz")]


def noised(sources, out, **options):
    """Return the events of a run."""
    events = []
    options = {"transforms": "fing", "rows_per_shard": 100, "progress": events.append} | options
    noisegen.augment(sources, out, **options)
    assert {(event.doing, event.unit) for event in events} == {("noising", "rows")}
    shares = [event.share for event in events if event.share is not None]
    assert shares == sorted(shares)
    return events


def test_a_run_goes_from_nothing_to_all_by_the_bytes_of_its_input(sources, tmp_path):
    events = noised(sources, tmp_path / "out")
    assert (events[0].done, events[0].share) == (0, 0)
    assert (events[-1].done, events[-1].share) == (ROWS, 1)
    assert events[-1].counts == {"shards": 9}
    middle = next(event.share for event in events if event.done >= 500)
    assert 0.5 < middle < 1


def test_a_resumed_run_begins_with_what_is_there(sources, tmp_path):
    noised(sources, tmp_path / "out")
    for number in (5, 8):
        (tmp_path / "out" / "data" / f"part-{number:05d}.parquet").unlink()
    events = noised(sources, tmp_path / "out", resume=True)
    assert events[0].done == 500
    assert events[0].share > 0.5
    assert (events[-1].done, events[-1].share) == (ROWS, 1)


def test_a_part_counts_its_own_shards(sources, tmp_path):
    events = noised(sources[:1], tmp_path / "out", part="1/2")
    assert events[-1].done == 300
    assert events[-1].share == 1


def test_a_limit_is_the_whole(sources, tmp_path):
    events = noised(sources, tmp_path / "out", limit=400, copies=2)
    assert (events[-1].done, events[-1].share) == (800, 1)


def test_a_shard_shows_its_batches(sources, tmp_path, monkeypatch):
    """A shard of several batches publishes each of them beside its file."""
    published = []
    publishing = module.publishing
    from noisegen.augmentation import shards

    def watched(path, *counts):
        published.append((path.name, counts[0]))
        return publishing(path, *counts)

    monkeypatch.setattr(shards, "publishing", watched)
    noised(sources[:1], tmp_path / "out", rows_per_shard=500)
    ((name, counts),) = published
    assert name == "part-00000.parquet.live.tmp"
    assert counts["rows"] == 500
    assert counts["bytes"] == pytest.approx((tmp_path / "a.txt").stat().st_size, abs=5)
    assert not list((tmp_path / "out" / "data").glob("*.tmp"))
