"""Objectives that are not ours: from a file of `--code`, and from an entry point."""

from unittest.mock import patch

import pytest

import noisegen
from noisegen.cli import run
from noisegen.errors import UsageError
from noisegen.training import objectives
from noisegen.training.objectives import WeightedSum, find_objective, objective, preset_for

CODE = '''
from noisegen.training.objectives import objective


@objective("half_error")
def half_error(batch, output):
    """Half the squared error."""
    return {"half": 0.5 * (batch.teacher - output.noisy).square().sum(1).mean()}


@objective("alike", "heads")
def alike(batch, output):
    """Meaning vectors of a pair alike."""
    return {"alike": (output.source_meaning - output.target_meaning).square().mean()}


@objective("far", "pretrain")
def far(sides, temperature):
    """Vectors of length zero."""
    return {"far": sides.vectors.square().mean() * temperature}
'''
SHORT = {"steps": 2, "precision": "fp32", "validation_rows": 20}


@pytest.fixture(autouse=True)
def _own_objectives():
    with patch.dict(objectives.REGISTERED):
        yield


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    return path


def test_the_command_trains_with_an_objective_of_a_file(code, tiny_bert, pairs_file, tmp_path):
    given = (
        f"train {pairs_file} -o {tmp_path / 'run'} --teacher {tiny_bert} --recipe stored --steps 2"
        f" --objective mse_sum+2*half_error --code {code} --quiet"
    ).split()
    assert run(given) == 0
    assert '"loss_half"' in (tmp_path / "run" / "log.jsonl").read_text()


def test_heads_and_pre_training_have_objectives_of_a_file_too(
    code, tiny_models, pairs_file, tmp_path
):
    model, heads = str(tiny_models()), {"labels": "side", "batch_pairs": 16, "steps": 2}
    found = noisegen.train(
        [pairs_file],
        tmp_path / "heads",
        code=code,
        objective="meat+alike",
        teacher=model,
        preset="oracle-small",
        values=heads,
    )
    assert found["validation"]["alike"] > 0
    found = noisegen.train(
        [pairs_file],
        tmp_path / "lm",
        code=[code],
        objective="mlm+0.5*far",
        student=model,
        preset="rcp-small",
        values={**SHORT, "batch_pairs": 16},
    )
    figures = found["validation"]
    parts = figures["loss_mlm_noisy"] + figures["loss_mlm_clean"] + 0.5 * figures["loss_far"]
    assert figures["loss"] == pytest.approx(parts)


def test_an_entry_point_is_loaded_when_it_is_named(monkeypatch, tmp_path):
    (tmp_path / "plugged_in.py").write_text("def mine(batch, output): ...\n")
    package = tmp_path / "plugged_in-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged_in\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[noisegen.objectives]\nmine = plugged_in:mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    function = find_objective("mine", "distil").function
    assert (function.__module__, function.__name__) == ("plugged_in", "mine")
    assert WeightedSum.parse("two_term+mine").parts[1][1].name == "mine"


def test_a_name_that_is_taken_and_a_need_that_is_none_are_refused():
    with pytest.raises(UsageError, match="'cosine' is already registered"):
        objective("cosine")(lambda batch, output: {})
    with pytest.raises(UsageError, match="its needs of clean"):
        objective("mine", "distil", "tea")
    with pytest.raises(UsageError, match="one of distil, pretrain, heads"):
        objective("mine", "other")


@pytest.mark.parametrize(
    ("text", "preset"),
    [
        ("two_term+0.2*info_nce", "quickstart"),
        ("mlm+nt_xent", "rcp-small"),
        ("", "quickstart"),
        ("0.5*dream:third-term+oracle", "oracle-small"),
        ("nt_xent", "quickstart"),
    ],
)
def test_an_objective_belongs_to_a_preset(text, preset):
    assert preset_for(text) == preset
