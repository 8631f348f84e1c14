"""Values are one line in a console; notebooks show their page, or unfold their content."""

import re
from html import unescape

import pytest

import noisegen
from noisegen.augmentation import catalog
from noisegen.cli import run
from noisegen.text.resources import DEMO


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    manifest = noisegen.augment(DEMO, folder / "out", seed=7, limit=300)
    return folder / "out", manifest


def values(pairs, tmp_path):
    out, manifest = pairs
    yield manifest, r"<Manifest of an augment run: 300 rows in 1 shard; .* changed, CER .*>"
    yield noisegen.Recipe.named("ugc"), r"<Recipe ugc: \d+ steps, 9 writers, \d+ languages>"
    yield noisegen.Recipe.of(["fing"]), r"<Recipe steps: 1 step>"
    calibrated = noisegen.calibrate("fing", target_cer=0.05)
    yield calibrated, r"<Calibrated fing-calibrated: CER 0\.0\d+ for 0\.05, factor \d\.\d+>"
    realism = noisegen.compare(out, recipe="spac", limit=200)
    name = rf"recipe spac \(seed 0\) against {re.escape(str(out))}"
    yield realism, rf"<Realism {name}: told apart \d+% of the time \(50% is guessing\)>"
    learned = noisegen.learn(out, tmp_path / "profile")
    yield learned, r"<Learned en: [\d,]+ edits in [\d,]+ pairs>"
    for kind in ("posts", "text"):
        (tmp_path / f"{kind}.txt").write_text(catalog.example(kind), "utf-8")
    posts = str(tmp_path / "posts.txt")
    unpaired = noisegen.compare_posts(posts, str(tmp_path / "text.txt"))
    name = rf"recipe ugc \(seed 0\) against {re.escape(posts)}"
    yield unpaired, rf"<Unpaired {name}: told apart \d+% of the time \(50% is guessing\)>"
    noisegen.review.make(out, tmp_path / "r.sqlite", rows=5)
    report = noisegen.review.report(tmp_path / "r.sqlite")
    yield report, "<ReviewReport: Nothing is judged yet; 0 of 5 rows judged>"


def test_values_are_one_line_and_a_notebook_shows_more(pairs, tmp_path):
    for value, line in values(pairs, tmp_path):
        assert re.fullmatch(line, repr(value)), repr(value)
        shown = value._repr_html_()
        assert len(shown) > 2 * len(repr(value))
        head = r"<details><summary>&lt;|<iframe srcdoc=\"&lt;!doctype html&gt;"
        assert re.match(head, shown, re.IGNORECASE), shown[:80]


def test_a_page_in_a_frame_is_the_page_that_the_command_writes(pairs, tmp_path):
    out, _ = pairs
    page = tmp_path / "page.html"
    assert run(["realism", "--pairs", str(out), "--recipe", "spac", "-o", str(page), "-q"]) == 0
    shown = noisegen.compare(str(out), recipe="spac")._repr_html_()
    [framed] = re.findall(r'srcdoc="([^"]*)"', shown)
    assert unescape(framed) == page.read_text("utf-8")
