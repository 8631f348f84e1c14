"""Names of classes: in metadata of Hugging Face's `datasets` in an Arrow schema, or as given."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from noisegen.data.lines import read_parts
from noisegen.data.tables import undamaged_lines
from noisegen.errors import UsageError

_KEY = b"huggingface"  # metadata key that `datasets` writes into Arrow and Parquet files

Names = tuple[str, ...]


def class_names(schema: pa.Schema) -> dict[str, Names]:
    """Return {column: class names} for columns of class labels, or of lists of class labels."""
    try:
        info = json.loads((schema.metadata or {})[_KEY])["info"]
        found = {name: _names(spec) for name, spec in info["features"].items()}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}
    return {name: names for name, names in found.items() if names and name in schema.names}


def _names(spec: Any) -> Names:
    """Return the class names in `spec`, the metadata of a column; () if it has none."""
    while isinstance(spec, dict) and isinstance(spec.get("feature"), dict):
        spec = spec["feature"]
    if isinstance(spec, list) and len(spec) == 1:  # how old versions of `datasets` describe a list
        return _names(spec[0])
    is_label = isinstance(spec, dict) and spec.get("_type") == "ClassLabel"
    return tuple(map(str, spec["names"])) if is_label else ()


def with_class_names(schema: pa.Schema, names: Mapping[str, Names]) -> pa.Schema:
    """Return the schema with `names`, {column: class names}, in place of all its metadata."""
    features = {}
    for column, classes in names.items():
        label = {"names": classes, "_type": "ClassLabel"}
        is_list = pa.types.is_nested(schema.field(column).type)
        features[column] = {"feature": label, "_type": "List"} if is_list else label
    info = json.dumps({"info": {"features": features}}, ensure_ascii=False)
    return schema.with_metadata({_KEY: info} if features else None)


def given_names(given: Sequence[str]) -> Names:
    """Return the class names that the user gave: a list, or one text.

    The text has names with commas between them, or is the path of a file with a name per line.
    Raises UsageError for an empty or repeated name, and SourceError for a file that cannot be read.
    """
    found: Sequence[str | None] = given
    if len(given) == 1:
        text = given[0]
        is_path = "," not in text
        found = [*undamaged_lines(read_parts(text), text)] if is_path else text.split(",")
    names = tuple((name or "").strip() for name in found)
    for number, name in enumerate(names):
        if not name or name in names[:number]:
            problem = f"{name!r} is repeated" if name else "is empty"
            raise UsageError(f"--label-names: name {number} {problem}; numbers begin at 0")
    return names


def label_names(numbers: Sequence[int | None], names: Sequence[str]) -> list[Any]:
    """Replace class numbers by class names; a number without a name, such as -1, stays."""
    named = dict(enumerate(names))
    return [named.get(number, number) for number in numbers]  # type: ignore[arg-type]
