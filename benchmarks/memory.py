"""Peak memory of `noisegen augment` on 50, 200 and 800 MB of text: under 1 GB, and flat."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import inputs
from benchmarks.measure import Result, Target, child, report

BASE = "50 MB of text"
CASES = {  # megabytes of text, whether in one row, options
    BASE: (50, False, ()),
    "200 MB of text": (200, False, ()),
    "800 MB of text": (800, False, ()),
    "50 MB of text, fing:rate=1": (50, False, ("-t", "fing:rate=1")),
    "one row of 10 MB": (10, True, ()),
    "one row of 10 MB, fing:rate=1": (10, True, ("-t", "fing:rate=1")),
}


def results(rows: int) -> Iterator[Result]:
    """Measure every case once; the sentences repeat after `rows`."""
    peaks: dict[str, float] = {}
    for name, (megabytes, one_row, options) in CASES.items():
        with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
            source = write(Path(folder) / "in.txt", megabytes, rows, b" " if one_row else b"\n")
            peaks[name] = peak(source, options)
        note = "" if name == BASE else f"peak {peaks[name] / peaks[BASE]:.2f} of that for {BASE}"
        target = Target("<", 1000, "ours")
        yield Result(name, peaks[name], megabytes, "MB", "text in the input", target, note)


def write(path: Path, megabytes: int, rows: int, end: bytes) -> Path:
    """Write so much text, a sentence a line or all in one."""
    block = end.join(text.encode() for text in inputs.texts(rows).to_pylist()) + end
    with path.open("wb") as file:
        left = megabytes * 1_000_000
        while left > 0:
            left -= file.write(block[:left])
    return path


def peak(source: Path, options: tuple[str, ...]) -> float:
    """Return the peak memory of a run with one worker and the rule tagger, in MB."""
    out = str(source.with_name("out"))
    command = ("-m", "noisegen", "augment", str(source), "-o", out, "--workers", "1", "--quiet")
    return child((*command, "--tagger", "rule", *options)).megabytes


if __name__ == "__main__":
    report(results)
