"""Folders of Hugging Face and sentence-transformers: opened, saved, refused."""

import json
import os
import pickle
import shutil
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import torch
from models import head_of
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from noisegen.encoders.encoder import Encoder, names_model, open_encoder
from noisegen.encoders.folders import open_folder, save_folder
from noisegen.errors import SourceError, UsageError

sentence_transformers = pytest.importorskip("sentence_transformers")

TEXTS = ["see you tomorrow", "c u 2moro!!!", "", "a much longer sentence about nothing at all"]
LINEAR = "torch.nn.modules.linear.Identity"
HEADS = [
    head_of("mean"),
    head_of("max"),
    head_of("cls", normalize=True),
    head_of("max", 24, "before", bias=False),
    head_of("mean", 24, "after"),
    head_of("cls", 40, "after", normalize=True),
    head_of("mean", 8, "before"),
]


@pytest.fixture
def folder(tiny_bert, tmp_path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(tiny_bert, tmp_path / "model"))


def theirs(folder):
    return sentence_transformers.SentenceTransformer(
        str(folder), device="cpu", local_files_only=True
    )


def with_steps(folder: Path, *steps: tuple[str, dict[str, object] | None]) -> Path:
    """Write modules.json with these steps after the network, and their config.json."""
    package = "sentence_transformers.models"
    listed = [{"idx": 0, "name": "0", "path": "", "type": f"{package}.Transformer"}]
    for number, (kind, config) in enumerate(steps, 1):
        path = f"{number}_{kind}"
        (folder / path).mkdir()
        (folder / path / "config.json").write_text(json.dumps(config))
        listed.append(
            {"idx": number, "name": str(number), "path": path, "type": f"{package}.{kind}"}
        )
    (folder / "modules.json").write_text(json.dumps(listed))
    return folder


def pooled_by(**modes):
    return "Pooling", {"word_embedding_dimension": 32, **modes}


def test_a_plain_folder_is_pooled_by_the_mean(tiny_bert):
    encoder = open_folder(tiny_bert)
    assert isinstance(encoder, Encoder)
    assert (encoder.width, encoder.name) == (32, str(tiny_bert))
    assert not encoder.training
    np.testing.assert_allclose(encoder.encode(TEXTS), theirs(tiny_bert).encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_a_saved_folder_gives_the_same_vectors_here_and_there(tiny_bert, tmp_path, head):
    torch.manual_seed(4)
    encoder = open_folder(tiny_bert, head=head)
    save_folder(encoder, tmp_path / "student")
    expected = encoder.encode(TEXTS)
    opened = open_folder(tmp_path / "student")
    assert opened.head.settings == head
    assert opened.digest == encoder.digest
    np.testing.assert_array_equal(opened.encode(TEXTS), expected)
    np.testing.assert_allclose(theirs(tmp_path / "student").encode(TEXTS), expected, atol=1e-6)


def test_files_that_change_after_they_were_opened_change_nothing(tiny_bert, tmp_path):
    save_folder(open_folder(tiny_bert, head=head_of("mean", 24, "after")), tmp_path)
    opened, expected = open_folder(tmp_path), open_folder(tmp_path).encode(TEXTS)

    for path in tmp_path.rglob("*.safetensors"):
        path.write_bytes(bytes(path.stat().st_size))  # in place: what was mapped would be zeros

    np.testing.assert_array_equal(opened.encode(TEXTS), expected)


def test_what_sentence_transformers_saves_opens_here(tiny_bert, tmp_path):
    models = sentence_transformers.sentence_transformer.modules
    network = models.Transformer(str(tiny_bert), max_seq_length=20)
    torch.manual_seed(4)
    model = sentence_transformers.SentenceTransformer(
        modules=[
            network,
            models.Pooling(32, pooling_mode="max"),
            models.Dense(32, 12, activation_function=torch.nn.Identity()),
            models.Normalize(),
        ],
        device="cpu",
    )
    model.save(str(tmp_path / "model"), create_model_card=False)
    encoder = open_folder(tmp_path / "model")
    assert encoder.head.settings == head_of("max", 12, "after", normalize=True)
    assert encoder.tokenizer.max_length == 20
    long = [*TEXTS, "many words " * 50]
    np.testing.assert_allclose(encoder.encode(long), model.encode(long), atol=1e-6)


def test_a_head_that_is_asked_for_takes_the_place_of_the_folder_s(folder):
    with_steps(folder, pooled_by(pooling_mode_max_tokens=True))
    assert open_folder(folder).head.settings.pooling == "max"
    assert open_folder(folder, head=head_of("cls", 5)).width == 5


def test_vectors_do_not_depend_on_the_other_texts(tiny_bert):
    encoder = open_folder(tiny_bert)
    together = encoder.encode(TEXTS)
    for number, text in enumerate(TEXTS):
        np.testing.assert_allclose(encoder.encode([text])[0], together[number], atol=1e-6)
    assert encoder.encode([]).shape == (0, 32)


def test_the_pooler_that_nothing_uses_is_not_kept(folder):
    from transformers import BertConfig, BertModel

    torch.manual_seed(1)
    BertModel(BertConfig.from_pretrained(folder)).save_pretrained(folder)
    assert not [name for name in open_folder(folder).state_dict() if "pooler" in name]


def spoil_config(folder):
    (folder / "config.json").unlink()


def spoil_json(folder):
    (folder / "config.json").write_text("{")


def spoil_field(folder):
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(said | {"hidden_size": "x"}))


def spoil_kind(folder):
    (folder / "config.json").write_text('{"model_type": "no such model"}')


def spoil_list(folder):
    (folder / "config.json").write_text("[1]")


def spoil_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1_000])


def spoil_missing(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.output.dense.bias"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def spoil_size(folder):
    weights = load_file(folder / "model.safetensors")
    weights["encoder.layer.1.output.dense.bias"] = torch.ones(3)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def spoil_tokenizer(folder):
    (folder / "tokenizer.json").write_text("{}")


def spoil_no_tokenizer(folder):
    for path in folder.glob("tokenizer*"):
        path.unlink()


def spoil_code(folder):
    said = json.loads((folder / "config.json").read_text())
    said |= {"model_type": "own", "auto_map": {"AutoModel": "own.Own", "AutoConfig": "own.Config"}}
    (folder / "config.json").write_text(json.dumps(said))
    (folder / "own.py").write_text("raise SystemExit('the code of the folder was run')\n")


def spoil_heads(folder):
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(said | {"num_attention_heads": 0}))


def spoil_length(folder):
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": "x"}')


def spoil_negative_length(folder):
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": -5}')


def spoil_shapes(folder):
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(said | {"hidden_size": 64}))


SPOILED = [
    (spoil_config, "is no model: no config.json"),
    (spoil_json, "cannot"),
    (spoil_field, "cannot"),
    (spoil_kind, "cannot"),
    (spoil_list, "Expected `object`"),
    (spoil_weights, "cannot"),
    (spoil_missing, "lacks 1 weights"),
    (spoil_size, "cannot|size"),
    (spoil_tokenizer, "tokenizer"),
    (spoil_no_tokenizer, "tokenizer"),
    (spoil_code, "cannot"),
    (spoil_heads, "cannot read the model"),
    (spoil_shapes, "other shapes than its config.json"),
    (spoil_length, "cannot read the tokenizer"),
    (spoil_negative_length, "cannot read the tokenizer"),
]


def test_the_folder_of_a_run_is_told_its_student(tmp_path):
    (tmp_path / "student").mkdir()
    with pytest.raises(SourceError, match=f"give {tmp_path}/student"):
        open_folder(tmp_path)


@pytest.mark.parametrize(("spoil", "message"), SPOILED)
def test_a_folder_that_is_no_model_is_one_clear_line(folder, spoil, message, capfd):
    spoil(folder)
    with pytest.raises(SourceError, match=message) as caught:
        open_folder(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
    assert capfd.readouterr() == ("", "")


def config_with(**said):
    def spoil(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | said))

    return spoil


def tokenizer_with(change):
    def spoil(folder):
        path = folder / "tokenizer.json"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return spoil


def without_unknown(content):
    del content["model"]["vocab"]["[UNK]"]


def ids_that_take_gigabytes(content):
    content["model"]["vocab"]["zzz"] = 10**9


def ids_without_embedding(content):
    content["model"]["vocab"]["a"] = 9_999


def frames_without_embedding(content):
    content["post_processor"]["cls"] = ["[CLS]", 9_999]


def no_number_of_json(content):
    content["model"]["max_input_chars_per_word"] = float("nan")  # which Python reads


def nested(folder):
    (folder / "tokenizer_config.json").write_text('{"backend": ' + "[" * 100_000)


HOSTILE = [
    (nested, "cannot read the tokenizer of .*: maximum recursion depth"),
    (tokenizer_with(no_number_of_json), r"tokenizer\.json is damaged: expected value"),
    (config_with(pad_token_id=10**6), "Padding_idx must be within num_embeddings"),
    (config_with(num_hidden_layers=10**6), "num_hidden_layers is 1,000,000, over 1,000"),
    (config_with(num_labels=10**9), "num_labels is 1,000,000,000, over"),
    (config_with(text_config={"n_layers": 10**6}), "n_layers is 1,000,000, over 1,000"),
    (config_with(max_position_embeddings=10**12), "over 1,000,000"),
    (config_with(hidden_size=10**9), "other shapes than its config.json"),
    (config_with(attn_implementation="someone/kernel"), "is code from elsewhere"),
    *(
        (
            config_with(num_hidden_layers=layers),
            f"of layers that .* the first is encoder.layer.{layers}",
        )
        for layers in (0, 1)
    ),
    *(
        (config_with(layer_norm_eps=value), "layer_norm_eps must be between 0 and 1")
        for value in (-1.0, float("nan"), float("inf"), 1e6)
    ),
    (tokenizer_with(ids_that_take_gigabytes), "it has ids over 10,000,000"),
    (tokenizer_with(ids_without_embedding), "its tokenizer has the id 9,999"),
    (tokenizer_with(frames_without_embedding), "its tokenizer has the id 9,999"),
]


@pytest.mark.parametrize(("spoil", "message"), HOSTILE)
def test_a_hostile_folder_is_one_line_before_it_takes_time_or_memory(folder, spoil, message):
    spoil(folder)
    began = time.process_time()
    with pytest.raises(SourceError, match=message) as caught:
        open_folder(folder)
    assert str(folder) in str(caught.value)
    assert time.process_time() - began < 5


def test_weights_of_heads_are_no_reason_to_refuse(folder):
    weights = load_file(folder / "model.safetensors")
    named = {f"bert.{name}": value for name, value in weights.items()}
    head = {"cls.predictions.bias": torch.zeros(88), "lm_head.0.dense.weight": torch.zeros(3, 3)}
    expected = open_folder(folder).encode(TEXTS)
    save_file(named | head, folder / "model.safetensors", {"format": "pt"})
    assert (open_folder(folder).encode(TEXTS) == expected).all()


def a_pattern_without_end(content):
    pattern = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}
    content["pre_tokenizer"] = pattern | {"invert": False}


@pytest.mark.parametrize(
    ("change", "reason"),
    [(a_pattern_without_end, "retry-limit"), (without_unknown, "Missing .UNK. token")],
)
def test_a_tokenizer_that_fails_on_a_text_is_one_line(folder, change, reason):
    tokenizer_with(change)(folder)
    encoder = open_folder(folder)
    with pytest.raises(SourceError, match=rf"tokenizer\.json is damaged: .*{reason}"):
        encoder.encode(["a" * 60 + "!", "\u2603"])


class Payload:
    """What runs when it is unpickled."""

    def __init__(self, ran: Path) -> None:
        self.ran = ran

    def __reduce__(self):
        return Path.touch, (self.ran,)


def test_pickles_and_code_in_a_folder_never_run(folder, tmp_path):
    ran = tmp_path / "ran"
    auto = {
        "AutoModel": "evil.Evil",
        "AutoConfig": "evil.Evil",
        "AutoTokenizer": ["evil.Evil", None],
    }
    for name in ("config.json", "tokenizer_config.json"):
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": auto}))
    (folder / "evil.py").write_text(f"import pathlib; pathlib.Path({str(ran)!r}).touch()")
    for name in ("pytorch_model.bin", "model.pt", "training_args.bin", "head.joblib"):
        (folder / name).write_bytes(pickle.dumps(Payload(ran)))

    open_folder(folder).encode(["see you"])
    (folder / "model.safetensors").unlink()
    with pytest.raises(SourceError, match=r"more than tensors.*convert it: safetensors.torch.save"):
        open_folder(folder)
    assert not ran.exists()
    pickle.loads(pickle.dumps(Payload(ran)))
    assert ran.exists()


DENSE = {"in_features": 32, "out_features": 4, "bias": True, "activation_function": LINEAR}
MEAN = pooled_by(pooling_mode="mean")
STEPS = [
    ([pooled_by(pooling_mode="median")], "pools by median; supported are cls, max"),
    ([pooled_by(pooling_mode=["cls", "os.system"])], r"pools by cls\+os.system"),
    ([MEAN, MEAN], "not supported at this position"),
    ([MEAN, ("Dense", DENSE | {"module_input_name": "token_embeddings"})], "at this position"),
    ([("Dense", DENSE), MEAN], "not supported at this position"),
    ([MEAN, ("LSTM", {})], "has steps"),
    ([("Normalize", {}), MEAN], "not supported at this position"),
    ([MEAN, ("Dense", DENSE)], r"cannot read .*model\.safetensors"),
    *(
        ([MEAN, ("Dense", DENSE | {"activation_function": name})], "is not supported, only plain")
        for name in (
            "os.system",
            "torch.hub.load",
            "torch.nn.Linear",
            "torch.nn.Tanh.x",
            "Tanh",
            "torch.nn.modules.activation.RReLU",
            "noisegen.encoders.head.TANH",
        )
    ),
    ([MEAN, ("Dense", {"bias": True})], r"config\.json"),
    ([MEAN, ("Dense", DENSE | {"out_features": "many"})], r"config\.json"),
    ([MEAN, ("Dense", [1])], r"config\.json"),
    ([("Pooling", [1])], r"config\.json"),
]


@pytest.mark.parametrize(("steps", "message"), STEPS)
def test_steps_that_are_not_known_are_one_clear_line(folder, steps, message):
    with_steps(folder, *steps)
    with pytest.raises(SourceError, match=message) as caught:
        open_folder(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        [],
        {},
        [3],
        [{"path": ""}],
        [{"path": "", "type": 3}],
        7,
        [{"path": "", "type": "os.system"}],
        [{"path": "..", "type": "sentence_transformers.models.Transformer"}],
        [{"path": "/etc", "type": "sentence_transformers.models.Transformer"}],
        [{"path": 3, "type": "sentence_transformers.models.Transformer"}],
    ],
    ids=str,
)
def test_a_foreign_list_of_modules_is_one_clear_line(folder, said):
    (folder / "modules.json").write_text(json.dumps(said))
    with pytest.raises(SourceError, match=r"modules\.json") as caught:
        open_folder(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("minilmm", "did you mean 'minilm'"),
        ("npy:", "has nothing after npy:"),
        ("nowhere", "no model 'nowhere': give a folder, or one of e5, minilm, use, folder:"),
        ("", "no model '': give a folder, or one of"),
    ],
)
def test_a_spec_that_is_none_is_one_clear_line(spec, message):
    with pytest.raises(UsageError, match=message):
        open_encoder(spec)


def test_entry_points_of_other_packages_are_specs(tmp_path, monkeypatch):
    (tmp_path / "lengths.py").write_text("def open_lengths(of='texts'):\n    return of\n")
    metadata = tmp_path / "lengths-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lengths\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[noisegen.encoders]\nlengths = lengths:open_lengths\n"
        "[noisegen.encoder_kinds]\nlength = lengths:open_lengths\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert open_encoder("lengths") == "texts"
    assert open_encoder("length:of words") == "of words"
    assert names_model("lengths")
    assert names_model("length:x")
    assert not names_model("lengths:x")


def test_a_saved_folder_opens_without_a_warning_and_all_may_read_it(tiny_bert, tmp_path, capfd):
    encoder = open_folder(tiny_bert, head=HEADS[4])
    before = os.umask(0o022)
    try:
        save_folder(encoder, tmp_path / "saved")
    finally:
        os.umask(before)
    capfd.readouterr()
    opened = theirs(tmp_path / "saved")

    assert "MISSING" not in "".join(capfd.readouterr())
    pooler = opened[0].auto_model.pooler.dense
    assert torch.equal(pooler.weight, torch.eye(32))  # the folder had none: not drawn at random
    files = [path for path in (tmp_path / "saved").rglob("*") if path.is_file()]
    assert len([path for path in files if path.suffix == ".safetensors"]) == 2
    assert {path.stat().st_mode & 0o777 for path in files} == {0o644}


def test_a_pooler_that_a_folder_has_is_saved_again(tiny_models, tmp_path):
    save_folder(open_folder(tiny_models()), tmp_path / "saved")
    one, other = (
        load_file(path / "model.safetensors") for path in (tiny_models(), tmp_path / "saved")
    )
    assert one.keys() == other.keys()
    assert torch.equal(one["pooler.dense.weight"], other["pooler.dense.weight"])


def test_threads_may_open_models_at_once(tiny_bert):
    """While it loads one, transformers replaces functions that the others would see."""
    tie_weights = PreTrainedModel.tie_weights
    with ThreadPoolExecutor(8) as pool:
        for encoder in pool.map(open_folder, [Path(tiny_bert)] * 16):
            assert encoder.encode(TEXTS).shape == (4, 32)
    assert PreTrainedModel.tie_weights is tie_weights


def test_what_pyproject_lists_as_encoders_can_be_opened():
    listed = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    points = listed["project"]["entry-points"]
    for name, value in (points["noisegen.encoders"] | points["noisegen.encoder_kinds"]).items():
        assert callable(EntryPoint(name, value, "").load()), name
