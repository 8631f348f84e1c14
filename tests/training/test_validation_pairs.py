"""Pairs of --validation, such as FLORES in the papers, measure a student and choose its weights."""

import shutil

import numpy as np
import pytest
from runs import log_rows, same_weights, trained_weights
from safetensors.torch import load_file
from training_runs import SHORT, settings

import noisegen
from noisegen.cli import run as command
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import SourceError
from noisegen.evaluation.xsim_search import xsim
from noisegen.training import held_out
from noisegen.training.distil import Distillation

OPTIONS = ("resume", "dry_run", "tell")
STORED = settings("steps=12 keep=9 recipe=stored")
CLEAN = ["we are all here now", "see you tomorrow", "it is too late", "see you tomorrow"]
NOISY = ["we r al here now", "c u 2moro", "its 2 late", "see u tmrw"]


def write_posts(path):
    rows = zip(NOISY, CLEAN, strict=True)
    path.write_text("noisy\tclean\n" + "".join(f"{noisy}\t{clean}\n" for noisy, clean in rows))
    return path


@pytest.fixture(scope="module")
def shared_posts(tmp_path_factory):
    """Pairs to validate on, which tests only read."""
    return write_posts(tmp_path_factory.mktemp("posts") / "posts.tsv")


@pytest.fixture
def posts(tmp_path):
    """Pairs to validate on, which a test may change."""
    return write_posts(tmp_path / "posts.tsv")


@pytest.fixture(scope="module")
def train(tiny_bert, pairs_file, shared_posts):
    def run(out, validation=shared_posts, **values):
        options = {name: values.pop(name) for name in OPTIONS if name in values}
        said = {"teacher": str(tiny_bert), **SHORT, **STORED, **values}
        return noisegen.train([pairs_file], out, values=said, validation=validation, **options)

    return run


def test_figures_on_real_pairs_are_those_of_their_definitions(train, tmp_path, tiny_bert):
    """The slow, obvious way: each text encoded by itself, cosines one by one."""
    found = train(tmp_path / "run", steps=60, validate_every=20, objective="two_term")
    teacher = open_encoder(str(tiny_bert))
    student = open_encoder(str(tmp_path / "run" / "student"))

    def vectors(model, texts):
        return np.concatenate([model.encode([text]) for text in texts]).astype(np.float64)

    def distance(left, right):
        lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        return np.mean(1 - (left * right).sum(1) / lengths)

    anchor = vectors(teacher, CLEAN)
    for model, figures in ((teacher, found["before"]), (student, found["validation"])):
        noisy, clean = vectors(model, NOISY), vectors(model, CLEAN)
        loss = ((anchor - clean) ** 2).sum(1).mean() + ((anchor - noisy) ** 2).sum(1).mean()
        assert figures["given_loss"] == pytest.approx(loss, rel=1e-3)
        assert figures["given_distance"] == pytest.approx(distance(noisy, clean), abs=1e-5)
        assert figures["given_anchored"] == pytest.approx(distance(noisy, anchor), abs=1e-5)
        assert figures["given_drift"] == pytest.approx(distance(clean, anchor), abs=1e-5)
        wrong = xsim(noisy, clean, texts=CLEAN).error_rate
        assert figures["given_xsim_error"] == pytest.approx(wrong)
    assert found["validation"]["given_drift"] > 1e-4 > found["before"]["given_drift"]
    logged = [row for row in log_rows(tmp_path / "run") if "validation_given_loss" in row]
    assert [row["step"] for row in logged] == [0, 20, 40, 60]
    card = (tmp_path / "run" / "student" / "README.md").read_text()
    for start in ("", "given_"):
        first, then = (found[when][f"{start}anchored"] for when in ("before", "validation"))
        assert f"to the teacher's clean vector | {first:.4f} | {then:.4f} |" in card
    assert "| held-out pairs | before | after |\n| --- | ---: | ---: |\n| distance of" in card
    assert "\n\n| validation pairs | before | after |\n" in card


@pytest.mark.parametrize(
    ("content", "recipe", "kinds"),
    [
        ("noisy\tclean\nsee you\tsee you\nSo\tso\n", "stored", ["validation"]),
        ("noisy\tclean\nc u\tsee you\nso\tso\n", "stored", []),
        ("noisy\tclean\nc u\tsee you\nso\tso\n", "abr1:rate=0", ["held-out"]),
    ],
)
def test_pairs_whose_sides_the_student_reads_alike_are_reported(
    train, tmp_path, posts, content, recipe, kinds
):
    """Copies of the teacher are best on them before training; SO and so are one to this BERT."""
    lines = []
    posts.write_text(content)
    train(tmp_path / "run", posts, tell=lines.append, steps=1, recipe=recipe)
    alike = [line for line in lines if "same on both sides" in line]
    assert [line.partition(" pairs (")[0].split()[-1] for line in alike] == kinds


@pytest.mark.parametrize("select_by", ["held_out", None])
def test_given_pairs_choose_the_weights_unless_held_out_ones_shall(
    train, tmp_path, monkeypatch, select_by
):
    validate, losses = Distillation.validate, iter([4, 1, 3, 2])
    figures = {"loss": iter([4, 3, 1, 2]), "given_loss": losses}
    monkeypatch.setattr(
        Distillation,
        "validate",
        lambda method: validate(method) | {name: next(one) for name, one in figures.items()},
    )
    found = train(tmp_path / "run", select_by=select_by)

    best = {None: ("given_loss", 4), "held_out": ("loss", 8)}[select_by]
    assert found["validation"][best[0]] == 1
    saved = load_file(tmp_path / "run" / "checkpoints" / "best.safetensors")
    assert same_weights(saved, trained_weights(tmp_path / "run", best[1]))
    card = (tmp_path / "run" / "student" / "README.md").read_text()
    chosen = "held-out" if select_by else "validation"
    assert f"checkpoint by the loss on\n{chosen} pairs" in card


def test_a_resumed_run_has_the_same_real_pairs(train, tmp_path, posts):
    found = train(tmp_path / "run", posts)
    posts.write_text("noisy\tclean\nother\tother text\n")
    again = train(tmp_path / "run", posts, resume=True)
    assert again["validation"] == found["validation"]


def test_real_pairs_are_sampled_and_counted(train, tmp_path, posts, monkeypatch):
    monkeypatch.setattr(held_out, "SAMPLED", 2)
    lines = []
    posts.write_text(posts.read_text() + "\tno noisy side\n")
    train(tmp_path / "run", posts, tell=lines.append)
    assert lines[0].endswith("held out; 2 of 4 other pairs to validate on (1 empty_side)")


def test_a_missing_column_of_real_pairs_names_no_option_of_other_commands(train, tmp_path, posts):
    posts.write_text("wrong\tclean\na\tb\n")
    with pytest.raises(
        SourceError, match=r"among: wrong, clean; pairs are tables with the columns"
    ):
        train(tmp_path / "run", posts)


def test_a_dry_run_validates_on_real_pairs_too(train, tmp_path, monkeypatch):
    seen, validate = [], Distillation.validate
    monkeypatch.setattr(
        Distillation, "validate", lambda method: seen.append(validate(method)) or seen[-1]
    )
    train(None, dry_run=True)
    assert "given_xsim_error" in seen[0]


def test_real_pairs_come_in_all_forms_of_pairs(train, tmp_path):
    path = tmp_path / "learners.m2"
    path.write_text("S He go home .\nA 1 2|||R:VERB|||goes|||REQUIRED|||-NONE-|||0\n\n")
    lines = []
    found = train(tmp_path / "run", validation=path, tell=lines.append)
    assert found["before"]["given_distance"] > 0
    assert lines[0].endswith("; 1 other pair to validate on")
    path.write_text("S He go home .\nA x 2|||R:VERB|||goes|||REQUIRED|||-NONE-|||0\n\n")
    with pytest.raises(SourceError, match="damaged input"):
        train(tmp_path / "other", validation=path)
    assert not (tmp_path / "other").exists()


WITH_WORDS = {"noisy_words": 20, "steps": 1}


@pytest.fixture(scope="module")
def with_words(train, tmp_path_factory):
    """A run that found noisy words, which tests only copy."""
    out = tmp_path_factory.mktemp("words") / "run"
    train(out, **WITH_WORDS)
    return out


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("validation", ""),
        ("validation", "{}"),
        ("validation", "[1, 2, 3]"),
        ("validation", '{"noisy": [1], "clean": [2], "read": 1, "dropped": {}}'),
        ("validation", '{"noisy": [], "clean": [], "read": 0, "dropped": {}}'),
        ("validation", '{"noisy": ["a"], "clean": ["b", "c"], "read": 2, "dropped": {}}'),
        ("words", '{"x": {}}'),
        ("words", '{"x": {"y": 0}}'),
    ],
)
def test_a_damaged_copy_ends_a_resumed_run_in_one_line(train, with_words, tmp_path, name, content):
    out = shutil.copytree(with_words, tmp_path / "run")
    (out / "data" / f"{name}.json").write_text(content)
    with pytest.raises(
        SourceError, match=rf"^cannot read .*{name}\.json: .*; train again in another folder$"
    ):
        train(out, resume=True, **WITH_WORDS)


def test_a_folder_of_augment_chooses_the_weights(train, tmp_path, demo_texts):
    """RoLASER: FLORES dev with its noise, seed 110; no pair is left out."""
    dev, lines = tmp_path / "dev.txt", []
    texts = [f"{text} ({number})" for number in range(9) for text in demo_texts[:40]]
    dev.write_text("\n".join(texts) + "\n")
    noisegen.augment(dev, tmp_path / "dev", recipe="rolaser", seed=110, workers=1)
    found = train(tmp_path / "run", tmp_path / "dev", tell=lines.append, steps=2)

    assert lines[0].endswith("; 360 other pairs to validate on")
    assert 0 < found["validation"]["given_distance"] < found["validation"]["distance"]


def test_the_command_prints_real_pairs_beside_those_held_out(
    tiny_bert, pairs_file, posts, tmp_path, capsys
):
    words = (
        f"train {pairs_file} -o {tmp_path / 'run'} --teacher {tiny_bert} --steps=2"
        f" --validation {posts} --recipe=stored"
    ).split()
    assert command(words) == 0
    out = capsys.readouterr().out.splitlines()
    heads = [line.split()[:2] for line in out if line.endswith("after")]
    assert heads == [["held-out", "pairs"], ["validation", "pairs"]]
    assert sum(line.startswith("distance of noisy to clean text ") for line in out) == 2
