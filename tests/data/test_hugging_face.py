"""What `datasets` saves: folders, splits, and the names of classes beside their numbers."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_files import clean, rows_of

import noisegen
from noisegen.data.features import class_names, features, label_names, with_features, with_list
from noisegen.data.labelled import read_tags
from noisegen.data.pairs import read_pairs
from noisegen.data.rows import Columns
from noisegen.data.sources import expand
from noisegen.errors import SourceError

hub = pytest.importorskip("datasets")
hub.disable_progress_bars()
TAGS = ("O", "B-PER", "I-PER", "B-LOC")
ROWS = {
    "id": ["a", "b", "c"],
    "tokens": [["Ann", "Lee", "sings"], ["in", "Bonn"], ["no"]],
    "ner_tags": [[1, 2, 0], [0, 3], [-100]],
    "label": [1, 0, -1],
}
NER = Columns(tokens="tokens", labels="ner_tags")


def kinds() -> Any:
    tags = hub.List(hub.ClassLabel(names=list(TAGS)))
    words, text = hub.List(hub.Value("string")), hub.Value("string")
    return hub.Features(
        {"id": text, "tokens": words, "ner_tags": tags, "label": hub.ClassLabel(names=["-", "+"])}
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    rows = hub.Dataset.from_dict(ROWS, features=kinds())
    rows.save_to_disk(folder / "one", num_shards=2)
    rows.to_parquet(folder / "one.parquet")
    texts = {
        name: hub.Dataset.from_dict({"text": [f"{name} {n}" for n in range(3)]})
        for name in ("validation", "train", "test")
    }
    hub.DatasetDict(texts).save_to_disk(folder / "splits")
    hub.DatasetDict({"dev": texts["test"]}).save_to_disk(folder / "lone")
    del texts["train"]
    hub.DatasetDict(texts).save_to_disk(folder / "no-train")
    return folder


@pytest.mark.parametrize("name", ["one", "one.parquet"])
def test_classes_stay_numbers_with_their_names(saved: Path, name: str) -> None:
    for shard in (1, 2, 1000):
        table, dropped = rows_of(saved / name, columns=NER, shard=shard)
        assert not dropped
        assert table["id"].to_pylist() == ["a", "b", "c"]
        assert table["clean"].to_pylist() == ["Ann Lee sings", "in Bonn", "no"]
        assert table["ner_tags"].to_pylist() == ROWS["ner_tags"]
        assert table["label"].to_pylist() == ROWS["label"]
        assert class_names(table.schema) == {"ner_tags": TAGS, "label": ("-", "+")}
        assert hub.Features.from_arrow_schema(table.schema)["ner_tags"] == kinds()["ner_tags"]


def test_a_streamed_set_keeps_its_classes(saved: Path) -> None:
    (saved / "streamed").mkdir(exist_ok=True)
    (saved / "streamed" / "train.parquet").write_bytes((saved / "one.parquet").read_bytes())
    table, _ = rows_of(f"hf:{saved / 'streamed'}", columns=NER)
    assert class_names(table.schema) == {"ner_tags": TAGS, "label": ("-", "+")}
    assert table["ner_tags"].to_pylist() == ROWS["ner_tags"]


def test_train_is_read_of_several_splits_and_any_may_be_named(saved: Path) -> None:
    assert clean(saved / "splits") == ["train 0", "train 1", "train 2"]
    skipped = [(Path(item.path).name, item.skipped) for item in expand(saved / "splits")]
    reason = "another split; name it to read it"
    assert skipped == [("validation", reason), ("test", reason), ("data-00000-of-00001.arrow", "")]
    assert clean(saved / "splits" / "test")[0] == "test 0"
    assert clean(saved / "lone") == ["test 0", "test 1", "test 2"]
    with pytest.raises(SourceError, match="has the splits validation, test and no train; name one"):
        expand(saved / "no-train")


def test_only_the_files_of_a_saved_set_are_read(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    hub.Dataset.from_dict({"text": ["a", "b"]}).save_to_disk(folder)
    (folder / "cache-1f2e.arrow").write_bytes(b"what map has left")
    assert clean(folder) == ["a", "b"]
    (folder / "state.json").write_text("[]")
    with pytest.raises(SourceError, match=r"state.json is not a file of a saved dataset: "):
        expand(folder)


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_arrow_files_are_cut_at_any_row(tmp_path: Path, kind: str) -> None:
    path, schema = tmp_path / "a.arrow", pa.schema({"text": pa.string(), "n": pa.int64()})
    new = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with new(path, schema) as sink:
        for first in range(0, 40, 8):
            numbers = range(first, first + 8)
            sink.write(pa.table({"text": [f"t{n}" for n in numbers], "n": numbers}, schema))
    for shard in (1, 7, 8, 100):
        table, _ = rows_of(path, shard=shard, batch_bytes=100)
        assert table["n"].to_pylist() == list(range(40))
        assert table["clean"].to_pylist() == [f"t{n}" for n in range(40)]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(SourceError, match="cannot read "):
        rows_of(path)


def test_files_with_other_names_for_their_classes_do_not_agree(tmp_path: Path) -> None:
    for name, classes in (("a", ["-", "+"]), ("b", ["+", "-"])):
        column = hub.ClassLabel(names=classes)
        kinds = hub.Features({"text": hub.Value("string"), "label": column})
        rows = {"text": ["x"], "label": [0]}
        hub.Dataset.from_dict(rows, features=kinds).to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(SourceError, match="column 'label' has other names of classes"):
        rows_of(tmp_path)


def test_augment_writes_a_set_that_datasets_opens_with_its_classes(
    saved: Path, tmp_path: Path
) -> None:
    noisegen.augment(
        saved / "one",
        tmp_path / "out",
        tokens="tokens",
        labels="ner_tags",
        transforms="spac:add_rate=0.4",
        seed=3,
    )
    rows = hub.load_dataset(str(tmp_path / "out"), split="train", cache_dir=tmp_path / "cache")
    assert rows.features["ner_tags"] == rows.features["noisy_labels"] == kinds()["ner_tags"]
    assert rows.features["label"] == kinds()["label"]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| ner_tags | list<element: int64> of O, B-PER, I-PER, B-LOC, as it came |" in card
    assert rows["ner_tags"][:] == ROWS["ner_tags"]
    assert any(len(row["noisy_tokens"]) > len(row["tokens"]) for row in rows)
    for row in rows:
        assert len(row["noisy_tokens"]) == len(row["noisy_labels"])
        for before, label in zip([0, *row["noisy_labels"]], row["noisy_labels"], strict=False):
            assert label != 2 or before in (1, 2), "I-PER follows B-PER or I-PER"


def test_integer_tags_are_carried_over_and_negative_ones_mark_no_class(tmp_path: Path) -> None:
    lines = [{"id": n, "words": ["Ann", "sings", "well"], "tags": [7, 0, -100]} for n in range(20)]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    noisegen.augment(
        path,
        tmp_path / "out",
        tokens="words",
        labels="tags",
        label_names=[*"abcdefgh"],
        transforms="spac:add_rate=0.3",
    )
    table = pq.read_table(*(tmp_path / "out" / "data").glob("*.parquet"))
    assert table["tags"].type == table["noisy_labels"].type == pa.list_(pa.int64())
    rows = table.to_pylist()
    assert any(len(row["noisy_labels"]) > 3 for row in rows)
    assert {label for row in rows for label in row["noisy_labels"]} == {7, 0, -100}


def test_a_task_reads_the_names_of_classes(saved: Path) -> None:
    rows = read_tags(str(saved / "one"), "en").rows
    assert [row.tags for row in rows] == [("B-PER", "I-PER", "O"), ("O", "B-LOC"), ("-100",)]


def test_a_saved_set_is_pairs(tmp_path: Path) -> None:
    rows = {"noisy": ["teh", "a"], "clean": ["the", "a"]}
    hub.Dataset.from_dict(rows).save_to_disk(tmp_path / "pairs")
    assert read_pairs(tmp_path / "pairs").noisy == ["teh", "a"]


def test_names_of_classes_are_found_in_a_schema() -> None:
    schema = pa.schema({"a": pa.int64(), "b": pa.list_(pa.int64()), "c": pa.string()})
    label = {"names": ["x", "ü"], "_type": "ClassLabel"}
    for of_list in ([label], {"feature": label, "_type": "LargeList"}):
        old = {"info": {"features": {"a": label, "b": of_list, "gone": 1}}, "fingerprint": "f"}
        told = schema.with_metadata({"huggingface": json.dumps(old), "other": "stays"})
        assert features(told) == {"a": label, "b": of_list}
        assert class_names(told) == dict.fromkeys("ab", ("x", "ü"))
        new = with_list(with_features(told, features(told)), "b")
        assert features(new) == {"a": label, "b": {"feature": label, "_type": "Sequence"}}
        assert new.metadata[b"other"] == b"stays"
        assert b"fingerprint" not in new.metadata[b"huggingface"]
    assert not with_features(schema, {}).metadata
    for broken in ("", "[]", '{"info": {"features": null}}', '{"info": {"features": {"a": 1}}}'):
        assert class_names(schema.with_metadata({"huggingface": broken})) == {}
    assert label_names([0, 1, -1, 5, None], ("x", "y")) == ["x", "y", -1, 5, None]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.json", '{"_data_files": "abc"}'),
        ("state.json", '{"_data_files": [{"x": 1}]}'),
        ("state.json", '{"_data_files": [{"filename": "../other.arrow"}]}'),
        ("state.json", '{"_data_files": [{"filename": "/etc/passwd"}]}'),
        ("state.json", "null"),
        ("dataset_dict.json", '{"splits": []}'),
        ("dataset_dict.json", '{"splits": ["test", 3]}'),
        ("dataset_dict.json", '{"splits": [".."]}'),
    ],
)
def test_what_no_dataset_has_saved_is_one_line(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(SourceError, match=rf"{name} is not a file of a saved dataset: ") as caught:
        expand(tmp_path)
    assert "\n" not in str(caught.value)
