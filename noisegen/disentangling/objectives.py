"""DREAM, MEAT and ORACLE: functions of a batch of pairs and the heads' output to named losses.

A pair is a source s and a target t with vectors e of a frozen encoder; the heads give each side a
meaning vector m and a language vector l. Losses follow the ORACLE paper and its released code;
where these differ the plain name is the paper's form, the code's has a name of its own:
`oracle:reference-code`. Every loss is a mean over the pairs of the batch; means of nothing are 0.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, linear, mse_loss, normalize

from noisegen.training.weighted import Losses, WeightedSum


@dataclass(frozen=True)
class PairBatch:
    """Frozen vectors of both sides (pairs, width), and the number of the language of each."""

    source: Tensor
    target: Tensor
    source_label: Tensor
    target_label: Tensor


@dataclass(frozen=True)
class Layer:
    """Weight and bias of a linear layer to the languages: a classifier, or a discriminator."""

    weight: Tensor
    bias: Tensor

    def __call__(self, vectors: Tensor) -> Tensor:
        """Return shape (rows, languages), logits."""
        return linear(vectors, self.weight, self.bias)


@dataclass(frozen=True)
class Parted:
    """What the heads made of a batch: meaning and language vectors (pairs, width) of both sides.

    `identify` tells languages from language vectors (DREAM); `discriminate` from meaning vectors
    (MEAT): in the heads' step it is held still, they learn to deceive it.
    """

    source_meaning: Tensor
    source_language: Tensor
    target_meaning: Tensor
    target_language: Tensor
    identify: Layer | None = None
    discriminate: Layer | None = None


def dream(batch: PairBatch, output: Parted) -> Losses:
    """DREAM: the second half of the batch are random partners s', t' of the first half's s, t.

    Reconstruction is a squared error; of an odd batch the last pair takes no part. In the released
    code a third language term is computed and dropped: it is in `dream:third-term`.
    """
    half = len(batch.source) // 2
    here, there = slice(0, half), slice(half, 2 * half)
    meanings = output.source_meaning, output.target_meaning
    languages = output.source_language, output.target_language
    vectors, labels = (batch.source, batch.target), (batch.source_label, batch.target_label)
    together = [m[here] + v[here] for m, v in zip(meanings, languages, strict=True)]
    return {
        "semantic": _apart(*(m[here] for m in meanings))
        + _sum(_alike(m[here], m[there]) for m in meanings),
        "reconstruction": _sum(
            _mean_square(made, e[here]) for made, e in zip(together, vectors, strict=True)
        ),
        "language": _sum(_apart(v[here], v[there]) for v in languages),
        "identification": _sum(
            _crossed(output.identify, v[here], label[here])
            for v, label in zip(languages, labels, strict=True)
        ),
    }


def dream_third_term(batch: PairBatch, output: Parted) -> Losses:
    """DREAM with the term that its released code drops: languages of a pair are pushed apart."""
    half = len(batch.source) // 2
    third = _alike(output.source_language[:half], output.target_language[:half])
    found = dream(batch, output)
    return {**found, "language": found["language"] + third}


def meat(batch: PairBatch, output: Parted) -> Losses:
    """MEAT: reconstruction by cosine, also across the pair; a discriminator to be deceived."""
    m_s, m_t = output.source_meaning, output.target_meaning
    l_s, l_t = output.source_language, output.target_language
    return {
        "reconstruction": _apart(m_s + l_s, batch.source) + _apart(m_t + l_t, batch.target),
        "cross_reconstruction": _apart(m_s + l_t, batch.target) + _apart(m_t + l_s, batch.source),
        "language": _alike(l_s, l_t),
        "adversarial": _unsure(output.discriminate, m_s) + _unsure(output.discriminate, m_t),
    }


def discrimination(batch: PairBatch, output: Parted, discriminator: Layer) -> Tensor:
    """Return what MEAT's discriminator itself learns from: languages told from meaning vectors."""
    return _crossed(discriminator, output.source_meaning.detach(), batch.source_label) + _crossed(
        discriminator, output.target_meaning.detach(), batch.target_label
    )


def oracle(batch: PairBatch, output: Parted) -> Losses:
    """ORACLE (paper): language vectors of a side alike, meaning and language of a text orthogonal.

    `intra_class` is the mean over i != j of 2 - cos(l_s^i, l_s^j) - cos(l_t^i, l_t^j);
    `inter_class` the mean of max(0, cos(m_s, l_s)) + max(0, cos(m_t, l_t)).
    """
    return {"intra_class": _intra_class(output), "inter_class": _between(output)}


def oracle_reference_code(batch: PairBatch, output: Parted) -> Losses:
    """ORACLE as the released configurations run it (class "oracle_new").

    i = j counts in `intra_class`: (B - 1)/B of the paper's. `inter_class` compares the languages of
    a pair, not meaning and language.
    """
    apart = _alike(output.source_language, output.target_language)
    return {"intra_class": _intra_class(output, diagonal=True), "inter_class": apart}


def oracle_main(batch: PairBatch, output: Parted) -> Losses:
    """Return the released code's "oracle_main": the paper's `inter_class` halved; i = j counts."""
    half = _between(output) / 2
    return {"intra_class": _intra_class(output, diagonal=True), "inter_class": half}


def oracle_old(batch: PairBatch, output: Parted) -> Losses:
    """Return the released code's "oracle_old": |cos(m, l)|, languages apart, meanings alike."""
    crossed = (
        (output.source_meaning, output.source_language),
        (output.target_meaning, output.target_language),
    )
    return {
        "intra_class": _intra_class(output, diagonal=True),
        "semantic": _apart(output.source_meaning, output.target_meaning),
        "orthogonal": _sum(_mean(cosine_similarity(m, v).abs()) for m, v in crossed),
        "inter_class": _alike(output.source_language, output.target_language),
    }


def _between(output: Parted) -> Tensor:
    source = _alike(output.source_meaning, output.source_language)
    return source + _alike(output.target_meaning, output.target_language)


def _intra_class(output: Parted, *, diagonal: bool = False) -> Tensor:
    source, target = output.source_language, output.target_language
    return _unlike_all(source, diagonal=diagonal) + _unlike_all(target, diagonal=diagonal)


def _unlike_all(vectors: Tensor, *, diagonal: bool) -> Tensor:
    """Return the mean over pairs of rows of 1 - cosine, in O(rows x width).

    The sum of all cosines is the squared length of the sum of the unit vectors.
    """
    units, rows = normalize(vectors), len(vectors)
    same = units.square().sum()
    every = units.sum(0).square().sum()
    if diagonal:
        return 1 - every / rows**2 if rows else vectors.new_zeros(())
    return 1 - (every - same) / (rows * (rows - 1)) if rows > 1 else vectors.new_zeros(())


def _apart(one: Tensor, other: Tensor) -> Tensor:
    """Return the mean of 1 - cosine: what pulls rows together."""
    return _mean(1 - cosine_similarity(one, other))


def _alike(one: Tensor, other: Tensor) -> Tensor:
    """Return the mean of max(0, cosine): what pushes rows apart until they are orthogonal."""
    return _mean(cosine_similarity(one, other).clamp_min(0))


def _unsure(discriminator: Layer | None, vectors: Tensor) -> Tensor:
    """Return the cross-entropy of the discriminator's answer with 1/n for each of n languages."""
    if discriminator is None:
        raise ValueError("this objective needs a discriminator")
    return _mean(-discriminator(vectors).log_softmax(1).mean(1))


def _crossed(layer: Layer | None, vectors: Tensor, labels: Tensor) -> Tensor:
    if layer is None:
        raise ValueError("this objective needs a classifier of languages")
    return _mean(cross_entropy(layer(vectors), labels, reduction="none"))


def _mean_square(one: Tensor, other: Tensor) -> Tensor:
    return mse_loss(one, other, reduction="sum") / max(1, one.numel())


def _mean(values: Tensor) -> Tensor:
    return values.sum() / max(1, len(values))


def _sum(values: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(values)).sum()


HeadObjective = Callable[[PairBatch, Parted], Losses]
OBJECTIVES: Mapping[str, HeadObjective] = {
    "dream": dream,
    "dream:third-term": dream_third_term,
    "meat": meat,
    "oracle": oracle,
    "oracle:reference-code": oracle_reference_code,
    "oracle:main": oracle_main,
    "oracle:old": oracle_old,
}


class WeightedHeads(WeightedSum[PairBatch, Parted]):
    """Objectives with weights, written `meat+oracle` or `dream+0.5*oracle:reference-code`."""

    known = OBJECTIVES

    @property
    def is_adversarial(self) -> bool:
        """Whether a discriminator learns beside the heads."""
        return self.has("meat")

    @property
    def compares_pairs(self) -> bool:
        """Whether a part of it is about two pairs of a batch, and 0 of a single one."""
        return self.has(*(name for name in OBJECTIVES if name != "meat"))
