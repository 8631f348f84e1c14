"""Recipe files from strangers: each bad one is a single line within a second, however it is bad."""

import time
from itertools import pairwise

import pytest
from runs import DEMO

from noisegen.cli import run
from noisegen.errors import RecipeError
from noisegen.noising.bounded_yaml import FILE_BYTES_MAX
from noisegen.noising.mix import parse_step
from noisegen.noising.recipe import Recipe, parse


def nested(levels: int) -> str:
    return "steps: [" + "{sequence: [" * levels + "fing" + "]}" * levels + "]"


def bomb(letters: str) -> str:
    """Nine aliases of nine aliases, and so on."""
    lines = [f"- &{letters[0]} [{','.join('x' * 9)}]"]
    for before, letter in pairwise(letters):
        lines.append(f"- &{letter} [{','.join([f'*{before}'] * 9)}]")
    return "\n".join(["steps:", *lines])


BAD = {
    "steps: &a\n- sequence: *a": "contains itself",
    "steps:\n- &a\n  sequence:\n  - *a": "contains itself",
    "&a\nsteps: *a": "contains itself",
    nested(30): "is nested over 40 deep",
    nested(300): "is nested over 40 deep",
    nested(5000): "nest",  # the words are those of the library
    "steps: " + "[" * 5_000: "nest",
    "steps: " + "[" * 130_000: "nest",
    "steps: " + "- " * 60_000: "is not YAML",
    "steps:\n " + "- " * 60_000: "nest",
    bomb("abcdefghi"): "has over 10,000 nodes, aliases followed",
    "{" + ",".join(f"k{number}: 1" for number in range(5_100)) + "}": "has over 10,000 nodes",
    "steps: [fing]\n1: 2\na: 3": "unknown key 1",
    "steps:\n- sequence: [fing]\n  1: 2\n  zz: 1": "step 1: sequence has no option 1",
    "steps:\n- fing: {1: 2}": "step 1: fing has no parameter '1'",
    "steps:\n- fing: {? [a] : 2}": "found unhashable key",
    "extends: ugc\nset: [1]": "set must map TRANSFORM.PARAM to values",
    "extends: ugc\nset: x": "set must map TRANSFORM.PARAM to values",
    "extends: ugc\nset: {1: 2}": "cannot set '1'",
    "extends: [ugc]": "extends = ['ugc'] is not the name of a recipe",
    "extends: ugcc": "no recipe or transform named 'ugcc'; did you mean 'ugc'?",
    "steps: [fing]\nstrength: {1: .inf}": "strength must map factors to whole weights",
    "steps: [fing]\nstrength: {1e999999999: 1}": "strength must map factors to whole weights",
    "steps:\n- fing: {p: 1e999999999}": "p = '1e999999999' is not a number",
    "steps:\n- fing: {p: 1e-999999999}": "p = '1e-999999999' is not a number",
    "steps:\n- wiki: {dictionary: [a]}": "wiki.dictionary = ['a'] is not a str",
    "steps:\n- fing: {weight: " + "9" * 5_000 + "}": "has a number of 5,000 characters",
    "steps:\n- fing: {weight: " + ":".join(["59"] * 3_000) + "}": "a number of 8,999 characters",
    "steps:\n- fing: {rate: " + ":".join(["59"] * 300) + ".5}": "has a number of 901 characters",
    "steps: [fing]\nname: 2020-13-45": "is not YAML: month must be in 1..12",
    "steps: [fing]\n\0": "is not YAML: unacceptable character #x0000",
    "steps: !!python/object/apply:os.getcwd []": "could not determine a constructor for the tag",
    "steps: [fing]\nname: !!bool maybe": "is not YAML: a value does not fit its tag",
    'steps: [fing]\nname: !!int ""': "is not YAML: a value does not fit its tag",
    "steps: [fing]\nname: !!timestamp x": "is not YAML: a value does not fit its tag",
    "steps: !!python/name:os.system": "could not determine a constructor for the tag",
}


@pytest.mark.parametrize("content", BAD, ids=range(len(BAD)))
def test_a_hostile_recipe_is_one_line_within_seconds(tmp_path, capfd, content):
    path = tmp_path / "r.yaml"
    path.write_text(content)
    began = time.process_time()

    assert run(["preview", str(DEMO), "--recipe", str(path)]) == 1
    assert time.process_time() - began < 5

    [line] = capfd.readouterr().err.splitlines()
    assert "r.yaml" in line
    assert BAD[content] in line


def test_the_size_of_a_recipe_file_is_bounded(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("steps: [fing]\n" + "#" * FILE_BYTES_MAX)

    with pytest.raises(RecipeError, match="it is over 128 KiB"):
        Recipe.from_yaml(path)
    with pytest.raises(RecipeError, match="it is over 128 KiB"):
        Recipe.from_yaml("/dev/zero")


def test_recipes_that_extend_each_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, base in (("a", "a"), ("b", "c"), ("c", "b"), ("d", "ugc"), ("e", "d")):
        (tmp_path / f"{name}.yaml").write_text(f"extends: {base}{'.yaml' * (base != 'ugc')}\n")

    with pytest.raises(RecipeError, match=r"a\.yaml: extends 'a\.yaml', which extends it in turn"):
        Recipe.from_yaml("a.yaml")
    with pytest.raises(RecipeError, match=r"c\.yaml: extends 'b\.yaml', which extends it in turn"):
        Recipe.from_yaml("b.yaml")
    assert Recipe.from_yaml("e.yaml").digest == Recipe.named("ugc").digest


def test_aliases_within_bounds_are_read():
    recipe = parse("steps:\n- &a {fing: {rate: 0.5}}\n- sequence: [*a, {one_of: [*a, leet]}]", "r")

    assert [step.transform for step in recipe.steps()] == ["fing", "fing", "fing", "leet"]


def test_a_step_of_the_command_line_is_bounded_too():
    with pytest.raises(RecipeError, match="is not a number"):
        parse_step("fing:p=1e-999999999")
