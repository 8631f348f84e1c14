"""Words and their characters, against rules written out one character at a time."""

import pickle
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest

from noisegen.encoders.character_cnn import (
    CHUNK_MAX,
    CLS,
    MASK,
    PAD,
    SEP,
    WordIds,
    WordTokenizer,
    basic_words,
    characters_of,
)
from noisegen.errors import NoisegenError

FILL = 261


def padded(*ids):
    return [*ids, *[FILL] * (50 - len(ids))]


def characters(table, *words):
    return characters_of(table.words(np.array([table.add(word) for word in words])))


def is_chinese(sign):
    """BERT's blocks: CJK ideographs, their extensions A to E, compatibility forms."""
    ranges = (
        (0x4E00, 0x9FFF),
        (0x3400, 0x4DBF),
        (0x20000, 0x2A6DF),
        (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F),
        (0x2B920, 0x2CEAF),
        (0xF900, 0xFAFF),
        (0x2F800, 0x2FA1F),
    )
    return any(first <= ord(sign) <= last for first, last in ranges)


def naive_words(text):
    """BERT's basic tokenisation of a whole text, sign by sign."""
    words, word = [], ""
    for sign in text:
        kind = unicodedata.category(sign)
        if sign in "\t\n\r " or sign.isspace():
            new = " "
        elif kind[0] == "C" or sign == "\ufffd":
            continue
        else:
            new = sign
        alone = kind[0] == "P" or (sign.isascii() and not sign.isalnum()) or is_chinese(sign)
        if new == " " or alone:
            words += [word, new.strip()]
            word = ""
        else:
            word += new
    return [word for word in [*words, word] if word]


def words_of(tokenizer, text):
    row = tokenizer.tokenize([text])[0]
    assert (row[0], row[-1]) == (CLS, SEP)
    return [word.decode(errors="ignore") for word in tokenizer.table.words(row[1:-1])]


def test_a_word_is_its_bytes_plus_one_between_two_signs():
    assert characters(WordIds(8, 4), "hi")[0].tolist() == padded(259, 105, 106, 260)


def test_a_word_of_other_letters_is_its_utf_8():
    found = characters(WordIds(8, 4), "né")[0].tolist()
    assert found == padded(259, 111, 0xC3 + 1, 0xA9 + 1, 260)


def test_a_word_of_60_bytes_keeps_48():
    found = characters(WordIds(8, 4), "abcdefghij" * 6)[0].tolist()
    assert found == [259, *(ord(sign) + 1 for sign in ("abcdefghij" * 6)[:48]), 260]
    assert found == characters(WordIds(8, 4), "abcdefghij" * 5)[0].tolist()


def test_special_words_have_their_own_characters():
    found = characters_of(WordIds(8, 4).words(np.array([PAD, CLS, SEP, MASK])))
    assert found.dtype == np.int16
    assert found[PAD].tolist() == [0] * 50
    assert found[CLS].tolist() == padded(259, 257, 260)
    assert found[SEP].tolist() == padded(259, 258, 260)
    assert found[MASK].tolist() == padded(259, 262, 260)


def test_words_are_those_of_rules_written_out(demo_texts, odd_texts):
    texts = [*demo_texts, *odd_texts, "a" * CHUNK_MAX + "!" + "b" * 99]
    tokenizer = WordTokenizer(1 << 20)
    for text in texts:
        kept = [word[:48].encode()[:48].decode(errors="ignore") for word in naive_words(text)]
        assert words_of(tokenizer, text) == kept, text[:100]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop-now!!", ["Don", "'", "t", "stop", "-", "now", "!", "!"]),
        ("$5 + 5€", ["$", "5", "+", "5€"]),
        ("two  blanks\tand\na\u00a0line", ["two", "blanks", "and", "a", "line"]),
        ("漢字kana", ["漢", "字", "kana"]),
        ("Ünïcode", ["Ünïcode"]),
        ("a\x00b\u200bc\x01", ["abc"]),
        ("[CLS] [MASK]", ["[", "CLS", "]", "[", "MASK", "]"]),
        ("", []),
        (" ", []),
    ],
)
def test_odd_texts_have_these_words(text, words):
    assert words_of(WordTokenizer(99), text) == words


def test_letters_stay_as_they_are_unless_lower_is_asked_for():
    assert words_of(WordTokenizer(9), "BIG Ä") == ["BIG", "Ä"]
    assert words_of(WordTokenizer(9, lower=True), "BIG Ä") == ["big", "ä"]


def test_half_a_pair_of_surrogates_is_a_question_mark():
    assert words_of(WordTokenizer(9), "a \ud83d b") == ["a", "?", "b"]


def test_rows_are_cut_and_keep_their_ends():
    tokenizer = WordTokenizer(5)
    rows = tokenizer.tokenize(["a b c", "a b c d", "x " * 1_000, ""])
    assert rows.lengths.tolist() == [5, 5, 5, 2]
    assert all(rows[row][-1] == SEP for row in range(4))
    assert rows[3].tolist() == [CLS, SEP]


def test_a_word_has_one_number_in_all_texts():
    rows = WordTokenizer(99).tokenize(["one two one", "two"])
    assert rows[0][1] == rows[0][3] != rows[0][2] == rows[1][1]


def test_a_word_that_another_thread_added_keeps_its_number():
    table = WordIds(kept=64, renewed=16)
    assert table.add("a") == table.add("a") != table.add("b")


def test_distinct_words_come_back_in_an_order_of_their_own():
    texts = ["see you there", "you know", "a longword indeed", ""]
    first, second = WordTokenizer(9), WordTokenizer(9)
    second.tokenize(texts[::-1])
    found = []
    for tokenizer in (first, second):
        ids = tokenizer.tokenize(texts).padded(PAD)
        words, where = tokenizer.table.distinct(ids)
        assert where.shape == ids.shape
        np.testing.assert_array_equal(
            words[where.ravel()], characters_of(tokenizer.table.words(ids.ravel()))
        )
        assert len(np.unique(words, axis=0)) == len(words) == 10
        lengths = (words != FILL).sum(1)[1:]  # the first is padding, without any sign
        assert (np.diff(lengths) >= 0).all()
        found.append(words)
    np.testing.assert_array_equal(*found)


def many(count, start=0):
    return [f"w{number}" for number in range(start, start + count)]


def test_ids_are_good_for_as_many_new_words_as_promised():
    table = WordIds(kept=64, renewed=16)
    held = [(0, "w0", table.add("w0"))]
    for number, word in enumerate(many(1_000, 1), 1):
        held.append((number, word, table.known.get(word) or table.add(word)))
        again = table.known.get("w0") or table.add("w0")
        assert table.words(np.array([again])) == [b"w0"]
        for _, older, given in held[-(64 - 16) // 2 :]:  # two new words a round at most
            assert table.words(np.array([given])) == [older.encode()]


def test_ids_given_up_are_refused_and_never_another_word():
    table = WordIds(kept=64, renewed=16)
    first = table.add("first")
    for word in many(63):
        table.add(word)
    assert table.words(np.array([first])) == [b"first"]
    table.add("one more")
    for ids in ([first], [PAD, first], [first + 10_000]):
        with pytest.raises(NoisegenError, match="only the last 64 new words"):
            table.words(np.array(ids))


def test_ids_that_nobody_gave_are_refused():
    table = WordIds(kept=64, renewed=16)
    table.add("a")
    with pytest.raises(NoisegenError):
        table.words(np.array([5]))
    with pytest.raises(NoisegenError):
        WordIds(kept=64, renewed=16).words(np.array([4]))


def test_numbers_begin_anew_after_a_billion_words():
    table = WordIds(kept=64, renewed=16)
    table.count = (1 << 30) - 3
    words = many(20)
    ids = np.array([table.add(word) for word in words])
    assert ids.max() < 2**31
    assert len(set(ids.tolist())) == 20
    assert table.words(ids).tolist() == [word.encode() for word in words]


def test_the_dictionary_of_words_does_not_grow_without_end():
    table = WordIds(kept=64, renewed=16)
    for word in many(5_000):
        table.add(word)
        assert len(table.known) <= 16


@pytest.mark.parametrize(("kept", "renewed"), [(60, 16), (64, 64)])
def test_sizes_that_cannot_work_are_refused(kept, renewed):
    with pytest.raises(ValueError, match="power of two"):
        WordIds(kept=kept, renewed=renewed)


@pytest.mark.parametrize("copied", [deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_knows_the_words_and_goes_its_own_way(copied):
    table = WordIds(kept=64, renewed=16)
    ids = np.array([table.add(word) for word in many(70)])[-40:]
    copy = copied(table)
    assert copy.words(ids).tolist() == table.words(ids).tolist()
    other = copy.add("new")
    assert "new" not in table.known
    assert copy.words(np.array([other])) == [b"new"]


def test_threads_never_see_another_word():
    tokenizer = WordTokenizer(40, table=WordIds(kept=1 << 15, renewed=1 << 9))
    texts = [" ".join(many(20, 7 * number)) for number in range(1_500)]

    def read(part):
        for text in part:
            if words_of(tokenizer, text) != text.split():
                return text
        return None

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, [texts, texts[::-1], texts[500:], texts[::3]])) == [None] * 4


def test_other_rules_share_the_numbers_of_words():
    tokenizer = WordTokenizer(9)
    other = tokenizer.with_rules(4, lower=True)
    assert (
        other.tokenize(["Big big"]).values.tolist()
        == tokenizer.tokenize(["big big"]).values.tolist()
    )
    assert len({tokenizer.digest, other.digest, WordTokenizer(4).digest}) == 3


def test_basic_words_keep_no_more_of_a_word_than_is_read():
    assert basic_words("x" * 100_000) == ("x" * 48,)
