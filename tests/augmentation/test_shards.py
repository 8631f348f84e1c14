"""A folder of shards: the same rows however they are cut, resumed, spoiled or out of space."""

import errno
import gzip
import os
import random
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SHARED
from runs import (
    DEMO,
    FAST,
    PROGRAM,
    augment,
    begin,
    command,
    contents,
    left_over,
    noisy_of,
    shards,
    table,
    visible,
    words_for,
    written,
)

from noisegen.augmentation import Request, row_languages
from noisegen.augmentation.augment import LAYOUT, finish
from noisegen.augmentation.plan import make_plan
from noisegen.cli import run
from noisegen.errors import NoisegenError, OutputError
from noisegen.runs import folder as folder_module
from noisegen.runs.folder import RunFolder, shard_path
from noisegen.runs.manifest import Manifest
from noisegen.runs.records import File, Record

TEMPORARY = ".00112233aabbccdd.tmp"  # ending of the name of a half-written file


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An undisturbed run in shards of 60 rows."""
    out = tmp_path_factory.mktemp("whole") / "out"
    augment(DEMO, out, rows_per_shard=60, transforms=FAST)
    return out


@pytest.fixture
def half(tmp_path, whole):
    """A run of the same configuration of which shards 0, 2, 4, 6 are done."""
    out = tmp_path / "out"
    augment(DEMO, out, rows_per_shard=60, part="1/2", transforms=FAST)
    (out / "manifest.json").unlink()
    return out


def _resume(out, **options):
    defaults = {"rows_per_shard": 60, "transforms": FAST, "resume": True}
    return augment(DEMO, out, **{**defaults, **options})


def _times(out):
    return {path.name: time for path, time in written(out).items() if path.suffix}


@pytest.mark.parametrize("rows_per_shard", [7, 137, 1_000])
def test_the_size_of_shards_decides_nothing(tmp_path, whole, rows_per_shard):
    augment(DEMO, tmp_path / "out", rows_per_shard=rows_per_shard, transforms=FAST)

    assert table(tmp_path / "out").equals(table(whole))


def test_the_order_of_rows_decides_nothing(tmp_path, demo_texts):
    names = [f"row {number}" for number in range(len(demo_texts))]
    pairs = list(zip(names, demo_texts, strict=True))
    found = []
    for shuffled in (0, 1):
        random.Random(0).shuffle(pairs) if shuffled else None
        key, text = map(list, zip(*pairs, strict=True))
        pq.write_table(pa.table({"key": key, "text": text}), tmp_path / f"{shuffled}.parquet")
        augment(
            tmp_path / f"{shuffled}.parquet",
            tmp_path / f"out{shuffled}",
            id_column="key",
            rows_per_shard=100,
        )
        found.append(noisy_of(tmp_path / f"out{shuffled}"))

    assert found[0] == found[1]


def test_parts_run_apart_make_the_whole(tmp_path, whole):
    for part in ("3/3", "1/3", "2/3"):
        augment(DEMO, tmp_path / "out", rows_per_shard=60, part=part, transforms=FAST)

    assert contents(tmp_path / "out") == contents(whole)
    assert Manifest.load(tmp_path / "out").shards == Manifest.load(whole).shards
    assert Manifest.load(tmp_path / "out").totals == Manifest.load(whole).totals


def test_parts_run_at_once_make_the_whole(tmp_path, whole):
    words = words_for(tmp_path / "out")
    runs = [begin(*words, "--workers", "1", "--part", f"{n}/2") for n in (1, 2)]
    errors = [run.communicate(timeout=60)[1] for run in runs]

    assert [run.returncode for run in runs] == [0, 0], errors
    assert contents(tmp_path / "out") == contents(whole)
    assert Manifest.load(tmp_path / "out").shards == Manifest.load(whole).shards


@pytest.mark.nightly
def test_parts_in_containers_have_equal_process_numbers_and_make_the_whole(tmp_path, whole):
    alone = ["unshare", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() != 0 or subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("cannot make a namespace of processes here")
    words = [*alone, *PROGRAM, *words_for(tmp_path / "out", "--workers", "1")]
    runs = [
        subprocess.Popen([*words, "--part", f"{n}/3"], stderr=subprocess.PIPE) for n in (1, 2, 3)
    ]
    errors = [run.communicate(timeout=60)[1] for run in runs]

    assert [run.returncode for run in runs] == [0, 0, 0], errors
    assert contents(tmp_path / "out") == contents(whole)
    assert Manifest.load(tmp_path / "out").shards == Manifest.load(whole).shards
    assert visible(tmp_path / "out") == ["README.md", "data", "manifest.json"]


def test_a_part_without_shards_leaves_the_others_alone(tmp_path):
    augment(DEMO, tmp_path / "out", part="1/5", rows_per_shard=300)
    made = augment(DEMO, tmp_path / "out", part="5/5", rows_per_shard=300)

    assert [shard["file"] for shard in made.shards] == ["data/part-00000.parquet"]


def test_a_table_without_a_header_line_is_read_by_the_number_of_its_column(tmp_path):
    source = tmp_path / "pairs.tsv"
    source.write_text("one\tsee you tomorrow\ntwo\tmy old friend\n")

    augment(source, tmp_path / "out", text_column="2", id_column="1")
    augment(source, tmp_path / "noisy.tsv", text_column="2")

    made = table(tmp_path / "out")
    assert made["id"].to_pylist() == ["one", "two"]
    assert made["clean"].to_pylist() == ["see you tomorrow", "my old friend"]
    lines = (tmp_path / "noisy.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["one", "two"]


@pytest.mark.nightly
@pytest.mark.parametrize("packed", ["plain", "gz"])
def test_real_sentences_are_the_same_in_any_shards_order_and_workers(tmp_path, packed):
    path = SHARED / "wiki-split" / "tune.tsv.gz"
    if not path.exists():
        pytest.skip("no development data")
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)[:3_000]
    source = tmp_path / ("wiki.tsv" if packed == "plain" else "wiki.tsv.gz")
    source.write_bytes(b"".join(lines) if packed == "plain" else gzip.compress(b"".join(lines)))
    sizes = (5_000, 700, 999) if packed == "plain" else (700,)
    found = []
    for number, size in enumerate(sizes):
        augment(
            source,
            tmp_path / str(number),
            text_column="1",
            rows_per_shard=size,
            workers=1 + number % 2,
        )
        found.append(noisy_of(tmp_path / str(number)))
    rows = table(tmp_path / "0").select(["id", "clean"]).rename_columns(["key", "text"])
    order = random.Random(1).sample(range(len(rows)), len(rows))
    pq.write_table(rows.take(order), tmp_path / "shuffled.parquet", row_group_size=500)
    augment(
        tmp_path / "shuffled.parquet", tmp_path / "shuffled", id_column="key", rows_per_shard=800
    )
    found.append(noisy_of(tmp_path / "shuffled"))

    assert len(found[0]) == len(lines)
    assert all(one == found[0] for one in found)


def test_nothing_to_do_rewrites_nothing(tmp_path, whole):
    augment(DEMO, tmp_path / "out", rows_per_shard=60, transforms=FAST)
    before = _times(tmp_path / "out")

    made = _resume(tmp_path / "out")

    assert _times(tmp_path / "out") == before
    assert made == Manifest.load(tmp_path / "out")


def test_nothing_to_do_hashes_nothing(tmp_path, whole, monkeypatch):
    augment(DEMO, tmp_path / "out", rows_per_shard=60, transforms=FAST)
    digest = folder_module.file_digest
    hashed = []
    monkeypatch.setattr(
        folder_module, "file_digest", lambda path: (hashed.append(path.suffix), digest(path))[1]
    )

    _resume(tmp_path / "out")

    assert ".parquet" not in hashed


def test_only_what_is_missing_is_made(half, whole):
    before = _times(half)

    _resume(half)

    assert contents(half) == contents(whole)
    after = _times(half)
    assert {name: after[name] for name in before if name.endswith(".parquet")} == {
        name: time for name, time in before.items() if name.endswith(".parquet")
    }
    assert Manifest.load(half).shards == Manifest.load(whole).shards


@pytest.mark.parametrize("damage", ["removed", "truncated", "empty", "no footer"])
def test_a_spoiled_shard_is_made_again(tmp_path, whole, damage):
    out = tmp_path / "out"
    augment(DEMO, out, rows_per_shard=60, transforms=FAST)
    spoiled = shards(out)[3]
    content = spoiled.read_bytes()
    if damage == "removed":
        spoiled.unlink()
    else:
        kept = {"truncated": len(content) // 2, "empty": 0, "no footer": len(content) - 8}[damage]
        spoiled.write_bytes(content[:kept])

    _resume(out)

    assert contents(out) == contents(whole)
    assert Manifest.load(out).shards == Manifest.load(whole).shards


def test_a_spoiled_shard_of_another_part_ends_no_run(tmp_path):
    out = tmp_path / "out"
    augment(DEMO, out, rows_per_shard=60, part="1/2", transforms=FAST)
    shards(out)[1].write_bytes(b"PAR1")

    made = augment(DEMO, out, rows_per_shard=60, part="2/2", transforms=FAST)

    assert [note["file"] for note in made.shards] == [
        f"data/part-0000{number}.parquet" for number in (0, 1, 3, 4, 5, 6)
    ]


def test_what_a_killed_run_left_is_removed(half):
    for name in ("data/part-00001.parquet", "manifest.json", "README.md"):
        (half / f"{name}{TEMPORARY}").write_bytes(b"half of a file")

    _resume(half)

    assert left_over(half) == []


def test_a_part_removes_only_what_is_its_own(half):
    for number in (1, 2):
        (half / "data" / f"part-0000{number}.parquet{TEMPORARY}").write_bytes(b"half of a file")

    augment(DEMO, half, rows_per_shard=60, part="2/2", transforms=FAST)

    assert left_over(half) == [f"part-00002.parquet{TEMPORARY}"]


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        ({"seed": 8}, "seed 7, not 8"),
        ({"values": {"leet.p": 0.2}}, "other recipe"),
        ({"transforms": ["fing"]}, "other recipe"),
        ({"rows_per_shard": 61}, "rows_per_shard 60, not 61"),
        ({"edits": True}, "edits False, not True"),
        ({"copies": 2}, "copies 1, not 2"),
        ({"protect": "none"}, "protect"),
    ],
)
def test_another_configuration_is_refused_and_named(half, options, difference):
    before = contents(half)

    with pytest.raises(OutputError, match="made with another configuration") as caught:
        _resume(half, **options)

    assert difference in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(half) == before


def test_another_input_of_the_same_name_is_refused(tmp_path):
    source = tmp_path / "in.txt"
    source.write_text("one\ntwo\n")
    augment(source, tmp_path / "out")
    source.write_text("one\ntwo\nthree\n")

    with pytest.raises(OutputError, match="another configuration"):
        augment(source, tmp_path / "out", resume=True)


def test_another_plug_in_of_the_same_name_is_refused(tmp_path):
    code = tmp_path / "shout.py"
    body = (
        "import noisegen\n@noisegen.transform('shout')\ndef f(text, draws, *, rate: float = 1.0):\n"
    )
    code.write_text(f"{body}    return text.upper()\n")
    options = {"code": (str(code),), "transforms": ["shout"]}
    augment(DEMO, tmp_path / "out", **options)
    assert table(tmp_path / "out")["noisy"][1].as_py().isupper()
    code.write_text(f"{body}    return text.lower()\n")

    with pytest.raises(OutputError, match="code_sha256"):
        augment(DEMO, tmp_path / "out", resume=True, **options)
    augment(DEMO, tmp_path / "out", force=True, **options)
    assert table(tmp_path / "out")["noisy"][1].as_py().islower()


def test_force_writes_over_another_run(tmp_path):
    out = tmp_path / "out"
    augment(DEMO, out, rows_per_shard=20)
    augment(DEMO, out, rows_per_shard=200, seed=8, force=True)

    assert len(shards(out)) == 3
    assert Manifest.load(out).seed == 8


def test_force_removes_nothing_else(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    augment(DEMO, tmp_path, force=True, limit=5)

    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")

    with pytest.raises(OutputError, match="not empty; add --resume to resume its run or --force"):
        augment(DEMO, tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def _foreign(tmp_path, name):
    pq.write_table(pa.table({"x": [1]}), tmp_path / name)


@pytest.mark.parametrize(
    "name", ["data/part-00000.parquet", "data/part-x.parquet", "data/part-00000-of-00002.parquet"]
)
def test_resume_leaves_the_shards_of_other_programs_alone(tmp_path, name):
    (tmp_path / "data").mkdir()
    _foreign(tmp_path, name)

    with pytest.raises(OutputError, match="use another folder"):
        augment(DEMO, tmp_path, resume=True)

    assert pq.read_table(tmp_path / name).to_pydict() == {"x": [1]}


def test_resume_leaves_the_manifest_of_another_command_alone(tmp_path):
    (tmp_path / "manifest.json").write_text('{"command": "noisegen mine-wiki"}')

    with pytest.raises(OutputError, match=r"noisegen did not write .*manifest\.json"):
        augment(DEMO, tmp_path, resume=True)

    assert "mine-wiki" in (tmp_path / "manifest.json").read_text()


def test_out_may_be_no_file(tmp_path):
    (tmp_path / "out").write_text("a file")

    with pytest.raises(OutputError, match="out is a file: name a folder to write into"):
        augment(DEMO, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "a file"


def _mounted(path, options):
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("cannot mount a small disk here")
    return path


@pytest.fixture
def small_disk(tmp_path):
    disk = _mounted(tmp_path / "disk", "size=48k")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_one_line_and_leaves_no_half_shard(small_disk, whole, workers):
    out = small_disk / "out"
    words = words_for(out, "--workers", str(workers))
    full = command(*words)

    assert full.returncode == 1
    assert full.stderr.count("\n") == 1, full.stderr
    assert "No space left on device" in full.stderr
    assert "--resume" in full.stderr
    assert left_over(out) == []
    subprocess.run(["mount", "-o", "remount,size=1m", str(small_disk)], check=True)
    _resume(out)
    assert contents(out) == contents(whole)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["manifest.json", "README.md", "part-00002.parquet"])
def test_a_disk_that_is_full_at_any_file_can_be_gone_on_with(tmp_path, whole, monkeypatch, name):
    fsync = os.fsync

    def full(number):
        if Path(f"/proc/self/fd/{number}").readlink().name.startswith(name):
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(number)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left on device; free some space"):
        augment(DEMO, tmp_path / "out", rows_per_shard=60, transforms=FAST)
    assert left_over(tmp_path / "out") == []
    monkeypatch.undo()

    _resume(tmp_path / "out")
    assert contents(tmp_path / "out") == contents(whole)
    assert Manifest.load(tmp_path / "out").shards == Manifest.load(whole).shards


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, capfd):
    disk = _mounted(tmp_path / "disk", "ro,size=48k")
    try:
        for out in (disk, disk / "out"):
            assert run([*words_for(out), "--workers", "1"]) == 1
            [line] = capfd.readouterr().err.splitlines()
            assert line.startswith("error: cannot write")
            assert "Read-only file system" in line
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_too_little_memory_is_one_line(tmp_path, monkeypatch):
    def greedy(*_):
        raise pa.ArrowMemoryError("malloc of size 99 failed")

    monkeypatch.setattr(row_languages, "add_noise", greedy)

    with pytest.raises(NoisegenError, match="not enough memory"):
        augment(DEMO, tmp_path / "out")


def test_shards_beyond_99999_stay_in_order(tmp_path):
    augment(DEMO, tmp_path, limit=4, rows_per_shard=2, seed=0)
    plan = make_plan(Request(DEMO, limit=4, rows_per_shard=2), tmp_path)
    folder = RunFolder(tmp_path, LAYOUT, plan.config)
    results = [record.result for _, record in sorted(folder.records.read().items())]
    folder.records.remove()
    for number, later in ((1, 100_000), (0, 99_999)):
        path = shard_path(folder.shards, number).rename(shard_path(folder.shards, later))
        record = Record(later, (File.of(path, tmp_path),), results[number])
        folder.records.add(record.marked(tmp_path))
    folder.records.close()
    (tmp_path / "manifest.json").unlink()

    made = finish(plan, folder, "", tasks=2)

    names = ["data/part-99999.parquet", "data/part-100000.parquet"]
    assert [shard["file"] for shard in made.shards] == names
    assert shards(tmp_path) == [tmp_path / name for name in names]
