"""Tables keep what they are: numbers, mixed JSON, metadata of pandas and `datasets`, and bytes."""

import json

from runs import augment, table


def test_json_of_several_types_is_kept_as_json_text(tmp_path):
    rows = [
        {"text": "see you", "label": [[0, 3, "V"], [4, 7, "PRON"]], "score": 1, "meta": {"a": 1}},
        {"text": "bye", "label": [], "score": "none", "meta": {"a": [2], "b": True}},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = augment(tmp_path / "a.jsonl", tmp_path / "out", transforms=["caps"])
    found = table(tmp_path / "out")
    assert made.totals["dropped"] == {}
    assert [*map(json.loads, found["label"].to_pylist())] == [row["label"] for row in rows]
    assert found["score"].to_pylist() == ["1", "none"]
    assert found["meta"].to_pylist() == [{"a": "1", "b": None}, {"a": "[2]", "b": True}]


def test_numbers_of_64_bits_without_a_sign_stay_exact(tmp_path):
    numbers = [17915699055171962696, 17915699055171962697, 3]
    lines = [{"text": "see you", "id": number, "hashes": [number, 1]} for number in numbers]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    augment(tmp_path / "a.jsonl", tmp_path / "out", transforms=["caps"])
    augment(tmp_path / "a.jsonl", tmp_path / "b.csv", transforms=["caps"])
    found = table(tmp_path / "out")
    assert found["id"].to_pylist() == numbers
    assert found["hashes"].to_pylist() == [[number, 1] for number in numbers]
    written = (tmp_path / "b.csv").read_text()
    assert written.startswith(f'text,id,hashes\nSEE YOU,{numbers[0]},"[{numbers[0]}, 1]"\n')
