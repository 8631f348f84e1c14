import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from models import character_bert, head_of

from noisegen.encoders.folders import open_folder, save_folder
from noisegen.encoders.head import DenseLayer, Pooling
from noisegen.encoders.tokens import Padded
from noisegen.errors import SourceError, UsageError
from noisegen.training.settings import load_settings
from noisegen.training.students import interpolate, make_student


@pytest.fixture
def teacher(tiny_bert):
    return open_folder(tiny_bert)


def student(teacher, **values):
    return make_student(load_settings("quickstart", None, values), teacher)


TEXTS = ["see you tomorrow", "c u 2moro", "a much longer sentence about nothing at all"]


def test_a_copy_gives_the_same_vectors_and_shares_no_weight(teacher):
    copy = student(teacher)

    assert (copy.encode(TEXTS) == teacher.encode(TEXTS)).all()
    theirs = {weight.data_ptr() for weight in teacher.parameters()}
    assert not theirs & {weight.data_ptr() for weight in copy.parameters()}


def test_layers_keep_their_weights(teacher):
    thin = student(teacher, student="layers:1")

    assert thin.config.num_hidden_layers == 1
    assert torch.equal(
        thin.network.encoder.layer[0].attention.self.query.weight,
        teacher.network.encoder.layer[1].attention.self.query.weight,
    )
    assert len(teacher.network.encoder.layer) == 2


def test_another_encoder_gets_a_projection_to_the_teachers_width(teacher, tmp_path):
    from transformers import BertConfig, BertModel

    teacher.tokenizer.save(tmp_path)
    config = BertConfig(
        vocab_size=88,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    BertModel(config).save_pretrained(tmp_path)

    with pytest.raises(UsageError, match=r"16 numbers per vector.* 32: add --set project=after"):
        student(teacher, student=str(tmp_path))
    projected = student(teacher, student=str(tmp_path), project="before", projection_bias=False)
    assert projected.encode(TEXTS).shape == (3, 32)
    assert projected.head.projection.bias is None


def test_a_projection_has_an_activation(teacher):
    made = student(teacher, project="after", projection_activation="gelu")
    linear, bound = made.head.projection, made.head.projection.in_features**-0.5
    (layer,) = (module for module in made.head.steps if isinstance(module, DenseLayer))
    vectors = torch.randn(3, 32)

    assert torch.equal(layer(vectors), torch.nn.functional.gelu(linear(vectors)))
    assert (
        float(linear.weight.detach().abs().max()) <= bound
    )  # torch's start, as the Dense of RoLASER v2


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_new_projection_starts_as_rolasers(teacher, place):
    """N(0, width^-1/2) as in its code; torch's linear layer has .58 of that standard deviation."""
    first, again, other = (
        student(teacher, project=place, projection_bias=False, seed=seed).head.projection.weight
        for seed in (3, 3, 4)
    )
    scaled = first.detach() * first.shape[1] ** 0.5

    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert float(scaled.mean()) == pytest.approx(0, abs=0.1)
    assert float(scaled.std()) == pytest.approx(1, abs=0.1)
    assert scaled.abs().max() > 2.5  # no uniform draw


def test_steps_that_stay_in_a_head_keep_their_weights(tiny_bert, tmp_path):
    head = head_of("mean", 24, "after", normalize=True)
    start = open_folder(tiny_bert, head=head)
    save_folder(start, tmp_path)
    for values in ({"normalize": False}, {"pooling": "max"}, {"project": "after"}):
        made = student(start, student=str(tmp_path), **values)
        assert torch.equal(made.head.projection.weight, start.head.projection.weight)
    wide = replace(head, steps=(Pooling(("cls", "mean")), *head.steps[1:]))
    save_folder(start := open_folder(tiny_bert, head=wide), tmp_path / "wide")
    made = student(start, student=str(tmp_path / "wide"), pooling="max")
    assert made.head.projection.weight.shape == (24, 32)  # new, since its width is another one


def test_freezing_and_dropout(teacher):
    frozen = student(teacher, freeze=["embeddings"], dropout=0.25)
    still = {name for name, weight in frozen.named_parameters() if not weight.requires_grad}

    assert still
    assert all(name.startswith("network.embeddings") for name in still)
    drops = {m.p for m in frozen.modules() if isinstance(m, torch.nn.Dropout)}
    assert drops == {0.25}


def test_small_letters_first(teacher):
    both = student(teacher, lower=True).encode(["SEE YOU", "see you"])

    assert (both[0] == both[1]).all()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"student": "layers:7"}, "write numbers from 0 to 1"),
        ({"student": "layers:"}, "write numbers from 0 to 1"),
        ({"student": "layers:0,0"}, "each once"),  # one layer twice cannot be saved
        ({"student": "layers:-1"}, "write numbers from 0 to 1"),
        ({"student": "nothing"}, "no model 'nothing'"),
        ({"freeze": ["embedings"]}, "no weight of the student has this prefix"),
        ({"freeze": ["emb", "enc"]}, "freeze 'emb, enc' leaves no weight to train"),
    ],
)
def test_students_that_cannot_be(teacher, values, said):
    with pytest.raises(UsageError, match=said):
        student(teacher, **values)


def test_length_and_small_letters_are_asked_of_words_as_of_pieces(teacher, monkeypatch):
    from transformers import BertConfig

    from noisegen.encoders import character_folder

    small = BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    made = character_folder.character_student(small)
    monkeypatch.setattr(character_folder, "character_student", lambda: made)

    found = student(teacher, student="char", max_length=16, lower=True).tokenizer

    assert (found.max_length, found.lower) == (16, True)
    assert found.tokenize(["Word " * 100]).lengths.tolist() == [16]


@pytest.mark.parametrize(
    ("prefix", "pickled"), [("", True), ("character_bert.", False), ("bert.", True)]
)
def test_a_student_starts_as_character_bert(teacher, tmp_path, prefix, pickled):
    made = character_bert(tmp_path / "cb", prefix=prefix, pickled=pickled)
    texts = [*TEXTS, "See YOU tomorrow", "", "é" * 70]
    found = student(teacher, student=f"char:{tmp_path / 'cb'}", max_length=40)

    assert (found.tokenizer.max_length, found.tokenizer.lower) == (40, True)
    np.testing.assert_array_equal(found.encode(texts), made.encode(texts))
    np.testing.assert_allclose(*found.encode(["See YOU", "see you"]), atol=1e-6)
    save_folder(found, tmp_path / "saved")
    np.testing.assert_array_equal(open_folder(tmp_path / "saved").encode(texts), made.encode(texts))


def test_another_folder_is_no_character_bert(teacher, tiny_bert, tmp_path):
    with pytest.raises(SourceError, match="is no CharacterBERT: it has no weights"):
        student(teacher, student=f"char:{tiny_bert}")
    character_bert(tmp_path / "cb", pickled=True)
    path = tmp_path / "cb" / "config.json"
    said = json.loads(path.read_text())
    for change, message in (
        ({"num_hidden_layers": 3}, "lacks 16 weights"),
        ({"hidden_size": 36}, "hidden_size of its"),
        ({"max_position_embeddings": 20}, "differs from"),
        ({"hidden_size": "x"}, "expected int"),
        ({"num_hidden_layers": 10**7}, "over 1,000"),
        ({"intermediate_size": 10**9}, "differs from"),
    ):
        path.write_text(json.dumps(said | change))
        with pytest.raises(SourceError, match=message) as caught:
            student(teacher, student=f"char:{tmp_path / 'cb'}")
        assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="no model 'char:'"):
        student(teacher, student="char:")


def test_activations_are_dropped_in_training_alone(teacher):
    ours = student(teacher, activation_dropout=0.5)
    seen = []
    for layer in ours.network.encoder.layer:
        layer.intermediate.register_forward_hook(lambda *given: seen.append(given[2]))
    ours.encode(TEXTS)
    zeros = float(torch.cat([states.flatten() for states in seen]).eq(0).float().mean())
    assert zeros < 0.01
    np.testing.assert_array_equal(ours.encode(TEXTS), teacher.encode(TEXTS))

    seen.clear()
    ours.train()
    ours(Padded.of(ours.tokenizer.tokenize(TEXTS), 0))
    zeros = float(torch.cat([states.flatten() for states in seen]).eq(0).float().mean())
    assert 0.4 < zeros < 0.6
    drops = [m.p for m in ours.modules() if isinstance(m, torch.nn.Dropout)]
    assert sorted(set(drops)) == [0.0, 0.5]


def test_networks_without_such_layers_drop_no_activations(tmp_path, teacher):
    from transformers import DistilBertConfig, DistilBertModel

    teacher.tokenizer.save(tmp_path)
    config = DistilBertConfig(vocab_size=88, dim=32, n_layers=1, n_heads=2, hidden_dim=16)
    DistilBertModel(config).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="activation_dropout is not supported for a DistilBert"):
        student(teacher, student=str(tmp_path), activation_dropout=0.1)


def test_a_student_can_be_drawn_back_to_where_it_began(teacher):
    ours = student(teacher)
    with torch.no_grad():
        for weight in ours.parameters():
            weight.add_(1)
    interpolate(ours, student(teacher), 0.25)

    for one, other in zip(ours.parameters(), teacher.parameters(), strict=True):
        assert torch.allclose(one, other + 0.25, atol=1e-6)
    assert student(teacher).encode(TEXTS).tolist() == teacher.encode(TEXTS).tolist()
