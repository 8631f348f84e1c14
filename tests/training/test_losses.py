import math

import pytest
import torch

from noisegen.errors import UsageError
from noisegen.training import losses
from noisegen.training.losses import Batch, Output
from noisegen.training.objectives import WeightedSum, find_objective, objectives

N, D = 5, 7


@pytest.fixture
def made():
    torch.manual_seed(1)
    teacher, noisy, clean, others = (torch.randn(rows, D) for rows in (N, N, N, 9))
    return Batch(teacher, others, 0.1), Output(noisy, clean)


def cos(a, b):
    return float(a @ b / a.norm() / b.norm())


def test_squared_errors_by_hand(made):
    batch, output = made
    by_hand = [
        sum(float(output.noisy[i, k] - batch.teacher[i, k]) ** 2 for k in range(D))
        for i in range(N)
    ]
    clean = [float(((output.clean[i] - batch.teacher[i]) ** 2).sum()) for i in range(N)]

    assert losses.mse_sum(batch, output)["noisy"].item() == pytest.approx(sum(by_hand) / N)
    assert losses.mse_mean(batch, output)["noisy"].item() == pytest.approx(sum(by_hand) / N / D)
    two = losses.two_term(batch, output)
    assert two["noisy"].item() == pytest.approx(sum(by_hand) / N)
    assert two["clean"].item() == pytest.approx(sum(clean) / N)
    of_library = losses.two_term_mean(batch, output)  # sentence-transformers: both sides in a row
    stacked = torch.cat([output.clean, output.noisy]), torch.cat([batch.teacher] * 2)
    whole = torch.nn.functional.mse_loss(*stacked).item()
    assert sum(of_library.values()).item() == pytest.approx(whole)
    assert whole == pytest.approx((sum(by_hand) + sum(clean)) / (2 * N * D))


def test_snr_and_cosine_by_hand(made):
    batch, output = made
    ratios = [float((output.noisy[i] - t).norm() / t.norm()) for i, t in enumerate(batch.teacher)]
    cosines = [1 - cos(output.noisy[i], batch.teacher[i]) for i in range(N)]

    assert losses.snr(batch, output)["noisy"].item() == pytest.approx(sum(ratios) / N, rel=1e-5)
    assert losses.cosine(batch, output)["noisy"].item() == pytest.approx(sum(cosines) / N, rel=1e-5)


def test_info_nce_by_a_double_loop(made):
    batch, output = made
    total = 0.0
    for i in range(N):
        scores = [cos(output.noisy[i], t) / 0.1 for t in [*batch.teacher, *batch.negatives]]
        total -= scores[i] - math.log(sum(math.exp(score) for score in scores))

    assert losses.info_nce(batch, output)["contrast"].item() == pytest.approx(total / N, rel=1e-4)


def test_a_target_that_is_the_same_text_again_is_no_negative(made):
    batch, output = made
    alone, output = Batch(batch.teacher[:1], batch.negatives, 0.1), Output(output.noisy[:1])
    again = Batch(alone.teacher, torch.cat([batch.negatives, alone.teacher]), 0.1)

    assert losses.info_nce(again, output)["contrast"].item() == pytest.approx(
        losses.info_nce(alone, output)["contrast"].item(), rel=1e-5
    )


def test_nt_xent_by_a_double_loop(made):
    batch, output = made
    sides = [*output.noisy, *output.clean]
    total = 0.0
    for i in range(2 * N):
        others = {j: cos(sides[i], sides[j]) / 0.05 for j in range(2 * N) if j != i}
        right = others[(i + N) % (2 * N)]
        total -= right - math.log(sum(math.exp(score) for score in others.values()))
    batch = Batch(batch.teacher, None, 0.05)

    assert losses.nt_xent(batch, output)["contrast"].item() == pytest.approx(
        total / 2 / N, rel=1e-4
    )


@pytest.mark.parametrize("name", objectives("distil"))
def test_a_known_optimum_is_found(name):
    """Gradient descent on the vectors themselves ends where the objective says it should."""
    torch.manual_seed(0)
    function = find_objective(name, "distil").function
    teacher = torch.nn.functional.normalize(torch.randn(4, 6))
    noisy, clean = (torch.randn(4, 6, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.Adam([noisy, clean], lr=0.1)
    for _ in range(300):
        loss = sum(function(Batch(teacher), Output(noisy, clean)).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    target = clean if name == "nt_xent" else teacher

    nearest = torch.nn.functional.normalize(noisy) @ torch.nn.functional.normalize(target).T
    assert nearest.argmax(1).tolist() == [0, 1, 2, 3]
    if "mse" in name or name == "two_term":
        assert torch.allclose(noisy, teacher, atol=1e-2)


def test_weights_and_sums_are_read():
    weighted = WeightedSum.parse("two_term + 0.2*info_nce")

    assert [(weight, part.name) for weight, part in weighted.parts] == [
        (1.0, "two_term"),
        (0.2, "info_nce"),
    ]
    assert weighted.needs("clean")
    assert weighted.needs("negatives")
    assert not WeightedSum.parse("mse_sum").needs("clean")


def test_the_sum_is_weighted_and_the_parts_are_not(made):
    batch, output = made
    total, parts = WeightedSum.parse("0.5*two_term+2*info_nce")(batch, output)

    assert total.item() == pytest.approx(
        0.5 * (parts["clean"] + parts["noisy"]).item() + 2 * parts["contrast"].item()
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mse", "no objective 'mse'"),
        ("x*mse_sum", "write WEIGHT"),
        ("", "no objective ''"),
        ("two_trem", "did you mean 'two_term'"),
        ("nan*mse_sum", "positive and finite"),
        ("inf*mse_sum", "positive and finite"),
        ("two_term+-1*mse_sum", "positive and finite"),
        ("0*mse_sum", "positive and finite"),
    ],
)
def test_what_is_no_objective_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        WeightedSum.parse(text)


def test_an_objective_without_the_side_it_needs_says_so(made):
    batch, output = made
    with pytest.raises(ValueError, match="clean side"):
        losses.two_term(batch, Output(output.noisy))
