"""The parts of the fit to real pairs: vectors, least squares, tiers, and noise that is known."""

from itertools import chain, combinations

import numpy as np
import pytest

from noisegen.errors import UsageError
from noisegen.realism.figures import divergences, measure
from noisegen.realism.fitting import Bench, Fit, fit, tiered
from noisegen.realism.kinds import KINDS
from noisegen.realism.noising import Noising
from noisegen.realism.scaling import one_rate_each
from noisegen.realism.signatures import (
    CER,
    EDITS,
    KIND,
    WER,
    distance,
    nonnegative,
    unchanged,
    vector,
)
from noisegen.realism.tiers import LADDER, Tier, chosen, mixed
from noisegen.recipe import STEPS_MAX, Recipe, parse

RULE = Noising(tagger="rule")
START = """
name: start
steps: [{leet: {p: 0.3}}, {fing: {p: 0.3}}, {spac: {p: 0.3}}, {spel: {p: 0.3}}, {caps: {p: 0.1}}]
"""


@pytest.fixture(scope="module")
def texts(demo_texts):
    """The sentences of the demo that are in English."""
    return list(dict.fromkeys(demo_texts))[:250]


def by_trying(matrix, target):
    """Return the least squares without negative numbers: of all sets of columns, the best."""
    columns = range(matrix.shape[1])
    best = np.zeros(matrix.shape[1])
    for kept in chain.from_iterable(combinations(columns, n) for n in range(1, len(columns) + 1)):
        found = np.zeros(matrix.shape[1])
        found[list(kept)] = np.linalg.lstsq(matrix[:, kept], target, rcond=None)[0]
        if (found >= 0).all() and error(matrix, target, found) < error(matrix, target, best):
            best = found
    return best


def error(matrix, target, found):
    return float(((matrix @ found - target) ** 2).sum())


def test_the_least_squares_are_those_of_trying_all_sets_of_columns():
    generator = np.random.default_rng(3)  # fixed: the matrices are the same in every run
    for _ in range(60):
        matrix, target = generator.normal(size=(9, 5)), generator.normal(size=9)
        found = nonnegative(matrix, target)
        assert (found >= 0).all()
        assert error(matrix, target, found) == pytest.approx(
            error(matrix, target, by_trying(matrix, target)), abs=1e-6
        )


def test_a_column_of_zeros_gets_nothing():
    assert nonnegative(np.array([[1.0, 0], [1, 0]]), np.array([2.0, 2])).tolist() == [2, 0]


def test_a_vector_holds_the_figures_of_the_pairs(texts):
    noisy = RULE.noise(Recipe.named("mix_all"), texts)
    found, figures = vector(texts, noisy, "en"), measure(texts, noisy, "en")
    assert found[KIND].tolist() == pytest.approx([n / len(texts) for n in figures.kinds.values()])
    assert found[EDITS].tolist() == pytest.approx([n / len(texts) for n in figures.edits_per_row])
    assert (found[CER], found[WER]) == pytest.approx((figures.cer, figures.wer))
    assert len(KINDS) == KIND.stop


def test_clean_pairs_have_the_vector_of_unchanged_rows(texts):
    assert vector(texts, texts, "en").tolist() == unchanged().tolist()


def test_a_vector_is_no_distance_from_itself(texts):
    found = vector(texts, RULE.noise(Recipe.named("fing"), texts), "en")
    assert distance(found, found) == pytest.approx(0, abs=1e-9)
    assert distance(found, unchanged()) > 1


def rung(edits: int):
    """Return the vector of rows that have so many edits each, all of the first kind."""
    made = np.zeros(WER + 1)
    made[0], made[EDITS.start + edits] = edits, 1
    made[[CER, WER]] = edits / 100, edits / 50
    return made


def test_tiers_find_the_shares_that_made_the_mix():
    ladder = [rung(edits) for edits in (1, 2, 4, 6, 9)]
    known = (Tier(LADDER[1], 0.3), Tier(LADDER[4], 0.1))
    found = chosen(mixed(ladder, known), ladder, most=3)
    assert [tier.factor for tier in found] == [LADDER[1], LADDER[4]]
    assert [tier.share for tier in found] == pytest.approx([0.3, 0.1], abs=0.01)


def test_there_are_no_more_tiers_than_fit_into_a_recipe():
    ladder = [rung(edits) for edits in (1, 2, 4, 6, 9)]
    real = mixed(ladder, (Tier(0.2, 0.2), Tier(1.0, 0.2), Tier(5.0, 0.2)))
    assert len(chosen(real, ladder, most=1)) == 1
    assert len(chosen(real, ladder, most=9)) == 3


def test_where_rows_hardly_ever_change_there_is_still_a_tier():
    ladder = [rung(edits) for edits in (1, 2, 4, 6, 9)]
    found = chosen(mixed(ladder, (Tier(1.0, 0.0005),)), ladder, most=3)
    assert [tier.share for tier in found] == [0.005]


def test_noise_that_no_step_resembles_is_fitted_without_failing(texts):
    real = vector(texts, [f"{text} indeed" for text in texts], "en")
    found = fit(Recipe.named("caps"), real, Bench(texts[:60], RULE), 1)
    assert tiered(Recipe.named("caps"), found).steps()


def test_a_fitted_recipe_is_one_of_its_tiers_for_the_share_of_rows():
    recipe = one_rate_each(parse(START, "start"))
    tiers = (Tier(0.45, 0.25), Tier(2.2, 0.05))
    made = tiered(recipe, Fit({"fing": 1.0, "caps": 2.0}, tiers, unchanged()))
    choice = made.root.members[0]
    assert (choice.kind, float(choice.p)) == ("one_of", 0.3)
    assert [tier.weight for tier in choice.members] == [833, 167]
    assert [(one.transform, float(one.p)) for one in made.steps()] == [
        ("fing", 0.135), ("caps", 0.09), ("fing", 0.66), ("caps", 0.44),
    ]  # fmt: skip
    assert len({one.label for one in made.steps()}) == 4
    assert parse(made.to_yaml(), "again").digest == made.digest


def refitted(truth: str, texts, rounds=2):
    """Fit START to what a known recipe makes of the texts; return both and figures of the two."""
    noisy = RULE.noise(parse(truth, "truth"), texts, seed=7)
    start = one_rate_each(parse(START, "start"))
    found = fit(start, vector(texts, noisy, "en"), Bench(texts, RULE), rounds)
    made = tiered(start, found)
    real = measure(texts, noisy, "en")
    sides = [measure(texts, RULE.noise(one, texts, seed=8), "en") for one in (start, made)]
    return made, real, *sides


def test_noise_of_a_known_recipe_is_found_again(texts):
    made, real, before, after = refitted(
        "steps: [{fing: {p: 0.6, rate: 0.03}}, {spac: {p: 0.3, add_rate: 0}}]", texts
    )
    assert {one.transform for one in made.steps()} >= {"fing", "spac"}
    assert after.changed_share == pytest.approx(real.changed_share, abs=0.08)
    assert after.cer == pytest.approx(real.cer, rel=0.15)
    assert after.wer == pytest.approx(real.wer, rel=0.15)
    was, now = divergences(real, before), divergences(real, after)
    assert now["kinds"] < 0.25 * was["kinds"]
    assert now["edits_per_row"] < 0.03 < was["edits_per_row"]


def test_the_spread_over_rows_is_found_too(texts):
    """Four rows in five are clean, the fifth is noisy throughout: more than draws alone spread."""
    truth = "steps: [{sequence: [{fing: {rate: 0.08}}, {leet: {rate: 0.05}}], p: 0.2}]"
    made, real, _, after = refitted(truth, texts)
    assert after.changed_share == pytest.approx(real.changed_share, abs=0.06)
    assert divergences(real, after)["edits_per_row"] < 0.03
    assert after.cer == pytest.approx(real.cer, rel=0.2)
    assert len(made.steps()) <= STEPS_MAX


def test_the_same_input_gives_the_same_fit(texts):
    one, other = (refitted("steps: [{spel: {p: 0.5}}]", texts[:150], 1)[0] for _ in range(2))
    assert one.to_yaml() == other.to_yaml()


def test_a_recipe_that_changes_nothing_is_refused(texts):
    real = vector(texts, RULE.noise(Recipe.named("fing"), texts), "en")
    with pytest.raises(UsageError, match="changes nothing"):
        fit(Recipe.named("week"), real, Bench(["no day", "here"], RULE), 1)
