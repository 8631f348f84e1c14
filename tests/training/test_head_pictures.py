"""The picture of meaning and language vectors: one file, a mark for every text."""

import os
import re
import shutil

import numpy as np
import pytest
import torch

from noisegen.errors import UsageError
from noisegen.training import heads
from noisegen.training.heads import Heads

WIDTH, PAIRS = 12, 40


@pytest.fixture(scope="module")
def groups():
    random = np.random.Generator(np.random.PCG64(3))
    rows = {"<en>": 2 * PAIRS, "de": PAIRS, "fr": PAIRS}
    return {
        name: random.normal(size=(count, WIDTH)).astype(np.float32) for name, count in rows.items()
    }


@pytest.fixture(scope="module")
def page(groups, tmp_path_factory):
    path = tmp_path_factory.mktemp("picture") / "vectors.html"
    heads.write_picture(groups, Heads(WIDTH, torch.Generator().manual_seed(1)), path)
    return path


def test_the_picture_is_one_file_with_a_mark_for_every_text(page):
    text = page.read_text("utf-8")

    assert len(re.findall(r"<title>(?:meaning|language) vectors</title>", text)) == 4
    marks = len(re.findall(r'class="m\d mark soft"', text))
    assert marks == 4 * 4 * PAIRS  # panels of two sides of two sets
    assert "<en>" not in text
    assert "&lt;en&gt;" in text
    assert not re.search(r"src=|href=\"(?!#|data:)|url\(|@import|<script", text)
    assert text == page.read_text("utf-8")


def test_the_picture_opens_in_a_browser_without_a_word(page):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if program is None:
        pytest.skip("no browser")
    said = []
    with playwright.sync_playwright() as running:
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        browser = running.chromium.launch(executable_path=program, args=sandbox)
        opened = browser.new_page()
        opened.on("console", lambda message: said.append(message.text))
        opened.goto(page.as_uri())
        boxes = opened.eval_on_selector_all(
            ".panels svg", "all => all.map(one => one.getBoundingClientRect().width)"
        )
        browser.close()
    assert said == []
    assert len(boxes) == 4
    assert min(boxes) > 200


def test_a_picture_of_too_few_texts_is_refused(groups, tmp_path):
    few = {name: groups[name][:1] for name in ("de", "fr")}
    with pytest.raises(UsageError, match="too few for a picture"):
        heads.write_picture(few, Heads(WIDTH), tmp_path / "p.html")


def test_points_of_texts_that_are_all_the_same_are_drawn(tmp_path):
    same = np.ones((20, WIDTH), np.float32)
    assert np.allclose(heads.principal_components(same), 0)


def test_a_picture_has_the_same_share_of_every_label(groups, tmp_path):
    some = {name: groups[name] for name in ("<en>", "de")}
    heads.write_picture(some, Heads(WIDTH), tmp_path / "p.html", most=30)

    text = (tmp_path / "p.html").read_text("utf-8")
    assert [len(re.findall(rf'class="m{style} mark soft', text)) for style in (0, 1)] == [80, 40]
