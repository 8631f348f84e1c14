"""Recipes: YAML both ways, mixing, language, errors."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from runs import DEMO, table

import noisegen
from noisegen.errors import RecipeError, UsageError
from noisegen.noising.mix import parse_step
from noisegen.noising.plan import Schedule, Streams
from noisegen.noising.recipe import Recipe, parse, recipe_names
from noisegen.text.resources import RECIPES

ROWS = 100_000


def dice(seed: int = 0, rows: int = ROWS) -> Streams:
    return Streams(np.arange(rows, dtype=np.uint64), seed)


def drawn(recipe: Recipe, rows: int = ROWS) -> list[list[str]]:
    """The steps that each row draws, in order."""
    plan = Schedule.of(recipe).draw(dice(rows=rows))
    found: list[list[str]] = [[] for _ in range(rows)]
    for row, step in zip(plan.rows.tolist(), plan.steps.tolist(), strict=True):
        found[row].append(recipe.steps()[step].transform)
    return found


def near(count: int, chance: float, n: int = ROWS) -> bool:
    return abs(count - n * chance) <= 4 * math.sqrt(n * chance * (1 - chance))


@pytest.mark.parametrize("name", recipe_names())
def test_packaged_recipes_survive_yaml(name):
    recipe = Recipe.named(name)
    again = parse(recipe.to_yaml(), "again")
    assert again == recipe
    assert again.digest == recipe.digest


def test_mix_all_is_the_papers():
    recipe = Recipe.named("mix_all")
    twelve = "abr1 abr2 abr3 cont dysl fing homo leet slng spac spel week"
    assert " ".join(step.transform for step in recipe.steps()) == twelve
    assert all(step.p == Fraction(1, 10) for step in recipe.steps())
    assert recipe.strength == ((Fraction(1, 2), 1), (Fraction(1), 2), (Fraction(3, 2), 1))
    rates = {step.transform: step.values for step in recipe.steps() if step.values}
    assert rates == {
        "abr1": {"rate": 0.1},
        "fing": {"rate": 0.05},
        "homo": {"rate": 0.5},
        "leet": {"rate": 0.1},
        "spac": {"drop_rate": 0.1, "add_rate": 0.05},
        "spel": {"rate": 0.2},
    }


def test_the_profiles_differ_only_in_leet():
    paper, code = Recipe.named("rolaser"), Recipe.named("rolaser-code")
    for lang in ("en", "fr"):
        steps = zip(paper.mix_of(lang).steps(), code.mix_of(lang).steps(), strict=True)
        ((a, b),) = [(a, b) for a, b in steps if a != b]
        assert (a.transform, b.values) == ("leet", {**a.values, "rate": 0.05})


def test_rolaser_draws_as_many_of_its_twelve_as_mix_all():
    ours, mix = (Recipe.named(name).mix_of("en") for name in ("rolaser", "mix_all"))
    assert ours.strength == mix.strength
    first = [step.transform for step in mix.steps()]
    (shuffle,) = ours.root.members
    named = [getattr(m, "members", [m])[0].transform for m in shuffle.members]
    assert named == first
    assert {member.p for member in shuffle.members} == {Fraction(1, 10)}


def test_steps_per_row_follow_the_binomial():
    counts = Counter(map(len, drawn(Recipe.named("mix_all"))))
    for k in range(6):
        assert near(counts[k], math.comb(12, k) * 0.1**k * 0.9 ** (12 - k))


def test_the_order_of_a_shuffle_is_uniform():
    recipe = parse("steps: [{shuffle: [fing, leet, spac]}]", "s")
    orders = Counter(map(tuple, drawn(recipe)))
    assert len(orders) == 6
    assert all(near(count, 1 / 6) for count in orders.values())


def test_one_of_takes_one_by_weight_and_p_gates_groups():
    text = "steps: [{one_of: [{fing: {weight: 3}}, {leet: {p: 0.5}}], p: 0.4}, spac]"
    rows = Counter(map(tuple, drawn(parse(text, "o"))))
    assert near(rows["fing", "spac"], 0.4 * 0.75)
    assert near(rows["leet", "spac"], 0.4 * 0.25 * 0.5)
    assert rows["spac",] == ROWS - rows["fing", "spac"] - rows["leet", "spac"]


def test_nested_groups_keep_their_members_together():
    text = "steps: [{shuffle: [{sequence: [fing, leet]}, {sequence: [spac, week]}]}]"
    orders = set(map(tuple, drawn(parse(text, "n"), rows=100)))
    assert orders == {("fing", "leet", "spac", "week"), ("spac", "week", "fing", "leet")}


def test_strengths_have_their_weights_and_two_rates_draw_twice():
    recipe = Recipe.named("mix_all")
    assert recipe.steps()[9].transform == "spac"
    rows, spacs, writers = np.arange(ROWS), np.full(ROWS, 9), np.zeros(ROWS, np.int64)
    found = Schedule.of(recipe).pair_draws(dice(), rows, spacs, writers, rates=2).strengths
    for rate in found.T:
        shares = np.bincount(rate, minlength=3)
        assert near(shares[0], 0.25)
        assert near(shares[1], 0.5)
    both = np.bincount(found[:, 0] * 3 + found[:, 1], minlength=9)
    assert near(both[0], 1 / 16)


def test_the_same_transform_twice_has_two_streams():
    recipe = parse("steps: [{fing: {p: 0.5}}, {fing: {p: 0.5}}]", "t")
    assert [step.label for step in recipe.steps()] == ["fing", "fing#2"]
    assert near(Counter(map(len, drawn(recipe)))[1], 0.5)


def test_values_can_be_set_and_the_digest_tells():
    recipe = Recipe.named("mix_all")
    changed = recipe.with_values({"leet.rate": "0.3", "fing.p": "1"})
    assert changed.digest != recipe.digest
    assert recipe.with_values({"leet.rate": "0.1"}).digest == recipe.digest
    with pytest.raises(UsageError, match="no such step; did you mean 'leet'"):
        recipe.with_values({"leat.rate": 1})
    with pytest.raises(UsageError, match="leet has no parameter 'rat'; did you mean 'rate'"):
        recipe.with_values({"leet.rat": 1})


def test_steps_without_data_for_a_language_are_left_out():
    recipe, left_out = Recipe.named("mix_all").for_language("fr")
    assert [step.transform for step in recipe.steps()] == ["fing", "leet", "spac", "week"]
    assert left_out == ["abr1", "abr2", "abr3", "cont", "dysl", "homo", "slng", "spel"]
    with pytest.raises(UsageError, match="homo has no data for language 'fr'; it has en"):
        Recipe.of([parse_step("homo")]).for_language("fr")


def test_what_a_recipe_leaves_out_is_said_in_one_line():
    note = "ugc leaves out 14 of its 24 transforms in 'sw' (no data): init, join, rebus, "
    assert Recipe.named("ugc").note_on("sw").startswith(note)
    assert Recipe.named("ugc").note_on("EN") == Recipe.of(["fing"]).note_on("sw") == ""


def test_norwegian_needs_no_quotes():
    """YAML reads `no` as false."""
    assert [*parse("{steps: [fing], languages: {no: {steps: [leet]}}}", "r").languages] == ["no"]


def test_a_packaged_mix_of_a_language_has_data_for_all_its_steps():
    recipe = Recipe.named("ugc")
    assert not [note for lang in recipe.languages if (note := recipe.note_on(lang))]


def test_steps_of_the_command_line():
    step = parse_step("spac:drop_rate=0.3,p=0.5")
    assert (step.transform, step.p, step.values) == ("spac", Fraction(1, 2), {"drop_rate": 0.3})
    assert parse_step("week").values == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{steps: [fing], languages: {de: {steps: [fing]}, German: {steps: [leet]}}}",
            "language 'German' is 'de', which has a mix already",
        ),
        ("- fing", "a recipe is a mapping with name and steps"),
        ("steps: []", "steps must be a list of transforms"),
        ("steps: [fing", "is not YAML"),
        ("step: [fing]", "unknown key 'step'"),
        ("steps: [fnig]", "step 1: no transform named 'fnig'; did you mean 'fing'"),
        ("steps: [{fing: {rate: 2}}]", "fing.rate = 2 is outside 0 to 1"),
        ("steps: [{fing: {rate: fast}}]", "fing.rate = 'fast' is not a float"),
        ("steps: [{fing: {p: 1.5}}]", "p = 1.5 is outside 0 to 1"),
        ("steps: [{fing: {p: often}}]", "p = 'often' is not a number"),
        ("steps: [{fing: 3}]", "{'fing': 3} is not a transform's name, 'name: {"),
        ("steps: [{shuffle: fing}]", "shuffle must be a list of transforms"),
        ("steps: [{shuffle: [fing], chance: 1}]", "shuffle has no option 'chance'"),
        ("steps: [{one_of: [{fing: {weight: 0}}]}]", "weight = 0 is not a whole number"),
        ("strength: {a: 1}\nsteps: [fing]", "strength must map factors to whole weights"),
        ("strength: {-1: 1}\nsteps: [fing]", "strength needs factors of at least 0"),
        ("extends: mix_all\nsteps: [fing]", "extends another has no steps$"),
        ("extends: mix_al", "no recipe or transform named 'mix_al'; did you mean 'mix_all'"),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said(text, message):
    with pytest.raises((RecipeError, UsageError), match=message):
        parse(text, "recipe.yaml")


def test_a_recipe_has_at_most_62_steps():
    with pytest.raises(RecipeError, match="over 62 steps"):
        parse(f"steps: [{', '.join(['fing'] * 63)}]", "long")


def test_recipe_files_say_their_own_name():
    for path in RECIPES.glob("*.yaml"):
        assert parse(path.read_text(), "no name").name == path.stem


def test_a_recipe_file_that_is_missing_says_so(tmp_path):
    with pytest.raises(RecipeError, match="cannot read recipe"):
        Recipe.named(str(tmp_path / "none.yaml"))


def test_a_folder_of_learned_noise_is_no_recipe_and_no_transform(tmp_path):
    (tmp_path / "mined").mkdir()
    (tmp_path / "mined" / "dictionary.parquet").touch()
    mined = str(tmp_path / "mined")
    for make in (Recipe.named, lambda name: Recipe.chosen("ugc", [name])):
        with pytest.raises(UsageError, match=f"use it as -t wiki:dictionary={mined}"):
            make(mined)
    with pytest.raises(UsageError, match="cannot read 'wiki=mined': write NAME or NAME:parameter="):
        Recipe.chosen("ugc", ["wiki=mined"])


def test_a_transform_may_stand_where_a_recipe_is_named(tmp_path):
    recipe = Recipe.named("leet:rate=1")
    assert [(step.transform, step.values) for step in recipe.steps()] == [("leet", {"rate": 1.0})]
    given = {"seed": 3, "limit": 20}
    one = noisegen.augment(DEMO, tmp_path / "a", recipe="leet:rate=1", **given)
    two = noisegen.augment(DEMO, tmp_path / "b", transforms="leet:rate=1", **given)
    assert table(tmp_path / "a")["noisy"] == table(tmp_path / "b")["noisy"]
    assert two.totals == one.totals
