"""A recipe fitted to posts alone finds how often they have each habit, and is a recipe like any."""

import json
import math
import re
from functools import cache

import pytest

import noisegen
from noisegen.augmentation.catalog import demo_texts
from noisegen.augmentation.on_the_fly import Noising
from noisegen.cli import run
from noisegen.errors import OutputError, RecipeError
from noisegen.noising.recipe import Recipe, parse
from noisegen.realism.fit import Fitted, fit_texts
from noisegen.realism.forms import edited, forms_of, without_addresses, words_of

UGC = Recipe.named("ugc")
TRUE = {"clip": 2.0, "phon": 2.5, "apos": 0.3}


def posts_of(factors: dict[str, float], copies: int, lang: str = "en", first: int = 0) -> list[str]:
    """Return noise on the demo text by `ugc` with factors for some steps.

    Each post answers another reader, since of equal posts only one is read.
    """
    recipe, texts = UGC.with_factors(factors), demo_texts()[lang]
    return [
        f"@reader{copy}_{row} {post}"
        for copy in range(first, first + copies)
        for row, post in enumerate(Noising(lang).noise(recipe, texts, 11, copy))
    ]


@cache
def fitted() -> Fitted:
    return fit_texts(posts_of(TRUE, 6))


def factors_of(found: Fitted) -> dict[str, float]:
    return {habit.step: habit.factor for habit in found.habits}


def distance(factors: dict[str, float], true: dict[str, float]) -> float:
    """Return the mean distance of the logarithms of factors of some steps."""
    gaps = [math.log(factors.get(step, 1.0) / factor) for step, factor in true.items()]
    return sum(map(abs, gaps)) / len(gaps)


def test_altered_strengths_are_found_again():
    found = fitted()
    assert distance(factors_of(found), TRUE) < 0.6 * distance({}, TRUE)
    inside = [habit.low <= TRUE.get(habit.step, 1.0) <= habit.high for habit in found.habits]
    assert sum(inside) >= len(inside) - 2  # seven samples have 77 % of the factors inside
    assert found.aucs["after"].value <= found.aucs["before"].value


@pytest.mark.nightly
def test_altered_strengths_are_found_in_most_samples():
    better = [
        distance(factors_of(fit_texts(posts_of(TRUE, 4, first=10 * n))), TRUE) < distance({}, TRUE)
        for n in range(1, 8)
    ]
    assert sum(better) >= 6  # held-out posts speak against a right change now and then


def test_marks_of_the_fitted_noise_are_nearer_to_the_posts():
    for habit in fitted().habits:
        if habit.step in ("clip", "phon"):
            assert abs(habit.after - habit.posts) < abs(habit.before - habit.posts), habit


@pytest.mark.nightly
def test_capitals_and_punctuation_are_fitted_to_clean_text():
    clean = demo_texts()["en"]
    true = {"start": 3.0, "punc": 2.0}
    posts = Noising("en").noise(UGC.with_factors(true), [*clean[::2] * 2], 5)
    found = fit_texts(posts, clean[1::2])
    assert distance(factors_of(found), true) < distance({}, true)
    assert found.warnings == ()


def test_without_clean_text_capitals_and_last_stops_are_those_of_edited_text():
    true = {"start": 3.0, "i": 2.0}
    posts = Noising("en").noise(UGC.with_factors(true), [*demo_texts()["en"] * 2], 5)
    found = fit_texts(posts)
    assert distance(factors_of(found), true) < 0.7 * distance({}, true)
    assert not {"drop", "mark"} & {*factors_of(found)}
    assert "no --clean" in found.warnings[0]


def test_edited_text_has_capitals_and_a_last_stop():
    assert edited("hi tom. so i came", "en") == "Hi tom. So I came."
    assert edited("WHAT IS THIS THING?", "en") == "What is this thing?"
    assert edited("NATO", "en") == "NATO."
    assert edited("你好", "zh") == "你好"
    assert edited("mi i vi", "hr") == "Mi i vi."


def test_addresses_and_marks_of_reposts_are_no_part_of_a_post():
    assert without_addresses("RT @ann: see you  http://x.yz/1 #bye") == "see you"
    assert without_addresses("hi @bob, RT this. mail a@b.cd") == "hi, RT this. mail"
    assert without_addresses("two  blanks ") == "two  blanks"


def test_another_language():
    true = {"clip": 0.3, "phon": 0.3}
    found = fit_texts(posts_of(true, 40, "de"), lang="de")
    assert distance(factors_of(found), true) < distance({}, true)


def test_the_file_is_small_and_makes_the_noise_of_the_fitted_recipe(tmp_path):
    posts, out = tmp_path / "posts.txt", tmp_path / "mine.yaml"
    posts.write_text("\n".join(posts_of(TRUE, 2)), "utf-8")
    found = noisegen.fit(posts, out)
    assert len(out.read_text("utf-8")) < 1_500
    texts = demo_texts()["en"][:100]
    made = noisegen.noise(texts, str(out), seed=3)
    assert made == noisegen.noise(texts, found.recipe, seed=3)
    assert made != noisegen.noise(texts, "ugc", seed=3)
    noisegen.augment(posts, tmp_path / "out", recipe=str(out), limit=20)
    with pytest.raises(OutputError, match="exists; add --force"):
        noisegen.fit(posts, out)


@pytest.mark.nightly
def test_order_of_the_posts_does_not_matter():
    posts = posts_of({}, 1)
    assert fit_texts(posts).content == fit_texts(posts[::-1]).content


def test_few_posts_stay_near_the_recipe_they_start_from():
    found = fit_texts(posts_of(TRUE, 1)[:150])
    assert distance(factors_of(found), {"clip": 1.0, "phon": 1.0, "apos": 1.0}) < 0.4


def test_too_few_posts_are_fitted_but_not_judged(tmp_path, capfd):
    posts, page = tmp_path / "posts.txt", tmp_path / "fit.html"
    posts.write_text("\n".join(posts_of(TRUE, 2)[:55]), "utf-8")
    assert run(["fit", str(posts), "--report", str(page)]) == 0
    assert "ugc fitted, but not judged" in capfd.readouterr().err
    assert "<h1>ugc fitted, but not judged</h1>" in page.read_text("utf-8")


def test_a_shown_post_is_not_beside_noise_on_itself():
    rows = fit_texts(posts_of({}, 1)[:55]).rows
    assert rows
    for post, noise in rows:
        words = set(noise.split())
        assert len(words & set(post.split())) < len(words) / 2


@pytest.mark.nightly
def test_posts_of_an_author_are_read_together(tmp_path):
    rows = posts_of(TRUE, 4)
    lines = [json.dumps({"text": text, "author": n // 4}) for n, text in enumerate(rows)]
    path = tmp_path / "posts.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    found = noisegen.fit(path, group_by="author")
    assert found.posts == len(rows) // 4
    assert distance(factors_of(found), TRUE) < distance({}, TRUE)


def test_forms_are_those_of_the_lists_and_no_words():
    mix, _ = UGC.for_language("en")
    texts = posts_of({}, 3)
    forms = forms_of(
        mix, "en", texts, {word for text in demo_texts()["en"] for word in words_of(text)}
    )
    assert forms.of["ppl"].clean == "people"
    assert forms.of["ppl"].step == "clip"
    assert not {"the", "no", "its"} & forms.of.keys()
    assert forms.restored("PPL, see https://u.co/ppl @ppl") == "PEOPLE, see https://u.co/ppl @ppl"


def test_factors_of_steps_in_a_file():
    half = parse("name: half\nextends: ugc\nscale: {clip: 0.5, start: 2}\n", "half.yaml")
    assert half.with_factors({}) == half
    assert replace_name(half) == UGC.with_factors({"clip": 0.5, "start": 2}).to_dict()
    with pytest.raises(RecipeError, match="no such step"):
        parse("extends: ugc\nscale: {clop: 0.5}\n", "wrong.yaml")
    with pytest.raises(RecipeError, match="scale of 'clip'"):
        parse("extends: ugc\nscale: {clip: much}\n", "wrong.yaml")


def replace_name(recipe: Recipe) -> dict[str, object]:
    return {**recipe.to_dict(), "name": "ugc"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["few.txt", "-o", "OUT.yaml"], "3 different posts: give at least 50"),
        (["posts.txt", "-o", "OUT.md"], "ends in .yaml"),
        (["posts.txt", "--extends", "ugg"], "ugc"),
        (["posts.txt", "--lang", "de", "--extends", "fing"], "no noisy form"),
        (["posts.txt", "--clean", "MISSING"], "MISSING"),
        (["posts.txt", "--group-by", "author"], "author"),
    ],
)
def test_errors_are_one_line(options, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.txt").write_text("a\nb\nc\n")
    (tmp_path / "posts.txt").write_text("\n".join(posts_of({}, 1)), "utf-8")
    assert run(["fit", *options]) in (1, 2)
    error = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error")]
    assert len(error) == 1
    assert message in error[0]


def test_the_command_prints_and_writes_a_page(tmp_path, capfd):
    posts, page = tmp_path / "posts.txt", tmp_path / "fit.html"
    posts.write_text("\n".join(posts_of(TRUE, 2)), "utf-8")
    assert run(["fit", str(posts), "--report", str(page)]) == 0
    shown = capfd.readouterr()
    assert "extends: ugc" in shown.out
    assert "95% interval" in shown.err
    assert "almost clean" in shown.err
    text = page.read_text("utf-8")
    (result,) = re.findall("<h1>(.*)</h1>", text)
    assert result in shown.err.replace("\n", " ")
    judged = (
        r"([\w ]+): a classifier picks the synthetic text in (\d+)% of pairs, with ugc in (\d+)% "
    )
    word, after, before = re.match(judged, result).groups()
    assert int(after) < int(before)
    assert re.search(rf"^fitted +{word.lower()} +{after}% ", shown.err, re.M)
    assert "Letters that give the noise away" in text
    assert "It cannot see" in text
    assert "none without --clean. They are init, join, drop" in text
