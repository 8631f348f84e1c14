"""Fine-tuning: it learns, by the loss that it should have, the same for a seed, on fewer ids."""

from dataclasses import replace

import made_tasks
import numpy as np
import pytest
import torch

from noisegen.data.labelled import LabelledRow
from noisegen.encoders.encoder import Ragged
from noisegen.encoders.folders import open_folder
from noisegen.errors import NoisegenError
from noisegen.evaluation.tasks.fine_tuning import (
    IGNORED,
    Examples,
    TaskNetwork,
    Trial,
    Tuning,
    cut_into_pieces,
    renumbered,
)
from noisegen.evaluation.tasks.kinds import TASKS
from noisegen.evaluation.tasks.results import measure_all
from noisegen.evaluation.tasks.sets import read_data

CPU = torch.device("cpu")


def data_of(tmp_path, task):
    if task == "intent-slots":
        train, test = made_tasks.snips_file(tmp_path), f"es={made_tasks.slots_file(tmp_path)}"
    elif task == "ner":
        train = made_tasks.wikiann_file(tmp_path, "train", "en")
        test = f"es={made_tasks.wikiann_file(tmp_path, 'test', 'es')}"
    else:
        train = made_tasks.nli_file(tmp_path, "train.tsv")
        test = f"es={made_tasks.nli_file(tmp_path, 'test.tsv')}"
    return read_data(TASKS[task], [str(train)], [test])


def trial_of(folder, tmp_path, task="intent-slots", max_length=60):
    data = data_of(tmp_path, task)
    return Trial(open_folder(folder), data, data.training, max_length)


def nothing(rows):
    pass


@pytest.mark.parametrize(("task", "epochs"), [("intent-slots", 40), ("ner", 20), ("nli", 25)])
def test_a_made_task_is_learnt_to_the_end(tiny_models, tmp_path, task, epochs):
    trial = trial_of(tiny_models(width=64), tmp_path, task)
    data = data_of(tmp_path, task)
    found = measure_all(data, trial.run(Tuning(epochs, 5e-3, 256, seed=1), CPU, nothing))
    wanted = {"hallucinated_spans": 0, "hallucinated_tokens": 0} if task != "nli" else {}
    wanted |= {metric: 100 for metric in TASKS[task].shown if metric not in wanted}
    assert found["es", "clean"] == wanted


def slow_loss(network, trial, rows):
    """Row by row and token by token, in float64."""
    label_losses, tag_losses = [], []
    training = trial.training
    for row in rows:
        ids = torch.from_numpy(training.pieces.ids[row].astype(np.int64))[None]
        types = torch.from_numpy(training.pieces.types[row].astype(np.int64))[None]
        states = network.network(input_ids=ids, token_type_ids=types).last_hidden_state[0].double()

        def lost(head, state, wanted):
            scores = head.weight.double() @ state + head.bias.double()
            return -(scores[wanted] - torch.log(torch.exp(scores).sum()))

        label_losses.append(lost(network.label_head, states[0], int(training.labels[row])))
        for place, wanted in zip(training.pieces.firsts[row], training.tags[row], strict=True):
            if place >= 0:
                tag_losses.append(lost(network.tag_head, states[place], int(wanted)))
    return float(sum(label_losses) / len(label_losses) + sum(tag_losses) / len(tag_losses))


@pytest.mark.parametrize("max_length", [60, 8])  # 8: most rows are cut, tokens without a piece
def test_the_loss_equals_plain_loops(tiny_models, tmp_path, max_length):
    trial = trial_of(tiny_models(), tmp_path, max_length=max_length)
    assert (max_length == 8) == bool((trial.training.tags.values == IGNORED).any())
    network = trial.network(CPU).eval()
    network.precision = None
    random = np.random.Generator(np.random.PCG64(2))
    for _ in range(10):
        rows = random.permutation(len(trial.training))[: random.integers(1, 9)]
        with torch.no_grad():
            loss = network.loss(trial.training, rows)
            assert float(loss) == pytest.approx(slow_loss(network, trial, rows), rel=1e-4)


def test_a_seed_gives_the_same_figures_and_leaves_the_global_one_alone(tiny_models, tmp_path):
    trial = trial_of(tiny_models(), tmp_path)
    before = torch.random.get_rng_state()
    found = [trial.run(Tuning(2, 1e-3, 256, seed=seed), CPU, nothing) for seed in (7, 7, 8)]
    assert found[0] == found[1]
    assert torch.equal(before, torch.random.get_rng_state())
    networks = []
    for seed in (7, 8):
        torch.manual_seed(seed)
        networks.append(trial.network(CPU).label_head.weight)
    assert not torch.equal(*networks)


def test_without_the_embeddings_that_no_text_has_training_is_the_same(tiny_models, tmp_path):
    trial = trial_of(tiny_models(), tmp_path)
    every = np.arange(trial.encoder.config.vocab_size)
    assert len(trial.vocabulary) < len(every)
    answers = []
    for kept in (trial.vocabulary, every):
        part = trial.training if kept is not every else _with_ids(trial.training, trial.vocabulary)
        torch.manual_seed(3)
        network = TaskNetwork(trial.encoder, kept, 2, 3, CPU)
        network.precision = None
        network.fine_tune(part, Tuning(3, 1e-3, 256, seed=3), nothing)
        with torch.no_grad():
            answers.append(network.eval()(network.batch(part.pieces, np.arange(9))))
    for small, full in zip(*answers, strict=True):
        torch.testing.assert_close(small, full, rtol=1e-3, atol=1e-3)


def _with_ids(training, kept):
    """Give the rows the ids that they had before they were renumbered."""
    ids = Ragged(kept[training.pieces.ids.values].astype(np.int32), training.pieces.ids.offsets)
    return replace(training, pieces=replace(training.pieces, ids=ids))


def test_kept_embeddings_are_those_of_their_ids(tiny_models):
    encoder = open_folder(tiny_models())
    network = TaskNetwork(encoder, np.array([0, 5, 9]), 2, 3, CPU).network
    full = encoder.network.get_input_embeddings().weight
    assert torch.equal(network.get_input_embeddings().weight, full[[0, 5, 9]])


def test_tokens_without_a_piece_are_predicted_outside(tiny_models, tmp_path):
    trial = trial_of(tiny_models(), tmp_path, max_length=8)
    pieces = trial.tests["es", "clean"]
    found = trial.network(CPU).predict(pieces, 256, nothing)
    for row, (_, tags) in enumerate(found):
        assert len(tags) == len(pieces.firsts[row])
        assert [tag == -1 for tag in tags] == (pieces.firsts[row] == -1).tolist()
    named = [tags for _, tags in trial.named(found)]
    assert {
        tag
        for row, tags in enumerate(named)
        for tag, place in zip(tags, pieces.firsts[row], strict=True)
        if place == -1
    } == {"O"}


def test_a_batch_has_no_place_for_tokens_beyond_all_pieces(tiny_models, tmp_path):
    trial = trial_of(tiny_models(), tmp_path, max_length=8)
    every = np.arange(trial.encoder.config.vocab_size)
    rows = [LabelledRow(("a",) * length, ("O",) * length) for length in (5_000, 3)]
    pieces = renumbered(cut_into_pieces(trial.encoder.tokenizer, rows, 8), every)
    network = TaskNetwork(trial.encoder, every, 2, 3, CPU).eval()
    network.precision = None
    assert network.batch(pieces, np.arange(2)).firsts.shape == (2, 6)
    long, short = (tags for _, tags in network.predict(pieces, 64, nothing))
    assert [len(long), len(short)] == [5_000, 3]
    assert -1 not in long[:6] + short
    assert set(long[6:]) == {-1}
    made = Examples.of(pieces, [[1] * 5_000, [2] * 3], [0, 1])
    with torch.no_grad():
        loss = network.loss(made, np.arange(2))
        label, tag = network(network.batch(pieces, np.arange(2)))
    lost = [-label.log_softmax(-1)[row, row] for row in range(2)]
    wanted = [(0, place, 1) for place in range(6)] + [(1, place, 2) for place in range(3)]
    marks = [-tag.log_softmax(-1)[row, place, number] for row, place, number in wanted]
    assert float(loss) == pytest.approx(float(sum(lost) / 2 + sum(marks) / 9), rel=1e-5)


def test_predictions_do_not_depend_on_the_batch(tiny_models, tmp_path):
    trial = trial_of(tiny_models(), tmp_path)
    network = trial.network(CPU)
    network.precision = None
    pieces = trial.tests["es", "noisy"]
    assert network.predict(pieces, 1, nothing) == network.predict(pieces, 10_000, nothing)


def test_a_gradient_that_is_no_number_ends_training(tiny_models, tmp_path):
    trial = trial_of(tiny_models(), tmp_path)
    network = trial.network(CPU)
    with torch.no_grad():
        network.tag_head.weight.fill_(float("nan"))
    with pytest.raises(NoisegenError, match="lower --lr"):
        network.fine_tune(trial.training, Tuning(1, 1e-3, 256), nothing)


def test_updates_read_as_many_rows_as_the_epochs_say(tiny_models, tmp_path):
    trial = trial_of(tiny_models(), tmp_path)
    for epochs in (0.5, 1, 2.25):
        read = []
        trial.network(CPU).fine_tune(trial.training, Tuning(epochs, 1e-3, 64), read.append)
        wanted = epochs * len(trial.training)
        assert wanted <= sum(read) < wanted + max(read)
