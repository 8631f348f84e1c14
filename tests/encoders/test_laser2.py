"""LASER2's files, made in small: the loader against an LSTM written out token by token."""

import copy

import numpy as np
import pytest
import torch
from models import laser2_checkpoint, laser2_pieces

from noisegen.encoders.encoder import Encoder, open_encoder
from noisegen.encoders.laser2 import LENGTH_MAX, Laser2, open_laser2
from noisegen.errors import MissingExtra, SourceError

pytest.importorskip("sacremoses")
sentencepiece = pytest.importorskip("sentencepiece")

WIDTH, HIDDEN, LAYERS = 6, 5, 3
TEXTS = [
    "The ferry was late again.",
    "see you tmrw!!!",
    "",
    " ",
    "a",
    "☃☃ unknown signs 漢字",
    "Hello, \tWorld! ABC\x1f123",
    "I’m “doing” great …",
    "half \ud83d a pair",
    "x" * 500,
    *(f"This is sentence {number}, {'and it goes on ' * (number % 7)}." for number in range(40)),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory, demo_texts):
    """A SentencePiece model of our own sentences, trained here, and its pieces."""
    return laser2_pieces(tmp_path_factory.mktemp("pieces"), demo_texts)


@pytest.fixture(scope="module")
def checkpoint(model):
    return laser2_checkpoint(model[1], WIDTH, HIDDEN, LAYERS)


def written(folder, model, checkpoint, **how):
    torch.save(checkpoint, folder / "laser2.pt", **how)
    (folder / "laser2.spm").write_bytes(model[0])
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory, model, checkpoint) -> Laser2:
    return open_laser2(written(tmp_path_factory.mktemp("laser"), model, checkpoint))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def direction(inputs, weights, suffix):
    """One layer in one direction, token by token."""
    w_in, w_hidden, b_in, b_hidden = (
        weights[f"lstm.{name}_l{suffix}"].double().numpy()
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    hidden = cell = np.zeros(HIDDEN)
    out = []
    for token in inputs:
        gates = w_in @ token + b_in + w_hidden @ hidden + b_hidden
        enter, forget, new, leave = np.split(gates, 4)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
        hidden = sigmoid(leave) * np.tanh(cell)
        out.append(hidden)
    return out


def naive(ids, weights):
    """The vector of one text, as the papers draw it."""
    states = list(weights["embed_tokens.weight"].double().numpy()[ids])
    for layer in range(LAYERS):
        forward = direction(states, weights, f"{layer}")
        backward = direction(states[::-1], weights, f"{layer}_reverse")[::-1]
        states = [np.concatenate(pair) for pair in zip(forward, backward, strict=True)]
    return np.max(states, 0)


def test_vectors_equal_an_lstm_written_token_by_token(encoder, checkpoint):
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 2 * HIDDEN)
    assert vectors.dtype == np.float32
    ids = encoder.tokenize(TEXTS)
    for row, vector in enumerate(vectors):
        np.testing.assert_allclose(vector, naive(ids[row], checkpoint["model"]), atol=2e-6)


def test_its_pieces_give_type_token_ratios(encoder, model):
    from noisegen.evaluation.measure import VectorStore, measure
    from noisegen.evaluation.sets import PairSet

    clean, noisy = TEXTS[-40:], [text.replace("e", "3") for text in TEXTS[-40:]]
    seeds = measure(PairSet("a", "pairs", clean, (noisy,), "a"), VectorStore(encoder)).seeds
    read = sentencepiece.SentencePieceProcessor(model_proto=model[0])
    for name, side in (("clean", clean), ("noisy", noisy)):
        pieces = [
            piece if read.piece_to_id(piece) != read.unk_id() else None
            for text in side
            for piece in read.encode(text.lower(), out_type=str)
        ]
        assert seeds[f"ttr_{name}"] == (pytest.approx(100 * len(set(pieces)) / len(pieces)),)


def test_a_vector_does_not_depend_on_the_other_texts(encoder):
    together = encoder.encode(TEXTS)
    for number in (0, 2, 9, 20):
        np.testing.assert_allclose(encoder.encode([TEXTS[number]])[0], together[number], atol=1e-6)
    backwards = encoder.encode(TEXTS[::-1])[::-1]
    np.testing.assert_allclose(backwards, together, atol=1e-6)


def test_pieces_are_looked_up_as_strings_and_an_end_sign_follows(encoder, model, checkpoint):
    read = sentencepiece.SentencePieceProcessor(model_proto=model[0])
    ids = encoder.tokenize(["Hello, \tWorld! ABC\x1f123", ""])
    pieces = read.encode("hello, world! abc 123", out_type=str)
    numbers = checkpoint["dictionary"]
    assert list(ids[0]) == [*(numbers.get(piece, 3) for piece in pieces), 2]
    assert list(ids[0])[:-1] != read.encode("hello, world! abc 123")
    assert list(ids[1]) == [2]


def test_signs_without_a_piece_are_unknown(encoder):
    assert 3 in encoder.tokenize(["☃"])[0]


def test_special_signs_have_laser_s_numbers_whatever_the_file_says(tmp_path, model, checkpoint):
    said = copy.deepcopy(checkpoint)
    said["dictionary"] |= {"<unk>": 0, "</s>": 1}
    read = open_laser2(written(tmp_path, model, said))
    assert list(read.tokenize([""])[0]) == [2]
    assert 3 in read.tokenize(["☃"])[0]


def test_a_text_is_cut_at_laser_s_bound(encoder):
    assert max(encoder.tokenize(["a b " * 10_000]).lengths) == LENGTH_MAX


def test_it_is_an_encoder_that_a_spec_opens(tmp_path, model, checkpoint):
    folder = written(tmp_path, model, checkpoint)
    encoder = open_encoder(f"laser2:{folder}")
    assert isinstance(encoder, Encoder)
    assert encoder.name == f"laser2:{folder}"
    assert encoder.width == 2 * HIDDEN
    told = []
    assert encoder.encode([], told.append).shape == (0, 2 * HIDDEN)
    encoder.encode(TEXTS, told.append)
    assert sum(told) == len(TEXTS)


def test_the_digest_names_the_content_and_not_the_place(encoder, tmp_path, model, checkpoint):
    same = tmp_path / "same"
    other = tmp_path / "other"
    for folder in (same, other):
        folder.mkdir()
    assert open_laser2(written(same, model, checkpoint)).digest == encoder.digest
    said = copy.deepcopy(checkpoint)
    said["model"]["embed_tokens.weight"][7] += 1
    assert open_laser2(written(other, model, said)).digest != encoder.digest


def test_a_file_of_the_old_format_opens_too(encoder, tmp_path, model, checkpoint):
    folder = written(tmp_path, model, checkpoint, _use_new_zipfile_serialization=False)
    np.testing.assert_array_equal(open_laser2(folder).encode(TEXTS), encoder.encode(TEXTS))


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def without(said, *keys):
    return {key: value for key, value in said.items() if key not in keys}


def with_weight(name):
    return lambda said: said | {"model": said["model"] | {name: torch.ones(3)}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda said: said | {"cfg": {}}, "is a transformer, as RoLASER's: give rolaser:"),
        (lambda said: without(said, "params"), "required field `params`"),
        (lambda said: said["model"], "required field `params`"),
        (lambda said: [1, 2], "Expected `object`, got `array`"),
        (lambda said: said | {"params": Evil()}, "holds more than tensors"),
        (lambda said: said | {"dictionary": {"a": -1}}, r"`int` >= 0 - at `\$.dictionary"),
        (lambda said: said | {"dictionary": {"a": 10**6}}, "more pieces than there are embeddings"),
        (lambda said: said | {"dictionary": {3: 4}}, "Expected `str`, got `int`"),
        (lambda said: said | {"model": {"a": 1}}, "Expected `Tensor`, got `int`"),
        (lambda said: said | {"model": {}}, "it is no LSTM"),
        (lambda said: said | {"model": without(said["model"], "lstm.bias_hh_l1")}, "bias_hh_l1"),
        (with_weight("lstm.bias_hh_l1"), "size"),
        (with_weight("lstm.weight_hh_l999999999"), "it is no LSTM"),
    ],
)
def test_a_foreign_checkpoint_is_one_clear_line(tmp_path, model, checkpoint, change, message):
    folder = written(tmp_path, model, change(copy.deepcopy(checkpoint)))
    with pytest.raises(SourceError, match=message) as caught:
        open_laser2(folder)
    assert "\n" not in str(caught.value)
    assert "laser2.pt" in str(caught.value)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_checkpoint_cut_short_is_one_clear_line(tmp_path, model, checkpoint, share):
    path = written(tmp_path, model, checkpoint) / "laser2.pt"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(SourceError, match=r"cannot read .*laser2\.pt"):
        open_laser2(tmp_path)


def test_folders_without_the_files_say_what_is_needed(tmp_path, model, checkpoint):
    with pytest.raises(SourceError, match=r"one file \*\.pt, found none"):
        open_laser2(tmp_path)
    written(tmp_path, model, checkpoint)
    (tmp_path / "laser2.spm").write_bytes(b"no model")
    with pytest.raises(SourceError, match="no SentencePiece model"):
        open_laser2(tmp_path)
    (tmp_path / "second.pt").touch()
    with pytest.raises(SourceError, match=r"found laser2\.pt, second\.pt"):
        open_laser2(tmp_path)


@pytest.mark.parametrize("package", ["sentencepiece", "sacremoses"])
def test_a_missing_package_names_the_extra(tmp_path, model, checkpoint, monkeypatch, package):
    from noisegen.text import normalize

    folder = written(tmp_path, model, checkpoint)
    monkeypatch.setitem(__import__("sys").modules, package, None)
    normalize._moses_substitutions.cache_clear()
    with pytest.raises(MissingExtra, match=rf"{package}.*noisegen\[laser\]"):
        open_laser2(folder)
