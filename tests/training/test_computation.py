"""How a student computes: packed or padded, its share of a peak, short rows by plain products."""

import pytest
import torch

from noisegen.encoders import tokens as attention
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import UsageError
from noisegen.training.computation import Computation, peak_flop_per_second
from noisegen.training.settings import DistilSettings, load_settings


@pytest.fixture
def student(tiny_bert):
    found = open_encoder(str(tiny_bert))
    found.requires_grad_(True)
    return found


def step(student, texts, precision):
    """Return vectors and the gradient of the first layer's queries, and how it attended."""
    made = Computation(DistilSettings(epochs=1, precision=precision), student, torch.device("cpu"))
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
    monkeypatch.setattr(attention, "PLAIN_LONGEST", 0)
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


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H200", 989.5e12),
        ("NVIDIA H200 NVL", 835.5e12),
        ("NVIDIA H100 PCIe", 756.5e12),
        ("NVIDIA H100 80GB HBM3", 989.5e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA L4", 121e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L40", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("Tesla T4", None),
    ],
)
def test_the_peak_is_that_of_the_device_named(name, peak):
    assert peak_flop_per_second(name) == peak


@pytest.fixture
def gpu(monkeypatch):
    """Let torch say that there is an L4, and compile nothing."""
    answers = {
        "torch.cuda.get_device_name": lambda device: "NVIDIA L4",
        "torch.cuda.is_bf16_supported": lambda including_emulation: True,
        "torch.compile": lambda network: network,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(name, answer)


def computation(folder, device="cpu", world=1, **values):
    settings = load_settings("quickstart", values=values)
    return Computation(settings, open_encoder(str(folder)), torch.device(device), world)


def test_mfu_is_the_share_of_the_peak(tiny_bert, gpu):
    """By hand: two layers of 32 x 32 and 32 x 64, norms and biases, positions and kinds."""
    assert computation(tiny_bert).mfu(1e6, 20) is None
    found = computation(tiny_bert, "cuda")

    layer = 4 * (32 * 32 + 32) + 2 * 32 * 64 + 64 + 32 + 4 * 32
    dense = 2 * layer + 128 * 32 + 2 * 32 + 2 * 32
    assert found.mfu(1e6, 20) == pytest.approx(1e6 * (6 * dense + 12 * 2 * 32 * 20) / 121e12)


def test_a_compiled_network_gets_batches_of_its_share_of_an_update(tiny_bert, gpu):
    given = {"compile": True, "batch_tokens": 32_000, "accumulate": 2, "packed": True}
    found = computation(tiny_bert, "cuda", 8, **given)

    assert found.shape["tokens"] == 2_000
    assert not computation(tiny_bert, "cuda").shape


def test_batches_are_packed_on_cuda_where_nothing_is_lost_by_it(tiny_bert, gpu):
    assert computation(tiny_bert, "cuda").packed
    assert computation(tiny_bert, "cuda", dropout=0.1).packed
    assert not computation(tiny_bert, "cuda", precision="fp32").packed
    assert not computation(tiny_bert, "cuda", packed=False).packed
    assert not computation(tiny_bert).packed
    assert computation(tiny_bert, packed=True).packed
    with pytest.raises(UsageError, match="need precision bf16"):
        computation(tiny_bert, "cuda", packed=True, precision="fp32")
    with pytest.raises(UsageError, match="compile=true needs packed batches on CUDA"):
        computation(tiny_bert, compile=True, packed=True)
