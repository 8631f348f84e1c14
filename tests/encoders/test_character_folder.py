"""The character-aware encoder as a whole: beginning, folder, and in sentence-transformers."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from models import head_of
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, BertConfig, RobertaConfig

from noisegen.encoders.character_folder import (
    CharacterTransformer,
    character_student,
    open_network,
    save_network,
)
from noisegen.encoders.encoder import Encoder
from noisegen.encoders.folders import open_folder, save_folder
from noisegen.encoders.tokens import Padded
from noisegen.errors import SourceError, UsageError

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": 66,
}
TEXTS = [
    "see you tomorrow",
    "c u 2moro!!!",
    "",
    "é" * 70,
    "a b " * 100,
    "[CLS] is no sign here",
    "half \ud83d a pair",
]
ABSOLUTE = {"atol": 1e-6, "rtol": 0}
PROJECTED = head_of("max", 24)


@cache
def student(kind=BertConfig, head=PROJECTED, seed=0, **rules):
    """Make one, once: no test changes its weights."""
    torch.manual_seed(seed)
    return character_student(kind(**SMALL), head, max_length=64, **rules)


@pytest.mark.parametrize("kind", [BertConfig, RobertaConfig])
def test_a_vector_does_not_depend_on_the_other_texts(kind):
    encoder = student(kind)
    assert isinstance(encoder, Encoder)
    together = encoder.encode(TEXTS)
    assert together.shape == (len(TEXTS), 24)
    for number, text in enumerate(TEXTS):
        np.testing.assert_allclose(encoder.encode([text])[0], together[number], atol=1e-6)


@pytest.mark.parametrize("kind", [BertConfig, RobertaConfig])
def test_padding_takes_no_part(kind):
    """Whatever stands in the places of padding, states and vectors stay as they are."""
    encoder = student(kind)
    ids = encoder.tokenizer.tokenize(["see you", "see you there at ten"])
    batch = Padded.of(ids, encoder.tokenizer.pad_id)
    other = batch.ids.clone()
    other[~batch.mask] = encoder.tokenizer.table.known["ten"]
    with torch.no_grad():
        if kind is BertConfig:  # RoBERTa counts positions by what is padding
            changed = encoder(replace(batch, ids=other, host=other.numpy()))
            torch.testing.assert_close(changed, encoder(batch), **ABSOLUTE)
        alone = encoder(Padded.of(ids.take(np.array([0])), 0))
        torch.testing.assert_close(encoder(batch)[:1], alone, **ABSOLUTE)


def test_case_and_spelling_change_a_vector_but_lower_does_away_with_case():
    encoder, lower = student(), student(lower=True)
    vectors = encoder.encode(["Big", "big", "bg"])
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-4 < np.abs(vectors[1] - vectors[2]).max()
    np.testing.assert_allclose(*lower.encode(["Big", "big"]), **ABSOLUTE)
    assert encoder.digest != lower.digest


def test_the_seed_of_the_caller_decides_the_weights():
    again = student.__wrapped__(seed=0)
    assert student().digest == again.digest != student(seed=2).digest


def test_every_weight_is_trained():
    encoder = deepcopy(student()).train()
    ids = encoder.tokenizer.tokenize(TEXTS[:3])
    encoder(Padded.of(ids, 0)).pow(2).sum().backward()
    unused = [name for name, weight in encoder.named_parameters() if weight.grad is None]
    assert unused == []


def test_texts_are_tokenised_in_the_background_while_others_are_trained_on():
    encoder = deepcopy(student())
    texts = [" ".join(f"w{number + step}" for number in range(20)) for step in range(120)]
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(encoder.tokenizer.tokenize, texts[:10])
        for first in range(10, 120, 10):
            ids = coming.result()
            coming = ahead.submit(encoder.tokenizer.tokenize, texts[first : first + 10])
            with torch.no_grad():
                found = encoder(Padded.of(ids, 0)).numpy()
            expected = student().encode(texts[first - 10 : first])
            np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("copied", [deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_gives_the_same_vectors_and_shares_nothing(copied):
    encoder = student()
    before = encoder.encode(TEXTS)
    copy = copied(encoder)
    np.testing.assert_array_equal(copy.encode(TEXTS), before)
    copy.encode(["a new word"])
    assert "new" not in encoder.tokenizer.table.known
    assert copy.tokenizer.table is copy.network.get_input_embeddings().table


@pytest.mark.parametrize(
    ("config", "length", "message"),
    [
        (BertConfig(**SMALL), 67, "66 positions"),
        (RobertaConfig(**SMALL), 66, "65 positions"),
        (AutoConfig.for_model("xlm-roberta"), 64, "only bert and roberta"),
    ],
)
def test_a_network_that_does_not_serve_is_one_clear_line(config, length, message):
    with pytest.raises(UsageError, match=message):
        character_student(config, max_length=length)


@pytest.mark.parametrize("kind", [BertConfig, RobertaConfig])
def test_a_text_may_have_as_many_words_as_there_are_positions(kind):
    length = 66 - (kind is RobertaConfig)
    encoder = character_student(kind(**SMALL), max_length=length)
    assert np.isfinite(encoder.encode(["a " * 500])).all()


@pytest.mark.parametrize("kind", [BertConfig, RobertaConfig])
def test_a_network_comes_back_from_its_folder(tmp_path, kind):
    encoder = student(kind, lower=True)
    save_network(encoder.network, encoder.tokenizer, tmp_path)
    network, tokenizer = open_network(tmp_path)
    assert tokenizer.digest == encoder.tokenizer.digest
    assert network.state_dict().keys() == encoder.network.state_dict().keys()
    for name, value in encoder.network.state_dict().items():
        assert torch.equal(network.state_dict()[name], value), name
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json",
        "model.safetensors",
        "words.json",
    ]


def test_no_other_program_takes_the_folder_for_a_bert(tmp_path):
    encoder = student()
    save_network(encoder.network, encoder.tokenizer, tmp_path)
    with pytest.raises(ValueError, match="noisegen_characters"):
        AutoModel.from_pretrained(tmp_path)


HEADS = [
    head_of("mean"),
    head_of("max", 24, "before", bias=False),
    head_of("cls", 24, "after", normalize=True),
]


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.pooling)
@pytest.mark.parametrize(
    "kind", [BertConfig, pytest.param(RobertaConfig, marks=pytest.mark.nightly)]
)
def test_sentence_transformers_gives_the_same_vectors(tmp_path, kind, head):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    encoder = student(kind, head)
    save_folder(encoder, tmp_path / "student")
    expected = encoder.encode(TEXTS[:-1])
    opened = open_folder(tmp_path / "student")
    assert opened.digest == encoder.digest
    np.testing.assert_array_equal(opened.encode(TEXTS[:-1]), expected)
    model = sentence_transformers.SentenceTransformer(
        str(tmp_path / "student"), trust_remote_code=True, device="cpu", local_files_only=True
    )
    np.testing.assert_allclose(model.encode(TEXTS[:-1]), expected, **ABSOLUTE)
    model.save(str(tmp_path / "again"), create_model_card=False)
    again = open_folder(tmp_path / "again")
    np.testing.assert_allclose(again.encode(TEXTS[:-1]), expected, **ABSOLUTE)


def test_sentence_transformers_can_cut_texts_and_put_a_prompt_before_them():
    encoder = student()
    module = CharacterTransformer(encoder.network, encoder.tokenizer.with_rules(9, lower=False))
    module.max_seq_length = 5
    assert module.max_seq_length == 5
    plain = module.preprocess(["to be or not"])
    prompted = module.preprocess(["be or not"], prompt="to ")
    assert plain["characters"].shape == (1, 5, 50)
    assert torch.equal(plain["characters"], prompted["characters"])


def spoiled(folder, change):
    """Change one file of a good folder."""
    name, wanted = change
    path = folder / name
    if callable(wanted):
        wanted = wanted(json.loads(path.read_text()))
        path.write_text(json.dumps(wanted))
    elif wanted is None:
        path.unlink()
    else:
        path.write_bytes(wanted)


def with_width(width):
    return "config.json", lambda said: said | {"network": said["network"] | {"hidden_size": width}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("words.json", None), r"cannot read .*words\.json"),
        (("words.json", b"[1]"), "Expected `object`, got `array`"),
        (("words.json", b'{"lower": false}'), "max_length"),
        (("words.json", b'{"max_length": 4000, "lower": false}'), "66 positions"),
        (("config.json", lambda said: {"model_type": "bert"}), "describes no character-aware"),
        (("config.json", lambda said: said | {"network": {"model_type": "t5"}}), "character-aware"),
        (("config.json", lambda said: said | {"network": 3}), "character-aware"),
        (with_width(36), "do not fit config.json"),
        (with_width(33), "multiple"),
        (with_width("x"), "expected int, got str"),
        (("model.safetensors", None), r"cannot read .*model\.safetensors"),
        (("model.safetensors", b"no weights"), r"cannot read .*model\.safetensors"),
    ],
)
def test_a_damaged_folder_is_one_clear_line(tmp_path, change, message):
    encoder = student()
    save_network(encoder.network, encoder.tokenizer, tmp_path)
    spoiled(tmp_path, change)
    with pytest.raises(SourceError, match=message) as caught:
        open_network(tmp_path)
    assert "\n" not in str(caught.value)


def test_weights_that_are_missing_are_named(tmp_path):
    encoder = student()
    save_network(encoder.network, encoder.tokenizer, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["embeddings.word_embeddings.projection.bias"]
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(SourceError, match=r"lacks 1 weights, the first is .*projection\.bias"):
        open_network(tmp_path)


def test_weights_of_more_layers_than_the_settings_name_are_one_line(tmp_path):
    encoder = student()
    save_network(encoder.network, encoder.tokenizer, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["network"]["num_hidden_layers"] -= 1
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(SourceError, match="weights of layers that its config"):
        open_network(tmp_path)
