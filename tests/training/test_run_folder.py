"""A run removes only its own files, and leaves everything as it was if it cannot begin."""

import json
import os
import shutil
from pathlib import Path

import pytest
from runs import log_rows
from training_runs import SHORT, settings

import noisegen
from noisegen.cli import run as command
from noisegen.errors import NoisegenError, OutputError, SourceError, UsageError

TWO_STEPS = settings("steps=2 objective=two_term recipe=stored validate_every=500")


@pytest.fixture(scope="module")
def train(tiny_bert, pairs_file):
    def run(out, data=pairs_file, *, resume=False, force=False, **values):
        said = {"teacher": str(tiny_bert), **SHORT, **TWO_STEPS, **values}
        return noisegen.train([data], out, values=said, resume=resume, force=force)

    return run


@pytest.fixture(scope="module")
def ended(train, tmp_path_factory):
    """A run that ended, which tests only copy."""
    out = tmp_path_factory.mktemp("ended") / "run"
    train(out)
    return out


@pytest.fixture
def made(ended, tmp_path):
    """The folder of a run that ended."""
    return shutil.copytree(ended, tmp_path / "run")


def newest(run: Path) -> Path:
    return max((run / "checkpoints").glob("step-*"))


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", ["data", "student", "log.jsonl"])
def test_force_removes_no_folder_that_only_has_the_name(train, tmp_path, pairs_file, name):
    own = tmp_path / "own" / name / "mine.tsv"
    own.parent.mkdir(parents=True)
    shutil.copy(pairs_file, own)

    with pytest.raises(
        OutputError, match=f"did not train .*{name}; move it, or use another folder"
    ):
        train(tmp_path / "own", own, force=True)

    assert content(tmp_path / "own") == {str(own): pairs_file.read_bytes()}


@pytest.mark.parametrize(
    "values",
    [
        {"objective": "two_tem"},
        {"recipe": "ugk"},
        {"compile": True},
        {"betas": [2, 3]},
        {"student": "layers:0,0"},
    ],
)
def test_a_wrong_setting_is_met_before_the_old_run_is_removed(train, made, values):
    before = content(made)

    with pytest.raises(UsageError):
        train(made, force=True, **values)

    assert content(made) == before


def test_a_run_that_finds_nothing_to_train_on_leaves_nothing(train, tmp_path):
    (tmp_path / "one.tsv").write_text("clean\tnoisy\na b\ta c\n")

    with pytest.raises(SourceError, match="0 pairs to train on"):
        train(tmp_path / "run", tmp_path / "one.tsv")

    assert not (tmp_path / "run").exists()
    train(tmp_path / "run")


def test_a_run_that_cannot_begin_keeps_what_else_is_in_its_folder(train, tmp_path, made):
    (made / "notes.txt").write_text("mine")
    (tmp_path / "one.tsv").write_text("clean\tnoisy\na b\ta c\n")

    with pytest.raises(SourceError, match="0 pairs to train on"):
        train(made, tmp_path / "one.tsv", force=True)

    assert content(made) == {str(made / "notes.txt"): b"mine"}


def test_going_on_and_beginning_anew_exclude_each_other(made, pairs_file, capsys):
    before = content(made)

    assert command(["train", str(pairs_file), "-o", str(made), "--resume", "--force"]) == 2
    assert "give one of them" in capsys.readouterr().err
    assert content(made) == before


@pytest.mark.parametrize("said", ["- 1\n", "{", "", "a: b: c", b"\xff\xff"])
def test_a_config_that_cannot_be_read_is_one_clear_line(train, made, said):
    (made / "config.yaml").write_bytes(said if isinstance(said, bytes) else said.encode())

    with pytest.raises(OutputError, match=r"config\.yaml cannot be read"):
        train(made, resume=True)


@pytest.mark.parametrize(
    ("name", "said", "message"),
    [
        ("data.json", "{}", "held_out"),
        ("data.json", "[]", "no training data"),
        ("data.json", '{"held_out": "x", "seed": 0, "dropped": {}}', "no training data"),
        ("clean.offsets", "", "no training data"),
        ("owner", "1234", "no training data"),
        ("clean.known", "00", r"clean\.known: vectors of 0 texts, of which there are"),
        ("clean.known", "99999", r"clean\.known: vectors of 99,999 texts, of which there are"),
        ("clean.known", "4oo", r"cannot read .*clean\.known: .*train again in another folder"),
    ],
)
def test_damaged_data_is_one_clear_line(train, made, name, said, message):
    (made / "data" / name).write_text(said)

    with pytest.raises(SourceError, match=message):
        train(made, resume=True)


@pytest.mark.parametrize("name", ["clean.offsets", "lang", "owner"])
def test_numbers_beyond_the_data_are_one_clear_line(train, made, name):
    path = made / "data" / name
    content = bytearray(path.read_bytes())
    content[8:16] = b"\x7f" * 8
    path.write_bytes(content)

    with pytest.raises(SourceError, match=r"no training data: .*; train again in another folder"):
        train(made, resume=True)


@pytest.mark.parametrize("place", [("progress", "updates"), ("position", "epoch")])
def test_a_checkpoint_with_text_for_a_number_is_one_clear_line(train, made, place):
    path = newest(made) / "state.json"
    said = json.loads(path.read_text())
    said[place[0]][place[1]] = "x"
    path.write_text(json.dumps(said))

    with pytest.raises(OutputError, match=r"Expected `(int|float)`, got `str`"):
        train(made, resume=True)


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: os.truncate(path, 20)])
def test_best_weights_that_are_gone_are_one_clear_line(train, made, spoil):
    path = newest(made) / "state.json"
    state = json.loads(path.read_text())
    state["validations"][0]["figures"]["loss"] = 0.0  # no later validation is better
    path.write_text(json.dumps(state))
    spoil(made / "checkpoints" / "best.safetensors")

    with pytest.raises(NoisegenError, match=r"cannot read .*best\.safetensors: "):
        train(made, resume=True)


def test_a_log_that_is_no_text_is_gone_on_with(train, made):
    with (made / "log.jsonl").open("ab") as file:
        file.write(b"\xff\xfe")

    train(made, resume=True)

    rows = log_rows(made)
    assert rows[-1]["step"] == 2
