"""The CNN over characters, against the same written out word by word."""

import numpy as np
import pytest
import torch
from torch import nn

from noisegen.encoders.character_cnn import (
    FILTERS,
    PAD,
    CharacterCNN,
    WordIds,
    WordTokenizer,
    characters_of,
    trimmed,
)

TEXTS = [
    "see you there",
    "a",
    "",
    "you there?",
    "pneumonoultramicroscopicsilicovolcanoconiosis !",
    "é" * 30 + " z",
    "abcdefgh abcdefg abcdef",
    "w" * 48 + " " + "w" * 47 + " " + "w" * 60,
]


@pytest.fixture(scope="module")
def tokenizer():
    return WordTokenizer(12)


@pytest.fixture(scope="module")
def cnn(tokenizer):
    torch.manual_seed(2)
    made = CharacterCNN(20, tokenizer.table)
    for highway in made.highways:
        nn.init.normal_(highway.weight, std=0.03)
    nn.init.normal_(made.projection.bias)
    return made


def naive(weights, characters):
    """The vector of one word: every window, every filter, as the paper draws it."""
    states = weights["characters.weight"][characters]
    found = []
    for number, (width, _) in enumerate(FILTERS):
        filters = weights[f"convolutions.{number}.weight"]
        windows = np.lib.stride_tricks.sliding_window_view(states, width, 0)
        sums = np.einsum("fcw,pcw->pf", filters, windows, optimize=True)
        found.append(sums.max(0) + weights[f"convolutions.{number}.bias"])
    x = np.maximum(np.concatenate(found), 0)
    for number in range(2):
        both = weights[f"highways.{number}.weight"] @ x + weights[f"highways.{number}.bias"]
        gate = 1 / (1 + np.exp(-both[2_048:]))
        x = gate * x + (1 - gate) * np.maximum(both[:2_048], 0)
    return weights["projection.weight"] @ x + weights["projection.bias"]


def test_vectors_equal_the_computation_written_out(cnn, tokenizer):
    ids = tokenizer.tokenize(TEXTS).padded(PAD)
    vectors = cnn(torch.from_numpy(ids)).detach().numpy()
    assert vectors.shape == (*ids.shape, 20)
    weights = {name: value.double().numpy() for name, value in cnn.state_dict().items()}
    expected = {
        number: naive(weights, characters_of(tokenizer.table.words(np.array([number])))[0])
        for number in np.unique(ids)
    }
    for row, word in np.ndindex(ids.shape):
        np.testing.assert_allclose(vectors[row, word], expected[ids[row, word]], atol=1e-5)


def test_each_word_once_equals_each_place_by_itself(cnn, tokenizer, demo_texts):
    ids = tokenizer.tokenize(demo_texts[:20]).padded(PAD)
    assert len(np.unique(ids)) < 0.8 * ids.size
    every = torch.from_numpy(characters_of(tokenizer.table.words(ids.ravel())))
    order = (every != every[:, -1:]).sum(1).argsort(stable=True)
    with torch.no_grad():
        plain = torch.empty(ids.size, 20)
        plain[order] = cnn.vectors(every[order])
        distinct = cnn(torch.from_numpy(ids))
    torch.testing.assert_close(distinct, plain.view(*ids.shape, 20), atol=1e-6, rtol=1e-5)


def test_characters_without_a_table_give_the_same(cnn, tokenizer):
    ids = tokenizer.tokenize(TEXTS).padded(PAD)
    words, where = tokenizer.table.distinct(ids)
    with torch.no_grad():
        alone = cnn.of_characters(torch.from_numpy(words[where]))
        torch.testing.assert_close(alone, cnn(torch.from_numpy(ids)), atol=1e-6, rtol=1e-5)


def test_gradients_add_up_over_the_places_of_a_word(cnn, tokenizer):
    ids = torch.from_numpy(tokenizer.tokenize(["no no never no"]).padded(PAD))
    every = torch.from_numpy(characters_of(tokenizer.table.words(ids.numpy().ravel())))
    order = (every != every[:, -1:]).sum(1).argsort(stable=True)
    found = []
    for vectors in (lambda: cnn(ids)[0], lambda: cnn.vectors(every[order])[order.argsort()]):
        cnn.zero_grad()
        vectors().pow(2).sum().backward()
        found.append([weight.grad.clone() for weight in cnn.parameters()])
    assert len(found[0]) == len(list(cnn.parameters()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_vectors_are_the_same_bits_whatever_the_table_s_order(cnn):
    found = []
    for before in ([], TEXTS[::-1], ["many other words", *TEXTS[2:5]]):
        tokenizer = WordTokenizer(12)
        tokenizer.tokenize(before)
        table, cnn.table = cnn.table, tokenizer.table
        found.append(cnn(torch.from_numpy(tokenizer.tokenize(TEXTS).padded(PAD))))
        cnn.table = table
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_words_given_two_numbers_are_still_one_word(cnn):
    table, cnn.table = cnn.table, WordIds(kept=64, renewed=2)
    ids = [cnn.table.add(word) for word in ("a", "b", "c", "a")]
    assert len(set(ids)) == 4
    words, where = cnn.table.distinct(np.array([ids]))
    cnn.table = table
    assert len(words) == 3
    assert where[0, 0] == where[0, 3]


@pytest.mark.parametrize("longest", [1, 6, 7, 8, 30, 40, 41, 42, 47, 48, 60])
def test_what_fills_a_word_up_is_left_out_without_a_trace(cnn, longest):
    table = WordIds(64, 32)
    words = sorted({"a", "x" * (longest // 2 or 1), "xy" * (longest // 2), "z" * longest}, key=len)
    ids = np.array([PAD, *(table.add(word) for word in words if word)])
    full = torch.from_numpy(characters_of(table.words(ids)))
    with torch.no_grad():
        expected = torch.stack([cnn.convolved(word[None])[0] for word in full])
        found = torch.cat([cnn.convolved(group) for group in trimmed(full)])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
    if longest < 40:
        assert max(group.shape[1] for group in trimmed(full)) < 50


def test_there_are_as_many_parameters_as_in_characterbert():
    made = CharacterCNN(768, WordIds(8, 4))
    assert sum(weight.numel() for weight in made.parameters()) == 18_562_416


def test_vectors_begin_as_large_as_embeddings_of_words_do(demo_texts):
    tokenizer = WordTokenizer(64)
    ids = np.unique(tokenizer.tokenize(demo_texts[:20]).values)
    for seed in range(3):
        torch.manual_seed(seed)
        made = CharacterCNN(96, tokenizer.table, spread=0.02)
        with torch.no_grad():
            spread = float(made(torch.from_numpy(ids)[None]).std())
        assert 0.01 < spread < 0.04
        assert torch.equal(made.highways[1].bias[2_048:], torch.ones(2_048))
