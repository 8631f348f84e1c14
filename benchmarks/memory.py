"""Peak memory of `noisegen augment` on 50, 200 and 800 MB of text: under 1 GB, and flat."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import inputs
from benchmarks.measure import ChildFailed, Result, Target, child, report

BASE = "50 MB of text"
CASES = {  # megabytes of text, whether in one row, options
    BASE: (50, False, ()),
    "200 MB of text": (200, False, ()),
    "800 MB of text": (800, False, ()),
    "50 MB of text, fing:rate=1": (50, False, ("-t", "fing:rate=1")),
    "one row of 10 MB": (10, True, ()),
    "one row of 10 MB, fing:rate=1": (10, True, ("-t", "fing:rate=1")),
    "one row of 30 MB, fing:rate=0.1": (30, True, ("-t", "fing:rate=0.1")),
}


def results(rows: int) -> Iterator[Result]:
    """Measure every case once; the sentences repeat after `rows`."""
    peaks: dict[str, float] = {}
    for name, (megabytes, one_row, options) in CASES.items():
        with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
            source = write(Path(folder) / "in.txt", megabytes, rows, b" " if one_row else b"\n")
            peaks[name], failure = peak(source, options)
        note = failure or f"{peaks[name] / peaks[BASE]:.2f} of the peak for {BASE}"
        yield Result(name, peaks[name], megabytes, "MB", "text in the input",
                     Target("<", 1000, "ours"), note, bool(failure))  # fmt: skip


def write(path: Path, megabytes: int, rows: int, end: bytes) -> Path:
    """Write so much text, a sentence a line or all in one."""
    block = end.join(text.encode() for text in inputs.texts(rows).to_pylist()) + end
    with path.open("wb") as file:
        left = megabytes * 1_000_000
        while left > 0:
            left -= file.write(block[:left])
    return path


def peak(source: Path, options: tuple[str, ...]) -> tuple[float, str]:
    """Return the peak of a run with one worker and the rule tagger in MB, and how it failed."""
    out = str(source.with_name("out"))
    command = ("-m", "noisegen", "augment", str(source), "-o", out, "--workers", "1", "--quiet")
    try:
        return child((*command, "--tagger", "rule", *options)).megabytes, ""
    except ChildFailed as error:
        return error.usage.megabytes, str(error)


if __name__ == "__main__":
    report(results)
