"""A recipe scaled to an expected error rate."""

import json
from dataclasses import replace

import pytest
from rapidfuzz.distance import Levenshtein

import noisegen
from noisegen import cli
from noisegen.augmentation.on_the_fly import Noising
from noisegen.errors import UsageError
from noisegen.noising import registry
from noisegen.noising.mix import parse_step
from noisegen.noising.recipe import Recipe, parse
from noisegen.realism import calibrate as calibrate_module
from noisegen.realism.calibrate import (
    HELD_BACK,
    RateEstimator,
    calibrate,
    calibrate_rate,
    demo_texts,
)
from noisegen.runs import executors
from noisegen.runs.options import WorkerOptions
from noisegen.text.alignment import error_counts

RULE = Noising(tagger="rule")


def expected(recipe, texts, figure="cer", lang="en", rows=12_000):
    """Return the rate by the book: other draws, every row counted, one division at the end."""
    many = [texts[number % len(texts)] for number in range(rows)]
    noisy = Noising(lang, tagger="rule").noise(recipe, many, seed=99)
    split = str.split if figure == "wer" else list
    pairs = [(split(clean), split(other)) for clean, other in zip(many, noisy, strict=True)]
    return sum(Levenshtein.distance(*pair) for pair in pairs) / sum(len(one) for one, _ in pairs)


def calibrated(recipe, texts, target, figure="cer", noising=RULE, seed=0):
    recipe = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    return calibrate_rate(recipe, RateEstimator(texts, figure, noising, seed), target)


def used(texts):
    return [text for number, text in enumerate(texts) if number % HELD_BACK]


@pytest.mark.parametrize(
    ("name", "figure", "target"),
    [
        ("fing", "wer", 0.2),
        ("spac", "cer", 0.15),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                ("fing", "cer", 0.01),
                ("fing", "cer", 0.15),
                ("spel", "cer", 0.03),
                ("mix_all", "cer", 0.15),
            )
        ),
    ],
)
def test_the_expected_rate_is_met_within_two_per_cent(name, figure, target):
    texts = demo_texts()["en"]
    made = calibrated(name, texts, target, figure)
    assert expected(made.recipe, used(texts), figure) == pytest.approx(target, rel=0.02)


@pytest.mark.parametrize("lang", ["de", pytest.param("hi", marks=pytest.mark.nightly)])
def test_the_expected_rate_is_met_in_other_languages(lang):
    texts = demo_texts()[lang]
    made = calibrated("mix_all", texts, 0.05, noising=Noising(lang, tagger="rule"))
    assert expected(made.recipe, used(texts), lang=lang) == pytest.approx(0.05, rel=0.02)


def test_the_rate_rises_with_the_factor_for_the_same_draws():
    measure = RateEstimator(demo_texts()["en"], "cer", RULE, 0)
    recipe = Recipe.named("mix_all")
    rates = [measure.rate(recipe.scaled(2 ** (n / 2)), 1_000).value for n in range(-6, 7)]
    assert rates == sorted(rates)


def test_the_standard_error_is_what_repeats_show():
    recipe, texts = Recipe.named("fing:rate=0.05"), demo_texts()["en"]
    found = [RateEstimator(texts, "cer", RULE, seed).rate(recipe, 600) for seed in range(40)]
    mean = sum(one.value for one in found) / 40
    spread = (sum((one.value - mean) ** 2 for one in found) / 39) ** 0.5
    assert found[0].error == pytest.approx(spread, rel=0.35)


def test_equal_input_gives_equal_bytes_and_another_seed_nearly_the_same_factor():
    one, again, other = (
        calibrated("fing", demo_texts()["en"], 0.05, seed=seed) for seed in (0, 0, 5)
    )
    assert one.to_yaml() == again.to_yaml()
    assert other.factor == pytest.approx(one.factor, rel=0.02)


SHOUT = """
import noisegen

@noisegen.transform("bellow")
def shout(text, draws, *, rate: float = 0.5):
    return text.upper() if draws.hit(rate) else text
"""


def test_workers_measure_the_same_rate_with_code_of_the_user(tmp_path):
    code = tmp_path / "shout.py"
    code.write_text(SHOUT)
    registry.load_code(code)
    recipe = Recipe.of([parse_step("bellow")], "bellow")
    spread = (WorkerOptions(workers=workers) for workers in (1, 2))
    one, two = (
        RateEstimator(demo_texts()["en"], "cer", RULE, 0, workers, (code,), 500).rate(recipe, 2_200)
        for workers in spread
    )
    assert one == two
    assert one.value > 0.2


def test_all_measurements_have_the_same_workers(monkeypatch):
    started, start = [], executors.Pool
    monkeypatch.setattr(executors, "Pool", lambda n: started.append(n) or start(n))
    for name, value in {"BLOCK_ROWS": 100, "ROUGH_ROWS": 400, "ROWS_MAX": 400}.items():
        monkeypatch.setattr(calibrate_module, name, value)
    one, two = (calibrate("fing", target_cer=0.02, workers=workers) for workers in (1, 2))
    assert (started, one.factor) == ([2], two.factor)


def test_the_check_uses_other_rows():
    noise = dict.fromkeys("ab", 0)
    texts = ["a" * 30, "b" * 30, "b" * 30] * 30

    class Watched(Noising):
        def noise(self, recipe, texts, seed=0, copy=0):
            noise["a"] += seed == 1 and any("b" in text for text in texts)
            noise["b"] += seed == 0 and any("a" in text for text in texts)
            return super().noise(recipe, texts, seed, copy)

    calibrated("spac", texts, 0.05, noising=Watched())
    assert noise == {"a": 0, "b": 0}


def test_a_rate_out_of_reach_says_what_is_in_reach():
    with pytest.raises(UsageError, match=r"week cannot reach CER 0.15 .* within reach is 0.01\d*$"):
        calibrated("week", demo_texts()["en"], 0.15)


def test_text_without_anything_to_change_says_so():
    with pytest.raises(UsageError, match=r"cannot reach CER 0\.05"):
        calibrated("week", ["no day here", "nor here", "never"], 0.05)


@pytest.mark.parametrize("target", [0, -0.1, float("nan"), float("inf")])
def test_a_target_that_is_no_rate_is_refused(target):
    with pytest.raises(UsageError, match="target CER must be above 0"):
        calibrated("fing", ["some text"] * 9, target)


def test_a_recipe_without_chances_is_refused():
    with pytest.raises(UsageError, match="no p or rate above 0"):
        calibrated(parse("steps: [{fing: {p: 0}}]", "still"), ["text"] * 9, 0.1)


def test_empty_texts_count_for_nothing():
    with pytest.raises(UsageError, match="no text to noise"):
        calibrated("fing", ["", ""], 0.1)


def test_one_text_is_enough():
    made = calibrated("fing", ["one text that is all there is"], 0.1)
    assert made.reached.value == pytest.approx(0.1, rel=0.02)
    assert "1 text may not stand for others" in made.warnings[0]


def test_one_thing_must_be_asked():
    for asked in ({}, {"target_cer": 0.1, "target_wer": 0.1}):
        with pytest.raises(UsageError, match="give one of --target-cer and --target-wer"):
            calibrate("fing", **asked)


def test_there_is_no_demo_text_in_every_language():
    with pytest.raises(UsageError, match="no demo text in 'af'"):
        calibrate("fing", target_cer=0.1, lang="af")


# The command line.


def run(*arguments):
    return cli.run(["calibrate", *arguments])


def test_the_command_writes_a_recipe_that_augment_takes(tmp_path, capsys):
    out = tmp_path / "five.yaml"
    assert run("--recipe", "fing", "--target-cer", "0.05", "-o", str(out)) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "the 300 'en' rows of the bundled demo text" in said.err
    assert "recipe five  reached on 200 texts, checked on 100 others\n" in said.err
    recipe = Recipe.named(str(out))
    assert recipe.name == "five"
    assert expected(recipe, used(demo_texts()["en"])) == pytest.approx(0.05, rel=0.02)
    assert [path.name for path in tmp_path.iterdir()] == ["five.yaml"]


def test_the_file_has_the_difference_from_its_recipe(tmp_path):
    made = noisegen.calibrate("learner", target_cer=0.02, name="half")
    made.save(tmp_path / "half.yaml")
    *about, name, extends, scale = (tmp_path / "half.yaml").read_text("utf-8").splitlines()
    assert (len(about), name, extends) == (3, "name: half", "extends: learner")
    assert scale == f"scale: {made.factor}"
    assert Recipe.named(tmp_path / "half.yaml") == made.recipe.each_mix(
        lambda mix: replace(mix, name="half")
    )


@pytest.mark.nightly
def test_changed_values_and_recipes_of_python_are_written_whole():
    changed = noisegen.calibrate("ugc", target_cer=0.02, values={"clip.p": 0.5}).to_yaml()
    assert parse(changed, "whole").steps()[4].p < 0.5
    assert noisegen.calibrate(Recipe.named("ugc"), target_cer=0.02).content["steps"]


def test_without_a_file_the_recipe_goes_to_stdout(tmp_path, capsys):
    source = tmp_path / "clean.txt"
    source.write_text("A row of text.\nAnother one of the kind.\nAnd a third.\n", "utf-8")
    assert run(str(source), "--recipe", "fing", "--target-wer", "0.3", "-q") == 0
    said = capsys.readouterr()
    assert parse(said.out, "stdout").name == "fing-calibrated"
    assert "demo" not in said.err


def test_json_has_recipe_figures_and_rows(capsys):
    assert run("--recipe", "fing", "--target-cer", "0.05", "--json", "-q") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["figures"]["CER"]["target"] == 0.05
    assert found["reached"]["rows"] >= 4_000
    assert Recipe.from_dict(found["recipe"]).steps()[0].values == {
        "rate": pytest.approx(0.065, rel=0.1)
    }


def test_transforms_are_a_recipe_too(capsys):
    steps = ["-t", "fing:rate=0.1", "-t", "spac", "--target-wer", "0.1", "-q"]
    assert run(*steps, "--set", "spac.add_rate=0.2") == 0
    made = parse(capsys.readouterr().out, "stdout")
    assert [step.transform for step in made.steps()] == ["fing", "spac"]
    fing, spac = (step.values for step in made.steps())
    assert spac["add_rate"] == pytest.approx(2 * fing["rate"], rel=1e-4)
    assert run(*steps, "--recipe", "ugc") == 2
    assert "--recipe and -t exclude each other" in capsys.readouterr().err


def test_wrong_use_exits_with_2(capsys):
    assert run("--recipe", "fing") == 2
    assert "give one of --target-cer and --target-wer" in capsys.readouterr().err
    assert run("--recipe", "week", "--target-cer", "0.3") == 2
    assert "cannot reach CER 0.3" in capsys.readouterr().err


def test_steps_without_data_for_the_language_are_named(capsys):
    assert run("--recipe", "mix_all", "--lang", "de", "--target-cer", "0.15") == 0
    said = capsys.readouterr()
    assert "mix_all leaves out 8 of its 12 transforms in 'de' (no data): abr1, abr2" in said.err
    assert len(parse(said.out, "stdout").steps()) == 12  # the recipe is for all languages still


def test_a_recipe_is_never_written_over_its_source(tmp_path, capfd):
    source = tmp_path / "clean.txt"
    source.write_text("the cat\n")
    words = ["calibrate", str(source), "--recipe", "fing", "--target-cer", "0.1", "-o", str(source)]

    assert (cli.run(words), source.read_text()) == (2, "the cat\n")
    assert "is one of the sources" in capfd.readouterr().err


def test_a_rate_far_out_of_reach_names_the_highest_within_reach(tmp_path, capsys):
    """The search then ends at the greatest factor, where a rounded logarithm must not matter."""
    source = tmp_path / "clean.txt"
    source.write_text("See you at the market tomorrow.\nShe has been there before.\n" * 9)
    assert run(str(source), "--recipe", "ugc", "--target-cer", "0.9", "--tagger", "rule") == 2
    head, _, most = capsys.readouterr().err.splitlines()[-1].rpartition(" ")
    assert head.startswith("error: recipe ugc cannot reach CER 0.9 on this text; the highest")
    assert 0.1 < float(most) < 0.9


# The packaged recipes.


@pytest.mark.parametrize(
    ("name", "cer", "changed"),
    [
        ("ugc-light", 0.0117, 0.33),
        ("ugc", 0.0382, 0.70),
        ("ugc-heavy", 0.0641, 0.90),
        ("tweets", 0.0300, 0.64),
    ],
)
def test_the_packaged_recipes_are_as_strong_as_they_say(name, cer, changed):
    texts = [text for text in demo_texts()["en"] for _ in range(8)]
    noisy = RULE.noise(Recipe.named(name), texts)
    assert error_counts(texts, noisy)[0] / sum(map(len, texts)) == pytest.approx(cer, rel=0.1)
    share = sum(a != b for a, b in zip(texts, noisy, strict=True)) / len(texts)
    assert share == pytest.approx(changed, abs=0.04)


@pytest.mark.parametrize("name", ["ugc-light", "ugc", "ugc-heavy", "tweets"])
def test_the_packaged_recipes_keep_the_meaning_in_every_language(name):
    mixes = Recipe.named(name).mixes
    assert len(mixes) == 31
    assert all(registry.get(one.transform).keeps_meaning for mix in mixes for one in mix.steps())


WITHOUT_DEMO = {
    "id": "Aku tidak tahu kamu sedang bicara apa, sampai besok ya!",
    "vi": "Tôi không biết bạn đang nói gì, hẹn gặp lại ngày mai!",
}


@pytest.mark.parametrize("lang", ["de", "es", "fr", "hi", "id", "ru", "tr", "vi", "zh"])
def test_ugc_makes_noise_in_other_languages(lang, demo):
    texts = [row["text"] for row in demo if row["lang"] == lang] or [WITHOUT_DEMO[lang]]
    noisy = Noising(lang).noise(Recipe.named("ugc-heavy"), texts * 20)
    assert sum(a != b for a, b in zip(texts * 20, noisy, strict=True)) > len(texts) * 4


def test_what_could_not_be_read_is_counted(tmp_path, capsys):
    lines = [b"a good line of text to noise", b"a bad \xff line", b"and one more good line"]
    (tmp_path / "text.txt").write_bytes(b"\n".join(lines * 12))
    words = ["calibrate", str(tmp_path), "--recipe", "fing", "--target-cer", "0.05", "--json"]
    assert cli.run(words) == 3
    printed = capsys.readouterr()
    assert "warning: dropped or damaged: 12 not_utf8\n" in printed.err
    found = json.loads(printed.out)
    assert (found["dropped"], found["texts"] + found["texts_checked"]) == ({"not_utf8": 12}, 24)


def test_a_recipe_may_be_a_path_and_nothing_else_that_is_none(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(Recipe.of(["fing:rate=0.1"]).to_yaml(), "utf-8")

    assert noisegen.calibrate(path, target_cer=0.02).recipe.name
    with pytest.raises(UsageError, match="3 is not a recipe: give a name"):
        noisegen.calibrate(3, target_cer=0.02)
    with pytest.raises(UsageError, match="values 3 is not a dict"):
        noisegen.calibrate("ugc", target_cer=0.02, values=3)
