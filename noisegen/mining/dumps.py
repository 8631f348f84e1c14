"""Which files are dumps to mine, in which language, and which of them belong together."""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from noisegen.errors import SourceError
from noisegen.mining.containers import MAGICS, first_bytes
from noisegen.mining.pairs import Task
from noisegen.mining.revisions import read_site

_PART = re.compile(r"(?P<stem>.*-p(?P<page>\d+))r(?P<first>\d+)r(?P<last>\d+)\.")
ENDINGS = (".xml", *(f".{name}" for name in MAGICS))
_SIGNS = (b"<revision>", b"mediawiki", "mediawiki".encode("utf-16-le"))
_SAME = {
    "no": "nb",
    "nb": "no",
    "simple": "en",
}  # codes of wikis that are other than the language's


def tasks_of(sources: Sequence[str], lang: str) -> tuple[list[Task], list[str]]:
    """Return a task for every dump file of files, folders and globs, and what is left out and why.

    The files of a page that is split by revisions (p1r2r3) are one task, in their order. Raises
    SourceError for what is missing, empty or not what its ending says, and if nothing is left.
    """
    left_out: list[str] = []
    files: dict[Path, Path] = {}  # by the name of the dump without that of its compression
    for path in _expanded(sources):
        dump = path.with_suffix("") if path.suffix.lower() != ".xml" else path
        reason = _reason_against(path, lang)
        if not reason and dump in files:
            reason = f"the same dump as {files[dump].name}, in another compression"
        if reason:
            left_out.append(f"{path}: {reason}")
        else:
            files[dump] = path
    if not files:
        raise SourceError("; ".join(left_out[:3]) or f"no files in {', '.join(sources)}")
    return [Task(number, paths) for number, paths in enumerate(_grouped(files.values()))], left_out


def _expanded(sources: Iterable[str]) -> list[Path]:
    """Return the files in order, each once, under whatever name it is given first."""
    found = [path for source in sources for path in _files(source)]
    first: dict[Path, Path] = {}
    for path in found:
        first.setdefault(path.resolve(), Path(os.path.abspath(path)))  # noqa: PTH100
    return list(first.values())


def _files(source: str) -> Iterator[Path]:
    path = Path(source)
    if path.is_dir():
        yield from (file for file in sorted(path.rglob("*")) if file.is_file())
    elif path.exists():
        yield path
    elif matches := sorted(glob.glob(source, recursive=True)):  # noqa: PTH207
        for match in matches:
            yield from _files(match)
    else:
        raise SourceError(f"{source!r}: no such file or folder")


def _reason_against(path: Path, lang: str) -> str:
    """Return why a file is not mined; '' if it is."""
    if path.suffix.lower() not in ENDINGS and not path.stat().st_size:
        return "no MediaWiki export"
    head = first_bytes(path)
    if not head:
        raise SourceError(f"{path}: damaged, nothing of it can be read")
    if not any(sign in head for sign in _SIGNS):
        return "no MediaWiki export"
    theirs = read_site(head).lang.partition("-")[0].lower()
    if theirs and theirs != lang and _SAME.get(theirs) != lang:
        return f"its site info says language {theirs!r}, not {lang!r}; use --lang {theirs}"
    return ""


def _grouped(files: Iterable[Path]) -> list[tuple[str, ...]]:
    """Put the files of one page together."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for path in files:
        part = _PART.match(str(path))
        key = part["stem"] if part else str(path)
        groups.setdefault(key, []).append((int(part["first"]) if part else 0, str(path)))
    return [tuple(path for _, path in sorted(group)) for group in groups.values()]
