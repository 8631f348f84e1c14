"""Pages of any blocks: escaped, self-contained, the same every time."""

import re

import pytest

from noisegen.report import pages
from noisegen.report.blocks import MISSING, Cell, Custom, Figure, Folded, Section, Table, Text
from noisegen.report.charts import sample

HOSTILE = '</script></title><script>alert(1)</script><img src=x onerror="alert(1)">\'&\u202egnp'
TABLE = Table(
    HOSTILE,
    [HOSTILE, Cell(HOSTILE, kind="m1 named", title=HOSTILE)],
    [[HOSTILE, Cell(HOSTILE, 0.1, HOSTILE, shade=1.0)], [HOSTILE, MISSING]],
    "heat sortable",
    HOSTILE,
)
FIGURE = Figure([], HOSTILE, HOSTILE, [sample(1, HOSTILE)])
BLOCKS = [Text(HOSTILE), TABLE, Folded(HOSTILE, [TABLE]), FIGURE]


def hostile_page() -> str:
    return pages.page(HOSTILE, [Section("one", HOSTILE, BLOCKS)], kicker=HOSTILE, head=BLOCKS)


@pytest.fixture(scope="module")
def html() -> str:
    return hostile_page()


def test_hostile_text_stays_text_in_every_block(html):
    assert "<script" not in html
    assert "<img" not in html
    assert html.count("</title>") == 1 + html.count("<svg ")
    assert html.count('onerror="') == 0


def test_a_page_without_script_needs_none_and_asks_for_nothing(html):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert "unsafe" not in policy
    assert not re.search(r"(?:https?:)?//[a-z]|@import|url\(|src=", html.replace("src=x", ""))
    assert hostile_page() == html


def test_controls_and_lone_surrogates_become_signs_that_can_be_written():
    html = pages.page("a\x00b", [Section("one", "x", [Text("\ud800 \x1b[31m\x85")])])
    assert html.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x80-\x9f]", html)
    assert "a\ufffdb" in html


def test_long_names_and_texts_are_cut_with_an_ellipsis():
    html = pages.page("t", [Section("one", "x", [Table("c", ["h"], [["word " * 999, "y" * 999]])])])
    cells = re.findall(r"<bdi>([wy][^<]*)</bdi>", html)
    assert [len(cell) <= most for cell, most in zip(cells, (60, 400), strict=True)] == [True, True]
    assert all(cell.endswith("…") for cell in cells)


def test_sections_without_blocks_are_left_out():
    html = pages.page("t", [Section("one", "x", [Text("y")]), Section("two", "x", [])])
    assert 'id="one"' in html
    assert 'id="two"' not in html


def test_a_cell_is_shaded_sorted_and_missing(html):
    assert '<td class="n h8" data-value="0.1">' in html
    assert '<td class="none">' in html


def test_a_callers_template_draws_its_own_blocks_and_brings_its_styles(tmp_path):
    (tmp_path / "own.html").write_text("{% macro cry(data) %}<em>{{ data }}</em>{% endmacro %}")
    (tmp_path / "own.css").write_text("em { color: red }")
    sections = [Section("one", "x", [Custom("cry", "<b>")])]
    html = pages.page("t", sections, macros=tmp_path / "own.html")
    assert "<em>&lt;b&gt;</em>" in html
    assert "em { color: red }</style>" in html
