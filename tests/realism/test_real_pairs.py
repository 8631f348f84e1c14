"""Pairs are read from every kind of source, sampled evenly and parted by their clean text."""

from pathlib import Path

import pytest

from noisegen import augment
from noisegen.errors import SourceError, UsageError
from noisegen.realism.pairs import Pairs, read_pairs

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
    found = read_pairs([str(tmp_path / "few.m2")])
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


def test_no_pair_left_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "none.tsv").write_text("noisy\tclean\n\tright\n", "utf-8")
    with pytest.raises(SourceError, match=r"no pairs in .*1 with an empty side"):
        read_pairs([str(tmp_path / "none.tsv")])


def test_no_more_pairs_than_the_limit_are_held(tmp_path: Path) -> None:
    assert len(read_pairs([str(table(tmp_path / "pairs.tsv"))], limit=7)) == 7


def test_a_clean_file_goes_with_one_text_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--clean-file"):
        read_pairs(["a.txt", "b.txt"], clean_file="c.txt")


def test_parts_share_no_clean_text_and_lose_nothing() -> None:
    pairs = Pairs(NOISY * 2, CLEAN * 2)
    fitted, held = pairs.parted(0.3, seed=1)
    assert not set(fitted.clean) & set(held.clean)
    assert len(fitted) + len(held) == len(pairs)
    sigma = (0.3 * 0.7 / len(CLEAN)) ** 0.5
    assert abs(len(held) / len(pairs) - 0.3) < 4 * sigma
    assert pairs.parted(0.3, seed=1) == (fitted, held)
    assert pairs.parted(0.3, seed=2) != (fitted, held)


def test_all_or_nothing_may_be_held_back() -> None:
    assert [len(part) for part in PAIRS.parted(0)] == [len(PAIRS), 0]
    assert [len(part) for part in PAIRS.parted(1)] == [0, len(PAIRS)]


def test_a_sample_is_spread_evenly_in_order() -> None:
    assert PAIRS.sample(4).clean == [CLEAN[number] for number in (0, 50, 100, 150)]
    assert PAIRS.sample(500) is PAIRS
