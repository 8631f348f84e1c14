"""Bitext: which files belong together, and the rows that they hold."""

import bz2
import gzip
import json
import random
import zipfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SHARED

from noisegen.data.bitext import (
    SIDES,
    TEXT_MAX,
    Bitext,
    BitextRow,
    all_bitext,
    find_bitext,
    stream_bitext,
)
from noisegen.errors import NoisegenError, SourceError, UsageError

GERMAN = ["Die Katze schläft.", "Guten Morgen!", "Ich habe keine Zeit.", "Wo ist der Bahnhof?"]
ENGLISH = ["The cat is asleep.", "Good morning!", "I have no time.", "Where is the station?"]
ROWS = [BitextRow(de, en, "de", "en", "talks") for de, en in zip(GERMAN, ENGLISH, strict=True)]


def _write(path: Path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines).encode()
    packed = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
    path.write_bytes(packed(text))
    return path


def _rows(source, most=None):
    dropped = Counter()
    return list(stream_bitext(find_bitext(str(source)), dropped, most)), dropped


def _forms(folder: Path):
    """The same rows in every form that is read, by name."""
    _write(folder / "two/talks.de", GERMAN)
    _write(folder / "two/talks.en", ENGLISH)
    _write(folder / "moses/talks.de-en.de.gz", GERMAN)
    _write(folder / "moses/talks.de-en.en.gz", ENGLISH)
    table = [f"{de}\t{en}" for de, en in zip(GERMAN, ENGLISH, strict=True)]
    _write(folder / "talks.deu-eng.tsv.bz2", table)
    _write(folder / "talks.tsv", ["de\ten", *table])
    _write(
        folder / "talks.de-en.csv", ["source,target", *(row.replace("\t", ",") for row in table)]
    )
    lines = [{"de": de, "en": en} for de, en in zip(GERMAN, ENGLISH, strict=True)]
    _write(folder / "talks.jsonl", [json.dumps(line) for line in lines])
    columns = [list(column) for column in zip(*ROWS, strict=True)]
    pq.write_table(pa.table(columns, BitextRow._fields), folder / "any.parquet")
    with zipfile.ZipFile(folder / "de-en.txt.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(folder / "two/talks.de", "talks.de-en.de")
        packed.write(folder / "two/talks.en", "talks.de-en.en")
        packed.writestr("README", "No bitext.\n")
    return {
        "two files": f"{folder}/two/talks.de,{folder}/two/talks.en",
        "prefix": f"{folder}/moses/talks.de-en",
        "prefix without pair": f"{folder}/two/talks",
        "OPUS folder": f"{folder}/moses",
        "OPUS archive": f"{folder}/de-en.txt.zip",
        "TSV without header": f"{folder}/talks.deu-eng.tsv.bz2",
        "TSV with languages": f"{folder}/talks.tsv",
        "CSV": f"{folder}/talks.de-en.csv",
        "JSON lines": f"{folder}/talks.jsonl",
        "Parquet": f"{folder}/any.parquet",
        "languages given": f"de-en={folder}/two/talks.de,{folder}/two/talks.en",
    }


FORMS = (
    "two files",
    "prefix",
    "prefix without pair",
    "OPUS folder",
    "OPUS archive",
    "TSV without header",
    "TSV with languages",
    "CSV",
    "JSON lines",
    "Parquet",
    "languages given",
)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_same_rows(tmp_path, form):
    forms = _forms(tmp_path)
    assert set(forms) == set(FORMS)
    rows, dropped = _rows(forms[form])
    assert rows == ROWS
    assert not dropped.total()


def test_a_folder_has_all_that_lies_in_it(tmp_path):
    _forms(tmp_path)
    _write(tmp_path / "notes.txt", ["no bitext"])
    assert len(_rows(tmp_path)[0]) == 7 * len(ROWS)  # the names of two/ have no pair


def _plainly(german, english, most):
    """The obvious reader of two lists of lines."""
    rows, lost = [], Counter()
    for source, target in zip(german, english, strict=True):
        if most is not None and len(rows) == most:
            break
        if not source.strip() or not target.strip():
            lost["empty_side"] += 1
        elif max(len(source), len(target)) > TEXT_MAX:
            lost["too_long"] += 1
        else:
            rows.append(BitextRow(source.strip(), target.strip(), "de", "en", "c"))
    return rows, lost


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_files_of_lines_are_read_as_the_obvious_reader_does(tmp_path, ending):
    draw = random.Random(3)
    kinds = [
        "",
        "  ",
        "ein Satz",
        " Rand ",
        "\u2028 in einer Zeile",
        "x" * (TEXT_MAX + 1),
        "\tTab",
        "日本",
    ]
    for case in range(40):
        sides = [[draw.choice(kinds) for _ in range(draw.randrange(30))] for _ in range(2)]
        length = min(map(len, sides))
        german, english = (side[:length] for side in sides)
        _write(tmp_path / f"c.de-en.de{ending}", german)
        _write(tmp_path / f"c.de-en.en{ending}", english)
        most = draw.choice([None, 1, 5])
        rows, dropped = _rows(tmp_path / "c.de-en", most)
        assert (rows, +dropped) == _plainly(german, english, most), case


def test_carriage_returns_and_a_byte_order_mark_are_no_text(tmp_path):
    (tmp_path / "a.de").write_bytes("\ufeffJa\r\nNein".encode())
    (tmp_path / "a.en").write_bytes(b"Yes\nNo\n")
    rows, _ = _rows(f"{tmp_path}/a.de,{tmp_path}/a.en")
    assert [row[:2] for row in rows] == [("Ja", "Yes"), ("Nein", "No")]


def test_lines_that_are_no_utf8_are_left_out_and_counted(tmp_path):
    (tmp_path / "a.de").write_bytes(b"Ja\nN\xffin\nOft\n")
    (tmp_path / "a.en").write_bytes(b"Yes\nNo\nOften\n")
    rows, dropped = _rows(f"{tmp_path}/a.de,{tmp_path}/a.en")
    assert [row.target for row in rows] == ["Yes", "Often"]
    assert dropped == {"unreadable": 1}


@pytest.mark.parametrize("short", ["de", "en"])
def test_a_file_shorter_than_its_twin_is_an_error_with_both_counts(tmp_path, short):
    other = {"de": "en", "en": "de"}[short]
    _write(tmp_path / f"a.{short}", ["x"] * 1_234)
    _write(tmp_path / f"a.{other}", ["x"] * 5_678)
    with pytest.raises(SourceError, match=rf"a\.{short} (has )?1,234") as found:
        _rows(f"{tmp_path}/a.de,{tmp_path}/a.en")
    assert "5,678" in str(found.value)


def test_a_limit_holds_for_each_language_pair_of_each_data_set(tmp_path):
    for name in ("one.de-en", "two.de-en", "one.fr-en"):
        for lang in name[-5:].split("-"):
            _write(tmp_path / f"{name}.{lang}", [f"{name} {row}" for row in range(9)])
    rows, dropped = _rows(tmp_path, 4)
    kinds = Counter(row[2:] for row in rows)
    assert kinds == {("de", "en", "one"): 4, ("de", "en", "two"): 4, ("fr", "en", "one"): 4}
    assert not dropped.total()


def test_rows_of_a_mixed_table_say_their_languages_and_are_limited_each(tmp_path):
    rows = [
        BitextRow(f"s{row}", f"t{row}", lang, "eng", name)
        for row in range(6)
        for lang in ("deu", "tr")
        for name in ("a", "b")
    ]
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], BitextRow._fields)
    pq.write_table(table, tmp_path / "x.parquet")
    read, dropped = _rows(tmp_path / "x.parquet", 2)
    assert Counter(row[2:] for row in read) == {
        (lang, "en", name): 2 for lang in ("de", "tr") for name in ("a", "b")
    }
    assert dropped == {"over_limit": 16}


def test_a_table_may_say_languages_alone(tmp_path):
    head = "target,source_lang,source,target_lang"
    path = _write(tmp_path / "all.csv", [head, "Yes,deu,Ja,eng", "No,tr,Hayır,en"])
    assert _rows(path)[0] == [
        BitextRow("Ja", "Yes", "de", "en", "all"),
        BitextRow("Hayır", "No", "tr", "en", "all"),
    ]
    path = _write(tmp_path / "ids.csv", ["id,en,de", "1,Yes,Ja"])
    assert _rows(path)[0] == [BitextRow("Yes", "Ja", "en", "de", "ids")]
    path = _write(tmp_path / "words.csv", ["id,en", "Ya,Yes"])
    assert _rows(path)[0] == [BitextRow("Ya", "Yes", "id", "en", "words")]


def test_rows_of_a_table_that_cannot_be_used_are_counted(tmp_path):
    path = _write(tmp_path / "de-en.tsv", ["Ja\tYes", "Nein\t", "\tOften", "a\tb\tc", "Gut\tGood"])
    rows, dropped = _rows(path)
    assert [row.target for row in rows] == ["Yes", "Good"]
    assert +dropped == {"empty_side": 2, "unreadable": 1}


@pytest.mark.parametrize("form", ["gz", "tsv", "zip"])
def test_damage_is_an_error(tmp_path, form):
    lines = [f"{row} {row * 7919 % 1000}" for row in range(20_000)]
    if form == "tsv":
        source = _write(tmp_path / "de-en.tsv.gz", [f"{line}\t{line}" for line in lines])
        source.write_bytes(source.read_bytes()[:-5_000])
    elif form == "gz":
        source = f"{_write(tmp_path / 'a.de.gz', lines)},{_write(tmp_path / 'a.en', lines)}"
        (tmp_path / "a.de.gz").write_bytes((tmp_path / "a.de.gz").read_bytes()[:-5_000])
    else:
        source = tmp_path / "a.zip"
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as packed:
            for lang in ("de", "en"):
                packed.writestr(f"a.de-en.{lang}", "\n".join(lines))
        data = bytearray(source.read_bytes())
        data[4_000:4_100] = bytes(100)
        source.write_bytes(data)
    with pytest.raises(SourceError, match=r"damaged|cannot read"):
        _rows(source)


def test_an_archive_that_would_grow_without_bound_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for lang in ("de", "en"):
            packed.writestr(f"a.de-en.{lang}", b"\n" * 40_000_000)
    with pytest.raises(SourceError, match="would grow to 40,000,000 bytes"):
        _rows(tmp_path / "a.zip")


def test_archives_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK no archive")
    with pytest.raises(SourceError, match="cannot read"):
        find_bitext(str(tmp_path / "a.zip"))
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        packed.writestr("README", "nothing")
    with pytest.raises(SourceError, match="has no bitext"):
        find_bitext(str(tmp_path / "b.zip"))


def test_what_is_missing_or_unnamed_is_said_in_one_line(tmp_path):
    here = _write(tmp_path / "a.de", ["x"])
    _write(tmp_path / "o/a.de-en.de", ["x"])
    _write(tmp_path / "first.txt", ["x"])
    _write(tmp_path / "second.txt", ["x"])
    _write(tmp_path / "t.tsv", ["source\ttarget", "x\ty"])
    for k, lang in enumerate(("de", "en", "fr")):
        _write(tmp_path / f"many.{lang}", ["x"] * k)
    for source, kind, said in [
        (f"{here},{tmp_path}/none.en", SourceError, "none.en': no such file"),
        (f"{tmp_path}/o", SourceError, "a.de-en.en is missing"),
        (f"{tmp_path}/first.txt,{tmp_path}/second.txt", UsageError, "no languages in these names"),
        (f"{tmp_path}/t.tsv", UsageError, "no languages in its name or columns"),
        (f"{tmp_path}/many", SourceError, "many.de, many.en, many.fr"),
        (f"de-en={tmp_path}/second.txt", SourceError, "is not bitext"),
        (f"de-en={tmp_path}/none.tsv", SourceError, "none.tsv': no such file"),
    ]:
        with pytest.raises(kind) as found:
            find_bitext(source)
        assert said in str(found.value), source
        assert isinstance(found.value, NoisegenError)
        assert "\n" not in str(found.value)


def test_what_is_no_bitext_is_left_to_others(tmp_path):
    for path, lines in [
        (tmp_path / "de-en.txt", ["x"]),
        (tmp_path / "pairs.de-en.tsv", ["clean\tnoisy", "x\ty"]),
        (tmp_path / "news.tsv", ["id\ttitle", "x\ty"]),
        (tmp_path / "keys.tsv", ["id\turl\tde", "x\ty\tz"]),
        (tmp_path / "en-de.tsv", ["text\tn", "x\ty"]),
        (tmp_path / "en-fr.tsv", ["de\ten\tfr", "x\ty\tz"]),
        (tmp_path / "run/manifest.json", ["{}"]),
    ]:
        _write(path, lines)
        assert find_bitext(str(path.parent if path.name == "manifest.json" else path)) == []
    assert find_bitext("hf:any/set") == find_bitext("-") == find_bitext("no-such-file") == []
    with pytest.raises(SourceError, match="is not bitext"):
        all_bitext([str(tmp_path / "news.tsv")])


def test_languages_may_be_given_for_all_sources_but_those_that_begin_with_them(tmp_path):
    path = str(_write(tmp_path / "deu-eng.tsv", ["source\ttarget", "Sì\tYes"]))
    for source, langs, wanted in [
        (path, None, ("de", "en")),
        (path, ("ita", "eng"), ("it", "en")),
        (path, ("Italian", "noise"), ("Italian", "noise")),
        (f"it-en={path}", ("de", "en"), ("it", "en")),
    ]:
        assert [file.langs for file in find_bitext(source, langs)] == [wanted]
    head = "source,target,source_lang,target_lang"
    path = str(_write(tmp_path / "all.csv", [head, "Ja,Yes,de,en"]))
    (row,) = stream_bitext(find_bitext(path, ("it", "fr")), Counter())
    assert row[2:4] == ("de", "en")


def test_a_table_without_a_name_is_in_the_languages_of_its_folder(tmp_path, monkeypatch):
    _write(tmp_path / "de-en/part-0.tsv", ["source\ttarget", "Ja\tYes"])
    _write(tmp_path / "de-en/notes.tsv", ["year\tlines", "2020\t1"])
    monkeypatch.chdir(tmp_path / "de-en")
    for source in (tmp_path / "de-en", tmp_path / "de-en/part-0.tsv", "part-0.tsv"):
        assert [row[:4] for row in _rows(source)[0]] == [("Ja", "Yes", "de", "en")]


def test_a_glob_has_the_bitext_of_all_that_it_matches(tmp_path):
    for name, lines in [("deu-eng", ["Ja\tYes"]), ("ita-eng", ["Sì\tYes"]), ("a", ["x\ty"])]:
        _write(tmp_path / f"{name}.tsv", lines)
    rows, _ = _rows(f"{tmp_path}/*.tsv")
    assert [row[:4] for row in rows] == [("Ja", "Yes", "de", "en"), ("Sì", "Yes", "it", "en")]


def test_data_of_the_hub_are_bitext_where_their_languages_are_said(tmp_path):
    pytest.importorskip("datasets")
    rows = [{"source": "Ja", "target": "Yes", "source_lang": "deu", "target_lang": "eng"}] * 2
    _write(tmp_path / "set/train.jsonl", map(json.dumps, rows))
    for source in (f"hf:{tmp_path}/set", f"de-en=hf:{tmp_path}/set"):
        found = list(stream_bitext(all_bitext([source]), Counter()))
        assert [row[:4] for row in found] == [("Ja", "Yes", "de", "en")] * 2
    assert find_bitext("de-en=hf:any") == [Bitext(("hf:any",), ("de", "en"), "hf:any", SIDES)]


def test_names_of_ntrex_tell_languages(tmp_path):
    one = _write(tmp_path / "newstest2019-ref.aze-Latn.txt", ["x"])
    other = _write(tmp_path / "newstest2019-src.eng.txt", ["y"])
    (found,) = find_bitext(f"{one},{other}")
    assert found == Bitext((str(one), str(other)), ("az", "en"), "newstest2019-ref")


def test_a_table_is_bounded_and_says_what_was_lost(tmp_path):
    path = _write(tmp_path / "de-en.tsv", ["\tNo", "Nein\t"])
    with pytest.raises(SourceError, match=r"no rows for bitext \(2 empty_cell\)"):
        _rows(path)
    path = _write(tmp_path / "de-en.tsv", ["Ja\tYes"] * 5)
    assert len(list(stream_bitext(all_bitext([str(path)]), Counter(), most=3))) == 3


@pytest.mark.nightly
def test_real_bitext_has_the_pairs_that_its_notes_say():
    folder = SHARED / "tatoeba-opus"
    if not folder.exists():
        pytest.skip("no development data")
    kinds = {"deu-eng": ("de", "en", 15_963), "eng-cmn_Hans": ("en", "zh", 3_426)}
    for name, (source, target, count) in kinds.items():
        rows, _ = _rows(folder / f"{name}.tsv.gz")
        assert len(rows) == count
        assert {row[2:] for row in rows} == {(source, target, "tatoeba-opus")}


@pytest.mark.parametrize("form", ["two files", "prefix", "table", "said", "columns"])
def test_one_language_on_both_sides_is_no_bitext(tmp_path, form):
    for name in ("s1.en", "s2.en", "news.eng-en.eng", "news.eng-en.en"):
        _write(tmp_path / name, ENGLISH)
    _write(tmp_path / "eng-eng.tsv", [f"{one}\t{one}" for one in ENGLISH])
    _write(tmp_path / "spoken.tsv", ["en\teng", *(f"{one}\t{one}" for one in ENGLISH)])
    source = {
        "two files": f"{tmp_path}/s1.en,{tmp_path}/s2.en",
        "prefix": f"{tmp_path}/news.eng-en",
        "table": f"{tmp_path}/eng-eng.tsv",
        "said": f"en-eng={tmp_path}/s1.en,{tmp_path}/s2.en",
        "columns": f"{tmp_path}/spoken.tsv",
    }[form]
    with pytest.raises(UsageError, match="is en on both sides: bitext is in two languages"):
        all_bitext([source])


def test_rows_whose_languages_are_none_or_one_are_counted(tmp_path):
    rows = [
        ("Ja", "Yes", "de", "en"),
        ("HIja'", "Yes", "klingon", "en"),
        ("Yes", "Yes", "en", "eng"),
        ("Oui", "Yes", "fr", ""),
        ("ئەرێ", "Yes", "ckb", "eng"),
    ]
    path = _write(
        tmp_path / "any.jsonl",
        [json.dumps(dict(zip(BitextRow._fields, row, strict=False))) for row in rows],
    )
    found, dropped = _rows(path)
    assert [row.source_lang for row in found] == ["de", "ckb"]
    assert dropped == {"unknown_language": 1, "same_language": 1, "empty_side": 1}


@pytest.mark.parametrize("name", ["en-de.txt", "en-de.0-5000.txt", "en-de.txt.gz"])
def test_a_dictionary_of_muse_has_two_words_per_line(tmp_path, name):
    path = _write(tmp_path / "MUSE" / name, ["the die", "the\tder", "cat katze"] * 40 + ["of"])
    rows, dropped = _rows(str(path.parent))
    assert [row[:4] for row in rows[:3]] == [
        ("the", "die", "en", "de"),
        ("the", "der", "en", "de"),
        ("cat", "katze", "en", "de"),
    ]
    assert (len(rows), dropped) == (120, {"unreadable": 1})


def test_text_named_like_a_dictionary_of_muse_is_no_bitext(tmp_path):
    path = _write(tmp_path / "en-de.txt", ["the die", "The cat is asleep."])
    assert find_bitext(str(path)) == []
    with pytest.raises(SourceError, match="is not bitext"):
        all_bitext(str(path))
