"""Real noisy and clean text of the development data, each set as a list of (noisy, clean)."""

import csv
import gzip
import re
import tarfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.csv

from benchmarks.measure import ROOT
from noisegen.data.pairs import m2_sentences
from noisegen.text.segmentation import language

DATA = ROOT.parent / "shared" / "data"
Pair = tuple[str, str]  # noisy, clean


class RealSet(NamedTuple):
    """A set: language, what it is, and how it is read."""

    lang: str
    kind: str
    read: Callable[[], Iterator[Pair]]


def load(name: str) -> list[Pair]:
    """Return the pairs of a set of `SETS`; those with an empty side are left out."""
    return [pair for pair in SETS[name].read() if pair[0].strip() and pair[1].strip()]


def available() -> list[str]:
    """Return the sets whose files are here."""
    return [name for name in SETS if (DATA / name.partition(":")[0]).is_dir()]


def _lines(path: str) -> list[str]:
    return gzip.decompress((DATA / path).read_bytes()).decode("utf-8-sig", "replace").splitlines()


def _vilexnorm() -> Iterator[Pair]:
    for part in ("train", "dev"):
        for row in csv.DictReader(_lines(f"vilexnorm/{part}.csv.gz")):
            yield row["original"], row["normalized"]


def _ruspellru() -> Iterator[Pair]:
    files = ("sources", "corrections")
    yield from zip(*(_lines(f"ruspellru/{one}.even.txt.gz") for one in files), strict=True)


def _jfleg() -> Iterator[Pair]:
    yield from zip(_lines("jfleg/dev.src.gz"), _lines("jfleg/dev.ref0.gz"), strict=True)


def _m2(path: str) -> Iterator[Pair]:
    """Yield sentences with what the first annotator made of them."""
    for block in m2_sentences(enumerate(_lines(path), 1)):
        noisy = " ".join(block.tokens)
        yield noisy, next(iter(block.corrected()), noisy)


def _cowsl2h() -> Iterator[Pair]:
    """Yield the sentences of essays that have as many as their correction."""
    spanish, columns = language("es"), ["essay", "corrected1"]
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    chosen = pyarrow.csv.ConvertOptions(include_columns=columns)
    for path in sorted((DATA / "cowsl2h").glob("*.csv.gz")):
        table = pyarrow.csv.read_csv(path, parse_options=options, convert_options=chosen)
        for essay, corrected in zip(*table.to_pydict().values(), strict=True):
            sides = spanish.sentences(essay or ""), spanish.sentences(corrected or "")
            if len(sides[0]) == len(sides[1]):
                yield from zip(*sides, strict=True)


def _ua_gec() -> Iterator[Pair]:
    texts: dict[str, list[str]] = {}
    with tarfile.open(DATA / "ua-gec" / "gec-fluency.train.tar.gz") as archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)):
                texts[Path(member.name).name] = file.read().decode().splitlines()
    for name, noisy in sorted(texts.items()):
        clean = texts.get(name.replace(".src.", ".a1.")) or texts.get(name.replace(".src.", ".a2."))
        if ".src." in name and clean and len(clean) == len(noisy):
            yield from zip(noisy, clean, strict=True)


def _ice_error() -> Iterator[Pair]:
    with tarfile.open(DATA / "ice-error" / "iceErrorCorpus.tar.gz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".xml") else None
            if file:
                for sentence in ElementTree.parse(file).iter("{http://www.tei-c.org/ns/1.0}s"):
                    yield _tei(sentence, "original"), _tei(sentence, "corrected")


def _tei(sentence: ElementTree.Element, side: str) -> str:
    """Return one side of a sentence; a sign follows the word before it without a blank."""
    text = ""
    for token in _tei_tokens(sentence, side):
        text += (" " if text and not token.tag.endswith("}c") else "") + (token.text or "")
    return text


def _tei_tokens(element: ElementTree.Element, side: str) -> Iterator[ElementTree.Element]:
    for part in element:
        tag = part.tag.rpartition("}")[2]
        if tag in ("w", "c"):
            yield part
        elif tag in ("revision", side):
            yield from _tei_tokens(part, side)


def _mucgec() -> Iterator[Pair]:
    for line in _lines("mucgec/MuCGEC_dev.even.txt.gz"):
        _, noisy, *clean = line.split("\t")
        yield noisy, noisy if clean[0] == "没有错误" else clean[0]  # "no error"


_PASSAGE = re.compile(r'<PASSAGE id="([^"]+)">(.*?)</PASSAGE>', re.DOTALL)
_MISTAKE = re.compile(
    r'<MISTAKE id="([^"]+)" location="(\d+)">\s*<WRONG>(.*?)</WRONG>\s*'
    r"<CORRECTION>(.*?)</CORRECTION>",
    re.DOTALL,
)


def _sighan() -> Iterator[Pair]:
    for part in "AB":
        text = "\n".join(_lines(f"sighan/SIGHAN15_CSC_{part}2_Training.sgml.gz"))
        mistakes: dict[str, list[tuple[int, str, str]]] = {}
        for name, place, wrong, right in _MISTAKE.findall(text):
            mistakes.setdefault(name, []).append((int(place) - 1, wrong.strip(), right.strip()))
        for name, passage in _PASSAGE.findall(text):
            noisy = passage.strip()
            clean = list(noisy)
            for place, wrong, right in mistakes.get(name, []):
                start = noisy.find(wrong, max(0, place - len(wrong) + 1))  # `place` is inside it
                if 0 <= start <= place and len(wrong) == len(right):
                    clean[start : start + len(right)] = right
            yield noisy, "".join(clean)


SETS = {
    "jfleg": RealSet("en", "learners", _jfleg),
    "cweb:G": RealSet("en", "web sites", lambda: _m2("cweb/CWEB-G.dev.m2.gz")),
    "cweb:S": RealSet("en", "web sites", lambda: _m2("cweb/CWEB-S.dev.m2.gz")),
    "falko-merlin": RealSet("de", "learners", lambda: _m2("falko-merlin/fm-dev.m2.gz")),
    "cowsl2h": RealSet("es", "learners", _cowsl2h),
    "ruspellru": RealSet("ru", "blogs", _ruspellru),
    "ua-gec": RealSet("uk", "essays, edited", _ua_gec),
    "vilexnorm": RealSet("vi", "social media", _vilexnorm),
    "ice-error": RealSet("is", "essays, Wikipedia", _ice_error),
    "mucgec": RealSet("zh", "learners", _mucgec),
    "sighan": RealSet("zh", "learners' spelling", _sighan),
}
