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
    sentences = before["sentences"], after["sentences"]
    noisy, clean = (
        [side[metric] for side in sentences] for metric in ("sts_one_noisy", "sts_clean")
    )
    assert noisy[1] - noisy[0] >= 5
    assert clean[1] - clean[0] >= -0.5
