"""Words, case, protected spans: the array forms agree with the obvious ones."""

import numpy as np
import oracle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisegen.errors import UsageError
from noisegen.text.buffers import HashTable, Texts, folded, is_word, one_chunk
from noisegen.text.case import capitalize, case_class, case_classes, fold, is_upper, upper
from noisegen.text.languages import MATCHED_BY
from noisegen.text.rows import Row
from noisegen.text.spans import PROTECTABLE, protect_kinds, protected

ROWS = st.lists(st.text(max_size=30), max_size=8)
WORDY = st.text(st.sampled_from("aZé’'ß×ÞÀ \t.\u0301👨\u200d東_9-"), max_size=20)


UNSPACED = st.text(
    st.sampled_from("今日東はがカナー・゛\u3099，。！a'é \U000e0100𠮷👍กนเไัำๆ่ແຼ"), max_size=20
)


def words_as_strings(rows: list[str], matched_by: str = "tokens") -> list[list[str]]:
    texts = Texts.from_strings(rows)
    words = texts.words(matched_by)
    found: list[list[str]] = [[] for _ in rows]
    for row, start, stop in zip(words.rows, words.starts, words.stops, strict=True):
        found[row].append(texts.values[start:stop].tobytes().decode())
    return found


@given(ROWS | st.lists(WORDY, max_size=8))
def test_words_are_those_of_the_oracle(rows):
    expected = [[text[start:stop] for start, stop in oracle.words(text)] for text in rows]
    assert words_as_strings(rows) == expected


@given(st.lists(UNSPACED | st.text(max_size=20), max_size=8), st.sampled_from(["zh", "ja"]))
def test_texts_without_spaces_are_cut_as_the_oracle_cuts_them(rows, lang):
    expected = [[text[start:stop] for start, stop in oracle.words(text, lang)] for text in rows]
    assert words_as_strings(rows, MATCHED_BY[lang]) == expected
    cut = [Row(text).cut(MATCHED_BY[lang]) for text in rows]
    assert [row.words for row in cut] == expected
    spans = [[row.span(number) for number in range(len(row.words))] for row in cut]
    assert spans == [list(oracle.words(text, lang)) for text in rows]


def test_chinese_is_cut_into_characters_japanese_into_runs():
    row = "東京タワーへ行く"
    assert words_as_strings([row], "characters") == [list(row)]
    assert words_as_strings([row], "runs") == [["東京", "タワー", "へ", "行", "く"]]


def test_thai_is_cut_into_what_a_reader_takes_for_one_letter():
    row = "เขาไม่รู้จักน้ำ55"
    cut = ["เขา", "ไม่", "รู้", "จั", "ก", "น้ำ", "55"]
    assert words_as_strings([row], "characters") == [cut]


def test_words_of_real_text(demo_texts, odd_texts):
    rows = demo_texts + odd_texts
    expected = [[text[start:stop] for start, stop in oracle.words(text)] for text in rows]
    assert words_as_strings(rows) == expected


def test_words_do_not_join_across_rows():
    assert words_as_strings(["see", "you", "", "it'", "s"]) == [["see"], ["you"], [], ["it"], ["s"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't “quote” rock’n’roll", ["don't", "quote", "rock’n’roll"]),
        ("snake_case e-mail 3.5", ["snake_case", "e", "mail", "3", "5"]),
        ("lol😂ok — naïve", ["lol", "ok", "naïve"]),
        ("हिन्दी, में", ["हिन्दी", "में"]),
    ],
)
def test_what_a_word_is(text, words):
    assert words_as_strings([text]) == [words]


@given(st.lists(st.text("aAzZéÉốỐđ× 'яЯ𝑎1", min_size=1, max_size=4), min_size=1, max_size=30))
def test_case_classes_are_those_of_the_oracle(words):
    texts = Texts.from_strings(words)
    classes = [oracle.case_of(word) for word in words]
    assert case_classes(texts.values, texts.offsets[:-1], texts.offsets[1:]).tolist() == classes
    assert list(map(case_class, words)) == classes


def test_a_word_is_upper_only_without_small_letters_of_any_script():
    words = ["vô", "Vô", "VÔ", "Vố", "VỐ", "Gì", "Bây\xa0giờ", "Où", "OÙ", "I", "I'M"]
    assert list(map(case_class, words)) == [0, 1, 2, 1, 2, 1, 1, 1, 2, 1, 2]


@given(ROWS)
def test_folding_never_changes_a_length(rows):
    texts = Texts.from_strings(rows)
    assert folded(texts.window).tobytes() == "".join(map(fold, rows)).encode()
    assert all(len(fold(text).encode()) == len(text.encode()) for text in rows)


def test_case_is_folded_for_ascii_and_latin_1_only():
    assert fold("ÉTÉ İI ẞ ×") == "été İi ẞ ×"
    assert upper("été ÷ß") == "ÉTÉ ÷ß"
    assert capitalize("été") == "Été"
    assert is_upper("À")
    assert not is_upper("İ")


def test_a_column_of_one_chunk_is_not_copied():
    text = pa.array(["see", "you"])
    assert one_chunk(pa.chunked_array([text])).buffers()[2].address == text.buffers()[2].address
    assert one_chunk(pa.chunked_array([text, text])).to_pylist() == ["see", "you"] * 2
    assert one_chunk(pa.chunked_array([], pa.string())).to_pylist() == []


@given(ROWS)
def test_texts_survive_the_way_to_arrow_and_back(rows):
    texts = Texts.from_strings(rows)
    assert texts.to_strings() == rows
    half = len(rows) // 2
    assert texts[half : len(rows)].to_strings() == rows[half:]
    assert texts.is_ascii == all(text.isascii() for text in rows)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("go to https://example.org/a?b=c now", " https://example.org/a?b=c "),
        ("www.example.org is up", "www.example.org "),
        ("see WWW.example.xyz", " WWW.example.xyz"),
        ("read bbc.co.uk/news today", " bbc.co.uk/news "),
        ("mail me@example.com.", " me@example.com"),
        ("thanks @some_user!", " @some_user"),
        ("so #blessed", " #blessed"),
    ],
)
def test_what_is_protected(text, span):
    texts = Texts.from_strings(["", text])
    found = protected(texts, tuple(PROTECTABLE))
    spans = zip(found.starts, found.stops, strict=True)
    assert [texts.values[a:b].tobytes().decode() for a, b in spans] == [span]


@pytest.mark.parametrize("text", ["well.Then we left.", "3.5 of 4.2", "a#b", "A & B", "e.g. this"])
def test_what_is_not_protected(text):
    assert not len(protected(Texts.from_strings([text]), tuple(PROTECTABLE)).starts)


def test_kinds_to_protect_are_checked():
    assert protect_kinds("none") == ()
    assert protect_kinds("url, email") == ("url", "email")
    with pytest.raises(UsageError, match="cannot protect 'phone'; known: url, mention"):
        protect_kinds("phone")


PARTS = st.sampled_from(["www.", ".co", ".xyz", "http://", "@", "#", "a", "/", ":", " ", "-", "é"])


@given(st.lists(st.lists(PARTS, max_size=12).map("".join), max_size=6))
def test_spans_are_those_of_the_oracle(rows):
    texts = Texts.from_strings(rows)
    found = protected(texts, tuple(PROTECTABLE))
    expected = []
    for base, text in zip(texts.offsets, rows, strict=False):
        spans = oracle.protected(text, tuple(PROTECTABLE))
        sizes = [[len(text[:at].encode()) for at in span] for span in spans]
        expected += [(int(base) + start, int(base) + stop) for start, stop in sizes]
    assert list(zip(found.starts.tolist(), found.stops.tolist(), strict=True)) == expected


def test_word_characters_have_no_surprises():
    assert all(map(is_word, "aZ0_éßñक東ı"))
    assert not any(map(is_word, " .'-“”—…😂、"))


def test_the_finder_is_linear_in_long_rows():
    """Repeated near-matches must not make the patterns backtrack without bound."""
    rows = ["a-" * 100_000 + ".", "a." * 100_000 + "@", "@" * 100_000]
    assert np.all(protected(Texts.from_strings(rows), tuple(PROTECTABLE)).starts >= 0)


HASHES = st.sets(st.integers(1, 2**64 - 1) | st.integers(1, 20), max_size=40)


@given(HASHES, HASHES, HASHES)
def test_a_hash_is_found_in_its_table_only(first, second, asked):
    parts = [np.array(sorted(hashes), np.uint64) for hashes in (first, second)]
    tables = [HashTable.of(part, np.arange(len(part)) + 1) for part in parts]
    both = HashTable(*map(np.concatenate, zip(*(vars(t).values() for t in tables), strict=True)))
    wanted = np.array([0, *first, *second, *asked], np.uint64)
    for number, part in enumerate(parts):
        expected = [
            part.tolist().index(h) + 1 if h in part.tolist() else 0 for h in wanted.tolist()
        ]
        assert both.find(wanted, np.full(len(wanted), number)).tolist() == expected
        assert tables[number].find(wanted).tolist() == expected
