"""Preparing into object stores: as on disk, resumed by listing, in parts and on a cluster."""

import fsspec
import pytest
from runs import DEMO, contents, interrupt_at

from noisegen.errors import OutputError
from noisegen.preparation import prepare as module
from noisegen.preparation.intermediate import WORK
from noisegen.preparation.prepare import prepare
from noisegen.runs.lock import STATE
from noisegen.runs.manifest import Manifest
from noisegen.runs.store import StorePath, output_path

OPTIONS = {"rows_per_shard": 100, "identify": "no"}
TASKS = 4


@pytest.fixture
def out(tmp_path):
    """A folder of a store that is this test's own."""
    return f"memory://bucket/{tmp_path.name}/out"


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Sentences, of which some are repeated and some are alike."""
    lines = DEMO.read_text("utf-8").splitlines()[1:201]
    path = tmp_path_factory.mktemp("raw") / "raw.txt"
    path.write_text("\n".join([*lines, *lines[:50], *(f"{line}!" for line in lines[100:200])]))
    return path


@pytest.fixture(scope="module")
def whole(raw, tmp_path_factory):
    """A run on disk."""
    out = tmp_path_factory.mktemp("whole") / "out"
    prepare(raw, out, **OPTIONS)
    return out


def names(out):
    store, path = fsspec.core.url_to_fs(out, use_listings_cache=False)
    found = (name.partition(path.strip("/"))[2].strip("/") for name in store.find(path))
    return sorted(name for name in found if not name.startswith(STATE))


FINISHED = ["README.md", *(f"data/part-0000{n}.parquet" for n in range(TASKS)), "manifest.json"]


def test_a_store_is_prepared_as_a_disk(raw, whole, out):
    made = prepare(raw, out, **OPTIONS)

    assert contents(output_path(out)) == contents(whole)
    assert made.totals == Manifest.load(whole).totals
    assert made.totals["dropped"]["duplicate"] >= 50
    assert names(out) == FINISHED
    with pytest.raises(OutputError, match="is not empty; add --resume"):
        prepare(raw, out, **OPTIONS)
    with pytest.raises(OutputError, match="another configuration"):
        prepare(raw, out, resume=True, **OPTIONS | {"min_chars": 3})
    prepare(raw, out, force=True, **OPTIONS | {"rows_per_shard": 1_000})
    assert names(out) == ["README.md", "data/part-00000.parquet", "manifest.json"]


def test_parts_meet_in_a_store(raw, whole, out):
    assert prepare(raw, out, part="2/2", **OPTIONS).missing_tasks == TASKS / 2
    assert "data" not in {name.partition("/")[0] for name in names(out)}
    assert prepare(raw, out, part="1/2", **OPTIONS).missing_tasks == 0

    assert contents(output_path(out)) == contents(whole)
    assert names(out) == FINISHED


@pytest.fixture
def opened(monkeypatch):
    """Return the names of the objects that runs in this process open to read."""
    found, open_object = [], StorePath.open

    def noted(self, mode="rb"):
        found.append(self.name)
        return open_object(self, mode)

    monkeypatch.setattr(StorePath, "open", noted)
    return found


def interrupted(*_):
    raise KeyboardInterrupt


def begin(*given, **options):
    """Run `prepare`, interrupted when all candidates are written."""
    with pytest.raises(KeyboardInterrupt):
        prepare(*given, progress=interrupt_at("copying"), **options)


def test_a_run_in_a_store_resumes_by_its_listing(raw, whole, out, opened, portions_made):
    begin(raw, out, **OPTIONS)
    store, path = fsspec.core.url_to_fs(out, use_listings_cache=False)
    store.rm(f"{path}/{WORK}/bands-00001.arrow")
    store.pipe(f"{path}/{WORK}/forms-00002.arrow", b"other")
    portions_made.clear()
    opened.clear()
    begin(raw, out, resume=True, **OPTIONS)
    assert portions_made == [1, 2]
    assert {name for name in opened if "0000" in name and "records" not in name} == set()

    prepare(raw, out, resume=True, **OPTIONS)
    assert contents(output_path(out)) == contents(whole)
    times = [store.info(f"{path}/{name}") for name in FINISHED]
    prepare(raw, out, resume=True, **OPTIONS)
    assert [store.info(f"{path}/{name}") for name in FINISHED] == times
    assert names(out) == FINISHED


@pytest.mark.parametrize("kind", ["texts", "forms", "bands"])
def test_an_object_that_rotted_is_made_again(kind, raw, whole, out):
    begin(raw, out, **OPTIONS)
    store, path = fsspec.core.url_to_fs(out, use_listings_cache=False)
    name = f"work/{kind}-00001.arrow"
    rotten = store.store[f"{path}/{name}"]  # in its place: size and time stay
    rotten.seek(-40, 2)
    rotten.write(b"\0" * 40)

    with pytest.raises(OutputError, match=f"{name} was damaged .*; run again with --resume"):
        prepare(raw, out, resume=True, **OPTIONS)
    prepare(raw, out, resume=True, **OPTIONS)
    assert contents(output_path(out)) == contents(whole)


def test_nothing_stays_on_this_machine(raw, out, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    events = []
    prepare(raw, out, progress=events.append, **OPTIONS)

    assert [event.done for event in events if event.doing == "copying"] == [*range(TASKS + 1)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_a_cluster_prepares_into_s3_and_resumes(
    raw, whole, tmp_path, s3_server, cluster, monkeypatch
):
    out = f"s3://bucket/{tmp_path.name}/out"
    begin(raw, out, executor=cluster, **OPTIONS)
    monkeypatch.setattr(module, "make_candidates", interrupted)
    prepare(raw, out, resume=True, **OPTIONS)

    assert contents(output_path(out)) == contents(whole)
    assert names(out) == FINISHED
