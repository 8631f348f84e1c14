"""The mining functions of the package, and the commands that are their twins."""

import json

import pytest

import noisegen
from noisegen.cli import run
from noisegen.errors import UsageError

NOISY = "They will definately close the old bridge near the harbour in spring ."
CLEAN = NOISY.replace("definately", "definitely")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"noisy": NOISY, "clean": CLEAN}) + "\n")
    return path


def test_a_function_and_its_command_write_the_same(table, tmp_path):
    made = noisegen.mine_pairs(table, tmp_path / "a", lang="en", min_count=1)
    assert made.dictionary["entries"] == 1
    assert run(["mine-pairs", str(table), "-o", str(tmp_path / "b"), "-q", "--min-count", "1"]) == 0
    for name in ("dictionary.tsv", "dictionary.parquet", "pairs/part-00000.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_thresholds_of_a_profile_can_be_changed_one_by_one(table, tmp_path):
    made = noisegen.mine_pairs(table, tmp_path / "a", profile="strict", min_pages=1)
    assert made.thresholds == {
        "min_pages": 1, "min_count": 1, "balance": 3, "frequency": 10, "top": 20,
    }  # fmt: skip
    with pytest.raises(UsageError, match="--min-pages -1 must be at least 0"):
        noisegen.mine_pairs(table, tmp_path / "b", min_pages=-1)


def test_what_is_left_out_is_told(table, tmp_path):
    (tmp_path / "notes.pdf").write_bytes(b"%PDF")
    told: list[str] = []
    noisegen.mine_pairs(tmp_path, tmp_path / "out", tell=told.append)
    [line] = told
    assert line.startswith("skipped ")
    assert "notes.pdf" in line


def test_an_option_that_is_none_is_an_error(table, tmp_path):
    with pytest.raises(TypeError, match="profil"):
        noisegen.mine_pairs(table, tmp_path / "out", profil="rcp")


def test_dask_writes_the_same(table, tmp_path, cluster):
    again = tmp_path / "more.jsonl"
    again.write_text(table.read_text().replace("harbour", "market"))
    for name, options in (("one", {"workers": 1}), ("dask", {"executor": cluster})):
        noisegen.mine_pairs([table, again], tmp_path / name, **options)
    for name in ("dictionary.tsv", "pairs/part-00000.parquet", "pairs/part-00001.parquet"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "dask" / name).read_bytes()
