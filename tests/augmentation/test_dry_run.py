"""Estimates: rows by bytes, samples that take about a second, and dry runs of commands."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli.mining_inputs import dump
from source_files import on_stdin

from noisegen.augmentation import Request
from noisegen.augmentation import dry_run as module
from noisegen.augmentation.dry_run import Sample, count_rows, estimate, sampled
from noisegen.cli import run
from noisegen.runs.estimate import RunEstimate


@dataclass
class Part:
    rows: int
    size: int


def test_rows_are_counted_where_a_second_is_enough_for_all():
    assert count_rows([Part(10, 100), Part(5, 60)], 160) == (15, True)


def test_rows_are_estimated_from_whole_blocks(monkeypatch):
    """A block of 1,000 bytes holds 25 rows: the parts after the first come of the same bytes."""
    clock = iter(range(1_000))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(module, "SAMPLE_SECONDS", 7.5)
    parts = (Part(10, 1_000 if number in (0, 2, 5) else 0) for number in range(100))
    rows, exact = count_rows(parts, 1_000_000)
    assert not exact
    assert rows == 25_000  # 50 rows in the 2,000 bytes before the third block, of a million


def test_a_sample_takes_about_a_second_or_all_there_is():
    asked = []

    def run_on(rows):
        asked.append(rows)
        return Sample(rows, rows, 8 * rows, 0.1 + rows / 20_000)

    sample, start = sampled(run_on, 1_000_000)
    assert (asked[0], start) == (100, pytest.approx(0.105))
    assert 0.5 < sample.seconds < 1.5
    assert sampled(run_on, 30)[0].rows == 30


def test_an_estimate_scales_the_sample_to_all_workers(monkeypatch):
    clock = iter([0.0, 0.1, 0.1, 2.1])  # of starting, of the sample
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(clock))

    def run_on(out, rows, copies):
        (Path(out) / "data").mkdir()
        (Path(out) / "data" / "part-00000.parquet").write_bytes(bytes(50 * rows))
        return SimpleNamespace(totals={"rows_in": rows, "rows": 2 * rows})

    request = Request("in.txt", limit=100_000, rows_per_shard=10_000)
    made = estimate([Part(150_000, 10)], 10, run_on, request, workers=4)
    assert (made.input, made.made, made.bytes, made.shards) == (100_000, 200_000, 5_000_000, 10)
    assert made.seconds == pytest.approx(0.1 + 25)
    assert made.lines() == [
        "input     100,000 rows",
        "output    about 200,000 rows in 10 shards, 5.0 MB",
        "time      about 25 s (4 workers, 1,000 rows/s each)",
    ]


def test_a_rate_below_one_is_not_zero():
    made = RunEstimate(2, "rows", True, 2_000, "rows", 1, 60_000, 12.0, 1, 0.16721)
    assert made.lines()[-1].endswith("(1 worker, 0.167 rows/s each)")


def test_an_estimate_of_bytes_says_bytes():
    made = RunEstimate(
        7_200_000_000, "bytes", True, 123_456, "pairs", 1, 9_000_000, 3_700.0, 1, 2e6
    )
    assert made.lines() == [
        "input     7.2 GB",
        "output    about 123,000 pairs in 1 shard, 9.0 MB",
        "time      about 1 h 1 min (1 worker, 2.0 MB/s each)",
    ]


# Dry runs, which write nothing.


@pytest.fixture
def sentences(tmp_path, demo_texts) -> list[str]:
    return [f"{text} ({number})" for number, text in enumerate(list(demo_texts)[:60] * 25)]


def dry(capfd, *words) -> dict:
    code = run([*map(str, words), "--dry-run", "--json"])
    shown = capfd.readouterr()
    assert (code, shown.err) == (0, "")
    return json.loads(shown.out)["estimate"]


@pytest.mark.parametrize("ending", ["txt", "txt.gz"])
def test_a_dry_run_of_augment_says_what_the_run_makes(tmp_path, sentences, capfd, ending):
    source, out = tmp_path / f"clean.{ending}", tmp_path / "out"
    opened = gzip.open if ending == "txt.gz" else open
    with opened(source, "wt") as file:
        file.write("\n".join(sentences))
    words = [
        "augment",
        source,
        "-o",
        out,
        "-t",
        "fing",
        "--rows-per-shard",
        "400",
        "--workers",
        "1",
    ]
    said = dry(capfd, *words)
    assert not out.exists()
    assert run([*map(str, words), "-q"]) == 0
    shards = sorted((out / "data").iterdir())
    assert (said["input"], said["made"], said["shards"]) == (1_500, 1_500, len(shards))
    assert said["bytes"] == pytest.approx(sum(map(size_of, shards)), rel=0.1)
    assert 0 < said["seconds"] < 60


def test_a_dry_run_of_one_file_has_no_shards(tmp_path, capfd):
    source, out = tmp_path / "one.txt", tmp_path / "noisy.jsonl"
    source.write_text("see you\n")
    assert run(["augment", str(source), "-o", str(out), "-t", "fing", "--dry-run"]) == 0
    shown = capfd.readouterr().out
    assert "input     1 row\noutput    about 1 row, " in shown
    assert not out.exists()
    assert run(["augment", str(source), "-o", f"{out}.zip", "-t", "fing", "--dry-run"]) == 2
    assert run(["augment", str(source), "-t", "fing", "--dry-run"]) == 0
    assert "about 1 row in 1 shard, " in capfd.readouterr().out


def size_of(path: Path) -> int:
    return path.stat().st_size


def test_a_dry_run_of_a_stream_says_that_nothing_is_known(tmp_path, capfd, monkeypatch):
    on_stdin(monkeypatch, b"one\ntwo\n")
    assert run(["augment", "-", "-t", "fing", "--dry-run"]) == 0
    assert "input     of unknown size" in capfd.readouterr().out


def test_a_dry_run_of_mine_wiki_says_what_the_run_makes(tmp_path, sentences, capfd):
    source, out = tmp_path / "enwiki.xml", tmp_path / "out"
    texts = [wrong for text in sentences[:60] for wrong in (text.replace("the ", "teh "), text)]
    source.write_text(dump(*texts))
    words = ["mine-wiki", source, "-o", out, "--workers", "1", "--profile", "all"]
    said = dry(capfd, *words)
    assert not out.exists()
    assert run([*map(str, words), "-q", "--json"]) == 0
    pairs = json.loads(capfd.readouterr().out)["pairs"]
    assert pairs > 10
    assert (said["input"], said["made"], said["shards"]) == (source.stat().st_size, pairs, 1)
    assert said["seconds"] > 0


@pytest.mark.parametrize("name", ["prepare", "mine-pairs"])
def test_a_dry_run_of_others_says_what_is_read_and_written(tmp_path, capfd, name):
    source, out = tmp_path / "pairs.tsv", tmp_path / "out"
    source.write_text("noisy\tclean\ttext\nsee yuo\tsee you\tsee you\n")
    words = [name, str(source), "-o", str(out), "--dry-run"]
    assert run(words) == 0
    assert capfd.readouterr().out == (
        f"input     1 file, {source.stat().st_size} B\noutput    {out}\nnothing is written\n"
    )
    assert run([*words, "--json"]) == 0
    said = {"inputs": 1, "bytes": source.stat().st_size, "out": str(out)}
    assert json.loads(capfd.readouterr().out) == said
    assert not out.exists()


def test_a_dry_run_of_many_copies_makes_few(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_SECONDS", 0.1)
    source = tmp_path / "one.txt"
    source.write_text("see you tomorrow\n" * 30)
    words = ["augment", source, "-o", tmp_path / "out", "-t", "fing", "--copies"]
    few, many = (dry(capfd, *words, copies) for copies in (1_000, 1_000_000))

    assert (many["input"], many["made"]) == (30, 30_000_000)
    assert many["bytes"] == pytest.approx(1_000 * few["bytes"], rel=0.5)
    assert 0 < many["rate"] < few["rate"]
