"""Real noisy and clean text of the development data, each set as a list of (noisy, clean).

Sets lie in ../shared/data beside the clone. MultiLexNorm2 has no licence: it is read where the
environment variable NOISEGEN_MULTILEXNORM2 says, a clone or a bare repository of
WeerayutBu/MultiLexNorm2, train and dev parts only. Absent sets are left out.
"""

import csv
import gzip
import os
import re
import subprocess
import tarfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow.csv

from benchmarks.measure import ROOT
from noisegen.data.conll import NORM
from noisegen.data.formats.token_lines import norm_tables
from noisegen.data.m2 import m2_sentences
from noisegen.data.pairs import read_pairs
from noisegen.text.segmentation import language

DATA = ROOT.parent / "shared" / "data"
Pair = tuple[str, str]  # noisy, clean


class RealSet(NamedTuple):
    """A set: its language, a description, and its reader."""

    lang: str
    kind: str
    read: Callable[[], Iterator[Pair]]


def load(name: str) -> list[Pair]:
    """Return the pairs of a set of `SETS`; pairs with an empty side are left out."""
    return [pair for pair in SETS[name].read() if pair[0].strip() and pair[1].strip()]


def available() -> list[str]:
    """Return the sets whose files are here."""
    return [name for name in SETS if _folder(name.partition(":")[0]).is_dir()]


def _folder(name: str) -> Path:
    if name == MULTILEXNORM2:
        return Path(os.environ.get("NOISEGEN_MULTILEXNORM2") or DATA / name)
    return DATA / name


def lines_of(path: str) -> list[str]:
    return gzip.decompress((DATA / path).read_bytes()).decode("utf-8-sig", "replace").splitlines()


def _vilexnorm() -> Iterator[Pair]:
    for part in ("train", "dev"):
        for row in csv.DictReader(lines_of(f"vilexnorm/{part}.csv.gz")):
            yield row["original"], row["normalized"]


def _ruspellru() -> Iterator[Pair]:
    files = ("sources", "corrections")
    yield from zip(*(lines_of(f"ruspellru/{one}.even.txt.gz") for one in files), strict=True)


_SIGNS = re.compile(r"[^\w\s-]|(?<!\w)-+|-+(?!\w)")


def _ruspellru_words() -> Iterator[Pair]:
    """Yield both sides without punctuation, which the corrections lack."""
    for pair in _ruspellru():
        noisy, clean = (" ".join(_SIGNS.sub(" ", side).split()) for side in pair)
        yield noisy, clean


def _jfleg() -> Iterator[Pair]:
    yield from zip(lines_of("jfleg/dev.src.gz"), lines_of("jfleg/dev.ref0.gz"), strict=True)


def _m2(path: str) -> Iterator[Pair]:
    """Yield sentences with the first annotator's corrections."""
    for block in m2_sentences(enumerate(lines_of(path), 1)):
        noisy = " ".join(block.tokens)
        yield noisy, next(iter(block.corrected()), noisy)


def _cowsl2h() -> Iterator[Pair]:
    """Yield the sentences of essays that have the same number of sentences as their correction."""
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
    for line in lines_of("mucgec/MuCGEC_dev.even.txt.gz"):
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
        text = "\n".join(lines_of(f"sighan/SIGHAN15_CSC_{part}2_Training.sgml.gz"))
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


def _treebanks(lang: str) -> Iterator[Pair]:
    for path in sorted((DATA / "ud-corrected").glob(f"{lang}_*.conllu.gz")):
        pairs = read_pairs([str(path)])
        yield from zip(pairs.noisy, pairs.clean, strict=True)


_INJECTED = re.compile(r"<(.+?)\|\d+>")  # a word error of SNIPS


def _snips(lang: str) -> Iterator[Pair]:
    with (DATA / "snips-multilingual" / f"{lang}.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield _INJECTED.sub(r"\1", row["new_utterance"]), row["old_utterance"]


def posts(folder: str, part: str = "train|dev") -> Iterator[Pair]:
    """Yield raw text and its normal form from the train and dev parts of MultiLexNorm2.

    Tokens are joined by spaces; in Japanese and Thai a space is a token of its own, `_`. The
    Indonesian normal form alone has no capitals and masks names; here both sides have the names and
    no capitals, as other sets do.
    """
    for sides in post_tokens(folder, part):
        words = _unmasked(*sides) if folder == "id" else sides
        noisy, clean = (_joined(side, folder) for side in words)
        yield noisy, clean


def post_tokens(folder: str, part: str = "train|dev") -> Iterator[tuple[list[str], list[str]]]:
    """Yield the tokens of posts of MultiLexNorm2, and the normal form of each, which may be ''."""
    git = ["git", "-C", str(_folder(MULTILEXNORM2))]
    names = subprocess.check_output([*git, "ls-tree", "-r", "--name-only", "HEAD", "data/"])
    for path in names.decode().splitlines():
        if not re.fullmatch(rf"data/({part})/[^/]+/{folder}/\1\.norm", path):
            continue
        content = subprocess.check_output([*git, "show", f"HEAD:{path}"])
        for table in norm_tables([content]):
            yield from zip(*(table[side].to_pylist() for side in NORM), strict=True)


def _unmasked(noisy: list[str], clean: list[str]) -> tuple[list[str], list[str]]:
    noisy = [word.lower() for word in noisy]
    pairs = zip(noisy, clean, strict=True)
    return noisy, [word if _MASKED.search(normal) else normal for word, normal in pairs]


def _joined(words: list[str], folder: str) -> str:
    if folder not in ("ja", "th"):
        return " ".join(filter(None, words))
    return "".join(" " if word == "_" else word.replace(" ", "") for word in words)


_MASKED = re.compile(r"\[(?:mention|hashtag)\]")
MULTILEXNORM2 = "multilexnorm2"
_POSTS = (
    "da",
    "de",
    "en",
    "es",
    "hr",
    "id",
    "iden",
    "it",
    "ja",
    "ko",
    "nl",
    "sl",
    "sr",
    "th",
    "tr",
    "trde",
    "vi",
)
_MIXED = {"iden": "id", "trde": "tr"}  # posts in two languages, by the one that most words are of
SETS = {
    "jfleg": RealSet("en", "learners", _jfleg),
    "cweb:G": RealSet("en", "web sites", lambda: _m2("cweb/CWEB-G.dev.m2.gz")),
    "cweb:S": RealSet("en", "web sites", lambda: _m2("cweb/CWEB-S.dev.m2.gz")),
    "falko-merlin": RealSet("de", "learners", lambda: _m2("falko-merlin/fm-dev.m2.gz")),
    "cowsl2h": RealSet("es", "learners", _cowsl2h),
    "ruspellru": RealSet("ru", "blogs", _ruspellru),
    "ruspellru:words": RealSet("ru", "blogs, words alone", _ruspellru_words),
    "ua-gec": RealSet("uk", "essays, edited", _ua_gec),
    "vilexnorm": RealSet("vi", "social media", _vilexnorm),
    "ice-error": RealSet("is", "essays, Wikipedia", _ice_error),
    "mucgec": RealSet("zh", "learners", _mucgec),
    "sighan": RealSet("zh", "learners' spelling", _sighan),
    "ud-corrected:en": RealSet("en", "posts, mail, reviews", partial(_treebanks, "en")),
    "ud-corrected:pt": RealSet("pt", "posts", partial(_treebanks, "pt")),
    "ud-corrected:ga": RealSet("ga", "posts", partial(_treebanks, "ga")),
    **{
        f"snips-multilingual:{lang}": RealSet(
            lang, "requests, errors put in", partial(_snips, lang)
        )
        for lang in ("es", "fr", "hi")
    },
    **{
        f"{MULTILEXNORM2}:{folder}": RealSet(
            _MIXED.get(folder, folder), "posts", partial(posts, folder)
        )
        for folder in _POSTS
    },
}
