"""Which sentences of which bitext a dictionary is built from."""

import zipfile
from collections import Counter

import pytest
from click.testing import CliRunner

from noisegen import cli
from noisegen.bilingual import bitext_sides
from noisegen.bilingual.bitext_sides import read_sides
from noisegen.errors import SourceError, UsageError

GERMAN, ENGLISH = ["Ja.", "Nein.", "Oft."], ["Yes.", "No.", "Often."]


def write(path, *lines):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(path)


def read(*sources, langs=("de", "en"), columns=None):
    dropped = Counter()
    return read_sides([str(one) for one in sources], langs, columns, dropped), +dropped


@pytest.fixture
def forms(tmp_path):
    """The same pairs in many forms, English first in some."""
    for lang, lines in (("de", GERMAN), ("en", ENGLISH), ("fr", ["Oui.", "Non.", "Souvent."])):
        write(tmp_path / f"lines/talks.{lang}", *lines)
    for lang, lines in (("en", ENGLISH), ("de", GERMAN)):
        write(tmp_path / f"opus/talks.de-en.{lang}", *lines)
        write(tmp_path / f"opus/other.en-fr.{lang.replace('de', 'fr')}", *lines)
    with zipfile.ZipFile(tmp_path / "de-en.txt.zip", "w") as packed:
        for lang in ("de", "en"):
            packed.write(tmp_path / f"opus/talks.de-en.{lang}", f"talks.de-en.{lang}")
    rows = list(zip(ENGLISH, GERMAN, strict=True))
    return [
        f"{tmp_path}/lines/talks.de,{tmp_path}/lines/talks.en",
        f"{tmp_path}/lines/talks.en,{tmp_path}/lines/talks.de",
        tmp_path / "opus/talks.de-en", tmp_path / "opus", tmp_path / "de-en.txt.zip",
        write(tmp_path / "eng-deu.tsv", *map("\t".join, rows)),
        write(tmp_path / "three.csv", "id,fr,en,de", *(f"1,-,{en},{de}" for en, de in rows)),
        "en-de=" + write(tmp_path / "plain.tsv", "source\ttarget", *map("\t".join, rows)),
    ]  # fmt: skip


def test_the_sides_are_those_asked_for_whichever_comes_first(forms):
    for form in forms:
        assert read(form) == ((GERMAN, ENGLISH), {}), form
        assert read(form, langs=("en", "de")) == ((ENGLISH, GERMAN), {}), form


def test_rows_in_other_languages_are_counted(tmp_path):
    head = "source\ttarget\tsource_lang\ttarget_lang"
    rows = ["Ja.\tYes.\tde\ten", "Oui.\tYes.\tfr\ten", "No.\tNein.\teng\tdeu", "\tNo.\tde\ten"]
    path = write(tmp_path / "mixed.tsv", head, *rows)
    assert read(path) == (
        (["Ja.", "Nein."], ["Yes.", "No."]), {"other_language": 1, "empty_side": 1}
    )  # fmt: skip
    with pytest.raises(SourceError, match=r"no pairs of it and en in .*mixed.tsv \(3 other_lang"):
        read(path, langs=("it", "en"))


def test_columns_that_are_given_win_over_what_names_say(tmp_path):
    path = write(tmp_path / "en-fr.tsv", *map("\t".join, zip(ENGLISH, GERMAN, strict=True)))
    assert read(path, columns=("2", "1")) == ((GERMAN, ENGLISH), {})
    with pytest.raises(SourceError, match="no column '3' among: column_1, column_2; bitext"):
        read(path, columns=("1", "3"))
    named = write(tmp_path / "news.csv", "title,german,english", "-,Ja.,Yes.")
    assert read(named, columns=("german", "english")) == ((["Ja."], ["Yes."]), {})


def test_more_rows_than_are_held_are_sampled_over_all_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(bitext_sides, "ROWS_MAX", 10)
    rows = [f"{part} {number}" for part in "ab" for number in range(50)]
    paths = [
        write(tmp_path / f"{part}.de-en.tsv", *(f"{row}\t{row}" for row in rows if part in row))
        for part in "ab"
    ]
    (german, english), dropped = read(*paths)
    assert german == english == rows[::16]
    assert dropped == {"sampled_out": 93}


def test_what_cannot_be_used_is_said_in_one_line(tmp_path):
    path = write(tmp_path / "deu-eng.tsv", "Ja.\tYes.")
    for source, langs, kind, said in [
        (path, ("fr", "en"), SourceError, "deu-eng.tsv is bitext of de-en, not of fr-en"),
        (path, ("de", "deu"), UsageError, "--lang de and --into deu are one language"),
        (f"{tmp_path}/none.tsv", ("de", "en"), SourceError, "no such file"),
        (write(tmp_path / "news.csv", "a,b", "x,y"), ("de", "en"), SourceError, "no column 'de'"),
    ]:
        with pytest.raises(kind) as found:
            read(source, langs=langs)
        assert said in str(found.value)
        assert "\n" not in str(found.value)


def test_the_command_takes_any_bitext(forms, tmp_path):
    outs = []
    for number, form in enumerate(forms):
        outs.append(tmp_path / f"{number}/de-en.tsv")
        outs[-1].parent.mkdir()
        done = CliRunner().invoke(
            cli.noisegen, ["dictionary", "build", str(form), "-o", str(outs[-1]), "--lang", "de",
                           "--into", "en", "--min-count", "1", "-q"],
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        assert "from 3 sentence pairs" in done.output
    assert len({out.read_bytes() for out in outs}) == 1
    assert "Nein\tNo\t1" in outs[0].read_text()
