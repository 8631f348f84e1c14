"""A student keeps the settings of its teacher for sentence-transformers."""

import json
import shutil

import numpy as np
import pytest
from models import bert_folder, character_bert
from runs import forget
from training_runs import SHORT, settings

import noisegen
from noisegen.cli import run as command
from noisegen.encoders.encoder import open_encoder
from noisegen.encoders.folders import save_folder
from noisegen.training.settings import load_settings
from noisegen.training.students import make_student

sentence_transformers = pytest.importorskip("sentence_transformers")
modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")

PROMPTS = {"query": "to you: ", "document": "", "passage": "not on: "}
TEXTS = ["see you tomorrow", "c u 2moro!!!", "a much longer sentence about nothing at all"]
CLOSE = {"atol": 1e-4, "rtol": 0}
STILL = SHORT | settings("steps=4 lr=1e-9 recipe=ugc")  # a run that hardly changes its student


def opened(folder, **options):
    return sentence_transformers.SentenceTransformer(
        str(folder), device="cpu", local_files_only=True, **options
    )


def made(network, folder, *, include_prompt=True, **options):
    """Save a model of sentence-transformers with prompts; return its folder."""
    pooling = modules.Pooling(32, "mean", include_prompt=include_prompt)
    stack = [modules.Transformer(str(network)), pooling]
    options = {"prompts": PROMPTS, "default_prompt_name": "query", **options}
    model = sentence_transformers.SentenceTransformer(modules=stack, device="cpu", **options)
    model.max_seq_length = 48
    model.save(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="module")
def teacher(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prompted")
    return made(tiny_bert, folder, similarity_fn_name="dot", truncate_dim=20)


@pytest.fixture(scope="module")
def text(sentences, tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "clean.txt"
    path.write_text("\n".join(sentences[:120]) + "\n", "utf-8")
    return path


def trained(out, text, teacher, **values):
    return noisegen.train([text], out, values={"teacher": str(teacher), **STILL, **values})


def config(folder):
    return json.loads((folder / "config_sentence_transformers.json").read_text("utf-8"))


def same_settings(student, teacher):
    """Check that two folders have the same settings, apart from versions of libraries."""
    ours, theirs = (
        {name: value for name, value in config(folder).items() if value is not None}
        for folder in (student, teacher)
    )
    assert ours == {name: value for name, value in theirs.items() if name != "__version__"}
    assert opened(student).max_seq_length == opened(teacher).max_seq_length


def test_a_copy_is_used_as_its_teacher(teacher, text, tmp_path, capsys):
    values = [f"--set={name}={value}" for name, value in STILL.items()]
    out = tmp_path / "run"
    command(["train", str(text), "-o", str(out), "--teacher", str(teacher), *values])
    student, original = opened(out / "student"), opened(teacher)

    same_settings(out / "student", teacher)
    for way in ("encode", "encode_query", "encode_document"):
        ours, theirs = (getattr(model, way)(TEXTS) for model in (student, original))
        assert ours.shape == (3, 20)
        np.testing.assert_allclose(ours, theirs, **CLOSE)
    ours, theirs = (model.encode(TEXTS, prompt_name="passage") for model in (student, original))
    np.testing.assert_allclose(ours, theirs, **CLOSE)
    assert not np.allclose(ours, student.encode(TEXTS), **CLOSE)
    ours, theirs = (open_encoder(str(folder)) for folder in (out / "student", teacher))
    np.testing.assert_allclose(ours.encode(TEXTS), theirs.encode(TEXTS), **CLOSE)
    assert "not kept" not in capsys.readouterr().out
    card = (out / "student" / "README.md").read_text("utf-8")
    assert "- `passage`: `'not on: '`" in card
    assert "Training put `query`, the default prompt, before each text." in card


def test_a_resumed_run_keeps_the_settings(teacher, text, tmp_path):
    trained(tmp_path / "run", text, teacher, steps=8)
    shutil.rmtree(tmp_path / "run" / "student")
    forget(tmp_path / "run", 8, 4)
    values = {"teacher": str(teacher), **STILL, "steps": 8}
    noisegen.train([text], tmp_path / "run", values=values, resume=True)

    same_settings(tmp_path / "run" / "student", teacher)


@pytest.mark.parametrize("kind", ["layers:0", "folder"])
def test_every_kind_of_student_has_the_prompts_of_its_teacher(
    kind, teacher, tiny_models, text, tmp_path
):
    values = {"student": kind, "noisy_words": 20}
    if kind == "folder":
        own = {"prompts": {"query": "its own: "}, "similarity_fn_name": "euclidean"}
        values["student"] = str(made(tiny_models(32), tmp_path / "start", **own))
    trained(tmp_path / "run", text, teacher, **values)
    student = tmp_path / "run" / "student"

    same_settings(student, teacher)
    assert open_encoder(str(student)).tokenizer.prompt == "to you: "
    ours = open_encoder(str(student)).encode(TEXTS)
    np.testing.assert_allclose(opened(student).encode(TEXTS, truncate_dim=32), ours, **CLOSE)


def test_a_student_that_reads_characters_has_the_prompts_of_its_teacher(teacher, tmp_path):
    character_bert(tmp_path / "characters")
    values = {"student": f"char:{tmp_path / 'characters'}", "lower": True}
    run = load_settings("quickstart", None, values)
    student = make_student(run, open_encoder(str(teacher))).eval()
    save_folder(student, tmp_path / "student")

    assert config(tmp_path / "student")["prompts"] == PROMPTS
    theirs = opened(tmp_path / "student", trust_remote_code=True)
    assert theirs.max_seq_length == 48
    ours = student.encode(TEXTS)
    np.testing.assert_allclose(theirs.encode(TEXTS, truncate_dim=32), ours, **CLOSE)


def test_prompts_without_a_default_are_kept_too(tiny_bert, text, tmp_path):
    folder = made(tiny_bert, tmp_path / "none", default_prompt_name=None, include_prompt=False)
    trained(tmp_path / "run", text, folder)
    student, original = opened(tmp_path / "run" / "student"), opened(folder)

    same_settings(tmp_path / "run" / "student", folder)
    for way in ("encode", "encode_query"):  # the latter leaves the tokens of the prompt out
        ours, theirs = (getattr(model, way)(TEXTS) for model in (student, original))
        np.testing.assert_allclose(ours, theirs, **CLOSE)
    assert "training put none" in (tmp_path / "run/student/README.md").read_text("utf-8")


def test_a_student_of_a_teacher_without_prompts_keeps_its_own(teacher, tiny_models, text, tmp_path):
    trained(tmp_path / "run", text, tiny_models(32), student=str(teacher))
    same_settings(tmp_path / "run" / "student", teacher)


def test_another_maximum_length_is_reported(teacher, text, tmp_path, capsys):
    values = [f"--set={name}={value}" for name, value in STILL.items()]
    out, said = tmp_path / "run", "max_seq_length 48 (the student's is 16)"
    names = ["--teacher", str(teacher), "--set=max_length=16"]
    command(["train", str(text), "-o", str(out), *names, *values])

    assert f"not kept of the teacher: {said}\n" in capsys.readouterr().out
    assert json.loads((out / "metrics.json").read_text())["not_kept"] == [said]
    assert opened(out / "student").max_seq_length == 16
    assert config(out / "student")["prompts"] == PROMPTS


@pytest.mark.parametrize(("given", "kept"), [(None, 900), (512, 512)])
def test_a_teacher_of_long_texts_has_a_student_of_long_texts(
    given, kept, text, tmp_path, tmp_path_factory
):
    from transformers import BertConfig, BertModel

    network = bert_folder(tmp_path / "long")
    size = BertConfig.from_pretrained(network, max_position_embeddings=900)
    BertModel(size, add_pooling_layer=False).save_pretrained(network)
    path = network / "tokenizer_config.json"
    tokenizer = json.loads(path.read_text()) | {"model_max_length": 10**6}
    path.write_text(json.dumps(tokenizer))
    found = trained(tmp_path / "run", text, network, max_length=given)

    assert opened(tmp_path / "run" / "student").max_seq_length == kept
    assert found["not_kept"] == (
        [] if given is None else ["max_seq_length 900 (the student's is 512)"]
    )


def test_a_teacher_of_another_library_has_nothing_to_keep(teacher, text, tmp_path):
    texts = list(dict.fromkeys(text.read_text("utf-8").splitlines()))
    np.save(tmp_path / "v.npy", open_encoder(str(teacher)).encode(texts))
    (tmp_path / "v.txt").write_text("\n".join(texts) + "\n", "utf-8")
    spec = f"npy:{tmp_path / 'v.npy'}"
    found = trained(tmp_path / "run", text, spec, student=str(teacher))

    assert found["not_kept"] == [f"teacher {spec} has no prompts and no max_seq_length"]
    assert config(tmp_path / "run" / "student")["prompts"] == PROMPTS


def test_heads_keep_the_prompts_of_the_frozen_encoder(teacher, pairs_file, tmp_path):
    values = {"teacher": str(teacher), "labels": "side", "epochs": 1, "validation_rows": 40}
    noisegen.train([pairs_file], tmp_path / "run", preset="oracle-small", values=values)
    heads = f"heads:{tmp_path / 'run' / 'heads'}"

    for name, spec in (("student", heads), ("language", f"{heads}#language")):
        same_settings(tmp_path / "run" / name, teacher)
        ours = opened(tmp_path / "run" / name).encode(TEXTS, truncate_dim=32)
        np.testing.assert_allclose(ours, open_encoder(spec).encode(TEXTS), **CLOSE)
    assert open_encoder(heads).usage == open_encoder(str(teacher)).usage
