"""Precomputed vectors are looked up by text; pages of mapped files are released."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from text_stores import write_texts

from noisegen.encoders.encoder import Encoder, open_encoder
from noisegen.encoders.stored import open_vectors, release_pages
from noisegen.errors import SourceError
from noisegen.training.stores import TeacherVectors

TEXTS = ["one", "two words", "", " three ", "vier", "пять", "six\rseven", "the last"]


def written(folder, texts, vectors, end="\n"):
    np.save(folder / "v.npy", vectors)
    (folder / "v.txt").write_bytes("".join(f"{text}{end}" for text in texts).encode())
    return folder / "v.npy"


def some_vectors(rows, width=3, kind=np.float32):
    return np.random.Generator(np.random.PCG64(5)).normal(size=(rows, width)).astype(kind)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_texts_find_their_vectors_in_any_order(tmp_path, kind, end):
    vectors = some_vectors(len(TEXTS), kind=kind)
    encoder = open_vectors(written(tmp_path, TEXTS, vectors, end))
    order = [4, 0, 7, 2, 2, 6, 5, 3, 1]
    found = encoder.encode([TEXTS[row] for row in order])
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, vectors[order].astype(np.float32))


def test_thousands_of_texts_are_as_a_dictionary_gives_them(tmp_path, demo_texts):
    texts = [f"{text} {copy}" for copy in range(12) for text in demo_texts]
    vectors = some_vectors(len(texts))
    known = {}
    for text, vector in zip(texts, vectors, strict=True):
        known.setdefault(text, vector)
    found = open_vectors(written(tmp_path, texts, vectors)).encode(texts[::-1])
    np.testing.assert_array_equal(found, [known[text] for text in texts[::-1]])


def test_a_file_reads_as_other_text_files_do(tmp_path):
    path = written(tmp_path, TEXTS[:2], some_vectors(2), "\r\n")
    content = (tmp_path / "v.txt").read_bytes()
    (tmp_path / "v.txt").write_bytes(b"\xef\xbb\xbf" + content.rstrip())
    assert open_vectors(path).encode(TEXTS[:2]).shape == (2, 3)


def test_of_a_text_with_several_vectors_the_first_counts(tmp_path):
    vectors = some_vectors(4_000)
    encoder = open_vectors(written(tmp_path, ["a", "b"] * 2_000, vectors))
    np.testing.assert_array_equal(encoder.encode(["b", "a"]), vectors[[1, 0]])


def test_texts_without_a_vector_are_counted_and_the_first_is_named(tmp_path):
    encoder = open_vectors(written(tmp_path, TEXTS, some_vectors(len(TEXTS))))
    long = "z" * 500
    with pytest.raises(SourceError, match=r"v\.txt lacks 2 of 3 texts, the first is 'z{60}\.\.\.'"):
        encoder.encode(["one", long, "nothing"])
    with pytest.raises(SourceError, match="lacks 1 of 1"):
        encoder.encode(["half \ud83d"])


def test_an_empty_file_has_no_texts(tmp_path):
    encoder = open_vectors(written(tmp_path, [], some_vectors(0)))
    assert encoder.encode([]).shape == (0, 3)
    with pytest.raises(SourceError, match="lacks 1 of 1"):
        encoder.encode(["a"])


def test_it_is_an_encoder_that_a_spec_opens_and_the_digest_names_the_content(tmp_path):
    vectors = some_vectors(len(TEXTS))
    path = written(tmp_path, TEXTS, vectors)
    encoder = open_encoder(f"npy:{path}")
    assert isinstance(encoder, Encoder)
    assert (encoder.name, encoder.width) == (f"npy:{path}", 3)
    told = []
    encoder.encode(TEXTS * 2_000, told.append)
    assert sum(told) == 2_000 * len(TEXTS)
    before = encoder.digest
    assert open_vectors(path).digest == before
    written(tmp_path, TEXTS[::-1], vectors)
    assert open_vectors(path).digest != before


def test_memory_is_an_index_and_not_the_texts_or_vectors(tmp_path):
    rows = 50_000
    texts = [f"text number {row} " * 20 for row in range(rows)]
    path = written(tmp_path, texts, np.zeros((rows, 256), np.float16))
    del texts
    tracemalloc.start()
    encoder = open_vectors(path)
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert encoder.width == 256
    assert kept < 30 * rows
    assert most < 120 * rows


def test_a_vector_that_is_no_number_is_named(tmp_path):
    vectors = some_vectors(4)
    vectors[2, 1] = np.nan
    encoder = open_vectors(written(tmp_path, ["a", "b", "c", "d"], vectors))
    assert encoder.encode(["a", "d"]).shape == (2, 3)
    with pytest.raises(SourceError, match="row 3 is not finite"):
        encoder.encode(["a", "c"])


def test_arrays_of_objects_are_not_executed(tmp_path):
    np.save(tmp_path / "v.npy", np.array([{"a": 1}], object), allow_pickle=True)
    (tmp_path / "v.txt").write_text("a\n")
    with pytest.raises(SourceError, match="cannot read"):
        open_vectors(tmp_path / "v.npy")


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (some_vectors(3), r"3 vectors, but .*v\.txt has 2 lines"),
        (some_vectors(2).astype(np.float64), r"float64 of shape \(2, 3\)"),
        (some_vectors(2)[:, 0], r"float32 of shape \(2,\)"),
        (np.zeros((2, 0), np.float32), r"shape \(2, 0\)"),
    ],
)
def test_files_that_do_not_fit_are_one_clear_line(tmp_path, vectors, message):
    with pytest.raises(SourceError, match=message) as caught:
        open_vectors(written(tmp_path, ["a", "b"], vectors))
    assert "\n" not in str(caught.value)


def test_missing_or_damaged_files_are_one_clear_line(tmp_path):
    path = written(tmp_path, TEXTS, some_vectors(len(TEXTS)))
    content = path.read_bytes()
    for wrong in (b"", content[:30], content[:-9], b"no array at all"):
        path.write_bytes(wrong)
        with pytest.raises(SourceError, match=r"cannot read .*v\.npy"):
            open_vectors(path)
    path.write_bytes(content)
    (tmp_path / "v.txt").unlink()
    with pytest.raises(SourceError, match=r"with its texts v\.txt"):
        open_vectors(path)
    with pytest.raises(SourceError, match="cannot read"):
        open_vectors(tmp_path)


def test_an_archive_of_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "v.npz", a=some_vectors(1))
    (tmp_path / "v.txt").write_text("a\n")
    with pytest.raises(SourceError, match="an archive"):
        open_vectors(tmp_path / "v.npz")


STATUS = Path("/proc/self/status")
MEGABYTES = 48


def of_files():
    """Return the megabytes of files that count as memory of this process."""
    if not STATUS.exists():
        pytest.skip("only Linux says so")
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("RssFile"))
    return int(line.split()[1]) / 1000


@pytest.fixture(scope="module")
def vectors_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "vectors.npy"
    rows = np.tile(np.arange(500, dtype=np.float16), (MEGABYTES * 1_000, 1))
    np.save(path, rows)
    return path


@pytest.fixture
def vectors(vectors_file):
    return np.load(vectors_file, mmap_mode="r")


def test_pages_that_were_read_are_given_back(vectors):
    before = of_files()
    total = float(vectors.astype(np.float32).sum())
    read = of_files()
    release_pages(vectors)

    assert read - before > 0.8 * MEGABYTES
    assert of_files() - before < 0.2 * MEGABYTES
    assert float(vectors.astype(np.float32).sum()) == total


def test_vectors_and_texts_that_were_taken_leave_nothing_in_memory(vectors, tmp_path):
    stored = TeacherVectors([vectors])
    texts = write_texts(tmp_path, "text", (f"{number} " * 600 for number in range(8_000)))
    before = of_files()
    rows = np.arange(0, 4_000, 7)

    assert (stored.take(rows) == vectors[rows]).all()
    assert texts.take(np.arange(8_000))[7_999].as_py() == "7999 " * 600
    stored.take(rows[:1])
    assert of_files() - before < 0.2 * MEGABYTES


def test_an_array_in_memory_is_left_alone():
    array = np.ones(3)
    release_pages(array)
    assert array.sum() == 3


def test_freed_memory_between_what_is_kept_goes_back_to_the_system():
    code = """if 1:
        from noisegen.encoders.stored import release_memory
        def resident():
            return int(open("/proc/self/statm").read().split()[1])
        blocks = [bytes(100_000) for _ in range(2_000)]
        kept = blocks[::20]
        del blocks
        before = resident()
        release_memory()
        print(resident() / before)
    """
    given = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "33554432"}  # as glibc has it in long runs
    found = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True)
    assert float(found.stdout) < 0.5
