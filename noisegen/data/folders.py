"""The files in a folder, here or in a store, and the tables that `datasets` has saved there."""

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from noisegen.data.files import is_url, reading, store_of
from noisegen.data.formats.registry import file_of
from noisegen.data.lines import read_parts
from noisegen.data.rows import FileRange
from noisegen.errors import SourceError

T = TypeVar("T")

Name = Annotated[str, msgspec.Meta(pattern=r"^(?!\.\.?$)[^/\\\x00]+$")]  # no path


class _Splits(msgspec.Struct):
    """The file `dataset_dict.json` of a DatasetDict."""

    splits: Annotated[list[Name], msgspec.Meta(min_length=1)]


class _File(msgspec.Struct):
    filename: Name


class _State(msgspec.Struct):
    """The file `state.json` of a Dataset."""

    files: list[_File] = msgspec.field(name="_data_files")


_RUN = {"manifest.json", "README.md"}  # files beside the data of a run
_LISTS = "manifest.*.jsonl"  # long lists of its manifest, beside it as well
_SPLITS, _STATE = "dataset_dict.json", "state.json"


def in_folder(folder: str) -> Iterator[FileRange]:
    """Yield the files in a folder or URL and below, except hidden files and the files of a run.

    A saved dataset is its Arrow files. Of a DatasetDict the split `train`, or the only split, is
    read. Raises SourceError if it has several splits and no `train`.
    """
    unread: tuple[str, ...] = ()  # folders of splits that are not read
    for parent, group in groupby(_files(folder), key=lambda path: path.rpartition("/")[0]):
        names = {path.rpartition("/")[2]: path for path in group}
        if f"{parent}/".startswith(unread):
            continue
        if _SPLITS in names:
            others = _other_splits(parent, _content(names[_SPLITS], _Splits).splits)
            unread += tuple(f"{path}/" for path in others)
            yield from (
                FileRange(path, skipped="another split; name it to read it") for path in others
            )
        elif _STATE in names:
            saved = _content(names[_STATE], _State).files
            yield from (file_of(f"{parent}/{file.filename}") for file in saved)
        else:
            yield from map(file_of, _without_records(names))


def _other_splits(folder: str, splits: Sequence[str]) -> list[str]:
    """Return the folders of all splits except `train` or the only split; raises SourceError."""
    if "train" not in splits and len(splits) > 1:
        raise SourceError(
            f"{folder} has the splits {', '.join(splits)} and no train; name one, such as "
            f"{folder}/{splits[0]}"
        )
    chosen = "train" if "train" in splits else splits[0]
    return [f"{folder}/{split}" for split in splits if split != chosen]


def _without_records(names: Mapping[str, str]) -> list[str]:
    """Return the paths of the files of a folder by name; a run's manifest and card are left out."""
    if not names.keys() >= _RUN:
        return list(names.values())
    return [
        path for name, path in names.items() if name not in _RUN and not fnmatchcase(name, _LISTS)
    ]


def _content(path: str, kind: type[T]) -> T:
    """Return a JSON file that `datasets` wrote; raises SourceError."""
    try:
        return msgspec.json.decode(b"".join(read_parts(path)), type=kind)
    except msgspec.MsgspecError as error:
        raise SourceError(f"{path} is not a file of a saved dataset: {error}") from error


def _files(folder: str) -> list[str]:
    """Return the visible files in a folder and below by folder and name; raises SourceError."""
    if is_url(folder):
        with reading(folder):
            store, top = store_of(folder)
            found = [(store.unstrip_protocol(path), path[len(top) :]) for path in store.find(top)]
    else:
        found = []
        for parent, _, files in os.walk(folder):
            place = str(Path(parent, "-"))[:-1]  # made once per folder: there may be many files
            below = parent[len(folder) :]
            found += [(f"{place}{name}", f"{below}/{name}") for name in files]
    shown = [path for path, below in found if "/." not in f"/{below}"]
    return sorted(shown, key=lambda path: path.rpartition("/")[::2])


def in_store(url: str) -> Iterator[FileRange]:
    """Yield the files of a URL, which names a file, folder or glob; raises SourceError."""
    for name, is_folder in _meant(url).items():
        yield from in_folder(name) if is_folder else [file_of(name)]


def store_files(url: str) -> Iterator[str]:
    """Yield the URLs of the files of a URL, of any format; raises SourceError."""
    for name, is_folder in _meant(url).items():
        yield from _files(name) if is_folder else [name]


def _meant(url: str) -> dict[str, bool]:
    """Return the URLs that a URL or glob names, each with whether it is a folder.

    Raises SourceError if there is none.
    """
    with reading(url):
        store, path = store_of(url)
        if not glob.has_magic(path):
            found = {url: path} if store.exists(path) else {}
        else:
            shown = [name for name in sorted(store.glob(path)) if "/." not in name]
            found = {store.unstrip_protocol(name): name for name in shown}
        is_folder = {name: store.isdir(inside) for name, inside in found.items()}
    if not found:
        raise SourceError(f"{url!r}: no such file, folder or bucket")
    return is_folder
