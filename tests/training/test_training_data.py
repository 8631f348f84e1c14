"""Data of a batch: texts, the noise of each epoch, hard negatives."""

import io
import json
from collections import Counter

import numpy as np
import pytest
from text_stores import write_texts

import noisegen
from noisegen.cli import run as command
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import NoisegenError, OutputError, SourceError, UsageError
from noisegen.evaluation.negatives import hard_negatives
from noisegen.training.computation import Workers
from noisegen.training.pairs import NoiseSource, Reading, prepare_data, read_pairs
from noisegen.training.stores import (
    Negatives,
    TeacherVectors,
    open_hard_texts,
    teacher_vectors,
    write_hard_texts,
)


@pytest.fixture
def data(tmp_path, pairs_file):
    return prepare_data(tmp_path / "data", [str(pairs_file)], Reading(held_out=20))


def test_clean_text_is_enough_for_noise_on_the_fly(tmp_path, sentences):
    news, table = tmp_path / "news.txt", tmp_path / "table.tsv"
    news.write_text("\n".join([*sentences[:50], "", "  "]) + "\n")
    table.write_text("\n".join(["n\ttext", *(f"1\t{text}" for text in sentences[50:60])]) + "\n")

    data = prepare_data(
        tmp_path / "data", [str(news), str(table)], Reading(clean_only=True, held_out=5)
    )

    assert data.clean.take(np.arange(60)).to_pylist() == sentences[:60]
    assert data.noisy.take(np.arange(60)).to_pylist() == sentences[:60]
    assert len(data.training) + len(data.validation) == 60


def test_clean_text_of_several_languages_gets_the_noise_of_each(tmp_path, sentences):
    german = [f"Ich habe heute {n} Minuten nicht gewartet" for n in range(20)]
    for name, texts in (("news", sentences[:20]), ("nachrichten", german)):
        (tmp_path / f"{name}.txt").write_text("\n".join(texts) + "\n", "utf-8")
    sources = [str(tmp_path / "news.txt"), f"de={tmp_path / 'nachrichten.txt'}"]

    data = prepare_data(tmp_path / "data", sources, Reading(clean_only=True, held_out=5))
    noisy = NoiseSource("ugc-heavy", seed=3).noisy(data, np.arange(40), 0)

    assert [data.langs[number] for number in data.lang.tolist()] == ["en"] * 20 + ["de"] * 20
    assert noisy == [
        noisegen.noise(text, "ugc-heavy", seed=3, id=row, lang="de" if row >= 20 else "en")
        for row, text in enumerate([*sentences[:20], *german])
    ]
    assert noisy[20:] != german
    with pytest.raises(UsageError, match="unknown language 'nachrichten'"):
        prepare_data(tmp_path / "other", [f"nachrichten={sources[1][3:]}"], Reading(True))


def test_a_language_is_for_clean_text(tmp_path, pairs_file):
    (tmp_path / "deu-eng.tsv").write_text("Ein Haus.\tA house.\n" * 3)
    for source, is_clean in ((f"de={pairs_file}", False), (f"de={tmp_path}/deu-eng.tsv", True)):
        with pytest.raises(UsageError, match="LANG=SOURCE is for clean text"):
            prepare_data(tmp_path / "data", [source], Reading(is_clean))


def test_text_without_a_column_to_read_is_one_clear_line(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("title\tbody\na\tb\n")
    with pytest.raises(SourceError, match="no column 'clean' among: title, body"):
        prepare_data(tmp_path / "data", [str(path)], Reading(clean_only=True, held_out=5))


def test_clean_text_is_read_from_the_column_that_the_user_names(tmp_path, sentences):
    path = tmp_path / "table.tsv"
    path.write_text("\n".join(["text\tbody", *(f"no\t{text}" for text in sentences[:20])]) + "\n")
    reading = Reading(clean_only=True, held_out=5, text_column="body")

    data = prepare_data(tmp_path / "data", [str(path)], reading)

    assert data.clean.take(np.arange(20)).to_pylist() == sentences[:20]
    with pytest.raises(UsageError, match="--text-column names clean text, but DATA is pairs"):
        Reading(text_column="body")


def _pairs(path, *rows):
    path.write_text("\n".join(["clean\tnoisy", *rows]) + "\n")
    return str(path)


def test_what_is_dropped_and_cut_is_counted_and_said(tmp_path, sentences):
    rows = [f"{text}\t{text[1:]}" for text in sentences[:40]]
    path = _pairs(tmp_path / "pairs.tsv", *rows, "\tx", " \ty", "z\t", f"long\t{'ab ' * 9_000}")
    data = prepare_data(tmp_path / "data", [path], Reading(held_out=5))

    assert (data.dropped, data.cut) == ({"empty_side": 3}, 1)
    assert data.summary == (
        f"{len(data.training)} pairs to train on, {len(data.validation)} held out; "
        "dropped 3 empty_side; 1 cut to 20,000 characters"
    )
    assert max(map(len, data.noisy.take(np.arange(41)).to_pylist())) == 20_000
    again = prepare_data(tmp_path / "more", [str(path)], Reading(held_out=5))
    assert (again.dropped, again.cut) == (data.dropped, data.cut)


def test_a_run_prints_what_was_dropped_and_metrics_have_it(tmp_path, tiny_bert, sentences, capsys):
    path = _pairs(tmp_path / "pairs.tsv", *(f"{text}\t{text}" for text in sentences[:40]), "x\t")
    out = tmp_path / "run"
    given = [
        "train",
        path,
        "-o",
        str(out),
        "--teacher",
        str(tiny_bert),
        "--recipe",
        "stored",
        "--steps",
        "1",
        "--set",
        "precision=fp32",
        "--force-small",
    ]
    assert command(given) == 0
    said = capsys.readouterr()
    assert "were seen (80.6%); dropped 1 empty_side\n" in said.out
    assert "4 held out; dropped 1 empty_side" in said.err
    found = json.loads((out / "metrics.json").read_text())
    assert (found["dropped"], found["cut"]) == ({"empty_side": 1}, 0)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["\tx", "y\t"], r"no pairs to train on in .*pairs\.tsv \(2 empty_side\)$"),
        (
            ["a\tb", "y\t"],
            r"0 pairs to train on and 1 to validate: give more data \(1 empty_side\)$",
        ),
        ([f"same\tx{n}" for n in range(40)], "all 40 pairs have the same clean text"),
    ],
)
def test_too_little_data_says_why(tmp_path, rows, said):
    path = _pairs(tmp_path / "pairs.tsv", *rows)
    folder = tmp_path / "data"
    with pytest.raises(SourceError, match=said):
        read_pairs(folder, [path], Reading(held_out=5), Workers(), resume=False)


@pytest.mark.parametrize("lines", [["before\tafter", "a\tb"], ["just text", "and more"]])
def test_advice_about_pairs_names_no_option_that_train_lacks(tmp_path, lines):
    path = tmp_path / ("table.tsv" if "\t" in lines[0] else "text.txt")
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(
        SourceError, match=r"columns noisy and clean; .* such as --recipe ugc"
    ) as told:
        prepare_data(tmp_path / "data", [str(path)], Reading(held_out=5))
    assert "-column" not in str(told.value)
    assert "-file" not in str(told.value)


def test_a_damaged_row_of_pairs_is_refused_with_what_to_do(tmp_path):
    path = _pairs(tmp_path / "pairs.tsv", "a\tb", "c\td\te")
    with pytest.raises(SourceError, match="1 rows wrong_columns: fix the file, or drop these rows"):
        prepare_data(tmp_path / "data", [path], Reading(held_out=5))


def test_each_row_draws_one_of_several_noises_in_every_epoch(data):
    rows = np.arange(len(data.owner))
    clean = data.clean.take(data.owner).to_pylist()
    mixed = NoiseSource("stored+fing:rate=0.2 + caps", seed=3)
    alone = {
        name: NoiseSource(name, seed=3).noisy(data, rows, 1)
        for name in ("stored", "fing:rate=0.2", "caps")
    }

    found = mixed.noisy(data, rows, 1)
    changed = {
        name: sum(text != before for text, before in zip(side, clean, strict=True))
        for name, side in alone.items()
    }
    own = Counter(
        name
        for row, text in enumerate(found)
        for name in alone
        if text == alone[name][row] and text != clean[row]
    )

    assert all(text in {side[row] for side in alone.values()} for row, text in enumerate(found))
    assert all(own[name] > changed[name] / 3 * 0.75 > 40 for name in alone)
    assert mixed.noisy(data, rows, 1) == found != mixed.noisy(data, rows, 2)
    assert mixed.noisy(data, rows[5:9], 1) == found[5:9]


def test_noise_of_a_row_is_that_of_the_library(data):
    rows, clean = np.arange(30), data.clean.take(data.owner[:30]).to_pylist()
    expected = [noisegen.noise(text, "caps", seed=3, id=row) for row, text in enumerate(clean)]
    assert NoiseSource("caps", seed=3).noisy(data, rows, 0) == expected


def test_an_unknown_noise_is_named():
    with pytest.raises(UsageError, match="'ugcc'; did you mean 'ugc'"):
        NoiseSource("stored+ugcc")


TEXTS = [
    "It cost 1,200 dollars in May 2014.",
    "Anna moved to Lisbon with Peter.",
    "so",
    "The roads are safe and the old house is not sold.",
    "Three trains leave at 7:45.",
]


def test_hard_negatives_are_kept_by_text(tmp_path):
    clean = write_texts(tmp_path, "clean", TEXTS)
    write_hard_texts(tmp_path, clean, 2, 0, "en")
    texts, rows = open_hard_texts(tmp_path, len(TEXTS))

    possible = hard_negatives(TEXTS, per_kind=2, parse=False)
    for row in range(len(TEXTS)):
        found = texts.take(np.arange(rows[row], rows[row + 1])).to_pylist()
        of_row = [t for t, s in zip(possible.texts, possible.sources, strict=True) if s == row]
        assert set(found) <= set(of_row)
        assert len(found) == min(2, len(of_row))
    assert rows[2] == rows[3]


def test_a_batch_gets_random_vectors_and_those_hard_for_it(tmp_path):
    clean = write_texts(tmp_path, "clean", TEXTS)
    write_hard_texts(tmp_path, clean, 1, 0, "en")
    texts, rows = open_hard_texts(tmp_path, len(TEXTS))
    numbers = np.arange(len(texts), dtype=np.float16)[:, None]
    some = TeacherVectors([np.arange(100, 105, dtype=np.float16)[:, None]])
    negatives = Negatives(some, 3, 7, TeacherVectors([numbers]), rows)

    found = negatives.take(np.array([4, 0, 4]), 11, 0)

    assert found.shape == (5, 1)
    assert (found[:3] >= 100).all()
    assert sorted(found[3:, 0]) == [rows[0], rows[4]]
    assert (negatives.take(np.array([4, 0, 4]), 11, 0) == found).all()
    assert any((negatives.take(np.array([4]), step, 0)[:3] != found[:3]).any() for step in range(9))


def test_a_run_learns_with_hard_negatives(tmp_path, tiny_bert, sentences):
    path = tmp_path / "clean.txt"
    path.write_text("\n".join(sentences[:120]) + "\n")
    values = {
        "teacher": str(tiny_bert),
        "recipe": "stored+fing",
        "objective": "mse_sum+0.2*info_nce",
        "hard_negatives": 1,
        "steps": 2,
        "batch_tokens": 256,
        "precision": "fp32",
    }
    with pytest.raises(SourceError, match="noisy"):
        noisegen.train([str(path)], tmp_path / "run", values=values)
    told = []
    noisegen.train(
        [str(path)],
        tmp_path / "run",
        values=values | {"recipe": "fing"},
        force=True,
        progress=told.append,
    )
    assert "vectors of hard negatives" in {event.doing for event in told}


def test_hard_negatives_without_a_contrast_are_refused(tmp_path, tiny_bert, pairs_file):
    values = {"teacher": str(tiny_bert), "hard_negatives": 1, "objective": "two_term", "steps": 1}
    with pytest.raises(UsageError, match=r"add \+0\.2\*info_nce to two_term"):
        noisegen.train([str(pairs_file)], tmp_path / "run", values=values)
    assert not (tmp_path / "run").exists()


def test_a_teacher_of_zeros_is_refused(tmp_path, tiny_bert):
    teacher = open_encoder(str(tiny_bert))
    teacher.encode = lambda texts: np.zeros((len(texts), 32), np.float32)
    with pytest.raises(NoisegenError, match="a zero vector"):
        teacher_vectors(teacher, write_texts(tmp_path, "clean", TEXTS), tmp_path / "cache")


def npy(array):
    """Return an array as the content of a file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


VECTORS = np.ones((len(TEXTS), 32), np.float16)
ONE = np.eye(len(TEXTS), 1, -1, dtype=np.float16)  # marks one text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no vectors",
        npy(VECTORS)[:-9],
        npy(VECTORS[1:]),
        npy(VECTORS.astype(np.float32)),
        npy(VECTORS - ONE),
        npy(np.where(ONE, np.nan, VECTORS)),
        npy(np.where(ONE, np.inf, VECTORS)),
    ],
    ids=["empty", "text", "cut", "a row less", "float32", "zero", "nan", "inf"],
)
def test_damaged_vectors_in_the_cache_are_computed_again(tmp_path, tiny_bert, content):
    teacher, texts = open_encoder(str(tiny_bert)), write_texts(tmp_path, "clean", TEXTS)
    rows = np.arange(len(texts))
    wanted = teacher_vectors(teacher, texts, tmp_path / "cache").take(rows)
    (path,) = (tmp_path / "cache").rglob("*.npy")
    path.write_bytes(content)

    assert (teacher_vectors(teacher, texts, tmp_path / "cache").take(rows) == wanted).all()


def test_a_cache_that_cannot_be_written_names_the_way_out(tmp_path, tiny_bert):
    teacher, texts = open_encoder(str(tiny_bert)), write_texts(tmp_path, "clean", TEXTS)
    (tmp_path / "file").touch()
    teacher_vectors(teacher, texts, tmp_path / "cache")
    (path,) = (tmp_path / "cache").rglob("*.npy")
    path.unlink()
    path.mkdir()

    for cache in ("file", "cache"):
        with pytest.raises(OutputError, match=r"^cannot write .*; set NOISEGEN_CACHE to another"):
            teacher_vectors(teacher, texts, tmp_path / cache)
