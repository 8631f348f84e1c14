"""The golden shard: a change of output must be seen in review and named in the CHANGELOG.

`python tests/noising/test_golden.py` writes the files anew; say so in the CHANGELOG then.
"""

import csv
from pathlib import Path

import pyarrow as pa
import pytest

from noisegen.noising.recipe import Recipe
from noisegen.text.resources import DICTIONARIES

GOLDEN = Path(__file__).parent / "golden"
RECIPES = ("mix_all", "rolaser")
DEMO = DICTIONARIES.parent / "demo" / "demo.tsv"
ROWS = 200


def made(recipe: str) -> list[str]:
    with DEMO.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    english = [row["text"] for row in rows if row["lang"] == "en"]
    table = pa.table({"clean": english[:ROWS]})
    # Without spaCy: its tags may change with its model.
    noisy = Recipe.named(recipe).noise_batch(table, seed=2026, tagger="rule")
    return [f"{' '.join(row['transforms'])}\t{row['noisy']}" for row in noisy.to_pylist()]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_noise_of_a_seed_never_changes_unnoticed(recipe):
    assert made(recipe) == (GOLDEN / f"{recipe}.tsv").read_text("utf-8").split("\n")[:-1]


if __name__ == "__main__":
    for name in RECIPES:
        (GOLDEN / f"{name}.tsv").write_text("\n".join(made(name)) + "\n", "utf-8")
