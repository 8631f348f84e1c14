"""Bitext as DATA: English is the clean side, its translations in all languages the noisy one."""

import json
from collections import Counter

import numpy as np
import pytest
from runs import log_rows

import noisegen
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import SourceError, UsageError
from noisegen.text.normalize import social_text
from noisegen.training.pairs import NoiseSource, Reading, open_data, prepare_data
from noisegen.training.settings import load_settings

ENGLISH = [f"The {what} is {how}." for what in ("cat", "house", "tree", "road") for how in "abcde"]


@pytest.fixture
def bitext(tmp_path):
    """English with made translations: 20 rows in German, 20 in Turkish, English first there."""
    folder = tmp_path / "bitext"
    folder.mkdir()
    (folder / "talks.de-en.de").write_text("".join(f"Deutsch: {one}\n" for one in ENGLISH))
    (folder / "talks.de-en.en").write_text("".join(f"{one}\n" for one in ENGLISH))
    rows = [f"{one}\tTürkçe: {one}\n" for one in reversed(ENGLISH)]
    (folder / "eng-tur.tsv").write_text("".join(rows))
    return folder


def _triples(data):
    rows = np.arange(len(data.owner))
    clean = data.clean.take(data.owner[rows]).to_pylist()
    langs = [data.langs[number] for number in data.lang]
    return list(zip(data.noisy.take(rows).to_pylist(), clean, langs, strict=True))


def test_every_translation_belongs_to_its_english_sentence(tmp_path, bitext):
    data = prepare_data(tmp_path / "data", [str(bitext)], Reading(held_out=4))
    wanted = Counter((f"Deutsch: {one}", one, "de") for one in ENGLISH)
    wanted.update((f"Türkçe: {one}", one, "tr") for one in ENGLISH)
    assert Counter(_triples(data)) == wanted
    assert len(data.clean) == len(ENGLISH)
    assert not {*data.owner[data.training]} & {*data.owner[data.validation]}
    assert _triples(open_data(tmp_path / "data")) == _triples(data)


def test_bitext_and_noisy_pairs_go_together(tmp_path, bitext):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("clean\tnoisy\nGood day.\tgd day\n")
    data = prepare_data(tmp_path / "data", [str(bitext), str(pairs)], Reading(most=3, held_out=4))
    found = Counter(lang for _, _, lang in _triples(data))
    assert found == {"de": 3, "tr": 3, "en": 1}
    assert ("gd day", "Good day.", "en") in _triples(data)


def test_the_teachers_language_may_be_another(tmp_path, bitext):
    found = Reading(lang="de").pairs([f"{bitext}/talks.de-en"], Counter())
    assert next(found) == (ENGLISH[0], f"Deutsch: {ENGLISH[0]}", "en")
    with pytest.raises(SourceError, match=r"is in en and tr; .* teacher's language, de"):
        list(Reading(lang="de").pairs([str(bitext)], Counter()))


def test_rows_of_a_mixed_table_without_the_teachers_language_are_counted(tmp_path):
    path = tmp_path / "any.csv"
    head = "source,target,source_lang,target_lang,dataset"
    path.write_text(f"{head}\nJa,Oui,de,fr,x\nJa,Yes,de,en,x\n")
    dropped = Counter()
    assert list(Reading().pairs([str(path)], dropped)) == [("Ja", "Yes", "de")]
    assert dropped == {"no_en": 1}


@pytest.mark.filterwarnings("ignore:.* leaves out")
@pytest.mark.parametrize("recipe", ["ugc-heavy", "caps", "fing:rate=0.3"])
def test_noise_of_a_translation_is_that_of_the_library_in_its_language(tmp_path, bitext, recipe):
    data = prepare_data(tmp_path / "data", [str(bitext)], Reading(held_out=4))
    rows = np.random.default_rng(0).permutation(len(data.owner))
    triples = _triples(data)
    expected = [
        noisegen.noise(triples[row][0], recipe, seed=3, id=int(row), lang=triples[row][2])
        for row in rows
    ]
    assert NoiseSource(f"stored:{recipe}", seed=3).noisy(data, rows, 0) == expected
    assert expected != [triples[row][0] for row in rows]


def test_each_row_draws_translation_noised_translation_or_noised_english(tmp_path, bitext):
    data = prepare_data(tmp_path / "data", [str(bitext)], Reading(held_out=4))
    rows = np.arange(len(data.owner))
    alone = {
        name: NoiseSource(name, seed=1).noisy(data, rows, 0)
        for name in ("stored", "stored:fing:rate=0.5", "fing:rate=0.5")
    }
    found = NoiseSource("+".join(alone), seed=1).noisy(data, rows, 0)
    drawn = Counter(
        next(name for name in alone if alone[name][row] == text) for row, text in enumerate(found)
    )
    assert len(drawn) == 3
    assert NoiseSource("stored:ugc").is_stored
    assert not NoiseSource("ugc").is_stored
    with pytest.raises(UsageError, match="'ugcc'; did you mean 'ugc'"):
        NoiseSource("stored+stored:ugcc")


def test_rows_of_bitext_that_cannot_be_read_are_counted(tmp_path, bitext, tiny_models):
    with (bitext / "talks.de-en.de").open("ab") as file:
        file.write(b"M\xe4rz\n\n")
    with (bitext / "talks.de-en.en").open("ab") as file:
        file.write(b"March\nno German\n")
    values = {
        "teacher": str(tiny_models(32, 0)),
        "student": str(tiny_models(32, 1)),
        "epochs": None,
        "steps": 1,
        "precision": "fp32",
        "batch_tokens": 512,
    }
    told = []
    run = tmp_path / "run"
    noisegen.train([str(bitext)], run, "ct", values=values, force_small=True, tell=told.append)
    found = json.loads((run / "metrics.json").read_text())
    assert found["dropped"] == {"unreadable": 1, "empty_side": 1}
    assert "; dropped 1 unreadable, 1 empty_side" in told[0]


def test_rows_of_bitext_that_are_all_lost_are_named_in_the_error(tmp_path):
    (tmp_path / "x.de").write_bytes(b"M\xe4rz\n" * 40 + b"\n" * 3)
    (tmp_path / "x.en").write_text("March\n" * 43)
    with pytest.raises(SourceError, match=r"no pairs .* \(40 unreadable, 3 empty_side\)$"):
        prepare_data(tmp_path / "data", [f"{tmp_path}/x.de,{tmp_path}/x.en"], Reading(held_out=4))


def test_the_preset_has_the_settings_of_the_paper():
    found = load_settings("ct")
    assert (found.objective, found.batch_pairs) == ("two_term:mean", 64)
    assert (found.lr, found.warmup, found.epochs, found.eps) == (2e-5, 20_000, 20, 1e-6)
    assert (found.max_length, found.bitext_rows, found.prepare) == (128, 500_000, "social")
    assert (found.batch_tokens, found.weight_decay, found.clip) == (64 * 128, 0.01, 1.0)
    assert (found.student, found.teacher, found.recipe) == ("e5", "minilm", "stored")


def test_an_update_has_64_pairs(tmp_path, tiny_models):
    """However long the texts are; only the pairs at the end of an epoch are fewer."""
    lines = [f"one {'two ' * (row % 40)}{row}" for row in range(170)]
    (tmp_path / "x.de").write_text("\n".join(lines))
    (tmp_path / "x.en").write_text("\n".join(lines))
    values = {"teacher": str(tiny_models(32, 0)), "student": str(tiny_models(32, 1)), "epochs": 2}
    values |= {"precision": "fp32", "validation_rows": 10, "batch_tokens": 512, "warmup": 1}
    noisegen.train(
        [f"{tmp_path}/x.de,{tmp_path}/x.en"], tmp_path / "run", preset="ct", values=values
    )
    found = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert found["training_pairs"] == 160
    assert (found["updates"], found["pairs"]) == (6, 320)  # twice 64, 64, 32
    assert next(row["pairs"] for row in log_rows(tmp_path / "run") if "pairs" in row) == 64
    few = {**values, "batch_pairs": 2, "accumulate": 3}
    source = f"{tmp_path}/x.de,{tmp_path}/x.en"
    with pytest.raises(UsageError, match="batch_pairs 2 is less than the 3 batches"):
        noisegen.train([source], tmp_path / "few", preset="ct", values=few)


def test_the_last_weights_are_kept_if_they_are_asked_for(tmp_path, bitext, tiny_models):
    values = {"teacher": str(tiny_models(32, 0)), "student": str(tiny_models(32, 1)), "steps": 8}
    values |= {"epochs": None, "precision": "fp32", "validation_rows": 4, "validate_every": 2}
    values |= {"lr": 0.3, "warmup": 0}  # so high that training makes it worse
    losses = {}
    for select_by in (None, "last"):
        out = tmp_path / str(select_by)
        settings = values | {"select_by": select_by}
        noisegen.train([str(bitext)], out, preset="ct", values=settings, force_small=True)
        found = json.loads((out / "metrics.json").read_text())
        curve = [loss for _, loss in found["curve"]]
        losses[select_by] = found["validation"]["loss"], min(curve), curve[-1]
    best, last = losses[None], losses["last"]
    assert best[0] == best[1] < last[0] == last[2]


def test_bitext_trains_a_student_in_one_command(tmp_path, bitext, tiny_models):
    teacher, student = tiny_models(32, 0), tiny_models(32, 1)
    values = {
        "teacher": str(teacher),
        "student": str(student),
        "epochs": None,
        "steps": 30,
        "lr": 3e-3,
        "warmup": 3,
        "batch_pairs": 8,
        "validation_rows": 8,
        "validate_every": 10,
        "precision": "fp32",
        "batch_tokens": 512,
        "dropout": 0.0,
    }
    noisegen.train([str(bitext)], tmp_path / "run", preset="ct", values=values, force_small=True)
    rows = log_rows(tmp_path / "run")
    losses = [row["validation_loss"] for row in rows if "validation_loss" in row]
    assert losses[-1] < 0.7 * losses[0]
    card = (tmp_path / "run" / "student" / "README.md").read_text()
    assert "noisegen.text.normalize.social_text" in card
    made = open_encoder(str(tmp_path / "run" / "student"))
    posts = ["@ann see https://t.co/x 🔥"]
    plain = [social_text(post) for post in posts]
    np.testing.assert_allclose(made.encode(posts), made.encode(plain), atol=1e-6)
