"""Evaluation on a GPU that is not there: models move to it, and the figures are the CPU's."""

import made_tasks
import pytest
from fake_device import FakeDevice, OnDevice

import noisegen
from noisegen.cli import run
from noisegen.evaluation.measure import VectorStore
from noisegen.evaluation.tasks.evaluate_task import evaluate_task
from noisegen.evaluation.tasks.fine_tuning import CHECK_EVERY, TaskNetwork


@pytest.fixture
def fake():
    return FakeDevice()


def test_the_models_of_evaluate_move(fake, monkeypatch, tiny_bert, pairs_file, tmp_path):
    moved, call = [], VectorStore.__call__

    def watched(store, texts):
        moved.append(all(isinstance(w, OnDevice) for w in store.encoder.parameters()))
        return call(store, texts)

    given = {"models": (str(tiny_bert),), "pairs": (str(pairs_file),), "limit": 20, "hard": False}
    plain = noisegen.evaluate(out=str(tmp_path / "cpu"), device="cpu", **given)
    monkeypatch.setattr(VectorStore, "__call__", watched)
    with fake.present(monkeypatch):
        found = noisegen.evaluate(out=str(tmp_path / "gpu"), **given)

    assert moved
    assert all(moved)
    for name, metrics in plain.metrics().items():
        for dataset, values in metrics.items():
            assert found.metrics()[name][dataset] == pytest.approx(values, abs=1e-4)


def test_fine_tuning_reads_gradients_every_tenth_update(fake, monkeypatch, tiny_models, tmp_path):
    train, test = made_tasks.snips_file(tmp_path), made_tasks.slots_file(tmp_path)
    syncs, loss = [], TaskNetwork.loss

    def watched(network, *given):
        syncs.append(len(fake.syncs))
        return loss(network, *given)

    monkeypatch.setattr(TaskNetwork, "loss", watched)
    given = {"test": f"es={test}", "epochs": 4, "seeds": 1, "batch_tokens": 64}
    with fake.present(monkeypatch):
        evaluate_task(str(tiny_models()), str(tmp_path / "gpu"), train, **given)

    updates = len(syncs) - 2
    assert updates > 2 * CHECK_EVERY
    assert syncs[-1] - syncs[1] <= updates / CHECK_EVERY + 1, fake.syncs[syncs[1] : syncs[-1]]


@pytest.mark.parametrize("words", ["evaluate minilm --pairs PAIRS", "quickstart"])
def test_a_device_that_is_not_there_is_one_line(words, pairs_file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    out = ["-o", str(tmp_path / "out"), "--device", "cuda", "--quiet"]

    assert run([*words.replace("PAIRS", str(pairs_file)).split(), *out]) == 2
    said = "error: device 'cuda': torch finds no CUDA device; give --device cpu\n"
    assert capsys.readouterr().err == said
    assert not (tmp_path / "out").exists()
