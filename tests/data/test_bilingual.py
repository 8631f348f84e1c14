"""Bilingual dictionaries: each format, what is dropped, and what is refused with one line."""

import bz2
import gzip
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisegen.data import dictionaries
from noisegen.data.dictionaries import COMMON, load_translations, packaged_languages
from noisegen.errors import LexiconError
from noisegen.noising.lexicon import Entry
from noisegen.transforms.codeswitch import table_of

TEI = """<?xml version="1.0" encoding="UTF-8"?>
<?oxygen RNGSchema="freedict-P5.rng" type="xml"?>
<!DOCTYPE TEI SYSTEM "freedict-P5.dtd">
<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><title>Words &amp; more</title></teiHeader>
<text><body>{}</body></text></TEI>
"""
ENTRY = """<entry><form><orth>{}</orth><pron>x</pron></form><sense>{}</sense></entry>"""
QUOTE = """<cit type="trans"><quote>{}</quote></cit>"""


def pairs(path, lang="en", into=None):
    return [
        (one.clean, one.noisy, one.weight) for one in load_translations(path, lang, into).entries
    ]


def file(folder, text, name="d.txt"):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


def tei(folder, body, name="d.tei"):
    return file(folder, TEI.format(body), name)


def test_muse_repeats_a_word_for_each_of_its_translations(tmp_path):
    path = file(tmp_path, "bank banco\nbank\torilla\r\nlight luz\nnew york\tNueva York\n\n")
    assert pairs(path) == [
        ("bank", "banco", 1),
        ("bank", "orilla", 1),
        ("light", "luz", 1),
        ("new york", "Nueva York", 1),
    ]


def test_bad_lines_are_counted_by_reason(tmp_path):
    long = "x" * 101
    rows = [
        "a b",
        "one two three",
        "alone",
        "same Same",
        f"long {long}",
        "u.s. EEUU",
        "well—known z",
        "c d",
        "e f",
        f"{'ß' * 40} ss",
    ]
    path = file(tmp_path, "\n".join(rows).encode() + b"\ncaf\xe9 cafe\ng h\n")
    found = load_translations(path, "en")
    assert [one[:2] for one in found.entries] == [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")]
    assert found.dropped == {
        "bad_line": 2,
        "same_word": 1,
        "too_long": 2,
        "signs": 2,
        "not_utf8": 1,
    }


def test_a_table_has_weights_counts_or_probabilities(tmp_path):
    for name, first, second, weights in (
        ("weight", 3, 1, [3, 1]),
        ("count", 7, 2, [7, 2]),
        ("prob", 0.75, 0.25, [750_000, 250_000]),
    ):
        text = f"clean\tnoisy\t{name}\nbank\tbanco\t{first}\nbank\torilla\t{second}\n"
        assert [row[2] for row in pairs(file(tmp_path, text))] == weights
    text = "# lang: en\n# into: es\nnoisy\tclean\tnote\nbanco\tbank\tmoney\n"
    assert pairs(file(tmp_path, text), into="es") == [("bank", "banco", 1)]


@pytest.mark.parametrize("weight", ["0", "-1", "1.5", "many", "", "9" * 40, "²"])
def test_a_weight_that_is_none_is_counted(tmp_path, weight):
    text = f"clean\tnoisy\tweight\nbank\tbanco\t{weight}\nlight\tluz\t2\n"
    found = load_translations(file(tmp_path, text), "en")
    assert found.dropped == {"bad_weight": 1}
    assert [one.clean for one in found.entries] == ["light"]


def test_rows_of_other_languages_are_left_out(tmp_path):
    rows = ["lang into clean noisy", "en de bank Bank!", "en es bank banco", "fr es banque banco"]
    text = "\n".join(rows).replace(" ", "\t")
    found = load_translations(file(tmp_path, text), "en", "es")
    assert found.entries == [Entry("bank", "banco", 1)]
    assert found.dropped == {"other_language": 2}


@pytest.mark.parametrize(("lang", "into"), [("de", None), ("en", "fr")])
def test_a_file_of_other_languages_is_refused(tmp_path, lang, into):
    path = file(tmp_path, "# lang: en\n# into: es\nclean\tnoisy\nbank\tbanco\n")
    with pytest.raises(LexiconError, match=r"d\.txt has (lang en, not 'de'|into es, not 'fr')"):
        load_translations(path, lang, into)


def test_a_table_of_languages_pairs_all_alternatives_the_first_most_often(tmp_path):
    text = "en\tde\tes\nyou\tdu|Sie\ttú|usted\nonly\t\tsolo\n"
    path = file(tmp_path, text)
    assert pairs(path, "de", "es") == [
        ("du", "tú", 3600),
        ("du", "usted", 1800),
        ("Sie", "tú", 1800),
        ("Sie", "usted", 900),
    ]
    assert ("solo", "only", 3600) in pairs(path, "es", "en")


def test_parquet_has_counts_or_probabilities(tmp_path):
    columns = {
        "lang": ["en", "de", "en"],
        "clean": ["bank", "Bank", "bank"],
        "noisy": ["banco", "banco", "orilla"],
        "count": [5, 1, 2],
    }
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    assert pairs(tmp_path / "d.parquet") == [("bank", "banco", 5), ("bank", "orilla", 2)]
    table = pa.table({"clean": ["a", None], "noisy": ["b", "c"], "prob": [0.5, 0.5]})
    pq.write_table(table, tmp_path / "p.parquet")
    found = load_translations(tmp_path / "p.parquet", "en")
    assert (found.entries, found.dropped) == ([Entry("a", "b", 500_000)], {"empty": 1})


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_compressed_files_are_read(tmp_path, ending, pack):
    path = file(tmp_path, pack(b"bank banco\n"), f"en-es.txt.{ending}")
    assert pairs(path) == [("bank", "banco", 1)]


def test_freedict_has_translations_in_quotes(tmp_path):
    body = ENTRY.format("bank (money)", QUOTE.format("banco") + QUOTE.format("orilla; ribera {f}"))
    body += ENTRY.format(
        "to light", QUOTE.format("  encender\n") + QUOTE.format("one two three four five six")
    )
    found = load_translations(tei(tmp_path, body), "en")
    assert [one[:2] for one in found.entries] == [
        ("bank", "banco"),
        ("bank", "orilla"),
        ("bank", "ribera"),
        ("to light", "encender"),
    ]
    assert found.dropped == {"explanation": 1}


def test_freedict_of_other_years_is_read_and_its_examples_are_not(tmp_path):
    old = "<entry><form><orth>hello</orth></form><trans><tr>Hallo, Tach</tr></trans></entry>"
    example = (
        '<cit type="example"><quote>a bank</quote><cit type="trans"><quote>ein Ufer</quote></cit>'
        '</cit><cit type="translation"><form><orth>Bank</orth></form></cit>'
        "<eg><q>hi</q><trans><tr>nein</tr></trans></eg>"
        '<re><form><orth>bank on</orth></form><cit type="trans"><quote>zählen</quote></cit></re>'
    )
    found = pairs(tei(tmp_path, old + ENTRY.format("bench", example)))
    assert [row[:2] for row in found] == [("hello", "Hallo"), ("hello", "Tach"), ("bench", "Bank")]


def test_freedict_in_small_parts_is_the_same(tmp_path):
    body = "".join(ENTRY.format(f"w{n}x", QUOTE.format(f"ü{n}")) for n in "abcdefgh")
    content = TEI.format(body).encode()
    whole = list(dictionaries.tei_rows(iter([content]), "d"))
    parts = (content[at : at + 7] for at in range(0, len(content), 7))
    assert list(dictionaries.tei_rows(parts, "d")) == whole
    assert len(whole) == 8


BOMB = """<!DOCTYPE TEI [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>
<TEI><entry><orth>&b;</orth></entry></TEI>"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "declares an entity"),
        ('<!DOCTYPE T [<!ENTITY f SYSTEM "file:///etc/passwd">]><T/>', "declares an entity"),
        ("<TEI><entry></TEI>", "is not XML: mismatched tag"),
        ("<a>" * 300, "over 200 elements within each other"),
        (TEI.format(""), "is not a bilingual dictionary: 0 translations"),
        ("", "is not a bilingual dictionary"),
        ("just a text of words\nand another line here\n", "0 translations, dropped: 2 bad_line"),
        ("a b\nthis is a text\nand one more line\n", "1 translations, dropped: 2 bad_line"),
        ("same same\n", "dropped: 1 same_word"),
    ],
)
def test_what_is_no_dictionary_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(LexiconError, match=message) as caught:
        load_translations(file(tmp_path, text), "en")
    assert len(str(caught.value).splitlines()) == 1


def test_files_that_cannot_be_read_say_so(tmp_path):
    with pytest.raises(LexiconError, match=r"cannot read dictionary .*none\.txt"):
        load_translations(tmp_path / "none.txt", "en")
    with pytest.raises(LexiconError, match="cannot read dictionary"):
        load_translations(tmp_path, "en")
    with pytest.raises(LexiconError, match="is not a Parquet file"):
        load_translations(file(tmp_path, b"PAR1 no", "d.parquet"), "en")
    with pytest.raises(LexiconError, match="cannot read dictionary"):
        load_translations(file(tmp_path, gzip.compress(b"a b\n" * 9_000)[:40], "d.txt.gz"), "en")


@pytest.mark.parametrize(
    ("name", "packed"),
    [("d.txt.gz", gzip.compress), ("d.txt.xz", lzma.compress), ("d.txt.bz2", bz2.compress)],
)
def test_a_file_that_grows_without_bound_is_refused_before_it_is_parsed(tmp_path, name, packed):
    no_xml = b"<a b\n" * 1_000_000  # another error if it were parsed
    path = file(tmp_path, packed(no_xml), name)
    assert path.stat().st_size < dictionaries.SMALL_FILE
    with pytest.raises(LexiconError, match="too large for a dictionary"):
        load_translations(path, "en")
    with pytest.raises(LexiconError, match="too large for a dictionary"):
        table_of(path, "en", None)


def test_a_file_of_many_bytes_or_many_translations_is_refused(tmp_path, monkeypatch):
    path = file(tmp_path, "".join(f"word{n} wort{n}\n" for n in range(2_000)))
    assert len(load_translations(path, "en").entries) == 2_000
    monkeypatch.setattr(dictionaries, "TRANSLATIONS_MAX", 1_999)
    with pytest.raises(LexiconError, match="over 1,999 translations: no dictionary"):
        load_translations(path, "en")
    monkeypatch.setattr(dictionaries, "UNPACKED_MAX", 1_000)
    with pytest.raises(LexiconError, match="too large for a dictionary"):
        load_translations(path, "en")


def test_a_real_dictionary_in_gzip_is_read(tmp_path):
    lines = "".join(f"{word} {word[::-1]}x\n" for word in map(str, range(10_000, 40_000)))
    path = file(tmp_path, gzip.compress(lines.replace("1", "a").encode()), "d.txt.gz")
    assert len(load_translations(path, "en").entries) == 30_000


def test_the_packaged_dictionary_is_well_formed():
    lines = [line for line in COMMON.read_text("utf-8").splitlines() if not line.startswith("#")]
    rows = [line.split("\t") for line in lines]
    assert (
        rows[0]
        == list(packaged_languages())
        == ["en", "de", "es", "fr", "it", "nl", "pt", "ro", "ar"]
    )
    assert {len(row) for row in rows} == {9}
    assert len(rows) - 1 >= 900
    cells = [cell for row in rows[1:] for cell in row]
    for cell in cells:
        parts = cell.split("|")
        assert len(set(parts)) == len(parts), cell
        assert all(part == part.strip() and (part or cell == "") for part in parts), cell
    assert len({row[0] for row in rows}) == len(rows)
    assert all("\u0600" <= c <= "\u06ff" or c in "| " for row in rows[1:] for c in row[8])
    romanian = "".join(row[7] for row in rows)
    assert not set(romanian) & set("şţŞŢ"), "Romanian is written with commas below"


@pytest.mark.parametrize(
    ("lang", "word", "into", "some"),
    [
        ("en", "house", "de", {"Haus"}),
        ("de", "Haus", "fr", {"maison"}),
        ("fr", "c'est", "en", {"it's", "it is"}),
        ("ro", "și", "en", {"and"}),
        ("ar", "كتاب", "en", {"book"}),
        ("pt", "você", "nl", {"jij", "u"}),
        ("en", "bank", "es", {"banco", "orilla"}),
        ("it", "perché", "en", {"why", "because"}),
    ],
)
def test_common_words_have_their_translations(lang, word, into, some):
    found = {
        one.noisy for one in load_translations(COMMON, lang, into).entries if one.clean == word
    }
    assert some <= found
