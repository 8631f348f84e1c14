"""Several versions of a row: noisy copies, the clean row, and levels of strength."""

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner
from runs import augment, table

import noisegen
from noisegen.augmentation.statistics import measure
from noisegen.cli import noisegen as program
from noisegen.errors import SourceError, UsageError

TEXTS = [
    "See you tomorrow, because we are going to the new house.",
    "I do not know what you want, so please come here and talk to us.",
    "They are waiting for the people who have been there before.",
]


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps({"text": text, "n": n}) + "\n" for n, text in enumerate(TEXTS)]
    path.write_text("".join(lines))
    return path


def noise(number, **options):
    return noisegen.noise(TEXTS[number], "ugc-heavy", seed=7, id=number, **options)


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("copies", [1, 2])
def test_shards_get_the_clean_row_too(rows, tmp_path, copies):
    options = {"recipe": "ugc-heavy", "edits": True}
    manifest = augment(rows, tmp_path / "out", copies=copies, with_clean=True, **options)
    augment(rows, tmp_path / "plain", copies=2, **options)

    made = table(tmp_path / "out")
    assert made.schema.field("copy").type == pa.int32()
    clean = [row for row in made.to_pylist() if row["copy"] == -1]
    assert [row["noisy"] for row in clean] == [row["clean"] for row in clean] == TEXTS
    assert [row["transforms"] + row["edits"] for row in clean] == [[]] * 3
    noisy = [row for row in made.to_pylist() if row["copy"] >= 0]
    plain = [row for row in table(tmp_path / "plain").to_pylist() if row["copy"] < copies]
    assert noisy == plain
    assert manifest.totals["rows"] == 3 * (copies + 1)


def test_one_file_has_the_clean_row_before_its_copies(rows, tmp_path):
    augment(rows, tmp_path / "both.jsonl", recipe="ugc-heavy", copies=2, with_clean=True)

    made = read(tmp_path / "both.jsonl")
    assert [(row["n"], row["copy"]) for row in made] == [
        (n, copy) for n in range(3) for copy in (-1, 0, 1)
    ]
    assert [row["text"] for row in made[::3]] == TEXTS
    assert [row["text"] for row in made[1::3]] == [noise(n) for n in range(3)]


def test_labels_and_spans_of_the_clean_row_stay(tmp_path):
    row = {"tokens": TEXTS[0].split(), "tags": ["O"] * 9 + ["B-LOC", "I-LOC"]}
    (tmp_path / "ner.jsonl").write_text(json.dumps(row) + "\n")
    labelled = {"tokens": "tokens", "labels": "tags", "transforms": "spac:add_rate=0.3"}
    augment(tmp_path / "ner.jsonl", tmp_path / "ner", with_clean=True, **labelled)
    augment(tmp_path / "ner.jsonl", tmp_path / "both.jsonl", with_clean=True, **labelled)
    spans = {"text": TEXTS[1], "spans": [{"start": 2, "end": 8}]}
    (tmp_path / "spans.jsonl").write_text(json.dumps(spans) + "\n")
    augment(tmp_path / "spans.jsonl", tmp_path / "s.jsonl", spans="spans", with_clean=True)

    clean, noisy = table(tmp_path / "ner").to_pylist()
    assert (clean["noisy_tokens"], clean["noisy_labels"]) == (row["tokens"], row["tags"])
    assert len(noisy["noisy_tokens"]) > len(row["tokens"])
    assert read(tmp_path / "both.jsonl")[0] == {**row, "copy": -1}
    assert read(tmp_path / "s.jsonl")[0] == {**spans, "copy": -1}


def test_levels_of_strength_are_more_and_more_noise(rows, tmp_path):
    levels = ["x0", "x0.5", "x1", "x2"]
    augment(rows, tmp_path / "out", recipe="ugc-heavy", strength=levels, copies=20)
    augment(rows, tmp_path / "plain", recipe="ugc-heavy", copies=20)

    made = table(tmp_path / "out").to_pylist()
    assert len({(row["id"], row["copy"], row["strength"]) for row in made}) == 3 * 20 * 4
    drawn = {
        level: sum(len(row["transforms"]) for row in made if row["strength"] == level)
        for level in levels
    }
    assert 0 == drawn["x0"] < drawn["x0.5"] < drawn["x1"] < drawn["x2"]
    at_1 = [row for row in made if row.pop("strength") == "x1"]
    assert at_1 == table(tmp_path / "plain").to_pylist()


def test_a_level_equals_a_run_of_the_recipe_with_that_scale(rows, tmp_path):
    (tmp_path / "half.yaml").write_text("name: half\nextends: ugc-heavy\nscale: 0.5\n")
    augment(rows, tmp_path / "half", recipe=str(tmp_path / "half.yaml"))
    augment(rows, tmp_path / "out", recipe="ugc-heavy", strength="x0.5")

    half = table(tmp_path / "half")["noisy"].to_pylist()
    assert table(tmp_path / "out")["noisy"].to_pylist() == half


def test_one_file_has_the_levels_of_a_row_together(rows, tmp_path):
    out = tmp_path / "out.jsonl"
    words = ["augment", rows, "-o", out, "--seed", 7, "--recipe", "ugc-heavy", "--with-clean"]
    done = CliRunner().invoke(program, [*map(str, words), "--strength", "x0.5,x1"])

    made = read(out)
    assert done.exit_code == 0
    assert [(row["copy"], row["strength"]) for row in made] == [
        (-1, "x0"),
        (0, "x0.5"),
        (0, "x1"),
    ] * 3
    assert [row["text"] for row in made[2::3]] == [noise(n) for n in range(3)]


def test_a_run_with_levels_can_be_made_again_and_measured(rows, tmp_path):
    out = tmp_path / "out"
    manifest = augment(rows, out, strength="x1,x3", with_clean=True, copies=2)
    words = ["augment", "--from", out / "manifest.json", "-o", tmp_path / "again"]
    CliRunner().invoke(program, list(map(str, words)))

    assert table(tmp_path / "again").equals(table(out))
    assert manifest.options["strength"] == ["x1", "x3"]
    assert (measure(out).rows, measure(out).copies) == (12, 2)
    card = (out / "README.md").read_text()
    assert "-1 for the clean row; (id, copy, strength) names a row" in card
    assert "of noisy and clean rows changed, CER" in manifest.summary()
    assert all(row.strength in ("x1", "x3") for row in measure(out).examples)
    assert "string, as it came" not in card


@pytest.mark.parametrize("edits", [True, False])
def test_statistics_have_figures_of_each_strength(rows, tmp_path, edits):
    levels = ["x0.5", "x1", "x3"]
    options = {"recipe": "mix_all", "copies": 20, "edits": edits}
    augment(rows, tmp_path / "out", strength=levels, with_clean=True, **options)
    for level in levels:
        augment(rows, tmp_path / level, strength=level, **options)

    found = measure(tmp_path / "out")
    assert [line.strength for line in found.strengths] == levels
    for line in found.strengths:
        alone = measure(tmp_path / line.strength)
        names = ("rows", "changed", "changed_share", "cer", "wer")
        assert [getattr(line, name) for name in names] == [getattr(alone, name) for name in names]
    assert found.strengths[0].cer < found.cer < found.strengths[-1].cer
    assert found.transforms_per_row[0].expected is None

    page = tmp_path / "page.html"
    done = CliRunner().invoke(program, ["stats", str(tmp_path / "out"), "--plot", str(page)])
    assert "180 in 1 shard, 20 copies of each, at 3 strengths" in done.stdout
    table_of = done.stdout.partition("\nstrengths\n")[2].splitlines()
    share, cer = found.strengths[1].changed_share, found.strengths[1].cer
    assert table_of[3].split()[:5] == [
        "x1",
        "60",
        str(found.strengths[1].changed),
        f"{share:.1%}",
        f"{cer:.2%}",
    ]
    assert "Strengths" in page.read_text("utf-8")


def test_a_column_strength_of_the_source_is_no_strength_of_the_run(tmp_path):
    (tmp_path / "own.jsonl").write_text('{"text": "See you.", "strength": "x1"}\n')
    augment(tmp_path / "own.jsonl", tmp_path / "out")
    assert measure(tmp_path / "out").strengths == ()


@pytest.mark.parametrize("strength", [[0.5, 2], "0.5,2", ["x0.5", 2]])
def test_a_strength_may_be_a_plain_number(rows, tmp_path, strength):
    augment(rows, tmp_path / "out", strength=strength)
    assert {row["strength"] for row in table(tmp_path / "out").to_pylist()} == {"x0.5", "x2"}


@pytest.mark.parametrize(
    ("strength", "message"),
    [("half", "no factor: write x0.5"), ("x", "not a number"), ("x1,x1", "each factor once")],
)
def test_a_wrong_strength_is_refused(rows, tmp_path, strength, message):
    with pytest.raises(UsageError, match=message):
        augment(rows, tmp_path / "out", strength=strength)


def test_output_without_room_for_the_columns_is_refused(rows, tmp_path):
    (tmp_path / "own.jsonl").write_text('{"text": "See you.", "strength": 1}\n')
    for out in ("out", "out.jsonl"):
        with pytest.raises(SourceError, match="'strength'"):
            augment(tmp_path / "own.jsonl", tmp_path / out, strength="x2")
    for options, flag in (({"with_clean": True}, "--with-clean"), ({"strength": "x2"}, "--str")):
        with pytest.raises(UsageError, match=f"txt has no column for {flag}"):
            augment(rows, tmp_path / "out.txt", **options)
    augment(tmp_path / "own.jsonl", tmp_path / "plain")
    assert table(tmp_path / "plain")["strength"].to_pylist() == [1]


def test_the_columns_of_a_source_stay_byte_for_byte(tmp_path):
    line = '{"text": "See you.", "copy": 1.50, "strength": 2.00}\n'
    (tmp_path / "own.jsonl").write_text(line)
    augment(tmp_path / "own.jsonl", tmp_path / "out.jsonl", transforms="week")

    assert (tmp_path / "out.jsonl").read_text() == line
