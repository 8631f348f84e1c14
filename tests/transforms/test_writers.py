"""Writers: each row draws one, whose habits hold; a word changes once."""

import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, LIVELY_TEXT, both
from test_engine import compare as compare_with_oracle
from test_rows import compare

from noisegen.augmentation.catalog import recipe_info
from noisegen.cli import noisegen
from noisegen.errors import RecipeError
from noisegen.noising.engine import Engine
from noisegen.noising.noise import engine_for, noise
from noisegen.noising.plan import Schedule, Streams
from noisegen.noising.recipe import Recipe, parse
from noisegen.noising.registry import Settings

ROWS = 40_000
WRITERS = """
strength: {0.5: 1, 1.5: 1}
steps:
- init: {p: 0.5, rate: 0.6}
- rebus: {p: 0}
- abr1: {p: 0, rate: 0.8}
- phon: {p: 0, rate: 0.5}
- apos: {p: 0.3}
- one_of: [spel, {fing: {weight: 2, rate: 0.1}}]
  p: 0.6
- spac: {as: blanks, drop_rate: 0.3}
- caps: {as: lower, p: 0, case: lower}
- punc: {p: 0.5}
writers:
  texter: {weight: 3, habits: {rebus: 0.9, abr1: {p: 1, strength: 2}, apos: 1, lower: 0.8}}
  typist: {habits: {fing: {p: 0.9, strength: 3}, blanks: 1, phon: 0.5}}
  plain: {weight: 2, habits: {init: 0, apos: 0, blanks: 0.1}}
"""


def recipe() -> Recipe:
    return parse(WRITERS, "writers")


def test_the_engine_agrees_with_the_oracle(demo_texts, odd_texts):
    assert compare_with_oracle(recipe(), demo_texts + odd_texts[:-1]) > 100


@pytest.mark.parametrize(("lang", "least"), [("zh", 12), ("ja", 6), ("de", 12)])
def test_other_languages_agree_with_the_oracle(lang, least, demo):
    rows = [row["text"] for row in demo if row["lang"] == lang]
    steps = (
        "{homo: {p: 0, rate: 0.3}}, {phon: {p: 0.5, rate: 0.6}}, {clip: {p: 0.5}}, {spac: {p: 0.5}}"
    )
    writers = "{a: {habits: {phon: 1, homo: 1}}, b: {habits: {homo: {p: 0.9, strength: 2}}}}"
    mixed = parse(f"steps: [{steps}]\nwriters: {writers}", "mixed").for_language(lang)[0]
    assert compare_with_oracle(mixed, rows * 4, lang=lang) > least
    assert compare(Engine(mixed, Settings(lang)), rows * 4) > least


@pytest.mark.nightly
def test_real_sentences_agree_with_the_oracle(real_sentences):
    assert compare_with_oracle(recipe(), real_sentences[:2_000]) > 1_000


@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=settings().max_examples // 4)
def test_any_text_agrees_with_the_oracle(rows, seed):
    ours, expected = both(recipe(), rows, seed)
    assert ours == expected


def test_rows_alone_get_the_same_noise(demo_texts, odd_texts):
    assert compare(Engine(recipe()), demo_texts + odd_texts) > 100


def test_writers_have_their_weights_and_their_habits():
    schedule, labels = Schedule.of(recipe()), [step.label for step in recipe().steps()]
    plan = schedule.draw(Streams(np.arange(ROWS, dtype=np.uint64), 1))
    shares = np.bincount(plan.writers) / ROWS
    assert shares == pytest.approx([3 / 6, 1 / 6, 2 / 6], abs=0.01)
    has = np.zeros((ROWS, len(labels)), np.bool_)
    has[plan.rows, plan.steps] = True
    chances = {
        "rebus": (0.9, 0, 0),
        "init": (0.5, 0.5, 0),
        "apos": (1, 0.3, 0),
        "lower": (0.8, 0, 0),
        "blanks": (1, 1, 0.1),
        "spel": (0.2, 0.2, 0.2),
        "fing": (0.4, 0.36, 0.4),
    }
    for label, of_writers in chances.items():
        found = [has[plan.writers == writer, labels.index(label)].mean() for writer in range(3)]
        assert found == pytest.approx(of_writers, abs=0.02), label


def test_a_writer_writes_a_word_the_same_way_each_time():
    habit = parse("steps: [{phon: {rate: 0.5}}]\nwriters: {one: {weight: 1}}", "habit")
    place = parse("steps: [{phon: {rate: 0.5}}]", "place")
    texts = ["because because because because"] * 400
    forms = [Counter(text.split()) for text in _noised(habit, texts)]
    assert {len(of_row) for of_row in forms} == {1}
    assert 0.3 < sum("because" in of_row for of_row in forms) / 400 < 0.7
    assert max(len(set(text.split())) for text in _noised(place, texts)) > 2


def test_rows_of_a_group_have_one_writer_and_slips_of_their_own():
    texts = ["because you are going to the party tonight, people"] * 600
    groups = np.repeat(np.arange(100, dtype=np.uint64), 6)
    streams = Streams(np.arange(600, dtype=np.uint64), 3, writer_ids=groups)
    habits = parse(
        "steps: [{rebus: {p: .5, rate: 1}}, {phon: {p: .5, rate: 1}}]\nwriters: {one: {}}", "habits"
    )
    noisy = Engine(habits).noise_few(texts, streams)
    assert all(len(set(noisy[at : at + 6])) == 1 for at in range(0, 600, 6))
    assert len(set(noisy)) > 20
    slips = parse("steps: [{fing: {rate: 0.1}}]\nwriters: {one: {}}", "slips")
    noisy = Engine(slips).noise_few(texts, streams)
    assert all(len(set(noisy[at : at + 6])) > 2 for at in range(0, 600, 6))


def test_a_word_changes_once():
    names = "abr1: {rate: 1}", "phon: {rate: 1}", "spel: {rate: 1}", "fing: {rate: 1}"
    steps = ", ".join(f"{{{name}}}" for name in names)
    engine = Engine(parse(f"steps: [{steps}]\nwriters: {{one: {{}}}}", "once"))
    texts = ["because definitely tomorrow people separate extraordinary zebra"] * 200
    for row in _edits(engine, texts):
        assert row
        assert all("+" not in edit["transform"] for edit in row)
        words = [
            text[: edit["clean_start"]].count(" ") for text, edit in zip(texts, row, strict=False)
        ]
        assert len(words) == len(set(words))


def test_words_that_changed_lose_their_marks_too():
    steps = "steps: [{clip: {rate: 1}}, {diac: {rate: 1}}]"
    engine = Engine(parse(f"{steps}\nwriters: {{one: {{}}}}", "plain"), Settings("hr"))
    streams = Streams(np.arange(200, dtype=np.uint64), 5)
    noisy = engine.noise_few(["hoću reći nešto o ništa"] * 200, streams)
    assert all(text.isascii() for text in noisy)
    assert any(text.startswith("ocu") for text in noisy)


def test_yaml_keeps_the_writers():
    again = parse(recipe().to_yaml(), "again")
    assert again == recipe()
    assert again.digest == recipe().digest
    heavier = WRITERS.replace("weight: 3", "weight: 4")
    assert parse(heavier, "heavier").digest != recipe().digest


def test_a_language_without_a_step_drops_it_from_the_writers():
    german, left_out = recipe().for_language("de")
    assert "spel" in left_out
    assert "abr1" not in german.writers[0].habits
    assert engine_for(german, "de").noise_texts(
        ["Das ist gut."] * 9, Streams(np.arange(9, dtype=np.uint64), 0)
    )


LANGUAGES = """
name: posts
strength: {0.5: 1, 1.5: 1}
steps: [{fing: {p: 0.5, rate: 0.1}}, {caps: {p: 0.3, case: lower}}]
writers: {careless: {habits: {fing: 1}}, other: {}}
languages:
  deu:
    steps: [{clip: {p: 0.5, rate: 0.6}}, {caps: {as: lower, p: 0.2, case: lower}}]
    writers: {texter: {habits: {clip: {p: 0.9, strength: 2}}}, plain: {habits: {lower: 0}}}
  ja:
    strength: {1: 1}
    steps: [phon, {homo: {rate: 0.8}}]
"""


@pytest.mark.parametrize("lang", ["en", "de", "ja", "fr"])
def test_languages_with_a_mix_of_their_own_agree_with_the_oracle(lang, demo):
    rows = [row["text"] for row in demo if row["lang"] == lang] * 3
    posts = parse(LANGUAGES, "posts")
    assert compare_with_oracle(posts, rows, lang=lang)
    made = {step for _, steps, _ in both(posts, rows, lang=lang)[0] for step in steps}
    own = {"de": {"clip", "caps"}, "ja": {"phon", "homo"}}
    assert made == own.get(lang, {"fing", "caps"})


def test_one_recipe_noises_rows_of_several_languages(tmp_path):
    recipe = tmp_path / "posts.yaml"
    recipe.write_text(LANGUAGES)
    german, english = "Ich habe eigentlich keine Zeit", "I do not have time"
    for row in range(40):
        alone = parse(LANGUAGES, "posts").languages["de"]
        noisy = noise(german, str(recipe), id=row, lang="German")
        assert noisy == noise(german, alone, id=row, lang="de")
        assert noise(english, str(recipe), id=row) == noise(
            english, parse(LANGUAGES.partition("languages:")[0], "posts"), id=row
        )


def test_a_recipe_keeps_and_changes_the_mixes_of_its_languages():
    posts = parse(LANGUAGES, "posts")
    assert parse(posts.to_yaml(), "posts") == posts
    assert posts.to_dict()["languages"].keys() == {"de", "ja"}
    assert posts.note_on("ja") == ""
    again = parse(LANGUAGES.replace("rate: 0.8", "rate: 0.7"), "posts")
    assert again.digest != posts.digest
    lower = posts.with_values({"caps.p": 1, "homo.rate": 0.7})
    assert [step.p for mix in lower.mixes for step in mix.steps()] == [0.5, 1, 0.5, 1, 1, 1]
    assert lower.languages["ja"].steps()[1].values == {"rate": 0.7}
    twice = posts.scaled(2)
    assert float(twice.languages["de"].writers[0].habits["clip"].strength) == 3.6
    assert twice.languages["ja"].steps()[1].values == {"rate": 0.9999}


def test_a_chance_that_is_set_holds_for_all_writers():
    changed = recipe().with_values({"apos.p": 0, "rebus.rate": 0.5})
    before, after = (
        [one.habits["apos"] for one in these.writers if "apos" in one.habits]
        for these in (recipe(), changed)
    )
    assert after == [replace(habit, p=Fraction(0)) for habit in before] != []
    assert changed.writers[0].habits["rebus"] == recipe().writers[0].habits["rebus"]
    texts = ["don't"] * 500
    alone = parse("steps: [{apos: {p: 0}}]\nwriters: {one: {habits: {apos: 1}}}", "alone")
    assert _noised(alone, texts) != texts
    assert _noised(alone.with_values({"apos.p": 0}), texts) == texts


def test_recipes_lists_the_mixes_of_languages(tmp_path):
    path = tmp_path / "posts.yaml"
    path.write_text(LANGUAGES)
    known = recipe_info(str(path), ["de"])
    assert known.mixes.keys() == {"de", "ja"}
    assert "de" not in known.languages
    printed = CliRunner().invoke(noisegen, ["recipes", str(path)])
    assert "clip, caps   texter 50%, plain 50%" in printed.output
    assert "its own mix" in printed.output


def test_a_recipe_scales_what_it_extends():
    half = parse("extends: mix_all\nscale: 0.5\nset: {leet.p: 0.3}", "half")
    chances = {step.transform: float(step.p) for step in half.steps()}
    assert (chances["abr1"], chances["leet"]) == (0.05, 0.3)


def test_a_recipe_gives_the_writers_it_extends_other_weights(tmp_path):
    base = tmp_path / "posts.yaml"
    base.write_text(LANGUAGES)
    more = parse(f"extends: {base}\nwriters: {{texter: 7, careless: 2}}", "more")
    weights = [[writer.weight for writer in mix.writers] for mix in more.mixes]
    assert weights == [[2, 1], [7, 1], []]
    with pytest.raises(RecipeError, match="no writer 'texte'; did you mean 'texter'"):
        parse(f"extends: {base}\nwriters: {{texte: 7}}", "more")


def test_the_chance_of_a_group_scales_before_the_habits_in_it():
    group = "{sequence: [{apos: {p: 0.2}}, {spel: {rate: 0.1}}], p: 0.5}"
    recipe = parse(f"steps: [{group}]\nwriters: {{one: {{habits: {{apos: 0.3}}}}}}", "group")
    grown = recipe.scaled(3)
    assert grown.root.members[0].p == 1
    assert float(grown.writers[0].habits["apos"].p) == 0.45
    assert grown.steps()[1].values == {"rate": 0.15}


def test_a_recipe_with_writers_is_scaled_for_each_of_them():
    twice = recipe().scaled(2)
    texter = twice.writers[0].habits
    assert (float(texter["rebus"].p), float(texter["rebus"].strength)) == (1, 1.8)
    assert (float(texter["abr1"].p), float(texter["abr1"].strength)) == (1, 4)
    assert float(twice.writers[2].habits["blanks"].p) == 0.2
    assert recipe().factor_max > 10


@pytest.mark.parametrize(
    ("lang", "text", "dialect", "others"),
    [
        ("nl", "niet mijn", {"ni", "men"}, {"m'n"}),
        ("de", "nicht schon", {"net", "ned", "scho"}, {"nich"}),
    ],
)
def test_who_writes_dialect_writes_it_throughout_the_row(lang, text, dialect, others):
    rows = [set(row.lower().split()) for row in noise([text] * 3_000, lang=lang, id=range(3_000))]
    assert sum(bool(row & dialect) for row in rows) > 150
    assert sum(bool(row & others) for row in rows) > 150
    assert not any(row & dialect and row & others for row in rows)


@pytest.mark.parametrize("recipe", ["ugc", "ugc-light", "ugc-heavy", "tweets"])
def test_no_verb_is_shortened_before_a_noun_that_lost_its_article(recipe):
    """'going to the beach' may lose 'the', but never becomes 'gonna beach'."""
    text, ids = "I am going to the beach. We want to go to an island.", range(4_000)
    rows = [row.lower() for row in noise([text] * len(ids), recipe, id=ids)]
    assert rows[:500] == [noise(text, recipe, id=at).lower() for at in ids[:500]]
    for before in ("gonna", "gon", "imma", "wanna"):
        assert not any(re.search(rf"\b{before} (the |da )?(beach|island)", row) for row in rows)
    assert sum("wanna go" in row for row in rows) > 20
    assert recipe == "tweets" or sum("going to beach" in row for row in rows) > 4


@pytest.mark.parametrize(
    ("writers", "wrong"),
    [
        ("[]", "writers must map names"),
        ("{a: 3}", "writer 'a' needs 'weight: N' and 'habits"),
        ("{a: {habits: {fin: 1}}}", "writer 'a': no step 'fin'; did you mean 'fing'"),
        ("{a: {habits: {fing: 2}}}", "writer 'a', fing: p = 2 is outside 0 to 1"),
        ("{a: {habits: {fing: {strength: -1}}}}", "strength = -1 is below 0"),
        ("{a: {habits: {fing: {rate: 1}}}}", "writer 'a', fing: no option 'rate'"),
        ("{a: {weight: 0}}", "weight = 0 is not a whole number"),
        ("{a: {size: 1}}", "writer 'a' has no option 'size'"),
        ("{a: {}}\nlanguages: []", "languages must map codes to their steps and writers"),
        ("{a: {}}\nlanguages: {xqz: {steps: [fing]}}", "unknown language 'xqz'"),
        ("{a: {}}\nlanguages: {de: fing}", "language 'de' needs 'steps: "),
        ("{a: {}}\nlanguages: {de: {step: [fing]}}", "language 'de' has no option 'step'"),
        ("{a: {}}\nlanguages: {de: {steps: [fin]}}", "w: de step 1: no transform named 'fin'"),
        ("{a: {}}\nscale: 2", "scale: only in a recipe that extends another"),
    ],
)
def test_wrong_writers_are_named(writers, wrong):
    with pytest.raises(RecipeError, match=wrong):
        parse(f"steps: [fing]\nwriters: {writers}", "w")


def _noised(recipe: Recipe, texts: list[str]) -> list[str]:
    return Engine(recipe).noise_few(texts, Streams(np.arange(len(texts), dtype=np.uint64), 5))


def _edits(engine: Engine, texts: list[str]) -> list[list[dict]]:
    import pyarrow as pa

    table = pa.table({"text": texts})
    return engine.recipe.noise_batch(table, 1, edits=True)["edits"].to_pylist()
