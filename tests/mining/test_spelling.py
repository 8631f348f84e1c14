"""The default of `mine-wiki`: misspellings alone, by direction, support and word frequency."""

import pyarrow.parquet as pq
import pytest
from exports import export, page

import noisegen
from noisegen.cli import run
from noisegen.data.dictionaries import load_dictionary
from noisegen.mining.dictionary import save_dictionary, select
from noisegen.mining.filters import is_word
from noisegen.mining.miner import Thresholds

REST = "The council of the town met in the old hall by the river and spoke of the work of the men."
EDITS = {
    "typo": ("it recieved a letter", "it received a letter"),
    "real word": ("it was on a list", "it was in a list"),
    "wrong correction": ("they referred to it", "they refered to it"),
    "case": ("the Mayor came in", "the mayor came in"),
    "digit": ("the govern of it", "the govern1 of it"),
    "variant": ("the labor of men", "the labour of men"),
    "its reverse": ("some labour of men", "some labor of men"),
    "apostrophe": ("it dont matter", "it don't matter"),
    "unseen": ("the qwirk of it", "the quirk of it"),
    "twice": ("a sudden gliph", "a sudden glyph"),
    "again": ("one more gliph", "one more glyph"),
}
LAST = f"{REST} They received, referred to it, and don't matter on the list: in it, on it, labor."


@pytest.fixture
def dump(tmp_path):
    """A page for each edit, and then what stands on all of them."""
    pages = [
        page(number, [*(f"{REST} In that year {side}." for side in edit), LAST])
        for number, edit in enumerate(EDITS.values())
    ]
    (tmp_path / "enwiki.xml").write_bytes(export(*pages))
    return tmp_path / "enwiki.xml"


def mined(dump, name, **options):
    made = noisegen.mine_wiki(dump, dump.parent / name, workers=1, **options)
    entries = load_dictionary(dump.parent / name / "dictionary.parquet")
    return {(one.clean, one.noisy): one for one in entries}, made


def test_direction_support_and_frequency_decide(dump):
    entries, made = mined(dump, "out")

    assert set(entries) == {("received", "recieved"), ("don't", "dont"), ("glyph", "gliph")}
    assert made.dictionary["dropped"] == {"real_word": 1, "unseen": 2, "variant": 2}
    assert {"word_case": 1, "word_other_signs": 1}.items() <= made.totals["dropped"].items()
    assert "words dropped: real_word 1, unseen 2, variant 2" in made.summary()


def test_an_entry_says_how_often_its_word_stands_on_the_pages(dump):
    entries, _ = mined(dump, "out")

    assert entries["received", "recieved"].frequency == len(EDITS)
    assert entries["glyph", "gliph"].frequency == 0  # two pages support it
    names = pq.read_schema(dump.parent / "out" / "dictionary.parquet").names
    header, *_ = (dump.parent / "out" / "dictionary.tsv").read_text("utf-8").splitlines()
    assert header.split("\t") == names
    assert names[-1] == "frequency"


def test_the_paper_s_profile_keeps_all(dump):
    entries, made = mined(dump, "out", profile="rcp")

    assert {
        ("in", "on"),
        ("refered", "referred"),
        ("mayor", "Mayor"),
        ("govern1", "govern"),
        ("labour", "labor"),
        ("labor", "labour"),
        ("quirk", "qwirk"),
    } < {*entries}
    assert made.dictionary["dropped"] == {}
    assert "frequency" not in pq.read_schema(dump.parent / "out" / "dictionary.parquet").names
    words = pq.read_table(dump.parent / "out" / "words").to_pylist()
    assert all(row["clean"] != row["noisy"] for row in words)


def test_the_pairs_are_those_of_the_paper(dump):
    mined(dump, "out")
    mined(dump, "paper", profile="rcp")

    pairs = [pq.read_table(dump.parent / name / "pairs").to_pylist() for name in ("out", "paper")]
    assert pairs[0] == pairs[1]


def test_thresholds_can_be_asked_for_later(dump):
    mined(dump, "out")
    entries, left = select([dump.parent / "out"], Thresholds(min_pages=1))

    assert not left.dropped
    assert ("in", "on") in {(one.clean, one.noisy) for one in entries}
    entries, left = select([dump.parent / "out"], Thresholds(balance=3, frequency=10))
    assert left.dropped == {"real_word": 1, "unseen": 2, "variant": 2}


def test_files_of_a_dictionary_keep_the_frequencies(dump):
    entries, _ = mined(dump, "out")
    for name in ("a.parquet", "a.tsv"):
        save_dictionary(list(entries.values()), dump.parent / name)
        found, _ = select([dump.parent / name], Thresholds())
        assert sorted(found) == sorted(entries.values())
    save_dictionary(list(entries.values()), dump.parent / "b.tsv", "lexicon")
    assert "received\trecieved\t1\t11" in (dump.parent / "b.tsv").read_text("utf-8")
    words = {one.noisy: one.frequency for one in load_dictionary(dump.parent / "b.tsv")}
    assert words["recieved"] == len(EDITS)


def test_dumps_in_two_tasks_are_one_dictionary(dump):
    """The frequencies of all tasks are added up, whatever is counted where."""
    text = dump.read_text("utf-8")
    head, *pages = text.removesuffix("</mediawiki>\n").split("  <page>")
    for name, part in (("one", pages[:5]), ("two", pages[5:])):
        content = head + "".join(f"  <page>{page}" for page in part) + "</mediawiki>\n"
        (dump.parent / f"{name}.xml").write_text(content, "utf-8")
    whole, _ = mined(dump, "out")
    noisegen.mine_wiki([dump.parent / "one.xml", dump.parent / "two.xml"], dump.parent / "parts")

    assert load_dictionary(dump.parent / "parts" / "dictionary.parquet") == list(whole.values())


def test_the_command_has_it_by_default(dump, capfd):
    assert run(["mine-wiki", str(dump), "-o", str(dump.parent / "out"), "--workers", "1"]) == 0
    assert "words dropped: real_word 1, unseen 2, variant 2" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("token", "answer"),
    [
        ("a", True),
        ("don’t", True),
        ("Jean-Paul", True),
        ("वर्तनी", True),
        ("e\u0301te\u0301", True),
        ("1930s", False),
        ("govern1", False),
        ("-", False),
        ("a-", False),
        ("@a", False),
    ],
)
def test_words_are_letters_and_marks(token, answer):
    assert is_word(token) == answer
