"""Files of the formats that tasks have and `augment` does not read: found, and read bounded."""

import glob
from collections.abc import Iterator
from pathlib import Path

from noisegen.errors import SourceError
from noisegen.inputs import COMPRESSIONS
from noisegen.readers import Damaged, blocks, opened, reading

FILE_MAX = 256 << 20  # bytes of a JSON file, decompressed
_BLOCK = 1 << 20


def task_files(source: str, endings: tuple[str, ...]) -> list[Path]:
    """Return the files with these endings, compressed or not, that a file, folder or glob means."""
    path = Path(source)
    if path.is_dir():
        found = sorted(path.iterdir())
    else:
        found = [path] if path.exists() else [Path(one) for one in sorted(glob.glob(source))]  # noqa: PTH207
    return [one for one in found if _bare(one).endswith(endings)]


def _bare(path: Path) -> str:
    name = path.name.lower()
    return name.removesuffix(f".{_compression(path)}")


def _compression(path: Path) -> str:
    ending = path.suffix.lower().removeprefix(".")
    return ending if ending in COMPRESSIONS else ""


def read_bytes(path: Path) -> bytes:
    """Return a file's content, decompressed; raises SourceError, also for one too large."""
    held = bytearray()
    with reading(str(path)), opened(str(path), _compression(path)) as read:
        try:
            while chunk := read(_BLOCK):
                held += chunk
                if len(held) > FILE_MAX:
                    raise SourceError(f"{path} is larger than {FILE_MAX >> 20} MiB: split it")
        except Damaged as damage:
            raise SourceError(f"{path} is damaged: {damage}") from damage
    return bytes(held)


def lines_of(path: Path, damaged: list[str]) -> Iterator[bytes]:
    """Yield the lines of a file, without their ends; damage ends it and is told."""
    with reading(str(path)), opened(str(path), _compression(path)) as read:
        try:
            for block in blocks(read, _BLOCK):
                yield from block.splitlines()
        except Damaged:
            damaged.append(f"{path}: truncated")
