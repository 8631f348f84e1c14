"""The page in a real Chromium without a window: keyboard, reload, crash, access for all."""

import signal
from itertools import count
from urllib.parse import urlsplit

import pytest
from contrast import CONTRAST
from reviews import Served, made, output, rows_of, sentences, serving

from noisegen import review

expect = pytest.importorskip("playwright.sync_api").expect
NUMBERS = count()
WORLD = [
    ("he", "אני הולך לשוק בבוקר", "אני הולך לשוק בבוקרר"),
    ("ar", "سأذهب إلى السوق غدا", "ساذهب إلى السوق غدا"),
    ("ja", "明日は市場に行きます", "明日は市場に生きます"),
    ("zh", "我明天去市场买菜", "我明天去市场卖菜"),
    ("en", "see <u>me</u> & go", "see <u>me</u> & og<img/src=x/onerror=alert(1)>"),
]


class Reviewer:
    """A browser of one person, who sees what it asks for and what it complains of."""

    def __init__(self, browser, **options) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(10_000)
        self.asked: list[str] = []
        self.errors: list[str] = []
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page = self.window()

    def window(self):
        page = self.context.new_page()
        page.on("console", lambda said: self.errors.append(said.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        return page

    def start(self, address: str, name: str = "Ana") -> "Reviewer":
        self.page.goto(address)
        self.page.locator("#name").wait_for()
        self.page.keyboard.type(name)
        self.page.keyboard.press("Enter")
        self.page.locator("#review").wait_for()
        return self

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def at(self, text: str) -> None:
        expect(self.page.locator("#place")).to_have_text(text)

    def saved(self) -> None:
        expect(self.page.locator("#saved")).to_have_text("Saved")

    def marked(self, mark: str) -> list[str]:
        return self.page.locator(mark).all_inner_texts()


@pytest.fixture
def person(chromium):
    """Make reviewers; at the end, nothing but the server was asked, and nothing complained."""
    made_here: list[Reviewer] = []

    def new(**options) -> Reviewer:
        made_here.append(Reviewer(chromium, **options))
        return made_here[-1]

    yield new
    for one in made_here:
        assert {urlsplit(url).hostname for url in one.asked} <= {"127.0.0.1"}
        assert [said for said in one.errors if "Failed to load resource" not in said] == []
        one.context.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A review of right-to-left, CJK and hostile text."""
    folder = tmp_path_factory.mktemp("world")
    langs, clean, noisy = zip(*WORLD, strict=True)
    made_of = output(folder / "out", list(zip(clean, noisy, strict=True)), lang=langs)
    review.make(made_of, folder / "review.sqlite")
    return folder / "review.sqlite"


@pytest.fixture(scope="module")
def world_server(world):
    with serving(world) as running:
        yield running


@pytest.fixture
def path(tmp_path):
    return made(tmp_path, rows=2, count=30)


@pytest.fixture
def one_pair(person, world_server):
    """Show the one pair of a language."""

    def show(lang: str, **options) -> Reviewer:
        one = person(**options)
        one.page.goto(world_server.address)
        one.page.locator("#name").wait_for()
        for box in one.page.locator("#langs input").all():
            box.set_checked(box.get_attribute("value") == lang)
        one.page.locator("#name").fill(f"reads {lang} {next(NUMBERS)}")
        one.press("Enter")
        one.at("Pair 1 of 1")
        return one

    return show


# The whole way.


@pytest.mark.nightly
def test_45_rows_by_keyboard_with_a_reload_and_a_killed_server(person, tmp_path):
    path, ana = made(tmp_path), person()
    with Served(path) as first:
        ana.start(first.address)
        port = urlsplit(first.address).port
        for number in range(1, 31):
            ana.at(f"Pair {number} of 45")
            ana.press("1" if number % 3 else "2", "t", "y", "Enter")
            if number == 15:
                ana.at("Pair 16 of 45")
                ana.page.reload()  # also while an answer may be on its way
        ana.at("Pair 31 of 45")
        first.stop(signal.SIGKILL)
        ana.press("1", "m")
        expect(ana.page.locator("#banner")).to_contain_text("The server does not answer")
        expect(ana.page.locator("#banner")).to_contain_text("not stored yet: kept in this browser")
    with Served(path, port=port) as second:
        expect(ana.page.locator("#banner")).to_contain_text("has a new token")
        window = ana.window()
        window.goto(second.address)
        expect(window.locator("#place")).to_have_text("Pair 31 of 45")
        window.close()
        ana.saved()
        expect(ana.page.locator("#banner")).to_be_hidden()
        ana.press("y", "ArrowRight")
        for number in range(32, 46):
            ana.at(f"Pair {number} of 45")
            ana.press("3", "n", "Enter")
        expect(ana.page.locator("#thanks")).to_contain_text("all 45 pairs")
        expect(ana.page.locator("#thanks-title")).to_be_focused()
        ana.saved()
    found = review.report(path)
    assert (found.judged, len(found.reviewers), found.reviewers[0].complete) == (45, 1, 45)
    counts = dict(rows_of(path, "SELECT value, count(*) FROM latest GROUP BY value"))
    assert counts == {
        '"realistic"': 21,
        '"moderate"': 10,
        '"unrealistic"': 14,
        "[1]": 30,
        "[2]": 1,
        '"yes"': 31,
        '"no"': 14,
    }


def test_back_shows_the_answers_and_lets_them_be_changed(person, path):
    with serving(path) as server:
        ana = person().start(server.address)
        ana.press("1", "c", "y", "Enter")
        ana.at("Pair 2 of 6")
        ana.press("ArrowLeft")
        ana.at("Pair 1 of 6")
        chosen = ana.page.locator("#answers :checked").evaluate_all(
            "all => all.map((o) => o.value)"
        )
        assert chosen == ["realistic", "10", "yes"]
        ana.press("3", "c", "/")
        ana.page.keyboard.type("too odd")
        ana.press("Escape", "ArrowRight")
        ana.at("Pair 2 of 6")
        ana.saved()
    values = [value for (value,) in rows_of(path, "SELECT value FROM latest ORDER BY question")]
    assert values == ['"too odd"', "[]", '"yes"', '"unrealistic"']


def test_back_shows_an_answer_that_was_stored_while_the_pair_was_read(person, path):
    with serving(path) as server:
        ana = person().start(server.address)
        held, read = [], []

        def hold(route):
            if held:
                route.continue_()
            else:
                held.append(route)

        def answer_late(route):
            read.append((route, route.fetch()))  # as the server knows it before the answers

        ana.page.route("**/api/answers", hold)
        ana.press("1", "y", "Enter")
        ana.at("Pair 2 of 6")
        ana.page.route("**/api/items/0", answer_late)
        ana.press("ArrowLeft")
        while not (held and read):
            ana.page.wait_for_timeout(10)
        held[0].continue_()
        ana.saved()
        (route, response), *_ = read
        route.fulfill(response=response)
        ana.at("Pair 1 of 6")
        assert ana.page.locator("#answers :checked").count() == 2


def test_two_review_at_once_each_in_their_own_order(person, path):
    with serving(path) as server:
        people = [person().start(server.address, name) for name in ("Ana", "Ben")]
        seen = []
        for place in range(1, 7):
            for one in people:
                one.at(f"Pair {place} of 6")
                seen.append(one.page.locator("#clean").inner_text())
                one.press("1", "y", "Enter")
        for one in people:
            expect(one.page.locator("#thanks")).to_be_visible()
            one.saved()
    assert seen[::2] != seen[1::2]
    assert sorted(seen[::2]) == sorted(seen[1::2])
    assert [one.complete for one in review.report(path).reviewers] == [6, 6]


def test_a_name_in_use_is_asked_about(person, path):
    with serving(path) as server:
        person().start(server.address).press("1", "y", "Enter")
        other = person()
        other.page.goto(server.address)
        other.page.locator("#name").fill("ana")
        other.press("Enter")
        expect(other.page.locator("#taken-title")).to_be_focused()
        other.page.get_by_role("button", name="Choose another name").click()
        expect(other.page.locator("#name")).to_be_focused()
        other.press("Enter")
        other.page.get_by_role("button", name="That was me: continue").click()
        other.at("Pair 2 of 6")
    assert rows_of(path, "SELECT name FROM reviewers") == [("Ana",)]


def test_a_new_kind_becomes_an_option_for_the_other_reviewer(person, path):
    with serving(path) as server:
        ana, ben = (person().start(server.address, name) for name in ("Ana", "Ben"))
        ana.press("+")
        ana.page.keyboard.type("keyboard mash")
        ana.press("Enter")
        ana.page.get_by_label("keyboard mash").wait_for()
        ana.saved()
        ben.press("1", "y", "Enter")
        ben.at("Pair 2 of 6")
        chosen = [one.page.get_by_label("keyboard mash").is_checked() for one in (ana, ben)]
        assert chosen == [True, False]


# What goes wrong.


def test_answers_that_could_not_be_sent_are_sent_after_a_reload(person, path):
    with serving(path) as server:
        ana = person().start(server.address)
        ana.page.route("**/api/answers", lambda route: route.abort())
        ana.press("1")
        expect(ana.page.locator("#banner")).to_contain_text("1 answer is not stored yet")
        ana.press("y")
        expect(ana.page.locator("#banner")).to_contain_text("2 answers are not stored yet")
        assert rows_of(path, "SELECT * FROM answers") == []
        ana.page.unroute("**/api/answers")
        ana.page.reload()
        ana.at("Pair 2 of 6")
        expect(ana.page.locator("#saved")).to_have_text("Saved 2 kept from before")
        assert "unsent" not in ana.page.evaluate("Object.keys(localStorage).join()")
    assert rows_of(path, "SELECT value FROM latest ORDER BY 1") == [('"realistic"',), ('"yes"',)]


def test_a_page_of_another_review_says_so_and_how_to_go_on(person, path, world):
    with serving(path) as server:
        ana, port, token = person().start(server.address), server.port, server.token
    with serving(world, port=port) as other:
        name = f"noisegen-review-{port}"
        assert token != other.token
        ana.context.add_cookies(
            [{"name": name, "value": other.token, "url": f"http://127.0.0.1:{port}"}]
        )
        ana.press("1")
        banner = ana.page.locator("#banner")
        expect(banner).to_contain_text("serves another review. Reload this page")
        ana.page.reload()
        expect(ana.page.get_by_role("heading", name="Who reviews?")).to_be_visible()


def test_the_token_does_not_stay_in_the_address(person, path):
    with serving(path) as server:
        ana = person().start(server.address)
        assert ana.page.url == f"http://127.0.0.1:{server.port}/"
        assert ana.page.evaluate("document.cookie") == ""


# Text of the world.


@pytest.mark.parametrize("lang", ["he", "ar"])
def test_text_from_right_to_left_stands_so(one_pair, lang):
    one = one_pair(lang)
    for side in ("clean", "noisy"):
        text = one.page.locator(f"#{side}")
        assert text.get_attribute("lang") == lang
        assert text.evaluate("one => one.matches(':dir(rtl)')")
    clean, noisy = next(pair[1:] for pair in WORLD if pair[0] == lang)
    assert one.page.locator("#clean").inner_text() == clean
    assert one.page.locator("#noisy").inner_text() == noisy
    assert len(one.marked("#noisy ins")) == 1


@pytest.mark.parametrize(("lang", "removed", "added"), [("ja", "行", "生"), ("zh", "买", "卖")])
def test_single_signs_of_cjk_text_are_marked(one_pair, lang, removed, added):
    one = one_pair(lang)
    assert one.marked("#clean del") == [removed]
    assert one.marked("#noisy ins") == [added]


def test_text_is_never_markup(one_pair):
    one = one_pair("en")
    assert one.page.locator("#noisy").inner_text() == WORLD[-1][2]
    assert one.page.locator("#review img, #review u").count() == 0


# Access for all.


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast_in_both_schemes(one_pair, scheme):
    one = one_pair("en", color_scheme=scheme)
    one.press("1", "t")
    one.page.evaluate("document.getElementById('keys-shown').click()")
    one.page.evaluate("document.getElementById('banner').hidden = false")
    one.page.evaluate("document.getElementById('banner').textContent = 'a warning'")
    found = one.page.evaluate(CONTRAST)
    assert {"DEL", "INS", "KBD", "LABEL", "BUTTON", "LEGEND"} <= {tag for tag, _, _ in found}
    assert [line for line in found if line[2] < 4.5] == []
    one.page.locator("#help-button").click()
    assert [line for line in one.page.evaluate(CONTRAST) if line[2] < 4.5] == []


def test_edits_are_marked_not_by_colour_alone(one_pair):
    one = one_pair("ja")
    line = "one => getComputedStyle(one).textDecorationLine"
    assert one.page.locator("#clean del").evaluate(line) == "line-through"
    assert one.page.locator("#noisy ins").evaluate(line) == "underline"


NAMED = {
    "radio": "realistic",
    "checkbox": "typo",
    "textbox": "Another kind",
    "progressbar": "answered",
    "button": "Finish",
}


def test_everything_has_a_name_a_role_and_its_place(one_pair):
    one = one_pair("en")
    page = one.page
    for role in ("banner", "main", "contentinfo", "navigation", "status"):
        assert page.get_by_role(role).count() == 1, role
    for name in ("1. How realistic", "2. Which kinds", "3. Is the meaning"):
        expect(page.get_by_role("group", name=name)).to_be_visible()
    for role, name in NAMED.items():
        assert page.get_by_role(role, name=name).count(), (role, name)
    unnamed = page.evaluate(
        "() => [...document.querySelectorAll('input, textarea, progress')]"
        ".filter((one) => !one.labels.length || !one.labels[0].textContent.trim()).length"
    )
    assert unnamed == 0
    assert page.evaluate("document.documentElement.lang") == "en"
    levels = page.evaluate(
        "() => [...document.querySelectorAll('h1, h2, h3')].filter((h) => h.checkVisibility())"
        ".map((h) => h.tagName)"
    )
    assert levels == ["H1", "H2", "H3", "H3"]
    assert page.locator("#saved").get_attribute("aria-live") == "polite"
    assert page.locator("[tabindex]:not([tabindex='-1'])").count() == 0


def test_tab_goes_through_the_questions_in_order_and_the_focus_is_seen(one_pair):
    one = one_pair("en")
    seen = []
    for _ in range(24):
        one.press("Tab")
        seen.append(
            one.page.evaluate(
                "() => { const at = document.activeElement;"
                " const shown = at.closest('label') ?? at;"
                " return [at.name || at.id, parseFloat(getComputedStyle(shown).outlineWidth)]; }"
            )
        )
    assert list(dict.fromkeys(name for name, _ in seen))[:8] == [
        "realism",
        "kinds",
        "new-kind",
        "add-kind",
        "meaning",
        "comment",
        "next",
        "first-open",
    ]
    assert all(width >= 2 for _, width in seen[:20])


@pytest.mark.parametrize(("width", "columns"), [(320, 1), (500, 1), (1000, 2)])
def test_a_phone_and_a_zoomed_page_need_no_scrolling_sideways(one_pair, width, columns):
    one = one_pair("en", viewport={"width": width, "height": 700})
    wide = one.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
    tops = [one.page.locator(f"#{side}").bounding_box()["y"] for side in ("clean", "noisy")]
    assert (tops[0] == tops[1]) == (columns == 2)
    sizes = one.page.locator("button:visible, .choices label:visible").evaluate_all(
        "all => all.map((one) => Math.min(one.offsetHeight, one.offsetWidth))"
    )
    assert min(sizes) >= 24


@pytest.mark.parametrize(("width", "height"), [(390, 640), (1000, 600)])
def test_next_is_always_on_the_screen_and_hides_nothing_that_has_the_focus(one_pair, width, height):
    page = one_pair("en", viewport={"width": width, "height": height}).page
    for place in (0, 200, 10_000):
        page.evaluate(f"window.scrollTo(0, {place})")
        box = page.locator("#next").bounding_box()
        assert 0 <= box["y"] <= height - box["height"]
        assert page.locator("#back").bounding_box()["y"] == box["y"]  # in one line
    page.evaluate("window.scrollTo(0, 0)")
    page.locator("#comment").focus()
    ends = [page.locator(name).bounding_box() for name in ("#comment", "#next")]
    assert ends[0]["y"] + ends[0]["height"] <= ends[1]["y"]


@pytest.mark.parametrize(("lang", "absent"), [("ja", "casing"), ("en", "kanji conversion")])
def test_the_kinds_are_those_of_the_language(one_pair, lang, absent):
    kinds = one_pair(lang).page.locator("#kinds label").all_inner_texts()
    assert "typo" in kinds
    assert absent not in kinds


def test_languages_are_shown_by_their_names(person, world_server):
    page = person().page
    page.goto(world_server.address)
    assert page.get_by_label("Japanese").is_checked()


def test_keys_are_shown_if_wished_and_can_be_switched_off(person, path):
    with serving(path) as server:
        ana = person().start(server.address)
        hint = ana.page.locator("#answers kbd").first
        expect(hint).to_be_hidden()
        ana.press("?")
        expect(ana.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
        ana.page.get_by_label("Show them beside the answers").check()
        ana.press("Escape")
        expect(hint).to_be_visible()
        ana.press("?")
        ana.page.get_by_label("Use these keys").uncheck()
        ana.press("Escape", "1")
        assert ana.page.locator("#answers :checked").count() == 0
        ana.page.locator("[value=realistic]").check()
        ana.saved()


def test_arrows_within_a_question_choose_and_do_not_leave(person, path):
    with serving(path) as server:
        ana = person().start(server.address)
        ana.page.locator("[value=realistic]").focus()
        ana.press("Space", "ArrowRight")
        assert ana.page.locator("[value=moderate]").is_checked()
        ana.at("Pair 1 of 6")


def test_slots_are_shown_where_the_source_has_them(person, tmp_path):
    tokens = [text.split() for text, _ in sentences(3)]
    labels = [["O", "B-thing", *["O"] * (len(row) - 2)] for row in tokens]
    folder = output(
        tmp_path / "out",
        sentences(3),
        words=tokens,
        tags=labels,
        noisy_tokens=tokens,
        noisy_labels=labels,
    )
    (folder / "manifest.json").write_text(MANIFEST)
    review.make(folder, tmp_path / "r.sqlite")
    with serving(tmp_path / "r.sqlite") as server:
        ana = person().start(server.address)
        assert ana.page.locator("#clean-slots dt").inner_text() == "thing"
        expect(ana.page.get_by_text("3. Are the intent and the slots unchanged?")).to_be_visible()


MANIFEST = """{"version": "0", "command": "", "seed": 0, "recipe": {"name": "mine"},
"recipe_digest": "", "sources": [], "dictionaries": [], "options": {"tokens": "words",
"labels": "tags", "lang": "en"},
"shards": [{"file": "data/part-00000.parquet", "rows": 3, "sha256": ""}],
"totals": {"rows": 3, "changed": 0, "cer": 0.0, "wer": 0.0, "dropped": {}}, "packages": {}}"""
