"""JSON lines: Arrow and line by line agree, and every line keeps its reason."""

import json
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_files import reasons

from noisegen import json_lines
from noisegen.json_lines import json_schema, json_table

SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text("aé\ud800\0", max_size=3)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pq"), inner),
)
ROW = st.fixed_dictionaries(
    {"text": st.text(max_size=3) | SCALAR}, optional={"m": VALUE, "n": VALUE}
)


@given(st.lists(ROW | VALUE, max_size=6), st.integers(0, 6))
def test_json_line_by_line_agrees_with_arrow(lines: list[object], sampled: int) -> None:
    texts = [json.dumps(line).encode() + b"\n" for line in lines]
    schema = json_schema(b"".join(texts[:sampled]), {"text": pa.string()})
    if "text" not in schema.names:
        return
    for part in texts:
        fast = json_lines._in_order(part, schema)
        slow, codes = json_lines._line_by_line(part, schema, "text")
        if fast is not None:
            assert list(codes) == [0]
            assert same(fast.to_pylist(), slow.to_pylist())
    whole = json_table(b"".join(texts), schema, "text") if texts else None
    single = [json_table(part, schema, "text") for part in texts]
    if whole is not None:
        assert whole.schema == single[0].schema
        assert same(whole.to_pylist(), pa.concat_tables(single).to_pylist())


def same(one: object, other: object) -> bool:
    """Compare with nan equal to nan."""
    return repr(one) == repr(other)


def test_json_types_are_joined_over_the_rows_seen() -> None:
    sample = (
        b'{"text": "a", "n": 1, "l": [], "o": {"b": 1}, "z": null, "d": "2020-01-01"}\nnot json\n'
        b'{"text": "b", "n": 1.5, "l": [1], "o": {"a": "x"}, "e": {}}\n{"\\ud800": 1}\n3\n'
    )
    schema = json_schema(sample, {"text": pa.string()})
    assert schema == pa.schema(
        {
            "text": pa.string(),
            "n": pa.float64(),
            "l": pa.list_(pa.int64()),
            "o": pa.struct({"a": pa.string(), "b": pa.int64()}),
            "z": pa.string(),
            "d": pa.string(),
            "e": pa.string(),
        }
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "a", "n": 1}', ""),
        (b'{"text": "a"}  ', ""),
        (b'{"text": "a", "n": NaN}', "unexpected_field"),
        (b'{"text": "a", "m": 1}', "unexpected_field"),
        (b'{"text": "a", "n": "one"}', "unexpected_field"),
        (b'{"text": "a", "n": 1e3}', "unexpected_field"),
        (b'{"text": 1}', "missing_text"),
        (b'{"text": null}', "missing_text"),
        (b'{"n": 1}', "missing_text"),
        (b"{}", "missing_text"),
        (b"", "bad_json"),
        (b"[1]", "bad_json"),
        (b'"text"', "bad_json"),
        (b'{"text": "a"', "bad_json"),
        (b'{"text": "a"} {"text": "b"}', "bad_json"),
        (b'{"text": "a"}{"text": "b"}', "bad_json"),
        (b"[" * 100_000, "bad_json"),
        (b'{"text": "\xff"}', "not_utf8"),
        (b'{"text": "\\ud800"}', "not_utf8"),
    ],
)
@pytest.mark.parametrize("neighbour", [b"", b'{"text": "b", "n": 2}\n', b"null\n"])
def test_a_json_line_has_its_reason_whatever_stands_beside_it(
    line: bytes, reason: str, neighbour: bytes
) -> None:
    schema = pa.schema({"text": pa.string(), "n": pa.int64()})
    table = json_table(neighbour + line + b"\n", schema, "text")
    assert reasons(table)[-1] == reason
    assert table["text"].to_pylist()[-1] == ("a" if reason in ("", "unexpected_field") else None)


def test_nan_in_json_is_kept() -> None:
    schema = pa.schema({"text": pa.string(), "x": pa.float64()})
    lines = b'{"text": "a", "x": NaN}\n', b'{"text": "a", "x": NaN} \n'
    for line in lines:
        assert math.isnan(json_table(line, schema, "text")["x"][0].as_py())


def test_an_overlong_json_line_is_dropped_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "LINE_MAX", 30)
    data = b'{"text": "a"}\n{"text": "' + b"b" * 30 + b'"}\n{"text": "c"}\n'
    table = json_table(data, pa.schema({"text": pa.string()}), "text")
    assert table["text"].to_pylist() == ["a", None, "c"]
    assert reasons(table) == ["", "row_too_long", ""]


def test_integers_too_large_for_a_column_become_floats() -> None:
    sample = b'{"n": %d, "huge": %d}' % (2**64, 10**400)
    schema = json_schema(sample, {})
    assert schema == pa.schema({"n": pa.float64(), "huge": pa.string()})
