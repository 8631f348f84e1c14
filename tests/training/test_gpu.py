"""Behaviour of a GPU: attention, compiler, precision, collectives and repeated bits.

`make gpu` runs these tests, nightly ones included. Each runs on the CPU as well, so that a machine
without a GPU shows that the test itself works.
"""

import os
import signal
import socket

import pytest
import torch
import torch.distributed as dist
from runs import log_rows, same_weights, trained_weights
from training_runs import SHORT, settings

import noisegen
from noisegen.encoders.encoder import open_encoder
from noisegen.encoders.tokens import Packed
from noisegen.training import computation
from noisegen.training.bench import bench
from noisegen.training.computation import Computation, Workers, peak_flop_per_second
from noisegen.training.settings import DistilSettings, TrainOptions

pytestmark = pytest.mark.gpu

STEPS = 12
PACKED = settings("recipe=stored validate_every=100 negatives=1024 precision=bf16 packed=true")


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    return torch.device(request.param, 0 if request.param == "cuda" else None)


@pytest.fixture
def train(tiny_bert, pairs_file, tmp_path, device):
    """Train into a folder of this name; return its weights and the rows of its log."""

    def run(name, sinks=(), *, resume=False, **values):
        given = {**SHORT, **PACKED, "steps": STEPS, "teacher": str(tiny_bert), **values}
        noisegen.train(
            [str(pairs_file)],
            tmp_path / name,
            values=given,
            device=device.type,
            sinks=sinks,
            resume=resume,
        )
        return trained_weights(tmp_path / name, STEPS), log_rows(tmp_path / name)

    return run


@pytest.fixture
def deterministic():
    """Use kernels that repeat their bits; torch raises an error for operations without one."""
    before = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    os.environ.pop("CUBLAS_WORKSPACE_CONFIG")
    os.environ.update({"CUBLAS_WORKSPACE_CONFIG": before} if before else {})


def vectors_and_gradients(folder, texts, device, **values):
    """Return the vectors of texts, and the gradient of all weights, in float32 on the CPU."""
    student = open_encoder(str(folder)).to(device)
    student.requires_grad_(True)
    made = Computation(DistilSettings(epochs=1, **values), student, device)
    with made.precision():
        vectors = made.vectors(made.batch(student.tokenizer.tokenize(texts)))
    target = torch.linspace(-1, 1, vectors.numel(), device=device).view_as(vectors)
    (vectors * target).sum().backward()
    weights = [weight for weight in student.parameters() if weight.grad is not None]
    gradient = torch.cat([weight.grad.flatten() for weight in weights])
    return vectors.detach().float().cpu(), gradient.float().cpu()


def test_packed_attention_is_that_of_padded_rows(tiny_bert, sentences, device):
    """Packed and padded rows are rounded to bf16; packed ones may be off by 1.5 times as much."""
    texts = [text[: 20 + 3 * number] for number, text in enumerate(sentences[:40])]
    exact = vectors_and_gradients(tiny_bert, texts, device, precision="fp32", packed=False)
    padded, packed = (
        vectors_and_gradients(tiny_bert, texts, device, precision="bf16", packed=is_packed)
        for is_packed in (False, True)
    )
    for wanted, theirs, ours in zip(exact, padded, packed, strict=True):
        assert 0 < (ours - wanted).norm() < 1.5 * (theirs - wanted).norm()


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_network_has_no_breaks_and_one_shape(tiny_bert, sentences, device):
    from torch._dynamo.testing import CompileCounterWithBackend  # slow to import

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("inductor" if device.type == "cuda" else "aot_eager")
    student = open_encoder(str(tiny_bert)).to(device)
    student.requires_grad_(True)
    compiled = torch.compile(student.network, backend=counter, fullgraph=True)
    for first in (0, 5, 11):
        ids = student.tokenizer.tokenize(sentences[first : first + 4])
        batch = Packed.of(ids, student.tokenizer.pad_id, device, tokens=400, longest=128)
        with torch.autocast(device.type, torch.bfloat16):
            states, plain = batch.states(compiled), batch.states(student.network)
            batch.pooled(states, "mean").sum().backward()
        torch.testing.assert_close(states, plain, atol=0.1, rtol=0.1)
    assert counter.frame_count == 1


@pytest.mark.nightly
def test_bf16_learns_as_fp32(train):
    """By the loss of every logged update and of held-out pairs.

    At the rate of the other tests the loss rises, and small differences grow.
    """
    (_, exact), (_, rounded) = (
        train(precision, precision=precision, packed=False, lr=1e-4)
        for precision in ("fp32", "bf16")
    )
    assert [row["step"] for row in rounded] == [row["step"] for row in exact]
    for ours, theirs in zip(rounded, exact, strict=True):
        for name in {"loss", "validation_loss", "validation_distance"} & theirs.keys():
            assert ours[name] == pytest.approx(theirs[name], rel=0.03), (name, rounded, exact)


@pytest.mark.nightly
def test_a_run_inside_autocast_of_its_caller_learns_the_same(train, device, deterministic):
    """Such a block keeps 16-bit copies of weights; updates must not see old ones."""
    alone, _ = train("alone", packed=False)
    with torch.autocast(device.type, enabled=False):
        inside, _ = train("inside", packed=False)
    assert same_weights(alone, inside)


@pytest.mark.nightly
def test_a_run_that_goes_on_ends_with_the_same_bits(train, deterministic):
    def stop(row):
        if row["step"] == 10:
            os.kill(os.getpid(), signal.SIGINT)

    whole, _ = train("whole")
    with pytest.raises(KeyboardInterrupt):
        train("cut", sinks=[stop])
    again, _ = train("cut", resume=True)
    assert same_weights(again, whole)


@pytest.fixture
def joined(device, monkeypatch):
    """A process that thinks it is one of two, alone in its group: all collectives are called."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    given = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in given.items():
        monkeypatch.setenv(name, str(value))
    computation.join_group(device)
    yield Workers(0, 2, device)
    dist.destroy_process_group()


def test_processes_exchange_gradients_and_figures_on_their_device(joined, device):
    weights = [torch.nn.Parameter(torch.ones(size, device=device)) for size in (3, 4)]
    weights[0].grad = torch.full((3,), 5.0, device=device)
    joined.sum_gradients(weights)
    joined.wait()

    assert [weight.grad.tolist() for weight in weights] == [[5.0] * 3, [0.0] * 4]
    assert {weight.grad.device.type for weight in weights} == {device.type}
    assert (joined.maximum(2.5), joined.summed(-1.5)) == (2.5, -1.5)
    assert joined.gather(torch.eye(2, device=device)).tolist() == [[1, 0], [0, 1]]


@pytest.mark.nightly
def test_bench_reports_the_share_of_the_peak(tiny_bert, pairs_file, device):
    values = {**SHORT, **PACKED, "teacher": str(tiny_bert), "epochs": 1}
    found = bench(TrainOptions((str(pairs_file),), values=values, device=device.type), 0.2)

    is_known = device.type == "cuda" and peak_flop_per_second(found["device"]) is not None
    assert (found["precision"], found["packed"], found["padding"]) == ("bf16", True, 0)
    for name in ("mfu", "step_mfu"):
        assert (found[name] is not None) == is_known
        assert found[name] is None or 0 < found[name] < 1
