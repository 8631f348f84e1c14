"""Peak memory: `augment` on much text and huge rows, commands that read data on ten times it.

Every peak stays under 1 GB. Ten times the input takes at most 1.3 times the memory, except in cases
that name the data they hold.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import inputs
from benchmarks.measure import ChildFailed, Result, Target, child, report
from benchmarks.memory_inputs import written

TIMES, GROWTH, MEGABYTES = 10, 1.3, 1000
BASE = "50 MB of text"
HUGE = {  # megabytes of text, whether in one row, options
    BASE: (50, False, ()),
    "200 MB of text": (200, False, ()),
    "one row of 10 MB": (10, True, ()),
    "one row of 10 MB, fing:rate=1": (10, True, ("-t", "fing:rate=1")),
    "one row of 10 MB, fing:rate=1 --edits": (10, True, ("-t", "fing:rate=1", "--edits")),
    "one row of 30 MB, fing:rate=0.1": (30, True, ("-t", "fing:rate=0.1")),
}


@dataclass(frozen=True)
class Case:
    """A command, {0} its input and {1} its output; `holds` is why its memory may grow."""

    command: str
    source: str
    rows: int = 10_000
    holds: str = ""


AUGMENT = "augment {0} -o {1} --tagger rule --rows-per-shard 5000 --workers 1"
ALL_PAIRS = "up to 1,000,000 pairs"
CASES = {
    "augment, text": Case(AUGMENT, "in.txt"),
    "augment, bz2": Case(AUGMENT, "in.txt.bz2"),
    "augment, CSV": Case(AUGMENT, "in.csv"),
    "augment, JSON lines": Case(AUGMENT, "in.jsonl"),
    "augment, Parquet": Case(AUGMENT, "in.parquet"),
    "augment, Arrow": Case(AUGMENT, "in.arrow"),
    "augment, CoNLL": Case(f"{AUGMENT} -t fing", "in.conll"),
    "augment, one file": Case("augment {0} -o {1}.jsonl --tagger rule --workers 1", "in.jsonl"),
    "preview": Case("preview {0}", "in.txt"),
    "calibrate": Case(
        "calibrate {0} --recipe fing --target-cer 0.01 --workers 1",
        "in.txt",
        2_000,
        "the texts, at most 20,000",
    ),
    "prepare": Case("prepare {0} -o {1} --workers 1", "in.txt"),
    "mine-wiki": Case("mine-wiki {0} -o {1} --workers 1", "in.xml"),
    "mine-lang8, Lang-8": Case("mine-lang8 {0} -o {1} --workers 1", "in.lang8"),
    "mine-lang8, M2": Case("mine-lang8 {0} -o {1} --workers 1", "in.m2"),
    "mine-pairs": Case("mine-pairs {0} -o {1} --workers 1", "pairs.tsv", 20_000),
    "dictionary show": Case("dictionary show {0}", "mined", holds="the entries"),
    "dictionary merge": Case("dictionary merge {0} {0} -o {1}.tsv", "mined", holds="the entries"),
    "learn": Case(
        "learn {0} -o {1} --workers 1", "pairs.tsv", 3_000, f"{ALL_PAIRS}, and the forms of words"
    ),
    "realism": Case(
        "realism --pairs {0} --synthetic {0} --limit 500 --workers 1", "pairs.tsv", holds=ALL_PAIRS
    ),
    "train": Case(
        "train {0}/pairs.tsv -o {1} --teacher {0}/model --recipe stored --steps 20 "
        "--set batch_tokens=512 --set validation_rows=100",
        "lesson",
        2_000,
    ),
    "evaluate": Case(
        "evaluate {0}/model -o {1} --pairs {0}/pairs.tsv --limit 500 --no-hard", "lesson", 2_000
    ),
    "stats": Case("stats {0}", "run"),
    "review make": Case("review make {0} -o {1}.sqlite -t fing --strengths 0.1,0.2", "in.txt"),
    "review report": Case("review report {0}", "review.sqlite"),
}


def results(rows: int) -> Iterator[Result]:
    """Measure every case once; the huge inputs repeat after `rows` sentences."""
    yield from _huge(rows)
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        for name, case in CASES.items():
            yield measured(name, case, Path(folder))


def measured(name: str, case: Case, folder: Path) -> Result:
    """Return the peak of a command on ten times its input, against that on its input."""
    peaks, failures = [], []
    for rows in (case.rows, TIMES * case.rows):
        source = written(folder, case.source, rows)
        with tempfile.TemporaryDirectory(dir=folder) as out:
            used, failure = peak(*case.command.format(source, f"{out}/out").split())
        peaks.append(used)
        failures.append(failure)
    failure = next(filter(None, failures), "")
    small, large = peaks
    target = Target("<", MEGABYTES, "ours") if case.holds else Target("<", GROWTH)
    over = f"over {MEGABYTES} MB" if large >= MEGABYTES else ""
    note = failure or over or (case.holds and f"holds {case.holds}")
    return Result(
        name, large, small, "MB", f"{case.rows:,} rows", target, note, bool(failure or over)
    )


def _huge(rows: int) -> Iterator[Result]:
    """Measure `augment` on much text and on huge rows."""
    peaks: dict[str, float] = {}
    for name, (megabytes, one_row, options) in HUGE.items():
        with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
            source = write(Path(folder) / "in.txt", megabytes, rows, b" " if one_row else b"\n")
            out = source.with_name("out")
            command = f"augment {source} -o {out} --workers 1 --tagger rule".split()
            peaks[name], failure = peak(*command, *options)
        note = failure or f"{peaks[name] / peaks[BASE]:.2f} of the peak for {BASE}"
        yield Result(
            name,
            peaks[name],
            megabytes,
            "MB",
            "text in the input",
            Target("<", MEGABYTES, "ours"),
            note,
            bool(failure),
        )


def write(path: Path, megabytes: int, rows: int, end: bytes) -> Path:
    """Write so much text, a sentence a line or all in one."""
    block = end.join(text.encode() for text in inputs.texts(rows).to_pylist()) + end
    with path.open("wb") as file:
        left = megabytes * 1_000_000
        while left > 0:
            left -= file.write(block[:left])
    return path


def peak(*command: str) -> tuple[float, str]:
    """Return the peak of a command of noisegen in MB, and how it failed."""
    try:
        return child(("-m", "noisegen", *command, "--quiet")).megabytes, ""
    except ChildFailed as error:
        return error.usage.megabytes, str(error)


if __name__ == "__main__":
    report(results)
