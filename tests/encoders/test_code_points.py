"""CANINE: its characters are its tokens, and a text's vector is that of CANINE in transformers."""

import json

import made_tasks
import numpy as np
import pytest
import torch
from models import canine_folder

from noisegen.cli import run
from noisegen.encoders.encoder import open_encoder
from noisegen.encoders.folders import open_folder, save_folder
from noisegen.errors import UsageError
from noisegen.training.masking import open_model
from noisegen.training.settings import load_settings

TEXTS = ["see you tomorrow", "", "a", "Grüße 🔥 2moro", "x" * 150, "more \ud800 text"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return canine_folder(tmp_path_factory.mktemp("canine"))


def test_characters_are_the_tokens(folder):
    from transformers import AutoTokenizer

    tokenizer, theirs = open_folder(folder).tokenizer, AutoTokenizer.from_pretrained(folder)
    known = TEXTS[:-1]  # theirs refuses a lone surrogate
    assert [row.tolist() for row in tokenizer.tokenize(known)] == [
        theirs(text)["input_ids"] for text in known
    ]
    [pair] = tokenizer.encodings([("ab", "cde")])
    assert pair.ids == theirs("ab", "cde")["input_ids"]
    assert pair.type_ids == [0, 0, 0, 0, 1, 1, 1, 1]
    assert tokenizer.max_length == 2_048
    assert len(tokenizer.tokenize(["y" * 3_000])[0]) == 2_048
    [pair] = tokenizer.encodings([("y" * 3_000, "z" * 500)])
    assert (len(pair.ids), sum(pair.type_ids), pair.overflowing) == (2_048, 501, True)


def test_vectors_are_those_of_transformers_whatever_the_batch(folder):
    from transformers import AutoModel

    encoder, network = open_encoder(str(folder)), AutoModel.from_pretrained(folder).eval()
    together = encoder.encode(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(encoder.encode([text])[0], vector, atol=2e-5)
        ids = torch.from_numpy(encoder.tokenizer.tokenize([text])[0].astype(np.int64))
        length = len(ids)
        ids = torch.nn.functional.pad(ids, (0, 200 - length))[None]  # as in a batch of longer ones
        with torch.inference_mode():
            states = network(ids, (torch.arange(200) < length).long()[None]).last_hidden_state
        np.testing.assert_allclose(states[0, :length].mean(0), vector, atol=2e-5)


def test_a_saved_canine_opens_again(folder, tmp_path):
    encoder = open_encoder(str(folder))
    save_folder(encoder, tmp_path / "copy")
    np.testing.assert_array_equal(
        open_encoder(str(tmp_path / "copy")).encode(TEXTS), encoder.encode(TEXTS)
    )


def test_canine_is_fine_tuned_on_a_task(folder, tmp_path):
    train, test = made_tasks.snips_file(tmp_path), f"es={made_tasks.slots_file(tmp_path)}"
    command = ["evaluate-task", f"canine={folder}", "--train", str(train), "--test", test]
    options = ["--epochs", "12", "--lr", "5e-3", "--seeds", "1", "--max-length", "60", "--quiet"]
    assert run([*command, *options, "-o", str(tmp_path / "report")]) == 0
    found = json.loads((tmp_path / "report" / "metrics.json").read_text())["canine"]
    assert found["es clean"]["intent_accuracy"] > 90
    assert found["es clean"]["slot_f1"] > 60


def test_canine_has_no_masks_to_learn_from(folder):
    settings = load_settings("rcp-small", values={"student": str(folder)})
    with pytest.raises(UsageError, match="cannot be pre-trained on masks"):
        open_model(settings)
