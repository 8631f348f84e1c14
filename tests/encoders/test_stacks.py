"""Stacks of sentence-transformers, against that library: small models of the real architectures."""

import json
import resource
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from models import bert_folder, head_of, xlmr_folder
from safetensors.torch import load_file, save_file
from transformers import AutoModel, BertConfig, BertModel

from noisegen.encoders.encoder import open_encoder
from noisegen.encoders.folders import open_folder, open_pooler, save_folder
from noisegen.encoders.head import ACTIVATIONS, POOLINGS, Dense, HeadSettings, LayerNorm, Pooling
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import Packed, Padded
from noisegen.errors import SourceError, UsageError

sentence_transformers = pytest.importorskip("sentence_transformers")
modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")

TEXTS = ["see you tomorrow", "c u 2moro!!!", "", "a much longer sentence about nothing at all"]
CLOSE = {"atol": 2e-6, "rtol": 0}
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "initializer_range": 0.2,
}


def theirs(folder):
    return sentence_transformers.SentenceTransformer(
        str(folder), device="cpu", local_files_only=True
    )


@pytest.fixture(scope="module")
def xlmr(tmp_path_factory):
    return xlmr_folder(tmp_path_factory.mktemp("xlmr"))


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A BERT with a pooler, as LaBSE is."""
    folder = bert_folder(tmp_path_factory.mktemp("bert"))
    torch.manual_seed(2)
    BertModel(BertConfig.from_pretrained(folder)).save_pretrained(folder)
    return folder


def saved(network, folder, *steps, **settings):
    """Save a stack with the library itself."""
    made = sentence_transformers.SentenceTransformer(
        modules=[modules.Transformer(str(network)), *steps], device="cpu", **settings
    )
    made.save(str(folder), create_model_card=False)
    return made


def pooling(*modes):
    return modules.Pooling(32, pooling_mode=modes if len(modes) > 1 else modes[0])


def dense(width, out, activation, **settings):
    torch.manual_seed(width + out)
    return modules.Dense(width, out, activation_function=activation, **settings)


STACKS = {
    "LaBSE": (
        "bert",
        lambda: [pooling("cls"), dense(32, 32, torch.nn.Tanh()), modules.Normalize()],
    ),
    "LaBSE by its old keys": (
        "bert",
        lambda: [pooling("cls"), dense(32, 32, torch.nn.Tanh()), modules.Normalize()],
    ),
    "mE5": ("xlmr", lambda: [pooling("mean"), modules.Normalize()]),
    "RoLASER v2": ("xlmr", lambda: [pooling("mean"), dense(32, 48, torch.nn.GELU())]),
    "InfoXLM": ("xlmr", lambda: [pooling("cls")]),
    "two layers": (
        "bert",
        lambda: [
            pooling("max"),
            dense(32, 20, torch.nn.ReLU()),
            modules.LayerNorm(20),
            dense(20, 12, torch.nn.Identity(), bias=False),
            modules.Dropout(0.3),
        ],
    ),
    "residual": (
        "bert",
        lambda: [
            pooling("mean"),
            dense(32, 12, torch.nn.SiLU(), use_residual=True),
            dense(12, 12, torch.nn.SiLU(), use_residual=True),
        ],
    ),
    "tokens first": (
        "xlmr",
        lambda: [
            dense(32, 24, torch.nn.Tanh(), module_input_name="token_embeddings"),
            pooling("max"),
        ],
    ),
    "concatenated": ("xlmr", lambda: [pooling("cls", "max", "mean"), modules.Normalize()]),
    "in another order": ("bert", lambda: [pooling("lasttoken", "mean_sqrt_len_tokens", "cls")]),
    **{mode: ("xlmr", lambda mode=mode: [pooling(mode)]) for mode in POOLINGS},
}


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_gives_the_vectors_of_sentence_transformers(request, tmp_path, name):
    network, steps = STACKS[name]
    made = saved(request.getfixturevalue(network), tmp_path / "theirs", *steps())
    if name.endswith("old keys"):
        old = {
            "word_embedding_dimension": 32,
            "pooling_mode_cls_token": True,
            "pooling_mode_mean_tokens": False,
        }
        (tmp_path / "theirs" / "1_Pooling" / "config.json").write_text(json.dumps(old))
    wanted = made.encode(TEXTS)
    opened = open_folder(tmp_path / "theirs")
    np.testing.assert_allclose(opened.encode(TEXTS), wanted, **CLOSE)

    ids = opened.tokenizer.tokenize(TEXTS)
    with torch.inference_mode():
        for batch in (
            Padded.of(ids, opened.tokenizer.pad_id),
            Packed.of(ids, opened.tokenizer.pad_id),
            Packed.of(ids, opened.tokenizer.pad_id, tokens=128, longest=64),
        ):
            np.testing.assert_allclose(opened(batch).numpy(), wanted, atol=5e-6, rtol=0)

    save_folder(opened, tmp_path / "ours")
    again = open_folder(tmp_path / "ours")
    assert (again.head.settings, again.digest) == (opened.head.settings, opened.digest)
    np.testing.assert_array_equal(again.encode(TEXTS), opened.encode(TEXTS))
    np.testing.assert_allclose(theirs(tmp_path / "ours").encode(TEXTS), wanted, **CLOSE)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_torch_by_any_of_their_names(name):
    vectors, kind = torch.linspace(-3, 3, 32)[None], getattr(torch.nn, name)
    for told in (f"torch.nn.{name}", f"{kind.__module__}.{name}"):
        layer = Dense.read({"out_features": 4, "activation_function": told}).module(32)
        torch.testing.assert_close(layer(vectors), kind()(layer.linear(vectors)))


def test_modules_are_read_from_the_folders_that_modules_json_lists(bert, tmp_path):
    made = saved(bert, tmp_path, pooling("mean"), dense(32, 8, torch.nn.Tanh()))
    entries = json.loads((tmp_path / "modules.json").read_text())
    (tmp_path / "0_Network").mkdir()
    inside = {"1_Pooling", "2_Dense", "modules.json", "0_Network"}
    for path in list(tmp_path.iterdir()):
        if path.name not in inside and not path.name.startswith("config_sentence"):
            path.rename(tmp_path / "0_Network" / path.name)
    (tmp_path / "2_Dense").rename(tmp_path / "last")
    for entry, path in zip(entries, ("0_Network", "1_Pooling", "last"), strict=True):
        entry["path"] = path
    (tmp_path / "modules.json").write_text(json.dumps(entries))
    np.testing.assert_allclose(open_folder(tmp_path).encode(TEXTS), made.encode(TEXTS), **CLOSE)


@pytest.mark.parametrize("network", ["bert", "xlmr"])
def test_the_pooler_s_output_is_a_vector(request, tmp_path, network):
    folder = request.getfixturevalue(network)
    opened = open_pooler(str(folder))
    ids = Padded.of(opened.tokenizer.tokenize(TEXTS), opened.tokenizer.pad_id)
    with torch.no_grad():
        plain = AutoModel.from_pretrained(folder).eval()
        wanted = plain(input_ids=ids.ids, attention_mask=ids.mask.long()).pooler_output.numpy()
    np.testing.assert_allclose(opened.encode(TEXTS), wanted, **CLOSE)
    save_folder(opened, tmp_path)
    np.testing.assert_array_equal(open_folder(tmp_path).encode(TEXTS), opened.encode(TEXTS))
    np.testing.assert_allclose(theirs(tmp_path).encode(TEXTS), wanted, **CLOSE)


def test_a_folder_may_say_that_its_vector_is_the_pooler_s(bert, tmp_path):
    text = {"method": "forward", "method_output_name": "pooler_output"}
    network = modules.Transformer(
        str(bert), modality_config={"text": text}, module_output_name="sentence_embedding"
    )
    made = sentence_transformers.SentenceTransformer(
        modules=[network, modules.Normalize()], device="cpu"
    )
    made.save(str(tmp_path), create_model_card=False)
    np.testing.assert_allclose(open_folder(tmp_path).encode(TEXTS), made.encode(TEXTS), **CLOSE)


def test_a_network_without_a_pooler_has_no_output_of_it(tiny_bert):
    with pytest.raises(SourceError, match="has no pooler: its weights are not in the folder"):
        open_pooler(str(tiny_bert))
    with pytest.raises(UsageError, match="has no pooler"):
        open_pooler("use")


def test_the_default_prompt_is_put_before_every_text(xlmr, tmp_path):
    prompts = {"query": "query: ", "passage": "passage: "}
    settings = {"prompts": prompts, "default_prompt_name": "query"}
    made = saved(xlmr, tmp_path / "e5", pooling("mean"), modules.Normalize(), **settings)
    plain = saved(xlmr, tmp_path / "plain", pooling("mean"), modules.Normalize(), prompts=prompts)
    wanted = made.encode(TEXTS)
    opened = open_folder(tmp_path / "e5")

    np.testing.assert_allclose(opened.encode(TEXTS), wanted, **CLOSE)
    save_folder(opened, tmp_path / "ours")
    assert open_folder(tmp_path / "ours").digest == opened.digest
    np.testing.assert_allclose(open_folder(tmp_path / "ours").encode(TEXTS), wanted, **CLOSE)
    np.testing.assert_allclose(theirs(tmp_path / "ours").encode(TEXTS), wanted, **CLOSE)
    without = open_folder(tmp_path / "plain")
    np.testing.assert_allclose(without.encode(TEXTS), plain.encode(TEXTS), **CLOSE)
    assert without.digest != opened.digest


def test_a_prompt_that_does_not_exist_or_is_left_out_is_one_line(xlmr, tmp_path):
    settings = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    step = modules.Pooling(32, include_prompt=False)
    saved(xlmr, tmp_path, step, **settings)
    with pytest.raises(SourceError, match="leaves the prompt 'query: ' out"):
        open_folder(tmp_path)
    path = tmp_path / "config_sentence_transformers.json"
    path.write_text(json.dumps({"prompts": {}, "default_prompt_name": "query"}))
    with pytest.raises(SourceError, match="it names a prompt that it lacks"):
        open_folder(tmp_path)


def pickled(folder: Path, *, keep: bool = False) -> Path:
    """Replace each safetensors file by what torch.save writes."""
    for path in folder.rglob("model.safetensors"):
        torch.save(load_file(path), path.with_name("pytorch_model.bin"))
        if not keep:
            path.unlink()
    return folder


@pytest.mark.parametrize("name", ["LaBSE", "RoLASER v2"])
def test_pickled_tensors_are_read(request, tmp_path, name):
    network, steps = STACKS[name]
    wanted = saved(request.getfixturevalue(network), tmp_path, *steps()).encode(TEXTS)
    opened = open_folder(pickled(tmp_path))
    np.testing.assert_allclose(opened.encode(TEXTS), wanted, **CLOSE)
    expected = opened.encode(TEXTS)
    for path in tmp_path.rglob("*.bin"):
        path.write_bytes(bytes(path.stat().st_size))
    np.testing.assert_array_equal(opened.encode(TEXTS), expected)


def test_names_of_old_checkpoints_and_parts_are_read(bert, tmp_path):
    folder = Path(shutil.copytree(bert, tmp_path / "old"))
    weights = load_file(folder / "model.safetensors")
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    old = {}
    for name, value in weights.items():
        end = ".".join(name.split(".")[-2:])
        old[f"bert.{name.replace(end, names.get(end, end))}"] = value
    head = {"cls.predictions.bias": torch.zeros(3)}
    half = len(old) // 2
    parts = dict([*old.items()][:half]), dict([*old.items()][half:]) | head
    for number, part in enumerate(parts, 1):
        torch.save(part, folder / f"pytorch_model-0000{number}-of-00002.bin")
    (folder / "model.safetensors").unlink()
    np.testing.assert_array_equal(
        open_folder(folder).encode(TEXTS), open_folder(bert).encode(TEXTS)
    )


def test_safetensors_are_preferred(bert, tmp_path):
    folder = Path(shutil.copytree(bert, tmp_path / "both"))
    (folder / "pytorch_model.bin").write_bytes(b"nothing that could be read")
    np.testing.assert_array_equal(
        open_folder(folder).encode(TEXTS), open_folder(bert).encode(TEXTS)
    )


@pytest.mark.parametrize(
    "content",
    [[1], {"a": 1}, {1: torch.ones(1)}, b"no pickle", {"a": {"b": torch.ones(1)}}],
)
def test_a_pickle_of_something_else_is_one_line(bert, tmp_path, content):
    folder = Path(shutil.copytree(bert, tmp_path / "spoiled"))
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    with pytest.raises(SourceError, match=r"pytorch_model\.bin") as caught:
        open_folder(folder)
    assert "\n" not in str(caught.value)


def edited(path: Path, **values) -> None:
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | values), "utf-8")


def of_width_5(folder):
    edited(folder / "3_LayerNorm" / "config.json", dimension=5)
    weights = {"norm.weight": torch.ones(5), "norm.bias": torch.ones(5)}
    save_file(weights, folder / "3_LayerNorm" / "model.safetensors")


def named(path):
    def change(folder):
        entries = json.loads((folder / "modules.json").read_text("utf-8"))
        entries[1]["path"] = path
        (folder / "modules.json").write_text(json.dumps(entries))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (named("/etc"), r"modules\.json names '/etc', which is not in "),
        (named("../1_Pooling"), r"names '\.\./1_Pooling', which is not in "),
        (named("a" * 5_000), r"cannot read .*modules\.json"),
        (named("\ud800"), r"cannot read .*modules\.json"),
        (of_width_5, "a LayerNorm of 5 numbers cannot read 8"),
        (lambda f: edited(f / "2_Dense" / "config.json", module_input_name=["a"]), "position"),
        (lambda f: edited(f / "2_Dense" / "config.json", module_output_name={"a": 1}), "position"),
        (lambda f: edited(f / "2_Dense" / "config.json", out_features=7), "cannot read 7"),
        (lambda f: edited(f / "2_Dense" / "config.json", activation_function="os.system"), "os.sy"),
    ],
)
def test_a_damaged_stack_is_one_line(tiny_bert, tmp_path, change, message):
    encoder, folder = open_folder(tiny_bert), tmp_path / "stack"
    head = HeadSettings((Pooling(), Dense(8), LayerNorm(8)))
    save_folder(SentenceEncoder(encoder.network, encoder.tokenizer, head, "stack"), folder)
    change(folder)
    with pytest.raises(SourceError, match=message) as caught:
        open_folder(folder)
    assert "\n" not in str(caught.value)


def test_widths_in_configurations_take_no_memory(tiny_bert, tmp_path):
    encoder, folder = open_folder(tiny_bert), tmp_path / "stack"
    head = HeadSettings((Pooling(), Dense(8), Dense(8)))
    save_folder(SentenceEncoder(encoder.network, encoder.tokenizer, head, "stack"), folder)
    for number in (2, 3):
        edited(folder / f"{number}_Dense" / "config.json", out_features=30_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SourceError, match="size mismatch"):
        open_folder(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # KiB; was 3.6 M


def compressed(path: Path) -> None:
    """Rewrite what torch.save wrote as a zip that expands; torch itself reads such a file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize("kind", ["zip", "view"])
def test_pickled_tensors_that_would_take_far_more_than_their_file_are_refused(bert, tmp_path, kind):
    folder = Path(shutil.copytree(bert, tmp_path / "spoiled"))
    weights, path = load_file(folder / "model.safetensors"), folder / "pytorch_model.bin"
    (folder / "model.safetensors").unlink()
    huge = torch.zeros(10**7) if kind == "zip" else torch.zeros(1).expand(10**9, 10**6)
    torch.save({**weights, "pooler.huge": huge}, path)
    if kind == "zip":
        compressed(path)
    with pytest.raises(SourceError, match=r"pytorch_model\.bin.* bytes.*get it again") as caught:
        open_folder(folder)
    assert "\n" not in str(caught.value)


def in_hub(folder: Path, cache: Path, name: str) -> None:
    """Put a folder into a cache of the hub, as a download leaves it: links to blobs."""
    root = cache / f"models--{name.replace('/', '--')}"
    snapshot, blobs, commit = root / "snapshots" / ("0" * 40), root / "blobs", "0" * 40
    blobs.mkdir(parents=True)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(commit)
    for number, path in enumerate(path for path in folder.rglob("*") if path.is_file()):
        shutil.copy(path, blobs / str(number))
        link = snapshot / path.relative_to(folder)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blobs / str(number))


@pytest.mark.parametrize("are_pickled", [False, True])
def test_models_of_the_hub_open_from_its_cache(bert, tmp_path, monkeypatch, are_pickled):
    from huggingface_hub import constants

    made = saved(bert, tmp_path / "model", *STACKS["LaBSE"][1]())
    if are_pickled:
        pickled(tmp_path / "model")
    in_hub(tmp_path / "model", tmp_path / "cache", "some/LaBSE")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    opened = open_encoder("hf:some/LaBSE")
    assert opened.name == "hf:some/LaBSE"
    np.testing.assert_allclose(opened.encode(TEXTS), made.encode(TEXTS), **CLOSE)
    with pytest.raises(SourceError, match="cannot read some/other of the hub"):
        open_encoder("hf:some/other")


def test_a_head_is_changed_step_by_step():
    head = HeadSettings((Pooling(("cls",)), Dense(8)))
    assert head.pooled("max").steps == (Pooling(("max",)), Dense(8))
    assert head.normalized(True).normalized(True).normalized(False) == head
    before = head.projected(4, "before", bias=False)
    assert [type(step) for step in before.steps] == [Dense, Pooling]
    assert before == head_of("cls", 4, "before", bias=False)
    assert head.projected(4, "after", bias=True) == head_of("cls", 4, "after")
    assert replace(head).pooling == "cls"


@pytest.mark.parametrize("name", ["LaBSE", "RoLASER v2"])
def test_a_copy_of_a_stack_learns_and_keeps_it(request, tmp_path, name):
    from noisegen.training.settings import load_settings
    from noisegen.training.students import make_student

    network, steps = STACKS[name]
    saved(request.getfixturevalue(network), tmp_path / "teacher", *steps())
    teacher = open_folder(tmp_path / "teacher")
    student = make_student(load_settings("quickstart"), teacher)
    assert student.head.settings == teacher.head.settings
    np.testing.assert_array_equal(student.encode(TEXTS), teacher.encode(TEXTS))
    student(Padded.of(student.tokenizer.tokenize(TEXTS), student.tokenizer.pad_id)).sum().backward()
    assert all(weight.grad is not None for weight in student.head.parameters())
    save_folder(student, tmp_path / "student")
    np.testing.assert_allclose(
        theirs(tmp_path / "student").encode(TEXTS), teacher.encode(TEXTS), **CLOSE
    )
