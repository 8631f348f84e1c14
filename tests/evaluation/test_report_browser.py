"""The report in a real Chromium without a window: it draws, sorts, switches, prints, asks none."""

import struct
import zlib
from dataclasses import replace

import pytest
from contrast import CONTRAST
from made_results import made

from noisegen.evaluation.page import write
from noisegen.evaluation.results import ShownPair

expect = pytest.importorskip("playwright.sync_api").expect
RTL = ShownPair("broken", "jfleg", "אני הולך לשוק בבוקר", "אני הולך לשוק בבקר", {"minilm": 0.4})


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    results = made()
    path = tmp_path_factory.mktemp("report") / "report.html"
    write(replace(results, examples=(*results.examples, RTL)), path)
    return path


@pytest.fixture
def opened(chromium, path):
    """Open the page; at the end, it asked for nothing else and complained of nothing."""
    contexts, asked, said = [], [], []

    def opening(**options):
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        return page

    yield opening
    assert {url for url in asked if not url.startswith("data:")} == {path.as_uri()}
    assert said == []
    for context in contexts:
        context.close()


def variety(image: bytes) -> int:
    """Return how many different bytes the pixels of a PNG come to; of a blank one, a handful."""
    packed, at = b"", 8
    while at < len(image):
        size, name = struct.unpack(">I4s", image[at : at + 8])
        packed += image[at + 8 : at + 8 + size] if name == b"IDAT" else b""
        at += size + 12
    return len(set(zlib.decompress(packed)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_sections_are_drawn_in_both_schemes(opened, scheme):
    page = opened(color_scheme=scheme)
    for section in page.locator("main > section").all():
        expect(section).to_be_visible()
        assert section.bounding_box()["height"] > 80
    assert page.locator("main > section").count() == 11
    assert variety(page.locator("#noise h2").screenshot()) > 20
    for name in ("noise", "map", "strength", "space"):
        assert variety(page.locator(f"#{name}").screenshot()) > 100


def test_charts_are_drawn_inside_their_frames(opened):
    page = opened()
    outside = page.evaluate("""() => [...document.querySelectorAll("svg.chart")].flatMap((svg) => {
      const frame = svg.getBoundingClientRect();
      return [...svg.querySelectorAll("text, circle")].filter((one) => {
        const box = one.getBoundingClientRect();
        return box.left < frame.left - 1 || box.right > frame.right + 1
          || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
      }).map((one) => one.outerHTML);
    })""")
    assert outside == []


def test_labels_of_the_charts_do_not_cover_one_another(opened):
    overlaps = opened().evaluate("""() => [...document.querySelectorAll("#noise svg")]
      .flatMap((svg) => {
        const boxes = [...svg.querySelectorAll("text.small")].map((t) => t.getBoundingClientRect());
        return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) =>
          a.left < b.right && b.left < a.right && Math.min(a.bottom, b.bottom)
          - Math.max(a.top, b.top) > 4));
      }).length""")
    assert overlaps == 0


def ground(page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_switch_overrides_the_system_and_goes_back(opened):
    page = opened(color_scheme="light")
    light = ground(page)
    page.get_by_text("dark", exact=True).click()
    dark = ground(page)
    page.get_by_text("light", exact=True).click()
    assert ground(page) == light != dark
    page.emulate_media(color_scheme="dark")
    assert ground(page) == light
    page.get_by_text("auto", exact=True).click()
    assert ground(page) == dark


def test_the_switch_works_by_keyboard_and_without_script(opened):
    page = opened(color_scheme="light", java_script_enabled=False)
    page.locator("#auto").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#dark").is_checked()
    assert ground(page) == "rgb(21, 24, 27)"


def test_without_script_all_is_there_and_no_button_is_dead(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("main > section").count() == 11
    assert page.locator("button").count() == 0
    page.locator("summary", has_text="rows of figures").click()
    assert page.locator("table.copied").is_visible()


def column(page, place: int) -> list[str]:
    return page.locator(f"table.copied tbody td:nth-child({place})").evaluate_all(
        "all => all.map((one) => one.dataset.value ?? '')"
    )


def test_tables_are_sorted_as_numbers_both_ways_with_gaps_last(opened):
    page = opened()
    page.locator("#figures summary").click()
    head = page.locator("table.copied thead th").nth(3)
    for way, state in ((False, "ascending"), (True, "descending")):
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", state)
        found = column(page, 4)
        known = [float(value) for value in found if value]
        assert known == sorted(known, reverse=way)
        assert "" not in found[: len(known)]


def test_tables_are_sorted_by_keyboard(opened):
    page = opened()
    button = page.locator("#map table").first.get_by_role("button").first
    button.focus()
    page.keyboard.press("Enter")
    names = page.locator("#map table").first.locator("tbody th").all_inner_texts()
    assert names == sorted(names)


def test_rows_are_filtered_and_copied_with_all_their_digits(opened):
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.locator("#figures summary").click()
    page.get_by_label("Filter the rows").fill("vilexnorm")
    assert page.locator("table.copied tbody tr:visible").count() == 9
    page.get_by_role("button", name="Copy as CSV").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    lines = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert lines[0] == "set,kind,metric,minilm,student,char-student"
    value = made().scores["student"]["leet"]["distance"].value
    assert float(next(line for line in lines if "cosine distance" in line).split(",")[4]) == value


def test_examples_are_found_by_word_and_by_set(opened):
    page = opened()
    cards = page.locator(".examples > li:visible")
    assert cards.count() == 9
    page.get_by_label("Find a word").fill("LISBON")
    assert cards.count() == 1
    page.get_by_label("Find a word").fill("")
    page.get_by_label("Set").select_option("mix_all")
    assert cards.count() == 4


def test_what_the_pointer_rests_on_is_told(opened):
    page = opened()
    dot = page.locator("#strength .tip").last
    dot.scroll_into_view_if_needed()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    dot.hover()  # not before the page has come to rest: scrolling hides what is told
    assert "char-student, 2: " in page.locator("#tip:visible").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_text_from_right_to_left_stands_so(opened):
    card = opened().locator(".examples > li").last
    marked, rest = (card.locator("dd").nth(place) for place in (0, 1))
    assert card.locator("bdi").first.evaluate("one => getComputedStyle(one).direction") == "rtl"
    expect(marked.locator("mark")).to_have_text("בבקר")
    expect(rest.locator("mark")).to_have_text("בבוקר")


@pytest.mark.parametrize("width", [380, 768])
def test_narrow_screens_scroll_tables_and_not_the_page(opened, width):
    page = opened(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    texts = page.locator("main svg text").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().height)"
    )
    assert min(texts) > 9


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_in_both_schemes(chromium, tmp_path, scheme):
    path = tmp_path / "report.html"
    write(made(8, 4), path)
    page = chromium.new_page(color_scheme=scheme)
    page.goto(path.as_uri())
    found = page.evaluate(CONTRAST)
    page.close()
    assert len(found) > 400
    assert [line for line in found if line[2] < 4.5] == []


def test_everything_that_can_be_used_has_a_name(opened):
    page = opened()
    page.locator("#figures summary").click()
    unnamed = page.evaluate("""() => [...document.querySelectorAll("button, input, select, svg")]
      .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim()
        || one.labels?.length)).map((one) => one.outerHTML)""")
    assert unnamed == []


def test_it_prints_on_a4_in_light_colours_without_controls(opened):
    page = opened(color_scheme="dark")
    page.get_by_text("dark", exact=True).click()
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    page.emulate_media(media="print")
    assert ground(page) == "rgb(255, 255, 255)"
    assert page.locator(".switch:visible, nav:visible, .tools:visible").count() == 0
