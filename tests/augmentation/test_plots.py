"""The picture of a run: PNG or a page of its own."""

import builtins
import html
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shard_files import EDITS_TYPE, MIX_ALL, ROWS, SPAN, edits_column, shard

from noisegen import augment
from noisegen.augmentation import statistics, statistics_report
from noisegen.augmentation.statistics import Statistics
from noisegen.cli import run
from noisegen.errors import MissingExtra, OutputError, UsageError


@pytest.fixture
def found(tmp_path: Path) -> Statistics:
    (tmp_path / "manifest.json").write_text(MIX_ALL)
    return statistics.measure(shard(tmp_path, ROWS, edits=edits_column()))


def test_a_png_is_a_picture(found: Statistics, tmp_path: Path) -> None:
    statistics_report.plot(found, tmp_path / "plot.PNG")
    assert (tmp_path / "plot.PNG").read_bytes().startswith(b"\x89PNG")
    assert not list(tmp_path.glob("*.tmp"))


def test_the_page_needs_no_other_file(found: Statistics, tmp_path: Path) -> None:
    statistics_report.plot(found, tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "<h1>mix_all changed 3 of 5 rows (60.0%)</h1>" in page
    assert "13.79% of the characters (CER) and 58.33% of the words (WER) are wrong" in page
    for title in ("Transforms per row", "Edits by kind", "CER of the changed rows"):
        assert title in page
    assert "<script" not in page
    assert "<?xml" not in page
    assert 'src="' not in page
    assert 'href="http' not in page


def test_of_equal_effects_that_on_most_rows_is_named(tmp_path: Path) -> None:
    drawn = {"leet": 6, "spac": 8, "abr1": 7}  # rows that each changes nothing in
    rows = [ROWS[4] | {"transforms": [name]} for name, count in drawn.items() for _ in range(count)]
    statistics_report.plot(statistics.measure(shard(tmp_path, rows)), tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text("utf-8")
    assert "least effect is spac: it changed 0 of the 8 rows that drew it alone" in page


def test_the_page_says_what_was_asked_and_shows_changed_rows(tmp_path: Path) -> None:
    clean = tmp_path / "news.txt"
    clean.write_text("".join(f"line {number} of the news\n" for number in range(40)))
    out = tmp_path / "out"
    augment(clean, out, recipe="mix_all", seed=7, strength="x1")
    measured = statistics.measure(out)
    assert 6 <= len(measured.examples) <= statistics.SAMPLES.examples
    assert all(row.clean != row.noisy for row in measured.examples)
    statistics_report.plot(measured, tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text("utf-8")
    assert f"<h1>mix_all changed {measured.changed} of 40 rows" in page
    assert page.index('class="card"') < page.index(str(clean))  # what was asked stands at the end
    assert f"<dd><bdi>{clean}</bdi></dd>" in page
    cards = re.findall(r'<li class="card".*?</li>', page, re.DOTALL)
    assert len(cards) == len(measured.examples)
    assert all("at x1: " in card for card in cards)
    for card, row in zip(cards, measured.examples, strict=True):
        sides = re.findall(r"<dd><bdi>(.*?)</bdi></dd>", card, re.DOTALL)
        texts = [html.unescape(re.sub("<[^>]*>|‸", "", side)) for side in sides]
        assert texts == [row.clean, row.noisy]
        assert '<mark class="noisy">' in card
        counts = Counter(row.transforms)
        drawn = [f"{name} ({n})" if n > 1 else name for name, n in counts.items()]
        assert ", ".join(drawn) in card


def test_a_transform_that_a_row_drew_often_is_named_once(tmp_path: Path) -> None:
    source = tmp_path / "news.txt"
    source.write_text("I do not know what you are going to do in London on Monday.\n" * 12)
    augment(source, tmp_path / "out", transforms=["caps", "fing:rate=0.3", "caps", "caps"])
    measured = statistics.measure(tmp_path / "out")
    statistics_report.plot(measured, tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text("utf-8")
    assert "caps (3), fing" in page
    assert "caps, fing, caps" not in page


def test_each_changed_word_has_its_transform(found: Statistics, tmp_path: Path) -> None:
    assert [row.changes for row in found.examples] == [
        (("see", "c", ("abr1",)), ("you", "u", ("abr1",))),
        (("the station", "thestation", ("spac",)),),
        (("two", "tw0", ("leet",)), ("once", "on ce", ("leet", "spac"))),
    ]
    statistics_report.plot(found, tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text("utf-8")
    said = re.findall(r"<dt>by</dt><dd>\s*<bdi>(.*?)</bdi>", page, re.DOTALL)
    assert re.sub("<[^>]*>", "", said[0]).split() == ["c", "abr1", "u", "abr1"]


@pytest.mark.parametrize(
    ("clean", "noisy", "spans", "words"),
    [
        ("on the road", "on road", (3, 7, 3, 3), ("the", "")),
        ("so I think", "so uh I think", (3, 3, 3, 6), ("", "uh")),
        ("a lot, now", "alot, now", (1, 2, 1, 1), ("a lot,", "alot,")),
        ("He is late", "he is late", (0, 1, 0, 1), ("He", "he")),
    ],
)
def test_a_changed_word_is_whole_and_alone(tmp_path, clean, noisy, spans, words) -> None:
    rows = [{"clean": clean, "noisy": noisy, "transforms": ["x"]}]
    edits = pa.array([[dict(zip(SPAN, ("x", *spans), strict=True))]], EDITS_TYPE)
    found = statistics.measure(shard(tmp_path, rows, edits=edits))
    assert found.examples[0].changes == ((*words, ("x",)),)


def test_a_figure_is_told_once_and_a_chart_has_several_bars(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean = tmp_path / "news.txt"
    clean.write_text("".join(f"the news of day {number}\n" for number in range(30)))
    augment(clean, tmp_path / "out", transforms=["long:rate=1"], edits=True)
    measured = statistics.measure(tmp_path / "out")
    statistics_report.plot(measured, tmp_path / "plot.html")
    statistics_report.plot(measured, tmp_path / "plot.png")
    page = (tmp_path / "plot.html").read_text("utf-8")
    assert "Transforms per row" not in page  # all rows drew one transform
    assert "least effect" not in page
    assert run(["stats", str(tmp_path / "out")]) == 0
    assert "transforms per row" not in capsys.readouterr().out
    shown = re.sub("<[^>]*>|<style>.*?</style>", " ", page, flags=re.DOTALL)
    for figure in (f"{100 * measured.cer:.2f}%", f"{100 * measured.wer:.2f}%"):
        assert shown.count(figure) == 1


def test_charts_say_what_their_axes_are_and_how_many_rows_a_bar_is(
    found: Statistics, tmp_path: Path
) -> None:
    statistics_report.plot(found, tmp_path / "plot.html")
    page = (tmp_path / "plot.html").read_text("utf-8")
    for words in ("transforms", "% of rows (number of rows)", "60.0 (3)", "edits", "kind", "CER"):
        assert f">{words}</text>" in page
    assert "blanks" not in page


def test_a_wrong_ending_is_refused_before_anything_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["stats", str(shard(tmp_path, ROWS)), "--plot", "a.gif"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: cannot plot to 'a.gif': the name must end in")


def test_the_same_figures_give_the_same_page(found: Statistics, tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        statistics_report.plot(found, tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_names_of_transforms_are_no_formulas(tmp_path: Path) -> None:
    rows = [{"clean": "a", "noisy": "b", "transforms": [name]} for name in ("$x", "y$_^$", "京都")]
    rows += [{"clean": "a", "noisy": "b", "transforms": [f"t{i}"] * i} for i in range(20)]
    statistics_report.plot(statistics.measure(shard(tmp_path, rows)), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").exists()


def test_another_ending_is_refused(found: Statistics, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.png or \.html"):
        statistics_report.plot(found, tmp_path / "plot.pdf")


def test_a_file_that_cannot_be_written_is_named(found: Statistics, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot write .*plot\.png"):
        statistics_report.plot(found, tmp_path / "none" / "plot.png")


def test_missing_matplotlib_names_the_extra(
    found: Statistics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"noisegen\[plot\]"):
        statistics_report.plot(found, tmp_path / "plot.png")
