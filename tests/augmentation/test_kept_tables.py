"""Tables keep what they are: numbers, mixed JSON, metadata of pandas and `datasets`, and bytes."""

import bz2
import gzip
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import augment, table
from source_files import on_stdin

CAPS = {"transforms": ["caps"]}
ROWS = 6
LABEL = {"names": ["O", "B-PER", "I-PER"], "_type": "ClassLabel"}


def test_json_of_several_types_is_kept_as_json_text(tmp_path):
    rows = [
        {"text": "see you", "label": [[0, 3, "V"], [4, 7, "PRON"]], "score": 1, "meta": {"a": 1}},
        {"text": "bye", "label": [], "score": "none", "meta": {"a": [2], "b": True}},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = augment(tmp_path / "a.jsonl", tmp_path / "out", **CAPS)
    found = table(tmp_path / "out")
    assert made.totals["dropped"] == {}
    assert [*map(json.loads, found["label"].to_pylist())] == [row["label"] for row in rows]
    assert found["score"].to_pylist() == ["1", "none"]
    assert found["meta"].to_pylist() == [{"a": "1", "b": None}, {"a": "[2]", "b": True}]


def test_numbers_of_64_bits_without_a_sign_stay_exact(tmp_path):
    numbers = [17915699055171962696, 17915699055171962697, 3]
    lines = [{"text": "see you", "id": number, "hashes": [number, 1]} for number in numbers]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    augment(tmp_path / "a.jsonl", tmp_path / "out", **CAPS)
    augment(tmp_path / "a.jsonl", tmp_path / "b.csv", **CAPS)
    found = table(tmp_path / "out")
    assert found["id"].to_pylist() == numbers
    assert found["hashes"].to_pylist() == [[number, 1] for number in numbers]
    written = (tmp_path / "b.csv").read_text()
    assert written.startswith(f'text,id,hashes\nSEE YOU,{numbers[0]},"[{numbers[0]}, 1]"\n')


@pytest.fixture
def framed(tmp_path):
    """Write a frame of pandas as Parquet, noise it, and return it beside the noisy frame."""
    pandas = pytest.importorskip("pandas")

    def both(change, **options):
        columns = {
            "text": [f"see {number}" for number in range(ROWS)],
            "n": [4, 2, 9, 1, 7, 3],
            "kind": pandas.Categorical(["b", "a"] * 3, categories=["z", "b", "a"], ordered=True),
            "day": pandas.date_range("2020-01-01", periods=ROWS, tz="Europe/Berlin"),
            "month": pandas.period_range("2020-01", periods=ROWS, freq="M"),
            "whole": pandas.array([1, None] * 3, "Int16"),
        }
        frame = change(pandas.DataFrame(columns))
        frame.attrs = {"source": "tests"}
        frame.to_parquet(tmp_path / "in.parquet")
        out = tmp_path / "out.parquet"
        augment(tmp_path / "in.parquet", out, **{**CAPS, **options})
        return frame, pandas.read_parquet(out)

    return both


@pytest.mark.parametrize("rows", [2, 100])
@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame,
        lambda frame: frame[2:5],
        lambda frame: frame.set_index("n"),
        lambda frame: frame.set_index(["kind", "day"]),
        lambda frame: frame.rename_axis(columns="names"),
        lambda frame: frame.set_axis([f"r{number}" for number in range(ROWS)]),
        lambda frame: frame.set_index("n").rename_axis(index="key")[::2],
        lambda frame: frame.assign(key=frame["kind"]),
    ],
)
def test_a_frame_of_pandas_stays_the_same_but_for_the_text(framed, change, rows):
    before, after = framed(change, rows_per_shard=rows)
    assert after.attrs == before.attrs
    assert after["text"].tolist() == before["text"].str.upper().tolist()
    assert after.assign(text=before["text"]).equals(before)
    assert (after.dtypes == before.dtypes).all()
    assert after.index.equals(before.index)
    assert (after.index.names, after.columns.names) == (before.index.names, before.columns.names)


def test_an_index_of_numbers_has_the_length_of_the_output(framed):
    def change(frame):
        return frame[1:4].rename_axis("row")

    _, after = framed(change, copies=2)
    assert (after.index.name, after.index.tolist()) == ("row", list(range(6)))
    assert after["copy"].tolist() == [0, 1] * 3
    _, after = framed(change, limit=2, force=True)
    assert (after.index.name, after.index.tolist()) == ("row", [0, 1])
    _, after = framed(lambda frame: frame.set_index("n"), copies=2, force=True)
    assert after.index.tolist() == [4, 4, 2, 2, 9, 9, 1, 1, 7, 7, 3, 3]


def test_a_column_may_be_added_to_columns_that_are_named_by_numbers(framed):
    _, after = framed(lambda frame: frame.set_axis(range(6), axis=1), copies=2, text_column="0")
    assert after.columns.tolist() == ["0", "1", "2", "3", "4", "5", "copy"]


def test_types_and_metadata_of_a_parquet_file_stay(tmp_path):
    fields = [
        pa.field("key", pa.dictionary(pa.int8(), pa.string())),
        pa.field("text", pa.large_string(), metadata={"note": "of text"}),
        pa.field("price", pa.decimal128(10, 2), metadata={"note": "of price"}),
        pa.field("days", pa.list_(pa.date32(), 1)),
        pa.field("when", pa.timestamp("ms", "UTC")),
    ]
    schema = pa.schema(fields, {"geo": "{}"})
    rows = [{"key": "a", "text": "see you", "price": None, "days": [0], "when": 0}] * 2
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "a.parquet")
    augment(tmp_path / "a.parquet", tmp_path / "b.parquet", **CAPS)
    before, after = (pq.read_schema(tmp_path / f"{name}.parquet") for name in "ab")
    assert after.equals(before, check_metadata=True)


def test_ids_of_categories_stay_categories_in_one_file(tmp_path):
    ids = pa.array(["a", "b"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    source = pa.table({"id": ids, "text": ["see you", "it"]})
    pq.write_table(source, tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["c"], "text": ["so"]}), tmp_path / "b.parquet")
    sources = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    augment(sources, tmp_path / "c.parquet", transforms=["fing:rate=0"])
    assert pq.read_table(tmp_path / "c.parquet")["id"].to_pylist() == ["a", "b", "c"]
    assert pa.types.is_dictionary(pq.read_schema(tmp_path / "c.parquet").field("id").type)
    augment(sources[0], tmp_path / "d.parquet", transforms=["fing:rate=0"])
    assert pq.read_table(tmp_path / "d.parquet").equals(source)
    augment(sources, tmp_path / "out")
    assert table(tmp_path / "out")["id"].to_pylist() == ["a", "b", "c"]


def test_files_with_other_types_of_text_and_ids_are_read_as_one(tmp_path):
    for number, kind in enumerate([pa.string(), pa.large_string(), pa.string_view()]):
        rows = {"text": pa.array(["see"], kind), "id": pa.array([str(number)], kind)}
        pq.write_table(pa.table(rows), tmp_path / f"{number}.parquet")
    for out in (tmp_path / "out.parquet", tmp_path / "out"):
        augment(sorted(tmp_path.glob("?.parquet")), out, **CAPS)
    assert pq.read_table(tmp_path / "out.parquet")["id"].to_pylist() == ["0", "1", "2"]
    assert table(tmp_path / "out")["id"].to_pylist() == ["0", "1", "2"]


def features_in(path):
    metadata = pq.read_schema(path).metadata[b"huggingface"]
    return json.loads(metadata)["info"]["features"]


@pytest.mark.parametrize("kind", ["Sequence", "List", "LargeList"])
def test_features_of_datasets_stay_as_they_were_written(tmp_path, kind):
    is_large = kind == "LargeList"
    tags = (pa.large_list if is_large else pa.list_)(pa.int64())
    fields = {"text": pa.string(), "words": pa.list_(pa.string()), "tags": tags, "n": pa.int32()}
    features = {
        "text": {"dtype": "string", "_type": "Value"},
        "words": {"feature": {"dtype": "string", "_type": "Value"}, "_type": kind},
        "tags": {"feature": LABEL, "_type": kind},
        "n": {"dtype": "int32", "_type": "Value"},
    }
    told = {"info": {"features": features}, "fingerprint": "of these rows"}
    schema = pa.schema(fields, {"huggingface": json.dumps(told)})
    rows = [{"text": "see", "words": ["Ann", "sees"], "tags": [1, 0], "n": 1}]
    source = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), source)
    tagged = {"tokens": "words", "labels": "tags"}

    augment(source, tmp_path / "b.parquet", copies=2, **CAPS)
    assert features_in(tmp_path / "b.parquet") == features
    assert b"fingerprint" not in pq.read_schema(tmp_path / "b.parquet").metadata[b"huggingface"]
    augment(source, tmp_path / "tagged.parquet", **tagged, **CAPS)
    assert features_in(tmp_path / "tagged.parquet") == features
    augment(source, tmp_path / "out", **tagged, **CAPS)
    new = features | {"tags": {"feature": LABEL, "_type": "Sequence"}} if is_large else features
    shard = tmp_path / "out" / "data" / "part-00000.parquet"
    labels = {"feature": LABEL, "_type": "Sequence"}
    assert features_in(shard) == new | {"noisy_labels": labels}


def test_labels_in_lists_of_one_length_follow_their_tokens(tmp_path):
    rows = {"words": [["Ann", "sees", "it"]] * 9, "tags": pa.array([[1, 0, 0]] * 9)}
    rows["tags"] = rows["tags"].cast(pa.list_(pa.int64(), 3))
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    split = {"transforms": ["spac:add_rate=0.5"], "tokens": "words", "labels": "tags"}
    split["label_names"] = ["O", "B-PER", "I-PER"]
    augment(tmp_path / "a.parquet", tmp_path / "b.parquet", **split)
    made = pq.read_table(tmp_path / "b.parquet").to_pylist()
    assert {len(row["words"]) - len(row["tags"]) for row in made} == {0}
    assert any(len(row["words"]) > 3 for row in made)


BOM = b"\xef\xbb\xbf"
NOTHING = {"transforms": ["leet:rate=0"]}
END = st.sampled_from([b"\n", b"\r\n"])
CELL = st.text("aé\"', \r{0:", max_size=5).map(str.encode)
WORD = st.text("aé#B-", min_size=1, max_size=3).map(str.encode)


def quoted(cell):
    return b'"' + cell.replace(b'"', b'""') + b'"'


# Per format: the first line, and a strategy for the bytes of a row without its line end
FORMATS = {
    "txt": (b"", CELL),
    "tsv": (b"text\tn", st.tuples(CELL, CELL).map(b"\t".join) | CELL),
    "csv": (
        b'"text",n,"a""b"',
        st.tuples(*[CELL | st.builds(quoted, CELL | st.just(b"a\r\nb\n"))] * 3).map(b",".join),
    ),
    "jsonl": (
        b'{"text": "a", "n": 1}',
        st.sampled_from([b'{ "n":1.0,"text" :"\\u0061"}', b"{}", b"", b'{"text":"a","n":[2]} ']),
    ),
    "conll": (
        b"a B-PER\nb O\n",
        st.lists(st.tuples(WORD, WORD).map(b" ".join), min_size=1).map(b"\n".join)
        | st.sampled_from([b"", b" ", b"# only a comment\n", b"a\tB-PER\nb  O"]),
    ),
}


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from(sorted(FORMATS)), END, st.sampled_from([b"", BOM]))
def test_a_file_that_noise_does_not_touch_has_the_same_bytes(data, kind, end, mark):
    first, row = FORMATS[kind]
    lines = [*[first] * bool(first), *data.draw(st.lists(row, min_size=1, max_size=5))]
    between = end + end if kind == "conll" else end
    content = mark + between.join(line.replace(b"\n", end) for line in lines)
    content += data.draw(st.sampled_from([b"", end, end + end]))
    if kind == "txt" and content.strip(b"\r\n") == mark:
        content += b"a"
    packed = gzip.compress(content) if data.draw(st.booleans()) else content
    ending = f"{kind}.gz" if packed != content else kind
    size = data.draw(st.sampled_from([1, 2, 1000]))
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / f"a.{ending}", Path(folder) / f"b.{ending}"
        source.write_bytes(packed)
        if b"\n" not in content and b"\r" in content.rstrip(b"\r"):
            return  # lines that end in CR alone are refused
        named = {"tokens": "tokens", "labels": "labels"} if kind == "conll" else {}
        augment(source, out, rows_per_shard=size, **named, **NOTHING)
        written = out.read_bytes()
        assert (gzip.decompress(written) if packed != content else written) == content


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", BOM + b"see\r\nyou", BOM + b"SEE\r\nYOU\r\nSEE\r\nYOU"),
        ("a.csv", BOM + b'"text"\nsee', BOM + b'"text"\nSEE\nSEE'),
        ("a.csv.bz2", b'"text"\nsee', b'"text"\nSEE\nSEE'),
        ("a.jsonl", b'{"text":"see"}', b'{"text":"SEE"}\n{"text":"SEE"}'),
        ("a.conll", b"see O\nyou O\n", b"SEE O\nYOU O\n\nSEE O\nYOU O\n"),
        ("a.norm", b"see\tsee\nu\tyou", b"SEE\tsee\nU\tyou\n\nSEE\tsee\nU\tyou"),
    ],
)
def test_files_without_a_last_line_end_are_joined_by_one(tmp_path, name, content, expected, size):
    source, out = tmp_path / name, tmp_path / f"out.{name[2:]}"
    is_packed = name.endswith("bz2")
    source.write_bytes(bz2.compress(content) if is_packed else content)
    augment([source, source], out, rows_per_shard=size, **CAPS)
    written = out.read_bytes()
    assert (bz2.decompress(written) if is_packed else written) == expected


def test_a_header_line_keeps_its_quotes_when_a_column_is_added(tmp_path):
    (tmp_path / "a.csv").write_bytes(BOM + b'"text","n,m"\r\nsee,1')
    augment(tmp_path / "a.csv", tmp_path / "b.csv", copies=2, **CAPS)
    lines = [b'"text","n,m",copy', b"SEE,1,0", b"SEE,1,1"]
    assert (tmp_path / "b.csv").read_bytes() == BOM + b"\r\n".join(lines)


def test_standard_input_keeps_its_mark_and_its_header(tmp_path, monkeypatch):
    data = BOM + b'text,"n"\r\nsee,1'
    on_stdin(monkeypatch, data)
    augment("-", tmp_path / "b.csv", **NOTHING)
    assert (tmp_path / "b.csv").read_bytes() == data


def test_large_lists_keep_their_type_in_one_file(tmp_path):
    span = pa.struct({"start": pa.int64(), "end": pa.int64()})
    kinds = {"text": pa.large_string(), "s": pa.large_list(span), "k": pa.large_list(pa.string())}
    row = {"text": "I do not know", "s": [{"start": 9, "end": 13}], "k": ["I do not", "we do not"]}
    pq.write_table(pa.Table.from_pylist([row], pa.schema(kinds)), tmp_path / "a.parquet")
    noise = {"transforms": ["cont"], "text_column": ["text", "k[]"], "spans": ["s=text"]}
    augment(tmp_path / "a.parquet", tmp_path / "b.parquet", **noise)
    found = pq.read_table(tmp_path / "b.parquet")
    assert {field.name: field.type for field in found.schema} == kinds
    assert found["s"].to_pylist() == [[{"start": 8, "end": 12}]]
    assert found["k"].to_pylist() == [["I don't", "we don't"]]
