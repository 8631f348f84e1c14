"""Write the inputs of the memory benchmark, by their file name: a number of sentences in each."""

import bz2
import json
from collections.abc import Callable, Iterable, Iterator
from html import escape
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks import inputs
from benchmarks.measure import child
from noisegen.augmentation.on_the_fly import Mapper
from tests.models import bert_folder

ENTRY, PAGE, REVISION = 4, 20, 5  # sentences of a Lang-8 entry, of a page, new in a revision
BATCH_ROWS = 10_000


def written(folder: Path, name: str, rows: int) -> Path:
    """Write the input of this name, once, and return its path."""
    path = folder / str(rows) / name
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        _WRITERS[name](path, rows)
    return path


def _clean(rows: int) -> list[str]:
    return [" ".join(text.split()) for text in inputs.texts(rows).to_pylist()[:rows]]


def _pairs(rows: int) -> Iterator[tuple[str, str]]:
    """Return noisy and clean text."""
    clean = _clean(rows)
    noisy = Mapper("ugc", seed=1).noise(clean, range(rows))
    return (
        (" ".join((after or "").split()), text) for after, text in zip(noisy, clean, strict=True)
    )


def _batches(pairs: Iterator[tuple[str, str]], size: int) -> Iterator[list[tuple[str, str]]]:
    while batch := list(islice(pairs, size)):
        yield batch


def _table(rows: int) -> pa.Table:
    return pa.table({"id": range(rows), "text": _clean(rows)})


def _lines(lines_of: Callable[[int], Iterable[str]]) -> Callable[[Path, int], None]:
    """Return what writes these lines, compressed if the name ends so."""

    def write(path: Path, rows: int) -> None:
        lines = (f"{line}\n".encode() for line in lines_of(rows))
        with bz2.open(path, "wb") if path.suffix == ".bz2" else path.open("wb") as file:
            file.writelines(lines)

    return write


def _json_lines(rows: int) -> Iterator[str]:
    return (json.dumps({"id": row, "text": text}) for row, text in enumerate(_clean(rows)))


def _conll(rows: int) -> Iterator[str]:
    return ("".join(f"{word}\tO\n" for word in text.split()) for text in _clean(rows))


def _tsv(rows: int) -> Iterator[str]:
    yield "noisy\tclean"
    yield from map("\t".join, _pairs(rows))


def _lang8(rows: int) -> Iterator[str]:
    for number, pairs in enumerate(_batches(_pairs(rows), ENTRY)):
        noisy, corrected = [pair[0] for pair in pairs], [[pair[1]] for pair in pairs]
        yield json.dumps([str(number), "1", "English", "German", noisy, corrected])


def _m2(rows: int) -> Iterator[str]:
    """Yield sentences, all of each replaced by its clean version."""
    for noisy, clean in _pairs(rows):
        words = len(noisy.split())
        yield f"S {noisy}\nA 0 {words}|||R:SPELL|||{clean}|||REQUIRED|||-NONE-|||0\n"


def _wiki(rows: int) -> Iterator[str]:
    """Yield a history whose pages are corrected a few sentences at a time."""
    yield (
        '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">'
        "<siteinfo><dbname>enwiki</dbname></siteinfo>"
    )
    for page, pairs in enumerate(_batches(_pairs(rows), PAGE), 1):
        yield f"<page><title>{page}</title><ns>0</ns><id>{page}</id>"
        for number, corrected in enumerate(range(0, PAGE + 1, REVISION)):
            texts = (pair[place < corrected] for place, pair in enumerate(pairs))
            body = escape("\n\n".join(texts))
            yield (
                f"<revision><id>{10 * page + number}</id>"
                f"<timestamp>2020-01-0{number + 1}T00:00:00Z</timestamp>"
                "<contributor><username>A</username><id>1</id></contributor>"
                "<model>wikitext</model><format>text/x-wiki</format>"
                f"<text>{body}</text>"
                f"<sha1>{page}x{number}</sha1></revision>"
            )
        yield "</page>"
    yield "</mediawiki>"


def _csv(path: Path, rows: int) -> None:
    pyarrow.csv.write_csv(_table(rows), path)


def _parquet(path: Path, rows: int) -> None:
    pq.write_table(_table(rows), path, row_group_size=BATCH_ROWS)


def _arrow(path: Path, rows: int) -> None:
    table = _table(rows)
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, BATCH_ROWS)


def _made(command: str, source: str) -> Callable[[Path, int], None]:
    """Return what writes the output of a command on another input."""

    def write(path: Path, rows: int) -> None:
        given = written(path.parents[1], source, rows)
        child(("-m", "noisegen", *command.format(given, path).split(), "--quiet"))

    return write


def _lesson(path: Path, rows: int) -> None:
    """Write pairs, and a model of a few thousand weights beside them."""
    path.mkdir()
    bert_folder(path / "model")
    _WRITERS["pairs.tsv"](path / "pairs.tsv", rows)


_WRITERS: dict[str, Callable[[Path, int], None]] = {
    "in.txt": _lines(_clean),
    "in.txt.bz2": _lines(_clean),
    "in.csv": _csv,
    "in.jsonl": _lines(_json_lines),
    "in.parquet": _parquet,
    "in.arrow": _arrow,
    "in.conll": _lines(_conll),
    "pairs.tsv": _lines(_tsv),
    "lesson": _lesson,
    "in.lang8": _lines(_lang8),
    "in.m2": _lines(_m2),
    "in.xml": _lines(_wiki),
    "run": _made("augment {0} -o {1} --workers 1", "in.txt"),
    "mined": _made("mine-pairs {0} -o {1} --workers 1 --min-count 1 --min-pages 1", "pairs.tsv"),
    "review.sqlite": _made("review make {0} -o {1} -t fing --strengths 0.1,0.2", "in.txt"),
}
