"""Files in a local folder or in a store, and data sets that `datasets` saved there."""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain, groupby
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from noisegen.data.files import is_url, reading, store_of
from noisegen.data.formats.registry import file_of
from noisegen.data.formats.slot_files import SPLIT_FILES, is_split, slot_file
from noisegen.data.lines import read_parts
from noisegen.data.rows import FileRange
from noisegen.errors import SourceError

T = TypeVar("T")

# A file name without folders, since a data set must not name files outside its own folder
Name = Annotated[str, msgspec.Meta(pattern=r"^(?!\.\.?$)[^/\\\x00]+$")]


class _Splits(msgspec.Struct):
    """Content of `dataset_dict.json`, which `datasets` writes for a DatasetDict."""

    splits: Annotated[list[Name], msgspec.Meta(min_length=1)]


class _File(msgspec.Struct):
    filename: Name


class _State(msgspec.Struct):
    """Content of `state.json`, which `datasets` writes for a Dataset."""

    files: list[_File] = msgspec.field(name="_data_files")


_RUN = {"manifest.json", "README.md"}  # files that mark the output folder of a command; no data
_LISTS = "manifest.*.jsonl"  # files with the long lists of a manifest
_NULL = "__HIVE_DEFAULT_PARTITION__"  # value of a null in the name of a folder
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)  # value of a key that is read as an integer
_SPLITS, _STATE = "dataset_dict.json", "state.json"


def in_folder(folder: str) -> Iterator[FileRange]:
    """Yield the files in a folder or URL and its subfolders.

    Folders named KEY=VALUE, as Spark and pyarrow write them, give `keys` to the files in them.
    Hidden files, and the manifest and README.md that a command wrote, are left out. If the package
    `datasets` saved the folder, only the Arrow files of the split `train`, or of the only split,
    are yielded to be read; each other split is yielded as a skipped file, to be reported. Raises
    SourceError for several splits without `train`.
    """
    return iter(_with_keys(folder, list(_in_folder(folder))))


def _with_keys(folder: str, files: list[FileRange]) -> list[FileRange]:
    """Return the files with the keys in their paths below `folder`, as in lang=en/a.parquet.

    Every file gets the keys of all files, with null for a key that its path lacks, or whose value
    is Hive's word for null. The values of a key are integers if all of them are, else strings.
    """
    found: list[dict[str, str | None]] = []
    for file in files:
        pairs = (part.partition("=") for part in file.path.removeprefix(folder).split("/")[:-1])
        keys = {unquote(name): unquote(value) for name, is_key, value in pairs if name and is_key}
        found.append({name: None if keys[name] == _NULL else keys[name] for name in keys})
    kinds = {
        name: _kind_of(filter(None, (keys.get(name) for keys in found)))
        for name in dict.fromkeys(chain.from_iterable(found))
    }
    if not kinds:
        return files
    return [
        replace(file, keys=tuple((name, _scalar(keys.get(name), kinds[name])) for name in kinds))
        for file, keys in zip(files, found, strict=True)
    ]


def _kind_of(values: Iterable[str]) -> pa.DataType:
    """Return the type of a key's values, integers or strings; strings without values."""
    found = [bool(_INTEGER.fullmatch(value)) for value in values]
    return pa.int64() if found and all(found) else pa.string()


def _scalar(value: str | None, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(int(value) if value and kind == pa.int64() else value, kind)


def _in_folder(folder: str) -> Iterator[FileRange]:
    """Yield the files as `in_folder` does, without the keys in their paths."""
    unread: tuple[str, ...] = ()  # folders of splits that are skipped
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
        elif SPLIT_FILES[0] in names and is_split(parent):
            yield slot_file(names[SPLIT_FILES[0]])
            yield from (file_of(path) for name, path in names.items() if name not in SPLIT_FILES)
        else:
            yield from map(file_of, _without_records(names))


def _other_splits(folder: str, splits: Sequence[str]) -> list[str]:
    """Return the folders of the splits that are not read; `train` or the only split is read.

    Raises SourceError for several splits without `train`.
    """
    if "train" not in splits and len(splits) > 1:
        raise SourceError(
            f"{folder} has the splits {', '.join(splits)} and no train; name one, such as "
            f"{folder}/{splits[0]}"
        )
    chosen = "train" if "train" in splits else splits[0]
    return [f"{folder}/{split}" for split in splits if split != chosen]


def _without_records(names: Mapping[str, str]) -> list[str]:
    """Return the paths of the files in a folder, without a manifest and README.md of a command.

    `names` maps the name of each file in the folder to its path.
    """
    if not names.keys() >= _RUN:
        return list(names.values())
    return [
        path for name, path in names.items() if name not in _RUN and not fnmatchcase(name, _LISTS)
    ]


def _content(path: str, kind: type[T]) -> T:
    """Return a JSON file that `datasets` wrote as an object of class `kind`; raises SourceError."""
    try:
        return msgspec.json.decode(b"".join(read_parts(path)), type=kind)
    except msgspec.MsgspecError as error:
        raise SourceError(f"{path} is not a file of a saved dataset: {error}") from error


def _files(folder: str) -> list[str]:
    """Return the paths of visible files in a folder or URL and its subfolders.

    They are sorted by folder, then by name. Raises SourceError.
    """
    if is_url(folder):
        with reading(folder):
            store, top = store_of(folder)
            found = [(store.unstrip_protocol(path), path[len(top) :]) for path in store.find(top)]
    else:
        found = []
        for parent, _, files in os.walk(folder):
            # Path of the folder with a final slash, made once per folder for speed
            place = str(Path(parent, "-"))[:-1]
            below = parent[len(folder) :]
            found += [(f"{place}{name}", f"{below}/{name}") for name in files]
    shown = [path for path, below in found if "/." not in f"/{below}"]
    return sorted(shown, key=lambda path: path.rpartition("/")[::2])


def in_store(url: str) -> Iterator[FileRange]:
    """Yield the files at a URL, which may name a file, a folder or a glob; raises SourceError."""
    for name, is_folder in _matches(url).items():
        yield from in_folder(name) if is_folder else [file_of(name)]


def store_files(url: str) -> Iterator[str]:
    """Yield the URLs of all files at a URL of a file, folder or glob; raises SourceError."""
    for name, is_folder in _matches(url).items():
        yield from _files(name) if is_folder else [name]


def _matches(url: str) -> dict[str, bool]:
    """Return {URL: whether it is a folder} for the URL, or for each match if it is a glob.

    Raises SourceError if nothing matches.
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
