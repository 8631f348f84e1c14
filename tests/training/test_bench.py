"""`train --bench`: the speed of updates and data, without a run."""

import json
import time

import pytest

from noisegen.cli import run
from noisegen.errors import UsageError
from noisegen.training.bench import bench
from noisegen.training.distil import Distillation
from noisegen.training.settings import TrainOptions
from noisegen.training.trainer import Trainer

SHORT = {"recipe": "ugc", "batch_tokens": 512, "precision": "fp32", "validation_rows": 30}


@pytest.fixture
def timed(tiny_bert, pairs_file):
    def run(seconds=0.3, **values):
        given = {**SHORT, "recipe": "stored", "teacher": str(tiny_bert), **values}
        return bench(TrainOptions((str(pairs_file),), values=given, device="cpu"), seconds)

    return run


def test_it_says_what_updates_and_data_yield(timed, monkeypatch):
    updates, update = [], Trainer.update
    monkeypatch.setattr(
        Trainer, "update", lambda self, *given: updates.append(update(self, *given))
    )

    found = timed()

    assert updates, "it does a run's own updates"
    assert found["step"] > 0
    assert found["data"] == pytest.approx(found["step"] * (1 - found["loader_cost"]))
    assert found["loader"] > 0
    assert 20 < found["tokens_per_row"] < 100
    assert 0 <= found["padding"] < 0.2
    assert (found["device"], found["precision"]) == ("cpu", "fp32")
    assert (found["packed"], found["mfu"]) == (False, None)


@pytest.mark.nightly
def test_data_that_come_slowly_cost_what_they_cost(timed, monkeypatch):
    make = Distillation.chunk
    quick = timed()
    monkeypatch.setattr(Distillation, "chunk", lambda *given: (time.sleep(1), make(*given))[1])
    slow = timed()

    assert slow["loader"] < 0.5 * quick["loader"]
    assert slow["loader_cost"] > 0.3


def test_packed_batches_are_timed_too(timed):
    assert timed(packed=True, objective="two_term+info_nce")["padding"] == 0


def test_the_command_prints_it_and_writes_nothing(
    tiny_bert, pairs_file, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    given = (
        f"train {pairs_file} --teacher {tiny_bert} --recipe stored --bench --bench-seconds 0.1"
        " --device cpu --quiet"
    ).split()
    assert run(given) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == [
        "updates on random ids",
        "updates on DATA",
        "noise and tokenizer alone",
    ]
    assert lines[4].startswith("the loader costs ")
    assert run([*given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"] > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given", [("--preset", "rcp-small"), ("--objective", "meat+oracle")])
def test_other_methods_are_not_timed(pairs_file, capsys, given):
    assert run(["train", str(pairs_file), "--bench", "--set", "batch_pairs=8", *given]) == 2
    assert "--bench times distillation, but preset" in capsys.readouterr().err


def test_a_run_needs_its_folder(pairs_file, capsys):
    assert run(["train", str(pairs_file)]) == 2
    assert "give -o RUN" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("gpu", "give cpu, cuda, cuda:1 or auto"),
        ("cuda:x", "give cpu, cuda"),
        ("cpu:0", "give cpu, cuda"),
        ("cuda", "torch finds no CUDA device; give --device cpu"),
        ("cuda:1", "torch finds no CUDA device"),
    ],
)
def test_a_device_that_is_not_there_is_one_line(monkeypatch, capsys, pairs_file, device, said):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for what in (["-o", "never"], ["--bench"]):
        assert run(["train", str(pairs_file), *what, "--device", device, "--quiet"]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"error: device {device!r}")
        assert said in error
        assert error.count("\n") == 1


def test_each_process_has_a_device_of_its_own(monkeypatch):
    from noisegen.encoders.encoder import find_device

    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)

    assert [str(find_device("cuda", rank, 2)) for rank in (0, 1)] == ["cuda:0", "cuda:1"]
    assert str(find_device("cuda:1", 0, 1)) == "cuda:1"
    assert str(find_device("auto", 0, 1)) == "cuda:0"
    assert str(find_device("cpu", 1, 2)) == "cpu"
    with pytest.raises(UsageError, match="only 2 found, numbered from 0"):
        find_device("cuda:2", 0, 1)
    with pytest.raises(UsageError, match="is a single one for 2 processes"):
        find_device("cuda:1", 0, 2)
