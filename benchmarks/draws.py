"""Array draws against scalar draws: a new stream and seven draws for every row."""

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import Result, best, cpu, report
from noisegen.noising.rng import Draws, draw_array, row_key, row_keys, stream_key
from noisegen.text.buffers import U64

DRAWS = 7
STREAM = stream_key(7, "fing")


def scalar(rows: int) -> list[int]:
    """Return the draws of all rows, one row after another."""
    streams = (Draws(row_key(STREAM, row)) for row in range(rows))
    return [stream.integer() for stream in streams for _ in range(DRAWS)]


def array(rows: int) -> U64:
    """Return the same draws at once."""
    keys = row_keys(STREAM, np.arange(rows, dtype=np.uint64))
    return draw_array(np.repeat(keys, DRAWS), np.tile(np.arange(DRAWS), rows))


def results(rows: int) -> Iterator[Result]:
    """Measure both forms and check that they agree."""
    seconds = best({"array": cpu(lambda: array(rows)), "scalar": cpu(lambda: scalar(rows))})
    micros = {name: value / rows * 1e6 for name, value in seconds.items()}
    differ = scalar(1_000) != array(1_000).tolist()
    note = f"{DRAWS} draws a row, bits {'DIFFER' if differ else 'equal'}"
    yield Result(
        "array draws",
        micros["array"],
        micros["scalar"],
        "us/row",
        "scalar draws",
        note=note,
        failed=differ,
    )


if __name__ == "__main__":
    report(results)
