"""Training on a GPU that is not there: nothing stays on the CPU, and no update waits for it."""

import os
import signal

import pytest
import torch
from fake_device import FakeDevice
from models import character_bert, laser2_checkpoint, laser2_pieces
from runs import log_rows, same_weights, trained_weights
from training_runs import SHORT, settings

import noisegen
from noisegen.encoders.laser2 import Laser2
from noisegen.errors import NoisegenError
from noisegen.training.trainer import Trainer

STEPS = 5  # gradients are read every tenth update, which is no wait
PRETRAIN = (
    f"batch_tokens=256 batch_pairs=32 steps={STEPS} validation_rows=10 validation_share=0.05"
    " max_length=48 warmup=2 dropout=0.1 validate_every=100"
)
RUN = settings("recipe=stored validate_every=100 negatives=64 validation_rows=20 eps=1e-3")


@pytest.fixture
def on_device(monkeypatch):
    """Run a function on the device; return the waits in its updates, from the second one on."""

    def run(function, *given, bf16=False, **more):
        fake, waits = FakeDevice(), []
        update = Trainer.update

        def watched(trainer, *args):
            before = len(fake.syncs)
            update(trainer, *args)
            if 1 < trainer.progress.updates < STEPS:
                waits.extend(x for x in fake.syncs[before:] if "_check_gradients" not in x)

        monkeypatch.setattr(Trainer, "update", watched)
        with fake.present(monkeypatch, bf16=bf16):
            function(*given, device="cuda", **more)
        assert fake.ran
        return set(waits)

    return run


@pytest.mark.parametrize(
    "values",
    [
        "objective=mse_sum+0.2*info_nce packed=true precision=bf16",
        "objective=two_term dropout=0.1 accumulate=2",
        "objective=nt_xent precision=fp16",
        "objective=mse_sum student=char:FOLDER project=after pooling=mean",
    ],
)
def test_distillation_waits_for_nothing(on_device, tiny_bert, pairs_file, tmp_path, values):
    if "char" in values:
        character_bert(tmp_path / "char")
    changed = settings(values.replace("FOLDER", str(tmp_path / "char")))
    given = {**SHORT, **RUN, "steps": STEPS, "teacher": str(tiny_bert), **changed}
    out = str(tmp_path / "gpu")

    assert not on_device(
        noisegen.train, [str(pairs_file)], out, values=given, bf16="bf16" in values
    )


@pytest.mark.parametrize("values", ["precision=fp32 memory=32", "precision=bf16 graph_gb=1e-4"])
def test_pre_training_waits_for_nothing(on_device, tiny_models, pairs_file, tmp_path, values):
    given = settings(f"{PRETRAIN} {values} student={tiny_models()}")
    out = str(tmp_path / "gpu")

    assert not on_device(
        noisegen.train, [str(pairs_file)], out, preset="rcp-small", values=given, bf16=True
    )


def test_heads_wait_for_nothing(on_device, tiny_bert, pairs_file, tmp_path):
    values = settings(f"labels=side steps={STEPS} batch_pairs=16 teacher={tiny_bert}")
    given = {"preset": "oracle-small", "objective": "meat+oracle", "values": values}

    assert not on_device(noisegen.train, [str(pairs_file)], str(tmp_path / "gpu"), **given)


@pytest.mark.parametrize("step", [8, 14])
def test_a_gradient_that_is_not_finite_is_named_by_its_update(
    tiny_bert, pairs_file, tmp_path, monkeypatch, step
):
    clip = torch.nn.utils.clip_grad_norm_
    calls = []

    def broken(weights, norm):
        calls.append(norm)
        return clip(weights, norm) * (float("nan") if len(calls) == step else 1)

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", broken)
    given = {**SHORT, **RUN, "steps": 30, "teacher": str(tiny_bert), "validate_every": 5}
    with pytest.raises(NoisegenError, match=f"the gradient of step {step} is nan; the last good"):
        noisegen.train([str(pairs_file)], str(tmp_path / "run"), values=given, device="cpu")

    assert len(calls) <= step + 3
    newest = max((tmp_path / "run" / "checkpoints").glob("step-*"))
    assert int(newest.name[-7:]) < step


def test_fp16_learns_and_resumes_with_the_same_bits(tiny_bert, pairs_file, tmp_path):
    def run(name, resume=False, sinks=(), **values):
        given = {**SHORT, **RUN, "steps": 12, "teacher": str(tiny_bert), **values}
        given |= settings("student=layers:0 precision=fp16")
        out = tmp_path / name
        noisegen.train(
            [str(pairs_file)], out, values=given, device="cpu", resume=resume, sinks=sinks
        )
        return trained_weights(out, 12), log_rows(out)

    def stop(row):
        if row["step"] == 10 and "loss" in row:
            os.kill(os.getpid(), signal.SIGINT)

    whole, rows = run("fp16")
    with pytest.raises(KeyboardInterrupt):
        run("cut", sinks=[stop])
    again, _ = run("cut", resume=True)

    assert same_weights(whole, again)
    first, *_, last = (row["validation_loss"] for row in rows if "validation_loss" in row)
    assert last < 0.9 * first


def test_the_frozen_encoder_of_heads_computes_on_the_device(
    on_device, monkeypatch, pairs_file, tmp_path, demo_texts
):
    pytest.importorskip("sacremoses")
    sentencepiece, pieces = laser2_pieces(tmp_path, demo_texts)
    (tmp_path / "laser").mkdir()
    torch.save(laser2_checkpoint(pieces, 6, 5, 2), tmp_path / "laser" / "laser2.pt")
    (tmp_path / "laser" / "laser2.spm").write_bytes(sentencepiece)
    encode, devices = Laser2.encode, set()

    def watched(encoder, texts, progress=None):
        devices.add(next(encoder.parameters()).device.type)
        return encode(encoder, texts, progress)

    monkeypatch.setattr(Laser2, "encode", watched)
    values = settings(f"labels=side steps=2 batch_pairs=16 teacher=laser2:{tmp_path / 'laser'}")
    given = {"preset": "oracle-small", "objective": "meat+oracle", "values": values}
    on_device(noisegen.train, [str(pairs_file)], str(tmp_path / "gpu"), **given)

    assert devices == {"cuda"}
