"""Noise is compared with posts that have no clean version, by a classifier and by habits."""

import json
import re

import pytest

import noisegen
from noisegen.augmentation.catalog import demo_texts
from noisegen.augmentation.on_the_fly import Noising
from noisegen.cli import run
from noisegen.errors import UsageError
from noisegen.noising.recipe import Recipe
from noisegen.realism.unpaired import compare_texts

UGC = Recipe.named("ugc")
CLEAN = demo_texts()["en"]
HALVES = CLEAN[::2], CLEAN[1::2]


def posts_of(recipe: Recipe) -> list[str]:
    return Noising("en").noise(recipe, HALVES[0], 5)


def marks_of(posts: list[str], recipe: str | Recipe) -> dict[str, float]:
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.named(recipe)
    found = compare_texts(posts, HALVES[1], recipe)
    return {mark.name: mark.difference for mark in found.marks}


def test_noise_like_that_of_the_posts_is_hard_to_tell_and_other_noise_easy():
    posts = posts_of(UGC)
    same, other = (
        compare_texts(posts, HALVES[1], Recipe.named(name)) for name in ("ugc", "mix_all")
    )
    assert same.classifier.all_rows.value < other.classifier.all_rows.value
    assert same.classifier.clean_sides.value > same.classifier.all_rows.value + 0.1
    assert abs(same.floor.value - 0.5) < 0.1
    assert max(abs(mark.difference) for mark in same.marks) < 5
    assert max(abs(mark.difference) for mark in other.marks) > 5


def test_habits_that_are_too_rare_or_too_frequent_are_found():
    differences = marks_of(posts_of(UGC.with_factors({"start": 6, "clip": 0})), UGC)
    assert differences["starts small"] < -3
    assert differences["clip"] > 2
    assert abs(differences["commas"]) < 3


def test_topics_do_not_count():
    about_one_thing = [re.sub(r"\b[a-z]{7,}\b", "zanzibar", text) for text in posts_of(UGC)]
    assert sum("zanzibar" in text for text in about_one_thing) > 100
    found, plain = (
        compare_texts(posts, HALVES[1], UGC).classifier
        for posts in (about_one_thing, posts_of(UGC))
    )
    assert "z" not in "".join(one.ngram for one in found.contrasts)
    assert abs(found.all_rows.value - plain.all_rows.value) < 0.05


def test_the_command_says_it_first_and_writes_a_page(tmp_path, capsys):
    posts, clean, page = (tmp_path / name for name in ("posts.txt", "clean.txt", "r.html"))
    posts.write_text("\n".join(posts_of(UGC)), "utf-8")
    clean.write_text("\n".join(HALVES[1]), "utf-8")
    command = ["realism", "--posts", str(posts), "--clean", str(clean), "-o", str(page)]
    assert run(command) == 0
    printed = capsys.readouterr().out
    assert "a classifier picks the synthetic text in" in " ".join(printed.split()[:12])
    assert "Posts beside noise" in page.read_text("utf-8")
    assert run([*command[:-2], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    again = noisegen.compare_posts(posts, clean).to_dict()
    assert found == json.loads(json.dumps(again))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--posts", "posts.txt"], "--posts and --clean belong together"),
        (["--posts", "a", "--clean", "b", "--pairs", "c"], "--pairs does not go with --posts"),
        (
            ["--posts", "a", "--clean", "b", "--strength", "x2"],
            "--strength does not go with --posts",
        ),
        (["--posts", "a", "--clean", "b", "--workers", "2"], "--workers does not go with --posts"),
        ([], "give --pairs, or --posts and --clean"),
    ],
)
def test_wrong_combinations_are_one_line(given, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["realism", *given]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_set_without_texts():
    with pytest.raises(UsageError, match="there are no clean texts"):
        compare_texts(["one post"], [], UGC)
