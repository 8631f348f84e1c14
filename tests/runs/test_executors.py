"""Serial, processes and Dask make the same rows; workers and parents may die at any moment."""

import gzip
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import deque
from concurrent.futures import Executor, Future
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from clusters import local_cluster
from runs import (
    DEMO,
    FAST,
    augment,
    begin,
    command,
    contents,
    end,
    left_over,
    members,
    shards,
    wait_for,
    words_for,
)

import noisegen
from noisegen.augmentation.shards import Shard
from noisegen.errors import MissingExtra, NoisegenError, SourceError, UsageError
from noisegen.runs import executors
from noisegen.runs.manifest import Manifest
from noisegen.runs.records import Records, Run

SLOW = """
import time
import noisegen

@noisegen.transform("slow")
def slow(text, draws, *, rate: float = 1.0):
    time.sleep(0.004)
    return text
"""
DEADLY = """
import os, pathlib, signal
import noisegen

MARK = pathlib.Path({mark!r})

@noisegen.transform("deadly")
def deadly(text, draws, *, rate: float = 1.0):
    if "Harwick" in text and (deaths := len(MARK.read_text())) < {deaths}:
        MARK.write_text("x" * (deaths + 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return text
"""


WHERE = """
import os, time

def where(seconds):
    time.sleep(seconds)
    return os.getpid()
"""


def seen(name):
    return os.environ.get(name)


def process_after(seconds):
    time.sleep(seconds)
    return os.getpid()


def square(number):
    return number * number


def fail(number):
    if number == 3:
        raise SourceError("number 3 is bad")
    return number


def large(number):
    return bytes(40_000_000)  # more than a pipe holds


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def die_once(folder, number):
    """End the process at the first try of the numbers that 5 divides."""
    mark = folder / str(number)
    if number % 5 == 0 and not mark.exists():
        mark.touch()
        os._exit(1)
    return number


def die_once_at_five(mark, number):
    if number == 5 and not mark.exists():
        mark.touch()
        os._exit(1)
    return number


def die(number):
    os._exit(1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    augment(DEMO, out, rows_per_shard=60, transforms=FAST)
    return out


@pytest.fixture
def code(tmp_path):
    """Write a plug-in."""

    def write(template, **values):
        path = tmp_path / "plugin.py"
        path.write_text(template.format(**values))
        return str(path)

    return write


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A plug-in that takes its time, so that there is something to interrupt."""
    path = tmp_path_factory.mktemp("code") / "slow.py"
    path.write_text(SLOW)
    return str(path)


@pytest.fixture(scope="module")
def slow_whole(tmp_path_factory, slow):
    """An undisturbed run with it."""
    out = tmp_path_factory.mktemp("slow") / "out"
    augment(DEMO, out, rows_per_shard=60, transforms=["slow", *FAST], code=(slow,))
    return out


@pytest.fixture
def started():
    """Start programs, and end what is left of them."""
    running = []

    def start(*words):
        running.append(begin(*words))
        return running[-1]

    yield start
    for process in running:
        end(process)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_is_run_once(workers):
    assert sorted(executors.run(square, range(20), workers=workers)) == [n * n for n in range(20)]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_results_come_in_the_order_of_the_tasks_if_asked(workers):
    seconds = [0.3, 0.0, 0.1, 0.0]
    assert list(executors.run_in_order(sleep, seconds, workers=workers)) == seconds


@pytest.mark.parametrize("tasks", [[], [4]])
def test_one_task_needs_no_worker_process(tasks, monkeypatch):
    monkeypatch.setattr(executors, "Pool", None)

    assert list(executors.run(square, tasks, workers=2)) == [task * task for task in tasks]


def test_no_more_workers_start_than_there_are_tasks(tmp_path):
    (tmp_path / "task.py").write_text(WHERE)
    code = (
        "from task import where\nfrom noisegen.runs import executors\nimport os\n"
        "if __name__ == '__main__':\n"
        "    print(os.getpid(), *executors.run(where, [0.3] * 3, workers=8), sep='\\n')"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=paths
    )
    parent, *workers = done.stdout.splitlines()

    assert len({*workers} - {parent}) <= 3
    assert len(workers) == 3


@pytest.mark.parametrize("value", ["before", "after"])
def test_workers_have_the_environment_of_the_caller_as_it_is_now(value, monkeypatch):
    monkeypatch.setenv("NOISEGEN_TEST", value)

    assert {*executors.run(seen, ["NOISEGEN_TEST"] * 2, workers=2)} == {value}


def test_tasks_are_planned_only_a_little_ahead():
    planned = []
    tasks = (planned.append(number) or number for number in range(50))
    results = executors.run(square, tasks, workers=2)
    next(results)

    assert len(planned) <= 2 * executors.IN_FLIGHT_PER_WORKER
    results.close()


def test_a_task_costs_no_more_where_many_are_in_flight():
    """The next of 8,000 futures is found without a look at each."""

    class Pool(Executor):
        def submit(self, function, task):
            futures.append(future := Future())
            if len(futures) == 8_000:
                futures.popleft().set_result(task)
            return future

    futures = deque()
    results = executors._side_by_side(Pool(), square, iter(range(12_000)), lambda: 4_000)
    began = time.process_time()
    assert len(list(islice(results, 3_000))) == 3_000
    assert time.process_time() - began < 3


def test_a_cluster_that_grows_is_fed_and_one_that_shrinks_is_not_flooded(monkeypatch):
    monkeypatch.setattr(executors, "SECONDS_BETWEEN_LOOKS", 0.01)

    class Pool(Executor):
        def submit(self, function, task):
            del function
            futures.append(future := Future())
            if len(futures) == 6:  # while all tasks in flight are at work
                for number, each in enumerate(futures):
                    each.set_result(number)
                sizes[:] = [1]
            elif len(futures) > 6:
                future.set_result(task)
            return future

    futures, sizes = [], [1, 3]

    def size():
        return sizes.pop(0) if len(sizes) > 1 else sizes[0]

    results = executors._side_by_side(Pool(), square, iter(range(50)), size)

    next(results)
    assert len(futures) == 6
    for _ in range(4):
        next(results)
    assert len(futures) == 6
    next(results)
    assert len(futures) == 7


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_task_is_raised_as_it_is(workers):
    with pytest.raises(SourceError, match=r"^number 3 is bad$"):
        list(executors.run(fail, range(9), workers=workers))


def test_an_error_with_two_arguments_survives_the_way_from_a_worker():
    import pickle

    error = pickle.loads(pickle.dumps(MissingExtra("jieba", "zh")))

    assert isinstance(error, MissingExtra)
    assert str(error) == str(MissingExtra("jieba", "zh"))


def test_closing_ends_the_workers_at_once():
    began = time.monotonic()
    results = executors.run(sleep, [0, 60, 60, 60], workers=2)
    next(results)
    results.close()

    assert time.monotonic() - began < 30


def test_closing_while_workers_send_their_results_ends():
    """In a program of its own, since what would not end is a thread."""
    code = (
        "from test_executors import large\nfrom noisegen.runs import executors\n"
        "if __name__ == '__main__':\n    results = executors.run(large, range(9), workers=2)\n"
        "    next(results), results.close()"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], timeout=60, env=paths)
    assert done.returncode == 0


def test_workers_wait_for_the_next_run_where_they_are_reused(tmp_path):
    with executors.workers_reused():
        first, second = (set(executors.run(process_after, [0.1] * 3, workers=2)) for _ in range(2))
        assert first & second
        with pytest.raises(SourceError):
            list(executors.run(fail, range(9), workers=2))
        died = partial(die_once_at_five, tmp_path / "mark")
        assert sorted(executors.run(died, range(4, 7), workers=2)) == [4, 5, 6]
        assert sorted(executors.run(square, range(3), workers=2)) == [0, 1, 4]


def test_lost_tasks_run_again(tmp_path):
    found = list(executors.run(partial(die_once, tmp_path), range(12), workers=2))

    assert sorted(found) == list(range(12))
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.nightly
def test_a_task_that_always_kills_its_worker_is_given_up():
    with pytest.raises(NoisegenError, match=r"died 3 times .*; lower --workers, then run again"):
        list(executors.run(die, range(4), workers=2))


@pytest.mark.parametrize("name", ["threads", "dask", "", "Serial"])
def test_an_unknown_executor_is_refused(name):
    with pytest.raises(UsageError, match="write serial, processes or dask:ADDRESS"):
        list(executors.run(square, [1], name))


@pytest.mark.parametrize(
    ("executor", "said"),
    [(object(), "processes|serial|dask:ADDRESS"), ("tcp://a:1", "or dask:tcp://a:1")],
)
def test_a_cluster_is_named_by_its_address(tmp_path, executor, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        noisegen.augment(tmp_path / "a.txt", tmp_path / "out", executor=executor)


@pytest.mark.parametrize(
    ("executor", "source"),
    [
        ("processes", "plain"),
        ("dask", "streamed"),
        *(
            pytest.param(*pair, marks=pytest.mark.nightly)
            for pair in (
                ("serial", "plain"),
                ("serial", "streamed"),
                ("processes", "streamed"),
                ("dask", "plain"),
            )
        ),
    ],
)
def test_every_executor_makes_the_same_files(
    tmp_path, whole, cluster, executor, source, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # the workers of Dask are elsewhere
    path = DEMO
    if source == "streamed":
        path = Path("demo.tsv.gz")
        path.write_bytes(gzip.compress(DEMO.read_bytes()))
    name = cluster if executor == "dask" else executor
    made = augment(path, "out", rows_per_shard=60, transforms=FAST, executor=name, workers=2)

    digests = [note["sha256"] for note in made.shards]
    if source == "plain":
        assert contents(tmp_path / "out") == contents(whole)
        assert digests == [note["sha256"] for note in Manifest.load(whole).shards]
    assert made.totals == Manifest.load(whole).totals


@pytest.mark.nightly
def test_the_full_recipe_is_the_same_with_one_worker_and_two(tmp_path):
    for workers in (1, 2):
        augment(
            DEMO,
            tmp_path / str(workers),
            rows_per_shard=150,
            edits=True,
            workers=workers,
            tagger="rule",
        )

    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_an_error_of_a_task_on_dask_is_raised_as_it_is(cluster):
    with pytest.raises(SourceError, match=r"^number 3 is bad$"):
        list(executors.run(fail, range(9), cluster))


def test_tasks_lost_by_dask_run_again(tmp_path, cluster):
    mark = tmp_path / "mark"
    found = list(executors.run(partial(die_once_at_five, mark), range(8), cluster))

    assert mark.exists()
    assert sorted(found) == list(range(8))


@pytest.mark.nightly
def test_a_dask_cluster_may_grow_and_shrink(tmp_path):
    with local_cluster(tmp_path, 1) as one:
        pids = list[int]()
        for pid in executors.run(process_after, [0.3] * 60, one.executor):
            pids.append(pid)
            if len(pids) in (5, 40):
                one.made.scale(3 if len(pids) == 5 else 1)
    assert len(pids) == 60
    assert len(set(pids[:5])) == 1
    assert len(set(pids[5:40])) >= 2


@pytest.mark.nightly
def test_a_task_that_always_kills_its_worker_on_dask_is_given_up(cluster):
    with pytest.raises(NoisegenError, match=r"died 3 times .*; lower --workers, then run again"):
        list(executors.run(die, range(1), cluster))


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch):
    monkeypatch.setattr(executors, "DASK_SECONDS", 0.5)

    with pytest.raises(
        NoisegenError, match=r"no Dask scheduler answers at '127.0.0.1:1'"
    ) as caught:
        list(executors.run(square, [1], "dask:127.0.0.1:1"))

    assert "\n" not in str(caught.value)


@pytest.mark.nightly
def test_a_worker_that_dies_costs_no_row(tmp_path, code, whole):
    mark = tmp_path / "mark"
    mark.touch()
    plug_in = code(DEADLY, mark=str(mark), deaths=1)
    steps = ["deadly", *FAST]
    made = augment(
        DEMO, tmp_path / "out", rows_per_shard=60, transforms=steps, code=(plug_in,), workers=2
    )

    assert mark.read_text() == "x"
    assert left_over(tmp_path / "out") == []
    assert made.totals == {**Manifest.load(whole).totals}


@pytest.mark.nightly
def test_a_worker_that_always_dies_is_one_line_after_three_tries(tmp_path, code):
    mark = tmp_path / "mark"
    mark.touch()
    plug_in = code(DEADLY, mark=str(mark), deaths=99)
    failed = command(
        *words_for(tmp_path / "out", "--code", plug_in, "--workers", "2", first="deadly")
    )

    assert failed.returncode == 1
    assert failed.stderr.startswith("error: a worker process died 3 times")
    assert failed.stderr.count("\n") == 1
    assert mark.read_text() == "xxx"
    assert left_over(tmp_path / "out") == []


def recorded_files(out):
    """Return the shards of all tasks that the folder records as finished."""
    if (run := Run.read(out, "write")) is None:
        return set()
    records = Records(out, Shard, run.key).read().values()
    return {out / file.name for record in records for file in record.files}


def _resume(out, slow):
    steps = ["slow", *FAST]
    return augment(DEMO, out, rows_per_shard=60, transforms=steps, code=(slow,), resume=True)


MOMENTS = sorted(random.Random(5).sample(range(7), 3))


@pytest.mark.parametrize(
    "moment",
    [MOMENTS[0], *(pytest.param(moment, marks=pytest.mark.nightly) for moment in MOMENTS[1:])],
)
def test_a_killed_run_leaves_no_process_and_can_be_gone_on_with(
    tmp_path, slow, slow_whole, started, moment
):
    out = tmp_path / "out"
    words = words_for(out, "--code", slow, "--workers", "2", first="slow")
    run = started(*words)
    wait_for(lambda: len(shards(out)) >= moment and (moment or left_over(out)))
    os.kill(run.pid, signal.SIGKILL)

    assert run.wait(timeout=10) == -signal.SIGKILL
    wait_for(lambda: not members(run.pid), seconds=10)
    assert not (out / "manifest.json").exists()
    kept = {path: path.stat().st_mtime_ns for path in shards(out)}
    recorded = recorded_files(out)
    # A worker may end after its parent, which can no longer record the shard of the worker.
    assert len(set(kept) - recorded) <= 2
    _resume(out, slow)
    assert left_over(out) == []
    assert {path: path.stat().st_mtime_ns for path in recorded} == {
        path: kept[path] for path in recorded
    }
    assert contents(out) == contents(slow_whole)
    assert Manifest.load(out).shards == Manifest.load(slow_whole).shards


@pytest.mark.parametrize(
    ("workers", "whom", "sent"),
    [
        (2, "all", signal.SIGINT),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                (1, "parent", signal.SIGINT),
                (1, "parent", signal.SIGTERM),
                (2, "parent", signal.SIGINT),
                (2, "parent", signal.SIGTERM),
                (2, "all", signal.SIGTERM),
            )
        ),
    ],
)
def test_an_interrupted_run_says_so_and_can_be_gone_on_with(
    tmp_path, slow, slow_whole, started, workers, whom, sent
):
    out = tmp_path / "out"
    words = words_for(out, "--code", slow, "--workers", str(workers), first="slow")
    run = started(*words)
    wait_for(lambda: len(shards(out)) >= 2)
    (os.kill if whom == "parent" else os.killpg)(run.pid, sent)
    stdout, stderr = run.communicate(timeout=20)

    assert (run.returncode, stdout) == (130, "")
    # click ends the line in which a terminal has shown ^C
    assert stderr == "\ninterrupted; what is finished is kept: run again with --resume\n"
    wait_for(lambda: not members(run.pid), seconds=10)
    assert left_over(out) == []
    assert 2 <= len(shards(out)) < 7
    _resume(out, slow)
    assert contents(out) == contents(slow_whole)


@pytest.mark.nightly
def test_ctrl_c_while_workers_start_prints_no_traceback(tmp_path, slow, started):
    words = words_for(tmp_path / "out", "--code", slow, "--workers", "2", first="slow")
    run = started(*words)
    wait_for(lambda: len(members(run.pid)) >= 3)
    os.killpg(run.pid, signal.SIGINT)
    _, stderr = run.communicate(timeout=20)

    assert run.returncode == 130
    assert stderr.count("\n") == 2, stderr
    wait_for(lambda: not members(run.pid), seconds=10)


@pytest.mark.nightly
def test_a_failing_row_ends_all_workers_and_leaves_no_half_shard(tmp_path, code):
    plug_in = code(
        "import noisegen, time\n"
        "@noisegen.transform('strict')\n"
        "def strict(text, draws, *, rate: float = 1.0):\n"
        "    time.sleep(0.002)\n"
        "    if 'Harwick' in text: raise ValueError('no Harwick')\n"
        "    return text\n"
    )
    began = time.monotonic()
    failed = command(
        *words_for(tmp_path / "out", "--code", plug_in, "--workers", "2", first="strict")
    )

    assert failed.returncode == 1
    assert failed.stderr.startswith("error: transform 'strict' failed on 'The city council")
    assert "ValueError: no Harwick" in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert left_over(tmp_path / "out") == []
    assert time.monotonic() - began < 30


@pytest.mark.nightly
def test_eight_workers_of_which_two_are_killed_run_every_task_once(eight_workers):
    seconds = [0.2 + number / 1_000 for number in range(24)]
    with eight_workers.killing(2) as killed:
        found = list(executors.run(sleep, seconds, eight_workers.executor))

    assert len(set(killed)) == 2
    assert sorted(found) == seconds
