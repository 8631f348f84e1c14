"""The gradient of a whole batch, whatever its way through the network: as if in one piece."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity, cross_entropy

from noisegen.encoders.tokens import Padded, chunks_of
from noisegen.noising.rng import row_key, stream_key
from noisegen.training import pretrain
from noisegen.training.computation import Workers
from noisegen.training.pretrain import KeptGraphs, Pretraining
from noisegen.training.settings import PretrainSettings
from noisegen.training.trainer import Trainer

SETTINGS = PretrainSettings(
    steps=4,
    batch_pairs=12,
    batch_tokens=600,
    precision="fp32",
    max_length=64,
    validation_rows=10,
    validation_share=0.1,
)


@pytest.fixture(scope="module")
def trainer(tiny_models, pairs_file, tmp_path_factory):
    def made(data=pairs_file, **values):
        settings = replace(SETTINGS, student=str(tiny_models()), **values)
        folder = tmp_path_factory.mktemp("run")
        method = Pretraining(settings, Workers(), lambda line: None)
        method.read([str(data)], folder / "data")
        method.prepare(folder / "data", lambda line: None)
        method.network.train()
        return Trainer(method, folder)

    return made


def gradients(trainer):
    return {
        name: weight.grad.clone()
        for name, weight in trainer.method.network.named_parameters()
        if weight.grad is not None
    }


def backward(trainer, chunk, batches):
    """Add the gradient of an update to those of the weights."""
    method = trainer.method
    method.backward(trainer, chunk, batches, method.load(chunk, batches, trainer.progress.updates))


def cached(trainer, chunk, batches):
    trainer.method.network.zero_grad()
    backward(trainer, chunk, batches)
    return gradients(trainer)


def contrast(vectors, owners, others, owners_of_others, temperature):
    """NT-Xent by a loop over the anchors."""
    half, losses = len(vectors) // 2, []
    every = list(zip([*owners, *owners_of_others], [*vectors, *others], strict=True))
    for i, anchor in enumerate(vectors):
        near = cosine_similarity(anchor, vectors[(i + half) % (2 * half)], 0) / temperature
        scores = [
            cosine_similarity(anchor, other, 0) / temperature
            for owner, other in every
            if owner != owners[i]
        ]
        losses.append(torch.stack([near, *scores]).logsumexp(0) - near)
    return torch.stack(losses).mean()


def owner_of(trainer, chunk, row):
    """The number of the clean text of a row of the first chunk of epoch 0."""
    data = trainer.method.pairs
    pairs = chunks_of(data.training, trainer.settings.seed, 0)[0]
    return int(data.owner[pairs[row % chunk.pairs]])


def plain(trainer, chunk, batches):
    """One graph of everything, text by text, and one backward pass."""
    model, settings = trainer.method.network, trainer.settings
    model.zero_grad()
    vectors, logits, targets = {}, {True: [], False: []}, {True: [], False: []}
    for number, rows in enumerate(batches):
        stream = stream_key(settings.seed, "dropout", trainer.progress.updates)
        torch.manual_seed(row_key(stream, number))
        some = chunk.texts.take(rows)
        batch = Padded.of(some.ids, model.encoder.tokenizer.pad_id)
        states = batch.states(model.encoder.network)
        for at, row in enumerate(rows.tolist()):
            own = states[at, : len(some.ids[at])]
            vectors[row] = own.mean(0)
            there = some.targets[at]
            at_masks = np.flatnonzero(there >= 0)
            clean = row >= chunk.pairs
            logits[clean].append(model.scores(own[at_masks]))
            targets[clean].append(torch.from_numpy(there[at_masks].astype(np.int64)))
    loss = sum(cross_entropy(torch.cat(logits[side]), torch.cat(targets[side])) for side in logits)
    if trainer.method.contrast is not None:
        every = torch.stack([vectors[row] for row in sorted(vectors)])
        owners = [owner_of(trainer, chunk, row) for row in sorted(vectors)]
        filled = int(model.memory.filled)
        others = model.memory.vectors[:filled], model.memory.owners[:filled].tolist()
        loss = loss + contrast(every, owners, *others, settings.temperature)
    loss.backward()
    return float(loss.detach()), gradients(trainer)


def counted_passes(trainer):
    """Return a list that grows by one at each forward pass of the network."""
    passes = []
    network = trainer.method.network.encoder.network
    network.register_forward_hook(lambda *_: passes.append(None))
    return passes


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    largest = max(float(value.abs().max()) for value in expected.values())
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=2e-4, atol=2e-6 * largest, msg=name)


@pytest.mark.parametrize("graph_gb", [0.0, 3e-3, float("inf")], ids=["none", "some", "all"])
@pytest.mark.parametrize("batch_tokens", [300, 100_000], ids=["many", "one"])
def test_the_gradient_is_that_of_one_graph(trainer, monkeypatch, graph_gb, batch_tokens):
    made = trainer(dropout=0.1, graph_gb=graph_gb, batch_tokens=batch_tokens)
    monkeypatch.setattr(pretrain, "SCORES_MAX", 7 * len(made.method.network.embeddings))
    chunk = made.method.chunk(0, 0)
    batches = chunk.steps[0]
    assert (len(batches) > 4) == (batch_tokens == 300)

    loss, expected = plain(made, chunk, batches)
    found = cached(made, chunk, batches)

    assert_same(found, expected)
    assert float(made.window["loss"]) == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize(
    ("graph_gb", "again"), [(0.0, "all"), (3e-3, "some"), (float("inf"), "none")]
)
def test_what_is_not_kept_is_computed_a_second_time(trainer, graph_gb, again):
    made = trainer(dropout=0.1, graph_gb=graph_gb, batch_tokens=300)
    chunk = made.method.chunk(0, 0)
    passes = counted_passes(made)
    backward(made, chunk, chunk.steps[0])

    batches = len(chunk.steps[0])
    more = len(passes) - batches
    assert {"all": more == batches, "some": 0 < more < batches, "none": more == 0}[again]
    real = chunk.texts.ids.lengths[np.concatenate(chunk.steps[0])].sum()
    assert made.window["tokens"] == real, "a second pass is no progress"


@pytest.mark.parametrize("graph_gb", [0.0, float("inf")])
@pytest.mark.parametrize("frozen", [("embeddings",), ("embeddings", "encoder")])
def test_what_is_frozen_has_no_gradient_and_the_rest_its_own(trainer, frozen, graph_gb):
    made = trainer(freeze=frozen, dropout=0.1, graph_gb=graph_gb, batch_tokens=300)
    chunk = made.method.chunk(0, 0)
    _, expected = plain(made, chunk, chunk.steps[0])
    found = cached(made, chunk, chunk.steps[0])

    assert_same(found, expected)
    assert any(name.startswith("prediction.") for name in found)
    assert not [
        name for name in found if name.startswith(tuple(f"encoder.network.{x}" for x in frozen))
    ]
    assert any(name.startswith("encoder.") for name in found) == (len(frozen) == 1)


def test_masks_alone_need_no_second_pass(trainer):
    made = trainer(objective="mlm", dropout=0.1, graph_gb=0.0, batch_tokens=300)
    chunk = made.method.chunk(0, 0)
    _, expected = plain(made, chunk, chunk.steps[0])
    passes = counted_passes(made)

    assert_same(cached(made, chunk, chunk.steps[0]), expected)
    assert len(passes) == len(chunk.steps[0])


def test_a_memory_of_earlier_updates_has_negatives(trainer):
    made = trainer(memory=40, dropout=0.0)
    chunk = made.method.chunk(0, 0)
    first, second = chunk.steps[:2]
    cached(made, chunk, first)
    memory = made.method.network.memory
    known = memory.vectors[: memory.filled].clone()
    assert len(known) == 2 * len(np.concatenate(first)) // 2
    loss, expected = plain(made, chunk, second)
    made.window.clear()
    assert_same(cached(made, chunk, second), expected)
    assert float(made.window["loss"]) == pytest.approx(loss, rel=1e-5)
    assert not torch.equal(memory.vectors[: len(known)], known)


def test_pairs_of_one_clean_text_are_no_negatives_in_a_batch_or_in_memory(
    trainer, tmp_path, sentences
):
    path, texts = tmp_path / "copies.tsv", sentences[:12]
    rows = [f"{text}\t{text[copy:]}" for text in texts for copy in range(5)]
    path.write_text("\n".join(["clean\tnoisy", *rows]) + "\n")
    made = trainer(path, memory=1_000, dropout=0.0, validation_share=0.2)
    chunk = made.method.chunk(0, 0)
    for step in chunk.steps[:3]:
        owners = {owner_of(made, chunk, row) for row in np.concatenate(step)}
        assert len(owners) < len(np.concatenate(step)) / 2  # some are there twice
        made.window.clear()
        loss, expected = plain(made, chunk, step)
        assert_same(cached(made, chunk, step), expected)
        assert float(made.window["loss"]) == pytest.approx(loss, rel=1e-5)
    assert made.method.network.memory.filled > len(texts)


def test_the_whole_batch_is_contrasted_and_not_its_parts(trainer):
    """Accumulation, as the paper has it, gives another gradient: this test could fail."""
    made = trainer(dropout=0.0, batch_tokens=300)
    chunk = made.method.chunk(0, 0)
    whole = cached(made, chunk, chunk.steps[0])
    half = np.sort(np.concatenate(chunk.steps[0]))[: len(np.concatenate(chunk.steps[0])) // 2]
    made.method.network.zero_grad()
    for pairs in np.array_split(half, 3):
        backward(made, chunk, [np.concatenate([pairs, pairs + chunk.pairs])])
    parted = gradients(made)
    name = "encoder.network.encoder.layer.0.output.dense.weight"
    assert not torch.allclose(whole[name], parted[name] / 3, rtol=1e-2, atol=1e-6)


def test_every_text_of_an_epoch_is_in_one_update_with_its_other_side(trainer):
    made = trainer()
    chunk = made.method.chunk(3, 0)
    seen = []
    for step in chunk.steps:
        rows = np.sort(np.concatenate(step))
        noisy, clean = np.split(rows, 2)
        assert (noisy + chunk.pairs == clean).all()
        assert len(noisy) <= 12
        seen += noisy.tolist()
    assert sorted(seen) == list(range(chunk.pairs))
    assert chunk.pairs == len(made.method.pairs.training)


def test_a_pair_has_the_same_masks_wherever_it_stands(trainer):
    method = trainer().method
    pairs = method.pairs.training[5:25]
    one, other = method.masked(pairs, 1), method.masked(pairs[::-1], 1)
    turned = np.concatenate([np.arange(20)[::-1], np.arange(20, 40)[::-1]])
    assert (one.ids.values == other.take(turned).ids.values).all()
    assert (one.targets.values == other.take(turned).targets.values).all()


def test_the_bytes_that_backward_needs_are_counted_once():
    weight = torch.randn(30, 30, requires_grad=True)
    given = torch.randn(5, 30)
    kept = KeptGraphs(1e9, [weight])
    with kept.counted():
        out = ((given @ weight).sigmoid() ** 2).sum()
    out.backward()
    # the input of the product, the sigmoid that it and the square keep both
    assert kept.bytes == 2 * 5 * 30 * 4
