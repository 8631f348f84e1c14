"""RUN/heads opens again, unless it is damaged, foreign, or belongs to another encoder."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from noisegen.encoders.encoder import open_encoder
from noisegen.errors import NoisegenError, SourceError
from noisegen.training.heads import HeadConfig, Heads, save_heads


@pytest.fixture
def teacher(tiny_models):
    return str(tiny_models(32))


@pytest.fixture
def saved(tmp_path, teacher):
    heads = Heads(32, torch.Generator().manual_seed(0))
    config = HeadConfig(teacher, open_encoder(teacher).digest, 32, ("en", "de"), "meat")
    save_heads(heads, config, tmp_path / "heads")
    return tmp_path / "heads"


def changed(folder, **values):
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(said | values))


def test_heads_of_another_encoder_are_refused(saved, tiny_models):
    changed(saved, encoder=str(tiny_models(32, 1)))
    with pytest.raises(SourceError, match="train the heads again"):
        open_encoder(f"heads:{saved}")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"width": 31}, "does not hold two heads of width 31"),
        ({"kind": "bert"}, "is not the"),
        ({"width": "32"}, "is not the"),
        ({"width": 10**9}, "is not the"),
        ({"encoder": "heads:x"}, "cannot be trained"),
        ({"encoder": "nothing"}, "no model 'nothing'"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(saved, values, said):
    changed(saved, **values)
    with pytest.raises(NoisegenError, match=said):
        open_encoder(f"heads:{saved}")


def test_json_of_too_many_brackets_is_one_clear_line(saved):
    (saved / "config.json").write_text("[" * 100_000)
    with pytest.raises(SourceError, match=r"cannot read .*config\.json: "):
        open_encoder(f"heads:{saved}")


def test_foreign_folders_and_damaged_weights_are_refused(saved, tmp_path, teacher):
    for folder in (tmp_path / "none", teacher):
        with pytest.raises(SourceError):
            open_encoder(f"heads:{folder}")
    weights = load_file(saved / "model.safetensors")
    save_file(
        {**weights, "meaning.bias": weights["meaning.bias"] * float("nan")},
        saved / "model.safetensors",
    )
    with pytest.raises(SourceError, match="does not hold two heads"):
        open_encoder(f"heads:{saved}")
    (saved / "model.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(SourceError, match="cannot read"):
        open_encoder(f"heads:{saved}")
    (saved / "model.safetensors").unlink()
    (saved / "model.bin").write_bytes(b"")
    with pytest.raises(SourceError, match="pickled"):
        open_encoder(f"heads:{saved}")
