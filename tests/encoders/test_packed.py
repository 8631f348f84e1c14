"""Rows without padding: the same vectors and gradients as with it, in few shapes."""

import numpy as np
import pytest
import torch
from models import head_of
from transformers import AttentionInterface, AutoConfig, AutoModel

from noisegen.encoders.character_folder import character_student
from noisegen.encoders.encoder import Ragged, open_encoder
from noisegen.encoders.head import SentenceHead
from noisegen.encoders.tokens import (
    ATTENTION,
    Packed,
    Padded,
    by_length,
    flash_attention,
    is_packable,
)
from noisegen.errors import UsageError

SIZES = {
    "vocab_size": 90,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 140,
    "initializer_range": 0.2,
}
PADDING = {"bert": 0, "roberta": 1, "xlm-roberta": 1, "distilbert": 0}
POOLINGS = ["mean", "max", "cls"]


def made(kind):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = AutoConfig.for_model(kind, **SIZES, pad_token_id=PADDING[kind])
        return AutoModel.from_config(config).eval()


@pytest.fixture(params=["bert", "roberta", "xlm-roberta"])
def network(request):
    return made(request.param)


def rows_of(lengths, seed=0):
    random = np.random.Generator(np.random.PCG64(seed))
    return Ragged.of([random.integers(4, 90, length).tolist() for length in lengths])


def batches_of(rows, pad):
    return Padded.of(rows, pad), Packed.of(rows, pad), Packed.of(rows, pad, tokens=256, longest=24)


def weights_and_gradients(network, head, batch, rows):
    vectors = head(batch.states(network), batch)
    network.zero_grad()
    head.zero_grad()
    target = torch.linspace(-1, 1, vectors.numel()).view_as(vectors)
    (vectors * target).sum().backward()
    assert len(vectors) == rows
    weights = (*network.parameters(), *head.parameters())
    return vectors.detach(), [weight.grad for weight in weights if weight.grad is not None]


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_packed_rows_have_the_vectors_and_gradients_of_padded_ones(network, pooling, place):
    rows = rows_of([7, 2, 24, 1, 13, 13, 5])
    torch.manual_seed(1)
    head = SentenceHead(32, head_of(pooling=pooling, projection=16, place=place))
    padded, *packed = batches_of(rows, network.config.pad_token_id)

    vectors, gradients = weights_and_gradients(network, head, padded, 7)
    for batch in packed:
        ours, theirs = weights_and_gradients(network, head, batch, 7)
        torch.testing.assert_close(ours, vectors, atol=1e-5, rtol=1e-5)
        for one, other in zip(theirs, gradients, strict=True):
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@pytest.mark.nightly
def test_thousands_of_real_sentences_have_the_same_vectors(tiny_bert, sentences):
    encoder = open_encoder(str(tiny_bert))
    texts = [text[cut:] for text in sentences for cut in range(0, 60, 10)]
    ids = encoder.tokenizer.tokenize(texts)
    seen = 0
    with torch.inference_mode():
        for rows in by_length(ids.lengths, 512):
            sides = [kind.of(ids.take(rows), 0) for kind in (Padded, Packed)]
            states = [side.states(encoder.network) for side in sides]
            for pooling in POOLINGS:
                one, other = (
                    side.pooled(state, pooling) for side, state in zip(sides, states, strict=True)
                )
                torch.testing.assert_close(other, one, atol=1e-5, rtol=1e-5)
            seen += len(rows)
    assert seen == len(texts) > 2000


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_words_by_their_characters_are_packed_too(kind, sentences):
    encoder = character_student(AutoConfig.for_model(kind, **SIZES), max_length=64)
    ids = encoder.tokenizer.tokenize(sentences[:12])
    batches = Padded.of(ids, 0), Packed.of(ids, 0), Packed.of(ids, 0, tokens=300, longest=64)
    with torch.inference_mode():
        padded, *packed = map(encoder, batches)

    for vectors in packed:
        torch.testing.assert_close(vectors, padded, atol=1e-5, rtol=1e-5)


def test_no_row_sees_another(network):
    rows = rows_of([9, 12, 4])
    other = Ragged(rows.values.copy(), rows.offsets)
    other.values[:9] = 5
    pad = network.config.pad_token_id
    with torch.inference_mode():
        one, two = (
            (batch := Packed.of(some, pad)).pooled(batch.states(network), "mean")
            for some in (rows, other)
        )

    assert torch.equal(one[1:], two[1:])
    assert not torch.allclose(one[0], two[0])


def test_every_token_of_the_tail_is_in_a_row():
    """A token that is in none is left undefined by the kernel, and its gradient then is too."""
    batch = Packed.of(rows_of([7, 2, 24, 1]), 0, tokens=100, longest=24)

    assert batch.tokens == batch.offsets[-1] == 100
    assert (batch.rows, batch.used, batch.longest) == (4, 34, 24)
    assert batch.offsets.diff().tolist() == [7, 2, 24, 1, 24, 24, 18, 0]
    assert batch.ids[34:].unique().tolist() == [0]
    for first, last in zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True):
        assert batch.positions[first:last].tolist() == list(range(last - first))


def test_shapes_are_few_whatever_the_lengths():
    shapes = set()
    for seed in range(200):
        random = np.random.Generator(np.random.PCG64(seed))
        rows = rows_of(random.integers(2, 25, int(random.integers(1, 20))), seed)
        batch = Packed.of(rows, 0, tokens=500, longest=24)
        shapes.add((tuple(batch.ids.shape), tuple(batch.offsets.shape), batch.longest))
    assert len(shapes) <= 2

    assert Packed.of(rows_of([600]), 0, tokens=500).tokens == 600, "a long row is not cut"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_step_has_no_breaks_and_no_second_shape(network):
    torch._dynamo.reset()
    seen = []

    def backend(graph, inputs):
        seen.append(graph)
        return graph.forward

    compiled = torch.compile(network, backend=backend, fullgraph=True)
    batches = [
        Packed.of(rows_of(lengths, seed), network.config.pad_token_id, tokens=128, longest=24)
        for seed, lengths in enumerate([[24, 20, 3, 9], [7, 7, 24, 24, 24], [2, 3, 4]])
    ]
    for batch in batches:
        network.zero_grad()
        states = batch.states(compiled)
        batch.pooled(states, "mean").sum().backward()
        torch.testing.assert_close(states, batch.states(network), atol=1e-5, rtol=1e-5)

    assert len(seen) == 1


def test_the_network_attends_as_before_afterwards(network):
    before = network.config._attn_implementation
    batch = Packed.of(rows_of([3, 4]), 0)
    batch.states(network)

    assert network.config._attn_implementation == before
    assert "noisegen" not in network.config.to_json_string()


def test_another_network_is_one_line():
    network = made("distilbert")
    assert not is_packable(network.config)
    with pytest.raises(UsageError, match="distilbert network takes no packed batches, only bert"):
        Packed.of(rows_of([3, 4]), 0).states(network)


def test_dropout_of_attention_keeps_the_mean_within_rows():
    """transformers finds the attention by its name; half of the weights are dropped."""
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 4, 7, 8).unbind()
    owner = torch.tensor([0, 0, 0, 1, 1, 1, 1])
    attend = AttentionInterface()[ATTENTION]

    def attended(dropout):
        out, _ = attend(None, query, key, value, None, scaling=0.3, seq_idx=owner, dropout=dropout)
        return out

    plain, dropped = attended(0.0), torch.stack([attended(0.5) for _ in range(3_000)])
    assert not torch.allclose(dropped[0], plain, atol=0.1)
    torch.testing.assert_close(dropped.mean(0), plain, atol=0.15, rtol=0)


def test_the_kernel_of_cuda_takes_dropout():
    """On the device `meta` torch checks the call and its gradient, and computes nothing."""
    with torch.device("meta"):
        sides = [torch.ones(7, 4, 8, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
        offsets = torch.ones(3, dtype=torch.int32)
    out = flash_attention(sides, offsets, 4, 0.3, 0.1)
    out.sum().backward()

    assert out.shape == sides[0].grad.shape == (7, 4, 8)
