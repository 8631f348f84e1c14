"""The pages of stats, realism and review in a real Chromium: a phone, light and dark."""

from pathlib import Path

import pytest
from contrast import CONTRAST

from noisegen import augment, compare, review
from noisegen.augmentation import statistics, statistics_report
from noisegen.realism.report_blocks import comparison_page
from noisegen.report import pages
from noisegen.report.blocks import Cell, Section, Table
from noisegen.review.review_file import ReviewFile
from noisegen.text.resources import DEMO

pytest.importorskip("sklearn")
PAGES = ("stats", "realism", "review")
OUTSIDE = """() => [...document.querySelectorAll("main svg text")].filter((text) => {
  const [inner, outer] = [text, text.closest("svg")].map((one) => one.getBoundingClientRect());
  return inner.width && (inner.left < outer.left - 1 || inner.right > outer.right + 1);
}).map((text) => text.textContent)"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Make every page of the bundled text."""
    folder = tmp_path_factory.mktemp("pages")
    augment(DEMO, folder / "real", recipe="ugc", seed=1, limit=60)
    augment(DEMO, folder / "out", recipe="mix_all", seed=2, limit=60)
    statistics_report.plot(statistics.measure(folder / "out"), folder / "stats.html")
    realism = compare(folder / "real", synthetic=folder / "out")
    (folder / "realism.html").write_text(comparison_page(realism), "utf-8")
    review.make(folder / "out", folder / "review.sqlite", rows=3)
    opened = ReviewFile(folder / "review.sqlite")
    key = opened.join("Ana", None)["reviewer"]
    for item in (1, 2, 3):
        opened.answer(key, item, "realism", "realistic", f"{item}")
        opened.answer(key, item, "kinds", [1], f"{item} kinds")
    opened.close()
    review.report(folder / "review.sqlite", folder / "review.html")
    return folder


@pytest.fixture
def opened(chromium, folder):
    pages = []

    def opening(name: str, width: int = 390, **options):
        viewport = {"width": width, "height": 844}
        pages.append(chromium.new_page(viewport=viewport, **options))
        pages[-1].goto((folder / f"{name}.html").as_uri())
        pages[-1].evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
        return pages[-1]

    yield opening
    for page in pages:
        page.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 1100])
def test_a_page_fits_the_screen_and_a_chart_its_words(opened, name, width):
    page = opened(name, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OUTSIDE) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast(opened, name, scheme):
    found = opened(name, color_scheme=scheme).evaluate(CONTRAST)
    assert len(found) > 20
    assert [line for line in found if line[2] < 4.5] == []


def test_rows_of_text_are_stacked_on_a_phone_and_each_cell_is_named(opened):
    page = opened("realism")
    tables = page.locator("table.stacked")
    for table in tables.all():
        around = table.locator("..")
        assert around.evaluate("one => one.scrollWidth <= one.clientWidth")
        heads = table.locator("thead th").all_text_contents()
        row = table.locator("tbody tr").first
        assert row.locator("td").evaluate_all("all => all.map((one) => one.dataset.head)") == [
            head.strip() for head in heads[1:]
        ]
        tops = row.locator("td").evaluate_all("all => all.map((one) => one.offsetTop)")
        assert tops == sorted(set(tops))
    assert tables.count() == 4


def test_a_shadow_says_that_a_table_goes_on(opened, folder):
    heads = [f"column {number}" for number in range(9)]
    table = Table(f"a table {'with many columns ' * 4}", heads, [heads])
    content = pages.page("Wide", [Section("wide", "Wide", [table])])
    (folder / "wide.html").write_text(content, "utf-8")
    wide = opened("wide").locator(".wide")
    assert wide.evaluate("one => one.scrollWidth > one.clientWidth")
    shades = "one => getComputedStyle(one).backgroundAttachment"
    assert wide.evaluate(shades) == "local, local, scroll, scroll"  # covered where the table ends
    words = wide.locator("caption").bounding_box()
    assert words["x"] + words["width"] <= 390


def test_a_long_name_above_the_title_leaves_the_switch_on_the_page(opened, folder):
    content = pages.page("Named", [], kicker=f"noisegen: {'x' * 90}")
    (folder / "named.html").write_text(content, "utf-8")
    switch = opened("named").locator(".switch").bounding_box()
    assert switch["x"] + switch["width"] <= 390


def test_a_long_word_is_broken_where_rows_are_stacked(opened, folder):
    table = Table("links", ["row", "link"], [["one", Cell(f"see/{'x' * 90}")]], "stacked")
    content = pages.page("Links", [Section("links", "Links", [table])])
    (folder / "links.html").write_text(content, "utf-8")
    wide = opened("links").locator(".wide")
    assert wide.evaluate("one => one.scrollWidth <= one.clientWidth")
