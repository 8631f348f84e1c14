"""Metadata in an Arrow schema: features written by `datasets`, and the index of pandas."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

_KEY = b"huggingface"  # metadata key that `datasets` writes into Arrow and Parquet files
_PANDAS = b"pandas"  # metadata key that pandas writes into them
_RANGE = ("start", "stop", "step")  # keys of an index of numbers in the metadata of pandas

Names = tuple[str, ...]


def features(schema: pa.Schema) -> dict[str, Any]:
    """Return {column: feature} as `datasets` has written it: {"dtype": "string", "_type": "Value"}.

    Columns without a feature are left out, and all columns if the metadata are damaged.
    """
    try:
        info = json.loads((schema.metadata or {})[_KEY])["info"]
        return {name: info["features"][name] for name in schema.names if name in info["features"]}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}


def with_features(schema: pa.Schema, new: Mapping[str, Any]) -> pa.Schema:
    """Return the schema with `new`, {column: feature}, in place of all that `datasets` has written.

    Its fingerprint is left out: `datasets` takes data with an equal fingerprint to be equal.
    """
    metadata = dict(schema.metadata or {})
    metadata.pop(_KEY, None)
    if new:
        metadata[_KEY] = json.dumps({"info": {"features": new}}, ensure_ascii=False).encode()
    return schema.with_metadata(metadata or None)


def with_list(schema: pa.Schema, name: str) -> pa.Schema:
    """Return the schema with the feature of a column as a list of any length.

    This is the feature of a list whose length or Arrow type changes.
    """
    found = features(schema)
    if (item := _item(found.get(name))) is None:
        return schema
    # Every version of `datasets` reads a Sequence as a list
    return with_features(schema, found | {name: {"feature": item, "_type": "Sequence"}})


def class_names(schema: pa.Schema) -> dict[str, Names]:
    """Return {column: class names} for columns of class labels, or of lists of class labels."""
    found = {name: _names(spec) for name, spec in features(schema).items()}
    return {name: names for name, names in found.items() if names}


def _names(spec: Any) -> Names:
    """Return the class names in `spec`, the metadata of a column; () if it has none."""
    while isinstance(inner := _item(spec), dict | list):
        spec = inner
    is_label = isinstance(spec, dict) and spec.get("_type") == "ClassLabel"
    return tuple(map(str, spec.get("names") or ())) if is_label else ()


def _item(spec: Any) -> Any:
    """Return the feature of the items of a list; None if `spec` is not the feature of a list."""
    if isinstance(spec, list) and len(spec) == 1:  # how old versions of `datasets` describe a list
        return spec[0]
    return spec.get("feature") if isinstance(spec, dict) else None


def fit_pandas(schema: pa.Schema, rows: int) -> pa.Schema:
    """Return the schema with metadata of pandas that fit a table of `rows` rows.

    An index of numbers that is not stored as a column begins at 0 if its length was another. If
    columns were added, whose names are strings, the names of all columns are strings.
    """
    try:
        told = json.loads((schema.metadata or {})[_PANDAS])
        for index in told["index_columns"]:
            if isinstance(index, dict) and len(range(*(index[key] for key in _RANGE))) != rows:
                index.update(zip(_RANGE, (0, rows, 1), strict=True))
        are_strings = [index["pandas_type"] for index in told["column_indexes"]] == ["unicode"]
        if not are_strings and {*schema.names} - {each["field_name"] for each in told["columns"]}:
            told["column_indexes"] = []
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return schema
    return schema.with_metadata(schema.metadata | {_PANDAS: json.dumps(told).encode()})


def with_label_names(schema: pa.Schema, name: str, names: Names) -> pa.Schema:
    """Return the schema with `names` as the classes of the numbers in the lists of a column."""
    label = {"names": names, "_type": "ClassLabel"}
    return with_features(schema, features(schema) | {name: {"feature": label, "_type": "Sequence"}})


def label_names(numbers: Sequence[int | None], names: Sequence[str]) -> list[Any]:
    """Replace class numbers by class names; a number without a name, such as -1, stays."""
    named = dict(enumerate(names))
    return [named.get(number, number) for number in numbers]  # type: ignore[arg-type]
