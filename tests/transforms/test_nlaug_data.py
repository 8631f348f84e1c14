"""Made checkouts in the documented formats; every entry here is invented."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from noisegen.errors import LexiconError, UsageError
from noisegen.noising import registry
from noisegen.noising.edits import Edits, rewritten
from noisegen.noising.lexicon import POS, Entry
from noisegen.noising.phrases import PhraseTable
from noisegen.noising.registry import Settings
from noisegen.text.buffers import Texts
from noisegen.transforms import checkout

LAYOUTS = ["nlaugmenter/transformations", "transformations", "."]
ABR1 = [f"abbreviation_transformation/{kind}_abbrev_dict.json" for kind in ("phrase", "word")]
ABR2 = "insert_abbreviation/replacement_rules_en.txt"
ABR3 = "replace_abbreviation_and_acronyms/abbreviations.txt"
CONT = "contraction_expansions/transformation.py"
DYSL = "dyslexia_words_swap/data.json"
FING = "butter_fingers_perturbation/transformation.py"
LEET = "leet_letters/transformation.py"
SLNG = [f"slangificator/Slang_{kind}.txt" for kind in ("Nouns", "Adjectives", "Adverbs")]
SPEL = "replace_spelling/spell_errors.json"
WEEK = [f"weekday_month_abbreviation/weekday_month_{way}_en.json" for way in ("abb", "exp")]


def write(folder: Path, files: dict[str, str], layout: str = "transformations") -> Path:
    for name, content in files.items():
        path = folder / layout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode(errors="surrogateescape"))
    return folder


def table_of(folder: Path, name: str, files: dict[str, str]) -> PhraseTable:
    return checkout.OriginalWords(name).table(write(folder, files))


def noisy(table: PhraseTable, text: str, tag: str = "", choice: int = 0) -> str:
    """Replace every match by the alternative at `choice` of 65,536."""
    texts = Texts.from_strings([text])
    matches = table.find(texts)
    tags = np.full(len(matches), POS.index(tag))
    known = np.flatnonzero(table.groups[matches.keys, tags] >= 0)
    matches, tags = matches.take(known), tags[known]
    drawn = table.alternatives(texts.values, matches, tags, np.full(len(matches), choice))
    edits = Edits(matches.rows, matches.starts, matches.stops, drawn, table.pool)
    return rewritten(texts, [edits])[0].to_strings()[0]


def outcomes(table: PhraseTable, text: str, tag: str = "") -> Counter[str]:
    """Count the alternatives over 64 equal parts of all choices."""
    return Counter(noisy(table, text, tag, choice) for choice in range(0, 1 << 16, 1 << 10))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_found(tmp_path: Path, layout: str) -> None:
    folder = write(tmp_path, {WEEK[0]: '{"Monday": "Mo9"}', WEEK[1]: "{}"}, layout)
    table = checkout.OriginalWords("week").table(folder)
    assert noisy(table, "on Monday") == "on Mo9"
    assert checkout.original_files(folder, "week") == [tmp_path / layout / name for name in WEEK]


def test_the_newer_layout_wins_over_the_older(tmp_path: Path) -> None:
    for layout in LAYOUTS[:2]:
        write(tmp_path, {LEET: f'leet_letter_mappings = {{"A": "{layout}"}}'}, layout)
    assert checkout.original_characters(tmp_path, "leet") == [Entry("A", LAYOUTS[0])]


@pytest.mark.parametrize("name", ["homo", "spac"])
def test_a_transform_without_data_in_a_checkout_reads_its_own(tmp_path: Path, name: str) -> None:
    settings = Settings(nlaug_data=write(tmp_path, {ABR1[0]: "{}"}))
    transform = registry.get(name)
    assert transform.data(settings, {}) == transform.data(Settings(), {})
    transform.make(settings, transform.values({}))


def test_without_a_folder_there_is_nothing() -> None:
    assert checkout.original_characters(None, "leet") is None
    assert checkout.original_files(None, "abr1") == []


def abr1(folder: Path, phrases: dict[str, str], words: dict[str, str]) -> PhraseTable:
    files = {ABR1[0]: json.dumps(phrases), ABR1[1]: json.dumps(words)}
    return table_of(folder, "abr1", files)


def test_abr1_reads_phrases_and_words_and_its_head_names_both_files(tmp_path: Path) -> None:
    table = abr1(tmp_path, {"mind the gap": "mtg"}, {"kettle": "ktl"})
    assert noisy(table, "mind the gap, kettle") == "mtg, ktl"
    assert all(str(tmp_path / "transformations" / name) in table.head["source"] for name in ABR1)


@pytest.mark.parametrize(
    ("clean", "short"),
    [
        (" kettle", "ktl"),
        ("kettle  pot", "kp"),
        ("kettle?", "ktl"),
        ("kettle", ""),
        ("kettle", " "),
        ("kettle", "KETTLE"),
        ("kettle", "[email\u00a0protected]"),
        ("kettle" * 11, "ktl"),
    ],
)
def test_entries_that_cannot_be_used_are_dropped(tmp_path: Path, clean: str, short: str) -> None:
    table = abr1(tmp_path, {clean: short}, {"spoon": "spn"})
    assert noisy(table, f"{clean} kettle pot spoon") == f"{clean} kettle pot spn"


def test_the_lower_case_key_wins_where_keys_differ_only_in_case(tmp_path: Path) -> None:
    words = {"Kettle": "KTX", "kettle": "ktl", "KETTLE": "KTY"}
    table = abr1(tmp_path, {"mind the gap": "mtg"}, words)
    assert set(outcomes(table, "kettle")) == {"ktl"}
    assert set(outcomes(table, "Kettle")) == {"Ktl"}


def test_a_key_with_a_capital_asks_for_one(tmp_path: Path) -> None:
    table = abr1(tmp_path, {"mind the gap": "mtg"}, {"Kettle": "KTL"})
    assert noisy(table, "a kettle, a Kettle") == "a kettle, a KTL"


@pytest.mark.parametrize(
    ("name", "file", "content", "text", "expected"),
    [
        (
            "abr2",
            ABR2,
            "mtg  = mind the gap\nfoo foo\t=  spoon \n\n",
            "Mind the gap, spoon",
            "mtg, foo foo",
        ),
        (
            "abr2",
            ABR2,
            "#1 = spoon\nkettle\nsp=kettle\nptt = pot\n",
            "spoon kettle pot",
            "spoon kettle ptt",
        ),
        ("abr2", ABR2, "one = spoon\ntwo = spoon\n", "spoon", "one"),
        ("abr2", ABR2, 'one = is it hot\ntwo = is it hot ("?")\n', "is it hot", "two"),
        ("abr3", ABR3, "MTG:Mind The Gap\n", "please mind the gap", "please MTG"),
        ("abr3", ABR3, "MTG:Mind The Gap\n", "please mtg", "please mind the gap"),
        ("abr3", ABR3, "SP:a:spoon\n", "sp", "a:spoon"),
        (
            "abr3",
            ABR3,
            "MTG:Mind it\n\nMTG:More to give\nM9:mind it\n",
            "mtg, mind it",
            "mind it, MTG",
        ),
        ("spel", SPEL, '{"a_spoon": ["a_spon"]}', "a spoon", "a spon"),
        ("dysl", DYSL, '{"one": {"spoon": "snoop"}}', "spoon snoop", "snoop spoon"),
        (
            "dysl",
            DYSL,
            '{"one": {"gap": "pag"}, "two": {"kettle": "gap"}}',
            "gap kettle pag",
            "kettle gap gap",
        ),
    ],
    ids=[
        "noisy side first",
        "comments and lines without sign skipped",
        "first rule wins",
        "more elements win",
        "long to short",
        "short to long",
        "first colon",
        "first line wins",
        "underscore is a blank",
        "both ways",
        "inverse wins",
    ],
)
def test_formats(
    tmp_path: Path, name: str, file: str, content: str, text: str, expected: str
) -> None:
    assert set(outcomes(table_of(tmp_path, name, {file: content}), text)) == {expected}


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("mind (the) gap", "mind gap, mind the gap", "X, X"),
        ("gl(oo)m", "glm gloom", "X X"),
        ("(w)hole spoon", "hole spoon, whole spoon", "X, X"),
        ("spoon+ it", "spoon it", "X"),
        ('is it hot ("?")', "is it hot?", "X?"),
        ("well (,) mind it", "well mind it", "X"),
    ],
)
def test_abr2_understands_rule_elements(
    tmp_path: Path, source: str, text: str, expected: str
) -> None:
    assert noisy(table_of(tmp_path, "abr2", {ABR2: f"X = {source}\n"}), text) == expected


@pytest.mark.parametrize(
    "source", ["a Spoon", "don't spoon", "spoon/fork", "spoon|fork", "spoon,fork", "one (spoon"]
)
def test_abr2_drops_rules_that_never_fire(tmp_path: Path, source: str) -> None:
    table = table_of(tmp_path, "abr2", {ABR2: f"X = {source}\nptt = pot\n"})
    text = f"{source} A Spoon spoon fork pot"
    assert noisy(table, text) == f"{source} A Spoon spoon fork ptt"


CONT_CODE = """
raise SystemExit("this file must never run")
PATTERN = "\\d+"

class ContractionExpansions:
    def __init__(self):
        super().__init__()
        self.other = {"x": 1}
        self.contraction_map = {
            "spoon'll": "spoon will", "gap's": "gap is", "thegap's": "gap is",
            "I'n": "I not", "i'n": "i not",
        }
"""


def test_cont_is_read_from_code_that_does_not_run(tmp_path: Path) -> None:
    table = table_of(tmp_path, "cont", {CONT: CONT_CODE})
    assert noisy(table, "the spoon'll fall") == "the spoon will fall"
    assert noisy(table, "The spoon will fall") == "The spoon'll fall"


def test_cont_inverts_to_the_last_form_and_prefers_lower_case(tmp_path: Path) -> None:
    table = table_of(tmp_path, "cont", {CONT: CONT_CODE})
    assert set(outcomes(table, "gap is")) == {"thegap's"}
    assert set(outcomes(table, "i'n")) == {"i not"}
    assert set(outcomes(table, "I'n")) == {"I not"}


def slng(folder: Path, nouns: str, adjectives: str, adverbs: str) -> PhraseTable:
    return table_of(folder, "slng", dict(zip(SLNG, (nouns, adjectives, adverbs), strict=True)))


def test_slng_asks_for_the_part_of_speech_of_its_file(tmp_path: Path) -> None:
    table = slng(tmp_path, "calm, chillout,chillouts\n", "calm,chill\n", "calmly,chillingly")
    assert noisy(table, "calm", "NOUN") == "chillout"
    assert noisy(table, "calm", "ADJ") == "chill"
    assert noisy(table, "calmly", "ADV") == "chillingly"
    assert noisy(table, "calm", "VERB") == "calm"
    assert noisy(table, "calm", "") == "calm"


@pytest.mark.parametrize(
    ("lemma", "plural"),
    [
        ("spoon", "spoons"),
        ("box", "boxes"),
        ("lunch", "lunches"),
        ("city", "cities"),
        ("day", "days"),
        ("gas", "gases"),
    ],
)
def test_slng_gives_plurals_their_own_form(tmp_path: Path, lemma: str, plural: str) -> None:
    table = slng(tmp_path, f"{lemma},one,many\n", "calm,chill\n", "calmly,x\n")
    assert noisy(table, f"{lemma} {plural}", "NOUN") == "one many"


def test_slng_repeats_are_alternatives_and_bad_rows_are_skipped(tmp_path: Path) -> None:
    nouns = "spoon,a,as\nspoon,b,bs\n\nkettle,k\n,c,cs\nfork,,y\n"
    table = slng(tmp_path, nouns, "calm,chill\n", "calmly,x\n")
    assert outcomes(table, "spoon", "NOUN") == {"a": 32, "b": 32}
    assert noisy(table, "kettle fork s", "NOUN") == "kettle fork s"


def test_spel_repeats_weigh(tmp_path: Path) -> None:
    words = {"spoon": ["spon", "spon", "spooon", "spon", "Spoon"]}
    table = table_of(tmp_path, "spel", {SPEL: json.dumps(words)})
    assert outcomes(table, "spoon") == {"spon": 48, "spooon": 16}


def test_week_leaves_out_what_is_no_noise(tmp_path: Path) -> None:
    short = {"Monday": "Mo9.", "May": "May"}
    full = {"Mo9.": "Monday", "Mo9": "Monday", "May": "May"}
    table = table_of(tmp_path, "week", dict(zip(WEEK, map(json.dumps, (short, full)), strict=True)))
    assert noisy(table, "Monday, May, monday, Mo9") == "Mo9., May, monday, Monday"


@pytest.mark.parametrize("name", ["leet_letter_mappings", "leet_letter_mappings: dict"])
def test_leet_is_read_from_code_with_its_case(tmp_path: Path, name: str) -> None:
    code = f'import nothing\nx: dict\n{name} = {{"A": "4", "b": "13", "cc": "1", "d": "d"}}\n'
    found = checkout.original_characters(write(tmp_path, {LEET: code}), "leet")
    assert found == [Entry("A", "4"), Entry("b", "13")]


@pytest.mark.parametrize("name", ["key_approx", "keyApprox"])
def test_fing_weighs_neighbours_and_gives_capitals_theirs(tmp_path: Path, name: str) -> None:
    lines = [f"{name} = {{}}", f'{name}["q"] = "qww1"', f'{name}[" "] = " "', 'x["a"] = "b"']
    code = "def butter_finger(text):\n" + "".join(f"    {line}\n" for line in lines)
    found = checkout.original_characters(write(tmp_path, {FING: code}), "fing")
    assert found == [
        Entry("q", "w", 2),
        Entry("q", "1"),
        Entry("Q", "W", 2),
        Entry("Q", "1"),
    ]


@pytest.mark.parametrize(
    ("folder", "what"), [("nowhere", "no folder"), (".", "no transformations folder")]
)
def test_a_folder_that_is_no_checkout_is_named(tmp_path: Path, folder: str, what: str) -> None:
    with pytest.raises(UsageError, match=f"{what}.* '{tmp_path}.*give the root of"):
        checkout.OriginalWords("abr1").table(tmp_path / folder)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, {ABR1[0]: "{}"})
    with pytest.raises(LexiconError, match=r"no file '.*word_abbrev_dict\.json'"):
        checkout.original_files(tmp_path, "abr1")


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("dysl", DYSL, "{"),
        ("dysl", DYSL, "[]"),
        ("dysl", DYSL, '{"one": ["spoon"]}'),
        ("dysl", DYSL, '{"one": {"spoon": 1}}'),
        ("spel", SPEL, '{"spoon": "spon"}'),
        ("spel", SPEL, '{"spoon": [1]}'),
        ("spel", SPEL, "{}"),
        ("abr2", ABR2, "# nothing\n"),
        ("abr3", ABR3, "MTG mind the gap\n"),
        ("cont", CONT, "def broken(:\n"),
        ("cont", CONT, "self.contraction_mop = {}\n"),
        ("cont", CONT, "self.contraction_map = read()\n"),
        ("cont", CONT, "self.contraction_map = {[]: 1}\n"),
        ("cont", CONT, "self.contraction_map = {'a': 1}\n"),
        ("cont", CONT, "x = '\udcff'\n"),
    ],
)
def test_a_damaged_file_is_named_in_one_line(
    tmp_path: Path, name: str, file: str, content: str
) -> None:
    write(tmp_path, {file: content})
    with pytest.raises(LexiconError) as caught:
        checkout.OriginalWords(name).table(tmp_path)
    message = str(caught.value)
    assert str(tmp_path / "transformations" / file) in message
    assert "check the file out again" in message
    assert "\n" not in message
