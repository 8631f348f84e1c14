"""Blocks in a terminal: what a page says, as text."""

import io

from rich.console import Console

from noisegen.report.blocks import MISSING, Bars, Cell, Custom, Folded, Section, Table, Text
from noisegen.report.terminal import bar, show

TABLE = Table(
    "rates [bold]",
    ["rate", "real", ""],
    [["rows", Cell("12", 12.0), Cell("", bar=0.5)], ["none", MISSING, Cell("", bar=0.0)]],
)


def shown(*blocks) -> list[str]:
    console = Console(width=80, file=io.StringIO())
    show(blocks, console)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_section_is_its_title_its_lead_and_its_blocks():
    lines = shown(Section("a", "How it went", [Text("One line."), TABLE], "The lead."))
    assert lines[:5] == ["How it went", "The lead.", "", "One line.", ""]
    assert lines[5] == "rates [bold]"  # markup in text is text
    assert [line.split() for line in lines[8:10]] == [["rows", "12", "█" * 12], ["none", "–"]]


def test_a_section_of_charts_alone_is_left_out():
    assert shown(Section("a", "A map", [Custom("map", None)])) == []


def test_a_folded_block_is_shown():
    assert "One line." in shown(Folded("more", [Text("One line.")]))


def test_bars_of_one_series_have_no_heads_and_share_a_scale():
    lines = shown(Bars("edits", "%", ["a", "b"], {"all": [1, 4]}))
    assert [line.split() for line in lines[1:3]] == [["a", "1.0", "█" * 6], ["b", "4.0", "█" * 24]]


def test_bars_of_several_series_stand_side_by_side():
    lines = shown(Bars("edits", "%", ["a"], {"real": [2], "synthetic": [0]}))
    assert lines[1].split() == ["real", "synthetic"]
    assert lines[3].split() == ["a", "2.0", "█" * 12, "0.0"]


def test_a_bar_of_something_is_never_empty():
    assert bar(0.001, 1) == "▏"
    assert bar(0, 1) == bar(1, 0) == ""
