"""Where the shards of a run lie: in `data`, or beside the manifest in runs of the first layout."""

import shutil

import pandas as pd
import pytest
from runs import DEMO, FAST, augment, contents, first_layout, shards, table

from noisegen.augmentation import statistics
from noisegen.data.pairs import read_pairs
from noisegen.data.sources import expand
from noisegen.runs import folder as folder_module
from noisegen.runs.manifest import Manifest

OPTIONS = {"rows_per_shard": 100, "transforms": FAST}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    augment(DEMO, out, **OPTIONS)
    return out


@pytest.fixture(params=["data", "first layout"])
def either(run, request, tmp_path):
    """The same run in both layouts."""
    copy = shutil.copytree(run, tmp_path / "copy")
    return copy if request.param == "data" else first_layout(copy)


def test_shards_lie_in_data_beside_manifest_and_card(run):
    assert sorted(path.name for path in run.iterdir()) == ["README.md", "data", "manifest.json"]
    assert len(pd.read_parquet(run / "data")) == Manifest.load(run).totals["rows"] == 420
    assert all((run / shard["file"]).is_file() for shard in Manifest.load(run).shards)


def test_both_layouts_are_read_alike(either, run):
    assert statistics.measure(either) == statistics.measure(run)
    assert read_pairs([str(either)]) == read_pairs([str(run)])
    inputs = [item.path for item in expand([str(either)]) if not item.skipped]
    assert inputs == list(map(str, shards(either)))


def test_datasets_opens_both_layouts(either, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    loaded = datasets.load_dataset(str(either), split="train", cache_dir=str(tmp_path / "cache"))

    assert loaded["noisy"][:] == table(either)["noisy"].to_pylist()


def test_a_run_of_either_layout_resumes_where_it_lies(either, run):
    lost = shards(either)[2]
    lost.unlink()
    (either / "manifest.json").unlink()

    made = augment(DEMO, either, resume=True, **OPTIONS)

    assert lost.is_file()
    assert contents(either) == contents(run)
    assert [either / shard["file"] for shard in made.shards] == shards(either)
    assert (either / "data").exists() == (lost.parent.name == "data")


def test_force_moves_a_run_of_the_first_layout_to_data(either, run):
    augment(DEMO, either, force=True, **OPTIONS)

    assert not list(either.glob("part-*"))
    assert contents(either / "data") == contents(run)


def test_a_footer_is_read_once(either, monkeypatch):
    read = []
    metadata = folder_module.parquet_metadata
    monkeypatch.setattr(
        folder_module, "parquet_metadata", lambda path: (read.append(path.name), metadata(path))[1]
    )

    augment(DEMO, either, resume=True, **OPTIONS)

    assert sorted(read) == [path.name for path in shards(either)]
