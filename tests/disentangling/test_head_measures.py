"""Figures of meaning and language vectors, their table over seeds, and their picture."""

import io
import json
import os
import re
import shutil

import numpy as np
import pytest
import torch
from rich.console import Console

from noisegen.disentangling import pictures
from noisegen.disentangling.heads import Heads
from noisegen.disentangling.measures import (
    Retrieval,
    Sets,
    Similarity,
    columns_of,
    flat,
    measure,
    measure_heads,
)
from noisegen.disentangling.table import over_runs, plain, render
from noisegen.errors import UsageError

WIDTH, PAIRS = 12, 40


@pytest.fixture(scope="module")
def planted():
    """Texts of three languages: e = meaning in six numbers, language in the other six."""
    random = np.random.Generator(np.random.PCG64(3))
    languages = np.eye(3, 6) * 5
    meaning = random.normal(size=(2, PAIRS, 6))

    def said(place, which):
        parts = [meaning[which], np.tile(languages[place], (PAIRS, 1))]
        return np.concatenate(parts, axis=1).astype(np.float32)

    retrieval = [Retrieval(name, said(0, k), said(k + 1, k)) for k, name in enumerate(("de", "fr"))]
    units = [one / np.linalg.norm(one, axis=1)[:, None] for one in meaning]
    scores = [float(a @ b) for a, b in zip(*units, strict=True)]
    return Sets(retrieval, [Similarity("made", said(0, 0), said(0, 1), scores)])


def parting():
    """Heads that part what was planted."""
    heads = Heads(WIDTH)
    with torch.no_grad():
        for layer, kept in ((heads.meaning, slice(0, 6)), (heads.language, slice(6, 12))):
            layer.weight.zero_()
            layer.bias.zero_()
            layer.weight[kept, kept] = torch.eye(6)
    return heads


def test_parted_vectors_find_their_partners_by_meaning_and_not_by_language(planted):
    figures = measure_heads(planted, parting())

    assert figures["meaning"]["retrieval.forward"] == 100
    assert figures["meaning"]["sts"] == pytest.approx(100)
    assert figures["language"]["retrieval.forward.de"] == pytest.approx(100 / PAIRS)  # all tie
    assert np.isnan(figures["language"]["sts"])


def test_means_are_of_the_sets_of_a_group(planted):
    sets = Sets(
        [*planted.retrieval, Retrieval("switched", *(planted.retrieval[0].source,) * 2, "cs")]
    )
    found = measure(sets, lambda vectors: vectors)

    both = [found["retrieval.backward.de"], found["retrieval.backward.fr"]]
    assert found["retrieval.backward"] == pytest.approx(sum(both) / 2)
    assert found["cs.forward"] == found["cs.forward.switched"] == 100
    assert columns_of(sets) == [
        f"{side}.{group}.{way}" for side in ("meaning", "language") for group in ("retrieval", "cs")
        for way in ("forward", "backward")
    ]  # fmt: skip
    assert columns_of(planted)[2] == "meaning.sts"


def test_a_table_shows_mean_and_spread_over_seeds(planted):
    runs = [{"meaning.retrieval.forward": one, "meaning.sts": 2.0} for one in (90.0, 92.0, 97.0)]
    table = {"alone": over_runs(runs[:1]), "meat": over_runs(runs)}
    file = io.StringIO()
    render(table, ["meaning.retrieval.forward", "language.sts"], "T", Console(file=file, width=99))

    assert "93.00 ± 3.61" in file.getvalue()
    assert re.search(r"alone +90.00 +-\n", re.sub(r"[ \n]*$", "\n", file.getvalue(), flags=re.M))
    assert json.loads(json.dumps(plain(table)))["meat"]["meaning.retrieval.forward"] == {
        "mean": 93.0, "sd": pytest.approx(13**0.5), "runs": 3,
    }  # fmt: skip


def test_flat_names_say_the_side(planted):
    figures = flat(measure_heads(planted, parting()))
    assert figures["meaning.retrieval.forward"] == 100
    assert "language.retrieval.backward.fr" in figures


def test_a_head_is_applied_as_torch_applies_it(planted):
    torch.manual_seed(0)
    heads = Heads(WIDTH)
    source = planted.retrieval[0].source
    from noisegen.disentangling.measures import applied

    wanted = heads.language(torch.from_numpy(source)).detach().numpy()
    assert np.allclose(applied(heads, "language")(source), wanted)


@pytest.fixture(scope="module")
def page(planted, tmp_path_factory):
    path = tmp_path_factory.mktemp("picture") / "vectors.html"
    random = torch.Generator().manual_seed(1)
    one, two = planted.retrieval
    groups = {"<en>": np.concatenate([one.source, two.source]),
              one.name: one.target, two.name: two.target}  # fmt: skip
    pictures.write(groups, Heads(WIDTH, random), path)
    return path


def test_the_picture_is_one_file_with_a_mark_for_every_text(page):
    text = page.read_text("utf-8")

    assert text.count("<svg role=") == 4
    marks = len(re.findall(r'class="m\d mark c\d+"', text))
    assert marks == 4 * 4 * PAIRS + 3  # panels of two sides of two sets, and the legend
    assert "<en>" not in text
    assert "&lt;en&gt;" in text
    assert not re.search(r"(src|href)=|url\(|@import|<script", text)
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
            "svg.chart", "all => all.map(one => one.getBoundingClientRect().width)"
        )
        browser.close()
    assert said == []
    assert len(boxes) == 4
    assert min(boxes) > 200


def test_a_picture_of_too_few_texts_is_refused(planted, tmp_path):
    one = planted.retrieval[0]
    few = {"en": one.source[:1], "de": one.target[:1]}
    with pytest.raises(UsageError, match="shows nothing"):
        pictures.write(few, Heads(WIDTH), tmp_path / "p.html")


def test_points_of_texts_that_are_all_the_same_are_drawn(tmp_path):
    same = np.ones((20, WIDTH), np.float32)
    assert np.allclose(pictures.principal_components(same), 0)


def test_a_picture_has_the_same_share_of_every_label(planted, tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "POINTS_MAX", 30)
    one, two = planted.retrieval
    groups = {"en": np.concatenate([one.source, two.source]), "de": one.target}
    pictures.write(groups, Heads(WIDTH), tmp_path / "p.html")

    text = (tmp_path / "p.html").read_text("utf-8")
    assert [len(re.findall(rf'class="m{place} mark', text)) for place in (0, 1)] == [81, 41]
