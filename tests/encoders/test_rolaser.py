"""RoLASER's files, made in small, against fairseq's encoder written out: one text at a time."""

import argparse
import collections
import copy
import math
import pickle
import resource
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from noisegen.encoders.character_cnn import CharacterCNN, WordIds
from noisegen.encoders.encoder import Encoder, open_encoder
from noisegen.encoders.laser2 import open_laser2
from noisegen.encoders.rolaser import RoLaser, open_rolaser
from noisegen.errors import SourceError
from noisegen.text.normalize import laser_text

pytest.importorskip("sacremoses")

HIDDEN, HEADS, INNER, LAYERS, WIDTH = 16, 4, 24, 2, 20
TEXTS = [
    "The ferry was late again.",
    "see you tmrw!!!",
    "",
    "a",
    "☃☃ unknown signs 漢字",
    "Hello, \tWorld! ABC\x1f123",
    "I’m “doing” great …",
    "half \ud83d a pair",
    "x" * 60,
]
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'\""


def namespace(**changed):
    """What fairseq's trainer keeps of the command line, as the launchers have it."""
    told = {
        "arch": "laser_transformer",
        "encoder_embed_dim": HIDDEN,
        "encoder_layers": LAYERS,
        "encoder_attention_heads": HEADS,
        "encoder_ffn_embed_dim": INNER,
        "prepend_bos": True,
        "encoder_normalize_before": True,
        "layernorm_embedding": True,
        "left_pad_source": True,
        "sentemb_criterion": "maxpool",
        "activation_fn": "relu",
        "no_scale_embedding": False,
        "encoder_character_embeddings": False,
        "max_source_positions": 1024,
        "student_teacher_config": "distil:robertaugc-laserstd",
        "adam_betas": "(0.9,0.98)",
    }
    return argparse.Namespace(**told | changed)


def weights_of(settings, rows):
    """The encoder's weights and a decoder's, by fairseq's names."""
    torch.manual_seed(3)
    out = {"encoder.version": torch.tensor([3.0])}
    if settings.encoder_character_embeddings:
        cnn = CharacterCNN(HIDDEN, WordIds())
        names = (
            ("characters.weight", "_char_embedding_weights"),
            ("convolutions.", "char_conv_"),
            ("highways.", "_highways._layers."),
            ("projection.", "_projection."),
        )
        for name, value in cnn.state_dict().items():
            for ours, reference in names:
                name = name.replace(ours, reference)
            out[f"encoder.embed_tokens.{name}"] = value + 0.05 * torch.randn_like(value)
    else:
        out["encoder.embed_tokens.weight"] = torch.randn(rows, HIDDEN)
    out["encoder.embed_positions._float_tensor"] = torch.zeros(1)

    def layer(name, wide, high):
        out[f"{name}.weight"], out[f"{name}.bias"] = torch.randn(high, wide) / 3, torch.randn(high)

    def norm(name):
        out[f"{name}.weight"], out[f"{name}.bias"] = torch.rand(HIDDEN) + 0.5, torch.randn(HIDDEN)

    if settings.layernorm_embedding:
        norm("encoder.layernorm_embedding")
    for number in range(LAYERS):
        start = f"encoder.layers.{number}"
        for side in ("q_proj", "k_proj", "v_proj", "out_proj"):
            layer(f"{start}.self_attn.{side}", HIDDEN, HIDDEN)
        norm(f"{start}.self_attn_layer_norm")
        layer(f"{start}.fc1", HIDDEN, INNER)
        layer(f"{start}.fc2", INNER, HIDDEN)
        norm(f"{start}.final_layer_norm")
    if settings.encoder_normalize_before:
        norm("encoder.layer_norm")
    out["encoder.output_projection.weight"] = torch.randn(WIDTH, HIDDEN)
    out |= {"decoder.version": torch.tensor([3.0]), "decoder.embed_tokens.weight": torch.ones(7, 1)}
    return collections.OrderedDict(out)


def checkpoint_of(settings, rows):
    """What fairseq's trainer saves: settings, weights, optimiser and figures."""
    figures = [(10, "loss", "AverageMeter", {"val": np.float64(0.2), "sum": torch.tensor(1.0)})]
    return {
        "args": None,
        "criterion": None,
        "task_state": {},
        "cfg": {"_name": None, "common": {"seed": 1, "fp16": False}, "model": settings},
        "model": weights_of(settings, rows),
        "optimizer_history": [{"criterion_name": "EncoderSimilarityCriterion", "num_updates": 9}],
        "extra_state": {"metrics": {"train": figures}, "val_loss": np.float32(0.5)},
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.ones(3)}}},
    }


def roberta_pieces(folder: Path) -> dict[str, int]:
    """Write a small byte-level BPE as roberta-base has it; return its vocabulary."""
    from tokenizers import ByteLevelBPETokenizer

    made = ByteLevelBPETokenizer()
    made.train_from_iterator(
        [laser_text(text) for text in TEXTS] * 3,
        vocab_size=300,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        show_progress=False,
    )
    made.save_model(str(folder))
    return made.get_vocab()


def write_vocabulary(path: Path, symbols) -> list[str]:
    """Write SYMBOL COUNT FLAG in an order that is not that of the ids, as the authors' script."""
    order = sorted(symbols, key=lambda symbol: symbol[::-1])
    special = {"<s>", "<pad>", "</s>", "<unk>"}
    lines = [f"{s} 1 {'#fairseq:overwrite' if s in special else ''} " for s in order]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return ["<s>", "<pad>", "</s>", "<unk>", *(s for s in order if s not in special)]


def rolaser_folder(folder: Path, **settings) -> list[str]:
    """Write RoLASER's files; return the symbols of its dictionary by their numbers."""
    symbols = write_vocabulary(folder / "rolaser.cvocab", roberta_pieces(folder))
    torch.save(checkpoint_of(namespace(**settings), len(symbols)), folder / "rolaser.pt")
    return symbols


def norm(x, weights, name):
    return functional.layer_norm(
        x, (HIDDEN,), weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-5
    )


def attended(x, weights, name):
    """Attention of one text, head by head."""
    q, k, v = (
        functional.linear(x, weights[f"{name}.{side}.weight"], weights[f"{name}.{side}.bias"])
        for side in ("q_proj", "k_proj", "v_proj")
    )
    size = HIDDEN // HEADS
    out = []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = (q[:, part] * size**-0.5) @ k[:, part].T
        out.append(scores.softmax(-1) @ v[:, part])
    name = f"{name}.out_proj"
    return functional.linear(torch.cat(out, 1), weights[f"{name}.weight"], weights[f"{name}.bias"])


def naive(embedded, settings, weights):
    """The vector of one text from the embeddings of its tokens, as fairseq's encoder has it."""
    weights = {k.removeprefix("encoder."): v for k, v in weights.items()}
    x = embedded if settings.no_scale_embedding else math.sqrt(HIDDEN) * embedded
    half = HIDDEN // 2
    for place in range(len(x)):
        rates = [math.exp(-math.log(10_000) / (half - 1) * i) * (place + 2) for i in range(half)]
        x[place] += torch.tensor([*map(math.sin, rates), *map(math.cos, rates)])
    if settings.layernorm_embedding:
        x = norm(x, weights, "layernorm_embedding")
    act = getattr(functional, settings.activation_fn)
    for number in range(LAYERS):
        start, before = f"layers.{number}", settings.encoder_normalize_before
        fed = norm(x, weights, f"{start}.self_attn_layer_norm") if before else x
        x = x + attended(fed, weights, f"{start}.self_attn")
        x = x if before else norm(x, weights, f"{start}.self_attn_layer_norm")
        fed = norm(x, weights, f"{start}.final_layer_norm") if before else x
        for name in ("fc1", "fc2"):
            name = f"{start}.{name}"
            fed = functional.linear(fed, weights[f"{name}.weight"], weights[f"{name}.bias"])
            fed = act(fed) if name.endswith("fc1") else fed
        x = x + fed
        x = x if before else norm(x, weights, f"{start}.final_layer_norm")
    if settings.encoder_normalize_before:
        x = norm(x, weights, "layer_norm")
    x = x @ weights["output_projection.weight"].T
    return {"maxpool": x.amax(0), "meanpool": x.mean(0), "cls": x[0]}[settings.sentemb_criterion]


VARIANTS = [
    {},
    {"sentemb_criterion": "meanpool"},
    {"sentemb_criterion": "cls"},
    {"prepend_bos": False},
    {
        "encoder_normalize_before": False,
        "activation_fn": "gelu",
        "layernorm_embedding": False,
        "no_scale_embedding": True,
    },
]


@pytest.mark.parametrize("changed", VARIANTS, ids=str)
def test_vectors_equal_the_encoder_of_fairseq(tmp_path, changed):
    from tokenizers import ByteLevelBPETokenizer

    symbols = rolaser_folder(tmp_path, **changed)
    settings, saved = namespace(**changed), torch.load(tmp_path / "rolaser.pt", weights_only=False)
    split = ByteLevelBPETokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    encoder = open_rolaser(tmp_path)
    vectors = encoder.encode(TEXTS)

    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), WIDTH), np.float32)
    table = saved["model"]["encoder.embed_tokens.weight"]
    for text, vector in zip(TEXTS, vectors, strict=True):
        prepared = laser_text(text.encode("utf-8", "replace").decode())
        pieces = split.encode(prepared).tokens
        ids = [symbols.index(piece) if piece in symbols else 3 for piece in pieces]
        ids = [0] * settings.prepend_bos + [*ids, 2]
        wanted = naive(table[ids].clone(), settings, saved["model"])
        np.testing.assert_allclose(vector, wanted.numpy(), atol=2e-5)


def test_c_rolaser_reads_words_as_its_published_code_does(tmp_path):
    """Words first, then as many vectors of no word as there are characters left."""
    settings = namespace(encoder_character_embeddings=True)
    symbols = write_vocabulary(tmp_path / "c-rolaser.cvocab", [*ALPHABET, "_EOW"])
    torch.save(checkpoint_of(settings, len(symbols)), tmp_path / "c-rolaser.pt")
    vectors = open_rolaser(tmp_path).encode(TEXTS)

    weights = torch.load(tmp_path / "c-rolaser.pt", weights_only=False)["model"]
    start = "encoder.embed_tokens."

    @cache
    def embedded(word: bytes | None):
        characters = [0] * 50
        if word is not None:
            inner = [byte + 1 for byte in word[:48]]
            characters = [259, *inner, 260, *[261] * (48 - len(inner))]
        x = weights[f"{start}_char_embedding_weights"][characters].T[None]
        found = []
        for n in range(7):
            name = f"{start}char_conv_{n}"
            convolved = functional.conv1d(x, weights[f"{name}.weight"], weights[f"{name}.bias"])
            found.append(torch.relu(convolved.amax(-1)))
        x = torch.cat(found, -1)
        for n in range(2):
            name = f"{start}_highways._layers.{n}"
            new, gate = functional.linear(
                x, weights[f"{name}.weight"], weights[f"{name}.bias"]
            ).chunk(2, -1)
            x = gate.sigmoid() * x + (1 - gate.sigmoid()) * torch.relu(new)
        name = f"{start}_projection"
        return functional.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])[0]

    words = {
        TEXTS[0]: ["the", "ferry", "was", "late", "again", "."],
        TEXTS[1]: ["see", "you", "tmrw", "!", "!", "!"],
        TEXTS[2]: [],
        TEXTS[3]: ["a"],
        TEXTS[4]: ["☃☃", "unknown", "signs", "漢", "字"],
        TEXTS[8]: ["x" * 60],
    }
    for text, split in words.items():
        length = 1 + max(1, sum(len(word) + 1 for word in split)) + 1
        read = ["".join(c if c in symbols else "<unk>" for c in word) for word in split]
        rows = [word.encode() for word in read] + [None] * (length - len(read))
        wanted = naive(torch.stack([embedded(word) for word in rows]), settings, weights)
        np.testing.assert_allclose(vectors[TEXTS.index(text)], wanted.numpy(), atol=2e-5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("rolaser")
    rolaser_folder(made)
    return made


def test_a_vector_does_not_depend_on_the_other_texts(folder):
    encoder = open_rolaser(folder)
    assert isinstance(encoder, Encoder)
    assert isinstance(encoder, RoLaser)
    together = encoder.encode(TEXTS)
    for number, text in enumerate(TEXTS):
        np.testing.assert_allclose(encoder.encode([text])[0], together[number], atol=1e-5)
    assert max(encoder.tokenize(["word " * 3_000]).lengths) == 1024
    assert encoder.encode([]).shape == (0, WIDTH)


def test_old_forms_open_too(folder, tmp_path):
    """`args` in place of `cfg`, names without `encoder.`, tokenizer.json, LASER3's pieces."""
    from tokenizers import ByteLevelBPETokenizer

    saved = torch.load(folder / "rolaser.pt", weights_only=False)
    bare = {k.removeprefix("encoder."): v for k, v in saved["model"].items() if "decoder" not in k}
    torch.save({"args": saved["cfg"]["model"], "model": bare}, tmp_path / "a.pt")
    (tmp_path / "a.cvocab").write_text((folder / "rolaser.cvocab").read_text("utf-8"), "utf-8")
    with pytest.raises(SourceError, match=r"has no tokenizer; RoLASER is rolaser\.pt, "):
        open_rolaser(tmp_path)
    split = ByteLevelBPETokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    split.save(str(tmp_path / "tokenizer.json"))
    wanted = open_rolaser(folder)
    found = open_rolaser(tmp_path)
    np.testing.assert_array_equal(found.encode(TEXTS), wanted.encode(TEXTS))
    assert found.digest != wanted.digest


def test_a_symbol_that_comes_again_keeps_its_number_unless_flagged(folder, tmp_path):
    from noisegen.encoders.rolaser import read_vocabulary

    path = tmp_path / "x.cvocab"
    path.write_text(
        "a 1\nb 7  \n</s> 1 #fairseq:overwrite\na 2 #fairseq:duplicate\n#x 3\n", "utf-8"
    )
    assert read_vocabulary(path) == {
        "<s>": 0,
        "<pad>": 1,
        "</s>": 2,
        "<unk>": 3,
        "a": 6,
        "b": 5,
        "#x": 7,
    }


class Payload:
    """What runs when it is unpickled."""

    def __init__(self, function, ran: Path) -> None:
        self.function, self.ran = function, ran

    def __reduce__(self):
        return self.function, (self.ran,)


def runs(ran):
    ran.touch()


@pytest.mark.parametrize("place", ["cfg", "model", "extra_state", "args"])
def test_nothing_in_a_checkpoint_is_executed(folder, tmp_path, place):
    ran = tmp_path / "ran"
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    saved = torch.load(folder / "rolaser.pt", weights_only=False)
    saved[place] = {"model": Payload(runs, ran)} if place == "cfg" else Payload(runs, ran)
    torch.save(saved, tmp_path / "rolaser.pt")
    if place in ("cfg", "model"):
        with pytest.raises(SourceError, match="is not a checkpoint of RoLASER"):
            open_rolaser(tmp_path)
    else:
        open_rolaser(tmp_path).encode(["see you"])
    assert not ran.exists()
    pickle.loads(pickle.dumps(Payload(runs, ran)))
    assert ran.exists()


@pytest.mark.parametrize("name", ["os.system", "subprocess.call", "builtins.exec", "sys.exit"])
def test_calls_of_the_system_are_not_made(folder, tmp_path, name):
    import importlib

    module, _, function = name.rpartition(".")
    ran = tmp_path / "ran"
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    saved = torch.load(folder / "rolaser.pt", weights_only=False)
    call = getattr(importlib.import_module(module), function)
    command = f"open({str(ran)!r}, 'w')" if name == "builtins.exec" else f"touch {ran}"
    saved["extra_state"] = Payload(call, command)
    torch.save(saved, tmp_path / "rolaser.pt")
    with suppress(SourceError):  # torch refuses modules of the system, others are inert
        open_rolaser(tmp_path)
    assert not ran.exists()


def changed_settings(**values):
    def change(said):
        said["cfg"]["model"] = namespace(**values)

    return change


def without(name):
    def change(said):
        del said["model"][name]

    return change


def with_weight(name, value):
    def change(said):
        said["model"][name] = value

    return change


SPOILED = [
    (changed_settings(sentemb_criterion="median"), "is not a checkpoint of RoLASER: Invalid enum"),
    (changed_settings(encoder_attention_heads=0), "is not a checkpoint of RoLASER"),
    (changed_settings(encoder_attention_heads=5), "16 is not a multiple of 5 heads"),
    (changed_settings(activation_fn="os.system"), "Invalid enum value"),
    (lambda said: said.pop("cfg"), "missing required field"),
    (lambda said: said.pop("model"), "is not a checkpoint of RoLASER"),
    (without("encoder.embed_tokens.weight"), "no encoder.embed_tokens.weight"),
    (without("encoder.layers.0.fc1.bias"), "it is no RoLASER"),
    (without("encoder.layers.1.self_attn.k_proj.weight"), "it is no RoLASER"),
    (with_weight("encoder.layers.1.fc2.weight", torch.ones(2, 2)), "it is no RoLASER"),
    (with_weight("encoder.embed_tokens.weight", torch.ones(9, HIDDEN)), "does not belong to"),
    (with_weight("encoder.embed_tokens.weight", 3), "Expected `Tensor`"),
    (with_weight("encoder.embed_tokens.weight", torch.ones(9)), "no encoder.embed_tokens.weight"),
    (with_weight("encoder.output_projection.weight", torch.tensor(1.0)), "it is no RoLASER"),
    (with_weight("encoder.output_projection.weight", torch.ones(0, HIDDEN)), "is empty"),
    (with_weight("encoder.layer_norm.bias", torch.full((HIDDEN,), torch.nan)), "are no numbers"),
    (with_weight("encoder.embed_positions.weight", torch.ones(99, 3)), "it is no RoLASER"),
    (with_weight("encoder.embed_positions.weight", torch.ones(4, HIDDEN)), "it takes 2 tokens"),
    (changed_settings(max_source_positions=1), "it takes 1 tokens"),
    (lambda said: said.update(cfg="text"), "missing required field"),
    (lambda said: said.update(cfg=torch.ones(2)), "missing required field"),
    (with_weight("encoder.x", torch.ones(1).expand(10**8, 10**8)), "is damaged: its tensors"),
]


@pytest.mark.parametrize(("change", "message"), SPOILED)
def test_a_foreign_checkpoint_is_one_clear_line(folder, tmp_path, change, message):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    saved = copy.deepcopy(torch.load(folder / "rolaser.pt", weights_only=False))
    change(saved)
    torch.save(saved, tmp_path / "rolaser.pt")
    with pytest.raises(SourceError, match=message) as caught:
        open_rolaser(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_names_of_layers_alone_take_no_memory(folder, tmp_path):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    saved = torch.load(folder / "rolaser.pt", weights_only=False)
    saved["model"]["encoder.layers.0.fc1.weight"] = torch.ones(50_000, HIDDEN)
    saved["model"] |= {f"encoder.layers.{number}.x": torch.ones(1) for number in range(300)}
    torch.save(saved, tmp_path / "rolaser.pt")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SourceError, match="it is no RoLASER"):
        open_rolaser(tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KiB; was 2 GB


def test_a_damaged_folder_is_one_clear_line(folder, tmp_path):
    with pytest.raises(SourceError, match=r"one file \*\.pt, found none; RoLASER is rolaser\.pt"):
        open_rolaser(tmp_path)
    content = (folder / "rolaser.pt").read_bytes()
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "rolaser.pt").write_bytes(content[:2_000])
    with pytest.raises(SourceError, match=r"cannot read .*rolaser\.pt"):
        open_rolaser(tmp_path)
    (tmp_path / "rolaser.pt").write_bytes(content)
    (tmp_path / "rolaser.cvocab").write_text("a b\n")
    with pytest.raises(SourceError, match="it is no dictionary of fairseq"):
        open_rolaser(tmp_path)
    (tmp_path / "rolaser.spm").touch()
    with pytest.raises(SourceError, match="is a transformer, as RoLASER's: give rolaser:"):
        open_laser2(folder_with_spm(tmp_path, folder))


def folder_with_spm(tmp_path, folder):
    sentencepiece = pytest.importorskip("sentencepiece")
    text = tmp_path / "text"
    text.mkdir()
    (text / "t.txt").write_text("see you tomorrow\nat the station\n" * 20)
    sentencepiece.SentencePieceTrainer.train(
        input=str(text / "t.txt"),
        model_prefix=str(text / "laser2"),
        vocab_size=30,
        hard_vocab_limit=False,
        minloglevel=5,
    )
    (text / "laser2.model").rename(text / "laser2.spm")
    (text / "laser2.pt").write_bytes((folder / "rolaser.pt").read_bytes())
    return text


def test_the_pieces_may_be_those_of_sentencepiece(folder, tmp_path):
    made = folder_with_spm(tmp_path, folder)
    import sentencepiece

    read = sentencepiece.SentencePieceProcessor(model_file=str(made / "laser2.spm"))
    pieces = [read.id_to_piece(number) for number in range(read.get_piece_size())]
    symbols = write_vocabulary(made / "laser3.cvocab", pieces)
    torch.save(checkpoint_of(namespace(prepend_bos=False), len(symbols) + 1), made / "laser2.pt")
    ids = open_rolaser(made).tokenize(["See you tomorrow"])[0].tolist()
    pieces = read.encode("see you tomorrow", out_type=str)
    assert ids == [*(symbols.index(piece) for piece in pieces), 2]


def test_a_student_reads_text_as_its_teacher_does(folder, tiny_bert, tmp_path):
    from noisegen.encoders.folders import open_folder, save_folder
    from noisegen.training.settings import load_settings
    from noisegen.training.students import make_student

    values = {"teacher": f"rolaser:{folder}", "student": str(tiny_bert)}
    student = make_student(load_settings("rolaser", None, values), open_rolaser(folder))
    odd = ["He said : “Hi”\x07 …", "5 000 «euros» !", "half \ud83d a pair", "PLAIN words"]
    plain = open_folder(tiny_bert).tokenizer
    wanted = plain.tokenize([laser_text(text.encode("utf-8", "replace").decode()) for text in odd])

    ids = student.tokenizer.tokenize(odd)
    assert [row.tolist() for row in ids] == [row.tolist() for row in wanted]
    assert [row.tolist() for row in ids] != [row.tolist() for row in plain.tokenize(odd)]
    assert student.width == WIDTH
    save_folder(student, tmp_path)
    again = open_folder(tmp_path)
    np.testing.assert_array_equal(again.encode(odd), student.encode(odd))
    assert again.digest == student.digest


def test_a_spec_opens_it(folder, tmp_path, monkeypatch):
    listed = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert 'rolaser = "noisegen.encoders.rolaser:open_rolaser"' in listed
    monkeypatch.syspath_prepend(entry_points_of_pyproject(tmp_path))
    encoder = open_encoder(f"rolaser:{folder}")
    assert encoder.name == f"rolaser:{folder}"


def entry_points_of_pyproject(folder: Path) -> Path:
    """Write the metadata of the package as it stands, whatever is installed; return its folder."""
    import tomllib

    listed = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    metadata = folder / "noisegen-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: noisegen\nVersion: 0\n")
    groups = listed["project"]["entry-points"]
    text = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    )
    (metadata / "entry_points.txt").write_text(text)
    return folder
