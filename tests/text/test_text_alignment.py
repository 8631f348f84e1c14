"""Edits turn one text into the other, and words find their partners at the lowest price."""

import csv
import gzip
import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from conftest import SHARED
from hypothesis import given
from hypothesis import strategies as st

from noisegen.text import alignment
from noisegen.text.alignment import (
    TokenEdit,
    aligned,
    character_errors,
    edits,
    error_counts,
    token_spans,
    word_errors,
    words_in,
)

TEXT = st.text("abc ,'.-*@1ä中好ก\u0301\n", max_size=40)
WORDS = st.lists(st.sampled_from(["a", "ab", "abc", "b", "bc", "-", ",", "x"]), max_size=4)


def applied(clean: str, found: list[TokenEdit], noisy: str) -> str:
    for edit in reversed(found):
        after = noisy[edit.noisy_start : edit.noisy_stop]
        clean = clean[: edit.clean_start] + after + clean[edit.clean_stop :]
    return clean


def squeezed(text: str) -> str:
    return "".join(text.split())


def parts(clean: str, noisy: str) -> list[tuple[str, str]]:
    return [(clean[a:b], noisy[c:d]) for a, b, c, d in edits(clean, noisy)]


@given(TEXT, TEXT)
def test_the_edits_turn_clean_into_noisy_up_to_blanks(clean: str, noisy: str) -> None:
    assert squeezed(applied(clean, edits(clean, noisy), noisy)) == squeezed(noisy)


@given(TEXT, TEXT)
def test_edits_are_in_order_and_apart_on_both_sides(clean: str, noisy: str) -> None:
    found = edits(clean, noisy)
    for before, after in pairwise(found):
        assert before.clean_stop <= after.clean_start
        assert before.noisy_stop <= after.noisy_start
    for edit in found:
        assert 0 <= edit.clean_start <= edit.clean_stop <= len(clean)
        assert 0 <= edit.noisy_start <= edit.noisy_stop <= len(noisy)
        assert (
            clean[edit.clean_start : edit.clean_stop] != noisy[edit.noisy_start : edit.noisy_stop]
        )


@given(TEXT)
def test_a_text_has_no_edits_of_itself(text: str) -> None:
    assert edits(text, text) == []


@given(
    st.lists(st.sampled_from(["see", "you", "at", "noon", ",", "the"]), min_size=1, max_size=8),
    st.data(),
)
def test_changed_blanks_between_the_same_words_are_the_only_edits(words, data) -> None:
    blanks = st.sampled_from([" ", "  ", "\t"])
    texts = ["".join(word + data.draw(blanks) for word in words).rstrip() for _ in range(2)]
    gaps = [(a, b) for a, b in zip(*(map(blank_runs, texts)), strict=True) if a != b]
    assert parts(*texts) == gaps


def blank_runs(text: str) -> list[str]:
    return [text[a:b] for (_, a), (b, _) in pairwise(token_spans(text))]


@given(TEXT)
def test_tokens_are_all_that_is_no_blank(text: str) -> None:
    spans = token_spans(text)
    assert "".join(text[a:b] for a, b in spans) == squeezed(text)
    assert all(a < b for a, b in spans)


@given(WORDS, WORDS)
def test_the_steps_found_are_the_cheapest_of_all(clean: list[str], noisy: list[str]) -> None:
    found = alignment.cheapest_steps(tuple(clean), tuple(noisy))
    assert price(clean, noisy, list(found)) == pytest.approx(
        min(price(clean, noisy, steps) for steps in all_steps(len(clean), len(noisy)))
    )


def all_steps(more: int, less: int) -> list[list[tuple[int, int]]]:
    if not more and not less:
        return [[]]
    return [
        [*before, (a, b)]
        for a in range(min(more, 5) + 1)
        for b in range(min(less, 3) + 1)
        if (a, b) != (0, 0) and (a <= 1 or b == 1 or (a, b) == (1, 1)) and (b <= 1 or a == 1)
        for before in all_steps(more - a, less - b)
    ]


def price(clean: list[str], noisy: list[str], steps: list[tuple[int, int]]) -> float:
    total, i, j = 0.0, 0, 0
    for a, b in steps:
        ours, theirs = clean[i : i + a], noisy[j : j + b]
        i, j = i + a, j + b
        initials = "".join(token[0] for token in ours)
        options = [alignment.step_cost(ours, theirs)] if a <= 3 else [alignment.NEVER]
        if a > 1 and theirs[0] == initials:
            options.append(alignment._JOIN if a > 2 else alignment._TWO_INITIALS)
        total += min(options)
    return total


@pytest.mark.parametrize(
    ("clean", "noisy", "expected"),
    [
        ("of course not", "ofcourse not", [("of course", "ofcourse")]),
        ("maybe not", "may be not", [("maybe", "may be")]),
        ("talk to you later", "ttyl", [("talk to you later", "ttyl")]),
        ("người ta nói", "ngta nói", [("người ta", "ngta")]),
        ("the moment 's end", "the moments end", [("moment 's", "moments")]),
        ("what shit", "what sh*t", [("shit", "sh*t")]),
        (
            "Счастливая кошка",
            "Счастлиывая кошшка :",
            [("Счастливая", "Счастлиывая"), ("кошка", "кошшка"), ("", ":")],
        ),
        ("今天天氣好", "今天天汽好", [("氣", "汽")]),
        ("ไปไหน", "ไปใหน", [("ไ", "ใ")]),
        ("a b", "a b c", [("", "c")]),
        ("in Spain we", "is we", [("in", "is"), ("Spain", "")]),
        ("I want to go", "I wanna go", [("want to", "wanna")]),
        ("I'm going to go", "ima go", [("I'm going to", "ima")]),
        ("we are going to go", "we gonna go", [("are", ""), ("going to", "gonna")]),
        ("it was about to rain", "it was bouta rain", [("about to", "bouta")]),
        ("kannst du es", "kannste es", [("kannst du", "kannste")]),
        ("cuộc sống mới", "csong mới", [("cuộc sống", "csong")]),
        ("listened to it", "listen it", [("listened", "listen"), ("to", "")]),
        ("ayudar a otros", "ayudo otros", [("ayudar", "ayudo"), ("a", "")]),
        ("want to be", "wont be", [("want", "wont"), ("to", "")]),
    ],
)
def test_words_find_their_partners(clean: str, noisy: str, expected: list) -> None:
    assert parts(clean, noisy) == expected


def test_a_part_that_changed_altogether_is_one_edit() -> None:
    clean = " ".join(f"a{number}" for number in range(20_000))
    noisy = " ".join(f"b{number}" for number in range(20_000))
    assert edits(clean, noisy) == [TokenEdit(0, len(clean), 0, len(noisy))]


@pytest.mark.nightly
def test_real_pairs_are_turned_into_one_another() -> None:
    path = SHARED / "vilexnorm" / "dev.csv.gz"
    if not path.exists():
        pytest.skip("no development data")
    with gzip.open(path, "rt", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 1_000
    for row in rows:
        clean, noisy = row["normalized"], row["original"]
        assert squeezed(applied(clean, edits(clean, noisy), noisy)) == squeezed(noisy)


TEXTS = st.text(max_size=12) | st.text("ab é\u0301", max_size=12)


def textbook(first: Sequence[str], second: Sequence[str]) -> int:
    row = list(range(len(second) + 1))
    for i, left in enumerate(first, 1):
        above, row = row, [i]
        for j, right in enumerate(second, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right)))
    return row[-1]


@given(TEXTS, TEXTS)
def test_character_errors_are_the_textbook_distance(clean: str, noisy: str) -> None:
    assert character_errors(clean, noisy) == textbook(clean, noisy)


@given(TEXTS, TEXTS)
def test_word_errors_are_the_textbook_distance_of_words(clean: str, noisy: str) -> None:
    assert word_errors(clean, noisy) == textbook(clean.split(), noisy.split())


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5))
def test_a_batch_is_the_sum_of_its_rows(pairs: list[tuple[str, str]]) -> None:
    expected = (
        sum(textbook(*pair) for pair in pairs),
        sum(textbook(clean.split(), noisy.split()) for clean, noisy in pairs),
    )
    assert error_counts([pair[0] for pair in pairs], [pair[1] for pair in pairs]) == expected


def test_other_white_space_is_no_word_error() -> None:
    assert word_errors("see  you\t", "see you") == 0
    assert character_errors("see  you\t", "see you") == 2


def test_sides_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        error_counts(["a", "b"], ["a"])


@given(WORDS, WORDS, st.integers(2, 5))
def test_windows_align_all_of_both_sides(clean: list[str], noisy: list[str], window: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "WINDOW", window)
        steps = list(aligned(clean, noisy))
    assert [(a, b) for _, _, a, _, b in steps[:-1]] == [(a, b) for _, a, _, b, _ in steps[1:]]
    assert [*clean] == [word for _, a, b, _, _ in steps for word in clean[a:b]]
    assert [*noisy] == [word for _, _, _, a, b in steps for word in noisy[a:b]]
    for is_equal, start, stop, noisy_start, noisy_stop in steps:
        assert not is_equal or clean[start:stop] == noisy[noisy_start:noisy_stop]
        assert stop + noisy_stop > start + noisy_start


def test_long_texts_are_aligned_in_linear_time() -> None:
    clean = " ".join(f"word{number}" for number in range(30_000))
    noisy = clean.replace("7 ", "7, ").replace("word12345 ", "").replace("word9999 ", "word ")
    assert len(edits(clean, noisy)) == noisy.count(",") + 2

    def seconds(words: int) -> float:
        ours = [f"word{number}" for number in range(words)]
        theirs = [word + "," * word.endswith("7") for word in ours]
        began = time.process_time()
        assert sum(is_equal for is_equal, *_ in aligned(ours, theirs)) >= words // 10
        return time.process_time() - began

    half, whole = (min(seconds(words) for _ in range(2)) for words in (60_000, 120_000))
    assert whole / half < 3.2  # 2.2 in windows, 4.9 all at once


@given(st.text("ab \n\x85\u2028", max_size=30), st.integers(1, 5))
def test_words_are_counted_in_pieces(text: str, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "PIECE", piece)
        assert words_in(text) == len(text.split())
