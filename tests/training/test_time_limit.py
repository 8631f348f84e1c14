"""A time limit counts everything: teacher's vectors, validation and saving too."""

import itertools
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Barrier

import numpy as np
import pytest
import torch
from runs import log_rows
from text_stores import write_texts
from training_runs import SHORT, settings

import noisegen
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import NoisegenError
from noisegen.training import clock as run_clock
from noisegen.training import stores, trainer
from noisegen.training.computation import Workers
from noisegen.training.distil import Distillation
from noisegen.training.stores import StoredTexts, TeacherVectors
from noisegen.training.summary import lines

LIMITED = settings(
    "lr=1e-4 recipe=stored objective=two_term+0.2*info_nce validate_every=50 batch_tokens=128"
)


@pytest.fixture
def train(tiny_bert, pairs_file):
    def run(out, limit, **values):
        options = {name: values.pop(name) for name in ("resume", "tell") if name in values}
        said = {"teacher": str(tiny_bert), **SHORT, **LIMITED, "time_limit": limit, **values}
        return noisegen.train(pairs_file, out, values=said, **options)

    return run


LOOK = 0.02  # seconds that a look at the clock takes


class Clock:
    """A clock that only looks and sleeps move, so that the load of a machine changes nothing.

    Everything takes `slower` times as long as on an idle machine, in the same CPU time.
    """

    now = cpu = 0.0
    slower = 1

    def monotonic(self):
        self.sleep(LOOK)
        return self.now

    perf_counter = monotonic

    def process_time(self):
        return self.cpu

    def sleep(self, seconds):
        self.now += seconds * self.slower
        self.cpu += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    for module in (run_clock, stores, trainer):
        monkeypatch.setattr(module, "time", made)
    return made


def slowed(monkeypatch, home, name, seconds, sleep):
    """Let each call of a function take longer, by the next number of seconds."""
    function, times = getattr(home, name), iter(seconds)
    monkeypatch.setattr(home, name, lambda *given: (sleep(next(times)), function(*given))[1])


@pytest.fixture
def slow_vectors(monkeypatch, clock):
    """Let vectors of the teacher take two seconds."""
    slowed(monkeypatch, StoredTexts, "vectors", itertools.repeat(2), clock.sleep)


def test_the_limit_counts_what_comes_before_and_after_training(
    train, tmp_path, slow_vectors, clock
):
    found = train(tmp_path / "run", 3, validate_every=1_000)

    assert 2 < clock.now < 3.1
    assert found["prepared"] > 2
    assert found["seconds"] == pytest.approx(clock.now, abs=0.1)


SLOW = [
    (trainer.Trainer, "update", itertools.repeat(0.9)),
    (Distillation, "validate", [0.2, 1.2, 1.2]),  # on a machine that others begin to use
    (trainer, "save_best", itertools.repeat(0.15)),
]


@pytest.mark.parametrize(("home", "name", "seconds"), SLOW)
def test_a_limit_holds_whatever_is_slow(train, tmp_path, monkeypatch, clock, home, name, seconds):
    slowed(monkeypatch, home, name, seconds, clock.sleep)
    if name == "save_best":  # so are a checkpoint, of three files of that size, and the student
        slowed(monkeypatch, trainer, "save_checkpoint", itertools.repeat(0.45), clock.sleep)
        slowed(monkeypatch, Distillation, "save", itertools.repeat(0.3), clock.sleep)
    train(tmp_path / "run", 3, validate_every=1_000)
    assert 1.5 < clock.now < 3.4


@pytest.mark.alone
def test_a_limit_holds_by_the_clock_on_the_wall(train, tmp_path):
    began = time.monotonic()
    train(tmp_path / "run", 3, validate_every=1_000)
    assert time.monotonic() - began < 3.4


@pytest.fixture
def small_blocks(monkeypatch):
    """Let blocks of vectors have 40 texts."""
    monkeypatch.setattr(stores, "BLOCK_ROWS", 40)


@pytest.fixture
def count_looks(monkeypatch):
    """Let the seconds of a run's clock be the next numbers of a count at each look."""

    def count(start=0, step=1):
        looks = itertools.count(start, step)
        monkeypatch.setattr(run_clock.Clock, "seconds", property(lambda self: next(looks)))

    return count


def test_no_block_of_vectors_begins_that_would_end_too_late(
    tmp_path, tiny_bert, sentences, monkeypatch, clock, small_blocks
):
    write_texts(tmp_path, "clean", sentences)
    teacher = open_encoder(str(tiny_bert))
    slowed(monkeypatch, teacher, "encode", itertools.repeat(0.2), clock.sleep)
    stored = StoredTexts(tmp_path, "clean", lambda: 0.3 - clock.now)
    assert len(stored.vectors(teacher, tmp_path, "vectors", lambda event: None, Workers())) == 40


def test_the_learning_rate_falls_over_what_preparation_left(train, tmp_path, count_looks):
    count_looks(start=19)
    found = train(tmp_path / "run", 120, warmup=0)

    rows = [row for row in log_rows(tmp_path / "run") if "lr" in row]
    assert found["updates"] == rows[-1]["step"] > 20
    assert rows[-1]["done"] == 1
    assert rows[0]["lr"] == pytest.approx(1e-4)
    assert rows[1]["lr"] == pytest.approx(1e-4 * (1 - 9 / found["updates"]), rel=0.05)
    assert rows[-1]["lr"] < 0.05 * 1e-4


def test_a_limit_that_preparation_uses_up_is_one_line(train, tmp_path, slow_vectors):
    with pytest.raises(NoisegenError, match=r"1 s is over after \d+ s of preparation") as raised:
        train(tmp_path / "run", 1)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_vectors_stop_in_time_and_the_pairs_that_have_them_are_trained_on(
    train, tmp_path, count_looks, small_blocks
):
    count_looks(step=4)
    lines = []
    found = train(tmp_path / "run", 60, tell=lines.append)

    said = next(line for line in lines if "time limit" in line)
    assert "of 400 clean texts" in said
    assert f"{found['training_pairs']:,} pairs to train on" in said
    assert 20 < found["training_pairs"] < 300
    assert 40 <= int((tmp_path / "run" / "data" / "clean.known").read_text()) < 400


def test_other_processes_and_resumed_runs_take_the_same_vectors(
    tmp_path, tiny_bert, sentences, small_blocks
):
    teacher, late = open_encoder(str(tiny_bert)), iter([9, 9, 9, 0])
    write_texts(tmp_path, "clean", sentences)
    given = teacher, tmp_path / "cache", "vectors", lambda event: None, Workers()
    some = StoredTexts(tmp_path, "clean", lambda: next(late)).vectors(*given)
    again = StoredTexts(tmp_path, "clean", lambda: 9).vectors(*given)

    assert len(some) == 3 * 40
    assert some.rows.tolist() == again.rows.tolist()
    assert some.rows.max() < len(sentences)
    wanted = teacher.encode([sentences[row] for row in some.rows])
    assert abs(pickle.loads(pickle.dumps(again)).take(some.rows) - wanted).max() < 2e-3


@dataclass(frozen=True)
class Waiting(Workers):
    """A process of two, which is a thread."""

    barrier: Barrier = field(default_factory=lambda: Barrier(2))

    def wait(self):
        self.barrier.wait(30)


def test_processes_share_the_work_of_the_teacher(tmp_path, tiny_bert, sentences, small_blocks):
    """Ten blocks of texts: each of two processes encodes five, and both have all vectors."""
    write_texts(tmp_path, "clean", sentences)
    first = Waiting(0, 2)
    second = replace(first, rank=1)
    encoded = []

    def vectors(workers):
        teacher = open_encoder(str(tiny_bert))
        encode = teacher.encode
        teacher.encode = lambda texts: encoded.append(workers.rank) or encode(texts)
        stored = StoredTexts(tmp_path, "clean")
        return stored.vectors(teacher, tmp_path / "cache", "vectors", lambda _: None, workers)

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(vectors, (first, second))
    rows = np.arange(len(sentences))
    assert sorted(encoded) == [0] * 5 + [1] * 5
    assert (one.take(rows) == other.take(rows)).all()


def test_negatives_are_drawn_among_the_texts_that_have_vectors():
    size = stores.BLOCK_ROWS
    block = (np.arange(size) % 4).astype(np.float16)[:, None]
    vectors = TeacherVectors([None, block + 10, None, block[:2] + 20])
    negatives = stores.Negatives(vectors, 6, 0, vectors, np.arange(size - 4, size + 16, 2))

    drawn = negatives.take(np.array([1, 2]), 1)  # their hard ones: two before block 1, two in it
    assert {*drawn[:6, 0]} <= {10, 11, 12, 13, 20, 21}
    assert drawn[6:, 0].tolist() == [10, 11]


def test_memory_that_batches_freed_is_returned_as_training_goes_on(train, tmp_path, monkeypatch):
    returned = []
    monkeypatch.setattr(trainer, "release_memory", lambda: returned.append(None))
    train(tmp_path / "run", None, steps=20)
    assert len(returned) == 3  # at steps 1, 10 and 20


def test_a_run_limited_by_time_is_validated_in_its_middle(train, tmp_path, clock):
    found = train(tmp_path / "run", 2, validate_every=10_000)
    _, (middle, _), (end, _) = found["curve"]
    assert 0.4 * end < middle < 0.8 * end


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def learning_rates(out):
    return [row["lr"] for row in log_rows(out) if "lr" in row]


def test_a_limit_of_cpu_time_makes_the_same_run_on_a_busy_machine(
    train, tmp_path, clock, one_thread
):
    alone = train(tmp_path / "alone", None, cpu_limit=2)
    clock.slower = 4
    busy = train(tmp_path / "busy", None, cpu_limit=2)

    assert busy["updates"] == alone["updates"] == busy["planned_updates"]
    assert learning_rates(tmp_path / "busy") == learning_rates(tmp_path / "alone")
    assert learning_rates(tmp_path / "busy")[-1] < 0.2 * 1e-4
    assert busy["cpu_seconds"] == alone["cpu_seconds"] == pytest.approx(2, abs=0.2)
    assert busy["seconds"] == pytest.approx(4 * busy["cpu_seconds"], abs=0.5)


def test_a_limit_of_time_is_behind_its_plan_on_a_busy_machine(train, tmp_path, clock, one_thread):
    alone = train(tmp_path / "alone", 4)
    clock.slower = 4
    busy = train(tmp_path / "busy", 4)

    assert alone["updates"] == alone["planned_updates"] > 3 * busy["updates"]
    assert busy["planned_updates"] == pytest.approx(4 * busy["updates"], rel=0.05)
    first, second, *_ = lines(busy, tmp_path)
    assert f"{busy['updates']} of about {busy['planned_updates']} planned updates in 4 s" in first
    share = busy["cpu_seconds"] / busy["seconds"]  # a quarter, of times rounded to tenths
    assert busy["cpu_seconds"] == pytest.approx(busy["seconds"] / 4, abs=0.07)
    assert second.startswith(f"CPU time: 1 s, {share:.0%} of 1 thread; --cpu-limit ")
    assert next(lines(alone, tmp_path)).startswith(f"{alone['updates']} updates in 4 s: ")


def test_a_limit_of_cpu_time_that_preparation_uses_up_names_its_option(
    train, tmp_path, slow_vectors
):
    with pytest.raises(NoisegenError, match=r"the CPU limit of 1 s is over .* longer --cpu-limit"):
        train(tmp_path / "run", None, cpu_limit=1)


def test_a_resumed_run_counts_the_cpu_time_of_earlier_sessions(train, tmp_path, clock):
    clock.cpu = 1_000.0  # CPU time of earlier work of the process
    found = train(tmp_path / "run", None, cpu_limit=2)
    again = train(tmp_path / "run", None, cpu_limit=2, resume=True)
    assert again["updates"] == found["updates"]
    assert again["cpu_seconds"] >= found["cpu_seconds"] > 1.9
