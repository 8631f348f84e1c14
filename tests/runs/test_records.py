"""The records of a run: what they save a resumed run, and what it costs to lose them."""

import os
import shutil
import signal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import DEMO, FAST, augment, command, contents, words_for

from noisegen.augmentation import augment as augment_module
from noisegen.data.files import shard_files
from noisegen.errors import OutputError
from noisegen.runs import folder, records
from noisegen.runs.manifest import Manifest

OPTIONS = {"transforms": FAST, "rows_per_shard": 60}
DEADLY = """
import os, signal
import noisegen

@noisegen.transform("deadly")
def deadly(text, draws, *, rate: float = 1.0):
    if "3.4.1" in text:  # in the last row
        os.kill(os.getpid(), signal.SIGKILL)
    return text
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    augment(DEMO, out, **OPTIONS)
    return out


@pytest.fixture
def cut(tmp_path, monkeypatch):
    """A run that has made all its shards, and failed before its manifest was written."""
    out = tmp_path / "out"

    def fail(*_):
        raise OSError("no manifest")

    with monkeypatch.context() as patch:
        patch.setattr(Manifest, "save", fail)
        with pytest.raises(OSError, match="no manifest"):
            augment(DEMO, out, **OPTIONS)
    return out


@pytest.fixture
def hashed(monkeypatch):
    """The names of the shards that are read to resume a run."""
    names = []
    digest = folder.file_digest
    monkeypatch.setattr(folder, "file_digest", lambda path: names.append(path.name) or digest(path))
    return names


def record_files(out):
    return sorted(out.glob(records.LINES))


def run_of(out):
    return records.Run.read(out, "write")


def test_a_resumed_run_hashes_no_shard(cut, whole, hashed):
    assert record_files(cut)
    assert not run_of(cut).has_ended

    manifest = augment(DEMO, cut, resume=True, **OPTIONS)

    assert hashed == []
    assert contents(cut) == contents(whole)
    assert manifest.shards == Manifest.load(whole).shards
    assert run_of(cut).has_ended


def test_a_run_that_ended_makes_nothing_when_it_is_resumed(cut, hashed):
    augment(DEMO, cut, resume=True, **OPTIONS)
    times = {path: path.stat().st_mtime_ns for path in [*shard_files(cut), cut / "manifest.json"]}

    augment(DEMO, cut, resume=True, **OPTIONS)

    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert hashed == []


def test_the_last_part_hashes_no_shard_of_the_others(tmp_path, whole, hashed):
    for part in ("2/3", "1/3", "3/3"):
        augment(DEMO, tmp_path / "out", part=part, **OPTIONS)

    assert hashed == []
    assert Manifest.load(tmp_path / "out").shards == Manifest.load(whole).shards


def remove(path):
    path.unlink()


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-40])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def of_other_run(path):
    lines = (line.partition(b" ")[2] for line in path.read_bytes().splitlines())
    path.write_bytes(b"".join(records.with_checksum(line, b"other") for line in lines))


def count_more(path):
    content = path.read_bytes()
    assert b'"rows":60' in content
    path.write_bytes(content.replace(b'"rows":60', b'"rows":61'))


@pytest.mark.parametrize("change", [remove, cut_short, flip, of_other_run, count_more])
def test_records_that_are_lost_cost_only_time(cut, whole, change):
    change(record_files(cut)[0])

    assert augment(DEMO, cut, resume=True, **OPTIONS).shards == Manifest.load(whole).shards
    assert contents(cut) == contents(whole)


def test_a_process_that_dies_keeps_every_task_but_the_running_one(tmp_path, whole):
    """The record of a task is written when the task ends, not at the end of the run."""
    code = tmp_path / "deadly.py"
    code.write_text(DEADLY)
    words = words_for(tmp_path / "out", "--code", code, "--workers", "1", first="deadly")
    assert command(*words).returncode == -signal.SIGKILL
    [path] = record_files(tmp_path / "out")
    assert len(path.read_bytes().splitlines()) == len(shard_files(tmp_path / "out")) > 0


def test_a_shard_that_was_damaged_after_its_task_is_made_again(cut, whole):
    path = shard_files(cut)[1]
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)

    assert augment(DEMO, cut, resume=True, **OPTIONS).shards == Manifest.load(whole).shards
    assert contents(cut) == contents(whole)


def test_a_copied_run_is_hashed_once_and_goes_on(cut, whole, tmp_path, hashed):
    shutil.copytree(cut, copied := tmp_path / "copy", copy_function=shutil.copyfile)
    for path in shard_files(copied):
        os.utime(path, (1, 1))

    augment(DEMO, copied, resume=True, **OPTIONS)

    assert sorted(hashed) == [path.name for path in shard_files(whole)]
    assert Manifest.load(copied).shards == Manifest.load(whole).shards


def test_another_configuration_is_refused(cut):
    with pytest.raises(OutputError, match=r"another configuration \(seed 7, not 8\)"):
        augment(DEMO, cut, resume=True, **{**OPTIONS, "seed": 8})


def test_many_sources_are_a_digest_in_the_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "SOURCES_BOUND", 2)
    sources = [tmp_path / f"{name}.txt" for name in "abc"]
    for path in sources:
        path.write_text("See you tomorrow.\n")
    out = tmp_path / "out"
    given = {"transforms": FAST, "rows_per_shard": 1}

    manifest = augment(sources, out, **given)
    assert run_of(out).config["sources"]["count"] == 3
    assert [source["path"] for source in manifest.sources] == [*map(str, sources)]

    shard_files(out)[1].unlink()
    (out / "manifest.json").unlink()
    assert augment(sources, out, resume=True, **given).shards == manifest.shards
    with pytest.raises(OutputError, match="another configuration"):
        augment([*sources, sources[0]], out, resume=True, **given)


@pytest.fixture
def sources(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        table = pa.table({"text": [f"file {number} row {row} is here" for row in range(70)]})
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


@pytest.fixture
def footers(monkeypatch):
    """The names of the sources whose footers are read to plan the tasks."""
    names = []
    real = augment_module.read_head

    def read(item, columns):
        names.append(item.path.rpartition("/")[2])
        return real(item, columns)

    monkeypatch.setattr(augment_module, "read_head", read)
    return names


def run_part(sources, out, part, **options):
    return augment(sources, out, part=part, **OPTIONS, **options)


def test_another_part_reads_the_footer_of_the_first_source_alone(tmp_path, sources, footers):
    run_part(sources, tmp_path / "out", "1/2")
    assert footers == ["0.parquet", "1.parquet", "2.parquet"]
    footers.clear()

    run_part(sources, tmp_path / "out", "2/2")

    assert footers == ["0.parquet"]
    augment(sources, tmp_path / "at once", **OPTIONS)
    assert contents(tmp_path / "out") == contents(tmp_path / "at once")
    assert run_of(tmp_path / "out").has_ended


def test_a_source_written_since_it_was_noted_is_read_again(tmp_path, sources, footers):
    run_part(sources, tmp_path / "out", "1/2")
    os.utime(sources / "1.parquet", ns=(1, 1))
    footers.clear()

    run_part(sources, tmp_path / "out", "2/2")

    assert footers == ["0.parquet", "1.parquet"]


def test_notes_of_sources_count_while_the_first_of_them_is_the_same(tmp_path, sources, footers):
    run_part(sources, tmp_path / "out", "1/2")
    os.utime(sources / "0.parquet", ns=(1, 1))  # it may have other columns now
    footers.clear()

    run_part(sources, tmp_path / "out", "2/2")

    assert footers == ["0.parquet", "1.parquet", "2.parquet"]


@pytest.mark.parametrize(
    ("change", "read_again"),
    [
        (lambda data: data[:9] + b"0" + data[10:], "012"),
        (lambda data: data.replace(b",70,", b",10,"), "012"),
        (lambda data: data[:-9], "02"),  # the first is read in any run
        (lambda _: b"", "012"),
    ],
)
def test_damaged_heads_of_sources_cost_no_row(tmp_path, sources, footers, change, read_again):
    run_part(sources, tmp_path / "out", "1/2")
    noted = tmp_path / "out" / records.HEADS
    noted.write_bytes(change(noted.read_bytes()))
    footers.clear()

    manifest = run_part(sources, tmp_path / "out", "2/2")

    assert footers == [f"{number}.parquet" for number in read_again]
    assert manifest.totals["rows_in"] == 210
