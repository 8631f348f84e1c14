"""The picture of meaning and language vectors: one file, a mark for every text."""

import os
import re
import shutil

import numpy as np
import pytest
import torch

from noisegen.training import heads
from noisegen.training.heads import Heads

WIDTH, PAIRS = 12, 40


@pytest.fixture(scope="module")
def sets():
    random = np.random.Generator(np.random.PCG64(3))
    sides = [random.normal(size=(PAIRS, WIDTH)).astype(np.float32) for _ in range(4)]
    return {"<en>-de": (sides[0], sides[1]), "<en>-fr": (sides[2], sides[3])}


@pytest.fixture(scope="module")
def page(sets, tmp_path_factory):
    path = tmp_path_factory.mktemp("picture") / "vectors.html"
    heads.write_picture(sets, Heads(WIDTH, torch.Generator().manual_seed(1)), path)
    return path


def places(page):
    """Return the places of the marks of each panel, by group."""
    mark = re.compile(
        r'class="m(\d) mark soft" (?:cx="([-\d.]+)" cy="([-\d.]+)"|d="M([-\d.]+) ([-\d.]+))'
    )
    for panel in re.findall(r"<svg role.*?</svg>", page.read_text("utf-8"), re.S):
        groups = {}
        for style, *place in mark.findall(panel):
            x, y = filter(None, place)
            groups.setdefault(int(style), []).append((float(x), float(y)))
        if len(groups) > 1:
            yield groups


def test_the_picture_is_one_file_with_a_mark_for_every_vector(page):
    text = page.read_text("utf-8")

    titles = re.findall(r"<title>(\S+) by (PCA|t-SNE)</title>", text)
    assert titles == [
        (f"&lt;en&gt;-{lang}", way) for lang in ("de", "fr") for way in ("PCA", "t-SNE")
    ]
    panels = list(places(page))
    assert len(panels) == 4
    for groups in panels:  # meaning and language of sources and targets are in each panel
        assert {style: len(marks) for style, marks in groups.items()} == dict.fromkeys(
            range(4), PAIRS
        )
    assert "<en>" not in text
    assert not re.search(r"src=|href=\"(?!#|data:)|url\(|@import|<script", text)


def test_language_in_the_meaning_vectors_is_seen(sets, tmp_path):
    """Where a language head gives meaning vectors, its points are not apart from theirs."""
    leaking, apart = (Heads(WIDTH, torch.Generator().manual_seed(1)) for _ in range(2))
    with torch.no_grad():
        leaking.language.load_state_dict(leaking.meaning.state_dict())
        apart.language.bias.add_(9)
    gaps = []
    for one in (leaking, apart):
        heads.write_picture({"en-de": sets["<en>-de"]}, one, tmp_path / "p.html")
        groups, _ = places(tmp_path / "p.html")
        meaning, language = (np.array(groups[k] + groups[k + 1]) for k in (0, 2))
        gap = np.linalg.norm(meaning.mean(0) - language.mean(0))
        gaps.append(gap / np.linalg.norm(meaning.std(0)))
    assert gaps[0] < 0.3
    assert gaps[1] > 2


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


def test_points_of_texts_that_are_all_the_same_are_drawn(tmp_path):
    same = np.ones((20, WIDTH), np.float32)
    assert np.allclose(heads.principal_components(same), 0)
