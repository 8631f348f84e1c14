"""Encoders on another device than the CPU: nothing stays behind, and the vectors are the same."""

import numpy as np
import pytest
import torch
from fake_device import CUDA, FakeDevice, OnDevice
from models import character_bert, laser2_checkpoint, laser2_pieces, xlmr_folder

from noisegen.encoders.encoder import move, open_encoder
from noisegen.encoders.folders import save_folder
from noisegen.encoders.sentence_encoder import encoding_on

TEXTS = ["see you tomorrow", "a", "The ferry was late again, and so was I.", ""]


@pytest.fixture
def fake(monkeypatch):
    device = FakeDevice()
    with device.present(monkeypatch):
        yield device


def laser2(folder, texts):
    pytest.importorskip("sacremoses")
    pytest.importorskip("sentencepiece")
    model, pieces = laser2_pieces(folder, texts)
    for path in folder.iterdir():
        path.unlink()
    torch.save(laser2_checkpoint(pieces, 6, 5, 3), folder / "laser2.pt")
    (folder / "laser2.spm").write_bytes(model)
    return f"laser2:{folder}"


def character_student(folder, texts):
    save_folder(character_bert(folder / "bert"), folder / "student")
    return str(folder / "student")


KINDS = {
    "bert": lambda folder, texts: str(xlmr_folder(folder)),
    "laser2": laser2,
    "characters": character_student,
    "social": lambda folder, texts: f"social:{laser2(folder, texts)}",
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_moves_whole_and_gives_the_same_vectors(fake, tmp_path, demo_texts, kind):
    encoder = open_encoder(KINDS[kind](tmp_path, demo_texts))
    before = encoder.encode(TEXTS)
    with encoding_on(CUDA, encoder, "fp32"):
        assert all(isinstance(weight, OnDevice) for weight in encoder.parameters())
        ran = fake.ran
        on_device = encoder.encode(TEXTS)

    assert fake.ran > ran
    np.testing.assert_allclose(on_device, before, atol=2e-6)
    assert not any(isinstance(weight, OnDevice) for weight in encoder.parameters())
    assert np.array_equal(encoder.encode(TEXTS), before)


def test_an_encoder_without_weights_says_that_it_stays(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((1, 3), np.float32))
    (tmp_path / "v.txt").write_text("a\n")
    told = []
    move(open_encoder(f"npy:{tmp_path / 'v.npy'}"), CUDA, told.append)

    assert told == [f"npy:{tmp_path / 'v.npy'} stays on the CPU: it has no weights of torch"]
