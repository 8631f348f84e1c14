"""The journal of a run: what it saves a resumed run, and that nothing depends on it."""

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import DEMO, FAST, augment, contents

from noisegen.augmentation import augment as augment_module
from noisegen.data.files import shard_files
from noisegen.errors import OutputError
from noisegen.runs import folder, journal
from noisegen.runs.lock import STATE
from noisegen.runs.manifest import Manifest

OPTIONS = {"transforms": FAST, "rows_per_shard": 60}


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
def opened(monkeypatch):
    """The names of the shards that are opened for their notes, or read for their digests."""
    names = []
    for name in ("parquet_metadata", "file_digest"):
        real = getattr(folder, name)
        monkeypatch.setattr(
            folder, name, lambda path, real=real: names.append(path.name) or real(path)
        )
    return names


def journals(out):
    return sorted((out / STATE).glob(journal.FILES))


def test_a_resumed_run_opens_no_shard_and_hashes_none(cut, whole, opened):
    assert journals(cut)

    manifest = augment(DEMO, cut, resume=True, **OPTIONS)

    assert opened == []
    assert contents(cut) == contents(whole)
    assert manifest.shards == Manifest.load(whole).shards
    assert not (cut / STATE).exists()


def test_the_last_part_hashes_no_shard_of_the_others(tmp_path, whole, opened):
    for part in ("2/3", "1/3", "3/3"):
        augment(DEMO, tmp_path / "out", part=part, **OPTIONS)

    assert opened == []
    assert Manifest.load(tmp_path / "out").shards == Manifest.load(whole).shards


def remove(path):
    path.unlink()


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-40])


def flip(path):
    path.write_bytes(path.read_bytes().replace(b"sha256", b"sha257"))


def of_other_run(path):
    bound_to, _, lines = path.read_bytes().partition(b"\n")
    config, digest = json.loads(bound_to)
    path.write_bytes(json.dumps(["0" * len(config), digest]).encode() + b"\n" + lines)


def count_more(path):
    path.write_bytes(path.read_bytes().replace(b'"rows":60', b'"rows":61'))


@pytest.mark.parametrize("change", [remove, cut_short, flip, of_other_run, count_more])
def test_a_journal_that_is_lost_costs_only_time(cut, whole, change):
    change(journals(cut)[0])

    assert augment(DEMO, cut, resume=True, **OPTIONS).shards == Manifest.load(whole).shards
    assert contents(cut) == contents(whole)


def test_a_shard_that_was_damaged_after_its_task_is_made_again(cut, whole):
    path = shard_files(cut)[1]
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)

    assert augment(DEMO, cut, resume=True, **OPTIONS).shards == Manifest.load(whole).shards
    assert contents(cut) == contents(whole)


def test_a_copied_run_is_hashed_once_and_goes_on(cut, whole, tmp_path, opened):
    shutil.copytree(cut, copied := tmp_path / "copy", copy_function=shutil.copyfile)
    for path in shard_files(copied):
        os.utime(path, (1, 1))

    augment(DEMO, copied, resume=True, **OPTIONS)

    assert sorted(opened) == [path.name for path in shard_files(whole)]
    assert Manifest.load(copied).shards == Manifest.load(whole).shards


def test_another_configuration_is_refused_with_a_journal_too(cut):
    with pytest.raises(OutputError, match=r"another configuration \(seed 7, not 8\)"):
        augment(DEMO, cut, resume=True, **{**OPTIONS, "seed": 8})


def test_many_sources_are_a_digest_in_the_notes_of_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "SOURCES_NOTED", 2)
    sources = [tmp_path / f"{name}.txt" for name in "abc"]
    for path in sources:
        path.write_text("See you tomorrow.\n")
    out = tmp_path / "out"
    given = {"transforms": FAST, "rows_per_shard": 1}

    manifest = augment(sources, out, **given)
    note = folder.parquet_metadata(shard_files(out)[0]).metadata[b"noisegen"]
    config = json.loads(json.loads(note)["config"])
    assert config["sources"]["count"] == 3
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
    real = augment_module.whole

    def read(item, columns):
        names.append(item.path.rpartition("/")[2])
        return real(item, columns)

    monkeypatch.setattr(augment_module, "whole", read)
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
    assert not (tmp_path / "out" / STATE).exists()


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
    "change", [lambda data: data.replace(b",70,", b",10,"), lambda data: data[:-9], lambda _: b""]
)
def test_damaged_notes_of_sources_cost_no_row(tmp_path, sources, footers, change):
    run_part(sources, tmp_path / "out", "1/2")
    noted = tmp_path / "out" / STATE / journal.HEADS
    noted.write_bytes(change(noted.read_bytes()))
    footers.clear()

    manifest = run_part(sources, tmp_path / "out", "2/2")

    assert footers == ["0.parquet", "1.parquet", "2.parquet"]
    assert manifest.totals["rows_in"] == 210
