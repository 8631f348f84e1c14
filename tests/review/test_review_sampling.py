"""What is drawn for a review, and what stays hidden."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reviews import made, output, rows_of, sentences

import noisegen
from noisegen import review
from noisegen.errors import OutputError, SourceError, UsageError
from noisegen.noising.recipe import Recipe
from noisegen.noising.rng import id_number, row_key, stream_key
from noisegen.review import sample
from noisegen.review.review_file import ReviewFile, marked, order_of, tokens
from noisegen.review.sample import slots_of
from noisegen.review.sources import at_strength, strength_labels, strength_of, strength_value
from noisegen.review.store import created
from noisegen.text.resources import DICTIONARIES

DEMO = DICTIONARIES.parent / "demo" / "demo.tsv"
ITEMS = (
    "SELECT items.id, stage, lang, recipe, strength, clean, noisy, slots FROM items"
    " JOIN groups ON groups.id = group_id ORDER BY items.id"
)


def test_a_review_has_15_rows_of_every_strength_and_no_text_twice(tmp_path):
    items = rows_of(made(tmp_path), ITEMS)
    assert Counter(item[4] for item in items) == {"low": 15, "middle": 15, "high": 15}
    assert len({item[5] for item in items}) == 45
    assert all(item[5] != item[6] for item in items)


def test_a_run_with_strengths_gives_a_sample_of_each(tmp_path):
    source = tmp_path / "texts.txt"
    source.write_text("".join(f"{clean}\n" for clean, _ in sentences(60)))
    levels = {"x1": 1.0, "x2": 2.0, "x3": 3.0}
    options = {"transforms": "fing:rate=0.05", "strength": list(levels), "with_clean": True}
    noisegen.augment(source, tmp_path / "out", **options)
    path = tmp_path / "r.sqlite"
    found = review.make(tmp_path / "out", path, rows=18)
    assert {s.strength: (s.value, s.rows, drawn) for s, drawn in found.drawn} == {
        level: (value, 60, 18) for level, value in levels.items()
    }
    items = rows_of(path, ITEMS)
    assert len({item[5] for item in items}) == 54
    rows = pq.read_table(tmp_path / "out" / "data").to_pylist()
    noisy = {(row["clean"], row["strength"]): row["noisy"] for row in rows}
    assert all(noisy[item[5], item[4]] == item[6] for item in items)
    report = review.report(path).to_dict()
    assert [group["strength"] for group in report["groups"]] == list(levels)
    with pytest.raises(UsageError, match="strengths of its own: leave out --strengths"):
        review.make(tmp_path / "out", tmp_path / "other.sqlite", strengths="weak")


def test_the_sample_is_that_of_its_slow_twin(tmp_path):
    names, texts = ("low", "middle", "high"), [clean for clean, _ in sentences(300)]
    left = {}
    for name in names:
        stream = stream_key(5, f"review/unknown/{name}")
        left[name] = sorted(texts, key=lambda text, s=stream: row_key(s, id_number(text)))
    drawn = {name: [] for name in names}
    for _ in range(15):
        for name in names:
            text = left[name][0]
            drawn[name].append(text)
            for others in left.values():
                others.remove(text)
    items = rows_of(made(tmp_path, seed=5), ITEMS)
    for name in names:
        assert {item[5] for item in items if item[4] == name} == set(drawn[name])


def test_the_order_of_the_items_says_nothing_of_their_strength(tmp_path):
    strengths = [item[4] for item in rows_of(made(tmp_path, rows=200, count=900), ITEMS)]
    places = {name: np.flatnonzero(np.array(strengths) == name) for name in set(strengths)}
    for name in places:  # the mean place of 200 of 600 varies by about 10
        assert abs(places[name].mean() - 299.5) < 40
    runs = sum(a != b for a, b in pairwise(strengths))
    assert 340 < runs < 460  # 400 expected


def test_a_seed_settles_the_sample_and_another_changes_it(tmp_path):
    drawn = [
        rows_of(made(tmp_path / str(place), seed=seed), ITEMS)
        for place, seed in enumerate((1, 1, 2))
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_rows_that_did_not_change_are_counted_and_not_drawn(tmp_path):
    pairs = [
        (clean, clean if place % 3 else noisy) for place, (clean, noisy) in enumerate(sentences(30))
    ]
    found = review.make(output(tmp_path / "out", pairs), tmp_path / "r.sqlite", rows=20)
    ((group, drawn),) = found.drawn
    assert (group.rows, group.changed, drawn) == (30, 10, 10)
    assert "20 of 30 rows unchanged; 10 fewer than asked" in found.lines()[0]


def test_long_texts_are_counted_and_not_drawn(tmp_path):
    pairs = [*sentences(3), ("word " * 500, "wrod " * 500)]
    found = review.make(output(tmp_path / "out", pairs), tmp_path / "r.sqlite")
    assert [(group.too_long, drawn) for group, drawn in found.drawn] == [(1, 3)]


def test_what_is_scarce_is_shared_among_the_strengths(tmp_path):
    path = made(tmp_path, rows=15, count=10)
    counts = Counter(item[4] for item in rows_of(path, ITEMS))
    assert sorted(counts.values()) == [3, 3, 4]


def test_clean_text_is_noised_at_every_strength_in_every_language(tmp_path):
    found = review.make(
        DEMO, tmp_path / "r.sqlite", rows=4, transforms=("fing",), strengths="0.02,x4"
    )
    drawn = {group.name: count for group, count in found.drawn}
    assert drawn["en", "fing", "0.02"] == drawn["tr", "fing", "x4"] == 4
    assert drawn["ja", "fing", "x4"] == 0  # fing knows no Japanese keyboard
    changed = {group.strength: group.changed for group, _ in found.drawn if group.lang == "en"}
    assert changed["x4"] > changed["0.02"]


def test_real_noise_is_drawn_beside_that_of_a_recipe(tmp_path):
    pairs = sentences(90)
    (tmp_path / "pairs.tsv").write_text(
        "clean\tnoisy\n" + "".join(f"{clean}\t{noisy}\n" for clean, noisy in pairs)
    )
    path, of = tmp_path / "r.sqlite", {"transforms": ("fing:rate=0.1",), "with_real": True}
    review.make(tmp_path / "pairs.tsv", path, rows=20, **of)
    review.more(path, rows=5, strength="x1")
    items = rows_of(path, ITEMS)
    drawn = {
        recipe: {item[5:7] for item in items if item[3] == recipe}
        for recipe in ("real noise", "fing")
    }
    assert Counter(item[1:5:2] for item in items) == {
        (stage, recipe): count for recipe in drawn for stage, count in ((1, 20), (2, 5))
    }
    assert len({item[5] for item in items}) == 50
    assert drawn["real noise"] <= set(pairs)
    assert {clean for clean, _ in drawn["fing"]} <= {clean for clean, _ in pairs}
    assert not drawn["fing"] & set(pairs)
    for given in ({"text_column": "clean"}, {"lang_column": "language"}):
        with pytest.raises(UsageError, match="and one language: leave out"):
            review.make("pairs.tsv", tmp_path / "s.sqlite", with_real=True, **given)


@pytest.mark.parametrize("strength", ["x0.5", "best"])
def test_real_noise_is_drawn_in_the_second_stage_of_any_strength(tmp_path, strength):
    path, given = tmp_path / "r.sqlite", {"transforms": ("fing:rate=0.1",), "with_real": True}
    pairs = output(tmp_path / "out", sentences(90))
    review.make(pairs, path, rows=5, strengths="x0.5,x2", **given)
    with pytest.raises(UsageError, match=r"no strength 'x1'; it has x0.5, x2"):
        review.more(path, rows=7, strength="x1")
    with closing(ReviewFile(path)) as opened:
        reviewer = opened.join("Ana", None)["reviewer"]
        for item in rows_of(path, ITEMS):
            if item[3] == "fing":
                value = "realistic" if item[4] == "x0.5" else "unrealistic"
                opened.answer(reviewer, item[0], "realism", value, str(item[0]))
    found = review.more(path, rows=7, strength=strength)
    drawn = {(group.recipe, group.strength): count for group, count in found.drawn}
    assert drawn == {("real noise", "x1"): 7, ("fing", "x0.5"): 7}


@pytest.mark.parametrize("source", ["pairs", "output"])
def test_rows_of_a_megabyte_are_read_a_few_at_a_time(tmp_path, source):
    pairs = [(f"{n} " + "word " * 200_000, f"{n} " + "wrod " * 200_000) for n in range(8)]
    if source == "output":
        name, given = output(tmp_path / "out", pairs), {}
    else:
        name, given = tmp_path / "pairs.tsv", {"transforms": ("fing",), "with_real": True}
        lines = ["clean\tnoisy", *map("\t".join, pairs)]
        name.write_text("\n".join(lines))
    options = sample.MakeOptions((str(name),), tmp_path / "r.sqlite", **given)
    batches = [table for _, table in sample.source_of(options).batches(Counter())]
    assert sum(map(len, batches)) == len(pairs) * (1 + bool(given))
    assert max(map(len, batches)) <= 3  # of two megabytes each


def test_the_second_stage_adds_rows_of_one_strength_and_repeats_none(tmp_path):
    path = made(tmp_path)
    before = rows_of(path, ITEMS)
    review.more(path, rows=60, strength="middle")
    items = rows_of(path, ITEMS)
    assert items[:45] == before
    assert {(item[1], item[4]) for item in items[45:]} == {(2, "middle")}
    assert len(items) == 105
    assert len({item[5] for item in items}) == 105


def test_the_second_stage_of_clean_text_has_its_recipe_and_strength(tmp_path):
    path = tmp_path / "r.sqlite"
    review.make(DEMO, path, rows=5, transforms=("fing",), strengths="0.02,0.1", limit=300)
    review.more(path, rows=10, strength="0.1")
    added = [item for item in rows_of(path, ITEMS) if item[1] == 2]
    assert len(added) == 10
    again = Recipe.named("fing").with_values({"fing.rate": 0.1})
    import pyarrow as pa

    ids = rows_of(path, "SELECT row_id, clean, noisy FROM items WHERE stage = 2")
    table = pa.table({"id": [int(row[0]) for row in ids], "clean": [row[1] for row in ids]})
    assert again.noise_batch(table)["noisy"].to_pylist() == [row[2] for row in ids]


def test_best_needs_answers(tmp_path):
    with pytest.raises(UsageError, match="nothing is judged yet"):
        review.more(made(tmp_path))


def test_a_strength_that_is_not_there_is_named_with_those_that_are(tmp_path):
    with pytest.raises(UsageError, match=r"no strength '0.3'; it has low, middle, high"):
        review.more(made(tmp_path), strength="0.3")


def test_the_second_stage_says_where_the_sources_have_gone(tmp_path):
    path = made(tmp_path)
    (tmp_path / "low").rename(tmp_path / "elsewhere")
    with pytest.raises((SourceError, UsageError)):
        review.more(path, strength="low")
    folders = [tmp_path / "elsewhere", tmp_path / "middle", tmp_path / "high"]
    with pytest.raises(
        SourceError, match="nothing to review"
    ):  # the strength was the folder's name
        review.more(path, strength="low", sources=folders)


def test_an_existing_review_is_never_written_over(tmp_path):
    path = made(tmp_path)
    before = path.read_bytes()
    with pytest.raises(OutputError, match="--more"):
        review.make(tmp_path / "low", path)
    assert path.read_bytes() == before


def test_nothing_is_left_behind_where_nothing_changed(tmp_path):
    same = [(clean, clean) for clean, _ in sentences(5)]
    with pytest.raises(SourceError, match="none of 5 rows is changed"):
        review.make(output(tmp_path / "out", same), tmp_path / "r.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "needs --strengths"),
        ({"strengths": "0.1,0.1"}, "write each once"),
        ({"strengths": "0.1,"}, "write each once"),
        ({"strengths": "strong"}, "neither a rate such as 0.1"),
        ({"strengths": "0.1,5"}, "strength 5 is above 1, .* write x5 to multiply"),
        ({"strengths": "0.1", "rows": 0}, "at least 1"),
        ({"strengths": "0.1", "seed": -1}, "seed"),
    ],
)
def test_wrong_usage_is_said_in_one_line(tmp_path, options, said):
    with pytest.raises(UsageError, match=said):
        review.make(DEMO, tmp_path / "r.sqlite", transforms=("fing",), **options)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_shard_is_named(tmp_path):
    (tmp_path / "out" / "data").mkdir(parents=True)
    (tmp_path / "out" / "data" / "part-00000.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(SourceError, match="part-00000"):
        review.make(tmp_path / "out", tmp_path / "r.sqlite")


def test_slots_are_those_of_the_labels(tmp_path):
    import noisegen

    source = tmp_path / "rows.jsonl"
    tags = ["O", "B-city", "I-city", "O", "B-time", "O"]
    words = ("from", "new", "brindle", "at", "nine")
    lines = [json.dumps({"words": [*words, str(n)], "tags": tags}) for n in range(20)]
    source.write_text("\n".join(lines))
    noisegen.augment(
        source, tmp_path / "out", transforms=("fing:rate=0.3",), tokens="words", labels="tags"
    )
    review.make(tmp_path / "out", tmp_path / "r.sqlite", rows=5)
    (item, *_) = rows_of(tmp_path / "r.sqlite", ITEMS)
    assert item[3] == "fing"
    assert item[4] == "0.3"  # the one rate of its recipe
    assert '[["city", "new brindle"], ["time", "nine"]]' in item[7]


def test_slots_join_what_goes_on_and_part_what_begins():
    labels = ["B-a", "I-a", "B-a", "O", "I-b", "x"]
    found = slots_of(list("abcdef"), labels)
    assert found == [("a", "a b"), ("a", "c"), ("b", "e"), ("x", "f")]
    assert slots_of([], []) == []


def test_every_reviewer_has_an_order_of_their_own_and_the_stages_in_turn():
    items, stages = np.arange(1, 101), np.repeat([1, 2], 50)
    orders = [order_of(0, name, items, stages) for name in ("ana", "ben")]
    for order in orders:
        assert sorted(order[:50].tolist()) == list(range(1, 51))
        assert sorted(order.tolist()) == list(range(1, 101))
    assert orders[0].tolist() != orders[1].tolist()
    assert (orders[0] == order_of(0, "ana", items, stages)).all()


# Strengths.


def test_a_number_sets_every_rate_and_a_factor_multiplies_those_below_one():
    recipe = Recipe.named("mix_all")
    settled = at_strength(recipe, "0.2").steps()
    assert {value for step in settled for name, value in step.values.items() if "rate" in name} == {
        0.2
    }
    assert at_strength(recipe, "x0.5").strength[0][0] == recipe.strength[0][0] / 2


@pytest.mark.parametrize("label", ["1e9", "inf", "nan", "-1", "x", "", "1/3", "9" * 50])
def test_a_name_is_no_number(label):
    assert strength_value(label) is None


def test_strengths_are_read_in_order():
    assert list(map(strength_value, strength_labels(" .05, x2"))) == [0.05, 2.0]


def test_the_strength_of_a_recipe_is_its_one_rate():
    assert strength_of({"steps": [{"shuffle": [{"wiki": {"rate": 0.1}}, "spac"]}]}) == "0.1"
    assert strength_of({"steps": [{"a": {"rate": 0.1}}, {"b": {"add_rate": 0.2}}]}) is None
    assert strength_of({}) is None


# Marks.


@pytest.mark.parametrize(
    ("clean", "noisy", "changed"),
    [
        ("see you tomorrow", "see u tomorrow", [["you"], ["u"]]),
        ("see you", "seeyou", [["see you"], ["seeyou"]]),
        ("我今天去学校", "我今天去学笑", [["校"], ["笑"]]),
        ("यह बहुत है", "यह बहूत है", [["बहुत"], ["बहूत"]]),
        ("so good", "so  good", [[" "], ["  "]]),
        ("same", "same", [[], []]),
        ("", "new", [[], ["new"]]),
    ],
)
def test_whole_words_and_single_cjk_signs_are_marked(clean, noisy, changed):
    assert [[text for differs, text in side if differs] for side in marked(clean, noisy)] == changed


def test_marked_parts_joined_are_the_texts_and_equal_parts_are_equal(demo_texts, odd_texts):
    texts = [*demo_texts, *(text[:300] for text in odd_texts)]
    for clean, noisy in pairwise(texts):
        sides = marked(clean, noisy)
        assert ["".join(text for _, text in side) for side in sides] == [clean, noisy]
        kept = ["".join(text for differs, text in side if not differs) for side in sides]
        assert kept[0] == kept[1]
        assert "".join(tokens(clean)) == clean


def test_what_a_crash_left_of_another_review_is_not_played_into_a_new_one(tmp_path):
    low = output(tmp_path / "low", sentences(20))
    path = tmp_path / "r.sqlite"
    (tmp_path / "r.sqlite-wal").write_bytes(b"answers")
    with pytest.raises(OutputError, match=r"r\.sqlite-wal' is left from a removed review"):
        review.make(low, path)
    assert not path.exists()


def test_a_review_made_meanwhile_is_not_written_over(tmp_path):
    path = tmp_path / "r.sqlite"
    with pytest.raises(OutputError, match="already"), created(path):
        path.write_bytes(b"of another process")
    assert path.read_bytes() == b"of another process"
    assert list(tmp_path.iterdir()) == [path]


def test_rows_added_meanwhile_stop_a_second_stage(tmp_path):
    meanwhile = []  # calls that the transform makes once

    @noisegen.transform("meddling")
    def meddling(text: str, draws: noisegen.Draws, *, rate: float = 1.0) -> str:
        """Do something else meanwhile: 'a' -> 'a!'."""
        if meanwhile:
            meanwhile.pop()()
        return f"{text}!"

    path, source = tmp_path / "r.sqlite", tmp_path / "source.txt"
    source.write_text("".join(f"sentence {number}\n" for number in range(40)), "utf-8")
    review.make(source, path, transforms=["meddling"], strengths="x1", rows=2)
    meanwhile.append(lambda: review.more(path, rows=2, strength="x1"))
    with pytest.raises(UsageError, match="meanwhile"):
        review.more(path, rows=2, strength="x1")
    assert rows_of(path, "SELECT count(*) FROM items WHERE stage = 2") == [(2,)]


def test_no_code_runs_because_a_review_names_it(tmp_path):
    path, code, mark = made(tmp_path), tmp_path / "own.py", tmp_path / "ran"
    code.write_text(f"open({str(mark)!r}, 'w').close()")
    with closing(sqlite3.connect(path)) as opened, opened:
        (text,) = opened.execute("SELECT value FROM review WHERE name = 'plan'").fetchone()
        plan = json.dumps({**json.loads(text), "code": [str(code)]})
        opened.execute("UPDATE review SET value = ? WHERE name = 'plan'", (plan,))
    opened.close()
    with pytest.raises(UsageError, match=r"made with --code .*own\.py"):
        review.more(path, strength="low", rows=1)
    assert not mark.exists()
    assert review.more(path, strength="low", rows=1, code=[code]).items == 1
    assert mark.exists()


@pytest.mark.parametrize("plan", ["{}", "[]", "[", '{"sources": 3}'])
def test_a_damaged_plan_is_said(tmp_path, plan):
    path = made(tmp_path)
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("UPDATE review SET value = ? WHERE name = 'plan'", (plan,))
    opened.close()
    with pytest.raises(SourceError, match="its plan cannot be read"):
        review.more(path, strength="low")


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary"])
def test_a_column_of_languages_is_read_in_every_form_of_text(tmp_path, kind):
    texts = [text for text, _ in sentences(20)]
    langs = pa.array(["en", "de"] * 10)
    langs = langs.dictionary_encode() if kind == "dictionary" else langs.cast(kind)
    pq.write_table(pa.table({"text": texts, "lang": langs}), tmp_path / "c.parquet")
    source, out = str(tmp_path / "c.parquet"), tmp_path / "r.sqlite"
    drawn = review.make(source, out, rows=2, strengths="0.5", transforms=("fing",)).drawn
    assert {group.lang: count for group, count in drawn} == {"de": 2, "en": 2}


def test_a_best_of_few_answers_is_said_to_be_open(tmp_path):
    path = made(tmp_path)
    opened = ReviewFile(path)
    key = opened.join("Ana", None)["reviewer"]
    opened.answer(key, opened.item(key, 0)["item"], "realism", "realistic", "1")
    opened.close()
    found = review.more(path, rows=2)
    assert found.unjudged == 44
    assert found.lines()[-1].startswith("warning: 44 rows of the first stage not judged yet")
    assert review.more(path, rows=2, strength="low").unjudged == 0
