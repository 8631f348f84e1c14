"""What all runs into a folder share: their options, whose folder it is, and what is left to do."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from noisegen import executors
from noisegen.atomic import remove, writing
from noisegen.errors import OutputError, UsageError

M = TypeVar("M")
Part = tuple[int, int]  # (remainder, count): the tasks whose number has this remainder
WHOLE: Part = (0, 1)
_NUMBER = re.compile(r"part-(\d{5,})\.parquet")


def check_options(workers: int, executor: str, part: str | None, resume: bool, force: bool) -> Part:
    """Refuse wrong usage before anything is read or removed; return the part 'I/N' to do.

    Raises UsageError.
    """
    executors.check(executor)
    if workers < 1:
        raise UsageError(f"--workers {workers} must be at least 1")
    if force and (resume or part is not None):
        raise UsageError("--force removes what is there; --resume and --part keep it: choose one")
    return parse_part(part)


def parse_part(part: str | None) -> Part:
    """Read 'I/N' (I from 1 to N): the remainder of the numbers to do, and N; raises UsageError."""
    if part is None:
        return WHOLE
    number, _, count = part.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise UsageError(f"cannot read part {part!r}: write I/N with I from 1 to N, such as 2/8")
    return int(number) - 1, int(count)


def make(out: Path) -> bool:
    """Make the folder; tell whether something is in it; raises OutputError."""
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file: name a folder to write into")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        return any(out.iterdir())


def refuse_full(out: Path, *, can_resume: bool = True) -> None:
    """Raise OutputError: the folder is not empty, and nothing says what to do with that."""
    resume = "--resume to go on or " if can_resume else ""
    raise OutputError(f"{out} is not empty; add {resume}--force to write over it")


def agree(out: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Raise OutputError unless the folder was made with our configuration."""
    if found := difference(theirs, ours):
        raise OutputError(
            f"{out} was made with another configuration ({found}); "
            "use another folder, or --force to write over it"
        )


def difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    """Name the first thing that differs between two configurations; '' if nothing does."""
    for name in ours:
        old, new = theirs.get(name), ours[name]
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict) and name == "options":
            return difference(old, new)
        shown = f"{name} {old!r}, not {new!r}"
        return shown if len(shown) < 80 else f"other {name}"
    return "other options" if theirs != ours else ""


def number_of(path: Path) -> int | None:
    """Return the number of a shard from its file name; None for any other file."""
    found = _NUMBER.fullmatch(path.name)
    return int(found[1]) if found else None


def remove_temporary(out: Path, part: Part, notes: Iterable[str], shards: str = ".") -> None:
    """Remove what a run that was cut short left half written of the shards of this part.

    `shards` is a pattern of the folders that they lie in. `notes` are the files that one run alone
    writes: what is left of them goes too, unless the part is one of several.
    """
    for path in out.glob(f"{shards}/part-*.parquet.*.tmp"):
        number = number_of(Path(path.name.rsplit(".", 2)[0]))
        if number is not None and number % part[1] == part[0]:
            remove(path)
    if part[1] == 1:
        remove(*(path for name in notes for path in out.glob(f"{name}.*.tmp")))


def known_digests(out: Path, listed: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the digests that the manifest has, of the shards that are not newer than it."""
    written = (out / "manifest.json").stat().st_mtime_ns
    return {
        one["file"]: one["sha256"]
        for one in listed
        if (file := out / one["file"]).exists() and file.stat().st_mtime_ns < written
    }


def load_manifest(kind: type[M], path: str | Path, run: str) -> M:
    """Read manifest.json (or the one in a folder); raises OutputError if it is of no such run."""
    path = Path(path)
    path = path / "manifest.json" if path.is_dir() else path
    try:
        return kind(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise OutputError(f"{path} is not the manifest of {run}: {error}") from error


def manifest_text(manifest: Any) -> str:
    """Return a manifest, a dataclass, as the text of its file."""
    return json.dumps(asdict(manifest), indent=1, ensure_ascii=False) + "\n"
