"""Containers: the same bytes from all of them, and what is left of damaged ones."""

import bz2
import gzip
import lzma
import random
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from noisegen.data import bzip2, decoders, seven_zip
from noisegen.data.bzip2 import BLOCK, bit_positions
from noisegen.data.decoders import first_bytes, salvage
from noisegen.data.files import Damaged
from noisegen.data.lines import read_parts
from noisegen.data.tables import read_lines
from noisegen.errors import MissingExtra, SourceError


def random_text(size, seed=1):
    dice = random.Random(seed)
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randrange(2, 9))) for _ in range(4000)]
    return " ".join(dice.choices(words, k=size // 6)).encode()[:size]


@pytest.fixture(scope="module")
def data():
    return random_text(2_500_000)


@pytest.fixture
def read(tmp_path):
    """Write a file and return its bytes as decoded, with the notes."""

    def write_and_read(name, content):
        (tmp_path / name).write_bytes(content)
        notes = []
        return b"".join(salvage(tmp_path / name, notes.append)), notes

    return write_and_read


def seven(content, tmp_path, **options):
    py7zr = pytest.importorskip("py7zr")
    with py7zr.SevenZipFile(tmp_path / "made.7z", "w", **options) as archive:
        archive.writestr(content, "dump.xml")
    return (tmp_path / "made.7z").read_bytes()


def filters(name):
    py7zr = pytest.importorskip("py7zr")
    return {"filters": [{"id": getattr(py7zr, name), "preset": 1}]}


def test_every_container_gives_the_same_bytes(read, data, tmp_path):
    half = len(data) // 2
    files = {
        "a.xml": data,
        "a.bz2": bz2.compress(data),
        "multi.bz2": bz2.compress(data[:half]) + bz2.compress(b"") + bz2.compress(data[half:], 1),
        "a.gz": gzip.compress(data),
        "multi.gz": gzip.compress(data[:half]) + gzip.compress(data[half:]) + b"\0" * 512,
        "a.xz": lzma.compress(data, preset=0),
        "multi.xz": lzma.compress(data[:half], preset=0) + lzma.compress(data[half:], preset=0),
        "a.zst": pa.compress(data, "zstd", asbytes=True),
        "lzma2.7z": seven(data, tmp_path, **filters("FILTER_LZMA2")),
        "lzma.7z": seven(data, tmp_path, **filters("FILTER_LZMA")),
    }
    for name, content in files.items():
        assert read(name, content) == (data, []), name


def test_the_kind_is_in_the_content_where_the_ending_says_nothing(read, data):
    assert read("dump.part1", bz2.compress(data[:1000])) == (data[:1000], [])


@pytest.mark.parametrize("size", [0, 1, 100, 700_000])
def test_bzip2_of_any_size(read, data, size):
    assert read("a.bz2", bz2.compress(data[:size])) == (data[:size], [])


def test_blocks_may_begin_at_any_bit(data):
    compressed = bz2.compress(data, 1)  # blocks of 100 kB

    assert {position % 8 for position in bit_positions(compressed, BLOCK)} == set(range(8))


def test_bit_positions_are_those_of_a_search_in_the_bits():
    dice = random.Random(3)
    magic = "".join(f"{byte:08b}" for byte in BLOCK)
    for _ in range(200):
        bits = "".join(dice.choice("01") for _ in range(dice.randrange(400)))
        for _ in range(dice.randrange(4)):
            at = dice.randrange(len(bits) + 1)
            bits = bits[:at] + magic + bits[at:]
        bits += "0" * (-len(bits) % 8)
        found, at = [], bits.find(magic)
        while at >= 0:
            found.append(at)
            at = bits.find(magic, at + 1)
        packed = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
        assert bit_positions(packed, BLOCK) == found


def test_bzip2_is_read_in_small_pieces_too(data):
    compressed = bz2.compress(data[:400_000], 1) + bz2.compress(data[400_000:600_000], 1)
    pieces = (compressed[i : i + 5] for i in range(0, len(compressed), 5))

    assert b"".join(bzip2.decode_bzip2(pieces, pytest.fail)) == data[:600_000]


@pytest.mark.parametrize("victim", range(6))
def test_a_damaged_block_costs_itself_only(tmp_path, data, victim):
    compressed = bytearray(bz2.compress(data[:550_000], 1))
    starts = [*bit_positions(bytes(compressed), BLOCK), 8 * len(compressed)]
    assert len(starts) == 7
    middle = (starts[victim] + starts[victim + 1]) // 16
    compressed[middle] ^= 0x55
    (tmp_path / "a.bz2").write_bytes(compressed)
    notes = []

    parts = list(salvage(tmp_path / "a.bz2", notes.append))

    before, after = b"".join(parts[: parts.index(b"")]), b"".join(parts[parts.index(b"") :])
    assert notes == ["a damaged block was left out"]
    assert parts.count(b"") == 1
    assert data.startswith(before)
    assert data[:550_000].endswith(after)
    assert 0 < 550_000 - len(before) - len(after) <= 100_000


@pytest.mark.parametrize("name", ["a.bz2", "a.gz", "a.xz", "a.zst", "a.7z"])
def test_what_comes_before_a_cut_is_kept(read, data, tmp_path, name):
    make = {
        "bz2": lambda: bz2.compress(data, 1),
        "gz": lambda: gzip.compress(data),
        "xz": lambda: lzma.compress(data, preset=0),
        "zst": lambda: pa.compress(data, "zstd", asbytes=True),
        "7z": lambda: seven(data, tmp_path, **filters("FILTER_LZMA2")),
    }[name[2:]]
    content = make()

    found, notes = read(name, content[: len(content) // 2])

    assert notes == ["truncated"]
    assert data.startswith(found)
    assert len(found) > len(data) // 2 - 300_000


@pytest.mark.parametrize("compress", [bz2.compress, gzip.compress, lzma.compress])
def test_garbage_after_the_end_is_told(read, data, compress):
    found, notes = read("a", compress(data[:300_000]) + b"\0" * 40 + b"garbage")

    assert (found, notes) == (data[:300_000], ["trailing garbage was left out"])


def test_damage_ends_a_stream_with_what_was_decoded(read, data):
    for name, content in (("a.gz", gzip.compress(data)), ("a.xz", lzma.compress(data, preset=0))):
        damaged = bytearray(content)
        damaged[len(damaged) // 2 : len(damaged) // 2 + 40] = b"\xff" * 40

        found, notes = read(name, bytes(damaged))

        assert len(notes) == 1, name
        assert notes[0].startswith("damaged, the rest was left out"), name
        assert found[: len(data) // 3] == data[: len(data) // 3], name


def test_a_file_that_is_empty_or_not_what_it_says(tmp_path):
    (tmp_path / "a.bz2").write_bytes(b"")
    (tmp_path / "b.7z").write_bytes(b"no archive")

    with pytest.raises(SourceError, match=r"a\.bz2: the file is empty"):
        next(salvage(tmp_path / "a.bz2", pytest.fail))
    with pytest.raises(SourceError, match=r"b\.7z: this is not a 7-Zip file"):
        next(salvage(tmp_path / "b.7z", pytest.fail))
    with pytest.raises(SourceError, match=r"cannot read .*gone"):
        next(salvage(tmp_path / "gone", pytest.fail))


def test_a_bomb_is_left(read, monkeypatch):
    monkeypatch.setattr(decoders, "UNBOUNDED_BYTES", 1 << 20)
    monkeypatch.setattr(decoders, "UNBOUNDED_RATIO", 100)

    found, notes = read("a.gz", gzip.compress(bytes(50 << 20)))

    assert len(found) < 6 << 20
    assert notes == ["expands more than 100 times; the rest was left out"]


def test_an_archive_of_several_members_is_read_one_after_the_other(tmp_path, data):
    py7zr = pytest.importorskip("py7zr")
    path = tmp_path / "a.7z"
    with py7zr.SevenZipFile(path, "w") as archive:
        archive.writestr(data[:1000], "folder/one.xml")
        archive.writestr(b"", "empty.xml")
        archive.writestr(data[1000:2000], "two.xml")
    notes = []

    assert b"".join(salvage(path, notes.append)) == data[:2000]
    assert notes == []
    assert sorted(tmp_path.iterdir()) == [path]


def test_an_archive_of_another_method_needs_a_program(read, data, tmp_path, monkeypatch):
    content = seven(data, tmp_path, **filters("FILTER_BZIP2"))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SourceError, match="only a 7-Zip program"):
        read("a.7z", content)


@pytest.mark.parametrize("more", [0, 1])
def test_a_7z_archive_that_its_directory_does_not_describe(read, data, tmp_path, monkeypatch, more):
    content = seven(data, tmp_path, **filters("FILTER_LZMA2"))
    real = seven_zip.read_directory
    changed = lambda path: (*real(path)[:2], [(len(data) + more, 1)])  # noqa: E731
    monkeypatch.setattr(seven_zip, "read_directory", changed)

    found, notes = read("a.7z", content)

    assert found == data
    assert notes == ["damaged, the rest was left out (the checksum differs)"]


def test_damage_within_an_archive_keeps_what_comes_before(read, data, tmp_path):
    for name in ("FILTER_LZMA2", "FILTER_LZMA"):
        content = bytearray(seven(data, tmp_path, **filters(name)))
        middle = len(content) // 2
        content[middle : middle + 2_000] = bytes(2_000)

        found, notes = read("a.7z", bytes(content))

        assert len(notes) == 1, name
        assert notes[0].startswith("damaged, the rest was left out"), name
        assert found[: len(data) // 3] == data[: len(data) // 3], name


def test_without_a_decoder_of_7z_the_package_is_named(read, data, tmp_path, monkeypatch):
    content = seven(data[:1000], tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "py7zr", None)

    with pytest.raises(MissingExtra, match="py7zr"):
        read("a.7z", content)


def test_a_program_is_ended_with_its_reader(tmp_path, monkeypatch):
    program = tmp_path / "7zz"
    program.write_text(f"#!{sys.executable}\nwhile True: print('x' * 100_000)\n")
    program.chmod(0o755)
    (tmp_path / "a.7z").write_bytes(decoders.MAGICS["7z"])
    monkeypatch.setenv("PATH", str(tmp_path))

    assert first_bytes(tmp_path / "a.7z").startswith(b"xxx")


@pytest.mark.parametrize("code", [0, 2])
def test_a_program_is_used_where_there_is_one(read, data, tmp_path, monkeypatch, code):
    (tmp_path / "content").write_bytes(data)
    program = tmp_path / "7zz"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"assert sys.argv[1:4] == ['e', '-so', '-bd']\n"
        f"sys.stdout.buffer.write(open({str(tmp_path / 'content')!r}, 'rb').read())\n"
        f"sys.stdout.flush()\nsys.exit({code})\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "py7zr", None)

    found, notes = read("a.7z", decoders.MAGICS["7z"] + b"anything")

    assert found == data
    assert notes == (["damaged, the rest was left out (7zz ended with 2)"] if code else [])


def test_the_first_bytes_are_those_of_the_file(tmp_path, data):
    path = Path(tmp_path / "a.bz2")
    path.write_bytes(bz2.compress(data))

    head = first_bytes(path)

    assert data.startswith(head)
    assert 0 < len(head) < 1_000_000


@pytest.mark.parametrize("cut", range(1, 16))
def test_a_cut_of_the_last_bytes_shows_and_costs_no_line_before_it(tmp_path, cut):
    path = tmp_path / "a.txt.bz2"
    path.write_bytes(bz2.compress(b"one\n" * 9) + bz2.compress(b"two\n")[:-cut])
    parts = []
    with pytest.raises(Damaged, match="truncated"):
        parts.extend(read_parts(path))
    assert b"".join(parts) in (b"one\n" * 9, b"one\n" * 9 + b"two\n")


@pytest.mark.parametrize("pack", [bz2.compress, gzip.compress, lzma.compress])
def test_text_after_the_end_of_a_compressed_file_is_damage(tmp_path, pack):
    ending = {bz2.compress: "bz2", gzip.compress: "gz"}.get(pack, "xz")
    (tmp_path / f"a.txt.{ending}").write_bytes(pack(b"one\ntwo\n") + b"garbage")
    lines = read_lines(read_parts(tmp_path / f"a.txt.{ending}"))
    assert [next(lines), next(lines)] == ["one", "two"]
    with pytest.raises(Damaged, match="garbage"):
        next(lines)


def zstd(*contents):
    """Frames of all kinds: with and without their size and checksum, of one byte, skippable."""
    frames = [pa.compress(content, "zstd", asbytes=True) for content in contents]
    return b"".join(frames) + b"\x53\x2a\x4d\x18\x03\0\0\0abc"


def archive(tmp_path, *contents):
    py7zr = pytest.importorskip("py7zr")
    for number, content in enumerate(contents):  # each in a folder of its own
        with py7zr.SevenZipFile(
            tmp_path / "made.7z", "a" if number else "w", **filters("FILTER_LZMA2")
        ) as made:
            made.writestr(content, f"{number}.xml")
    return (tmp_path / "made.7z").read_bytes()


def test_a_file_can_be_entered_where_its_format_allows_it(tmp_path, data):
    """What is read from one entry to the next adds up to the file, wherever it is cut."""
    data = data[:500_000]
    parts = [data[:140_000], data[140_000:140_001], data[140_001:400_000], data[400_000:]]
    packed = bz2.compress(data[:400_000], 1) + bz2.compress(b"") + bz2.compress(data[400_000:])
    contents = {
        "a.xml": data,
        "a.bz2": packed,
        "a.zst": zstd(*parts),
        "a.7z": archive(tmp_path, *parts),
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        for size in (9_991, 60_000):
            starts = decoders.entries(path, size)
            assert (starts[0], len(starts) > 1) == (0, True), (name, size)
            pieces = [
                b"".join(salvage(path, pytest.fail, start, stop))
                for start, stop in zip(starts, [*starts[1:], None], strict=True)
            ]
            assert b"".join(pieces) == data, (name, size)
    for name, content in {"b.gz": gzip.compress(data), "b.zst": contents["a.zst"][:9]}.items():
        (tmp_path / name).write_bytes(content)
        assert decoders.entries(tmp_path / name, 1) == [0], name
    assert decoders.entries(tmp_path / "a.bz2", len(packed)) == [0]


def test_damage_is_noted_once_wherever_bzip2_is_entered(tmp_path, data):
    compressed = bytearray(bz2.compress(data[:300_000], 1) + bz2.compress(data[300_000:800_000], 1))
    starts = [*bit_positions(bytes(compressed), BLOCK), 8 * len(compressed)]
    for victim in (1, 4, 6):
        compressed[(starts[victim] + starts[victim + 1]) // 16] ^= 255
    path = tmp_path / "a.bz2"
    for content in (compressed, compressed[:-100], compressed[:-4], compressed + b"garbage!"):
        path.write_bytes(content)
        notes = []
        whole = list(salvage(path, notes.append))
        for size in (10_007, 50_000):
            found, pieces = [], []
            begins = decoders.entries(path, size)
            for start, stop in zip(begins, [*begins[1:], None], strict=True):
                pieces += salvage(path, found.append, start, stop)
            assert b"".join(pieces) == b"".join(whole)
            assert found == notes
            assert pieces.count(b"") == whole.count(b"") == 3
