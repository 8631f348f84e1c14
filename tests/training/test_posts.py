"""`train --posts` fits the recipe to posts before it trains."""

import pytest
import yaml

from noisegen.augmentation.catalog import demo_texts
from noisegen.augmentation.on_the_fly import Noising
from noisegen.cli import run
from noisegen.noising.recipe import Recipe


@pytest.fixture
def command(tmp_path, tiny_bert):
    posts, clean = tmp_path / "posts.txt", tmp_path / "clean.txt"
    texts = demo_texts()["en"]
    shouting = Recipe.named("ugc").with_factors({"start": 6})
    posts.write_text("\n".join(Noising("en").noise(shouting, texts[::2], 3)), "utf-8")
    clean.write_text("\n".join(texts[1::2]), "utf-8")
    given = f"--posts {posts} -o {tmp_path / 'run'} --teacher {tiny_bert} --steps 2 -q"
    return f"train {clean} {given} --set validation_rows=30 --set batch_tokens=512".split()


def test_the_recipe_is_fitted_and_trained_on(command, tmp_path, capsys):
    assert run(command) == 0
    config = yaml.safe_load((tmp_path / "run/config.yaml").read_text("utf-8"))
    path = tmp_path / "run.yaml"
    assert config["recipe"] == str(path)
    content = yaml.safe_load(path.read_text("utf-8"))
    assert content["extends"] == "ugc"
    assert content["scale"]["start"] > 1.5
    assert run([*command, "--resume"]) == 0  # without another fit
    assert run(command) == 1
    assert "run.yaml exists" in capsys.readouterr().err


def test_it_writes_a_file_so_it_is_no_dry_run(command, tmp_path, capsys):
    assert run([*command, "--dry-run"]) == 2
    assert "--dry-run writes nothing" in capsys.readouterr().err
    assert not (tmp_path / "run.yaml").exists()


def test_several_processes_take_a_recipe_that_was_fitted_before(command, monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run(command) == 2
    assert "noisegen fit first" in capsys.readouterr().err
