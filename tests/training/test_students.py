import pytest
import torch

from noisegen.encoders.folders import open_folder
from noisegen.errors import UsageError
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
        vocab_size=88, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16,
    )  # fmt: skip
    BertModel(config).save_pretrained(tmp_path)

    with pytest.raises(UsageError, match=r"16 numbers per vector.* 32: add --set project=after"):
        student(teacher, student=str(tmp_path))
    projected = student(teacher, student=str(tmp_path), project="before", projection_bias=False)
    assert projected.encode(TEXTS).shape == (3, 32)
    assert projected.head.projection.bias is None


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
    [({"student": "layers:7"}, "write numbers from 0 to 1"),
     ({"student": "layers:"}, "write numbers from 0 to 1"),
     ({"student": "layers:0,0"}, "each once"),  # one layer twice cannot be saved
     ({"student": "layers:-1"}, "write numbers from 0 to 1"),
     ({"student": "nothing"}, "no model 'nothing'"),
     ({"freeze": ["embedings"]}, "no weight of the student has this prefix")],
)  # fmt: skip
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


def test_a_student_can_be_drawn_back_to_where_it_began(teacher):
    ours = student(teacher)
    with torch.no_grad():
        for weight in ours.parameters():
            weight.add_(1)
    interpolate(ours, student(teacher), 0.25)

    for one, other in zip(ours.parameters(), teacher.parameters(), strict=True):
        assert torch.allclose(one, other + 0.25, atol=1e-6)
    assert student(teacher).encode(TEXTS).tolist() == teacher.encode(TEXTS).tolist()
