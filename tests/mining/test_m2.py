import gzip

import pytest
from conftest import SHARED
from hypothesis import given
from hypothesis import strategies as st

from noisegen.mining.m2 import blocks


def read(text):
    return list(blocks(enumerate(text.splitlines(), 1)))


def corrected(*edits, tokens="a b c d"):
    lines = [f"A {span}|||{kind}|||{new}|||REQUIRED|||-NONE-|||{who}"
             for span, kind, new, who in edits]  # fmt: skip
    [block] = read("\n".join([f"S {tokens}", *lines]))
    return block.corrected(), block.damaged


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([("1 2", "R:OTHER", "x", 0)], ["a x c d"]),
        ([("1 2", "U:OTHER", "", 0)], ["a c d"]),
        ([("1 2", "U:OTHER", "-NONE-", 0)], ["a c d"]),
        ([("4 4", "M:PUNCT", ".", 0)], ["a b c d ."]),
        ([("0 0", "M:OTHER", "x y", 0)], ["x y a b c d"]),
        ([("1 3", "R:OTHER", "x", 0), ("3 4", "R:OTHER", "y z", 0)], ["a x y z"]),
        ([("3 4", "R:OTHER", "y", 0), ("0 1", "R:OTHER", "x", 0)], ["x b c y"]),  # any order
        ([("1 1", "M:OTHER", "x", 0), ("1 2", "R:OTHER", "y", 0)], ["a x y c d"]),
        ([("1 1", "M:OTHER", "x", 0), ("1 1", "M:OTHER", "y", 0)], ["a x y b c d"]),
        ([("1 2", "R:OTHER", "x||y", 0)], ["a x c d"]),  # the first alternative
        ([("1 2", "R:OTHER", "x", 0), ("1 2", "R:OTHER", "y", 1)], ["a x c d", "a y c d"]),
        ([("-1 -1", "noop", "-NONE-", 0), ("0 1", "R:OTHER", "x", 1)], ["a b c d", "x b c d"]),
        ([("1 2", "UNK", "b", 0)], ["a b c d"]),
        ([], []),
    ],
)
def test_each_annotator_gives_a_sentence(edits, expected):
    assert corrected(*edits) == (expected, [])


@pytest.mark.parametrize("span", ["3 9", "2 1", "-1 2", "x 2", "1", "", "1 2 3", "1  2"])
def test_an_impossible_span_costs_the_sentence_of_its_annotator_only(span):
    texts, damaged = corrected((span, "R", "x", 0), ("0 1", "R", "y", 0), ("0 1", "R", "z", 1))

    assert texts == ["z b c d"]
    assert damaged[0] == "line 2 is no edit of the sentence"


def test_overlapping_edits_cost_the_sentence_of_their_annotator_only():
    texts, damaged = corrected(("0 2", "R", "x", 0), ("1 3", "R", "y", 0), ("0 1", "R", "z", 1))

    assert texts == ["z b c d"]
    assert damaged == ["edits of annotator 0 overlap"]


def test_blocks_are_told_apart_with_and_without_blank_lines():
    edit = "A 0 1|||R|||x|||REQUIRED|||-NONE-|||0"
    found = read(f"\nS a b\n{edit}\n\n\nS c\nS\n{edit}")

    assert [(block.line, block.tokens, block.corrected()) for block in found] == [
        (2, ["a", "b"], ["x b"]),
        (6, ["c"], []),
        (7, [], []),
    ]
    assert [block.damaged for block in found] == [[], [], ["line 8 is no edit of the sentence"]]


@pytest.mark.parametrize("line", ["Q what", "A 0 1|||R|||x", "A", "A 0 1"])
def test_a_line_that_is_no_m2_is_noted(line):
    [block] = read(f"S a b\n{line}")

    assert len(block.damaged) == 1
    assert block.corrected() == []


def test_an_edit_before_any_sentence_is_noted():
    [block] = read("A 0 1|||R|||x|||REQUIRED|||-NONE-|||0")

    assert (block.tokens, block.damaged) == ([], ["line 1 is no line of M2"])


SPANS = st.lists(st.integers(0, 6), max_size=6, unique=True).map(sorted)


@given(SPANS)
def test_edits_applied_as_a_slow_twin_does(cuts):
    """Edits at every second stretch between the cuts; the twin builds the text left to right."""
    tokens = list("abcdef")
    stretches = [(start, stop) for start, stop in zip(cuts[::2], cuts[1::2], strict=False)]
    edits = [(f"{start} {stop}", "R", f"x{start}", 0) for start, stop in stretches]
    expected, at = [], 0
    for start, stop in stretches:
        expected += [*tokens[at:start], f"x{start}"]
        at = stop

    texts, damaged = corrected(*reversed(edits), tokens="a b c d e f")

    assert damaged == []
    assert texts == ([" ".join([*expected, *tokens[at:]])] if edits else [])


def test_a_real_corpus_has_no_damage():
    path = SHARED / "cweb" / "CWEB-G.dev.m2.gz"
    if not path.exists():
        pytest.skip("no development data")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = list(blocks(enumerate(file, 1)))

    assert len(found) > 3_000
    assert {len(block.corrected()) for block in found} == {2}
    assert not any(block.damaged for block in found)
