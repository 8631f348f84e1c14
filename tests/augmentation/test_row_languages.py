"""Rows in several languages: each row gets the noise of its own language."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from runs import DEMO, augment, noisy_of, table

import noisegen
from noisegen.cli import noisegen as program
from noisegen.errors import SourceError, UsageError
from noisegen.runs.manifest import Manifest

TEXTS = {
    "en": "See you tomorrow, because we are going to the new house with my friends.",
    "de": "Ich komme morgen zu dir, weil wir nicht mehr lange warten können.",
    "fr": "Je ne sais pas pourquoi tu es parti hier soir avec tous mes amis.",
    "hi": "मुझे नहीं पता कि वह कल रात क्यों चला गया।",
}
TAGS = ("en", "de-AT", "French", "hin", None, "und", "EN", "deu", "fr_CA", "Hindi")
CODES = ("en", "de", "fr", "hi", None, None, "en", "de", "fr", "hi")


@pytest.fixture
def rows(tmp_path):
    """Rows whose language is written in several ways, two of them without a known one."""
    path = tmp_path / "rows.jsonl"
    made = [
        {"id": number, "text": TEXTS[code or "en"], "lang": tag, "n": 1.5}
        for number, (tag, code) in enumerate(zip(TAGS, CODES, strict=True))
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made))
    return path


def run(*arguments):
    return CliRunner().invoke(program, [str(argument) for argument in arguments])


@pytest.mark.parametrize("options", [{}, {"edits": True, "copies": 2, "recipe": "ugc-heavy"}])
def test_a_row_gets_the_noise_of_a_run_in_its_language(rows, tmp_path, options):
    augment(rows, tmp_path / "out", **options)
    made = table(tmp_path / "out").to_pylist()
    for lang in ("en", "de", "fr", "hi"):
        augment(rows, tmp_path / lang, lang=lang, **options)
        alone = table(tmp_path / lang).to_pylist()
        assert [row for row in made if CODES[row["id"]] == lang] == [
            row for row in alone if CODES[row["id"]] == lang
        ]


def test_a_row_in_no_known_language_stays_clean_and_is_counted(rows, tmp_path):
    done = run("augment", rows, "-o", tmp_path / "out", "--edits")

    unknown = [row for row in table(tmp_path / "out").to_pylist() if row["id"] in (4, 5)]
    assert [(row["noisy"], row["transforms"], row["edits"]) for row in unknown] == [
        (TEXTS["en"], [], [])
    ] * 2
    assert "unknown_language 2" in done.stderr
    assert "column 'lang' has the language of each row" in done.stderr
    named = run("augment", rows, "-o", tmp_path / "named", "--lang-column", "lang")
    assert "has the language of each row" not in named.stderr


def test_a_row_in_a_language_without_data_stays_clean_and_is_counted(rows, tmp_path):
    done = run("augment", rows, "-o", tmp_path / "out", "-t", "abr1:rate=1", "--seed", 7)
    english = noisy_of(tmp_path / "out")
    with pytest.raises(UsageError, match="no data for language 'hi'"):
        augment(rows, tmp_path / "hi", transforms="abr1:rate=1", lang="hi")

    assert english[0] != TEXTS["en"]
    assert english[3] == TEXTS["hi"]
    assert "no_data_for_language" in done.stderr


def test_one_file_keeps_its_lines_and_counts_the_rows_left_as_they_are(rows, tmp_path):
    done = run("augment", rows, "-o", tmp_path / "noisy.jsonl", "--seed", 7, "--spans-lost", "drop")

    before, after = rows.read_text().splitlines(), (tmp_path / "noisy.jsonl").read_text()
    noisy = noisegen.noise(TEXTS["de"], "ugc", seed=7, id=1, lang="de")
    assert after.splitlines()[4:6] == before[4:6]
    assert json.loads(after.splitlines()[1])["text"] == noisy
    assert "left as is: unknown_language 2" in done.stderr


def test_texts_and_spans_of_a_row_follow_its_language(tmp_path):
    made = [
        {"id": n, "a": text, "b": text[:30], "lang": lang, "spans": [[0, 3]]}
        for n, lang in enumerate(["en", "de", "zz-zz", "fr"])
        for text in [TEXTS.get(lang, TEXTS["en"])]
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    options = {"text_column": ["a", "b"], "spans": "spans=a", "recipe": "ugc-heavy"}
    augment(tmp_path / "rows.jsonl", tmp_path / "all.jsonl", **options)
    got = (tmp_path / "all.jsonl").read_text().splitlines()
    for number, lang in ((0, "en"), (1, "de"), (3, "fr")):
        augment(tmp_path / "rows.jsonl", tmp_path / f"{lang}.jsonl", lang=lang, **options)
        assert got[number] == (tmp_path / f"{lang}.jsonl").read_text().splitlines()[number]
    assert json.loads(got[2]) == made[2]


def test_rows_may_lack_a_language_where_others_have_one(tmp_path):
    lines = [f"{TEXTS['de']}\tde", *["See you soon.\t"] * 4]
    (tmp_path / "rows.tsv").write_text("\n".join(["text\tlang", *lines, ""]))
    manifest = augment(tmp_path / "rows.tsv", tmp_path / "out")

    assert manifest.totals["dropped"] == {"unknown_language": 4}
    german = noisegen.noise(TEXTS["de"], "ugc", seed=7, id=0, lang="de")
    assert noisy_of(tmp_path / "out")[0] == german


@pytest.mark.parametrize("options", [{"lang": "en"}, {"lang_column": "none"}])
def test_one_language_for_all_rows_switches_the_column_off(rows, tmp_path, options):
    manifest = augment(rows, tmp_path / "out", **options)

    expected = noisegen.noise(TEXTS["de"], "ugc", seed=7, id=1)
    assert noisy_of(tmp_path / "out")[1] == expected
    assert (manifest.options["lang"], manifest.options["lang_column"]) == ("en", None)


def test_a_column_without_languages_is_no_column_of_languages(tmp_path):
    (tmp_path / "code.csv").write_text("text,lang\nSee you soon.,c++\nSee you there.,python3\n")
    augment(tmp_path / "code.csv", tmp_path / "out")

    assert Manifest.load(tmp_path / "out" / "manifest.json").options["lang"] == "en"


def test_another_column_may_have_the_languages(tmp_path):
    tags = pa.array(["de", "en"]).dictionary_encode()
    rows = pa.table({"text": [TEXTS["de"], TEXTS["en"]], "tongue": tags})
    pq.write_table(rows, tmp_path / "rows.parquet")
    (tmp_path / "rows.tsv").write_text(f"{TEXTS['de']}\tde\n{TEXTS['en']}\ten\n")
    augment(tmp_path / "rows.parquet", tmp_path / "named", lang_column="tongue")
    augment(tmp_path / "rows.tsv", tmp_path / "numbered", text_column="1", lang_column="2")

    german = noisegen.noise(TEXTS["de"], "ugc", seed=7, id=0, lang="de")
    assert noisy_of(tmp_path / "named")[0] == noisy_of(tmp_path / "numbered")[0] == german


def test_a_wrong_column_of_languages_is_refused(rows, tmp_path):
    with pytest.raises(SourceError, match="no column 'langs' among"):
        augment(rows, tmp_path / "out", lang_column="langs")
    with pytest.raises(SourceError, match="'n' holds double, not languages"):
        augment(rows, tmp_path / "out", lang_column="n")
    with pytest.raises(UsageError, match="--lang is for all rows"):
        augment(rows, tmp_path / "out", lang_column="lang", lang="de")


def test_the_manifest_makes_the_same_rows_again(rows, tmp_path):
    augment(rows, tmp_path / "out")
    run("augment", "--from", tmp_path / "out" / "manifest.json", "-o", tmp_path / "again")

    assert table(tmp_path / "again").equals(table(tmp_path / "out"))
    assert "- multilingual" in (tmp_path / "out" / "README.md").read_text()


def test_preview_shows_rows_in_their_languages(rows):
    shown = json.loads(run("preview", rows, "--seed", 7, "--json").stdout)["rows"]

    assert shown[1]["noisy"] == noisegen.noise(TEXTS["de"], "ugc", seed=7, id=1, lang="de")


@pytest.mark.parametrize("first", ["lang=__HIVE_DEFAULT_PARTITION__", "lang=0-unknown"])
def test_the_names_of_all_folders_tell_the_languages(tmp_path, first):
    for name, text in ((first, "see you"), ("lang=de", TEXTS["de"]), ("lang=en", TEXTS["en"])):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "p.jsonl").write_text(json.dumps({"text": text}) + "\n")
    made = augment(tmp_path / "in", tmp_path / "b.jsonl")

    lines = map(json.loads, (tmp_path / "b.jsonl").read_text().splitlines())
    noisy = {line["lang"]: line["text"] for line in lines}
    assert noisy["de"] == noisegen.noise(TEXTS["de"], "ugc", seed=7, id=1, lang="de")
    assert made.totals["as_is"] == {"unknown_language": 1}


def test_the_languages_of_standard_input_are_found(rows):
    done = CliRunner().invoke(
        program, ["augment", "-", "-o", "-", "--seed", "7"], rows.read_bytes()
    )

    german = json.loads(done.stdout.splitlines()[1])["text"]
    assert german == noisegen.noise(TEXTS["de"], "ugc", seed=7, id=1, lang="de")


def test_the_bundled_text_is_noised_in_its_languages(demo, tmp_path):
    manifest = augment(DEMO, tmp_path / "out")

    assert manifest.totals["dropped"] == {}
    number = next(n for n, row in enumerate(demo) if row["lang"] == "es")
    expected = noisegen.noise(demo[number]["text"], "ugc", seed=7, id=number, lang="es")
    assert noisy_of(tmp_path / "out")[number] == expected
