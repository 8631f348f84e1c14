"""Runs and files written to object stores: a local S3 server and the memory of this process."""

import json
import os
import subprocess
import sys
from contextlib import suppress

import pytest
from runs import DEMO, FAST, augment, contents, whole_run, written

from noisegen.cli import run
from noisegen.errors import OutputError
from noisegen.runs.atomic import atomic
from noisegen.runs.lock import STATE
from noisegen.runs.manifest import Manifest
from noisegen.runs.store import StorePath, output_path

fsspec = pytest.importorskip("fsspec")
OPTIONS = {"rows_per_shard": 210, "transforms": FAST}


@pytest.fixture(params=["memory", "s3"])
def url(request, tmp_path):
    """A place of the store that is this test's own."""
    if request.param == "s3":
        request.getfixturevalue("s3_server")
    return f"{request.param}://bucket/{tmp_path.name}"


whole = whole_run(**OPTIONS)


def _names(url):
    store, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
    found = (name.partition(path.strip("/"))[2].strip("/") for name in store.find(path))
    return sorted(name for name in found if STATE not in name)


def test_a_run_in_a_store_is_that_on_disk(url, whole):
    made = augment(DEMO, f"{url}/out", **OPTIONS)

    assert contents(output_path(f"{url}/out")) == contents(whole)
    assert made.shards == Manifest.load(f"{url}/out").shards == Manifest.load(whole).shards
    assert _names(url) == sorted(
        f"out/{path.relative_to(whole)}" for path in written(whole) if path.is_file()
    )


@pytest.mark.parametrize(
    "url", ["memory", pytest.param("s3", marks=pytest.mark.nightly)], indirect=True
)
def test_a_run_in_a_store_resumes_and_is_refused(url, whole):
    out = f"{url}/out"
    augment(DEMO, out, part="1/2", **OPTIONS)
    with pytest.raises(OutputError, match="is not empty; add --resume"):
        augment(DEMO, out, **OPTIONS)
    with pytest.raises(OutputError, match="another configuration"):
        augment(DEMO, out, resume=True, **OPTIONS | {"rows_per_shard": 99})

    augment(DEMO, out, resume=True, **OPTIONS)
    assert contents(output_path(out)) == contents(whole)
    augment(DEMO, out, force=True, **OPTIONS | {"rows_per_shard": 1_000})
    assert _names(out) == ["README.md", "data/part-00000.parquet", "manifest.json"]


def test_one_file_in_a_store(url, tmp_path):
    augment(DEMO, tmp_path / "noisy.tsv", transforms=FAST)
    augment(DEMO, f"{url}/noisy.tsv", transforms=FAST)

    with fsspec.open(f"{url}/noisy.tsv") as file:
        assert file.read() == (tmp_path / "noisy.tsv").read_bytes()
    with pytest.raises(OutputError, match=r"noisy\.tsv exists; add --force"):
        augment(DEMO, f"{url}/noisy.tsv", transforms=FAST)


@pytest.mark.parametrize("size", [10, 12 << 20])
def test_a_failed_upload_leaves_nothing(url, size):
    with suppress(ZeroDivisionError), atomic(output_path(f"{url}/big.txt")) as file:
        file.write(b"x" * size)
        raise ZeroDivisionError

    assert _names(url) == []


def test_an_object_is_known_again_by_another_process(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    url = f"file://{tmp_path}/a.txt"
    ask = f"from noisegen.runs.store import StorePath; print(StorePath({url!r}).stat())"

    assert subprocess.check_output([sys.executable, "-c", ask], text=True).strip() == str(
        StorePath(url).stat()
    )


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (
            "sftp://host/out",
            "sftp://host/out: only a folder, s3://, gs:// and az:// are written to; ",
        ),
        (
            "xyz://host/out",
            "xyz://host/out: only a folder, s3://, gs:// and az:// are written to; ",
        ),
        ("s3://no-such-bucket/out", ".lock: The specified bucket does not exist; create"),
        ("s3://", "s3:// has no bucket: name one, such as s3://bucket/folder"),
    ],
)
def test_what_cannot_be_written_is_one_line(s3_server, capfd, out, message):
    assert run(["augment", str(DEMO), "-o", out, "-t", "spac", "-q", "--workers", "1"]) == 1

    [line] = capfd.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("out", ["memory://out", "memory://noisy.jsonl"])
def test_a_command_leaves_nothing_in_memory(capfd, out):
    assert run(["augment", str(DEMO), "-o", out, "-t", "spac", "--workers", "1"]) == 2

    assert "memory:// ends with the command: name a folder" in capfd.readouterr().err
    assert not output_path(out).exists()


def test_other_commands_write_to_folders(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)

    assert run(["learn", str(DEMO), "-o", "s3://bucket/out", "--clean-column", "lang"]) == 1

    assert "only augment, prepare and mine-* write to a store" in capfd.readouterr().err
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_store_path_is_like_a_path():
    with fsspec.open("memory://like/out/manifest.json", "w") as file:
        json.dump({"a": 1}, file)
    path = StorePath("memory://like/out/manifest.json")

    assert (path.name, path.suffix, path.is_file(), path.is_dir()) == (
        "manifest.json",
        ".json",
        True,
        False,
    )
    assert [str(found) for found in StorePath("memory://like").glob("out/*.json")] == [str(path)]
    assert path.stat().st_size == len('{"a": 1}')
    before = path.stat().st_ino
    with path.upload() as file:
        file.write(b'{"a": 2}')
    assert path.stat().st_ino != before
    path.unlink()
    path.unlink(missing_ok=True)
    assert not path.exists()
