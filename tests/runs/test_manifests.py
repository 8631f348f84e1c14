"""Manifests: the keys of each kind on disk, and which folders are taken for a run."""

import json

import pytest

from noisegen.errors import OutputError
from noisegen.runs.manifest import KEYS, MINED, Manifest

TOTALS = {
    "augment": {"rows": 2, "changed": 1, "cer": 0.1, "wer": 0.5, "rows_in": 2, "dropped": {}},
    "prepare": {"rows_in": 2, "sentences": 3, "kept": 1, "dropped": {"too_short": 2},
                "damaged": {}},
    "wiki": {"pairs": 1, "read": {}, "dropped": {}, "damaged": 0},
}  # fmt: skip
SUMMARIES = {
    "augment": "2 rows; 50.0% changed, CER 10.00%, WER 50.00%",
    "prepare": "1 of 3 sentences kept; 2 rows read; language not checked; dropped: too_short 2",
    "wiki": "1 pair in 0 shards; dictionary: 1 wrong form of 1 word",
}


def made(kind):
    dictionary = {"words": 1, "entries": 1, "dropped": {}}
    return Manifest(
        kind=kind, version="1", command="", options={}, sources=[], shards=[], packages={},
        totals=TOTALS.get(kind, TOTALS["wiki"]), dictionary=dictionary,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_a_manifest_is_read_as_it_was_written(tmp_path, kind):
    (tmp_path / "manifest.json").write_text(made(kind).to_json())

    assert list(json.loads((tmp_path / "manifest.json").read_text())) == list(KEYS[kind])
    again = Manifest.load(tmp_path, kind)
    assert (again.kind, again.totals) == (kind, made(kind).totals)
    assert again.to_json() == made(kind).to_json()


@pytest.mark.parametrize("kind", SUMMARIES)
def test_a_summary_is_one_line(kind):
    assert made(kind).summary() == SUMMARIES[kind]


@pytest.mark.parametrize(
    ("content", "wanted", "run"),
    [
        (made("wiki").to_json(), ("augment",), "an augment run: it has other keys"),
        (made("augment").to_json(), MINED, "a mining run: it has other keys"),
        (made("augment").to_json(), ("prepare",), "a prepare run: it has other keys"),
        ("{}", (), "a run: it has other keys"),
        ("[]", (), "a run: 'list' object"),
        ("{", (), "a run: Expecting property name"),
        (made("augment").to_json().replace('"seed": 0', '"seed": "0"'), (), "Expected `int`"),
    ],
)
def test_another_file_is_no_manifest(tmp_path, content, wanted, run):
    (tmp_path / "manifest.json").write_text(content)

    with pytest.raises(OutputError, match=rf"manifest.json is not the manifest of .*{run}"):
        Manifest.load(tmp_path, *wanted)
