"""Training on packed batches: the run of padded ones, up to rounding; what its log then says."""

import pytest
import torch
from runs import log_rows, trained_weights
from training_runs import SHORT, settings

import noisegen
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import UsageError
from noisegen.training.computation import Computation
from noisegen.training.log import line_of
from noisegen.training.settings import DistilSettings

# With a small eps Adam takes whole steps where a gradient is only rounding.
SIX_STEPS = settings(
    "recipe=stored steps=6 validate_every=100 objective=two_term+0.5*info_nce eps=1e-3"
    " negatives=1024 validation_rows=20"
)


@pytest.fixture
def trained(tiny_bert, pairs_file, tmp_path):
    def run(name, **values):
        given = {**SHORT, **SIX_STEPS, "teacher": str(tiny_bert), **values}
        noisegen.train([str(pairs_file)], tmp_path / name, values=given, device="cpu")
        rows = [row for row in log_rows(tmp_path / name) if "loss" in row]
        return trained_weights(tmp_path / name, 6), rows

    return run


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_packed_batches_give_the_run_of_padded_ones(trained, pooling):
    padded, with_padding = trained("padded", packed=False, pooling=pooling)
    packed, without = trained("packed", packed=True, pooling=pooling)

    for name, value in padded.items():
        torch.testing.assert_close(packed[name], value, atol=2e-5, rtol=1e-3, msg=name)
    assert (without[0]["tokens"], without[0]["padding"]) == (with_padding[0]["tokens"], 0)
    assert without[0]["loss"] == pytest.approx(with_padding[0]["loss"], rel=1e-4)
    assert "mfu" not in without[0]


def test_the_log_says_how_much_of_the_peak_is_used(trained, monkeypatch):
    monkeypatch.setattr(Computation, "mfu", lambda self, speed, length: speed * length / 1e9)
    _, (row, *_) = trained("run")

    assert row["mfu"] > 0
    assert f"mfu {row['mfu']:.0%}" in line_of(row)


def test_a_network_that_takes_no_packed_batches_is_refused_at_the_start(tiny_bert):
    student = open_encoder(str(tiny_bert))
    student.config.model_type = "distilbert"
    with pytest.raises(UsageError, match=r"takes no packed batches, only bert, roberta"):
        Computation(DistilSettings(epochs=1, packed=True), student, torch.device("cpu"))
