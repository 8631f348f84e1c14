"""Bytes of input files as they lie, counted while they are read: compressed, plain and Parquet."""

import bz2
import gzip
import lzma
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from noisegen.data import decoders
from noisegen.data.decoders import salvage
from noisegen.data.files import count_bytes, metered, with_bytes
from noisegen.data.lines import read_parts
from noisegen.data.rows import Columns
from noisegen.data.sources import expand, shard_ranges, total_size

LINES = [random.Random(number).randbytes(32).hex() for number in range(20_000)]
TEXT = "\n".join(LINES).encode() + b"\n"
PACKED = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


@pytest.fixture(scope="module", params=PACKED)
def packed(request, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("packed") / f"text.txt{request.param}"
    path.write_bytes(PACKED[request.param](TEXT))
    return path


def test_reading_to_the_end_counts_the_whole_file(packed):
    with metered() as meter:
        assert b"".join(read_parts(packed)) == TEXT
    assert meter["bytes"] == packed.stat().st_size


def test_a_dump_counts_what_is_read_so_far(packed, monkeypatch):
    monkeypatch.setattr(decoders, "CHUNK", 100_000)
    with metered() as meter:
        seen = [meter["bytes"] for _ in salvage(packed, print)]
    assert seen == sorted(seen)
    assert seen[-1] == packed.stat().st_size
    if packed.suffix != ".bz2":  # whose blocks hold 900 kB
        assert seen[0] < seen[-1]


def test_an_inner_meter_keeps_what_it_counts_and_without_one_nothing_is_counted():
    count_bytes(5)
    with metered() as outer:
        count_bytes(1)
        with metered() as inner:
            count_bytes(2)
    assert (outer["bytes"], inner["bytes"]) == (1, 2)


def test_items_come_with_the_bytes_that_were_read_for_them():
    def items():
        for number in (3, 0, 4):
            count_bytes(number)
            yield f"item {number}"

    assert list(with_bytes(items())) == [("item 3", 3), ("item 0", 0), ("item 4", 4)]


@pytest.mark.parametrize("rows", [7_000])
def test_the_shards_of_a_file_have_its_bytes(packed, rows):
    inputs = expand([str(packed)])
    parts = [part for (part,) in shard_ranges(inputs, Columns(), rows)]
    assert sum(part.rows for part in parts) == len(LINES)
    assert sum(part.size for part in parts) == total_size(inputs) == packed.stat().st_size


def test_the_shards_of_parquet_have_its_bytes_in_proportion_to_rows(tmp_path):
    path = tmp_path / "text.parquet"
    pq.write_table(pa.table({"text": LINES}), path)
    parts = [part for (part,) in shard_ranges(expand([str(path)]), Columns(), 5_000)]
    size = path.stat().st_size
    assert [part.size for part in parts] == [size // 4] * 4


def test_the_size_of_all_inputs_is_known_or_not(packed, monkeypatch):
    assert total_size(expand([str(packed), str(packed)])) == 2 * packed.stat().st_size
    assert total_size(expand([str(packed), "-"])) == 0
