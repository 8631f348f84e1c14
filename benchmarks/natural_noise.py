"""Students against their teacher on real pairs: `python -m benchmarks.natural_noise MODEL -o DIR`.

The baseline is the teacher of the first model, or that model if noisegen did not train it. Every
real set of `real_pairs` becomes a table of its changed pairs, each clean text once, which `noisegen
evaluate` measures. Sets that were looked at while something was developed are named in
docs/development/log.md; the others are held out.
"""

import argparse
import csv
from collections.abc import Iterable
from pathlib import Path

import noisegen
from benchmarks.real_pairs import Pair, available, load
from noisegen.cli.common import terminal
from noisegen.evaluation.findings import render

ROWS = 600
ENGLISH = ("jfleg", "cweb:G", "cweb:S")


def changed_pairs(name: str, most: int) -> list[Pair]:
    """Return at most `most` changed pairs of a set."""
    return spread(load(name), most)


def spread(all_pairs: list[Pair], most: int) -> list[Pair]:
    """Return at most `most` evenly spaced changed pairs, each clean text once."""
    pairs = list({clean: (noisy, clean) for noisy, clean in all_pairs if noisy != clean}.values())
    count = min(most, len(pairs))
    return [pairs[number * len(pairs) // count] for number in range(count)]


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write a table of pairs; it is there whole or not at all."""
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("noisy", "clean"))
        table.writerows(pairs)
    part.replace(path)


def write_sets(names: list[str], most: int, folder: Path) -> list[str]:
    """Write the sets as tables; return them as sources with names."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = []
    for name in names:
        path = folder / f"{name.replace(':', '-')}.csv"
        write_pairs(path, changed_pairs(name, most))
        sources.append(str(path))
    return sources


def main() -> None:
    """Read the arguments, evaluate, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=[*ENGLISH], help="names, or all")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--sts", nargs="*", default=[])
    parser.add_argument("--pool", nargs="*", default=[], help="clean text that is searched too")
    parser.add_argument("--no-hard", dest="hard", action="store_false")
    given = parser.parse_args()
    names = available() if given.sets == ["all"] else given.sets
    found = noisegen.evaluate(
        given.models,
        given.out / "report",
        force=True,
        hard=given.hard,
        pairs=write_sets(names, given.rows, given.out / "sets"),
        limit=given.rows,
        sts=given.sts,
        pool=given.pool,
        recipe="ugc-heavy",
    )
    render(found, terminal())


if __name__ == "__main__":
    main()
