"""The way back from noisy to clean text."""

import csv
import json

import pyarrow.parquet as pq
import pytest

import noisegen
from noisegen.augmentation.catalog import demo_texts
from noisegen.cli import run
from noisegen.errors import SourceError, UsageError
from noisegen.noising.noise import prepared
from noisegen.noising.plan import Streams
from noisegen.text.alignment import error_counts

POSTS = [
    "ppl tried 2 break in",
    "idk y ur mad, c u tmrw @bob https://u.c/ur #ur",
    "Toll rises to 2 dead, 64 wounded",
    "im goin 2 london w/ my bf",
    "dont kno wat ur doin",
    "THIS IS GREAT MAN",
    "i luv u sooooo much",
    "u-18 o.o <3",
    "",
    "  ",
    "\U0001f600 lol",
]


@pytest.mark.parametrize(
    ("noisy", "clean"),
    [
        (POSTS[0], "People tried to break in."),
        (POSTS[1], "I don't know why you're mad, see you tomorrow @bob https://u.c/ur #ur"),
        (POSTS[2], "Toll rises to 2 dead, 64 wounded."),
        (POSTS[3], "I'm going to London with my boyfriend."),
        (POSTS[4], "Don't know what you're doing."),
        (POSTS[5], "This is great man."),
        (POSTS[6], "I love you so much."),
        (POSTS[7], "u-18 o.o <3"),
        ("definately the peoople", "Definitely the people."),
        ("ur dog is nice", "Your dog is nice."),
        ("he lives in Boston, MA idk y", "He lives in Boston, MA I don't know why."),
        ("an iPhone on the 4th", "An iPhone on the 4th"),
        ("i c it in a c ...", "I see it in a c ..."),
    ],
)
def test_noisy_words_are_written_as_edited_text_has_them(noisy, clean):
    assert noisegen.normalize(noisy) == clean


@pytest.mark.parametrize(
    ("lang", "noisy", "clean"),
    [
        ("nl", "ik heb t ff nie gezien", "Ik heb het even niet gezien."),
        ("tr", "cok guzel bi gun", "Çok güzel bir gün."),
        ("es", "q haces? nos vemos mañana tb", "Qué haces? Nos vemos mañana también."),
        ("de", "kannste mir mal sagen", "Kannst du mir mal sagen."),
    ],
)
def test_other_languages(lang, noisy, clean):
    assert noisegen.normalize(noisy, lang) == clean


def test_words_only_leaves_capitals_and_stops():
    assert noisegen.normalize("i luv u", words_only=True) == "i love you"
    assert noisegen.normalize("", words_only=True) == ""


def test_words_that_learners_add_are_no_noise():
    text = "In the end of the day we are happy, because the people use the car to explain about it"
    assert noisegen.normalize(text, words_only=True) == text


def test_rows_and_batches_are_equal_and_nothing_is_drawn():
    noisy = noisegen.noise(demo_texts()["en"][:150] * 2, "ugc-heavy", id=range(300))
    engine, protect = prepared(["normalize"], "en", "url,mention", "rule")
    texts = [*POSTS, *noisy]
    streams = [Streams(noisegen.noising.noise.id_array(texts, len(texts)), seed) for seed in (0, 1)]
    rows = engine.noise_few(texts, streams[0], protect)
    for each in streams:
        made = engine.noise(
            noisegen.text.buffers.Texts.from_strings(texts).to_arrow(), each, protect
        )
        assert made.noisy.to_pylist() == rows


def test_it_undoes_most_of_the_noise_and_leaves_clean_text():
    clean = demo_texts()["en"]
    noisy = noisegen.noise(clean, "ugc-heavy", seed=3)
    made = noisegen.normalize(noisy, words_only=True)
    left, before = error_counts(clean, made)[1], error_counts(clean, noisy)[1]
    assert left < 0.7 * before
    kept = noisegen.normalize(clean, words_only=True)
    changed = sum(a != b for a, b in zip(clean, kept, strict=True))
    assert changed <= 0.01 * len(clean), [p for p in zip(clean, kept, strict=True) if p[0] != p[1]]


def test_edits_move_spans():
    made = noisegen.normalize("im in london rn", edits=True)
    assert made.text == "I'm in London right now."
    assert made.given == "im in london rn"
    assert made.text[slice(*made.moved(6, 12))] == "London"
    assert [edit.transform for edit in made.edits] == [
        "normalize"
    ] * 3  # a stop joins the last word


def test_own_pairs_and_clean_text_teach_words(tmp_path):
    pairs = tmp_path / "pairs.csv"
    with pairs.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerows([("noisy", "clean"), *[("see dat fnord", "see the Fnord")] * 3])
    assert noisegen.normalize("i c dat fnord", words_only=True, pairs=str(pairs)) == (
        "i see the Fnord"
    )
    clean = tmp_path / "clean.txt"
    clean.write_text("my Zorblaxia is here\nyour Zorblaxia too\nsee the Zorblaxia\nour Zorblaxia\n")
    assert noisegen.normalize("zorblaxxia is here", clean=str(clean)) == "Zorblaxia is here."


def test_clean_text_may_be_shards_or_a_column(tmp_path):
    lines = ["my Zorblaxia is here", "your Zorblaxia too", "see the Zorblaxia", "our Zorblaxia"]
    (tmp_path / "clean.csv").write_text("id,clean\n" + "".join(f"1,{line}\n" for line in lines))
    noisegen.augment(
        tmp_path / "clean.csv", tmp_path / "run", transforms="cont", text_column="clean"
    )
    for clean in ("clean.csv", "run", "run/data"):
        made = noisegen.normalize("zorblaxxia is here", clean=str(tmp_path / clean))
        assert made == "Zorblaxia is here."
    (tmp_path / "other.csv").write_text("id,words\n1,so\n")
    with pytest.raises(SourceError, match="a table with a column clean or text"):
        noisegen.normalize("a", clean=str(tmp_path / "other.csv"))


def test_error_rates_are_of_the_clean_side_as_in_statistics(tmp_path, capfd):
    (tmp_path / "posts.txt").write_text("idk y ur mad, c u tmrw\n")
    manifest = tmp_path / "out" / "manifest.json"
    assert run(["normalize", str(tmp_path / "posts.txt"), "-o", str(manifest.parent), "-q"]) == 0
    assert run(["stats", str(manifest.parent), "--json"]) == 0
    stats = json.loads(capfd.readouterr().out)
    assert stats["cer"] == pytest.approx(
        json.loads(manifest.read_text())["totals"]["cer"], abs=1e-5
    )


def test_long_words_and_rows_stay_cheap():
    long = "abcdefgh" * 200_000
    assert noisegen.normalize(long, words_only=True) == long
    row = "é c u tmrw ppl " * 5_000
    assert noisegen.normalize(row, words_only=True) == "é see you tomorrow people " * 5_000


def test_a_recipe_file_is_one_of_the_files_of_a_run(tmp_path):
    posts, recipe = tmp_path / "posts.txt", tmp_path / "mine.yaml"
    posts.write_text("c u\n")
    recipe.write_text("name: mine\nextends: ugc\n")
    out = tmp_path / "out"
    assert run(["normalize", str(posts), "-o", str(out), "--recipe", str(recipe), "-q"]) == 0
    assert "mine.yaml" in (out / "manifest.json").read_text()
    recipe.write_text("name: mine\nsteps:\n- normalize: {}\n")
    with pytest.raises(UsageError, match="has the step normalize: name a recipe that makes noise"):
        noisegen.normalize("c u", recipe=str(recipe))


def test_wrong_options_are_named():
    with pytest.raises(UsageError, match="no counts of words for language 'zh'; it has ar, "):
        noisegen.normalize("好", "zh")
    with pytest.raises(UsageError, match="words_only is True or False, not 'no'"):
        noisegen.normalize("a", words_only="no")
    with pytest.raises(UsageError, match="no recipe or transform named 'nope'"):
        noisegen.normalize("a", recipe="nope")
    with pytest.raises(noisegen.NoisegenError, match=r"nothing\.csv'?: no such file"):
        noisegen.normalize("a", pairs="nothing.csv")


def test_shards_name_the_given_text_noisy(tmp_path):
    posts = tmp_path / "posts.txt"
    posts.write_text("c u tmrw\nThis is fine.\n")
    assert run(["normalize", str(posts), "-o", str(tmp_path / "out"), "--edits", "-q"]) == 0
    first, second = pq.read_table(tmp_path / "out" / "data").to_pylist()
    assert (first["noisy"], first["clean"]) == ("c u tmrw", "See you tomorrow.")
    edit = first["edits"][0]
    assert first["noisy"][edit["noisy_start"] : edit["noisy_end"]] == "c"
    assert first["clean"][edit["clean_start"] : edit["clean_end"]] == "See"
    assert second["noisy"] == second["clean"] == "This is fine."
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| noisy | the text as given |" in card
    assert "neighbours.parquet | NTREX-128" in card


def test_labels_spans_and_corrections_follow(tmp_path, capsys):
    tagged = tmp_path / "posts.conll"
    tagged.write_text("im\tO\nin\tO\nlondon\tB-LOC\nrn\tO\n\n")
    assert run(["normalize", str(tagged), "-o", "-", "-q", "--words-only"]) == 0
    assert capsys.readouterr().out == "i'm\tO\nin\tO\nlondon\tB-LOC\nright\tO\nnow\tO\n\n"
    posts = tmp_path / "posts.txt"
    posts.write_text("c u\n")
    assert run(["normalize", str(posts), "-o", "-", "--to", "m2", "-q", "--words-only"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        "S c u",
        "A 0 1|||R:normalize|||see|||REQUIRED|||-NONE-|||0",
    ]


def test_a_stop_after_a_phrase_of_pairs_is_no_part_of_it(tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("noisy\tclean\nwhat r u doing rn\tWhat are you doing right now.\n")

    assert noisegen.normalize("im hungry rn", pairs=str(pairs)) == "I'm hungry right now."
