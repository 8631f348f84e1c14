"""Short rows attend by products of matrices in bf16 on a CPU: the same vectors and gradients."""

import pytest
import torch

from noisegen.encoders.specs import open_encoder
from noisegen.training import computation
from noisegen.training.computation import Computation
from noisegen.training.settings import Settings


@pytest.fixture
def student(tiny_bert):
    found = open_encoder(str(tiny_bert))
    found.requires_grad_(True)
    return found


def step(student, texts, precision):
    """Return vectors and the gradient of the first layer's queries, and how it attended."""
    made = Computation(
        Settings(epochs=1, precision=precision),
        student,
        torch.device("cpu"),
    )
    used = []
    layer = student.network.encoder.layer[0].attention
    hook = layer.register_forward_hook(lambda *_: used.append(student.config._attn_implementation))
    with made.precision():
        vectors = made.vectors(made.batch(student.tokenizer.tokenize(texts)))
    student.zero_grad()
    vectors.square().sum().backward()
    hook.remove()
    (name,) = set(used)
    gradient = dict(layer.named_parameters())["self.query.weight"].grad.clone()
    return vectors.detach(), gradient, name


def test_plain_products_give_the_vectors_and_gradients_of_the_fused_kernel(
    student, sentences, monkeypatch
):
    texts = [text[: 20 + 3 * number] for number, text in enumerate(sentences[:40])]  # with padding
    plain = step(student, texts, "bf16")
    monkeypatch.setattr(computation, "_PLAIN_LONGEST", 0)
    fused = step(student, texts, "bf16")
    exact = step(student, texts, "fp32")

    assert (plain[2], fused[2], exact[2]) == ("eager", "sdpa", "sdpa")
    for number in (0, 1):
        scale = exact[number].abs().max()
        assert (plain[number] - exact[number]).abs().max() < 0.05 * scale
        assert (plain[number] - exact[number]).norm() < 1.3 * (fused[number] - exact[number]).norm()


def test_the_network_attends_afterwards_as_it_did(student, sentences):
    before = student.config._attn_implementation
    step(student, sentences[:5], "bf16")

    assert student.config._attn_implementation == before
