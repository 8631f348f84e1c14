"""`calibrate --real`: a recipe fitted to a file of pairs, judged on those held back."""

import json

import pytest

from noisegen import cli
from noisegen.errors import UsageError
from noisegen.realism.calibration import calibrate
from noisegen.realism.noising import Noising
from noisegen.recipe import Recipe, parse

RULE = Noising(tagger="rule")
TRUTH = "name: truth\nsteps: [{fing: {p: 0.5, rate: 0.04}}, {spel: {p: 0.5}}]"


def written(path, noisy, clean):
    rows = zip(["noisy", *noisy], ["clean", *clean], strict=True)
    path.write_text("".join(f"{a}\t{b}\n" for a, b in rows), "utf-8")
    return path


@pytest.fixture(scope="module")
def sentences(demo):
    return [row["text"] for row in demo if row["lang"] == "en"]


@pytest.fixture(scope="module")
def pairs(sentences, tmp_path_factory):
    """Pairs of the demo's English: slips and misspellings, and every tenth row lost its 'the'."""
    noisy = RULE.noise(parse(TRUTH, "truth"), sentences, seed=3)
    noisy = [text.replace("the ", "") if n % 4 == 0 else text for n, text in enumerate(noisy)]
    return written(tmp_path_factory.mktemp("pairs") / "posts.tsv", noisy, sentences)


@pytest.fixture(scope="module")
def fitted(pairs):
    return calibrate("mix_all", real=pairs, rounds=2, tagger="rule")


def figures(made):
    return {one.name: one for one in made.figures}


def test_what_was_held_back_is_nearer_to_the_fitted_recipe_than_to_the_given_one(fitted):
    found = figures(fitted)
    for name in ("kinds", "edits per row"):
        one = found[f"{name}, divergence"]
        assert one.reached < one.given
    assert found["changed rows"].reached == pytest.approx(found["changed rows"].target, abs=0.12)
    assert found["CER"].reached == pytest.approx(found["CER"].target, rel=0.4)


def test_kinds_that_no_step_makes_are_named_with_examples(fitted):
    (one,) = [missing for missing in fitted.missing if missing.kind == "word dropped"]
    assert one.share > 0.05
    assert one.reached < 0.2 * one.share
    assert ("the", "") in one.examples


def test_the_file_says_what_it_was_fitted_to_and_holds_no_text(fitted, sentences):
    head = [line for line in fitted.to_yaml().splitlines() if line.startswith("#")]
    assert head[0].startswith("# mix_all fitted to posts.tsv (en): ")
    assert any("word dropped" in line for line in head)
    words = {word for text in sentences for word in text.lower().split() if len(word) > 7}
    assert not words & set(fitted.to_yaml().lower().split())
    assert Recipe.of(fitted.recipe.steps()).steps()
    assert parse(fitted.to_yaml(), "again").digest == fitted.recipe.digest


def test_equal_input_gives_equal_bytes(pairs):
    one, other = (calibrate("fing", real=pairs, rounds=1, seed=4).to_yaml() for _ in range(2))
    assert one == other


def test_progress_counts_up_to_the_whole(pairs):
    seen = []
    calibrate(
        "fing", real=pairs, rounds=2, tick=lambda what, done, total: seen.append((done, total))
    )
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert {total for _, total in seen} == {len(seen)}


def test_pairs_without_a_change_are_refused(tmp_path, sentences):
    path = written(tmp_path / "same.tsv", sentences, sentences)
    with pytest.raises(UsageError, match=r"same.tsv: none of the \d+ pairs to fit differs"):
        calibrate("fing", real=path)


def test_a_recipe_without_chances_is_refused(pairs):
    with pytest.raises(UsageError, match="no p or rate above 0 that could be fitted"):
        calibrate(parse("steps: [{fing: {p: 0}}]", "still"), real=pairs)


def test_few_pairs_are_doubted(tmp_path, sentences):
    noisy = [text.replace("e", "3", 1) for text in sentences[:40]]
    made = calibrate("leet", real=written(tmp_path / "few.tsv", noisy, sentences[:40]), rounds=1)
    assert "only 40 pairs" in made.warnings[0]
    assert "95 % interval" in made.warnings[0]


def test_other_columns_and_aligned_files_are_read(tmp_path, sentences):
    noisy = [text.replace("e", "3", 2) for text in sentences]
    table = tmp_path / "named.jsonl"
    rows = [{"wrong": a, "right": b} for a, b in zip(noisy, sentences, strict=True)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (tmp_path / "noisy.txt").write_text("\n".join(noisy) + "\n", "utf-8")
    (tmp_path / "clean.txt").write_text("\n".join(sentences) + "\n", "utf-8")
    asked = {"recipe": "leet", "rounds": 1, "name": "one"}
    one = calibrate(real=table, noisy_column="wrong", clean_column="right", **asked)
    other = calibrate(real=tmp_path / "noisy.txt", clean_file=str(tmp_path / "clean.txt"), **asked)
    assert one.recipe.digest == other.recipe.digest


def test_a_fitted_recipe_holds_only_steps_of_the_language(tmp_path, demo):
    german = [row["text"] for row in demo if row["lang"] == "de"] * 1
    texts = [f"{number} {text}" for number in range(12) for text in german]
    noisy = Noising("de").noise(Recipe.named("fing:rate=0.04"), texts)
    made = calibrate(
        "mix_all", real=written(tmp_path / "de.tsv", noisy, texts), lang="de", rounds=1
    )
    assert {one.transform for one in made.recipe.steps()} <= {"fing", "leet", "spac", "week"}


# The command line.


def test_the_command_fits_prints_and_writes(pairs, tmp_path, capsys):
    out = tmp_path / "posts.yaml"
    arguments = ["--real", str(pairs), "--recipe", "mix_all", "--tagger", "rule", "--rounds", "1"]
    assert cli.run(["calibrate", *arguments, "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "recipe posts" in said.err
    assert "hardly made by this recipe" in said.err
    assert "'the' -> ''" in said.err
    assert Recipe.named(str(out)).name == "posts"


def test_the_fit_as_json(pairs, capsys):
    arguments = ["--real", str(pairs), "--recipe", "fing", "--rounds", "1", "--json", "-q"]
    assert cli.run(["calibrate", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["figures"]["CER"]) == {"target", "given", "reached"}
    assert {one["kind"] for one in found["missing"]} >= {"word dropped"}
    assert found["pairs"]["fitted"] > found["pairs"]["held_back"]


def test_a_source_beside_real_pairs_is_refused(pairs, capsys):
    assert cli.run(["calibrate", "text.txt", "--real", str(pairs)]) == 2
    assert "SOURCE" in capsys.readouterr().err


# The packaged recipes.


@pytest.mark.parametrize(
    ("name", "cer", "changed"),
    [("ugc-light", 0.014, 0.27), ("ugc", 0.05, 0.8), ("ugc-heavy", 0.10, 0.97)],
)
def test_the_packaged_recipes_are_as_strong_as_they_say(name, cer, changed, sentences):
    texts = [text for text in sentences for _ in range(20)]
    noisy = RULE.noise(Recipe.named(name), texts)
    from noisegen.measures import error_counts

    assert error_counts(texts, noisy)[0] / sum(map(len, texts)) == pytest.approx(cer, rel=0.1)
    share = sum(a != b for a, b in zip(texts, noisy, strict=True)) / len(texts)
    assert share == pytest.approx(changed, abs=0.04)


@pytest.mark.parametrize("name", ["ugc-light", "ugc", "ugc-heavy"])
def test_the_packaged_recipes_keep_the_meaning_and_have_the_twelve(name):
    from noisegen import registry

    steps = {one.transform for one in Recipe.named(name).steps()}
    assert all(registry.get(one).keeps_meaning for one in steps)
    assert steps >= {one.transform for one in Recipe.named("mix_all").steps()}


@pytest.mark.parametrize("lang", ["de", "es", "fr", "hi", "id", "ru", "tr", "vi", "zh"])
def test_ugc_makes_noise_in_other_languages(lang, demo):
    texts = [row["text"] for row in demo if row["lang"] == lang] or ["Día claro, señor."]
    noisy = Noising(lang).noise(Recipe.named("ugc-heavy"), texts * 20)
    assert sum(a != b for a, b in zip(texts * 20, noisy, strict=True)) > len(texts) * 4


def test_a_recipe_is_never_written_over_its_pairs(tmp_path, capfd):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("noisy\tclean\nteh cat\tthe cat\n")

    code = cli.run(["calibrate", "--recipe", "fing", "--real", str(pairs), "-o", str(pairs)])

    assert (code, pairs.read_text()) == (2, "noisy\tclean\nteh cat\tthe cat\n")
    assert "is one of the sources" in capfd.readouterr().err
