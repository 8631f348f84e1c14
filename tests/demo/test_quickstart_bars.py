"""What the quickstart must reach on text kept out of training, with its own settings."""

import pytest

import noisegen

pytest.importorskip("gensim")
pytestmark = pytest.mark.nightly


def test_ten_minutes_make_a_robust_student(tmp_path):
    found = noisegen.quickstart(tmp_path / "first").results.metrics()
    before, after = found["minilm"], found["student"]

    noises = [name for name in after if "drift" in after[name]]
    leet = next(name for name in noises if "leet" in name)
    assert after[leet]["distance"] <= 0.5 * before[leet]["distance"]
    assert max(after[name]["drift"] for name in noises) <= 0.03
    for name in ("sentences", "documents"):
        assert after[name]["sts_one_noisy"] - before[name]["sts_one_noisy"] >= 5
    assert after["documents"]["sts_clean"] - before["documents"]["sts_clean"] >= -0.5
    assert after["sentences"]["sts_clean"] >= 98.5  # of 100, the order of the teacher itself
