"""`--group-by`: rows of one author have one writer, in any run."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import command, table

import noisegen
from noisegen.errors import SourceError, UsageError

RECIPE = """
steps: [{rebus: {rate: 0.5}}, {phon: {rate: 0.5}}]
writers: {a: {habits: {rebus: 1}}, b: {habits: {rebus: 0.1, phon: 0.2}}}
"""
TEXT = "You are going to the party tonight because people are there, too."


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "styles.yaml"
    path.write_text(RECIPE)
    return str(path)


def source(tmp_path, authors):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": [TEXT] * len(authors), "author": authors}), path)
    return str(path)


def noisy_of(out) -> dict:
    """The noisy texts of each author."""
    found = {}
    for row in table(out).to_pylist():
        found.setdefault(row["author"], []).append(row["noisy"])
    return found


@pytest.mark.parametrize(
    "authors",
    [pa.array([f"author {n % 40}" for n in range(400)]), pa.array([n % 40 for n in range(400)])],
)
def test_rows_of_an_author_have_one_writer_and_its_habits(tmp_path, recipe, authors):
    path = source(tmp_path, authors)
    noisegen.augment(path, tmp_path / "out", recipe=recipe, group_by="author")
    noisegen.augment(path, tmp_path / "two", recipe=recipe, group_by="author", rows_per_shard=70)
    found = noisy_of(tmp_path / "out")
    assert all(len(set(texts)) == 1 for texts in found.values())
    assert len({texts[0] for texts in found.values()}) >= 10
    assert noisy_of(tmp_path / "two") == found


@pytest.mark.parametrize("nobody", [None, ""])
def test_rows_without_an_author_have_writers_of_their_own(tmp_path, recipe, nobody):
    path = source(tmp_path, pa.array([nobody] * 100 + ["ann"] * 20))
    noisegen.augment(path, tmp_path / "out", recipe=recipe, group_by="author")
    noisegen.augment(path, tmp_path / "plain", recipe=recipe)
    found, plain = noisy_of(tmp_path / "out"), noisy_of(tmp_path / "plain")
    assert found[nobody] == plain[nobody]
    assert len(set(found["ann"])) == 1 < len(set(plain["ann"]))


def test_a_manifest_makes_the_same_rows_again(tmp_path, recipe):
    path = source(tmp_path, pa.array([f"{n % 9}" for n in range(90)]))
    first = noisegen.augment(path, tmp_path / "out", recipe=recipe, group_by="author")
    assert first.options["group_by"] == "author"
    run = command("augment", "--from", tmp_path / "out/manifest.json", "-o", tmp_path / "two")
    assert run.returncode == 0, run.stderr
    assert table(tmp_path / "two").equals(table(tmp_path / "out"))


def test_a_preview_shows_what_augment_writes(tmp_path, recipe):
    path = source(tmp_path, pa.array([f"{n % 9}" for n in range(90)]))
    noisegen.augment(path, tmp_path / "out", recipe=recipe, group_by="author")
    shown = command("preview", path, "--recipe", recipe, "--group-by", "author", "-n", 90, "--json")
    rows = json.loads(shown.stdout)["rows"]
    assert [row["noisy"] for row in rows] == table(tmp_path / "out")["noisy"].to_pylist()
    refused = command("preview", "a text", "--recipe", recipe, "--group-by", "author")
    assert "--group-by names a column of a source; a text has none" in refused.stderr


@pytest.mark.parametrize("column", ["body", "user"])
def test_the_text_and_the_ids_may_be_the_groups(tmp_path, recipe, column):
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f'{{"user": {n}, "body": "{TEXT}"}}\n' for n in range(40)))
    names = {"recipe": recipe, "text_column": "body", "id_column": "user", "group_by": column}
    noisegen.augment(path, tmp_path / "out", **names)
    noisegen.augment(path, tmp_path / "noisy.jsonl", **names)
    noisy = table(tmp_path / "out")["noisy"].to_pylist()
    assert (len(set(noisy)) == 1) == (column == "body")
    lines = (tmp_path / "noisy.jsonl").read_text().splitlines()
    assert [json.loads(line)["body"] for line in lines] == noisy
    options = [f"--{name.replace('_', '-')}={value}" for name, value in names.items()]
    shown = command("preview", path, *options, "-n", 40, "--json")
    assert [row["noisy"] for row in json.loads(shown.stdout)["rows"]] == noisy


def test_wrong_use_is_one_line(tmp_path, recipe):
    path = source(tmp_path, pa.array(["ann", "bob"]))
    with pytest.raises(SourceError, match=r"no column 'auther' among: text, author; did you mean"):
        noisegen.augment(path, tmp_path / "out", recipe=recipe, group_by="auther")
    with pytest.raises(SourceError, match=f"{path}: no column 'auther' among: text, author; did"):
        noisegen.augment(path, tmp_path / "out.jsonl", recipe=recipe, group_by="auther")
    with pytest.raises(
        UsageError, match="--group-by needs a recipe with writers; mix_all has none"
    ):
        noisegen.augment(path, tmp_path / "out", recipe="mix_all", group_by="author")
    numbers = source(tmp_path, pa.array([0.5, 1.5]))
    with pytest.raises(SourceError, match="column 'author' holds double, not text or integers"):
        noisegen.augment(numbers, tmp_path / "out", recipe=recipe, group_by="author")


def test_a_recipe_with_writers_is_shown(recipe):
    shown = command("recipes", recipe).stdout
    assert "writer" in shown
    assert "rebus 0.1, phon 0.2" in shown
    assert "50%" in shown
