"""Pairs of every kind of source, sampled and split by their clean text; M2."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest
from conftest import SHARED
from hypothesis import given
from hypothesis import strategies as st
from source_files import cut_finely

from noisegen import augment
from noisegen.data import pairs as pair_files
from noisegen.data.m2 import line_pieces, m2_sentences, read_m2
from noisegen.data.pairs import Pairs, read_pairs
from noisegen.data.rows import FileRange
from noisegen.errors import SourceError, UsageError

CLEAN = [f"see you at {hour} o'clock" for hour in range(200)]
NOISY = [text.replace("you", "u") for text in CLEAN]
PAIRS = Pairs(NOISY, CLEAN)


def table(path: Path, head: str = "noisy\tclean", separator: str = "\t") -> Path:
    lines = [f"{a}{separator}{b}\n" for a, b in zip(NOISY, CLEAN, strict=True)]
    path.write_text(head + "\n" + "".join(lines), "utf-8")
    return path


def test_a_table_is_read_in_order(tmp_path: Path) -> None:
    found = read_pairs([str(table(tmp_path / "pairs.tsv"))])
    assert (found.noisy, found.clean) == (NOISY, CLEAN)
    assert (found.dropped, found.damaged) == ({}, [])


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    path = table(tmp_path / "pairs.csv", "wrong,right", ",")
    assert read_pairs([str(path)], noisy_column="wrong", clean_column="right").clean == CLEAN


def test_aligned_files_are_read_line_by_line(tmp_path: Path) -> None:
    for name, side in (("noisy.txt", NOISY), ("clean.txt", CLEAN)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in side), "utf-8")
    found = read_pairs([str(tmp_path / "noisy.txt")], clean_file=str(tmp_path / "clean.txt"))
    assert (found.noisy, found.clean) == (NOISY, CLEAN)


def test_the_first_annotator_of_an_m2_file_counts(tmp_path: Path) -> None:
    (tmp_path / "few.m2").write_text(
        "S see u soon\nA 1 2|||R|||you|||REQUIRED|||-NONE-|||0\n"
        "A 2 3|||R|||later|||REQUIRED|||-NONE-|||1\n\nS fine\n\n",
        "utf-8",
    )
    (tmp_path / "few.m2.xz").write_bytes(lzma.compress((tmp_path / "few.m2").read_bytes()))
    for name in ("few.m2", "few.m2.xz"):
        found = read_pairs([str(tmp_path / name)])
        assert found.noisy == ["see u soon", "fine"]
        assert found.clean == ["see you soon", "fine"]


def test_a_folder_of_augment_is_read(tmp_path: Path) -> None:
    (tmp_path / "clean.txt").write_text("".join(f"{line}\n" for line in CLEAN), "utf-8")
    augment(tmp_path / "clean.txt", tmp_path / "out", transforms=["spac"], rows_per_shard=64)
    assert read_pairs([str(tmp_path / "out")]).clean == CLEAN


def test_pairs_with_an_empty_side_are_dropped_and_counted(tmp_path: Path) -> None:
    path = table(tmp_path / "pairs.tsv")
    path.write_text(path.read_text("utf-8") + "\tright\nwrong\t \n", "utf-8")
    found = read_pairs([str(path)])
    assert len(found) == len(CLEAN)
    assert found.dropped == {"empty_side": 2}


def test_pairs_that_cannot_be_read_are_no_empty_sides(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"noisy\tclean\nu\tyou\n\xff\tyou\nu\n\tyou\n")
    found = read_pairs([str(path)])
    assert found.dropped == {"empty_side": 1, "unreadable": 2}
    assert len(found.damaged) == 2
    (tmp_path / "noisy.txt").write_bytes(b"u\n\xff\n\n")
    (tmp_path / "clean.txt").write_bytes(b"you\nyou\nyou\n")
    found = read_pairs([str(tmp_path / "noisy.txt")], clean_file=str(tmp_path / "clean.txt"))
    assert (found.noisy, found.dropped) == (["u"], {"empty_side": 1, "unreadable": 1})


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"noisy\tclean\n"])
def test_a_table_without_pairs_says_what_it_is(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "none.tsv").write_bytes(content)
    with pytest.raises(SourceError, match=r"none\.tsv: empty, or with only a header"):
        read_pairs([str(tmp_path / "none.tsv")])


def test_a_pair_too_long_for_a_sentence_is_left_out_and_counted(tmp_path: Path) -> None:
    path, long = table(tmp_path / "pairs.tsv"), "to be " * 1_700_000
    path.write_text(path.read_text("utf-8") + f"{long}\t{long}not\nshort\t{long}\n", "utf-8")
    found = read_pairs([str(path)])
    assert len(found) == len(CLEAN)
    assert found.dropped == {"too_long": 2}


def test_no_pair_left_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "none.tsv").write_text("noisy\tclean\n\tright\n", "utf-8")
    with pytest.raises(SourceError, match=r"no pairs in .*1 empty_side"):
        read_pairs([str(tmp_path / "none.tsv")])


def test_no_more_pairs_than_the_limit_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_files, "PAIRS_MAX", 7)
    found = read_pairs([str(table(tmp_path / "pairs.tsv"))])
    assert (len(found), found.dropped["over_limit"]) == (7, len(CLEAN) - 7)


def test_a_clean_file_goes_with_one_text_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--clean-file"):
        read_pairs(["a.txt", "b.txt"], clean_file="c.txt")


def test_parts_share_no_clean_text_and_lose_nothing() -> None:
    pairs = Pairs(NOISY * 2, CLEAN * 2)
    fitted, held = pairs.split(0.3, seed=1)
    assert not set(fitted.clean) & set(held.clean)
    assert len(fitted) + len(held) == len(pairs)
    sigma = (0.3 * 0.7 / len(CLEAN)) ** 0.5
    assert abs(len(held) / len(pairs) - 0.3) < 4 * sigma
    assert pairs.split(0.3, seed=1) == (fitted, held)
    assert pairs.split(0.3, seed=2) != (fitted, held)


def test_all_or_nothing_may_be_held_back() -> None:
    assert [len(part) for part in PAIRS.split(0)] == [len(PAIRS), 0]
    assert [len(part) for part in PAIRS.split(1)] == [0, len(PAIRS)]


def test_a_sample_is_spread_evenly_in_order() -> None:
    assert PAIRS.sample(4).clean == [CLEAN[number] for number in (0, 50, 100, 150)]
    assert PAIRS.sample(500) is PAIRS


def read(text):
    return list(m2_sentences(enumerate(text.splitlines(), 1)))


def corrected(*edits, tokens="a b c d"):
    lines = [
        f"A {span}|||{kind}|||{new}|||REQUIRED|||-NONE-|||{who}" for span, kind, new, who in edits
    ]
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
    assert damaged[0] == "line 2 is not an edit of the sentence"


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
    assert [block.damaged for block in found] == [[], [], ["line 8 is not an edit of the sentence"]]


@pytest.mark.parametrize("line", ["Q what", "A 0 1|||R|||x", "A", "A 0 1"])
def test_a_line_that_is_no_m2_is_noted(line):
    [block] = read(f"S a b\n{line}")

    assert len(block.damaged) == 1
    assert block.corrected() == []


def test_an_edit_before_any_sentence_is_noted():
    [block] = read("A 0 1|||R|||x|||REQUIRED|||-NONE-|||0")

    assert (block.tokens, block.damaged) == ([], ["line 1 is not an M2 line"])


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


@pytest.mark.nightly
def test_a_real_corpus_has_no_damage():
    path = SHARED / "cweb" / "CWEB-G.dev.m2.gz"
    if not path.exists():
        pytest.skip("no development data")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = list(m2_sentences(enumerate(file, 1)))

    assert len(found) > 3_000
    assert {len(block.corrected()) for block in found} == {2}
    assert not any(block.damaged for block in found)


def test_ranges_of_a_compressed_m2_file_have_its_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = "A {0} {1}|||X|||new{0}|||REQUIRED|||-NONE-|||0\n"
    sentence = "S one two three\n" + "".join(edit.format(n, n + 1) for n in range(3)) + "\n"
    text = (sentence * 200).encode()
    streams = [bz2.compress(text[at : at + 301]) for at in range(0, len(text), 301)]
    path = tmp_path / "a.m2.bz2"
    path.write_bytes(b"".join(streams))
    cut_finely(monkeypatch, 1_000, 100)
    whole = list(read_m2(FileRange(str(path)), []))
    assert len(whole) == 200
    for lines in (7, 50):
        pieces = line_pieces(str(path), lines)
        assert len(pieces) > 9
        assert [found for piece in pieces for found in read_m2(piece, [])] == whole
