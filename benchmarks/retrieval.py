"""Students against their teacher in search: `python -m benchmarks.retrieval MODEL... -o DIR`.

Two kinds of sets are written in BEIR's layout and measured by `noisegen evaluate`. Known items: the
first words of the noisy side of a real pair of `real_pairs` are to find its clean side, among the
clean sides of all the sets named. Questions: `questions.tsv`, written for noisegen; a question that
was typed in haste is to find its answer. The questions are searched once more with noise of a
recipe in place of typing.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import noisegen
from benchmarks.natural_noise import spread
from benchmarks.real_pairs import load
from noisegen.cli.common import terminal
from noisegen.evaluation.findings import render

ROWS, WORDS = 600, 5
QUESTIONS = Path(__file__).with_name("questions.tsv")


class Query(NamedTuple):
    """A query, the same as typed, and the document to find."""

    clean: str
    noisy: str
    document: str


def known_items(name: str, most: int) -> list[Query]:
    """Return the first words of at most `most` pairs of a real set, as queries for the clean side.

    Both sides of such a pair begin with other words. Whole sentences are found without fail.
    """
    pairs = [pair for pair in load(name) if len({*map(beginning, pair)}) > 1]
    return [
        Query(beginning(clean), beginning(noisy), clean) for noisy, clean in spread(pairs, most)
    ]


def beginning(text: str) -> str:
    """Return the first words of a text."""
    return " ".join(text.split()[:WORDS])


def questions() -> list[Query]:
    """Return the questions with their answers."""
    lines = QUESTIONS.read_text("utf-8").splitlines()
    rows = [line for line in lines if not line.startswith("#")]
    return [Query(*row.split("\t")) for row in rows[1:]]


def write(folder: Path, queries: Sequence[Query], others: Iterable[str], *, typed: bool) -> str:
    """Write a retrieval set whose documents are those of the queries and `others`; return it."""
    documents = dict.fromkeys([*(query.document for query in queries), *others])
    numbers = {text: f"d{number}" for number, text in enumerate(documents)}
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    _lines(folder / "corpus.jsonl", ((number, text) for text, number in numbers.items()))
    named = [(f"q{number}", query) for number, query in enumerate(queries)]
    _lines(folder / "queries.jsonl", ((name, query.clean) for name, query in named))
    if typed:
        _lines(folder / "queries.noisy.jsonl", ((name, query.noisy) for name, query in named))
    judged = [f"{name}\t{numbers[query.document]}\t1\n" for name, query in named]
    (folder / "qrels" / "test.tsv").write_text("".join(judged))
    return str(folder)


def _lines(path: Path, rows: Iterable[tuple[str, str]]) -> None:
    lines = [json.dumps({"_id": name, "text": text}) + "\n" for name, text in rows]
    path.write_text("".join(lines))


def main() -> None:
    """Read the arguments, evaluate, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--baseline")
    parser.add_argument("--sets", nargs="+", default=["jfleg", "cweb:G"], help="of real_pairs")
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args()
    clean = [text for name in given.sets for _, text in load(name)[: 4 * given.rows]]
    sets = {name.replace(":", "-"): known_items(name, given.rows) for name in given.sets}
    sources = [write(given.out / name, sets[name], clean, typed=True) for name in sets]
    answers = [query.document for query in questions()]
    for name, typed in (("questions", True), ("questions-recipe", False)):
        sources.append(write(given.out / name, questions(), [*answers, *clean], typed=typed))
    found = noisegen.evaluate(
        given.models,
        given.out / "report",
        baseline=given.baseline,
        force=True,
        retrieval_set=sources,
    )
    render(found, terminal())


if __name__ == "__main__":
    main()
