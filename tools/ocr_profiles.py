"""Learn noisegen/dictionaries/LANG/ocr, profiles of what OCR misreads, from openly licensed scans.

`python -m tools.ocr_profiles pairs LANG SOURCE... OUT` writes OUT/LANG.train.tsv, LANG.test.tsv,
lines as the printed page has them and as OCR read them; every fifth work is for testing alone.
`python -m tools.ocr_profiles learn LANG OUT` writes the profile from the lines for training.

SOURCE is a Git repository of images of lines with their text, or of pages with ALTO files. They are
read here by Tesseract 5 (`pip install tesserocr pillow`; models of tessdata_fast in `--tessdata`).
No profile was made of ICDAR2017 and ICDAR2019: their lists of licences are headed "free to use for
non-commercial uses".
"""

import argparse
import io
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from noisegen.data.pairs import Pairs, read_pairs
from noisegen.noising.rng import name_number
from noisegen.realism.learn import profile_of, save
from noisegen.text.resources import DICTIONARIES
from tools.profiles import LARGE, SUPPORT_LARGE, SUPPORT_MIN, anonymous, supported

if TYPE_CHECKING:
    from PIL.Image import Image

TEST = 5  # one work in so many is for testing alone
CER_MAX = 0.3  # lines with a larger share of wrong characters are not of the same print
HEIGHT, BORDER = 48, 10  # pixels of an image of a line, and of the paper around it
_SET_APART = re.compile(r" +(?=[,;:!?.])")  # old prints set punctuation apart, transcribers do not
_WRITTEN_TODAY = str.maketrans(
    {"ſ": "s", "⸗": "-", "¬": "-", "‐": "-", "‑": "-", "’": "'", "‘": "'", "\u0364": "\u0308"}
)
Line = tuple[str, str, str]  # work, as it was read, as it is printed


@dataclass(frozen=True)
class Scans:
    """A set of scans: whom to credit, and how its files are named.

    `files` is a pattern of the names of images, `model` the model of Tesseract that reads them, and
    `text` the ending of the name of a text, in place of the image's. The text of an image of a line
    is a plain file, that of an image of a page (`.xml`) an ALTO file with the outlines of lines.
    """

    source: str
    license: str
    files: str
    model: str
    text: str


SCANS = {
    "de": Scans(
        "German prints of the 19th century, read by Tesseract 5 (jbaiter/archiscribe-corpus)",
        "CC-BY-4.0",
        r"^transcriptions/.*png$",
        "deu",
        ".txt",
    ),
    "fr": Scans(
        "French prints of the 17th to 19th century, read by Tesseract 5 (e-ditiones/OCR17)",
        "CC-BY-SA-4.0",
        r"^(Training_data/.*/extracted(_cleaned)?/|Testing_data/).*png$",
        "fra",
        ".gt.txt",
    ),
    "cs": Scans(
        "Czech typed reports of the 20th century, read by Tesseract 5 (FloChiff/ehri-dataset)",
        "CC-BY-4.0",
        r"^data/czech/.*(png|jpg)$",
        "ces",
        ".xml",
    ),
    "en": Scans(
        "read by Tesseract 5: English novels (FoNDUE-HTR/FONDUE-EN-PRINT-20) and typed reports of"
        " the 20th century (FloChiff/ehri-dataset)",
        "CC-BY-4.0",
        r"^data/(english|[A-Z]\w+)/.*(png|jpg)$",
        "eng",
        ".xml",
    ),
    "es": Scans(
        "Spanish prints of the 19th century, read by Tesseract 5 (FoNDUE-HTR/FONDUE-ES-PRINT-19)",
        "CC-BY-4.0",
        r"^data/.*(png|jpg|JPG)$",
        "spa",
        ".xml",
    ),
}


def written_today(text: str) -> str:
    """Return a printed or read line with the letters and signs of today.

    >>> written_today("Die Geſchichte , ſie faͤllt")
    'Die Geschichte, sie fällt'
    """
    text = unicodedata.normalize("NFC", text.translate(_WRITTEN_TODAY))
    return _SET_APART.sub("", " ".join(text.split()))


def lines_read(repository: Path, scans: Scans, tessdata: str, most: int) -> Iterator[Line]:
    """Read up to `most` images in a Git repository, drawn at random, with Tesseract."""
    import tesserocr
    from PIL import Image

    git = ["git", "-C", str(repository)]
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "-z", "--name-only", "HEAD"], capture_output=True
    )
    names = {*listed.stdout.decode().split("\0")}
    texts = {
        name: name.removesuffix(Path(name).suffix) + scans.text
        for name in sorted(names)
        if re.search(scans.files, name)
    }
    images = [name for name, text in texts.items() if text in names]
    Random(7).shuffle(images)

    def content(name: str) -> bytes:
        return subprocess.run([*git, "show", f"HEAD:{name}"], capture_output=True).stdout

    single = tesserocr.PSM.SINGLE_LINE
    with tesserocr.PyTessBaseAPI(path=tessdata, lang=scans.model, psm=single) as reader:
        for name in images[:most]:
            if not (stored := content(name)):  # large files are listed without their content
                continue
            image, text = Image.open(io.BytesIO(stored)).convert("L"), content(texts[name])
            is_page = scans.text == ".xml"
            paper = paper_of(image) if is_page else 255
            for line, printed in lines_of(image, text) if is_page else [(image, text.decode())]:
                if line.height < HEIGHT - BORDER:
                    line = line.resize((line.width * HEIGHT // line.height, HEIGHT))
                framed = Image.new("L", (line.width + 2 * BORDER, line.height + 2 * BORDER), paper)
                framed.paste(line, (BORDER, BORDER))
                reader.SetImage(framed)
                reader.SetSourceResolution(300)
                yield work_of(name), reader.GetUTF8Text(), printed


def paper_of(page: "Image") -> int:
    """Return the grey value that most of a page has."""
    counts = page.histogram()
    return counts.index(max(counts))


def lines_of(page: "Image", alto: bytes) -> Iterator[tuple["Image", str]]:
    """Yield the lines of a page with their text; outside a line's outline there is paper."""
    from PIL import Image, ImageDraw

    for outline, printed in outlines(alto):
        mask = Image.new("L", page.size, 0)
        ImageDraw.Draw(mask).polygon(outline, fill=255)
        if box := mask.getbbox():
            alone = Image.composite(page, Image.new("L", page.size, paper_of(page)), mask)
            yield alone.crop(box), printed


def outlines(alto: bytes) -> Iterator[tuple[list[tuple[int, int]], str]]:
    """Yield the outline of each line in an ALTO file, points in pixels, and its text."""
    for line in ElementTree.fromstring(alto).iterfind(".//{*}TextLine"):
        outline, printed = line.find(".//{*}Polygon"), line.find("{*}String")
        if outline is not None and printed is not None:
            numbers = re.split("[ ,]+", outline.get("POINTS", "").strip())
            points = [int(float(number)) for number in numbers]
            yield [*zip(points[::2], points[1::2], strict=True)], printed.get("CONTENT", "")


def work_of(name: str) -> str:
    """Return the work that an image of a line is from.

    >>> work_of("transcriptions/1800/bub_gb_UXdKAAAAcAAJ_0059567c.png")
    'transcriptions/1800/bub_gb_UXdKAAAAcAAJ'
    """
    folder, _, file = name.rpartition("/")
    return f"{folder}/{file.rpartition('_')[0]}" if file.count("_") else folder


def wrong_share(read: str, printed: str) -> float:
    """Return the character error rate of a line."""
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(read, printed) / max(1, len(printed))


def write_pairs(lang: str, lines: Iterator[Line], out: Path) -> None:
    """Write the lines of a language for training and for testing as tables."""
    out.mkdir(parents=True, exist_ok=True)
    kept = []
    for work, *sides in lines:
        noisy, clean = map(written_today, sides)
        if noisy and any(map(str.isalpha, clean)) and wrong_share(noisy, clean) <= CER_MAX:
            kept.append((name_number(work) % TEST == 0, noisy, clean))
    for is_test, rows in groupby(sorted(kept, key=itemgetter(0)), key=itemgetter(0)):
        path = out / f"{lang}.{'test' if is_test else 'train'}.tsv"
        table = ["noisy\tclean", *(f"{noisy}\t{clean}" for _, noisy, clean in rows)]
        path.write_text("\n".join(table) + "\n", "utf-8")
        print(f"{path}: {len(table) - 1:,} lines", file=sys.stderr)


def learn_profile(lang: str, folder: Path, out: Path) -> None:
    """Write the profile of a language from its lines for training."""
    pairs = read_pairs(str(folder / f"{lang}.train.tsv"))
    sides = ([anonymous(text) for text in side] for side in (pairs.noisy, pairs.clean))
    support = SUPPORT_MIN if len(pairs) < LARGE else SUPPORT_LARGE
    profile = supported(profile_of(Pairs(*sides), lang, support), SUPPORT_MIN)
    save(replace(profile, source=SCANS[lang].source, license=SCANS[lang].license), out)
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{out}: {profile.totals['edits']:,} edits, {size:,} bytes", file=sys.stderr)


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    pairs, learn = (commands.add_parser(name) for name in ("pairs", "learn"))
    for command in (pairs, learn):
        command.add_argument("lang", choices=SCANS)
    pairs.add_argument("source", type=Path, nargs="+")
    for command in (pairs, learn):
        command.add_argument("out", type=Path)
    pairs.add_argument("--tessdata", default="")
    pairs.add_argument("--most", type=int, default=8_000)
    given = parser.parse_args()
    if given.command == "learn":
        learn_profile(given.lang, given.out, DICTIONARIES / given.lang / "ocr")
    else:
        options = SCANS[given.lang], given.tessdata, given.most
        lines = chain.from_iterable(lines_read(source, *options) for source in given.source)
        write_pairs(given.lang, lines, given.out)


if __name__ == "__main__":
    main()
