"""Objectives compared with loops over pairs in float64, and differences of the papers' codes."""

import math
import random
from functools import partial

import pytest
import torch

from noisegen.errors import UsageError
from noisegen.training import losses
from noisegen.training.losses import Disentangled, PairBatch
from noisegen.training.objectives import WeightedSum, find_objective

SHAPES = [(1, 3, 1), (2, 4, 2), (3, 5, 2), (4, 2, 3), (7, 6, 4), (8, 3, 1), (13, 5, 5)]
CASES = [(seed, *SHAPES[seed % len(SHAPES)]) for seed in range(42)]
cases = pytest.mark.parametrize(("seed", "rows", "width", "labels"), CASES)


def made(seed, rows, width, labels):
    """Make a random batch and output in float64; every third batch has one language per side."""
    random = torch.Generator().manual_seed(seed)

    def numbers(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def names():
        found = torch.randint(labels, (rows,), generator=random)
        return found if seed % 3 else torch.zeros_like(found)

    layers = [
        torch.nn.Linear(width, labels, dtype=torch.float64).requires_grad_(False) for _ in range(2)
    ]
    batch = PairBatch(numbers(rows, width), numbers(rows, width), names(), names())
    return batch, Disentangled(*(numbers(rows, width) for _ in range(4)), *layers)


def cos(a, b):
    a, b = a.tolist(), b.tolist()
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return product / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def logits(layer, vector):
    return [
        sum(w * x for w, x in zip(row, vector.tolist(), strict=True)) + bias
        for row, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
    ]


def log_share(scores, at):
    return scores[at] - math.log(sum(math.exp(score) for score in scores))


def numbers(found):
    return {name: float(value) for name, value in found.items()}


def close_to(wanted):
    return pytest.approx(wanted, abs=1e-9)


@cases
def test_dream_equals_a_loop_over_pairs_and_their_partners(seed, rows, width, labels):
    batch, out = made(seed, rows, width, labels)
    half = rows // 2
    pairs = [(i, half + i) for i in range(half)]
    sides = [
        (out.source_meaning, out.source_language, batch.source, batch.source_label),
        (out.target_meaning, out.target_language, batch.target, batch.target_label),
    ]
    m_s, m_t = out.source_meaning, out.target_meaning
    wanted = {
        "semantic": mean(1 - cos(m_s[i], m_t[i]) for i, _ in pairs)
        + sum(mean(max(0, cos(m[i], m[j])) for i, j in pairs) for m, *_ in sides),
        "reconstruction": sum(
            mean(
                ((m[i, k] + v[i, k] - e[i, k]) ** 2).item() for i, _ in pairs for k in range(width)
            )
            for m, v, e, _ in sides
        ),
        "language": sum(mean(1 - cos(v[i], v[j]) for i, j in pairs) for _, v, *_ in sides),
        "identification": sum(
            mean(-log_share(logits(out.classifier, v[i]), int(label[i])) for i, _ in pairs)
            for _, v, _, label in sides
        ),
    }
    assert numbers(losses.dream(batch, out)) == close_to(wanted)

    third = mean(max(0, cos(out.source_language[i], out.target_language[i])) for i, _ in pairs)
    wanted["language"] += third
    assert numbers(losses.dream_third_term(batch, out)) == close_to(wanted)


@cases
def test_meat_equals_a_loop_over_pairs(seed, rows, width, labels):
    batch, out = made(seed, rows, width, labels)
    m_s, m_t, l_s, l_t = (
        out.source_meaning,
        out.target_meaning,
        out.source_language,
        out.target_language,
    )
    every = range(rows)

    def off(one, other):
        return mean(1 - cos(one[i], other[i]) for i in every)

    def deceived(meaning):
        shares = [logits(out.discriminator, meaning[i]) for i in every]
        return mean(-sum(log_share(one, k) for k in range(labels)) / labels for one in shares)

    assert numbers(losses.meat(batch, out)) == close_to(
        {
            "reconstruction": off(m_s + l_s, batch.source) + off(m_t + l_t, batch.target),
            "cross_reconstruction": off(m_s + l_t, batch.target) + off(m_t + l_s, batch.source),
            "language": mean(max(0, cos(l_s[i], l_t[i])) for i in every),
            "adversarial": deceived(m_s) + deceived(m_t),
        }
    )
    told = mean(
        -log_share(logits(out.discriminator, m[i]), int(label[i]))
        for m, label in ((m_s, batch.source_label), (m_t, batch.target_label))
        for i in every
    )
    found = losses.discrimination(batch, out, out.discriminator)
    assert float(found) == pytest.approx(2 * told, abs=1e-9)


def spread(vectors, pairs):
    return mean(1 - cos(vectors[i], vectors[j]) for i, j in pairs)


@cases
def test_oracle_equals_a_loop_over_all_pairs_of_rows(seed, rows, width, labels):
    batch, out = made(seed, rows, width, labels)
    m_s, m_t, l_s, l_t = (
        out.source_meaning,
        out.target_meaning,
        out.source_language,
        out.target_language,
    )
    others = [(i, j) for i in range(rows) for j in range(rows) if i != j]
    all_of_them = [(i, j) for i in range(rows) for j in range(rows)]
    crossed = [cos(m[i], v[i]) for m, v in ((m_s, l_s), (m_t, l_t)) for i in range(rows)]
    between = 2 * mean(max(0, one) for one in crossed)
    apart = mean(max(0, cos(l_s[i], l_t[i])) for i in range(rows))
    paper = spread(l_s, others) + spread(l_t, others)
    code = spread(l_s, all_of_them) + spread(l_t, all_of_them)

    assert numbers(losses.oracle(batch, out)) == close_to(
        {"intra_class": paper, "inter_class": between}
    )
    assert numbers(losses.oracle_reference_code(batch, out)) == close_to(
        {"intra_class": code, "inter_class": apart}
    )
    assert numbers(losses.oracle_intra(batch, out)) == close_to({"intra_class": paper})
    assert numbers(losses.oracle_inter(batch, out)) == close_to({"inter_class": between})
    assert numbers(losses.oracle_main(batch, out)) == close_to({"inter_class": between / 2})
    assert numbers(losses.oracle_pair(batch, out)) == close_to({"intra_class": code})
    assert numbers(losses.oracle_orth(batch, out)) == close_to({"inter_class": apart})
    absolute = mean(abs(cos(l_s[i], l_t[i])) for i in range(rows))
    assert numbers(losses.oracle_abs(batch, out)) == close_to(
        {"intra_class": code, "inter_class": absolute}
    )
    assert numbers(losses.oracle_all(batch, out)) == close_to(
        {"inter_class": (apart + between) / 3}
    )
    assert numbers(losses.oracle_old(batch, out)) == close_to(
        {
            "intra_class": code,
            "semantic": mean(1 - cos(m_s[i], m_t[i]) for i in range(rows)),
            "orthogonal": 2 * mean(abs(one) for one in crossed),
            "inter_class": apart,
        }
    )
    assert code == pytest.approx(paper * (rows - 1) / rows)


def test_equation_6_of_oracle_on_vectors_with_known_angles():
    """cos(m_s, l_s) = 3/5 and -1, cos(m_t, l_t) = 4/5 and 1: mean(max(0, .)) = 3/10 and 9/10.

    Languages of the source are at a right angle, those of the target are opposite: intra-class
    2 - 0 - (-1) = 3.
    """
    meaning_s, language_s = [[3.0, 4.0], [0.0, 2.0]], [[5.0, 0.0], [0.0, -1.0]]
    meaning_t, language_t = [[8.0, 6.0], [-7.0, 0.0]], [[1.0, 0.0], [-2.0, 0.0]]
    sides = (meaning_s, language_s, meaning_t, language_t)
    out = Disentangled(*(torch.tensor(side, dtype=torch.float64) for side in sides))
    batch = made(0, 2, 2, 1)[0]

    assert numbers(losses.oracle(batch, out)) == close_to({"intra_class": 3, "inter_class": 1.2})
    assert numbers(losses.oracle_main(batch, out)) == close_to({"inter_class": 0.6})


def wave(speed, *shape):
    return torch.sin(speed * torch.arange(1, math.prod(shape) + 1.0).double()).reshape(shape)


def test_figures_are_those_of_the_released_classes():
    """Their losses on these vectors, computed with the authors' code (dayeonki/oracle, 1315220).

    They hold the uniform distribution in float32: 1e-7.
    """
    near = partial(pytest.approx, abs=1e-7)
    source, target, *parts = (wave(speed, 6, 4) for speed in range(1, 7))
    meaning_s, meaning_t, language_s, language_t = parts
    layer = torch.nn.Linear(4, 3, dtype=torch.float64).requires_grad_(False)
    layer.weight.copy_(wave(7, 3, 4))
    layer.bias.copy_(wave(8, 3))
    batch = PairBatch(
        source, target, torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([2, 2, 1, 1, 0, 0])
    )
    out = Disentangled(meaning_s, language_s, meaning_t, language_t, layer, layer)
    meat = {
        "reconstruction": 2.280938638,
        "cross_reconstruction": 2.163084359,
        "language": 0.135565522,
        "adversarial": 2.932655970,
    }

    assert numbers(losses.meat(batch, out)) == near(meat)
    assert numbers(losses.oracle_reference_code(batch, out)) == near(
        {"intra_class": 1.975223006, "inter_class": 0.135565522}
    )
    assert numbers(losses.oracle_main(batch, out)) == near({"inter_class": 0.080717580})
    assert float(losses.discrimination(batch, out, layer)) == near(2.918041093)
    assert numbers(losses.dream(batch, out)) == near(
        {
            "semantic": 1.704607331,
            "reconstruction": 2.867175567,
            "language": 3.858676934,
            "identification": 5.159994573,
        }
    )


def test_the_heads_learn_nothing_into_the_discriminator_that_judges_them():
    batch, out = made(4, 7, 6, 4)
    out.source_meaning.requires_grad_()

    assert not losses.discrimination(batch, out, out.discriminator).requires_grad
    assert losses.meat(batch, out)["adversarial"].requires_grad


def test_weights_count_in_the_sum_and_not_in_the_parts():
    batch, out = made(5, 6, 4, 3)
    two = WeightedSum.parse("0.3*oracle:intra + 2*oracle:inter", "heads")(batch, out)
    both = losses.oracle(batch, out)
    assert float(two[0]) == pytest.approx(
        float(0.3 * both["intra_class"] + 2 * both["inter_class"])
    )
    total, parts = WeightedSum.parse("meat + 0.5*oracle:reference-code", "heads")(batch, out)
    meat, oracle = losses.meat(batch, out), losses.oracle_reference_code(batch, out)

    assert float(total) == pytest.approx(float(sum(meat.values()) + sum(oracle.values()) / 2))
    assert numbers(parts) == close_to(
        {name: float(value) for name, value in (meat | oracle).items()}
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("orakle", "did you mean 'oracle'"),
        ("oracle:odd", "no objective 'oracle:odd'"),
        ("x*meat", "write WEIGHT"),
        ("-1*meat", "positive and finite"),
        ("meat+", "no objective ''"),
    ],
)
def test_what_is_no_objective_of_heads_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        WeightedSum.parse(text, "heads")


@pytest.mark.parametrize("name", ["dream", "meat"])
def test_an_objective_without_its_classifier_says_so(name):
    batch, out = made(1, 4, 3, 2)
    with pytest.raises(ValueError, match="needs a"):
        find_objective(name, "heads").function(
            batch, Disentangled(out.source_meaning, *(out.target_meaning,) * 3)
        )


def test_rows_in_another_order_give_the_same_oracle_and_meat():
    batch, out = made(9, 13, 5, 3)
    order = list(range(13))
    random.Random(1).shuffle(order)
    moved = PairBatch(*(getattr(batch, name)[order] for name in batch.__dataclass_fields__))
    sides = ("source_meaning", "source_language", "target_meaning", "target_language")
    turned = Disentangled(
        *(getattr(out, name)[order] for name in sides), out.classifier, out.discriminator
    )
    for name in (
        "meat",
        "oracle",
        "oracle:intra",
        "oracle:reference-code",
        "oracle:main",
        "oracle:old",
    ):
        one = find_objective(name, "heads").function(batch, out)
        assert numbers(find_objective(name, "heads").function(moved, turned)) == close_to(
            {k: float(v) for k, v in one.items()}
        )
