"""How a recipe is made stronger: what is multiplied, in which order, and what stays."""

from fractions import Fraction

import pytest

from noisegen.realism.scaling import (
    RATE_MAX,
    factor_max,
    one_rate_each,
    reach,
    scaled,
    scaled_step,
    with_factors,
    without,
)
from noisegen.recipe import Recipe, Step, parse, step_values


def step(transform: str = "fing", p: str = "1", **values: float) -> Step:
    return Step(transform, values, Fraction(p))


def numbers(made: Step, *names: str) -> tuple[float, ...]:
    return (float(made.p), *(step_values(made)[name] for name in names))


def test_p_grows_first_and_the_rates_take_what_is_left():
    assert numbers(scaled_step(step(p="0.5", rate=0.05), 1.5), "rate") == (0.75, 0.05)
    assert numbers(scaled_step(step(p="0.5", rate=0.05), 4), "rate") == (1, 0.1)


def test_p_shrinks_first_and_a_step_for_all_rows_has_its_rates():
    assert numbers(scaled_step(step(p="0.5", rate=0.05), 0.5), "rate") == (0.25, 0.05)
    assert numbers(scaled_step(step(rate=0.05), 0.5), "rate") == (1, 0.025)


def test_a_rate_of_one_is_a_rule_and_only_p_moves():
    assert numbers(scaled_step(step("week"), 0.2), "rate") == (0.2, 1)
    assert numbers(scaled_step(step("week", "0.2"), 10), "rate") == (1, 1)


def test_a_chance_never_becomes_a_rule():
    assert numbers(scaled_step(step(rate=0.5), 10), "rate") == (1, RATE_MAX)


def test_every_rate_of_a_step_grows_and_a_rate_of_zero_stays():
    made = scaled_step(step("spac", drop_rate=0.1, add_rate=0.0), 2)
    assert numbers(made, "drop_rate", "add_rate") == (1, 0.2, 0)


def test_the_default_of_a_rate_is_scaled_too():
    assert numbers(scaled_step(step("spac"), 2), "drop_rate", "add_rate") == (1, 0.2, 0.1)


def test_the_p_of_a_group_grows_before_that_of_its_members():
    recipe = parse("steps: [{shuffle: [{fing: {p: 0.5}}, week], p: 0.25}]", "grouped")
    group = scaled(recipe, 6).root.members[0]
    assert float(group.p) == 1
    assert numbers(group.members[0], "rate") == (0.75, 0.05)
    assert numbers(group.members[1], "rate") == (1, 1)


@pytest.mark.parametrize("name", ["mix_all", "rcp-en-aggregate"])
def test_the_factor_one_leaves_a_recipe_as_it_is(name):
    assert scaled(Recipe.named(name), 1).digest == Recipe.named(name).digest


def test_beyond_the_greatest_factor_nothing_grows():
    recipe = Recipe.named("mix_all")
    most = factor_max(recipe)
    assert scaled(recipe, most).digest == scaled(recipe, 2 * most).digest
    assert scaled(recipe, most).digest != scaled(recipe, most / 2).digest
    assert factor_max(parse("steps: [{fing: {p: 0}}, {leet: {rate: 0}}]", "none")) in (0, 1)


def test_a_step_of_several_rates_becomes_a_step_for_each():
    made = one_rate_each(parse("steps: [{spac: {p: 0.5}}, fing]", "both"))
    assert [one.label for one in made.steps()] == ["spac", "spac#2", "fing"]
    rates = [numbers(one, "drop_rate", "add_rate") for one in made.steps()[:2]]
    assert rates == [(0.5, 0.1, 0), (0.5, 0, 0.05)]


def test_what_one_of_chooses_from_stays_one_step():
    recipe = parse("steps: [{one_of: [spac, fing]}]", "choice")
    assert one_rate_each(recipe).digest == recipe.digest


def test_the_reach_of_a_step_is_the_product_of_the_chances_on_the_way():
    recipe = parse(
        "steps: [{one_of: [{fing: {weight: 3, p: 0.5}}, week], p: 0.4}, {leet: {p: 0.2}}]", "r"
    )
    assert reach(recipe) == pytest.approx({"fing": 0.15, "week": 0.1, "leet": 0.2})


def test_steps_are_scaled_and_left_out_by_their_label():
    recipe = parse("steps: [{fing: {p: 0.1}}, {fing: {p: 0.1}}, {leet: {p: 0.1}}]", "labels")
    made = without(with_factors(recipe, {"fing#2": 3, "leet": 2}), ["fing"])
    assert [(one.label, float(one.p)) for one in made.steps()] == [("fing#2", 0.3), ("leet", 0.2)]


def test_a_step_left_out_of_one_of_still_takes_its_rows():
    recipe = parse("steps: [{one_of: [fing, leet]}]", "choice")
    assert [float(one.p) for one in without(recipe, ["leet"]).steps()] == [1, 0]


def test_chances_survive_the_file_digit_for_digit():
    made = scaled(Recipe.named("mix_all"), 1 / 3)
    assert parse(made.to_yaml(), "again").digest == made.digest
