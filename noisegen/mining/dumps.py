"""Mining tasks: a dump file, a range of a large file, or the files of one large page."""

import glob
import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path, PurePath

from noisegen.data.decoders import MAGICS, entries, first_bytes
from noisegen.data.files import absolute, is_url, size_of
from noisegen.data.folders import store_files
from noisegen.data.rows import FileRange
from noisegen.errors import SourceError
from noisegen.mining.exports import head_of, is_plain
from noisegen.mining.miner import Task
from noisegen.mining.revisions import read_site

PIECE_BYTES = 64 << 20  # compressed bytes of a large dump per task: a minute of bzip2
ENDINGS = (".xml", *(f".{name}" for name in MAGICS))
# File with part of a large page: '-p5r1r99.' in its name means revisions 1 to 99 of page 5
_PART = re.compile(r"(.*-p\d+)r(\d+)r\d+\.")
_SIGNS = (b"<revision>", b"mediawiki", "mediawiki".encode("utf-16-le"))
# Language code in a dump -> another value of --lang that is accepted for this dump
_SAME = {"no": "nb", "nb": "no", "simple": "en"}


def tasks_of(
    sources: Sequence[str], lang: str, piece_bytes: int | None = None
) -> tuple[list[Task], list[str]]:
    """Return the mining tasks of dump files, and a message for each file that is left out.

    A file that can be decoded from several offsets becomes tasks of about `piece_bytes` compressed
    bytes (default: `PIECE_BYTES`). Files with parts of the same page (named like p1r2r3) become one
    task, in order. Raises SourceError for a missing or empty file, a file whose content does not
    match its extension, and if no file is left.
    """
    files, left_out = _chosen_files(sources, lang)
    if not files:
        raise SourceError("; ".join(left_out[:3]) or f"no files in {', '.join(sources)}")
    tasks: list[tuple[FileRange, ...]] = []
    for group in _grouped(files):
        tasks += _pieces(group, piece_bytes or PIECE_BYTES)
    return [Task(number, ranges) for number, ranges in enumerate(tasks)], left_out


def _chosen_files(sources: Sequence[str], lang: str) -> tuple[list[str], list[str]]:
    """Return the files to mine, each once, and a message for each file that is left out."""
    left_out: list[str] = []
    paths = [path for source in sources for path in _files(source)]
    # By resolved path, so that a symbolic link and its target count as one file
    first_name = {absolute(path): path for path in reversed(paths)}
    chosen: dict[str, str] = {}  # path without an extension such as .bz2 -> whole path
    for path in dict.fromkeys(paths):
        if first_name[absolute(path)] != path:
            continue
        dump = path if _ending(path) == ".xml" else path.removesuffix(_ending(path))
        reason = _reason_against(path, lang)
        if not reason and dump in chosen:
            reason = f"the same dump as {name_in(chosen[dump])}, in another compression"
        if reason:
            left_out.append(f"{path}: {reason}")
        else:
            chosen[dump] = path
    return list(chosen.values()), left_out


def _grouped(files: Sequence[str]) -> list[tuple[str, ...]]:
    """Group files: the files of one large page in order of revision, each other file alone."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for name in files:
        part = _PART.match(name)
        stem, first = (part[1], int(part[2])) if part else (name, 0)
        groups.setdefault(stem, []).append((first, name))
    return [tuple(name for _, name in sorted(group)) for group in groups.values()]


def _pieces(names: Sequence[str], piece_bytes: int) -> list[tuple[FileRange, ...]]:
    """Return the files of a dump as one task, or the ranges of one large file as several tasks.

    Several files of one page, and XML that must be rewritten first, are not split.
    """
    starts = [0] if names[1:] else entries(names[0], piece_bytes)
    if not starts[1:] or not is_plain(head_of(names[0])):
        return [tuple(map(FileRange, names))]
    (name,) = names
    pieces = [
        (FileRange(name, start=start, stop=stop, size=stop - start),)
        for start, stop in pairwise(starts)
    ]
    last = starts[-1]
    return [*pieces, (FileRange(name, start=last, size=size_of(name) - last),)]


def name_in(path: str) -> str:
    """Return the name of a file or URL without its folder."""
    return path.rpartition("/")[2]


def _ending(path: str) -> str:
    return PurePath(name_in(path)).suffix.lower()


def _files(source: str) -> Iterator[str]:
    """Yield the files of a path, folder, glob or URL, sorted, local files by absolute path.

    Raises SourceError if there are none.
    """
    path = Path(os.path.abspath(source))  # noqa: PTH100  (a link keeps its name)
    if is_url(source):
        yield from store_files(source)
    elif path.is_dir():
        yield from (str(file) for file in sorted(path.rglob("*")) if file.is_file())
    elif path.exists():
        yield str(path)
    elif matches := sorted(glob.glob(source, recursive=True)):  # noqa: PTH207
        for match in matches:
            yield from _files(match)
    else:
        raise SourceError(f"{source!r}: no such file or folder")


def _reason_against(path: str, lang: str) -> str:
    """Return the reason why a file is left out; '' if it is mined."""
    if _ending(path) not in ENDINGS and not size_of(path):
        return "not a MediaWiki export"
    head = first_bytes(path)
    if not head:
        raise SourceError(f"{path}: damaged: nothing in it can be read")
    if not any(sign in head for sign in _SIGNS):
        return "not a MediaWiki export"
    theirs = read_site(head).lang.partition("-")[0].lower()
    if theirs and theirs != lang and _SAME.get(theirs) != lang:
        return f"its site info says language {theirs!r}, not {lang!r}; use --lang {theirs}"
    return ""
