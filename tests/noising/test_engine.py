"""The engine against the oracle: byte-identical text, equal edits, on real and on any text."""

import tracemalloc

import numpy as np
import oracle
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import noisegen
from noisegen.errors import UsageError
from noisegen.noising import engine as engine_module
from noisegen.noising import rng
from noisegen.noising.engine import Engine, add_noise
from noisegen.noising.mix import Step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe, parse
from noisegen.noising.registry import Settings
from noisegen.text.spans import PROTECTED, protect_kinds

TWELVE = "abr1 abr2 abr3 cont dysl fing homo leet slng spac spel week".split()  # noqa: SIM905
KINDS = protect_kinds(PROTECTED)
HEAVY = """
strength: {0.5: 1, 1: 2, 1.5: 1}
steps:
- shuffle: [%s]
- one_of: [{leet: {weight: 2}}, spac]
  p: 0.5
- fing
"""
ANY_TEXT = st.text(max_size=60)
LIVELY_WORDS = (
    "see you tomorrow people don't don’t I’m Monday MARCH the money very good as soon possible "
    "their there https://a.org/b @you #tag me@x.org İ ığdır é É हिन्दी 東京 \t \r\n ? ' ’ - , CEO "
    "Sept. 5 no. the Sunday. 👨\u200d👩\u200d👧 👍🏽 a\u0301"
)
LIVELY_TEXT = st.lists(st.sampled_from(LIVELY_WORDS.split(" ")), max_size=20).map(" ".join)


def heavy_mix() -> Recipe:
    names = (f"{{{name}: {{p: 0.3}}}}" for name in [*TWELVE, "caps"])
    return parse(HEAVY % ", ".join(names), "heavy")


def both(recipe: Recipe, rows: list[str], seed: int = 7, lang: str = "en", copy: int = 0):
    """Return noisy text, transforms and edits of every row: of the engine, and of the oracle."""
    engine = Engine(recipe.mix_of(lang), Settings(lang, tagger="rule"))
    clean, ids = pa.array(rows, pa.string()), np.arange(len(rows), dtype=np.uint64)
    table = add_noise(
        engine, pa.table({"clean": clean}), clean, Streams(ids, seed, copy), KINDS, True
    )
    ours = [
        (row["noisy"], row["transforms"], [tuple(edit.values()) for edit in row["edits"]])
        for row in table.to_pylist()
    ]
    expected = [
        oracle.noise(row, recipe, seed, row_id, KINDS, lang, copy)
        for row_id, row in enumerate(rows)
    ]
    return ours, [(row.noisy, row.transforms, row.edits) for row in expected]


def compare(recipe: Recipe, rows: list[str], *options: object, **named: object) -> int:
    """Assert that engine and oracle agree on every row; return how many changed."""
    ours, expected = both(recipe, rows, *options, **named)
    for row, wanted in zip(ours, expected, strict=True):
        assert row == wanted
    return sum(clean != noisy for clean, (noisy, *_) in zip(rows, ours, strict=True))


def single(name: str, **values: float) -> Recipe:
    return Recipe.of([Step(name, values)])


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*TWELVE, "caps"])
def test_each_transform_agrees_with_the_oracle(name, demo_texts, odd_texts, real_sentences):
    changed = compare(single(name), demo_texts + odd_texts + real_sentences[:1_500])
    assert changed > 5


@pytest.mark.parametrize("name", [*TWELVE, "caps"])
def test_each_transform_agrees_with_the_oracle_on_bundled_text(name, demo_texts, odd_texts):
    rate = {} if name == "spac" else {"rate": 0.5}
    assert compare(single(name, **rate), demo_texts + odd_texts[:-1], seed=1) > 5


@pytest.mark.nightly
def test_mix_all_agrees_with_the_oracle(demo_texts, odd_texts, real_sentences):
    rows = demo_texts + odd_texts + real_sentences[:4_000]
    assert compare(Recipe.named("mix_all"), rows) > 1_500


def test_mix_all_agrees_with_the_oracle_on_bundled_text(demo_texts, odd_texts):
    mix = Recipe.named("mix_all").with_values({"leet.rate": 0.05, "leet.by_length": True})
    assert compare(mix, demo_texts + odd_texts, seed=2**63, copy=3) > 100


@pytest.mark.parametrize("rate", [0, 0.037, 0.5, 1])
def test_leet_by_length_agrees_with_the_oracle(rate, demo_texts, odd_texts, real_sentences):
    rows = demo_texts + odd_texts + real_sentences[:1_000] + ["", "x", "e" * 40]
    changed = compare(single("leet", rate=rate, by_length=True), rows, seed=3)
    assert changed > 300 if rate else changed == 0


def test_leet_by_length_draws_places_not_letters():
    """Of 1,000 letters that all have a sign, 100 draws hit about 1000 (1 - 0.999^100) = 95.2."""
    rows = pa.table({"clean": ["e" * 1_000] * 200})
    noisy = Recipe.named("leet:rate=0.1,by_length=true").noise_batch(rows)["noisy"].to_pylist()
    hit = [sum(letter != "e" for letter in text) for text in noisy]
    assert max(hit) <= 100
    assert abs(sum(hit) / 200 - 95.2) < 1


def test_a_heavy_mix_composes_edits_as_the_oracle(demo_texts, odd_texts):
    assert compare(heavy_mix(), demo_texts + odd_texts[:-1]) > 400


@given(st.lists(ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=settings().max_examples // 4)
def test_the_heavy_mix_agrees_with_the_oracle_on_any_text(rows, seed):
    ours, expected = both(heavy_mix(), rows, seed)
    assert ours == expected


@pytest.mark.parametrize("lang", ["de", "fr", "es", "tr", "hi"])
def test_other_languages_agree_with_the_oracle(lang, demo):
    rows = [row["text"] for row in demo if row["lang"] == lang]
    recipe = Recipe.named("mix_all").with_values(
        {f"{n}.p": 0.8 for n in ("fing", "leet", "spac", "week")}
    )
    recipe, left_out = recipe.for_language(lang)
    assert {step.transform for step in recipe.steps()} == {"fing", "leet", "spac", "week"}
    assert "homo" in left_out
    assert compare(recipe, rows, lang=lang) > 15


@pytest.mark.parametrize("lang", ["de", "hi", "tr"])
def test_capitals_of_other_languages_agree_with_the_oracle(lang, demo):
    rows = [row["text"] for row in demo if row["lang"] == lang]
    changed = compare(single("caps", rate=0.5), rows, lang=lang)
    assert changed > 5 or lang == "hi"
    assert ("İ" in noisegen.noise("iyi günler", "caps", lang=lang)) == (lang == "tr")


def test_text_outside_the_edits_is_equal_on_both_sides(demo_texts):
    table = pa.table({"clean": demo_texts})
    for row in heavy_mix().noise_batch(table, seed=3, edits=True).to_pylist():
        clean_at = noisy_at = 0
        for edit in row["edits"]:
            kept = row["clean"][clean_at : edit["clean_start"]]
            assert kept == row["noisy"][noisy_at : edit["noisy_start"]]
            clean_at, noisy_at = edit["clean_end"], edit["noisy_end"]
        assert row["clean"][clean_at:] == row["noisy"][noisy_at:]


def test_a_row_is_the_same_alone_and_in_any_batch(demo_texts):
    recipe = Recipe.named("mix_all")
    table = pa.table({"clean": demo_texts, "id": range(len(demo_texts))})
    whole = recipe.noise_batch(table, seed=5)["noisy"].to_pylist()
    order = np.random.default_rng(0).permutation(len(demo_texts))
    for size in (1, 7, 100):
        parts = [
            recipe.noise_batch(table.take(order[i : i + size]), seed=5) for i in range(0, 200, size)
        ]
        noisy = {row["id"]: row["noisy"] for part in parts for row in part.to_pylist()}
        assert noisy == {row_id: whole[row_id] for row_id in noisy}
    assert [noisegen.noise(demo_texts[i], recipe, seed=5, id=i) for i in range(50)] == whole[:50]


def test_a_step_more_changes_only_the_rows_that_draw_it(demo_texts):
    table = pa.table({"clean": demo_texts})
    mix = "steps: [{shuffle: [{fing: {p: 0.3}}, {leet: {p: 0.3}}%s]}]"
    before = parse(mix % "", "before").noise_batch(table, seed=1).to_pylist()
    after = parse(mix % ", {spac: {p: 0.2}}", "after").noise_batch(table, seed=1).to_pylist()
    untouched = [i for i, row in enumerate(after) if "spac" not in row["transforms"]]
    assert 200 < len(untouched) < len(after)
    assert all(before[i]["noisy"] == after[i]["noisy"] for i in untouched)


def test_string_ids_that_spell_integers_are_those_integers(demo_texts):
    rows = demo_texts[:50]
    recipe = Recipe.named("mix_all")
    numbers = recipe.noise_batch(pa.table({"clean": rows, "id": range(50)}), seed=1)
    strings = recipe.noise_batch(pa.table({"clean": rows, "id": list(map(str, range(50)))}), seed=1)
    assert numbers["noisy"] == strings["noisy"]
    named = recipe.noise_batch(
        pa.table({"clean": rows, "id": [f"row-{i}" for i in range(50)]}), seed=1
    )
    assert named["noisy"] != numbers["noisy"]


def test_protected_spans_survive_every_transform(demo_texts):
    spans = [
        "https://example.org/see-you?people=2",
        "@people_too",
        "#seeyou",
        "to.people@example.com",
    ]
    rows = [f"{text} {span} {text}" for text in demo_texts[:100] for span in spans]
    for row, noisy in zip(
        rows, heavy_mix().noise_batch(pa.table({"clean": rows}))["noisy"], strict=True
    ):
        assert any(f" {span} " in row and f" {span} " in noisy.as_py() for span in spans)


def test_a_table_without_text_says_what_it_needs():
    with pytest.raises(UsageError, match="needs a column clean or text; it has"):
        Recipe.named("mix_all").noise_batch(pa.table({"body": ["x"]}))


def test_an_empty_batch_stays_empty():
    made = Recipe.named("mix_all").noise_batch(
        pa.table({"text": pa.array([], pa.string())}), edits=True
    )
    assert made.column_names == ["text", "noisy", "transforms", "edits"]
    assert len(made) == 0


def test_one_string_is_noised_by_a_transform_too():
    assert noisegen.noise("on Monday", "week:rate=1", id=3) != "on Monday"
    assert noisegen.noise("on Monday", "week:rate=0") == "on Monday"


def test_a_column_noisy_that_was_there_is_replaced():
    given = pa.table({"noisy": ["x"], "text": ["see you"]})
    made = Recipe.named("leet:rate=1").noise_batch(given, edits=True)
    assert made.column_names == ["text", "noisy", "transforms", "edits"]
    assert made["noisy"].to_pylist() != ["x"]


@pytest.mark.parametrize("seed", [-1, 1 << 64, 1.5, "7", True])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(UsageError, match="is not a whole number from 0 to"):
        noisegen.noise("see you", "leet", seed=seed)


def test_a_recipe_of_names_is_that_of_their_steps():
    named = Recipe.of(["cont", "abr1:rate=0.5"])
    assert named.digest == Recipe.of([Step("cont"), Step("abr1", {"rate": 0.5})]).digest


@pytest.mark.parametrize("steps", [["fing:rate=1"], ["spac:add_rate=1"], TWELVE])
def test_a_huge_row_is_noised_in_windows_as_in_one_go(monkeypatch, steps):
    text = "Ünder the @you bridge, tomorrow at http://a.com/x 10 o'clock: 日本語 good. " * 30
    rows = pa.table({"text": ["soon and good", text, "", text[5:], "a"]})
    whole = Recipe.of(steps).noise_batch(rows, edits=True)
    windows = []
    monkeypatch.setattr(engine_module, "HUGE_BYTES", 500)
    monkeypatch.setattr(rng, "WINDOW_BYTES", 100)
    real = rng.GapTables.windows
    monkeypatch.setattr(rng.GapTables, "windows", lambda *of: windows.append(of) or real(*of))
    assert Recipe.of(steps).noise_batch(rows, edits=True).equals(whole)
    assert windows
    without_record = Recipe.of(steps).noise_batch(rows)
    assert without_record["noisy"].equals(whole["noisy"])


def test_the_edits_of_a_huge_row_are_gathered_window_by_window():
    rows = pa.table({"text": ["Under the bridge, tomorrow at 10 o'clock. " * 50_000]})
    recipe = Recipe.of(["fing:rate=1"])
    recipe.noise_batch(rows.slice(0, 0), edits=True)
    tracemalloc.start()
    try:
        recipe.noise_batch(rows, edits=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * rows.nbytes


def test_what_one_step_undoes_of_another_is_no_edit():
    table = pa.table({"text": ["see you", "See you"]})
    noised = Recipe.of(["caps", "caps:case=lower"]).noise_batch(table, edits=True)
    assert noised["noisy"].to_pylist() == ["see you", "see you"]
    first, second = noised["edits"].to_pylist()
    assert first == []
    assert [(edit["clean_start"], edit["clean_end"]) for edit in second] == [(0, 3)]
