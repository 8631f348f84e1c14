"""Draw docs/images: a preview as SVG, screenshots of the review, of statistics and other reports.

The text is the bundled demo text and invented pairs; the answers of the review are drawn by key.
A further report is given as NAME=PAGE.html and becomes NAME-light.png and NAME-dark.png. The
reports in docs/images are

    report   report/report.html of `noisegen quickstart -o DIR`
    realism  of pairs that `mine-wiki --profile strict` finds in a history of the English Wikipedia
    vectors  run/vectors.html of `noisegen train --preset oracle-small`
    which-noise  which_noise.html of `python -m benchmarks.which_noise`

Screenshots need the extra `review`, playwright, Pillow and an installed Chromium.
Run: python tools/screenshots.py [-o FOLDER] [--width 390] [NAME=PAGE.html ...]
"""

import argparse
import csv
import io
import os
import shutil
import subprocess
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from noisegen import cli, review
from noisegen.noising.rng import Draws
from noisegen.review.review_file import ReviewFile
from noisegen.review.server import Server, prepare
from noisegen.text.resources import DEMO

IMAGES = Path(__file__).parents[1] / "docs" / "images"
NAMES = ("chromium", "chromium-browser", "google-chrome")
PREVIEWED = (
    "People tried to break the windows because I am going to see you tomorrow.",
    "I do not know what you are talking about, my friend.",
    "Thanks for the pictures from the party, they are great!",
)
PREVIEW_SEED, PREVIEW_WIDTH = "5", 96  # columns
STRENGTHS = "0.02,0.05,0.1"
HEBREW = ("אני הולך לשוק בבוקר כי הלחם טרי", "אני הולך לשוק בבוקרר כי הלכם טרי")
# Of 100 answers at each strength, how many are realistic, and how many at least moderately so.
JUDGED = {"0.02": (97, 99), "0.05": (80, 95), "0.1": (45, 80)}
KINDS = {2: 40, 9: 10, 10: 25, 12: 20}  # seen beside typos, of 100 rows
LANGS = ("de", "en", "es", "tr")
WIDTH, HEIGHT_MAX = 1100, 1900  # pixels of a report
SCHEMES = ("light", "dark")


def main() -> None:
    """Write the images."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--out", type=Path, default=IMAGES)
    parser.add_argument("--width", type=int, default=WIDTH, help="of reports, in pixels")
    parser.add_argument("pages", nargs="*", metavar="NAME=PAGE.html")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    _preview(options.out)
    program = next(filter(None, map(shutil.which, NAMES)), None)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as running:
        folder = Path(name)
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        browser = running.chromium.launch(executable_path=program, args=sandbox)
        _pages(browser, folder, options.out)
        _report(browser, folder, options.out)
        given = (page.partition("=")[::2] for page in options.pages)
        pages = {name: Path(path).resolve() for name, path in given}
        for name, path in ({"stats": _statistics(folder)} | pages).items():
            _shoot(browser, name, path, options)
        browser.close()
    for path in options.out.glob("*.png"):
        with Image.open(path) as image:
            image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def _preview(out: Path) -> None:
    """Write what `noisegen preview` prints for some sentences as preview.svg."""
    texts = Path("posts.txt")
    with tempfile.TemporaryDirectory() as name, chdir(name):
        texts.write_text("\n".join(PREVIEWED) + "\n", "utf-8")
        command = ["noisegen", "preview", str(texts), "--seed", PREVIEW_SEED]
        screen = {"COLUMNS": str(PREVIEW_WIDTH), "FORCE_COLOR": "1", "COLORTERM": "truecolor"}
        shown = subprocess.run(
            command, env=os.environ | screen, capture_output=True, text=True, check=True
        ).stdout
    console = Console(record=True, width=PREVIEW_WIDTH, file=io.StringIO())
    console.print(Text(f"$ {' '.join(command)}", style="bold"))
    console.print(Text.from_ansi(shown))
    console.save_svg(str(out / "preview.svg"), title="noisegen", theme=MONOKAI)


def _shoot(browser: Browser, name: str, path: Path, options: argparse.Namespace) -> None:
    """Show the top of a report in light and in dark."""
    for scheme in SCHEMES:
        viewport = {"width": options.width, "height": 900}
        page = browser.new_page(viewport=viewport, color_scheme=scheme)
        page.goto(path.as_uri())
        height = min(HEIGHT_MAX, page.evaluate("document.documentElement.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": options.width, "height": height}
        page.screenshot(path=options.out / f"{name}-{scheme}.png", full_page=True, clip=clip)
        page.close()


def _statistics(folder: Path) -> Path:
    """Return the page of a run on the English rows of the demo text."""
    with DEMO.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    with chdir(folder):  # the page names its source as it is given
        texts = [row["text"] for row in rows if row["lang"] == "en"]
        # ASCII alone: a picture does not depend on which emoji the fonts of a machine have
        text = "".join(f"{text}\n" for text in texts if text.isascii())
        Path("demo.txt").write_text(text, "utf-8")
        recipe = ["--recipe", "ugc", "--seed", "7", "--edits", "--quiet"]
        cli.run(["augment", "demo.txt", "-o", "noisy", *recipe])
        cli.run(["stats", "noisy", "--plot", "stats.html"])
    return folder / "stats.html"


def _pages(browser: Browser, folder: Path, out: Path) -> None:
    """Show a pair in light, another with its keys in dark, and one from right to left."""
    path = folder / "page.sqlite"
    review.make(
        DEMO,
        path,
        transforms=("fing:rate=0.01", "abr1:rate=0.2"),
        strengths="x1,x1.5,x2",
        limit=300,
    )
    server = prepare(path, port=0)
    with server.in_thread():
        for name, options in (("light", {}), ("dark", {"color_scheme": "dark"})):
            page = browser.new_page(viewport={"width": 960, "height": 1000}, **options)
            _start(page, server, f"Ana ({name})")
            page.keyboard.press("1")
            page.keyboard.press("t")
            page.keyboard.press("y")
            if name == "dark":
                _show_keys(page)
            page.get_by_text("Saved", exact=True).wait_for()
            page.screenshot(path=out / f"review-{name}.png", full_page=True)
    _right_to_left(browser, folder, out)


def _right_to_left(browser: Browser, folder: Path, out: Path) -> None:
    made = folder / "hebrew"
    (made / "data").mkdir(parents=True)
    rows = {"id": [0], "clean": [HEBREW[0]], "noisy": [HEBREW[1]], "lang": ["he"]}
    pq.write_table(pa.table(rows), made / "data" / "part-00000.parquet")
    review.make(made, folder / "hebrew.sqlite")
    server = prepare(folder / "hebrew.sqlite", port=0)
    with server.in_thread():
        page = browser.new_page(viewport={"width": 400, "height": 640})
        _start(page, server, "Ana")
        page.screenshot(path=out / "review-phone.png")


def _start(page: Page, server: Server, name: str) -> None:
    page.goto(server.address)
    page.locator("#name").fill(name)
    page.keyboard.press("Enter")
    page.locator("#review").wait_for()


def _show_keys(page: Page) -> None:
    page.keyboard.press("?")
    page.get_by_label("Show them beside the answers").check()
    page.keyboard.press("Escape")


def _report(browser: Browser, folder: Path, out: Path) -> None:
    path, page_path = folder / "report.sqlite", folder / "report.html"
    source = folder / "demo.tsv"
    lines = DEMO.read_text("utf-8").splitlines(keepends=True)
    source.write_text(
        "".join(
            line for line in lines if line.rstrip("\n").rpartition("\t")[2] in ("lang", *LANGS)
        ),
        "utf-8",
    )
    review.make(source, path, transforms=("fing",), strengths=STRENGTHS, rows=6)
    for name in ("Ana", "Ben"):
        _judge(path, name)
    review.more(path, rows=9)
    for name in ("Ana", "Ben"):
        _judge(path, name)
    review.report(path, page_path)
    page = browser.new_page(viewport={"width": 1060, "height": 900})
    page.goto(page_path.as_uri())
    page.screenshot(path=out / "review-report.png", full_page=True)


def _judge(path: Path, name: str) -> None:
    """Answer the open questions, as drawn by a key of the reviewer."""
    opened = ReviewFile(path)
    key = opened.join(name, None, same=True)["reviewer"]
    database = opened._opened
    query = "SELECT items.id, strength FROM items JOIN groups ON groups.id = group_id"
    for item, strength in database.execute(query).fetchall():
        for question, value in _answers(item, strength, name).items():
            opened.answer(key, item, question, value, f"{item}/{question}")
    database.execute("UPDATE answers SET at = 13 * item + reviewer * (item % 7)")
    opened.close()


def _answers(item: int, strength: str, name: str) -> dict[str, Any]:
    shared = Draws(item).below(100)  # most of an answer is in the text, the rest in the reader
    drawn = shared + Draws(item).fork(name).below(12) - 6
    realistic, moderate = JUDGED[strength]
    realism = (
        "realistic" if drawn < realistic else "moderate" if drawn < moderate else "unrealistic"
    )
    kinds = [
        1,
        *(kind for kind, share in KINDS.items() if (shared * kind) % 100 + drawn % 9 < share),
    ]
    return {"realism": realism, "meaning": "yes" if drawn < 92 else "unsure", "kinds": kinds}


if __name__ == "__main__":
    main()
