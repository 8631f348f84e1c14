"""Where the shards of a run lie, and who reads them there."""

import pandas as pd
import pytest
from runs import DEMO, FAST, augment, shards, table, visible

from noisegen.data.sources import expand
from noisegen.runs.manifest import Manifest

OPTIONS = {"rows_per_shard": 100, "transforms": FAST}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    augment(DEMO, out, **OPTIONS)
    return out


def test_shards_lie_in_data_beside_manifest_and_card(run):
    assert visible(run) == ["README.md", "data", "manifest.json"]
    assert len(pd.read_parquet(run / "data")) == Manifest.load(run).totals["rows"] == 420
    assert [run / shard["file"] for shard in Manifest.load(run).shards] == shards(run)


def test_a_run_is_a_source_of_its_shards(run):
    inputs = [item.path for item in expand([str(run)]) if not item.skipped]
    assert inputs == list(map(str, shards(run)))


def test_datasets_opens_a_run(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    loaded = datasets.load_dataset(str(run), split="train", cache_dir=str(tmp_path / "cache"))

    assert loaded["noisy"][:] == table(run)["noisy"].to_pylist()
