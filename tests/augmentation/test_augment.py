"""What a run writes: columns, manifest, card, and that it can be made again."""

import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import DEMO, augment, contents, noisy_of, shards, table

import noisegen
from noisegen.augmentation import Request
from noisegen.augmentation import augment as augment_module
from noisegen.augmentation.plan import make_plan, recipe_of
from noisegen.augmentation.shards import SAMPLED_ROWS, Shard
from noisegen.errors import OutputError, SourceError, UsageError
from noisegen.runs.manifest import Manifest
from noisegen.runs.options import PartOptions
from noisegen.text.alignment import character_errors, error_counts

EDITS = pa.list_(
    pa.struct(
        [("transform", pa.string())]
        + [(f"{side}_{end}", pa.int32()) for side in ("clean", "noisy") for end in ("start", "end")]
    )
)
COLUMNS = {
    "id": pa.int64(),
    "clean": pa.string(),
    "noisy": pa.string(),
    "transforms": pa.list_(pa.string()),
}
GIVEN = {"kind": pa.string(), "lang": pa.string()}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    out = tmp_path_factory.mktemp("plain") / "out"
    augment(DEMO, out, rows_per_shard=150)
    return out


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    out = tmp_path_factory.mktemp("copied") / "out"
    augment(DEMO, out, copies=3, edits=True, rows_per_shard=150)
    return out


def _types(schema):
    return {field.name: field.type for field in schema}


def test_the_columns_are_those_of_the_contract_in_its_order(plain, demo):
    schema = table(plain).schema

    assert list(_types(schema).items()) == list({**COLUMNS, **GIVEN}.items())
    assert table(plain).num_rows == len(demo)


def test_copies_and_edits_add_their_columns(copied):
    expected = {**COLUMNS, "copy": pa.int32(), **GIVEN, "edits": EDITS}

    assert list(_types(table(copied).schema).items()) == list(expected.items())


def test_every_copy_of_a_row_is_there_once_and_has_noise_of_its_own(copied, demo):
    rows = table(copied).to_pylist()

    assert len({(row["id"], row["copy"]) for row in rows}) == len(rows) == 3 * len(demo)
    versions = {copy: [r["noisy"] for r in rows if r["copy"] == copy] for copy in range(3)}
    assert versions[0] != versions[1] != versions[2]


def test_the_first_copy_is_the_run_without_copies(plain, copied):
    first = {row["id"]: row["noisy"] for row in table(copied).to_pylist() if row["copy"] == 0}

    assert first == noisy_of(plain)


def test_outside_the_edits_both_sides_are_equal(copied):
    for row in table(copied).to_pylist():
        clean_at = noisy_at = 0
        for edit in row["edits"]:
            outside = row["clean"][clean_at : edit["clean_start"]]
            assert outside == row["noisy"][noisy_at : edit["noisy_start"]]
            clean_at, noisy_at = edit["clean_end"], edit["noisy_end"]
        assert row["clean"][clean_at:] == row["noisy"][noisy_at:]


def test_ids_count_the_rows_of_all_inputs(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("one\ntwo\nthree\n")
    noisegen.augment([tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "out", rows_per_shard=2)

    assert table(tmp_path / "out")["id"].to_pylist() == list(range(6))
    assert [pq.read_metadata(path).num_rows for path in shards(tmp_path / "out")] == [2, 2, 2]


def test_the_manifest_has_the_keys_of_the_contract(plain):
    made = json.loads((plain / "manifest.json").read_text("utf-8"))

    assert list(made) == [
        "version",
        "command",
        "seed",
        "recipe",
        "recipe_digest",
        "sources",
        "dictionaries",
        "options",
        "shards",
        "totals",
        "packages",
    ]
    assert all(list(shard) == ["file", "rows", "changed", "sha256"] for shard in made["shards"])
    assert {"rows", "changed", "cer", "wer"} <= set(made["totals"])
    assert made["seed"] == 7
    assert made["packages"]["noisegen"] == made["version"] == noisegen.__version__


def test_the_manifest_counts_and_hashes_what_is_there(plain):
    made = Manifest.load(plain)

    for note, path in zip(made.shards, shards(plain), strict=True):
        rows = pq.ParquetFile(path).read()
        changed = sum(row["clean"] != row["noisy"] for row in rows.to_pylist())
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert note == {
            "file": f"data/{path.name}",
            "rows": len(rows),
            "changed": changed,
            "sha256": digest,
        }
    assert made.totals["changed"] == sum(note["changed"] for note in made.shards)


def test_error_rates_of_small_data_are_exact(plain):
    rows = table(plain)
    clean, noisy = rows["clean"].to_pylist(), rows["noisy"].to_pylist()
    characters, words = error_counts(clean, noisy)
    totals = Manifest.load(plain).totals

    assert totals["cer"] == round(characters / sum(map(len, clean)), 6) > 0
    assert totals["wer"] == round(words / sum(len(text.split()) for text in clean), 6) > 0


def test_error_rates_of_a_large_shard_are_near_those_of_all_its_rows(tmp_path, demo_texts):
    source = tmp_path / "many.txt"
    source.write_text("\n".join(demo_texts * 20), "utf-8")
    totals = augment(source, tmp_path / "out").totals
    rows = table(tmp_path / "out")
    clean = rows["clean"].to_pylist()
    errors = np.array(list(map(character_errors, clean, rows["noisy"].to_pylist())))
    lengths = np.array(list(map(len, clean)))

    exact, counted = errors.sum() / lengths.sum(), len(clean) // (len(clean) // SAMPLED_ROWS)
    sigma = np.std(errors - exact * lengths) / np.sqrt(counted) / lengths.mean()  # of a ratio
    assert abs(totals["cer"] - exact) < 4 * sigma
    assert totals["cer"] != round(exact, 6)


def test_word_lists_are_named_with_hash_source_and_licence(plain):
    notes = Manifest.load(plain).dictionaries

    assert all({"transform", "file", "sha256", "source", "license"} <= set(note) for note in notes)
    assert {"clip", "phon"} <= {note["transform"] for note in notes}


@pytest.mark.parametrize("options", [{}, {"copies": 2}, {"edits": True}])
def test_datasets_opens_the_folder(tmp_path, monkeypatch, options):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    augment(DEMO, tmp_path / "out", rows_per_shard=200, **options)
    loaded = datasets.load_dataset(
        str(tmp_path / "out"), split="train", cache_dir=str(tmp_path / "cache")
    )

    rows = table(tmp_path / "out")
    assert loaded.column_names == rows.column_names
    assert loaded["noisy"][:] == rows["noisy"].to_pylist()


def test_the_card_names_licence_columns_and_transforms(copied):
    text = (copied / "README.md").read_text("utf-8")

    assert re.search(r"(?m)^language:\n- multilingual$", text)
    for name in (*COLUMNS, "copy", "edits"):
        assert f"| {name} |" in text
    assert (
        "`punc`" in text.split("## Sources")[0]
    )  # it has no word list, and changed rows all the same
    assert "MIT" in text or "CC" in text


def card_of(out, shards=(), **changed):
    """Return the card of a run whose manifest has other values."""
    plan = make_plan(Request(DEMO), out)
    return augment_module._card(plan, replace(Manifest.load(out), **changed), shards)


def test_the_card_names_twenty_sources_and_counts_the_rest(copied):
    text = card_of(copied, sources=[{"path": f"{number}.txt"} for number in range(25)])

    assert "`19.txt` and 5 more" in text


def test_a_bar_in_a_licence_keeps_the_table_of_the_card_whole(copied):
    note = {"transform": "x", "file": "x.tsv", "source": "a | b", "license": "MIT"}
    drawn = [Shard(1, 1, transforms=["x"])]

    text = card_of(copied, drawn, dictionaries=[note])

    assert r"| x | x.tsv | a \| b | MIT |" in text


@pytest.mark.parametrize("texts", [["I am 25"], ["see you tomorrow"], ["!!!"]])
def test_the_card_lists_the_word_lists_of_changed_rows(tmp_path, texts):
    (tmp_path / "in.txt").write_text("\n".join(texts))
    made = augment(tmp_path / "in.txt", tmp_path / "out", transforms=["leet:rate=1", "week"])
    rows, text = table(tmp_path / "out"), (tmp_path / "out" / "README.md").read_text()

    assert {note["transform"] for note in made.dictionaries} == {"leet", "week"}
    changed = [row["transforms"] for row in rows.to_pylist() if row["clean"] != row["noisy"]]
    listed = re.findall(r"(?m)^\| (\w+) \| \w+\.tsv \|", text)
    assert set(listed) == {name for names in changed for name in names}
    assert ("Word lists of" in text) == bool(changed)


def test_the_card_has_what_the_hub_asks_for(tmp_path):
    from huggingface_hub import DatasetCard

    rows = {"text": ["see you"] * 1_200, "stars": [5] * 1_200, "from": ["x | y"] * 1_200}
    pq.write_table(pa.table(rows), tmp_path / "in.parquet")
    augment(tmp_path / "in.parquet", tmp_path / "out", transforms=["fing"], lang="pt-BR")

    card = DatasetCard.load(tmp_path / "out" / "README.md")

    head = card.data.to_dict()
    assert head.pop("configs") == [{"config_name": "default", "data_files": "data/part-*.parquet"}]
    assert head == {
        "license": "unknown",
        "pretty_name": "Clean and noisy text",
        "language": ["pt"],
        "size_categories": ["1K<n<10K"],
        "task_categories": ["sentence-similarity"],
        "tags": ["noise", "user-generated-content", "noisegen"],
    }
    assert "\n| stars | int64, as it came |\n| from | string, as it came |\n" in card.content
    assert "\n# Clean and noisy text, made with noisegen " in card.content
    assert "in.parquet` and keeps the licence that it has there: name it as " in card.content


@pytest.mark.parametrize(
    "options",
    [
        {"transforms": ("fing:rate=0.1", "spac"), "seed": 3},
        {
            "recipe": "mix_all",
            "values": {"leet.p": "1"},
            "copies": 2,
            "edits": True,
            "protect": "none",
        },
        {"values": {"start.p": "1", "clip.rate": "1"}, "lang": "da"},  # of its own mix
        {"lang": "sw"},
        {"id_column": "kind", "limit": 50},
    ],
)
def test_from_a_manifest_come_the_same_rows(tmp_path, options):
    from noisegen.cli import run

    augment(DEMO, tmp_path / "one", rows_per_shard=100, **options)
    made = tmp_path / "one" / "manifest.json"
    code = run(["augment", "--from", str(made), "-o", str(tmp_path / "two"), "--workers", "1"])

    assert code in (0, 3)  # duplicate ids are counted
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    again, first = Manifest.load(tmp_path / "two"), Manifest.load(made)
    assert again.shards == first.shards
    assert again.recipe_digest == first.recipe_digest


def test_from_a_manifest_code_runs_only_if_the_call_names_it(tmp_path, capfd):
    from noisegen.cli import run

    code, ran = tmp_path / "plugin.py", tmp_path / "ran"
    code.write_text(
        f"import noisegen, pathlib\npathlib.Path({str(ran)!r}).write_text('')\n"
        "@noisegen.transform('from_manifest')\n"
        "def f(text, draws, *, rate: float = 1.0):\n    return text + draws.pick('?!')\n"
    )
    augment(DEMO, tmp_path / "one", transforms=["from_manifest"], code=(str(code),), limit=20)
    made = str(tmp_path / "one" / "manifest.json")
    again = ["augment", "--from", made, "-o", str(tmp_path / "two"), "--workers", "1"]
    code.write_text(code.read_text() + "# changed, so that it would run again\n")
    ran.unlink()

    for call in ([*again, "--dry-run"], again):
        assert run(call) == 2
        [line] = capfd.readouterr().err.splitlines()
        assert line.startswith("error: the manifest names code, which runs only if you name it: ")
        assert line.endswith(f"add --code {code}")
    assert not ran.exists()
    assert not (tmp_path / "two").exists()
    assert run([*again, "--code", str(code)]) == 0
    assert "hint: the rows may differ" in capfd.readouterr().err
    assert table(tmp_path / "two")["noisy"] == table(tmp_path / "one")["noisy"]


def test_other_columns_pass_through_with_their_types(tmp_path):
    given = pa.table(
        {
            "text": ["see you tomorrow", "at the station"],
            "key": ["x", "y"],
            "tags": pa.array([["a"], []], pa.list_(pa.string())),
            "when": pa.array([1, None], pa.timestamp("us")),
            "score": pa.array([0.5, 1.5], pa.float32()),
        }
    )
    pq.write_table(given, tmp_path / "in.parquet")
    augment(tmp_path / "in.parquet", tmp_path / "out", id_column="key")

    rows = table(tmp_path / "out")
    assert rows.column_names == ["id", "clean", "noisy", "transforms", "tags", "when", "score"]
    assert rows.select(["tags", "when", "score"]) == given.select(["tags", "when", "score"])
    assert rows["id"].to_pylist() == ["x", "y"]


def test_equal_ids_with_equal_text_get_equal_noise_and_are_counted(tmp_path):
    pq.write_table(
        pa.table({"text": ["see you tomorrow"] * 3, "key": [5, 5, 6]}), tmp_path / "a.parquet"
    )
    made = augment(
        tmp_path / "a.parquet",
        tmp_path / "out",
        id_column="key",
        copies=2,
        transforms=["fing:rate=0.5"],
    )

    assert made.totals["dropped"] == {"duplicate_id": 1}
    first, second, *_ = table(tmp_path / "out")["noisy"].to_pylist()
    assert first == second


def test_duplicates_are_found_in_several_passes(tmp_path, monkeypatch):
    monkeypatch.setattr(augment_module, "IDS_AT_ONCE", 10)
    pq.write_table(
        pa.table({"text": ["a"] * 100, "key": [*range(50), *range(50)]}), tmp_path / "a.parquet"
    )
    made = augment(tmp_path / "a.parquet", tmp_path / "out", id_column="key", rows_per_shard=30)

    assert made.totals["dropped"] == {"duplicate_id": 50}


@pytest.mark.filterwarnings("ignore:r leaves out")
def test_steps_without_data_for_the_language_keep_the_noise_of_the_rest(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text(
        "name: r\nsteps:\n- one_of: [slng, abr3]\n- one_of: [fing: {rate: 0.3}, spac: {}]\n"
    )
    made = augment(DEMO, tmp_path / "out", recipe=str(recipe), lang="sw")

    assert made.totals["changed"] > 0
    again = noisegen.Recipe.from_yaml(recipe).noise_batch(
        table(tmp_path / "out").select(["id", "clean"]), seed=7, lang="sw"
    )
    assert again["noisy"] == table(tmp_path / "out")["noisy"]


def test_the_digest_tells_recipes_apart():
    digests = [
        recipe_of(Request(("x",), transforms=steps)).digest
        for steps in (("fing",), ("fing:rate=0.06",), ("fing", "spac"), ("spac", "fing"))
    ]

    assert len(set(digests)) == 4


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/3/5", "-1/3", "1/0", ""])
def test_a_part_that_makes_no_sense_is_refused(text):
    with pytest.raises(UsageError, match=r"such as 2/8"):
        PartOptions(part=text)


@pytest.mark.parametrize(
    "options", [{"copies": 0}, {"rows_per_shard": 0}, {"limit": 0}, {"labels": "tags"}]
)
def test_a_request_that_makes_no_sense_is_refused(tmp_path, options):
    (tmp_path / "x.txt").write_text("x\n")
    with pytest.raises(UsageError, match="--"):
        noisegen.augment(tmp_path / "x.txt", tmp_path / "out", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 0},
        {"executor": "threads"},
        {"force": True, "resume": True},
        {"force": True, "part": "1/2"},
    ],
)
def test_wrong_usage_is_refused_before_anything_is_removed(plain, options):
    before = contents(plain)

    with pytest.raises(UsageError):
        augment(DEMO, plain, **options)

    assert contents(plain) == before


def test_force_removes_nothing_when_the_source_cannot_be_read(tmp_path):
    augment(DEMO, tmp_path / "out")
    before = contents(tmp_path / "out")

    with pytest.raises(SourceError, match="no column"):
        augment(DEMO, tmp_path / "out", force=True, text_column="nothing")

    assert contents(tmp_path / "out") == before


def test_an_input_is_never_taken_for_a_shard(tmp_path):
    source = tmp_path / "data" / "part-00000.parquet"
    source.parent.mkdir()
    pq.write_table(pa.table({"text": ["precious"]}), source)
    before = source.read_bytes()

    for options in ({"force": True}, {"resume": True}):
        with pytest.raises(OutputError, match="is an input"):
            augment(source, tmp_path, **options)

    assert source.read_bytes() == before


def test_a_plan_can_be_made_without_a_folder(tmp_path):
    plan = make_plan(Request((str(DEMO),), rows_per_shard=100), tmp_path / "out")

    assert [task.rows for task in plan.tasks()] == [100, 100, 100, 100, 20]
    assert not (tmp_path / "out").exists()


def test_an_input_beside_the_shards_stays(tmp_path):
    source = tmp_path / "part-00000.parquet"
    pq.write_table(pa.table({"text": ["precious"]}), source)
    before = source.read_bytes()

    for options in ({"force": True}, {"resume": True}, {"force": True}):
        augment(source, tmp_path, **options)
        assert source.read_bytes() == before


@pytest.mark.parametrize("name", ["README.md", "manifest.json", "data/part-x.parquet"])
def test_force_never_takes_a_file_of_somebody_else(tmp_path, name):
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"mine": [1]}), out / name)
    else:
        (out / name).write_text("mine")
    before = (out / name).read_bytes()

    with pytest.raises(OutputError, match=f"noisegen did not write .*{name}"):
        noisegen.augment(DEMO, out, transforms=["fing"], limit=5, force=True)

    assert (out / name).read_bytes() == before
