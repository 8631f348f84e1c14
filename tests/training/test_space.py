"""The page of `make space`: a browser gives the vectors of Python and the nearest sentence."""

import functools
import http.server
import json
import shutil
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest
from training_runs import trained

import noisegen
from noisegen.evaluation.similarity import cosine_distances, unit
from noisegen.training.export import INT8, onnx_vectors
from tools.space import build, main

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.nightly
SENTENCE = "Are you at home right now? I have to tell you something."
TYPED = "are u at home right now? i have to tell u something."
VECTORS = """texts => new Promise((done, fail) => {
  const found = {student: [], teacher: []};
  const worker = new Worker("worker.js", {type: "module"});
  worker.onmessage = ({data}) => {
    if (data.error) fail(data.error);
    if (data.text === undefined) return;
    for (const name in found) found[name].push([...data[name]]);
    if (found.student.length === texts.length) done(found);
  };
  for (const text of texts) worker.postMessage(text);
})"""


class Files(http.server.SimpleHTTPRequestHandler):
    """A server of static files that logs nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """The folder of the page of a tiny student that reads `u` as `you`."""
    if shutil.which("npm") is None:
        pytest.skip("npm is missing")
    folder = tmp_path_factory.mktemp("space")
    specs = {"student": str(trained(folder)), "teacher": str(folder / "teacher")}
    try:
        build(specs, folder / "page")
    except SystemExit as error:
        if "npm cannot download" in str(error):
            pytest.skip(str(error))
        raise
    return folder / "page"


@pytest.fixture
def page(space, chromium):
    """The page in a narrow browser; it asks for nothing but its files, and has no complaint."""
    handler = functools.partial(Files, directory=str(space))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = chromium.new_page(viewport={"width": 390, "height": 800})
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(urlsplit(request.url).netloc))
    page.goto(f"http://127.0.0.1:{server.server_port}/")
    yield page
    page.close()
    server.shutdown()
    server.server_close()
    assert said == []
    assert set(asked) == {f"127.0.0.1:{server.server_port}"}


def nearest(folder, name, text):
    """Return the five sentences of the page that are nearest to a text, by Python."""
    sentences = json.loads((folder / "data.json").read_text("utf-8"))["sentences"]
    vectors = unit(onnx_vectors(folder / name, INT8, [text, *sentences]))
    order = np.argsort(-(vectors[1:] @ vectors[0]))[:5]
    return [sentences[i] for i in order]


def test_typed_text_gets_its_nearest_sentences(space, page):
    expect(page.locator("#student bdi")).to_have_count(5)  # at once, by vectors of the build
    page.locator("#post").fill(TYPED)
    expect(page.locator("#results")).to_have_attribute("data-text", TYPED, timeout=60_000)
    for name in ("student", "teacher"):
        shown = page.locator(f"#{name} bdi").all_inner_texts()
        assert shown == nearest(space, name, TYPED)
    assert page.locator("#student bdi").first.inner_text() == SENTENCE
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_button_shows_a_noisy_version_with_its_changes(space, page):
    page.locator("#sentence").select_option(SENTENCE)
    page.get_by_role("button", name="ugc", exact=True).focus()
    page.keyboard.press("Enter")
    data = json.loads((space / "data.json").read_text("utf-8"))
    noisy = page.locator("#post").input_value()
    assert data["noisy"][noisy]["clean"] == SENTENCE
    marked = [text for text, is_changed in data["noisy"][noisy]["pieces"] if is_changed]
    assert page.locator("#change mark").all_inner_texts() == marked != []
    expect(page.locator("#told")).to_contain_text("number 1 for the student")


def test_the_browser_gives_the_vectors_of_python(space, page, demo_texts, odd_texts):
    english = demo_texts[:150]
    texts = [*noisegen.noise(english, "ugc-heavy"), *noisegen.noise(english, "typo")]
    texts += [text for text in odd_texts if text.strip()][:-1]
    texts += ["Dont, (dont) @dont don't xdont u.u U dontx dont_ ud ḑu u😂 u", "you " * 200]
    found = page.evaluate(VECTORS, texts)
    for name, given in found.items():
        ours = onnx_vectors(space / name, INT8, texts)
        assert cosine_distances(ours, np.array(given, np.float32)).max() < 1e-6


def test_the_readme_is_that_of_a_static_space(space):
    head = (space / "README.md").read_text("utf-8").split("---\n")[1]
    assert "sdk: static\n" in head
    assert {path.name for path in (space / "library").glob("LICENSE*")} == {
        "LICENSE.onnxruntime-web",
        "LICENSE.tokenizers",
    }


def test_bad_input_gives_one_line(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    for words, said in (
        (["student", "-o", str(tmp_path / "there")], "exists: give the name of a new folder"),
        (["student", "-o", str(tmp_path / "new")], "npm is missing: install Node.js"),
    ):
        monkeypatch.setattr("sys.argv", ["space.py", *words])
        monkeypatch.setenv("PATH", "")
        with pytest.raises(SystemExit, match=said):
            main()
    assert not (tmp_path / "new").exists()
