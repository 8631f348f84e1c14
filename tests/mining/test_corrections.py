import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisegen.mining.parallel import one_line, read_correction, without_tags


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I [f-red]went[/f-red] home", "I went home"),
        ("[f-blue]a [f-bold]b[/f-bold][/f-blue]", "a b"),
        ("I have [sline]many[/sline][f-red]much[/f-red]", "I have much"),
        ("[sline]a [f-red]b[/f-red] c[/sline]d", "d"),
        ("[f-red]a[sline]b[/f-red]c[/sline]d", "ad"),  # out of order
        ("[sline]a[sline]b[/sline]c[/sline]d", "d"),  # nested in itself
        ("[SLINE]a[/SLINE]b", "b"),
        ("a[/sline]b [/f-red]c", "ab c"),  # ends without a beginning
        ("a [f-red]b", "a b"),
        ("a [sline]b", None),  # where the strike-out ends is not known
        ("[other] [1]", "[other] [1]"),
        ("", ""),
    ],
)
def test_tags(text, expected):
    assert without_tags(text) == expected


PIECES = ["a", "b ", "[sline]", "[/sline]", "[f-red]", "[/f-red]"]


@given(st.lists(st.sampled_from(PIECES)))
def test_tags_as_a_slow_twin_reads_them(pieces):
    kept, struck = [], 0
    for piece in pieces:
        if piece == "[sline]":
            struck += 1
        elif piece == "[/sline]":
            struck = max(struck - 1, 0)
        elif piece[0] != "[" and not struck:
            kept.append(piece)

    assert without_tags("".join(pieces)) == (None if struck else "".join(kept))


@pytest.mark.parametrize(
    ("text", "expected"),
    [(" a\t\tb \r\n", "a b"), ("a\x00b", "ab"), ("a \x08 b", "a b"), ("あ　い", "あ い")],
)
def test_one_line(text, expected):
    assert one_line(text) == expected


@pytest.mark.parametrize(
    ("noisy", "correction", "expected"),
    [
        ("I go home.", "I went home.", "I went home."),
        ("I go home.", "I went home.OK", "I went home."),
        ("I go home.", "I went home. Good!", "I went home."),
        ("I go home", "I went home OK", "I went home"),
        ("It is OK", "This is OK", "This is OK"),  # the learner's own word
        ("I go home.", "I went home. You must say it so.", "I went home."),
        ("I go home", "I went home. You must say it so.", "I went home."),
        ("I go home", "I went home this is in the past", "I went home"),
        ("I go home", "I went home again", "I went home again"),
        ("I go home. I slept.", "I went home. I slept.", "I went home. I slept."),
        ("I ran, I fell.", "I ran. I fell.", "I ran. I fell."),  # a sentence cut in two
        ("He said hi.", "He said: “hi.” Then more and more.", "He said: “hi.”"),
        ("I go home.", "I went (past tense) home.", "I went home."),
        ("I go (by bus) home.", "I went (by bus) home.", "I went (by bus) home."),
        ("映画を見るました。", "映画を見ました。OK", "映画を見ました。"),
        ("映画を見るました。", "映画を見ました。（「見る」は動詞です）", "映画を見ました。"),
        ("映画を見るました", "映画を見ましたOK", "映画を見ました"),
    ],
)
def test_what_the_learner_did_not_write_is_left_out(noisy, correction, expected):
    assert read_correction(noisy, correction) == (expected, None)


@pytest.mark.parametrize(
    ("correction", "reason"),
    [
        ("GOOD", "comment"),
        ("(no mistakes)", "comment"),
        ("I went/walked home.", "comment"),
        ("go → went", "comment"),
        ("I [sline]go home.", "unclosed_tag"),
        ("[sline]I go home.[/sline]", "comment"),
    ],
)
def test_what_is_no_correction_has_a_reason(correction, reason):
    assert read_correction("I go home.", correction) == ("", reason)


def test_signs_of_the_learner_are_no_comment():
    assert read_correction("I like tea/milk", "I like tea/the milk").text == "I like tea/the milk"


@pytest.mark.parametrize("piece", [".", "a.", "(", "[sline]", "ok", "ok!", "[f-red]a "])
def test_odd_corrections_take_little_time(piece):
    began = time.process_time()

    read_correction("a." * 1_000, piece * (4_000 // len(piece)))

    assert time.process_time() - began < 1
