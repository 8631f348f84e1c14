"""Names of classes in the metadata that Hugging Face's `datasets` keeps in an Arrow schema."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

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


def label_names(numbers: Sequence[int | None], names: Sequence[str]) -> list[Any]:
    """Replace class numbers by class names; a number without a name, such as -1, stays."""
    named = dict(enumerate(names))
    return [named.get(number, number) for number in numbers]  # type: ignore[arg-type]
