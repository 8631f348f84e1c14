"""Learn noisegen/dictionaries/LANG/ocr, profiles of what OCR misreads, from openly licensed scans.

`python -m tools.ocr_profiles pairs LANG SOURCE OUT` writes OUT/LANG.train.tsv and LANG.test.tsv,
lines as the printed page has them and as OCR read them; every fifth work is for testing alone.
`python -m tools.ocr_profiles learn LANG OUT` writes the profile from the lines for training.

SOURCE is a Git repository of images of lines with their text (de, fr), read here by Tesseract 5
(`pip install tesserocr pillow`; models of tessdata_fast in `--tessdata`). No profile was made of
ICDAR2017 and ICDAR2019: their lists of licences are headed "free to use for non-commercial uses".
"""

import argparse
import io
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from random import Random

from noisegen.data.pairs import Pairs, read_pairs
from noisegen.noising.rng import name_number
from noisegen.realism.learn import profile_of, save
from noisegen.text.resources import DICTIONARIES
from tools.profiles import LARGE, SUPPORT_LARGE, SUPPORT_MIN, anonymous, supported

TEST = 5  # one work in so many is for testing alone
CER_MAX = 0.3  # lines with a larger share of wrong characters are not of the same print
HEIGHT, BORDER = 48, 10  # pixels of an image of a line, and of the white around it
_SET_APART = re.compile(r" +(?=[,;:!?.])")  # old prints set punctuation apart, transcribers do not
_WRITTEN_TODAY = str.maketrans(
    {"ſ": "s", "⸗": "-", "¬": "-", "‐": "-", "‑": "-", "’": "'", "‘": "'", "\u0364": "\u0308"}
)
Line = tuple[str, str, str]  # work, as it was read, as it is printed


@dataclass(frozen=True)
class Scans:
    """A set of scans: whom to credit, and how its files are named.

    `files` is a pattern of the images of lines, `model` the model of Tesseract that reads them, and
    `text` the ending of the name of a text, in place of .png.
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
        r"^transcriptions/",
        "deu",
        ".txt",
    ),
    "fr": Scans(
        "French prints of the 17th to 19th century, read by Tesseract 5 (e-ditiones/OCR17)",
        "CC-BY-SA-4.0",
        r"^(Training_data/.*/extracted(_cleaned)?/|Testing_data/)",
        "fra",
        ".gt.txt",
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
    """Read up to `most` images of lines in a Git repository, drawn at random, with Tesseract."""
    import tesserocr
    from PIL import Image

    git = ["git", "-C", str(repository)]
    listed = subprocess.run([*git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True)
    names = {*listed.stdout.decode().splitlines()}
    images = [
        name
        for name in sorted(names)
        if re.search(scans.files, name) and name.removesuffix(".png") + scans.text in names
    ]
    Random(7).shuffle(images)

    def content(name: str) -> bytes:
        return subprocess.run([*git, "show", f"HEAD:{name}"], capture_output=True).stdout

    single = tesserocr.PSM.SINGLE_LINE
    with tesserocr.PyTessBaseAPI(path=tessdata, lang=scans.model, psm=single) as reader:
        for name in images[:most]:
            image = Image.open(io.BytesIO(content(name))).convert("L")
            if image.height < HEIGHT - BORDER:
                image = image.resize((image.width * HEIGHT // image.height, HEIGHT))
            framed = Image.new("L", (image.width + 2 * BORDER, image.height + 2 * BORDER), 255)
            framed.paste(image, (BORDER, BORDER))
            reader.SetImage(framed)
            reader.SetSourceResolution(300)
            printed = content(name.removesuffix(".png") + scans.text).decode()
            yield work_of(name), reader.GetUTF8Text(), printed


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
    pairs.add_argument("source", type=Path)
    for command in (pairs, learn):
        command.add_argument("out", type=Path)
    pairs.add_argument("--tessdata", default="")
    pairs.add_argument("--most", type=int, default=8_000)
    given = parser.parse_args()
    if given.command == "learn":
        learn_profile(given.lang, given.out, DICTIONARIES / given.lang / "ocr")
    else:
        lines = lines_read(given.source, SCANS[given.lang], given.tessdata, given.most)
        write_pairs(given.lang, lines, given.out)


if __name__ == "__main__":
    main()
