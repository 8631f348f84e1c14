"""DREAM, MEAT and ORACLE as in Tables 3, 10 and 11: `python -m benchmarks.oracle_tables`.

Trains heads on tatoeba-opus with an encoder's frozen vectors and measures them on held-out pairs,
on the same with words of the other language in English (`codeswitch`), and on STS. Prints mean and
sd over seeds; writes table.json and the picture of one run's vectors.
"""

import argparse
import csv
import gzip
import json
from pathlib import Path

from rich.console import Console

import noisegen
from benchmarks.frozen_vectors import cached
from benchmarks.oracle_data import Pair, bitext, write_tables
from benchmarks.oracle_figures import (
    Retrieval,
    Sets,
    Similarity,
    Spread,
    columns_of,
    flat,
    measure,
    measure_heads,
    over_runs,
    plain,
    render,
)
from benchmarks.real_pairs import DATA
from noisegen.data.dictionaries import packaged_languages
from noisegen.options import parse_values
from noisegen.training.heads import load_heads, write_picture
from noisegen.training.train import train

OBJECTIVES = ("dream", "dream+oracle", "meat", "meat+oracle")
ALONE = "encoder alone"
SWITCH, SWITCH_SEED = "codeswitch:into=en", 1
Scored = tuple[str, str, float]


def similarities() -> dict[str, list[Scored]]:
    """Return the pairs of the open STS benchmark and of SICK with their scores."""
    folder = DATA / "sts"
    with gzip.open(folder / "stsb-open-dev.tsv.gz", "rt", encoding="utf-8") as lines:
        benchmark = [line.rstrip("\n").split("\t") for line in lines]
    with gzip.open(folder / "SICK_trial.txt.gz", "rt", encoding="utf-8") as lines:
        sick = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return {
        "stsb": [(row[5], row[6], float(row[4])) for row in benchmark if len(row) > 6],
        "sick": [(row[1], row[2], float(row[3])) for row in sick if len(row) > 3],
    }


def switched(parts: dict[str, list[Pair]]) -> dict[str, list[Pair]]:
    """Return English and the other language with some of its words in English.

    As in the paper: only sentences with at least one such word; of the languages that the packaged
    dictionary has.
    """
    found: dict[str, list[Pair]] = {}
    for lang in (lang for lang in parts if lang in packaged_languages()):
        rows = ((row, *pair) for row, pair in enumerate(parts[lang]))
        mixed = [
            (english, noisegen.noise(other, SWITCH, seed=SWITCH_SEED, id=row, lang=lang), other)
            for row, english, other in rows
        ]
        found[lang] = [(english, text) for english, text, other in mixed if text != other]
    return found


def make_sets(spec: str, test: dict[str, list[Pair]]) -> Sets:
    """Encode everything that heads are measured on."""
    groups = [("retrieval", test), ("code-switched", switched(test))]
    pairs = [(group, name, rows) for group, found in groups for name, rows in found.items()]
    scored = similarities()
    texts = [text for *_, rows in pairs for row in rows for text in row]
    texts += [text for rows in scored.values() for row in rows for text in row[:2]]
    vectors = cached(spec, texts)
    retrieval = [
        Retrieval(name, *(vectors(side) for side in zip(*rows, strict=True)), group)
        for group, name, rows in pairs
    ]
    similarity = [
        Similarity(name, vectors(first), vectors(second), scores)
        for name, (first, second, scores) in (
            (name, tuple(zip(*rows, strict=True))) for name, rows in scored.items()
        )
    ]
    return Sets(retrieval, similarity)


def runs(given: argparse.Namespace, tables: list[str], sets: Sets) -> dict[str, dict[str, Spread]]:
    """Train and measure every objective with every seed."""
    alone = {f"meaning.{name}": value for name, value in measure(sets, lambda v: v).items()}
    table = {ALONE: over_runs([alone])}
    for objective in given.objectives:
        found = []
        for seed in range(given.seeds):
            run = given.out / f"{objective}-{seed}"
            values = {"teacher": given.teacher, "objective": objective, "seed": seed}
            done = train(
                tables,
                run,
                preset=given.preset,
                force=True,
                values={**values, **parse_values(given.set)},
            )
            heads, _ = load_heads(run / "heads")
            found.append(
                {
                    **flat(measure_heads(sets, heads)),
                    "seconds": done["seconds"],
                    "updates": done["updates"],
                }
            )
        table[objective] = over_runs(found)
        print(objective, {name: str(table[objective][name]) for name in ("seconds", "updates")})
    return table


def main() -> None:
    """Read the arguments; train, measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--teacher", default="use", help="SPEC of the frozen encoder")
    parser.add_argument("--preset", default="oracle-small")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--objectives", nargs="+", default=[*OBJECTIVES])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=3_000, help="a language, to train on")
    parser.add_argument("--part", choices=("test", "development"), default="test")
    given = parser.parse_args()
    parts = bitext(given.pairs)
    tables = write_tables(parts.training, given.out / "data")
    sets = make_sets(given.teacher, getattr(parts, given.part))
    table = runs(given, tables, sets)
    columns = columns_of(sets)
    for side in ("meaning", "language"):
        chosen = [name for name in columns if name.startswith(side)]
        render(table, chosen, f"{side} vectors, {given.teacher}", Console(width=120))
    (given.out / "table.json").write_text(json.dumps(plain(table), indent=1) + "\n")
    heads, _ = load_heads(given.out / f"{given.objectives[-1]}-0" / "heads")
    shown = {
        f"en-{one.name}": (one.source, one.target)
        for one in sets.retrieval
        if one.group == "retrieval"
    }
    write_picture(shown, heads, given.out / "vectors.html")


if __name__ == "__main__":
    main()
