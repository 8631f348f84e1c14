"""Sets of an evaluation: read from any table, bounded, and noised by seed."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisegen.augmentation.on_the_fly import Noising
from noisegen.cli import run
from noisegen.data.columns import read_columns
from noisegen.data.sources import named_source
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.results import EvaluateOptions
from noisegen.evaluation.sets import (
    MIXES,
    POSTS,
    ROLASER,
    chosen_recipes,
    is_tested,
    make_sets,
)
from noisegen.noising.recipe import Recipe
from noisegen.options import decode

STS = [("a cat sat", "a cat was sitting", 4.5), ("it rains", "the sun shines", 0.5)]
COLUMNS = ("sentence1", "sentence2", "score")


def sets_of(**given):
    options = decode(EvaluateOptions, {"models": "minilm", "out": "report", **given})
    return make_sets(options, lambda line: None)


def write(path, rows, names=COLUMNS, mark="\t"):
    lines = [mark.join(map(str, row)) for row in [names, *rows]]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


@pytest.fixture
def sources(tmp_path):
    """The same rows in every format."""
    made = [write(tmp_path / "a.tsv", STS), write(tmp_path / "b.csv", STS, mark=",")]
    (tmp_path / "c.tsv.gz").write_bytes(gzip.compress((tmp_path / "a.tsv").read_bytes()))
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in STS]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "e.parquet")
    return [*made, *(str(tmp_path / name) for name in ("c.tsv.gz", "d.jsonl", "e.parquet"))]


def test_every_format_gives_the_same_set(sources):
    for source in sources:
        [found] = sets_of(sts=[source]).sets
        assert (
            list(zip(*list(found.columns.values())[:2], found.truth.tolist(), strict=True)) == STS
        )


def test_blank_and_missing_cells_are_dropped_and_counted(tmp_path):
    table = {
        "sentence1": ["a", None, " ", "d", "e"],
        "sentence2": ["b", "b", "b", "b", "b"],
        "score": [1.0, 2.0, 3.0, float("nan"), 2.0],
    }
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    made = sets_of(sts=[str(tmp_path / "a.parquet")])
    assert made.sets[0].truth.tolist() == [1.0, 2.0]
    assert made.notes == ["a: dropped 3 rows: empty_cell 2, score_is_no_number 1"]


def test_damage_is_reported(tmp_path):
    path = tmp_path / "a.tsv"
    write(path, STS)
    path.write_bytes(path.read_bytes() + b"\xff\xfe\tb\t3\n")
    made = sets_of(sts=[str(path)])
    assert len(made.sets[0]) == 2
    assert made.damaged == [f"{path}: 1 rows not_utf8"]


def test_files_of_a_folder_are_one_set(tmp_path):
    (tmp_path / "set").mkdir()
    for name in ("a", "b"):
        write(tmp_path / "set" / f"{name}.tsv", STS)
    [found] = sets_of(sts=[str(tmp_path / "set")]).sets
    assert (found.name, len(found)) == ("set", 4)


def test_a_sample_is_spread_evenly(tmp_path):
    texts = [f"sentence number {number}" for number in range(100)]
    path = write(tmp_path / "a.tsv", [(text,) for text in texts], names=("text",))
    cells = read_columns(path, [("text",)], "--source")
    assert cells.sample(10).columns["text"] == texts[::10]
    assert cells.sample(1_000) is cells


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("folder/news.tsv.gz", ("news", "folder/news.tsv.gz")),
        ("mine=folder/news.tsv", ("mine", "folder/news.tsv")),
        ("folder/a=b.tsv", ("a=b", "folder/a=b.tsv")),
        ("hf:glue:stsb", ("hf:glue:stsb", "hf:glue:stsb")),
    ],
)
def test_sources_have_names(given, expected):
    assert named_source(given) == expected


def test_two_sources_of_one_name_are_numbered(tmp_path):
    (tmp_path / "x").mkdir()
    both = [write(tmp_path / "a.tsv", STS), write(tmp_path / "x" / "a.tsv", STS)]
    assert [one.name for one in sets_of(sts=both).sets] == ["a", "a-2"]


# Noise.


def test_all_is_rolaser_posts_and_two_mixes_as_far_as_the_language_has_them():
    assert set(chosen_recipes(["all"], "en")) == {*ROLASER, *POSTS, *MIXES}
    french = chosen_recipes(["all"], "fr")
    assert "fing" in french
    assert "slng" not in french
    assert list(chosen_recipes(["leet, fing", "spac:add_rate=0,drop_rate=0.2"], "en")) == [
        "leet",
        "fing",
        "spac:add_rate=0,drop_rate=0.2",
    ]


@pytest.mark.parametrize(("names", "lang"), [(["lete"], "en"), (["slng"], "fr"), ([], "en")])
def test_noise_that_is_none_is_refused(names, lang):
    with pytest.raises(UsageError):
        chosen_recipes(names, lang)


@pytest.fixture
def text_file(tmp_path, demo_texts):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(demo_texts[:40]) + "\n", "utf-8")
    return str(path)


def test_noise_is_that_of_the_recipe_by_seed(text_file):
    made = sets_of(source=text_file, transforms="leet,ugc", seeds=3)
    for one in made.sets:
        assert one.seeds == (100, 101, 102)
        for seed, noisy in zip(one.seeds, one.noisy, strict=True):
            assert list(noisy) == Noising().noise(Recipe.named(one.name), one.clean, seed)


def test_recipes_alone_have_strengths_and_none_is_no_noise(text_file):
    alone, mix = sets_of(source=text_file, transforms="leet,ugc", seeds=1).sets
    assert not alone.strengths
    assert tuple(mix.strengths) == (0.0, 0.5, 1.0, 1.5)
    sides = mix.strengths.values()
    changed = [sum(a != b for a, b in zip(side, mix.clean, strict=True)) for side in sides]
    assert changed[0] == 0
    assert changed == sorted(changed)
    assert changed[1] < changed[3]


def test_transforms_are_the_noise_of_all_sets(tmp_path, text_file, capsys):
    sts = write(tmp_path / "sts.tsv", STS)
    steps = ("fing:rate=1", "spac")
    similar, noise = sets_of(sts=sts, source=text_file, seeds=2, steps=steps).sets
    recipe = Recipe.of(steps)
    assert noise.name == "fing:rate=1 + spac"
    assert list(noise.noisy[0]) == Noising().noise(recipe, noise.clean, 100)
    assert "noise: fing:rate=1 + spac" in similar.note
    first = similar.columns["first"]
    assert list(similar.columns["first_noisy"]) == Noising().noise(recipe, first, 100)
    words = ["evaluate", "m", "-o", "x", "--sts", sts, "-t", "fing"]
    assert run([*words, "--transforms", "leet"]) == 2
    assert "--transforms and -t exclude each other" in capsys.readouterr().err
    assert run([*words, "--recipe", "ugc"]) == 2
    assert "--recipe and -t exclude each other" in capsys.readouterr().err


def test_equal_texts_are_on_one_side_of_the_split(tmp_path):
    rows = [(f"text {number % 20}", "xy"[number % 2]) for number in range(200)]
    path = write(tmp_path / "a.tsv", rows, names=("text", "label"))
    [found] = sets_of(labelled=[path]).sets
    tested = is_tested(found.columns["clean"])
    sides = set(zip(found.columns["clean"], tested.tolist(), strict=True))
    assert len(sides) == len(dict(sides)) == 20
    assert 0 < tested.sum() < len(found)


def test_labels_that_no_training_text_has_are_noted(tmp_path):
    rows = [(f"text {number}", f"label {number}") for number in range(30)]
    path = write(tmp_path / "a.tsv", rows, names=("text", "label"))
    [found] = sets_of(labelled=[path]).sets
    lost = int(is_tested(found.columns["clean"]).sum())
    assert f"{lost} test texts have a label that no training text has" in found.note


def test_one_file_with_every_other_of_a_glob_is_a_set_per_language_and_script(tmp_path):
    """As for FLORES, English with 199 languages."""
    for name in ("eng_Latn", "deu_Latn", "zho_Hans", "zho_Hant"):
        (tmp_path / f"{name}.devtest").write_text(f"one {name}\ntwo {name}\n")
    source = f"flores={tmp_path}/eng_Latn.devtest,{tmp_path}/*.devtest"
    sets = {one.name: one.columns["target"] for one in sets_of(retrieval=[source]).sets}
    assert sets == {
        "flores en-de": ["one deu_Latn", "two deu_Latn"],
        "flores eng_Latn-zho_Hans": ["one zho_Hans", "two zho_Hans"],
        "flores eng_Latn-zho_Hant": ["one zho_Hant", "two zho_Hant"],
    }


def test_translations_are_bitext_of_any_form(tmp_path):
    rows = [(f"Satz {number}", f"sentence {number}") for number in range(5)]
    for lang, side in zip(("de", "en"), zip(*rows, strict=True), strict=True):
        (tmp_path / f"talks.{lang}").write_text("\n".join(side) + "\n", "utf-8")
    (tmp_path / "deu-eng.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), "utf-8")
    (tmp_path / "plain.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), "utf-8")
    given = [
        f"{tmp_path}/talks.de,{tmp_path}/talks.en",
        f"{tmp_path}/deu-eng.tsv",
        f"de-en={tmp_path}/plain.tsv",
    ]

    for one in sets_of(retrieval=given).sets:
        assert list(zip(one.columns["source"], one.columns["target"], strict=True)) == rows


# What cannot be used.


def refused(**options) -> str:
    with pytest.raises((SourceError, UsageError)) as error:
        sets_of(**options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_translations_of_several_languages_are_several_sets(tmp_path):
    for name in ("de-en", "fr-en"):
        (tmp_path / f"{name}.tsv").write_text(f"a\t{name}\nc\td\n\te\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "de-en.tsv").write_text("a\t\n\tb\n")

    made = sets_of(retrieval=[f"talks={tmp_path}/*.tsv"])
    found = {dataset.name: dataset.columns["target"] for dataset in made.sets}
    assert found == {"talks de-en": ["de-en", "d"], "talks fr-en": ["fr-en", "d"]}
    assert made.notes[0] == "talks de-en: dropped 1 rows: empty_side 1"
    assert "no rows" in refused(retrieval=[str(tmp_path / "empty")])


def test_what_is_lost_of_translations_is_counted_by_its_own_name(tmp_path):
    for name, content in {
        "de-en.tsv": "a\tb\nc\td\n\te\n",
        "it-en.tsv": "a\tb\nc\td\n",
        "x.fr-en.fr": "a\n\n",
        "x.fr-en.en": "\nb\n",
    }.items():
        (tmp_path / name).write_text(content)
    mixed = [
        ("a", "b", "de", "en"),
        ("c", "d", "de", "en"),
        ("e", "f", "nl", "en"),
        ("g", "h", "nl", "en"),
        ("i", "j", "en", "en"),
    ]
    names = ("source", "target", "source_lang", "target_lang")
    path = write(tmp_path / "mixed.tsv", mixed, names)

    made = sets_of(retrieval=[f"talks={tmp_path}"])
    assert {one.name: len(one) for one in made.sets} == {
        "talks de-en": 4,
        "talks it-en": 2,
        "talks nl-en": 2,
    }
    assert sorted(made.notes) == [
        f"talks {path}: dropped 1 rows: same_language 1",
        "talks de-en: dropped 1 rows: empty_side 1",
        "talks fr-en: dropped 2 rows: empty_side 2",
    ]
    one = sets_of(retrieval=[write(tmp_path / "one.tsv", [*mixed[:2], mixed[4]], names)])
    assert one.notes == ["one: dropped 1 rows: same_language 1"]


def test_columns_of_a_file_that_is_no_text_are_shown_as_escapes(tmp_path):
    (tmp_path / "a.csv").write_text("\x01\x1b[31m,b\n1,2\n")
    assert r"among: \x01\x1b[31m, b" in refused(labelled=[str(tmp_path / "a.csv")])


def test_a_missing_column_names_those_there_are(tmp_path):
    path = write(tmp_path / "a.csv", [("hello",)], names=("text",))
    assert "no column 'label' among: text" in refused(labelled=[path])
    assert "needs the columns source, target" in refused(retrieval=[path])


@pytest.mark.parametrize(
    ("rows", "names", "kind", "said"),
    [
        ([("a", "x"), ("b", "x")], ("text", "label"), "labelled", "all labels are 'x'"),
        (
            [("a", "b", "yes"), ("c", "d", "no")],
            ("sentence1", "sentence2", "label"),
            "labelled",
            "label 'yes' of a pair of sentences is not 0 or 1",
        ),
        ([("a", "b", "high")], COLUMNS, "sts", "no score is a number; the first is 'high'"),
        ([("a", "b", 1), ("c", "d", 1)], COLUMNS, "sts", "all scores are 1"),
        ([("a", "b", 1)], COLUMNS, "sts", "one row is left"),
        ([("a", "")], ("source", "target"), "retrieval", "no rows for --retrieval (1 empty_cell)"),
    ],
)
def test_rows_that_cannot_be_used_are_named(tmp_path, rows, names, kind, said):
    assert said in refused(**{kind: [write(tmp_path / "a.tsv", rows, names=names)]})


@pytest.mark.parametrize("kind", ["source", "sts", "retrieval", "labelled", "pairs"])
def test_an_empty_file_is_refused(tmp_path, kind):
    (tmp_path / "a.tsv").touch()
    assert "no " in refused(**{kind: [str(tmp_path / "a.tsv")]})


TEXTS = [f"sentence number {number}" for number in range(2_500)]


@pytest.mark.parametrize(
    ("kind", "names", "cells"),
    [
        ("pairs", ("noisy", "clean"), lambda text: (f"{text}!", text)),
        ("sts", COLUMNS, lambda text: (text, text, len(text))),
        ("retrieval", ("source", "target"), lambda text: (text, text)),
        ("labelled", ("text", "label"), lambda text: (text, len(text))),
    ],
)
def test_all_rows_count_unless_a_limit_is_given(tmp_path, kind, names, cells):
    path = write(tmp_path / "a.tsv", list(map(cells, TEXTS)), names=names)
    [whole] = sets_of(**{kind: path}, hard=False).sets
    made = sets_of(**{kind: path}, hard=False, limit=100)

    assert len(whole) == 2_500
    assert [len(one) for one in made.sets] == [100]
    assert "a: 100 of 2,500 rows, evenly sampled" in made.notes


@pytest.mark.parametrize(("rows", "used"), [(997, 997), (1_012, 1_012), (2_500, 2_000)])
def test_a_source_is_noised_whole_up_to_its_bound_which_is_told(tmp_path, rows, used):
    (tmp_path / "a.txt").write_text("\n".join(TEXTS[:rows]) + "\n")
    given = {"transforms": "fing", "seeds": 1, "hard": False, "source": str(tmp_path / "a.txt")}
    made, more = sets_of(**given), sets_of(**given, limit=2_400)

    assert len(made.sets[0]) == used
    cut = ["a: 2,000 of 2,500 rows, evenly sampled; --limit takes more"] if rows > used else []
    assert made.notes == cut
    assert len(more.sets[0]) == min(rows, 2_400)


def test_rows_that_are_not_read_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("noisegen.data.columns.ROWS_MAX", 40)
    path = tmp_path / "a.txt"
    path.write_text("\n".join(TEXTS[:100]) + "\n")
    given = {"transforms": "fing", "seeds": 1, "hard": False}
    bitext = write(tmp_path / "en-de.tsv", [(t, t) for t in TEXTS[:90]], names=("en", "de"))
    made = sets_of(**given, source=str(path), retrieval=bitext)

    assert [len(one) for one in made.sets] == [40, 40]
    assert made.notes == [
        "en-de: dropped 50 rows: over_limit 50",
        "a: dropped 60 rows: over_limit 60",
    ]


def test_a_pool_that_is_cut_says_so(tmp_path):
    (tmp_path / "pool.txt").write_text("".join(f"line {number}\n" for number in range(50_100)))
    pairs = write(tmp_path / "a.tsv", [("x", "y"), ("u", "v")], names=("noisy", "clean"))
    made = sets_of(pairs=pairs, pool=str(tmp_path / "pool.txt"), hard=False)

    assert made.notes == ["a: 49,998 of 50,100 other sentences in the pool"]
    assert len(made.sets[0].pool) == 49_998


def test_texts_too_long_for_hard_negatives_are_counted():
    from noisegen.evaluation.negatives import hard_negatives

    found = hard_negatives(["It cost 12 euros.", "12 " * 1_000], parse=False)
    assert found.note.endswith("; none of 1 texts of over 2,000 characters")


def test_nothing_to_evaluate_on_is_refused():
    with pytest.raises(UsageError, match="nothing to evaluate on"):
        sets_of()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("twice.tsv", "clean\tclean\na\tb\n", "two columns are named 'clean'"),
        ("broken.jsonl", '{"clean\n{x\n', "no column 'clean' among: none"),
    ],
)
def test_a_table_without_a_column_of_its_own_is_one_clear_line(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(SourceError, match=said):
        read_columns(str(tmp_path / name), (("clean",), ("text",)), "training")
