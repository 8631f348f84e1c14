"""Sources in stores: files, folders, globs and saved datasets by URL, as they are read on disk."""

import gzip
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from source_files import FORMATS, clean

import noisegen
from noisegen.data.files import is_url, reason_of
from noisegen.data.pairs import read_pairs
from noisegen.data.rows import Columns
from noisegen.data.sources import expand, read, shard_ranges
from noisegen.errors import MissingExtra, SourceError

fsspec = pytest.importorskip("fsspec")
TEXTS = [f"text {n}" for n in range(9)]


class Store:
    """A folder of a store, into which tests write."""

    def __init__(self, url: str) -> None:
        self.url = url

    def write(self, name: str, data: bytes) -> str:
        with fsspec.open(f"{self.url}/{name}", "wb") as file:
            file.write(data)
        return f"{self.url}/{name}"


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return Store(f"memory://{tmp_path.name}")
    request.getfixturevalue("s3_server")
    bucket = f"s3://{tmp_path.name.replace('_', '-')}"
    fsspec.filesystem("s3").mkdir(bucket)
    return Store(bucket)


def test_every_format_is_read_from_a_store(store: Store) -> None:
    for ending, encode in FORMATS.items():
        url = store.write(f"{ending}/a.{ending}", encode(TEXTS))
        assert clean(url, shard=4) == TEXTS, ending
        assert [file.file_size for file in expand(url)] == [len(encode(TEXTS))]
    packed = store.write("a.txt.gz", gzip.compress(FORMATS["txt"](TEXTS)))
    assert clean(packed) == TEXTS


def test_folders_and_globs_of_a_store_are_those_of_a_disk(store: Store) -> None:
    for name in ("d/b.txt", "d/a.txt", "d/c/e.txt", "d/.f/g.txt", "d/note.md", "d/.h.txt"):
        store.write(name, name.encode())
    assert (
        clean(f"{store.url}/d") == clean(f"{store.url}/d/") == ["d/a.txt", "d/b.txt", "d/c/e.txt"]
    )
    assert [item.skipped for item in expand(f"{store.url}/d") if item.skipped] == ["unknown ending"]
    assert clean(f"{store.url}/d/*.txt") == ["d/a.txt", "d/b.txt"]
    assert clean(f"{store.url}/*/c") == ["d/c/e.txt"]
    with pytest.raises(SourceError, match=r"/no\.txt': no such file, folder or bucket"):
        expand(f"{store.url}/no.txt")


def test_a_saved_dataset_is_read_from_a_store(store: Store, tmp_path: Path) -> None:
    hub = pytest.importorskip("datasets")
    hub.disable_progress_bars()
    rows = {name: hub.Dataset.from_dict({"text": [name, "b"]}) for name in ("train", "test")}
    hub.DatasetDict(rows).save_to_disk(tmp_path / "set")
    for path in filter(Path.is_file, (tmp_path / "set").rglob("*")):
        store.write(f"set/{path.relative_to(tmp_path / 'set')}", path.read_bytes())
    assert clean(f"{store.url}/set") == ["train", "b"]
    assert clean(f"{store.url}/set/test") == ["test", "b"]


def test_pairs_and_bitext_beside_them_are_read_from_a_store(store: Store) -> None:
    url = store.write("p/pairs.tsv", b"noisy\tclean\nteh\tthe\n")
    assert read_pairs(url).noisy == read_pairs(f"{store.url}/p").noisy == ["teh"]
    assert read_pairs(store.write("n/a.norm", b"u\tyou\n")).clean == ["you"]


def test_damage_in_a_store_is_damage(store: Store) -> None:
    packed = gzip.compress(os.urandom(50_000).hex().encode())
    no_gzip = store.write("a.txt.gz", b"no gzip")
    with pytest.raises(SourceError, match=r"a\.txt\.gz: damaged before its first line"):
        clean(no_gzip)
    url = store.write("b.jsonl.gz", gzip.compress(b'{"text": "a"}\n' * 9_000 + packed)[:-5_000])
    assert clean(url)[:2] == ["a", "a"]
    no_parquet = store.write("c.parquet", b"PAR1")
    with pytest.raises(SourceError, match=r"cannot read .*/c\.parquet: "):
        clean(no_parquet)


def test_a_task_reads_its_share_of_a_file_in_a_store(s3_server, monkeypatch) -> None:
    fetched, fetch = [], pytest.importorskip("s3fs").core.S3File._fetch_range

    def spy(file: Any, start: int, end: int) -> bytes:
        fetched.append(end - start)
        return fetch(file, start, end)

    bucket = "s3://large"
    fsspec.filesystem("s3").mkdir(bucket)
    url = Store(bucket).write("a.txt", (b"x" * 999 + b"\n") * 24_000)
    monkeypatch.setattr(pytest.importorskip("s3fs").core.S3File, "_fetch_range", spy)
    tasks = list(shard_ranges(expand(url), Columns(), 1_000))
    for task in (tasks[0], tasks[12]):
        fetched.clear()
        assert sum(len(batch.table) for batch in read(task, Columns())) == 1_000
        assert sum(fetched) < 6 << 20  # of 24 MB


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_augment_reads_a_store_as_a_disk(s3_server: None, tmp_path: Path, workers: int) -> None:
    bucket = f"s3://news{workers}"
    fsspec.filesystem("s3").mkdir(bucket)
    data = FORMATS["txt"](TEXTS)
    url = Store(bucket).write("a.txt", data)
    (tmp_path / "a.txt").write_bytes(data)
    options = {"rows_per_shard": 4, "transforms": "fing"}
    manifest = noisegen.augment(url, tmp_path / "far", workers=workers, **options)
    assert [shard["rows"] for shard in manifest.shards] == [4, 4, 1]
    assert manifest.sources == [{"path": url, "bytes": len(data)}]
    here = noisegen.augment(tmp_path / "a.txt", tmp_path / "near", **options)
    rows = [
        [pq.read_table(out / shard["file"]) for shard in run.shards]
        for out, run in ((tmp_path / "far", manifest), (tmp_path / "near", here))
    ]
    assert rows[0] == rows[1]


def test_prepare_reads_a_store_as_a_disk(tmp_path: Path) -> None:
    store = Store(f"memory://{tmp_path.name}")
    data = b"The cat sat on the old mat.\nNobody knows where this road ends.\n" * 2
    (tmp_path / "a.txt").write_bytes(data)
    near, far = tmp_path / "near", tmp_path / "far"
    here = noisegen.prepare(tmp_path / "a.txt", near, identify="no")
    there = noisegen.prepare(store.write("a.txt", data), far, identify="no")
    assert there.totals == here.totals
    assert here.totals["kept"] == 2
    assert [pq.read_table(out / "data")["text"].to_pylist() for out in (near, far)] == [
        data.decode().splitlines()[:2]
    ] * 2


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "xyz://a/b.txt",
            "cannot read xyz://a/b.txt: xyz:// is not known; use s3://, gs://, az://, hf:// or",
        ),
        ("s3://no-such-bucket-here/a.txt", "no such file, folder or bucket"),
    ],
)
def test_a_store_that_cannot_be_reached_is_one_line(
    s3_server: None, url: str, message: str
) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        expand(url)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "reason", "hint"),
    [
        ("s3://a/b", "Unable to locate credentials", "; set AWS_ACCESS_KEY_ID and"),
        ("s3a://a/b", "Access Denied", "; set AWS_ACCESS_KEY_ID and"),
        ("gs://a/b", "Anonymous caller does not have access", "; run gcloud auth"),
        ("abfs://a/b", "must provide account_name with credentials!", "; set AZURE_STORAGE_ACC"),
        ("hf://a/b", "401 Client Error: Unauthorized", "; run hf auth login"),
        ("s3://a/b", "The specified bucket does not exist", "; create it first"),
        ("https://a/b", "403 Forbidden", ""),
        ("s3://a/b", "Could not connect", ""),
    ],
)
def test_an_error_of_a_store_says_what_to_do(url: str, reason: str, hint: str) -> None:
    assert reason_of(OSError(reason), url).startswith(f"{reason}{hint}")
    assert bool(hint) == (reason_of(OSError(reason), url) != reason)


def test_missing_credentials_are_one_line_with_a_hint(
    s3_server: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(fsspec.get_filesystem_class("s3"), "_cache", {})
    with pytest.raises(
        SourceError, match=r"cannot read s3://bucket/a\.txt: .*; set AWS_ACCESS_KEY"
    ):
        expand("s3://bucket/a.txt")


def test_a_store_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(MissingExtra, match=r"'gcsfs' is not installed.*noisegen\[gcs\]"):
        expand("gs://a/b.txt")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtra, match=r"'fsspec' is not installed.*noisegen\[hf\]"):
        expand("abfs://a/b.txt")


def test_only_urls_are_urls() -> None:
    urls = [
        "s3://a/b",
        "gs://a",
        "hf://datasets/a/b/c.parquet",
        "memory://a",
        "https://a.org/b.txt",
    ]
    assert all(map(is_url, urls))
    others: list[Any] = ["hf:name", "hf:/a/b", "a.txt", "-", "/a/b", "en=s3://a/b", Path("s3://a")]
    assert not any(map(is_url, others))
