"""Manifests: the keys of each kind on disk, and which folders are taken for a run."""

import json
import shutil
from dataclasses import replace

import pytest

from noisegen.errors import OutputError
from noisegen.runs import manifest as manifests
from noisegen.runs.manifest import KEYS, MINED, Manifest

TOTALS = {
    "augment": {"rows": 2, "changed": 1, "cer": 0.1, "wer": 0.5, "rows_in": 2, "dropped": {}},
    "prepare": {
        "rows_in": 2,
        "sentences": 3,
        "kept": 1,
        "dropped": {"too_short": 2},
        "damaged": {},
    },
    "wiki": {"pairs": 1, "read": {}, "dropped": {}, "damaged": 0},
}
SUMMARIES = {
    "augment": "2 rows in 1 shard; 50.0% changed, CER 10.00%, WER 50.00%",
    "prepare": "1 of 3 sentences kept; 2 rows read; language not checked; dropped: too_short 2",
    "wiki": "1 pair in 1 shard; dictionary: 1 wrong form of 1 word",
}


def made(kind):
    dictionary = {"words": 1, "entries": 1, "dropped": {}}
    return Manifest(
        kind=kind,
        version="1",
        command="",
        options={},
        sources=[],
        packages={},
        shards=[{"file": "data/part-00000.parquet", "rows": 1 + (kind == "augment"), "sha256": ""}],
        totals=TOTALS.get(kind, TOTALS["wiki"]),
        dictionary=dictionary,
    )


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
        (
            made("augment").to_json().replace('"rows": 2', '"rows": 22', 1),
            (),
            "its shards have 22 rows, its totals 2",
        ),
        (
            made("prepare").to_json().replace('"sentences": 3', '"sentences": 2'),
            ("prepare",),
            "a prepare run: it has 2 sentences, 3 of them kept or dropped",
        ),
    ],
)
def test_another_file_is_no_manifest(tmp_path, content, wanted, run):
    (tmp_path / "manifest.json").write_text(content)

    with pytest.raises(OutputError, match=rf"manifest.json is not the manifest of .*{run}"):
        Manifest.load(tmp_path, *wanted)


@pytest.mark.parametrize("kind", SUMMARIES)
def test_what_a_manifest_counts_is_whole(tmp_path, kind):
    whole = json.loads(made(kind).to_json())
    within = [whole["totals"], whole["shards"][0], whole.get("dictionary", {})]
    for counts in within:
        for name in counts.keys() - {"read"} - ({"rows_in"} if kind == "augment" else set()):
            held = counts.pop(name)
            (tmp_path / "manifest.json").write_text(json.dumps(whole))
            with pytest.raises(OutputError, match=f"missing required field `{name}`"):
                Manifest.load(tmp_path)
            counts[name] = held


@pytest.fixture
def long(monkeypatch):
    """A manifest with more shards than its file lists."""
    monkeypatch.setattr(manifests, "LISTED", 3)
    shards = [
        {"file": f"data/part-{n:05d}.parquet", "rows": n, "sha256": "", "é": None} for n in range(4)
    ]
    return replace(
        made("augment"),
        dictionary={},
        shards=shards,
        sources=[{"path": "a.txt", "bytes": 1}],
        totals=TOTALS["augment"] | {"rows": 6},
    )


def test_long_lists_are_files_beside_the_manifest(tmp_path, long):
    long.save(tmp_path)

    content = json.loads((tmp_path / "manifest.json").read_text())
    assert content["sources"] == long.sources
    assert content["shards"].keys() == {"file", "count", "sha256"}
    lines = (tmp_path / content["shards"]["file"]).read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == long.shards
    assert Manifest.load(tmp_path) == long


def test_a_list_is_replaced_with_its_manifest_and_never_before(tmp_path, long, monkeypatch):
    long.save(tmp_path)
    longer = replace(
        long, shards=[*long.shards, long.shards[0] | {"rows": 4}], totals=long.totals | {"rows": 10}
    )

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(manifests, "write_text", killed)
        with pytest.raises(KeyboardInterrupt):
            longer.save(tmp_path)
    assert Manifest.load(tmp_path) == long  # what was there, whole

    longer.save(tmp_path)
    assert Manifest.load(tmp_path) == longer
    assert len(list(tmp_path.glob("manifest.*.jsonl"))) == 1
    made("augment").save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda path: path.unlink(), "No such file"),
        (lambda path: path.write_text("{}\n"), "has other content"),
        (lambda path: shutil.move(path, path.parent.parent), "No such file"),
    ],
)
def test_a_list_that_is_not_the_one_of_its_manifest_is_an_error(tmp_path, long, change, problem):
    folder = tmp_path / "out"
    folder.mkdir()
    long.save(folder)
    (path,) = folder.glob("manifest.*.jsonl")
    change(path)

    with pytest.raises(OutputError, match=problem):
        Manifest.load(folder)


def test_a_list_lies_in_the_folder_of_its_manifest(tmp_path, long):
    folder = tmp_path / "out"
    folder.mkdir()
    long.save(folder)
    (path,) = folder.glob("manifest.*.jsonl")
    shutil.move(path, tmp_path)
    text = (folder / "manifest.json").read_text().replace(path.name, f"../{path.name}")
    (folder / "manifest.json").write_text(text)

    with pytest.raises(OutputError, match=r"manifest.json is not the manifest"):
        Manifest.load(folder)
